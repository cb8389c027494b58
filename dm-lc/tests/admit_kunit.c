// SPDX-License-Identifier: GPL-2.0-only
/* Which blocks that are read are promoted.  What that is worth is seen in tests/sim. */
#include <kunit/test.h>

#include "../store/admit.h"
#include "example.h"

#define SEG_SLOTS	256u
#define SLOTS		(64u * SEG_SLOTS)
#define LONG		256u		/* sectors: not for the first touch */
#define SECOND		LC_ADMIT_PROMOTED
#define FIRST		(LC_ADMIT_PROMOTED | LC_ADMIT_FIRST)

static void destroy(void *admit)
{
	lc_admit_destroy(admit);
}

static struct lc_admit *create(struct kunit *test)
{
	struct lc_admit *admit = lc_admit_create(SLOTS, SEG_SLOTS);

	KUNIT_ASSERT_NOT_NULL(test, admit);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, destroy, admit), 0);
	return admit;
}

/* AD1, of every size from the smallest SSD on. */
static void memory(struct kunit *test)
{
	u64 slots;

	for (slots = 256; slots < LC_MAX_SLOTS; slots += slots / 3)
		KUNIT_EXPECT_LE(test, lc_admit_need(slots), slots / 2);
}

/* The second miss promotes, if the first one is not too long ago. */
static void second_touch(struct kunit *test)
{
	struct lc_admit *admit = create(test);
	u32 i, seen = 0;

	for (i = 0; i < 1000; i++)
		seen += lc_admit_miss(admit, i * 17, LONG) == SECOND;
	/* One in 32 looks like another one. */
	KUNIT_EXPECT_LT(test, seen, 100);
	for (i = 0; i < 1000; i++)
		KUNIT_EXPECT_EQ(test, lc_admit_miss(admit, i * 17, LONG), SECOND);
	for (i = 0; i < 10 * SLOTS; i++)
		lc_admit_miss(admit, 1000000 + i, LONG);
	for (seen = 0, i = 0; i < 1000; i++)
		seen += lc_admit_miss(admit, i * 17, LONG) == SECOND;
	KUNIT_EXPECT_LT(test, seen, 100);
}

/* Neither blocks that are neighbours nor any others at equal distances share their words. */
static void distances(struct kunit *test)
{
	u32 shift, i, seen;

	for (shift = 0; shift < 40; shift++) {
		struct lc_admit *admit = create(test);

		for (i = 0; i < SLOTS / 8; i++)
			lc_admit_miss(admit, (u64)i << shift, LONG);
		for (seen = 0, i = 0; i < SLOTS / 8; i++)
			seen += !!lc_admit_miss(admit, (u64)i << shift, LONG);
		KUNIT_EXPECT_GT_MSG(test, seen, SLOTS / 8 * 9 / 10, "blocks times 2^%u", shift);
	}
}

/* Nothing of a long stream is promoted, nor remembered. */
static void long_streams(struct kunit *test)
{
	struct lc_admit *admit = create(test);
	u32 i;

	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, lc_admit_miss(admit, 5, LC_ADMIT_CUTOFF + 1), 0);
	KUNIT_EXPECT_NE(test, lc_admit_miss(admit, 5, LONG), SECOND);
}

/*
 * A segment of blocks is reused, all of them with the same flags.  @promote: for promoted blocks.
 * Return: how many are kept.
 */
static u32 reuse(struct lc_admit *admit, u8 flags, bool promote)
{
	u32 i, kept = 0;

	lc_admit_reuse(admit);
	lc_admit_ceded(admit, promote ? SEG_SLOTS : 0);
	for (i = 0; i < SEG_SLOTS; i++) {
		if (lc_admit_keep(admit, flags))
			kept++;
		else
			lc_admit_evicted(admit, i, flags);
	}
	return kept;
}

/* How many of 1000 blocks that were never seen before are promoted at once. */
static u32 firsts(struct lc_admit *admit, u64 *block)
{
	u32 i, nr = 0;

	for (i = 0; i < 1000; i++)
		nr += lc_admit_miss(admit, *block += 7, 8) == FIRST;
	return nr;
}

/* The first touch is for as long as its blocks are hit, and is tried again now and then. */
static void score(struct kunit *test)
{
	struct lc_admit *admit = create(test);
	u64 block = 1 << 20;
	u32 turn, i, nr;

	for (turn = 0; turn < 3; turn++) {
		for (i = 0; i < 100; i++) {
			reuse(admit, FIRST | LC_ADMIT_HIT_YOUNG, true);
			/* Pay for it. */
			for (nr = 0; nr < 64; nr++)
				lc_admit_hits(admit);
		}
		KUNIT_EXPECT_GT(test, firsts(admit, &block), 900);
		for (i = 0; i < 100; i++)
			reuse(admit, FIRST, true);
		for (i = 0; i < 10000; i++)
			lc_admit_hits(admit);
		nr = firsts(admit, &block);
		KUNIT_EXPECT_GT(test, nr, 20);
		KUNIT_EXPECT_LT(test, nr, 120);
	}
}

/* So is the second touch, with a score of its own. */
static void score_of_second(struct kunit *test)
{
	struct lc_admit *admit = create(test);
	u32 i, nr = 0;

	for (i = 0; i < 100; i++)
		reuse(admit, SECOND, true);
	for (i = 0; i < 2000; i++)
		nr += lc_admit_miss(admit, (i / 2) * 17, LONG) == SECOND;
	KUNIT_EXPECT_GT(test, nr, 20);
	KUNIT_EXPECT_LT(test, nr, 150);
	for (i = 0; i < 100; i++)
		reuse(admit, SECOND | LC_ADMIT_HIT_OLD, true);
	for (nr = 0, i = 0; i < 2000; i++)
		nr += lc_admit_miss(admit, 1 << 20 | (i / 2) * 17, LONG) == SECOND;
	KUNIT_EXPECT_GE(test, nr, 1000);
}

/* However well the first touch pays, writes and promotions use up what it may take. */
static void budget(struct kunit *test)
{
	struct lc_admit *admit = create(test);
	u64 block = 1 << 20;
	u32 i, nr = 0, promote;

	for (i = 0; i < 100; i++)
		reuse(admit, FIRST | LC_ADMIT_HIT_YOUNG, true);
	for (promote = 0; promote < 2; promote++) {
		for (i = 0; i < 100; i++)
			reuse(admit, 0, promote);
		KUNIT_EXPECT_EQ(test, firsts(admit, &block), 0);
		for (i = 0; i < SLOTS / LC_ADMIT_SAMPLE; i++)
			lc_admit_hits(admit);
		KUNIT_EXPECT_GT(test, firsts(admit, &block), 900);
	}
	/* In the long run: three for ten. */
	for (i = 0; i < 200; i++) {
		u32 now = firsts(admit, &block);

		nr += now;
		while (now >= SEG_SLOTS) {
			lc_admit_reuse(admit);
			lc_admit_ceded(admit, SEG_SLOTS);
			now -= SEG_SLOTS;
		}
	}
	KUNIT_EXPECT_LT(test, nr, 200 * 1000 / 2);
}

/* So many segments may be taken until the first touch promotes nothing any more. */
static u32 affords(struct kunit *test, u32 ceded)
{
	struct lc_admit *admit = create(test);
	u64 block = 1 << 20;
	u32 nr = 0;

	while (nr < 100 && lc_admit_miss(admit, block += 7, 8) == FIRST) {
		lc_admit_reuse(admit);
		lc_admit_ceded(admit, ceded);
		nr++;
	}
	return nr;
}

/* A segment that is ceded costs less than one for writes; of a part of it, a part. */
static void ceded(struct kunit *test)
{
	u32 writes = affords(test, 0), promoted = affords(test, SEG_SLOTS);

	KUNIT_EXPECT_LT(test, writes, promoted);
	KUNIT_EXPECT_LT(test, promoted, 100);
	KUNIT_EXPECT_GT(test, affords(test, SEG_SLOTS / 4 * 3), writes);
	KUNIT_EXPECT_LT(test, affords(test, SEG_SLOTS / 4 * 3), promoted);
}

/* Kept are promoted blocks that were hit in both halves, and from then on in one; AD4. */
static void keep(struct kunit *test)
{
	static const struct {
		u8 flags;
		bool kept;
	} cases[] = {
		{ 0, false },
		{ LC_ADMIT_HIT_YOUNG | LC_ADMIT_HIT_OLD, false },
		{ SECOND, false },
		{ SECOND | LC_ADMIT_HIT_YOUNG, false },
		{ SECOND | LC_ADMIT_HIT_OLD, false },
		{ SECOND | LC_ADMIT_HIT_YOUNG | LC_ADMIT_HIT_OLD, true },
		{ FIRST | LC_ADMIT_HIT_YOUNG | LC_ADMIT_HIT_OLD, true },
		{ SECOND | LC_ADMIT_KEPT, false },
		{ SECOND | LC_ADMIT_KEPT | LC_ADMIT_HIT_YOUNG, true },
		{ SECOND | LC_ADMIT_KEPT | LC_ADMIT_HIT_OLD, true },
	};
	struct lc_admit *admit = create(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 kept = reuse(admit, cases[i].flags, true);

		KUNIT_EXPECT_EQ_MSG(test, kept > 0, cases[i].kept, "flags %x", cases[i].flags);
		KUNIT_EXPECT_LT(test, kept, SEG_SLOTS / 2);
	}
	KUNIT_EXPECT_EQ(test, lc_admit_kept(FIRST | LC_ADMIT_HIT_OLD),
			LC_ADMIT_PROMOTED | LC_ADMIT_KEPT);
}

/* What was hit and is evicted comes back at its next miss; what was not has to show up twice. */
static void evicted(struct kunit *test)
{
	struct lc_admit *admit = create(test);

	lc_admit_evicted(admit, 5, SECOND | LC_ADMIT_HIT_YOUNG);
	lc_admit_evicted(admit, 1 << 20, SECOND);
	KUNIT_EXPECT_EQ(test, lc_admit_miss(admit, 5, LONG), SECOND);
	KUNIT_EXPECT_EQ(test, lc_admit_miss(admit, 1 << 20, LONG), 0);
}

/* A hit sets one flag; as many hits as there should be are counted, whatever is read. */
static void hits(struct kunit *test)
{
	u32 i, nr = 0;

	KUNIT_EXPECT_EQ(test, lc_admit_hit(SECOND, false), SECOND | LC_ADMIT_HIT_YOUNG);
	KUNIT_EXPECT_EQ(test, lc_admit_hit(SECOND, true), SECOND | LC_ADMIT_HIT_OLD);
	for (i = 0; i < 64 * LC_ADMIT_SAMPLE; i++)
		nr += lc_admit_counts(5, i);
	KUNIT_EXPECT_EQ(test, nr, 64);
	for (nr = 0, i = 0; i < 64 * LC_ADMIT_SAMPLE; i++)
		nr += lc_admit_counts(i, 5);
	KUNIT_EXPECT_EQ(test, nr, 64);
}

static struct kunit_case admit_cases[] = {
	KUNIT_CASE(memory),
	KUNIT_CASE(second_touch),
	KUNIT_CASE(distances),
	KUNIT_CASE(long_streams),
	KUNIT_CASE(score),
	KUNIT_CASE(score_of_second),
	KUNIT_CASE(budget),
	KUNIT_CASE(ceded),
	KUNIT_CASE(keep),
	KUNIT_CASE(evicted),
	KUNIT_CASE(hits),
	{}
};

static struct kunit_suite admit_suite = {
	.name = "dm_lc_admit",
	.test_cases = admit_cases,
};

kunit_test_suite(admit_suite);
