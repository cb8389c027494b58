// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records and the lane.  See buffer.h for lives and invariants.
 *
 * The fast path of a writer is one cmpxchg to reserve slots together with a
 * reference, and one atomic to let go.  Everything else (closing a record,
 * opening the next, taking a ready buffer) happens under lane->lock, a few
 * hundred cycles once per record.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "lc.h"
#include "buffer.h"
#include "index.h"
#include "log.h"
#include "segment.h"

#define STATE_CLOSED		(1ULL << 63)
#define STATE_INCARNATION_SHIFT	32
#define STATE_NEXT_SHIFT	16
#define STATE_WRITERS		0xffffULL

static u32 state_next(u64 state)
{
	return state >> STATE_NEXT_SHIFT & 0xffff;
}

/* Neither slots handed out nor anybody who might still give some back. */
static bool state_untouched(u64 state)
{
	return !(u32)state;
}

/* --- records ------------------------------------------------------------ */

struct lc_record_header *lc_record_image(const struct lc_record *rec)
{
	return rec->buf->slots[rec->first_slot];
}

/*
 * Return: 0, -ESTALE: the record is full or closed, -EAGAIN: slots are for relogging.
 * The lane's wish is read behind the state, which is set behind the wish in a record of
 * the reserve (B5), also in one that was an ordinary record when @rec was read.
 */
static int record_get(const struct lc_lane *lane, struct lc_record *rec, u32 want, bool relog,
		      struct lc_cursor *cur)
{
	u32 next, nr, limit;
	s64 state;

	do {
		/* Each time: a failed cmpxchg would not order what follows behind the state. */
		state = atomic64_read_acquire(&rec->state);
		if (READ_ONCE(lane->relog_wanted) && !relog)
			return -EAGAIN;
		next = state_next(state);
		/* Of another incarnation, perhaps: then the cmpxchg fails. */
		limit = READ_ONCE(rec->limit);
		if ((u64)state & STATE_CLOSED || next >= limit)
			return -ESTALE;
		nr = min(want, limit - next);
	} while (!atomic64_try_cmpxchg(&rec->state, &state,
				       state + ((u64)nr << STATE_NEXT_SHIFT) + 1));
	cur->rec = rec;
	cur->next = next;
	cur->end = next + nr;
	return 0;
}

static void record_put(struct lc_record *rec, bool direct)
{
	u64 state = atomic64_dec_return(&rec->state);

	if (state & STATE_CLOSED && !(state & STATE_WRITERS))
		lc_log_submit(rec->buf->core->log, rec, direct);
}

/**
 * lc_record_put() - drop a writer's reference
 * @rec: the record
 *
 * Process context.  The last one out of a closed record hands it to the log.
 */
void lc_record_put(struct lc_record *rec)
{
	record_put(rec, false);
}

/*
 * [lane->lock] Close an open record: no more references can be taken, its seq is
 * given.  The caller holds one reference afterwards and must put it, unlocked.
 */
static void record_close(struct lc_record *rec, bool want_durable)
{
	s64 state = atomic64_read(&rec->state);

	while (!atomic64_try_cmpxchg(&rec->state, &state, (state | STATE_CLOSED) + 1))
		;
	rec->nr_slots = state_next(state);
	lc_log_append(rec->buf->core->log, rec, want_durable);
	if (!rec->first_slot)
		rec->buf->core->ring->segments[rec->buf->position].first_seq = rec->seq;
}

/* [lane->lock] Open the next record of lane->buf if at least one block fits. */
static struct lc_record *record_open(struct lc_lane *lane, u8 type)
{
	struct lc_buffer *buf = lane->buf;
	u32 seg_slots = lane->core->sb.geo.seg_slots;
	u32 first = 0, needed = LC_HEADER_SLOTS, limit = 0;
	struct lc_record *rec;

	if (buf->nr_records) {
		rec = &buf->records[buf->nr_records - 1];
		first = rec->first_slot + LC_HEADER_SLOTS + rec->nr_slots;
	}
	if (type == LC_RECORD_DATA)
		needed++;
	if (first + needed > seg_slots)
		return NULL;
	rec = &buf->records[buf->nr_records++];
	rec->buf = buf;
	rec->first_slot = first;
	/*
	 * A writer may still hold the pointer of a record that was retracted and is
	 * opened again here: it must not get slots of a tombstone.
	 */
	if (type == LC_RECORD_DATA)
		limit = min_t(u32, LC_RECORD_ENTRIES, seg_slots - first - LC_HEADER_SLOTS);
	WRITE_ONCE(rec->limit, limit);
	rec->nr_slots = 0;
	rec->type = type;
	rec->stage = LC_RECORD_OPEN;
	/* That of the first one is clear: lane->lock is not held for it each time. */
	if (first)
		memset(lc_record_image(rec), 0, LC_SLOT_BYTES);
	lane->incarnation = (lane->incarnation + 1) & 0x7fffffff;
	/* Readers of the state see all of the above. */
	atomic64_set_release(&rec->state, (s64)lane->incarnation << STATE_INCARNATION_SHIFT);
	return rec;
}

/* --- lane --------------------------------------------------------------- */

/**
 * lc_lane_create() - allocate the lane of a core
 * @core: the volume
 *
 * May sleep.  Return: the lane or NULL.
 */
struct lc_lane *lc_lane_create(struct lc_core *core)
{
	struct lc_lane *lane = kzalloc(sizeof(*lane), GFP_KERNEL);

	if (!lane)
		return NULL;
	lane->core = core;
	spin_lock_init(&lane->lock);
	INIT_LIST_HEAD(&lane->ready);
	return lane;
}

/* Its buffers belong to the pool. */
void lc_lane_destroy(struct lc_lane *lane)
{
	kfree(lane);
}

/**
 * lc_lane_start() - a life begins
 * @lane: the lane
 * @segment: number of the first segment it will get
 */
void lc_lane_start(struct lc_lane *lane, u64 segment)
{
	lane->start_segment = segment;
	lane->next_segment = segment;
}

/**
 * lc_lane_first_seq() - lowest seq that a segment or a later one holds or will hold
 * @lane: the lane
 * @number: segment number, not below the tail
 *
 * Process context.  Return: the seq, or 0 if only the segment's first header on the
 * SSD knows: it was written before the last clean stop.
 */
u64 lc_lane_first_seq(struct lc_lane *lane, u64 number)
{
	struct lc_ring *ring = lane->core->ring;
	struct lc_segment *seg = &ring->segments[lc_ring_position(ring, number)];
	u64 seq = 0;

	spin_lock(&lane->lock);
	if (seg->number == number && seg->first_seq)
		seq = seg->first_seq;
	else if (number >= lane->start_segment)
		/* No record there yet: seqs are given under this lock. */
		seq = lc_log_last_seq(lane->core->log) + 1;
	spin_unlock(&lane->lock);
	return seq;
}

/**
 * lc_lane_add_ready() - hand a buffer with its segment to the lane
 * @lane: the lane
 * @buf: buf->segment and ->position set, segment evicted and idle
 */
void lc_lane_add_ready(struct lc_lane *lane, struct lc_buffer *buf)
{
	struct lc_segment *seg = &lane->core->ring->segments[buf->position];

	memset(buf->slots[0], 0, LC_SLOT_BYTES);
	buf->nr_records = 0;
	buf->undurable = 0;
	buf->unwritten = 0;
	buf->closed = false;
	spin_lock(&lane->lock);
	/* Both at once: lc_lane_first_seq() may ask for the number just now. */
	seg->number = buf->segment;
	seg->first_seq = 0;
	/* Before any slot of it can be mapped (B2). */
	rcu_assign_pointer(seg->buf, buf);
	list_add_tail(&buf->list, &lane->ready);
	WRITE_ONCE(lane->nr_ready, lane->nr_ready + 1);
	spin_unlock(&lane->lock);
}

/* [lane->lock] The lane is done with its buffer; records may still be in flight. */
static void lane_close_buffer(struct lc_lane *lane)
{
	struct lc_buffer *buf = lane->buf;

	lane->buf = NULL;
	lc_log_close_buffer(lane->core->log, buf);
}

/* [lane->lock] Make lane->open point at a fresh record, if a buffer is to be had. */
static struct lc_record *lane_open_next(struct lc_lane *lane, u8 type)
{
	struct lc_record *rec;

	if (lane->stopped)
		return NULL;
	for (;;) {
		if (lane->buf) {
			rec = record_open(lane, type);
			if (rec)
				return rec;
			lane_close_buffer(lane);
		}
		lane->buf = list_first_entry_or_null(&lane->ready, struct lc_buffer, list);
		if (!lane->buf)
			return NULL;
		list_del(&lane->buf->list);
		lane->next_segment = lane->buf->segment + 1;
		WRITE_ONCE(lane->nr_ready, lane->nr_ready - 1);
	}
}

/* Replace @old, which is full, closed or NULL, as the open record. */
static int lane_advance(struct lc_lane *lane, struct lc_record *old)
{
	struct lc_record *closed = NULL, *rec;

	spin_lock(&lane->lock);
	if (lane->open != old) {
		spin_unlock(&lane->lock);
		return 0;
	}
	if (old) {
		record_close(old, false);
		closed = old;
	}
	rec = lane_open_next(lane, LC_RECORD_DATA);
	/* Pairs with the acquire in lc_lane_reserve(): the record is set up. */
	smp_store_release(&lane->open, rec);
	spin_unlock(&lane->lock);

	if (closed)
		lc_record_put(closed);
	if (READ_ONCE(lane->nr_ready) * 2 < READ_ONCE(lane->max_ready))
		queue_work(lane->core->wq, &lane->core->refill_work);
	return rec ? 0 : -EAGAIN;
}

static int lane_reserve(struct lc_lane *lane, u32 want, bool relog, struct lc_cursor *cur)
{
	struct lc_record *rec;
	int ret;

	for (;;) {
		/* Without a reference yet, its buffer may be retired and freed. */
		rcu_read_lock();
		/* Pairs with the releases of lane->open. */
		rec = smp_load_acquire(&lane->open);
		ret = rec ? record_get(lane, rec, want, relog, cur) : -ESTALE;
		rcu_read_unlock();
		if (ret != -ESTALE)
			return ret;
		/* This may open a record of the reserve; the next turn says whose it is. */
		if (lane_advance(lane, rec))
			return -EAGAIN;
	}
}

/**
 * lc_lane_reserve() - get slots of the open record, and a reference on it
 * @lane: the lane
 * @want: slots wanted, at least 1
 * @cur: gets 1..@want slots
 *
 * Process context, does not sleep.  Return: 0, or -EAGAIN: no buffer is ready, or
 * writeback needs the reserve (B5).  The refill worker has been told, or writeback
 * queues unpark_work when it is done.
 */
int lc_lane_reserve(struct lc_lane *lane, u32 want, struct lc_cursor *cur)
{
	return lane_reserve(lane, want, false, cur);
}

/**
 * lc_lane_relog() - as lc_lane_reserve(), one slot for what must be logged again
 * @lane: the lane
 * @cur: gets the slot
 *
 * Process context, does not sleep.  Return: 0, or -EAGAIN: no buffer is ready.  With
 * lane->relog_starved set, the refill worker takes one of the reserve for it (D1).
 */
int lc_lane_relog(struct lc_lane *lane, struct lc_cursor *cur)
{
	return lane_reserve(lane, 1, true, cur);
}

/**
 * lc_lane_release() - give unused slots back and drop the reference
 * @cur: the cursor
 */
void lc_lane_release(struct lc_cursor *cur)
{
	struct lc_record *rec = cur->rec;
	s64 state;
	u32 i;

	if (!rec)
		return;
	state = atomic64_read(&rec->state);
	while (cur->next < cur->end) {
		s64 back = state - ((u64)(cur->end - cur->next) << STATE_NEXT_SHIFT);

		if ((u64)state & STATE_CLOSED || state_next(state) != cur->end)
			break;
		if (atomic64_try_cmpxchg(&rec->state, &state, back))
			cur->end = cur->next;
	}
	for (i = cur->next; i < cur->end; i++)
		memset(rec->buf->slots[rec->first_slot + LC_HEADER_SLOTS + i], 0, LC_SLOT_BYTES);
	cur->rec = NULL;
	lc_record_put(rec);
}

/*
 * [lane->lock] Take an open record that nobody touched back, as if it had never
 * been opened.  Return: whether there is no open record now.
 */
static bool lane_retract(struct lc_lane *lane)
{
	struct lc_record *rec = lane->open;
	s64 state;

	if (!rec)
		return true;
	state = atomic64_read(&rec->state);
	if (!state_untouched(state) ||
	    !atomic64_try_cmpxchg(&rec->state, &state, state | STATE_CLOSED))
		return false;
	lane->buf->nr_records--;
	WRITE_ONCE(lane->open, NULL);
	return true;
}

static u64 lane_seal(struct lc_lane *lane, bool close_segment, bool direct)
{
	struct lc_record *rec, *closed = NULL;
	u64 seq;

	spin_lock(&lane->lock);
	rec = lane->open;
	if (rec && state_next(atomic64_read(&rec->state))) {
		record_close(rec, true);
		closed = rec;
		WRITE_ONCE(lane->open, NULL);
	}
	close_segment &= !READ_ONCE(lane->relog_wanted);
	if (close_segment && lane_retract(lane)) {
		if (lane->buf && lane->buf->nr_records)
			lane_close_buffer(lane);
	} else if (closed) {
		rec = record_open(lane, LC_RECORD_DATA);
		if (!rec)
			lane_close_buffer(lane);
		/* As in lane_advance(). */
		smp_store_release(&lane->open, rec);
	}
	seq = lc_log_last_seq(lane->core->log);
	spin_unlock(&lane->lock);
	if (closed)
		record_put(closed, direct);
	return seq;
}

/**
 * lc_lane_seal() - close the open record if it holds anything
 * @lane: the lane
 * @close_segment: put nothing more into its segment either, if relogging does not
 *	need it (B5)
 *
 * Process context, does not sleep.
 *
 * Return: the highest seq given so far.  Every write completed before the call
 * is in a record of that seq or a lower one.
 */
u64 lc_lane_seal(struct lc_lane *lane, bool close_segment)
{
	return lane_seal(lane, close_segment, false);
}

/**
 * lc_lane_flush() - close the open record on behalf of a bio that waits for it
 * @lane: the lane
 * @direct: whoever sent that bio may submit others
 *
 * Process context, of the bio's sender or of a worker.  With @direct, may sleep as
 * submit_bio() does.  Return: as lc_lane_seal().
 */
u64 lc_lane_flush(struct lc_lane *lane, bool direct)
{
	return lane_seal(lane, false, direct);
}

/**
 * lc_lane_stop() - put nothing more into the lane, ever
 * @lane: the lane
 *
 * Process context, does not sleep.  Writers that have slots already go on; the
 * record they have them in is closed, so the last one hands it to the log.
 */
void lc_lane_stop(struct lc_lane *lane)
{
	struct lc_record *closed = NULL;

	spin_lock(&lane->lock);
	lane->stopped = true;
	if (!lane_retract(lane)) {
		closed = lane->open;
		record_close(closed, true);
		WRITE_ONCE(lane->open, NULL);
	}
	spin_unlock(&lane->lock);
	if (closed)
		lc_record_put(closed);
}

/**
 * lc_lane_mark() - a value that changes whenever something is put into the lane
 * @lane: the lane
 */
u64 lc_lane_mark(struct lc_lane *lane)
{
	struct lc_record *rec;
	u64 mark;

	rcu_read_lock();	/* as in lc_lane_reserve() */
	/* Pairs with the releases of lane->open. */
	rec = smp_load_acquire(&lane->open);
	mark = rec ? atomic64_read(&rec->state) : 0;
	rcu_read_unlock();
	return mark;
}

/**
 * lc_lane_append_ranges() - log a RANGE record of one entry
 * @lane: the lane
 * @block: block number
 * @nr_blocks: how many blocks
 * @entry_type: LC_ENTRY_RANGE_*
 * @segment: gets the number of its segment
 * @first_slot: gets the slot of its header
 *
 * Process context, does not sleep.  The caller has made sure that every earlier
 * record is sealed (L12), and puts the record into effect before it flushes.
 *
 * Return: 0 or -EAGAIN: no buffer, or it is for relogging (B5).
 */
int lc_lane_append_ranges(struct lc_lane *lane, u64 block, u64 nr_blocks, u8 entry_type,
			  u64 *segment, u32 *first_slot)
{
	struct lc_entry_info entry = {
		.block = block, .nr_blocks = nr_blocks, .type = entry_type,
	};
	struct lc_record *rec, *closed = NULL;

	spin_lock(&lane->lock);
	if (READ_ONCE(lane->relog_wanted)) {
		spin_unlock(&lane->lock);
		return -EAGAIN;
	}
	if (!lane_retract(lane)) {
		closed = lane->open;
		record_close(closed, true);
	}
	rec = lane_open_next(lane, LC_RECORD_RANGE);
	if (rec) {
		lc_entry_encode(lc_record_image(rec), 0, &entry);
		*segment = rec->buf->segment;
		*first_slot = rec->first_slot;
		record_close(rec, true);
	}
	/* As in lane_advance(). */
	smp_store_release(&lane->open, lane_open_next(lane, LC_RECORD_DATA));
	spin_unlock(&lane->lock);
	if (closed)
		lc_record_put(closed);
	if (!rec)
		return -EAGAIN;
	lc_record_put(rec);
	return 0;
}

/**
 * lc_lane_next_segment() - number of the first segment without a record
 * @lane: the lane
 *
 * Process context.
 */
u64 lc_lane_next_segment(struct lc_lane *lane)
{
	struct lc_buffer *buf;
	u64 number;

	spin_lock(&lane->lock);
	buf = lane->buf;
	if (buf) {
		bool untouched = !buf->nr_records ||
				 (buf->nr_records == 1 && lane->open &&
				  state_untouched(atomic64_read(&lane->open->state)));

		number = untouched ? buf->segment : buf->segment + 1;
	} else {
		buf = list_first_entry_or_null(&lane->ready, struct lc_buffer, list);
		number = buf ? buf->segment : lane->next_segment;
	}
	spin_unlock(&lane->lock);
	return number;
}

/* --- cursor ------------------------------------------------------------- */

/* The cursor's next slot, numbered over the whole SSD. */
u32 lc_cursor_slot(const struct lc_cursor *cur)
{
	const struct lc_record *rec = cur->rec;

	return (rec->buf->position << rec->buf->core->ring->slot_shift) + rec->first_slot +
	       LC_HEADER_SLOTS + cur->next;
}

/*
 * Is this mapped slot one of the record the cursor has a reference on?  Slots
 * behind the reserved ones may belong to the next record of the segment.
 */
bool lc_cursor_owns(const struct lc_cursor *cur, u32 slot)
{
	const struct lc_record *rec = cur->rec;
	u32 base = (rec->buf->position << rec->buf->core->ring->slot_shift) + rec->first_slot;

	return slot > base && slot - base <= state_next(atomic64_read(&rec->state));
}

/**
 * lc_cursor_outdated() - is a mapped slot in a newer record than the cursor's?
 * @cur: the cursor
 * @slot: slot number, over the whole SSD
 *
 * Under the bucket lock of the block mapped there.  The cursor's record may have
 * been closed since, and the block written to a later one: the cursor's slot
 * would lose against it at replay.
 *
 * There is one lane, so records get their seqs in the order of their places.  Of
 * records open in two lanes at once none is the newer one: a second lane needs a
 * rule of its own here (L11).
 */
bool lc_cursor_outdated(const struct lc_cursor *cur, u32 slot)
{
	struct lc_ring *ring = cur->rec->buf->core->ring;
	u64 number = lc_ring_segment(ring, slot)->number;

	if (number != cur->rec->buf->segment)
		return number > cur->rec->buf->segment;
	return !lc_cursor_owns(cur, slot) &&
	       lc_ring_slot_in_segment(ring, slot) > cur->rec->first_slot;
}

void *lc_cursor_image(const struct lc_cursor *cur, u32 slot)
{
	return lc_buffer_slot(cur->rec->buf->core, cur->rec->buf, slot);
}

/**
 * lc_cursor_describe() - write the header entry of a slot
 * @cur: the cursor
 * @slot: slot number, over the whole SSD
 * @block: block number
 * @mask: sectors
 * @lost: sectors lost for good
 *
 * Under the block's bucket lock, with the cursor's reference (B1).
 */
void lc_cursor_describe(const struct lc_cursor *cur, u32 slot, u64 block, u8 mask, u8 lost)
{
	const struct lc_record *rec = cur->rec;
	u32 in_segment = lc_ring_slot_in_segment(rec->buf->core->ring, slot);
	struct lc_entry_info entry = {
		.block = block, .nr_blocks = 1, .mask = mask, .lost = lost,
		.type = LC_ENTRY_DATA,
	};

	lc_entry_encode(lc_record_image(rec), in_segment - rec->first_slot - LC_HEADER_SLOTS,
			&entry);
}
