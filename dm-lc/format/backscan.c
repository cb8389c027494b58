// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order of what is read from the end of the log down.  See backscan.h.
 *
 * The items are a heap, so each is added and taken in as many steps as its depth.  A group that
 * turns out to be of an earlier life than was known gets a lower key, once for each later life.
 */
#include <linux/types.h>
#include <linux/string.h>

#include "backscan.h"

void lc_backscan_init(struct lc_backscan *b, const struct lc_sb *sb, u64 first_segment)
{
	struct lc_backscan_item *items = b->items;

	memset(b, 0, sizeof(*b));
	b->items = items;
	b->need = sb->epoch_first_seq - 1;
	b->first_seq = sb->epoch_first_seq;
	b->ceiling = first_segment;
	b->lowest = ~0ULL;
	/* The lives between that one and this have no records. */
	b->epoch = sb->warm_epoch + 1;
	b->ended = !b->need || !sb->warm_epoch;
}

/* Is @x to be taken before @y?  Of two records of one seq that which replay would take. */
static bool before(const struct lc_backscan_item *x, const struct lc_backscan_item *y)
{
	if (x->key != y->key)
		return x->key > y->key;
	if (x->epoch != y->epoch)
		return x->epoch > y->epoch;
	if (x->group != y->group)
		return x->group;
	if (x->segment != y->segment)
		return x->segment > y->segment;
	return x->slot < y->slot;
}

static void swap_items(struct lc_backscan *b, u32 i, u32 k)
{
	struct lc_backscan_item item = b->items[i];

	b->items[i] = b->items[k];
	b->items[k] = item;
}

static void sift_up(struct lc_backscan *b, u32 i)
{
	for (; i && before(&b->items[i], &b->items[(i - 1) / 2]); i = (i - 1) / 2)
		swap_items(b, i, (i - 1) / 2);
}

static void sift_down(struct lc_backscan *b, u32 i)
{
	for (;;) {
		u32 first = i, k;

		for (k = 2 * i + 1; k <= 2 * i + 2 && k < b->nr; k++) {
			if (before(&b->items[k], &b->items[first]))
				first = k;
		}
		if (first == i)
			return;
		swap_items(b, i, first);
		i = first;
	}
}

static void drop_top(struct lc_backscan *b)
{
	b->items[0] = b->items[--b->nr];
	sift_down(b, 0);
}

/* R7: what lies above a segment of a later life does not exist. */
static void drop_earlier(struct lc_backscan *b, u64 epoch)
{
	u32 nr = b->nr, i;

	b->nr = 0;
	b->lowest = ~0ULL;
	for (i = 0; i < nr; i++) {
		if (b->items[i].epoch < epoch)
			continue;
		if (b->items[i].epoch < b->lowest)
			b->lowest = b->items[i].epoch;
		b->items[b->nr] = b->items[i];
		sift_up(b, b->nr++);
	}
}

bool lc_backscan_add(struct lc_backscan *b, const struct lc_record_info *info, bool group)
{
	if (group && !info->number)
		return true;
	/*
	 * Above what was taken already, in the order of lives; or one that lc-check has put in the
	 * place of a record that is gone (R4).
	 */
	if (info->epoch > b->epoch || (!group && !info->wall_clock))
		b->ended = true;
	if (b->nr && info->epoch > b->lowest)
		drop_earlier(b, info->epoch);
	if (b->ended || b->nr == LC_BACKSCAN_MOST) {
		b->ended = true;
		return false;
	}
	if (info->epoch < b->lowest || !b->nr)
		b->lowest = info->epoch;
	b->items[b->nr] = (struct lc_backscan_item){
		.key = info->seq, .epoch = info->epoch, .first_seq = info->epoch_first_seq,
		.segment = info->segment, .slot = info->first_slot, .group = group,
		.start = group ? info->number : info->boundary ? info->boundary : info->segment,
	};
	sift_up(b, b->nr++);
	return true;
}

/* The first one of the heap is not to be taken, ever: drop it, or give a group its place. */
static bool passed_over(struct lc_backscan *b)
{
	struct lc_backscan_item *top = b->items;

	/* BS2: of a group it only tells how many seqs were given. */
	if (top->epoch < b->epoch && top->key >= b->first_seq) {
		if (top->group) {
			top->key = b->first_seq - 1;
			sift_down(b, 0);
		} else {
			drop_top(b);
		}
		return true;
	}
	if ((top->epoch <= b->epoch && top->segment >= b->ceiling) ||
	    (!top->group && top->key > b->need)) {
		drop_top(b);
		return true;
	}
	return false;
}

bool lc_backscan_next(struct lc_backscan *b, struct lc_backscan_item *item)
{
	while (b->nr && !b->ended && passed_over(b))
		;
	if (!b->nr || b->ended || b->items[0].key < b->need)
		return false;
	*item = b->items[0];
	if (item->epoch != b->epoch) {
		/* All of the epoch was taken.  One between may be in a lower segment. */
		if (item->epoch + 1 != b->epoch)
			return false;
		b->epoch = item->epoch;
		b->first_seq = item->first_seq;
		b->number = 0;
	} else if (item->first_seq != b->first_seq) {
		b->ended = true;
		return false;
	}
	drop_top(b);
	if (item->group)
		return true;
	b->need--;
	if (item->key == b->first_seq && item->start < b->ceiling)
		b->ceiling = item->start;
	return true;
}

u64 lc_backscan_held(const struct lc_backscan *b)
{
	u64 highest = 0;
	u32 i;

	for (i = 0; i < b->nr; i++) {
		if (b->items[i].segment > highest)
			highest = b->items[i].segment;
	}
	return highest;
}

bool lc_backscan_whole(struct lc_backscan *b, const struct lc_backscan_item *group)
{
	bool whole = group->start < b->number;

	if (group->start > b->number)
		b->number = group->start;
	return whole;
}
