/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which records of a log exist after a crash?  The decision apart from the I/O:
 * record facts in, the unbroken run out.  Pure, like format.h, and shared with
 * lc-check, KUnit and the userspace explorer.
 *
 * Rules (docs/design.rst, hazards L1, L2, L4):
 *  R1 A record of epoch e does not exist if its seq is at or above the first
 *     seq of any later epoch, known from any valid header or from the superblock,
 *     which also tells of earlier lives.
 *  R2 Among records of one seq the higher epoch wins.
 *  R3 Seqs below the superblock's tail are ignored.
 *  R4 The run starts at the tail seq and ends before the first missing seq.  A
 *     record that no chain of headers leads to counts as missing: whether it is found
 *     depends on which slots are tried, and must not decide what the log is.
 *  R5 durable_seq is believed from every record that exists after R1, also
 *     beyond the break.  A run that ends below it is damage, not a torn tail.
 *  R6 A record of an epoch above the superblock's proves that the superblock is
 *     an old one: the first record of a life is written only after both front
 *     copies hold its epoch (L1, L9).  A whole life would be missed, so refuse.
 *     The mark would say the same, but there may be none (lc-format --no-mark).
 *  R7 Epochs do not fall while segment numbers rise, because every life opens its segments
 *     after all that the life before it left: a record does not exist if its segment, or a
 *     lower one, holds a record of a later life.  (Without this rule: a life wrote a record
 *     twice.  The start after a crash found only the first copy, because the second one came
 *     after a torn header, or after more stale segments than the scan goes through.  The
 *     records of the next life end where the second copy begins, so that the chain of headers
 *     leads to it then.  It would win over the first copy, although its data may be missing:
 *     data of records below the durable seq is not verified.)
 */
#ifndef LC_REPLAY_H
#define LC_REPLAY_H

#include "format.h"

#define LC_REPLAY_CHUNK		(1u << 13)	/* records */
#define LC_REPLAY_LIVES		(1u << 16)	/* more lives are refused */
#define LC_REPLAY_NONE		(~0u)
#define LC_REPLAY_FAR_BACK	16383u

/*
 * What replay keeps of one record header that decoded.  A scan follows the chains, and
 * tries every slot of segments without a first header and from the end of the run on.
 * Otherwise one rotten header would make all that follows look like a torn tail (L4, L13).
 * A header that no chain leads to is hidden (R4).
 *
 * There may be one for each slot of the SSD that holds no data, so it is small (RP1).
 * Seqs are kept whole.  Only numbers that have a bound are kept as a distance: from the tail's
 * segment on, a place is one of the ring, which has less than 2^32.
 */
struct lc_replay_record {
	u64 seq;
	/*
	 * How many seqs from tail_seq on the header calls durable: durable_seq + 1 - tail_seq, or
	 * 0 if that is negative.  LC_REPLAY_NONE also stands for any higher number: no run is as
	 * long, so each run ends below the durable seq, which is damage (R5).
	 */
	u32 durable;
	u32 place;	/* segment and slot, from the tail's segment on: lc_replay_segment() */
	union {
		u32 next;	/* while they are sorted */
		/* out: of lc_replay_find_boundaries(), see lc_replay_boundary_segment() */
		u32 boundary;
	};
	u32 life : 16;
	/*
	 * Segments back to the boundary that its header tells, less than a round, which is 2,048 at
	 * most; FAR_BACK and more, of a damaged header: to the tail's.
	 */
	u32 back : 14;
	u32 hidden : 1;	/* no chain of headers leads to it: it only tells of others */
	u32 keep : 1;	/* out: part of the run */
};

static_assert(sizeof(struct lc_replay_record) == 24, "lc_replay_record");
static_assert(LC_REPLAY_LIVES <= 1u << 16, "lc_replay_record.life");

/* A life that headers tell of; one epoch has several if they disagree about its beginning. */
struct lc_replay_life {
	u64 epoch;
	u64 first_seq;
	u64 end_seq;		/* out: from this seq on its records do not exist (R1) */
	u32 segment;		/* the lowest that has a record of it, from the tail's on */
	u32 end_segment;	/* out: from this one on they do not exist (R7) */
};

/*
 * The headers found.  The owner provides the memory after lc_replay_init(), and frees it: chunks
 * are added as they are wanted (lc_replay_wants()), and nothing is ever copied to grow.
 *
 *  RP1 A start takes 24 bytes for each header, and none more to sort them; at most one
 *      chunk of 192 KiB more than that, 8 bytes a chunk that there may be, and 36 bytes
 *      for each of LC_REPLAY_LIVES lives or of the ring's slots, if these are fewer.
 *  RP2 Each slot is in it once at most: nr never exceeds the slots of the ring, max.
 */
struct lc_replay_log {
	u64 tail_seq;
	u64 tail_segment;
	u64 nr_segments;
	u32 slot_shift;
	u32 nr;			/* records */
	u32 max;		/* that there may be */
	u32 nr_sorted;		/* the first ones are in order, since lc_replay_select() */
	u32 nr_lives;		/* in lives[] */
	u32 nr_told;		/* in by_epoch[]: those that records tell of */
	u32 max_lives;
	u32 recent;		/* life of the last header, or LC_REPLAY_NONE */
	/* Of the owner: */
	struct lc_replay_record **chunks;	/* lc_replay_chunks() pointers, NULL at first */
	struct lc_replay_life *lives;		/* max_lives */
	u32 *by_epoch;				/* max_lives */
};

struct lc_replay_result {
	u64 first_seq;		/* of the run; last_seq + 1 if it is empty */
	u64 last_seq;		/* of the run */
	u64 durable_seq;	/* highest believed: data up to it needs no check */
	u64 next_segment;	/* where the next life opens its first segment */
	u32 nr_kept;
};

/**
 * lc_replay_init() - an empty log, which wants memory
 * @log: all of it is set; the owner sets chunks, lives and by_epoch next
 * @sb: the superblock replay trusts
 */
void lc_replay_init(struct lc_replay_log *log, const struct lc_sb *sb);

/**
 * lc_replay_chunks() - how many chunks there may be
 * @log: the log
 */
u32 lc_replay_chunks(const struct lc_replay_log *log);

/**
 * lc_replay_wants() - is a chunk wanted before lc_replay_add()?
 * @log: the log
 *
 * Return: of how many records; it belongs to chunks[nr / LC_REPLAY_CHUNK].  0: none is.
 */
u32 lc_replay_wants(const struct lc_replay_log *log);

/**
 * lc_replay_add() - take a header in
 * @log: has a chunk for it, see lc_replay_wants()
 * @info: as lc_record_decode() has read it; no other one of its slot is in @log (RP2)
 * @hidden: no chain of headers leads to it
 *
 * Return: 0; -E2BIG if there are too many lives; -ERANGE if it is at no place of the ring, from
 * the tail's segment on.
 */
int lc_replay_add(struct lc_replay_log *log, const struct lc_record_info *info, bool hidden);

/**
 * lc_replay_has() - was this header there when lc_replay_select() sorted them?
 * @log: the log
 * @info: as lc_record_decode() has read it, at a place of the ring
 */
bool lc_replay_has(const struct lc_replay_log *log, const struct lc_record_info *info);

/**
 * lc_replay_forget() - drop what was found above a segment
 * @log: not sorted yet
 * @last_segment: its number, at or above the tail's
 */
void lc_replay_forget(struct lc_replay_log *log, u64 last_segment);

/**
 * lc_replay_latest() - the latest epoch of all records, 0 without any
 * @log: the log
 */
u64 lc_replay_latest(const struct lc_replay_log *log);

/**
 * lc_replay_select() - find the unbroken run
 * @sb: the superblock replay trusts, as for lc_replay_init()
 * @log: facts of every header found; sorted by seq afterwards, keep set on the run
 * @result: the run
 *
 * Return: 0; -EUCLEAN if the run ends below a seq that was durable: records are damaged, and
 * the start must be refused; -ESTALE if a record is of a later life than the superblock, which
 * is an old one then.  @result is valid in all cases.
 */
int lc_replay_select(const struct lc_sb *sb, struct lc_replay_log *log,
		     struct lc_replay_result *result);

/**
 * lc_replay_find_boundaries() - where may the tail move to?
 * @log: sorted by lc_replay_select()
 *
 * Sets the boundary of each kept record, or none.  The record and all higher seqs of the run are in
 * that segment or in higher ones, all lower seqs in lower segments.
 */
void lc_replay_find_boundaries(struct lc_replay_log *log);

/**
 * lc_replay_next_life() - a life begins: its numbers, and the earlier lives that R1 needs
 * @sb: tail fields are set already
 * @first_seq: of the life
 *
 * For R1 the superblock need not list a life if the next one begins at the same seq, nor one that
 * begins at or below the tail, except the latest of these.  If there are still too many, the
 * oldest are left out: only headers tell of them.
 */
void lc_replay_next_life(struct lc_sb *sb, u64 first_seq);

/**
 * lc_replay_truncate() - shorten the run, its data turned out torn
 * @log: sorted by lc_replay_select()
 * @last_seq: new end of the run, at least result->durable_seq
 * @result: updated
 */
void lc_replay_truncate(struct lc_replay_log *log, u64 last_seq, struct lc_replay_result *result);

/* Record @i, in the order in which they were found; after lc_replay_select() by seq. */
static inline struct lc_replay_record *lc_replay_at(const struct lc_replay_log *log, u32 i)
{
	return &log->chunks[i / LC_REPLAY_CHUNK][i % LC_REPLAY_CHUNK];
}

static inline u64 lc_replay_segment(const struct lc_replay_log *log,
				    const struct lc_replay_record *r)
{
	return log->tail_segment + (r->place >> log->slot_shift);
}

static inline u32 lc_replay_slot(const struct lc_replay_log *log, const struct lc_replay_record *r)
{
	return r->place & ((1u << log->slot_shift) - 1);
}

/* The boundary that the header told of, or a lower segment. */
static inline u64 lc_replay_told_boundary(const struct lc_replay_log *log,
					  const struct lc_replay_record *r)
{
	u32 distance = r->place >> log->slot_shift;

	return r->back == LC_REPLAY_FAR_BACK || r->back > distance ?
	       log->tail_segment : log->tail_segment + distance - r->back;
}

/* What lc_replay_find_boundaries() found, or 0. */
static inline u64 lc_replay_boundary_segment(const struct lc_replay_log *log,
					     const struct lc_replay_record *r)
{
	return r->boundary == LC_REPLAY_NONE ? 0 : log->tail_segment + r->boundary;
}

#endif /* LC_REPLAY_H */
