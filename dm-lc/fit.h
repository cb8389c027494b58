/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * May a read of others be handed on to the SSD with the memory it has?
 *
 * The volume's logical block is the HDD's, and who reads the volume knows nothing of the SSD.
 * The block layer splits a bio for the SSD's queue where pieces of memory meet, at whole
 * logical blocks of the SSD only: it ends in a BUG() if there is none.
 *
 * Invariant
 *  FT1 A bio is remapped to the SSD only if each piece of its memory is whole logical blocks of
 *      the SSD, and is where the SSD's DMA wants it (C11).  So a split between any two pieces is
 *      a legal one: a virtual boundary or the largest number of segments never forces one
 *      inside a block.  If the SSD's blocks are larger than the volume's, memory is aligned to
 *      them, too: no block lies across two pages.  Drivers of such devices have not met that
 *      (null_blk reads and writes behind its own page then).
 *
 * Towards the HDD there is nothing to check.  The volume's logical block is its own, and the
 * other limits that are told above are at least as strict as its own: device mapper stacks the
 * alignment of DMA as the larger one, and numbers and lengths of segments as the smaller ones.
 * What is cut off a bio on the way is whole sectors, and whole blocks where those are larger:
 * sectors of such a volume are written, lost and read by the block.
 */
#ifndef LC_FIT_H
#define LC_FIT_H

#include <linux/compiler.h>
#include <linux/types.h>

struct bio;
struct block_device;

/* What the SSD asks of a read.  fit.c writes it; READ_ONCE(). */
struct lc_fit {
	u32 blocks;	/* bytes of its logical block; 0: no more than the HDD asks */
	u32 memory;	/* mask of the bits that must be 0 in addresses and lengths */
};

void lc_fit_decide(struct lc_fit *fit, struct block_device *ssd, struct block_device *hdd);
bool lc_fit_pieces(struct bio *bio, u32 blocks, u32 memory);

/**
 * lc_fits_ssd() - can the SSD take this bio as it is?
 * @fit: of the volume
 * @bio: a read, whole logical blocks of the SSD in all
 *
 * Any context.
 */
static inline bool lc_fits_ssd(const struct lc_fit *fit, struct bio *bio)
{
	u32 blocks = READ_ONCE(fit->blocks);

	/* 0: nothing that fits the HDD does not. */
	return !blocks || lc_fit_pieces(bio, blocks, READ_ONCE(fit->memory));
}

#endif /* LC_FIT_H */
