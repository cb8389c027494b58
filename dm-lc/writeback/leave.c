// SPDX-License-Identifier: GPL-2.0-only
/*
 * Leaving the log: cache modes other than writeback.  See writeback.h, MO1 to MO3.
 *
 * The thread drains the log while writes still enter it: those whose blocks have copies there.  All
 * others go to the HDD at once, so that what is left is what is written again and again.  When that
 * is little, or has not become less, the log is closed: then such writes wait until the rest is
 * drained.  So they wait for about one batch, however full the log was.
 */
#include <linux/rcupdate.h>

#include "log/cache.h"
#include "log/lanes.h"
#include "store/index.h"
#include "store/ring.h"
#include "store/super.h"
#include "writeback/internal.h"

#define MOST_LAPS	4u	/* drains of all that is in the log; then it is closed anyway */

void lc_wb_drain(struct lc_writeback *wb)
{
	lc_lanes_close_used(wb->c->lanes, true);
	WRITE_ONCE(wb->drain_to, lc_lanes_used(wb->c->lanes));
	wake_up_all(&wb->wait);
}

void lc_wb_open(struct lc_cache *c)
{
	if (!READ_ONCE(c->closed))
		return;
	WRITE_ONCE(c->closed, false);
	lc_kick(&c->env.unpark);
}

static void close_log(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;

	/* Not left before the end of the log is known. */
	WRITE_ONCE(wb->left_at, ~0ULL);
	/* Pairs with lc_writeback_left(). */
	smp_store_release(&c->closed, true);
	/* Who has seen it open is in lc_hold(), and in the log before that is drained (MO1). */
	synchronize_rcu();
	wb->laps = 0;
	lc_wb_drain(wb);
	WRITE_ONCE(wb->left_at, READ_ONCE(wb->drain_to));
	/* A parked write may have found the log closed while it was continued. */
	lc_kick(&c->env.unpark);
}

/*
 * Only the log can have sectors that are lost or that the HDD refuses, and while a disk fails, the
 * end of the drain is not near (MO2).
 */
static bool wants_the_log(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;

	return !lc_writes_around(c) || lc_index_lost(c->index) || lc_index_refused(c->index) ||
	       wb->patience.hdd || wb->patience.reads;
}

static bool may_close(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;

	return !READ_ONCE(c->closed) && lc_mode(&c->health) == LC_MODE_RW &&
	       !lc_ssd_failed(&c->health) && lc_ring_tail(c->ring) >= READ_ONCE(wb->drain_to) &&
	       !wants_the_log(wb);
}

bool lc_wb_leaves(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;

	if (wants_the_log(wb))
		return READ_ONCE(c->closed);
	return READ_ONCE(c->in_the_way) || may_close(wb);
}

int lc_wb_leave(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;
	int ret = 0;

	if (wants_the_log(wb)) {
		wb->laps = 0;
		lc_wb_open(c);
		return 0;
	}
	if (READ_ONCE(c->in_the_way)) {
		WRITE_ONCE(c->in_the_way, false);
		lc_wb_drain(wb);
	}
	if (!may_close(wb))
		return 0;
	if (!lc_super_life_told(c->super))
		ret = lc_super_tell_life(c->super);
	if (ret)
		return ret;
	if (lc_index_dirty(c->index) <= READ_ONCE(wb->list.max) || wb->laps == MOST_LAPS) {
		close_log(wb);
		return 0;
	}
	wb->laps++;
	lc_wb_drain(wb);
	return 0;
}

void lc_wb_reopen(struct lc_writeback *wb)
{
	if (wants_the_log(wb))
		lc_wb_open(wb->c);
}
