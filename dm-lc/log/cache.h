/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * struct lc_cache: the rooms of one volume up to the log, for the rooms above them.
 *
 * Reads, writes, discards, writeback and the life of the volume use these rooms together, and
 * hold this instead of a pointer to each.  It holds nothing of the rooms that use it: they are
 * told of events through a kick in the environment, or a callback.  log/ is the lowest folder that
 * may know all of these rooms.  Of the rooms in log/ itself, only refill and relog use it.
 *
 * The pointers are constant once the volume is set up.  Each room writes only its own state, also
 * where that is embedded here.
 */
#ifndef LC_CACHE_H
#define LC_CACHE_H

#include <linux/mempool.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "format/format.h"
#include "store/doubt.h"
#include "store/env.h"
#include "store/fit.h"
#include "store/health.h"
#include "store/index.h"
#include "store/slot.h"
#include "store/stats.h"
#include "store/sums.h"
#include "store/warm.h"

struct lc_ring;
struct lc_pool;
struct lc_alloc;
struct lc_lanes;
struct lc_log;
struct lc_submit;
struct lc_admit;
struct lc_refill;
struct lc_super;
struct lc_hdd_mark;
struct lc_claims;

struct lc_cache {
	struct lc_env env;
	struct lc_health health;

	struct lc_fit fit;		/* what reads of the SSD must fit */
	struct lc_doubt doubt;		/* about sampled blocks of the HDD */
	struct lc_warm warm;		/* what may come back after a crash */
	struct lc_sb sb;		/* only super.c writes it, see env.sb */
	struct lc_super *super;
	struct lc_hdd_mark *mark;
	struct lc_index *index;
	struct lc_sums sums;
	struct lc_ring *ring;
	struct lc_slots slots;
	struct lc_pool *pool;
	struct lc_alloc *alloc;
	struct lc_lanes *lanes;
	u32 nr_lanes;
	struct lc_log *log;
	struct lc_submit *submit;
	struct lc_refill *refill;
	struct lc_claims *claims;
	struct lc_admit *admit;		/* or NULL; set once by promote.c; smp_load_acquire() */
	struct lc_stats stats;

	/* Blocks of groups may be mapped; by checkpoint.c and group.c; READ_ONCE() */
	bool promoted;
	bool bypassed;			/* clean copies are outdated; by rescue.c; READ_ONCE() */
	bool closed;			/* no write enters the log (MO1); by leave.c; READ_ONCE() */
	bool in_the_way;		/* a write waits for the tail; by around.c; READ_ONCE() */
	atomic64_t around_begun;	/* writes around the log; by around.c */
	atomic64_t around_flushed;	/* so many of them are durable; by around.c */
	mempool_t slot_pages;		/* two pages each, to read a slot and its header into */
	struct workqueue_struct *patient_wq; /* bios that may sleep on a failing SSD */
	struct workqueue_struct *verify_wq;	/* reads to be checked, and promotion */
};

/* Do writes go to the HDD, and not into the log, as soon as that is allowed?  Any context. */
static inline bool lc_writes_around(const struct lc_cache *c)
{
	return READ_ONCE(c->env.params.cache_mode) != LC_WRITEBACK;
}

/*
 * May the HDD lose what a read has got from there (WS9)?  A write around the log is not durable, or
 * a FLUSH has failed in this life.  Any context.
 */
static inline bool lc_hdd_may_lose(const struct lc_cache *c)
{
	s64 flushed = atomic64_read(&c->around_flushed);

	/* A write that was read from there had begun. */
	smp_rmb();
	return atomic64_read(&c->around_begun) > flushed || lc_doubt_failures(&c->doubt);
}

/*
 * Drop what is not valid of a mapping.  Once writes may have gone past the cache, a clean copy, in
 * RAM or on the SSD, may be older than the block on the HDD.  [bucket locked]
 */
static inline void lc_cache_view(const struct lc_cache *c, u32 bucket, struct lc_mapping *map)
{
	lc_index_assert_locked(c->index, bucket);
	if (!map->dirty && READ_ONCE(c->bypassed))
		map->mask = 0;
}

#endif /* LC_CACHE_H */
