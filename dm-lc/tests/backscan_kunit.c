// SPDX-License-Identifier: GPL-2.0-only
/*
 * In which order what is read from the end of the log down may be believed (WS1, WS2), and the set
 * of blocks that the scan leaves out.
 */
#include <kunit/test.h>

#include "format/backscan.h"
#include "store/ranges.h"

#define LIFE		5	/* the one that scans */
#define FIRST_SEQ	100	/* of it */
#define FIRST_SEGMENT	50

/* A header: a record, or with a number, a group. */
struct header {
	u64 segment, epoch, first_seq, seq;
	u64 number, boundary;
	bool placeholder;
};

struct scan {
	struct kunit *test;
	struct lc_backscan b;
	u32 slot;
};

static struct scan *scan_create(struct kunit *test)
{
	struct scan *scan = kunit_kzalloc(test, sizeof(*scan), GFP_KERNEL);
	struct lc_sb *sb = kunit_kzalloc(test, sizeof(*sb), GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, scan && sb);
	scan->test = test;
	scan->b.items = kunit_kcalloc(test, LC_BACKSCAN_MOST, sizeof(*scan->b.items), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scan->b.items);
	sb->epoch = LIFE;
	sb->epoch_first_seq = FIRST_SEQ;
	sb->warm_epoch = LIFE - 1;
	lc_backscan_init(&scan->b, sb, FIRST_SEGMENT);
	return scan;
}

static bool add(struct scan *scan, const struct header *h)
{
	const struct lc_record_info info = {
		.segment = h->segment, .epoch = h->epoch, .epoch_first_seq = h->first_seq,
		.seq = h->seq, .number = h->number, .boundary = h->boundary,
		.wall_clock = !h->placeholder, .first_slot = scan->slot++,
	};

	return lc_backscan_add(&scan->b, &info, h->number);
}

/*
 * Add the headers, up to one of segment 0, and take after each what may be taken.  @expected: the
 * seqs of the records in that order, with a g those of groups.
 */
static void expect_taken(struct kunit *test, const struct header *headers, const char *expected)
{
	struct scan *scan = scan_create(test);
	struct lc_backscan_item item;
	char taken[128] = "";
	size_t len = 0;

	for (; headers->segment; headers++) {
		add(scan, headers);
		while (lc_backscan_next(&scan->b, &item))
			len += scnprintf(taken + len, sizeof(taken) - len, " %s%llu",
					 item.group ? "g" : "", item.key);
	}
	KUNIT_EXPECT_STREQ(test, taken, expected);
}

/* Whatever lane they are in, and whatever order they are read in. */
static void by_seq(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 4, 80, 97 }, { 49, 4, 80, 99 }, { 48, 4, 80, 96 }, { 48, 4, 80, 98 },
		{ 47, 4, 80, 95 },
		{}
	};

	expect_taken(test, headers, " 99 98 97 96 95");
}

/* What is below a seq that is missing may be outdated by it. */
static void gap(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 4, 80, 99 }, { 48, 4, 80, 97 }, { 47, 4, 80, 96 }, { 46, 4, 80, 96, 1 },
		{}
	};

	expect_taken(test, headers, " 99");
}

/* A group is older than the records of higher seqs, and comes before the one of its own. */
static void group(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 4, 80, 97, 7 }, { 48, 4, 80, 97 }, { 48, 4, 80, 98 }, { 48, 4, 80, 99 },
		{}
	};

	expect_taken(test, headers, " 99 98 g97 97");
}

/* One that says so itself is never taken, nor one of an older module. */
static void group_without_number(struct kunit *test)
{
	const struct lc_record_info info = { .segment = 49, .epoch = 4, .seq = 99 };
	struct scan *scan = scan_create(test);
	struct lc_backscan_item item;

	KUNIT_EXPECT_TRUE(test, lc_backscan_add(&scan->b, &info, true));
	KUNIT_EXPECT_FALSE(test, lc_backscan_next(&scan->b, &item));
}

/* R1: 98 and 99 of life 3 are dead, because life 4 began with 98.  Its groups are older. */
static void dead_records(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 4, 98, 99 }, { 49, 4, 98, 98 }, { 48, 3, 80, 99, 3 }, { 47, 3, 80, 99 },
		{ 47, 3, 80, 98 }, { 46, 3, 80, 97 },
		{}
	};

	expect_taken(test, headers, " 99 98 g97 97");
}

/* The header of 98 of life 4 is gone: 98 of life 3 does not stand in for it. */
static void dead_for_a_missing_one(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 4, 98, 99 }, { 48, 3, 80, 98 }, { 47, 3, 80, 97 },
		{}
	};

	expect_taken(test, headers, " 99");
}

/* R7: segment 49 was opened by life 4 and is as life 3 has left it. */
static void above_a_later_life(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 3, 80, 97, 9 }, { 49, 3, 80, 97 }, { 48, 4, 98, 99 }, { 48, 4, 98, 98 },
		{ 47, 3, 80, 97 },
		{}
	};

	expect_taken(test, headers, " 99 98 97");
}

/* The same, but the first record of life 4 does not tell that it began below segment 48. */
static void first_record_elsewhere(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 4, 98, 98 }, { 48, 3, 80, 97, 9 }, { 48, 3, 80, 97 }, { 47, 4, 98, 99 },
		{ 46, 3, 80, 97 },
		{}
	};

	expect_taken(test, headers, " 99 98 97");
}

/* The same, with the records of life 4 above it: they tell where it began. */
static void where_a_later_life_began(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 4, 98, 99 }, { 49, 4, 98, 98, 0, 48 }, { 48, 3, 80, 97, 9 },
		{ 48, 3, 80, 97 }, { 47, 3, 80, 97 },
		{}
	};

	expect_taken(test, headers, " 99 98 97");
}

/* Life 4 may have had records that nothing tells of. */
static void life_is_missing(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 3, 80, 99 }, { 48, 3, 80, 98 },
		{}
	};

	expect_taken(test, headers, "");
}

/* It is found further down. */
static void life_is_late(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 3, 80, 99, 4 }, { 48, 4, 99, 99 }, { 47, 3, 80, 98 },
		{}
	};

	expect_taken(test, headers, " 99 98");
}

/* A record that was written twice: of the two that which replay would take. */
static void written_twice(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 4, 80, 99 }, { 48, 4, 80, 99 }, { 48, 4, 80, 98 },
	};
	struct scan *scan = scan_create(test);
	struct lc_backscan_item item;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(headers); i++)
		add(scan, &headers[i]);
	KUNIT_ASSERT_TRUE(test, lc_backscan_next(&scan->b, &item));
	KUNIT_EXPECT_EQ(test, item.segment, 49);
	KUNIT_ASSERT_TRUE(test, lc_backscan_next(&scan->b, &item));
	KUNIT_EXPECT_EQ(test, item.key, 98);
	KUNIT_EXPECT_FALSE(test, lc_backscan_next(&scan->b, &item));
	KUNIT_EXPECT_EQ(test, lc_backscan_held(&scan->b), 0);
}

/* What lc-check has put there hides what was there. */
static void placeholder(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 4, 80, 99 }, { 48, 4, 80, 98, .placeholder = true }, { 47, 4, 80, 97 },
		{}
	};

	expect_taken(test, headers, " 99");
}

/* Lives do not rise on the way down. */
static void order_of_lives(struct kunit *test)
{
	static const struct header headers[] = {
		{ 49, 4, 98, 99 }, { 49, 4, 98, 98 }, { 48, 3, 80, 97 }, { 47, 4, 98, 98 },
		{ 46, 3, 80, 96 },
		{}
	};

	expect_taken(test, headers, " 99 98 97");
}

static void too_many(struct kunit *test)
{
	struct scan *scan = scan_create(test);
	struct header h = { 49, 4, 1, 1 };
	struct lc_backscan_item item;
	u32 i;

	for (i = 0; i < LC_BACKSCAN_MOST; i++)
		KUNIT_ASSERT_TRUE(test, add(scan, &h));
	KUNIT_EXPECT_EQ(test, lc_backscan_held(&scan->b), 49);
	KUNIT_EXPECT_FALSE(test, add(scan, &h));
	KUNIT_EXPECT_TRUE(test, scan->b.ended);
	KUNIT_EXPECT_FALSE(test, lc_backscan_next(&scan->b, &item));
}

/* WS8: the last one that was sent may be torn, all others are not. */
static void whole(struct kunit *test)
{
	struct scan *scan = scan_create(test);
	struct lc_backscan_item item = { .group = true };
	static const struct { u64 number; bool whole; } groups[] = {
		{ 5, false }, { 4, true }, { 7, false }, { 6, true }, { 7, false }, { 5, true },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		item.start = groups[i].number;
		KUNIT_EXPECT_EQ_MSG(test, lc_backscan_whole(&scan->b, &item), groups[i].whole,
				    "the %uth", i);
	}
}

/* --- the blocks that are left out ------------------------------------------------ */

#define MOST_RANGES	4
#define BLOCKS		64

static struct lc_ranges *ranges_create(struct kunit *test)
{
	struct lc_ranges *set = kunit_kzalloc(test, sizeof(*set), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, set);
	set->ranges = kunit_kcalloc(test, MOST_RANGES, sizeof(*set->ranges), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, set->ranges);
	set->most = MOST_RANGES;
	return set;
}

/* Every pair of ranges within a few blocks, and a third one, against a bitmap. */
static void ranges_against_bits(struct kunit *test)
{
	struct lc_ranges *set = ranges_create(test);
	u32 n, i, wrong = 0;

	for (n = 0; n < 1u << 15; n++) {
		u32 bits = 0, k;

		set->nr = 0;
		for (k = 0; k < 3; k++) {
			u32 first = n >> 5 * k & 7, last = first + (n >> (5 * k + 3) & 3);

			wrong += !lc_ranges_add(set, first, last);
			bits |= (2u << last) - (1u << first);
		}
		for (i = 0; i < 12; i++)
			wrong += lc_ranges_have(set, i) != !!(bits & 1u << i);
		for (i = 1; i < set->nr; i++)
			wrong += set->ranges[i].first <= set->ranges[i - 1].last + 1;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

static void ranges_full(struct kunit *test)
{
	struct lc_ranges *set = ranges_create(test);
	u64 i;

	for (i = 0; i < MOST_RANGES; i++)
		KUNIT_EXPECT_TRUE(test, lc_ranges_add(set, 4 * i, 4 * i + 1));
	KUNIT_EXPECT_FALSE(test, lc_ranges_add(set, BLOCKS, BLOCKS));
	KUNIT_EXPECT_FALSE(test, lc_ranges_have(set, BLOCKS));
	/* What grows another one needs no room. */
	KUNIT_EXPECT_TRUE(test, lc_ranges_add(set, 2, 2));
	KUNIT_EXPECT_TRUE(test, lc_ranges_add(set, 3, 3));
	KUNIT_EXPECT_EQ(test, set->nr, MOST_RANGES - 1);
	KUNIT_EXPECT_TRUE(test, lc_ranges_add(set, BLOCKS, LC_MAX_BLOCKS - 1));
	KUNIT_EXPECT_TRUE(test, lc_ranges_have(set, LC_MAX_BLOCKS - 1));
	KUNIT_EXPECT_FALSE(test, lc_ranges_have(set, BLOCKS - 1));
}

static struct kunit_case backscan_cases[] = {
	KUNIT_CASE(by_seq),
	KUNIT_CASE(gap),
	KUNIT_CASE(group),
	KUNIT_CASE(group_without_number),
	KUNIT_CASE(dead_records),
	KUNIT_CASE(dead_for_a_missing_one),
	KUNIT_CASE(above_a_later_life),
	KUNIT_CASE(first_record_elsewhere),
	KUNIT_CASE(where_a_later_life_began),
	KUNIT_CASE(life_is_missing),
	KUNIT_CASE(life_is_late),
	KUNIT_CASE(written_twice),
	KUNIT_CASE(placeholder),
	KUNIT_CASE(order_of_lives),
	KUNIT_CASE(too_many),
	KUNIT_CASE(whole),
	KUNIT_CASE(ranges_against_bits),
	KUNIT_CASE(ranges_full),
	{}
};

static struct kunit_suite backscan_suite = {
	.name = "dm_lc_backscan",
	.test_cases = backscan_cases,
};

kunit_test_suite(backscan_suite);
