/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All lanes: open segments, one for each memory node.
 *
 * A writer takes the lane of the node it runs on, so that what it copies stays there.  Replay
 * goes by seq and does not care which lane a record was in; but a segment of a lane that is hardly
 * used holds records of very different age.  So that the tail can move, segments are opened in
 * rounds (alloc.h).
 *
 * Invariant
 *  N4 A range record gets its seq while all lanes are locked.  So the slots that replay takes
 *     for older than it are, in each lane, below the bounds that lc_lanes_append_ranges()
 *     sets (L12).
 *
 * With several lanes P2 holds across a FLUSH only (L11).
 */
#ifndef LC_LANES_H
#define LC_LANES_H

#include <linux/sched.h>
#include <linux/topology.h>

#include "log/alloc.h"
#include "log/lane.h"

struct lc_entry_info;
struct lc_pool;
struct lc_ring;

#define LC_MAX_LANES		128u	/* all are locked at once, and preempt_count has 8 bits */
#define LC_LANE_SEGMENTS	32u	/* of the ring, at least, for each of several lanes */
#define LC_LANE_BUFFERS		4u

/* A position in a lane: slots at or after it are newer, slots before it are older. */
struct lc_bound {
	u64 segment;
	u32 slot;
};

/* Constant, but for the lanes themselves and the bounds. */
struct lc_lanes {
	struct lc_alloc *alloc;
	struct lc_log *log;
	struct lc_submit *submit;
	struct lc_ring *ring;
	u16 *lane_of_node;
	bool by_task;			/* else by node */
	u32 nr;
	struct lc_bound *bounds;	/* of the last range record, by lane; for its task */
	/* Taken before all lanes are locked.  Each write reads the cache lines around it. */
	spinlock_t all_lock ____cacheline_aligned_in_smp;
	struct lc_lane *lane[] ____cacheline_aligned_in_smp;
};

/**
 * lc_lanes_create() - allocate the lanes
 * @env: of the volume
 * @alloc: gives their segments
 * @log: gets their records
 * @submit: writes them
 * @pool: has their buffers, in a struct lc_lane_pool for each lane, whose node is set here
 *
 * May sleep.  At most 2 * nr_lanes segments in a row hold no record: those that were open when a
 * round ended, and those that were opened when the next one began.  lane_limit must allow that
 * (lc_super_begin_epoch()).  Return: the lanes or NULL.
 */
struct lc_lanes *lc_lanes_create(struct lc_env *env, struct lc_alloc *alloc, struct lc_log *log,
				 struct lc_submit *submit, struct lc_pool *pool);

/*
 * Free the lanes.  No writer, flush or refill uses one any more.  Records that are still open are
 * never written; lc_pool_destroy() frees their buffers.  @lanes or NULL.  May sleep.
 */
void lc_lanes_destroy(struct lc_lanes *lanes);

/**
 * lc_lanes_reserve() - get slots of a lane's open record, and a reference on it
 * @lanes: all of them
 * @lane: one of them
 * @want: slots wanted, at least 1
 * @cur: gets 1..@want slots; needs_flush is set
 *
 * Process context, does not sleep.  Return: 0, or -EAGAIN: no buffer or segment is ready,
 * or writeback needs the reserve (B5).  The refill worker has been told, or writeback
 * kicks what is parked when it is done.
 */
int lc_lanes_reserve(struct lc_lanes *lanes, struct lc_lane *lane, u32 want,
		     struct lc_cursor *cur);

/**
 * lc_lanes_relog() - get a slot for what must be logged again
 * @lanes: all of them
 * @cur: gets the slot
 *
 * Process context, does not sleep.  Return: 0, or -EAGAIN: no buffer or segment is ready.
 * With alloc->lend_reserve set, the refill worker takes one of the reserve for it (D1).
 */
int lc_lanes_relog(struct lc_lanes *lanes, struct lc_cursor *cur);

/**
 * lc_lanes_close_used() - close the open records that hold anything
 * @lanes: all of them
 * @close_segments: put nothing more into their segments either, if relogging does not
 *	need one (B5)
 *
 * Process context, does not sleep.
 *
 * Return: the highest seq given so far.  Every write completed before the call
 * is in a record of that seq or a lower one (N3).
 */
u64 lc_lanes_close_used(struct lc_lanes *lanes, bool close_segments);

/**
 * lc_lanes_close_for_flush() - close what a FLUSH has to make durable
 * @lanes: all of them
 * @direct: this task may submit the bios of records itself; otherwise a worker sends them
 *
 * Process context, of the bio's sender or of a worker.  With @direct, may sleep as
 * submit_bio() does.  Return: the highest seq given so far.  Every write without FUA that
 * completed before the call is in a record of that seq or a lower one (N3, G7).
 */
u64 lc_lanes_close_for_flush(struct lc_lanes *lanes, bool direct);

/**
 * lc_lanes_close_all() - close all open records on behalf of FUA writes that are in them
 * @lanes: all of them
 * @direct: as for lc_lanes_close_for_flush()
 *
 * Context and return as lc_lanes_close_for_flush(), of every write whose data is in a lane.
 */
u64 lc_lanes_close_all(struct lc_lanes *lanes, bool direct);

/**
 * lc_lanes_stop() - put nothing more into any lane, ever
 * @lanes: all of them
 *
 * Process context, does not sleep.  Writers that have slots already go on; the
 * records they have them in are closed, so the last one hands them to the log.
 */
void lc_lanes_stop(struct lc_lanes *lanes);

/**
 * lc_lanes_cede() - give the rest of a lane's segment away
 * @lanes: all of them
 * @least: slots that are wanted, at most all of a segment but one
 * @region: gets @least slots or more
 *
 * Process context, does not sleep.  The region belongs to the caller until lc_ring_filled().
 * Return: 0, or -EAGAIN: no buffer or segment is ready, or writeback needs the reserve (B5).
 */
int lc_lanes_cede(struct lc_lanes *lanes, u32 least, struct lc_region *region);

/* A value that changes whenever something is put into a lane.  Any context, takes no lock. */
u64 lc_lanes_activity(const struct lc_lanes *lanes);

/**
 * lc_lanes_append_ranges() - log a RANGE record
 * @lanes: all of them
 * @ranges: its entries, of types LC_ENTRY_RANGE_*
 * @nr: how many, 1..LC_RECORD_ENTRIES
 *
 * Process context, one caller at a time.  The record is sent from here, so this may sleep as
 * submit_bio() does.  Before the call every earlier record is sealed (L12).  The caller waits until
 * the record is durable, and then removes the covered blocks from the index.
 * In each lane, copies from lanes->bounds[] on are newer, others are older (N4).
 *
 * Return: 0 or -EAGAIN: no buffer, or it is for relogging (B5).
 */
int lc_lanes_append_ranges(struct lc_lanes *lanes, const struct lc_entry_info *ranges, u32 nr);

/**
 * lc_lanes_used() - the first segment number from which on no segment holds a record
 * @lanes: all of them
 *
 * Process context, does not sleep.
 */
u64 lc_lanes_used(struct lc_lanes *lanes);

/**
 * lc_cursor_release() - give unused slots back, and have the record written if that was all
 * @cur: the cursor
 *
 * Process context, does not sleep.
 */
void lc_cursor_release(struct lc_cursor *cur);

/**
 * lc_cursor_join() - get a reference on the record that holds a mapped slot, if it is open
 * @lanes: all of them
 * @slot: slot number, over the whole SSD
 * @cur: gets the record, without slots of its own; needs_flush is set
 *
 * Under the bucket lock of the block mapped there, so that the slot stays its newest copy.  The
 * caller asserts that, because the lanes do not know the index.
 * Return: true: the record is open, and the block is to be overwritten there (B6); false: it is
 * closed, or writeback needs the reserve (B5).
 */
bool lc_cursor_join(const struct lc_lanes *lanes, u32 slot, struct lc_cursor *cur);

/**
 * lc_cursor_compare() - is a mapped slot older than what the cursor would write?
 * @cur: the cursor
 * @slot: slot number, over the whole SSD
 * @other: with LC_ORDER_OPEN gets a reference on the record that holds the slot, without
 *	slots of its own; to be released
 *
 * Context as lc_cursor_join().  The cursor's record may have
 * been closed since, and the block written to a later one: the cursor's slot
 * would lose against it at replay.
 */
enum lc_order lc_cursor_compare(const struct lc_cursor *cur, u32 slot, struct lc_cursor *other);

/* The lane of the node that the task runs on, a hint: it may go on elsewhere. */
static inline struct lc_lane *lc_lanes_here(const struct lc_lanes *lanes)
{
	u32 i = 0;

	if (lanes->nr > 1)
		i = lanes->by_task ? current->pid % lanes->nr :
				     lanes->lane_of_node[numa_node_id()];
	return lanes->lane[i];
}

#endif /* LC_LANES_H */
