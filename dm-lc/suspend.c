// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspend and resume.  See suspend.h.
 *
 * Life (D4, D5, D6)
 *   constructor   finds or makes the volume, allocates; reads, never writes
 *   preresume     first: checks the pair, loads checkpoint or log, opens the epoch (start.c);
 *                 later: takes new options over; then everything runs
 *   presuspend    stops nothing; a noflush suspend gives parked bios back
 *   postsuspend   writeback rests, discards end, the log is made durable, no own I/O is left; if
 *                 the device is going away: checkpoint and `clean` (start.c)
 *   destructor    drops its share (registry.c); never writes
 */
#include "bypass.h"
#include "discard.h"
#include "flush.h"
#include "intake.h"
#include "lanes.h"
#include "lc.h"
#include "log.h"
#include "pool.h"
#include "refill.h"
#include "rescue.h"
#include "start.h"
#include "suspend.h"
#include "writeback.h"

int lc_core_flush(struct lc_core *core)
{
	if (lc_mode(&core->c.health) == LC_MODE_DEGRADED)
		return lc_bypass_flush(core->bypass);
	return lc_log_wait_durable(core->c.log, lc_lanes_close_used(core->c.lanes, false));
}

int lc_core_resize_writeback(struct lc_core *core, const struct lc_params *params)
{
	bool salvaging;
	int ret;

	lockdep_assert_held(&core->life_lock);
	/* The salvage uses the list and the copier that are replaced. */
	salvaging = lc_rescue_pause(core->rescue);
	ret = lc_writeback_resize(core->wb, params->writeback_batch, params->writeback_depth);
	if (salvaging)
		lc_rescue_resume(core->rescue);
	return ret;
}

/* [life_lock] An option that cannot be had now keeps its value, in @params as well. */
static void take_params(struct lc_core *core, struct lc_params *params, struct list_head *spare)
{
	struct lc_params next;
	unsigned int noio;

	lockdep_assert_held(&core->life_lock);
	if (spare)
		lc_pool_add(core->c.pool, spare);
	lc_pool_shrink(core->c.pool, params->buffers);
	lc_refill_set_ready(&core->c, params);
	lc_stats_set(&core->c.stats, params->stats);
	if (params->writeback_batch != core->c.env.params.writeback_batch ||
	    params->writeback_depth != core->c.env.params.writeback_depth) {
		/* Memory must not be reclaimed through the volume that is suspended. */
		noio = lc_noio_save();
		if (lc_core_resize_writeback(core, params)) {
			lc_warn(&core->c.env, "no memory for another writeback batch or depth");
			next = *params;
			next.writeback_batch = core->c.env.params.writeback_batch;
			next.writeback_depth = core->c.env.params.writeback_depth;
			lc_params_store(params, &next);
		}
		lc_noio_restore(noio);
	}
	if (params->lanes != core->c.env.params.lanes) {
		lc_warn(&core->c.env, "option lanes counts from the next start on");
		next = *params;
		next.lanes = core->c.env.params.lanes;
		lc_params_store(params, &next);
	}
	lc_params_store(&core->c.env.params, params);
}

int lc_core_resume(struct lc_core *core, struct dm_table *table, struct lc_params *params,
		   struct list_head *spare)
{
	int ret = 0;

	mutex_lock(&core->life_lock);
	if (core->ended) {
		lc_err(&core->c.env, "this life has ended: remove the device and create it again");
		ret = -EIO;
		goto unlock;
	}
	take_params(core, params, spare);
	if (!core->started) {
		ret = lc_start(&core->c);
		if (ret) {
			core->ended = true;
			goto unlock;
		}
		WRITE_ONCE(core->started, true);
	}
	core->table = table;
	lc_core_presuspend_undo(core);
	if (core->running || core->outdated)
		goto unlock;
	WRITE_ONCE(core->running, true);
	lc_rescue_resume(core->rescue);
	if (lc_mode(&core->c.health) == LC_MODE_DEGRADED)
		goto unlock;
	WRITE_ONCE(core->c.env.last_write, jiffies);
	lc_refill_resume(core->c.refill);
	lc_flush_resume(core->flush);
	lc_writeback_resume(core->wb);
unlock:
	mutex_unlock(&core->life_lock);
	return ret;
}

void lc_core_presuspend(struct lc_core *core, struct dm_target *ti)
{
	lc_intake_presuspend(core->intake, ti);
}

void lc_core_presuspend_undo(struct lc_core *core)
{
	lc_intake_resume(core->intake);
}

/* The log is durable and nothing runs: this life goes on no more. */
static void end_life(struct lc_core *core)
{
	lockdep_assert_held(&core->life_lock);
	core->ended = true;
	lc_stop_clean(&core->c);
}

void lc_core_postsuspend(struct lc_core *core, bool removing)
{
	int ret;

	mutex_lock(&core->life_lock);
	if (!core->running)
		goto unlock;
	lc_writeback_pause(core->wb);
	lc_discard_settle(core->discards);
	lc_flush_quiesce(core->flush);
	ret = lc_core_flush(core);
	lc_log_quiesce(core->c.log);
	if (lc_ssd_failed(&core->c.health)) {
		/* It may be on its way, but must not be at work while suspended. */
		lc_rescue_run(core->rescue);
		lc_rescue_finish(core->rescue, removing);
		ret = lc_core_flush(core);
	}
	WRITE_ONCE(core->running, false);
	lc_refill_quiesce(core->c.refill);
	lc_intake_rest(core->intake);
	if (ret)
		lc_err(&core->c.env, "the log could not be made durable");
	else if (lc_mode(&core->c.health) == LC_MODE_DEGRADED)
		lc_rescue_record_lost(core, removing);
	else if (removing && lc_mode(&core->c.health) == LC_MODE_RW)
		end_life(core);
unlock:
	mutex_unlock(&core->life_lock);
}
