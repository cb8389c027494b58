// SPDX-License-Identifier: GPL-2.0-only
/*
 * Small helpers around bios.  Buffers are page-aligned, from kmalloc() or
 * alloc_pages(), a multiple of 512 bytes and physically contiguous.
 */
#include <linux/bio.h>
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/highmem.h>
#include <linux/ioprio.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "store/env.h"
#include "store/io.h"

int lc_io_sync(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len)
{
	struct bio_vec bvec;
	struct bio bio;
	int ret;

	bio_init(&bio, bdev, &bvec, 1, opf);
	bio.bi_iter.bi_sector = address >> 9;
	__bio_add_page(&bio, virt_to_page(data), len, offset_in_page(data));
	ret = submit_bio_wait(&bio);
	bio_uninit(&bio);
	return ret;
}

struct told {
	struct completion done;
	void (*failed)(void *arg);
	void *arg;
};

static void told_end(struct bio *bio)
{
	struct told *told = bio->bi_private;

	if (bio->bi_status)
		told->failed(told->arg);
	complete(&told->done);
}

/* Submit a bio on the stack and wait for it; @failed as for lc_io_sync_told(). */
static int submit_told(struct bio *bio, void (*failed)(void *arg), void *arg)
{
	struct told told = { .failed = failed, .arg = arg };
	int ret;

	init_completion(&told.done);
	bio->bi_private = &told;
	bio->bi_end_io = told_end;
	submit_bio(bio);
	wait_for_completion_io(&told.done);
	ret = blk_status_to_errno(bio->bi_status);
	bio_uninit(bio);
	return ret;
}

int lc_io_sync_told(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len,
		    void (*failed)(void *arg), void *arg)
{
	struct bio_vec bvec;
	struct bio bio;

	bio_init(&bio, bdev, &bvec, 1, opf);
	bio.bi_iter.bi_sector = address >> 9;
	__bio_add_page(&bio, virt_to_page(data), len, offset_in_page(data));
	return submit_told(&bio, failed, arg);
}

int lc_io_flush(const struct lc_env *env, struct block_device *bdev)
{
	struct bio bio;
	int ret;

	lc_env_sent(env, bdev, REQ_PREFLUSH, 0);
	bio_init(&bio, bdev, NULL, 0, REQ_OP_WRITE | REQ_PREFLUSH | LC_IO_COMMIT);
	ret = submit_bio_wait(&bio);
	bio_uninit(&bio);
	return ret;
}

int lc_io_flush_told(const struct lc_env *env, struct block_device *bdev,
		     void (*failed)(void *arg), void *arg)
{
	struct bio bio;

	lc_env_sent(env, bdev, REQ_PREFLUSH, 0);
	bio_init(&bio, bdev, NULL, 0, REQ_OP_WRITE | REQ_PREFLUSH | LC_IO_COMMIT);
	return submit_told(&bio, failed, arg);
}

void lc_io_batch_init(struct lc_io_batch *batch)
{
	/* One for the owner, so that it cannot complete before the wait. */
	atomic_set(&batch->pending, 1);
	init_completion(&batch->done);
}

static void batch_put(struct lc_io_batch *batch)
{
	if (atomic_dec_and_test(&batch->pending))
		complete(&batch->done);
}

static void batch_read_end(struct bio *bio)
{
	struct lc_io_read *read = container_of(bio, struct lc_io_read, bio);

	read->status = blk_status_to_errno(bio->bi_status);
	bio_uninit(bio);
	batch_put(read->batch);
}

void lc_io_batch_read(struct lc_io_batch *batch, struct lc_io_read *read,
		      struct block_device *bdev, u64 address, u32 len)
{
	bio_init(&read->bio, bdev, &read->bvec, 1, REQ_OP_READ);
	read->bio.bi_iter.bi_sector = address >> 9;
	read->bio.bi_end_io = batch_read_end;
	read->batch = batch;
	__bio_add_page(&read->bio, virt_to_page(read->data), len, offset_in_page(read->data));
	atomic_inc(&batch->pending);
	submit_bio(&read->bio);
}

void lc_io_batch_wait(struct lc_io_batch *batch)
{
	batch_put(batch);
	wait_for_completion_io(&batch->done);
}

void lc_io_renew(struct bio *bio)
{
	bio_clear_flag(bio, BIO_QOS_THROTTLED);
	bio_clear_flag(bio, BIO_QOS_MERGED);
	atomic_set(&bio->__bi_remaining, 1);
}

void lc_io_end_again(struct bio *bio)
{
	lc_io_renew(bio);
	bio_endio(bio);
}

void lc_io_disown(struct bio *bio)
{
	bio_associate_blkg_from_css(bio, blkcg_root_css);
	/* Class NONE would be replaced by the sender's. */
	bio->bi_ioprio = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 0);
}

bool lc_io_may_send(const struct bio *bio)
{
	return !(bio->bi_opf & REQ_NOWAIT) && current->policy != SCHED_IDLE &&
	       task_nice(current) <= 0 &&
	       IOPRIO_PRIO_CLASS(get_current_ioprio()) != IOPRIO_CLASS_IDLE;
}

void lc_io_leave_plug(void)
{
	if (current->plug)
		blk_finish_plug(current->plug);
}

/*
 * Pieces of a bio may end anywhere in a sector, and the block layer rounds each of them
 * down when it moves bi_sector on.  So the place comes from all that was copied (C10).
 */
static void copied(struct bvec_iter *iter, sector_t start, u32 len)
{
	iter->bi_sector = start + (len >> SECTOR_SHIFT);
}

void lc_io_copy_from_bio(struct bio *bio, struct bvec_iter *iter, void *to, u32 len)
{
	sector_t start = iter->bi_sector;
	u32 left = len;

	while (left) {
		struct bio_vec bv = bio_iter_iovec(bio, *iter);
		u32 n = min(left, bv.bv_len);

		bv.bv_len = n;
		memcpy_from_bvec(to, &bv);
		bio_advance_iter_single(bio, iter, n);
		to += n;
		left -= n;
	}
	copied(iter, start, len);
}

void lc_io_copy_to_bio(struct bio *bio, struct bvec_iter *iter, const void *from, u32 len)
{
	sector_t start = iter->bi_sector;
	u32 left = len;

	while (left) {
		struct bio_vec bv = bio_iter_iovec(bio, *iter);
		u32 n = min(left, bv.bv_len);

		bv.bv_len = n;
		memcpy_to_bvec(&bv, from);
		bio_advance_iter_single(bio, iter, n);
		from += n;
		left -= n;
	}
	copied(iter, start, len);
}
