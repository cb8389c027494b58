/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How fast writes that wait are continued, while there is less room than they want.
 *
 * Space is freed a segment at a time: a few hundred blocks, and then none for as long as the SSD
 * or the hard disk needs for the next segment.  The first tasks to run would take all of it, and
 * all others would wait.  So the meter measures how fast space is freed, and admits parked writes
 * at about that rate from tick to tick.  All writes wait in one queue (C7), so each is admitted
 * after a wait that is about the same for all of its class.
 *
 * Invariants
 *  M1 While the meter holds writes back, a clock looks again in a tick or two.  Freed space
 *     wakes the queue as well, so no write waits for ever if the clock is late.
 *  M2 No write is held back while there is plenty of space.  So a rate that was measured when
 *     the SSD was slow never keeps it idle.  The rate also grows while more than one segment
 *     is ready and LC_METER_LONG has passed without a shortage.
 *
 * Overwrites in place are charged although they need no space.  Writes that must first read an
 * old slot are not charged: they bypass the queue.
 *
 * Time is in jiffies.  All fields belong to the worker of intake.c.
 */
#ifndef LC_METER_H
#define LC_METER_H

#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define LC_METER_SPAN	(HZ / 10 ?: 1)	/* the shortest time that a rate is measured over */
#define LC_METER_LONG	(HZ / 2)	/* time without a shortage: the rate may be too low */
#define LC_METER_MOST	(1u << 30)	/* blocks a second */
#define LC_METER_BURST	(HZ > 200 ? HZ / 50 : 4) /* credit for so many ticks: clocks are late */

struct lc_meter {
	bool measuring;		/* since and nr are valid */
	bool dry;		/* a write found no space, and none was written since */
	bool ample;		/* in this tick there was space to spare: the rate grows (M2) */
	unsigned long since;	/* end of the shortage at which the measurement began */
	u64 nr;			/* blocks written since then */
	u32 rate;		/* blocks a second that may be written; 0: not known */
	unsigned long tick;	/* when credit was given last */
	s64 credit;		/* in blocks / HZ; a large bio makes it negative */
};

/* Forget what was measured: nothing waits, and there is plenty of room. */
static inline void lc_meter_stop(struct lc_meter *meter)
{
	*meter = (struct lc_meter) {};
}

/* Writes were continued without being counted: a rate measured over that time would be too low. */
static inline void lc_meter_missed(struct lc_meter *meter)
{
	meter->measuring = false;
}

/* A write has found no space. */
static inline void lc_meter_dry(struct lc_meter *meter)
{
	meter->dry = true;
}

/* Return: whether the rate allows the next bio to be continued.  Free space is not looked at. */
static inline bool lc_meter_may(struct lc_meter *meter, unsigned long now)
{
	if (!meter->rate)
		return true;
	if (now != meter->tick) {
		/* Credit for the time since the last call.  More ticks would pay off any debt. */
		unsigned long ticks = min_t(unsigned long, now - meter->tick, HZ + LC_METER_BURST);

		if (meter->ample)
			meter->rate = min_t(u64, meter->rate + meter->rate / 8 + 1, LC_METER_MOST);
		meter->ample = false;
		meter->tick = now;
		meter->credit = min_t(s64, meter->credit + (s64)meter->rate * ticks,
				      (s64)meter->rate * LC_METER_BURST);
	}
	return meter->credit > 0;
}

/* At least half of the segments that refill keeps ready are there: writers need not wait. */
static inline bool lc_meter_plenty(u64 segments, u64 most)
{
	return 2 * segments >= most;
}

/*
 * Return: whether a write that comes now may pass those that wait.  There must be plenty of
 * space, and more than the last segment, which is left for those that wait.
 */
static inline bool lc_meter_pass(u64 segments, u64 most)
{
	return segments > 1 && lc_meter_plenty(segments, most);
}

/*
 * After lc_meter_may() has returned false: @segments of @most are ready.  Return: whether the next
 * bio may be continued nevertheless (M2).
 */
static inline bool lc_meter_may_exceed(struct lc_meter *meter, unsigned long now, u64 segments,
				       u64 most)
{
	bool plenty = lc_meter_plenty(segments, most);

	meter->ample |= plenty || (segments > 1 && now - meter->since > LC_METER_LONG);
	return plenty;
}

/*
 * A shortage has ended.  What was written from the end of one shortage to the end of another is
 * the space that was freed in that time.  The rate is an eighth more than that, so that free space
 * is not left unused.
 */
static inline void lc_meter_measure(struct lc_meter *meter, unsigned long now)
{
	unsigned long span = now - meter->since;

	if (meter->measuring && span < LC_METER_SPAN)
		return;
	if (meter->measuring) {
		if (!meter->rate)
			meter->tick = now;
		meter->rate = clamp_t(u64, div64_u64(meter->nr * HZ + meter->nr * HZ / 8, span),
				      1, LC_METER_MOST);
	}
	meter->measuring = true;
	meter->since = now;
	meter->nr = 0;
}

/* So many blocks were written, perhaps none. */
static inline void lc_meter_count(struct lc_meter *meter, unsigned long now, u64 nr)
{
	if (meter->dry && nr) {
		lc_meter_measure(meter, now);
		meter->dry = false;
		meter->credit = min_t(s64, meter->credit, 0);	/* none for time without space */
	}
	meter->nr += nr;
	meter->credit = max_t(s64, meter->credit - (s64)nr * HZ, -(s64)meter->rate * HZ);
}

#endif /* LC_METER_H */
