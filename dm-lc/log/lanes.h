/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All lanes: open segments, one for each memory node.
 *
 * A writer takes the lane of the node it runs on, so that what it copies stays there.  Replay
 * goes by seq and does not care which lane a record was in; but a segment of a lane that is hardly
 * used holds records of very different age.  So that the tail can move, segments are opened in
 * rounds (allot.h).
 *
 * Invariant
 *  N4 A range record gets its seq while all lanes are locked: what replay takes for older
 *     is then below the bounds that lc_lanes_append_ranges() gives, in each lane (L12).
 *
 * With several lanes P2 holds across a FLUSH only (L11).
 */
#ifndef LC_LANES_H
#define LC_LANES_H

#include <linux/sched.h>
#include <linux/topology.h>

#include "log/allot.h"
#include "log/lane.h"

struct lc_entry_info;
struct lc_pool;
struct lc_ring;

#define LC_MAX_LANES		128u	/* all are locked at once, and preempt_count has 8 bits */
#define LC_LANE_SEGMENTS	32u	/* of the ring, at least, for each of several lanes */
#define LC_LANE_BUFFERS		4u

/* Where in a lane something is: all that is behind it is newer. */
struct lc_bound {
	u64 segment;
	u32 slot;
};

/* Constant, but for the lanes themselves and the bounds. */
struct lc_lanes {
	struct lc_allot *allot;
	struct lc_log *log;
	struct lc_submit *submit;
	struct lc_ring *ring;
	u16 *lane_of_node;
	bool by_task;			/* else by node */
	u32 nr;
	struct lc_bound *bounds;	/* of the last range record, by lane; its task's */
	/* All lanes are about to be locked.  What stands around it is read by each write. */
	spinlock_t all_lock ____cacheline_aligned_in_smp;
	struct lc_lane *lane[] ____cacheline_aligned_in_smp;
};

struct lc_lanes *lc_lanes_create(struct lc_env *env, struct lc_allot *allot, struct lc_log *log,
				 struct lc_submit *submit, struct lc_pool *pool);
void lc_lanes_destroy(struct lc_lanes *lanes);

int lc_lanes_reserve(struct lc_lanes *lanes, struct lc_lane *lane, u32 want,
		     struct lc_cursor *cur);
int lc_lanes_relog(struct lc_lanes *lanes, struct lc_cursor *cur);
u64 lc_lanes_close_used(struct lc_lanes *lanes, bool close_segments);
u64 lc_lanes_close_owed(struct lc_lanes *lanes, bool direct);
u64 lc_lanes_close_all(struct lc_lanes *lanes, bool direct);
void lc_lanes_stop(struct lc_lanes *lanes);
u64 lc_lanes_activity(const struct lc_lanes *lanes);
int lc_lanes_append_ranges(struct lc_lanes *lanes, const struct lc_entry_info *ranges, u32 nr);
u64 lc_lanes_used(struct lc_lanes *lanes);

void lc_cursor_release(struct lc_cursor *cur);
bool lc_cursor_join(const struct lc_lanes *lanes, u32 slot, struct lc_cursor *cur);
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
