// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writing blocks into a lane.  See write.h.
 */
#include <linux/bio.h>

#include "bio/write.h"
#include "format/mask.h"
#include "log/cache.h"
#include "log/lanes.h"
#include "log/record.h"
#include "log/request.h"
#include "log/submit.h"
#include "store/index.h"
#include "store/io.h"
#include "store/ring.h"
#include "store/stats.h"

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
 * [bucket locked: write_new_slot() asserts it] Bring the sectors in @keep of an older copy along.
 * Return: 0, -EINPROGRESS if it must be read from the SSD first; sectors that
 * cannot be had move from @keep to @lost.
 */
static int keep_old_sectors(struct lc_cache *c, const struct lc_mapping *old,
			    const struct lc_old_slot *old_slot, void *image, u8 *keep, u8 *lost)
{
	struct lc_buffer *buf = lc_buffer_pin(c->ring, old->slot);

	if (buf) {
		copy_sectors(image, lc_buffer_slot(buf, old->slot), *keep);
		lc_buffer_unpin(buf);
		return 0;
	}
	if (!old_slot || old_slot->slot != old->slot)
		return -EINPROGRESS;
	if (old_slot->data) {
		copy_sectors(image, old_slot->data, *keep);
	} else {
		*lost |= *keep;
		*keep = 0;
	}
	return 0;
}

/* [bucket locked] Overwrite a block in the record we hold a reference on. */
static void overwrite_in_place(struct lc_cache *c, struct lc_request *io,
			       const struct lc_cursor *cur,
			       u32 bucket, u64 block, const struct lc_mapping *old, u8 mask)
{
	u32 first = __ffs(mask);
	u32 nr = hweight8(mask);

	void *image = lc_cursor_image(cur, old->slot);

	lc_index_assert_locked(c->index, bucket);
	lc_io_copy_from_bio(lc_request_bio(io), &io->iter, image + (first << 9), nr << 9);
	lc_stats_copy(&c->stats, image);
	if (mask & ~old->mask) {
		lc_index_add_sectors(c->index, bucket, old->slot, mask);
		lc_cursor_describe(cur, old->slot, block, old->mask | mask, old->lost & ~mask);
	}
}

/* [bucket locked] Put a block into the cursor's next slot. */
static int write_new_slot(struct lc_cache *c, struct lc_request *io, struct lc_cursor *cur,
			  u32 bucket, u64 block, const struct lc_mapping *old, u8 mask,
			  const struct lc_old_slot *old_slot)
{
	struct lc_mapping map = { .slot = lc_cursor_slot(cur), .dirty = true };
	void *image = lc_cursor_image(cur, map.slot);
	/* What is clean is on the HDD and need not come along. */
	u8 keep = old && old->dirty ? old->mask & ~mask : 0;
	u8 lost = old ? old->lost & ~mask : 0;
	struct lc_mapping replaced;
	int ret;

	lc_index_assert_locked(c->index, bucket);
	if (keep) {
		ret = keep_old_sectors(c, old, old_slot, image, &keep, &lost);
		if (ret)
			return ret;
	}
	lc_io_copy_from_bio(lc_request_bio(io), &io->iter, image + (__ffs(mask) << 9),
			    hweight8(mask) << 9);
	lc_stats_copy(&c->stats, image);
	map.mask = mask | keep;
	map.lost = lost;
	zero_sectors(image, ~map.mask);
	lc_cursor_describe(cur, map.slot, block, map.mask, map.lost);
	lc_index_set(c->index, bucket, block, &map, &replaced);
	lc_cursor_advance(cur);
	return 0;
}

static u32 blocks_left(const struct lc_request *io)
{
	u64 first = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	u64 last = (io->iter.bi_sector + (io->iter.bi_size >> 9) - 1) >> LC_BLOCK_SHIFT;

	return last - first + 1;
}

/*
 * [bucket locked] Get a cursor for a block, without one: of the open record that holds it
 * (B6), else @want slots, for it and the blocks after it.  Return: its order, or -EAGAIN.
 */
static int find_cursor(struct lc_cache *c, u32 bucket, u32 want, struct lc_cursor *cur,
		       const struct lc_mapping *old)
{
	lc_index_assert_locked(c->index, bucket);
	if (old && lc_cursor_join(c->lanes, old->slot, cur))
		return LC_ORDER_OWN;
	if (lc_lane_try_reserve(lc_lanes_here(c->lanes), want, cur))
		return -EAGAIN;
	return LC_ORDER_OLDER;
}

/*
 * Write what the bio has for one block.  A cursor without a record gets one, with slots for @left
 * blocks.
 * Return: 0, -EINPROGRESS (read the old slot first), -ESTALE (the cursor's record
 * is closed and a newer one holds the block, or may: get another cursor), -EAGAIN (no record
 * with space is open: reserve slots).
 */
static int write_block(struct lc_cache *c, struct lc_request *io, struct lc_cursor *cur,
		       const struct lc_old_slot *old_slot, u32 left)
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

	bucket = lc_index_lock(c->index, block);
	found = lc_index_lookup(c->index, bucket, block, &old);
	if (!cur->rec)
		order = find_cursor(c, bucket, left, cur, found ? &old : NULL);
	/* Also with slots reserved just now: the block may be in a record opened since then. */
	if (found && order == LC_ORDER_OLDER)
		order = lc_cursor_compare(cur, old.slot, &other);
	if (order < 0)
		ret = order;
	else if (order == LC_ORDER_OWN)
		overwrite_in_place(c, io, cur, bucket, block, &old, mask);
	else if (order == LC_ORDER_OPEN)
		overwrite_in_place(c, io, &other, bucket, block, &old, mask);
	else if (order == LC_ORDER_OLDER && cur->next < cur->end)
		ret = write_new_slot(c, io, cur, bucket, block, found ? &old : NULL, mask,
				     old_slot);
	else
		ret = -ESTALE;
	lc_index_unlock(c->index, bucket);
	if (other.rec)
		lc_cursor_release(&other);
	return ret;
}

/*
 * A write that has waited takes space of any lane; others keep to their lane, so that their data
 * stays in their node.
 */
static int reserve_slots(struct lc_cache *c, u32 want, bool waited, struct lc_cursor *cur)
{
	struct lc_lanes *lanes = c->lanes;
	struct lc_lane *here = lc_lanes_here(lanes);
	int ret = lc_lanes_reserve(lanes, here, want, cur);
	u32 i;

	for (i = 1; ret && waited && i < lanes->nr; i++)
		ret = lc_lanes_reserve(lanes, lanes->lane[(here->index + i) % lanes->nr], want,
				       cur);
	return ret;
}

/* [lc_hold()] As write_held(). */
static int write_piece(struct lc_cache *c, struct lc_request *io, bool waited,
		       const struct lc_old_slot *old_slot)
{
	struct lc_cursor cur = { .needs_flush = !(lc_request_bio(io)->bi_opf & REQ_FUA) };
	u32 left = min(blocks_left(io), LC_HOLD_SLOTS);
	int ret = 0;

	lc_assert_hold();
	while (left && !ret) {
		ret = write_block(c, io, &cur, old_slot, left);
		if (!ret)
			left--;
		if (ret == -EAGAIN) {
			ret = reserve_slots(c, left, waited, &cur);
		} else if (ret == -ESTALE || (!ret && cur.end && cur.next == cur.end)) {
			lc_cursor_release(&cur);
			ret = 0;
		}
	}
	lc_cursor_release(&cur);
	return ret;
}

/*
 * As lc_write_run(), but no more blocks than one may hold a record for (B7).  Who closes the log
 * waits for all that hold (MO1).
 */
static int write_held(struct lc_cache *c, struct lc_request *io, bool waited,
		      const struct lc_old_slot *old_slot)
{
	int ret = -EAGAIN;

	lc_hold();
	if (!READ_ONCE(c->closed))
		ret = write_piece(c, io, waited, old_slot);
	lc_unhold();
	return ret;
}

int lc_write_run(struct lc_cache *c, struct lc_request *io, bool waited,
		 const struct lc_old_slot *old_slot)
{
	int ret = 0;

	while (io->iter.bi_size && !ret)
		ret = write_held(c, io, waited, old_slot);
	return ret;
}

int lc_write_again(struct lc_cache *c, struct lc_request *io)
{
	int ret = 0;

	while (io->iter.bi_size && !ret) {
		if (io->waiting.class != LC_CLASS_COMMIT && lc_submit_enough(c->submit))
			return -EBUSY;
		ret = write_held(c, io, true, NULL);
	}
	return ret;
}
