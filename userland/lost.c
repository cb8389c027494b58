// SPDX-License-Identifier: GPL-2.0-only
/* A set of sector ranges: a sorted array, for there are few of them. */
#include <stdlib.h>
#include <string.h>

#include "lc_format.h"
#include "lost.h"
#include "memory.h"

/* First span that ends at or behind @sector. */
static size_t find(const struct lost_set *set, u64 sector)
{
	size_t low = 0, high = set->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (set->span[mid].end < sector)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Replace spans [at, at + n) by @nr_new ones. */
static void replace(struct lost_set *set, size_t at, size_t n, const struct lost_span *new,
		    size_t nr_new)
{
	if (nr_new > n)
		set->span = xrealloc(set->span, set->nr + nr_new, sizeof(*set->span));
	if (set->nr > at + n)
		memmove(set->span + at + nr_new, set->span + at + n,
			(set->nr - at - n) * sizeof(*set->span));
	if (nr_new)
		memcpy(set->span + at, new, nr_new * sizeof(*new));
	set->nr = set->nr - n + nr_new;
}

void lost_add(struct lost_set *set, u64 sector, u64 nr_sectors)
{
	struct lost_span new = { sector, sector + nr_sectors };
	size_t at = find(set, sector), n = 0;

	while (at + n < set->nr && set->span[at + n].sector <= new.end) {
		if (set->span[at + n].sector < new.sector)
			new.sector = set->span[at + n].sector;
		if (set->span[at + n].end > new.end)
			new.end = set->span[at + n].end;
		n++;
	}
	replace(set, at, n, &new, 1);
}

void lost_remove(struct lost_set *set, u64 sector, u64 nr_sectors)
{
	u64 end = sector + nr_sectors;
	size_t at = find(set, sector + 1), n = 0, nr_left = 0;
	struct lost_span left[2];

	for (; at + n < set->nr && set->span[at + n].sector < end; n++) {
		struct lost_span *s = &set->span[at + n];

		if (s->sector < sector)
			left[nr_left++] = (struct lost_span){ s->sector, sector };
		if (s->end > end)
			left[nr_left++] = (struct lost_span){ end, s->end };
	}
	if (n)
		replace(set, at, n, left, nr_left);
}

void lost_add_mask(struct lost_set *set, u64 block, u8 mask)
{
	unsigned int i;

	for (i = 0; i < LC_BLOCK_SECTORS; i++) {
		if (mask >> i & 1)
			lost_add(set, block * LC_BLOCK_SECTORS + i, 1);
	}
}

u64 lost_sectors(const struct lost_set *set)
{
	u64 n = 0;
	size_t i;

	for (i = 0; i < set->nr; i++)
		n += set->span[i].end - set->span[i].sector;
	return n;
}

void lost_free(struct lost_set *set)
{
	free(set->span);
	memset(set, 0, sizeof(*set));
}
