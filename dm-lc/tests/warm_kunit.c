// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the scan after a crash enters, and what becomes of a copy that it leaves out because the
 * block is pending (WS6, WS10).
 */
#include <kunit/test.h>

#include "../store/index.h"
#include "../store/warm.h"

#define NR_SLOTS	64
#define MOST_TOUCHED	4
#define END		20	/* segment in which this life began */
#define BLOCK		7ULL

struct scan {
	struct lc_index *index;
	struct lc_warm warm;
};

static struct scan *scan_begin(struct kunit *test)
{
	struct scan *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->index = lc_index_create(NR_SLOTS, 16);
	KUNIT_ASSERT_NOT_NULL(test, s->index);
	lc_warm_init(&s->warm);
	s->warm.from = 3;
	s->warm.end = END;
	s->warm.unsure = true;
	KUNIT_ASSERT_EQ(test, lc_warm_begin(&s->warm, MOST_TOUCHED), 0);
	return s;
}

static void scan_destroy(struct scan *s)
{
	lc_warm_end(&s->warm);
	lc_index_destroy(s->index);
}

/* Return: whether the scan enters a copy in this slot. */
static bool offer(struct scan *s, u64 block, u32 slot)
{
	const struct lc_mapping map = { .slot = slot, .mask = 0xff };

	return lc_warm_enter(&s->warm, s->index, block, &map);
}

/* The slot of the block's node, or LC_NO_SLOT. */
static u32 slot_of(struct scan *s, u64 block)
{
	u32 bucket = lc_index_lock(s->index, block);
	struct lc_mapping map;
	bool found = lc_index_lookup(s->index, bucket, block, &map);

	lc_index_unlock(s->index, bucket);
	return found ? map.slot : LC_NO_SLOT;
}

static void set(struct scan *s, u64 block, u32 slot, u8 mask)
{
	const struct lc_mapping map = { .slot = slot, .mask = mask };
	u32 bucket = lc_index_lock(s->index, block);
	struct lc_mapping old;

	lc_index_set(s->index, bucket, block, &map, &old);
	lc_index_unlock(s->index, bucket);
}

/* A read that was to be promoted has failed. */
static void drop(struct scan *s, u64 block)
{
	u32 bucket = lc_index_lock(s->index, block);

	lc_warm_drop_pending(&s->warm, s->index, bucket, block);
	lc_index_unlock(s->index, bucket);
}

static void enters_if_absent(struct kunit *test)
{
	struct scan *s = scan_begin(test);

	KUNIT_EXPECT_TRUE(test, offer(s, BLOCK, 1));
	KUNIT_EXPECT_EQ(test, slot_of(s, BLOCK), 1);
	KUNIT_EXPECT_FALSE(test, offer(s, BLOCK, 2));
	KUNIT_EXPECT_EQ(test, slot_of(s, BLOCK), 1);
	lc_warm_touch(&s->warm, BLOCK + 1, BLOCK + 3);
	KUNIT_EXPECT_FALSE(test, offer(s, BLOCK + 3, 3));
	KUNIT_EXPECT_TRUE(test, offer(s, BLOCK + 4, 3));
	KUNIT_EXPECT_FALSE(test, lc_warm_end(&s->warm));
	scan_destroy(s);
}

/* Its group may be on its way, with a header that names the block. */
static void pending_stays(struct kunit *test)
{
	struct scan *s = scan_begin(test);

	set(s, BLOCK, 40, 0);
	KUNIT_EXPECT_FALSE(test, offer(s, BLOCK, 1));
	KUNIT_EXPECT_EQ(test, slot_of(s, BLOCK), 40);
	/* It has become valid: nothing is missing. */
	set(s, BLOCK, 40 + 1, 0xff);
	KUNIT_EXPECT_FALSE(test, lc_warm_end(&s->warm));
	scan_destroy(s);
}

static void older_stays_out(struct kunit *test)
{
	struct scan *s = scan_begin(test);

	set(s, BLOCK, 40, 0);
	KUNIT_EXPECT_FALSE(test, offer(s, BLOCK, 2));
	drop(s, BLOCK);
	KUNIT_EXPECT_EQ(test, slot_of(s, BLOCK), LC_NO_SLOT);
	KUNIT_EXPECT_FALSE(test, offer(s, BLOCK, 1));
	KUNIT_EXPECT_TRUE(test, lc_warm_end(&s->warm));
	scan_destroy(s);
}

/* Nothing was left out for it. */
static void dropped_without_copy(struct kunit *test)
{
	struct scan *s = scan_begin(test);

	set(s, BLOCK, 40, 0);
	drop(s, BLOCK);
	KUNIT_EXPECT_TRUE(test, offer(s, BLOCK, 1));
	KUNIT_EXPECT_FALSE(test, lc_warm_end(&s->warm));
	lc_warm_sure(&s->warm);
	KUNIT_EXPECT_FALSE(test, lc_warm_unsure(&s->warm));
	scan_destroy(s);
}

static void dropped_after_the_scan(struct kunit *test)
{
	struct scan *s = scan_begin(test);

	set(s, BLOCK, 40, 0);
	KUNIT_EXPECT_FALSE(test, offer(s, BLOCK, 1));
	KUNIT_EXPECT_FALSE(test, lc_warm_end(&s->warm));
	lc_warm_sure(&s->warm);
	KUNIT_EXPECT_FALSE(test, lc_warm_unsure(&s->warm));
	drop(s, BLOCK);
	KUNIT_EXPECT_TRUE(test, lc_warm_unsure(&s->warm));
	KUNIT_EXPECT_EQ(test, lc_warm_take_raise(&s->warm), END);
	lc_warm_raised(&s->warm, END);
	KUNIT_EXPECT_FALSE(test, lc_warm_unsure(&s->warm));
	/* No copy from before the crash is believed any more. */
	set(s, BLOCK, 41, 0);
	drop(s, BLOCK);
	KUNIT_EXPECT_FALSE(test, lc_warm_unsure(&s->warm));
	KUNIT_EXPECT_EQ(test, lc_warm_take_raise(&s->warm), 0);
	scan_destroy(s);
}

/* As if all were touched: it is not known which. */
static void full_when_too_many_are_left_out(struct kunit *test)
{
	struct scan *s = scan_begin(test);
	u64 block;

	for (block = 0; block <= MOST_TOUCHED; block++) {
		set(s, 2 * block, 40 + block, 0);
		KUNIT_EXPECT_FALSE(test, offer(s, 2 * block, 1));
	}
	KUNIT_EXPECT_TRUE(test, READ_ONCE(s->warm.full));
	KUNIT_EXPECT_FALSE(test, offer(s, 1000, 1));
	scan_destroy(s);
}

static struct kunit_case warm_cases[] = {
	KUNIT_CASE(enters_if_absent),
	KUNIT_CASE(pending_stays),
	KUNIT_CASE(older_stays_out),
	KUNIT_CASE(dropped_without_copy),
	KUNIT_CASE(dropped_after_the_scan),
	KUNIT_CASE(full_when_too_many_are_left_out),
	{}
};

static struct kunit_suite warm_suite = {
	.name = "dm_lc_warm",
	.test_cases = warm_cases,
};

kunit_test_suite(warm_suite);
