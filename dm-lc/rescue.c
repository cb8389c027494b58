// SPDX-License-Identifier: GPL-2.0-only
/*
 * When the SSD has failed: save what can be saved, then go on without it.
 *
 *  1. The lanes are stopped, the log stopped, writeback rests, discards are kept out:
 *     nothing changes any more and no HDD I/O of ours is in flight (S3).  Writes that
 *     come are parked, flushes wait.
 *  2. The mark says "abandoned", durably in both copies, with the number of lost
 *     blocks unknown: from here on this cache is never replayed (S1).
 *  3. Every dirty block that is still in RAM goes to the HDD: all that FLUSHes may
 *     wait for is there.
 *  4. FLUSH the HDD.  Only then the blocks it holds leave the index (F3).
 *  5. Mode `degraded`: parked writes and all that follow go straight to the HDD
 *     (bypass.c), flushes that waited end well.
 *  6. While they go on, the blocks that are only on the SSD are salvaged, if it still
 *     gives them back verified: a few at a time, in HDD order, claimed (S-d), with a
 *     FLUSH behind them.  What a device refuses is tried again later.  In the end what
 *     the SSD does not give back is lost; it stays in the index, and its list goes
 *     into the mark (S4).
 *
 * If something that was only in RAM is refused by the HDD too, or the FLUSH of step 4
 * fails, no FLUSH may end well any more (F1): mode fail.  Step 6 comes nevertheless,
 * because after step 2 there is no other way to what is on the SSD.  A FLUSH that the
 * HDD fails in step 6 may have cost what users wrote: mode fail, too.
 *
 * Without a mark nothing could keep the SSD from being replayed when it comes back,
 * so there mode `fail` is all that is left (lc_core_cache_failed()).
 *
 * From step 5 on the index only ever shrinks, and says what the HDD does not hold:
 * lost sectors, and those yet to be salvaged (mask).  The list in the mark may name
 * too many blocks; it is renewed when the volume is suspended.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "lc.h"
#include "buffer.h"
#include "bypass.h"
#include "index.h"
#include "io.h"
#include "lane.h"
#include "log.h"
#include "read.h"
#include "rescue.h"
#include "superblock.h"
#include "wbcopy.h"
#include "writeback.h"

#define MAX_ITEMS	1024
#define MAX_CLAIMED	32	/* writes to these wait, for a fraction of a second */
#define MAX_DEAD_READS	64	/* slots in a row that cannot be read: the SSD is gone */
#define MAX_TRIES	5	/* of a write to the HDD, a second apart */
#define MAX_HOPELESS	16	/* blocks that all of them did not help; in a pass of step 6 */
#define MAX_RANGES	16384	/* lost ones, before neighbours are joined */
#define PAUSE_UNREAD	HZ		/* before the SSD is asked again */
#define PAUSE_REFUSED	(30 * HZ)	/* before the HDD is */

struct item {
	u64 block;
	u32 slot;
};

struct lc_rescue {
	struct lc_core *core;
	struct workqueue_struct *wq;	/* its own: all others may wait for the log */
	struct work_struct work;
	struct delayed_work salvage_work;
	struct item *items;		/* MAX_ITEMS */
	u64 *blocks;			/* of the items, while they are claimed */
	void *pages;			/* two slots */
	struct lc_lost *ranges;		/* MAX_RANGES */
	u32 dead_reads;			/* in a row */
	u32 hopeless;			/* blocks the HDD refused for good */
	bool ram_lost;			/* what a FLUSH was to save could not be */
	/* step 6: set before salvage_work is queued, then owned by it, or who cancelled it */
	bool salvaging;			/* not done yet */
	bool last_pass;			/* what the SSD fails to give back is lost */
	unsigned long unread_since;	/* jiffies: the first pass that met such */
	u32 nr_unread;			/* in this pass: the SSD failed to give them back */
	u32 nr_refused;			/* in this pass: the HDD failed to take them */
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

/*
 * Is the slot the newest copy of the block, and not on the HDD?  @map is set then, and
 * @buf pinned if it is in RAM.
 */
static bool find_missing(struct lc_core *core, const struct item *item, struct lc_mapping *map,
			 struct lc_buffer **buf)
{
	u32 bucket = lc_index_lock(core->index, item->block);
	bool found;

	found = lc_index_lookup(core->index, bucket, item->block, map) &&
		map->slot == item->slot && map->dirty && map->mask;
	*buf = found ? lc_buffer_pin(core, map->slot) : NULL;
	lc_index_unlock(core->index, bucket);
	return found;
}

static bool is_in_ram(struct lc_core *core, const struct item *item)
{
	struct lc_mapping map;
	struct lc_buffer *buf;

	if (!find_missing(core, item, &map, &buf) || !buf)
		return false;
	lc_buffer_unpin(buf);
	return true;
}

/* The next dirty blocks from *@slot on, in HDD order.  Return: how many. */
static u32 collect(struct lc_rescue *rescue, u64 *slot, u32 max, bool only_ram)
{
	struct lc_core *core = rescue->core;
	struct lc_mapping map;
	u32 nr = 0;

	for (; *slot < core->sb.geo.nr_slots && nr < max; ++*slot) {
		struct item *item = &rescue->items[nr];

		if (!(*slot & 1023))
			cond_resched();
		if (!lc_index_peek(core->index, *slot, &item->block, &map) || !map.dirty)
			continue;
		item->slot = *slot;
		if (map.mask && (!only_ram || is_in_ram(core, item)))
			nr++;
	}
	sort(rescue->items, nr, sizeof(*rescue->items), compare_items, NULL);
	return nr;
}

/**
 * lc_rescue_lose() - a block cannot be had from the SSD any more
 * @core: the volume, degraded or about to be
 * @block: block number
 * @slot: that held it
 *
 * Any context but a completion's.  Return: false if there is nothing to lose: the slot
 * is not its newest copy, or not needed, or lost already.
 */
bool lc_rescue_lose(struct lc_core *core, u64 block, u32 slot)
{
	u32 bucket = lc_index_lock(core->index, block);
	struct lc_mapping map;
	bool lost;

	lost = lc_index_lookup(core->index, bucket, block, &map) && map.slot == slot &&
	       map.dirty && map.mask;
	if (lost) {
		if (!map.lost)
			atomic64_inc(&core->lost);
		lc_index_lose(core->index, bucket, slot, map.mask);
		lc_index_clean(core->index, bucket, slot);
	}
	lc_index_unlock(core->index, bucket);
	return lost;
}

/* Before mode degraded: nobody but us changes a mapping.  Return: whether the HDD took it. */
static bool save_block(struct lc_rescue *rescue, const struct item *item)
{
	struct lc_core *core = rescue->core;
	void *data = rescue->pages;
	struct lc_buffer *buf;
	struct lc_mapping map;
	int ret = 0;

	if (!find_missing(core, item, &map, &buf))
		return false;
	if (buf)
		data = lc_buffer_slot(core, buf, item->slot);
	else
		ret = read_from_ssd(rescue, item);
	if (!ret)
		ret = write_patiently(rescue, item->block, map.mask, data);
	if (ret && buf)
		rescue->ram_lost = true;
	if (buf)
		lc_buffer_unpin(buf);
	if (ret)
		lc_rescue_lose(core, item->block, item->slot);
	return !ret;
}

/* Step 3: a batch at a time, each in the order of the HDD. */
static void save_ram(struct lc_rescue *rescue)
{
	struct lc_core *core = rescue->core;
	u64 slot = 0;
	u32 nr, i, bucket;

	while ((nr = collect(rescue, &slot, MAX_ITEMS, true))) {
		for (i = 0; i < nr; i++) {
			if (save_block(rescue, &rescue->items[i])) {
				bucket = lc_index_lock(core->index, rescue->items[i].block);
				lc_index_clean(core->index, bucket, rescue->items[i].slot);
				lc_index_unlock(core->index, bucket);
			}
			cond_resched();
		}
	}
}

/* Step 4: the HDD durably holds what is clean. */
static void forget_saved(struct lc_core *core)
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
		/* The discards that are out of the log's way now may have removed it. */
		if (lc_index_lookup(core->index, bucket, block, &map) && map.slot == slot &&
		    !(map.dirty && map.mask))
			lc_index_narrow(core->index, bucket, block, ~map.lost);
		lc_index_unlock(core->index, bucket);
	}
}

/* --- step 6 -------------------------------------------------------------- */

/*
 * The block is claimed.  Nothing is urgent any more, so nothing is given up at once.
 * Return: whether the HDD took it.
 */
static bool salvage_block(struct lc_rescue *rescue, const struct item *item)
{
	struct lc_core *core = rescue->core;
	struct lc_buffer *buf;
	struct lc_mapping map;
	int ret;

	if (!find_missing(core, item, &map, &buf))
		return false;
	if (buf)
		lc_buffer_unpin(buf);
	ret = read_from_ssd(rescue, item);
	if (ret == -EBADMSG || (ret && rescue->last_pass)) {
		lc_rescue_lose(core, item->block, item->slot);
		return false;
	}
	if (ret) {
		rescue->nr_unread++;
		return false;
	}
	if (lc_wbcopy_write_block(core, item->block, map.mask, rescue->pages)) {
		rescue->nr_refused++;
		return false;
	}
	return true;
}

/* The only device left does not keep what it took: writes and FLUSHes fail from now on. */
static void backing_failed(struct lc_core *core)
{
	lc_log_fail(core->log);
	if (cmpxchg(&core->mode, LC_MODE_DEGRADED, LC_MODE_FAIL) != LC_MODE_DEGRADED)
		return;
	lc_err(core, "mode fail: the backing device failed a FLUSH; writes are refused");
	queue_work(core->slow_wq, &core->event_work);
}

/*
 * Make durable what was copied.  A FLUSH that the HDD failed, ours or a user's that
 * came across it, may have cost what a later one finds nothing of (F3).
 */
static int flush_salvaged(struct lc_core *core, u32 failed_before)
{
	int ret = lc_io_flush(core->backing);

	if (ret) {
		/* Also what users wrote, and their FLUSHes would not be told. */
		backing_failed(core);
		return ret;
	}
	lc_bypass_settle(core->bypass);
	return lc_bypass_failed_flushes(core->bypass) == failed_before ? 0 : -EIO;
}

/* Save claimed blocks, and forget those that the HDD durably holds. */
static void salvage_claimed(struct lc_rescue *rescue, u32 nr)
{
	struct lc_core *core = rescue->core;
	u32 failed = lc_bypass_failed_flushes(core->bypass), saved = 0, i, bucket;
	struct lc_mapping map;

	for (i = 0; i < nr; i++) {
		if (salvage_block(rescue, &rescue->items[i]))
			rescue->items[saved++] = rescue->items[i];
		cond_resched();
	}
	if (!saved)
		return;
	if (flush_salvaged(core, failed)) {
		rescue->nr_refused += saved;
		return;
	}
	for (i = 0; i < saved; i++) {
		u64 block = rescue->items[i].block;

		bucket = lc_index_lock(core->index, block);
		if (lc_index_lookup(core->index, bucket, block, &map))
			lc_index_narrow(core->index, bucket, block, map.mask);
		lc_index_unlock(core->index, bucket);
	}
}

/* Go through all that is dirty once, unless a device proves to be gone. */
static void salvage_pass(struct lc_rescue *rescue)
{
	struct lc_bypass *bypass = rescue->core->bypass;
	u64 slot = 0;
	u32 nr, i;

	rescue->nr_unread = 0;
	rescue->nr_refused = 0;
	rescue->dead_reads = 0;
	while ((nr = collect(rescue, &slot, MAX_CLAIMED, false))) {
		for (i = 0; i < nr; i++)
			rescue->blocks[i] = rescue->items[i].block;
		lc_bypass_claim(bypass, rescue->blocks, nr);
		salvage_claimed(rescue, nr);
		lc_bypass_release(bypass);
		if (rescue->nr_refused >= MAX_HOPELESS ||
		    (!rescue->last_pass && rescue->dead_reads >= MAX_DEAD_READS))
			break;
	}
}

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

	/* Not all that is lost is known: the mark says "too many", and goes on saying so. */
	if (core->rescue->salvaging || lc_bypass_failed_flushes(core->bypass))
		return 0;
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

static void salvage_done(struct lc_rescue *rescue)
{
	struct lc_core *core = rescue->core;

	rescue->salvaging = false;
	lc_bypass_watch(core->bypass, false);
	/* If that fails, the mark goes on saying "too many". */
	if (lc_rescue_record_lost(core))
		lc_warn(core, "the mark does not list the lost blocks");
	lc_warn(core, "the cache device is not needed any more, %lld blocks are lost",
		(long long)atomic64_read(&core->lost));
	queue_work(core->slow_wq, &core->event_work);
}

/* Step 6, once over all.  Only one at a time.  Return: when to do it again, 0: it is done. */
static unsigned long salvage(struct lc_rescue *rescue)
{
	struct lc_core *core = rescue->core;
	u32 patience = READ_ONCE(core->params.ssd_patience_ms);

	salvage_pass(rescue);
	if (rescue->nr_refused) {
		lc_err_limit(core, "the backing device fails, %llu blocks are yet to be saved",
			     lc_index_dirty(core->index));
		return PAUSE_REFUSED;
	}
	if (!rescue->nr_unread) {
		salvage_done(rescue);
		return 0;
	}
	if (!rescue->unread_since)
		rescue->unread_since = jiffies | 1;
	rescue->last_pass = time_after_eq(jiffies, rescue->unread_since +
					  msecs_to_jiffies(patience));
	return PAUSE_UNREAD;
}

static void salvage_work(struct work_struct *work)
{
	struct lc_rescue *rescue = container_of(to_delayed_work(work), struct lc_rescue,
						salvage_work);
	unsigned long pause;

	if (!rescue->salvaging)
		return;
	pause = salvage(rescue);
	if (pause)
		queue_delayed_work(rescue->wq, &rescue->salvage_work, pause);
}

/**
 * lc_rescue_resume() - salvage on, if that is not done
 * @rescue: the room
 *
 * Any context.
 */
void lc_rescue_resume(struct lc_rescue *rescue)
{
	queue_delayed_work(rescue->wq, &rescue->salvage_work, 0);
}

/**
 * lc_rescue_finish() - salvage what is left, now
 * @rescue: the room
 *
 * May sleep, long: nothing may be at work while the volume is suspended, and what is
 * not salvaged before it is removed is lost.  No bio is in flight.  Under
 * core->life_lock, so the work must not need it.
 */
void lc_rescue_finish(struct lc_rescue *rescue)
{
	struct lc_core *core = rescue->core;
	u32 tries = max_tries(rescue);

	lockdep_assert_held(&core->life_lock);
	cancel_delayed_work_sync(&rescue->salvage_work);
	while (rescue->salvaging && salvage(rescue)) {
		if (rescue->nr_refused && !--tries)
			break;
		schedule_timeout_idle(PAUSE_UNREAD);
	}
	if (rescue->salvaging)
		lc_err(core, "if the volume is removed now, %llu blocks are lost",
		       lc_index_dirty(core->index));
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
	lc_head_stop(core);
	lc_log_wait_stopped(core->log);
	lc_writeback_own_places(core->wb);
	/* Mode fail may have come meanwhile: then the SSD stays as it is, for the next start. */
	ret = lc_core_mode(core) == LC_MODE_RW ? abandon(rescue) : -EIO;
	if (!ret) {
		/* From here on what is only there has no other chance. */
		rescue->salvaging = true;
		lc_bypass_watch(core->bypass, true);
		save_ram(rescue);
		ret = lc_io_flush(core->backing);
	}
	if (!ret && rescue->ram_lost)
		ret = -EIO;
	if (!ret)
		forget_saved(core);
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
	int ret;

	lockdep_assert_held(&core->life_lock);
	if (lc_core_mode(core) != LC_MODE_RW || core->ended)
		return;
	lc_err(core, "%s: giving it up, saving what is in memory",
	       READ_ONCE(core->fail_reason));
	ret = save_and_abandon(rescue);
	lc_rescue_resume(rescue);
	if (ret) {
		lc_core_fail(core, "neither cache nor backing device takes what is in memory");
		return;
	}
	/* Mode fail may have come meanwhile, and stays. */
	if (cmpxchg(&core->mode, LC_MODE_RW, LC_MODE_DEGRADED) != LC_MODE_RW)
		return;
	lc_err(core, "mode degraded: going on without the cache, %lld blocks are lost, %llu are only there",
	       (long long)atomic64_read(&core->lost), lc_index_dirty(core->index));
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
	INIT_DELAYED_WORK(&rescue->salvage_work, salvage_work);
	rescue->items = kvcalloc(MAX_ITEMS, sizeof(*rescue->items), GFP_KERNEL);
	rescue->blocks = kvcalloc(MAX_CLAIMED, sizeof(*rescue->blocks), GFP_KERNEL);
	rescue->pages = (void *)__get_free_pages(GFP_KERNEL, 1);
	rescue->ranges = kvcalloc(MAX_RANGES, sizeof(*rescue->ranges), GFP_KERNEL);
	rescue->wq = alloc_ordered_workqueue("lc-rescue", WQ_MEM_RECLAIM);
	if (rescue->items && rescue->blocks && rescue->pages && rescue->ranges && rescue->wq)
		return rescue;
	lc_rescue_destroy(rescue);
	return NULL;
}

void lc_rescue_destroy(struct lc_rescue *rescue)
{
	if (!rescue)
		return;
	if (rescue->wq) {
		cancel_delayed_work_sync(&rescue->salvage_work);
		destroy_workqueue(rescue->wq);
	}
	free_pages((unsigned long)rescue->pages, 1);
	kvfree(rescue->ranges);
	kvfree(rescue->blocks);
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

