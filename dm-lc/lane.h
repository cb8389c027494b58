/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lanes: open segments, one for each memory node, and where new segments begin (the head).
 *
 * A writer takes the lane of the node it runs on, so that what it copies stays there.
 * Replay goes by seq and does not care which lane a record was in; but a segment of a
 * lane that is hardly used holds records of very different age.  So that the tail can
 * move, segments are opened in rounds: before the first one of a round is opened, all that
 * are open are closed.  The number of that first one is a cut (segment.h).  With one lane
 * every segment is a round of its own.
 *
 * Invariants
 *  N1 head->cut_seq is above the seqs of all records in segments below head->cut, and at
 *     most those of all others: both were set with all lanes locked, and with all records
 *     that had been opened until then closed.
 *  N2 A segment gets its number when it is opened, under lane->lock and head->lock, in
 *     rising order; with several lanes never head->cut + head->round or above.
 *  N3 Whatever a bio has put into a record before it completes is in lane->open or in a
 *     closed one: a record is opened and made lane->open under one lane->lock.  So whoever
 *     closes the open record of each lane, one after the other, has closed all records of
 *     bios that completed before he began (G3).
 *  N4 A range record gets its seq while all lanes are locked: what replay takes for older
 *     is then below the bounds that lc_head_append_ranges() gives, in each lane (L12).
 *
 * With several lanes P2 holds across a FLUSH only (L11).
 */
#ifndef LC_LANE_H
#define LC_LANE_H

#include <linux/cache.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "lc.h"
#include "record.h"

struct bio_list;

#define LC_MAX_LANES		128u	/* all are locked at once, and preempt_count has 8 bits */
#define LC_LANE_SEGMENTS	32u	/* of the ring, at least, for each of several lanes */
#define LC_LANE_BUFFERS		4u

struct lc_lane {
	struct lc_core *core;
	u32 index;			/* in core->lanes */
	spinlock_t lock;		/* closing and opening records */
	struct lc_record *open;		/* written under lock, read without */
	struct lc_buffer *buf;		/* being filled; lock */
	struct list_head ready;		/* buffers with a clear header; lock */
	u32 nr_ready;			/* READ_ONCE() */
	u32 max_ready;			/* READ_ONCE() */
	u32 incarnation;		/* lock */
	bool stopped;			/* for good: nothing is opened any more; lock */
};

/* Where in a lane something is: all that is behind it is newer. */
struct lc_bound {
	u64 segment;
	u32 slot;
};

struct lc_head {
	struct lc_core *core;
	u64 start;			/* first number of this life; set before it begins */
	u32 round;			/* segments from one cut to the next; 0: one lane */
	/*
	 * Writeback needs the reserve.  Set before that is taken from the ring, so whoever
	 * finds a segment of it, or a record there, sees this too (B5).  READ_ONCE()
	 */
	bool relog_wanted;
	bool relog_starved;		/* take one kept back; until it is ready.  READ_ONCE() */

	spinlock_t turn_lock ____cacheline_aligned_in_smp; /* all lanes are about to be locked */
	spinlock_t lock;		/* inside lane->lock; all below */
	u64 next;			/* to be opened next; READ_ONCE() */
	u64 end;			/* behind the last that is evicted and idle; READ_ONCE() */
	u64 cut;			/* N1 */
	u64 cut_seq;
	u32 max_ready;			/* numbers at hand; READ_ONCE() */
	u32 most_ready;			/* that many or less, see backlog.h; READ_ONCE() */
	struct lc_bound *bounds;	/* of the last range record, by lane; whoever appends */
};

/* lane.c */
struct lc_lane *lc_lane_create(struct lc_core *core, u32 index);
void lc_lane_destroy(struct lc_lane *lane);
void lc_lane_add_ready(struct lc_lane *lane, struct lc_buffer *buf);
int lc_lane_try_reserve(const struct lc_lane *lane, u32 want, struct lc_cursor *cur);
int lc_lane_reserve(struct lc_lane *lane, u32 want, struct lc_cursor *cur);
int lc_lane_relog(struct lc_lane *lane, struct lc_cursor *cur);
u64 lc_lane_seal(struct lc_lane *lane, bool close_segment, bool direct);
bool lc_lane_owes(const struct lc_lane *lane);
u64 lc_lane_mark(const struct lc_lane *lane);

void lc_lane_put(struct lc_record *rec, struct bio_list *direct);

/* lane.c for head.c, under lane->lock */
void lc_lane_close_record(struct lc_lane *lane, bool want_durable, struct list_head *closed);
void lc_lane_close_segment(struct lc_lane *lane, bool want_durable, struct list_head *closed);
void lc_lane_reopen(struct lc_lane *lane);
struct lc_record *lc_lane_open_next(struct lc_lane *lane, u8 type, bool relog, int *ret);

/* head.c: all lanes */
int lc_head_create(struct lc_core *core, u32 nr_lanes);
void lc_head_destroy(struct lc_core *core);
void lc_head_start(struct lc_core *core, u64 segment, u64 next_seq);
void lc_head_add(struct lc_head *head, u64 number);
int lc_head_take(struct lc_lane *lane, bool relog, struct lc_buffer *buf);
void lc_head_turn(struct lc_head *head, bool relog);
u64 lc_head_seal(struct lc_core *core, bool close_segments);
u64 lc_head_flush(struct lc_core *core, bool direct);
u64 lc_head_commit(struct lc_core *core, bool direct);
void lc_head_stop(struct lc_core *core);
u64 lc_head_mark(const struct lc_core *core);
int lc_head_append_ranges(struct lc_core *core, const struct lc_entry_info *ranges, u32 nr);
u64 lc_head_used(struct lc_core *core);
u64 lc_head_cut_seq(struct lc_core *core, u64 number);

void lc_cursor_release(struct lc_cursor *cur);
bool lc_cursor_join(const struct lc_core *core, u32 slot, struct lc_cursor *cur);
enum lc_order lc_cursor_compare(const struct lc_cursor *cur, u32 slot, struct lc_cursor *other);

/* Numbers at hand, a hint. */
static inline u64 lc_head_ready(const struct lc_head *head)
{
	return READ_ONCE(head->end) - READ_ONCE(head->next);
}

/* The lane of whoever asks. */
static inline struct lc_lane *lc_lane_here(const struct lc_core *core)
{
	u32 i = 0;

	if (core->nr_lanes > 1)
		i = core->lanes_by_task ? current->pid % core->nr_lanes :
					  core->lane_of_node[numa_node_id()];
	return core->lanes[i];
}

#endif /* LC_LANE_H */
