/* SPDX-License-Identifier: GPL-2.0-only */
/* The steps a life is made of.  See action.c. */
#ifndef EXPLORE_ACTION_H
#define EXPLORE_ACTION_H

#include "world.h"

/* name in files, arguments, who does it */
#define NOBODY_SLOW	0xff

#define ACTIONS(ACTION) \
	ACTION(COMPLETE, complete, 2)	/* disk: a command, by time and ordinal of submission */ \
	ACTION(FAIL, fail, 2)		/* the same with an error */ \
	ACTION(SUBMIT, submit, 1)	/* worker: the n-th record whose turn has come */ \
	ACTION(FLUSHER, send-flush, 0)	/* worker: the FLUSH decided on */ \
	ACTION(RETRY, retry, 0)		/* worker: what has failed is written again */ \
	ACTION(REFILL, refill, 0)	/* worker: buffers and segments */ \
	ACTION(WRITER, writer, 1)	/* the n-th worker that goes on with writes */ \
	ACTION(UNPARK, unpark, 0)	/* worker: writes that found no room go on */ \
	ACTION(REWRITE, rewrite, 0)	/* a failed record gets another place */ \
	ACTION(SKIP, name-skip, 0)	/* a skipped segment into the superblock */ \
	ACTION(WRITEBACK, writeback, 1)	/* user: a batch is to begin; 1: all is to be drained */ \
	ACTION(TASK, task, 1)		/* the n-th work that may sleep begins */ \
	ACTION(STEP, step, 1)		/* a task goes on; 0: thread of writeback */ \
	ACTION(WRITE, write, 3)		/* user: first block, blocks, mask of the last one */ \
	ACTION(FUA, write-fua, 3) \
	ACTION(MEET, write-meet, 3)	/* of those that are committed together */ \
	ACTION(HOLE, hole, 0)		/* user: a slot that stays empty */ \
	ACTION(CEDE, cede, 1)		/* worker: the rest of a lane's segment is given away */ \
	ACTION(FLUSH, flush, 0)		/* user */ \
	ACTION(SEAL, seal, 1)		/* nobody wrote for a while; 1: close the segment */ \
	ACTION(DISCARD, discard, 2)	/* user: first block, blocks */ \
	ACTION(STOP, stop, 0)		/* the device is removed: clean stop */ \
	ACTION(MODE, mode, 1)		/* user: cache_mode; 1: writearound, 2: writethrough */ \
	ACTION(SCAN, scan, 1)		/* worker: the n-th of the scan after a crash, promotion, groups */ \
	ACTION(READ, read, 2)		/* user: first sector, sectors */ \
	ACTION(IDLE, idle, 1)		/* so many seconds pass */

/* The lane of a write is above the number of its blocks, and its sender above that. */
#define LANE_SHIFT	8
#define SENDER_SHIFT	16

enum action_kind {
#define ACTION(id, name, args) ACTION_##id,
	ACTIONS(ACTION)
#undef ACTION
	NR_ACTIONS,
};

/* What the lives of one path have in common: drawn from the seed. */
struct theme {
	u32 failing;		/* percent of lives in which commands fail */
	u32 lazy;		/* percent in which writeback waits for a full ring */
	u32 small;		/* percent in which writes are small */
	u32 sparse;		/* percent in which most segments are closed early */
	u32 states;		/* drawn of each life */
	u32 rot;		/* percent of them in which a sector rots */
};

/* How a life is to be. */
struct plan {
	u32 steps;
	bool lazy;
	u32 close;		/* percent of seals that close the segment */
	u8 slow;		/* enum cmd_owner: commands that take long, or NOBODY_SLOW */
	bool stop;		/* ends with a clean stop, if it comes to it */
	u32 fails;		/* commands that fail */
	u32 bad_hdd;		/* percent of writes that the HDD refuses */
	u32 eager;		/* percent: failed records are written again before all else */
	u32 bad_segments;	/* in a row, refuse every write */
	u64 bad_first;
	u32 writes, fuas, meets, flushes, discards, seals, batches, cedes, reads;	/* weights */
	u32 max_blocks;
	u32 most_parked;	/* blocks, then no more writes are sent */
	u32 whole;		/* percent of writes that are of whole blocks */
	u32 hot;		/* percent of writes that go to a few blocks */
	u32 lopsided;		/* percent of writes that go to the first lane in any case */
};

extern const char *const action_names[NR_ACTIONS];
extern const u32 action_args[NR_ACTIONS];

/* May a task go on?  @time: also if it may be said that its time is over. */
bool task_can_step(u32 task, bool time);
bool action_do(struct life *life, const struct action *action);
void theme_draw(struct theme *theme, struct rng *rng, u32 failing);
void plan_draw(struct plan *plan, const struct theme *theme, struct rng *rng, u64 head);
bool plan_next(struct life *life, struct action *action);
extern struct plan plan;

#endif /* EXPLORE_ACTION_H */
