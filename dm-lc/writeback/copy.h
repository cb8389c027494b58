/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copying a sorted batch from the SSD to the HDD: runs of neighbours, read, verified and written,
 * with backoff for the sake of reads by others.
 *
 * Invariants
 *  RS2 The writes of a run are sent in the order of the HDD, by one task under one plug, so that
 *     a RAID sees all that is written of a stripe before it begins to read for its parity.
 *  Y  While others read the HDD, a batch backs off after each `depth` runs that it has started.
 *     A backoff takes how.backoff() jiffies, one more or less.  It ends within YIELD_STEP if
 *     no read has come or ended for YIELD_CALM (copy.c), if how.backoff() becomes 0, or if the
 *     batch is to be given up.  A run counts as the number of runs that it would be without
 *     stripes.
 */
#ifndef LC_WBCOPY_H
#define LC_WBCOPY_H

#include <linux/types.h>

#include "writeback/item.h"

struct lc_cache;
struct workqueue_struct;
struct lc_wbcopy;

/*
 * What to do about errors.  At first a batch ends with the error and is tried again later.
 * Errors of reading the SSD are returned as -EREMOTEIO, those of the HDD as they are.
 */
enum lc_wb_on_error {
	LC_WB_FAIL_BATCH,	/* any error ends the batch */
	LC_WB_ISOLATE_HDD,	/* find out which blocks the HDD refuses */
	LC_WB_ISOLATE_BOTH,	/* also which slots the SSD does not give back as written */
	LC_WB_SKIP,		/* go through all of them, without backoff: each gets its result */
};

#define LC_WB_MAX_BAD	64	/* more bad slots in a batch: the SSD itself fails */

struct lc_wb_how {
	enum lc_wb_on_error on_error;
	u32 max_row;		/* blocks in a row that the HDD may refuse */
	const bool *stop;	/* give up early when this becomes true */
	/*
	 * For how many jiffies may the batch back off for the sake of reads?  @runs of neighbours
	 * it has started since it did so last, with @blocks in them.  0: a task waits for the
	 * batch.  Called by the task that copies; does not sleep.  NULL with LC_WB_SKIP, which
	 * never does.
	 */
	unsigned long (*backoff)(const void *arg, u32 runs, u32 blocks);
	const void *arg;
};

/**
 * lc_wbcopy_create() - preallocate everything for @depth runs in flight
 * @c: the cache
 * @wq: for verifying, WQ_MEM_RECLAIM, outlives the copier
 * @depth: runs in flight
 *
 * May sleep.  Return: the copier or NULL.
 */
struct lc_wbcopy *lc_wbcopy_create(struct lc_cache *c, struct workqueue_struct *wq, u32 depth);

/* No batch is under way.  @copy or NULL.  May sleep. */
void lc_wbcopy_destroy(struct lc_wbcopy *copy);

/**
 * lc_wbcopy_run() - copy a sorted batch
 * @copy: the copier
 * @items: sorted by block, each block once
 * @nr: how many
 * @how: what to do about errors, and when to end early
 *
 * May sleep.  On return nothing is in flight, and each item that is done has its result: all of
 * them if it returns 0, otherwise those of the runs that ended well.
 * Return: 0; -EINTR: *how->stop became true; -EREMOTEIO: the SSD does not give a slot back as it
 * was written; -ENODATA: more than LC_WB_MAX_BAD slots are like that; -EIO: the HDD failed.
 * The HDD is not flushed.
 */
int lc_wbcopy_run(struct lc_wbcopy *copy, struct lc_wb_item *items, u32 nr,
		  const struct lc_wb_how *how);

/*
 * Jiffies that the last batch backed off for the sake of reads, or waited for discards.  From the
 * task that runs the batches.
 */
unsigned long lc_wbcopy_backed_off(const struct lc_wbcopy *copy);

/**
 * lc_wbcopy_write_block() - write some sectors of a block to the HDD
 * @c: the cache
 * @block: block number
 * @mask: sectors
 * @data: of the whole block, physically contiguous
 *
 * May sleep.  In mode rw only a run calls it.  Return: 0 or a negative errno.
 */
int lc_wbcopy_write_block(struct lc_cache *c, u64 block, u8 mask, void *data);

#endif /* LC_WBCOPY_H */
