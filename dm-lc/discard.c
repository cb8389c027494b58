// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of a discard.  Whole blocks only; in a worker, one at a time.
 *
 *  1. Own the HDD places: wb->place_lock keeps writeback out until the end (C5).
 *  2. If none of the blocks is cached, skip to 6: what is not in the index is in
 *     no record that replay would use.
 *  3. Make every earlier record durable, so that each is sealed: a writer that
 *     still held one could otherwise add a block below the tombstone (L12).
 *  4. Log a RANGE record: at replay it drops copies in lower seqs only.
 *  5. Make it durable: a copy stops being needed only now (L5), and no writer has
 *     a reference on an older record any more that could add a copy behind our back.
 *     Then drop copies older than that record from the index, the same rule in RAM.
 *  6. Discard on the HDD, if it can.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/sched.h>

#include "lc.h"
#include "buffer.h"
#include "discard.h"
#include "index.h"
#include "io.h"
#include "lane.h"
#include "log.h"
#include "segment.h"
#include "writeback.h"

/* Blocks [first, first + nr). */
struct discard_range {
	u64 first;
	u64 nr;
	bool drop;		/* otherwise only look */
};

/* Is the copy in a slot newer than the last tombstone? (N4) */
static bool newer(struct lc_core *core, u32 slot)
{
	const struct lc_segment *seg = lc_ring_segment(core->ring, slot);
	const struct lc_bound *bound;

	if (seg->number < core->head->start)
		return false;
	bound = &core->head->bounds[seg->lane];
	if (seg->number != bound->segment)
		return seg->number > bound->segment;
	return lc_ring_slot_in_segment(core->ring, slot) >= bound->slot;
}

/* Return: whether the block had a copy that the range covers. */
static bool visit_block(struct lc_core *core, const struct discard_range *r, u64 block)
{
	u32 bucket = lc_index_lock(core->index, block);
	struct lc_mapping map;
	bool found;

	found = lc_index_lookup(core->index, bucket, block, &map);
	if (found && r->drop) {
		if (newer(core, map.slot))
			found = false;
		else if (lc_index_remove(core->index, bucket, block, &map) && map.lost)
			atomic64_dec(&core->lost);
	}
	lc_index_unlock(core->index, bucket);
	return found;
}

/* By block or by slot, whichever is less work. */
static bool visit_range(struct lc_core *core, const struct discard_range *r)
{
	u64 nr_slots = core->sb.geo.nr_slots;
	struct lc_mapping map;
	bool any = false;
	u64 i, block;

	if (r->nr <= nr_slots) {
		for (i = 0; i < r->nr; i++) {
			any |= visit_block(core, r, r->first + i);
			if (any && !r->drop)
				return true;
			if (!(i & 1023))
				cond_resched();
		}
		return any;
	}
	for (i = 0; i < nr_slots; i++) {
		if (!(i & 1023))
			cond_resched();
		if (!lc_index_peek(core->index, i, &block, &map))
			continue;
		if (block < r->first || block - r->first >= r->nr)
			continue;
		any |= visit_block(core, r, block);
		if (any && !r->drop)
			return true;
	}
	return any;
}

/* Steps 2 to 5.  Return: 0, -EAGAIN if no buffer is ready, or an error. */
static int drop_cached(struct lc_core *core, struct discard_range *r)
{
	const struct lc_entry_info range = {
		.block = r->first, .nr_blocks = r->nr, .type = LC_ENTRY_RANGE_TOMBSTONE,
	};
	int ret;

	r->drop = false;
	if (!visit_range(core, r))
		return 0;
	ret = lc_log_wait_durable(core->log, lc_head_seal(core, false));
	if (ret)
		return ret;
	ret = lc_head_append_ranges(core, &range, 1);
	if (ret)
		return ret;
	ret = lc_log_wait_durable(core->log, lc_head_seal(core, false));
	if (ret)
		return ret;
	r->drop = true;
	visit_range(core, r);
	return 0;
}

/* Step 6, in one or two pieces (A2). */
static int discard_below(struct lc_core *core, u64 sector, u64 nr)
{
	u64 n = lc_place_run(&core->place, sector, nr);
	int ret;

	ret = lc_io_discard(core->backing, lc_place_sector(&core->place, sector), n);
	if (!ret && n < nr)
		ret = lc_io_discard(core->backing, lc_place_sector(&core->place, sector + n),
				    nr - n);
	return ret;
}

static void discard_work(struct work_struct *work)
{
	struct lc_io *io = container_of(work, struct lc_io, work);
	struct lc_core *core = io->core;
	struct bio *bio = lc_io_bio(io);
	sector_t end = bio_end_sector(bio);
	struct discard_range r = {
		.first = (bio->bi_iter.bi_sector + LC_BLOCK_SECTORS - 1) >> LC_BLOCK_SHIFT,
	};
	int ret = 0;

	if (end >> LC_BLOCK_SHIFT > r.first)
		r.nr = (end >> LC_BLOCK_SHIFT) - r.first;
	if (r.nr) {
		lc_writeback_own_places(core->wb);
		ret = drop_cached(core, &r);
		if (!ret && bdev_max_discard_sectors(core->backing))
			ret = discard_below(core, r.first << LC_BLOCK_SHIFT,
					    r.nr << LC_BLOCK_SHIFT);
		lc_writeback_release_places(core->wb);
	}
	/*
	 * No buffer, or no log any more: a discard is a hint, and dropping it is an answer
	 * that loses nothing.
	 */
	if (ret == -EAGAIN || ret == -EOPNOTSUPP || atomic_read(&core->cache_failed))
		ret = 0;
	bio->bi_status = errno_to_blk_status(ret);
	bio_endio(bio);
}

/**
 * lc_discard_map() - map a discard
 * @core: the volume
 * @bio: device mapper's clone
 *
 * From map(): does not sleep.
 */
int lc_discard_map(struct lc_core *core, struct bio *bio)
{
	struct lc_io *io = lc_bio_io(bio);

	if (lc_core_mode(core) == LC_MODE_FAIL)
		return DM_MAPIO_KILL;
	INIT_WORK(&io->work, discard_work);
	queue_work(core->slow_wq, &io->work);
	return DM_MAPIO_SUBMITTED;
}
