// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of writes in.  See intake.h.
 *
 * Their turn is decided in queue.h: commits do not wait for the page cache (D12), no class starves,
 * and writes to one block keep the order in which they came.  Their rate is decided in throttle.h:
 * space is freed by the segment, and each writer gets its turn (D10).  A slow SSD gets no more than
 * it writes soon (backlog.h).
 *
 * While something is parked, other writes are parked, too.  Otherwise a write that comes at the
 * right moment would take the space that parked ones wait for (C7).  With plenty of space they
 * pass: one worker cannot do all the writing under load.  They never take the last of the space:
 * with less than plenty all writes queue again, and the rest is for those that wait.  A write never
 * passes an earlier one that waits for the same block.
 *
 * Each class has a bound of its own on what is parked, so that no commit waits for the page cache
 * here either.  A submitter that sends more sleeps in map() until there is less (D15).  The worker
 * here ends the sleep, and depends on the workers of the log, on writeback and on the devices.
 * None of them depends on the sleeper:
 *  - The sleeper holds its table, locks of its file system and a bio of device mapper's pool,
 *    which they do not need.  It holds no record: its cursor has been released.
 *  - The sleeper holds back no bio of ours.  A bio that map() has sent for another one of the same
 *    task is submitted before the next one is mapped.  The block layer sends plugged ones when a
 *    task sleeps.
 *  - Workers never sleep here, since device mapper has one worker for all commits.  Tasks that
 *    reclaim memory do not either, since our workers may wait for memory (D3).  So the page cache's
 *    own limits are the only bound for the flusher threads.
 *  - A suspend waits for all tasks in map().  So nobody sleeps from presuspend to resume.
 *
 * A write of blocks that are being discarded is parked, too, although there is space, until what it
 * writes is newer than the discard (discard.c, CL3).  Writes whose turn comes after it wait, too.
 *
 * A write that must read an old slot first leaves the queue (merge.h).  If it has to wait again,
 * its place is after all that came meanwhile.  A FLUSH is not parked: it covers writes that have
 * completed, and parked ones have not.
 */
#include <linux/bio.h>
#include <linux/cache.h>
#include <linux/device-mapper.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "bio/around.h"
#include "bio/bypass.h"
#include "bio/flush.h"
#include "bio/intake.h"
#include "bio/merge.h"
#include "bio/queue.h"
#include "bio/throttle.h"
#include "bio/write.h"
#include "log/alloc.h"
#include "log/cache.h"
#include "log/lane.h"
#include "log/lanes.h"
#include "log/request.h"
#include "log/submit.h"
#include "store/claims.h"
#include "store/stats.h"
#include "store/trace.h"

#define MOST_BYTES	(4u << 20)	/* parked, of each class, by those who may sleep */
#define MOST_SEGMENTS	4u		/* or so many, if that is more */
#define COMMIT_SLOTS	64u	/* of other classes; then the record of FUA writes is closed */

struct lc_intake {
	struct lc_cache *c;
	struct lc_flush *flush;
	struct lc_bypass *bypass;
	struct lc_around *around;
	struct lc_merge merge;
	/* Not in a line with what every write reads. */
	spinlock_t lock ____cacheline_aligned_in_smp;	/* guards these three */
	struct lc_queue queue;		/* the write at work is in it, too */
	bool requeue;			/* noflush suspend: give writes back to DM (D4) */
	struct dm_target *requeue_ti;	/* whom to ask whether it still wants them */
	bool open;			/* a suspend: nobody sleeps; under lock, READ_ONCE() */

	u32 most;			/* slots of a class; constant */
	wait_queue_head_t sleepers[LC_NR_CLASSES]; /* submitters that sleep until it has less */

	struct work_struct work;
	/* All writes queue until nothing waits and there is plenty of space; READ_ONCE() */
	bool throttled;
	bool passed;			/* writes that the throttle has not seen; READ_ONCE() */
	struct lc_throttle throttle;	/* of the work only */
	/* queues the work while the throttle holds writes back */
	struct delayed_work throttle_work;
};

/* Segments at hand for writers. */
static u64 ready_segments(const struct lc_cache *c)
{
	u32 nr = 0, i;

	for (i = 0; i < c->nr_lanes; i++)
		nr += READ_ONCE(c->lanes->lane[i]->nr_ready);
	return min_t(u64, nr, lc_alloc_ready(c->alloc));
}

static u64 most_ready_segments(const struct lc_cache *c)
{
	return READ_ONCE(c->alloc->most_ready);
}

/* --- writers ---------------------------------------------------------------- */

static void blocks_of(const struct lc_request *io, u64 *first, u64 *last)
{
	*first = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	*last = (io->iter.bi_sector + (io->iter.bi_size >> 9) - 1) >> LC_BLOCK_SHIFT;
}

/* Of a write that waits, or is about to. */
static u64 slots_of(const struct lc_request *io)
{
	return io->waiting.last - io->waiting.first + 1;
}

/* Does a discard whose bio has ended hold the write back (CL3)? */
static bool held(struct lc_intake *intake, const struct lc_request *io)
{
	u64 first, last;

	if (!lc_claims_holding(intake->c->claims))
		return false;
	blocks_of(io, &first, &last);
	return lc_claims_held(intake->c->claims, first, last);
}

static bool overlaps(struct lc_intake *intake, const struct lc_request *io)
{
	unsigned long flags;
	u64 first, last;
	bool found;

	blocks_of(io, &first, &last);
	spin_lock_irqsave(&intake->lock, flags);
	found = lc_queue_overlaps(&intake->queue, first, last);
	spin_unlock_irqrestore(&intake->lock, flags);
	return found;
}

/*
 * Does a write have to be parked before anything of it is written?  io->iter is all of it.  A write
 * that is parked at the same time may go before it or after it.
 */
static bool must_park(struct lc_intake *intake, struct lc_request *io)
{
	bool any = READ_ONCE(intake->queue.nr), throttled = READ_ONCE(intake->throttled);

	if (held(intake, io))
		return true;
	/* A NOWAIT write takes no other's turn if none waits. */
	if (!any && (!throttled || lc_request_bio(io)->bi_opf & REQ_NOWAIT))
		return false;
	if (!lc_throttle_may_pass(ready_segments(intake->c), most_ready_segments(intake->c)) ||
	    (any && overlaps(intake, io)))
		return true;
	if (throttled && !READ_ONCE(intake->passed))
		WRITE_ONCE(intake->passed, true);
	return false;
}

/*
 * [lock] Device mapper takes bios back only while it suspends.  If a suspend is
 * aborted, this ends before the target is told.
 */
static bool give_back(const struct lc_intake *intake)
{
	lockdep_assert_held(&intake->lock);
	return intake->requeue && dm_noflush_suspending(intake->requeue_ti);
}

/* The page cache is SYNC, too, when an fsync writes it: so commits are a class above that. */
static enum lc_class class_of(const struct bio *bio)
{
	if (bio->bi_opf & (REQ_PREFLUSH | REQ_FUA | REQ_META | REQ_PRIO))
		return LC_CLASS_COMMIT;
	return bio->bi_opf & (REQ_SYNC | REQ_SWAP) ? LC_CLASS_SYNC : LC_CLASS_BACKGROUND;
}

/* Is so much of a class parked that a write of it has to wait?  Also without the lock. */
static bool full(const struct lc_intake *intake, enum lc_class class, u32 limit)
{
	return READ_ONCE(intake->queue.slots[class]) >= limit && !READ_ONCE(intake->open);
}

/* Less may be parked now.  Each sleeper that goes on wakes the next one, up to the limit. */
static void wake_next(struct lc_intake *intake, enum lc_class class)
{
	if (!full(intake, class, intake->most) && wq_has_sleeper(&intake->sleepers[class]))
		wake_up(&intake->sleepers[class]);
}

/* Returns when a class has less than @limit, or when it may have. */
static void wait_for_less(struct lc_intake *intake, enum lc_class class, u32 limit)
{
	DEFINE_WAIT(wait);

	prepare_to_wait_exclusive(&intake->sleepers[class], &wait, TASK_IDLE);
	if (full(intake, class, limit))
		io_schedule();
	finish_wait(&intake->sleepers[class], &wait);
}

/* Return: 0, -EBUSY: wait for less than @limit, -ECANCELED: device mapper wants it back. */
static int try_add(struct lc_intake *intake, struct lc_waiting *one, u32 limit)
{
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&intake->lock, flags);
	if (give_back(intake))
		ret = -ECANCELED;
	else if (full(intake, one->class, limit))
		ret = -EBUSY;
	else
		lc_queue_add(&intake->queue, one);
	spin_unlock_irqrestore(&intake->lock, flags);
	return ret;
}

/**
 * park() - let a write wait for space
 * @intake: the intake
 * @io: the write, io->iter is what is left of it; io->work is not in use
 * @may_sleep: until less is parked; in process context, nothing of ours is held
 *
 * Without @may_sleep, any context.  The worker continues it, or gives it back to device mapper.
 */
static void park(struct lc_intake *intake, struct lc_request *io, bool may_sleep)
{
	enum lc_class class = class_of(lc_request_bio(io));
	u32 limit = may_sleep ? intake->most : U32_MAX;
	int ret;

	blocks_of(io, &io->waiting.first, &io->waiting.last);
	io->waiting.class = class;
	trace_lc_write_parked(intake->c->env.dev, io->waiting.first, slots_of(io));
	/* Those that sleep already come first. */
	if (may_sleep && wq_has_sleeper(&intake->sleepers[class]))
		limit -= limit / 8;
	while ((ret = try_add(intake, &io->waiting, limit)) == -EBUSY) {
		wait_for_less(intake, class, limit);
		limit = intake->most;
	}
	/* If it was added, the write may have ended by now. */
	lc_stats_parked(&intake->c->stats);
	if (ret)
		lc_request_end(io, BLK_STS_DM_REQUEUE);
	else
		lc_intake_kick(intake);
	wake_next(intake, class);
}

/* --- what becomes of a write -------------------------------------------------- */

/* All data is in a lane.  @batch: the caller commits what it has continued. */
static void finish(struct lc_intake *intake, struct lc_request *io, bool batch)
{
	lc_stamp(&intake->c->env.last_write);
	if (lc_request_bio(io)->bi_opf & REQ_FUA)
		lc_flush_write(intake->flush, io, batch);
	else
		lc_request_end(io, BLK_STS_OK);
}

/*
 * See to it that a write ends.  @ret: as of lc_write_again(), or another error, which ends it.
 * Process context; from map(), or of a worker.  Without @batch, may sleep as submit_bio() does.
 */
static void go_on(struct lc_intake *intake, struct lc_request *io, int ret, bool batch)
{
	if (lc_mode(&intake->c->health) == LC_MODE_FAIL && ret == -EAGAIN)
		ret = -EIO;
	if (!ret)
		finish(intake, io, batch);
	else if (ret == -EAGAIN)
		park(intake, io, false);
	else if (ret == -EINPROGRESS)
		lc_merge_start(&intake->merge, io);
	else
		lc_request_end(io, errno_to_blk_status(ret));
}

static void merged(struct lc_merge *merge, struct lc_request *io, int ret)
{
	go_on(container_of(merge, struct lc_intake, merge), io, ret, false);
}

/*
 * May the sender be kept waiting until less is parked (D15)?  No worker, since one of device mapper
 * sends all commits, and no task that reclaims memory (D3).  A task that polls is to go on.
 */
static bool may_sleep(const struct bio *bio)
{
	return !(bio->bi_opf & (REQ_NOWAIT | REQ_POLLED)) &&
	       !(current->flags & (PF_MEMALLOC | PF_WQ_WORKER));
}

/* The HDD did not take it. */
static void log_failed(void *owner, struct lc_request *io)
{
	struct lc_intake *intake = owner;

	go_on(intake, io, lc_write_run(intake->c, io, true, NULL), false);
}

/*
 * Send a write around the log that is long, or any in another cache mode than writeback, if that is
 * allowed.  It does not overtake one that is parked (Q2).  io->iter is all of it.  Return: whether
 * the bio is taken care of.
 */
static bool try_around(struct lc_intake *intake, struct lc_request *io)
{
	if (!lc_writes_around(intake->c) &&
	    !lc_around_follows(intake->around, lc_request_bio(io)))
		return false;
	if (READ_ONCE(intake->queue.nr) && overlaps(intake, io))
		return false;
	if (!lc_around_claim(intake->around, io))
		return false;
	lc_around_send(intake->around, io, false);
	return true;
}

int lc_intake_map(struct lc_intake *intake, struct bio *bio)
{
	struct lc_request *io = lc_bio_request(bio);
	int ret = -EAGAIN;

	if (lc_mode(&intake->c->health) == LC_MODE_FAIL)
		return DM_MAPIO_KILL;
	if (lc_writes_around(intake->c))
		lc_around_cut(bio);
	io->iter = bio->bi_iter;
	if (lc_around_wants(intake->c, bio) && try_around(intake, io))
		return DM_MAPIO_SUBMITTED;
	if (!must_park(intake, io))
		ret = lc_write_run(intake->c, io, false, NULL);
	if (ret && bio->bi_opf & REQ_NOWAIT && io->iter.bi_size == bio->bi_iter.bi_size) {
		bio_wouldblock_error(bio);
		return DM_MAPIO_SUBMITTED;
	}
	if (ret == -EAGAIN)
		park(intake, io, may_sleep(bio));
	else
		go_on(intake, io, ret, false);
	return DM_MAPIO_SUBMITTED;
}

/* --- the worker ---------------------------------------------------------------- */

static struct lc_request *first_parked(struct lc_intake *intake, bool *requeue)
{
	struct lc_waiting *one;

	spin_lock_irq(&intake->lock);
	one = lc_queue_first(&intake->queue);
	*requeue = give_back(intake);
	spin_unlock_irq(&intake->lock);
	return one ? container_of(one, struct lc_request, waiting) : NULL;
}

/*
 * Write on what is left of it.  Return: as lc_write_again(), -EBUSY: not yet (CL3, M1, BL3, MO3),
 * -EXDEV: it is to go around the log, its blocks are claimed.
 */
static int unpark(struct lc_intake *intake, struct lc_request *io)
{
	struct lc_cache *c = intake->c;
	u32 before = io->iter.bi_size;
	int ret;

	/* The discard kicks this work when it lets writes go on.  It waits for no parked write. */
	if (held(intake, io))
		return -EBUSY;
	if (READ_ONCE(c->closed)) {
		if (lc_around_claim(intake->around, io))
			return -EXDEV;
		queue_delayed_work(c->env.wq, &intake->throttle_work, 1);
		return -EBUSY;
	}
	if (READ_ONCE(intake->passed)) {
		WRITE_ONCE(intake->passed, false);
		lc_throttle_missed(&intake->throttle);
	}
	if (!lc_throttle_may_admit(&intake->throttle, jiffies) &&
	    !lc_throttle_has_spare(&intake->throttle, jiffies, ready_segments(c),
				   most_ready_segments(c)))
		ret = -EBUSY;
	else
		ret = lc_write_again(c, io);
	lc_throttle_count(&intake->throttle, jiffies,
			  DIV_ROUND_UP(before - io->iter.bi_size, LC_SLOT_BYTES));
	if (ret == -EAGAIN) {
		lc_throttle_no_space(&intake->throttle);
		WRITE_ONCE(intake->throttled, true);
	} else if (ret == -EBUSY) {
		queue_delayed_work(c->env.wq, &intake->throttle_work, 1);
	}
	return ret;
}

/* The worker is done with a write.  FUA writes that are continued in one go share a record. */
static void passed_on(struct lc_intake *intake, enum lc_class class, u64 slots, u32 *others)
{
	bool more;

	if (class == LC_CLASS_COMMIT) {
		spin_lock_irq(&intake->lock);
		more = intake->queue.nr_class[LC_CLASS_COMMIT];
		spin_unlock_irq(&intake->lock);
	} else {
		*others += slots;
		more = *others < COMMIT_SLOTS;
	}
	if (more)
		return;
	*others = 0;
	lc_flush_commit(intake->flush);
}

/* Return: whether nothing is parked any more. */
static bool unpark_all(struct lc_intake *intake)
{
	struct lc_cache *c = intake->c;
	enum lc_class class;
	u32 others = 0;
	struct lc_request *io;
	bool requeue;
	u64 slots;
	int ret;

	while ((io = first_parked(intake, &requeue))) {
		enum lc_mode mode = lc_mode(&c->health);

		if (mode == LC_MODE_FAIL)
			ret = -EIO;
		else if (requeue)
			ret = -ECANCELED;
		else if (mode == LC_MODE_DEGRADED)
			ret = -ENODEV;
		else
			ret = unpark(intake, io);
		if (ret == -EAGAIN || ret == -EBUSY)
			return false;
		class = io->waiting.class;
		slots = slots_of(io);
		trace_lc_write_continued(c->env.dev, io->waiting.first, slots);
		spin_lock_irq(&intake->lock);
		lc_queue_remove(&intake->queue, &io->waiting);
		spin_unlock_irq(&intake->lock);
		wake_next(intake, class);
		if (ret == -ECANCELED)
			lc_request_end(io, BLK_STS_DM_REQUEUE);
		else if (ret == -ENODEV)
			lc_bypass_submit(intake->bypass, io);
		else if (ret == -EXDEV)
			lc_around_send(intake->around, io, true);
		else
			go_on(intake, io, ret, true);
		passed_on(intake, class, slots, &others);
		cond_resched();
	}
	return true;
}

/* Nothing is parked.  What comes now queues the work, which then finds the same. */
static void unpark_end(struct lc_intake *intake)
{
	struct lc_cache *c = intake->c;

	if (!intake->throttled || lc_submit_piece(c->submit) ||
	    (lc_mode(&c->health) == LC_MODE_RW &&
	     !lc_throttle_plenty(ready_segments(c), most_ready_segments(c))))
		return;
	lc_throttle_stop(&intake->throttle);
	WRITE_ONCE(intake->throttled, false);
}

/* A write stays in the queue while it is continued, so that later ones to its blocks wait. */
static void unpark_work(struct work_struct *work)
{
	struct lc_intake *intake = container_of(work, struct lc_intake, work);
	bool all = unpark_all(intake);

	lc_flush_commit(intake->flush);
	if (all)
		unpark_end(intake);
}

/* Look again at what the throttle has held back (M1). */
static void throttle_work(struct work_struct *work)
{
	lc_intake_kick(container_of(to_delayed_work(work), struct lc_intake, throttle_work));
}

void lc_intake_kick(struct lc_intake *intake)
{
	queue_work(intake->c->env.wq, &intake->work);
}

u64 lc_intake_blocks(const struct lc_intake *intake)
{
	u64 blocks = 0;
	u32 i;

	for (i = 0; i < LC_NR_CLASSES; i++)
		blocks += READ_ONCE(intake->queue.slots[i]);
	return blocks;
}

/* --- life ------------------------------------------------------------------------ */

void lc_intake_presuspend(struct lc_intake *intake, struct dm_target *ti)
{
	u32 i;

	spin_lock_irq(&intake->lock);
	intake->requeue_ti = ti;
	intake->requeue = dm_noflush_suspending(ti);
	WRITE_ONCE(intake->open, true);
	spin_unlock_irq(&intake->lock);
	for (i = 0; i < LC_NR_CLASSES; i++)
		wake_up_all(&intake->sleepers[i]);
	lc_intake_kick(intake);
}

void lc_intake_resume(struct lc_intake *intake)
{
	spin_lock_irq(&intake->lock);
	intake->requeue = false;
	WRITE_ONCE(intake->open, false);
	spin_unlock_irq(&intake->lock);
	lc_intake_kick(intake);
}

void lc_intake_quiesce(struct lc_intake *intake)
{
	spin_lock_irq(&intake->lock);
	intake->requeue = false;
	spin_unlock_irq(&intake->lock);
	cancel_delayed_work_sync(&intake->throttle_work);
	flush_work(&intake->work);
}

void lc_intake_stop(struct lc_intake *intake)
{
	/* intake->work does not start the clock again: nothing is parked. */
	cancel_delayed_work_sync(&intake->throttle_work);
	cancel_work_sync(&intake->work);
}

struct lc_intake *lc_intake_create(struct lc_cache *c, struct lc_flush *flush,
				   struct lc_bypass *bypass, struct lc_around *around)
{
	struct lc_intake *intake = kzalloc(sizeof(*intake), GFP_KERNEL);
	u32 i;

	if (!intake)
		return NULL;
	intake->most = max(MOST_BYTES / LC_SLOT_BYTES, MOST_SEGMENTS * c->sb.geo.seg_slots);
	for (i = 0; i < LC_NR_CLASSES; i++)
		init_waitqueue_head(&intake->sleepers[i]);
	intake->c = c;
	intake->flush = flush;
	intake->bypass = bypass;
	intake->around = around;
	lc_around_attach(around, (struct lc_around_failed){ log_failed, intake });
	intake->merge = (struct lc_merge){ c, merged };
	spin_lock_init(&intake->lock);
	lc_queue_init(&intake->queue);
	INIT_WORK(&intake->work, unpark_work);
	INIT_DELAYED_WORK(&intake->throttle_work, throttle_work);
	c->env.unpark = (struct lc_kick){ c->env.wq, &intake->work };
	return intake;
}

void lc_intake_destroy(struct lc_intake *intake)
{
	kfree(intake);
}
