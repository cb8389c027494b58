/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a read can be remapped to the SSD with the memory it has.
 *
 * The volume's logical block is the HDD's, and its readers know nothing of the SSD.  The block
 * layer splits a bio for the SSD's queue where pieces of memory meet, at whole logical blocks of
 * the SSD only, and ends in a BUG() if there is no such place.
 *
 * Invariant
 *  FT1 A bio is remapped to the SSD only if each piece of its memory is whole logical blocks of
 *      the SSD, and is aligned as the SSD's DMA requires (C11).  So a split between any two
 *      pieces is legal: a virtual boundary or the largest number of segments never forces one
 *      inside a block.  If the SSD's blocks are larger than the volume's, memory is aligned to
 *      them, too, so that no block lies across two pages.  Drivers of such devices may not
 *      handle that (null_blk reads and writes past the end of its page then).
 *
 * A bio for the HDD needs no check.  The volume's logical block is that of the HDD, and the other
 * limits of the volume are at least as strict as the HDD's: device mapper stacks the alignment of
 * DMA as the larger one, and numbers and lengths of segments as the smaller ones.  The module
 * splits a bio at whole sectors, and at whole blocks where those are larger: sectors of such a
 * volume are written, lost and read by the block.
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

/**
 * lc_fit_decide() - compare the limits of the two devices
 * @fit: of a volume that has no reads in flight
 * @ssd: the cache device
 * @hdd: the backing device
 *
 * Before each resume: the devices below may have changed since the last one.  Does not sleep.
 */
void lc_fit_decide(struct lc_fit *fit, struct block_device *ssd, struct block_device *hdd);

/**
 * lc_fit_pieces() - is each piece of memory whole blocks, at an address that suits?
 * @bio: with data
 * @blocks: bytes of a block, a power of two
 * @memory: mask of the bits that must be 0 in each address and length
 *
 * Any context.  Takes time for each piece; neighbouring pages are one piece.
 */
bool lc_fit_pieces(struct bio *bio, u32 blocks, u32 memory);

/**
 * lc_fits_ssd() - can the SSD take this bio as it is?
 * @fit: of the volume
 * @bio: a read, whole logical blocks of the SSD in all
 *
 * Any context.  Reads need not be looked at if the SSD asks for no more than the HDD.
 */
static inline bool lc_fits_ssd(const struct lc_fit *fit, struct bio *bio)
{
	u32 blocks = READ_ONCE(fit->blocks);

	return !blocks || lc_fit_pieces(bio, blocks, READ_ONCE(fit->memory));
}

#endif /* LC_FIT_H */
