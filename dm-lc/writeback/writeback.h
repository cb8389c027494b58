/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Draining the log to the HDD: when a batch runs, and what follows of its errors.  A batch lists
 * blocks (collect.h), copies them in the order of the HDD (copy.h), marks them clean and moves the
 * tail (internal.h).
 *
 * Invariants
 *  W1 Only durable slots are written to the HDD, and only verified ones (P4).
 *  W2 A block is written at most once in a batch and batches do not overlap, so at
 *     most one HDD write per block is in flight (C4).  A run claims its blocks: none is
 *     copied while a discard of it is on its way (C5), nor if it was dropped since step 1.
 *  W3 After a failed write or FLUSH of the HDD every block of the batch stays dirty
 *     and the tail stays (F3).  A failed write does not count if its blocks were tried
 *     one by one.
 *  MO1 While c->closed is set, no write puts data into a lane.  A writer looks at it under
 *      lc_hold(); the thread sets it, and waits for all who hold before it asks where the log ends.
 *  MO2 The log is closed only in mode rw, with no sector lost or refused and no disk that fails,
 *      and after the SSD says that this life has used the HDD (AR6).  It is opened again if the
 *      rest of the drain finds such a sector or disk: else a write might wait for ever.
 *  MO3 A write that may neither enter the log nor go around it is parked, and looked at again each
 *      tick.  It waits for writes and discards of its blocks that are on their way, or for the
 *      tail.  If that has no reason to move, the write is the reason (c->in_the_way).
 *  W4 A slot or header that the SSD does not give back as it was written is given up only
 *     after the SSD has failed for ssd_patience_ms (patience.h, L18).
 */
#ifndef LC_WRITEBACK_H
#define LC_WRITEBACK_H

#include <linux/types.h>

struct lc_cache;
struct lc_wb_list;
struct lc_wbcopy;
struct lc_writeback;

/**
 * lc_writeback_create() - allocate, and start the thread quiesced
 * @c: set up to the log and the claims, with env.unpark
 *
 * Attaches to c->refill, which must not have been kicked yet.  May sleep.
 * Return: it or NULL.
 */
struct lc_writeback *lc_writeback_create(struct lc_cache *c);

/* Stop the thread and free it.  Nothing kicks it any more.  @wb or NULL.  May sleep. */
void lc_writeback_destroy(struct lc_writeback *wb);

/**
 * lc_writeback_resize() - new batch size and depth
 * @wb: writeback
 * @batch: blocks; at least a segment's worth is taken
 * @depth: runs in flight
 *
 * May sleep and allocates; under memalloc_noio while the volume is suspended.  Under
 * vol->life_lock, with the salvage paused: lc_volume_resize_writeback() asserts the lock and
 * pauses the salvage.
 * lc_writeback_create() calls it without: no other task knows @wb.
 * Return: 0 or -ENOMEM: nothing changed.
 */
int lc_writeback_resize(struct lc_writeback *wb, u32 batch, u32 depth);

/* Let the thread run again.  Any context. */
void lc_writeback_resume(struct lc_writeback *wb);

/**
 * lc_writeback_pause() - stop, and wait until no own I/O is in flight
 * @wb: writeback
 *
 * May sleep.  A batch under way is given up; its blocks stay dirty.
 */
void lc_writeback_pause(struct lc_writeback *wb);

/* There may be a reason to drain, or none any more.  Any context. */
void lc_writeback_kick(struct lc_writeback *wb);

/**
 * lc_writeback_drain() - drain everything logged up to now
 * @wb: writeback
 *
 * May sleep, but does not wait for the end: see the status line.
 */
void lc_writeback_drain(struct lc_writeback *wb);

/* Option cache_mode has changed.  Back to writeback, the log is open at once.  Any context. */
void lc_writeback_mode(struct lc_writeback *wb);

/*
 * With a cache mode that is not writeback: is the log closed, and is nothing in it that the HDD has
 * not?  Any context.
 */
bool lc_writeback_left(const struct lc_writeback *wb);

/* Constant text for the status line.  Any context. */
const char *lc_writeback_state(struct lc_writeback *wb);

/* Blocks logged again.  Any context. */
u64 lc_writeback_relogged(const struct lc_writeback *wb);

/*
 * What a batch needs, for the rescue, once the mode is not rw any more: writeback begins no batch
 * then.  Process context.
 */
struct lc_wb_list *lc_writeback_list(struct lc_writeback *wb);
struct lc_wbcopy *lc_writeback_copy(struct lc_writeback *wb);
void *lc_writeback_header(struct lc_writeback *wb);	/* memory for two slots */

#endif /* LC_WRITEBACK_H */
