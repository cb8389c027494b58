/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Giving up an SSD that has failed: dirty blocks in RAM go to the HDD, the mark says that the cache
 * is abandoned, and the volume goes on without it (mode degraded).  Blocks that are only on the SSD
 * are salvaged afterwards (salvage.h).
 *
 * Invariants
 *  S-a Before the first byte bypasses the SSD, the mark is durable in both copies and says that
 *     the cache is abandoned.
 *  S-b From step 1 (rescue.c) on no mapping is added to the index: writers have left every
 *     record, and the lanes give out no slot.
 */
#ifndef LC_RESCUE_H
#define LC_RESCUE_H

#include <linux/types.h>

struct lc_volume;
struct lc_rescue;

/**
 * lc_rescue_create() - allocate what giving up will need
 * @vol: the volume
 *
 * May sleep.  Return: the rescue or NULL.
 */
struct lc_rescue *lc_rescue_create(struct lc_volume *vol);

/* Wait for the rescue and end the salvage.  @rescue or NULL.  May sleep. */
void lc_rescue_destroy(struct lc_rescue *rescue);

/* Queue the work that takes life_lock and calls lc_rescue_run().  Any context. */
void lc_rescue_start(struct lc_rescue *rescue);

/**
 * lc_rescue_run() - give the SSD up, if it has failed and that was not done yet
 * @rescue: the rescue
 *
 * May sleep.  Under vol->life_lock; lc_health_ssd_failed() was called.
 */
void lc_rescue_run(struct lc_rescue *rescue);

/* Wait until the work has ended, if it was queued.  May sleep; not under vol->life_lock. */
void lc_rescue_wait(struct lc_rescue *rescue);

/**
 * lc_rescue_pause() - salvage nothing for now
 * @rescue: the rescue
 *
 * May sleep; under vol->life_lock.  Return: whether something was to be salvaged, so that
 * lc_rescue_resume() is due.
 */
bool lc_rescue_pause(struct lc_rescue *rescue);

/**
 * lc_rescue_resume() - go on salvaging, if that is not done
 * @rescue: the rescue
 *
 * Under vol->life_lock.
 */
void lc_rescue_resume(struct lc_rescue *rescue);

/**
 * lc_rescue_finish() - the volume is suspended
 * @rescue: the rescue
 * @removing: it goes away: salvage for a minute at most
 *
 * May sleep.  What is not salvaged when it goes away is lost: lc_rescue_record_lost().  No bio
 * is in flight.  Under vol->life_lock.
 */
void lc_rescue_finish(struct lc_rescue *rescue, bool removing);

/**
 * lc_rescue_record_lost() - put the lost sectors of the index into the mark
 * @vol: the volume, abandoned; nothing is salvaged meanwhile
 * @ending: the volume goes away: what is not salvaged is lost, too
 *
 * May sleep.  Looks at each slot without a lock, unless nothing is lost.  The index gains no
 * lost sectors meanwhile.  If there are more than fit into the mark or into memory, the mark says
 * "too many"; if it cannot be written, it says so still.
 */
void lc_rescue_record_lost(struct lc_volume *vol, bool ending);

#endif /* LC_RESCUE_H */
