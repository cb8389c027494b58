// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of a discard.  Whole blocks only.
 *
 *  1. Claim the blocks: from the discard's turn on writeback copies none of them until the
 *     end (claims.h, C5).  The only thing to wait for is a copy of them that is on its way.
 *  2. If none of the blocks is cached, skip to 6: what is not in the index is in no record that
 *     replay would use, and nowhere where the scan after a crash would find it (WS4).  Else hold
 *     back writes of the blocks (CL3), and end the bio.
 *  3. Make every earlier record durable, so that each is sealed: a writer that still held one
 *     could otherwise add a block below the tombstone (L12).
 *  4. Log a RANGE record: at replay it drops copies in lower seqs only.  Let the writes go on:
 *     they are newer.
 *  5. Make it durable: a copy stops being needed only now (L5), and no writer has a reference on
 *     an older record any more, through which it could add a copy.  Then drop copies older than
 *     that record from the index, by the same rule as at replay.
 *  6. Discard on the HDD, if it can.
 *
 * There are three workers.  look_work takes discards as they come, does steps 1 and 2, and sends
 * those on that need not wait; it never waits for the log.  pass_work takes all others that have
 * their turn, as many as a record has entries, through steps 3 to 5 together.  That takes one
 * record and two FLUSHes at most; discards that come meanwhile are in the next pass (D13).  A pass
 * never waits for the HDD, whose queue may be full: below_work does step 6.  No worker waits for
 * the end of that step: each discard ends when its own bios have ended.
 *
 * A file system sends one discard, waits for it, and sends the next one.  So that those share a
 * record, too, the bio of a discard of cached blocks ends early, in step 2 (D26).  That is allowed
 * because a discard is a hint, and promises nothing about what the blocks hold: until step 5 they
 * read as before, and after a crash they may do so again, even if a FLUSH followed the bio.  The
 * one promise: a write that is sent when the bio has ended stays.
 *  - It came while writes were held: it is parked until step 4 is done, and gets a higher seq.
 *  - It was sent before the bio ended: either order will do.
 *  - It came after step 4: it is newer, for replay and in RAM; a copy of it waits for the claim.
 * Writes are not held for long.  The discard has its turn already, so it waits only for the SSD and
 * for the passes before its own, and EARLY_BLOCKS bounds what those have to drop.  Nothing in a
 * pass depends on a parked write: a RANGE record that finds no buffer is not logged.  Beyond the
 * bound, or if a copy is on its way, the bio ends when the discard does.
 *
 * Device mapper waits for bios only, so postsuspend waits for discards whose bios have ended:
 * lc_discard_settle().  That comes before the log is made durable for the last time and before a
 * clean stop.  When the SSD is given up the rescue does the same, before any write goes past the
 * cache (S3).
 *
 * Teardown: no bio is left, and postsuspend has waited for all discards, so all lists are empty.
 * Writeback is gone, so no copy is on its way.  So nothing queues a work any more, and destroying
 * the workqueue waits for one that is still queued.  The task that ended the last discard may still
 * be about to free it, within an RCU read-side section.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/mempool.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "bio/discard.h"
#include "log/cache.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/request.h"
#include "store/claims.h"
#include "store/doubt.h"
#include "store/index.h"
#include "store/ring.h"

#define PASS_DISCARDS	LC_RECORD_ENTRIES
#define BIOS		16	/* always there; more if there is memory */
#define DISCARDS	16	/* the same */

/* Bound on the blocks of discards whose bios have ended early; each counts EARLY_LEAST or more. */
#define EARLY_BLOCKS	(1u << 20)
#define EARLY_LEAST	(EARLY_BLOCKS / 1024)

/* One that has been looked at.  The worker that takes it from a list owns it. */
struct discard {
	struct list_head list;		/* discards->waiting, a pass, or discards->below */
	struct lc_discards *d;
	struct bio *bio;		/* NULL: it has ended */
	struct lc_claim claim;
	atomic_t pending;		/* bios on the HDD, and the task that sends them */
	int error;			/* of any of these; READ_ONCE() */
	bool cached;			/* its blocks, when it came */
};

struct lc_discards {
	struct lc_cache *c;
	spinlock_t lock;		/* the lists */
	struct list_head fresh;		/* struct lc_request, first come first served */
	struct list_head waiting;	/* struct discard, for a pass, in the same order */
	struct list_head below;		/* struct discard, for step 6, in the same order */
	struct work_struct look_work;
	struct work_struct pass_work;
	struct work_struct below_work;
	struct workqueue_struct *wq;	/* for these works only */
	struct bio_set bios;
	mempool_t pool;			/* struct discard */
	atomic_t early;			/* see EARLY_BLOCKS; only look_work adds */
	struct lc_entry_info *ranges;	/* PASS_DISCARDS; pass_work only */
};

/* --- the index ------------------------------------------------------------- */

/* Is the copy in a slot newer than the last tombstone? (N4) */
static bool newer(struct lc_cache *c, u32 slot)
{
	const struct lc_segment *seg = lc_ring_segment(c->ring, slot);
	const struct lc_bound *bound;

	if (seg->number < c->ring->life_start)
		return false;
	bound = &c->lanes->bounds[seg->lane];
	if (seg->number != bound->segment)
		return seg->number > bound->segment;
	return lc_ring_slot_in_segment(c->ring, slot) >= bound->slot;
}

/*
 * Return: whether the block had a copy that the tombstone covers; @drop: it is forgotten.  Not
 * inline, so that a test can count the calls.
 */
static noinline bool visit_block(struct lc_cache *c, u64 block, bool drop)
{
	struct lc_mapping map;
	bool found;
	u32 bucket;

	if (lc_index_absent(c->index, block))
		return false;
	bucket = lc_index_lock(c->index, block);
	found = lc_index_lookup(c->index, bucket, block, &map);
	if (found && drop) {
		if (newer(c, map.slot))
			found = false;
		else
			lc_index_remove(c->index, bucket, block, &map);
	}
	lc_index_unlock(c->index, bucket);
	return found;
}

/* By block or by slot, as is less work.  Without @drop, only look whether there is one. */
static bool visit_range(struct lc_cache *c, const struct lc_claim *claim, bool drop)
{
	u64 nr_slots = c->sb.geo.nr_slots;
	struct lc_mapping map;
	bool any = false;
	u64 slot, block;

	if (claim->last - claim->first < nr_slots) {
		for (block = claim->first; block <= claim->last && (drop || !any); block++) {
			any |= visit_block(c, block, drop);
			if (!(block & 1023))
				cond_resched();
		}
		return any;
	}
	for (slot = 0; lc_index_next(c->index, &slot, nr_slots, &block, &map); slot++) {
		if (block >= claim->first && block <= claim->last)
			any |= visit_block(c, block, drop);
		if (any && !drop)
			break;
	}
	return any;
}

/* --- the end ----------------------------------------------------------------- */

/*
 * Without a buffer, or without a log, a discard is dropped and ends well: it is a hint, and nothing
 * is lost.
 */
static blk_status_t status_of(const struct lc_cache *c, int ret)
{
	if (ret == -EAGAIN || ret == -EOPNOTSUPP || lc_ssd_failed(&c->health))
		return BLK_STS_OK;
	return errno_to_blk_status(ret);
}

/* What a discard takes of EARLY_BLOCKS. */
static u32 weight(const struct discard *one)
{
	return max_t(u64, one->claim.last - one->claim.first + 1, EARLY_LEAST);
}

static void bio_end(struct lc_cache *c, struct bio *bio, int ret)
{
	bio->bi_status = status_of(c, ret);
	bio_endio(bio);
}

/* Any context.  Volume and bio may be gone right afterwards. */
static void discard_end(struct discard *one, int ret)
{
	struct lc_discards *d = one->d;
	struct lc_cache *c = d->c;
	struct bio *bio = one->bio;

	rcu_read_lock();
	if (!bio)
		atomic_sub(weight(one), &d->early);
	/* Without a bio, nothing but RCU keeps the discards from here on. */
	lc_claims_drop(c->claims, &one->claim);
	mempool_free(one, &d->pool);
	rcu_read_unlock();
	if (bio)
		bio_end(c, bio, ret);
}

static void below_put(struct discard *one)
{
	if (!atomic_dec_and_test(&one->pending))
		return;
	lc_doubt_changed(&one->d->c->doubt, one->claim.first, one->claim.last);
	discard_end(one, READ_ONCE(one->error));
}

static void below_end(struct bio *bio)
{
	struct discard *one = bio->bi_private;

	/* Any of two will do. */
	if (bio->bi_status)
		WRITE_ONCE(one->error, blk_status_to_errno(bio->bi_status));
	bio_put(bio);
	below_put(one);
}

/* Unlike blkdev_issue_discard(), not from the pool that all file systems and swap write from. */
static void send_piece(struct discard *one, u64 sector, u32 nr)
{
	struct lc_cache *c = one->d->c;
	struct bio *bio = bio_alloc_bioset(c->env.backing, 0, REQ_OP_DISCARD, GFP_NOIO,
					   &one->d->bios);

	bio->bi_iter.bi_sector = lc_place_sector(&c->env.place, sector);
	bio->bi_iter.bi_size = nr << SECTOR_SHIFT;
	bio->bi_private = one;
	bio->bi_end_io = below_end;
	atomic_inc(&one->pending);
	submit_bio(bio);
}

/* Step 6, in one or two pieces (A2).  It is the discard's turn. */
static void send_below(struct discard *one)
{
	const struct lc_claim *claim = &one->claim;
	u64 sector = claim->first << LC_BLOCK_SHIFT;
	u32 nr = (claim->last - claim->first + 1) << LC_BLOCK_SHIFT;
	struct lc_cache *c = one->d->c;
	u32 n = lc_place_run(&c->env.place, sector, nr);

	if (!bdev_max_discard_sectors(c->env.backing)) {
		discard_end(one, 0);
		return;
	}
	one->error = 0;
	lc_doubt_changed(&c->doubt, claim->first, claim->last);
	atomic_set(&one->pending, 1);
	send_piece(one, sector, n);
	if (n < nr)
		send_piece(one, sector + n, nr - n);
	below_put(one);
}

/* --- look_work ----------------------------------------------------------------- */

/* Do discards end without effect?  The SSD was given up (S3), or the mode is not rw. */
static bool over(const struct lc_cache *c)
{
	return lc_ssd_failed(&c->health) || lc_mode(&c->health) != LC_MODE_RW;
}

static struct lc_request *next_fresh(struct lc_discards *d)
{
	struct lc_request *io;

	spin_lock(&d->lock);
	io = list_first_entry_or_null(&d->fresh, struct lc_request, list);
	if (io)
		list_del(&io->list);
	spin_unlock(&d->lock);
	return io;
}

/* The whole blocks of a discard.  Return: how many. */
static u64 blocks_of(const struct bio *bio, u64 *first)
{
	u64 end = bio_end_sector(bio) >> LC_BLOCK_SHIFT;

	*first = (bio->bi_iter.bi_sector + LC_BLOCK_SECTORS - 1) >> LC_BLOCK_SHIFT;
	return end - min(end, *first);
}

/* Step 1.  Waits for memory, or for the end of another discard, which does not depend on this. */
static struct discard *new_discard(struct lc_discards *d, struct lc_request *io)
{
	struct discard *one = mempool_alloc(&d->pool, GFP_NOIO);
	u64 first, nr;

	one->d = d;
	one->bio = lc_request_bio(io);
	nr = blocks_of(one->bio, &first);
	lc_claim_init(&one->claim, LC_CLAIM_DISCARD, first, nr);
	lc_claims_add(d->c->claims, &one->claim);
	return one;
}

/* It has its turn, and no other task knows of it: end its bio, if not too many have ended early. */
static void end_early(struct lc_discards *d, struct discard *one)
{
	struct bio *bio = one->bio;

	if (atomic_read(&d->early) + weight(one) > EARLY_BLOCKS)
		return;
	atomic_add(weight(one), &d->early);
	one->bio = NULL;
	/* Before the end of the bio: a write that is sent afterwards must find this. */
	lc_claims_hold(d->c->claims, &one->claim);
	bio_end(d->c, bio, 0);
}

/* Steps 1 and 2. */
static void look(struct lc_discards *d, struct lc_request *io)
{
	struct lc_cache *c = d->c;
	struct discard *one;
	bool turn, unsure;

	if (over(c)) {
		bio_end(c, lc_request_bio(io), -EIO);
		return;
	}
	one = new_discard(d, io);
	unsure = lc_warm_unsure(&c->warm);
	/* From here on the scan after a crash brings no copy back. */
	lc_warm_touch(&c->warm, one->claim.first, one->claim.last);
	/* A copy that is added from here on is newer: the discard's bio has not ended yet. */
	one->cached = visit_range(c, &one->claim, false) || unsure || lc_warm_unsure_now(&c->warm);
	turn = lc_claims_turn(c->claims, &one->claim);
	if (turn && !one->cached) {
		send_below(one);
		return;
	}
	if (turn)
		end_early(d, one);
	spin_lock(&d->lock);
	list_add_tail(&one->list, &d->waiting);
	spin_unlock(&d->lock);
	queue_work(d->wq, &d->pass_work);
}

static void look_work(struct work_struct *work)
{
	struct lc_discards *d = container_of(work, struct lc_discards, look_work);
	struct blk_plug plug;
	struct lc_request *io;

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
	struct discard *one, *next;
	u32 nr = 0;

	spin_lock(&d->lock);
	list_for_each_entry_safe(one, next, &d->waiting, list) {
		if (nr == PASS_DISCARDS)
			break;
		/* If not, the copy that it waits for queues this work (CL4). */
		if (!lc_claims_turn(d->c->claims, &one->claim))
			continue;
		list_move_tail(&one->list, pass);
		nr++;
	}
	spin_unlock(&d->lock);
	return nr;
}

/* Take it from a pass. */
static void send_later(struct lc_discards *d, struct discard *one)
{
	spin_lock(&d->lock);
	list_move_tail(&one->list, &d->below);
	spin_unlock(&d->lock);
	queue_work(d->wq, &d->below_work);
}

/* They waited for a copy only. */
static void send_uncached(struct lc_discards *d, struct list_head *pass)
{
	struct discard *one, *next;

	list_for_each_entry_safe(one, next, pass, list) {
		if (!one->cached)
			send_later(d, one);
	}
}

/* Steps 3 and 4.  Return: 0, -EAGAIN if no buffer is ready, or an error. */
static int log_ranges(struct lc_discards *d, const struct list_head *pass)
{
	struct lc_cache *c = d->c;
	struct discard *one;
	u32 nr = 0;
	int ret;

	list_for_each_entry(one, pass, list) {
		const struct lc_claim *claim = &one->claim;

		d->ranges[nr++] = (struct lc_entry_info) {
			.block = claim->first, .nr_blocks = claim->last - claim->first + 1,
			.type = LC_ENTRY_RANGE_TOMBSTONE,
		};
	}
	ret = lc_log_wait_durable(c->log, lc_lanes_close_used(c->lanes, false));
	return ret ? ret : lc_lanes_append_ranges(c->lanes, d->ranges, nr);
}

/* The record is logged, or there will be none. */
static void let_writes(struct lc_cache *c, const struct list_head *pass)
{
	struct discard *one;

	list_for_each_entry(one, pass, list)
		lc_claims_let(c->claims, &one->claim);
	lc_kick(&c->env.unpark);
}

static void end_pass(struct lc_discards *d, struct list_head *pass, int ret)
{
	struct discard *one, *next;

	list_for_each_entry_safe(one, next, pass, list) {
		if (ret) {
			/* The scan has left its blocks out, and no record tells. */
			lc_warm_missed(&d->c->warm);
			list_del(&one->list);
			discard_end(one, ret);
			continue;
		}
		visit_range(d->c, &one->claim, true);
		send_later(d, one);
	}
}

static void do_pass(struct lc_discards *d, struct list_head *pass)
{
	struct lc_cache *c = d->c;
	int ret = -EIO;

	if (!over(c)) {
		send_uncached(d, pass);
		if (list_empty(pass))
			return;
		ret = log_ranges(d, pass);
	}
	let_writes(c, pass);
	if (!ret)
		ret = lc_log_wait_durable(c->log, lc_lanes_close_used(c->lanes, false));
	end_pass(d, pass, ret);
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

/* --- below_work ---------------------------------------------------------------- */

static struct discard *next_below(struct lc_discards *d)
{
	struct discard *one;

	spin_lock(&d->lock);
	one = list_first_entry_or_null(&d->below, struct discard, list);
	if (one)
		list_del(&one->list);
	spin_unlock(&d->lock);
	return one;
}

static void below_work(struct work_struct *work)
{
	struct lc_discards *d = container_of(work, struct lc_discards, below_work);
	struct blk_plug plug;
	struct discard *one;

	blk_start_plug(&plug);
	while ((one = next_below(d))) {
		send_below(one);
		cond_resched();
	}
	blk_finish_plug(&plug);
}

/* --- interface ----------------------------------------------------------------- */

int lc_discard_map(struct lc_discards *d, struct bio *bio)
{
	u64 first;

	if (lc_mode(&d->c->health) == LC_MODE_FAIL)
		return DM_MAPIO_KILL;
	if (!blocks_of(bio, &first)) {
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	}
	spin_lock(&d->lock);
	list_add_tail(&lc_bio_request(bio)->list, &d->fresh);
	spin_unlock(&d->lock);
	queue_work(d->wq, &d->look_work);
	return DM_MAPIO_SUBMITTED;
}

void lc_discard_settle(struct lc_discards *d)
{
	flush_work(&d->look_work);
	queue_work(d->wq, &d->pass_work);
	flush_work(&d->pass_work);
	lc_claims_wait_discards(d->c->claims);
}

struct lc_discards *lc_discard_create(struct lc_cache *c)
{
	struct lc_discards *d = kzalloc(sizeof(*d), GFP_KERNEL);

	if (!d)
		return NULL;
	d->c = c;
	spin_lock_init(&d->lock);
	INIT_LIST_HEAD(&d->fresh);
	INIT_LIST_HEAD(&d->waiting);
	INIT_LIST_HEAD(&d->below);
	INIT_WORK(&d->look_work, look_work);
	INIT_WORK(&d->pass_work, pass_work);
	INIT_WORK(&d->below_work, below_work);
	d->wq = alloc_workqueue("lc-discard", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!d->wq)
		goto free;
	d->ranges = kcalloc(PASS_DISCARDS, sizeof(*d->ranges), GFP_KERNEL);
	if (!d->ranges)
		goto destroy_wq;
	if (mempool_init_kmalloc_pool(&d->pool, DISCARDS, sizeof(struct discard)))
		goto free_ranges;
	if (bioset_init(&d->bios, BIOS, 0, 0))
		goto exit_pool;
	lc_claims_attach(c->claims, (struct lc_kick){ d->wq, &d->pass_work });
	return d;

exit_pool:
	mempool_exit(&d->pool);
free_ranges:
	kfree(d->ranges);
destroy_wq:
	destroy_workqueue(d->wq);
free:
	kfree(d);
	return NULL;
}

void lc_discard_destroy(struct lc_discards *d)
{
	if (!d)
		return;
	destroy_workqueue(d->wq);
	/* Pairs with discard_end(). */
	synchronize_rcu();
	bioset_exit(&d->bios);
	mempool_exit(&d->pool);
	kfree(d->ranges);
	kfree(d);
}
