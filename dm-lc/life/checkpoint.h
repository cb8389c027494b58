/* SPDX-License-Identifier: GPL-2.0-only */
/* The index on the SSD between two lives.  Both may sleep. */
#ifndef LC_CHECKPOINT_H
#define LC_CHECKPOINT_H

#include <linux/types.h>

struct lc_cache;

int lc_checkpoint_write(struct lc_cache *c, u64 *nr_entries);
int lc_checkpoint_load(struct lc_cache *c);

#endif /* LC_CHECKPOINT_H */
