// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several lanes, one writer at a time: seqs over lanes, blocks that another lane has open, rounds
 * and boundaries, FLUSH, tombstones, segments that are ceded.  lane_kunit.c has many writers at
 * once.
 */
#include <kunit/test.h>
#include <linux/nodemask.h>

#include "fake.h"

#define SEG	16	/* slots of a segment */

static struct fake *several(struct kunit *test, u32 lanes, u32 round)
{
	const struct fake_options options = { .lanes = lanes, .buffers = 8 * lanes };
	struct fake *fake = fake_create(test, &options);

	KUNIT_ASSERT_EQ(test, fake->c.nr_lanes, lanes);
	fake->c.alloc->round_len = round;
	return fake;
}

static void reserve(struct fake *fake, u32 lane, u32 want, struct lc_cursor *cur)
{
	int ret = fake_reserve(fake, lane, want, cur);

	if (ret) {
		KUNIT_ASSERT_EQ(fake->test, ret, -EAGAIN);
		KUNIT_ASSERT_TRUE(fake->test, fake_feed_lane(fake, lane));
		ret = fake_reserve(fake, lane, want, cur);
	}
	KUNIT_ASSERT_EQ(fake->test, ret, 0);
}

/* Write one block in a lane.  Return: its slot. */
static u32 put(struct fake *fake, u32 lane, u64 block, u8 fill)
{
	struct lc_cursor cur = {};
	u32 slot;

	reserve(fake, lane, 1, &cur);
	slot = fake_put_block(fake, &cur, block, fill);
	lc_cursor_release(&cur);
	return slot;
}

/* Fill a lane's open segment, or a new one, to its end. */
static void fill(struct fake *fake, u32 lane)
{
	u32 i;

	for (i = 0; i < SEG - LC_HEADER_SLOTS; i++)
		put(fake, lane, 1000 + lane * 100 + i, i);
}

static void expect_place(struct fake *fake, u64 seq, u64 segment, u64 boundary)
{
	struct bio *bio = fake_take(fake, seq);
	struct lc_record_info info = {};

	KUNIT_EXPECT_EQ(fake->test, fake_decode(fake, bio, &info), 0);
	KUNIT_EXPECT_EQ(fake->test, info.seq, seq);
	KUNIT_EXPECT_EQ(fake->test, info.segment, segment);
	KUNIT_EXPECT_EQ(fake->test, info.boundary, boundary);
	fake_end(bio, BLK_STS_OK);
}

/* Records get their seqs in the order in which they are closed, whatever the lane. */
static void seqs_over_lanes(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);

	put(fake, 0, 1, 1);
	put(fake, 1, 2, 2);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[1], false, false), 1);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[0], false, false), 2);
	put(fake, 0, 3, 3);
	put(fake, 1, 4, 4);
	KUNIT_EXPECT_EQ(test, lc_lanes_close_used(fake->c.lanes, false), 4);
	expect_place(fake, 1, 2, 1);
	expect_place(fake, 2, 1, 1);
	expect_place(fake, 3, 1, 1);
	expect_place(fake, 4, 2, 1);
}

/* As put(), of a write without FUA. */
static void put_needing_flush(struct fake *fake, u32 lane, u64 block, u8 fill)
{
	struct lc_cursor cur = { .needs_flush = true };

	reserve(fake, lane, 1, &cur);
	fake_put_block(fake, &cur, block, fill);
	lc_cursor_release(&cur);
}

/* G7: of the open records a FLUSH closes those that need it. */
static void flush_closes_what_needs_it(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);

	put(fake, 0, 1, 1);
	put(fake, 1, 2, 2);
	KUNIT_EXPECT_EQ(test, lc_lanes_close_for_flush(fake->c.lanes, false), 0);
	put_needing_flush(fake, 1, 3, 3);
	put(fake, 1, 4, 4);
	KUNIT_EXPECT_EQ(test, lc_lanes_close_for_flush(fake->c.lanes, false), 1);
	fake_finish(fake, 1, BLK_STS_OK);
	/* The next record of the same lane begins without debts. */
	put(fake, 1, 5, 5);
	KUNIT_EXPECT_EQ(test, lc_lanes_close_for_flush(fake->c.lanes, false), 1);
	/* A task that waits for its own data closes all, and so does one that is no bio's FLUSH. */
	KUNIT_EXPECT_EQ(test, lc_lanes_close_all(fake->c.lanes, false), 3);
	put(fake, 0, 6, 6);
	KUNIT_EXPECT_EQ(test, lc_lanes_close_used(fake->c.lanes, false), 4);
}

/* G7, B6: a write without FUA lands in a record that another lane has open for one with it. */
static void needs_flush_elsewhere(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);
	struct lc_cursor fua = {}, plain = { .needs_flush = true }, other = {};
	u32 slot = put(fake, 1, 7, 1);

	reserve(fake, 0, 1, &fua);
	KUNIT_ASSERT_EQ(test, lc_cursor_compare(&fua, slot, &other), LC_ORDER_OPEN);
	lc_cursor_release(&other);
	lc_cursor_release(&fua);
	KUNIT_EXPECT_EQ(test, lc_lanes_close_for_flush(fake->c.lanes, false), 0);
	reserve(fake, 0, 1, &plain);
	KUNIT_ASSERT_EQ(test, lc_cursor_compare(&plain, slot, &other), LC_ORDER_OPEN);
	lc_cursor_release(&other);
	lc_cursor_release(&plain);
	KUNIT_EXPECT_EQ(test, lc_lanes_close_for_flush(fake->c.lanes, false), 1);
	expect_place(fake, 1, 1, 1);
}

/* B6: the reference keeps the other lane's record from being submitted. */
static void open_elsewhere(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);
	struct lc_cursor cur = {}, other = {};
	u32 slot = put(fake, 1, 7, 1);

	reserve(fake, 0, 1, &cur);
	KUNIT_ASSERT_EQ(test, lc_cursor_compare(&cur, slot, &other), LC_ORDER_OPEN);
	KUNIT_ASSERT_NOT_NULL(test, other.rec);
	KUNIT_EXPECT_PTR_EQ(test, other.rec->buf, fake->c.lanes->lane[1]->buf);
	lc_lane_seal(fake->c.lanes->lane[1], false, false);
	memset(lc_cursor_image(&other, slot), 9, LC_SLOT_BYTES);
	fake_settle(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_records, 0);
	lc_cursor_release(&other);
	KUNIT_EXPECT_NULL(test, other.rec);
	fake_finish(fake, 1, BLK_STS_OK);
	lc_cursor_release(&cur);
}

/* Closed before ours, which is still open: older.  Ours closed, too: nobody can tell. */
static void closed_elsewhere(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);
	struct lc_cursor cur = {}, other = {};
	u32 slot = put(fake, 1, 7, 1);

	reserve(fake, 0, 2, &cur);
	fake_put_block(fake, &cur, 8, 1);
	lc_lane_seal(fake->c.lanes->lane[1], false, false);
	KUNIT_EXPECT_EQ(test, lc_cursor_compare(&cur, slot, &other), LC_ORDER_OLDER);
	lc_lane_seal(fake->c.lanes->lane[0], false, false);
	KUNIT_EXPECT_EQ(test, lc_cursor_compare(&cur, slot, &other), LC_ORDER_NEWER);
	KUNIT_EXPECT_NULL(test, other.rec);
	lc_cursor_release(&cur);
}

/* Durable: older than any record that a writer is in. */
static void durable_elsewhere(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);
	struct lc_cursor cur = {}, other = {};
	u32 slot = put(fake, 1, 7, 1);

	lc_lanes_close_used(fake->c.lanes, true);
	fake_finish(fake, 1, BLK_STS_OK);
	lc_log_want_durable(fake->c.log, 1);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
	reserve(fake, 0, 1, &cur);
	KUNIT_EXPECT_EQ(test, lc_cursor_compare(&cur, slot, &other), LC_ORDER_OLDER);
	lc_cursor_release(&cur);
}

/* AL1, AL2: before the first segment of a round is opened, all are closed. */
static void turn(struct kunit *test)
{
	struct fake *fake = several(test, 2, 3);
	struct lc_cache *c = &fake->c;

	fake_pass(fake);
	put(fake, 1, 1, 1);
	fill(fake, 0);
	fill(fake, 0);
	KUNIT_EXPECT_EQ(test, c->alloc->next, 4);
	KUNIT_EXPECT_EQ(test, c->alloc->boundary, 1);
	KUNIT_EXPECT_PTR_NE(test, c->lanes->lane[1]->buf, NULL);
	KUNIT_EXPECT_EQ(test, lc_alloc_boundary_seq(c->alloc, 3), 0);
	put(fake, 0, 2, 2);
	KUNIT_EXPECT_EQ(test, c->alloc->boundary, 4);
	KUNIT_EXPECT_PTR_EQ(test, c->lanes->lane[1]->buf, NULL);
	/* Two of the first lane's, and what the second one had open. */
	KUNIT_EXPECT_EQ(test, lc_log_last_seq(c->log), 3);
	KUNIT_EXPECT_EQ(test, c->alloc->boundary_seq, 4);
	KUNIT_EXPECT_EQ(test, lc_alloc_boundary_seq(c->alloc, 4), 4);
	KUNIT_EXPECT_EQ(test, c->lanes->lane[0]->buf->boundary, 4);
	put(fake, 1, 3, 3);
	KUNIT_EXPECT_EQ(test, c->lanes->lane[1]->buf->segment, 5);
	KUNIT_EXPECT_EQ(test, lc_alloc_boundary_seq(c->alloc, 5), 0);
}

/* A segment that nothing was put into stays without a record, its buffer is used again. */
static void untouched(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);
	struct lc_cache *c = &fake->c;
	struct lc_cursor cur = {};

	reserve(fake, 1, 1, &cur);
	lc_cursor_release(&cur);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(c->lanes), 1);
	lc_lanes_close_used(c->lanes, true);
	KUNIT_EXPECT_EQ(test, c->alloc->boundary, 1);	/* no reason for one */
	put(fake, 0, 1, 1);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(c->lanes), 3);
	lc_lanes_close_used(c->lanes, true);
	KUNIT_EXPECT_EQ(test, c->alloc->boundary, 3);
	KUNIT_EXPECT_EQ(test, c->lanes->lane[1]->nr_ready, 1);
	KUNIT_EXPECT_PTR_EQ(test, rcu_access_pointer(c->ring->segments[1].buf), NULL);
	KUNIT_EXPECT_EQ(test, lc_alloc_boundary_seq(c->alloc, 3), 2);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(c->lanes), 3);
}

/* N3: a FLUSH waits for what is in any lane. */
static void flush_of_all(struct kunit *test)
{
	struct fake *fake = several(test, 3, 8);
	struct fake_io *fio;
	u32 i;

	for (i = 0; i < 3; i++)
		put(fake, i, i, i);
	fio = fake_flush(fake);
	fake_wait(fake, 3);
	fake_finish(fake, 3, BLK_STS_OK);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_expect_flushes(fake, 0);
	fake_finish(fake, 2, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 3);
}

/* N4: what a tombstone drops lies below its bounds, in each lane; what comes later does not. */
static void tombstone(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);
	const struct lc_entry_info range = { .nr_blocks = 9, .type = LC_ENTRY_RANGE_TOMBSTONE };
	const struct lc_bound *bounds = fake->c.lanes->bounds;
	u32 before[2], behind[2], i;

	for (i = 0; i < 2; i++)
		before[i] = put(fake, i, i, 1);
	KUNIT_ASSERT_EQ(test, lc_lanes_append_ranges(fake->c.lanes, &range, 1), 0);
	/* Both that were open, then the tombstone. */
	KUNIT_EXPECT_EQ(test, lc_log_last_seq(fake->c.log), 3);
	for (i = 0; i < 2; i++) {
		behind[i] = put(fake, i, i, 2);
		KUNIT_EXPECT_EQ(test, bounds[i].segment, 1 + i);
		KUNIT_EXPECT_LT(test, before[i] % SEG, bounds[i].slot);
		KUNIT_EXPECT_GE(test, behind[i] % SEG, bounds[i].slot);
	}
	KUNIT_EXPECT_EQ(test, lc_lanes_close_used(fake->c.lanes, false), 5);
}

/* B5: while something is logged again nobody else opens a segment or closes one. */
static void relogging(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);
	struct lc_cache *c = &fake->c;
	struct lc_cursor cur = {};

	put(fake, 0, 1, 1);
	fake_feed_lane(fake, 1);
	WRITE_ONCE(c->alloc->writers_held, true);
	KUNIT_EXPECT_EQ(test, fake_reserve(fake, 1, 1, &cur), -EAGAIN);
	KUNIT_EXPECT_EQ(test, c->alloc->next, 2);
	lc_lanes_close_used(c->lanes, true);
	KUNIT_EXPECT_EQ(test, c->alloc->boundary, 1);
	KUNIT_EXPECT_PTR_NE(test, c->lanes->lane[0]->buf, NULL);
	KUNIT_EXPECT_EQ(test, lc_lanes_relog(c->lanes, &cur), 0);
	lc_cursor_release(&cur);
	WRITE_ONCE(c->alloc->writers_held, false);
	KUNIT_EXPECT_EQ(test, fake_reserve(fake, 1, 1, &cur), 0);
	lc_cursor_release(&cur);
}

/* A block is found in the record that holds it while that is open, and uses no slot (B6). */
static void joined(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);
	struct lc_cache *c = &fake->c;
	struct lc_cursor cur = { .needs_flush = true };
	u32 slots[2], i;

	for (i = 0; i < 2; i++)
		slots[i] = put(fake, i, 1 + i, i);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_TRUE(test, lc_cursor_join(c->lanes, slots[i], &cur));
		KUNIT_EXPECT_PTR_EQ(test, cur.rec, c->lanes->lane[i]->open);
		KUNIT_EXPECT_EQ(test, cur.end, 0);
		KUNIT_EXPECT_EQ(test, lc_cursor_compare(&cur, slots[i], NULL), LC_ORDER_OWN);
		lc_cursor_release(&cur);
		KUNIT_EXPECT_TRUE(test, c->lanes->lane[i]->open->needs_flush);
	}
	/* The next slot is the one after it: none was used. */
	KUNIT_EXPECT_EQ(test, put(fake, 0, 3, 3), slots[0] + 1);
	/* As for who wants a slot (B5). */
	WRITE_ONCE(c->alloc->writers_held, true);
	KUNIT_EXPECT_FALSE(test, lc_cursor_join(c->lanes, slots[0], &cur));
	WRITE_ONCE(c->alloc->writers_held, false);
	/* Closed, with another one open after it; then durable. */
	KUNIT_EXPECT_EQ(test, lc_lane_seal(c->lanes->lane[0], false, false), 1);
	put(fake, 0, 4, 4);
	KUNIT_EXPECT_FALSE(test, lc_cursor_join(c->lanes, slots[0], &cur));
	fake_pass(fake);
	KUNIT_EXPECT_EQ(test, lc_lanes_close_used(c->lanes, true), 3);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(c->log, 3), 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_FALSE(test, lc_cursor_join(c->lanes, slots[i], &cur));
}

/* --- segments that are ceded ------------------------------------------------- */

/* Of this lane, wherever the task runs. */
static int cede(struct fake *fake, u32 lane, u32 least, struct lc_region *region)
{
	struct lc_lanes *lanes = fake->c.lanes;
	u32 node;

	lanes->by_task = false;
	for (node = 0; node < nr_node_ids; node++)
		lanes->lane_of_node[node] = lane;
	return lc_lanes_cede(lanes, least, region);
}

static void expect_region(struct kunit *test, const struct lc_region *region, u64 segment,
			  u32 next)
{
	KUNIT_EXPECT_EQ(test, region->segment, segment);
	KUNIT_EXPECT_EQ(test, region->next, next);
	KUNIT_EXPECT_EQ(test, region->end, SEG);
}

/* Of a ring that has not gone round. */
static u32 slot_of(u64 segment, u32 in_segment)
{
	return segment * SEG + in_segment;
}

static bool in_ram(struct fake *fake, u32 slot)
{
	struct lc_buffer *buf = lc_buffer_pin(fake->c.ring, slot);

	if (buf)
		lc_buffer_unpin(buf);
	return buf;
}

/* A record that says nothing, in the first slot: so the segment is one to replay. */
static void expect_nothing(struct fake *fake, u64 seq, u64 segment)
{
	struct bio *bio = fake_take_range(fake, seq, segment, 0, 1);
	struct lc_entry_info entry;

	lc_entry_decode(fake_header(bio), 0, &entry);
	KUNIT_EXPECT_EQ(fake->test, entry.type, LC_ENTRY_NONE);
	fake_end(bio, BLK_STS_OK);
}

/* The region is behind the last record; its slots are not in RAM; writers go on elsewhere. */
static void ceded(struct kunit *test)
{
	struct fake *fake = several(test, 1, 0);
	struct lc_cache *c = &fake->c;
	struct lc_region region;
	u32 i;

	put(fake, 0, 1, 1);
	lc_lane_seal(c->lanes->lane[0], false, false);
	put(fake, 0, 2, 2);
	put(fake, 0, 3, 3);
	KUNIT_ASSERT_EQ(test, cede(fake, 0, 8, &region), 0);
	expect_region(test, &region, 1, 5);
	KUNIT_EXPECT_TRUE(test, c->ring->segments[1].filling);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(c->lanes), 2);
	for (i = 0; i < SEG; i++)
		KUNIT_EXPECT_EQ_MSG(test, in_ram(fake, slot_of(1, i)), i < 5, "slot %u", i);
	KUNIT_EXPECT_EQ(test, put(fake, 0, 4, 4), slot_of(2, 1));
	KUNIT_EXPECT_TRUE(test, in_ram(fake, slot_of(2, SEG - 1)));
	expect_place(fake, 1, 1, 0);
	expect_place(fake, 2, 1, 0);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(c->lanes->lane[0], false, false), 3);
	expect_place(fake, 3, 2, 0);
	lc_ring_filled(c->ring, region.segment);
	KUNIT_EXPECT_FALSE(test, c->ring->segments[1].filling);
}

/* Nothing was put into the segment, neither by a writer nor by one who gave all back. */
static void ceded_without_record(struct kunit *test)
{
	struct fake *fake = several(test, 1, 0);
	struct lc_cursor cur = {};
	struct lc_region region;

	KUNIT_ASSERT_TRUE(test, fake_feed(fake));
	KUNIT_ASSERT_EQ(test, cede(fake, 0, SEG - 1, &region), 0);
	expect_region(test, &region, 1, 1);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(fake->c.lanes), 2);
	reserve(fake, 0, 5, &cur);
	lc_cursor_release(&cur);
	KUNIT_EXPECT_NOT_NULL(test, fake->c.lanes->lane[0]->open);
	KUNIT_ASSERT_EQ(test, cede(fake, 0, SEG - 1, &region), 0);
	expect_region(test, &region, 2, 1);
	expect_nothing(fake, 1, 1);
	expect_nothing(fake, 2, 2);
	/* No FLUSH is due for them. */
	fake_expect_flushes(fake, 0);
	KUNIT_EXPECT_EQ(test, put(fake, 0, 4, 4), slot_of(3, 1));
	KUNIT_EXPECT_EQ(test, lc_log_last_seq(fake->c.log), 2);
}

/* The buffer is of a whole segment again when it is used next. */
static void buffer_after_ceding(struct kunit *test)
{
	const struct fake_options options = { .buffers = 1 };
	struct fake *fake = fake_create(test, &options);
	struct lc_region region;
	struct lc_buffer *buf;

	fake_pass(fake);
	put(fake, 0, 1, 1);
	buf = fake->c.lanes->lane[0]->buf;
	KUNIT_ASSERT_EQ(test, cede(fake, 0, 4, &region), 0);
	KUNIT_EXPECT_FALSE(test, in_ram(fake, slot_of(1, region.next)));
	lc_log_want_durable(fake->c.log, 1);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(fake->c.log, 1), 0);
	flush_workqueue(fake->c.env.wq);
	KUNIT_EXPECT_FALSE(test, in_ram(fake, slot_of(1, 1)));
	put(fake, 0, 2, 2);
	KUNIT_ASSERT_PTR_EQ(test, fake->c.lanes->lane[0]->buf, buf);
	KUNIT_EXPECT_TRUE(test, in_ram(fake, slot_of(2, SEG - 1)));
}

/*
 * What is mapped in the region counts as later than the records below it: a writer that is still in
 * one of these has to take another slot.  To all other records it is older, and nobody joins it.
 */
static void order_of_ceded(struct kunit *test)
{
	struct fake *fake = several(test, 2, 8);
	struct lc_cursor before = {}, after = {}, elsewhere = {}, other = {};
	struct lc_region region;
	u32 slot;

	reserve(fake, 0, 3, &before);
	fake_put_block(fake, &before, 1, 1);
	reserve(fake, 1, 1, &elsewhere);
	KUNIT_ASSERT_EQ(test, cede(fake, 0, 4, &region), 0);
	/* Behind all slots that were reserved. */
	expect_region(test, &region, 1, 4);
	reserve(fake, 0, 1, &after);
	KUNIT_ASSERT_EQ(test, after.rec->buf->segment, 3);
	for (slot = slot_of(1, region.next); slot < slot_of(1, region.end); slot++) {
		KUNIT_EXPECT_EQ(test, lc_cursor_compare(&before, slot, &other), LC_ORDER_NEWER);
		KUNIT_EXPECT_EQ(test, lc_cursor_compare(&after, slot, &other), LC_ORDER_OLDER);
		KUNIT_EXPECT_EQ(test, lc_cursor_compare(&elsewhere, slot, &other), LC_ORDER_OLDER);
		KUNIT_EXPECT_FALSE(test, lc_cursor_join(fake->c.lanes, slot, &other));
		KUNIT_EXPECT_NULL(test, other.rec);
	}
	/* What it has of the segment is still its own. */
	KUNIT_EXPECT_EQ(test, lc_cursor_compare(&before, slot_of(1, 1), &other), LC_ORDER_OWN);
	KUNIT_EXPECT_FALSE(test, lc_cursor_join(fake->c.lanes, slot_of(1, 1), &other));
	lc_lane_seal(fake->c.lanes->lane[1], false, false);
	KUNIT_EXPECT_EQ(test, lc_cursor_compare(&elsewhere, slot_of(1, region.next), &other),
			LC_ORDER_NEWER);
	lc_cursor_release(&elsewhere);
	lc_cursor_release(&after);
	fake_settle(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_records, 1);	/* not the one that is held */
	lc_cursor_release(&before);
	expect_place(fake, 1, 1, 1);
}

/* A segment with too little left is closed, and the next one is ceded. */
static void cede_next(struct kunit *test)
{
	struct fake *fake = several(test, 1, 0);
	struct lc_region region;
	u32 i;

	for (i = 0; i < 11; i++)
		put(fake, 0, i, i);
	KUNIT_ASSERT_EQ(test, cede(fake, 0, SEG - 12, &region), 0);
	expect_region(test, &region, 1, 12);	/* just enough */
	for (i = 0; i < 11; i++)
		put(fake, 0, i, i);
	/* Nothing is ready; what was open is closed nevertheless. */
	KUNIT_EXPECT_EQ(test, cede(fake, 0, SEG - 11, &region), -EAGAIN);
	KUNIT_EXPECT_EQ(test, lc_log_last_seq(fake->c.log), 2);
	KUNIT_ASSERT_TRUE(test, fake_feed(fake));
	KUNIT_ASSERT_EQ(test, cede(fake, 0, SEG - 11, &region), 0);
	expect_region(test, &region, 3, 1);
	KUNIT_EXPECT_FALSE(test, fake->c.ring->segments[2].filling);
	expect_place(fake, 1, 1, 0);
	expect_place(fake, 2, 2, 0);
	expect_nothing(fake, 3, 3);
}

/* B5, and not after the lanes were stopped.  What is open stays open. */
static void cede_refused(struct kunit *test)
{
	struct fake *fake = several(test, 1, 0);
	struct lc_cache *c = &fake->c;
	struct lc_region region;

	KUNIT_EXPECT_EQ(test, cede(fake, 0, 4, &region), -EAGAIN);
	flush_workqueue(c->env.wq);
	KUNIT_EXPECT_GT(test, atomic_read(&fake->refills), 0);
	put(fake, 0, 1, 1);
	KUNIT_ASSERT_TRUE(test, fake_feed(fake));
	WRITE_ONCE(c->alloc->writers_held, true);
	KUNIT_EXPECT_EQ(test, cede(fake, 0, 4, &region), -EAGAIN);
	KUNIT_EXPECT_EQ(test, cede(fake, 0, SEG - 1, &region), -EAGAIN);
	WRITE_ONCE(c->alloc->writers_held, false);
	KUNIT_EXPECT_EQ(test, put(fake, 0, 2, 2), slot_of(1, 2));
	KUNIT_EXPECT_EQ(test, lc_log_last_seq(c->log), 0);
	KUNIT_EXPECT_FALSE(test, c->ring->segments[1].filling);
	lc_lanes_stop(c->lanes);
	KUNIT_EXPECT_EQ(test, cede(fake, 0, 4, &region), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, c->ring->segments[1].filling);
	KUNIT_EXPECT_EQ(test, c->alloc->next, 2);
	KUNIT_EXPECT_EQ(test, lc_log_last_seq(c->log), 1);
}

/* AL2: the last segment of the round has too little left, so the next round begins. */
static void cede_begins_round(struct kunit *test)
{
	struct fake *fake = several(test, 2, 2);
	struct lc_cache *c = &fake->c;
	struct lc_region region;

	put(fake, 1, 1, 1);
	fill(fake, 0);
	KUNIT_ASSERT_EQ(test, c->alloc->next, 3);
	KUNIT_ASSERT_TRUE(test, fake_feed_lane(fake, 0));
	KUNIT_ASSERT_EQ(test, cede(fake, 0, 4, &region), 0);
	expect_region(test, &region, 3, 1);
	KUNIT_EXPECT_EQ(test, c->alloc->boundary, 3);
	KUNIT_EXPECT_EQ(test, c->alloc->boundary_seq, 3);
	KUNIT_EXPECT_NULL(test, c->lanes->lane[1]->buf);
	expect_place(fake, 1, 2, 1);
	expect_place(fake, 2, 1, 1);
	expect_nothing(fake, 3, 3);
}

/* N4: a discard drops what is in a region that was ceded before it. */
static void tombstone_after_ceding(struct kunit *test)
{
	const struct lc_entry_info range = { .nr_blocks = 9, .type = LC_ENTRY_RANGE_TOMBSTONE };
	struct fake *fake = several(test, 2, 8);
	const struct lc_bound *bounds = fake->c.lanes->bounds;
	struct lc_region region[2];
	u32 i;

	for (i = 0; i < 2; i++) {
		put(fake, i, i, 1);
		KUNIT_ASSERT_EQ(test, cede(fake, i, 4, &region[i]), 0);
	}
	KUNIT_ASSERT_TRUE(test, fake_feed_lane(fake, 0));
	KUNIT_ASSERT_EQ(test, lc_lanes_append_ranges(fake->c.lanes, &range, 1), 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_GT(test, bounds[i].segment, region[i].segment);
}

/* Each lane keeps its share of the buffers. */
static void lane_pools(struct kunit *test)
{
	struct fake *fake = several(test, 3, 8);
	struct lc_pool *pool = fake->c.pool;

	KUNIT_EXPECT_EQ(test, pool->nr, 24);
	lc_pool_shrink(pool, 13);
	KUNIT_EXPECT_EQ(test, pool->nr, 13);
	KUNIT_EXPECT_EQ(test, pool->lane_pools[0].nr, 5);
	KUNIT_EXPECT_EQ(test, pool->lane_pools[1].nr, 4);
	KUNIT_EXPECT_EQ(test, pool->lane_pools[2].nr, 4);
}

static struct kunit_case lanes_cases[] = {
	KUNIT_CASE(seqs_over_lanes),
	KUNIT_CASE(flush_closes_what_needs_it),
	KUNIT_CASE(needs_flush_elsewhere),
	KUNIT_CASE(open_elsewhere),
	KUNIT_CASE(closed_elsewhere),
	KUNIT_CASE(durable_elsewhere),
	KUNIT_CASE(turn),
	KUNIT_CASE(untouched),
	KUNIT_CASE(flush_of_all),
	KUNIT_CASE(tombstone),
	KUNIT_CASE(relogging),
	KUNIT_CASE(joined),
	KUNIT_CASE(ceded),
	KUNIT_CASE(ceded_without_record),
	KUNIT_CASE(buffer_after_ceding),
	KUNIT_CASE(order_of_ceded),
	KUNIT_CASE(cede_next),
	KUNIT_CASE(cede_refused),
	KUNIT_CASE(cede_begins_round),
	KUNIT_CASE(tombstone_after_ceding),
	KUNIT_CASE(lane_pools),
	{}
};

static struct kunit_suite lanes_suite = {
	.name = "dm_lc_lanes",
	.test_cases = lanes_cases,
};

kunit_test_suite(lanes_suite);
