// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of a discard.  Whole blocks only.
 *
 *  1. Claim the blocks: from the discard's turn on writeback copies none of them until the
 *     end (claims.h, C5).  The only thing to wait for is a copy of them that is on its way.
 *  2. If none of the blocks is cached, skip to 6: what is not in the index is in no record that
 *     replay would use.
 *  3. Make every earlier record durable, so that each is sealed: a writer that still held one
 *     could otherwise add a block below the tombstone (L12).
 *  4. Log a RANGE record: at replay it drops copies in lower seqs only.
 *  5. Make it durable: a copy stops being needed only now (L5), and no writer has a reference on
 *     an older record any more that could add a copy behind our back.  Then drop copies older
 *     than that record from the index, the same rule in RAM.
 *  6. Discard on the HDD, if it can.
 *
 * Two workers.  look_work takes discards as they come, does steps 1 and 2, and sends those on that
 * nothing keeps waiting; it never waits for the log.  pass_work takes all others that have their
 * turn, as many as a record has entries, through steps 3 to 5 together: a record and two FLUSHes at
 * most, and what comes meanwhile is in the next pass (D13).  Step 6 is waited for by nobody: each
 * discard ends when its own bios have ended.
 *
 * Teardown, argued.  No bio, so both lists are empty, and no copy, since writeback is gone, so
 * nothing queues a work any more; destroying the workqueue waits for one that is still queued.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "lc.h"
#include "buffer.h"
#include "claims.h"
#include "discard.h"
#include "doubt.h"
#include "index.h"
#include "lane.h"
#include "log.h"
#include "segment.h"

#define PASS_DISCARDS	LC_RECORD_ENTRIES
#define BIOS		16	/* always there; more if there is memory */

struct lc_discards {
	struct lc_core *core;
	spinlock_t lock;		/* the lists */
	struct list_head fresh;		/* struct lc_io, first come first served */
	struct list_head waiting;	/* claimed, for a pass, in the same order */
	struct work_struct look_work;
	struct work_struct pass_work;
	struct workqueue_struct *wq;	/* of both, and nobody else */
	struct bio_set bios;
	struct lc_entry_info *ranges;	/* PASS_DISCARDS; pass_work only */
};

/* --- the index ------------------------------------------------------------- */

/* Is the copy in a slot newer than the last tombstone? (N4) */
static bool newer(struct lc_core *core, u32 slot)
{
	const struct lc_segment *seg = lc_ring_segment(core->ring, slot);
	const struct lc_bound *bound;

	if (seg->number < core->head->start)
		return false;
	bound = &core->head->bounds[seg->lane];
	if (seg->number != bound->segment)
		return seg->number > bound->segment;
	return lc_ring_slot_in_segment(core->ring, slot) >= bound->slot;
}

/* Return: whether the block had a copy that the tombstone covers; @drop: it is forgotten. */
static bool visit_block(struct lc_core *core, u64 block, bool drop)
{
	struct lc_mapping map;
	bool found;
	u32 bucket;

	if (lc_index_absent(core->index, block))
		return false;
	bucket = lc_index_lock(core->index, block);
	found = lc_index_lookup(core->index, bucket, block, &map);
	if (found && drop) {
		if (newer(core, map.slot))
			found = false;
		else if (lc_index_remove(core->index, bucket, block, &map) && map.lost)
			atomic64_dec(&core->lost);
	}
	lc_index_unlock(core->index, bucket);
	return found;
}

/* By block or by slot, whichever is less work.  @drop: otherwise only look for the first one. */
static bool visit_range(struct lc_core *core, const struct lc_claim *claim, bool drop)
{
	u64 nr_slots = core->sb.geo.nr_slots;
	struct lc_mapping map;
	bool any = false;
	u64 slot, block;

	if (claim->last - claim->first < nr_slots) {
		for (block = claim->first; block <= claim->last && (drop || !any); block++) {
			any |= visit_block(core, block, drop);
			if (!(block & 1023))
				cond_resched();
		}
		return any;
	}
	for (slot = 0; slot < nr_slots && (drop || !any); slot++) {
		if (!(slot & 1023))
			cond_resched();
		if (lc_index_peek(core->index, slot, &block, &map) && block >= claim->first &&
		    block <= claim->last)
			any |= visit_block(core, block, drop);
	}
	return any;
}

/* --- the end ----------------------------------------------------------------- */

/*
 * No buffer, or no log any more: a discard is a hint, and dropping it is an answer that loses
 * nothing.
 */
static blk_status_t status_of(const struct lc_core *core, int ret)
{
	if (ret == -EAGAIN || ret == -EOPNOTSUPP || atomic_read(&core->cache_failed))
		return BLK_STS_OK;
	return errno_to_blk_status(ret);
}

/* Any context.  Core and bio may be gone right behind it. */
static void discard_end(struct lc_core *core, struct lc_io *io, int ret)
{
	struct bio *bio = lc_io_bio(io);

	lc_claims_drop(core->claims, &io->discard.claim);
	bio->bi_status = status_of(core, ret);
	bio_endio(bio);
}

static void below_put(struct lc_core *core, struct lc_io *io)
{
	const struct lc_claim *claim = &io->discard.claim;

	if (!atomic_dec_and_test(&io->discard.pending))
		return;
	lc_doubt_discarded(&core->doubt, claim->first, claim->last);
	discard_end(core, io, READ_ONCE(io->discard.error));
}

static void below_end(struct bio *bio)
{
	struct lc_io *io = bio->bi_private;

	/* Any of two will do. */
	if (bio->bi_status)
		WRITE_ONCE(io->discard.error, blk_status_to_errno(bio->bi_status));
	bio_put(bio);
	below_put(io->core, io);
}

/* Unlike blkdev_issue_discard(), not from the pool that all file systems and swap write from. */
static void send_piece(struct lc_core *core, struct lc_io *io, u64 sector, u32 nr)
{
	struct bio *bio = bio_alloc_bioset(core->backing, 0, REQ_OP_DISCARD, GFP_NOIO,
					   &core->discards->bios);

	bio->bi_iter.bi_sector = lc_place_sector(&core->place, sector);
	bio->bi_iter.bi_size = nr << SECTOR_SHIFT;
	bio->bi_private = io;
	bio->bi_end_io = below_end;
	atomic_inc(&io->discard.pending);
	submit_bio(bio);
}

/* Step 6, in one or two pieces (A2).  It is the discard's turn. */
static void send_below(struct lc_core *core, struct lc_io *io)
{
	const struct lc_claim *claim = &io->discard.claim;
	u64 sector = claim->first << LC_BLOCK_SHIFT;
	u32 nr = (claim->last - claim->first + 1) << LC_BLOCK_SHIFT;
	u32 n = lc_place_run(&core->place, sector, nr);

	if (!bdev_max_discard_sectors(core->backing)) {
		discard_end(core, io, 0);
		return;
	}
	io->discard.error = 0;
	lc_doubt_discarded(&core->doubt, claim->first, claim->last);
	atomic_set(&io->discard.pending, 1);
	send_piece(core, io, sector, n);
	if (n < nr)
		send_piece(core, io, sector + n, nr - n);
	below_put(core, io);
}

/* --- look_work ----------------------------------------------------------------- */

/* Nothing is discarded any more: the HDD is to be left alone (S3), or all that is written fails. */
static bool over(const struct lc_core *core)
{
	return atomic_read(&core->cache_failed) || lc_core_mode(core) != LC_MODE_RW;
}

static struct lc_io *next_fresh(struct lc_discards *d)
{
	struct lc_io *io;

	spin_lock(&d->lock);
	io = list_first_entry_or_null(&d->fresh, struct lc_io, list);
	if (io)
		list_del(&io->list);
	spin_unlock(&d->lock);
	return io;
}

/* Steps 1 and 2. */
static void look(struct lc_discards *d, struct lc_io *io)
{
	struct lc_core *core = d->core;

	if (over(core)) {
		discard_end(core, io, -EIO);
		return;
	}
	lc_claims_add(core->claims, &io->discard.claim);
	/* A copy that appears from here on is of a write that came before we end: it is newer. */
	io->discard.cached = visit_range(core, &io->discard.claim, false);
	if (!io->discard.cached && lc_claims_turn(core->claims, &io->discard.claim)) {
		send_below(core, io);
		return;
	}
	spin_lock(&d->lock);
	list_add_tail(&io->list, &d->waiting);
	spin_unlock(&d->lock);
	queue_work(d->wq, &d->pass_work);
}

static void look_work(struct work_struct *work)
{
	struct lc_discards *d = container_of(work, struct lc_discards, look_work);
	struct blk_plug plug;
	struct lc_io *io;

	/* Neighbours become one command. */
	blk_start_plug(&plug);
	while ((io = next_fresh(d))) {
		look(d, io);
		cond_resched();
	}
	blk_finish_plug(&plug);
}

/* --- pass_work ----------------------------------------------------------------- */

/* Take those that have their turn.  Return: whether there was any. */
static bool take_pass(struct lc_discards *d, struct list_head *pass)
{
	struct lc_io *io, *next;
	u32 nr = 0;

	spin_lock(&d->lock);
	list_for_each_entry_safe(io, next, &d->waiting, list) {
		if (nr == PASS_DISCARDS)
			break;
		/* If not, the copy that it waits for queues us. */
		if (!lc_claims_turn(d->core->claims, &io->discard.claim))
			continue;
		list_move_tail(&io->list, pass);
		nr++;
	}
	spin_unlock(&d->lock);
	return nr;
}

/* They waited for a copy only. */
static void send_uncached(struct lc_core *core, struct list_head *pass)
{
	struct lc_io *io, *next;

	list_for_each_entry_safe(io, next, pass, list) {
		if (io->discard.cached)
			continue;
		list_del(&io->list);
		send_below(core, io);
	}
}

/* Steps 3 to 5, but for the index.  Return: 0, -EAGAIN if no buffer is ready, or an error. */
static int log_ranges(struct lc_discards *d, const struct list_head *pass)
{
	struct lc_core *core = d->core;
	struct lc_io *io;
	u32 nr = 0;
	int ret;

	list_for_each_entry(io, pass, list) {
		const struct lc_claim *claim = &io->discard.claim;

		d->ranges[nr++] = (struct lc_entry_info) {
			.block = claim->first, .nr_blocks = claim->last - claim->first + 1,
			.type = LC_ENTRY_RANGE_TOMBSTONE,
		};
	}
	ret = lc_log_wait_durable(core->log, lc_head_seal(core, false));
	if (!ret)
		ret = lc_head_append_ranges(core, d->ranges, nr);
	if (!ret)
		ret = lc_log_wait_durable(core->log, lc_head_seal(core, false));
	return ret;
}

static void end_pass(struct lc_core *core, struct list_head *pass, int ret)
{
	struct lc_io *io, *next;

	list_for_each_entry_safe(io, next, pass, list) {
		list_del(&io->list);
		if (ret) {
			discard_end(core, io, ret);
			continue;
		}
		visit_range(core, &io->discard.claim, true);
		send_below(core, io);
	}
}

static void do_pass(struct lc_discards *d, struct list_head *pass)
{
	struct lc_core *core = d->core;
	struct blk_plug plug;
	int ret = 0;

	if (over(core)) {
		end_pass(core, pass, -EIO);
		return;
	}
	send_uncached(core, pass);
	if (!list_empty(pass))
		ret = log_ranges(d, pass);
	blk_start_plug(&plug);
	end_pass(core, pass, ret);
	blk_finish_plug(&plug);
}

static void pass_work(struct work_struct *work)
{
	struct lc_discards *d = container_of(work, struct lc_discards, pass_work);
	LIST_HEAD(pass);

	while (take_pass(d, &pass)) {
		do_pass(d, &pass);
		cond_resched();
	}
}

/* --- interface ----------------------------------------------------------------- */

/**
 * lc_discard_map() - map a discard
 * @core: the volume
 * @bio: device mapper's clone
 *
 * From map(): does not sleep.  The bio completes here or later.
 */
int lc_discard_map(struct lc_core *core, struct bio *bio)
{
	u64 first = (bio->bi_iter.bi_sector + LC_BLOCK_SECTORS - 1) >> LC_BLOCK_SHIFT;
	u64 end = bio_end_sector(bio) >> LC_BLOCK_SHIFT;
	struct lc_discards *d = core->discards;
	struct lc_io *io = lc_bio_io(bio);

	if (lc_core_mode(core) == LC_MODE_FAIL)
		return DM_MAPIO_KILL;
	if (end <= first) {
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	}
	lc_claim_init(&io->discard.claim, LC_CLAIM_DISCARD, first, end - first);
	spin_lock(&d->lock);
	list_add_tail(&io->list, &d->fresh);
	spin_unlock(&d->lock);
	queue_work(d->wq, &d->look_work);
	return DM_MAPIO_SUBMITTED;
}

/**
 * lc_discard_kick() - a copy has ended: it may be a discard's turn
 * @core: the volume
 *
 * Any context, behind lc_claims_drop().  A discard is in the list before pass_work looks at its
 * turn: so that sees the drop, or we see the list.
 */
void lc_discard_kick(struct lc_core *core)
{
	struct lc_discards *d = core->discards;

	if (!list_empty(&d->waiting))
		queue_work(d->wq, &d->pass_work);
}

/**
 * lc_discard_settle() - wait until no discard is on its way to the HDD
 * @core: the volume; the SSD is being given up and the log stopped, writeback rests
 *
 * May sleep, for as long as the HDD needs.  Those that wait end without effect, as do those that
 * still come (S3).
 */
void lc_discard_settle(struct lc_core *core)
{
	struct lc_discards *d = core->discards;

	flush_work(&d->look_work);
	queue_work(d->wq, &d->pass_work);
	flush_work(&d->pass_work);
	lc_claims_wait_discards(core->claims);
}

/**
 * lc_discard_create() - allocate the room, and that of the claims
 * @core: the volume
 *
 * May sleep.  Return: 0 or -ENOMEM.
 */
int lc_discard_create(struct lc_core *core)
{
	struct lc_discards *d = kzalloc(sizeof(*d), GFP_KERNEL);

	core->claims = lc_claims_create();
	core->discards = d;
	if (!core->claims || !d)
		return -ENOMEM;
	d->core = core;
	spin_lock_init(&d->lock);
	INIT_LIST_HEAD(&d->fresh);
	INIT_LIST_HEAD(&d->waiting);
	INIT_WORK(&d->look_work, look_work);
	INIT_WORK(&d->pass_work, pass_work);
	d->wq = alloc_workqueue("lc-discard", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	d->ranges = kcalloc(PASS_DISCARDS, sizeof(*d->ranges), GFP_KERNEL);
	if (!d->wq || !d->ranges)
		return -ENOMEM;
	return bioset_init(&d->bios, BIOS, 0, 0);
}

/* After a lc_discard_create() that failed or was not called, too. */
void lc_discard_destroy(struct lc_core *core)
{
	struct lc_discards *d = core->discards;

	if (d) {
		if (d->wq)
			destroy_workqueue(d->wq);
		bioset_exit(&d->bios);
		kfree(d->ranges);
		kfree(d);
	}
	lc_claims_destroy(core->claims);
}
