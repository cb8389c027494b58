// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers, records and the lane, one writer at a time: what is handed out, what
 * is given back, where records begin and end.  lane_kunit.c has many at once.
 */
#include <kunit/test.h>

#include "fake.h"

/* Slots of the smallest segment, and those for data in its first record. */
#define SEG	16
#define DATA	(SEG - LC_HEADER_SLOTS)

static void reserve(struct fake *fake, u32 want, struct lc_cursor *cur)
{
	int ret = fake_reserve(fake, 0, want, cur);

	if (ret) {
		KUNIT_ASSERT_EQ(fake->test, ret, -EAGAIN);
		KUNIT_ASSERT_TRUE(fake->test, fake_feed(fake));
		ret = fake_reserve(fake, 0, want, cur);
	}
	KUNIT_ASSERT_EQ(fake->test, ret, 0);
}

static enum lc_order compare(const struct lc_cursor *cur, u32 slot)
{
	struct lc_cursor other = {};
	enum lc_order order = lc_cursor_compare(cur, slot, &other);

	lc_cursor_release(&other);
	return order;
}

static bool is_owned(const struct lc_cursor *cur, u32 slot)
{
	return compare(cur, slot) == LC_ORDER_OWN;
}

static bool is_outdated(const struct lc_cursor *cur, u32 slot)
{
	return compare(cur, slot) == LC_ORDER_NEWER;
}

static u64 seal(struct fake *fake)
{
	return lc_lane_seal(fake->c.lanes->lane[0], false, false);
}

static u32 slot_of(u64 segment, u32 in_segment)
{
	return segment * SEG + in_segment;
}

/* Take the record with @seq: where it lies and what it holds. */
static void expect_record(struct fake *fake, u64 seq, u64 segment, u32 first_slot, u32 nr_slots)
{
	struct bio *bio = fake_take(fake, seq);
	struct lc_record_info info = {};

	KUNIT_EXPECT_EQ(fake->test, fake_decode(fake, bio, &info), 0);
	KUNIT_EXPECT_EQ(fake->test, info.seq, seq);
	KUNIT_EXPECT_EQ(fake->test, info.segment, segment);
	KUNIT_EXPECT_EQ(fake->test, info.first_slot, first_slot);
	KUNIT_EXPECT_EQ(fake->test, info.nr_slots, nr_slots);
	KUNIT_EXPECT_EQ(fake->test, bio_sectors(bio),
			(LC_HEADER_SLOTS + nr_slots) * LC_BLOCK_SECTORS);
	fake_end(bio, BLK_STS_OK);
}

/* --- handing out ---------------------------------------------------------- */

static void no_buffer(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {};

	KUNIT_EXPECT_EQ(test, fake_reserve(fake, 0, 1, &cur), -EAGAIN);
	flush_workqueue(fake->c.env.wq);
	KUNIT_EXPECT_GT(test, atomic_read(&fake->refills), 0);
	KUNIT_EXPECT_EQ(test, seal(fake), 0);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[0], true, false), 0);
	lc_cursor_release(&cur);
}

static void hand_out(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor a = {}, b = {}, c = {};

	reserve(fake, 3, &a);
	KUNIT_EXPECT_EQ(test, a.next, 0);
	KUNIT_EXPECT_EQ(test, a.end, 3);
	KUNIT_EXPECT_EQ(test, lc_cursor_slot(&a), slot_of(1, 1));
	reserve(fake, 1, &b);
	KUNIT_EXPECT_EQ(test, b.next, 3);
	KUNIT_EXPECT_EQ(test, lc_cursor_slot(&b), slot_of(1, 4));
	/* More than there is: as much as there is. */
	reserve(fake, 1000, &c);
	KUNIT_EXPECT_EQ(test, c.next, 4);
	KUNIT_EXPECT_EQ(test, c.end, DATA);
	KUNIT_EXPECT_PTR_EQ(test, a.rec, c.rec);
	lc_cursor_release(&a);
	lc_cursor_release(&b);
	lc_cursor_release(&c);
	KUNIT_EXPECT_NULL(test, a.rec);
	lc_cursor_release(&a);		/* nothing to release */
}

static void give_back(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {};

	reserve(fake, 5, &cur);
	fake_put_block(fake, &cur, 100, 1);
	lc_cursor_release(&cur);
	reserve(fake, 5, &cur);
	KUNIT_EXPECT_EQ(test, cur.next, 1);
	lc_cursor_release(&cur);
	/* Everything was given back but one. */
	KUNIT_EXPECT_EQ(test, seal(fake), 1);
	expect_record(fake, 1, 1, 0, 1);
}

/* All given back: as if nobody had been here. */
static void give_all_back(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {};

	reserve(fake, 5, &cur);
	lc_cursor_release(&cur);
	KUNIT_EXPECT_EQ(test, seal(fake), 0);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[0], true, false), 0);
	reserve(fake, 2, &cur);
	KUNIT_EXPECT_EQ(test, lc_cursor_slot(&cur), slot_of(1, 1));
	lc_cursor_release(&cur);
	fake_settle(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_records, 0);
}

/* B4: what cannot be given back says nothing and holds nothing. */
static void expect_holes(struct fake *fake, u64 seq, u32 nr_slots, u32 holes)
{
	struct bio *bio = fake_take(fake, seq);
	struct lc_record_header *raw = fake_header(bio);
	struct lc_record_info info = {};
	struct lc_entry_info entry;
	struct bvec_iter iter;
	struct bio_vec bv;
	u32 i = 0;

	KUNIT_ASSERT_EQ(fake->test, fake_decode(fake, bio, &info), 0);
	KUNIT_ASSERT_EQ(fake->test, info.nr_slots, nr_slots);
	bio_for_each_segment(bv, bio, iter) {
		if (i) {
			lc_entry_decode(raw, i - 1, &entry);
			KUNIT_EXPECT_EQ_MSG(fake->test, entry.type,
					    holes & 1u << (i - 1) ? LC_ENTRY_NONE : LC_ENTRY_DATA,
					    "entry %u", i - 1);
			if (holes & 1u << (i - 1))
				KUNIT_EXPECT_NULL(fake->test,
						  memchr_inv(bvec_virt(&bv), 0, bv.bv_len));
		}
		i++;
	}
	KUNIT_EXPECT_EQ(fake->test, i, 1 + nr_slots);
	fake_end(bio, BLK_STS_OK);
}

static void holes_between(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor a = {}, b = {};
	u32 i;

	reserve(fake, 4, &a);
	reserve(fake, 2, &b);
	/* Old contents, of the header's memory, too (C8). */
	for (i = 0; i < 7; i++)
		memset(a.rec->buf->slots[i], LC_ENTRY_DATA, LC_SLOT_BYTES);
	fake_put_block(fake, &a, 1, 1);
	lc_cursor_release(&a);
	fake_put_block(fake, &b, 2, 2);
	lc_cursor_release(&b);
	/* b gave its last one back, a could not. */
	KUNIT_EXPECT_EQ(test, seal(fake), 1);
	expect_holes(fake, 1, 5, 0x0e);
}

static void holes_after_close(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {};

	reserve(fake, 4, &cur);
	fake_put_block(fake, &cur, 1, 1);
	memset(lc_cursor_image(&cur, lc_cursor_slot(&cur)), 0xee, LC_SLOT_BYTES);
	KUNIT_EXPECT_EQ(test, seal(fake), 1);
	lc_cursor_release(&cur);
	expect_holes(fake, 1, 4, 0x0e);
}

/* A record of nothing but holes still needs its seq: the run must not break. */
static void only_holes(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {};

	reserve(fake, 2, &cur);
	KUNIT_EXPECT_EQ(test, seal(fake), 1);
	lc_cursor_release(&cur);
	expect_holes(fake, 1, 2, 0x03);
}

/* --- who may change what --------------------------------------------------- */

static void ownership(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {}, next = {};
	u32 slot;

	reserve(fake, 3, &cur);
	fake_put_block(fake, &cur, 1, 1);
	KUNIT_EXPECT_FALSE(test, is_owned(&cur, slot_of(1, 0)));	/* the header */
	for (slot = 1; slot <= 3; slot++)
		KUNIT_EXPECT_TRUE(test, is_owned(&cur, slot_of(1, slot)));
	KUNIT_EXPECT_FALSE(test, is_owned(&cur, slot_of(1, 4)));
	KUNIT_EXPECT_FALSE(test, is_owned(&cur, slot_of(0, SEG - 1)));
	KUNIT_EXPECT_FALSE(test, is_owned(&cur, slot_of(2, 1)));
	/* Closed, but still held: in place is fine (B1), the next record is not ours. */
	seal(fake);
	reserve(fake, 2, &next);
	KUNIT_EXPECT_PTR_NE(test, next.rec, cur.rec);
	KUNIT_EXPECT_TRUE(test, is_owned(&cur, slot_of(1, 3)));
	KUNIT_EXPECT_FALSE(test, is_owned(&cur, lc_cursor_slot(&next)));
	KUNIT_EXPECT_FALSE(test, is_owned(&next, slot_of(1, 3)));
	KUNIT_EXPECT_TRUE(test, is_owned(&next, lc_cursor_slot(&next)));
	lc_cursor_release(&cur);
	lc_cursor_release(&next);
}

/* A held record is not written, however long it takes; then at once. */
static void held(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor a = {}, b = {};
	u32 slot;

	reserve(fake, 1, &a);
	reserve(fake, 1, &b);
	slot = fake_put_block(fake, &a, 1, 1);
	fake_put_block(fake, &b, 2, 2);
	KUNIT_EXPECT_EQ(test, seal(fake), 1);
	fake_settle(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_records, 0);
	lc_cursor_release(&b);
	fake_settle(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_records, 0);
	/* Overwritten in place after the closing: the checksum is of this. */
	memset(lc_cursor_image(&a, slot), 9, LC_SLOT_BYTES);
	lc_cursor_release(&a);
	expect_record(fake, 1, 1, 0, 2);
}

/* Is the cursor's record older than where the block lies now? */
static void outdated(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor first = {}, second = {}, third = {};
	u32 in_first, in_second, in_third;

	reserve(fake, 2, &first);
	in_first = fake_put_block(fake, &first, 1, 1);
	seal(fake);
	reserve(fake, 2, &second);
	in_second = fake_put_block(fake, &second, 2, 1);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	reserve(fake, 2, &third);
	in_third = fake_put_block(fake, &third, 3, 1);
	KUNIT_ASSERT_NE(test, third.rec->buf->segment, second.rec->buf->segment);

	KUNIT_EXPECT_FALSE(test, is_outdated(&first, in_first));
	KUNIT_EXPECT_TRUE(test, is_outdated(&first, in_second));
	KUNIT_EXPECT_TRUE(test, is_outdated(&first, in_third));
	KUNIT_EXPECT_FALSE(test, is_outdated(&second, in_first));
	KUNIT_EXPECT_FALSE(test, is_outdated(&second, in_second));
	KUNIT_EXPECT_TRUE(test, is_outdated(&second, in_third));
	KUNIT_EXPECT_FALSE(test, is_outdated(&third, in_first));
	KUNIT_EXPECT_FALSE(test, is_outdated(&third, in_second));
	KUNIT_EXPECT_FALSE(test, is_outdated(&third, in_third));
	lc_cursor_release(&first);
	lc_cursor_release(&second);
	lc_cursor_release(&third);
}

/* The ring wraps: the newer segment lies at the lower place. */
static void outdated_wrap(struct kunit *test)
{
	struct fake_options options = { .segment = 2 * 989 - 1 };
	struct fake *fake = fake_create(test, &options);
	struct lc_cursor last = {}, first = {};
	u32 in_last, in_first;

	KUNIT_ASSERT_EQ(test, fake->c.sb.geo.nr_segments, 989);
	reserve(fake, 1, &last);
	in_last = fake_put_block(fake, &last, 1, 1);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	reserve(fake, 1, &first);
	in_first = fake_put_block(fake, &first, 2, 1);
	KUNIT_EXPECT_EQ(test, in_last, slot_of(988, 1));
	KUNIT_EXPECT_EQ(test, in_first, slot_of(0, 1));
	KUNIT_EXPECT_TRUE(test, is_outdated(&last, in_first));
	KUNIT_EXPECT_FALSE(test, is_outdated(&first, in_last));
	lc_cursor_release(&last);
	lc_cursor_release(&first);
	expect_record(fake, 1, 2 * 989 - 1, 0, 1);
}

/* --- sealing --------------------------------------------------------------- */

static void seal_nothing(struct kunit *test)
{
	struct fake_options options = { .next_seq = 500 };
	struct fake *fake = fake_create(test, &options);

	KUNIT_EXPECT_EQ(test, seal(fake), 499);
	fake_write(fake, 0, 1);
	KUNIT_EXPECT_EQ(test, seal(fake), 500);
	KUNIT_EXPECT_EQ(test, seal(fake), 500);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[0], true, false), 500);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[0], true, false), 500);
	expect_record(fake, 500, 1, 0, 1);
	fake_settle(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_records, 1);
}

/* Records follow one another in a segment, then in the next. */
static void several_records(struct kunit *test)
{
	struct fake_options options = { .buffers = 80 };	/* all are on their way at once */
	struct fake *fake = fake_create(test, &options);
	static const struct {
		u32 blocks, first_slot;
		u64 segment;
	} records[] = {
		{ 3, 0, 1 }, { 1, 4, 1 }, { 5, 6, 1 }, { 3, 12, 1 },	/* 16 slots to the last */
		{ 15, 0, 2 },
		{ 13, 0, 3 }, { 1, 14, 3 },
		{ 1, 0, 4 }, { 13, 2, 4 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(records); i++) {
		fake_write(fake, 100 * i, records[i].blocks);
		KUNIT_EXPECT_EQ(test, seal(fake), i + 1);
	}
	for (i = ARRAY_SIZE(records); i--; )
		expect_record(fake, i + 1, records[i].segment, records[i].first_slot,
			      records[i].blocks);
}

/* One slot left cannot hold a header and a block. */
static void odd_slot(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);

	fake_write(fake, 0, DATA - 1);
	KUNIT_EXPECT_EQ(test, seal(fake), 1);
	fake_write(fake, 100, 1);
	KUNIT_EXPECT_EQ(test, seal(fake), 2);
	expect_record(fake, 1, 1, 0, DATA - 1);
	expect_record(fake, 2, 2, 0, 1);
}

/* A long write fills records and segments to the slot, and nobody needs to seal. */
static void long_write(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	u32 i;

	fake_write(fake, 0, 4 * DATA + 2);
	for (i = 0; i < 4; i++)
		expect_record(fake, i + 1, i + 1, 0, DATA);
	KUNIT_EXPECT_EQ(test, seal(fake), 5);
	expect_record(fake, 5, 5, 0, 2);
}

/* As many entries as a header has, and a segment of two such records exactly. */
static void large_records(struct kunit *test)
{
	struct fake_options options = { .segment_bytes = 2 << 20, .buffers = 2 };
	struct fake *fake = fake_create(test, &options);

	fake_write(fake, 0, 2 * LC_RECORD_ENTRIES + 1);
	expect_record(fake, 1, 1, 0, LC_RECORD_ENTRIES);
	expect_record(fake, 2, 1, LC_RECORD_ENTRIES + 1, LC_RECORD_ENTRIES);
	KUNIT_EXPECT_EQ(test, seal(fake), 3);
	expect_record(fake, 3, 2, 0, 1);
}

/* --- close_segment and retract --------------------------------------------- */

static void close_segment(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);

	fake_write(fake, 0, 2);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[0], true, false), 1);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(fake->c.lanes), 2);
	fake_write(fake, 10, 2);
	KUNIT_EXPECT_EQ(test, seal(fake), 2);
	/* The open record after it is untouched: taken back, then the segment closes. */
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[0], true, false), 2);
	fake_write(fake, 20, 1);
	KUNIT_EXPECT_EQ(test, seal(fake), 3);
	expect_record(fake, 1, 1, 0, 2);
	expect_record(fake, 2, 2, 0, 2);
	expect_record(fake, 3, 3, 0, 1);
}

/* A segment without a record stays the lane's: none is wasted by closing. */
static void close_empty_segment(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {};
	u32 i;

	reserve(fake, 1, &cur);
	lc_cursor_release(&cur);
	for (i = 0; i < 5; i++) {
		lc_lane_seal(fake->c.lanes->lane[0], true, false);
		KUNIT_EXPECT_EQ(test, lc_lanes_used(fake->c.lanes), 1);
	}
	fake_write(fake, 0, 1);
	KUNIT_EXPECT_EQ(test, seal(fake), 1);
	expect_record(fake, 1, 1, 0, 1);
}

/* Somebody is in the record: it cannot be taken back. */
static void close_held(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {};

	reserve(fake, 2, &cur);
	fake_put_block(fake, &cur, 1, 1);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[0], true, false), 1);
	fake_settle(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_records, 0);
	lc_cursor_release(&cur);
	expect_record(fake, 1, 1, 0, 2);
}

/* The same record in memory, opened again: who looked at it before must not get in. */
static void incarnation(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_lane *lane = fake->c.lanes->lane[0];
	struct lc_cursor cur = {};
	struct lc_record *rec;
	LIST_HEAD(closed);
	s64 before, after;
	u32 i;

	for (i = 0; i < 4; i++) {
		reserve(fake, 1, &cur);
		rec = cur.rec;
		lc_cursor_release(&cur);
		before = atomic64_read(&rec->state);
		spin_lock(&lane->lock);
		lc_lane_close_record(lane, true, &closed);		/* retracts it */
		KUNIT_EXPECT_LT(test, atomic64_read(&rec->state), 0);
		lc_lane_reopen(lane);
		spin_unlock(&lane->lock);
		KUNIT_ASSERT_TRUE(test, list_empty(&closed));
		reserve(fake, 1, &cur);
		KUNIT_ASSERT_PTR_EQ(test, cur.rec, rec);
		lc_cursor_release(&cur);
		after = atomic64_read(&rec->state);
		KUNIT_EXPECT_NE(test, before >> 32, after >> 32);
		KUNIT_EXPECT_EQ(test, (u32)after, 0);
	}
}

static void next_segment(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);

	KUNIT_EXPECT_EQ(test, lc_lanes_used(fake->c.lanes), 1);
	fake_feed(fake);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(fake->c.lanes), 1);
	fake_write(fake, 0, 1);
	seal(fake);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(fake->c.lanes), 2);
	fake_feed(fake);
	fake_write(fake, 10, DATA - 2);	/* two slots were used: fills segment 1 */
	KUNIT_EXPECT_EQ(test, seal(fake), 2);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(fake->c.lanes), 2);
	fake_write(fake, 40, 1);
	seal(fake);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(fake->c.lanes), 3);
}

static void mark_changes(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	u64 before, after;

	fake_write(fake, 0, 1);
	before = lc_lane_activity(fake->c.lanes->lane[0]);
	KUNIT_EXPECT_EQ(test, lc_lane_activity(fake->c.lanes->lane[0]), before);
	fake_write(fake, 10, 1);
	after = lc_lane_activity(fake->c.lanes->lane[0]);
	KUNIT_EXPECT_NE(test, before, after);
	seal(fake);
	KUNIT_EXPECT_NE(test, lc_lane_activity(fake->c.lanes->lane[0]), after);
}

/* --- RANGE records ---------------------------------------------------------- */

static int append(struct fake *fake, u64 block)
{
	const struct lc_entry_info ranges[] = {
		{ .block = block, .nr_blocks = 50, .type = LC_ENTRY_RANGE_TOMBSTONE },
		{ .block = block + 100, .nr_blocks = 1, .type = LC_ENTRY_RANGE_TOMBSTONE },
	};

	return lc_lanes_append_ranges(fake->c.lanes, ranges, ARRAY_SIZE(ranges));
}

static void expect_range(struct fake *fake, u64 seq, u64 segment, u32 first_slot, u64 block)
{
	struct bio *bio = fake_take_range(fake, seq, segment, first_slot, 2);
	struct lc_entry_info entry;

	lc_entry_decode(fake_header(bio), 0, &entry);
	KUNIT_EXPECT_EQ(fake->test, entry.type, LC_ENTRY_RANGE_TOMBSTONE);
	KUNIT_EXPECT_EQ(fake->test, entry.block, block);
	KUNIT_EXPECT_EQ(fake->test, entry.nr_blocks, 50);
	lc_entry_decode(fake_header(bio), 1, &entry);
	KUNIT_EXPECT_EQ(fake->test, entry.type, LC_ENTRY_RANGE_TOMBSTONE);
	KUNIT_EXPECT_EQ(fake->test, entry.block, block + 100);
	KUNIT_EXPECT_EQ(fake->test, entry.nr_blocks, 1);
	fake_end(bio, BLK_STS_OK);
}

/* L12: above every record that came before, also one that was still open. */
static void ranges(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);

	KUNIT_EXPECT_EQ(test, append(fake, 7), -EAGAIN);
	fake_feed(fake);
	KUNIT_EXPECT_EQ(test, append(fake, 7), 0);
	KUNIT_EXPECT_EQ(test, fake->c.lanes->bounds[0].segment, 1);
	KUNIT_EXPECT_EQ(test, fake->c.lanes->bounds[0].slot, 1);
	/* Retracts the untouched record that it left open. */
	KUNIT_EXPECT_EQ(test, append(fake, 8), 0);
	KUNIT_EXPECT_EQ(test, fake->c.lanes->bounds[0].slot, 2);
	fake_write(fake, 0, 4);
	KUNIT_EXPECT_EQ(test, append(fake, 9), 0);
	KUNIT_EXPECT_EQ(test, fake->c.lanes->bounds[0].slot, 8);
	KUNIT_EXPECT_EQ(test, lc_log_last_seq(fake->c.log), 4);
	expect_range(fake, 1, 1, 0, 7);
	expect_range(fake, 2, 1, 1, 8);
	expect_record(fake, 3, 1, 2, 4);
	expect_range(fake, 4, 1, 7, 9);
}

/*
 * The record that a tombstone retracts is opened again as its own.  A task that still
 * has the pointer must not get a slot there before it is closed.
 */
static void range_has_no_slots(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {};
	struct lc_record *rec;

	reserve(fake, 1, &cur);
	rec = cur.rec;
	lc_cursor_release(&cur);
	KUNIT_EXPECT_EQ(test, rec->limit, DATA);
	KUNIT_EXPECT_EQ(test, append(fake, 9),
			0);
	KUNIT_EXPECT_EQ(test, rec->type, LC_RECORD_RANGE);
	KUNIT_EXPECT_EQ(test, rec->limit, 0);
	expect_range(fake, 1, 1, 0, 9);
}

/* A RANGE record needs no data slot, so it takes a segment's last one. */
static void range_in_last_slot(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);

	/* Still open when the RANGE comes, and one slot is left after it. */
	fake_write(fake, 0, DATA - 1);
	fake_feed(fake);
	KUNIT_EXPECT_EQ(test, append(fake, 9), 0);
	expect_record(fake, 1, 1, 0, DATA - 1);
	expect_range(fake, 2, 1, SEG - 1, 9);
	fake_write(fake, 100, 1);
	KUNIT_EXPECT_EQ(test, seal(fake), 3);
	expect_record(fake, 3, 2, 0, 1);
}

/* --- relogging -------------------------------------------------------------- */

static void expect_refused(struct fake *fake)
{
	struct lc_cursor cur = {};

	KUNIT_EXPECT_EQ(fake->test, fake_reserve(fake, 0, 1, &cur), -EAGAIN);
	KUNIT_EXPECT_EQ(fake->test,
			append(fake, 1), -EAGAIN);
}

static void expect_relogged(struct fake *fake, u64 block, u32 slot)
{
	struct lc_cursor cur = {};

	KUNIT_ASSERT_EQ(fake->test, lc_lanes_relog(fake->c.lanes, &cur), 0);
	KUNIT_EXPECT_EQ(fake->test, lc_cursor_slot(&cur), slot);
	fake_put_block(fake, &cur, block, block);
	lc_cursor_release(&cur);
	expect_refused(fake);
}

/* D1, B5: nobody but writeback gets anything of the reserve, also who is under way. */
static void relogging(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_lane *lane = fake->c.lanes->lane[0];
	struct lc_cursor under_way = {}, cur = {};
	u32 i;

	reserve(fake, DATA, &under_way);
	KUNIT_EXPECT_EQ(test, lc_lanes_relog(lane->lanes, &cur), -EAGAIN);
	WRITE_ONCE(fake->c.alloc->writers_held, true);
	KUNIT_ASSERT_TRUE(test, fake_feed(fake));
	while (under_way.next < under_way.end)
		fake_put_block(fake, &under_way, 100 + under_way.next, 1);
	lc_cursor_release(&under_way);
	/* The first task may open a record there, but gets no slot of it. */
	expect_refused(fake);
	for (i = 0; i < 5; i++)
		expect_relogged(fake, 200 + i, slot_of(2, 1 + i));
	/* A FLUSH closes the record; the segment stays. */
	KUNIT_EXPECT_EQ(test, lc_lane_seal(lane, true, false), 2);
	expect_refused(fake);
	expect_relogged(fake, 205, slot_of(2, 7));
	WRITE_ONCE(fake->c.alloc->writers_held, false);
	KUNIT_ASSERT_EQ(test, lc_lanes_reserve(lane->lanes, lane, 1, &cur), 0);
	KUNIT_EXPECT_EQ(test, lc_cursor_slot(&cur), slot_of(2, 8));
	lc_cursor_release(&cur);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(lane, true, false), 3);
	KUNIT_EXPECT_EQ(test, lc_lanes_used(fake->c.lanes), 3);
}

/* --- pool -------------------------------------------------------------------- */

static void pool(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_pool *pool = fake->c.pool;
	struct lc_buffer *bufs[9];
	LIST_HEAD(more);
	u32 i;

	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_EQ(test, lc_pool_used(pool), i);
		bufs[i] = lc_pool_get(pool, 0);
		KUNIT_ASSERT_NOT_NULL(test, bufs[i]);
	}
	KUNIT_EXPECT_NULL(test, lc_pool_get(pool, 0));
	lc_buffer_unpin(bufs[0]);
	KUNIT_EXPECT_EQ(test, lc_pool_used(pool), 7);
	bufs[0] = lc_pool_get(pool, 0);
	KUNIT_ASSERT_NOT_NULL(test, bufs[0]);
	/* More buffers are added while all are in use. */
	KUNIT_ASSERT_EQ(test, lc_buffers_alloc(fake->c.pool, 1, &more), 0);
	lc_pool_add(pool, &more);
	KUNIT_EXPECT_EQ(test, pool->nr, 9);
	bufs[8] = lc_pool_get(pool, 0);
	KUNIT_ASSERT_NOT_NULL(test, bufs[8]);
	for (i = 0; i < 9; i++)
		lc_buffer_unpin(bufs[i]);
	KUNIT_EXPECT_EQ(test, lc_pool_used(pool), 0);
}

static void pool_shrink(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_pool *pool = fake->c.pool;
	struct lc_buffer *bufs[6];
	u32 i;

	for (i = 0; i < 6; i++)
		bufs[i] = lc_pool_get(pool, 0);
	lc_pool_shrink(pool, 4);	/* two are free, two more must come back */
	KUNIT_EXPECT_EQ(test, pool->nr, 6);
	KUNIT_EXPECT_EQ(test, pool->lane_pools[0].nr_free, 0);
	KUNIT_EXPECT_NULL(test, lc_pool_get(pool, 0));
	lc_pool_shrink(pool, 8);	/* changed our mind, then back */
	lc_pool_shrink(pool, 4);
	for (i = 0; i < 6; i++)
		lc_buffer_unpin(bufs[i]);
	for (i = 0; i < 4; i++) {
		bufs[i] = lc_pool_get(pool, 0);
		KUNIT_ASSERT_NOT_NULL(test, bufs[i]);
	}
	KUNIT_EXPECT_NULL(test, lc_pool_get(pool, 0));
	KUNIT_EXPECT_EQ(test, pool->nr, 4);
	for (i = 0; i < 4; i++)
		lc_buffer_unpin(bufs[i]);
}

/* B2, B3: found in RAM until durable; not reused while a reader has it. */
static void pins(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cache *c = &fake->c;
	struct lc_buffer *buf, *again;
	u64 seq;

	KUNIT_EXPECT_NULL(test, lc_buffer_pin(c->ring, slot_of(1, 1)));
	fake_write(fake, 0, 1);
	buf = lc_buffer_pin(c->ring, slot_of(1, 1));
	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_EQ(test, *(u8 *)lc_buffer_slot(buf, slot_of(1, 1)), 0);
	KUNIT_EXPECT_NULL(test, lc_buffer_pin(c->ring, slot_of(2, 1)));
	seq = lc_lane_seal(c->lanes->lane[0], true, false);
	fake_finish(fake, 1, BLK_STS_OK);
	again = lc_buffer_pin(c->ring, slot_of(1, 1));	/* written, not durable */
	KUNIT_EXPECT_PTR_EQ(test, again, buf);
	lc_buffer_unpin(again);
	lc_log_want_durable(c->log, seq);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_NULL(test, lc_buffer_pin(c->ring, slot_of(1, 1)));
	KUNIT_EXPECT_EQ(test, lc_pool_used(c->pool), 1);
	lc_buffer_unpin(buf);
	KUNIT_EXPECT_EQ(test, lc_pool_used(c->pool), 0);
}

static struct kunit_case record_cases[] = {
	KUNIT_CASE(no_buffer),
	KUNIT_CASE(hand_out),
	KUNIT_CASE(give_back),
	KUNIT_CASE(give_all_back),
	KUNIT_CASE(holes_between),
	KUNIT_CASE(holes_after_close),
	KUNIT_CASE(only_holes),
	KUNIT_CASE(ownership),
	KUNIT_CASE(held),
	KUNIT_CASE(outdated),
	KUNIT_CASE(outdated_wrap),
	KUNIT_CASE(seal_nothing),
	KUNIT_CASE(several_records),
	KUNIT_CASE(odd_slot),
	KUNIT_CASE(long_write),
	KUNIT_CASE(large_records),
	KUNIT_CASE(close_segment),
	KUNIT_CASE(close_empty_segment),
	KUNIT_CASE(close_held),
	KUNIT_CASE(incarnation),
	KUNIT_CASE(next_segment),
	KUNIT_CASE(mark_changes),
	KUNIT_CASE(ranges),
	KUNIT_CASE(range_has_no_slots),
	KUNIT_CASE(range_in_last_slot),
	KUNIT_CASE(relogging),
	KUNIT_CASE(pool),
	KUNIT_CASE(pool_shrink),
	KUNIT_CASE(pins),
	{}
};

static struct kunit_suite record_suite = {
	.name = "dm_lc_record",
	.test_cases = record_cases,
};

kunit_test_suite(record_suite);
