// SPDX-License-Identifier: GPL-2.0-only
/*
 * The refill worker.  See refill.h.
 *
 * Each run looks at all lanes and at the numbers that are ready, and does what is possible: its
 * cost grows with the number of lanes, and with the slots of the segments that it evicts.
 */
#include <linux/blkdev.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "log/cache.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/pool.h"
#include "log/refill.h"
#include "log/submit.h"
#include "store/admit.h"
#include "store/index.h"
#include "store/ring.h"

struct lc_refill {
	struct lc_cache *c;
	const struct lc_refill_ops *ops;	/* constant once they are set, as owner */
	void *owner;
	const struct lc_refill_keeper *keeper;	/* or NULL; constant, as keeper_owner */
	void *keeper_owner;
	bool running;			/* the clock may be started; READ_ONCE() */
	struct work_struct work;
	struct delayed_work pace_work;	/* queues the work while writes are slowed down */

	/* of the work only */
	u64 number;			/* segment to come next, if taken */
	bool taken;
	unsigned long last;		/* jiffies when a segment was taken */
};

/* [bucket locked] Forget a block of a segment that is about to be written again. */
static void evict_block(struct lc_cache *c, u32 bucket, u64 block, const struct lc_mapping *map)
{
	struct lc_mapping old;

	lc_index_assert_locked(c->index, bucket);
	/* The tail passed it, so it cannot be: a bug, and data at stake. */
	if (WARN_ON_ONCE(map->dirty))
		lc_health_fail(&c->health, "a dirty block was about to be overwritten");
	else
		lc_index_remove(c->index, bucket, block, &old);
}

/* Forget the block, if it is still there.  Return: whether it was. */
static bool evict_slot(struct lc_cache *c, u64 block, u32 slot)
{
	struct lc_mapping map;
	bool found;
	u32 bucket;

	found = lc_index_lock_slot(c->index, block, slot, &bucket, &map);
	if (found)
		evict_block(c, bucket, block, &map);
	lc_index_unlock(c->index, bucket);
	return found;
}

/* The same for a block that the policy knows: it may be logged again. */
static void evict_or_keep(struct lc_refill *refill, struct lc_admit *admit, u64 block, u32 slot,
			  const struct lc_mapping *map)
{
	const struct lc_refill_keeper *keeper = refill->keeper;

	if (lc_admit_keep(admit, map->use) && keeper &&
	    keeper->keep(refill->keeper_owner, block, slot, lc_admit_kept(map->use)))
		return;
	if (evict_slot(refill->c, block, slot))
		lc_admit_evicted(admit, block, map->use);
}

/* Forget the old content of the segment. */
static void evict(struct lc_refill *refill, u64 position)
{
	struct lc_cache *c = refill->c;
	u64 slot = position << c->ring->slot_shift, end = slot + c->sb.geo.seg_slots, block;
	/* Pairs with lc_promote_enable(). */
	struct lc_admit *admit = smp_load_acquire(&c->admit);
	struct lc_mapping map;

	if (admit)
		lc_admit_reuse(admit);
	for (; lc_index_next(c->index, &slot, end, &block, &map); slot++) {
		/* What was peeked at is a hint: the slot may not be the block's any more. */
		if (admit)
			evict_or_keep(refill, admit, block, slot, &map);
		else
			evict_slot(c, block, slot);
	}
	if (admit && refill->keeper)
		refill->keeper->evicted(refill->keeper_owner);
}

/* Have a buffer ready for the lane.  Return: whether there was one. */
static bool refill_buffer(struct lc_cache *c, struct lc_lane *lane)
{
	struct lc_buffer *buf = lc_pool_get(c->pool, lane->index);

	if (buf)
		lc_lane_add_ready(lane, buf);
	return buf;
}

/* Have the next segment ready to be opened.  Return: whether it worked out. */
static bool refill_segment(struct lc_refill *refill)
{
	struct lc_cache *c = refill->c;
	struct lc_alloc *alloc = c->alloc;
	u64 position;

	if (!refill->taken) {
		u64 keep = lc_alloc_lends(alloc) ? 0 : READ_ONCE(c->ring->reserve);

		if (!lc_ring_take(c->ring, keep, &refill->number)) {
			if (lc_ring_blocked(c->ring))
				lc_kick(&c->env.fill);
			return false;
		}
		refill->taken = true;
		refill->last = jiffies;
		evict(refill, lc_ring_position(c->ring, refill->number));
	}
	if (lc_mode(&c->health) != LC_MODE_RW)
		return false;
	/* If reads are in flight there, the last one queues us again. */
	position = lc_ring_position(c->ring, refill->number);
	if (!lc_segment_idle(c->ring, &c->ring->segments[position]))
		return false;
	refill->taken = false;
	lc_alloc_add(alloc, refill->number);
	return true;
}

/*
 * Must writes wait for their next segment although one is free?  If so, pace_work queues the refill
 * worker again when the wait is over.  Never while suspended: lc_refill_quiesce() has waited for
 * pace_work, and it must not be queued again.
 */
static bool must_follow_writeback(struct lc_refill *refill)
{
	struct lc_cache *c = refill->c;
	unsigned long wait, elapsed = jiffies - refill->last;

	if (READ_ONCE(c->alloc->lend_reserve) || refill->taken || !READ_ONCE(refill->running))
		return false;
	wait = refill->ops->pace(refill->owner);
	if (elapsed >= wait)
		return false;
	/* Replaces the wait that was set before, which may be longer. */
	mod_delayed_work(c->env.wq, &refill->pace_work, wait - elapsed);
	return true;
}

/*
 * Must writes to a lane wait for their next segment until more is on the SSD?  Buffers that are not
 * written yet may take half of the lane's share.  The other half is for buffers that are written
 * and wait for a FLUSH.  So writes go on during a FLUSH, as fast as the SSD takes them, and a FLUSH
 * or suspend has at most half of the buffers to write.  An SSD without a volatile cache needs no
 * FLUSH for a buffer, so writes may take all of them.  In both cases they take no more than @most,
 * which is what a slow SSD writes soon (D23).  When the last record of a closed buffer is written,
 * refill_work is queued (log.c).
 */
static bool too_many_unwritten(struct lc_cache *c, const struct lc_lane *lane, u32 most)
{
	const struct lc_lane_pool *lane_pool = &c->pool->lane_pools[lane->index];
	u32 nr = READ_ONCE(lane_pool->nr), used = nr - min(nr, READ_ONCE(lane_pool->nr_free));

	if (READ_ONCE(c->alloc->lend_reserve))
		return false;
	if (bdev_write_cache(c->env.cache))
		most = min(most, nr - nr / 2);
	return used - min(used, READ_ONCE(lane_pool->nr_unflushed)) >= most;
}

/*
 * How many segments are evicted ahead of writes?  With read_cache on, blocks could be read from
 * them instead.  So while nobody writes, one will do.
 */
static u64 segments_ahead(const struct lc_cache *c)
{
	if (READ_ONCE(c->env.params.read_cache) && lc_env_idle(&c->env))
		return 1;
	return READ_ONCE(c->alloc->max_ready);
}

/* If fewer segments may be ready, half of these is plenty for the throttle (M2). */
static void set_most_ready(struct lc_cache *c, u32 most)
{
	u64 ready = (most - 1ull) * c->nr_lanes;

	lc_alloc_limit_ready(c->alloc, ready);
	lc_submit_adapt(c->submit);
}

static void pace_work(struct work_struct *work)
{
	struct lc_refill *refill = container_of(to_delayed_work(work), struct lc_refill,
						pace_work);

	lc_kick(&refill->c->env.refill);
}

static void refill_work(struct work_struct *work)
{
	struct lc_refill *refill = container_of(work, struct lc_refill, work);
	struct lc_cache *c = refill->c;
	u32 most = lc_submit_most(c->submit), i;
	bool want_buffers = false, added = false;

	set_most_ready(c, most);
	for (i = 0; i < c->nr_lanes; i++) {
		const struct lc_lane_pool *lane_pool = &c->pool->lane_pools[i];
		struct lc_lane *lane = c->lanes->lane[i];

		want_buffers |= READ_ONCE(lane_pool->nr_unflushed) > READ_ONCE(lane_pool->nr) / 4;
		while (READ_ONCE(lane->nr_ready) < READ_ONCE(lane->max_ready) &&
		       !too_many_unwritten(c, lane, most)) {
			if (!refill_buffer(c, lane)) {
				want_buffers = true;
				break;
			}
			added = true;
		}
	}
	while (lc_alloc_ready(c->alloc) < segments_ahead(c) &&
	       !must_follow_writeback(refill)) {
		if (!refill_segment(refill)) {
			want_buffers = true;
			break;
		}
		added = true;
	}
	/* Relogging has a segment now.  Writes could not use another one of the reserve (B5). */
	if (lc_alloc_ready(c->alloc))
		lc_alloc_keep_reserve(c->alloc);
	if (added)
		lc_kick(&c->env.unpark);
	if (want_buffers)
		lc_log_want_buffers(c->log);
	refill->ops->ran(refill->owner);
}

void lc_refill_set_ready(struct lc_cache *c, const struct lc_params *params)
{
	u64 ready = min_t(u64, params->buffers / 4, c->sb.geo.nr_segments / 8);
	u32 i, nr = clamp_t(u64, div_u64(ready, c->nr_lanes), 1, LC_MOST_READY);

	for (i = 0; i < c->nr_lanes; i++)
		lc_lane_set_max_ready(c->lanes->lane[i], nr);
	lc_alloc_set_ready(c->alloc, nr * c->nr_lanes);
}

void lc_refill_attach(struct lc_refill *refill, const struct lc_refill_ops *ops, void *owner)
{
	refill->owner = owner;
	refill->ops = ops;
}

void lc_refill_attach_keeper(struct lc_refill *refill, const struct lc_refill_keeper *keeper,
			     void *owner)
{
	refill->keeper_owner = owner;
	refill->keeper = keeper;
}

void lc_refill_wait(struct lc_refill *refill)
{
	flush_work(&refill->work);
}

void lc_refill_resume(struct lc_refill *refill)
{
	WRITE_ONCE(refill->running, true);
	lc_kick(&refill->c->env.refill);
}

void lc_refill_quiesce(struct lc_refill *refill)
{
	WRITE_ONCE(refill->running, false);
	/* From here on the work starts no clock; a clock that runs queues the work. */
	flush_work(&refill->work);
	cancel_delayed_work_sync(&refill->pace_work);
	flush_work(&refill->work);
}

void lc_refill_stop(struct lc_refill *refill)
{
	cancel_work_sync(&refill->work);
}

struct lc_refill *lc_refill_create(struct lc_cache *c)
{
	struct lc_refill *refill = kzalloc(sizeof(*refill), GFP_KERNEL);

	if (!refill)
		return NULL;
	refill->c = c;
	INIT_WORK(&refill->work, refill_work);
	INIT_DELAYED_WORK(&refill->pace_work, pace_work);
	c->env.refill = (struct lc_kick){ c->env.wq, &refill->work };
	return refill;
}

void lc_refill_destroy(struct lc_refill *refill)
{
	kfree(refill);
}
