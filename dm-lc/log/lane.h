/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A lane: an open segment with its buffer, and the open record in it.
 *
 * A writer gets slots of the open record without a lock.  All else (closing a record, opening the
 * next, taking a ready buffer) happens under lane->lock, a few hundred cycles once per record.
 *
 * Invariant
 *  N3 All data that a bio has put into a record before it completes is in lane->open or in a
 *     closed one: a record is opened and made lane->open under one lane->lock.  So a task that
 *     closes the open record of each lane, one after the other, has closed all records of
 *     bios that completed before it began (G3).
 */
#ifndef LC_LANE_H
#define LC_LANE_H

#include <linux/cache.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "log/record.h"

struct bio_list;
struct lc_alloc;
struct lc_buffer;
struct lc_env;
struct lc_lanes;
struct lc_log;
struct lc_submit;

/*
 * Only lane.c writes it.  lanes.c takes the lock, too, and reads what it guards.  In cache lines of
 * its own: the next lane is written by other CPUs.
 */
struct lc_lane {
	struct lc_lanes *lanes;		/* all of them, opaque here */
	struct lc_env *env;
	struct lc_alloc *alloc;
	struct lc_log *log;
	struct lc_submit *submit;
	u32 index;			/* among the lanes */
	spinlock_t lock;		/* closing and opening records */
	struct lc_record *open;		/* written under lock, read without */
	struct lc_buffer *buf;		/* being filled; lock */
	struct list_head ready;		/* buffers without a segment; lock */
	u32 nr_ready;			/* READ_ONCE() */
	u32 max_ready;			/* READ_ONCE() */
	u32 incarnation;		/* lock */
	bool stopped;			/* for good: nothing is opened any more; lock */
} ____cacheline_aligned_in_smp;

/**
 * lc_lane_create() - allocate a lane
 * @how: its rooms, lanes and index, to be copied
 * @node: for its memory, or NUMA_NO_NODE
 *
 * May sleep.  Return: the lane or NULL.
 */
struct lc_lane *lc_lane_create(const struct lc_lane *how, int node);

/*
 * Free the lane.  No writer, flush or refill uses it any more.  Its open and its ready buffers
 * belong to the pool, which frees them later.  May sleep.
 */
void lc_lane_destroy(struct lc_lane *lane);

/**
 * lc_lane_add_ready() - hand a free buffer to its lane
 * @lane: the lane
 * @buf: from lc_pool_get()
 *
 * Process context.
 */
void lc_lane_add_ready(struct lc_lane *lane, struct lc_buffer *buf);

/*
 * How many buffers should be ready?  The refill worker reads it when it runs next.  Any context,
 * takes no lock.  A lane begins with 0.
 */
void lc_lane_set_max_ready(struct lc_lane *lane, u32 nr);

/**
 * lc_lane_try_reserve() - as lc_lane_reserve(), of the open record only
 * @lane: the lane
 * @want: slots wanted, at least 1
 * @cur: gets 1..@want slots
 *
 * Any context in which writers run; takes no lock, and may be called under a bucket's.
 * Return: 0, or a negative errno: the caller must use lc_lane_reserve().
 */
int lc_lane_try_reserve(const struct lc_lane *lane, u32 want, struct lc_cursor *cur);

/**
 * lc_lane_reserve() - get slots of the open record, and a reference on it
 * @lane: the lane
 * @want: slots wanted, at least 1
 * @relog: for what is logged again
 * @cur: gets 1..@want slots
 *
 * Process context, does not sleep.  Return: 0, -EAGAIN: no buffer or segment is ready, or
 * writeback needs the reserve (B5), or -EBUSY: the next round must begin first.
 */
int lc_lane_reserve(struct lc_lane *lane, u32 want, bool relog, struct lc_cursor *cur);

/**
 * lc_lane_seal() - close the open record if it holds anything
 * @lane: the lane
 * @close_segment: put nothing more into its segment either, if that holds anything and
 *	relogging does not need it (B5)
 * @direct: this task may submit the bios of records itself; otherwise a worker sends them
 *
 * Process context, of the bio's sender or of a worker.  With @direct, may sleep as
 * submit_bio() does.
 *
 * Return: the highest seq given so far.  Every write to the lane completed before the call
 * is in a record of that seq or a lower one.
 */
u64 lc_lane_seal(struct lc_lane *lane, bool close_segment, bool direct);

/**
 * lc_lane_needs_flush() - does a FLUSH have to close the open record?
 * @lane: the lane
 *
 * Any context.  Return: false if each write without FUA that completed before the call is in a
 * record that has its seq (G7).  needs_flush of a record is set before such a write in it
 * completes, and a record that is not lane->open any more is closed.
 */
bool lc_lane_needs_flush(const struct lc_lane *lane);

/**
 * lc_lane_activity() - a value that changes whenever something is put into the lane
 * @lane: the lane
 *
 * Any context, takes no lock.
 */
u64 lc_lane_activity(const struct lc_lane *lane);

/**
 * lc_lane_put() - drop a writer's reference, and have the record written if it was the last one
 * @rec: the record
 * @direct: gets its bio if this task is to send it, or NULL: see lc_submit_record()
 *
 * Process context, does not sleep.
 */
void lc_lane_put(struct lc_record *rec, struct bio_list *direct);

/**
 * lc_lane_close_record() - close the open record, or take it back if no writer has touched it
 * @lane: the lane
 * @want_durable: a flush waits for it
 * @closed: gets it, by rec->link; the caller puts it when no lane is locked
 *
 * Under lane->lock.
 */
void lc_lane_close_record(struct lc_lane *lane, bool want_durable, struct list_head *closed);

/**
 * lc_lane_close_segment() - put nothing more into the open segment
 * @lane: the lane
 * @want_durable: a flush waits for what is in it
 * @closed: as for lc_lane_close_record()
 *
 * Under lane->lock.
 */
void lc_lane_close_segment(struct lc_lane *lane, bool want_durable, struct list_head *closed);

/**
 * lc_lane_stop() - open nothing any more, for good
 * @lane: the lane
 * @closed: as for lc_lane_close_record(); gets the open record, which a flush waits for
 *
 * Under lane->lock.
 */
void lc_lane_stop(struct lc_lane *lane, struct list_head *closed);

/* Slots of a segment in which the log puts nothing any more. */
struct lc_region {
	u64 segment;		/* number */
	u32 next, end;		/* slots of the segment; from next on nothing is in them */
};

/**
 * lc_lane_cede() - give the rest of the open segment away
 * @lane: the lane
 * @least: slots that are wanted; a segment with fewer left is closed, and the next one is taken
 * @region: gets the rest, @least slots or more
 * @closed: as for lc_lane_close_record(); no flush waits for what is in it
 *
 * Under lane->lock; takes ring->lock.  The open record is closed, so writers go on in the next
 * segment.  At least one record is in the segment, below the region, so replay finds the segment
 * and those after it.  If there was none, it is a RANGE record that says nothing.  On success
 * lc_ring_fill() was called for the segment.
 * Return: 0, -EAGAIN: no buffer or segment is ready, or writeback needs the reserve (B5), or
 * -EBUSY: the next round must begin first.
 */
int lc_lane_cede(struct lc_lane *lane, u32 least, struct lc_region *region,
		 struct list_head *closed);

/* Keep a record that was closed under lane->lock, until no lane is locked.  @closed: as above. */
static inline void lc_lane_keep_closed(struct lc_record *rec, struct list_head *closed)
{
	list_add_tail(&rec->link, closed);
}

/**
 * lc_lane_reopen() - make lane->open the next record of the open segment
 * @lane: no record of it is open
 *
 * Under lane->lock.  If no block fits, the segment is closed.
 */
void lc_lane_reopen(struct lc_lane *lane);

/**
 * lc_lane_open_next() - open a record, in the next segment if need be
 * @lane: no record of it is open
 * @type: LC_RECORD_*
 * @relog: for what is logged again
 * @ret: gets 0, -EAGAIN: no buffer or no segment, or -EBUSY: the next round must begin first
 *
 * Under lane->lock.  Does not set lane->open.  Return: the record or NULL.
 */
struct lc_record *lc_lane_open_next(struct lc_lane *lane, u8 type, bool relog, int *ret);

#endif /* LC_LANE_H */
