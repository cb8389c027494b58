// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspend and resume.  See suspend.h.
 *
 * Life (D4, D5, D6)
 *   constructor   finds or makes the volume, allocates; reads, never writes
 *   preresume     first: checks the pair, loads checkpoint or log, opens the epoch (start.c);
 *                 later: takes new options over; then everything runs
 *   presuspend    stops nothing; a noflush suspend gives parked bios back
 *   postsuspend   writeback is quiesced, discards end, the log is made durable, no own I/O is left;
 *                 if the device is going away: checkpoint and `clean` (start.c)
 *   destructor    drops its share (registry.c); never writes
 */
#include "bio/around.h"
#include "bio/bypass.h"
#include "bio/discard.h"
#include "bio/flush.h"
#include "bio/group.h"
#include "bio/intake.h"
#include "life/lc.h"
#include "life/rescue.h"
#include "life/start.h"
#include "life/suspend.h"
#include "life/warmup.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/pool.h"
#include "log/refill.h"
#include "writeback/writeback.h"

int lc_volume_flush(struct lc_volume *vol)
{
	int ret;

	if (lc_mode(&vol->c.health) == LC_MODE_DEGRADED)
		return lc_bypass_flush(vol->bypass);
	ret = lc_log_wait_durable(vol->c.log, lc_lanes_close_used(vol->c.lanes, false));
	return ret ? ret : lc_around_flush(vol->around);
}

int lc_volume_resize_writeback(struct lc_volume *vol, const struct lc_params *params)
{
	bool salvaging;
	int ret;

	lockdep_assert_held(&vol->life_lock);
	/* The salvage uses the list and the copier that are replaced. */
	salvaging = lc_rescue_pause(vol->rescue);
	ret = lc_writeback_resize(vol->wb, params->writeback_batch, params->writeback_depth);
	if (salvaging)
		lc_rescue_resume(vol->rescue);
	return ret;
}

/* [life_lock] An option that cannot be had now keeps its value, in @params as well. */
static void take_params(struct lc_volume *vol, struct lc_params *params, struct list_head *spare)
{
	struct lc_params next;
	unsigned int noio;

	lockdep_assert_held(&vol->life_lock);
	if (vol->started && lc_start_more_buffers(&vol->c, params->buffers)) {
		next = *params;
		next.buffers = vol->c.env.params.buffers;
		lc_params_store(params, &next);
	}
	if (spare)
		lc_pool_add(vol->c.pool, spare);
	lc_pool_shrink(vol->c.pool, params->buffers);
	lc_refill_set_ready(&vol->c, params);
	lc_stats_set(&vol->c.stats, params->stats);
	if (params->writeback_batch != vol->c.env.params.writeback_batch ||
	    params->writeback_depth != vol->c.env.params.writeback_depth) {
		/* Memory must not be reclaimed through the volume that is suspended. */
		noio = lc_noio_save();
		if (lc_volume_resize_writeback(vol, params)) {
			lc_warn(&vol->c.env, "no memory for another writeback batch or depth");
			next = *params;
			next.writeback_batch = vol->c.env.params.writeback_batch;
			next.writeback_depth = vol->c.env.params.writeback_depth;
			lc_params_store(params, &next);
		}
		lc_noio_restore(noio);
	}
	if (params->lanes != vol->c.env.params.lanes) {
		lc_warn(&vol->c.env, "option lanes counts from the next start on");
		next = *params;
		next.lanes = vol->c.env.params.lanes;
		lc_params_store(params, &next);
	}
	lc_params_store(&vol->c.env.params, params);
}

int lc_volume_resume(struct lc_volume *vol, struct dm_table *table, struct lc_params *params,
		     struct list_head *spare)
{
	int ret = 0;

	mutex_lock(&vol->life_lock);
	if (vol->ended) {
		lc_err(&vol->c.env, "this life has ended: remove the device and create it again");
		ret = -EIO;
		goto unlock;
	}
	take_params(vol, params, spare);
	if (!vol->started) {
		ret = lc_start(&vol->c);
		if (ret) {
			vol->ended = true;
			goto unlock;
		}
		WRITE_ONCE(vol->started, true);
	}
	vol->table = table;
	lc_volume_presuspend_undo(vol);
	if (vol->running || vol->outdated)
		goto unlock;
	WRITE_ONCE(vol->running, true);
	lc_rescue_resume(vol->rescue);
	if (lc_mode(&vol->c.health) == LC_MODE_DEGRADED)
		goto unlock;
	WRITE_ONCE(vol->c.env.last_write, jiffies);
	lc_refill_resume(vol->c.refill);
	lc_flush_resume(vol->flush);
	lc_groups_resume(vol->groups);
	lc_warmup_resume(vol->warmup);
	lc_writeback_resume(vol->wb);
unlock:
	mutex_unlock(&vol->life_lock);
	return ret;
}

void lc_volume_presuspend(struct lc_volume *vol, struct dm_target *ti)
{
	lc_intake_presuspend(vol->intake, ti);
}

void lc_volume_presuspend_undo(struct lc_volume *vol)
{
	lc_intake_resume(vol->intake);
}

/* End this life.  The log is durable and nothing runs. */
static void end_life(struct lc_volume *vol)
{
	lockdep_assert_held(&vol->life_lock);
	vol->ended = true;
	lc_stop_clean(&vol->c);
}

void lc_volume_postsuspend(struct lc_volume *vol, bool removing)
{
	int ret;

	mutex_lock(&vol->life_lock);
	if (!vol->running)
		goto unlock;
	lc_warmup_quiesce(vol->warmup);
	/* Before the log is made durable: it uses segments.  All reads have ended. */
	lc_groups_quiesce(vol->groups);
	lc_writeback_pause(vol->wb);
	lc_discard_settle(vol->discards);
	lc_flush_quiesce(vol->flush);
	ret = lc_volume_flush(vol);
	lc_log_quiesce(vol->c.log);
	if (lc_ssd_failed(&vol->c.health)) {
		/* It may be on its way, but must not be at work while suspended. */
		lc_rescue_run(vol->rescue);
		lc_rescue_finish(vol->rescue, removing);
		ret = lc_volume_flush(vol);
	}
	WRITE_ONCE(vol->running, false);
	lc_refill_quiesce(vol->c.refill);
	lc_intake_quiesce(vol->intake);
	if (ret)
		lc_err(&vol->c.env, "the log could not be made durable");
	else if (lc_mode(&vol->c.health) == LC_MODE_DEGRADED)
		lc_rescue_record_lost(vol, removing);
	else if (removing && lc_mode(&vol->c.health) == LC_MODE_RW)
		end_life(vol);
unlock:
	mutex_unlock(&vol->life_lock);
}
