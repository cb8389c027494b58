// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records, and the cursors of those who write to them.  See record.h for lives and
 * invariants.
 *
 * The fast path of a writer is one cmpxchg to reserve slots together with a
 * reference, and one atomic to let go.
 */
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "log/record.h"
#include "store/env.h"
#include "store/ring.h"

#define STATE_CLOSED		(1ULL << 63)
#define STATE_INCARNATION_SHIFT	32
#define STATE_NEXT_SHIFT	16
#define STATE_WRITERS		0xffffULL

static u32 state_next(u64 state)
{
	return state >> STATE_NEXT_SHIFT & 0xffff;
}

/* --- records ------------------------------------------------------------ */

struct lc_record_header *lc_record_image(const struct lc_record *rec)
{
	return rec->buf->slots[rec->first_slot];
}

void lc_record_set_needs_flush(struct lc_record *rec, const struct lc_cursor *cur)
{
	/* All writers to the record read this cache line: write it only once. */
	if (cur->needs_flush && !READ_ONCE(rec->needs_flush))
		WRITE_ONCE(rec->needs_flush, true);
}

int lc_record_get(struct lc_record *rec, u32 want, const bool *refuse, struct lc_cursor *cur)
{
	u32 next, nr, limit;
	s64 state;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "a record without RCU");
	do {
		/* Read anew each time: a failed cmpxchg would not order the reads that follow. */
		state = atomic64_read_acquire(&rec->state);
		if (refuse && READ_ONCE(*refuse))
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
	lc_record_set_needs_flush(rec, cur);
	return 0;
}

bool lc_record_join(struct lc_record *rec, u64 segment, u32 slot, const bool *refuse)
{
	s64 state;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "a record without RCU");
	do {
		/* As above; what is read next is of this incarnation, or the cmpxchg fails. */
		state = atomic64_read_acquire(&rec->state);
		if (refuse && READ_ONCE(*refuse))
			return false;
		if ((u64)state & STATE_CLOSED || READ_ONCE(rec->buf->segment) != segment ||
		    READ_ONCE(rec->first_slot) >= slot)
			return false;
	} while (!atomic64_try_cmpxchg(&rec->state, &state, state + 1));
	return true;
}

bool lc_record_put(struct lc_record *rec)
{
	u64 state = atomic64_dec_return(&rec->state);

	return state & STATE_CLOSED && !(state & STATE_WRITERS);
}

void lc_record_shut(struct lc_record *rec)
{
	s64 state = atomic64_read(&rec->state);

	lc_assert_upper_held(&rec->buf->lane_lock);
	lc_assert_upper_held(&rec->buf->log_lock);
	while (!atomic64_try_cmpxchg(&rec->state, &state, (state | STATE_CLOSED) + 1))
		;
	rec->nr_slots = state_next(state);
}

bool lc_record_closed(const struct lc_record *rec)
{
	return (u64)atomic64_read(&rec->state) & STATE_CLOSED;
}

bool lc_record_used(const struct lc_record *rec)
{
	return state_next(atomic64_read(&rec->state));
}

bool lc_record_untouched(const struct lc_record *rec)
{
	lc_assert_upper_held(&rec->buf->lane_lock);
	return !(u32)atomic64_read(&rec->state);
}

bool lc_record_retract(struct lc_record *rec)
{
	s64 state = atomic64_read(&rec->state);

	lc_assert_upper_held(&rec->buf->lane_lock);
	if ((u32)state || !atomic64_try_cmpxchg(&rec->state, &state, state | STATE_CLOSED))
		return false;
	rec->buf->nr_records--;
	return true;
}

u32 lc_buffer_end(const struct lc_buffer *buf)
{
	const struct lc_record *last;

	lc_assert_upper_held(&buf->lane_lock);
	if (!buf->nr_records)
		return 0;
	last = &buf->records[buf->nr_records - 1];
	return last->first_slot + LC_HEADER_SLOTS + last->nr_slots;
}

struct lc_record *lc_record_open(struct lc_buffer *buf, u8 type, u32 incarnation,
				 u32 most)
{
	u32 seg_slots = 1u << buf->pool->ring->slot_shift, first = lc_buffer_end(buf);
	u32 needed = LC_HEADER_SLOTS + (type == LC_RECORD_DATA), limit = 0;
	struct lc_record *rec;

	lc_assert_upper_held(&buf->lane_lock);
	if (first + needed > seg_slots)
		return NULL;
	rec = &buf->records[buf->nr_records++];
	rec->buf = buf;
	WRITE_ONCE(rec->first_slot, first);
	/*
	 * A writer may still hold the pointer of a record that was retracted and is
	 * opened again here: it must not get slots of a tombstone.
	 */
	if (type == LC_RECORD_DATA)
		limit = min3(most ?: LC_RECORD_ENTRIES, LC_RECORD_ENTRIES,
			     seg_slots - first - LC_HEADER_SLOTS);
	WRITE_ONCE(rec->limit, limit);
	rec->nr_slots = 0;
	rec->nr_ranges = 0;
	WRITE_ONCE(rec->needs_flush, false);
	rec->type = type;
	rec->stage = LC_RECORD_OPEN;
	/* Readers of the state see all of the above. */
	atomic64_set_release(&rec->state, (s64)incarnation << STATE_INCARNATION_SHIFT);
	return rec;
}

void lc_record_set_ranges(struct lc_record *rec, const struct lc_entry_info *ranges, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		lc_entry_encode(lc_record_image(rec), i, &ranges[i]);
	rec->nr_ranges = nr;
}

/* --- cursor ------------------------------------------------------------- */

bool lc_cursor_return(struct lc_cursor *cur)
{
	const struct lc_entry_info hole = { .type = LC_ENTRY_NONE };
	struct lc_record *rec = cur->rec;
	s64 state;
	u32 i;

	if (!rec)
		return false;
	state = atomic64_read(&rec->state);
	while (cur->next < cur->end) {
		s64 back = state - ((u64)(cur->end - cur->next) << STATE_NEXT_SHIFT);

		if ((u64)state & STATE_CLOSED || state_next(state) != cur->end)
			break;
		if (atomic64_try_cmpxchg(&rec->state, &state, back))
			cur->end = cur->next;
	}
	for (i = cur->next; i < cur->end; i++) {
		memset(rec->buf->slots[rec->first_slot + LC_HEADER_SLOTS + i], 0, LC_SLOT_BYTES);
		lc_entry_encode(lc_record_image(rec), i, &hole);
	}
	cur->rec = NULL;
	return lc_record_put(rec);
}

bool lc_record_owns(const struct lc_record *rec, u32 slot)
{
	return slot > rec->first_slot &&
	       slot - rec->first_slot <= state_next(atomic64_read(&rec->state));
}

void lc_cursor_describe(const struct lc_cursor *cur, u32 slot, u64 block, u8 mask, u8 lost)
{
	const struct lc_record *rec = cur->rec;
	u32 in_segment = lc_ring_slot_in_segment(rec->buf->pool->ring, slot);
	struct lc_entry_info entry = {
		.block = block, .nr_blocks = 1, .mask = mask, .lost = lost,
		.type = LC_ENTRY_DATA,
	};

	lc_entry_encode(lc_record_image(rec), in_segment - rec->first_slot - LC_HEADER_SLOTS,
			&entry);
}
