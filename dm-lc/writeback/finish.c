// SPDX-License-Identifier: GPL-2.0-only
/*
 * What follows copying a batch (steps 4 to 7 of writeback.c): what the HDD holds becomes clean,
 * what it does not is logged again, and the tail moves.
 */
#include <linux/blkdev.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>

#include "log/cache.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/relog.h"
#include "store/doubt.h"
#include "store/index.h"
#include "store/io.h"
#include "store/ring.h"
#include "store/slot.h"
#include "store/super.h"
#include "store/trace.h"
#include "writeback/internal.h"

int lc_wb_first_seq(struct lc_writeback *wb, u64 number, u64 *seq)
{
	struct lc_cache *c = wb->c;
	struct lc_record_info info;
	int ret;

	*seq = lc_alloc_boundary_seq(c->alloc, number);
	if (*seq)
		return 0;
	if (number >= c->ring->life_start || c->sb.incompat & LC_INCOMPAT_LANES)
		return -ENOENT;
	/* A segment from before the last clean stop, of the only lane there was. */
	ret = lc_io_sync(c->env.cache, REQ_OP_READ,
			 lc_format_log_address(&c->sb.geo, number, 0), wb->header,
			 LC_SLOT_BYTES);
	if (!ret && lc_record_decode(wb->header, &c->sb, number, 0, &info, NULL))
		ret = -EBADMSG;
	if (!ret)
		*seq = info.seq;
	return ret;
}

int lc_wb_flush(struct lc_writeback *wb)
{
	struct lc_doubt *doubt = &wb->c->doubt;
	u32 nr = lc_doubt_any(doubt) ? wb->list.nr : 0, i;

	lockdep_assert_held(&wb->batch_lock);
	for (i = 0; i < nr; i++) {
		const struct lc_wb_item *item = &wb->list.items[i];

		if (item->done && item->result == LC_WB_COPIED)
			lc_doubt_taken(doubt, item->block, item->mask, wb->hdd_failures);
	}
	if (lc_doubt_flush(doubt, &wb->c->env))
		return -EIO;
	/* A FLUSH of a user may have dropped what the batch has copied (DB3). */
	return lc_doubt_failures(doubt) == wb->hdd_failures ? 0 : -EIO;
}

static void clean_item(struct lc_cache *c, const struct lc_wb_item *item)
{
	struct lc_mapping map;
	u32 bucket;

	if (lc_index_lock_slot(c->index, item->block, item->slot, &bucket, &map))
		lc_index_clean(c->index, bucket, item->slot);
	lc_index_unlock(c->index, bucket);
}

void lc_wb_keep_done(struct lc_writeback *wb)
{
	struct lc_cache *c = wb->c;
	u32 i, done = 0;

	lockdep_assert_held(&wb->batch_lock);
	for (i = 0; i < wb->list.nr; i++)
		done += wb->list.items[i].done;
	if (!done)
		return;
	if (lc_wb_flush(wb))
		return;
	for (i = 0; i < wb->list.nr; i++) {
		const struct lc_wb_item *item = &wb->list.items[i];

		if (item->done && !item->lost && item->result == LC_WB_COPIED)
			clean_item(c, item);
	}
}

static const enum lc_relog_as relog_as[] = {
	[LC_WB_COPIED] = LC_RELOG_LOST,
	[LC_WB_DAMAGED] = LC_RELOG_DAMAGED,
	[LC_WB_REFUSED] = LC_RELOG_DATA,
	[LC_WB_UNREADABLE] = LC_RELOG_DAMAGED,
};

/* Log a block again that could not be drained.  Return: 0, -EAGAIN or -EREMOTEIO. */
static int relog(struct lc_writeback *wb, const struct lc_wb_item *item)
{
	enum lc_relog_as as = relog_as[item->result];
	int ret;

	lockdep_assert_held(&wb->batch_lock);
	/* The segment cannot be reused: the tail has not passed it. */
	if (as == LC_RELOG_DATA) {
		ret = lc_slot_read(&wb->c->slots, item->block, item->slot, wb->header);
		if (ret && (ret != -EBADMSG || lc_wb_on_error(wb) < LC_WB_ISOLATE_BOTH))
			return -EREMOTEIO;
		if (ret)
			as = LC_RELOG_DAMAGED;
	}
	ret = lc_relog(wb->c, item->block, item->slot, as, wb->header);
	if (ret > 0)
		atomic64_inc(&wb->relogged);
	return min(ret, 0);
}

/* All blocks below segment @end have got slots: end the batch there, to free these segments. */
static int shorten_batch(struct lc_writeback *wb, struct lc_wb_batch *b, u64 end)
{
	u64 seq;

	b->shortened = true;
	b->end = end;
	while (b->end > b->first && lc_wb_first_seq(wb, b->end, &seq))
		b->end--;
	return b->end > b->first ? 0 : -EAGAIN;
}

int lc_wb_mark_clean(struct lc_writeback *wb, struct lc_wb_batch *b)
{
	struct lc_cache *c = wb->c;
	u64 before = atomic64_read(&wb->relogged), end = b->end;
	bool refused = false;
	int ret = 0;
	u32 i;

	lockdep_assert_held(&wb->batch_lock);
	for (i = 0; i < wb->list.nr; i++) {
		const struct lc_wb_item *item = &wb->list.items[i];

		if (item->lost || item->result != LC_WB_COPIED) {
			refused |= item->result == LC_WB_REFUSED;
			if (!ret)
				ret = relog(wb, item);
			if (ret == -EAGAIN)
				end = min(end, lc_ring_segment(c->ring, item->slot)->number);
			else if (ret)
				return ret;
			continue;
		}
		clean_item(c, item);
	}
	if (refused && (!wb->retry_pause || time_after_eq(jiffies, wb->retry_at))) {
		wb->retry_pause = clamp_t(unsigned long, wb->retry_pause * 2, LC_WB_RETRY_REFUSED,
					  LC_WB_RETRY_REFUSED_MAX);
		WRITE_ONCE(wb->retry_at, jiffies + wb->retry_pause);
	} else if (!refused && !lc_index_refused(c->index)) {
		wb->retry_pause = 0;
	}
	if (before != atomic64_read(&wb->relogged))
		lc_patience_relogged(&wb->patience);
	/* Its segments have blocks that are left to later batches. */
	if (ret && b->partial)
		return ret;
	return ret ? shorten_batch(wb, b, end) : 0;
}

/*
 * Where may the tail move to, at most @b->end?  To a boundary; in a log of one lane, to a
 * segment whose first header can be read: the damaged ones in between are passed later.
 */
static int find_tail(struct lc_writeback *wb, struct lc_wb_batch *b, u64 *seq)
{
	int ret = -EBADMSG;

	for (; b->end > b->first; b->end--) {
		ret = lc_wb_first_seq(wb, b->end, seq);
		if (!ret)
			break;
	}
	return ret;
}

int lc_wb_move_tail(struct lc_writeback *wb, struct lc_wb_batch *b)
{
	struct lc_cache *c = wb->c;
	u64 seq;
	int ret;

	lockdep_assert_not_held(&wb->batch_lock);
	ret = find_tail(wb, b, &seq);
	if (!ret)
		ret = lc_log_wait_durable(c->log, lc_lanes_close_used(c->lanes, false));
	if (!ret)
		ret = lc_super_set_tail(c->super, b->end, seq);
	if (ret)
		return ret;
	lc_ring_set_tail(c->ring, b->end, seq);
	lc_stats_batch(&c->stats);
	trace_lc_tail_moved(c->env.dev, b->end, seq);
	lc_kick(&c->env.refill);
	return 0;
}
