/* SPDX-License-Identifier: GPL-2.0-only */
/* Writing the index to the SSD at a clean stop, and loading it at the next start.  May sleep. */
#ifndef LC_CHECKPOINT_H
#define LC_CHECKPOINT_H

#include <linux/types.h>

struct lc_cache;

/**
 * lc_checkpoint_write() - write the index, not yet durably
 * @c: the cache
 * @nr_entries: how many blocks it lists
 *
 * The volume is quiet.  Return: 0 or a negative errno.
 */
int lc_checkpoint_write(struct lc_cache *c, u64 *nr_entries);

/**
 * lc_checkpoint_load() - fill the empty index from the checkpoint
 * @c: the cache
 *
 * Return: 0, -EUCLEAN or another errno if it cannot be used; the index may then
 * hold part of it.
 */
int lc_checkpoint_load(struct lc_cache *c);

#endif /* LC_CHECKPOINT_H */
