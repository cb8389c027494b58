/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When writeback gives up on a device that fails.
 *
 * Four kinds of failure are counted.  A batch that succeeds ends the count of the first three:
 *  - The HDD fails writes or a FLUSH.  The log goes on taking writes, and the next batch may
 *    succeed, so writeback gives up only if hdd_patience_ms is set.  A batch ends when the HDD
 *    has refused a number of blocks in a row.  The number doubles with each failure, so that in
 *    the end all blocks of a batch are tried.  But if the HDD takes none of many blocks, the batch
 *    fails, and none is logged again: a dead HDD must not wear the SSD out.
 *  - The SSD does not give headers or slots back as they were written.  They are damaged only
 *    after ssd_patience_ms and a second failure (L18).
 *  - The SSD fails a write of the superblock with the new tail.
 *  - No slot is free to log a block again in (D1).  This is tried once a tick, the length of which
 *    depends on HZ.  So there is a least number of tries, to see what frees slots, and a least
 *    time, for that to happen.
 *
 * No locks: owned by the writeback thread.  Times are jiffies.
 */
#ifndef LC_PATIENCE_H
#define LC_PATIENCE_H

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define LC_PATIENCE_ROW		64u	/* blocks that the HDD refuses before a batch ends */
#define LC_PATIENCE_SBS		5u	/* superblocks that may fail, 31 s in all */
#define LC_PATIENCE_PAUSE	4u	/* the longest one is 2^this seconds */
#define LC_PATIENCE_RELOGS	100u	/* tries without a slot, at least, and */
#define LC_PATIENCE_RELOG	(10 * HZ)	/* this time: a FLUSH frees buffers */

struct lc_patience {
	u32 hdd;
	u32 reads;
	u32 sbs;
	u32 relogs;			/* tries in a row; lc_patience_success() keeps it */
	unsigned long hdd_since;	/* the first failure in the row */
	unsigned long reads_since;
	unsigned long relogs_since;
};

/* A batch has succeeded. */
static inline void lc_patience_success(struct lc_patience *p)
{
	p->hdd = 0;
	p->reads = 0;
	p->sbs = 0;
}

/* The HDD failed a batch.  @ms: hdd_patience_ms, 0: without end.  Return: whether to give up. */
static inline bool lc_patience_hdd(struct lc_patience *p, u32 ms)
{
	if (!p->hdd)
		p->hdd_since = jiffies;
	p->hdd += p->hdd != U32_MAX;
	return ms && p->hdd > 1 && time_after(jiffies, p->hdd_since + msecs_to_jiffies(ms));
}

/* The SSD did not give something back as it was written. */
static inline void lc_patience_read(struct lc_patience *p)
{
	if (!p->reads)
		p->reads_since = jiffies;
	p->reads += p->reads != U32_MAX;
}

/* Are slots that it does not give back damaged from now on?  @ms: ssd_patience_ms. */
static inline bool lc_patience_reads_over(const struct lc_patience *p, u32 ms)
{
	return p->reads > 1 && time_after(jiffies, p->reads_since + msecs_to_jiffies(ms));
}

/* The SSD failed a superblock.  Return: whether to give up. */
static inline bool lc_patience_sb(struct lc_patience *p)
{
	return ++p->sbs > LC_PATIENCE_SBS;
}

/* There was a slot, or there is none for a reason that will pass. */
static inline void lc_patience_relogged(struct lc_patience *p)
{
	p->relogs = 0;
}

/* There is no slot to log a block again in.  Return: whether to give up. */
static inline bool lc_patience_relog(struct lc_patience *p)
{
	if (!p->relogs)
		p->relogs_since = jiffies;
	p->relogs += p->relogs != U32_MAX;
	return p->relogs > LC_PATIENCE_RELOGS &&
	       time_after(jiffies, p->relogs_since + LC_PATIENCE_RELOG);
}

/* Before the next try. */
static inline unsigned long lc_patience_pause(const struct lc_patience *p)
{
	u32 most = max3(p->hdd, p->reads, p->sbs);

	return HZ << min(most ? most - 1 : 0, LC_PATIENCE_PAUSE);
}

/* How many blocks in a row may the HDD refuse in the next batch, of at most @batch? */
static inline u32 lc_patience_row(const struct lc_patience *p, u32 batch)
{
	/* Less than a large batch: one that the HDD refuses as a whole must fail. */
	return min_t(u64, (u64)LC_PATIENCE_ROW << min(p->hdd, 24u),
		     max(batch, LC_PATIENCE_ROW + 1) - 1);
}

#endif /* LC_PATIENCE_H */
