// SPDX-License-Identifier: GPL-2.0-only
/*
 * The head of the log: numbers for new segments, rounds, and what concerns all lanes.
 * See lane.h.
 */
#include <linux/minmax.h>
#include <linux/nodemask.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "lc.h"
#include "lane.h"
#include "log.h"
#include "record.h"
#include "segment.h"
#include "submit.h"

/*
 * At a turn each lane leaves the rest of its segment unused: half of one, if all write
 * alike.  So that costs one in 32.
 */
#define ROUND_SEGMENTS	16	/* for each lane */
#define ROUND_SHARE	16	/* one in so many of the ring, or if that is less */

/* --- all lanes at once ----------------------------------------------------- */

static void lock_all(struct lc_head *head)
{
	struct lc_core *core = head->core;
	u32 i;

	spin_lock(&head->turn_lock);
	for (i = 0; i < core->nr_lanes; i++) {
		spin_lock_nest_lock(&core->lanes[i]->lock, &head->turn_lock);
		__release(&core->lanes[i]->lock);	/* sparse cannot count loops */
	}
	__release(&head->turn_lock);
}

static void unlock_all(struct lc_head *head)
{
	struct lc_core *core = head->core;
	u32 i;

	for (i = core->nr_lanes; i--; ) {
		__acquire(&core->lanes[i]->lock);
		spin_unlock(&core->lanes[i]->lock);
	}
	__acquire(&head->turn_lock);
	spin_unlock(&head->turn_lock);
}

static void put_all(struct list_head *closed, struct bio_list *direct)
{
	struct lc_record *rec, *tmp;

	list_for_each_entry_safe(rec, tmp, closed, turn)
		lc_lane_put(rec, direct);
}

/* [all lanes locked] All that is open is closed: the next number is a cut (N1). */
static void cut(struct lc_head *head, bool want_durable, struct list_head *closed)
{
	struct lc_core *core = head->core;
	u32 i;

	for (i = 0; i < core->nr_lanes; i++)
		lc_lane_close_segment(core->lanes[i], want_durable, closed);
	spin_lock(&head->lock);
	head->cut = head->next;
	head->cut_seq = lc_log_last_seq(core->log) + 1;
	spin_unlock(&head->lock);
}

/* [all lanes locked] Number behind the last segment that anything was put into. */
static u64 used(const struct lc_head *head)
{
	const struct lc_core *core = head->core;
	u64 number = head->next;
	u32 i = 0;

	while (i < core->nr_lanes && number > head->start) {
		const struct lc_lane *lane = core->lanes[i++];

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

/* [all lanes locked] As above, but for nothing but segments without a record. */
static void cut_used(struct lc_head *head, struct list_head *closed)
{
	struct lc_core *core = head->core;
	u32 i;

	for (i = 0; i < core->nr_lanes; i++)
		lc_lane_close_record(core->lanes[i], true, closed);
	if (used(head) > head->cut) {
		cut(head, true, closed);
		return;
	}
	for (i = 0; i < core->nr_lanes; i++)
		lc_lane_reopen(core->lanes[i]);
}

/**
 * lc_head_used() - number of the first segment without a record, and all behind it
 * @core: the volume
 *
 * Process context, does not sleep.
 */
u64 lc_head_used(struct lc_core *core)
{
	u64 number;

	lock_all(core->head);
	number = used(core->head);
	unlock_all(core->head);
	return number;
}

/**
 * lc_head_turn() - begin the next round, if that is due
 * @head: the head
 * @relog: for what is logged again; others must not close what that is at work in (B5)
 *
 * Process context, does not sleep.  No lane is locked.
 */
void lc_head_turn(struct lc_head *head, bool relog)
{
	LIST_HEAD(closed);

	lc_hold();
	lock_all(head);
	if (head->next - head->cut >= head->round && (relog || !READ_ONCE(head->relog_wanted)))
		cut(head, false, &closed);
	unlock_all(head);
	put_all(&closed, NULL);
	lc_unhold();
}

/**
 * lc_head_seal() - close the open records that hold anything
 * @core: the volume
 * @close_segments: put nothing more into their segments either, if relogging does not
 *	need one (B5)
 *
 * Process context, does not sleep.
 *
 * Return: the highest seq given so far.  Every write completed before the call
 * is in a record of that seq or a lower one (N3).
 */
u64 lc_head_seal(struct lc_core *core, bool close_segments)
{
	struct lc_head *head = core->head;
	LIST_HEAD(closed);
	u64 seq = 0;
	u32 i;

	if (close_segments && head->round) {
		lc_hold();
		lock_all(head);
		if (!READ_ONCE(head->relog_wanted))
			cut_used(head, &closed);
		unlock_all(head);
		put_all(&closed, NULL);
		lc_unhold();
	}
	for (i = 0; i < core->nr_lanes; i++)
		seq = lc_lane_seal(core->lanes[i], close_segments && !head->round, false);
	return seq;
}

/* Return: the highest seq given when the last lane was looked at. */
static u64 close_open(struct lc_core *core, bool all, bool direct)
{
	u64 seq = 0;
	u32 i;

	for (i = 0; i < core->nr_lanes; i++) {
		struct lc_lane *lane = core->lanes[i];

		/* Not after it is sent: by then others may have got higher ones. */
		if (all || lc_lane_owes(lane))
			seq = lc_lane_seal(lane, false, direct);
		else
			seq = lc_log_last_seq(core->log);
	}
	return seq;
}

/**
 * lc_head_flush() - close what a FLUSH has to make durable
 * @core: the volume
 * @direct: whoever sent the FLUSH may submit others
 *
 * Process context, of the bio's sender or of a worker.  With @direct, may sleep as
 * submit_bio() does.  Return: the highest seq given so far.  Every write without FUA that
 * completed before the call is in a record of that seq or a lower one (N3, G7).
 */
u64 lc_head_flush(struct lc_core *core, bool direct)
{
	return close_open(core, false, direct);
}

/**
 * lc_head_commit() - close all open records on behalf of FUA writes that are in them
 * @core: the volume
 * @direct: as for lc_head_flush()
 *
 * Context and return as lc_head_flush(), of every write whose data is in a lane.
 */
u64 lc_head_commit(struct lc_core *core, bool direct)
{
	return close_open(core, true, direct);
}

/**
 * lc_head_stop() - put nothing more into any lane, ever
 * @core: the volume
 *
 * Process context, does not sleep.  Writers that have slots already go on; the
 * records they have them in are closed, so the last one hands them to the log.
 */
void lc_head_stop(struct lc_core *core)
{
	LIST_HEAD(closed);
	u32 i;

	lc_hold();
	lock_all(core->head);
	for (i = 0; i < core->nr_lanes; i++) {
		core->lanes[i]->stopped = true;
		lc_lane_close_record(core->lanes[i], true, &closed);
	}
	unlock_all(core->head);
	put_all(&closed, NULL);
	lc_unhold();
}

/* A value that changes whenever something is put into a lane. */
u64 lc_head_mark(const struct lc_core *core)
{
	u64 mark = 0;
	u32 i;

	for (i = 0; i < core->nr_lanes; i++)
		mark = mark * 31 + lc_lane_mark(core->lanes[i]);
	return mark;
}

/* [all lanes locked, nothing open] Log the ranges in the first lane.  Return: as below. */
static int append_ranges(struct lc_core *core, const struct lc_entry_info *ranges, u32 nr,
			 struct list_head *closed)
{
	struct lc_lane *lane = core->lanes[0];
	struct lc_record *rec;
	int ret;
	u32 i;

	rec = lc_lane_open_next(lane, LC_RECORD_RANGE, false, &ret);
	if (ret == -EBUSY) {
		cut(core->head, true, closed);
		rec = lc_lane_open_next(lane, LC_RECORD_RANGE, false, &ret);
	}
	if (!rec)
		return -EAGAIN;
	for (i = 0; i < nr; i++)
		lc_entry_encode(lc_record_image(rec), i, &ranges[i]);
	rec->nr_ranges = nr;
	lc_log_append(core->log, rec, true);
	list_add_tail(&rec->turn, closed);
	return 0;
}

/**
 * lc_head_append_ranges() - log a RANGE record
 * @core: the volume
 * @ranges: its entries, of types LC_ENTRY_RANGE_*
 * @nr: how many, 1..LC_RECORD_ENTRIES
 *
 * Process context, one caller at a time, who waits for the record: it is sent from here, and so
 * this may sleep as submit_bio() does.  The caller has made sure that every earlier record is
 * sealed (L12), and drops what it covers when it is durable.
 * In each lane, copies from head->bounds[] on are newer, others are older (N4).
 *
 * Return: 0 or -EAGAIN: no buffer, or it is for relogging (B5).
 */
int lc_head_append_ranges(struct lc_core *core, const struct lc_entry_info *ranges, u32 nr)
{
	struct bio_list bios = BIO_EMPTY_LIST;
	struct lc_head *head = core->head;
	LIST_HEAD(closed);
	int ret = -EAGAIN;
	u32 i;

	lc_hold();
	lock_all(head);
	if (!READ_ONCE(head->relog_wanted)) {
		for (i = 0; i < core->nr_lanes; i++)
			lc_lane_close_record(core->lanes[i], true, &closed);
		ret = append_ranges(core, ranges, nr, &closed);
		for (i = 0; i < core->nr_lanes; i++) {
			const struct lc_buffer *buf = core->lanes[i]->buf;

			head->bounds[i].segment = buf ? buf->segment : head->next;
			head->bounds[i].slot = buf ? lc_buffer_end(buf) : 0;
			lc_lane_reopen(core->lanes[i]);
		}
	}
	unlock_all(head);
	put_all(&closed, &bios);
	lc_unhold();
	lc_submit_bios(&bios);
	return ret;
}

/* --- numbers ---------------------------------------------------------------- */

/**
 * lc_head_add() - a segment is ready to be opened
 * @head: the head
 * @number: the one behind the last; evicted, and no read is in flight there
 */
void lc_head_add(struct lc_head *head, u64 number)
{
	spin_lock(&head->lock);
	WRITE_ONCE(head->end, number + 1);
	spin_unlock(&head->lock);
}

/*
 * [lock] The buffer gets the next number.  Writeback looks without a lock at what is below
 * head->next and has no buffer: that must not be this segment before it has one.
 */
static void take(struct lc_head *head, struct lc_lane *lane, struct lc_buffer *buf)
{
	struct lc_ring *ring = lane->core->ring;
	struct lc_segment *seg;
	u64 cut_seq = 0;

	WRITE_ONCE(buf->segment, head->next);
	buf->position = lc_ring_position(ring, buf->segment);
	buf->cut = head->round ? head->cut : 0;
	if (!head->round)
		cut_seq = lc_log_last_seq(lane->core->log) + 1;
	else if (head->next == head->cut)
		cut_seq = head->cut_seq;
	seg = &ring->segments[buf->position];
	/* Before anything is written there: see lc_read_end(). */
	WRITE_ONCE(seg->number, buf->segment);
	seg->cut_seq = cut_seq;
	seg->lane = lane->index;
	/* Before any slot of it can be mapped (B2). */
	rcu_assign_pointer(seg->buf, buf);
	/* Pairs with segment_settled(). */
	smp_store_release(&head->next, head->next + 1);
}

/**
 * lc_head_take() - give a buffer its segment
 * @lane: locked, nothing of it is open
 * @relog: for what is logged again
 * @buf: ready
 *
 * Return: 0, -EAGAIN: none is ready, or it is for relogging (B5), -EBUSY: the next round
 * must begin first (N2).
 */
int lc_head_take(struct lc_lane *lane, bool relog, struct lc_buffer *buf)
{
	struct lc_head *head = lane->core->head;
	int ret = -EAGAIN;

	spin_lock(&head->lock);
	if (head->next != head->end && (relog || !READ_ONCE(head->relog_wanted))) {
		ret = head->round && head->next - head->cut >= head->round ? -EBUSY : 0;
		if (!ret)
			take(head, lane, buf);
	}
	spin_unlock(&head->lock);
	return ret;
}

/**
 * lc_head_cut_seq() - what seq must replay start with if the tail moves to a segment?
 * @core: the volume
 * @number: segment number, not below the tail; all below it are closed
 *
 * Process context, does not sleep.  Return: the seq, or 0: the number is not a cut, or of
 * an earlier life and not known to be one.
 */
u64 lc_head_cut_seq(struct lc_core *core, u64 number)
{
	struct lc_head *head = core->head;
	const struct lc_segment *seg =
		&core->ring->segments[lc_ring_position(core->ring, number)];
	u64 seq = 0;

	spin_lock(&head->lock);
	if (seg->number == number)
		seq = seg->cut_seq;
	else if (head->round && number == head->cut)
		seq = head->cut_seq;
	else if (!head->round && number >= head->next)
		/* Nothing is open, and opening needs this lock: the next record is in it. */
		seq = lc_log_last_seq(core->log) + 1;
	spin_unlock(&head->lock);
	return seq;
}

/* --- cursors ---------------------------------------------------------------- */

/**
 * lc_cursor_release() - give unused slots back, and have the record written if that was all
 * @cur: the cursor
 *
 * Process context, does not sleep.
 */
void lc_cursor_release(struct lc_cursor *cur)
{
	struct lc_record *rec = cur->rec;

	if (lc_cursor_return(cur))
		lc_submit_record(rec->buf->lane->core->submit, rec, NULL);
}

/*
 * The slot is of another lane's segment, of this life.  If that has no buffer its record is
 * durable, so it has a lower seq than ours, which is not even written (B2).  Else its record
 * has been lane->open before it was mapped there: if it is not any more it was closed, and
 * has its seq; so it is older if ours is still open after that.
 */
static enum lc_order compare_lanes(const struct lc_cursor *cur, const struct lc_segment *seg,
				   u32 slot, struct lc_cursor *other)
{
	const struct lc_lane *lane = cur->rec->buf->lane->core->lanes[seg->lane];
	struct lc_record *rec;
	bool joined;

	if (!rcu_access_pointer(seg->buf))
		return LC_ORDER_OLDER;
	rcu_read_lock();	/* as in lane_reserve() */
	/* Pairs with the releases of lane->open; our own state is read behind it. */
	rec = smp_load_acquire(&lane->open);
	joined = rec && lc_record_join(rec, seg->number, slot, NULL);
	rcu_read_unlock();
	if (joined) {
		*other = (struct lc_cursor) { .rec = rec };
		lc_record_owe(rec, cur);
		return LC_ORDER_OPEN;
	}
	return lc_record_closed(cur->rec) ? LC_ORDER_NEWER : LC_ORDER_OLDER;
}

/**
 * lc_cursor_join() - get a reference on the record that holds a mapped slot, if it is open
 * @core: the volume
 * @slot: slot number, over the whole SSD
 * @cur: gets the record, without slots of its own; owes is set
 *
 * Under the bucket lock of the block mapped there: the open record is the newest copy's, and
 * stays it.  Not while writeback needs the reserve, as for who wants a slot (B5).
 * Return: whether it is open; the block is to be overwritten there (B6).
 */
bool lc_cursor_join(const struct lc_core *core, u32 slot, struct lc_cursor *cur)
{
	const struct lc_segment *seg = lc_ring_segment(core->ring, slot);
	struct lc_record *rec;
	bool joined;

	/* With a buffer it is a segment of this life, and so knows its lane. */
	if (!rcu_access_pointer(seg->buf))
		return false;
	rcu_read_lock();	/* as in lane_reserve() */
	/* Pairs with the releases of lane->open. */
	rec = smp_load_acquire(&core->lanes[seg->lane]->open);
	joined = rec && lc_record_join(rec, seg->number, lc_ring_slot_in_segment(core->ring, slot),
				    &core->head->relog_wanted);
	rcu_read_unlock();
	if (!joined)
		return false;
	cur->rec = rec;
	cur->next = 0;
	cur->end = 0;
	lc_record_owe(rec, cur);
	return true;
}

/**
 * lc_cursor_compare() - is a mapped slot older than what the cursor would write?
 * @cur: the cursor
 * @slot: slot number, over the whole SSD
 * @other: with LC_ORDER_OPEN gets a reference on the record that holds the slot, without
 *	slots of its own; to be released
 *
 * Under the bucket lock of the block mapped there.  The cursor's record may have
 * been closed since, and the block written to a later one: the cursor's slot
 * would lose against it at replay.
 */
enum lc_order lc_cursor_compare(const struct lc_cursor *cur, u32 slot, struct lc_cursor *other)
{
	const struct lc_buffer *buf = cur->rec->buf;
	const struct lc_core *core = buf->lane->core;
	const struct lc_segment *seg = lc_ring_segment(core->ring, slot);
	u32 in_segment = lc_ring_slot_in_segment(core->ring, slot);

	if (seg->number == buf->segment) {
		if (lc_record_owns(cur->rec, in_segment))
			return LC_ORDER_OWN;
		return in_segment > cur->rec->first_slot ? LC_ORDER_NEWER : LC_ORDER_OLDER;
	}
	if (core->nr_lanes > 1 && seg->number >= core->head->start && seg->lane != buf->home)
		return compare_lanes(cur, seg, in_segment, other);
	/* Within a lane, records get their seqs in the order of their places. */
	return seg->number > buf->segment ? LC_ORDER_NEWER : LC_ORDER_OLDER;
}

/* --- life -------------------------------------------------------------------- */

/* Segments from one cut to the next in what earlier lives left. */
static u64 longest_round(const struct lc_core *core, u64 head)
{
	u64 cut = core->sb.tail_segment, longest = 0, n;

	if (!(core->sb.incompat & LC_INCOMPAT_LANES))
		return 0;
	for (n = cut + 1; n <= head; n++) {
		const struct lc_segment *seg =
			&core->ring->segments[lc_ring_position(core->ring, n)];

		if (n == head || (seg->number == n && seg->cut_seq)) {
			longest = max(longest, n - cut);
			cut = n;
		}
	}
	return longest;
}

/**
 * lc_head_start() - a life begins
 * @core: the volume; the ring is started, cuts of earlier lives are known
 * @segment: number of its first segment
 * @next_seq: first seq
 */
void lc_head_start(struct lc_core *core, u64 segment, u64 next_seq)
{
	struct lc_head *head = core->head;

	spin_lock(&head->lock);
	head->start = segment;
	head->next = segment;
	head->end = segment;
	head->cut = segment;
	head->cut_seq = next_seq;
	spin_unlock(&head->lock);
	/* All of a round may have to be logged again before the tail can pass it (D1). */
	lc_ring_keep(core->ring, longest_round(core, segment), head->round);
}

/* Whose lane is a node's?  With fewer lanes some share one, with more it goes by task. */
static void assign_nodes(struct lc_core *core)
{
	u32 i = 0;
	int node;

	for (i = 0; i < core->nr_lanes; i++)
		core->pool->homes[i].node = NUMA_NO_NODE;
	core->lanes_by_task = core->nr_lanes > num_node_state(N_CPU);
	if (core->lanes_by_task)
		return;
	for (i = 0; i < nr_node_ids; i++)
		core->lane_of_node[i] = i % core->nr_lanes;
	i = 0;
	for_each_node_state(node, N_CPU) {
		core->lane_of_node[node] = i % core->nr_lanes;
		if (i < core->nr_lanes)
			core->pool->homes[i].node = node;
		i++;
	}
}

/**
 * lc_head_create() - allocate head and lanes
 * @core: the volume, with ring and pool
 * @nr_lanes: as many as the pool has homes
 *
 * May sleep.  Stretches of segments without a record are at most twice as long as there
 * are lanes: what each had opened at a turn, and behind it; that is what lane_limit must
 * allow (lc_meta_begin_epoch()).  Return: 0 or -ENOMEM.
 */
int lc_head_create(struct lc_core *core, u32 nr_lanes)
{
	struct lc_head *head = kzalloc(sizeof(*head), GFP_KERNEL);
	u32 i;

	core->head = head;
	core->nr_lanes = nr_lanes;
	core->lanes = kcalloc(nr_lanes, sizeof(*core->lanes), GFP_KERNEL);
	core->lane_of_node = kcalloc(nr_node_ids, sizeof(*core->lane_of_node), GFP_KERNEL);
	if (!head || !core->lanes || !core->lane_of_node)
		return -ENOMEM;
	head->core = core;
	head->max_ready = 1;
	head->most_ready = 1;
	spin_lock_init(&head->turn_lock);
	spin_lock_init(&head->lock);
	if (nr_lanes > 1)
		head->round = min_t(u64, ROUND_SEGMENTS * nr_lanes,
				    div_u64(core->ring->nr, ROUND_SHARE));
	head->bounds = kcalloc(nr_lanes, sizeof(*head->bounds), GFP_KERNEL);
	if (!head->bounds)
		return -ENOMEM;
	assign_nodes(core);
	for (i = 0; i < nr_lanes; i++) {
		core->lanes[i] = lc_lane_create(core, i);
		if (!core->lanes[i])
			return -ENOMEM;
	}
	return 0;
}

void lc_head_destroy(struct lc_core *core)
{
	u32 i;

	for (i = 0; core->lanes && i < core->nr_lanes; i++)
		lc_lane_destroy(core->lanes[i]);
	if (core->head)
		kfree(core->head->bounds);
	kfree(core->lane_of_node);
	kfree(core->lanes);
	kfree(core->head);
}
