// SPDX-License-Identifier: GPL-2.0-only
/*
 * The core: life cycle, and the small workers that belong to no room.
 *
 * Life (D4, D5, D6)
 *   constructor   finds or makes the core, allocates; reads, never writes
 *   preresume     first: checks the pair, loads checkpoint or log, opens the epoch;
 *                 later: takes new options over; then everything runs
 *   presuspend    stops nothing; a noflush suspend gives parked bios back
 *   postsuspend   writeback rests, discards end, the log is made durable, no own I/O is left; if
 *                 the device is going away: checkpoint and `clean`
 *   destructor    drops its share (registry.c); never writes
 *
 * Teardown, argued.  When the last reference is dropped no table with this core is left, so no
 * bio, message or status call can come.  postsuspend ran for the live table, or no bio ever came
 * (lc_core_teardown()), and device mapper waited for its bios; what may still be queued are
 * workers, and each is cancelled or flushed here in the order in which they can queue one another:
 * idle -> pace -> log -> rescue -> refill -> meter -> unpark -> commit.  Refill can wish for a
 * FLUSH in turn, but not once the log is stopped; unpark and commit find no bio by then, so that
 * the one does not start the meter's clock again, and the other does nothing.
 */
#include <linux/mempool.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "lc.h"
#include "pool.h"
#include "bypass.h"
#include "claims.h"
#include "checkpoint.h"
#include "core.h"
#include "discard.h"
#include "doubt.h"
#include "fingerprint.h"
#include "flush.h"
#include "foreign.h"
#include "index.h"
#include "io.h"
#include "lanes.h"
#include "log.h"
#include "mark.h"
#include "pairing.h"
#include "intake.h"
#include "recovery.h"
#include "refill.h"
#include "rescue.h"
#include "segment.h"
#include "submit.h"
#include "stats.h"
#include "sums.h"
#include "super.h"
#include "writeback.h"

#define MERGE_PAGES	8

/* --- workers ------------------------------------------------------------- */

static void event_work(struct work_struct *work)
{
	struct lc_core *core = container_of(work, struct lc_core, event_work);

	mutex_lock(&core->life_lock);
	if (core->table)
		dm_table_event(core->table);
	mutex_unlock(&core->life_lock);
}

static struct lc_core *core_of(struct lc_health *health)
{
	return container_of(health, struct lc_core, c.health);
}

static void refuse_flushes(struct lc_health *health)
{
	lc_log_fail(core_of(health)->c.log);
}

static void give_up_ssd(struct lc_health *health)
{
	lc_log_stop(core_of(health)->c.log);
	lc_rescue_start(core_of(health)->rescue);
}

static void wake(struct lc_health *health)
{
	lc_intake_kick(core_of(health)->intake);
	lc_writeback_kick(core_of(health)->wb);
}

static void tell(struct lc_health *health)
{
	queue_work(core_of(health)->event_wq, &core_of(health)->event_work);
}

const struct lc_health_ops lc_core_health_ops = {
	.refuse_flushes = refuse_flushes,
	.give_up_ssd = give_up_ssd,
	.wake = wake,
	.tell = tell,
};

/* Of the SSD, in a write of the superblock: records may be gone, and are written again (F2). */
static void flush_failed(void *arg)
{
	struct lc_core *core = arg;

	lc_log_void(core->c.log);
}

/* --- start and stop ------------------------------------------------------ */

static int load_clean(struct lc_core *core, u64 *next_seq, u64 *next_segment)
{
	int ret;

	lc_ring_start(core->c.ring, core->c.sb.tail_segment, core->c.sb.tail_seq,
		      core->c.sb.head_segment);
	ret = lc_recovery_check_clean(&core->c);
	if (ret)
		return ret;
	ret = lc_fingerprint_check(&core->c.env);
	if (ret)
		return ret;
	ret = lc_checkpoint_load(&core->c);
	if (ret == -ENOMEM)
		return ret;
	if (ret) {
		/* Nothing is lost: the log from the tail on says the same. */
		lc_warn(&core->c.env, "checkpoint unusable, replaying the log instead");
		lc_index_clear(core->c.index);
		lc_ring_forget_cuts(core->c.ring);
		ret = lc_recovery_run(&core->c, next_seq, next_segment);
		if (!ret && *next_seq != core->c.sb.next_seq) {
			/* All of it was durable: this is damage, no torn tail (L4). */
			lc_err(&core->c.env, "the log ends at record %llu but was stopped cleanly at %llu: see lc-check --repair",
			       *next_seq - 1, core->c.sb.next_seq - 1);
			ret = -EUCLEAN;
		}
		return ret;
	}
	*next_seq = core->c.sb.next_seq;
	*next_segment = core->c.sb.head_segment;
	/* A log of one lane, which goes on with several: its headers tell the cuts. */
	if (core->c.nr_lanes > 1 && !(core->c.sb.incompat & LC_INCOMPAT_LANES))
		return lc_recovery_read_cuts(&core->c);
	return 0;
}

static int load_log(struct lc_core *core, u64 *next_seq, u64 *next_segment)
{
	int ret = 0;

	/* A start that the power cut before it wrote anything else: the stop before it counts. */
	if (lc_pairing_unwritten(&core->c.sb, lc_mark_epoch(core->c.mark)))
		ret = lc_fingerprint_check(&core->c.env);
	return ret ? ret : lc_recovery_run(&core->c, next_seq, next_segment);
}

/* [life_lock] Open the epoch. */
static int start(struct lc_core *core)
{
	u64 next_seq, next_segment;
	int ret;

	lockdep_assert_held(&core->life_lock);
	ret = lc_mark_check_pair(core->c.mark);
	if (!ret)
		ret = lc_foreign_check(&core->c.env);
	if (ret)
		return ret;
	if (core->c.sb.flags & LC_SB_CLEAN)
		ret = load_clean(core, &next_seq, &next_segment);
	else
		ret = load_log(core, &next_seq, &next_segment);
	if (ret)
		return ret;
	lc_super_settle_tail(core->c.super, next_seq, next_segment);
	lc_ring_start(core->c.ring, core->c.sb.tail_segment, core->c.sb.tail_seq, next_segment);
	lc_allot_start(core->c.allot, next_segment, next_seq);
	lc_log_start(core->c.log, next_seq);
	ret = lc_super_begin_epoch(core->c.super, core->c.mark, core->c.nr_lanes, next_seq,
				   next_segment);
	if (ret)
		return ret;
	if (core->c.sb.mark_offset != LC_NO_MARK)
		lc_doubt_marked(&core->c.doubt);
	lc_info(&core->c.env, "epoch %llu: %llu blocks cached, %llu dirty", core->c.sb.epoch,
		lc_index_cached(core->c.index), lc_index_dirty(core->c.index));
	return 0;
}

/* [life_lock] The log is durable and nothing runs: leave a clean volume. */
static void stop_clean(struct lc_core *core)
{
	struct lc_fingerprint print;
	u64 entries;
	int ret;

	lockdep_assert_held(&core->life_lock);
	/* A late write must not be acknowledged any more. */
	core->ended = true;
	lc_health_end(&core->c.health);
	/* A fingerprint of what is gone after a power cut would refuse the next start (F8). */
	ret = lc_doubt_flush(&core->c.doubt, core->c.env.backing);
	if (!ret && lc_doubt_any(&core->c.doubt))
		ret = -EIO;
	if (!ret)
		ret = lc_fingerprint_take(&core->c.env, &print);
	if (!ret)
		ret = lc_checkpoint_write(&core->c, &entries);
	if (!ret)
		ret = lc_super_end_clean(core->c.super, lc_log_last_seq(core->c.log) + 1,
					 lc_lanes_used(core->c.lanes), entries, &print);
	if (ret)
		lc_warn(&core->c.env, "no clean stop, error %d: the next start replays the log", ret);
}

/**
 * lc_core_flush() - everything completed so far becomes durable
 * @core: the volume
 *
 * May sleep.  Return: 0 or -EIO.
 */
int lc_core_flush(struct lc_core *core)
{
	if (lc_mode(&core->c.health) == LC_MODE_DEGRADED)
		return lc_bypass_flush(core->bypass);
	return lc_log_wait_durable(core->c.log, lc_lanes_close_used(core->c.lanes, false));
}

/* [life_lock] What cannot be had now stays as it is, and is put into @params. */
static void take_params(struct lc_core *core, struct lc_params *params, struct list_head *spare)
{
	struct lc_params next;
	unsigned int noio;
	bool salvaging;

	lockdep_assert_held(&core->life_lock);
	if (spare)
		lc_pool_add(core->c.pool, spare);
	lc_pool_shrink(core->c.pool, params->buffers);
	lc_refill_set_ready(&core->c, params);
	lc_stats_set(&core->c.stats, params->stats);
	if (params->writeback_batch != core->c.env.params.writeback_batch ||
	    params->writeback_depth != core->c.env.params.writeback_depth) {
		/* It uses the list and the copier that are replaced. */
		salvaging = lc_rescue_pause(core->rescue);
		/* Memory must not be reclaimed through the volume that is suspended. */
		noio = lc_noio_save();
		if (lc_writeback_resize(core->wb, params->writeback_batch,
					params->writeback_depth)) {
			lc_warn(&core->c.env, "no memory for another writeback batch or depth");
			next = *params;
			next.writeback_batch = core->c.env.params.writeback_batch;
			next.writeback_depth = core->c.env.params.writeback_depth;
			lc_params_store(params, &next);
		}
		lc_noio_restore(noio);
		if (salvaging)
			lc_rescue_resume(core->rescue);
	}
	if (params->lanes != core->c.env.params.lanes) {
		lc_warn(&core->c.env, "option lanes counts from the next start on");
		next = *params;
		next.lanes = core->c.env.params.lanes;
		lc_params_store(params, &next);
	}
	lc_params_store(&core->c.env.params, params);
}

/**
 * lc_core_resume() - preresume: start or go on
 * @core: the volume
 * @table: bound from now on
 * @params: options of that table; gets those in force
 * @spare: buffers the constructor allocated for them, taken over
 *
 * Return: 0 or a negative errno; the kernel log has the reason.
 */
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
		ret = start(core);
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

/**
 * lc_core_presuspend() - stops nothing
 * @core: the volume
 * @ti: a noflush suspend gives parked bios back to device mapper, which asks for them
 */
void lc_core_presuspend(struct lc_core *core, struct dm_target *ti)
{
	lc_intake_presuspend(core->intake, ti);
}

/**
 * lc_core_presuspend_undo() - device mapper wants no bios back any more
 * @core: the volume
 */
void lc_core_presuspend_undo(struct lc_core *core)
{
	lc_intake_resume(core->intake);
}

/**
 * lc_core_postsuspend() - no bio is in flight: make the log durable, end own I/O
 * @core: the volume
 * @removing: the device is going away
 */
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
		stop_clean(core);
unlock:
	mutex_unlock(&core->life_lock);
}

/* --- creation ------------------------------------------------------------ */

/**
 * lc_core_teardown() - free the rooms
 * @core: the volume; no table refers to it
 *
 * May sleep.  Does no I/O of its own, but waits for what is on its way.  Harmless if
 * lc_core_setup() has failed or was not called.
 */
void lc_core_teardown(struct lc_core *core)
{
	/* Resumed, but another target of the table was not, so that nobody suspended it. */
	if (core->running) {
		lc_writeback_pause(core->wb);
		WRITE_ONCE(core->running, false);
	}
	if (core->flush)
		lc_flush_quiesce(core->flush);
	if (core->c.refill)
		lc_refill_quiesce(core->c.refill);
	if (core->c.log) {
		/* The refill worker may still ask for a FLUSH. */
		lc_log_stop(core->c.log);
		lc_log_quiesce(core->c.log);
	}
	lc_rescue_destroy(core->rescue);
	if (core->c.refill)
		lc_refill_stop(core->c.refill);
	lc_intake_stop(core->intake);
	lc_writeback_destroy(core->wb);
	lc_discard_destroy(core->discards);
	lc_claims_destroy(core->c.claims);
	if (core->event_wq)
		destroy_workqueue(core->event_wq);
	/* Before those whom it hands reads to. */
	if (core->c.verify_wq)
		destroy_workqueue(core->c.verify_wq);
	if (core->c.patient_wq)
		destroy_workqueue(core->c.patient_wq);
	/* After all workers that may have queued its works. */
	lc_flush_destroy(core->flush);
	/* All that might say something has ended. */
	lc_name_stop(&core->c.env.name);
	lc_log_destroy(core->c.log);
	lc_submit_destroy(core->c.submit);
	if (core->c.env.wq)
		destroy_workqueue(core->c.env.wq);
	lc_intake_destroy(core->intake);
	lc_bypass_destroy(core->bypass);
	lc_refill_destroy(core->c.refill);
	lc_lanes_destroy(core->c.lanes);
	lc_allot_destroy(core->c.allot);
	lc_pool_destroy(core->c.pool);
	lc_ring_destroy(core->c.ring);
	lc_sums_destroy(&core->c.sums);
	lc_stats_destroy(&core->c.stats);
	lc_index_destroy(core->c.index);
	lc_mark_destroy(core->c.mark);
	lc_super_destroy(core->c.super);
	mempool_exit(&core->c.slot_pages);
	mutex_destroy(&core->life_lock);
}

/*
 * The index takes some bytes for each slot of the SSD, and is never given back.  Memory that does
 * not exist is not asked for: the OOM killer would come first.
 */
static int check_memory(struct lc_core *core, const char **error)
{
	u64 need = lc_index_need(core->c.sb.geo.nr_slots, core->c.sb.geo.seg_slots);
	u64 have = (u64)totalram_pages() << PAGE_SHIFT;

	if (need <= have / 2)
		return 0;
	lc_err(&core->c.env, "%pg needs an index of %llu MiB of RAM, more than half of the %llu MiB there are: use less of the device, as a partition or a logical volume, or add memory",
	       core->c.env.cache, need >> 20, have >> 20);
	*error = "Index would take more than half of the RAM";
	return -ENOMEM;
}

static int core_alloc_rooms(struct lc_core *core, u32 nr_lanes)
{
	LIST_HEAD(buffers);

	core->c.sums.nr_slots = core->c.sb.geo.nr_slots;
	core->c.mark = lc_mark_create(&core->c.env, lc_super_lock(core->c.super));
	core->c.index = lc_index_create(core->c.sb.geo.nr_slots, core->c.sb.geo.seg_slots);
	core->c.ring = lc_ring_create(&core->c.sb.geo);
	core->c.pool = lc_pool_create(&core->c.env, core->c.ring, nr_lanes);
	core->c.env.wq = alloc_workqueue("lc", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	core->c.patient_wq = alloc_workqueue("lc-patient", WQ_MEM_RECLAIM | WQ_UNBOUND,
					     WQ_MAX_ACTIVE);
	core->c.verify_wq = alloc_workqueue("lc-verify", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	core->event_wq = alloc_ordered_workqueue("lc-event", WQ_MEM_RECLAIM);
	if (!core->c.mark || !core->c.index || !core->c.ring || !core->c.pool || !core->c.env.wq ||
	    !core->c.patient_wq || !core->c.verify_wq || !core->event_wq)
		return -ENOMEM;
	core->c.nr_lanes = nr_lanes;
	core->c.claims = lc_claims_create();
	core->c.refill = lc_refill_create(&core->c);
	if (!core->c.claims || !core->c.refill || lc_stats_create(&core->c.stats))
		return -ENOMEM;
	core->c.submit = lc_submit_create(&core->c.env, core->c.ring, core->c.pool, &core->c.sums,
					  nr_lanes);
	core->c.log = core->c.submit ? lc_log_create(&core->c.env, core->c.submit) : NULL;
	if (!core->c.log)
		return -ENOMEM;
	core->c.allot = lc_allot_create(&core->c.env, core->c.ring, core->c.log, nr_lanes);
	if (!core->c.allot)
		return -ENOMEM;
	core->c.lanes = lc_lanes_create(&core->c.env, core->c.allot, core->c.log, core->c.submit,
					core->c.pool);
	if (!core->c.lanes || mempool_init_page_pool(&core->c.slot_pages, MERGE_PAGES, 1))
		return -ENOMEM;
	if (lc_buffers_alloc(core->c.pool, core->c.env.params.buffers, &buffers))
		return -ENOMEM;
	lc_pool_add(core->c.pool, &buffers);
	lc_refill_set_ready(&core->c, &core->c.env.params);
	core->discards = lc_discard_create(&core->c);
	core->wb = lc_writeback_create(&core->c);
	core->flush = lc_flush_create(&core->c);
	core->bypass = lc_bypass_create(&core->c);
	if (core->flush && core->bypass)
		core->intake = lc_intake_create(&core->c, core->flush, core->bypass);
	core->rescue = lc_rescue_create(core);
	return core->discards && core->wb && core->intake && core->rescue ? 0 : -ENOMEM;
}

static void core_init(struct lc_core *core)
{
	mutex_init(&core->life_lock);
	INIT_WORK(&core->event_work, event_work);
	INIT_LIST_HEAD(&core->users);
}

/* Are the devices what the superblock was written for? */
static int check_devices(struct lc_core *core, struct dm_target *ti, const char **error)
{
	const struct lc_sb *sb = &core->c.sb;

	*error = NULL;
	if ((u64)bdev_nr_bytes(core->c.env.cache) < sb->geo.cache_bytes)
		*error = "Cache device is smaller than when it was formatted";
	else if ((u64)bdev_nr_bytes(core->c.env.backing) < sb->backing_bytes)
		*error = "Backing device is smaller than when the cache was formatted";
	else if (ti->len != sb->volume_sectors)
		*error = "Table length is not the length of the formatted volume";
	else if (bdev_logical_block_size(core->c.env.backing) > sb->backing_lbs ||
		 bdev_logical_block_size(core->c.env.cache) > sb->cache_lbs)
		*error = "Logical block size has grown since the cache was formatted";
	return *error ? -EINVAL : 0;
}

/*
 * One for each memory node, or as many as are asked for: that is, if the log is large enough
 * for their rounds, and the buffers are enough.
 */
static int choose_lanes(const struct lc_core *core, u32 *nr, const char **error)
{
	u64 most = min_t(u64, core->c.env.params.buffers / LC_LANE_BUFFERS,
			 core->c.sb.geo.nr_segments / LC_LANE_SEGMENTS);

	most = clamp_t(u64, most, 1, LC_MAX_LANES);
	*nr = core->c.env.params.lanes;
	if (*nr > most) {
		*error = "Option lanes: each of several needs 4 buffers and 32 segments";
		return -EINVAL;
	}
	if (!*nr)
		*nr = min_t(u64, num_node_state(N_CPU), most);
	return 0;
}

/**
 * lc_core_alloc() - a core without rooms
 * @md: the mapped device
 * @backing: the HDD
 * @cache: the SSD
 *
 * May sleep.  Return: the core, to be freed with kfree(), or NULL.
 */
struct lc_core *lc_core_alloc(struct mapped_device *md, struct block_device *backing,
			      struct block_device *cache)
{
	struct lc_core *core = kzalloc(sizeof(*core), GFP_KERNEL);

	if (!core)
		return NULL;
	core->c.env.cache = cache;
	core->c.env.backing = backing;
	core->c.env.sb = &core->c.sb;
	core->c.env.health = &core->c.health;
	lc_name_init(&core->c.env.name, md, dm_device_name(md));
	lc_health_init(&core->c.health, &core->c.env, &lc_core_health_ops);
	core_init(core);
	return core;
}

/**
 * lc_core_setup() - read the superblock and allocate the rooms
 * @core: fresh from lc_core_alloc()
 * @ti: the first target
 * @params: options of its table
 * @error: gets constant text on error
 *
 * Reads from the SSD, and never writes.  May sleep for as long as the SSD does.
 * Return: 0, or a negative errno: then lc_core_teardown() is called next.
 */
int lc_core_setup(struct lc_core *core, struct dm_target *ti, const struct lc_params *params,
		  const char **error)
{
	const char *why = "cannot be read";
	u32 nr_lanes;
	int ret;

	*error = "Cannot allocate memory";
	core->c.env.params = *params;
	lc_name_look(&core->c.env.name);
	core->c.super = lc_super_create(&core->c.env, &core->c.sb, flush_failed, core);
	if (!core->c.super)
		return -ENOMEM;
	ret = lc_super_load(core->c.super, &why);
	if (ret == -ENOMEM)
		return ret;
	if (ret) {
		lc_err(&core->c.env, "%pg: %s: see lc-dump, or lc-format if it is new",
		       core->c.env.cache, why);
		*error = "Cache device has no usable superblock";
		return -EINVAL;
	}
	core->c.env.nr_blocks = (core->c.sb.volume_sectors + LC_BLOCK_SECTORS - 1) >>
				LC_BLOCK_SHIFT;
	lc_place_init(&core->c.env.place, &core->c.sb);
	lc_doubt_init(&core->c.doubt, core->c.env.nr_blocks);
	ret = check_devices(core, ti, error);
	if (!ret)
		ret = choose_lanes(core, &nr_lanes, error);
	if (!ret)
		ret = check_memory(core, error);
	if (ret)
		return ret;
	*error = "Cannot allocate memory";
	ret = core_alloc_rooms(core, nr_lanes);
	if (!ret)
		*error = NULL;
	return ret;
}

/**
 * lc_core_check_table() - may another table have a share in this core?
 * @core: the volume
 * @ti: the table's target
 * @params: its options
 * @error: gets constant text on error
 *
 * Does not sleep.  Return: 0 or -EINVAL.
 */
int lc_core_check_table(struct lc_core *core, struct dm_target *ti,
			const struct lc_params *params, const char **error)
{
	int ret = check_devices(core, ti, error);

	if (!ret && params->buffers < LC_LANE_BUFFERS * core->c.nr_lanes) {
		*error = "Option buffers: there are more lanes than 4 buffers for each";
		ret = -EINVAL;
	}
	return ret;
}

/**
 * lc_core_unbind() - a table goes away
 * @core: the volume
 * @table: forgotten if it is the bound one
 *
 * May sleep.
 */
void lc_core_unbind(struct lc_core *core, struct dm_table *table)
{
	mutex_lock(&core->life_lock);
	if (core->table == table)
		core->table = NULL;
	mutex_unlock(&core->life_lock);
}
