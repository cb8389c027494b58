/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Small helpers around bios.  Addresses and lengths in bytes.
 *
 * Invariant
 *  IO1 The memory of a bio is in pieces of any length, which need not be whole sectors.
 *      bi_sector of an iterator is valid before and after lc_io_copy_from_bio() and
 *      lc_io_copy_to_bio(), which set it from the number of bytes copied, and never in
 *      between.  Nothing else moves an iterator over a part of a bio (C10).
 */
#ifndef LC_IO_H
#define LC_IO_H

#include <linux/blk_types.h>
#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/types.h>

/*
 * Of log, superblock and FLUSH: somebody waits for it.  Throttling of writeback (blk-wbt) lets
 * a write pass that has both flags, and only then.
 */
#define LC_IO_COMMIT	(REQ_SYNC | REQ_IDLE)

/* Several reads in flight, waited for together. */
struct lc_io_batch {
	atomic_t pending;
	struct completion done;
};

/* One of them; reusable after the wait. */
struct lc_io_read {
	struct bio bio;
	struct bio_vec bvec;
	struct lc_io_batch *batch;
	void *data;		/* physically contiguous, set by the owner */
	int status;		/* 0 or a negative errno, after the wait */
};

int lc_io_sync(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len);
int lc_io_sync_told(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len,
		    void (*failed)(void *arg), void *arg);
int lc_io_flush(struct block_device *bdev);

void lc_io_batch_init(struct lc_io_batch *batch);
void lc_io_batch_read(struct lc_io_batch *batch, struct lc_io_read *read,
		      struct block_device *bdev, u64 address, u32 len);
void lc_io_batch_wait(struct lc_io_batch *batch);

void lc_io_end_again(struct bio *bio);

void lc_io_disown(struct bio *bio);
bool lc_io_may_send(const struct bio *bio);
void lc_io_leave_plug(void);

void lc_io_copy_from_bio(struct bio *bio, struct bvec_iter *iter, void *to, u32 len);
void lc_io_copy_to_bio(struct bio *bio, struct bvec_iter *iter, const void *from, u32 len);

#endif /* LC_IO_H */
