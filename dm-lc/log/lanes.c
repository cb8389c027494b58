// SPDX-License-Identifier: GPL-2.0-only
/* What concerns all lanes.  See lanes.h. */
#include <linux/nodemask.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "log/alloc.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/submit.h"
#include "store/env.h"
#include "store/ring.h"

/* --- all lanes at once ----------------------------------------------------- */

static void lock_all(struct lc_lanes *lanes)
{
	u32 i;

	spin_lock(&lanes->all_lock);
	for (i = 0; i < lanes->nr; i++) {
		spin_lock_nest_lock(&lanes->lane[i]->lock, &lanes->all_lock);
		__release(&lanes->lane[i]->lock);	/* sparse cannot count loops */
	}
	__release(&lanes->all_lock);
}

static void unlock_all(struct lc_lanes *lanes)
{
	u32 i;

	for (i = lanes->nr; i--; ) {
		__acquire(&lanes->lane[i]->lock);
		spin_unlock(&lanes->lane[i]->lock);
	}
	__acquire(&lanes->all_lock);
	spin_unlock(&lanes->all_lock);
}

static void put_all(struct list_head *closed, struct bio_list *direct)
{
	struct lc_record *rec, *tmp;

	list_for_each_entry_safe(rec, tmp, closed, link)
		lc_lane_put(rec, direct);
}

/* [all lanes locked] Close all that is open: the next number is a boundary (AL1). */
static void set_boundary(struct lc_lanes *lanes, bool want_durable, struct list_head *closed)
{
	u32 i;

	lockdep_assert_held(&lanes->all_lock);
	for (i = 0; i < lanes->nr; i++)
		lc_lane_close_segment(lanes->lane[i], want_durable, closed);
	lc_alloc_set_boundary(lanes->alloc);
}

/* [all lanes locked] Number after the last segment that anything was put into. */
static u64 used(const struct lc_lanes *lanes)
{
	u64 number = lanes->alloc->next;
	u32 i = 0;

	lockdep_assert_held(&lanes->all_lock);
	while (i < lanes->nr && number > lanes->ring->life_start) {
		const struct lc_lane *lane = lanes->lane[i++];

		if (!lane->buf || lane->buf->segment != number - 1)
			continue;
		if (lane->open ? lane->buf->nr_records > 1 || !lc_record_untouched(lane->open) :
				 lane->buf->nr_records)
			break;
		number--;
		i = 0;
	}
	return number;
}

/* [all lanes locked] As set_boundary(), if any segment since the last boundary holds a record. */
static void set_boundary_if_used(struct lc_lanes *lanes, struct list_head *closed)
{
	u32 i;

	lockdep_assert_held(&lanes->all_lock);
	for (i = 0; i < lanes->nr; i++)
		lc_lane_close_record(lanes->lane[i], true, closed);
	if (used(lanes) > lanes->alloc->boundary) {
		set_boundary(lanes, true, closed);
		return;
	}
	for (i = 0; i < lanes->nr; i++)
		lc_lane_reopen(lanes->lane[i]);
}

u64 lc_lanes_used(struct lc_lanes *lanes)
{
	u64 number;

	lock_all(lanes);
	number = used(lanes);
	unlock_all(lanes);
	return number;
}

/*
 * Begin the next round, if that is due.  @relog: for what is logged again; no other caller may
 * close the segment that is used for that (B5).  No lane is locked: lockdep reports the wrong order
 * if one is.
 */
static void new_round(struct lc_lanes *lanes, bool relog)
{
	LIST_HEAD(closed);

	lc_hold();
	lock_all(lanes);
	if (lc_alloc_round_due(lanes->alloc, relog))
		set_boundary(lanes, false, &closed);
	unlock_all(lanes);
	put_all(&closed, NULL);
	lc_unhold();
}

u64 lc_lanes_close_used(struct lc_lanes *lanes, bool close_segments)
{
	LIST_HEAD(closed);
	u64 seq = 0;
	u32 i;

	if (close_segments && lanes->alloc->round_len) {
		lc_hold();
		lock_all(lanes);
		if (!READ_ONCE(lanes->alloc->writers_held))
			set_boundary_if_used(lanes, &closed);
		unlock_all(lanes);
		put_all(&closed, NULL);
		lc_unhold();
	}
	for (i = 0; i < lanes->nr; i++)
		seq = lc_lane_seal(lanes->lane[i],
				   close_segments && !lanes->alloc->round_len, false);
	return seq;
}

/* Return: the highest seq given when the last lane was looked at. */
static u64 close_open(struct lc_lanes *lanes, bool all, bool direct)
{
	u64 seq = 0;
	u32 i;

	for (i = 0; i < lanes->nr; i++) {
		struct lc_lane *lane = lanes->lane[i];

		/* lc_lane_seal() reads the seq before it sends: later, others may have got more. */
		if (all || lc_lane_needs_flush(lane))
			seq = lc_lane_seal(lane, false, direct);
		else
			seq = lc_log_last_seq(lanes->log);
	}
	return seq;
}

u64 lc_lanes_close_for_flush(struct lc_lanes *lanes, bool direct)
{
	return close_open(lanes, false, direct);
}

u64 lc_lanes_close_all(struct lc_lanes *lanes, bool direct)
{
	return close_open(lanes, true, direct);
}

void lc_lanes_stop(struct lc_lanes *lanes)
{
	LIST_HEAD(closed);
	u32 i;

	lc_hold();
	lock_all(lanes);
	for (i = 0; i < lanes->nr; i++)
		lc_lane_stop(lanes->lane[i], &closed);
	unlock_all(lanes);
	put_all(&closed, NULL);
	lc_unhold();
}

u64 lc_lanes_activity(const struct lc_lanes *lanes)
{
	u64 mark = 0;
	u32 i;

	for (i = 0; i < lanes->nr; i++)
		mark = mark * 31 + lc_lane_activity(lanes->lane[i]);
	return mark;
}

/* [all lanes locked, nothing open] Log the ranges in the first lane.  Return: as below. */
static int append_ranges(struct lc_lanes *lanes, const struct lc_entry_info *ranges, u32 nr,
			 struct list_head *closed)
{
	struct lc_lane *lane = lanes->lane[0];
	struct lc_record *rec;
	int ret;

	lockdep_assert_held(&lanes->all_lock);
	rec = lc_lane_open_next(lane, LC_RECORD_RANGE, false, &ret);
	if (ret == -EBUSY) {
		set_boundary(lanes, true, closed);
		rec = lc_lane_open_next(lane, LC_RECORD_RANGE, false, &ret);
	}
	if (!rec)
		return -EAGAIN;
	lc_record_set_ranges(rec, ranges, nr);
	lc_log_append(lanes->log, rec, true);
	lc_lane_keep_closed(rec, closed);
	return 0;
}

int lc_lanes_append_ranges(struct lc_lanes *lanes, const struct lc_entry_info *ranges, u32 nr)
{
	struct bio_list bios = BIO_EMPTY_LIST;
	struct lc_alloc *alloc = lanes->alloc;
	LIST_HEAD(closed);
	int ret = -EAGAIN;
	u32 i;

	lc_hold();
	lock_all(lanes);
	if (!READ_ONCE(alloc->writers_held)) {
		for (i = 0; i < lanes->nr; i++)
			lc_lane_close_record(lanes->lane[i], true, &closed);
		ret = append_ranges(lanes, ranges, nr, &closed);
		for (i = 0; i < lanes->nr; i++) {
			const struct lc_buffer *buf = lanes->lane[i]->buf;

			lanes->bounds[i].segment = buf ? buf->segment : alloc->next;
			lanes->bounds[i].slot = buf ? lc_buffer_end(buf) : 0;
			lc_lane_reopen(lanes->lane[i]);
		}
	}
	unlock_all(lanes);
	put_all(&closed, &bios);
	lc_unhold();
	lc_submit_bios(&bios);
	return ret;
}

/* --- writers ---------------------------------------------------------------- */

static int reserve_in_round(struct lc_lanes *lanes, struct lc_lane *lane, u32 want, bool relog,
			    struct lc_cursor *cur)
{
	int ret;

	while ((ret = lc_lane_reserve(lane, want, relog, cur)) == -EBUSY)
		new_round(lanes, relog);
	return ret;
}

int lc_lanes_reserve(struct lc_lanes *lanes, struct lc_lane *lane, u32 want,
		     struct lc_cursor *cur)
{
	return reserve_in_round(lanes, lane, want, false, cur);
}

int lc_lanes_relog(struct lc_lanes *lanes, struct lc_cursor *cur)
{
	return reserve_in_round(lanes, lanes->lane[0], 1, true, cur);
}

static int try_cede(struct lc_lane *lane, u32 least, struct lc_region *region)
{
	LIST_HEAD(closed);
	int ret;

	lc_hold();
	spin_lock(&lane->lock);
	ret = lc_lane_cede(lane, least, region, &closed);
	spin_unlock(&lane->lock);
	put_all(&closed, NULL);
	lc_unhold();
	return ret;
}

int lc_lanes_cede(struct lc_lanes *lanes, u32 least, struct lc_region *region)
{
	struct lc_lane *lane = lc_lanes_here(lanes);
	int ret;

	while ((ret = try_cede(lane, least, region)) == -EBUSY)
		new_round(lanes, false);
	lc_kick(&lane->env->refill);
	return ret;
}

/* --- cursors ---------------------------------------------------------------- */

void lc_cursor_release(struct lc_cursor *cur)
{
	struct lc_record *rec = cur->rec;

	if (lc_cursor_return(cur))
		lc_submit_record(rec->buf->lane->submit, rec, NULL);
}

/*
 * The slot is in a segment that another lane has opened in this life.  If the segment has no
 * buffer, the slot's record is durable, so it has a lower seq than ours, which is not written yet
 * (B2).  Otherwise that record was lane->open before the slot was mapped.  If it is not lane->open
 * any more, it was closed and has its seq, so it is older if our record is still open after that.
 */
static enum lc_order compare_lanes(const struct lc_cursor *cur, const struct lc_segment *seg,
				   u32 slot, struct lc_cursor *other)
{
	const struct lc_lane *lane = cur->rec->buf->lane->lanes->lane[seg->lane];
	struct lc_record *rec;
	bool joined;

	if (!rcu_access_pointer(seg->buf))
		return LC_ORDER_OLDER;
	rcu_read_lock();	/* as in try_reserve() */
	/* Pairs with the releases of lane->open; the state of our own record is read after it. */
	rec = smp_load_acquire(&lane->open);
	joined = rec && lc_record_join(rec, seg->number, slot, NULL);
	rcu_read_unlock();
	if (joined) {
		*other = (struct lc_cursor) { .rec = rec };
		lc_record_set_needs_flush(rec, cur);
		return LC_ORDER_OPEN;
	}
	return lc_record_closed(cur->rec) ? LC_ORDER_NEWER : LC_ORDER_OLDER;
}

bool lc_cursor_join(const struct lc_lanes *lanes, u32 slot, struct lc_cursor *cur)
{
	const struct lc_segment *seg = lc_ring_segment(lanes->ring, slot);
	struct lc_record *rec;
	bool joined;

	/* With a buffer it is a segment of this life, and so knows its lane. */
	if (!rcu_access_pointer(seg->buf))
		return false;
	rcu_read_lock();	/* as in try_reserve() */
	/* Pairs with the releases of lane->open. */
	rec = smp_load_acquire(&lanes->lane[seg->lane]->open);
	joined = rec && lc_record_join(rec, seg->number, lc_ring_slot_in_segment(lanes->ring, slot),
				    &lanes->alloc->writers_held);
	rcu_read_unlock();
	if (!joined)
		return false;
	cur->rec = rec;
	cur->next = 0;
	cur->end = 0;
	lc_record_set_needs_flush(rec, cur);
	return true;
}

enum lc_order lc_cursor_compare(const struct lc_cursor *cur, u32 slot, struct lc_cursor *other)
{
	const struct lc_buffer *buf = cur->rec->buf;
	const struct lc_lanes *lanes = buf->lane->lanes;
	const struct lc_segment *seg = lc_ring_segment(lanes->ring, slot);
	u32 in_segment = lc_ring_slot_in_segment(lanes->ring, slot);

	if (seg->number == buf->segment) {
		if (lc_record_owns(cur->rec, in_segment))
			return LC_ORDER_OWN;
		return in_segment > cur->rec->first_slot ? LC_ORDER_NEWER : LC_ORDER_OLDER;
	}
	if (lanes->nr > 1 && seg->number >= lanes->ring->life_start && seg->lane != buf->lane_pool)
		return compare_lanes(cur, seg, in_segment, other);
	/* Within a lane, records get their seqs in the order of their places. */
	return seg->number > buf->segment ? LC_ORDER_NEWER : LC_ORDER_OLDER;
}

/* --- life -------------------------------------------------------------------- */

/* Give each node a lane.  With fewer lanes than nodes some share one, with more it goes by task. */
static void assign_nodes(struct lc_lanes *lanes, struct lc_pool *pool)
{
	u32 i = 0;
	int node;

	for (i = 0; i < lanes->nr; i++)
		lc_pool_set_node(pool, i, NUMA_NO_NODE);
	lanes->by_task = lanes->nr > num_node_state(N_CPU);
	if (lanes->by_task)
		return;
	for (i = 0; i < nr_node_ids; i++)
		lanes->lane_of_node[i] = i % lanes->nr;
	i = 0;
	for_each_node_state(node, N_CPU) {
		lanes->lane_of_node[node] = i % lanes->nr;
		if (i < lanes->nr)
			lc_pool_set_node(pool, i, node);
		i++;
	}
}

/* @how: what each works with; its index is set here.  Return: 0, or -ENOMEM: then there is none. */
static int create_each(struct lc_lanes *lanes, struct lc_lane *how, const struct lc_pool *pool)
{
	u32 i;

	for (i = 0; i < lanes->nr; i++) {
		how->index = i;
		lanes->lane[i] = lc_lane_create(how, pool->lane_pools[i].node);
		if (!lanes->lane[i])
			goto destroy;
	}
	return 0;

destroy:
	while (i--)
		lc_lane_destroy(lanes->lane[i]);
	return -ENOMEM;
}

struct lc_lanes *lc_lanes_create(struct lc_env *env, struct lc_alloc *alloc, struct lc_log *log,
				 struct lc_submit *submit, struct lc_pool *pool)
{
	struct lc_lanes *lanes = kzalloc(struct_size(lanes, lane, pool->nr_lane_pools), GFP_KERNEL);
	struct lc_lane how = {
		.lanes = lanes, .env = env, .alloc = alloc, .log = log, .submit = submit,
	};

	if (!lanes)
		return NULL;
	lanes->alloc = alloc;
	lanes->log = log;
	lanes->submit = submit;
	lanes->ring = pool->ring;
	lanes->nr = pool->nr_lane_pools;
	spin_lock_init(&lanes->all_lock);
	lc_upper_lock_set(&alloc->all_lock, &lanes->all_lock);
	lanes->lane_of_node = kcalloc(nr_node_ids, sizeof(*lanes->lane_of_node), GFP_KERNEL);
	if (!lanes->lane_of_node)
		goto free_lanes;
	lanes->bounds = kcalloc(lanes->nr, sizeof(*lanes->bounds), GFP_KERNEL);
	if (!lanes->bounds)
		goto free_nodes;
	assign_nodes(lanes, pool);
	if (create_each(lanes, &how, pool))
		goto free_bounds;
	return lanes;

free_bounds:
	kfree(lanes->bounds);
free_nodes:
	kfree(lanes->lane_of_node);
free_lanes:
	kfree(lanes);
	return NULL;
}

void lc_lanes_destroy(struct lc_lanes *lanes)
{
	u32 i;

	if (!lanes)
		return;
	for (i = 0; i < lanes->nr; i++)
		lc_lane_destroy(lanes->lane[i]);
	kfree(lanes->bounds);
	kfree(lanes->lane_of_node);
	kfree(lanes);
}
