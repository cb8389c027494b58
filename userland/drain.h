/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sync and drain of a volume; lc-flush and lc-remove share them.  The name in @volume follows a
 * rename.
 *
 * Return: 0, or a negative errno after complaining.
 */
#ifndef LC_DRAIN_H
#define LC_DRAIN_H

#include "dm.h"

/* Sync: what was written before the call becomes durable on the SSD. */
int sync_volume(struct dm_facts *volume);
/*
 * Sync and drain: all that was written before the call gets to the hard disk.  Shows the progress
 * on stdout; may take hours.  SIGINT and SIGTERM end the waiting, not the draining.
 */
int drain_volume(struct dm_facts *volume);

#endif
