/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a sorted batch of writeback is cut into runs.
 *
 * RAID 5 and 6 have to read from their disks to write a part of a stripe, for the sake of its
 * parity.  Nothing is read for a stripe that comes as a whole, or in pieces that come in one go.
 * The length of a stripe is the backing device's io_opt, and stripes are counted from the start
 * of the disk that a partition is on.
 *
 * Invariant
 *  RS1 Blocks of one stripe are in one run, neighbours or not, and runs of one batch never share
 *      a stripe.  A run is more than one stripe only as far as its blocks are neighbours on the
 *      backing device; so without stripes it is neighbours, and never crosses the seam (A2).
 *
 * Pure; any context.
 */
#ifndef LC_STRIPE_H
#define LC_STRIPE_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "format/format.h"
#include "format/place.h"
#include "writeback/item.h"

#define LC_RUN_BLOCKS		64u	/* of a run, if a stripe is no longer; of a bio */
#define LC_STRIPE_MOST		1024u	/* blocks; a longer io_opt is no stripe */

struct lc_stripe {
	u64 start;	/* sectors of the disk before the backing device */
	u32 blocks;	/* of a stripe; 0: there are none */
};

/* Blocks of a stripe, from io_opt in bytes.  0 for the odd values that some disks report. */
static inline u32 lc_stripe_blocks(u32 io_opt)
{
	if (io_opt % LC_SLOT_BYTES || io_opt / LC_SLOT_BYTES > LC_STRIPE_MOST)
		return 0;
	return io_opt / LC_SLOT_BYTES;
}

/* Of a block: its first sector on the disk. */
static inline u64 lc_stripe_sector(const struct lc_stripe *stripe, const struct lc_place *place,
				   u64 block)
{
	return stripe->start + lc_place_sector(place, block * LC_BLOCK_SECTORS);
}

/**
 * lc_stripe_run() - how many blocks make the next run?
 * @stripe: the stripes of the backing device
 * @place: of the volume on it
 * @items: sorted by block, each block once; not empty
 * @nr: how many
 * @most: of a run; at least a stripe
 *
 * Return: at least 1, at most @most.
 */
static inline u32 lc_stripe_run(const struct lc_stripe *stripe, const struct lc_place *place,
				const struct lc_wb_item *items, u32 nr, u32 most)
{
	u32 sectors = stripe->blocks * LC_BLOCK_SECTORS, cut = 0, n;
	u64 last = lc_stripe_sector(stripe, place, items[0].block), number = 0;

	if (sectors)
		number = div_u64(last, sectors);
	for (n = 1; n < nr; n++) {
		u64 here = lc_stripe_sector(stripe, place, items[n].block);
		u64 next = sectors ? div_u64(here, sectors) : 0;
		bool same = sectors && next == number;

		if (!same && here != last + LC_BLOCK_SECTORS)
			return n;
		if (sectors && !same)
			cut = n;
		if (n == most)
			return cut ?: n;
		last = here;
		number = next;
	}
	return n;
}

#endif /* LC_STRIPE_H */
