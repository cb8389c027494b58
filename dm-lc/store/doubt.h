/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The doubtful sectors of the sampled blocks: the HDD may return data for them that are not on
 * its medium.
 *
 * A FLUSH that fails may have dropped the content of the HDD's cache.  The HDD may return that
 * content until the power goes, and no later FLUSH fails because of it (F3).  No block is lost,
 * because none was marked clean.  But the content would get into the fingerprint of a clean stop,
 * and the next start after a power cut would be refused (F8, S5).  So a stop is clean only if no
 * sampled block has a doubtful sector.  Other blocks are not tracked.
 *
 * Invariants
 *  DB1 A sector of a sample that is sent to the HDD, by any sender and with any result, is in
 *      `sent` until a FLUSH of the HDD begins after the end of the write.  It is in `covered`
 *      until that FLUSH ends, and in `doubtful` from then on if the FLUSH has failed.  So are those
 *      in `sent` then: what came after the FLUSH began may have been dropped, too.  A life begins
 *      with all sectors in `sent`, because an earlier life may have left them in the HDD's cache.
 *      The mark is written with a FLUSH, and `sent` is empty afterwards.
 *  DB2 A sector leaves `doubtful` only when the HDD has taken a write of it that began after the
 *      FLUSH that failed, and a FLUSH that began after the end of that write has succeeded.
 *      Less is not enough: neither a FLUSH that succeeds, nor a cache without dirty blocks, nor
 *      a tail that has passed the failed batch.  In each case the block may not have been
 *      written to the HDD again: it was overwritten in the cache, discarded, lost or refused.
 *
 *  DB3 A FLUSH of the HDD that fails, whoever sent it, counts as one that has failed for all that
 *     was written before it, by whomever.  So those who wrote compare the number of failures:
 *     writeback before its first write of a batch and after its FLUSH, the FLUSH of a user after
 *     writes around the log (around.h), and those who write with FUA, before and after it: the HDD
 *     may have no FUA.  If it has changed, nothing of that is believed.
 *
 * The HDD may return anything for a discarded block, and something else the next time.  So a
 * discard adds its sectors to `sent`, before it is sent and again when it has ended, and takes none
 * out of `doubtful`.  A write around the log does the same.
 *
 * One FLUSH of the HDD of our own at a time: from writeback under batch_lock, which lc_wb_flush()
 * asserts, or while writeback is paused.  Those of users are sent at any time.  If one succeeds,
 * that changes nothing here.
 */
#ifndef LC_DOUBT_H
#define LC_DOUBT_H

#include <linux/blk_types.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "format/lc_format.h"

struct lc_env;

struct block_device;

/* A byte for each sample: its sectors. */
struct lc_doubt {
	spinlock_t lock;		/* in completion context too; for all of the following */
	u64 nr_blocks;			/* constant */
	u8 sent[LC_SB_SAMPLES];
	u8 covered[LC_SB_SAMPLES];
	u8 taken[LC_SB_SAMPLES];	/* by writes begun after the last FLUSH, without an error */
	/* The sender of our own FLUSHes reads it without: READ_ONCE() */
	u8 doubtful[LC_SB_SAMPLES];
	u32 failures;			/* FLUSHes that failed, see DB3; READ_ONCE() */
};

/*
 * A life begins: no other task uses @doubt.  All samples are in `sent` (DB1).  @nr_blocks: of the
 * volume.  Does not sleep, takes no lock.
 */
void lc_doubt_init(struct lc_doubt *doubt, u64 nr_blocks);

/*
 * The mark was written with a FLUSH, and nothing else in this life: empty `sent` (DB1).  No other
 * task uses @doubt.
 */
void lc_doubt_marked(struct lc_doubt *doubt);

/**
 * lc_doubt_sent() - these sectors go to the HDD
 * @doubt: of the volume
 * @block: of the volume, sampled or not
 * @mask: its sectors
 *
 * Any context.  Before the write is sent, and no FLUSH begins before the write has ended.
 */
void lc_doubt_sent(struct lc_doubt *doubt, u64 block, u8 mask);

/**
 * lc_doubt_changed() - these blocks are discarded, or written around the log
 * @doubt: of the volume
 * @first: block of the volume
 * @last: block of the volume
 *
 * Any context.  Called before the bio is sent to the HDD, and again when it has ended: a FLUSH that
 * begins in between may cover it or not.
 */
void lc_doubt_changed(struct lc_doubt *doubt, u64 first, u64 last);

/**
 * lc_doubt_taken() - the HDD has taken a write of these sectors
 * @doubt: of the volume
 * @block: of the volume, sampled or not
 * @mask: its sectors
 * @failures: lc_doubt_failures() before the write began; if more have failed since, the write
 *	counts for nothing (DB3)
 *
 * Any context.  By the sender of the FLUSHes, before lc_doubt_begin(), and only for a write that
 * began after the last FLUSH (DB2).
 */
void lc_doubt_taken(struct lc_doubt *doubt, u64 block, u8 mask, u32 failures);

/* A FLUSH of the HDD is about to be sent.  Any context.  No other one is in flight. */
void lc_doubt_begin(struct lc_doubt *doubt);

/* The FLUSH has ended.  @well: without an error.  Any context. */
void lc_doubt_end(struct lc_doubt *doubt, bool well);

/*
 * Return: whether a sample is doubtful, so that no fingerprint may be taken.  Any context.  By the
 * sender of the FLUSHes, so that none begins or ends at the same time.
 */
bool lc_doubt_any(struct lc_doubt *doubt);

/**
 * lc_doubt_flush_failed() - a FLUSH of the HDD has failed that lc_doubt_flush() has not sent
 * @doubt: of the volume
 *
 * Any context, before the bio ends.
 */
void lc_doubt_flush_failed(struct lc_doubt *doubt);

/**
 * lc_doubt_fua_failed() - a write of a user has failed on the HDD
 * @doubt: of the volume
 * @opf: of the write
 *
 * If it had FUA, and the HDD, or what it is stacked on, has no such thing, the block layer has
 * flushed that after the write: what failed may be the FLUSH.  Any context, before the bio ends.
 */
void lc_doubt_fua_failed(struct lc_doubt *doubt, blk_opf_t opf);

/* How many FLUSHes of the HDD have failed (DB3)?  Any context. */
u32 lc_doubt_failures(const struct lc_doubt *doubt);

/**
 * lc_doubt_flush() - send a FLUSH to the HDD, with lc_doubt_begin() and lc_doubt_end()
 * @doubt: of the volume
 * @env: whose HDD it is
 *
 * May sleep.  Return: 0 or a negative errno.
 */
int lc_doubt_flush(struct lc_doubt *doubt, const struct lc_env *env);

#endif /* LC_DOUBT_H */
