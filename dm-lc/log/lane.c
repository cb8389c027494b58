// SPDX-License-Identifier: GPL-2.0-only
/*
 * One lane.  See lane.h, and record.h for what it opens and closes.
 */
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "log/alloc.h"
#include "log/lane.h"
#include "log/log.h"
#include "log/pool.h"
#include "log/record.h"
#include "log/submit.h"
#include "store/env.h"
#include "store/ring.h"
#include "store/trace.h"

struct lc_lane *lc_lane_create(const struct lc_lane *how, int node)
{
	struct lc_lane *lane = kzalloc_node(sizeof(*lane), GFP_KERNEL, node);

	if (!lane)
		return NULL;
	*lane = *how;
	spin_lock_init(&lane->lock);
	INIT_LIST_HEAD(&lane->ready);
	return lane;
}

void lc_lane_destroy(struct lc_lane *lane)
{
	kfree(lane);
}

void lc_lane_add_ready(struct lc_lane *lane, struct lc_buffer *buf)
{
	lc_buffer_make_ready(buf, lane);
	spin_lock(&lane->lock);
	lc_upper_lock_set(&buf->lane_lock, &lane->lock);
	list_add_tail(&buf->list, &lane->ready);
	WRITE_ONCE(lane->nr_ready, lane->nr_ready + 1);
	spin_unlock(&lane->lock);
}

void lc_lane_set_max_ready(struct lc_lane *lane, u32 nr)
{
	WRITE_ONCE(lane->max_ready, nr);
}

void lc_lane_put(struct lc_record *rec, struct bio_list *direct)
{
	if (lc_record_put(rec))
		lc_submit_record(rec->buf->lane->submit, rec, direct);
}

/* --- opening and closing, under lane->lock -------------------------------- */

/* The lane is done with its buffer; records may still be in flight. */
static void close_buffer(struct lc_lane *lane)
{
	struct lc_buffer *buf = lane->buf;

	lockdep_assert_held(&lane->lock);
	lane->buf = NULL;
	lc_log_close_buffer(lane->log, buf);
}

/* Nothing was put into the segment: it stays empty, and the buffer is for another one. */
static void return_buffer(struct lc_lane *lane)
{
	struct lc_buffer *buf = lane->buf;

	lockdep_assert_held(&lane->lock);
	lane->buf = NULL;
	lc_segment_drop_buffer(&buf->pool->ring->segments[buf->position]);
	list_add(&buf->list, &lane->ready);
	WRITE_ONCE(lane->nr_ready, lane->nr_ready + 1);
}

void lc_lane_close_record(struct lc_lane *lane, bool want_durable, struct list_head *closed)
{
	struct lc_record *rec = lane->open;

	lockdep_assert_held(&lane->lock);
	if (!rec)
		return;
	if (!lc_record_retract(rec)) {
		lc_log_append(lane->log, rec, want_durable);
		lc_lane_keep_closed(rec, closed);
	}
	WRITE_ONCE(lane->open, NULL);
}

void lc_lane_close_segment(struct lc_lane *lane, bool want_durable, struct list_head *closed)
{
	lockdep_assert_held(&lane->lock);
	lc_lane_close_record(lane, want_durable, closed);
	if (!lane->buf)
		return;
	if (lane->buf->nr_records)
		close_buffer(lane);
	else
		return_buffer(lane);
}

void lc_lane_stop(struct lc_lane *lane, struct list_head *closed)
{
	lockdep_assert_held(&lane->lock);
	lane->stopped = true;
	lc_lane_close_record(lane, true, closed);
}

static struct lc_record *open_record(struct lc_lane *lane, u8 type)
{
	struct lc_record *rec;

	lockdep_assert_held(&lane->lock);
	lane->incarnation = (lane->incarnation + 1) & 0x7fffffff;
	rec = lc_record_open(lane->buf, type, lane->incarnation, lc_submit_piece(lane->submit));
	if (rec)
		trace_lc_record_opened(lane->env->dev, lane->buf->segment, rec->first_slot);
	return rec;
}

void lc_lane_reopen(struct lc_lane *lane)
{
	struct lc_record *rec = NULL;

	lockdep_assert_held(&lane->lock);
	if (lane->buf && !lane->stopped) {
		rec = open_record(lane, LC_RECORD_DATA);
		if (!rec)
			close_buffer(lane);
	}
	/* Pairs with the acquire in try_reserve(): the record is set up. */
	smp_store_release(&lane->open, rec);
}

/* Begin the next segment.  Return: 0, or an error of lc_lane_open_next(). */
static int take_segment(struct lc_lane *lane, bool relog)
{
	struct lc_buffer *buf = list_first_entry_or_null(&lane->ready, struct lc_buffer, list);
	int ret;

	lockdep_assert_held(&lane->lock);
	if (!buf)
		return -EAGAIN;
	ret = lc_alloc_take(lane->alloc, lane->index, relog, buf);
	if (ret)
		return ret;
	list_del(&buf->list);
	WRITE_ONCE(lane->nr_ready, lane->nr_ready - 1);
	lane->buf = buf;
	return 0;
}

struct lc_record *lc_lane_open_next(struct lc_lane *lane, u8 type, bool relog, int *ret)
{
	struct lc_record *rec;

	lockdep_assert_held(&lane->lock);
	*ret = -EAGAIN;
	if (lane->stopped)
		return NULL;
	for (;;) {
		if (lane->buf) {
			rec = open_record(lane, type);
			if (rec) {
				*ret = 0;
				return rec;
			}
			close_buffer(lane);
		}
		*ret = take_segment(lane, relog);
		if (*ret)
			return NULL;
	}
}

/* A segment without a record is none to replay: log one that says nothing. */
static void log_nothing(struct lc_lane *lane, struct list_head *closed)
{
	const struct lc_entry_info nothing = { .type = LC_ENTRY_NONE };
	struct lc_record *rec = open_record(lane, LC_RECORD_RANGE);

	lockdep_assert_held(&lane->lock);
	lc_record_set_ranges(rec, &nothing, 1);
	lc_log_append(lane->log, rec, false);
	lc_lane_keep_closed(rec, closed);
}

int lc_lane_cede(struct lc_lane *lane, u32 least, struct lc_region *region,
		 struct list_head *closed)
{
	u32 seg_slots = 1u << lane->alloc->ring->slot_shift;
	int ret = 0;

	lockdep_assert_held(&lane->lock);
	if (lane->stopped || READ_ONCE(lane->alloc->writers_held))
		return -EAGAIN;
	lc_lane_close_record(lane, false, closed);
	if (lane->buf && lc_buffer_end(lane->buf) + least > seg_slots)
		close_buffer(lane);
	if (!lane->buf)
		ret = take_segment(lane, false);
	if (ret)
		return ret;
	if (!lane->buf->nr_records)
		log_nothing(lane, closed);
	*region = (struct lc_region){
		.segment = lane->buf->segment, .next = lc_buffer_end(lane->buf), .end = seg_slots,
	};
	WRITE_ONCE(lane->buf->end, region->next);
	lc_ring_fill(lane->alloc->ring, region->segment);
	close_buffer(lane);
	return 0;
}

/* --- writers --------------------------------------------------------------- */

/*
 * Replace @old, which is full, closed or NULL, as the open record.  Return: 0 or an error of
 * lc_lane_open_next().
 */
static int advance(struct lc_lane *lane, struct lc_record *old, bool relog)
{
	struct lc_alloc *alloc = lane->alloc;
	struct lc_record *rec;
	int ret;

	lc_hold();
	spin_lock(&lane->lock);
	if (lane->open != old) {
		spin_unlock(&lane->lock);
		lc_unhold();
		return 0;
	}
	if (old)
		lc_log_append(lane->log, old, false);
	rec = lc_lane_open_next(lane, LC_RECORD_DATA, relog, &ret);
	/* Pairs with the acquire in try_reserve(): the record is set up. */
	smp_store_release(&lane->open, rec);
	spin_unlock(&lane->lock);

	if (old)
		lc_lane_put(old, NULL);
	lc_unhold();
	if (READ_ONCE(lane->nr_ready) * 2 < READ_ONCE(lane->max_ready) ||
	    lc_alloc_ready(alloc) * 2 < READ_ONCE(alloc->max_ready))
		lc_kick(&lane->env->refill);
	return ret;
}

/* Of the open record only, which @rec gets. */
static int try_reserve(const struct lc_lane *lane, u32 want, bool relog, struct lc_record **rec,
		       struct lc_cursor *cur)
{
	const bool *refuse = relog ? NULL : &lane->alloc->writers_held;
	int ret;

	/* Until there is a reference, the record's buffer may be retired and freed. */
	rcu_read_lock();
	/* Pairs with the releases of lane->open. */
	*rec = smp_load_acquire(&lane->open);
	ret = *rec ? lc_record_get(*rec, want, refuse, cur) : -ESTALE;
	rcu_read_unlock();
	return ret;
}

int lc_lane_try_reserve(const struct lc_lane *lane, u32 want, struct lc_cursor *cur)
{
	struct lc_record *rec;

	return try_reserve(lane, want, false, &rec, cur);
}

int lc_lane_reserve(struct lc_lane *lane, u32 want, bool relog, struct lc_cursor *cur)
{
	struct lc_record *rec;
	int ret;

	for (;;) {
		ret = try_reserve(lane, want, relog, &rec, cur);
		if (ret != -ESTALE)
			return ret;
		ret = advance(lane, rec, relog);
		if (ret)
			return ret;
	}
}

u64 lc_lane_seal(struct lc_lane *lane, bool close_segment, bool direct)
{
	struct bio_list bios = BIO_EMPTY_LIST;
	struct lc_record *rec, *tmp;
	LIST_HEAD(closed);
	u64 seq;

	lc_hold();
	spin_lock(&lane->lock);
	rec = lane->open;
	close_segment &= !READ_ONCE(lane->alloc->writers_held);
	if (close_segment && lane->buf && (lane->buf->nr_records > 1 ||
					   (rec ? !lc_record_untouched(rec) :
						  lane->buf->nr_records))) {
		lc_lane_close_segment(lane, true, &closed);
	} else if (rec && lc_record_used(rec)) {
		lc_lane_close_record(lane, true, &closed);
		lc_lane_reopen(lane);
	}
	seq = lc_log_last_seq(lane->log);
	spin_unlock(&lane->lock);
	list_for_each_entry_safe(rec, tmp, &closed, link)
		lc_lane_put(rec, direct ? &bios : NULL);
	lc_unhold();
	lc_submit_bios(&bios);
	return seq;
}

bool lc_lane_needs_flush(const struct lc_lane *lane)
{
	struct lc_record *rec;
	bool needs_flush;

	rcu_read_lock();	/* as in try_reserve() */
	/* Pairs with the releases of lane->open. */
	rec = smp_load_acquire(&lane->open);
	needs_flush = rec && READ_ONCE(rec->needs_flush);
	rcu_read_unlock();
	return needs_flush;
}

u64 lc_lane_activity(const struct lc_lane *lane)
{
	struct lc_record *rec;
	u64 state;

	rcu_read_lock();	/* as in try_reserve() */
	/* Pairs with the releases of lane->open. */
	rec = smp_load_acquire(&lane->open);
	state = rec ? atomic64_read(&rec->state) : 0;
	rcu_read_unlock();
	return state;
}
