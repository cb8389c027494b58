// SPDX-License-Identifier: GPL-2.0-only
/* When writeback gives up on a device that fails. */
#include <kunit/test.h>

#include "../writeback/patience.h"

/* A HDD that fails for a week ends nothing, unless somebody wants it to. */
static void hdd(struct kunit *test)
{
	struct lc_patience p = {};
	u32 i;

	for (i = 0; i < 100; i++) {
		KUNIT_EXPECT_FALSE(test, lc_patience_hdd(&p, 0));
		p.hdd_since -= 3600 * HZ;
	}
	KUNIT_EXPECT_TRUE(test, lc_patience_hdd(&p, 86400000));
	lc_patience_success(&p);
	/* One failure is none of long standing, however little patience there is. */
	KUNIT_EXPECT_FALSE(test, lc_patience_hdd(&p, 1));
	p.hdd_since -= HZ;
	KUNIT_EXPECT_TRUE(test, lc_patience_hdd(&p, 1));
	p.hdd = U32_MAX;
	KUNIT_EXPECT_FALSE(test, lc_patience_hdd(&p, 0));
	KUNIT_EXPECT_EQ(test, p.hdd, U32_MAX);
}

/* What the SSD gives back counts after its time, and a second look. */
static void reads(struct kunit *test)
{
	struct lc_patience p = {};

	KUNIT_EXPECT_FALSE(test, lc_patience_reads_over(&p, 0));
	lc_patience_read(&p);
	p.reads_since -= HZ;
	KUNIT_EXPECT_FALSE(test, lc_patience_reads_over(&p, 0));
	lc_patience_read(&p);
	KUNIT_EXPECT_TRUE(test, lc_patience_reads_over(&p, 0));
	KUNIT_EXPECT_FALSE(test, lc_patience_reads_over(&p, 30000));
	p.reads_since -= 30 * HZ;
	KUNIT_EXPECT_TRUE(test, lc_patience_reads_over(&p, 30000));
	lc_patience_success(&p);
	KUNIT_EXPECT_FALSE(test, lc_patience_reads_over(&p, 0));
}

static void superblocks(struct kunit *test)
{
	struct lc_patience p = {};
	u32 i;

	for (i = 0; i < LC_PATIENCE_SBS; i++)
		KUNIT_EXPECT_FALSE(test, lc_patience_sb(&p));
	KUNIT_EXPECT_TRUE(test, lc_patience_sb(&p));
}

/* Some tries and some time without a slot: neither is enough, however short a tick is. */
static void relogs(struct kunit *test)
{
	struct lc_patience p = {};
	u32 i;

	for (i = 0; i < 10 * LC_PATIENCE_RELOGS; i++)
		KUNIT_EXPECT_FALSE(test, lc_patience_relog(&p));
	p.relogs_since -= LC_PATIENCE_RELOG + 10 * HZ;
	KUNIT_EXPECT_TRUE(test, lc_patience_relog(&p));
	lc_patience_success(&p);
	KUNIT_EXPECT_TRUE(test, lc_patience_relog(&p));
	lc_patience_relogged(&p);
	for (i = 0; i < LC_PATIENCE_RELOGS; i++) {
		KUNIT_EXPECT_FALSE(test, lc_patience_relog(&p));
		p.relogs_since -= LC_PATIENCE_RELOG;
	}
	KUNIT_EXPECT_TRUE(test, lc_patience_relog(&p));
	p.relogs = U32_MAX;
	KUNIT_EXPECT_TRUE(test, lc_patience_relog(&p));
	KUNIT_EXPECT_EQ(test, p.relogs, U32_MAX);
}

/* Pauses and rows grow, up to a bound. */
static void growth(struct kunit *test)
{
	struct lc_patience p = {};
	u32 i, row = 0;

	KUNIT_EXPECT_EQ(test, lc_patience_pause(&p), HZ);
	KUNIT_EXPECT_EQ(test, lc_patience_row(&p, 8192), LC_PATIENCE_ROW);
	KUNIT_EXPECT_EQ(test, lc_patience_row(&p, 1), LC_PATIENCE_ROW);
	for (i = 0; i < 40; i++) {
		lc_patience_hdd(&p, 0);
		KUNIT_EXPECT_GE(test, lc_patience_row(&p, 8192), row);
		row = lc_patience_row(&p, 8192);
	}
	KUNIT_EXPECT_EQ(test, row, 8191);
	KUNIT_EXPECT_EQ(test, lc_patience_pause(&p), 16 * HZ);
	KUNIT_EXPECT_EQ(test, lc_patience_row(&p, U32_MAX), LC_PATIENCE_ROW << 24);
}

static struct kunit_case patience_cases[] = {
	KUNIT_CASE(hdd),
	KUNIT_CASE(reads),
	KUNIT_CASE(superblocks),
	KUNIT_CASE(relogs),
	KUNIT_CASE(growth),
	{}
};

static struct kunit_suite patience_suite = {
	.name = "dm_lc_patience",
	.test_cases = patience_cases,
};

kunit_test_suite(patience_suite);
