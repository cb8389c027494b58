/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Model of the writer: what record.c, log.c, write.c, writeback.c and discard.c make the
 * disks see, step by step.  Each step is one action (action.c); what the module does in
 * worker threads, in any order, are steps the explorer orders as it likes.
 *
 * The order of commands is that of the module; the numbers of the rules (B, G, W, L, F)
 * are those of its comments.  rewrite.c goes beyond it: it writes failed records again as
 * hazards L6, L7, L8 and F2 ask, which the module does not do yet but its replay must
 * already understand.
 */
#ifndef EXPLORE_WRITER_H
#define EXPLORE_WRITER_H

#include "world.h"
#include "record.h"
#include "lanes.h"

#define MAX_BUFFERS	12
#define MAX_WAITERS	64
#define MAX_ITEMS	(MAX_SEGMENTS * MAX_ENTRIES)
#define MAX_QUEUE	(MAX_SEGMENTS * SEG_SLOTS)

struct wbuf {
	struct lc_buffer b;
	bool free;
	u32 next_slot;		/* of the segment: the next header goes there */
	u64 last_seq;		/* of the records written again that are in it */
};

/* A FLUSH or FUA bio. */
struct waiter {
	u64 seq;
	u32 op;
};

enum drain_state {
	DRAIN_REST,
	DRAIN_SEALING,		/* the oldest segment is to be closed and durable */
	DRAIN_COLLECT,		/* lists what is dirty */
	DRAIN_COPY,
	DRAIN_FLUSHING,
	DRAIN_SUPERSEDERS,	/* the log is to be durable before the tail moves (L5) */
	DRAIN_TAIL,
};

enum discard_state {
	DISCARD_REST,
	DISCARD_CLAIMED,	/* no copy of its blocks is to be on its way (C5) */
	DISCARD_EARLIER,	/* earlier records are to be durable (L12) */
	DISCARD_TOMBSTONE,	/* the RANGE record is to be durable (L5) */
	DISCARD_HDD,
};

struct item {
	u32 block;
	u32 slot;
	u8 mask;
	bool sent;
	const struct dpage *data;
};

struct drain {
	enum drain_state state;
	bool paused;
	u64 first, end;		/* segments of the batch */
	u64 seq;		/* waited for */
	u32 nr_items;
	u32 next_item;
	u32 flying;		/* commands */
	struct item items[MAX_ITEMS];
};

struct discard {
	enum discard_state state;
	u32 first, nr;
	u64 seq;
	u32 rec;		/* the tombstone, or NONE */
	u32 op;
	u32 flying;		/* commands */
};

struct writer {
	/* buffers and the lanes */
	u32 nr_bufs;
	struct wbuf bufs[MAX_BUFFERS];
	struct {
		struct wbuf *buf;
		u32 open;	/* record, or NONE */
		u32 nr_ready;
		struct wbuf *ready[MAX_BUFFERS];
	} lanes[MAX_LANES];
	/* the log */
	u64 last_seq, written_seq, durable_seq, want_seq, relief_seq, flush_seq;
	bool flushing;		/* from the decision to the completion */
	bool flush_queued;	/* decided, not submitted */
	u32 nr_waiters;
	struct waiter waiters[MAX_WAITERS];
	u32 nr_closed;		/* to be submitted, in any order */
	u32 closed[MAX_QUEUE];
	/* records to be written again */
	struct wbuf *rewrite_buf;
	u32 nr_rewrites;
	u32 rewrites[MAX_QUEUE];
	u32 nr_skips;		/* segments skipped, and those of them ... */
	u32 nr_named;		/* that a durable superblock names (L8) */
	u32 nr_cuts;		/* the tail moved to, and those of them ... */
	u32 nr_old_cuts;	/* of earlier lives */
	/* who else is at work */
	u32 nr_cut_runs;	/* that end at the seam, with their neighbour behind it */
	u32 nr_cut_discards;
	bool meta_busy;		/* the superblock is being written */
	struct drain drain;
	struct discard discard;
};

/* Must a superblock name a skipped segment first? */
static inline bool skip_wanted(const struct writer *w)
{
	return w->nr_skips != w->nr_named;
}

/* lane.c */
u32 nr_lanes(void);
bool lane_put(u32 lane, u32 block, u8 mask);
bool lane_hole(u32 lane);
u64 lane_seal(bool close_segment);
struct rec *lane_append_range(u32 first, u32 nr);
void lane_give_up(struct wbuf *buf);
bool lane_can_open(u32 lane);
struct wbuf *lane_take_ready(u32 lane);
void buf_drop_record(struct wbuf *buf);
void buf_close(struct wbuf *buf);
void log_count_unflushed(void);
bool buf_lacks_flush(const struct wbuf *buf);
void rec_place(struct rec *rec, struct wbuf *buf);
u64 first_unused_segment(void);
struct lc_segment *segment_of(u64 number);
u32 slot_of(const struct rec *rec, u32 place, u32 entry);

/* log.c */
void log_append(struct rec *rec, bool want_durable);
bool log_submit(u32 i);
void log_flush_submit(void);
void log_flush_start(void);
void log_want(u64 seq);
void log_wait(u64 seq, u32 op);
void log_record_ended(struct cmd *cmd);
void log_flush_ended(struct cmd *cmd);

/* rewrite.c */
void rewrite_behind(struct rec *rec);
void rewrite_undurable(void);
bool rewrite_possible(void);
bool rewrite_may_submit(const struct rec *rec);
void rewrite_one(void);
void rewrite_skip(void);

/* drain.c */
u64 drain_limit(void);
bool drain_needed(bool lazy);
void drain_begin(bool all);
bool drain_can_step(void);
void drain_step(void);
void drain_ended(struct cmd *cmd);
void discard_begin(u32 first, u32 nr);
bool discard_can_step(void);
void discard_step(void);
void discard_ended(void);

#endif /* EXPLORE_WRITER_H */
