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

/* --- what a scan after a crash may believe (WS3) ---------------------------------- */

bool lc_wb_believes(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;
	bool nothing = READ_ONCE(c->warm.from) == LC_WARM_NOTHING;
	u64 raise = READ_ONCE(c->warm.raise_to);

	if (lc_mode(&c->health) != LC_MODE_RW || lc_ssd_failed(&c->health))
		return false;
	/* Without the log, nothing: copies are dropped and no record tells. */
	if (lc_writes_around(c))
		return !nothing || raise;
	/* Streams over what is cached must not have the superblock written all the time. */
	return nothing || (raise && time_after_eq(jiffies, wb->believe_at));
}

/* Back from a mode without the log. */
static void believe_again(struct lc_cache *c)
{
	u64 segment;

	/* Who has not seen this has looked at copies in lower segments than the next one. */
	lc_warm_lower(&c->warm, 0);
	segment = lc_ring_head(c->ring);
	lc_super_note_warm(c->super, segment);
	lc_warm_lower(&c->warm, segment);
}

/* Return: the segment that `from` is to rise to. */
static u64 next_from(struct lc_cache *c, u64 raise)
{
	if (lc_writes_around(c))
		return LC_WARM_NOTHING;
	/* The scan may have asked for less than another one before it. */
	return max(raise == LC_WARM_NEXT ? lc_ring_head(c->ring) : raise,
		   READ_ONCE(c->warm.from));
}

int lc_wb_believe(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;
	u64 raise, from;
	int ret = 0;

	if (!lc_wb_believes(wb))
		return 0;
	if (!lc_writes_around(c) && READ_ONCE(c->warm.from) == LC_WARM_NOTHING) {
		believe_again(c);
		return 0;
	}
	raise = lc_warm_take_raise(&c->warm);
	from = next_from(c, raise);
	if (from != READ_ONCE(c->warm.from))
		ret = lc_super_set_warm(c->super, from == LC_WARM_NOTHING ? 0 : from);
	if (ret) {
		lc_warm_not_raised(&c->warm, raise);
		return ret;
	}
	wb->patience.sbs = 0;	/* it takes its superblock */
	wb->believe_at = jiffies + HZ;
	lc_warm_raised(&c->warm, from);
	return 0;
}

/* --- leaving ------------------------------------------------------------------ */

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
	       READ_ONCE(c->warm.from) == LC_WARM_NOTHING && !wants_the_log(wb);
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
