// SPDX-License-Identifier: GPL-2.0-only
/* How fast writes that wait are continued. */
#include <kunit/test.h>

#include "../bio/throttle.h"

#define SEGMENT		255u
#define START		(ULONG_MAX - 2 * HZ)	/* jiffies wrap */

/* Writers that always want more, and segments that come at a rate. */
struct flow {
	struct lc_throttle throttle;
	unsigned long now;
	u64 supply;		/* blocks / HZ that have come, not a whole segment yet */
	u64 room;		/* blocks */
	u64 most;		/* at hand; what is above is lost */
	bool no_space;		/* nobody looks until more comes */
	u64 written, largest;	/* in all; in one tick */
	u64 bio, left;		/* blocks; of the first one */
	u32 idle;		/* ticks without a write, a segment was at hand */
};

static bool flow_may(struct flow *flow)
{
	return lc_throttle_may_admit(&flow->throttle, flow->now) ||
	       lc_throttle_has_spare(&flow->throttle, flow->now, flow->room / SEGMENT,
				     flow->most / SEGMENT);
}

static void flow_tick(struct flow *flow, u32 rate)
{
	u64 now = 0;

	flow->supply += rate;
	while (flow->supply >= SEGMENT * HZ) {
		flow->supply -= SEGMENT * HZ;
		flow->room = min(flow->room + SEGMENT, flow->most);
		flow->no_space = false;
	}
	while (!flow->no_space && flow_may(flow)) {
		u64 nr = min(flow->room, flow->left);

		flow->room -= nr;
		lc_throttle_count(&flow->throttle, flow->now, nr);
		now += nr;
		flow->left -= nr;
		if (flow->left) {
			lc_throttle_no_space(&flow->throttle);
			flow->no_space = true;
		} else {
			flow->left = flow->bio;
		}
	}
	flow->idle += !now && flow->room >= SEGMENT;
	flow->written += now;
	flow->largest = max(flow->largest, now);
	flow->now++;
}

static void flow_run(struct flow *flow, u32 rate, u32 ticks)
{
	flow->written = 0;
	flow->largest = 0;
	flow->idle = 0;
	while (ticks--)
		flow_tick(flow, rate);
}

static void flow_init(struct flow *flow, u32 bio)
{
	*flow = (struct flow) { .now = START, .most = 16 * SEGMENT };
	flow->bio = bio;
	flow->left = bio;
	lc_throttle_stop(&flow->throttle);
}

static const u32 rates[] = { 40, 500, 15000, 100000 };

static void rate_desc(const u32 *rate, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u blocks a second", *rate);
}

KUNIT_ARRAY_PARAM(rates, rates, rate_desc);

/* All that comes is written, and in each tick about as much as in every other. */
static void steady(struct kunit *test)
{
	u32 rate = *(const u32 *)test->param_value;
	struct flow flow;

	flow_init(&flow, 1);
	/* Twenty segments: what was at hand is gone, and the rate is known. */
	flow_run(&flow, rate, max(20 * SEGMENT * HZ / rate, 4u * HZ));
	flow_run(&flow, rate, 40 * HZ);
	KUNIT_EXPECT_GE(test, flow.written, 40 * rate - 2 * SEGMENT);
	KUNIT_EXPECT_LE(test, flow.largest, rate * 5 / 4 / HZ + 2);
}

/* Faster or slower than it was: what comes is soon written as fast again (M2). */
static void change(struct kunit *test)
{
	struct flow flow;

	flow_init(&flow, 1);
	flow_run(&flow, 500, 20 * HZ);
	flow_run(&flow, 50000, HZ);
	KUNIT_EXPECT_GE(test, flow.written, 50000 - 9 * SEGMENT);
	flow_run(&flow, 500, 2 * HZ);
	flow_run(&flow, 500, 20 * HZ);
	KUNIT_EXPECT_GE(test, flow.written, 20 * 500 - 2 * SEGMENT);
	KUNIT_EXPECT_LE(test, flow.largest, 500 * 5 / 4 / HZ + 2);
	/* Nothing for long, then as before: the first rates are far too low. */
	flow_run(&flow, 0, 30 * HZ);
	flow_run(&flow, 15000, 2 * HZ);
	KUNIT_EXPECT_GE(test, flow.written, 2 * 15000 - 9 * SEGMENT);
}

/* A hard disk that hung: what was measured meanwhile is soon forgotten. */
static void stall(struct kunit *test)
{
	struct flow flow;

	flow_init(&flow, 1);
	flow_run(&flow, 250, 20 * HZ);
	flow_run(&flow, 0, 30 * HZ);
	flow_run(&flow, 250, 5 * HZ);
	flow_run(&flow, 250, 20 * HZ);
	KUNIT_EXPECT_GE(test, flow.written, 20 * 250 - SEGMENT);
	KUNIT_EXPECT_LE(test, flow.room, 2 * SEGMENT);
}

/* A large bio is let through as a whole, and what follows waits the longer. */
static void large(struct kunit *test)
{
	struct flow flow;

	flow_init(&flow, 128);
	flow_run(&flow, 15000, 4 * HZ);
	flow_run(&flow, 15000, 20 * HZ);
	KUNIT_EXPECT_GE(test, flow.written, 20 * 15000 - 3 * SEGMENT);
	KUNIT_EXPECT_LE(test, flow.largest, 15000 * 5 / 4 / HZ + 129);
	/* Its debt is worked off while there is no room: what comes is not left lying. */
	flow_init(&flow, 128);
	flow_run(&flow, 250, 20 * HZ);
	flow_run(&flow, 250, 40 * HZ);
	KUNIT_EXPECT_GE(test, flow.written, 40 * 250 - SEGMENT);
	KUNIT_EXPECT_EQ(test, flow.idle, 0);
}

/* Nothing is held back before the rate is known, nor after a stop. */
static void unknown(struct kunit *test)
{
	const unsigned long later = START + LC_THROTTLE_SPAN;
	struct lc_throttle throttle;
	u32 i;

	lc_throttle_stop(&throttle);
	for (i = 0; i < 10000; i++) {
		KUNIT_ASSERT_TRUE(test, lc_throttle_may_admit(&throttle, START));
		lc_throttle_count(&throttle, START, 1);
	}
	lc_throttle_no_space(&throttle);
	KUNIT_EXPECT_TRUE(test, lc_throttle_may_admit(&throttle, START));
	lc_throttle_count(&throttle, START, 1);
	lc_throttle_no_space(&throttle);
	lc_throttle_count(&throttle, later - 1, 1);	/* too soon to say */
	KUNIT_EXPECT_EQ(test, throttle.rate, 0);
	lc_throttle_no_space(&throttle);
	lc_throttle_count(&throttle, later, 0);	/* there is still no room */
	KUNIT_EXPECT_EQ(test, throttle.rate, 0);
	lc_throttle_count(&throttle, later, 1);
	KUNIT_EXPECT_GE(test, throttle.rate, 2 * HZ / LC_THROTTLE_SPAN);
	KUNIT_EXPECT_FALSE(test, lc_throttle_may_admit(&throttle, later));
	KUNIT_EXPECT_FALSE(test, lc_throttle_has_spare(&throttle, later, 7, 16));
	KUNIT_EXPECT_TRUE(test, lc_throttle_has_spare(&throttle, later, 8, 16));
	lc_throttle_stop(&throttle);
	KUNIT_EXPECT_TRUE(test, lc_throttle_may_admit(&throttle, later));
}

/* With plenty of room writes need not queue, but never take the last of it (C7). */
static void passes(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, lc_throttle_may_pass(8, 16));
	KUNIT_EXPECT_TRUE(test, lc_throttle_may_pass(2, 2));
	KUNIT_EXPECT_FALSE(test, lc_throttle_may_pass(7, 16));
	KUNIT_EXPECT_FALSE(test, lc_throttle_may_pass(1, 1));
	KUNIT_EXPECT_FALSE(test, lc_throttle_may_pass(0, 0));
}

/* What passed was not counted: no rate is made of it. */
static void missed(struct kunit *test)
{
	unsigned long later = START + LC_THROTTLE_SPAN;
	struct lc_throttle throttle;

	lc_throttle_stop(&throttle);
	lc_throttle_no_space(&throttle);
	lc_throttle_count(&throttle, START, 1);
	lc_throttle_missed(&throttle);
	lc_throttle_no_space(&throttle);
	lc_throttle_count(&throttle, later, 1);
	KUNIT_EXPECT_EQ(test, throttle.rate, 0);
	lc_throttle_no_space(&throttle);
	lc_throttle_count(&throttle, later + LC_THROTTLE_SPAN, 1);
	KUNIT_EXPECT_GT(test, throttle.rate, 0);
}

static struct kunit_case throttle_cases[] = {
	KUNIT_CASE(passes),
	KUNIT_CASE(missed),
	KUNIT_CASE_PARAM(steady, rates_gen_params),
	KUNIT_CASE(change),
	KUNIT_CASE(stall),
	KUNIT_CASE(large),
	KUNIT_CASE(unknown),
	{}
};

static struct kunit_suite throttle_suite = {
	.name = "dm_lc_throttle",
	.test_cases = throttle_cases,
};

kunit_test_suite(throttle_suite);
