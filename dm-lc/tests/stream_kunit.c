// SPDX-License-Identifier: GPL-2.0-only
/* Sequential streams of bios. */
#include <kunit/test.h>

#include "../bio/stream.h"
#include "example.h"

static struct lc_streams streams;

/* A bio that begins where another one ended continues its stream. */
static void continued(struct kunit *test)
{
	lc_stream_init(&streams);
	KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, 0, 8), 8);
	KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, 8, 16), 24);
	KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, 24, 1), 25);
	/* A gap, the same place again, and one sector before the end. */
	KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, 26, 8), 8);
	KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, 26, 8), 8);
	KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, 24, 8), 8);
	KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, 25, 8), 33);
}

/* Sector 0 continues nothing, also while nothing is known. */
static void first_sector(struct kunit *test)
{
	u32 i;

	lc_stream_init(&streams);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, 0, 8), 8);
}

/* As many streams as there are entries go on side by side, each at its own length. */
static void side_by_side(struct kunit *test)
{
	u32 turn, i;

	lc_stream_init(&streams);
	for (turn = 0; turn < 10; turn++) {
		for (i = 0; i < LC_STREAMS; i++) {
			u64 sector = ((u64)i << 40) + turn * 8;

			KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, sector, 8), (turn + 1) * 8);
		}
	}
}

/* A stream that goes on is not forgotten, however many bios come that belong to none. */
static void random_reads(struct kunit *test)
{
	struct rnd_state rnd;
	u32 turn, i;

	lc_test_seed(test, &rnd);
	lc_stream_init(&streams);
	for (turn = 0; turn < 1000; turn++) {
		KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, turn * 8, 8), (turn + 1) * 8);
		for (i = 0; i < LC_STREAMS / 2; i++)
			lc_stream_note(&streams, 1 << 20 | example_random64(&rnd) >> 8, 8);
	}
}

/* A stream that ends makes room. */
static void old_streams_go(struct kunit *test)
{
	u32 i;

	lc_stream_init(&streams);
	for (i = 0; i < 2; i++)
		lc_stream_note(&streams, 8 * i, 8);
	for (i = 1; i <= 2 * LC_STREAMS; i++)
		lc_stream_note(&streams, (u64)i << 40, 8);
	KUNIT_EXPECT_EQ(test, lc_stream_note(&streams, 16, 8), 8);
}

/* A stream of any length has one: it does not begin again at 0. */
static void longest(struct kunit *test)
{
	u64 sector = 8;
	u32 before = 0, i, now;

	lc_stream_init(&streams);
	for (i = 0; i < 64; i++) {
		now = lc_stream_note(&streams, sector, 1 << 30);
		KUNIT_EXPECT_GE(test, now, before);
		before = now;
		sector += 1 << 30;
	}
	KUNIT_EXPECT_GE(test, before, 1 << 30);
}

static struct kunit_case stream_cases[] = {
	KUNIT_CASE(continued),
	KUNIT_CASE(first_sector),
	KUNIT_CASE(side_by_side),
	KUNIT_CASE(random_reads),
	KUNIT_CASE(old_streams_go),
	KUNIT_CASE(longest),
	{}
};

static struct kunit_suite stream_suite = {
	.name = "dm_lc_stream",
	.test_cases = stream_cases,
};

kunit_test_suite(stream_suite);
