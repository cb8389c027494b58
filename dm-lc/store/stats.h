/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters.  Each CPU has its own.
 *
 * Those of events that are rare beside writes always count: bios that dm-lc itself sends, batches,
 * parked writes.  Those of the fast path cost nothing while no table has the option `stats` on: a
 * static key, which tables hold from their construction to their end, disables them.
 */
#ifndef LC_STATS_H
#define LC_STATS_H

#include <linux/blk_types.h>
#include <linux/jump_label.h>
#include <linux/types.h>

/* What dm-lc sends to a device, superblock, checkpoint and mark included; no bios of users. */
struct lc_sent {
	u64 writes, written;	/* bios, bytes */
	u64 read;		/* bytes, by writeback; starts are left out */
	u64 flushes;		/* also those that come with a write */
};

struct lc_counts {
	/* Only with the option `stats`: blocks copied to the writer's memory node, or another. */
	u64 local, remote;
	u64 parked;		/* writes that found no buffer or segment */
	u64 batches;		/* of writeback that moved the tail */
	u64 promoted;		/* blocks that became valid on the SSD because they were read */
	u64 around;		/* bytes written around the log */
	struct lc_sent ssd, hdd;
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

/* For lc_stats_copy().  Any context. */
void lc_stats_add_copy(struct lc_stats *stats, const void *to);

/* A write was parked.  Any context. */
void lc_stats_parked(struct lc_stats *stats);

/* A batch of writeback has moved the tail.  Any context. */
void lc_stats_batch(struct lc_stats *stats);

/* So many blocks were promoted.  Any context. */
void lc_stats_promoted(struct lc_stats *stats, u32 nr);

/* A write of so many bytes goes around the log.  Any context. */
void lc_stats_around(struct lc_stats *stats, u32 bytes);

/**
 * lc_stats_sent() - dm-lc sends a bio
 * @stats: of the volume
 * @ssd: to the SSD, else to the hard disk
 * @opf: its operation and flags
 * @bytes: its length
 *
 * Any context.  See lc_env_sent().
 */
void lc_stats_sent(struct lc_stats *stats, bool ssd, blk_opf_t opf, u32 bytes);

/* Count copies from now on, or not.  Any context. */
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

#endif /* LC_STATS_H */
