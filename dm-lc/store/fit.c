// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the SSD's queue asks of the memory of a bio beyond what the HDD's does.  See fit.h.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>

#include "store/fit.h"

/* Is there a limit that the SSD may split or refuse a bio by, and the HDD would not? */
static bool ssd_is_stricter(struct block_device *ssd, struct block_device *hdd)
{
	struct request_queue *s = bdev_get_queue(ssd), *h = bdev_get_queue(hdd);

	if (bdev_logical_block_size(ssd) > bdev_logical_block_size(hdd) ||
	    bdev_dma_alignment(ssd) & ~bdev_dma_alignment(hdd))
		return true;
	/* A boundary of the SSD that is none of the HDD's. */
	if (queue_virt_boundary(s) & ~queue_virt_boundary(h))
		return true;
	return queue_max_segments(s) < queue_max_segments(h) ||
	       queue_max_segment_size(s) < queue_max_segment_size(h) ||
	       queue_segment_boundary(s) < queue_segment_boundary(h);
}

void lc_fit_decide(struct lc_fit *fit, struct block_device *ssd, struct block_device *hdd)
{
	u32 lbs = bdev_logical_block_size(ssd);
	u32 memory = bdev_dma_alignment(ssd);
	bool stricter = ssd_is_stricter(ssd, hdd);

	/* Pages are what drivers see: a block is in one page, as those of the page cache are. */
	if (lbs > bdev_logical_block_size(hdd))
		memory |= lbs - 1;
	WRITE_ONCE(fit->memory, memory);
	WRITE_ONCE(fit->blocks, stricter ? lbs : 0);
}

bool lc_fit_pieces(struct bio *bio, u32 blocks, u32 memory)
{
	struct bvec_iter iter;
	struct bio_vec bv;

	bio_for_each_bvec(bv, bio, iter) {
		if (bv.bv_len & (blocks - 1) || (bv.bv_offset | bv.bv_len) & memory)
			return false;
	}
	return true;
}
