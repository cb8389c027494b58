// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of a write.
 *
 * For each block, under its bucket lock, map() reserves slots of the lane's open record
 * unless it has some, copies the data, describes it in the record header and points the
 * index at it; then the bio completes.  A block that is in an open record already is
 * overwritten there, without a slot.  No I/O, no allocation, and no sleep unless too much is
 * parked; but whoever waits for a FLUSH or FUA sends the record himself, if it is small: within
 * map() the block layer does that when map() has returned.
 *
 * Two detours:
 *  - no buffer is ready, or writeback needs the reserve (D1): the bio is parked, and a
 *    worker continues it in its turn (park.c, C7, D3);
 *  - part of a block is written whose older sectors are dirty on the SSD only:
 *    a worker reads and verifies the old slot, and the block is looked up again
 *    under its lock before anything is merged (C2, C3).
 *
 * A slot always ends up holding every sector of its block that is not on the HDD,
 * so a block never needs more than one slot.
 */
#include <linux/bio.h>
#include <linux/jiffies.h>
#include <linux/llist.h>
#include <linux/mempool.h>
#include <linux/sched.h>

#include "lc.h"
#include "record.h"
#include "bypass.h"
#include "index.h"
#include "io.h"
#include "lanes.h"
#include "log.h"
#include "mask.h"
#include "park.h"
#include "read.h"
#include "segment.h"
#include "submit.h"
#include "stats.h"
#include "wbcopy.h"
#include "write.h"

#define MERGE_PATIENCE_MS	8000u	/* at least: sectors are at stake */
#define COMMIT_TICKS		2	/* what meets may wait for a worker */

/* An old slot read from the SSD; valid while segment is referenced. */
struct merge {
	u32 slot;
	const void *data;	/* NULL: its sectors are lost */
};

static void copy_sectors(void *to, const void *from, u8 mask)
{
	for (; mask; mask &= mask - 1)
		memcpy(to + (__ffs(mask) << 9), from + (__ffs(mask) << 9), 512);
}

static void zero_sectors(void *to, u8 mask)
{
	for (; mask; mask &= mask - 1)
		memset(to + (__ffs(mask) << 9), 0, 512);
}

/*
 * [bucket locked] Bring the sectors in @keep of an older copy along.
 * Return: 0, -EINPROGRESS if it must be read from the SSD first; sectors that
 * cannot be had move from @keep to @lost.
 */
static int keep_old_sectors(struct lc_core *core, const struct lc_mapping *old,
			    const struct merge *merge, void *image, u8 *keep, u8 *lost)
{
	struct lc_buffer *buf = lc_buffer_pin(core->c.ring, old->slot);

	if (buf) {
		copy_sectors(image, lc_buffer_slot(buf, old->slot), *keep);
		lc_buffer_unpin(buf);
		return 0;
	}
	if (!merge || merge->slot != old->slot)
		return -EINPROGRESS;
	if (merge->data) {
		copy_sectors(image, merge->data, *keep);
	} else {
		*lost |= *keep;
		*keep = 0;
	}
	return 0;
}

/* [bucket locked] Overwrite a block in the record we hold a reference on. */
static void overwrite_in_place(struct lc_core *core, struct lc_io *io, const struct lc_cursor *cur,
			       u32 bucket, u64 block, const struct lc_mapping *old, u8 mask)
{
	u32 first = __ffs(mask);
	u32 nr = hweight8(mask);

	void *image = lc_cursor_image(cur, old->slot);

	lc_io_copy_from_bio(lc_io_bio(io), &io->iter, image + (first << 9), nr << 9);
	lc_stats_copy(&core->c.stats, image);
	if (mask & ~old->mask) {
		lc_index_widen(core->c.index, bucket, old->slot, mask);
		lc_cursor_describe(cur, old->slot, block, old->mask | mask, old->lost & ~mask);
	}
}

/* [bucket locked] Put a block into the cursor's next slot. */
static int write_new_slot(struct lc_core *core, struct lc_io *io, struct lc_cursor *cur,
			  u32 bucket, u64 block, const struct lc_mapping *old, u8 mask,
			  const struct merge *merge)
{
	struct lc_mapping map = { .slot = lc_cursor_slot(cur), .dirty = true };
	void *image = lc_cursor_image(cur, map.slot);
	/* What is clean is on the HDD and need not come along. */
	u8 keep = old && old->dirty ? old->mask & ~mask : 0;
	u8 lost = old ? old->lost & ~mask : 0;
	struct lc_mapping replaced;
	int ret;

	if (keep) {
		ret = keep_old_sectors(core, old, merge, image, &keep, &lost);
		if (ret)
			return ret;
	}
	lc_io_copy_from_bio(lc_io_bio(io), &io->iter, image + (__ffs(mask) << 9),
			    hweight8(mask) << 9);
	lc_stats_copy(&core->c.stats, image);
	map.mask = mask | keep;
	map.lost = lost;
	zero_sectors(image, ~map.mask);
	lc_cursor_describe(cur, map.slot, block, map.mask, map.lost);
	lc_index_set(core->c.index, bucket, block, &map, &replaced);
	cur->next++;
	return 0;
}

static u32 blocks_left(const struct lc_io *io)
{
	u64 first = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	u64 last = (io->iter.bi_sector + (io->iter.bi_size >> 9) - 1) >> LC_BLOCK_SHIFT;

	return last - first + 1;
}

/*
 * [bucket locked] Get a cursor for a block, without one: of the open record that holds it
 * (B6), else @want slots, for it and the blocks behind it.  Return: its order, or -EAGAIN.
 */
static int find_cursor(struct lc_core *core, u32 want, struct lc_cursor *cur,
		       const struct lc_mapping *old)
{
	if (old && lc_cursor_join(core->c.lanes, old->slot, cur))
		return LC_ORDER_OWN;
	if (lc_lane_try_reserve(lc_lanes_here(core->c.lanes), want, cur))
		return -EAGAIN;
	return LC_ORDER_OLDER;
}

/*
 * Write what the bio has for one block.  A cursor without a record gets one, with slots for
 * all but the @last blocks.
 * Return: 0, -EINPROGRESS (read the old slot first), -ESTALE (the cursor's record
 * is closed and a newer one holds the block, or may: get another cursor), -EAGAIN (no record
 * with room is open: reserve slots).
 */
static int write_block(struct lc_core *core, struct lc_io *io, struct lc_cursor *cur,
		       const struct merge *merge, u32 last)
{
	u64 block = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	u32 first = io->iter.bi_sector & (LC_BLOCK_SECTORS - 1);
	u32 nr = min_t(u32, LC_BLOCK_SECTORS - first, io->iter.bi_size >> 9);
	u8 mask = lc_mask_of(first, nr);
	struct lc_mapping old;
	struct lc_cursor other = {};
	int order = LC_ORDER_OLDER, ret = 0;
	bool found;
	u32 bucket;

	bucket = lc_index_lock(core->c.index, block);
	found = lc_index_lookup(core->c.index, bucket, block, &old);
	if (!cur->rec)
		order = find_cursor(core, blocks_left(io) - last, cur, found ? &old : NULL);
	/* Also of slots reserved just now: the block may be in a record that is open since. */
	if (found && order == LC_ORDER_OLDER)
		order = lc_cursor_compare(cur, old.slot, &other);
	if (order < 0)
		ret = order;
	else if (order == LC_ORDER_OWN)
		overwrite_in_place(core, io, cur, bucket, block, &old, mask);
	else if (order == LC_ORDER_OPEN)
		overwrite_in_place(core, io, &other, bucket, block, &old, mask);
	else if (order == LC_ORDER_OLDER && cur->next < cur->end)
		ret = write_new_slot(core, io, cur, bucket, block, found ? &old : NULL, mask,
				     merge);
	else
		ret = -ESTALE;
	lc_index_unlock(core->c.index, bucket);
	if (other.rec)
		lc_cursor_release(&other);
	return ret;
}

/*
 * Whoever has waited takes what there is; others keep to their lane, so that what they write
 * stays in their node.
 */
static int reserve(struct lc_core *core, u32 want, bool waited, struct lc_cursor *cur)
{
	struct lc_lanes *lanes = core->c.lanes;
	struct lc_lane *here = lc_lanes_here(lanes);
	int ret = lc_lanes_reserve(lanes, here, want, cur);
	u32 i;

	for (i = 1; ret && waited && i < lanes->nr; i++)
		ret = lc_lanes_reserve(lanes, lanes->lane[(here->index + i) % lanes->nr], want,
				       cur);
	return ret;
}

/* [held] As write_held(). */
static int write_piece(struct lc_core *core, struct lc_io *io, bool waited,
		       const struct merge *merge)
{
	struct lc_cursor cur = { .owes = !(lc_io_bio(io)->bi_opf & REQ_FUA) };
	u32 last = blocks_left(io) - min(blocks_left(io), LC_HOLD_SLOTS);
	int ret = 0;

	while (io->iter.bi_size && blocks_left(io) > last) {
		ret = write_block(core, io, &cur, merge, last);
		if (ret == -EAGAIN) {
			ret = reserve(core, blocks_left(io) - last, waited, &cur);
		} else if (ret == -ESTALE || (!ret && cur.end && cur.next == cur.end)) {
			lc_cursor_release(&cur);
			ret = 0;
		}
		if (ret)
			break;
	}
	lc_cursor_release(&cur);
	return ret;
}

/* As write_run(), but no more blocks than one may hold a record for (B7). */
static int write_held(struct lc_core *core, struct lc_io *io, bool waited,
		      const struct merge *merge)
{
	int ret;

	lc_hold();
	ret = write_piece(core, io, waited, merge);
	lc_unhold();
	return ret;
}

/*
 * Write as much of the bio as possible.  io->iter is what is left.  @waited: not in map().
 * Return: 0 (all), -EAGAIN (no buffer), -EINPROGRESS (read an old slot first).
 */
static int write_run(struct lc_core *core, struct lc_io *io, bool waited,
		     const struct merge *merge)
{
	int ret = 0;

	while (io->iter.bi_size && !ret)
		ret = write_held(core, io, waited, merge);
	return ret;
}

/* Any context. */
void lc_write_end(struct lc_io *io, blk_status_t status)
{
	struct bio *bio = lc_io_bio(io);

	bio->bi_status = status;
	bio_endio(bio);
}

/* --- FUA writes that meet ------------------------------------------------ */

/*
 * A write with PREFLUSH and FUA comes from a worker of device mapper, one after the other,
 * whoever sent them.  If others come, too, its record stays open until the worker is through
 * with them: commit_work waits for the same pool of workers on the same CPU, which starts it
 * when the one at work has nothing left, or sleeps.  So all that met there are one record.
 * The worker may be at it for long, or others before us: commit_late does not wait for that.
 */

/**
 * lc_write_commit() - make FUA writes durable that have met
 * @core: the volume
 *
 * Process context; may sleep, as submit_bio() does.
 */
void lc_write_commit(struct lc_core *core)
{
	struct llist_node *ios = llist_reverse_order(llist_del_all(&core->commits));
	struct lc_io *io, *next;
	u64 seq;

	/* The other work has taken them; perhaps the volume is at rest by now. */
	if (!ios)
		return;
	seq = lc_lanes_close_all(core->c.lanes, true);
	llist_for_each_entry_safe(io, next, ios, commit)
		lc_log_flush_io(core->c.log, io, seq);
}

/* core->commit_work */
void lc_write_commit_work(struct work_struct *work)
{
	lc_write_commit(container_of(work, struct lc_core, commit_work));
}

/* core->commit_late */
void lc_write_commit_late(struct work_struct *work)
{
	lc_write_commit(container_of(to_delayed_work(work), struct lc_core, commit_late));
}

/*
 * May the bio wait for others?  Only in a worker that is bound to its CPU, as commit_work's
 * is.  Of a lone writer each write is preceded by one FLUSH.
 */
static bool others_come(struct lc_core *core)
{
	return current->flags & PF_WQ_WORKER && is_percpu_thread() &&
	       (atomic_xchg(&core->nr_flushes, 0) > 1 || !llist_empty(&core->commits));
}

/* The bio ends when its data is durable.  @batch: whoever calls commits it soon. */
static void commit_later(struct lc_core *core, struct lc_io *io, bool batch)
{
	if (!llist_add(&io->commit, &core->commits))
		return;
	if (!batch)
		queue_work(core->commit_wq, &core->commit_work);
	queue_delayed_work(core->c.env.wq, &core->commit_late, COMMIT_TICKS);
}

/* End the bio when all that was completed so far is durable. */
static void flush_io(struct lc_core *core, struct lc_io *io, bool direct)
{
	u64 seq;

	direct = direct && lc_io_may_send(lc_io_bio(io));
	if (direct)
		lc_io_leave_plug();
	if (lc_io_bio(io)->bi_opf & REQ_FUA)
		seq = lc_lanes_close_all(core->c.lanes, direct);
	else
		seq = lc_lanes_close_owed(core->c.lanes, direct);
	lc_log_flush_io(core->c.log, io, seq);
}

/* All data is in a lane.  @batch: whoever calls commits what it has continued. */
static void write_finish(struct lc_core *core, struct lc_io *io, bool batch)
{
	lc_stamp(&core->c.env.last_write);
	if (!(lc_io_bio(io)->bi_opf & REQ_FUA))
		lc_write_end(io, BLK_STS_OK);
	else if (batch || others_come(core))
		commit_later(core, io, batch);
	else
		flush_io(core, io, true);
}

/* --- old slot must be read ---------------------------------------------- */

/* Find the slot whose sectors the next block of the bio needs; references its segment. */
static bool merge_find(struct lc_core *core, struct lc_io *io, struct lc_mapping *old)
{
	u64 block = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	u32 bucket = lc_index_lock(core->c.index, block);
	struct lc_buffer *buf = NULL;
	bool found;

	found = lc_index_lookup(core->c.index, bucket, block, old) && old->dirty;
	if (found)
		buf = lc_buffer_pin(core->c.ring, old->slot);
	if (buf) {
		lc_buffer_unpin(buf);
		found = false;
	}
	if (found)
		lc_segment_get(lc_ring_segment(core->c.ring, old->slot));
	lc_index_unlock(core->c.index, bucket);
	return found;
}

/*
 * Read the old slot and go on.  Return: as write_run(), or -EIO: the SSD does not give the
 * slot back as it was written.  @last: then its sectors are lost.
 */
static int merge_try(struct lc_core *core, struct lc_io *io, bool last)
{
	u64 block = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	struct merge merge = {};
	struct lc_mapping old;
	struct page *pages;
	int ret;

	if (lc_ssd_failed(&core->c.health))
		return -EAGAIN;
	if (!merge_find(core, io, &old))
		return write_run(core, io, true, NULL);
	pages = mempool_alloc(&core->c.merge_pool, GFP_NOIO);
	ret = lc_read_slot(core, block, old.slot, page_address(pages));
	if (!ret || last) {
		merge.slot = old.slot;
		merge.data = ret ? NULL : page_address(pages);
		ret = write_run(core, io, true, &merge);
	} else {
		ret = -EIO;
	}
	lc_read_put_segment(core, old.slot);
	mempool_free(pages, &core->c.merge_pool);
	return ret;
}

/* Errors may pass, also a slot that reads as something else: the SSD has its time (L18). */
static void merge_work(struct work_struct *work)
{
	struct lc_io *io = container_of(work, struct lc_io, work);
	u32 patience = max(READ_ONCE(io->core->c.env.params.ssd_patience_ms), MERGE_PATIENCE_MS);
	unsigned long end = jiffies + msecs_to_jiffies(patience), pause = HZ / 2;
	int ret;

	while ((ret = merge_try(io->core, io, time_after(jiffies, end))) == -EIO) {
		schedule_timeout_idle(pause);
		pause = min_t(unsigned long, pause * 2, 4 * HZ);
	}
	lc_write_continue(io->core, io, ret, false);
}

/**
 * lc_write_again() - write as much as possible of a write that was parked
 * @core: the volume
 * @io: the write, io->iter is what is left
 *
 * Process context.  Return: 0 (all), -EAGAIN (no buffer), -EBUSY (a slow SSD has enough to do, and
 * the write is no commit, BL3), -EINPROGRESS (an old slot must be read first).
 */
int lc_write_again(struct lc_core *core, struct lc_io *io)
{
	int ret = 0;

	while (io->iter.bi_size && !ret) {
		if (io->waiting.class != LC_CLASS_COMMIT && lc_submit_enough(core->c.submit))
			return -EBUSY;
		ret = write_held(core, io, true, NULL);
	}
	return ret;
}

/**
 * lc_write_continue() - see to it that a write ends
 * @core: the volume
 * @io: the write
 * @ret: as of lc_write_again(), or another error, which ends it
 * @batch: the caller will call lc_write_commit()
 *
 * Process context; from map(), or of a worker.  Without @batch, may sleep as submit_bio() does.
 */
void lc_write_continue(struct lc_core *core, struct lc_io *io, int ret, bool batch)
{
	if (lc_mode(&core->c.health) == LC_MODE_FAIL && ret == -EAGAIN)
		ret = -EIO;
	if (!ret) {
		write_finish(core, io, batch);
	} else if (ret == -EAGAIN) {
		lc_park_add(core->park, io, false);
	} else if (ret == -EINPROGRESS) {
		INIT_WORK(&io->work, merge_work);
		queue_work(core->c.patient_wq, &io->work);
	} else {
		lc_write_end(io, errno_to_blk_status(ret));
	}
}

/* --- entry points ------------------------------------------------------- */

/*
 * May the sender be kept waiting until less is parked (D15)?  No worker, since one of device mapper
 * sends all commits, and no task that reclaims memory (D3).  A task that polls is to go on.
 */
static bool may_sleep(const struct bio *bio)
{
	return !(bio->bi_opf & (REQ_NOWAIT | REQ_POLLED)) &&
	       !(current->flags & (PF_MEMALLOC | PF_WQ_WORKER));
}

/**
 * lc_write_map() - map a write
 * @core: the volume
 * @bio: device mapper's clone
 *
 * From map(): sleeps only if too much is parked.  The bio completes here or later.
 */
int lc_write_map(struct lc_core *core, struct bio *bio)
{
	struct lc_io *io = lc_bio_io(bio);
	int ret = -EAGAIN;

	if (lc_mode(&core->c.health) == LC_MODE_FAIL)
		return DM_MAPIO_KILL;
	io->iter = bio->bi_iter;
	if (!lc_park_must(core->park, io))
		ret = write_run(core, io, false, NULL);
	if (ret && bio->bi_opf & REQ_NOWAIT && io->iter.bi_size == bio->bi_iter.bi_size) {
		bio_wouldblock_error(bio);
		return DM_MAPIO_SUBMITTED;
	}
	if (ret == -EAGAIN)
		lc_park_add(core->park, io, may_sleep(bio));
	else
		lc_write_continue(core, io, ret, false);
	return DM_MAPIO_SUBMITTED;
}

/**
 * lc_write_flush_map() - map an empty flush
 * @core: the volume
 * @bio: device mapper's clone
 * @alone: the volume is all of the mapped device
 *
 * From map().  If it is not @alone, device mapper allocates another clone before what is
 * submitted here gets to the SSD, and might wait for a bio that waits for just that.
 */
int lc_write_flush_map(struct lc_core *core, struct bio *bio, bool alone)
{
	atomic_inc(&core->nr_flushes);
	flush_io(core, lc_bio_io(bio), alone);
	return DM_MAPIO_SUBMITTED;
}

/**
 * lc_write_relog() - log a block again whose slot is about to leave the log
 * @core: the volume
 * @block: block number
 * @slot: its newest copy, unless it was overwritten meanwhile
 * @fate: what became of it on its way to the HDD
 * @data: LC_WB_REFUSED: the verified slot
 *
 * Process context, does not sleep.  What the HDD refused is logged as data; of the
 * rest only that its sectors are lost, the others are on the HDD by now.
 * Return: 0 (also if there is nothing to log), or -EAGAIN.
 */
int lc_write_relog(struct lc_core *core, u64 block, u32 slot, enum lc_wb_fate fate,
		   const void *data)
{
	struct lc_mapping old, replaced, map = { .dirty = true };
	struct lc_cursor cur = {};
	void *image;
	u32 bucket;

	lc_hold();
	if (lc_lanes_relog(core->c.lanes, &cur)) {
		lc_unhold();
		return -EAGAIN;
	}
	if (lc_index_lock_slot(core->c.index, block, slot, &bucket, &old)) {
		map.slot = lc_cursor_slot(&cur);
		map.lost = old.lost;
		image = lc_cursor_image(&cur, map.slot);
		if (fate == LC_WB_REFUSED) {
			map.mask = old.mask;
			map.refused = true;
			memcpy(image, data, LC_SLOT_BYTES);
		} else {
			if (fate == LC_WB_DAMAGED)
				map.lost |= old.mask;
			memset(image, 0, LC_SLOT_BYTES);
		}
		lc_cursor_describe(&cur, map.slot, block, map.mask, map.lost);
		lc_index_set(core->c.index, bucket, block, &map, &replaced);
		cur.next++;
		atomic64_inc(&core->relogged);
	}
	lc_index_unlock(core->c.index, bucket);
	lc_cursor_release(&cur);
	lc_unhold();
	return 0;
}
