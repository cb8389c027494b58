/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which blocks that are read are kept on the SSD.  Pure: no lock, no I/O.
 *
 * Reads and writes share one ring.  What is promoted takes room that written blocks would use, and
 * it wears the SSD.  So a block is promoted when it is missed for the second time within a while:
 * a block that is read once, as in a scan, never is.  Where most promoted blocks are read again
 * before their segment is reused, that is too careful, and a part of the blocks is promoted at the
 * first miss.  Where written blocks would have been read if they had stayed longer, and promoted
 * ones are not, nothing is promoted.  Both are learnt from the segments that are reused.
 *
 * Invariants
 *  AD1 RAM: at most one byte for every two slots, everything included.
 *  AD2 A call takes a bounded number of steps, and at most two cache lines that other CPUs write.
 *  AD3 Each answer is a hint.  Whatever it is, and whatever races with a call, no data depends on
 *      it.  So blocks are kept as fingerprints, and nothing here is locked.
 *  AD4 Of each segment that is reused, at most lc_admit_most_kept() blocks are logged again: less
 *      than half, so that reuse always frees room.
 *
 * A hit calls nothing here.  It sets a flag in the node of the index, lc_admit_hit(), and only if
 * the flag is not set.
 */
#ifndef LC_ADMIT_H
#define LC_ADMIT_H

#include <linux/types.h>

/* What the index keeps of each cached block for this room: bits of its own, in this order. */
#define LC_ADMIT_PROMOTED	0x1u	/* read from the HDD, or logged again while clean; not written */
#define LC_ADMIT_HIT		0x2u	/* read since it was logged */
#define LC_ADMIT_HIT_AGAIN	0x4u	/* more than once */
#define LC_ADMIT_KEPT		0x8u	/* logged again since it was written or promoted */
#define LC_ADMIT_FLAGS		0xfu

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

/* Return: bytes of RAM that lc_admit_create() allocates for so many slots (AD1). */
u64 lc_admit_need(u64 nr_slots);

/**
 * lc_admit_miss() - a block was read from the HDD: shall it be promoted?
 * @admit: of the volume
 * @block: block number; no copy of it is cached
 *
 * Any context.  Once for each block of a read, and not for reads of a long stream (stream.h).  If
 * the answer is true and nothing is promoted after all, the next miss of the block is likely to get
 * the same answer.
 */
bool lc_admit_miss(struct lc_admit *admit, u64 block);

/**
 * lc_admit_keep() - shall a clean block of a segment that is reused be logged again?
 * @admit: of the volume
 * @block: block number
 * @flags: LC_ADMIT_* of its node
 *
 * By the worker that evicts, for each mapped clean block, in the order of slots, after
 * lc_admit_reuse().  If it is logged again, its flags are lc_admit_kept().  If not,
 * lc_admit_evicted() follows.
 */
bool lc_admit_keep(struct lc_admit *admit, u64 block, u8 flags);

/* Its flags after that: no hit is known.  Logged again while clean, it is as if promoted. */
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

/* By the worker that evicts, before the first block of each segment that it reuses. */
void lc_admit_reuse(struct lc_admit *admit);

/* Return: how many blocks of a segment lc_admit_keep() keeps at most (AD4). */
u32 lc_admit_most_kept(u32 seg_slots);

/* Return: the flags of a block after a hit.  The caller stores them only if they differ. */
static inline u8 lc_admit_hit(u8 flags)
{
	if (flags & LC_ADMIT_HIT)
		return flags | LC_ADMIT_HIT_AGAIN;
	return flags | LC_ADMIT_HIT;
}

#endif /* LC_ADMIT_H */
