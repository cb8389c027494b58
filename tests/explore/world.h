/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything the explorer knows: one volume, the lives it has had, and what was written
 * to it.  One thread, one volume: there is one struct world.
 *
 * A life is what happens between two crashes: the start (recovery), writes, FLUSHes, writeback,
 * perhaps a clean stop.  Start, stop, the log, the ways of writes and discards, and writeback are
 * the module's own code; standin.h says what is not.  A life is a list of actions;
 * time is the number of actions done, those of the start included, which are always the
 * completions of what it waits for.
 *
 * Work that the module queues is one action.  What sleeps in the middle is a task with a stack of
 * its own (../host/shim_work.h): the thread of writeback, a run that it copies, the workers of the
 * discards, a user in map().  An action has a task go on until it sleeps again, on an event or on a
 * command of a disk.  Start and stop sleep on the explorer's own stack: others go on below them.
 *
 * A crash state is a time, and for each command that
 * is not durable at that time how much of it is on the disk.  A path is a list of lives,
 * each ended by a crash and the next one started from what is left.
 *
 * Files
 *   ../host           the kernel, as far as what is linked needs it
 *   disk.c            the disks
 *   history.c         what was written, by operation and by record
 *   trace.c           what the module's log does, noted; the module's bios to the disks
 *   user.c            users of the volume: writes, FLUSHes, discards
 *   reader.c          those who read, and blocks that are promoted
 *   rewrite.c         a writer that writes failed records again elsewhere
 *   rooms.c           stands in for rooms that have little to do here
 *   action.c          the steps a life is made of
 *   life.c            one life; the calls of the module that sleep
 *   crash.c           drawing a crash state, and making the disks it leaves
 *   judge.c           is what recovery made of it right?
 *   path.c            a path as text, and doing it again
 *   minimise.c        the shortest path that still fails
 *   settle.c          does every request end?
 *   explore.c         random paths; the command line
 */
#ifndef EXPLORE_WORLD_H
#define EXPLORE_WORLD_H

#include <setjmp.h>

#include "shim.h"
#include "life/lc.h"
#include "tests/formatted.h"
#include "disk.h"

#define NONE		0xffffffffu
#define SEG_SLOTS	16
#define MAX_SEGMENTS	64
#define MAX_BLOCKS	128		/* that the load writes to */
#define HEAD_BLOCKS	(LC_MARK_BYTES >> LC_SLOT_SHIFT)
#define MAX_VOLUME	(HEAD_BLOCKS + MAX_BLOCKS)
#define MAX_SECTORS	(MAX_VOLUME * PAGE_SECTORS)
#define MAX_ENTRIES	(SEG_SLOTS - 1)
#define MAX_PLACES	12
#define MAX_LANES	4
#define MAX_DISCARDS	8		/* under way */
#define MAX_OPS		32768
#define MAX_RECS	8192
#define MAX_SEQ		8192
#define MAX_ACTIONS	2048
#define MAX_ACKS	512
#define MAX_FATES	256
#define MAX_LIVES	12

/* --- parameters of a path ------------------------------------------------- */

/* name, meaning; the seed draws them, a file of a path lists them. */
#define PARAMS(PARAM) \
	PARAM(segments)		/* of the ring */ \
	PARAM(blocks)		/* of the volume, as far as the load writes to it */ \
	PARAM(lane_limit)	/* stale segments replay looks behind */ \
	PARAM(buffers)		/* write buffers */ \
	PARAM(fua)		/* the SSD has FUA */ \
	PARAM(fua_slots)	/* largest record that is one command */ \
	PARAM(layout)		/* enum layout */ \
	PARAM(head)		/* MOVED_HEAD: so many of the blocks lie below the seam */ \
	PARAM(csum)		/* enum lc_csum_type */ \
	PARAM(batch)		/* blocks of a writeback batch */ \
	PARAM(depth)		/* runs of it in flight */ \
	PARAM(zeroing)		/* the HDD zeroes some of what is discarded */ \
	PARAM(lanes)		/* 0: one */ \
	PARAM(round)		/* segments from one boundary to the next, with several lanes */ \
	PARAM(mixed)		/* every other life has one lane */ \
	PARAM(elsewhere)	/* failed records are written again elsewhere: rewrite.c */ \
	PARAM(through)		/* the SSD has no volatile cache */ \
	PARAM(direct)		/* the task that waits for a small record sends it itself */ \
	PARAM(fast)		/* the SSD is known to be fast when a life begins */ \
	PARAM(reading)		/* reads in a life are commands, which take their time */ \
	PARAM(around)		/* writes go around the log, if they may */ \
	PARAM(leave)		/* the log is left and entered again: option cache_mode */ \
	PARAM(stacked)		/* the SSD takes FUA, and is on one without it */ \
	PARAM(hdd_flush)	/* the HDD has no FUA */ \
	PARAM(cache)		/* reads, and what they get from the HDD is promoted */ \
	PARAM(rescan)		/* 1: the scan after a crash is over at once, 2: it takes its time */ \
	PARAM(tick)		/* microseconds from one action to the next */

struct params {
#define PARAM(name) u32 name;
	PARAMS(PARAM)
#undef PARAM
};

/* --- what was written ------------------------------------------------------ */

/* A write to one block, or a discard; their numbers, from 1, are the user's order. */
struct op {
	u32 block;
	u32 nr;			/* blocks of a discard; 0: a write */
	u32 rec;		/* the record that holds it, or NONE: no record needed */
	u32 time;
	u32 acked;		/* a discard or FUA write completed, or a FLUSH promised it: around */
	u8 mask;
	u8 fua;			/* of a FUA write: number of its bio, from 1 */
	bool around;		/* went around the log */
	bool refused;		/* then: by the HDD, and any part of it may be there */
	bool landed;		/* then: the HDD has it */
	bool voided;		/* then: a FLUSH of a user has failed since */
	u32 ended;		/* then: when it had ended, if a FLUSH may still promise it */
	bool dead;		/* lost in a crash, must not come back */
	bool stays;		/* a later discard need not take it away: it is on the HDD, ... */
};

struct place {
	u64 segment;
	u32 slot;		/* of the header, within the segment */
	u32 time;		/* when it was submitted */
	u64 told_durable;	/* durable_seq in its header */
};

struct entry {
	u32 block;
	u8 mask;
	bool used;
	struct dpage *data;
};

struct rec {
	u64 seq;		/* 0: open */
	u64 epoch;
	u64 boundary;		/* of the round it was opened in; 0: one lane */
	u8 type;		/* enum lc_record_type */
	bool rewrite;		/* failed, or behind one that failed in its segment (L7) */
	u32 nr_slots;
	struct entry entries[MAX_ENTRIES];
	u32 nr_ranges;		/* of a tombstone */
	struct {
		u32 first, nr;
	} ranges[MAX_DISCARDS];
	u32 last_op;		/* highest operation in it or below it */
	u32 nr_places;
	u32 cur;		/* place that counts */
	struct place places[MAX_PLACES];
};

/* Which operation is in each sector; weak: any older one will do, it was discarded. */
struct content {
	u32 op[MAX_SECTORS];
	bool weak[MAX_SECTORS];
};

/* --- a life ---------------------------------------------------------------- */

struct action {
	u8 kind;
	u32 a, b, c;
};

/* A FLUSH or FUA write completed: all of these survive from then on. */
struct ack {
	u32 time;
	u32 op;
	u64 seq;
};

/* A record that recovery believes in. */
struct kept {
	u64 seq;
	u64 segment;
	u32 slot;
};

enum phase {
	PHASE_START,		/* recovery and opening the epoch; nothing else */
	PHASE_RUN,
	PHASE_STOP,		/* a clean stop: no new work */
	PHASE_ENDED,
};

struct life {
	struct image base[NR_DISKS];	/* durable when it began */
	struct image view[NR_DISKS];	/* what a read returns now */
	u32 now;
	u64 idle_ns;			/* besides, when only time passed: settle.c */
	enum phase phase;
	u32 nr_actions;
	struct action actions[MAX_ACTIONS];
	u32 nr_cmds;
	struct cmd cmds[MAX_CMDS];
	u32 nr_done;
	u32 done[MAX_CMDS];		/* commands in the order they took effect */
	u32 nr_flying;
	u32 flying[MAX_CMDS];
	u32 nr_pieces;
	struct piece pieces[MAX_PIECES];
	u32 last_submit, last_ordinal;
	bool carried;			/* a warm crash left commands in the caches */
	u32 started;			/* time when the start was over, or NEVER */
	u32 left;			/* since then the log is left, or NEVER */
	u32 start_op;			/* operations that survived into it */
	u64 start_seq;
	u32 nr_acks;
	struct ack acks[MAX_ACKS];
	/* of the start */
	u64 tail_seq, tail_segment;	/* of the superblock that was believed */
	u64 next_segment;
	bool clean;			/* by the checkpoint */
	u32 nr_kept;			/* else the records recovery believes in */
	struct kept kept[MAX_SEQ];
	u32 nr_meta;			/* superblocks and marks written */
};

/* The disks before a life that was lived on: somebody may have kept a copy of one. */
struct past {
	struct image disks[NR_DISKS];
	struct lc_sb sb;	/* of the start of that life, which another copy may have seen, too */
};

/* --- a crash ---------------------------------------------------------------- */

enum fate_kind {
	FATE_KEPT, FATE_DROPPED, FATE_FIRST, FATE_LAST, FATE_SOME,
	FATE_UNREADABLE,	/* some pages are errors when they are read */
};


struct fate {
	u32 time;		/* of the command's submission, since the end of the start */
	u32 ordinal;
	u8 kind;
	u32 arg;		/* sectors kept, or seed of the choice */
};

enum rot_kind { ROT_NONE, ROT_HEADER, ROT_SUPERBLOCK, ROT_MARK, ROT_CHECKPOINT, NR_ROTS };

enum old_kind {
	OLD_NONE, OLD_HDD, OLD_SSD,
	OLD_FORK,		/* the SSD, after a start that was cut before its mark */
	OLD_FORKS,		/* after two of them */
	NR_OLDS,
};

struct crash {
	u32 at;
	bool warm;		/* the kernel died, the disks kept their power and caches */
	u8 old;			/* then one disk is replaced by a copy of it that is older */
	u32 old_arg;		/* from before this life: index in world->past */
	u8 rot;			/* one sector that was durable is damaged besides */
	u32 rot_arg;		/* seq, or copy */
	u32 nr_fates;		/* the others are kept */
	struct fate fates[MAX_FATES];
};

/* --- the rest ---------------------------------------------------------------- */

struct rng {
	u64 state;
};

enum verdict {
	FINE,
	BAD_REFUSED,		/* recovery refuses what pure power loss left */
	BAD_P1,			/* acknowledged, and gone */
	BAD_P2,			/* not a prefix */
	BAD_P3,			/* bytes nobody wrote there */
	BAD_INDEX,		/* the index is not that of the log's prefix */
	BAD_MEDIA,		/* recovery wrote what it must not */
	BAD_WARNING,		/* WARN_ON() or mode fail */
	BAD_STUCK,		/* a request that never ends */
	NR_VERDICTS,
};

struct standin;

struct world {
	struct params params;
	struct rng rng;
	u64 generation;
	struct lc_sb format;	/* as lc-format leaves it */
	struct block_device bdev[NR_DISKS];
	struct dm_dev dm_dev[NR_DISKS];
	u32 disk_pages[NR_DISKS];
	u32 data_page;		/* of the HDD, where the volume begins */
	u32 first_block;	/* of the volume, that the load writes to; up to its end */
	u32 end_block;

	u32 nr_ops;		/* ops[1..nr_ops] */
	struct op ops[MAX_OPS + 1];
	u32 nr_recs;
	struct rec recs[MAX_RECS];
	u64 last_seq;
	u32 hist[MAX_SEQ];	/* by seq: the record of this history */

	/* All that is known to survive, and what it amounts to. */
	u32 base_op;
	u32 around_op;		/* no operation below it went around the log and is not promised */
	struct content base;
	u64 base_seq;
	u32 base_map[MAX_VOLUME];
	u32 began[MAX_SECTORS];	/* what was read in each sector when this life began */

	u32 nr_past;
	struct past past[MAX_LIVES + 1];
	struct life lives[2];
	struct life *life;	/* being lived */
	struct lc_volume *vol;
	struct standin *standin;
	jmp_buf cut;		/* the actions are used up, wherever that is */
	/* the next action, or false: the life ends here */
	bool (*source)(struct life *life, struct action *action);

	enum verdict trouble;	/* seen while living; WARN_ON() and the like */
	char why[256];
	bool verbose;
};

extern struct world *world;

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void trouble(enum verdict verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Where a block of the volume lies on the HDD: not asked of the module, which is judged by it. */
static inline u32 hdd_page(u32 block)
{
	if (world->params.layout == LAYOUT_MOVED_HEAD && block < HEAD_BLOCKS)
		return world->end_block + block;
	return world->data_page + block;
}

static inline u32 rnd(struct rng *rng, u32 below)
{
	u64 z = rng->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (u32)((z ^ z >> 31) >> 32) % below;
}

static inline bool chance(struct rng *rng, u32 percent)
{
	return rnd(rng, 100) < percent;
}

#endif /* EXPLORE_WORLD_H */
