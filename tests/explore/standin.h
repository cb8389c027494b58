/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What stands in for rooms that are not linked, and what it shares.
 *
 * The log, its records, lanes and buffers, the ways of a write and of a discard, and writeback are
 * the module's own.  user.c stands in for users of the volume, rooms.c for rooms that have little
 * or nothing to do here.  rewrite.c goes beyond the module: it writes failed records
 * again elsewhere, as hazards L6, L7, L8 and F2 ask.  The module does not do that yet, but its
 * replay already understands it.
 *
 * The numbers of the rules (B, G, W, L, F) are those of the module's comments.
 */
#ifndef EXPLORE_STANDIN_H
#define EXPLORE_STANDIN_H

#include "world.h"
#include "log/alloc.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/pool.h"
#include "log/request.h"

#define MAX_BUFFERS	12
#define MAX_BIOS	64
#define MAX_READ	(8u * PAGE_SECTORS)
#define MAX_IN_MAP	4		/* tasks that wait there until less is parked */
#define MAX_QUEUE	(MAX_SEGMENTS * SEG_SLOTS)

/* A bio of the user. */
struct user_bio {
	struct lc_request io;	/* as device mapper has them in one piece of memory */
	struct bio bio;
	bool used;
	u32 first_op;		/* that it may have written */
	u64 seq;		/* it ends when that is durable, and ... */
	u32 op;			/* all that had completed by then, up to this one */
	u32 came;		/* when */
	u32 seen;		/* FLUSHes of the HDD that had failed when it came, ... */
	bool untold;		/* and of the last of them no user knew */
	u32 around_op, nr_around;	/* operations of a write around the log, or 0 */
	bool refused;		/* the HDD has failed it */
	u32 sector, nr;		/* of the volume, if it has data */
	bool reads;
	bool met;		/* a read: others wrote there meanwhile */
	u32 newest[MAX_READ];	/* a read: writes, by sector: when it began, ... */
	u32 got[MAX_READ];	/* and what it has got */
};

/* A discard that has claimed its blocks. */
struct user_discard {
	const struct lc_claim *claim;	/* NULL: none */
	u32 op;				/* 0: nothing says yet that it is one */
	bool logged;
	u32 flying;			/* commands */
};

/* Kinds of work that is queued. */
enum worker {
	WORKER_RECORD,		/* submit.c: a record's turn has come */
	WORKER_FLUSH,		/* log.c: the FLUSH decided on */
	WORKER_RETRY,		/* log.c: what has failed is written again */
	WORKER_REFILL,		/* refill.c */
	WORKER_WRITE,		/* merge.c, flush.c, and the clock of intake.c */
	WORKER_UNPARK,		/* intake.c: writes that wait for room */
	WORKER_SCAN,		/* warmup.c, promote.c, group.c and keep.c */
	WORKER_TASK,		/* copy.c, discard.c: it may sleep */
	WORKER_NOBODY,		/* what the explorer has no use for */
};

struct standin {
	u32 nr_bios;
	/* By place of the header in the ring: the record that is open there, or was. */
	u32 known[MAX_SEGMENTS][SEG_SLOTS];
	u32 meta_busy;		/* superblocks that are being written */
	u32 nr_in_map;		/* tasks of users */
	struct user_discard discards[MAX_DISCARDS];
	u32 nr_discards;
	/* rewrite.c */
	struct lc_buffer *rewrite_buf;
	u64 rewrite_seq;	/* of the last record in it */
	u32 nr_marked;		/* records that are to go elsewhere, and those of them ... */
	u32 nr_rewrites;	/* whose old write is over, by seq */
	struct lc_record *rewrites[MAX_QUEUE];
	u64 tail_end;		/* where writeback moves the tail, and what becomes of it */
	u64 tail_segment, tail_seq;
	bool skipping;		/* a task names skipped segments */
	u32 nr_skips;		/* segments skipped, and those of them ... */
	u32 nr_named;		/* that a durable superblock names (L8) */
	/* What was met. */
	u32 nr_boundaries;	/* the tail moved to, and those of them ... */
	u32 nr_old_boundaries;	/* of earlier lives */
	u32 nr_cut_runs;	/* runs of writeback, and ... */
	u32 nr_cut_discards;	/* discards, that end at the seam of the moved head */
	u32 nr_direct;		/* records that the task sent that waits for them */
	u32 nr_waits;		/* records that waited for their turn */
	u64 met_seq;		/* of the last FUA write, and ... */
	u32 nr_met;		/* FUA writes that were committed together with another one */
	u32 nr_left_open;	/* FLUSHes that left a record open that holds something (G7) */
	u32 nr_again;		/* records written again where they were */
	u32 nr_merges;		/* writes that had to read an old slot */
	u32 nr_solid;		/* records that FUA made durable */
	u32 nr_parked;		/* writes that found no room, and those of them ... */
	u32 nr_around;		/* writes that went around the log, and those of them ... */
	u32 nr_through;		/* that a group gets, too */
	u32 nr_reads;		/* that were compared */
	u32 nr_promoted;	/* blocks that became valid in a group */
	u32 nr_kept;		/* blocks that are to be logged again */
	u32 told;		/* FLUSHes of the HDD that failed, and of which users know */
	u32 nr_slept;		/* whose task slept because too many waited */
	u64 failed_group;	/* highest segment with a group whose write has failed, or 0 */
	/* By block, 0 if none: the highest segment of a group of this life that a scan may believe, */
	u64 named[MAX_VOLUME];	/* and that names it */
	u64 passed[MAX_VOLUME];	/* of a copy that the scan has left out for a pending one */
	u32 nr_passed;		/* such copies */
	bool entered[MAX_VOLUME];	/* by block: the scan has entered a copy */
	/* Everything above is zeroed for a life. */
	struct user_bio bios[MAX_BIOS];
	struct lc_record *closed[MAX_SEQ];	/* by seq, of those that are not durable */
};

static inline struct lc_log *the_log(void)
{
	return world->vol->c.log;
}

static inline bool skip_wanted(const struct standin *s)
{
	return s->nr_named < s->nr_skips;
}

/* A bio of promote.c that writes to the HDD. */
#define REQ_THROUGH	(1u << 31)

/* rooms.c */
u32 nr_lanes(void);
u32 workers(enum worker kind);
struct work_struct *worker_nth(enum worker kind, u32 n);

/* trace.c */
struct lc_segment *segment_of(u64 number);
u32 slot_of(const struct rec *rec, u32 place, u32 entry);
bool rec_durable(const struct rec *rec);
u64 last_seq(void);
void bio_ended(struct cmd *cmd);
void bio_wait(struct bio *bio);

/* trace.c, for reader.c */
/* A slot in a bio of whole slots. */
const void *bytes_at(const struct bio *bio, u32 offset);
struct dpage *page_of(const void *bytes, bool header);

/* reader.c */
void user_begins(struct user_bio *user);
void user_got(const struct bio *bio, const struct bvec_iter *iter, const void *from, u32 len);
void user_read_ended(struct bio *bio);
void user_read_over(const struct user_bio *user);
void user_read(u32 first, u32 nr);
void through_copied(const struct bio *bio, const struct bvec_iter *iter, void *to);
void write_through(struct life *life, struct bio *bio);
void around_landed(const struct cmd *cmd);
bool is_group(const struct bio *bio);
void write_group(struct life *life, struct bio *bio);
void check_passed(void);
void group_failed(const struct bio *bio);

/* user.c */
struct user_bio *user_new(blk_opf_t opf);
bool user_can_start(void);
void user_write(u32 lane, u32 block, u32 nr, u8 mask, blk_opf_t flags, bool meets);
void user_flush(void);
bool user_hole(u32 lane);
bool user_cede(u32 lane);
void user_mode(u32 mode);
bool user_discard(u32 first, u32 nr);
bool user_wants_drain(void);
bool user_can_drain(bool all);
void user_drain(bool all);
bool user_owns(const struct bio *bio);
u32 user_around_op(const struct bio *bio);
u32 discard_sent(const void *owner);
u64 discard_seq(u32 block);

/* rewrite.c */
enum worker log_worker(const struct work_struct *work);
void rewrite_look(void);
bool rewrite_possible(void);
bool rewrite_holds(enum worker kind, const struct work_struct *work);
void rewrite_one(void);
int rewrite_skip(void *unused);

#endif /* EXPLORE_STANDIN_H */
