// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copying sorted slots from the SSD to the HDD.
 *
 * The items are cut into runs of neighbouring blocks.  A run has RAM of its own
 * and a worker of its own that goes through it in order: read the slots (those
 * next to each other in one go), verify every checksum, write the valid sectors
 * (those next to each other in one go).  At most `depth` runs are in flight, all
 * preallocated, started in the order of the HDD.
 *
 * A run only records its error; lc_wbcopy_run() returns the first one after all
 * runs have ended.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "lc.h"
#include "wbcopy.h"

#define RUN_ORDER	4
#define RUN_CHUNKS	4
#define RUN_BLOCKS	(RUN_CHUNKS << RUN_ORDER)	/* 256 KiB */

struct run {
	struct lc_wbcopy *copy;
	struct list_head list;		/* copy->idle */
	const struct lc_wb_item *items;
	u32 nr;
	atomic_t pending;		/* bios of the phase, and its starter */
	blk_status_t status;		/* any of them failed */
	struct work_struct verify_work;
	struct page *pages[RUN_BLOCKS];
};

struct lc_wbcopy {
	struct lc_core *core;
	struct workqueue_struct *wq;	/* verifies; the owner's */
	struct bio_set bios;
	spinlock_t lock;		/* in completion context too */
	struct list_head idle;		/* runs; lock */
	u32 nr_idle;			/* lock */
	int error;			/* the first; lock */
	wait_queue_head_t wait;
	u32 depth;
	struct run *runs;
};

static void run_end(struct run *run, int error)
{
	struct lc_wbcopy *copy = run->copy;
	unsigned long flags;

	spin_lock_irqsave(&copy->lock, flags);
	if (error && !copy->error)
		copy->error = error;
	list_add(&run->list, &copy->idle);
	copy->nr_idle++;
	/* Inside the lock: lc_wbcopy_run() may return as soon as it is released. */
	wake_up_all(&copy->wait);
	spin_unlock_irqrestore(&copy->lock, flags);
}

static void write_done(struct run *run)
{
	if (atomic_dec_and_test(&run->pending))
		run_end(run, blk_status_to_errno(run->status));
}

static void write_bio_end(struct bio *bio)
{
	struct run *run = bio->bi_private;

	if (bio->bi_status)
		run->status = bio->bi_status;
	bio_put(bio);
	write_done(run);
}

static struct bio *run_bio(struct run *run, struct block_device *bdev, blk_opf_t opf,
			   sector_t sector, bio_end_io_t *end_io)
{
	struct bio *bio = bio_alloc_bioset(bdev, RUN_BLOCKS, opf, GFP_NOIO, &run->copy->bios);

	bio->bi_iter.bi_sector = sector;
	bio->bi_private = run;
	bio->bi_end_io = end_io;
	atomic_inc(&run->pending);
	return bio;
}

/* Write the valid sectors, each stretch of neighbours as one bio. */
static void run_write(struct run *run)
{
	struct lc_core *core = run->copy->core;
	struct bio *bio = NULL;
	u32 i, j, n;

	atomic_set(&run->pending, 1);
	for (i = 0; i < run->nr; i++) {
		const struct lc_wb_item *item = &run->items[i];

		for (j = 0; j < LC_BLOCK_SECTORS; j += n) {
			bool valid = item->mask & 1u << j;
			sector_t at = core->data_sector + (item->block << LC_BLOCK_SHIFT) + j;

			for (n = 1; j + n < LC_BLOCK_SECTORS; n++) {
				if (!!(item->mask & 1u << (j + n)) != valid)
					break;
			}
			if (!valid)
				continue;
			if (bio && bio_end_sector(bio) != at) {
				submit_bio(bio);
				bio = NULL;
			}
			if (!bio)
				bio = run_bio(run, core->backing, REQ_OP_WRITE, at,
					      write_bio_end);
			__bio_add_page(bio, run->pages[i], n << 9, j << 9);
		}
	}
	if (bio)
		submit_bio(bio);
	write_done(run);
}

static void run_verify_work(struct work_struct *work)
{
	struct run *run = container_of(work, struct run, verify_work);
	struct lc_core *core = run->copy->core;
	u32 i;

	if (run->status) {
		run_end(run, blk_status_to_errno(run->status));
		return;
	}
	for (i = 0; i < run->nr; i++) {
		const struct lc_wb_item *item = &run->items[i];

		if (item->mask && item->csum !=
		    lc_format_slot_csum(&core->sb, item->block, page_address(run->pages[i]))) {
			lc_err_limit(core, "block %llu is damaged on the cache device",
				     item->block);
			run_end(run, -EBADMSG);
			return;
		}
	}
	run_write(run);
}

static void read_done(struct run *run)
{
	if (atomic_dec_and_test(&run->pending))
		queue_work(run->copy->wq, &run->verify_work);
}

static void read_bio_end(struct bio *bio)
{
	struct run *run = bio->bi_private;

	if (bio->bi_status)
		run->status = bio->bi_status;
	bio_put(bio);
	read_done(run);
}

/* Read the slots, each stretch of neighbours as one bio. */
static void run_start(struct run *run)
{
	struct lc_core *core = run->copy->core;
	struct bio *bio = NULL;
	u32 i;

	run->status = BLK_STS_OK;
	atomic_set(&run->pending, 1);
	for (i = 0; i < run->nr; i++) {
		sector_t at = (core->sb.geo.segments_offset >> 9) +
			      ((sector_t)run->items[i].slot << LC_BLOCK_SHIFT);

		if (bio && bio_end_sector(bio) != at) {
			submit_bio(bio);
			bio = NULL;
		}
		if (!bio)
			bio = run_bio(run, core->cache, REQ_OP_READ, at, read_bio_end);
		__bio_add_page(bio, run->pages[i], LC_SLOT_BYTES, 0);
	}
	if (bio)
		submit_bio(bio);
	read_done(run);
}

static struct run *idle_run(struct lc_wbcopy *copy)
{
	struct run *run;

	spin_lock_irq(&copy->lock);
	run = list_first_entry_or_null(&copy->idle, struct run, list);
	if (run) {
		list_del(&run->list);
		copy->nr_idle--;
	}
	spin_unlock_irq(&copy->lock);
	return run;
}

static bool all_idle(struct lc_wbcopy *copy)
{
	bool idle;

	spin_lock_irq(&copy->lock);
	idle = copy->nr_idle == copy->depth;
	spin_unlock_irq(&copy->lock);
	return idle;
}

static u32 run_length(const struct lc_wb_item *items, u32 nr)
{
	u32 n = 1;

	while (n < nr && n < RUN_BLOCKS && items[n].block == items[n - 1].block + 1)
		n++;
	return n;
}

/**
 * lc_wbcopy_run() - copy a sorted batch
 * @copy: the room
 * @items: sorted by block, each block once
 * @nr: how many
 * @stop: give up early when this becomes true
 *
 * May sleep.  On return nothing is in flight.  Return: 0, -EINTR, -EBADMSG if a
 * slot is damaged, or an I/O error.  The HDD is not flushed.
 */
int lc_wbcopy_run(struct lc_wbcopy *copy, const struct lc_wb_item *items, u32 nr,
		  const bool *stop)
{
	struct run *run = NULL;
	u32 i = 0, n;
	int ret = 0;

	copy->error = 0;
	while (i < nr && !READ_ONCE(copy->error)) {
		if (READ_ONCE(*stop)) {
			ret = -EINTR;
			break;
		}
		n = run_length(items + i, nr - i);
		wait_event(copy->wait, (run = idle_run(copy)));
		run->items = items + i;
		run->nr = n;
		run_start(run);
		i += n;
	}
	wait_event(copy->wait, all_idle(copy));
	return copy->error ? copy->error : ret;
}

static void free_runs(struct lc_wbcopy *copy)
{
	u32 i, c;

	for (i = 0; i < copy->depth; i++) {
		for (c = 0; c < RUN_BLOCKS; c++) {
			if (copy->runs[i].pages[c])
				__free_page(copy->runs[i].pages[c]);
		}
	}
	kvfree(copy->runs);
}

static int alloc_runs(struct lc_wbcopy *copy)
{
	u32 i, c;

	for (i = 0; i < copy->depth; i++) {
		struct run *run = &copy->runs[i];

		run->copy = copy;
		INIT_WORK(&run->verify_work, run_verify_work);
		for (c = 0; c < RUN_BLOCKS; c++) {
			run->pages[c] = alloc_page(GFP_KERNEL);
			if (!run->pages[c])
				return -ENOMEM;
		}
		list_add(&run->list, &copy->idle);
		copy->nr_idle++;
	}
	return 0;
}

/**
 * lc_wbcopy_create() - preallocate everything for @depth runs in flight
 * @core: the volume
 * @wq: for verifying, WQ_MEM_RECLAIM, outlives the room
 * @depth: runs in flight
 *
 * May sleep.  Return: the room or NULL.
 */
struct lc_wbcopy *lc_wbcopy_create(struct lc_core *core, struct workqueue_struct *wq, u32 depth)
{
	struct lc_wbcopy *copy = kzalloc(sizeof(*copy), GFP_KERNEL);

	if (!copy)
		return NULL;
	copy->core = core;
	copy->wq = wq;
	copy->depth = depth;
	spin_lock_init(&copy->lock);
	INIT_LIST_HEAD(&copy->idle);
	init_waitqueue_head(&copy->wait);
	copy->runs = kvcalloc(depth, sizeof(*copy->runs), GFP_KERNEL);
	if (!copy->runs)
		goto free_copy;
	if (alloc_runs(copy))
		goto free_runs;
	if (bioset_init(&copy->bios, 2 * depth, 0, BIOSET_NEED_BVECS))
		goto free_runs;
	return copy;

free_runs:
	free_runs(copy);
free_copy:
	kfree(copy);
	return NULL;
}

void lc_wbcopy_destroy(struct lc_wbcopy *copy)
{
	if (!copy)
		return;
	bioset_exit(&copy->bios);
	free_runs(copy);
	kfree(copy);
}
