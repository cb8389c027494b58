/* SPDX-License-Identifier: GPL-2.0-only */
/* Listing the blocks of a segment that the HDD does not hold, and sorting a batch by block. */
#ifndef LC_WBCOLLECT_H
#define LC_WBCOLLECT_H

#include <linux/types.h>

struct lc_cache;
struct lc_wb_item;

struct lc_wb_list {
	struct lc_wb_item *items;
	u32 max;
	u32 nr;
	u32 nr_bad;		/* headers given up, since lc_wbcollect_begin() */
	/* Blocks from here up to there are listed, without the last one; 0 and U64_MAX: all. */
	u64 from, to;
};

/* Which segment is listed, and what happens if its headers cannot be read. */
struct lc_wb_source {
	u64 number;		/* of the segment: durable, closed, not below the tail */
	void *header;		/* a slot's worth of memory */
	const bool *stop;	/* give up early when this becomes true: wb->paused, say */
	bool patient;		/* a header that does not come back as written is an error */
	bool unreadable;	/* read nothing: all that is dirty there counts as damaged */
};

/**
 * lc_wbcollect_segment() - list the dirty slots of a segment
 * @c: the cache
 * @source: the segment
 * @list: has memory for a segment's slots; they are added in the order of slots
 *
 * May sleep; from the owner of the list.  Return: 0, -EINTR, or -EREMOTEIO if the SSD does not
 * give the headers back as they were written and @source is patient.
 */
int lc_wbcollect_segment(struct lc_cache *c, const struct lc_wb_source *source,
			 struct lc_wb_list *list);

/* Empty the list; blocks from @from on are to be listed. */
void lc_wbcollect_begin(struct lc_wb_list *list, u64 from);

/**
 * lc_wbcollect_halve() - drop the upper half of the blocks, and list none of them any more
 * @list: at least two are listed
 *
 * Process context; sorts.  list->to becomes the lowest block that was dropped.
 */
void lc_wbcollect_halve(struct lc_wb_list *list);

/* Is nothing in the segment dirty?  Takes no lock: what was drained does not become dirty again. */
bool lc_wbcollect_clean(struct lc_cache *c, u64 number);

/**
 * lc_wbcollect_sort() - sort what was listed by block
 * @list: the list
 *
 * Process context.  Return: runs of neighbouring blocks; the HDD moves once for each.
 */
u32 lc_wbcollect_sort(struct lc_wb_list *list);

#endif /* LC_WBCOLLECT_H */
