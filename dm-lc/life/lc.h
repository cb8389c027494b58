/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * struct lc_volume: one live volume and the rooms it owns.
 *
 * A volume outlives a table: several targets (the live and the loaded table of one
 * mapped device) may hold references, and preresume binds one of them.
 *
 * Lock order, outermost first:
 *   lc_volumes_lock (mutex)  registry of volumes; held for look-ups only
 *   vol->life_lock (mutex)  start, stop, suspend, resume, options
 *   wb->batch_lock (mutex)  what a batch needs: list and copier
 *   super->lock (mutex)  superblock and mark updates
 *   name->look_lock (mutex)  asking for the volume's name
 *   index bucket lock (spin)  one block's mapping and its bytes in RAM
 *   groups->lock (spin)  groups of promoted blocks
 *   promote->lock (spin)  reads of promoted blocks that are not in use
 *   lanes->all_lock (spin)  all lanes are about to be locked
 *   lane->lock (spin)  closing a record, opening the next; several only under all_lock
 *   alloc->lock (spin)  numbers of new segments
 *   ring->lock (spin)  head and tail of the ring, what is kept back; innermost
 *   log->lock (spin, irqsave)  sequence numbers and what is durable
 *   submit->lock (spin, irqsave)  whose turn it is to be sent
 *   pool->lock (spin, irqsave)  free buffers
 *   intake->lock (spin, irqsave)  writes waiting for space
 *   discards->lock (spin)  discards that wait
 *   copy->lock (spin, irqsave)  runs of a batch
 *   warm->lock (spin)  what may come back after a crash
 *   claims->lock (spin, irqsave)  claims of blocks on the HDD
 *   doubt.lock (spin, irqsave)  sampled blocks that went to the HDD
 *   bypass->lock (spin, irqsave)  writes and the rescue, in mode degraded
 *   name->lock (spin, irqsave)  the name seen last
 * Bucket locks are never nested and never taken in completion context.
 */
#ifndef LC_H
#define LC_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "log/cache.h"

struct lc_writeback;
struct lc_around;
struct lc_bypass;
struct lc_discards;
struct lc_flush;
struct lc_groups;
struct lc_keep;
struct lc_promote;
struct lc_rescue;
struct lc_intake;
struct lc_warmup;

/* Of a volume in the registry (E2). */
enum lc_stage {
	LC_STAGE_COMING,		/* owned by the task that creates it */
	LC_STAGE_LIVE,
	LC_STAGE_GOING,			/* owned by the task that frees it */
};

struct lc_volume {
	/* Owned by registry.c, and under its lock, but for the last one. */
	struct list_head list;
	struct list_head users;		/* struct lc_user */
	enum lc_stage stage;
	struct list_head held;		/* of the caller of lc_registry_hold() */

	struct lc_cache c;
	struct lc_writeback *wb;
	struct lc_discards *discards;
	struct lc_around *around;
	struct lc_bypass *bypass;
	struct lc_rescue *rescue;
	struct lc_flush *flush;
	struct lc_intake *intake;
	struct lc_groups *groups;
	struct lc_promote *promote;
	struct lc_keep *keep;
	struct lc_warmup *warmup;
	struct workqueue_struct *event_wq;	/* mode events, and nothing they could wait for */

	struct mutex life_lock;		/* start, stop, suspend, resume, options */
	bool started;			/* the epoch is open; under life_lock; READ_ONCE() */
	/*
	 * Not suspended; under life_lock.  lc_volume_teardown() clears it without the lock: only a
	 * rescue may still read it then, and writeback, which the rescue would pause, is paused.
	 */
	bool running;
	bool ended;			/* stopped or failed to start, for good; under life_lock */

	bool outdated;			/* devices of a later life (HB2); READ_ONCE() */

	struct work_struct event_work ____cacheline_aligned_in_smp;
	struct dm_table *table;		/* bound table, for events; under life_lock */
};

#endif /* LC_H */
