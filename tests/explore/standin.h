/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What stands in for rooms that are not linked, and what it shares.
 *
 * The log, its records, lanes and buffers, and the way of a write are the module's own.  user.c
 * stands in for users of the volume, drain.c for writeback and discards, rooms.c for rooms that
 * have little or nothing to do here.  rewrite.c goes beyond the module: it writes failed records
 * again elsewhere, as hazards L6, L7, L8 and F2 ask.  The module does not do that yet, but its
 * replay already understands it.
 *
 * The numbers of the rules (B, G, W, L, F) are those of the module's comments.
 */
#ifndef EXPLORE_STANDIN_H
#define EXPLORE_STANDIN_H

#include "world.h"
#include "log/allot.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/pool.h"
#include "log/request.h"

#define MAX_BUFFERS	12
#define MAX_BIOS	64
#define MAX_ITEMS	(MAX_SEGMENTS * MAX_ENTRIES)
#define MAX_QUEUE	(MAX_SEGMENTS * SEG_SLOTS)

/* A bio of the user. */
struct user_bio {
	struct lc_io io;	/* as device mapper has them in one piece of memory */
	struct bio bio;
	bool used;
	u32 first_op;		/* that it may have written */
	u64 seq;		/* it ends when that is durable, and ... */
	u32 op;			/* all that had completed by then, up to this one */
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

/* Kinds of work that is queued. */
enum worker {
	WORKER_RECORD,		/* submit.c: a record's turn has come */
	WORKER_FLUSH,		/* log.c: the FLUSH decided on */
	WORKER_RETRY,		/* log.c: what has failed is written again */
	WORKER_REFILL,		/* refill.c */
	WORKER_WRITE,		/* merge.c: an old slot is read; flush.c: FUA writes are committed */
	WORKER_UNPARK,		/* rooms.c: writes that wait for room */
	WORKER_NOBODY,		/* what the explorer has no use for */
};

struct standin {
	u32 nr_bios;
	/* By place of the header in the ring: the record that is open there, or was. */
	u32 known[MAX_SEGMENTS][SEG_SLOTS];
	bool meta_busy;		/* a superblock is being written */
	u32 nr_waiting;		/* writes that wait for room */
	/* rewrite.c */
	struct lc_buffer *rewrite_buf;
	u64 rewrite_seq;	/* of the last record in it */
	u32 nr_marked;		/* records that are to go elsewhere, and those of them ... */
	u32 nr_rewrites;	/* whose old write is over, by seq */
	struct lc_record *rewrites[MAX_QUEUE];
	u32 nr_skips;		/* segments skipped, and those of them ... */
	u32 nr_named;		/* that a durable superblock names (L8) */
	/* What was met. */
	u32 nr_cuts;		/* the tail moved to, and those of them ... */
	u32 nr_old_cuts;	/* of earlier lives */
	u32 nr_cut_runs;	/* runs of writeback, and ... */
	u32 nr_cut_discards;	/* discards, that end at the seam of the moved head */
	u32 nr_direct;		/* records that the task sent that waits for them */
	u32 nr_waits;		/* records that waited for their turn */
	u32 nr_met;		/* FUA writes that were committed together with another one */
	u32 nr_left_open;	/* FLUSHes that left a record open that holds something (G7) */
	u32 nr_again;		/* records written again where they were */
	u32 nr_merges;		/* writes that had to read an old slot */
	u32 nr_solid;		/* records that FUA made durable */
	u32 nr_parked;		/* writes that found no room, and wait */
	/* Everything above is zeroed for a life. */
	struct list_head parked;	/* those that wait now, by io->list */
	struct drain drain;
	struct discard discard;
	struct user_bio bios[MAX_BIOS];
};

static inline struct lc_log *the_log(void)
{
	return world->vol->c.log;
}

static inline bool skip_wanted(const struct standin *s)
{
	return s->nr_named < s->nr_skips;
}

/* rooms.c */
u32 nr_lanes(void);
u32 workers(enum worker kind);
struct work_struct *worker_nth(enum worker kind, u32 n);
bool park_must(void);
void park_add(struct lc_io *io);

/* trace.c */
struct lc_segment *segment_of(u64 number);
u32 slot_of(const struct rec *rec, u32 place, u32 entry);
bool rec_durable(const struct rec *rec);
u64 last_seq(void);
void record_ended(struct cmd *cmd);

/* user.c */
void user_go_on(struct lc_io *io, int ret, bool batch);
bool user_commits(const struct work_struct *work);
bool user_can_start(void);
void user_write(u32 lane, u32 block, u32 nr, u8 mask, bool fua, bool meets);
void user_flush(void);
bool user_hole(u32 lane);

/* rewrite.c */
enum worker log_worker(const struct work_struct *work);
void rewrite_look(void);
bool rewrite_possible(void);
bool rewrite_holds(const struct work_struct *work);
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

#endif /* EXPLORE_STANDIN_H */
