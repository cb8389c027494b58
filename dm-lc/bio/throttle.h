/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How fast writes that wait are continued, while there is less space than they want.
 *
 * Space is freed a segment at a time: a few hundred blocks, and then none for as long as the SSD or
 * the hard disk needs for the next segment.  The first tasks to run would take all of it, and all
 * others would wait.  So the throttle measures how fast space is freed, and admits parked writes at
 * about that rate from tick to tick.  All writes wait in one queue (C7), so each is admitted after
 * a wait that is about the same for all of its class.
 *
 * Invariants
 *  M1 While the throttle holds writes back, a clock looks again in a tick or two.  Freed space
 *     wakes the queue as well, so no write waits for ever if the clock is late.
 *  M2 No write is held back while there is plenty of space.  So a rate that was measured when
 *     the SSD was slow never keeps it idle.  The rate also grows while more than one segment
 *     is ready and LC_THROTTLE_LONG has passed without a shortage.
 *
 * Overwrites in place are charged although they need no space.  Writes that must first read an
 * old slot are not charged: they bypass the queue.
 *
 * Time is in jiffies.  All fields belong to the worker of intake.c.
 */
#ifndef LC_THROTTLE_H
#define LC_THROTTLE_H

#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define LC_THROTTLE_SPAN	(HZ / 10 ?: 1)	/* the shortest time that a rate is measured over */
#define LC_THROTTLE_LONG	(HZ / 2) /* time without a shortage: the rate may be too low */
#define LC_THROTTLE_MOST	(1u << 30)	/* blocks a second */
/* credit for so many ticks: clocks are late */
#define LC_THROTTLE_BURST	(HZ > 200 ? HZ / 50 : 4)

struct lc_throttle {
	bool measuring;		/* since and nr are valid */
	bool no_space;		/* a write found no space, and none was written since */
	bool spare;		/* in this tick there was space to spare: the rate grows (M2) */
	unsigned long since;	/* end of the shortage at which the measurement began */
	u64 nr;			/* blocks written since then */
	u32 rate;		/* blocks a second that may be written; 0: not known */
	unsigned long tick;	/* when credit was given last */
	s64 credit;		/* in blocks / HZ; a large bio makes it negative */
};

/* Forget what was measured: nothing waits, and there is plenty of space. */
static inline void lc_throttle_stop(struct lc_throttle *throttle)
{
	*throttle = (struct lc_throttle) {};
}

/* Writes were continued without being counted: a rate measured over that time would be too low. */
static inline void lc_throttle_missed(struct lc_throttle *throttle)
{
	throttle->measuring = false;
}

/* A write has found no space. */
static inline void lc_throttle_no_space(struct lc_throttle *throttle)
{
	throttle->no_space = true;
}

/* Return: whether the rate allows the next bio to be continued.  Free space is not looked at. */
static inline bool lc_throttle_may_admit(struct lc_throttle *throttle, unsigned long now)
{
	if (!throttle->rate)
		return true;
	if (now != throttle->tick) {
		/* Credit for the time since the last call.  More ticks would pay off any debt. */
		unsigned long ticks = min_t(unsigned long, now - throttle->tick,
					    HZ + LC_THROTTLE_BURST);

		if (throttle->spare)
			throttle->rate = min_t(u64, throttle->rate + throttle->rate / 8 + 1,
					       LC_THROTTLE_MOST);
		throttle->spare = false;
		throttle->tick = now;
		throttle->credit = min_t(s64, throttle->credit + (s64)throttle->rate * ticks,
					 (s64)throttle->rate * LC_THROTTLE_BURST);
	}
	return throttle->credit > 0;
}

/* At least half of the segments that refill keeps ready are there: writers need not wait. */
static inline bool lc_throttle_plenty(u64 segments, u64 most)
{
	return 2 * segments >= most;
}

/*
 * Return: whether a write that comes now may pass those that wait.  There must be plenty of
 * space, and more than the last segment, which is left for those that wait.
 */
static inline bool lc_throttle_may_pass(u64 segments, u64 most)
{
	return segments > 1 && lc_throttle_plenty(segments, most);
}

/*
 * After lc_throttle_may_admit() has returned false: @segments of @most are ready.  Return: whether
 * the next bio may be continued nevertheless (M2).
 */
static inline bool lc_throttle_has_spare(struct lc_throttle *throttle, unsigned long now,
					 u64 segments, u64 most)
{
	bool plenty = lc_throttle_plenty(segments, most);

	throttle->spare |= plenty || (segments > 1 && now - throttle->since > LC_THROTTLE_LONG);
	return plenty;
}

/*
 * A shortage has ended.  What was written from the end of one shortage to the end of another is
 * the space that was freed in that time.  The rate is an eighth more than that, so that free space
 * is not left unused.
 */
static inline void lc_throttle_measure(struct lc_throttle *throttle, unsigned long now)
{
	unsigned long span = now - throttle->since;

	if (throttle->measuring && span < LC_THROTTLE_SPAN)
		return;
	if (throttle->measuring) {
		if (!throttle->rate)
			throttle->tick = now;
		throttle->rate = clamp_t(u64,
					 div64_u64(throttle->nr * HZ + throttle->nr * HZ / 8, span),
					 1, LC_THROTTLE_MOST);
	}
	throttle->measuring = true;
	throttle->since = now;
	throttle->nr = 0;
}

/* So many blocks were written, perhaps none. */
static inline void lc_throttle_count(struct lc_throttle *throttle, unsigned long now, u64 nr)
{
	if (throttle->no_space && nr) {
		lc_throttle_measure(throttle, now);
		throttle->no_space = false;
		/* none for time without space */
		throttle->credit = min_t(s64, throttle->credit, 0);
	}
	throttle->nr += nr;
	throttle->credit = max_t(s64, throttle->credit - (s64)nr * HZ, -(s64)throttle->rate * HZ);
}

#endif /* LC_THROTTLE_H */
