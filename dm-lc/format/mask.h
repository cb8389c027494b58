/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sectors of a block: a mask with a bit for each, the lowest for the first one.
 *
 * A run is a number of neighbours that are all in a mask, or all not.
 */
#ifndef LC_MASK_H
#define LC_MASK_H

#include <linux/bitops.h>
#include <linux/types.h>

#include "lc_format.h"

/* The @nr sectors from @first on; at most a block's. */
static inline u8 lc_mask_of(u32 first, u32 nr)
{
	return ((1u << nr) - 1) << first;
}

static inline bool lc_mask_has(u8 mask, u32 sector)
{
	return mask & 1u << sector;
}

/* Return: how long the run from @first on is, at least 1; @first is in the block. */
static inline u32 lc_mask_run(u8 mask, u32 first)
{
	/* The others; the highest bit is one after the block. */
	u32 others = lc_mask_has(mask, first) ? ~(u32)mask : mask | 1u << LC_BLOCK_SECTORS;

	return __ffs(others >> first);
}

/*
 * The next run of sectors that are in @mask, from sector *@first on.  Return: whether there is
 * one; it is the *@nr sectors from *@first on.
 *
 *	for (first = 0; lc_mask_next(mask, &first, &nr); first += nr)
 */
static inline bool lc_mask_next(u8 mask, u32 *first, u32 *nr)
{
	u32 left = *first < LC_BLOCK_SECTORS ? mask >> *first : 0;

	if (!left)
		return false;
	*first += __ffs(left);
	*nr = lc_mask_run(mask, *first);
	return true;
}

#endif /* LC_MASK_H */
