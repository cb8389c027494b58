/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What may be brought back into the index after a crash: this life's share.
 *
 * A scan (life/warmup.c) enters copies that it finds on the SSD while the volume is in use.  Here
 * it meets those who change blocks without a record of the log, and is told what it must not enter.
 * The same state says what a scan after the next crash would believe.  docs/design.rst, "Warm after
 * a crash", argues the invariants.
 *
 * Invariants
 *  WS1 The scan takes a record after the one of the next higher seq, and a group after all records
 *      of higher seqs than its own.
 *  WS2 It takes only what exists, in the order of epochs (backscan.h).
 *  WS3 No write goes around the log over a copy that is believed: each clean or pending one is in a
 *      lower segment than `from`, which the superblock has.
 *  WS4 The index knows all copies that a later scan would believe, or lc_warm_unsure() is true:
 *      each discard leaves a tombstone, and no write goes around the log.
 *  WS5 Segments whose places may have been handed out before the crash are not scanned.
 *  WS6 A copy enters the index only if its block is absent there, and was not touched.
 *  WS7 While copies enter the index, no place is handed out of a segment that one was taken from.
 *  WS8 What is taken was written whole: a group without proof of that is read and summed.
 *  WS9 A group that may be taken holds nothing that the HDD may lose.
 *  WS10 A copy that is left out because its block is pending is in a lower segment than the pending
 *      one.  That becomes valid, is replaced by a record or a tombstone, or goes by a write around
 *      the log (WS3) or by lc_warm_drop_pending(): so no later scan believes the copy unknown.
 */
#ifndef LC_WARM_H
#define LC_WARM_H

#include <linux/compiler.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "store/ranges.h"

struct lc_index;
struct lc_mapping;

#define LC_WARM_NOTHING	(~0ULL)	/* no copy is believed */
#define LC_WARM_NEXT	(~0ULL)	/* raise_to: the segment to be handed out next */

struct lc_warm {
	spinlock_t lock;		/* inside a bucket lock */
	struct lc_ranges touched;	/* WS6; lock */
	bool scanning;			/* lock, READ_ONCE() */
	bool full;			/* touched is: nothing enters; lock, READ_ONCE() */
	bool missed;			/* a copy was left out for nothing; lock */
	bool passed;			/* WS10: one was, for a pending one; lock, READ_ONCE() */
	/*
	 * WS3: no scan believes a copy in a lower segment.  At most what the superblock says, or is
	 * about to say.  Written by start.c and by the thread of writeback; lock, READ_ONCE()
	 */
	u64 from;
	bool unsure;			/* WS4; lock, READ_ONCE() */
	u64 raise_to;			/* what `from` is to rise to, or 0; lock, READ_ONCE() */
	bool raising;			/* the superblock is written for it; lock, READ_ONCE() */
	/* Of the scan, set before the life begins: */
	u64 lowest, end;		/* segments; none is scanned if end is 0 */
	u64 tail_seq;			/* replay has applied the records from here on */
	u64 entered;			/* blocks brought back; of the scan; READ_ONCE() */
	u64 left;			/* segments to be scanned; of the scan; READ_ONCE() */
};

void lc_warm_init(struct lc_warm *warm);

/**
 * lc_warm_begin() - a scan begins
 * @warm: of a life that begins
 * @most: ranges that may be touched
 *
 * May sleep.  Return: 0 or -ENOMEM.
 */
int lc_warm_begin(struct lc_warm *warm, u32 most);

/*
 * The scan enters nothing any more.  May sleep; a second call has no effect.  Return: whether it
 * has left out what lc_warm_missed() tells of.
 */
bool lc_warm_end(struct lc_warm *warm);

/**
 * lc_warm_enter() - bring a copy back, unless its block is cached or was touched (WS6)
 * @warm: the scan is under way
 * @index: the index
 * @block: block number
 * @map: the copy; its slot's node is not linked
 *
 * Process context; takes the bucket lock.  Return: whether it is in the index now.
 */
bool lc_warm_enter(struct lc_warm *warm, struct lc_index *index, u64 block,
		   const struct lc_mapping *map);

/**
 * lc_warm_drop_pending() - a pending node leaves the index: its slot never gets the block
 * @warm: of the volume
 * @index: the index
 * @bucket: of the block, locked
 * @block: is in the index, with a node that is pending
 *
 * A copy from before the crash that was left out for it may be on the SSD (WS10).  Then the
 * superblock has to rise above those, and until then lc_warm_unsure() is true.
 */
void lc_warm_drop_pending(struct lc_warm *warm, struct lc_index *index, u32 bucket, u64 block);

/* lc_warm_touch(), while a scan may be under way. */
void lc_warm_touch_scan(struct lc_warm *warm, u64 first, u64 last);

/**
 * lc_warm_touch() - older copies of some blocks are not to come back
 * @warm: of the volume
 * @first: block number
 * @last: the last of them
 *
 * Process context.  Before the index is asked for copies of the blocks, which are claimed, or by
 * the scan itself.
 */
static inline void lc_warm_touch(struct lc_warm *warm, u64 first, u64 last)
{
	/* Pairs with lc_warm_end(): what was entered is in the index. */
	if (smp_load_acquire(&warm->scanning))
		lc_warm_touch_scan(warm, first, last);
}

/*
 * May copies that a later scan would believe be unknown to the index?  Before the index is asked.
 * Any context.
 */
static inline bool lc_warm_unsure(const struct lc_warm *warm)
{
	/* Pairs with lc_warm_sure() and lc_warm_raised(). */
	return smp_load_acquire(&warm->unsure);
}

/* The same, after the index was asked: it may have forgotten copies meanwhile.  Any context. */
static inline bool lc_warm_unsure_now(const struct lc_warm *warm)
{
	/* Pairs with lc_warm_raise(), which comes before a copy is forgotten. */
	smp_rmb();
	return lc_warm_unsure(warm);
}

/* Is `from` about to rise?  Any context. */
static inline bool lc_warm_raising(const struct lc_warm *warm)
{
	/* Pairs with lc_warm_take_raise(). */
	return smp_load_acquire(&warm->raise_to) || READ_ONCE(warm->raising);
}

/*
 * The scan may have left copies out for nothing: what lc_warm_touch() was told has not come to
 * pass.  The blocks are claimed, or their buckets locked.  Process context.
 */
void lc_warm_missed(struct lc_warm *warm);

/**
 * lc_warm_raise() - have `from` rise
 * @warm: of the volume
 * @segment: to this one at least, or LC_WARM_NEXT
 * @unsure: until then that may be so (WS4)
 *
 * Process context.  The thread of writeback sees it within a second, or when it is woken.
 * Return: whether that is not known yet.
 */
bool lc_warm_raise(struct lc_warm *warm, u64 segment, bool unsure);

/* All such copies are in the index, unless something else is to rise.  Process context. */
void lc_warm_sure(struct lc_warm *warm);

/**
 * lc_warm_take_raise() - what is to be done about lc_warm_raise()?
 * @warm: of the volume
 *
 * For the thread of writeback, which calls lc_warm_raised() or lc_warm_not_raised() next.
 * Return: a segment, LC_WARM_NEXT, or 0.
 */
u64 lc_warm_take_raise(struct lc_warm *warm);

/* The superblock says so durably.  Process context. */
void lc_warm_raised(struct lc_warm *warm, u64 from);

/* The superblock could not be written.  @segment: from lc_warm_take_raise().  Process context. */
void lc_warm_not_raised(struct lc_warm *warm, u64 segment);

/* From now on copies in lower segments than @from may be believed, too.  Process context. */
void lc_warm_lower(struct lc_warm *warm, u64 from);

#endif /* LC_WARM_H */
