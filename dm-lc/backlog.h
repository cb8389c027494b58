/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much of the log may wait for the SSD.
 *
 * A FLUSH waits for all that was put into the log before it (G3), and so do a suspend and a
 * removal.  Writers fill half of the buffers in no time, which a slow SSD takes seconds to write.
 * So no more may wait than the SSD writes in LC_BACKLOG_MS, and as much as keeps it busy.  Beyond
 * that, writers run at the speed of the SSD, as they would a little later anyway.
 *
 * Invariants
 *  BL1 The rate is that of the time in which something is on its way.  An SSD with little to do
 *     does not pass for a slow one.
 *  BL2 The bound is at least LC_BACKLOG_LEAST segments: one is open, one is ready or waits for its
 *     turn, one is on its way.  So if writers find no segment that is ready, something is being
 *     written, and the refill worker looks again when that ends.
 *
 * Time is in ns.
 */
#ifndef LC_BACKLOG_H
#define LC_BACKLOG_H

#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

#define LC_BACKLOG_MS		100u
#define LC_BACKLOG_SPAN		(NSEC_PER_SEC / 10)	/* that is measured, at least */
#define LC_BACKLOG_LEAST	3u			/* segments (BL2) */

struct lc_backlog {
	u64 since;	/* something is on its way, and counted up to here */
	u64 busy;	/* time with something on its way, since the last measurement */
	u64 nr;		/* slots written in that time */
	u32 rate;	/* slots a second; 0: not known; READ_ONCE() */
};

/* The first record is on its way. */
static inline void lc_backlog_begin(struct lc_backlog *log, u64 now)
{
	log->since = now;
}

/* A record of so many slots is written, or has failed. */
static inline void lc_backlog_end(struct lc_backlog *log, u64 now, u32 slots)
{
	u64 rate;

	log->busy += now - log->since;
	log->since = now;
	log->nr += slots;
	if (log->busy < LC_BACKLOG_SPAN)
		return;
	rate = div64_u64(log->nr * NSEC_PER_SEC, log->busy);
	WRITE_ONCE(log->rate, clamp_t(u64, rate, 1, U32_MAX));
	log->busy = 0;
	log->nr = 0;
}

/* Segments that each of @lanes may have open, ready and not written; U32_MAX: not known yet. */
static inline u32 lc_backlog_most(const struct lc_backlog *log, u32 seg_slots, u32 lanes)
{
	u64 rate = READ_ONCE(log->rate);

	if (!rate)
		return U32_MAX;
	return div64_u64(rate * LC_BACKLOG_MS, (u64)MSEC_PER_SEC * seg_slots * lanes) +
	       LC_BACKLOG_LEAST;
}

#endif /* LC_BACKLOG_H */
