/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How fast the log may be filled while it is as good as full.
 *
 * The larger a batch of writeback, the better its order, and the less the head of the HDD moves
 * for a block.  But the segments of a batch become free all at once, at its end.  If writes could
 * take all of them at once, they would then wait for the next batch, for many seconds.  So the last
 * free segments are handed out at a limited rate.  They are called the zone: as many segments as
 * two batches free.  The rate is proportional to the number of segments that are still free.  When
 * half of the zone is free, it is the rate at which writeback frees segments.  So if writes take
 * all that they may, the number of free segments falls to 1/e in the time of one batch.
 *
 * A batch frees more slots than it writes blocks: slots of overwritten copies need no write.
 * So the rate is the number of all slots of its segments, divided by its expected time.
 *
 * The expected time comes from measured batches, in which a move of the head counts as much
 * as LC_PACE_MOVE blocks that need none (7 ms at 150 MB/s).  The sums are over the last minute
 * or two of work, so that a batch of few blocks has little weight.
 *
 * While others read the HDD, writeback backs off between its moves, for LC_PACE_BACKOFF times as
 * long as they are expected to take, LC_PACE_LONGEST at most (copy.c).  A drive with a cache of its
 * own works during a backoff.  So a batch that backed off for a good part of its time is not
 * measured.  With readers that never stop, it may be long until a batch is.
 */
#ifndef LC_PACE_H
#define LC_PACE_H

#include <linux/compiler.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define LC_PACE_MOVE	256u		/* blocks */
#define LC_PACE_FIRST	250u		/* moves a second, before anything was measured */
#define LC_PACE_MEMORY	(60 * HZ)	/* then both sums are halved */
#define LC_PACE_BACKOFF	3u
#define LC_PACE_LONGEST	(HZ / 10 ?: 1)	/* backoff: the expected time may be far too long */
#define LC_PACE_SHARE	8u /* a batch that is measured backed off one tick of so many, at most */
#define LC_PACE_PARTS	64u		/* of a tick, for what takes few ticks */

struct lc_pace {
	u64 units;		/* blocks and moves, and */
	u64 ticks;		/* jiffies they took; both: thread */
	u32 rate;		/* slots a second that this batch frees, expected; READ_ONCE() */
};

static inline void lc_pace_init(struct lc_pace *pace)
{
	pace->units = LC_PACE_FIRST * LC_PACE_MOVE;
	pace->ticks = HZ;
	pace->rate = LC_PACE_FIRST;
}

/*
 * A batch begins that writes @nr blocks in @runs runs of neighbours and frees @slots slots;
 * @nr is not 0.
 */
static inline void lc_pace_begin(struct lc_pace *pace, u32 nr, u32 runs, u32 slots)
{
	u64 units = nr + (u64)runs * LC_PACE_MOVE;
	u64 measured = max_t(u64, pace->units / LC_PACE_PARTS, 1);
	u64 parts = div64_u64(units * (pace->ticks + 1), measured);
	u64 rate = div64_u64((u64)slots * HZ * LC_PACE_PARTS, max_t(u64, parts, 1));

	WRITE_ONCE(pace->rate, clamp_t(u64, rate, 1, U32_MAX));
}

/* It took so many jiffies, the HDD's FLUSH included, of which it backed off for some. */
static inline void lc_pace_end(struct lc_pace *pace, u32 nr, u32 runs, unsigned long ticks,
			       unsigned long backed_off)
{
	if (backed_off > ticks / LC_PACE_SHARE)
		return;
	pace->units += nr + (u64)runs * LC_PACE_MOVE;
	pace->ticks += ticks;
	while (pace->ticks > LC_PACE_MEMORY) {
		pace->units /= 2;
		pace->ticks /= 2;
	}
}

/*
 * Return: jiffies between two segments of so many slots; @free, @zone: segments.  At most
 * eight times as long as writeback takes for one, however few are left.
 */
static inline unsigned long lc_pace_wait(const struct lc_pace *pace, u32 slots, u64 free, u64 zone)
{
	u64 one = div_u64((u64)slots * HZ, READ_ONCE(pace->rate));

	if (free > zone)
		return 0;
	return min_t(u64, div64_u64(one * zone, 2 * max_t(u64, free, 1)), 8 * one);
}

/* Return: jiffies of backoff after @blocks blocks in @runs runs of neighbours, at least one. */
static inline unsigned long lc_pace_backoff(const struct lc_pace *pace, u32 runs, u32 blocks)
{
	u64 units = blocks + (u64)runs * LC_PACE_MOVE;
	u64 ticks = div64_u64(LC_PACE_BACKOFF * units * (pace->ticks + 1),
			      max_t(u64, pace->units, 1));

	return clamp_t(u64, ticks, 1, LC_PACE_LONGEST);
}

#endif /* LC_PACE_H */
