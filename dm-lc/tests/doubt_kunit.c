// SPDX-License-Identifier: GPL-2.0-only
/* The doubtful sectors of the sampled blocks. */
#include <kunit/test.h>

#include "../store/doubt.h"
#include "../format/sample.h"

#define BLOCKS	7936u

static struct lc_doubt doubt;

/* After a start with a mark. */
static void begin_life(void)
{
	lc_doubt_init(&doubt, BLOCKS);
	lc_doubt_marked(&doubt);
}

static void flush(bool well)
{
	lc_doubt_begin(&doubt);
	lc_doubt_end(&doubt, well);
}

/* The HDD takes a write. */
static void put(u64 block, u8 mask)
{
	lc_doubt_sent(&doubt, block, mask);
	lc_doubt_taken(&doubt, block, mask, lc_doubt_failures(&doubt));
}

/* A block is a sample if and only if it is one of the list. */
static void samples(struct kunit *test)
{
	static const u64 sizes[] = { 1, 16, 63, 64, 65, 111, 112, 113, BLOCKS, 100003 };
	u64 block;
	u32 n, next, i;

	for (n = 0; n < ARRAY_SIZE(sizes); n++) {
		next = 0;
		for (block = 0; block < sizes[n]; block++) {
			bool is = next < lc_samples(sizes[n]) &&
				  lc_sample_block(sizes[n], next) == block;

			KUNIT_ASSERT_EQ_MSG(test, lc_sample_of(sizes[n], block),
					    is ? (int)next : -1, "block %llu of %llu", block,
					    sizes[n]);
			next += is;
		}
		KUNIT_EXPECT_EQ(test, next, lc_samples(sizes[n]));
	}
	/* The last ones, of a volume of an exabyte. */
	for (i = 0; i < LC_SB_SAMPLES; i++)
		KUNIT_EXPECT_EQ(test, lc_sample_of(1ULL << 48, lc_sample_block(1ULL << 48, i)),
				(int)i);
}

/* Only what was sent since the last good FLUSH, and only of samples. */
static void failed_flush(struct kunit *test)
{
	begin_life();
	put(3, 0xff);
	flush(true);
	put(17, 0xff);
	KUNIT_ASSERT_EQ(test, lc_sample_of(BLOCKS, 17), -1);
	flush(false);
	KUNIT_EXPECT_FALSE(test, lc_doubt_any(&doubt));
	/* It failed, and may have been written. */
	lc_doubt_sent(&doubt, 3, 0x01);
	flush(false);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
}

/* A user writes while a FLUSH is on its way, which fails: it may have dropped that, too. */
static void sent_meanwhile(struct kunit *test)
{
	begin_life();
	lc_doubt_begin(&doubt);
	lc_doubt_changed(&doubt, 3, 3);
	lc_doubt_changed(&doubt, 3, 3);
	lc_doubt_end(&doubt, false);
	flush(true);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	put(3, 0xff);
	flush(true);
	KUNIT_EXPECT_FALSE(test, lc_doubt_any(&doubt));
}

/* DB2: no FLUSH alone, no write alone, and no write before the FLUSH that failed. */
static void written_again(struct kunit *test)
{
	begin_life();
	put(0, 0xff);
	flush(false);
	flush(true);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	put(0, 0xff);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	flush(false);
	flush(true);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	put(1, 0xff);
	flush(true);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	put(0, 0xff);
	flush(true);
	KUNIT_EXPECT_FALSE(test, lc_doubt_any(&doubt));
}

/* Each sector by itself. */
static void in_part(struct kunit *test)
{
	begin_life();
	put(0, 0x3c);
	flush(false);
	put(0, 0x0f);
	flush(true);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	put(0, 0x30);
	flush(true);
	KUNIT_EXPECT_FALSE(test, lc_doubt_any(&doubt));
}

/* A discard is sent, and makes nothing certain; one that ends during a FLUSH may come after it. */
static void discards(struct kunit *test)
{
	begin_life();
	/* Between two samples. */
	lc_doubt_changed(&doubt, lc_sample_block(BLOCKS, 17) + 1,
			 lc_sample_block(BLOCKS, 18) - 1);
	flush(false);
	KUNIT_EXPECT_FALSE(test, lc_doubt_any(&doubt));
	lc_doubt_changed(&doubt, 5, 5);
	lc_doubt_begin(&doubt);
	lc_doubt_changed(&doubt, 5, 5);
	lc_doubt_end(&doubt, true);
	flush(false);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	lc_doubt_changed(&doubt, 5, 5);
	flush(true);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	put(5, 0xff);
	flush(true);
	KUNIT_EXPECT_FALSE(test, lc_doubt_any(&doubt));
}

/* DB3: it covers what was sent, what our own FLUSH has covered, and what was taken. */
static void flush_of_a_user(struct kunit *test)
{
	u32 before;

	begin_life();
	before = lc_doubt_failures(&doubt);
	put(3, 0xff);
	lc_doubt_begin(&doubt);
	lc_doubt_flush_failed(&doubt);
	lc_doubt_end(&doubt, true);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	KUNIT_EXPECT_NE(test, lc_doubt_failures(&doubt), before);
	/* Written before it failed: that write counts for nothing, whenever it is told of. */
	put(3, 0xff);
	before = lc_doubt_failures(&doubt);
	lc_doubt_flush_failed(&doubt);
	lc_doubt_taken(&doubt, 3, 0xff, before);
	flush(true);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	put(3, 0xff);
	flush(true);
	KUNIT_EXPECT_FALSE(test, lc_doubt_any(&doubt));
}

/* Without a mark nobody knows what an earlier life has left in the HDD's cache. */
static void earlier_life(struct kunit *test)
{
	lc_doubt_init(&doubt, BLOCKS);
	flush(false);
	KUNIT_EXPECT_TRUE(test, lc_doubt_any(&doubt));
	lc_doubt_init(&doubt, BLOCKS);
	flush(true);
	flush(false);
	KUNIT_EXPECT_FALSE(test, lc_doubt_any(&doubt));
}

static struct kunit_case doubt_cases[] = {
	KUNIT_CASE(samples),
	KUNIT_CASE(failed_flush),
	KUNIT_CASE(sent_meanwhile),
	KUNIT_CASE(written_again),
	KUNIT_CASE(in_part),
	KUNIT_CASE(discards),
	KUNIT_CASE(flush_of_a_user),
	KUNIT_CASE(earlier_life),
	{}
};

static struct kunit_suite doubt_suite = {
	.name = "dm_lc_doubt",
	.test_cases = doubt_cases,
};

kunit_test_suite(doubt_suite);
