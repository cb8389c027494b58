/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much of the log may wait for the SSD.
 *
 * A FLUSH, a suspend and a removal wait for all that was put into the log before (G3).  Writers
 * can fill half of the buffers in milliseconds, and a slow SSD takes seconds to write that.  So the
 * amount that waits is bounded by what the SSD writes in LC_BACKLOG_MS, plus two segments that
 * keep it busy.  At the bound writers run at the speed of the SSD, as they would a little later
 * anyway.  An SSD counts as slow until its rate is known, which is soon for a fast one.
 *
 * Invariants
 *  BL1 The rate is measured over the time in which a record is on its way.  So an SSD with little
 *     to do does not count as slow.
 *  BL2 The bound is at least LC_BACKLOG_LEAST segments: one is on its way, and writers fill the
 *     other one meanwhile.  So if writers find no segment that is ready, a record is being
 *     written, and the refill worker looks again when that ends.
 *
 * An SSD that writes less than a segment in LC_BACKLOG_MS may take seconds for two of them.  For
 * such an SSD a record has at most a piece: the blocks that it writes in that time.  So a commit
 * does not wait for the rest of a segment.  Writes that are no commits stay in the queue while two
 * pieces are unwritten.
 *
 *  BL3 Writes are held back only while a closed record is on its way.  When that has ended, the SSD
 *     writes the other piece, and meanwhile the clock of the throttle (M1) looks again at the
 *     writes that are held back.
 *
 * Time is in ns.  Any context.  One call of lc_backlog_begin() or lc_backlog_end() at a time: their
 * caller holds a lock.  The others need none.
 */
#ifndef LC_BACKLOG_H
#define LC_BACKLOG_H

#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

#define LC_BACKLOG_MS		50u
#define LC_BACKLOG_SPAN		(NSEC_PER_SEC / 20)	/* a measurement takes this time, or */
#define LC_BACKLOG_SLOTS	1024u			/* this many slots if earlier; 4 MiB */
#define LC_BACKLOG_LEAST	2u			/* segments (BL2) */
#define LC_BACKLOG_PIECE	32u			/* slots, at least */

struct lc_backlog {
	u64 since;	/* while a record is on its way: `busy` has the time up to here */
	u64 busy;	/* time with a record on its way, since the last measurement */
	u64 nr;		/* slots written in that time */
	u32 rate;	/* slots a second; 0: not known; READ_ONCE() */
};

/* A record is on its way, and none was before. */
static inline void lc_backlog_begin(struct lc_backlog *log, u64 now)
{
	log->since = now;
}

/* A record of @slots slots is written, or has failed. */
static inline void lc_backlog_end(struct lc_backlog *log, u64 now, u32 slots)
{
	u64 rate;

	log->busy += now - log->since;
	log->since = now;
	log->nr += slots;
	if (log->busy < LC_BACKLOG_SPAN && log->nr < LC_BACKLOG_SLOTS)
		return;
	rate = div64_u64(log->nr * NSEC_PER_SEC, max_t(u64, log->busy, 1));
	WRITE_ONCE(log->rate, clamp_t(u64, rate, 1, U32_MAX));
	log->busy = 0;
	log->nr = 0;
}

/* Slots that the SSD writes in LC_BACKLOG_MS; 0: not known. */
static inline u64 lc_backlog_slots(const struct lc_backlog *log)
{
	return div_u64((u64)READ_ONCE(log->rate) * LC_BACKLOG_MS, MSEC_PER_SEC);
}

/* The bound: segments of each of @lanes that may be open, ready or not written (BL2). */
static inline u32 lc_backlog_most(const struct lc_backlog *log, u32 seg_slots, u32 lanes)
{
	return div64_u64(lc_backlog_slots(log), (u64)seg_slots * lanes) + LC_BACKLOG_LEAST;
}

/* Blocks of a record, at most; 0: the SSD is not slow, or its rate is not known. */
static inline u32 lc_backlog_piece(const struct lc_backlog *log, u32 seg_slots, u32 lanes)
{
	u64 slots = lc_backlog_slots(log);

	if (!READ_ONCE(log->rate) || slots >= (u64)seg_slots * lanes)
		return 0;
	return max_t(u32, slots, LC_BACKLOG_PIECE);
}

#endif /* LC_BACKLOG_H */
