/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Draining a volume; lc-flush and lc-remove share it.  The name in @volume follows a rename.
 *
 * Return: 0, or a negative errno after complaining.
 */
#ifndef LC_FLUSH_H
#define LC_FLUSH_H

#include "dm.h"

/* What is in RAM becomes durable on the SSD. */
int flush_buffers(struct dm_facts *volume);
/*
 * All that was written before the call gets to the hard disk.  Shows the progress on stdout; may
 * take hours.  SIGINT and SIGTERM end the waiting, not the draining.
 */
int flush_volume(struct dm_facts *volume);

#endif
