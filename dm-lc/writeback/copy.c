// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copying sorted slots from the SSD to the HDD.
 *
 * The items are cut into runs of neighbouring blocks, or of what lies in one stripe of a RAID
 * (stripe.h).  A run has a worker of its own that goes through it in order: read the slots
 * (those next to each other in one go), verify every checksum, write the valid sectors (those
 * next to each other in one go).  At most `depth` runs are in flight, started in the order of
 * the HDD.  Runs and the pages of all of them are preallocated.
 *
 * Reads of others go first.  Fewer runs in flight would not achieve that: a drive takes writes into
 * its cache at once, and its head is busy with them when a read comes.  So writeback pauses (Y).
 *
 * A run only records its error.  lc_wbcopy_run() returns one error when all runs have ended:
 * one of the HDD if there is any, else the first one.  A slot that does not verify is read once
 * more; it is never written to the HDD.  Such a slot, or an error, ends the batch; or, if
 * how.on_error says so, the worker of the run tries its blocks one by one to find those that fail.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "format/mask.h"
#include "log/cache.h"
#include "store/claims.h"
#include "store/doubt.h"
#include "store/index.h"
#include "store/io.h"
#include "store/trace.h"
#include "writeback/copy.h"
#include "writeback/stripe.h"

#define YIELD_CALM	(HZ / 4 ?: 1)
#define YIELD_STEP	(HZ / 100 ?: 1)	/* how often a backoff checks its reasons */

struct run {
	struct lc_wbcopy *copy;
	struct list_head list;		/* copy->idle */
	struct lc_claim claim;		/* of its blocks, while it is under way (C5) */
	struct lc_wb_item *items;
	u32 nr;
	atomic_t pending;		/* bios of the phase, and its starter */
	blk_status_t status;		/* any of them failed */
	bool writing;			/* the phase */
	struct work_struct work;	/* when a phase has ended */
	struct page **pages;		/* of its blocks; copy->most pointers */
};

struct lc_wbcopy {
	struct lc_cache *c;
	struct workqueue_struct *wq;	/* verifies; the owner's */
	struct bio_set bios;
	spinlock_t lock;		/* in completion context too */
	struct list_head idle;		/* runs; lock */
	u32 nr_idle;			/* lock */
	/*
	 * Pages that no run holds; lock.  There are enough for a run of any length once no run
	 * is in flight, and a run that is in flight waits for no page: so each gets its own.
	 */
	struct page **spare;
	u32 nr_spare;			/* lock */
	int error;			/* the first, or the HDD's; lock; READ_ONCE() */
	struct lc_wb_how how;
	atomic_t row;			/* blocks the HDD refused since it took one */
	atomic_t nr_bad;		/* slots the SSD does not give back */
	wait_queue_head_t wait;
	u32 streak;			/* runs started since the last backoff; thread only */
	u32 streak_moves;		/* of them not adjacent to the one before; thread only */
	u32 streak_blocks;		/* thread only */
	unsigned long backed_off;	/* jiffies, in this batch; thread only */
	u32 depth;
	u32 most;			/* blocks of a run */
	struct lc_stripe stripe;	/* in this batch; thread only */
	struct run *runs;
	struct page **pages;		/* what runs and spare point into */
};

static void run_end(struct run *run, int error)
{
	struct lc_wbcopy *copy = run->copy;
	unsigned long flags;

	trace_lc_run_written(copy->c->env.dev, run->items[0].block, run->nr, error);
	spin_lock_irqsave(&copy->lock, flags);
	/* One of the HDD counts most: nothing of the batch is believed then (W3). */
	if (error && (!copy->error || error == -EIO))
		WRITE_ONCE(copy->error, error);
	/* After the error is set: a task that waits for a claim looks at that, too. */
	lc_claims_drop(copy->c->claims, &run->claim);
	memcpy(copy->spare + copy->nr_spare, run->pages, run->nr * sizeof(*run->pages));
	copy->nr_spare += run->nr;
	list_add(&run->list, &copy->idle);
	copy->nr_idle++;
	/* Inside the lock: lc_wbcopy_run() may return as soon as it is released. */
	wake_up_all(&copy->wait);
	spin_unlock_irqrestore(&copy->lock, flags);
}

/* All of its blocks have their result. */
static void run_done(struct run *run)
{
	u32 i;

	for (i = 0; i < run->nr; i++)
		run->items[i].done = true;
	run_end(run, 0);
}

static void write_done(struct run *run)
{
	if (!atomic_dec_and_test(&run->pending))
		return;
	if (!run->status) {
		atomic_set(&run->copy->row, 0);
		run_done(run);
	} else if (run->copy->how.on_error >= LC_WB_ISOLATE_HDD) {
		queue_work(run->copy->wq, &run->work);
	} else {
		/* All errors of the HDD are -EIO: others are the SSD's, and MEDIUM is -ENODATA. */
		run_end(run, -EIO);
	}
}

static void write_bio_end(struct bio *bio)
{
	struct run *run = bio->bi_private;

	/* Any of several at once will do. */
	if (bio->bi_status)
		WRITE_ONCE(run->status, bio->bi_status);
	bio_put(bio);
	write_done(run);
}

static struct bio *run_bio(struct run *run, struct block_device *bdev, blk_opf_t opf,
			   sector_t sector, bio_end_io_t *end_io)
{
	struct bio *bio = bio_alloc_bioset(bdev, LC_RUN_BLOCKS, opf, GFP_NOIO, &run->copy->bios);

	bio->bi_iter.bi_sector = sector;
	bio->bi_private = run;
	bio->bi_end_io = end_io;
	atomic_inc(&run->pending);
	return bio;
}

/* Does sector @at need another bio? */
static bool must_submit(const struct bio *bio, sector_t at)
{
	return bio && (bio_end_sector(bio) != at || bio->bi_vcnt == LC_RUN_BLOCKS);
}

static void send(struct lc_cache *c, struct bio *bio)
{
	lc_env_sent(&c->env, bio->bi_bdev, bio->bi_opf, bio->bi_iter.bi_size);
	submit_bio(bio);
}

/* Write the valid sectors, neighbours in the fewest bios (RS2). */
static void run_write(struct run *run)
{
	struct lc_cache *c = run->copy->c;
	struct bio *bio = NULL;
	struct blk_plug plug;
	u32 i, j, n;

	run->status = BLK_STS_OK;
	run->writing = true;
	atomic_set(&run->pending, 1);
	blk_start_plug(&plug);
	for (i = 0; i < run->nr; i++) {
		const struct lc_wb_item *item = &run->items[i];
		u8 mask = item->result == LC_WB_COPIED ? item->mask : 0;

		lc_doubt_sent(&c->doubt, item->block, mask);
		for (j = 0; lc_mask_next(mask, &j, &n); j += n) {
			sector_t at = lc_place_sector(&c->env.place,
						      (item->block << LC_BLOCK_SHIFT) + j);

			if (must_submit(bio, at)) {
				send(c, bio);
				bio = NULL;
			}
			if (!bio)
				bio = run_bio(run, c->env.backing, REQ_OP_WRITE, at,
					      write_bio_end);
			__bio_add_page(bio, run->pages[i], n << 9, j << 9);
		}
	}
	if (bio)
		send(c, bio);
	blk_finish_plug(&plug);
	write_done(run);
}

/* --- errors, in the worker of the run ------------------------------------ */

int lc_wbcopy_write_block(struct lc_cache *c, u64 block, u8 mask, void *data)
{
	u64 address = lc_place_sector(&c->env.place, block << LC_BLOCK_SHIFT) << 9;
	u32 i, n;
	int ret = 0;

	lc_doubt_sent(&c->doubt, block, mask);
	for (i = 0; !ret && lc_mask_next(mask, &i, &n); i += n) {
		lc_env_sent(&c->env, c->env.backing, REQ_OP_WRITE, n << 9);
		ret = lc_io_sync(c->env.backing, REQ_OP_WRITE, address + (i << 9),
				 data + (i << 9), n << 9);
	}
	return ret;
}

/* Some bio failed: write block by block.  Return: 0, -EINTR, -EIO if too many in a row fail. */
static int isolate_bad_writes(struct run *run)
{
	struct lc_wbcopy *copy = run->copy;
	u32 i;

	for (i = 0; i < run->nr; i++) {
		struct lc_wb_item *item = &run->items[i];

		if (READ_ONCE(*copy->how.stop))
			return -EINTR;
		if (item->result != LC_WB_COPIED || !item->mask)
			continue;
		if (!lc_wbcopy_write_block(copy->c, item->block, item->mask,
					   page_address(run->pages[i]))) {
			atomic_set(&copy->row, 0);
			continue;
		}
		if (copy->how.on_error < LC_WB_SKIP &&
		    atomic_inc_return(&copy->row) > copy->how.max_row)
			return -EIO;
		lc_err_limit(&copy->c->env, "%pg refuses block %llu, which stays in the cache",
			     copy->c->env.backing, item->block);
		item->result = LC_WB_REFUSED;
	}
	return 0;
}

static int read_slot(struct run *run, u32 i)
{
	struct lc_cache *c = run->copy->c;

	lc_env_sent(&c->env, c->env.cache, REQ_OP_READ, LC_SLOT_BYTES);
	return lc_io_sync(c->env.cache, REQ_OP_READ,
			  lc_slot_address(&c->sb.geo, run->items[i].slot),
			  page_address(run->pages[i]), LC_SLOT_BYTES);
}

/*
 * A slot does not come back as it was written.  That may pass, so it is not given up before
 * the SSD has had its time (L18), and many of them are no bad slots.  Return: 0 if the others
 * may go on, -EREMOTEIO: it is to be tried again later, -ENODATA: it is the SSD that fails.
 */
static int slot_failed(struct run *run, struct lc_wb_item *item, const char *how)
{
	struct lc_wbcopy *copy = run->copy;

	if (copy->how.on_error < LC_WB_ISOLATE_BOTH)
		return -EREMOTEIO;
	if (copy->how.on_error == LC_WB_SKIP) {
		item->result = LC_WB_UNREADABLE;
		return 0;
	}
	if (atomic_inc_return(&copy->nr_bad) > LC_WB_MAX_BAD)
		return -ENODATA;
	lc_err_limit(&copy->c->env, "block %llu %s the cache device: lost", item->block, how);
	item->result = LC_WB_DAMAGED;
	return 0;
}

/* Some bio failed: read slot by slot.  Return: as slot_failed(), or -EINTR. */
static int isolate_bad_reads(struct run *run)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < run->nr && !ret; i++) {
		struct lc_wb_item *item = &run->items[i];

		if (READ_ONCE(*run->copy->how.stop))
			return -EINTR;
		if (item->result == LC_WB_COPIED && item->mask && read_slot(run, i))
			ret = slot_failed(run, item, "cannot be read from");
	}
	return ret;
}

static bool slot_whole(struct run *run, u32 i)
{
	const struct lc_wb_item *item = &run->items[i];

	return item->csum == lc_format_slot_csum(&run->copy->c->sb, item->block,
						 page_address(run->pages[i]));
}

/* Return: as slot_failed(). */
static int verify_slots(struct run *run)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < run->nr && !ret; i++) {
		struct lc_wb_item *item = &run->items[i];

		if (item->result != LC_WB_COPIED || !item->mask || slot_whole(run, i))
			continue;
		if (!read_slot(run, i) && slot_whole(run, i))
			continue;
		ret = slot_failed(run, item, "is damaged on");
	}
	return ret;
}

static void run_work(struct work_struct *work)
{
	struct run *run = container_of(work, struct run, work);
	int ret = 0;

	if (run->writing) {
		ret = isolate_bad_writes(run);
		if (ret)
			run_end(run, ret);
		else
			run_done(run);
		return;
	}
	if (run->status)
		ret = run->copy->how.on_error < LC_WB_ISOLATE_BOTH ? -EREMOTEIO :
								     isolate_bad_reads(run);
	if (!ret)
		ret = verify_slots(run);
	if (ret)
		run_end(run, ret);
	else
		run_write(run);
}

static void read_done(struct run *run)
{
	if (!atomic_dec_and_test(&run->pending))
		return;
	if (trace_lc_run_read_enabled())
		trace_lc_run_read(run->copy->c->env.dev, run->items[0].block, run->nr,
				  blk_status_to_errno(run->status));
	queue_work(run->copy->wq, &run->work);
}

static void read_bio_end(struct bio *bio)
{
	struct run *run = bio->bi_private;

	if (bio->bi_status)
		WRITE_ONCE(run->status, bio->bi_status);
	bio_put(bio);
	read_done(run);
}

/* Read the slots, neighbours in the fewest bios. */
static void run_start(struct run *run)
{
	struct lc_cache *c = run->copy->c;
	struct bio *bio = NULL;
	u32 i;

	trace_lc_run_begin(c->env.dev, run->items[0].block, run->nr, 0);
	run->status = BLK_STS_OK;
	run->writing = false;
	atomic_set(&run->pending, 1);
	for (i = 0; i < run->nr; i++) {
		sector_t at = lc_slot_address(&c->sb.geo, run->items[i].slot) >> 9;

		if (must_submit(bio, at)) {
			send(c, bio);
			bio = NULL;
		}
		if (!bio)
			bio = run_bio(run, c->env.cache, REQ_OP_READ, at, read_bio_end);
		__bio_add_page(bio, run->pages[i], LC_SLOT_BYTES, 0);
	}
	if (bio)
		send(c, bio);
	read_done(run);
}

/* An idle run with @nr pages, or NULL. */
static struct run *take_run(struct lc_wbcopy *copy, u32 nr)
{
	struct run *run;

	spin_lock_irq(&copy->lock);
	run = list_first_entry_or_null(&copy->idle, struct run, list);
	if (run && copy->nr_spare < nr)
		run = NULL;
	if (run) {
		list_del(&run->list);
		copy->nr_idle--;
		copy->nr_spare -= nr;
		memcpy(run->pages, copy->spare + copy->nr_spare, nr * sizeof(*run->pages));
		run->nr = nr;
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

/* How many stretches of neighbours begin in a run after its first block? */
static u32 inner_moves(const struct lc_wb_item *items, u32 nr)
{
	u32 moves = 0, i;

	for (i = 1; i < nr; i++)
		moves += items[i].block != items[i - 1].block + 1;
	return moves;
}

static bool given_up(const struct lc_wbcopy *copy)
{
	return READ_ONCE(copy->error) || READ_ONCE(*copy->how.stop);
}

static bool run_given_up(const void *run)
{
	return given_up(((const struct run *)run)->copy);
}

/*
 * Wait for discards of its blocks, and keep out those that come later (C5).  Blocks of one
 * stripe may have others between them, which are claimed, too, for as long as the run takes.
 */
static void run_claim(struct run *run)
{
	struct lc_claims *claims = run->copy->c->claims;
	unsigned long begun = jiffies;

	lc_claim_init(&run->claim, LC_CLAIM_COPY, run->items[0].block,
		      run->items[run->nr - 1].block - run->items[0].block + 1);
	lc_claims_add(claims, &run->claim);
	lc_claims_wait(claims, &run->claim, run_given_up, run);
	run->copy->backed_off += jiffies - begun;
}

/*
 * Leave out what is not the newest copy any more: a discard may have dropped it since it was
 * listed, and must not be undone on the HDD (C5).
 */
static void run_refresh(struct run *run)
{
	struct lc_index *index = run->copy->c->index;
	struct lc_mapping map;
	u32 i, bucket;

	for (i = 0; i < run->nr; i++) {
		struct lc_wb_item *item = &run->items[i];

		if (!lc_index_lock_slot(index, item->block, item->slot, &bucket, &map)) {
			item->mask = 0;
			item->lost = 0;
			item->result = LC_WB_COPIED;
		}
		lc_index_unlock(index, bucket);
	}
}

/* Do others read the HDD?  A stamp may be of a tick that we have not seen yet. */
static bool reads_come(const struct lc_cache *c)
{
	return jiffies - READ_ONCE(c->env.last_hdd_read) + 1 <= YIELD_CALM;
}

/* Before a run is started (Y). */
static void yield_to_reads(struct lc_wbcopy *copy)
{
	unsigned long begun = jiffies, elapsed = 0, backoff;

	if (copy->streak < copy->depth || copy->how.on_error == LC_WB_SKIP)
		return;
	while (!given_up(copy) && reads_come(copy->c)) {
		/* After a backoff the head has to come back. */
		backoff = copy->how.backoff(copy->how.arg, copy->streak_moves ?: 1,
					     copy->streak_blocks);
		if (elapsed >= backoff)
			break;
		schedule_timeout_idle(min_t(unsigned long, YIELD_STEP, backoff - elapsed));
		elapsed = jiffies - begun;
	}
	copy->backed_off += elapsed;
	copy->streak = 0;
	copy->streak_moves = 0;
	copy->streak_blocks = 0;
}

/* What Y, and the length of a backoff, must know of a run that is about to be started. */
static void count_run(struct lc_wbcopy *copy, const struct lc_wb_item *items, u32 i, u32 nr)
{
	u32 moves = inner_moves(items + i, nr);

	copy->streak += max(1 + moves, DIV_ROUND_UP(nr, LC_RUN_BLOCKS));
	copy->streak_moves += moves + (!i || items[i].block != items[i - 1].block + 1);
	copy->streak_blocks += nr;
}

/* As the backing device is now; stripes longer than when the copier was created are none. */
static void look_at_stripes(struct lc_wbcopy *copy)
{
	struct block_device *bdev = copy->c->env.backing;
	u32 blocks = lc_stripe_blocks(bdev_io_opt(bdev));

	copy->stripe = (struct lc_stripe) {
		.start = get_start_sect(bdev),
		.blocks = blocks <= copy->most ? blocks : 0,
	};
}

unsigned long lc_wbcopy_backed_off(const struct lc_wbcopy *copy)
{
	return copy->backed_off;
}

int lc_wbcopy_run(struct lc_wbcopy *copy, struct lc_wb_item *items, u32 nr,
		  const struct lc_wb_how *how)
{
	struct run *run = NULL;
	u32 i = 0, n;

	copy->error = 0;
	copy->how = *how;
	copy->backed_off = 0;
	atomic_set(&copy->row, 0);
	atomic_set(&copy->nr_bad, 0);
	look_at_stripes(copy);
	for (n = 0; n < nr; n++)
		items[n].done = false;
	while (i < nr) {
		yield_to_reads(copy);
		n = lc_stripe_run(&copy->stripe, &copy->c->env.place, items + i, nr - i,
				  copy->most);
		wait_event(copy->wait, (run = take_run(copy, n)));
		run->items = items + i;
		if (!given_up(copy))
			run_claim(run);
		if (given_up(copy)) {
			run_end(run, 0);
			break;
		}
		run_refresh(run);
		count_run(copy, items, i, n);
		run_start(run);
		i += n;
	}
	wait_event(copy->wait, all_idle(copy));
	if (copy->error)
		return copy->error;
	return i < nr ? -EINTR : 0;
}

static void free_runs(struct lc_wbcopy *copy)
{
	u32 i;

	for (i = 0; i < copy->nr_spare; i++)
		__free_page(copy->spare[i]);
	kvfree(copy->pages);
	kvfree(copy->runs);
}

/* RAM for runs without long stripes, and for two stripes: one is read while one is written. */
static int alloc_runs(struct lc_wbcopy *copy)
{
	u32 nr = copy->depth * LC_RUN_BLOCKS, i;

	if (copy->most > LC_RUN_BLOCKS)
		nr = max(nr, 2 * copy->most);
	copy->runs = kvcalloc(copy->depth, sizeof(*copy->runs), GFP_KERNEL);
	copy->pages = kvcalloc(nr + (size_t)copy->depth * copy->most, sizeof(*copy->pages),
			       GFP_KERNEL);
	if (!copy->runs || !copy->pages)
		return -ENOMEM;
	copy->spare = copy->pages;
	for (i = 0; i < copy->depth; i++) {
		struct run *run = &copy->runs[i];

		run->copy = copy;
		run->pages = copy->pages + nr + (size_t)i * copy->most;
		INIT_WORK(&run->work, run_work);
		list_add(&run->list, &copy->idle);
		copy->nr_idle++;
	}
	for (; copy->nr_spare < nr; copy->nr_spare++) {
		copy->spare[copy->nr_spare] = alloc_page(GFP_KERNEL);
		if (!copy->spare[copy->nr_spare])
			return -ENOMEM;
	}
	return 0;
}

struct lc_wbcopy *lc_wbcopy_create(struct lc_cache *c, struct workqueue_struct *wq, u32 depth)
{
	struct lc_wbcopy *copy = kzalloc(sizeof(*copy), GFP_KERNEL);

	if (!copy)
		return NULL;
	copy->c = c;
	copy->wq = wq;
	copy->depth = depth;
	copy->most = max(LC_RUN_BLOCKS, lc_stripe_blocks(bdev_io_opt(c->env.backing)));
	spin_lock_init(&copy->lock);
	INIT_LIST_HEAD(&copy->idle);
	init_waitqueue_head(&copy->wait);
	if (alloc_runs(copy))
		goto free_runs;
	if (bioset_init(&copy->bios, 2 * depth, 0, BIOSET_NEED_BVECS))
		goto free_runs;
	return copy;

free_runs:
	free_runs(copy);
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
