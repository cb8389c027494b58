/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which blocks that are read are kept on the SSD.  Pure: no lock, no I/O.
 *
 * Reads and writes share one ring.  What is promoted takes room that written blocks would use, and
 * it wears the SSD.  So there are three rules:
 *
 *  - Second touch.  A block is promoted when it is missed again while a ghost, a table of
 *    fingerprints, remembers its last miss.  A block that is read once, as in a scan, never is.
 *  - First touch, where it pays.  A block that is missed for the first time may be promoted, too,
 *    if its read is short, because long ones are seldom repeated.
 *  - What it was good for.  The reuse of a segment tells which of its promoted blocks were read.
 *    If too few were, of those of the first touch or of those of the second, no more are promoted
 *    this way, but for a few that tell when that changes.  So promotion stops where room is worth
 *    more to written blocks.
 *
 * And there is a budget for the first touch.  Each block read earns three tenths of a block, each
 * slot of a segment that is taken for promoted blocks costs one, and one that is taken for writes a
 * little more.  So an SSD that is busy with writes gets nothing at the first touch.
 *
 * When a segment is reused, promoted blocks that were read in both halves of its time in the ring
 * are logged again.  Reads that follow one another closely count once: they do not tell that there
 * will be more later.
 *
 * The ghost is that of ARC, without its lists; that a bit stands for all hits is CLOCK's idea, and
 * that a block must be hit at two times before it stays is that of LRU-2 and S3-FIFO.  tests/sim
 * runs this file over traces; docs/design.rst has the figures.
 *
 * Invariants
 *  AD1 RAM: at most one byte for every two slots, everything included.
 *  AD2 A call takes a bounded number of steps, and writes at most two cache lines that other CPUs
 *      use.
 *  AD3 Each answer is a hint.  Whatever it is, and whatever races with a call, no data depends on
 *      it.  So nothing here is locked, fingerprints may be those of other blocks, and updates of
 *      what is shared may be lost.
 *  AD4 Of each segment that is reused, less than half of the blocks are logged again, so reuse
 *      always frees room.
 *
 * A hit sets a flag in the node of the index, lc_admit_hit(), and only if it is not set.  One hit
 * in 64 is counted.
 */
#ifndef LC_ADMIT_H
#define LC_ADMIT_H

#include <linux/types.h>

/* What the index keeps of each cached block for this room. */
#define LC_ADMIT_PROMOTED	0x01u	/* read from the HDD, not written */
#define LC_ADMIT_HIT_YOUNG	0x02u	/* read while its segment was in the newer half */
#define LC_ADMIT_HIT_OLD	0x04u	/* ... in the older half of the ring */
#define LC_ADMIT_KEPT		0x08u	/* logged again */
#define LC_ADMIT_FIRST		0x10u	/* promoted at the first touch */
#define LC_ADMIT_FLAGS		0x1fu

#define LC_ADMIT_CUTOFF		2048u	/* sectors; nothing of a longer stream is promoted */
#define LC_ADMIT_SAMPLE		64u	/* one hit of so many is counted */

struct lc_admit;

/**
 * lc_admit_create() - nothing is known yet
 * @nr_slots: of the SSD
 * @seg_slots: of a segment
 *
 * May sleep.  Return: the policy or NULL.
 */
struct lc_admit *lc_admit_create(u64 nr_slots, u32 seg_slots);

/* No other task uses @admit, which may be NULL.  May sleep. */
void lc_admit_destroy(struct lc_admit *admit);

/* Return: bytes of RAM that lc_admit_create() takes for so many slots (AD1). */
u64 lc_admit_need(u64 nr_slots);

/**
 * lc_admit_miss() - a block is read from the HDD: shall it be promoted?
 * @admit: of the volume
 * @block: block number; no copy of it is cached
 * @stream: sectors of the stream that the read belongs to, lc_stream_note()
 *
 * Any context.  Once for each block of a read.  If nothing is promoted although it should be, the
 * next miss of the block is likely to get the same answer.
 *
 * Return: 0 if not, or the flags of the block when it is promoted.
 */
u8 lc_admit_miss(struct lc_admit *admit, u64 block, u32 stream);

/*
 * Return: the flags of a block after a hit.  The caller stores them only if they differ.  @old: at
 * least half of all segments were taken from the ring since the block's one was.
 */
static inline u8 lc_admit_hit(u8 flags, bool old)
{
	return flags | (old ? LC_ADMIT_HIT_OLD : LC_ADMIT_HIT_YOUNG);
}

/*
 * Return: whether the hit of a block is counted, lc_admit_hits().  @now: any clock that goes on
 * while blocks are read, such as jiffies: so that it is not always the same blocks.
 */
static inline bool lc_admit_counts(u64 block, unsigned long now)
{
	return !((block + now) % LC_ADMIT_SAMPLE);
}

/* LC_ADMIT_SAMPLE blocks were read from the cache.  Any context. */
void lc_admit_hits(struct lc_admit *admit);

/**
 * lc_admit_reuse() - a segment is taken from the ring, for writes as far as is known
 * @admit: of the volume
 *
 * By the worker that evicts, for each segment, before its first block.
 */
void lc_admit_reuse(struct lc_admit *admit);

/*
 * So many slots of a segment that was taken are for promoted blocks and those that are logged again
 * after all.  Any context.
 */
void lc_admit_ceded(struct lc_admit *admit, u32 nr_slots);

/**
 * lc_admit_keep() - shall a clean block of a segment that is reused be logged again?
 * @admit: of the volume
 * @flags: LC_ADMIT_* of its node
 *
 * By the worker that evicts, once for each mapped block, after lc_admit_reuse().  If it is logged
 * again, its flags are lc_admit_kept().  If not, lc_admit_evicted() follows.
 */
bool lc_admit_keep(struct lc_admit *admit, u8 flags);

/* Return: the flags of a block that is logged again: no hit is known. */
static inline u8 lc_admit_kept(u8 flags)
{
	return (flags & LC_ADMIT_PROMOTED) | LC_ADMIT_KEPT;
}

/**
 * lc_admit_evicted() - a block is not cached any more, because its segment is reused
 * @admit: of the volume
 * @block: block number
 * @flags: LC_ADMIT_* of its node
 *
 * By the worker that evicts.
 */
void lc_admit_evicted(struct lc_admit *admit, u64 block, u8 flags);

#endif /* LC_ADMIT_H */
