// SPDX-License-Identifier: GPL-2.0-only
/*
 * When the SSD has failed: save what can be saved, then go on without it.
 *
 *  1. The lane is stopped, the log stopped, writeback rests, discards are kept out:
 *     nothing changes any more and no HDD I/O of ours is in flight (S3).  Writes that
 *     come are parked, flushes wait.
 *  2. The mark says "abandoned", durably in both copies, with the number of lost
 *     blocks unknown: from here on this cache is never replayed (S1).
 *  3. Every dirty block goes to the HDD: from RAM if its image is still there,
 *     otherwise from the SSD, if that still gives it back verified.  The others are
 *     lost.
 *  4. FLUSH the HDD.  Only then the blocks it holds leave the index (F3); what stays
 *     in it is lost, and its list goes into the mark (S4).
 *  5. Mode `degraded`: parked writes and all that follow go straight to the HDD,
 *     flushes that waited end well: what they waited for was in RAM, and was saved.
 *
 * If something that was only in RAM is refused by the HDD too, or the FLUSH fails, no
 * FLUSH may end well any more (F1): mode fail.
 *
 * Without a mark nothing could keep the SSD from being replayed when it comes back,
 * so there mode `fail` is all that is left (lc_core_cache_failed()).
 *
 * In mode degraded the index only ever shrinks: a write that covers lost sectors
 * makes them valid, but not before it is complete, so that a read never sees what
 * the HDD held before.  The list in the mark may name too many blocks then; it is
 * renewed when the volume is suspended.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "lc.h"
#include "buffer.h"
#include "index.h"
#include "io.h"
#include "log.h"
#include "read.h"
#include "rescue.h"
#include "superblock.h"
#include "wbcopy.h"
#include "writeback.h"

#define MAX_ITEMS	1024
#define MAX_DEAD_READS	64	/* slots in a row that cannot be read: the SSD is gone */
#define MAX_TRIES	5	/* of a write to the HDD, a second apart */
#define MAX_HOPELESS	16	/* blocks that all of them did not help */
#define MAX_RANGES	16384	/* lost ones, before neighbours are joined */

struct item {
	u64 block;
	u32 slot;
};

struct lc_rescue {
	struct lc_core *core;
	struct workqueue_struct *wq;	/* its own: all others may wait for the log */
	struct work_struct work;
	struct item *items;		/* MAX_ITEMS */
	void *pages;			/* two slots */
	struct lc_lost *ranges;		/* MAX_RANGES */
	u32 dead_reads;			/* in a row */
	u32 hopeless;			/* blocks the HDD refused for good */
	bool ram_lost;			/* what a FLUSH was to save could not be */
};

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return 0;
}

/* --- step 3 -------------------------------------------------------------- */

/* Read a dirty block of the SSD, unless that is gone for good. */
static int read_from_ssd(struct lc_rescue *rescue, const struct item *item)
{
	int ret;

	if (rescue->dead_reads >= MAX_DEAD_READS)
		return -EIO;
	ret = lc_read_slot(rescue->core, item->block, item->slot, rescue->pages);
	if (!ret)
		rescue->dead_reads = 0;
	else if (ret != -EBADMSG)
		rescue->dead_reads++;
	return ret;
}

/* Whoever has no patience with the SSD has none here. */
static u32 max_tries(const struct lc_rescue *rescue)
{
	return READ_ONCE(rescue->core->params.ssd_patience_ms) ? MAX_TRIES : 1;
}

/* The HDD has no copy of it: be patient, but not with each of many blocks. */
static int write_patiently(struct lc_rescue *rescue, u64 block, u8 mask, void *data)
{
	u32 tries = rescue->hopeless < MAX_HOPELESS ? max_tries(rescue) : 1;
	int ret;

	while ((ret = lc_wbcopy_write_block(rescue->core, block, mask, data)) && --tries)
		schedule_timeout_idle(HZ);
	rescue->hopeless += !!ret;
	return ret;
}

/* Nobody but us changes the mapping of a block now. */
static void save_block(struct lc_rescue *rescue, const struct item *item)
{
	struct lc_core *core = rescue->core;
	struct lc_mapping map;
	struct lc_buffer *buf = NULL;
	void *data = rescue->pages;
	bool found;
	u32 bucket;
	int ret;

	bucket = lc_index_lock(core->index, item->block);
	found = lc_index_lookup(core->index, bucket, item->block, &map) &&
		map.slot == item->slot && map.dirty;
	if (found)
		buf = lc_buffer_pin(core, map.slot);
	lc_index_unlock(core->index, bucket);
	if (WARN_ON_ONCE(!found))
		return;

	if (buf) {
		data = lc_buffer_slot(core, buf, item->slot);
		ret = 0;
	} else {
		ret = map.mask ? read_from_ssd(rescue, item) : 0;
	}
	if (!ret)
		ret = write_patiently(rescue, item->block, map.mask, data);
	if (ret && buf)
		rescue->ram_lost = true;
	if (buf)
		lc_buffer_unpin(buf);

	bucket = lc_index_lock(core->index, item->block);
	if (ret)
		lc_index_lose(core->index, bucket, item->slot, map.mask);
	else
		lc_index_clean(core->index, bucket, item->slot);
	lc_index_unlock(core->index, bucket);
	if (ret && !map.lost)
		atomic64_inc(&core->lost);
}

/* The HDD durably holds everything but what is lost: only that stays in the index. */
static void forget_all(struct lc_core *core)
{
	struct lc_mapping map;
	u64 slot, block;
	u32 bucket;

	for (slot = 0; slot < core->sb.geo.nr_slots; slot++) {
		if (!(slot & 1023))
			cond_resched();
		if (!lc_index_peek(core->index, slot, &block, &map))
			continue;
		bucket = lc_index_lock(core->index, block);
		if (lc_index_lookup(core->index, bucket, block, &map) && map.slot == slot) {
			if (map.lost)
				lc_index_lose(core->index, bucket, slot, 0);
			else
				lc_index_remove(core->index, bucket, block, &map);
		}
		lc_index_unlock(core->index, bucket);
	}
}

/* All blocks, a batch at a time, each in the order of the HDD. */
static void save_all(struct lc_rescue *rescue)
{
	struct lc_core *core = rescue->core;
	u64 slot = 0, block;
	struct lc_mapping map;
	u32 nr, i;

	rescue->dead_reads = 0;
	while (slot < core->sb.geo.nr_slots) {
		for (nr = 0; slot < core->sb.geo.nr_slots && nr < MAX_ITEMS; slot++) {
			if (!(slot & 1023))
				cond_resched();
			if (!lc_index_peek(core->index, slot, &block, &map))
				continue;
			if (map.dirty)
				rescue->items[nr++] = (struct item) { block, slot };
		}
		sort(rescue->items, nr, sizeof(*rescue->items), compare_items, NULL);
		for (i = 0; i < nr; i++) {
			save_block(rescue, &rescue->items[i]);
			cond_resched();
		}
	}
}

/* --- step 4 -------------------------------------------------------------- */

static int compare_ranges(const void *a, const void *b)
{
	const struct lc_lost *x = a, *y = b;

	if (x->sector != y->sector)
		return x->sector < y->sector ? -1 : 1;
	return 0;
}

/* The lost sectors of a block as ranges.  Return: how many. */
static u32 block_ranges(u64 block, u8 lost, struct lc_lost *ranges)
{
	u32 nr = 0, i;

	for (i = 0; i < LC_BLOCK_SECTORS; i++) {
		if (!(lost & 1u << i))
			continue;
		if (i && lost & 1u << (i - 1))
			ranges[nr - 1].nr_sectors++;
		else
			ranges[nr++] = (struct lc_lost) { (block << LC_BLOCK_SHIFT) + i, 1 };
	}
	return nr;
}

static u64 merge_ranges(struct lc_lost *ranges, u64 nr)
{
	u64 out = 0, i;

	sort(ranges, nr, sizeof(*ranges), compare_ranges, NULL);
	for (i = 0; i < nr; i++) {
		if (out && ranges[out - 1].sector + ranges[out - 1].nr_sectors ==
			   ranges[i].sector)
			ranges[out - 1].nr_sectors += ranges[i].nr_sectors;
		else
			ranges[out++] = ranges[i];
	}
	return out;
}

/**
 * lc_rescue_record_lost() - put the lost sectors of the index into the mark
 * @core: the volume, abandoned
 *
 * May sleep.  The index gains no lost sectors meanwhile.  Too many for the mark, or
 * for our memory, become "too many".  Return: 0 or a negative errno.
 */
int lc_rescue_record_lost(struct lc_core *core)
{
	struct lc_lost *ranges = core->rescue->ranges;
	u64 slot, block, nr = 0;
	struct lc_mapping map;

	for (slot = 0; slot < core->sb.geo.nr_slots; slot++) {
		if (!(slot & 1023))
			cond_resched();
		if (!lc_index_peek(core->index, slot, &block, &map) || !map.lost)
			continue;
		/* A block has four ranges at most: every other sector. */
		if (nr + LC_BLOCK_SECTORS / 2 > MAX_RANGES)
			return lc_meta_abandon(core, NULL, LC_MARK_LOST_TOO_MANY);
		nr += block_ranges(block, map.lost, ranges + nr);
	}
	nr = merge_ranges(ranges, nr);
	if (nr > LC_MARK_LOST)
		return lc_meta_abandon(core, NULL, LC_MARK_LOST_TOO_MANY);
	return lc_meta_abandon(core, ranges, nr);
}

/* --- the whole ----------------------------------------------------------- */

/* Half a mark is the worst: the cache is refused, but nothing was saved. */
static int abandon(struct lc_rescue *rescue)
{
	u32 tries = max_tries(rescue);
	int ret;

	while ((ret = lc_meta_abandon(rescue->core, NULL, LC_MARK_LOST_TOO_MANY)) && --tries)
		schedule_timeout_idle(HZ);
	return ret;
}

static int save_and_abandon(struct lc_rescue *rescue)
{
	struct lc_core *core = rescue->core;
	int ret;

	if (core->running)
		lc_writeback_pause(core->wb);
	lc_lane_stop(core->lane);
	lc_log_wait_stopped(core->log);
	lc_writeback_own_places(core->wb);
	ret = abandon(rescue);
	if (!ret) {
		save_all(rescue);
		ret = lc_io_flush(core->backing);
	}
	if (!ret && rescue->ram_lost)
		ret = -EIO;
	if (!ret) {
		forget_all(core);
		/* If that fails, the mark goes on saying "too many". */
		if (lc_rescue_record_lost(core))
			lc_warn(core, "the mark does not list the lost blocks");
	}
	lc_writeback_release_places(core->wb);
	return ret;
}

/**
 * lc_rescue_run() - give the SSD up, if it has failed and that was not done yet
 * @rescue: the room
 *
 * May sleep.  Under core->life_lock; lc_core_cache_failed() was called.
 */
void lc_rescue_run(struct lc_rescue *rescue)
{
	struct lc_core *core = rescue->core;

	lockdep_assert_held(&core->life_lock);
	if (lc_core_mode(core) != LC_MODE_RW || core->ended)
		return;
	lc_err(core, "%s: giving it up, saving what is in memory", core->fail_reason);
	if (save_and_abandon(rescue)) {
		lc_core_fail(core, "neither cache nor backing device takes what is in memory");
		return;
	}
	/* Mode fail may have come meanwhile, and stays. */
	if (cmpxchg(&core->mode, LC_MODE_RW, LC_MODE_DEGRADED) != LC_MODE_RW)
		return;
	lc_err(core, "mode degraded: going on without the cache, %lld blocks are lost",
	       (long long)atomic64_read(&core->lost));
	lc_log_end_flushes(core->log, BLK_STS_OK);
	queue_work(core->wq, &core->unpark_work);
	queue_work(core->slow_wq, &core->event_work);
}

static void rescue_work(struct work_struct *work)
{
	struct lc_rescue *rescue = container_of(work, struct lc_rescue, work);
	struct lc_core *core = rescue->core;

	mutex_lock(&core->life_lock);
	lc_rescue_run(rescue);
	mutex_unlock(&core->life_lock);
}

/**
 * lc_rescue_create() - allocate what giving up will need
 * @core: the volume
 *
 * May sleep.  Return: the room or NULL.
 */
struct lc_rescue *lc_rescue_create(struct lc_core *core)
{
	struct lc_rescue *rescue = kzalloc(sizeof(*rescue), GFP_KERNEL);

	if (!rescue)
		return NULL;
	rescue->core = core;
	INIT_WORK(&rescue->work, rescue_work);
	rescue->items = kvcalloc(MAX_ITEMS, sizeof(*rescue->items), GFP_KERNEL);
	rescue->pages = (void *)__get_free_pages(GFP_KERNEL, 1);
	rescue->ranges = kvcalloc(MAX_RANGES, sizeof(*rescue->ranges), GFP_KERNEL);
	rescue->wq = alloc_ordered_workqueue("lc-rescue", WQ_MEM_RECLAIM);
	if (rescue->items && rescue->pages && rescue->ranges && rescue->wq)
		return rescue;
	lc_rescue_destroy(rescue);
	return NULL;
}

void lc_rescue_destroy(struct lc_rescue *rescue)
{
	if (!rescue)
		return;
	if (rescue->wq)
		destroy_workqueue(rescue->wq);
	free_pages((unsigned long)rescue->pages, 1);
	kvfree(rescue->ranges);
	kvfree(rescue->items);
	kfree(rescue);
}

/* Any context. */
void lc_rescue_start(struct lc_rescue *rescue)
{
	queue_work(rescue->wq, &rescue->work);
}

/* May sleep; not under core->life_lock. */
void lc_rescue_wait(struct lc_rescue *rescue)
{
	flush_work(&rescue->work);
}

/* --- mode degraded ------------------------------------------------------- */

/* The sectors of @block that the bio covers. */
static u8 covered(const struct bvec_iter *iter, u64 block)
{
	u64 first = block << LC_BLOCK_SHIFT, end = iter->bi_sector + (iter->bi_size >> 9);
	u32 from = iter->bi_sector > first ? iter->bi_sector - first : 0;
	u32 to = min_t(u64, end - first, LC_BLOCK_SECTORS);

	return ((1u << to) - 1) & ~((1u << from) - 1);
}

/* Does the write cover lost sectors?  With @heal, they are valid from now on. */
static bool visit_lost(struct lc_core *core, const struct lc_io *io, bool heal)
{
	u64 block = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	u64 end = (io->iter.bi_sector + (io->iter.bi_size >> 9) + LC_BLOCK_SECTORS - 1) >>
		  LC_BLOCK_SHIFT;
	struct lc_mapping map;
	bool any = false;
	u32 bucket;

	for (; block < end && (heal || !any); block++) {
		u8 mask = covered(&io->iter, block);

		bucket = lc_index_lock(core->index, block);
		if (lc_index_lookup(core->index, bucket, block, &map) && map.lost & mask) {
			any = true;
			if (heal && map.lost & ~mask) {
				lc_index_widen(core->index, bucket, map.slot, mask);
				lc_index_lose(core->index, bucket, map.slot, 0);
			} else if (heal) {
				lc_index_remove(core->index, bucket, block, &map);
				atomic64_dec(&core->lost);
			}
		}
		lc_index_unlock(core->index, bucket);
	}
	return any;
}

/* The HDD holds what was written over lost sectors: now they may be read. */
static void heal_work(struct work_struct *work)
{
	struct lc_io *io = container_of(work, struct lc_io, work);

	visit_lost(io->core, io, true);
	lc_io_end_again(lc_io_bio(io));
}

static void aim_at_hdd(struct lc_core *core, struct bio *bio, struct lc_io *io)
{
	if (bio_op(bio) == REQ_OP_WRITE && bio_sectors(bio) && atomic64_read(&core->lost))
		io->heals = visit_lost(core, io, false);
	bio_set_dev(bio, core->backing);
	if (bio_sectors(bio))
		bio->bi_iter.bi_sector = io->iter.bi_sector + core->data_sector;
}

/**
 * lc_bypass_map() - map anything but a read straight to the HDD
 * @core: the volume, degraded
 * @bio: device mapper's clone
 *
 * From map(): does not sleep.
 */
int lc_bypass_map(struct lc_core *core, struct bio *bio)
{
	struct lc_io *io = lc_bio_io(bio);

	if (bio_op(bio) == REQ_OP_DISCARD && !bdev_max_discard_sectors(core->backing)) {
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	}
	io->iter = bio->bi_iter;
	aim_at_hdd(core, bio, io);
	return DM_MAPIO_REMAPPED;
}

/**
 * lc_bypass_submit() - send what is left of a parked write to the HDD
 * @core: the volume, degraded
 * @io: io->iter is what is left
 *
 * Process context.
 */
void lc_bypass_submit(struct lc_core *core, struct lc_io *io)
{
	struct bio *bio = lc_io_bio(io);

	bio->bi_iter = io->iter;
	aim_at_hdd(core, bio, io);
	submit_bio_noacct(bio);
}

/**
 * lc_bypass_end() - end_io of a bio that may have covered lost sectors
 * @core: the volume
 * @bio: device mapper's clone
 * @error: the bio's status
 *
 * Completion context.
 */
int lc_bypass_end(struct lc_core *core, struct bio *bio, blk_status_t *error)
{
	struct lc_io *io = lc_bio_io(bio);

	if (!io->heals)
		return DM_ENDIO_DONE;
	io->heals = false;
	if (*error)
		return DM_ENDIO_DONE;
	INIT_WORK(&io->work, heal_work);
	queue_work(core->wq, &io->work);
	return DM_ENDIO_INCOMPLETE;
}
