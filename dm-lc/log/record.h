/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records in a buffer.  lane.h has who opens and closes them.
 *
 * A record's life:  open -> closed (has its seq) -> sealed (image final) ->
 * written -> durable.  It is closed under lane->lock and log->lock together, so
 * seqs follow the order of closing, of all lanes; sealed when the last writer let go.
 *
 * Invariants
 *  B1 The image of a record changes only while a writer holds a reference, which
 *     can be taken only while the record is open (C1).
 *  B4 Slots handed out but not used become holes: entry NONE, bytes zero (C8).
 *  B5 While alloc->writers_held is set, only lc_lanes_relog() opens a segment or gets a
 *     slot, and the segment that it fills is not closed before it is full (D1).
 *  B6 A block that is in an open record, of any lane, is overwritten there: of
 *     two records open at once none is the newer one yet.  A writer looks for it before it
 *     reserves slots: once others have reserved the next ones, its own become holes (B4).
 *  B7 A task that holds a reference on a record, or has closed one, is not preempted until it
 *     has dropped the reference, and has handed the record over if it was the last one: see
 *     lc_hold().  It copies at most LC_HOLD_SLOTS slots meanwhile.  So a writer that gets no CPU
 *     delays no FLUSH.
 */
#ifndef LC_RECORD_H
#define LC_RECORD_H

#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

#include "format/lc_format.h"
#include "log/pool.h"
#include "store/ring.h"

struct lc_entry_info;
struct lc_record_header;

/* 64 KiB: by estimate 10 us to copy, and 60 us from memory that is far and slow. */
#define LC_HOLD_SLOTS	16u

/*
 * Slots of one record held by one writer, perhaps none, together with a reference.  The writer sets
 * needs_flush, and reads the rest.  Only the cursor functions write that: those of record.c, and
 * those that look at the lanes, in lanes.c.
 */
struct lc_cursor {
	struct lc_record *rec;
	u32 next;			/* data slot index to use next */
	u32 end;			/* one after the last; 0: none were reserved */
	bool needs_flush;		/* the write completes before it is durable (G7) */
};

/* The record of a mapped slot, compared with the cursor's. */
enum lc_order {
	LC_ORDER_OLDER,		/* it loses at replay */
	LC_ORDER_OWN,		/* it is the cursor's record */
	LC_ORDER_NEWER,		/* it wins, or may win */
	LC_ORDER_OPEN,		/* open in another lane: overwrite it there (B6) */
};

/*
 * From before a reference on a record is taken, or a record is closed, until the reference is
 * dropped (B7).  Nests.  With PREEMPT_RT spin locks sleep, so B7 does not hold there, and no waiter
 * lends its priority to a task that copies.
 */
static inline void lc_hold(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
	else
		rcu_read_lock();
}

static inline void lc_unhold(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
	else
		rcu_read_unlock();
}

/* lc_hold() was called.  With PREEMPT_RT there is nothing to assert. */
static inline void lc_assert_hold(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		lockdep_assert_preemption_disabled();
}

/**
 * lc_cursor_describe() - write the header entry of a slot
 * @cur: the cursor
 * @slot: slot number, over the whole SSD
 * @block: block number
 * @mask: sectors
 * @lost: sectors lost for good
 *
 * Under the block's bucket lock, with the cursor's reference (B1).  The caller asserts the lock,
 * because a record does not know the index.
 */
void lc_cursor_describe(const struct lc_cursor *cur, u32 slot, u64 block, u8 mask, u8 lost);

/**
 * lc_record_set_ranges() - write all entries of a RANGE record
 * @rec: open, of type LC_RECORD_RANGE
 * @ranges: its entries
 * @nr: how many, 1..LC_RECORD_ENTRIES
 *
 * Under lane->lock, by the task that has opened it.
 */
void lc_record_set_ranges(struct lc_record *rec, const struct lc_entry_info *ranges, u32 nr);

/**
 * lc_record_get() - reserve slots, together with a reference
 * @rec: the record
 * @want: slots wanted, at least 1
 * @refuse: while it is true, writers get no slots; READ_ONCE(); NULL for what is logged again
 * @cur: gets 1..@want slots; needs_flush is set
 *
 * Under RCU.  @refuse is read after the state.  In a record of the reserve the state is set after
 * @refuse (B5), also if @rec was an ordinary record when the caller read the pointer.
 * Return: 0, -ESTALE: the record is full or closed, -EAGAIN: slots are for relogging.
 */
int lc_record_get(struct lc_record *rec, u32 want, const bool *refuse, struct lc_cursor *cur);

/**
 * lc_record_open() - open the next record of a buffer if at least one block fits
 * @buf: no record of it is open
 * @type: LC_RECORD_*
 * @incarnation: another one than before
 * @most: data slots that it may hold, 0: as many as fit
 *
 * Under lane->lock.  Its header in memory holds what was there before.  So each slot below nr_slots
 * gets an entry before the reference of its writer is dropped, from lc_cursor_describe() or, as a
 * hole, from lc_cursor_return() (B4).  No other entry counts.
 * Return: the record or NULL.
 */
struct lc_record *lc_record_open(struct lc_buffer *buf, u8 type, u32 incarnation, u32 most);

/**
 * lc_record_shut() - let nobody take a reference any more
 * @rec: open
 *
 * From lc_log_append(), under lane->lock and log->lock.  A task that sees one record closed, and
 * then another one open, knows that the other one gets the higher seq.  A reference is taken, which
 * the caller of lc_log_append() drops.
 */
void lc_record_shut(struct lc_record *rec);

/**
 * lc_record_retract() - take an open record back, as if it had never been opened
 * @rec: the last one of its buffer
 *
 * Under lane->lock.  Return: false if a writer has reserved slots or holds a reference.
 */
bool lc_record_retract(struct lc_record *rec);

/* Has anybody reserved slots that were not given back?  A hint, without lane->lock. */
bool lc_record_used(const struct lc_record *rec);

/*
 * No slot is reserved, no writer holds a reference, and the record is open.  Any context, under
 * lane->lock; @rec is lane->open.  A hint: writers need no lock to change that.
 */
bool lc_record_untouched(const struct lc_record *rec);

/* [lane->lock] Where the next record of a buffer would begin; none is open in it. */
u32 lc_buffer_end(const struct lc_buffer *buf);

/**
 * lc_record_put() - drop a writer's reference
 * @rec: the record
 *
 * Any context.  Return: whether it was the last one of a closed record; the caller hands that to
 * lc_submit_record().
 */
bool lc_record_put(struct lc_record *rec);

/**
 * lc_record_join() - take a reference on a record, if it is the open one that holds a slot
 * @rec: the record
 * @segment: number
 * @slot: of that segment; no record that was opened after @rec holds it
 * @refuse: as for lc_record_get()
 *
 * Under RCU.  Return: whether @rec is open and @slot is at or after its first slot: then @rec holds
 * @slot, and the caller has a reference.
 */
bool lc_record_join(struct lc_record *rec, u64 segment, u32 slot, const bool *refuse);

/**
 * lc_record_owns() - is this slot of its segment in the record?
 * @rec: a reference is held
 * @slot: slots after the reserved ones may belong to the next record of the segment
 *
 * Any context, takes no lock.  The answer holds for a slot that is mapped, under the bucket lock of
 * its block.
 */
bool lc_record_owns(const struct lc_record *rec, u32 slot);

/*
 * Does no task get a reference any more?  Any context, takes no lock; a reference is held.  Once
 * true it stays true.
 */
bool lc_record_closed(const struct lc_record *rec);

/**
 * lc_record_set_needs_flush() - the next FLUSH has to make the record durable, if the cursor says
 * so
 * @rec: the record
 * @cur: with a reference on it
 *
 * Any context.  A task that sees the cursor's write completed sees this, too (G7).
 */
void lc_record_set_needs_flush(struct lc_record *rec, const struct lc_cursor *cur);

/**
 * lc_cursor_return() - give unused slots back and drop the reference
 * @cur: the cursor
 *
 * Process context, does not sleep.  Return: as lc_record_put(), false without a record.
 */
bool lc_cursor_return(struct lc_cursor *cur);

/* The header in RAM.  While a reference on the record or a pin on its buffer is held. */
struct lc_record_header *lc_record_image(const struct lc_record *rec);

/* The cursor's next slot, numbered over the whole SSD. */
static inline u32 lc_cursor_slot(const struct lc_cursor *cur)
{
	const struct lc_record *rec = cur->rec;

	return (rec->buf->position << rec->buf->pool->ring->slot_shift) + rec->first_slot +
	       LC_HEADER_SLOTS + cur->next;
}

/* The cursor's next slot is written and described, and its block is mapped there. */
static inline void lc_cursor_advance(struct lc_cursor *cur)
{
	cur->next++;
}

static inline void *lc_cursor_image(const struct lc_cursor *cur, u32 slot)
{
	return lc_buffer_slot(cur->rec->buf, slot);
}

#endif /* LC_RECORD_H */
