// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writeback: one thread, one batch at a time.
 *
 *  1. Collect: from the tail on, take segments that are durable and closed, read
 *     their record headers, and list every slot that is still the newest copy of
 *     its block and dirty, with its checksum.
 *  2. Sort by block.  Only 24 bytes a block are held, so a batch can be large and
 *     its order good.
 *  3. Copy in that order, many runs in flight: read the slots of a run of
 *     neighbouring blocks, verify each, write them to the HDD in one go.
 *  4. FLUSH the HDD, once.
 *  5. Under each block's bucket lock, if the slot is still its newest copy, mark
 *     it clean.  Blocks that cannot be clean (lost sectors, a damaged slot, refused by
 *     the HDD) are logged again at the head, so that they do not hold the tail.
 *  6. Make the whole log durable: a copy that was skipped because it was overwritten is
 *     needed until the newer copy is durable (L5).
 *  7. Write the superblock with the new tail, then the segments are free.  The tail moves from
 *     boundary to boundary (ring.h): what is drained after the last boundary waits for the next.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "log/cache.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/refill.h"
#include "store/claims.h"
#include "store/index.h"
#include "store/io.h"
#include "store/ring.h"
#include "store/trace.h"
#include "writeback/collect.h"
#include "writeback/copy.h"
#include "writeback/internal.h"
#include "writeback/pace.h"
#include "writeback/patience.h"
#include "writeback/writeback.h"

/* --- when --------------------------------------------------------------- */

static bool must_stop(struct lc_writeback *wb)
{
	return READ_ONCE(wb->paused) || kthread_should_stop();
}

static u64 used_percent(struct lc_cache *c)
{
	u64 nr = c->sb.geo.nr_segments;

	return div64_u64((nr - min(lc_ring_free(c->ring), nr)) * 100, nr);
}

/* Segments that must stay free for the log to go on at all (D2). */
static u64 min_free_segments(struct lc_cache *c)
{
	u64 nr = c->sb.geo.nr_segments;

	return max(nr / 8, READ_ONCE(c->ring->reserve) + nr / 16);
}

/* Is the segment's content durable and final? */
static bool segment_drainable(struct lc_cache *c, u64 number)
{
	struct lc_segment *seg = &c->ring->segments[lc_ring_position(c->ring, number)];

	/* In this order: without a buffer, what is below was written and is durable. */
	return number < lc_alloc_next(c->alloc) && !rcu_access_pointer(seg->buf);
}

/* Lost blocks stay dirty for ever, refused ones for a while: alone they are no reason. */
static bool worth_draining(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;
	u64 refused = lc_index_refused(c->index);

	if (refused && time_after_eq(jiffies, READ_ONCE(wb->retry_at)))
		return true;
	return lc_index_dirty(c->index) > lc_index_lost(c->index) + refused;
}

/* Is there a reason to drain, if there is anything?  Takes no lock of the lanes. */
static bool wants_to_run(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;
	u64 used;

	if (lc_mode(&c->health) != LC_MODE_RW || lc_ssd_failed(&c->health))
		return false;
	if (lc_ring_tail(c->ring) < READ_ONCE(wb->drain_to))
		return true;
	if (READ_ONCE(c->alloc->writers_held))	/* writes are parked until that is done */
		return true;
	if (lc_ring_free(c->ring) <= min_free_segments(c))
		return true;
	/* What is clean need not keep segments from promoted blocks (GR4). */
	if (READ_ONCE(c->env.params.read_cache) && !lc_ring_spares(c->ring) && !worth_draining(wb))
		return true;
	/* Nothing is to stay in the log. */
	if (lc_writes_around(c) && worth_draining(wb))
		return true;
	if (!READ_ONCE(c->env.params.writeback))
		return false;
	used = used_percent(c);
	if (used >= READ_ONCE(c->env.params.high_watermark))
		wb->filling = true;
	else if (used <= READ_ONCE(c->env.params.low_watermark))
		wb->filling = false;
	return wb->filling || (lc_env_idle(&c->env) && worth_draining(wb));
}

/* Looked at with each kick, of which there are many: the lanes are locked last. */
static bool should_run(struct lc_writeback *wb)
{
	return wants_to_run(wb) && lc_ring_tail(wb->c->ring) < lc_lanes_used(wb->c->lanes);
}

/* --- step 1: collect ---------------------------------------------------- */

/*
 * Blocks of a batch at most.  The more, the better their order; but its segments are freed
 * only at its end, and until then the rest of the log has to suffice (pace.h).
 */
static u32 batch_max(const struct lc_writeback *wb)
{
	const struct lc_geometry *geo = &wb->c->sb.geo;

	return clamp_t(u64, geo->nr_slots / 8, geo->seg_slots, READ_ONCE(wb->list.max));
}

/* The last free segments, as many as two batches free (pace.h). */
static u64 zone(const struct lc_writeback *wb)
{
	u32 batch = max(batch_max(wb) / wb->c->sb.geo.seg_slots, READ_ONCE(wb->frees));

	return 2 * max(batch, wb->c->alloc->round_len);
}

/* Segments that are free, but for those kept back. */
static u64 free_segments(const struct lc_writeback *wb)
{
	const struct lc_ring *ring = wb->c->ring;
	u64 free = lc_ring_free(wb->c->ring);

	return free - min(free, READ_ONCE(ring->reserve));
}

/*
 * The reserve is small: while it is in use, the tail must move as soon as it can, before blocks of
 * later segments use the reserve up.  And a batch frees no more than an eighth of the log: with
 * blocks that are overwritten all the time, few blocks to copy are spread over many segments.
 */
static bool must_end_soon(const struct lc_writeback *wb, const struct lc_wb_batch *b, u64 number)
{
	struct lc_cache *c = wb->c;

	return READ_ONCE(c->alloc->writers_held) ||
	       lc_ring_free(c->ring) < READ_ONCE(c->ring->reserve) ||
	       number - b->first >= c->sb.geo.nr_segments / 8;
}

/*
 * May a batch that must end soon take segment @number, too?  Once it has blocks, only if the tail
 * could not move to that segment: then it would free no more by ending there.
 */
static bool may_go_on(struct lc_writeback *wb, const struct lc_wb_batch *b, u64 number)
{
	u64 seq;

	return number == b->first || !wb->list.nr || lc_wb_first_seq(wb, number, &seq);
}

/* Has the list memory for no more segments? */
static bool list_full(const struct lc_writeback *wb)
{
	return wb->list.nr + wb->c->sb.geo.seg_slots > batch_max(wb);
}

/*
 * A sweep frees no segment before its end.  So the log must have more free segments than are handed
 * out slowly, and no disk may fail: after a failure each batch frees what it can.  It counts for an
 * idle volume, too: lc_env_idle() does not see writers that are parked.
 */
static bool has_time(const struct lc_writeback *wb)
{
	const struct lc_patience *patience = &wb->patience;

	return !wb->sweep_pause && !READ_ONCE(wb->c->alloc->writers_held) &&
	       !patience->hdd && !patience->reads && !patience->sbs &&
	       free_segments(wb) > zone(wb);
}

/*
 * May the batch become one of a sweep, which takes segment @number, too?  There is one if nobody
 * writes, or if a drain is waited for and half of the log is free.  Each batch looks at each slot
 * of the sweep, so the number of segments is bounded.
 */
static bool may_sweep(const struct lc_writeback *wb, const struct lc_wb_batch *b, u64 number)
{
	struct lc_cache *c = wb->c;

	if (!has_time(wb) || batch_max(wb) < 2 * c->sb.geo.seg_slots ||
	    number - b->first >= (u64)LC_WB_SWEEP * batch_max(wb) / c->sb.geo.seg_slots)
		return false;
	return lc_env_idle(&c->env) || (number < READ_ONCE(wb->drain_to) &&
					free_segments(wb) > c->sb.geo.nr_segments / 2);
}

static bool sweep_goes_on(const struct lc_writeback *wb)
{
	return wb->sweep.end && wb->sweep.first == lc_ring_tail(wb->c->ring) && has_time(wb);
}

/*
 * Take segment @number into the batch?  If there is no memory for it, the blocks at the end of the
 * HDD are left to the next batch of a sweep.
 */
static bool takes_segment(struct lc_writeback *wb, const struct lc_wb_batch *b, u64 number)
{
	bool full = list_full(wb), ordinary = !wb->sweep.end && wb->list.to == U64_MAX;

	if (ordinary && !full && (!must_end_soon(wb, b, number) || may_go_on(wb, b, number)))
		return true;
	/* What a sweep that goes on covers was decided by its first batch. */
	if (!wb->sweep.end && !may_sweep(wb, b, number))
		return false;
	if (full)
		lc_wbcollect_halve(&wb->list);
	return true;
}

static int collect_batch(struct lc_writeback *wb, struct lc_wb_batch *b)
{
	struct lc_cache *c = wb->c;
	u64 number = lc_ring_tail(c->ring), limit = number;
	struct lc_wb_source source = {
		.header = wb->header, .stop = &wb->paused,
		.patient = lc_wb_on_error(wb) < LC_WB_ISOLATE_BOTH,
	};
	int ret;

	lockdep_assert_held(&wb->batch_lock);
	/*
	 * Only what is drainable now.  A block that is overwritten while we collect goes to a
	 * segment that is not, so no block is listed twice (W2).
	 */
	while (segment_drainable(c, limit))
		limit++;
	if (!sweep_goes_on(wb))
		wb->sweep = (struct lc_wb_sweep) {};
	if (wb->sweep.end)
		limit = min(limit, wb->sweep.end);
	b->first = number;
	b->end = number;
	lc_wbcollect_begin(&wb->list, wb->sweep.at);
	while (number < limit && takes_segment(wb, b, number)) {
		source.number = number;
		ret = lc_wbcollect_segment(c, &source, &wb->list);
		if (ret)
			return ret;
		/* Not headers, the device fails. */
		if (wb->list.nr_bad > LC_WB_MAX_BAD)
			return -ENODATA;
		b->end = ++number;
		cond_resched();
	}
	b->partial = wb->list.to != U64_MAX;
	return 0;
}

/* --- how fast ------------------------------------------------------------- */

/*
 * How long may a batch back off for the sake of reads?  Not at all if a task waits for the batch,
 * or soon would: after a drain message, while the log fills up in spite of the batch or is kept for
 * relogging, and while other options are to be taken over.
 */
static unsigned long backoff(const void *arg, u32 runs, u32 blocks)
{
	const struct lc_writeback *wb = arg;
	struct lc_cache *c = wb->c;

	if (atomic_read(&wb->wanted) || READ_ONCE(c->alloc->writers_held) ||
	    lc_ring_tail(c->ring) < READ_ONCE(wb->drain_to) || free_segments(wb) <= zone(wb) ||
	    used_percent(c) > (100 + READ_ONCE(c->env.params.high_watermark)) / 2)
		return 0;
	return lc_pace_backoff(&wb->pace, runs, blocks);
}

static unsigned long pace(const void *owner)
{
	const struct lc_writeback *wb = owner;

	if (!READ_ONCE(wb->working))
		return 0;
	return lc_pace_wait(&wb->pace, wb->c->sb.geo.seg_slots, free_segments(wb), zone(wb));
}

static void refill_ran(void *owner)
{
	lc_writeback_kick(owner);
}

static const struct lc_refill_ops refill_ops = {
	.pace = pace,
	.ran = refill_ran,
};

/* --- the thread ---------------------------------------------------------- */

static void pause_after(struct lc_writeback *wb, int ret)
{
	lc_err_limit(&wb->c->env, "writeback failed with error %d, trying again", ret);
	lc_wb_reopen(wb);
	WRITE_ONCE(wb->state, "retrying");
	wait_event_idle_timeout(wb->wait, must_stop(wb), lc_patience_pause(&wb->patience));
}

/* Steps 1 to 5 ended with an error. */
static void note_failure(struct lc_writeback *wb, int ret)
{
	struct lc_cache *c = wb->c;

	if (ret == -ENODATA) {
		lc_health_ssd_failed(&c->health,
				     "the cache device cannot be used for writeback");
		return;
	}
	if (ret == -EREMOTEIO) {
		lc_patience_read(&wb->patience);
	} else if (lc_patience_hdd(&wb->patience, READ_ONCE(c->env.params.hdd_patience_ms))) {
		lc_health_fail(&c->health,
			       "the backing device has failed writeback for hdd_patience_ms");
		return;
	}
	pause_after(wb, ret);
}

/* Step 7 ended with an error: the SSD fails. */
static void note_tail_failure(struct lc_writeback *wb, int ret)
{
	if (lc_patience_sb(&wb->patience))
		lc_health_ssd_failed(&wb->c->health,
				     "the cache device does not take its superblock");
	else
		pause_after(wb, ret);
}

/* After ssd_patience_ms: is the whole SSD unreadable, and not only some slots? */
static bool cache_unreadable(struct lc_writeback *wb)
{
	return lc_wb_on_error(wb) == LC_WB_ISOLATE_BOTH &&
	       lc_io_sync(wb->c->env.cache, REQ_OP_READ | REQ_META, 0, wb->header,
			  LC_SLOT_BYTES);
}

/*
 * A batch has ended with @ret, after so many jiffies for each of its parts.  Is there a next one of
 * its sweep?  If not, the tail may pass what is clean (SW1).  Headers of small records may take
 * longer to read, once for each batch, than the order saves.
 */
static void sweep_on(struct lc_writeback *wb, struct lc_wb_batch *b, int ret,
		     unsigned long collected, unsigned long copied)
{
	u64 end = b->first;

	lockdep_assert_held(&wb->batch_lock);
	wb->sweep_pause -= !!wb->sweep_pause;
	wb->sweep = (struct lc_wb_sweep) {};
	if (ret)
		return;
	if (b->partial && collected > HZ / 4 && collected > copied) {
		wb->sweep_pause = LC_WB_SWEEP;
	} else if (b->partial) {
		wb->sweep = (struct lc_wb_sweep) {
			.first = b->first, .end = b->end, .at = wb->list.to,
		};
	} else if (wb->list.from) {
		while (end < b->end && lc_wbcollect_clean(wb->c, end)) {
			end++;
			cond_resched();
		}
		b->end = end;
	}
}

/* Steps 1 to 5.  Return: 0, -EINTR if told to stop, or an error. */
static int copy_batch(struct lc_writeback *wb, struct lc_wb_batch *b)
{
	struct lc_cache *c = wb->c;
	struct lc_wb_how how = {
		.on_error = lc_wb_on_error(wb), .stop = &wb->paused, .backoff = backoff, .arg = wb,
	};
	unsigned long begun = jiffies, collected;
	u32 runs;
	int ret;

	lockdep_assert_held(&wb->batch_lock);
	*b = (struct lc_wb_batch) {};
	if (cache_unreadable(wb))
		return -ENODATA;
	ret = collect_batch(wb, b);
	collected = jiffies - begun;
	if (ret || b->end == b->first)
		return ret;
	runs = lc_wbcollect_sort(&wb->list);
	trace_lc_batch_begin(c->env.dev, b->first, b->end, wb->list.nr, runs);
	if (runs) {
		/* A batch of a sweep counts for what it cleans. */
		WRITE_ONCE(wb->frees, b->partial || wb->list.from ?
			   DIV_ROUND_UP(wb->list.nr, c->sb.geo.seg_slots) : b->end - b->first);
		lc_pace_begin(&wb->pace, wb->list.nr, runs, wb->frees * c->sb.geo.seg_slots);
		lc_kick(&c->env.refill);
	}
	begun = jiffies;
	wb->hdd_failures = lc_doubt_failures(&c->doubt);
	how.max_row = lc_patience_row(&wb->patience, wb->list.nr);
	ret = lc_wbcopy_run(wb->copy, wb->list.items, wb->list.nr, &how);
	if (ret == -EINTR || ret == -EREMOTEIO || ret == -ENODATA) {
		lc_wb_keep_done(wb);
	} else if (!ret && wb->list.nr) {
		ret = lc_wb_flush(wb);
		if (!ret)
			lc_pace_end(&wb->pace, wb->list.nr, runs, jiffies - begun,
				    lc_wbcopy_backed_off(wb->copy));
	}
	if (!ret)
		ret = lc_wb_mark_clean(wb, b);
	sweep_on(wb, b, ret, collected, jiffies - begun);
	trace_lc_batch_end(c->env.dev, b->first, ret);
	return ret;
}

/* No slot to log a block again in: the next segment is for relogging only (D1, B5). */
static void relog_wait(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;

	lc_alloc_hold_writers(c->alloc);
	lc_kick(&c->env.refill);
	lc_refill_wait(c->refill);
	/* While a device is slow or fails, there may be space later. */
	if (lc_log_in_trouble(c->log) || lc_ssd_failed(&c->health) ||
	    READ_ONCE(c->ring->waiting) || lc_ring_blocked(c->ring))
		lc_patience_relogged(&wb->patience);
	if (lc_patience_relog(&wb->patience))
		lc_health_fail(&c->health, "no room to log lost blocks again");
	schedule_timeout_idle(1);
}

/*
 * A batch has ended.  Writes go on once the reserve is complete again: before, they would use
 * up what is left of it.  They go on in any case after ring->nr batches, because the log may be
 * full of blocks that hold the tail.
 */
static void relog_done(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;

	if (!READ_ONCE(c->alloc->writers_held))
		return;
	lc_alloc_keep_reserve(c->alloc);
	if (lc_ring_free(c->ring) < READ_ONCE(c->ring->reserve) &&
	    ++wb->relog_rounds < c->ring->nr)
		return;
	wb->relog_rounds = 0;
	lc_alloc_admit_writers(c->alloc);
	lc_kick(&c->env.unpark);
}

/*
 * Nothing is left to drain before the segments that are being filled, and the tail is short
 * of the next boundary.  Make a boundary if the volume is idle, or a drain waits for it.
 */
static void await_boundary(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;

	if (lc_env_idle(&c->env) || lc_ring_tail(c->ring) < READ_ONCE(wb->drain_to))
		lc_log_wait_durable(c->log, lc_lanes_close_used(c->lanes, true));
	wait_event_idle_timeout(wb->wait, must_stop(wb), HZ / 20);
}

static void run_batch(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;
	struct lc_wb_batch b;
	int ret;

	/* What is asked to be drained must not stay in an open segment. */
	if (lc_ring_tail(c->ring) < READ_ONCE(wb->drain_to) &&
	    !segment_drainable(c, lc_ring_tail(c->ring))) {
		ret = lc_log_wait_durable(c->log, lc_lanes_close_used(c->lanes, true));
		if (ret)
			return;
	}
	mutex_lock(&wb->batch_lock);
	ret = copy_batch(wb, &b);
	mutex_unlock(&wb->batch_lock);
	if (ret == -EINTR)
		return;
	if (ret == -EAGAIN) {
		relog_wait(wb);
		return;
	}
	if (ret) {
		note_failure(wb, ret);
		return;
	}
	lc_patience_relogged(&wb->patience);
	if (b.partial) {
		relog_done(wb);
		return;
	}
	ret = b.end > b.first ? lc_wb_move_tail(wb, &b) : 0;
	if (!ret || ret == -ENOENT)
		relog_done(wb);
	if (ret == -ENOENT) {
		lc_patience_success(&wb->patience);
		if (!wb->list.nr)
			await_boundary(wb);
		return;
	}
	if (b.end > b.first) {
		if (ret)
			note_tail_failure(wb, ret);
		else if (!b.shortened)	/* otherwise the next batch has the blocks that fail */
			lc_patience_success(&wb->patience);
		return;
	}
	lc_patience_success(&wb->patience);
	/* The oldest segment is still in RAM: its flush must come first. */
	if (lc_log_wait_durable(c->log, lc_lanes_close_used(c->lanes, lc_env_idle(&c->env))))
		return;
	if (!segment_drainable(c, b.first))
		wait_event_idle_timeout(wb->wait, must_stop(wb), HZ / 20);
}

static void set_state(struct lc_writeback *wb, bool running)
{
	const char *state = "idle";

	if (running && wb->patience.hdd)
		state = "retrying";
	else if (running)
		state = lc_ring_tail(wb->c->ring) < READ_ONCE(wb->drain_to) ? "draining" :
										 "running";
	else if (!READ_ONCE(wb->c->env.params.writeback))
		state = "off";
	WRITE_ONCE(wb->state, state);
	WRITE_ONCE(wb->working, running);
}

static int writeback_thread(void *data)
{
	struct lc_writeback *wb = data;
	bool run;
	int ret;

	while (!kthread_should_stop()) {
		if (!READ_ONCE(wb->paused)) {
			WRITE_ONCE(wb->quiesced, false);
			/* Pairs with pause(): it sees us not quiesced, or we see paused. */
			smp_mb();
		}
		ret = must_stop(wb) ? 0 : lc_wb_believe(wb);
		if (!ret && !must_stop(wb))
			ret = lc_wb_leave(wb);
		if (ret)
			note_tail_failure(wb, ret);
		run = !must_stop(wb) && should_run(wb);
		set_state(wb, run);
		if (run) {
			run_batch(wb);
			cond_resched();
			continue;
		}
		WRITE_ONCE(wb->quiesced, READ_ONCE(wb->paused));
		wake_up_all(&wb->wait);
		/* Wait until told, or a moment if it is only the idle clock that matters. */
		wait_event_idle_timeout(wb->wait, kthread_should_stop() ||
					READ_ONCE(wb->paused) != READ_ONCE(wb->quiesced) ||
					(!READ_ONCE(wb->paused) &&
					 (should_run(wb) || lc_wb_leaves(wb) ||
					  lc_wb_believes(wb))),
					READ_ONCE(wb->paused) ? MAX_SCHEDULE_TIMEOUT : HZ);
	}
	return 0;
}

/* --- interface ----------------------------------------------------------- */

struct lc_writeback *lc_writeback_create(struct lc_cache *c)
{
	struct lc_writeback *wb = kzalloc(sizeof(*wb), GFP_KERNEL);

	if (!wb)
		return NULL;
	wb->c = c;
	wb->paused = true;
	wb->believe_at = jiffies;
	wb->state = "idle";
	lc_pace_init(&wb->pace);
	init_waitqueue_head(&wb->wait);
	mutex_init(&wb->batch_lock);
	wb->header = (void *)__get_free_pages(GFP_KERNEL, 1);
	if (!wb->header)
		goto free_wb;
	wb->wq = alloc_workqueue("lc-wbcopy", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!wb->wq)
		goto free_header;
	if (lc_writeback_resize(wb, c->env.params.writeback_batch,
				c->env.params.writeback_depth))
		goto destroy_wq;
	lc_refill_attach(c->refill, &refill_ops, wb);
	wb->task = kthread_run(writeback_thread, wb, "lc-writeback");
	if (IS_ERR(wb->task))
		goto free_items;
	return wb;

free_items:
	lc_wbcopy_destroy(wb->copy);
	vfree(wb->list.items);
destroy_wq:
	destroy_workqueue(wb->wq);
free_header:
	free_pages((unsigned long)wb->header, 1);
free_wb:
	kfree(wb);
	return NULL;
}

void lc_writeback_destroy(struct lc_writeback *wb)
{
	if (!wb)
		return;
	kthread_stop(wb->task);
	lc_wbcopy_destroy(wb->copy);
	destroy_workqueue(wb->wq);
	vfree(wb->list.items);
	free_pages((unsigned long)wb->header, 1);
	kfree(wb);
}

int lc_writeback_resize(struct lc_writeback *wb, u32 batch, u32 depth)
{
	u32 max = max(batch, wb->c->sb.geo.seg_slots);
	struct lc_wb_item *items = __vmalloc(max * sizeof(*items), GFP_KERNEL);
	struct lc_wbcopy *copy = lc_wbcopy_create(wb->c, wb->wq, depth);

	if (!items || !copy) {
		vfree(items);
		lc_wbcopy_destroy(copy);
		return -ENOMEM;
	}
	atomic_inc(&wb->wanted);
	mutex_lock(&wb->batch_lock);
	atomic_dec(&wb->wanted);
	wb->sweep = (struct lc_wb_sweep) {};
	swap(wb->list.items, items);
	swap(wb->copy, copy);
	WRITE_ONCE(wb->list.max, max);
	mutex_unlock(&wb->batch_lock);
	vfree(items);
	lc_wbcopy_destroy(copy);
	return 0;
}

void lc_writeback_kick(struct lc_writeback *wb)
{
	wake_up_all(&wb->wait);
}

void lc_writeback_resume(struct lc_writeback *wb)
{
	WRITE_ONCE(wb->paused, false);
	wake_up_all(&wb->wait);
}

void lc_writeback_pause(struct lc_writeback *wb)
{
	WRITE_ONCE(wb->paused, true);
	/* Pairs with the thread: it sees paused, or we see it not quiesced. */
	smp_mb();
	wake_up_all(&wb->wait);
	lc_claims_wake(wb->c->claims);
	wait_event(wb->wait, READ_ONCE(wb->quiesced));
}

void lc_writeback_drain(struct lc_writeback *wb)
{
	lc_wb_drain(wb);
}

void lc_writeback_mode(struct lc_writeback *wb)
{
	if (!lc_writes_around(wb->c))
		lc_wb_open(wb->c);
	lc_writeback_kick(wb);
}

bool lc_writeback_left(const struct lc_writeback *wb)
{
	const struct lc_cache *c = wb->c;

	/* Pairs with leave.c. */
	return smp_load_acquire(&c->closed) && lc_ring_tail(c->ring) >= READ_ONCE(wb->left_at) &&
	       !lc_index_dirty(c->index);
}

struct lc_wb_list *lc_writeback_list(struct lc_writeback *wb)
{
	return &wb->list;
}

struct lc_wbcopy *lc_writeback_copy(struct lc_writeback *wb)
{
	return wb->copy;
}

void *lc_writeback_header(struct lc_writeback *wb)
{
	return wb->header;
}

const char *lc_writeback_state(struct lc_writeback *wb)
{
	return READ_ONCE(wb->state);
}

u64 lc_writeback_relogged(const struct lc_writeback *wb)
{
	return atomic64_read(&wb->relogged);
}
