// SPDX-License-Identifier: GPL-2.0-only
/*
 * What follows copying a batch (steps 4 to 7 of writeback.c): what the HDD holds becomes clean,
 * what it does not is logged again, and the tail moves.
 */
#include <linux/blkdev.h>
#include <linux/jiffies.h>

#include "lc.h"
#include "doubt.h"
#include "index.h"
#include "io.h"
#include "lanes.h"
#include "log.h"
#include "read.h"
#include "segment.h"
#include "super.h"
#include "wbroom.h"
#include "write.h"

/*
 * The seq replay must start with if the tail moves to segment @number.  Not the
 * last seq before it plus one: the chain there may end in dead records.  Return: 0,
 * -ENOENT: the tail must not move there, or an error.
 */
int lc_wb_first_seq(struct lc_writeback *wb, u64 number, u64 *seq)
{
	struct lc_core *core = wb->core;
	struct lc_record_info info;
	int ret;

	*seq = lc_allot_cut_seq(core->c.allot, number);
	if (*seq)
		return 0;
	if (number >= core->c.allot->start || core->c.sb.incompat & LC_INCOMPAT_LANES)
		return -ENOENT;
	/* A segment from before the last clean stop, of the only lane there was. */
	ret = lc_io_sync(core->c.env.cache, REQ_OP_READ,
			 lc_format_log_address(&core->c.sb.geo, number, 0), wb->header,
			 LC_SLOT_BYTES);
	if (!ret && lc_record_decode(wb->header, &core->c.sb, number, 0, &info, NULL))
		ret = -EBADMSG;
	if (!ret)
		*seq = info.seq;
	return ret;
}

/* Step 4, for what is done.  Return: 0 or -EIO: nothing of it is believed (W3). */
int lc_wb_flush(struct lc_writeback *wb)
{
	struct lc_doubt *doubt = &wb->core->c.doubt;
	u32 nr = lc_doubt_any(doubt) ? wb->list.nr : 0, i;

	for (i = 0; i < nr; i++) {
		const struct lc_wb_item *item = &wb->list.items[i];

		if (item->done && item->fate == LC_WB_COPIED)
			lc_doubt_taken(doubt, item->block, item->mask);
	}
	return lc_doubt_flush(doubt, wb->core->c.env.backing) ? -EIO : 0;
}

static void clean_item(struct lc_core *core, const struct lc_wb_item *item)
{
	struct lc_mapping map;
	u32 bucket;

	if (lc_index_lock_slot(core->c.index, item->block, item->slot, &bucket, &map))
		lc_index_clean(core->c.index, bucket, item->slot);
	lc_index_unlock(core->c.index, bucket);
}

/*
 * A batch that ends early, but not because of the HDD: what is copied is not copied again, so
 * that whoever interrupts each batch, or an SSD that does not give one slot back, keeps
 * nothing from being drained in the end.  The tail stays.
 */
void lc_wb_keep_done(struct lc_writeback *wb)
{
	struct lc_core *core = wb->core;
	u32 i, done = 0;

	for (i = 0; i < wb->list.nr; i++)
		done += wb->list.items[i].done;
	if (!done)
		return;
	if (lc_wb_flush(wb))
		return;
	for (i = 0; i < wb->list.nr; i++) {
		const struct lc_wb_item *item = &wb->list.items[i];

		if (item->done && !item->lost && item->fate == LC_WB_COPIED)
			clean_item(core, item);
	}
}

/* Log a block again that could not be drained.  Return: 0, -EAGAIN or -EREMOTEIO. */
static int relog(struct lc_writeback *wb, const struct lc_wb_item *item)
{
	enum lc_wb_fate fate = item->fate;
	int ret;

	/* The segment cannot be reused: the tail has not passed it. */
	if (fate == LC_WB_REFUSED) {
		ret = lc_read_slot(wb->core, item->block, item->slot, wb->header);
		if (ret && (ret != -EBADMSG || lc_wb_judge(wb) < LC_WB_JUDGE_BOTH))
			return -EREMOTEIO;
		if (ret)
			fate = LC_WB_DAMAGED;
	}
	return lc_write_relog(wb->core, item->block, item->slot, fate, wb->header);
}

/* There are slots for all below segment @end: what that frees spares the reserve. */
static int shorten_batch(struct lc_writeback *wb, struct lc_wb_batch *b, u64 end)
{
	u64 seq;

	b->part = true;
	b->end = end;
	while (b->end > b->first && lc_wb_first_seq(wb, b->end, &seq))
		b->end--;
	return b->end > b->first ? 0 : -EAGAIN;
}

/* Step 5.  Return: as relog(); what is done need not be done again. */
int lc_wb_mark_clean(struct lc_writeback *wb, struct lc_wb_batch *b)
{
	struct lc_core *core = wb->core;
	u64 before = atomic64_read(&core->relogged), end = b->end;
	bool refused = false;
	int ret = 0;
	u32 i;

	for (i = 0; i < wb->list.nr; i++) {
		const struct lc_wb_item *item = &wb->list.items[i];

		if (item->lost || item->fate != LC_WB_COPIED) {
			refused |= item->fate == LC_WB_REFUSED;
			if (!ret)
				ret = relog(wb, item);
			if (ret == -EAGAIN)
				end = min(end, lc_ring_segment(core->c.ring, item->slot)->number);
			else if (ret)
				return ret;
			continue;
		}
		clean_item(core, item);
	}
	if (refused && (!wb->retry_pause || time_after_eq(jiffies, wb->retry_at))) {
		wb->retry_pause = clamp_t(unsigned long, wb->retry_pause * 2, LC_WB_RETRY_REFUSED,
					  LC_WB_RETRY_REFUSED_MAX);
		WRITE_ONCE(wb->retry_at, jiffies + wb->retry_pause);
	} else if (!refused && !lc_index_refused(core->c.index)) {
		wb->retry_pause = 0;
	}
	if (before != atomic64_read(&core->relogged))
		lc_patience_relogged(&wb->patience);
	return ret ? shorten_batch(wb, b, end) : 0;
}

/*
 * Where may the tail move to, at most @b->end?  To a cut; in a log of one lane, to a
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

/* Steps 6 and 7.  Return: 0, -ENOENT: no cut is reached yet, or an error. */
int lc_wb_move_tail(struct lc_writeback *wb, struct lc_wb_batch *b)
{
	struct lc_core *core = wb->core;
	u64 seq;
	int ret;

	ret = find_tail(wb, b, &seq);
	if (!ret)
		ret = lc_log_wait_durable(core->c.log, lc_lanes_close_used(core->c.lanes, false));
	if (!ret)
		ret = lc_super_set_tail(core->c.super, b->end, seq);
	if (ret)
		return ret;
	lc_ring_set_tail(core->c.ring, b->end, seq);
	lc_kick(&core->c.env.refill);
	return 0;
}
