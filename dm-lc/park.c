// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes that find no room are parked, and one worker continues them.
 *
 * Their turn is decided in queue.h: commits do not wait behind the page cache (D12), no class
 * starves, and writes to one block keep the order in which they came.  Their rate is decided in
 * meter.h: room comes by the segment, and each writer gets its turn (D10).  A slow SSD gets no more
 * than it writes soon (backlog.h).
 *
 * While something is parked, other writes are parked, too.  Otherwise a write that comes at the
 * right moment would take the room that parked ones wait for (C7).  With plenty of room they pass:
 * one worker cannot do all the writing under load.  They never take the last of the room: with
 * less than plenty all writes queue again, and the rest is for those that wait.  A write never
 * passes an earlier one that waits for the same block.
 *
 * The amount that is parked is bounded, for each class by itself, so that a commit is not kept
 * waiting by the page cache here either.  A submitter that sends more sleeps in map() until there
 * is less (D15).  The sleep ends by the worker here, the workers of the log, writeback and the
 * devices, and none of them depends on the sleeper:
 *  - The sleeper holds its table, locks of its file system and a bio of device mapper's pool,
 *    which they do not need.  It holds no record: its cursor has been released.
 *  - No bio of ours is stuck with it.  A bio that map() has sent for another one of the same task
 *    is submitted before the next one is mapped.  The block layer sends plugged ones when a task
 *    sleeps.
 *  - Workers never sleep here, since device mapper has one worker for all commits.  Tasks that
 *    reclaim memory do not either, since our workers may wait for memory (D3).  So the page cache's
 *    own limits are the only bound for the flusher threads.
 *  - A suspend waits for all tasks in map().  So nobody sleeps from presuspend to resume.
 *
 * A write of blocks that are being discarded is parked, too, although there is room, until what it
 * writes is newer than the discard (discard.c, CL3).  What is parked behind it waits for as long.
 *
 * A write that must read an old slot first leaves the queue (write.c).  If it has to wait again,
 * its place is behind all that came meanwhile.  A FLUSH is not parked: it covers writes that have
 * completed, and parked ones have not.
 */
#include <linux/bio.h>
#include <linux/device-mapper.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "lc.h"
#include "bypass.h"
#include "claims.h"
#include "lanes.h"
#include "meter.h"
#include "park.h"
#include "submit.h"
#include "queue.h"
#include "stats.h"
#include "write.h"

#define MOST_BYTES	(4u << 20)	/* parked, of each class, by those who may sleep */
#define MOST_SEGMENTS	4u		/* or so many, if that is more */
#define COMMIT_SLOTS	64u	/* of others, for which FUA writes that have met wait at most */

struct lc_park {
	struct lc_core *core;
	spinlock_t lock;		/* guards these three */
	struct lc_queue queue;		/* the write at work is in it, too */
	bool requeue;			/* noflush suspend: give writes back to DM (D4) */
	struct dm_target *requeue_ti;	/* whom to ask whether it still wants them */
	bool open;			/* a suspend: nobody sleeps; under lock, READ_ONCE() */

	u32 most;			/* slots of a class; constant */
	wait_queue_head_t room[LC_NR_CLASSES];	/* submitters that sleep until it has less */

	struct work_struct work;
	/* All writes queue until nothing waits and there is plenty of room; READ_ONCE() */
	bool metered;
	bool passed;			/* writes that the meter has not seen; READ_ONCE() */
	struct lc_meter meter;		/* of the work only */
	struct delayed_work meter_work;	/* queues the work while the meter holds writes back */
};

/* Segments at hand for writers. */
static u64 room(const struct lc_core *core)
{
	u32 nr = 0, i;

	for (i = 0; i < core->c.nr_lanes; i++)
		nr += READ_ONCE(core->c.lanes->lane[i]->nr_ready);
	return min_t(u64, nr, lc_allot_ready(core->c.allot));
}

static u64 most_room(const struct lc_core *core)
{
	return READ_ONCE(core->c.allot->most_ready);
}

/* --- writers ---------------------------------------------------------------- */

static void blocks_of(const struct lc_io *io, u64 *first, u64 *last)
{
	*first = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	*last = (io->iter.bi_sector + (io->iter.bi_size >> 9) - 1) >> LC_BLOCK_SHIFT;
}

/* Has a discard ended that what is left of a write might be taken to be older than? (CL3) */
static bool held(struct lc_park *park, const struct lc_io *io)
{
	u64 first, last;

	if (!lc_claims_holding(park->core->c.claims))
		return false;
	blocks_of(io, &first, &last);
	return lc_claims_held(park->core->c.claims, first, last);
}

static bool overlaps(struct lc_park *park, const struct lc_io *io)
{
	unsigned long flags;
	u64 first, last;
	bool found;

	blocks_of(io, &first, &last);
	spin_lock_irqsave(&park->lock, flags);
	found = lc_queue_overlaps(&park->queue, first, last);
	spin_unlock_irqrestore(&park->lock, flags);
	return found;
}

/**
 * lc_park_must() - does a write have to be parked before anything of it is written?
 * @park: the room
 * @io: the write, io->iter is all of it
 *
 * Any context.  What is parked at the same time may be before it or behind it.
 */
bool lc_park_must(struct lc_park *park, struct lc_io *io)
{
	bool any = READ_ONCE(park->queue.nr), metered = READ_ONCE(park->metered);

	if (held(park, io))
		return true;
	/* A NOWAIT write is in nobody's way if nobody waits. */
	if (!any && (!metered || lc_io_bio(io)->bi_opf & REQ_NOWAIT))
		return false;
	if (!lc_meter_pass(room(park->core), most_room(park->core)) || (any && overlaps(park, io)))
		return true;
	if (metered && !READ_ONCE(park->passed))
		WRITE_ONCE(park->passed, true);
	return false;
}

/*
 * [lock] Device mapper takes bios back only while it suspends; an aborted one
 * ends that before it tells us.
 */
static bool give_back(const struct lc_park *park)
{
	return park->requeue && dm_noflush_suspending(park->requeue_ti);
}

/* The page cache is SYNC, too, when an fsync writes it: so commits are a class above that. */
static enum lc_class class_of(const struct bio *bio)
{
	if (bio->bi_opf & (REQ_PREFLUSH | REQ_FUA | REQ_META | REQ_PRIO))
		return LC_CLASS_COMMIT;
	return bio->bi_opf & (REQ_SYNC | REQ_SWAP) ? LC_CLASS_SYNC : LC_CLASS_BACKGROUND;
}

/* Is so much of a class parked that a write of it has to wait?  Also without the lock. */
static bool full(const struct lc_park *park, enum lc_class class, u32 limit)
{
	return READ_ONCE(park->queue.slots[class]) >= limit && !READ_ONCE(park->open);
}

/* There may be less now.  Each sleeper that goes on wakes the next one, while there is room. */
static void wake_next(struct lc_park *park, enum lc_class class)
{
	if (!full(park, class, park->most) && wq_has_sleeper(&park->room[class]))
		wake_up(&park->room[class]);
}

/* Returns when a class has less than @limit, or when it may have. */
static void wait_for_less(struct lc_park *park, enum lc_class class, u32 limit)
{
	DEFINE_WAIT(wait);

	prepare_to_wait_exclusive(&park->room[class], &wait, TASK_IDLE);
	if (full(park, class, limit))
		io_schedule();
	finish_wait(&park->room[class], &wait);
}

/* Return: 0, -EBUSY: wait for less than @limit, -ECANCELED: device mapper wants it back. */
static int try_add(struct lc_park *park, struct lc_waiting *one, u32 limit)
{
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&park->lock, flags);
	if (give_back(park))
		ret = -ECANCELED;
	else if (full(park, one->class, limit))
		ret = -EBUSY;
	else
		lc_queue_add(&park->queue, one);
	spin_unlock_irqrestore(&park->lock, flags);
	return ret;
}

/**
 * lc_park_add() - let a write wait for room
 * @park: the room
 * @io: the write, io->iter is what is left of it; io->work is not in use
 * @may_sleep: until less is parked; in process context, nothing of ours is held
 *
 * Without @may_sleep, any context.  The worker continues it, or gives it back to device mapper.
 */
void lc_park_add(struct lc_park *park, struct lc_io *io, bool may_sleep)
{
	enum lc_class class = class_of(lc_io_bio(io));
	u32 limit = may_sleep ? park->most : U32_MAX;
	int ret;

	blocks_of(io, &io->waiting.first, &io->waiting.last);
	io->waiting.class = class;
	/* Those that sleep already come first. */
	if (may_sleep && wq_has_sleeper(&park->room[class]))
		limit -= limit / 8;
	while ((ret = try_add(park, &io->waiting, limit)) == -EBUSY) {
		wait_for_less(park, class, limit);
		limit = park->most;
	}
	/* If it was added, the write may have ended by now. */
	lc_stats_parked(&park->core->c.stats);
	if (ret)
		lc_write_end(io, BLK_STS_DM_REQUEUE);
	else
		lc_park_kick(park);
	wake_next(park, class);
}

/* --- the worker ---------------------------------------------------------------- */

static struct lc_io *first_parked(struct lc_park *park, bool *requeue)
{
	struct lc_waiting *one;

	spin_lock_irq(&park->lock);
	one = lc_queue_first(&park->queue);
	*requeue = give_back(park);
	spin_unlock_irq(&park->lock);
	return one ? container_of(one, struct lc_io, waiting) : NULL;
}

/* Write on what is left of it.  Return: as lc_write_again(), -EBUSY: not yet (CL3, M1, BL3). */
static int unpark(struct lc_park *park, struct lc_io *io)
{
	struct lc_core *core = park->core;
	u32 before = io->iter.bi_size;
	int ret;

	/* The discard kicks us.  It has come first, and depends on nothing that is parked. */
	if (held(park, io))
		return -EBUSY;
	if (READ_ONCE(park->passed)) {
		WRITE_ONCE(park->passed, false);
		lc_meter_missed(&park->meter);
	}
	if (!lc_meter_may(&park->meter, jiffies) &&
	    !lc_meter_may_exceed(&park->meter, jiffies, room(core), most_room(core)))
		ret = -EBUSY;
	else
		ret = lc_write_again(core, io);
	lc_meter_count(&park->meter, jiffies,
		       DIV_ROUND_UP(before - io->iter.bi_size, LC_SLOT_BYTES));
	if (ret == -EAGAIN) {
		lc_meter_dry(&park->meter);
		WRITE_ONCE(park->metered, true);
	} else if (ret == -EBUSY) {
		queue_delayed_work(core->c.env.wq, &park->meter_work, 1);
	}
	return ret;
}

/* A write has left the worker's hands.  FUA writes that are continued in one go are one record. */
static void passed_on(struct lc_park *park, enum lc_class class, u64 slots, u32 *others)
{
	bool more;

	if (class == LC_CLASS_COMMIT) {
		spin_lock_irq(&park->lock);
		more = park->queue.nr_class[LC_CLASS_COMMIT];
		spin_unlock_irq(&park->lock);
	} else {
		*others += slots;
		more = *others < COMMIT_SLOTS;
	}
	if (more)
		return;
	*others = 0;
	lc_write_commit(park->core);
}

/* Return: whether nothing is parked any more. */
static bool unpark_all(struct lc_park *park)
{
	struct lc_core *core = park->core;
	enum lc_class class;
	u32 others = 0;
	struct lc_io *io;
	bool requeue;
	u64 slots;
	int ret;

	while ((io = first_parked(park, &requeue))) {
		enum lc_mode mode = lc_mode(&core->c.health);

		if (mode == LC_MODE_FAIL)
			ret = -EIO;
		else if (requeue)
			ret = -ECANCELED;
		else if (mode == LC_MODE_DEGRADED)
			ret = -ENODEV;
		else
			ret = unpark(park, io);
		if (ret == -EAGAIN || ret == -EBUSY)
			return false;
		class = io->waiting.class;
		slots = io->waiting.last - io->waiting.first + 1;
		spin_lock_irq(&park->lock);
		lc_queue_remove(&park->queue, &io->waiting);
		spin_unlock_irq(&park->lock);
		wake_next(park, class);
		if (ret == -ECANCELED)
			lc_write_end(io, BLK_STS_DM_REQUEUE);
		else if (ret == -ENODEV)
			lc_bypass_submit(core, io);
		else
			lc_write_continue(core, io, ret, true);
		passed_on(park, class, slots, &others);
		cond_resched();
	}
	return true;
}

/* Nothing is parked.  What comes now queues the work, which then finds the same. */
static void unpark_end(struct lc_park *park)
{
	struct lc_core *core = park->core;

	if (!park->metered || lc_submit_piece(core->c.submit) ||
	    (lc_mode(&core->c.health) == LC_MODE_RW && !lc_meter_plenty(room(core), most_room(core))))
		return;
	lc_meter_stop(&park->meter);
	WRITE_ONCE(park->metered, false);
}

/* The write at work stays in the queue, so that later ones to its blocks are behind it. */
static void unpark_work(struct work_struct *work)
{
	struct lc_park *park = container_of(work, struct lc_park, work);
	bool all = unpark_all(park);

	lc_write_commit(park->core);
	if (all)
		unpark_end(park);
}

/* Look again at what the meter has held back (M1). */
static void meter_work(struct work_struct *work)
{
	lc_park_kick(container_of(to_delayed_work(work), struct lc_park, meter_work));
}

/**
 * lc_park_kick() - there is room, or another reason to look at what is parked
 * @park: the room
 *
 * Any context.
 */
void lc_park_kick(struct lc_park *park)
{
	queue_work(park->core->c.env.wq, &park->work);
}

/**
 * lc_park_blocks() - how many blocks wait for room?
 * @park: the room
 *
 * Any context; not those of writers who sleep.
 */
u64 lc_park_blocks(const struct lc_park *park)
{
	u64 blocks = 0;
	u32 i;

	for (i = 0; i < LC_NR_CLASSES; i++)
		blocks += READ_ONCE(park->queue.slots[i]);
	return blocks;
}

/* --- life ------------------------------------------------------------------------ */

/**
 * lc_park_presuspend() - a suspend begins, which waits for all tasks in map()
 * @park: the room
 * @ti: after a noflush suspend it is asked whether device mapper still takes back what is
 *	parked; valid until lc_park_resume() or lc_park_rest()
 *
 * Process context.
 */
void lc_park_presuspend(struct lc_park *park, struct dm_target *ti)
{
	u32 i;

	spin_lock_irq(&park->lock);
	park->requeue_ti = ti;
	park->requeue = dm_noflush_suspending(ti);
	WRITE_ONCE(park->open, true);
	spin_unlock_irq(&park->lock);
	for (i = 0; i < LC_NR_CLASSES; i++)
		wake_up_all(&park->room[i]);
	lc_park_kick(park);
}

/**
 * lc_park_resume() - device mapper wants nothing back any more
 * @park: the room
 *
 * Process context.
 */
void lc_park_resume(struct lc_park *park)
{
	spin_lock_irq(&park->lock);
	park->requeue = false;
	WRITE_ONCE(park->open, false);
	spin_unlock_irq(&park->lock);
	lc_park_kick(park);
}

/**
 * lc_park_rest() - nothing of ours runs any more
 * @park: the room; no bio is under way
 *
 * May sleep.  A noflush suspend is over: its table, which would be asked, may be gone soon.
 */
void lc_park_rest(struct lc_park *park)
{
	spin_lock_irq(&park->lock);
	park->requeue = false;
	spin_unlock_irq(&park->lock);
	cancel_delayed_work_sync(&park->meter_work);
	flush_work(&park->work);
}

/**
 * lc_park_stop() - the works end for good
 * @park: the room, or NULL; no bio will come, and nobody kicks any more
 *
 * May sleep.
 */
void lc_park_stop(struct lc_park *park)
{
	if (!park)
		return;
	/* The other does not start it again: nothing is parked. */
	cancel_delayed_work_sync(&park->meter_work);
	cancel_work_sync(&park->work);
}

/**
 * lc_park_create() - allocate the room
 * @core: the volume
 *
 * May sleep.  Return: the room or NULL.
 */
struct lc_park *lc_park_create(struct lc_core *core)
{
	struct lc_park *park = kzalloc(sizeof(*park), GFP_KERNEL);
	u32 i;

	if (!park)
		return NULL;
	park->most = max(MOST_BYTES / LC_SLOT_BYTES, MOST_SEGMENTS * core->c.sb.geo.seg_slots);
	for (i = 0; i < LC_NR_CLASSES; i++)
		init_waitqueue_head(&park->room[i]);
	park->core = core;
	spin_lock_init(&park->lock);
	lc_queue_init(&park->queue);
	INIT_WORK(&park->work, unpark_work);
	INIT_DELAYED_WORK(&park->meter_work, meter_work);
	return park;
}

void lc_park_destroy(struct lc_park *park)
{
	kfree(park);
}
