// SPDX-License-Identifier: GPL-2.0-only
/*
 * The refill worker.  See refill.h.
 *
 * Each run looks at all lanes and at the numbers that are ready, and does what is possible: its
 * cost grows with the number of lanes, and with the slots of the segments that it evicts.
 */
#include <linux/blkdev.h>
#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "lc.h"
#include "index.h"
#include "lanes.h"
#include "log.h"
#include "park.h"
#include "pool.h"
#include "refill.h"
#include "segment.h"
#include "submit.h"
#include "writeback.h"

#define MAX_READY	16

/* Forget the old content of a segment that is about to be written again. */
static void evict(struct lc_core *core, u64 position)
{
	u64 slot = position << core->c.ring->slot_shift, end = slot + core->c.sb.geo.seg_slots, block;
	struct lc_mapping map;
	u32 bucket;

	for (; lc_index_next(core->c.index, &slot, end, &block, &map); slot++) {
		if (lc_index_lock_slot(core->c.index, block, slot, &bucket, &map)) {
			/* The tail passed it, so it cannot be: a bug, and data at stake. */
			if (WARN_ON_ONCE(map.dirty))
				lc_health_fail(&core->c.health,
					       "a dirty block was about to be overwritten");
			else
				lc_index_remove(core->c.index, bucket, block, &map);
		}
		lc_index_unlock(core->c.index, bucket);
	}
}

/* Have a buffer ready for the lane.  Return: whether there was one. */
static bool refill_buffer(struct lc_core *core, struct lc_lane *lane)
{
	struct lc_buffer *buf = lc_pool_get(core->c.pool, lane->index);

	if (buf)
		lc_lane_add_ready(lane, buf);
	return buf;
}

/* Have the next segment ready to be opened.  Return: whether it worked out. */
static bool refill_segment(struct lc_core *core)
{
	struct lc_allot *allot = core->c.allot;
	u64 position;

	if (!core->refill_taken) {
		/* Pairs with relog_wait(): it is opened behind the wish (B5). */
		bool starved = smp_load_acquire(&allot->relog_starved) && !lc_allot_ready(allot);

		if (!lc_ring_take(core->c.ring, starved ? 0 : READ_ONCE(core->c.ring->reserve),
				  &core->refill_number))
			return false;
		core->refill_taken = true;
		core->refill_last = jiffies;
		evict(core, lc_ring_position(core->c.ring, core->refill_number));
	}
	if (lc_mode(&core->c.health) != LC_MODE_RW)
		return false;
	/* If reads are in flight there, the last one queues us again. */
	position = lc_ring_position(core->c.ring, core->refill_number);
	if (!lc_segment_idle(core->c.ring, &core->c.ring->segments[position]))
		return false;
	core->refill_taken = false;
	lc_allot_add(allot, core->refill_number);
	return true;
}

/*
 * Must writes wait for their next segment although there is one?  Then pace_work looks
 * again.  Not while suspended: so it rests once postsuspend has waited for it.
 */
static bool paced(struct lc_core *core)
{
	unsigned long wait, elapsed = jiffies - core->refill_last;

	if (READ_ONCE(core->c.allot->relog_starved) || core->refill_taken ||
	    !READ_ONCE(core->running))
		return false;
	wait = lc_writeback_pace(core->wb);
	if (elapsed >= wait)
		return false;
	/* Instead of what was to be waited for before: that may have been longer. */
	mod_delayed_work(core->c.env.wq, &core->pace_work, wait - elapsed);
	return true;
}

/*
 * Must writes to a lane wait for their next segment until more is on the SSD?  What is not
 * written yet has half of its buffers; the others are for what waits for a FLUSH.  So writes go on
 * meanwhile, as fast as the SSD takes them, and a FLUSH or suspend has to wait for no more
 * than that half.  An SSD without a volatile cache needs no FLUSH for a buffer, so that
 * writes may have all of them.  In both cases no more than @most, which is what a slow SSD writes
 * soon (D23).  When the last record of a closed buffer is written, refill_work is queued (log.c).
 */
static bool crowded(struct lc_core *core, const struct lc_lane *lane, u32 most)
{
	const struct lc_home *home = &core->c.pool->homes[lane->index];
	u32 nr = READ_ONCE(home->nr), used = nr - min(nr, READ_ONCE(home->nr_free));

	if (READ_ONCE(core->c.allot->relog_starved))
		return false;
	if (bdev_write_cache(core->c.env.cache))
		most = min(most, nr - nr / 2);
	return used - min(used, READ_ONCE(home->nr_unflushed)) >= most;
}

/* With fewer than there may be at hand, half of that is plenty, too (M2). */
static void set_most_ready(struct lc_core *core, u32 most)
{
	u64 ready = (most - 1ull) * core->c.nr_lanes;

	WRITE_ONCE(core->c.allot->most_ready, min_t(u64, READ_ONCE(core->c.allot->max_ready), ready));
	lc_submit_adapt(core->c.submit);
}

void lc_refill_pace_work(struct work_struct *work)
{
	struct lc_core *core = container_of(to_delayed_work(work), struct lc_core, pace_work);

	lc_kick(&core->c.env.refill);
}

void lc_refill_work(struct work_struct *work)
{
	struct lc_core *core = container_of(work, struct lc_core, refill_work);
	u32 most = lc_submit_most(core->c.submit), i;
	bool short_of = false, added = false;

	set_most_ready(core, most);
	for (i = 0; i < core->c.nr_lanes; i++) {
		const struct lc_home *home = &core->c.pool->homes[i];
		struct lc_lane *lane = core->c.lanes->lane[i];

		short_of |= READ_ONCE(home->nr_unflushed) > READ_ONCE(home->nr) / 4;
		while (READ_ONCE(lane->nr_ready) < READ_ONCE(lane->max_ready) &&
		       !crowded(core, lane, most)) {
			if (!refill_buffer(core, lane)) {
				short_of = true;
				break;
			}
			added = true;
		}
	}
	while (lc_allot_ready(core->c.allot) < READ_ONCE(core->c.allot->max_ready) && !paced(core)) {
		if (!refill_segment(core)) {
			short_of = true;
			break;
		}
		added = true;
	}
	/* One for each call: what logging again leaves over is lost to writes. */
	if (lc_allot_ready(core->c.allot))
		WRITE_ONCE(core->c.allot->relog_starved, false);
	if (added)
		lc_park_kick(core->park);
	if (short_of)
		lc_log_relieve(core->c.log);
	lc_writeback_kick(core->wb);
}

void lc_refill_set_ready(struct lc_core *core, const struct lc_params *params)
{
	u64 ready = min_t(u64, params->buffers / 4, core->c.sb.geo.nr_segments / 8);
	u32 i, nr = clamp_t(u64, div_u64(ready, core->c.nr_lanes), 1, MAX_READY);

	for (i = 0; i < core->c.nr_lanes; i++)
		WRITE_ONCE(core->c.lanes->lane[i]->max_ready, nr);
	WRITE_ONCE(core->c.allot->max_ready, nr * core->c.nr_lanes);
	WRITE_ONCE(core->c.allot->most_ready, nr * core->c.nr_lanes);
}
