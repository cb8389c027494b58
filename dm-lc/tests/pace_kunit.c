// SPDX-License-Identifier: GPL-2.0-only
/* How fast the log may be filled while it is as good as full. */
#include <kunit/test.h>

#include "../writeback/pace.h"

/* Many batches, all alike, of a HDD that moves so often a second. */
static void measure(struct lc_pace *pace, u32 nr, u32 runs, u32 moves)
{
	u32 i;

	for (i = 0; i < 40; i++) {
		lc_pace_begin(pace, nr, runs, nr);
		lc_pace_end(pace, nr, runs, (u64)runs * HZ / moves, 0);
	}
}

/* There is room: no waiting. */
static void free_way(struct kunit *test)
{
	struct lc_pace pace;

	lc_pace_init(&pace);
	KUNIT_EXPECT_NE(test, lc_pace_wait(&pace, 256, 64, 64), 0);
	KUNIT_EXPECT_EQ(test, lc_pace_wait(&pace, 256, 65, 64), 0);
}

struct shape {
	const char *name;
	u32 slots;	/* of a segment */
	u32 batch;
	u32 moves;
	u32 frees;	/* segments */
};

static const struct shape shapes[] = {
	{ "64 KiB", 16, 512, 400, 32 },
	{ "1 MiB", 256, 8192, 400, 32 },
	{ "1 MiB, a slow disk", 256, 8192, 60, 32 },
	{ "1 MiB, hot blocks", 256, 2048, 100, 2048 },
	{ "4 MiB", 1024, 8192, 400, 8 },
};

KUNIT_ARRAY_PARAM_DESC(shapes, shapes, name);

/*
 * What two batches free is free when the first of many begins, writers take what they get:
 * there is always some room left, nobody waits for a good part of a batch, and as much is
 * written as is drained.
 */
static void steady(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	unsigned long now, last = 0, longest = 0, length = shape->batch * HZ / shape->moves;
	u64 zone = 2 * shape->frees, free = zone, taken = 0;
	struct lc_pace pace;

	lc_pace_init(&pace);
	measure(&pace, shape->batch, shape->batch, shape->moves);
	lc_pace_begin(&pace, shape->batch, shape->batch, shape->frees * shape->slots);
	for (now = 0; now < 20 * length; now++) {
		if (now && !(now % length))
			free += zone / 2;
		if (!free || now - last < lc_pace_wait(&pace, shape->slots, free, zone))
			continue;
		longest = max(longest, now - last);
		last = now;
		free--;
		taken++;
	}
	KUNIT_EXPECT_LE(test, longest, length / 2);
	KUNIT_EXPECT_LE(test, longest, 8 * length / shape->frees + 1);
	KUNIT_EXPECT_GE(test, free, 1);
	KUNIT_EXPECT_GE(test, taken, 18 * zone / 2);
}

/* Neighbours cost little; what comes in runs is let in as much faster, from the first batch on. */
static void runs(struct kunit *test)
{
	unsigned long single, sixteen;
	struct lc_pace pace;

	lc_pace_init(&pace);
	measure(&pace, 8192, 8192, 100);
	lc_pace_begin(&pace, 8192, 8192, 8192);
	single = lc_pace_wait(&pace, 256, 64, 64);
	KUNIT_EXPECT_GE(test, single, 256 * HZ / 220);
	KUNIT_EXPECT_LE(test, single, 256 * HZ / 180);
	lc_pace_begin(&pace, 8192, 512, 8192);
	sixteen = lc_pace_wait(&pace, 256, 64, 64);
	KUNIT_EXPECT_LE(test, sixteen, single / 13);
	KUNIT_EXPECT_GE(test, sixteen, single / 18);
	/* And the other way round: much in sequence, then at random. */
	measure(&pace, 8192, 1, 5);
	lc_pace_begin(&pace, 8192, 8192, 8192);
	KUNIT_EXPECT_GE(test, pace.rate, 50);
	KUNIT_EXPECT_LE(test, pace.rate, 1000);
}

/* A few blocks, each waited for with a FLUSH, do not make the HDD look slow. */
static void small_batches(struct kunit *test)
{
	struct lc_pace pace;
	u32 i;

	lc_pace_init(&pace);
	measure(&pace, 8192, 8192, 400);
	for (i = 0; i < 100; i++)
		lc_pace_end(&pace, 1, 1, HZ / 40, 0);
	lc_pace_begin(&pace, 8192, 8192, 8192);
	KUNIT_EXPECT_GE(test, pace.rate, 300);
	KUNIT_EXPECT_LE(test, pace.rate, 450);
}

/* Three times as long as the moves take, but not long; blocks of one run cost little. */
static void backoff(struct kunit *test)
{
	struct lc_pace pace;

	lc_pace_init(&pace);
	measure(&pace, 8192, 8192, 400);
	KUNIT_EXPECT_GE(test, lc_pace_backoff(&pace, 8, 8), 3 * 8 * HZ / 400 - 1);
	KUNIT_EXPECT_LE(test, lc_pace_backoff(&pace, 8, 8), 3 * 8 * HZ / 380);
	KUNIT_EXPECT_LE(test, lc_pace_backoff(&pace, 4, 4 * 64), 3 * 5 * HZ / 380 + 1);
	KUNIT_EXPECT_EQ(test, lc_pace_backoff(&pace, 0, 0), 1);
	KUNIT_EXPECT_EQ(test, lc_pace_backoff(&pace, 256, 256 * 64), LC_PACE_LONGEST);
	KUNIT_EXPECT_EQ(test, lc_pace_backoff(&pace, U32_MAX, U32_MAX), LC_PACE_LONGEST);
	pace = (struct lc_pace) { .units = 0, .ticks = LC_PACE_MEMORY };
	KUNIT_EXPECT_EQ(test, lc_pace_backoff(&pace, 1, 1), LC_PACE_LONGEST);
}

/* A batch that backed off for long says nothing, one that hardly did says what it took. */
static void backed_off(struct kunit *test)
{
	struct lc_pace pace, before;
	u32 i;

	lc_pace_init(&pace);
	measure(&pace, 8192, 8192, 400);
	before = pace;
	lc_pace_end(&pace, 8192, 8192, 8192 * HZ / 100, 8192 * HZ / 133);
	KUNIT_EXPECT_MEMEQ(test, &pace, &before, sizeof(pace));
	for (i = 0; i < 40; i++)
		lc_pace_end(&pace, 8192, 8192, 8192 * HZ / 100, 8192 * HZ / 1000);
	lc_pace_begin(&pace, 8192, 8192, 8192);
	KUNIT_EXPECT_LE(test, pace.rate, 110);
}

static void extremes(struct kunit *test)
{
	struct lc_pace pace;

	lc_pace_init(&pace);
	lc_pace_begin(&pace, 1, 1, 1);
	lc_pace_end(&pace, U32_MAX, U32_MAX, 0, 0);
	lc_pace_begin(&pace, U32_MAX, 1, U32_MAX);
	KUNIT_EXPECT_GE(test, pace.rate, U32_MAX / 2);
	KUNIT_EXPECT_EQ(test, lc_pace_wait(&pace, 1024, 0, 64), 0);
	/* It hung for long: slow, but not for ever. */
	lc_pace_end(&pace, 1, 1, 1000 * HZ, 0);
	KUNIT_EXPECT_LE(test, pace.ticks, LC_PACE_MEMORY);
	pace = (struct lc_pace) { .units = 0, .ticks = LC_PACE_MEMORY };
	lc_pace_begin(&pace, 100, 100, 100);
	KUNIT_EXPECT_EQ(test, pace.rate, 1);
	KUNIT_EXPECT_EQ(test, lc_pace_wait(&pace, 16, 0, 1 << 20), 8 * 16 * HZ);
}

static struct kunit_case pace_cases[] = {
	KUNIT_CASE(free_way),
	KUNIT_CASE_PARAM(steady, shapes_gen_params),
	KUNIT_CASE(runs),
	KUNIT_CASE(small_batches),
	KUNIT_CASE(backoff),
	KUNIT_CASE(backed_off),
	KUNIT_CASE(extremes),
	{}
};

static struct kunit_suite pace_suite = {
	.name = "dm_lc_pace",
	.test_cases = pace_cases,
};

kunit_test_suite(pace_suite);
