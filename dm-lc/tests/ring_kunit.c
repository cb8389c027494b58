// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring of segments: numbers rise for ever, places repeat, and no place is
 * handed out before the tail has left it and the last reader is gone.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>

#include "../store/ring.h"
#include "example.h"

static struct lc_ring *ring_create(struct kunit *test, struct lc_geometry *geo)
{
	struct lc_ring *ring;

	KUNIT_ASSERT_EQ(test, lc_geometry_compute(geo, 8 << 20, LC_SEGMENT_BYTES_MIN), 0);
	ring = lc_ring_create(geo);
	KUNIT_ASSERT_NOT_NULL(test, ring);
	return ring;
}

static void fresh(struct kunit *test)
{
	struct lc_geometry geo;
	struct lc_ring *ring = ring_create(test, &geo);
	u64 number;

	lc_ring_start(ring, 1, 1, 1);
	KUNIT_EXPECT_EQ(test, lc_ring_free(ring), geo.nr_segments);
	KUNIT_EXPECT_EQ(test, lc_ring_head(ring), 1);
	KUNIT_EXPECT_EQ(test, lc_ring_tail(ring), 1);
	KUNIT_EXPECT_TRUE(test, lc_ring_take(ring, 0, &number));
	KUNIT_EXPECT_EQ(test, number, 1);
	KUNIT_EXPECT_EQ(test, lc_ring_free(ring), geo.nr_segments - 1);
	lc_ring_destroy(ring);
}

/* Until the reserve is reached, then not one more; the tail frees as many as it moves. */
static void reserve(struct kunit *test)
{
	struct lc_geometry geo;
	struct lc_ring *ring = ring_create(test, &geo);
	u64 keep, number, taken;

	for (keep = 0; keep < 4; keep++) {
		lc_ring_start(ring, 5, 1, 5);
		for (taken = 0; lc_ring_take(ring, keep, &number); taken++)
			KUNIT_EXPECT_EQ(test, number, 5 + taken);
		KUNIT_EXPECT_EQ(test, taken, geo.nr_segments - keep);
		KUNIT_EXPECT_EQ(test, lc_ring_free(ring), keep);
		number = 12345;
		KUNIT_EXPECT_FALSE(test, lc_ring_take(ring, keep, &number));
		KUNIT_EXPECT_EQ(test, number, 12345);
		lc_ring_set_tail(ring, 8, 1);
		for (taken = 0; lc_ring_take(ring, keep, &number); taken++)
			;
		KUNIT_EXPECT_EQ(test, taken, 3);
	}
	lc_ring_destroy(ring);
}

/* A full log of one lane goes on with several: writers get every second segment. */
static void reserve_grows(struct kunit *test)
{
	struct lc_geometry geo;
	struct lc_ring *ring = ring_create(test, &geo);
	u64 few, most, taken = 0, tail, number;

	lc_ring_start(ring, 1, 1, 1);
	lc_ring_keep(ring, 1, 1);
	few = ring->reserve;
	lc_ring_keep(ring, 1, geo.nr_segments / 16);
	most = ring->reserve;
	KUNIT_EXPECT_GT(test, few, 0);
	KUNIT_ASSERT_GT(test, most, few + 4);
	/* The log was left by as many lanes: all of it, however little is free. */
	lc_ring_start(ring, 1, 1, 1 + geo.nr_segments - few);
	lc_ring_keep(ring, geo.nr_segments / 16, 1);
	KUNIT_EXPECT_EQ(test, ring->reserve, most);
	lc_ring_keep(ring, 1, geo.nr_segments / 16);
	KUNIT_EXPECT_EQ(test, ring->reserve, few);
	for (tail = 2; tail <= geo.nr_segments - few; tail++) {
		lc_ring_set_tail(ring, tail, 1);
		taken += lc_ring_take(ring, ring->reserve, &number);
		KUNIT_EXPECT_GE(test, lc_ring_free(ring), ring->reserve);
		if (ring->reserve < most)
			KUNIT_EXPECT_EQ(test, taken, tail / 2);
	}
	KUNIT_EXPECT_EQ(test, ring->reserve, most);
	KUNIT_EXPECT_EQ(test, lc_ring_free(ring), most);
	lc_ring_destroy(ring);
}

/* Lap after lap: the place of a number that is handed out is one the tail has left. */
static void wrap(struct kunit *test)
{
	static const u64 starts[] = { 1, 1000, 0xffffffffULL - 50, (1ULL << 40) - 7 };
	struct lc_geometry geo;
	struct lc_ring *ring = ring_create(test, &geo);
	struct rnd_state rnd;
	u32 i, round;

	lc_test_seed(test, &rnd);
	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		u64 tail = starts[i], expect = tail, number;

		lc_ring_start(ring, tail, 1, tail);
		for (round = 0; round < 2000; round++) {
			if (prandom_u32_state(&rnd) & 1) {
				tail += prandom_u32_state(&rnd) % (expect - tail + 1);
				lc_ring_set_tail(ring, tail, 1);
			}
			if (lc_ring_take(ring, 1, &number)) {
				KUNIT_EXPECT_EQ(test, number, expect);
				KUNIT_EXPECT_LT(test, number, tail + geo.nr_segments);
				KUNIT_EXPECT_EQ(test, lc_ring_position(ring, number),
						lc_format_position(&geo, number));
				expect++;
			} else {
				KUNIT_EXPECT_EQ(test, expect, tail + geo.nr_segments - 1);
			}
		}
		KUNIT_EXPECT_EQ(test, lc_ring_head(ring), expect);
		KUNIT_EXPECT_EQ(test, lc_ring_tail(ring), tail);
	}
	lc_ring_destroy(ring);
}

/* What the index may map at a start is numbered: the last lap before the head. */
static void start_numbers(struct kunit *test)
{
	static const u64 heads[] = { 1, 2, 50, 5000, 1ULL << 33 };
	struct lc_geometry geo;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(heads); i++) {
		struct lc_ring *ring = ring_create(test, &geo);
		u64 head = heads[i], n;

		lc_ring_start(ring, head > 10 ? head - 10 : 1, 1, head);
		for (n = head > geo.nr_segments ? head - geo.nr_segments : 1; n < head; n++)
			KUNIT_EXPECT_EQ(test, ring->segments[lc_ring_position(ring, n)].number, n);
		lc_ring_destroy(ring);
	}
}

static void slots(struct kunit *test)
{
	struct lc_geometry geo;
	u32 seg;

	for (seg = LC_SEGMENT_BYTES_MIN; seg <= LC_SEGMENT_BYTES_MAX; seg *= 2) {
		struct lc_ring *ring;
		u32 last;

		KUNIT_ASSERT_EQ(test, lc_geometry_compute(&geo, 256 << 20, seg), 0);
		ring = lc_ring_create(&geo);
		KUNIT_ASSERT_NOT_NULL(test, ring);
		last = geo.nr_slots - 1;
		KUNIT_EXPECT_PTR_EQ(test, lc_ring_segment(ring, 0), ring->segments);
		KUNIT_EXPECT_PTR_EQ(test, lc_ring_segment(ring, geo.seg_slots - 1), ring->segments);
		KUNIT_EXPECT_PTR_EQ(test, lc_ring_segment(ring, geo.seg_slots),
				    ring->segments + 1);
		KUNIT_EXPECT_PTR_EQ(test, lc_ring_segment(ring, last),
				    ring->segments + geo.nr_segments - 1);
		KUNIT_EXPECT_EQ(test, lc_ring_slot_in_segment(ring, last), geo.seg_slots - 1);
		KUNIT_EXPECT_EQ(test, lc_ring_slot_in_segment(ring, geo.seg_slots), 0);
		lc_ring_destroy(ring);
	}
}

/* If idle says no, exactly the last put says yes. */
static void waiting(struct kunit *test)
{
	struct lc_geometry geo;
	struct lc_ring *ring = ring_create(test, &geo);
	struct lc_segment *seg = &ring->segments[3], *other = &ring->segments[4];

	KUNIT_EXPECT_TRUE(test, lc_segment_idle(ring, seg));
	lc_segment_get(seg);
	KUNIT_EXPECT_FALSE(test, lc_segment_put(ring, seg));	/* nobody waits */
	lc_segment_get(seg);
	lc_segment_get(seg);
	lc_segment_get(other);
	KUNIT_EXPECT_FALSE(test, lc_segment_idle(ring, seg));
	KUNIT_EXPECT_FALSE(test, lc_segment_put(ring, seg));
	KUNIT_EXPECT_TRUE(test, lc_segment_put(ring, seg));
	KUNIT_EXPECT_TRUE(test, lc_segment_idle(ring, seg));
	KUNIT_EXPECT_FALSE(test, lc_segment_put(ring, other));
	lc_ring_destroy(ring);
}

/* All numbers are handed out, and the tail is @nr further: so many more are free. */
static void use_up(struct kunit *test, struct lc_ring *ring, u64 nr)
{
	u64 number;

	lc_ring_start(ring, 1, 1, 1);
	while (lc_ring_take(ring, 0, &number))
		;
	KUNIT_ASSERT_EQ(test, number, ring->nr);
	lc_ring_set_tail(ring, 1 + nr, 1);
}

/* GR2: a place that is being filled is not handed out, nor is one behind it; then both are. */
static void filling(struct kunit *test)
{
	struct lc_geometry geo;
	struct lc_ring *ring = ring_create(test, &geo);
	u64 number, tries;

	use_up(test, ring, 4);
	lc_ring_fill(ring, 2);
	KUNIT_EXPECT_FALSE(test, lc_ring_blocked(ring));
	KUNIT_EXPECT_TRUE(test, lc_ring_take(ring, 0, &number));
	KUNIT_EXPECT_EQ(test, number, geo.nr_segments + 1);
	number = 12345;
	for (tries = 0; tries < 2; tries++) {
		KUNIT_EXPECT_TRUE(test, lc_ring_blocked(ring));
		KUNIT_EXPECT_FALSE(test, lc_ring_take(ring, 0, &number));
	}
	KUNIT_EXPECT_EQ(test, number, 12345);
	KUNIT_EXPECT_EQ(test, lc_ring_head(ring), geo.nr_segments + 2);
	KUNIT_EXPECT_EQ(test, lc_ring_free(ring), 3);
	lc_ring_filled(ring, 2);
	KUNIT_EXPECT_FALSE(test, lc_ring_blocked(ring));
	for (tries = 2; tries <= 4; tries++) {
		KUNIT_EXPECT_TRUE(test, lc_ring_take(ring, 0, &number));
		KUNIT_EXPECT_EQ(test, number, geo.nr_segments + tries);
	}
	KUNIT_EXPECT_FALSE(test, lc_ring_take(ring, 0, &number));
	lc_ring_destroy(ring);
}

/* Several places at once, and one of them only in the way. */
static void filling_several(struct kunit *test)
{
	struct lc_geometry geo;
	struct lc_ring *ring = ring_create(test, &geo);
	u64 number;

	use_up(test, ring, 3);
	lc_ring_fill(ring, 1);
	lc_ring_fill(ring, 2);
	lc_ring_filled(ring, 2);
	KUNIT_EXPECT_FALSE(test, lc_ring_take(ring, 0, &number));
	lc_ring_fill(ring, 3);
	lc_ring_filled(ring, 1);
	KUNIT_EXPECT_TRUE(test, lc_ring_take(ring, 0, &number));
	KUNIT_EXPECT_TRUE(test, lc_ring_take(ring, 0, &number));
	KUNIT_EXPECT_EQ(test, number, geo.nr_segments + 2);
	KUNIT_EXPECT_FALSE(test, lc_ring_take(ring, 0, &number));
	KUNIT_EXPECT_TRUE(test, lc_ring_blocked(ring));
	lc_ring_filled(ring, 3);
	KUNIT_EXPECT_TRUE(test, lc_ring_take(ring, 0, &number));
	lc_ring_destroy(ring);
}

/* A segment of an earlier life: as long as its place was not handed out (WS7). */
static void filling_old(struct kunit *test)
{
	struct lc_geometry geo;
	struct lc_ring *ring = ring_create(test, &geo);
	u64 number;

	use_up(test, ring, 3);
	KUNIT_EXPECT_TRUE(test, lc_ring_fill_old(ring, 1));
	KUNIT_EXPECT_FALSE(test, lc_ring_take(ring, 0, &number));
	lc_ring_filled(ring, 1);
	KUNIT_EXPECT_TRUE(test, lc_ring_take(ring, 0, &number));
	KUNIT_EXPECT_EQ(test, number, geo.nr_segments + 1);
	KUNIT_EXPECT_FALSE(test, lc_ring_fill_old(ring, 1));
	KUNIT_EXPECT_TRUE(test, lc_ring_fill_old(ring, 2));
	KUNIT_EXPECT_TRUE(test, lc_ring_blocked(ring));
	lc_ring_filled(ring, 2);
	KUNIT_EXPECT_FALSE(test, lc_ring_blocked(ring));
	lc_ring_destroy(ring);
}

/* Counted from the number of the slot's own segment, wherever in the ring that is. */
static void half_a_lap(struct kunit *test)
{
	static const u64 numbers[] = { 1, 700, 5000 };
	struct lc_geometry geo;
	struct lc_ring *ring = ring_create(test, &geo);
	u64 number;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		u64 wanted = numbers[i];
		u32 slot = lc_ring_position(ring, wanted) * geo.seg_slots + 3;

		lc_ring_start(ring, wanted, 1, wanted);
		ring->segments[lc_ring_position(ring, wanted)].number = wanted;
		while (lc_ring_take(ring, 0, &number) && number < wanted + geo.nr_segments / 2 - 1)
			KUNIT_EXPECT_FALSE(test, lc_ring_half_a_lap(ring, slot));
		KUNIT_EXPECT_FALSE(test, lc_ring_half_a_lap(ring, slot));
		while (lc_ring_take(ring, 0, &number))
			KUNIT_EXPECT_TRUE(test, lc_ring_half_a_lap(ring, slot));
		KUNIT_EXPECT_EQ(test, number, wanted + geo.nr_segments - 1);
	}
	lc_ring_destroy(ring);
}

/* --- reader and refill at once -------------------------------------------- */

struct race {
	struct lc_ring *ring;
	struct lc_segment *seg;
	atomic_t refs;		/* readers may start while it is above 0 */
	atomic_t wakes;
	atomic_t ended;		/* rounds that the reader is through with */
};

static int reader_thread(void *data)
{
	struct race *r = data;

	while (!kthread_should_stop()) {
		if (atomic_dec_if_positive(&r->refs) < 0) {
			usleep_range(10, 20);
			continue;
		}
		if (lc_segment_put(r->ring, r->seg))
			atomic_inc(&r->wakes);
		atomic_inc(&r->ended);
	}
	return 0;
}

/* The reader may be told to wake somebody who has seen no reference: that is no later round's. */
static void wait_for_reader(const struct race *r, u32 round)
{
	u32 patience;

	for (patience = 0; atomic_read(&r->ended) < round && patience < 5000; patience++)
		usleep_range(10, 1000);
}

/* The one who waits is woken or saw no reference: never neither. */
static void no_lost_wakeup(struct kunit *test)
{
	struct lc_geometry geo;
	struct race race = { .ring = ring_create(test, &geo) };
	struct task_struct *task;
	u32 round, patience;

	race.seg = &race.ring->segments[0];
	task = kthread_run(reader_thread, &race, "lc-test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (round = 0; round < 2000; round++) {
		wait_for_reader(&race, round);
		atomic_set(&race.wakes, 0);
		lc_segment_get(race.seg);
		atomic_set(&race.refs, 1);
		if (round & 1)
			udelay(round % 40);
		if (lc_segment_idle(race.ring, race.seg))
			continue;
		for (patience = 0; !atomic_read(&race.wakes) && patience < 5000; patience++)
			usleep_range(10, 1000);
		KUNIT_EXPECT_EQ(test, atomic_read(&race.wakes), 1);
		KUNIT_EXPECT_TRUE(test, lc_segment_idle(race.ring, race.seg));
	}
	kthread_stop(task);
	lc_ring_destroy(race.ring);
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(fresh),
	KUNIT_CASE(reserve),
	KUNIT_CASE(reserve_grows),
	KUNIT_CASE(wrap),
	KUNIT_CASE(start_numbers),
	KUNIT_CASE(slots),
	KUNIT_CASE(waiting),
	KUNIT_CASE(filling),
	KUNIT_CASE(filling_several),
	KUNIT_CASE(filling_old),
	KUNIT_CASE(half_a_lap),
	KUNIT_CASE_SLOW(no_lost_wakeup),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "dm_lc_ring",
	.test_cases = ring_cases,
};

kunit_test_suite(ring_suite);
