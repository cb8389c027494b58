/* SPDX-License-Identifier: GPL-2.0-only */
/* A set of sector ranges. */
#ifndef LC_LOST_H
#define LC_LOST_H

#include <linux/types.h>

struct lost_span {
	u64 sector;
	u64 end;		/* one after the last */
};

/* Sorted, disjoint and never touching. */
struct lost_set {
	struct lost_span *span;
	size_t nr;
};

/* Add a range to a set, or take it out.  A set begins as zeros and is freed by lost_free(). */
void lost_add(struct lost_set *set, u64 sector, u64 nr_sectors);
void lost_remove(struct lost_set *set, u64 sector, u64 nr_sectors);
/* Add the sectors of a block whose bits are set. */
void lost_add_mask(struct lost_set *set, u64 block, u8 mask);
/* How many sectors are in it. */
u64 lost_sectors(const struct lost_set *set);
/* Empty afterwards. */
void lost_free(struct lost_set *set);

#endif
