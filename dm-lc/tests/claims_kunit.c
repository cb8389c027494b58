// SPDX-License-Identifier: GPL-2.0-only
/* Which claim has its turn (CL1, CL2), and which ones hold writes back. */
#include "../store/claims.h"
#include "example.h"

#define NR	40
#define STEPS	20000

static u32 nr_kicks;

static void count_kick(struct work_struct *work)
{
	nr_kicks++;
}

static DECLARE_WORK(kicked, count_kick);

static struct lc_claims *claims_create(struct kunit *test)
{
	struct lc_claims *claims = lc_claims_create();

	KUNIT_ASSERT_NOT_NULL(test, claims);
	claims->discards = (struct lc_kick){ system_wq, &kicked };
	nr_kicks = 0;
	return claims;
}

/* Kicks since the last call. */
static u32 kicks(void)
{
	u32 nr;

	flush_work(&kicked);
	nr = nr_kicks;
	nr_kicks = 0;
	return nr;
}

static void claims_destroy(struct lc_claims *claims)
{
	flush_work(&kicked);
	lc_claims_destroy(claims);
}

static void add(struct lc_claims *claims, struct lc_claim *claim, enum lc_claim_kind kind,
		u64 first, u64 nr)
{
	lc_claim_init(claim, kind, first, nr);
	lc_claims_add(claims, claim);
}

/* Neighbours, and those of one kind, do not mind each other. */
static void free_way(struct kunit *test)
{
	struct lc_claims *claims = claims_create(test);
	struct lc_claim claim[4];
	u32 i;

	add(claims, &claim[0], LC_CLAIM_DISCARD, 10, 10);
	add(claims, &claim[1], LC_CLAIM_COPY, 20, 1);
	add(claims, &claim[2], LC_CLAIM_COPY, 9, 1);
	add(claims, &claim[3], LC_CLAIM_DISCARD, 15, 5);
	for (i = 0; i < ARRAY_SIZE(claim); i++)
		KUNIT_EXPECT_TRUE(test, lc_claims_turn(claims, &claim[i]));
	for (i = 0; i < ARRAY_SIZE(claim); i++)
		lc_claims_drop(claims, &claim[i]);
	/* Again: harmless. */
	lc_claims_drop(claims, &claim[0]);
	lc_claims_wait_discards(claims);
	claims_destroy(claims);
}

/* CL5: beside a claim of either kind there is none, and a copy waits for it as for a discard. */
static void only_alone(struct kunit *test)
{
	struct lc_claims *claims = claims_create(test);
	struct lc_claim copy, discard, around, late;

	add(claims, &copy, LC_CLAIM_COPY, 10, 10);
	add(claims, &discard, LC_CLAIM_DISCARD, 30, 10);
	lc_claim_init(&around, LC_CLAIM_DISCARD, 19, 5);
	KUNIT_EXPECT_FALSE(test, lc_claims_try(claims, &around));
	lc_claim_init(&around, LC_CLAIM_DISCARD, 25, 6);
	KUNIT_EXPECT_FALSE(test, lc_claims_try(claims, &around));
	lc_claims_drop(claims, &around);
	lc_claim_init(&around, LC_CLAIM_DISCARD, 20, 10);
	KUNIT_EXPECT_TRUE(test, lc_claims_try(claims, &around));
	KUNIT_EXPECT_TRUE(test, lc_claims_turn(claims, &around));
	add(claims, &late, LC_CLAIM_COPY, 29, 1);
	KUNIT_EXPECT_FALSE(test, lc_claims_turn(claims, &late));
	lc_claims_drop(claims, &around);
	KUNIT_EXPECT_TRUE(test, lc_claims_turn(claims, &late));
	lc_claims_drop(claims, &late);
	lc_claims_drop(claims, &copy);
	lc_claims_drop(claims, &discard);
	claims_destroy(claims);
}

/* A copy that waits for a discard comes before a discard that was added after it. */
static void first_come(struct kunit *test)
{
	struct lc_claims *claims = claims_create(test);
	struct lc_claim old, copy, late;

	add(claims, &old, LC_CLAIM_DISCARD, 0, 100);
	add(claims, &copy, LC_CLAIM_COPY, 99, 64);
	add(claims, &late, LC_CLAIM_DISCARD, 150, U64_MAX - 150);
	KUNIT_EXPECT_TRUE(test, lc_claims_turn(claims, &old));
	KUNIT_EXPECT_FALSE(test, lc_claims_turn(claims, &copy));
	KUNIT_EXPECT_FALSE(test, lc_claims_turn(claims, &late));
	lc_claims_drop(claims, &old);
	KUNIT_EXPECT_TRUE(test, lc_claims_turn(claims, &copy));
	KUNIT_EXPECT_FALSE(test, lc_claims_turn(claims, &late));
	lc_claims_drop(claims, &copy);
	KUNIT_EXPECT_TRUE(test, lc_claims_turn(claims, &late));
	lc_claims_drop(claims, &late);
	claims_destroy(claims);
}

/* Of all claims, compared one by one. */
static bool turn(const struct lc_claim *claim, u32 i)
{
	u32 j;

	for (j = 0; j < NR; j++) {
		if (claim[j].added && claim[j].kind != claim[i].kind &&
		    claim[j].ticket < claim[i].ticket && claim[j].first <= claim[i].last &&
		    claim[i].first <= claim[j].last)
			return false;
	}
	return true;
}

static void random_claims(struct kunit *test)
{
	struct lc_claim *claim = kunit_kcalloc(test, NR, sizeof(*claim), GFP_KERNEL);
	struct lc_claims *claims = claims_create(test);
	u32 step, i, wrong = 0, turns = 0;
	struct rnd_state rnd;

	KUNIT_ASSERT_NOT_NULL(test, claim);
	lc_test_seed(test, &rnd);
	for (step = 0; step < STEPS; step++) {
		i = prandom_u32_state(&rnd) % NR;
		if (claim[i].added)
			lc_claims_drop(claims, &claim[i]);
		else
			add(claims, &claim[i], prandom_u32_state(&rnd) % 2,
			    prandom_u32_state(&rnd) % 1000, 1 + prandom_u32_state(&rnd) % 100);
		i = prandom_u32_state(&rnd) % NR;
		if (!claim[i].added)
			continue;
		turns += turn(claim, i);
		wrong += turn(claim, i) != lc_claims_turn(claims, &claim[i]);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_GT(test, turns, 0);
	for (i = 0; i < NR; i++)
		lc_claims_drop(claims, &claim[i]);
	claims_destroy(claims);
}

/* A discard that holds writes of its blocks back lets them go, or is dropped (CL3). */
static void holding(struct kunit *test)
{
	struct lc_claims *claims = claims_create(test);
	struct lc_claim claim[3], copy;

	add(claims, &claim[0], LC_CLAIM_DISCARD, 10, 10);
	add(claims, &claim[1], LC_CLAIM_DISCARD, 15, 10);
	add(claims, &claim[2], LC_CLAIM_DISCARD, 0, 100);
	add(claims, &copy, LC_CLAIM_COPY, 0, 100);
	KUNIT_EXPECT_FALSE(test, lc_claims_held(claims, 0, U64_MAX));
	lc_claims_hold(claims, &claim[0]);
	lc_claims_hold(claims, &claim[1]);
	KUNIT_EXPECT_TRUE(test, lc_claims_held(claims, 0, 10));
	KUNIT_EXPECT_FALSE(test, lc_claims_held(claims, 0, 9));
	KUNIT_EXPECT_FALSE(test, lc_claims_held(claims, 25, 30));
	lc_claims_let(claims, &claim[0]);
	/* Again: harmless. */
	lc_claims_let(claims, &claim[0]);
	KUNIT_EXPECT_FALSE(test, lc_claims_held(claims, 10, 14));
	KUNIT_EXPECT_TRUE(test, lc_claims_held(claims, 14, 15));
	lc_claims_drop(claims, &claim[1]);
	KUNIT_EXPECT_FALSE(test, lc_claims_held(claims, 0, U64_MAX));
	lc_claims_drop(claims, &claim[0]);
	lc_claims_drop(claims, &claim[2]);
	lc_claims_drop(claims, &copy);
	claims_destroy(claims);
}

/* Discards look at their turns when a copy has ended, and only if there are any. */
static void copy_kicks_discards(struct kunit *test)
{
	struct lc_claims *claims = claims_create(test);
	struct lc_claim copy, other, discard;

	add(claims, &copy, LC_CLAIM_COPY, 0, 10);
	add(claims, &other, LC_CLAIM_COPY, 10, 10);
	lc_claims_drop(claims, &other);
	KUNIT_EXPECT_EQ(test, kicks(), 0);
	add(claims, &discard, LC_CLAIM_DISCARD, 5, 1);
	KUNIT_EXPECT_FALSE(test, lc_claims_turn(claims, &discard));
	lc_claims_drop(claims, &copy);
	KUNIT_EXPECT_EQ(test, kicks(), 1);
	KUNIT_EXPECT_TRUE(test, lc_claims_turn(claims, &discard));
	lc_claims_drop(claims, &discard);
	KUNIT_EXPECT_EQ(test, kicks(), 0);
	claims_destroy(claims);
}

/* A block that is to be promoted asks whether a discard claims it, whoever has the turn. */
static void discards_of(struct kunit *test)
{
	struct lc_claims *claims = claims_create(test);
	struct lc_claim copy, discard, late;

	KUNIT_EXPECT_FALSE(test, lc_claims_discards(claims, 0, U64_MAX));
	add(claims, &copy, LC_CLAIM_COPY, 0, 100);
	KUNIT_EXPECT_FALSE(test, lc_claims_discards(claims, 0, U64_MAX));
	/* It has no turn yet, and holds no write back. */
	add(claims, &discard, LC_CLAIM_DISCARD, 10, 10);
	add(claims, &late, LC_CLAIM_DISCARD, 40, 1);
	KUNIT_EXPECT_FALSE(test, lc_claims_turn(claims, &discard));
	KUNIT_EXPECT_TRUE(test, lc_claims_discards(claims, 0, 10));
	KUNIT_EXPECT_TRUE(test, lc_claims_discards(claims, 15, 15));
	KUNIT_EXPECT_TRUE(test, lc_claims_discards(claims, 19, 30));
	KUNIT_EXPECT_TRUE(test, lc_claims_discards(claims, 40, 40));
	KUNIT_EXPECT_FALSE(test, lc_claims_discards(claims, 0, 9));
	KUNIT_EXPECT_FALSE(test, lc_claims_discards(claims, 20, 39));
	KUNIT_EXPECT_FALSE(test, lc_claims_discards(claims, 41, U64_MAX));
	lc_claims_drop(claims, &copy);
	KUNIT_EXPECT_TRUE(test, lc_claims_discards(claims, 0, 10));
	lc_claims_drop(claims, &discard);
	KUNIT_EXPECT_FALSE(test, lc_claims_discards(claims, 0, 39));
	KUNIT_EXPECT_TRUE(test, lc_claims_discards(claims, 0, 40));
	lc_claims_drop(claims, &late);
	KUNIT_EXPECT_FALSE(test, lc_claims_discards(claims, 0, U64_MAX));
	claims_destroy(claims);
}

static struct kunit_case claims_cases[] = {
	KUNIT_CASE(free_way),
	KUNIT_CASE(only_alone),
	KUNIT_CASE(first_come),
	KUNIT_CASE(random_claims),
	KUNIT_CASE(holding),
	KUNIT_CASE(copy_kicks_discards),
	KUNIT_CASE(discards_of),
	{}
};

static struct kunit_suite claims_suite = {
	.name = "dm_lc_claims",
	.test_cases = claims_cases,
};

kunit_test_suite(claims_suite);
