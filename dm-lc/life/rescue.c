// SPDX-License-Identifier: GPL-2.0-only
/*
 * When the SSD has failed: save what can be saved, then go on without it.
 *
 *  1. The lanes are stopped, the log stopped, writeback quiesced, discards have ended: nothing
 *     changes any more (S-b) and no HDD I/O of ours is in flight (S3).  Writes that come are
 *     parked, flushes wait, or are on the HDD first (AR4).
 *  2. The mark says "abandoned", durably in both copies, with the number of lost
 *     blocks unknown: from here on this cache is never replayed (S-a, S1).
 *  3. Every dirty block that is still in RAM goes to the HDD: all that FLUSHes may
 *     wait for is there.  Only segments with a buffer are visited, so the time depends
 *     on the size of the buffers, not on that of the SSD.
 *  4. FLUSH the HDD (F3).
 *  5. Mode `degraded`: parked writes and all that follow go straight to the HDD
 *     (bypass.c), flushes that waited end well.  Clean copies are not used from here
 *     on: lc_cache_view().
 *  6. While they go on, the blocks that are only on the SSD are salvaged, if it still
 *     gives them back verified (salvage.c).  In the end what the SSD does not give back
 *     is lost; it stays in the index, and its list goes into the mark (S4).
 *
 * If the HDD refuses a block that was only in RAM, or fails the FLUSH of step 4, no
 * FLUSH may end well any more (F1): the mode is fail.  Step 6 follows nevertheless,
 * because after step 2 there is no other way to the data on the SSD.  If the HDD fails
 * a FLUSH in step 6, it may have dropped what users wrote: the mode is fail, too.
 *
 * Without a mark nothing could keep the SSD from being replayed when it comes back,
 * so the mode is fail at once (lc_health_ssd_failed()).
 *
 * From step 5 on the index only ever shrinks.  It lists what the HDD does not hold:
 * lost sectors, and those yet to be salvaged (mask).  The list in the mark may name
 * too many blocks; it is renewed when the volume is suspended.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "bio/bypass.h"
#include "bio/discard.h"
#include "bio/intake.h"
#include "format/mask.h"
#include "life/lc.h"
#include "life/rescue.h"
#include "life/salvage.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/record.h"
#include "store/index.h"
#include "store/io.h"
#include "store/mark.h"
#include "store/ring.h"
#include "writeback/copy.h"
#include "writeback/writeback.h"

#define MAX_ITEMS	4096	/* at least a segment's slots */
#define MAX_TRIES	5	/* of a write to the HDD, a second apart */
#define MAX_HOPELESS	16	/* blocks for which all tries fail; then one try each */
#define MAX_RANGES	16384	/* lost ones, before neighbours are joined */

struct item {
	u64 block;
	u32 slot;
};

struct lc_rescue {
	struct lc_volume *vol;
	struct workqueue_struct *wq;	/* its own: all others may wait for the log */
	struct work_struct work;
	struct lc_salvage *salvage;
	struct item *items;		/* MAX_ITEMS */
	struct lc_lost *ranges;		/* MAX_RANGES */
	u32 hopeless;			/* blocks the HDD refused for good */
	bool ram_lost;			/* what a FLUSH was to save could not be */
};

static int compare_blocks(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return 0;
}

/* --- step 3 -------------------------------------------------------------- */

/* With ssd_patience_ms 0 nothing is tried again here either. */
static u32 max_tries(const struct lc_rescue *rescue)
{
	return READ_ONCE(rescue->vol->c.env.params.ssd_patience_ms) ? MAX_TRIES : 1;
}

/* The HDD has no copy of the block: try again, but not for each of many blocks. */
static int write_patiently(struct lc_rescue *rescue, u64 block, u8 mask, void *data)
{
	u32 tries = rescue->hopeless < MAX_HOPELESS ? max_tries(rescue) : 1;
	int ret;

	while ((ret = lc_wbcopy_write_block(&rescue->vol->c, block, mask, data)) && --tries)
		schedule_timeout_idle(HZ);
	rescue->hopeless += !!ret;
	return ret;
}

/*
 * Is the slot the newest copy of the block, and not on the HDD?  @map is set then, and
 * @buf pinned if it is in RAM.
 */
static bool find_missing(struct lc_volume *vol, const struct item *item, struct lc_mapping *map,
			 struct lc_buffer **buf)
{
	u32 bucket;
	bool found;

	found = lc_index_lock_slot(vol->c.index, item->block, item->slot, &bucket, map) &&
		map->dirty && map->mask;
	*buf = found ? lc_buffer_pin(vol->c.ring, map->slot) : NULL;
	lc_index_unlock(vol->c.index, bucket);
	return found;
}

static bool is_in_ram(struct lc_volume *vol, const struct item *item)
{
	struct lc_mapping map;
	struct lc_buffer *buf;

	if (!find_missing(vol, item, &map, &buf) || !buf)
		return false;
	lc_buffer_unpin(buf);
	return true;
}

/*
 * The next dirty blocks in RAM from segment *@position on, in HDD order.  Only segments that
 * still have their buffer are looked into: the log is stopped, so no buffer comes or goes.
 * Return: how many.
 */
static u32 collect_in_ram(struct lc_rescue *rescue, u64 *position)
{
	struct lc_volume *vol = rescue->vol;
	u32 seg_slots = vol->c.sb.geo.seg_slots, nr = 0, slot, end;
	struct lc_mapping map;

	for (; *position < vol->c.ring->nr && nr + seg_slots <= MAX_ITEMS; ++*position) {
		if (!(*position & 1023))
			cond_resched();
		if (!rcu_access_pointer(vol->c.ring->segments[*position].buf))
			continue;
		slot = *position << vol->c.ring->slot_shift;
		for (end = slot + seg_slots; slot < end; slot++) {
			struct item *item = &rescue->items[nr];

			if (!lc_index_peek(vol->c.index, slot, &item->block, &map) || !map.dirty)
				continue;
			item->slot = slot;
			nr += map.mask && is_in_ram(vol, item);
		}
	}
	sort(rescue->items, nr, sizeof(*rescue->items), compare_blocks, NULL);
	return nr;
}

/* Before mode degraded: no other task changes a mapping.  Return: whether the HDD took it. */
static bool save_block(struct lc_rescue *rescue, const struct item *item)
{
	struct lc_volume *vol = rescue->vol;
	struct lc_buffer *buf;
	struct lc_mapping map;
	int ret;

	if (!find_missing(vol, item, &map, &buf) || !buf)
		return false;
	ret = write_patiently(rescue, item->block, map.mask,
			      lc_buffer_slot(buf, item->slot));
	lc_buffer_unpin(buf);
	if (ret) {
		rescue->ram_lost = true;
		lc_index_mark_slot_lost(vol->c.index, item->block, item->slot);
	}
	return !ret;
}

/* Step 3: a batch at a time, each in the order of the HDD. */
static void save_ram(struct lc_rescue *rescue)
{
	struct lc_volume *vol = rescue->vol;
	u64 position = 0;
	u32 nr, i, bucket;

	while (position < vol->c.ring->nr) {
		nr = collect_in_ram(rescue, &position);
		for (i = 0; i < nr; i++) {
			if (save_block(rescue, &rescue->items[i])) {
				bucket = lc_index_lock(vol->c.index, rescue->items[i].block);
				lc_index_clean(vol->c.index, bucket, rescue->items[i].slot);
				lc_index_unlock(vol->c.index, bucket);
			}
			cond_resched();
		}
	}
}

/* --- the list of what is lost ------------------------------------------------ */

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
	u32 nr = 0, i, n;

	for (i = 0; lc_mask_next(lost, &i, &n); i += n)
		ranges[nr++] = (struct lc_lost) { (block << LC_BLOCK_SHIFT) + i, n };
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

/* What the HDD lacks of a block: for good, or, at the end, because it was not salvaged. */
static u8 lacking(const struct lc_mapping *map, bool ending)
{
	return map->lost | (ending && map->dirty ? map->mask : 0);
}

static void put_list(struct lc_volume *vol, const struct lc_lost *ranges, u32 nr)
{
	if (lc_mark_abandon(vol->c.mark, ranges, nr))
		lc_err(&vol->c.env, "the mark on %pg cannot be written: it may name more sectors as lost than there are",
		       vol->c.env.backing);
}

void lc_rescue_record_lost(struct lc_volume *vol, bool ending)
{
	struct lc_lost *ranges = vol->rescue->ranges;
	bool unsaved = lc_salvage_active(vol->rescue->salvage);
	u64 slot, block, nr = 0;
	struct lc_mapping map;
	u8 mask;

	/* Not all that is lost is known: the mark says "too many", and goes on saying so. */
	if ((unsaved && !ending) || lc_bypass_failed_flushes(vol->bypass))
		return;
	if (!unsaved && !lc_index_lost(vol->c.index)) {
		put_list(vol, NULL, 0);
		return;
	}
	for (slot = 0; lc_index_next(vol->c.index, &slot, vol->c.sb.geo.nr_slots, &block, &map);
	     slot++) {
		mask = lacking(&map, ending && unsaved);
		if (!mask)
			continue;
		/* A block has four ranges at most: every other sector. */
		if (nr + LC_BLOCK_SECTORS / 2 > MAX_RANGES) {
			put_list(vol, NULL, LC_MARK_LOST_TOO_MANY);
			return;
		}
		nr += block_ranges(block, mask, ranges + nr);
	}
	nr = merge_ranges(ranges, nr);
	if (nr > LC_MARK_LOST)
		put_list(vol, NULL, LC_MARK_LOST_TOO_MANY);
	else
		put_list(vol, ranges, nr);
}

/* --- the whole ----------------------------------------------------------- */

/* A mark in one copy only is the worst case: the cache is refused, but nothing was saved. */
static int abandon(struct lc_rescue *rescue)
{
	u32 tries = max_tries(rescue);
	int ret;

	while ((ret = lc_mark_abandon(rescue->vol->c.mark, NULL, LC_MARK_LOST_TOO_MANY)) &&
	       --tries) {
		/* There is a FLUSH in it. */
		lc_doubt_flush_failed(&rescue->vol->c.doubt);
		schedule_timeout_idle(HZ);
	}
	return ret;
}

static int save_and_abandon(struct lc_rescue *rescue)
{
	struct lc_volume *vol = rescue->vol;
	u32 failures;
	int ret;

	lockdep_assert_held(&vol->life_lock);
	if (vol->running)
		lc_writeback_pause(vol->wb);
	lc_lanes_stop(vol->c.lanes);
	lc_log_wait_stopped(vol->c.log);
	lc_discard_settle(vol->discards);
	/* Mode fail may have come meanwhile: then the SSD stays as it is, for the next start. */
	ret = lc_mode(&vol->c.health) == LC_MODE_RW ? abandon(rescue) : -EIO;
	if (!ret) {
		/* From here on only the salvage can save what is only on the SSD. */
		lc_salvage_begin(rescue->salvage);
		failures = lc_doubt_failures(&vol->c.doubt);
		save_ram(rescue);
		ret = lc_io_flush(&vol->c.env, vol->c.env.backing);
		/* A FLUSH of a user may have dropped what was saved (DB3). */
		if (!ret && lc_doubt_failures(&vol->c.doubt) != failures)
			ret = -EIO;
	}
	if (!ret && rescue->ram_lost)
		ret = -EIO;
	return ret;
}

void lc_rescue_run(struct lc_rescue *rescue)
{
	struct lc_volume *vol = rescue->vol;
	int ret;

	lockdep_assert_held(&vol->life_lock);
	if (lc_mode(&vol->c.health) != LC_MODE_RW || vol->ended)
		return;
	lc_err(&vol->c.env, "%s: giving it up, saving what is in memory",
	       READ_ONCE(vol->c.health.reason));
	ret = save_and_abandon(rescue);
	lc_salvage_resume(rescue->salvage);
	if (ret) {
		lc_health_fail(&vol->c.health,
			       "neither cache nor backing device takes what is in memory");
		return;
	}
	/* Before the first write goes past them. */
	WRITE_ONCE(vol->c.bypassed, true);
	/* Mode fail may have come meanwhile, and stays. */
	if (!lc_health_degrade(&vol->c.health))
		return;
	lc_err(&vol->c.env, "mode degraded: going on without the cache, %llu blocks are lost, %llu are only there",
	       lc_index_lost(vol->c.index), lc_index_dirty(vol->c.index));
	lc_log_end_flushes(vol->c.log, BLK_STS_OK);
	lc_intake_kick(vol->intake);
	lc_health_tell(&vol->c.health);
}

static void salvaged(struct lc_volume *vol)
{
	lc_rescue_record_lost(vol, false);
}

static void rescue_work(struct work_struct *work)
{
	struct lc_rescue *rescue = container_of(work, struct lc_rescue, work);
	struct lc_volume *vol = rescue->vol;

	mutex_lock(&vol->life_lock);
	lc_rescue_run(rescue);
	mutex_unlock(&vol->life_lock);
}

struct lc_rescue *lc_rescue_create(struct lc_volume *vol)
{
	struct lc_rescue *rescue = kzalloc(sizeof(*rescue), GFP_KERNEL);

	if (!rescue)
		return NULL;
	rescue->vol = vol;
	INIT_WORK(&rescue->work, rescue_work);
	rescue->items = kvcalloc(MAX_ITEMS, sizeof(*rescue->items), GFP_KERNEL);
	rescue->ranges = kvcalloc(MAX_RANGES, sizeof(*rescue->ranges), GFP_KERNEL);
	rescue->wq = alloc_ordered_workqueue("lc-rescue", WQ_MEM_RECLAIM);
	if (rescue->wq)
		rescue->salvage = lc_salvage_create(vol, rescue->wq, salvaged);
	if (rescue->items && rescue->ranges && rescue->salvage)
		return rescue;
	lc_rescue_destroy(rescue);
	return NULL;
}

void lc_rescue_destroy(struct lc_rescue *rescue)
{
	if (!rescue)
		return;
	/* It may start the salvage. */
	flush_work(&rescue->work);
	lc_salvage_destroy(rescue->salvage);
	if (rescue->wq)
		destroy_workqueue(rescue->wq);
	kvfree(rescue->ranges);
	kvfree(rescue->items);
	kfree(rescue);
}

bool lc_rescue_pause(struct lc_rescue *rescue)
{
	lockdep_assert_held(&rescue->vol->life_lock);
	return lc_salvage_pause(rescue->salvage);
}

void lc_rescue_resume(struct lc_rescue *rescue)
{
	lockdep_assert_held(&rescue->vol->life_lock);
	lc_salvage_resume(rescue->salvage);
}

void lc_rescue_finish(struct lc_rescue *rescue, bool removing)
{
	lockdep_assert_held(&rescue->vol->life_lock);
	if (removing)
		lc_salvage_finish(rescue->salvage);
	else
		lc_salvage_pause(rescue->salvage);
}

void lc_rescue_start(struct lc_rescue *rescue)
{
	queue_work(rescue->wq, &rescue->work);
}

void lc_rescue_wait(struct lc_rescue *rescue)
{
	/* The work takes it. */
	lockdep_assert_not_held(&rescue->vol->life_lock);
	flush_work(&rescue->work);
}

