// SPDX-License-Identifier: GPL-2.0-only
/* A set of blocks.  See ranges.h. */
#include <linux/minmax.h>
#include <linux/string.h>

#include "store/ranges.h"

/* Return: the number of ranges that end below @block. */
static u32 ranges_below(const struct lc_ranges *set, u64 block)
{
	u32 low = 0, high = set->nr;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (set->ranges[middle].last < block)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool lc_ranges_add(struct lc_ranges *set, u64 first, u64 last)
{
	/* Those from here on touch it, or are above it. */
	u32 from = ranges_below(set, first ? first - 1 : 0), to = from;
	struct lc_range *at = set->ranges + from;

	while (to < set->nr && set->ranges[to].first <= last + 1)
		to++;
	if (from == to) {
		if (set->nr == set->most)
			return false;
		memmove(at + 1, at, (set->nr - from) * sizeof(*at));
		*at = (struct lc_range){ first, last };
		set->nr++;
		return true;
	}
	at->first = min(at->first, first);
	at->last = max(set->ranges[to - 1].last, last);
	memmove(at + 1, set->ranges + to, (set->nr - to) * sizeof(*at));
	set->nr -= to - from - 1;
	return true;
}

bool lc_ranges_have(const struct lc_ranges *set, u64 block)
{
	u32 i = ranges_below(set, block);

	return i < set->nr && set->ranges[i].first <= block;
}
