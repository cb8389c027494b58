// SPDX-License-Identifier: GPL-2.0-only
/*
 * A volume: its rooms, and the small workers that belong to none of them.  See volume.h.
 *
 * Teardown.  When the last reference is dropped no table with this volume is left, so no bio,
 * message or status call can come.  postsuspend has run for the live table, or no bio ever came
 * (lc_volume_teardown()), and device mapper has waited for its bios.  Only workers may still be
 * queued.  Groups of promoted blocks have ended, and hold no segment (lc_groups_quiesce()).  Each
 * is cancelled or flushed, in the order in which they can queue one
 * another: idle ->
 * pace -> log -> rescue -> patient -> refill -> throttle -> unpark -> commit.  A patient worker
 * parks a write, and another worker may end that write before the first has queued unpark.  Refill
 * can ask for a FLUSH in turn, but not once the log is stopped.  Unpark and commit find no bio by
 * then, so unpark does not start the throttle's clock again, and commit does nothing.  Then the
 * work of the name is cancelled, because each of the workers before may have queued it.  The
 * workqueues of the log and of the volume are empty then, and are destroyed before the memory that
 * their workers use.
 *
 * A creation that fails is unwound in the reverse order (create_rooms()).  That order differs: the
 * queues of the log and of the volume go after the lanes and the intake.  No worker has run by
 * then: the threads and queues exist, but writeback is paused, and all other work begins with a
 * bio, a kick or a resume, none of which comes before the first table's constructor has ended.
 */
#include <linux/mempool.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "bio/around.h"
#include "bio/bypass.h"
#include "bio/discard.h"
#include "bio/flush.h"
#include "bio/group.h"
#include "bio/intake.h"
#include "bio/keep.h"
#include "bio/promote.h"
#include "life/lc.h"
#include "life/rescue.h"
#include "life/volume.h"
#include "life/warmup.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/pool.h"
#include "log/refill.h"
#include "log/submit.h"
#include "store/claims.h"
#include "store/index.h"
#include "store/mark.h"
#include "store/ring.h"
#include "store/stats.h"
#include "store/sums.h"
#include "store/super.h"
#include "writeback/writeback.h"

#define SLOT_PAGES	8	/* reads of slots that always find memory */

/* --- workers ------------------------------------------------------------- */

static void event_work(struct work_struct *work)
{
	struct lc_volume *vol = container_of(work, struct lc_volume, event_work);

	mutex_lock(&vol->life_lock);
	if (vol->table)
		dm_table_event(vol->table);
	mutex_unlock(&vol->life_lock);
}

static struct lc_volume *volume_of(struct lc_health *health)
{
	return container_of(health, struct lc_volume, c.health);
}

static void refuse_flushes(struct lc_health *health)
{
	lc_log_fail(volume_of(health)->c.log);
}

static void give_up_ssd(struct lc_health *health)
{
	lc_log_stop(volume_of(health)->c.log);
	lc_rescue_start(volume_of(health)->rescue);
}

static void wake(struct lc_health *health)
{
	lc_intake_kick(volume_of(health)->intake);
	lc_writeback_kick(volume_of(health)->wb);
}

static void tell(struct lc_health *health)
{
	queue_work(volume_of(health)->event_wq, &volume_of(health)->event_work);
}

const struct lc_health_ops lc_volume_health_ops = {
	.refuse_flushes = refuse_flushes,
	.give_up_ssd = give_up_ssd,
	.wake = wake,
	.tell = tell,
};

/* Of the SSD, in a write of the superblock: records may be gone, and are written again (F2). */
static void flush_failed(void *arg)
{
	struct lc_volume *vol = arg;

	lc_log_flush_failed(vol->c.log);
}

/* --- creation ------------------------------------------------------------ */

/* No bio is left in the queues, and no worker that would queue work there. */
static void destroy_queues(struct lc_volume *vol)
{
	destroy_workqueue(vol->event_wq);
	/* Before the one that it hands reads to. */
	destroy_workqueue(vol->c.verify_wq);
	destroy_workqueue(vol->c.patient_wq);
}

static int create_queues(struct lc_volume *vol)
{
	vol->c.patient_wq = alloc_workqueue("lc-patient", WQ_MEM_RECLAIM | WQ_UNBOUND,
					    WQ_MAX_ACTIVE);
	if (!vol->c.patient_wq)
		return -ENOMEM;
	vol->c.verify_wq = alloc_workqueue("lc-verify", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!vol->c.verify_wq)
		goto destroy_patient;
	vol->event_wq = alloc_ordered_workqueue("lc-event", WQ_MEM_RECLAIM);
	if (!vol->event_wq)
		goto destroy_verify;
	return 0;

destroy_verify:
	destroy_workqueue(vol->c.verify_wq);
destroy_patient:
	destroy_workqueue(vol->c.patient_wq);
	return -ENOMEM;
}

/* What the options ask for now.  The pool owns them from then on. */
static int fill_pool(struct lc_cache *c)
{
	LIST_HEAD(buffers);
	int ret = lc_buffers_alloc(c->pool, c->env.params.buffers, &buffers);

	if (!ret)
		lc_pool_add(c->pool, &buffers);
	return ret;
}

/* The rooms up to the log. */
static int create_cache(struct lc_cache *c, u32 nr_lanes)
{
	c->nr_lanes = nr_lanes;
	lc_sums_init(&c->sums, c->sb.geo.nr_slots);
	if (mempool_init_page_pool(&c->slot_pages, SLOT_PAGES, 1))
		return -ENOMEM;
	c->mark = lc_mark_create(&c->env, lc_super_lock(c->super), &c->doubt);
	if (!c->mark)
		goto exit_slot_pages;
	c->index = lc_index_create(c->sb.geo.nr_slots, c->sb.geo.seg_slots);
	if (!c->index)
		goto destroy_mark;
	if (lc_stats_create(&c->stats))
		goto destroy_index;
	c->env.stats = &c->stats;
	c->ring = lc_ring_create(&c->sb.geo);
	if (!c->ring)
		goto destroy_stats;
	c->slots = (struct lc_slots){ &c->env, c->ring, &c->sums };
	c->pool = lc_pool_create(&c->env, c->ring, nr_lanes);
	if (!c->pool)
		goto destroy_ring;
	c->env.wq = alloc_workqueue("lc", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!c->env.wq)
		goto destroy_pool;
	c->refill = lc_refill_create(c);
	if (!c->refill)
		goto destroy_wq;
	c->submit = lc_submit_create(&c->env, c->ring, c->pool, &c->sums, nr_lanes);
	if (!c->submit)
		goto destroy_refill;
	c->log = lc_log_create(&c->env, c->submit);
	if (!c->log)
		goto destroy_submit;
	c->alloc = lc_alloc_create(&c->env, c->ring, c->log, nr_lanes);
	if (!c->alloc)
		goto destroy_log;
	c->lanes = lc_lanes_create(&c->env, c->alloc, c->log, c->submit, c->pool);
	if (!c->lanes)
		goto destroy_alloc;
	if (fill_pool(c))
		goto destroy_lanes;
	lc_refill_set_ready(c, &c->env.params);
	return 0;

destroy_lanes:
	lc_lanes_destroy(c->lanes);
destroy_alloc:
	lc_alloc_destroy(c->alloc);
destroy_log:
	lc_log_destroy(c->log);
destroy_submit:
	lc_submit_destroy(c->submit);
destroy_refill:
	lc_refill_destroy(c->refill);
destroy_wq:
	destroy_workqueue(c->env.wq);
destroy_pool:
	lc_pool_destroy(c->pool);
destroy_ring:
	lc_ring_destroy(c->ring);
destroy_stats:
	lc_stats_destroy(&c->stats);
destroy_index:
	lc_index_destroy(c->index);
destroy_mark:
	lc_mark_destroy(c->mark);
exit_slot_pages:
	mempool_exit(&c->slot_pages);
	return -ENOMEM;
}

/* Undo create_cache(): nothing of it has been used. */
static void destroy_cache(struct lc_cache *c)
{
	lc_lanes_destroy(c->lanes);
	lc_alloc_destroy(c->alloc);
	lc_log_destroy(c->log);
	lc_submit_destroy(c->submit);
	lc_refill_destroy(c->refill);
	destroy_workqueue(c->env.wq);
	lc_pool_destroy(c->pool);
	lc_ring_destroy(c->ring);
	lc_stats_destroy(&c->stats);
	lc_index_destroy(c->index);
	lc_mark_destroy(c->mark);
	mempool_exit(&c->slot_pages);
}

static int create_rooms(struct lc_volume *vol, u32 nr_lanes)
{
	struct lc_cache *c = &vol->c;

	if (create_cache(c, nr_lanes))
		return -ENOMEM;
	c->claims = lc_claims_create();
	if (!c->claims)
		goto destroy_cache;
	vol->bypass = lc_bypass_create(c);
	if (!vol->bypass)
		goto destroy_claims;
	vol->flush = lc_flush_create(c);
	if (!vol->flush)
		goto destroy_bypass;
	vol->around = lc_around_create(c, vol->flush);
	if (!vol->around)
		goto destroy_flush;
	vol->intake = lc_intake_create(c, vol->flush, vol->bypass, vol->around);
	if (!vol->intake)
		goto destroy_around;
	if (create_queues(vol))
		goto destroy_intake;
	vol->discards = lc_discard_create(c);
	if (!vol->discards)
		goto destroy_queues;
	vol->groups = lc_groups_create(c);
	if (!vol->groups)
		goto destroy_discards;
	vol->promote = lc_promote_create(c, vol->groups);
	if (!vol->promote)
		goto destroy_groups;
	lc_around_keep(vol->around, vol->promote);
	vol->keep = lc_keep_create(c, vol->groups);
	if (!vol->keep)
		goto destroy_promote;
	vol->warmup = lc_warmup_create(c);
	if (!vol->warmup)
		goto destroy_keep;
	vol->wb = lc_writeback_create(c);
	if (!vol->wb)
		goto destroy_warmup;
	vol->rescue = lc_rescue_create(vol);
	if (vol->rescue)
		return 0;
	lc_writeback_destroy(vol->wb);
destroy_warmup:
	lc_warmup_destroy(vol->warmup);
destroy_keep:
	lc_keep_destroy(vol->keep);
destroy_promote:
	lc_promote_destroy(vol->promote);
destroy_groups:
	lc_groups_destroy(vol->groups);
destroy_discards:
	lc_discard_destroy(vol->discards);
destroy_queues:
	destroy_queues(vol);
destroy_intake:
	lc_intake_destroy(vol->intake);
destroy_around:
	lc_around_destroy(vol->around);
destroy_flush:
	lc_flush_destroy(vol->flush);
destroy_bypass:
	lc_bypass_destroy(vol->bypass);
destroy_claims:
	lc_claims_destroy(c->claims);
destroy_cache:
	destroy_cache(c);
	return -ENOMEM;
}

/* No table uses the volume.  Ends each worker before what the worker uses is freed; see above. */
void lc_volume_teardown(struct lc_volume *vol)
{
	struct lc_cache *c = &vol->c;

	/* Resumed, but another target of the table was not, so there was no postsuspend. */
	if (vol->running) {
		lc_writeback_pause(vol->wb);
		WRITE_ONCE(vol->running, false);
	}
	lc_warmup_quiesce(vol->warmup);
	lc_groups_quiesce(vol->groups);
	lc_flush_quiesce(vol->flush);
	lc_refill_quiesce(c->refill);
	/* The refill worker may still ask for a FLUSH. */
	lc_log_stop(c->log);
	lc_log_quiesce(c->log);
	lc_rescue_destroy(vol->rescue);
	/*
	 * All bios have ended, but a patient worker may still be about to queue the intake's work:
	 * see park().
	 */
	flush_workqueue(c->patient_wq);
	lc_refill_stop(c->refill);
	lc_intake_stop(vol->intake);
	lc_writeback_destroy(vol->wb);
	lc_discard_destroy(vol->discards);
	destroy_queues(vol);
	/* Its workers end groups, and refill has queued its work. */
	lc_groups_destroy(vol->groups);
	/* After all workers that may have queued its works. */
	lc_flush_destroy(vol->flush);
	/* All tasks that log lines of the volume have ended. */
	lc_name_stop(&c->env.name);
	lc_log_destroy(c->log);
	lc_submit_destroy(c->submit);
	destroy_workqueue(c->env.wq);
	/* From here on there is only memory. */
	lc_warmup_destroy(vol->warmup);
	lc_keep_destroy(vol->keep);
	lc_promote_destroy(vol->promote);
	lc_intake_destroy(vol->intake);
	lc_around_destroy(vol->around);
	lc_bypass_destroy(vol->bypass);
	lc_claims_destroy(c->claims);
	lc_refill_destroy(c->refill);
	lc_lanes_destroy(c->lanes);
	lc_alloc_destroy(c->alloc);
	lc_pool_destroy(c->pool);
	lc_ring_destroy(c->ring);
	lc_sums_destroy(&c->sums);
	lc_stats_destroy(&c->stats);
	lc_index_destroy(c->index);
	lc_mark_destroy(c->mark);
	lc_super_destroy(c->super);
	mempool_exit(&c->slot_pages);
}

/*
 * The index takes some bytes for each slot of the SSD, and is never given back.  Memory that does
 * not exist is not asked for: the OOM killer would come first.
 */
static int check_memory(struct lc_volume *vol, const char **error)
{
	u64 need = lc_index_need(vol->c.sb.geo.nr_slots, vol->c.sb.geo.seg_slots);
	u64 have = (u64)totalram_pages() << PAGE_SHIFT;

	if (need <= have / 2)
		return 0;
	lc_err(&vol->c.env, "%pg needs an index of %llu MiB of RAM, more than half of the %llu MiB there are: use less of the device, as a partition or a logical volume, or add memory",
	       vol->c.env.cache, need >> 20, have >> 20);
	*error = "Index would take more than half of the RAM";
	return -ENOMEM;
}

static void volume_init(struct lc_volume *vol)
{
	mutex_init(&vol->life_lock);
	INIT_WORK(&vol->event_work, event_work);
	INIT_LIST_HEAD(&vol->users);
}

/* Are the devices what the superblock was written for? */
static int check_devices(struct lc_volume *vol, struct dm_target *ti, const char **error)
{
	const struct lc_sb *sb = &vol->c.sb;

	*error = NULL;
	if ((u64)bdev_nr_bytes(vol->c.env.cache) < sb->geo.cache_bytes)
		*error = "Cache device is smaller than when it was formatted";
	else if ((u64)bdev_nr_bytes(vol->c.env.backing) < sb->backing_bytes)
		*error = "Backing device is smaller than when the cache was formatted";
	else if (ti->len != sb->volume_sectors)
		*error = "Table length is not the length of the formatted volume";
	else if (bdev_logical_block_size(vol->c.env.backing) > sb->backing_lbs ||
		 bdev_logical_block_size(vol->c.env.cache) > sb->cache_lbs)
		*error = "Logical block size has grown since the cache was formatted";
	return *error ? -EINVAL : 0;
}

/*
 * One for each memory node, or as many as are asked for: that is, if the log is large enough
 * for their rounds, and the buffers are enough.
 */
static int choose_lanes(const struct lc_volume *vol, u32 *nr, const char **error)
{
	u64 most = min_t(u64, vol->c.env.params.buffers / LC_LANE_BUFFERS,
			 vol->c.sb.geo.nr_segments / LC_LANE_SEGMENTS);

	most = clamp_t(u64, most, 1, LC_MAX_LANES);
	*nr = vol->c.env.params.lanes;
	if (*nr > most) {
		*error = "Option lanes: each of several needs 4 buffers and 32 segments";
		return -EINVAL;
	}
	if (!*nr)
		*nr = min_t(u64, num_node_state(N_CPU), most);
	return 0;
}

struct lc_volume *lc_volume_alloc(struct mapped_device *md, struct block_device *backing,
				  struct block_device *cache)
{
	struct lc_volume *vol = kzalloc(sizeof(*vol), GFP_KERNEL);

	if (!vol)
		return NULL;
	vol->c.env.cache = cache;
	vol->c.env.backing = backing;
	vol->c.env.sb = &vol->c.sb;
	vol->c.env.health = &vol->c.health;
	vol->c.env.dev = disk_devt(dm_disk(md));
	lc_name_init(&vol->c.env.name, md, dm_device_name(md));
	lc_health_init(&vol->c.health, &vol->c.env, &lc_volume_health_ops);
	volume_init(vol);
	return vol;
}

void lc_volume_free(struct lc_volume *vol)
{
	mutex_destroy(&vol->life_lock);
	kfree(vol);
}

int lc_volume_setup(struct lc_volume *vol, struct dm_target *ti, const struct lc_params *params,
		    const char **error)
{
	const char *why = "cannot be read";
	u32 nr_lanes;
	int ret;

	*error = "Cannot allocate memory";
	vol->c.env.params = *params;
	lc_name_look(&vol->c.env.name);
	vol->c.super = lc_super_create(&vol->c.env, &vol->c.sb, flush_failed, vol);
	ret = vol->c.super ? lc_super_load(vol->c.super, &why) : -ENOMEM;
	if (ret == -ENOMEM)
		goto stop_name;
	if (ret) {
		lc_err(&vol->c.env, "%pg: %s: see lc-dump, or lc-format if it is new",
		       vol->c.env.cache, why);
		*error = "Cache device has no usable superblock";
		ret = -EINVAL;
		goto stop_name;
	}
	vol->c.env.nr_blocks = (vol->c.sb.volume_sectors + LC_BLOCK_SECTORS - 1) >>
				LC_BLOCK_SHIFT;
	lc_place_init(&vol->c.env.place, &vol->c.sb);
	lc_doubt_init(&vol->c.doubt, vol->c.env.nr_blocks);
	lc_warm_init(&vol->c.warm);
	ret = check_devices(vol, ti, error);
	if (!ret)
		ret = choose_lanes(vol, &nr_lanes, error);
	if (!ret)
		ret = check_memory(vol, error);
	if (ret)
		goto stop_name;
	ret = create_rooms(vol, nr_lanes);
	if (ret) {
		*error = "Cannot allocate memory";
		goto stop_name;
	}
	return 0;

stop_name:
	lc_name_stop(&vol->c.env.name);
	lc_super_destroy(vol->c.super);
	return ret;
}

int lc_volume_check_table(struct lc_volume *vol, struct dm_target *ti,
			  const struct lc_params *params, const char **error)
{
	int ret = check_devices(vol, ti, error);

	if (!ret && params->buffers < LC_LANE_BUFFERS * vol->c.nr_lanes) {
		*error = "Option buffers: there are more lanes than 4 buffers for each";
		ret = -EINVAL;
	}
	return ret;
}

void lc_volume_unbind(struct lc_volume *vol, struct dm_table *table)
{
	mutex_lock(&vol->life_lock);
	if (vol->table == table)
		vol->table = NULL;
	mutex_unlock(&vol->life_lock);
}
