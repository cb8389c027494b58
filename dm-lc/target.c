// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device-mapper target `lc`: tables and messages, parsed, and device mapper's callbacks.
 *
 * <start> <len> lc <backing dev> <cache dev> [<#args> <key> <value>...]
 */
#include <linux/device-mapper.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "bio/discard.h"
#include "format/usable.h"
#include "life/control.h"
#include "life/hibernate.h"
#include "life/lc.h"
#include "life/registry.h"
#include "life/suspend.h"
#include "log/request.h"
#include "map.h"
#include "status.h"
#include "store/stats.h"

/* One per table; the volume is shared. */
struct lc_target {
	struct lc_volume *vol;
	struct lc_user user;
	struct dm_dev *backing;
	struct dm_dev *cache;
	struct lc_params params;
	struct list_head spare;		/* buffers for a larger pool, until bound */
	int counting;			/* lc_stats_wanted is held; cmpxchg() */
};

/* As lc-format does: see usable.h. */
static int check_usable(struct block_device *bdev)
{
	struct lc_device_facts facts = {
		.read_only = bdev_read_only(bdev),
		.host_managed = lc_bdev_host_managed(bdev),
		.lbs = bdev_logical_block_size(bdev),
	};
	const char *why = lc_device_unfit(&facts);

	if (!why)
		return 0;
	DMERR("%pg %s", bdev, why);
	return facts.read_only ? -EROFS : -EINVAL;
}

/* Before anything else is asked of them. */
static int get_devices(struct dm_target *ti, struct lc_target *lc, char **argv)
{
	int ret;

	ret = dm_get_device(ti, argv[0], dm_table_get_mode(ti->table), &lc->backing);
	if (ret) {
		ti->error = "Cannot open backing device";
		return ret;
	}
	ret = dm_get_device(ti, argv[1], dm_table_get_mode(ti->table), &lc->cache);
	if (ret) {
		dm_put_device(ti, lc->backing);
		ti->error = "Cannot open cache device";
		return ret;
	}
	ret = check_usable(lc->backing->bdev);
	if (!ret)
		ret = check_usable(lc->cache->bdev);
	if (ret) {
		ti->error = "Backing or cache device cannot be used";
	} else if (lc->backing->bdev == lc->cache->bdev) {
		ti->error = "Backing and cache device are the same";
		ret = -EINVAL;
	}
	if (ret) {
		dm_put_device(ti, lc->cache);
		dm_put_device(ti, lc->backing);
	}
	return ret;
}

static int lc_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct lc_target *lc;
	const char *error;
	int ret = -EINVAL;

	if (argc < 2) {
		ti->error = "Expected <backing dev> <cache dev> [<#args> <key> <value>...]";
		return -EINVAL;
	}
	if (!(dm_table_get_mode(ti->table) & BLK_OPEN_WRITE)) {
		ti->error = "Read-only tables are not supported";
		return -EROFS;
	}
	lc = kzalloc(sizeof(*lc), GFP_KERNEL);
	if (!lc) {
		ti->error = "Cannot allocate memory";
		return -ENOMEM;
	}
	INIT_LIST_HEAD(&lc->spare);
	lc_params_defaults(&lc->params);
	if (lc_params_parse(&lc->params, argc - 2, argv + 2, &error)) {
		ti->error = (char *)error;
		goto free_lc;
	}
	ret = get_devices(ti, lc, argv);
	if (ret)
		goto free_lc;
	ret = lc_registry_get(ti, lc->backing, lc->cache, &lc->params, &lc->user, &error);
	if (ret) {
		ti->error = (char *)error;
		goto put_devices;
	}
	lc->vol = lc->user.vol;
	ret = lc_volume_alloc_spare(lc->vol, &lc->params, &lc->spare, &error);
	if (ret) {
		ti->error = (char *)error;
		goto put_volume;
	}
	if (lc->params.stats) {
		lc->counting = 1;
		static_branch_inc(&lc_stats_wanted);
	}
	ti->private = lc;
	ti->num_flush_bios = 1;
	ti->flush_supported = true;
	ti->num_discard_bios = 1;
	ti->discards_supported = true;
	ti->per_io_data_size = sizeof(struct lc_request);
	return 0;

put_volume:
	lc_registry_put(&lc->user);
put_devices:
	dm_put_device(ti, lc->cache);
	dm_put_device(ti, lc->backing);
free_lc:
	kfree(lc);
	return ret;
}

static void lc_dtr(struct dm_target *ti)
{
	struct lc_target *lc = ti->private;

	lc_volume_free_spare(&lc->spare);
	if (lc->counting)
		static_branch_dec(&lc_stats_wanted);
	lc_registry_put(&lc->user);
	dm_put_device(ti, lc->cache);
	dm_put_device(ti, lc->backing);
	kfree(lc);
}

/* Apart, so that no other bio saves registers for the call. */
static noinline int map_flush(struct dm_target *ti, struct bio *bio)
{
	struct lc_target *lc = ti->private;

	return lc_map_flush(lc->vol, bio, ti->len == dm_table_get_size(ti->table));
}

static int lc_map(struct dm_target *ti, struct bio *bio)
{
	struct lc_target *lc = ti->private;

	if (!bio_sectors(bio))
		return map_flush(ti, bio);
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	return lc_map_bio(lc->vol, bio);
}

static int lc_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct lc_target *lc = ti->private;

	return lc_map_end(lc->vol, bio, error);
}

static int lc_preresume(struct dm_target *ti)
{
	struct lc_target *lc = ti->private;
	int ret = lc_volume_resume(lc->vol, ti->table, &lc->params, &lc->spare);

	if (!ret)
		lc_map_resume(lc->vol);
	return ret;
}

static void lc_presuspend(struct dm_target *ti)
{
	struct lc_target *lc = ti->private;

	lc_volume_presuspend(lc->vol, ti);
}

static void lc_presuspend_undo(struct dm_target *ti)
{
	struct lc_target *lc = ti->private;

	lc_volume_presuspend_undo(lc->vol);
}

static void lc_postsuspend(struct dm_target *ti)
{
	struct lc_target *lc = ti->private;
	struct mapped_device *md = dm_table_get_md(ti->table);
	bool removing = dm_hold(md) == -EBUSY;

	if (!removing)
		dm_put(md);
	lc_volume_postsuspend(lc->vol, removing);
}

static void lc_status(struct dm_target *ti, status_type_t type, unsigned int status_flags,
		      char *result, unsigned int maxlen)
{
	struct lc_target *lc = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		lc_status_info(lc->vol, result, maxlen);
		break;
	case STATUSTYPE_TABLE:
		DMEMIT("%s %s ", lc->backing->name, lc->cache->name);
		lc_params_print(&lc->params, result + sz, maxlen - sz);
		break;
	case STATUSTYPE_IMA:
		DMEMIT_TARGET_NAME_VERSION(ti->type);
		lc_status_ima(lc->vol, result + sz, maxlen - sz);
		break;
	}
}

static int set_option(struct lc_target *lc, const char *key, const char *value)
{
	/* Changes the code, which may take long; it stays like that until the table goes. */
	if (!strcmp(key, "stats") && !cmpxchg(&lc->counting, 0, 1))
		static_branch_inc(&lc_stats_wanted);
	return lc_volume_set(lc->vol, &lc->params, key, value);
}

/* Is this the message @name?  @older: its name up to now, which goes on working. */
static bool is_message(unsigned int argc, char **argv, const char *name, const char *older)
{
	return argc == 1 && (!strcmp(argv[0], name) || !strcmp(argv[0], older));
}

static int lc_message(struct dm_target *ti, unsigned int argc, char **argv, char *result,
		      unsigned int maxlen)
{
	struct lc_target *lc = ti->private;

	if (dm_suspended(ti)) {
		lc_err(&lc->vol->c.env, "messages need a device that is not suspended");
		return -EBUSY;
	}
	if (is_message(argc, argv, "sync", "flush"))
		return lc_volume_sync(lc->vol);
	if (is_message(argc, argv, "drain", "writeback")) {
		lc_volume_drain(lc->vol);
		return 0;
	}
	if (argc >= 2 && !strcmp(argv[0], "list"))
		return lc_status_list(lc->vol, argc - 1, argv + 1, result, maxlen);
	if (argc == 2)
		return set_option(lc, argv[0], argv[1]);
	lc_err(&lc->vol->c.env,
	       "unknown message %.40s: expected sync, drain, list or <option> <value>",
	       argv[0]);
	return -EINVAL;
}

static int lc_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn, void *data)
{
	struct lc_target *lc = ti->private;
	int ret;

	ret = fn(ti, lc->backing, lc->vol->c.env.place.data, lc->vol->c.env.place.extent, data);
	if (ret)
		return ret;
	return fn(ti, lc->cache, 0, lc->vol->c.sb.geo.cache_bytes >> 9, data);
}

/* A multiple of what the HDD likes best, a stripe of a RAID for one, and at least a segment. */
static u32 optimal(const struct lc_target *lc)
{
	u32 segment = lc->vol->c.sb.geo.segment_bytes, stripe = bdev_io_opt(lc->backing->bdev);

	/* Some disks say odd things. */
	if (!stripe || stripe % LC_SLOT_BYTES || stripe > UINT_MAX - segment)
		return segment;
	return roundup(segment, stripe);
}

static void lc_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct lc_target *lc = ti->private;
	u32 lbs = bdev_logical_block_size(lc->backing->bdev);

	/* Reads that do not fit an SSD with larger blocks are bounced: the HDD's size counts. */
	limits->logical_block_size = lbs;
	limits->physical_block_size = max(limits->physical_block_size, LC_SLOT_BYTES);
	limits->io_min = max_t(u32, limits->physical_block_size,
			       bdev_io_min(lc->backing->bdev));
	limits->io_opt = optimal(lc);
	limits->discard_granularity = LC_SLOT_BYTES;
	limits->max_discard_sectors = LC_DISCARD_MAX_SECTORS;
	limits->max_hw_discard_sectors = LC_DISCARD_MAX_SECTORS;
}

static struct target_type lc_target_type = {
	.name = "lc",
	.version = { 1, 0, 0 },
	.features = DM_TARGET_NOWAIT,
	.module = THIS_MODULE,
	.ctr = lc_ctr,
	.dtr = lc_dtr,
	.map = lc_map,
	.end_io = lc_end_io,
	.preresume = lc_preresume,
	.presuspend = lc_presuspend,
	.presuspend_undo = lc_presuspend_undo,
	.postsuspend = lc_postsuspend,
	.status = lc_status,
	.message = lc_message,
	.iterate_devices = lc_iterate_devices,
	.io_hints = lc_io_hints,
};

static int __init lc_init(void)
{
	int ret = lc_hibernate_init();

	if (ret)
		return ret;
	ret = dm_register_target(&lc_target_type);
	if (ret)
		lc_hibernate_exit();
	return ret;
}

static void __exit lc_exit(void)
{
	dm_unregister_target(&lc_target_type);
	lc_hibernate_exit();
}

module_init(lc_init);
module_exit(lc_exit);

MODULE_DESCRIPTION(DM_NAME " log-structured write cache");
MODULE_AUTHOR("The dm-lc developers");
MODULE_LICENSE("GPL");
