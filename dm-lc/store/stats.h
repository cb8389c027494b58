/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters that cost nothing while no table has the option `stats` on: a static key, which
 * tables hold from their construction to their end, disables them.  Each CPU has its own.
 */
#ifndef LC_STATS_H
#define LC_STATS_H

#include <linux/jump_label.h>
#include <linux/types.h>

struct lc_counts {
	u64 local, remote;	/* blocks copied to memory of the writer's node, or another's */
	u64 parked;		/* writes that found no buffer or segment */
};

struct lc_stats {
	struct lc_counts __percpu *counts;	/* constant */
	bool on;				/* lc_stats_set(); READ_ONCE() */
};

DECLARE_STATIC_KEY_FALSE(lc_stats_wanted);

/* May sleep.  Return: 0 or -ENOMEM. */
int lc_stats_create(struct lc_stats *stats);

/* Nothing is counted any more.  @stats may be all zero.  May sleep. */
void lc_stats_destroy(struct lc_stats *stats);

/* Put the counts of all CPUs into @sum.  Any context.  Exact while nothing is counted. */
void lc_stats_sum(const struct lc_stats *stats, struct lc_counts *sum);

/* For lc_stats_copy() and lc_stats_parked().  Any context. */
void lc_stats_add_copy(struct lc_stats *stats, const void *to);
void lc_stats_add_parked(struct lc_stats *stats);

/* Count from now on, or not.  Any context. */
static inline void lc_stats_set(struct lc_stats *stats, bool on)
{
	WRITE_ONCE(stats->on, on);
}

/* A block was copied to @to, in a write buffer.  Any context. */
static inline void lc_stats_copy(struct lc_stats *stats, const void *to)
{
	if (static_branch_unlikely(&lc_stats_wanted))
		lc_stats_add_copy(stats, to);
}

/* A write was parked.  Any context. */
static inline void lc_stats_parked(struct lc_stats *stats)
{
	if (static_branch_unlikely(&lc_stats_wanted))
		lc_stats_add_parked(stats);
}

#endif /* LC_STATS_H */
