/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copying dirty blocks from an SSD that was given up to the HDD, while the volume goes on without
 * it.  Blocks in RAM were saved before (rescue.h).
 *
 * Invariants
 *  S-e No block hides another one: a pass tries each block, whatever became of those before it,
 *     unless the SSD fails many slots in a row (salvage.c).  After some blocks in a row that the
 *     HDD refuses there is a pause, then the next block is tried, not the first one again.  Pause
 *     and row double until one succeeds.
 *  S-f A block is lost only in a pass that began when the SSD had failed to give it back as it
 *     was written for ssd_patience_ms.
 *
 * All but lc_salvage_active() may sleep.  Begin, pause, resume and finish are called under
 * vol->life_lock, which the work must therefore not take.  lc_salvage_destroy() pauses the work
 * without the lock: no table uses the volume, and the work of the rescue has ended.
 */
#ifndef LC_SALVAGE_H
#define LC_SALVAGE_H

#include <linux/types.h>

struct lc_volume;
struct lc_salvage;
struct workqueue_struct;

/*
 * @wq: ordered, WQ_MEM_RECLAIM, outlives the salvage.  @done: when all is salvaged or lost, from
 * the work, or from lc_salvage_finish() under life_lock.  It may sleep, takes no life_lock, and
 * does not wait for the work.  Return: the salvage or NULL.
 */
struct lc_salvage *lc_salvage_create(struct lc_volume *vol, struct workqueue_struct *wq,
				     void (*done)(struct lc_volume *vol));

/* End the work and free the salvage.  @salvage or NULL.  May sleep. */
void lc_salvage_destroy(struct lc_salvage *salvage);

/* The cache was abandoned: from here on there is something to salvage. */
void lc_salvage_begin(struct lc_salvage *salvage);
/* Is there anything left to salvage?  Any context. */
bool lc_salvage_active(const struct lc_salvage *salvage);

/* Pause, and wait until none of its I/O is in flight.  Return: whether it was at work before. */
bool lc_salvage_pause(struct lc_salvage *salvage);
/* Undo a pause, if any, and queue the work, which ends at once if nothing is left to salvage. */
void lc_salvage_resume(struct lc_salvage *salvage);
/* Salvage for a minute at most; none of its I/O is in flight afterwards. */
void lc_salvage_finish(struct lc_salvage *salvage);

#endif /* LC_SALVAGE_H */
