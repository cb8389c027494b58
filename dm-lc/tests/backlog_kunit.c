// SPDX-License-Identifier: GPL-2.0-only
/* How much of the log may wait for the SSD. */
#include <kunit/test.h>

#include "../log/backlog.h"

#define SEGMENT		256u
#define MS		((u64)NSEC_PER_MSEC)

/* An SSD writes @nr segments, each in @ms, and has nothing to do for @idle between them. */
static u64 ssd_writes(struct lc_backlog *log, u64 now, u32 nr, u64 ms, u64 idle)
{
	while (nr--) {
		lc_backlog_begin(log, now);
		now += ms * MS;
		lc_backlog_end(log, now, SEGMENT);
		now += idle * MS;
	}
	return now;
}

/* Little may wait before a rate is known; then it is what is written in LC_BACKLOG_MS. */
static void rate(struct kunit *test)
{
	struct lc_backlog log = {};
	u64 now;

	KUNIT_EXPECT_EQ(test, lc_backlog_most(&log, SEGMENT, 1), LC_BACKLOG_LEAST);
	now = ssd_writes(&log, 0, 1, 25, 0);
	KUNIT_EXPECT_EQ(test, lc_backlog_most(&log, SEGMENT, 1), LC_BACKLOG_LEAST);
	now = ssd_writes(&log, now, 1, 25, 0);
	KUNIT_EXPECT_EQ(test, lc_backlog_most(&log, SEGMENT, 1), 2 + LC_BACKLOG_LEAST);
	/* It gets faster, which is noticed sooner, and slower. */
	now = ssd_writes(&log, now, LC_BACKLOG_SLOTS / SEGMENT, 1, 0);
	KUNIT_EXPECT_EQ(test, lc_backlog_most(&log, SEGMENT, 1), 50 + LC_BACKLOG_LEAST);
	KUNIT_EXPECT_EQ(test, lc_backlog_most(&log, SEGMENT, 5), 10 + LC_BACKLOG_LEAST);
	ssd_writes(&log, now, 1, 1000, 0);
	KUNIT_EXPECT_EQ(test, lc_backlog_most(&log, SEGMENT, 1), LC_BACKLOG_LEAST);
}

/* BL1: how seldom something is written does not matter. */
static void idle(struct kunit *test)
{
	struct lc_backlog log = {};

	ssd_writes(&log, 0, 5, 10, 500);
	KUNIT_EXPECT_EQ(test, lc_backlog_most(&log, SEGMENT, 1), 5 + LC_BACKLOG_LEAST);
}

/* There is always one on its way: only the first one begins. */
static void together(struct kunit *test)
{
	struct lc_backlog log = {};
	u32 i;

	lc_backlog_begin(&log, 0);
	for (i = 1; i <= 5; i++)
		lc_backlog_end(&log, i * 10 * MS, SEGMENT);
	KUNIT_EXPECT_EQ(test, lc_backlog_most(&log, SEGMENT, 1), 5 + LC_BACKLOG_LEAST);
}

/* BL2: an SSD that hardly writes, or does so at once. */
static void extremes(struct kunit *test)
{
	struct lc_backlog log = {};

	lc_backlog_begin(&log, 0);
	lc_backlog_end(&log, 3600 * (u64)NSEC_PER_SEC, 1);
	KUNIT_EXPECT_EQ(test, log.rate, 1);
	KUNIT_EXPECT_EQ(test, lc_backlog_most(&log, SEGMENT, 8), LC_BACKLOG_LEAST);
	lc_backlog_begin(&log, 0);
	lc_backlog_end(&log, 0, LC_BACKLOG_SLOTS);
	KUNIT_EXPECT_EQ(test, log.rate, U32_MAX);
	KUNIT_EXPECT_EQ(test, lc_backlog_most(&log, 8, 1),
			U32_MAX / (MSEC_PER_SEC / LC_BACKLOG_MS) / 8 + LC_BACKLOG_LEAST);
}

/* Records are pieces if a segment takes longer than LC_BACKLOG_MS. */
static void piece(struct kunit *test)
{
	struct lc_backlog log = {};
	u64 now;

	KUNIT_EXPECT_EQ(test, lc_backlog_piece(&log, SEGMENT, 1), 0);
	now = ssd_writes(&log, 0, 1, 100, 0);
	KUNIT_EXPECT_EQ(test, lc_backlog_piece(&log, SEGMENT, 1), SEGMENT / 2);
	now = ssd_writes(&log, now, 1, 1000, 0);
	KUNIT_EXPECT_EQ(test, lc_backlog_piece(&log, SEGMENT, 1), LC_BACKLOG_PIECE);
	now = ssd_writes(&log, now, 2, 50, 0);
	KUNIT_EXPECT_EQ(test, lc_backlog_piece(&log, SEGMENT, 1), 0);
	KUNIT_EXPECT_EQ(test, lc_backlog_piece(&log, SEGMENT, 2), SEGMENT);
}

static struct kunit_case backlog_cases[] = {
	KUNIT_CASE(rate),
	KUNIT_CASE(idle),
	KUNIT_CASE(together),
	KUNIT_CASE(extremes),
	KUNIT_CASE(piece),
	{}
};

static struct kunit_suite backlog_suite = {
	.name = "dm_lc_backlog",
	.test_cases = backlog_cases,
};

kunit_test_suite(backlog_suite);
