// SPDX-License-Identifier: GPL-2.0-only
/* Where a sorted batch is cut into runs. */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "../writeback/stripe.h"

#define NR	600u
#define MIB	(1U << 20)

static struct lc_wb_item items[NR];

static void make_place(struct lc_place *place, u64 blocks, u64 data_offset, u64 incompat)
{
	static struct lc_sb sb;

	memset(&sb, 0, sizeof(sb));
	sb.volume_sectors = blocks * LC_BLOCK_SECTORS;
	sb.data_offset = data_offset;
	sb.incompat = incompat;
	lc_place_init(place, &sb);
}

/* Neighbours, from @first on. */
static void make_neighbours(u64 first)
{
	u32 i;

	for (i = 0; i < NR; i++)
		items[i].block = first + i;
}

static u32 length(const struct lc_place *place, u64 start, u32 blocks, u32 from)
{
	struct lc_stripe stripe = { .start = start, .blocks = blocks };

	return lc_stripe_run(&stripe, place, items + from, NR - from, max(LC_RUN_BLOCKS, blocks));
}

/* What is no stripe is left alone. */
static void odd_sizes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, lc_stripe_blocks(0), 0);
	KUNIT_EXPECT_EQ(test, lc_stripe_blocks(512), 0);
	KUNIT_EXPECT_EQ(test, lc_stripe_blocks(65535 * 512), 0);
	KUNIT_EXPECT_EQ(test, lc_stripe_blocks(192 << 10), 48);
	KUNIT_EXPECT_EQ(test, lc_stripe_blocks(4 * MIB), LC_STRIPE_MOST);
	KUNIT_EXPECT_EQ(test, lc_stripe_blocks(4 * MIB + LC_SLOT_BYTES), 0);
	KUNIT_EXPECT_EQ(test, lc_stripe_blocks(0xfffff000), 0);
}

/* Without stripes: neighbours, at most so many, wherever they lie. */
static void no_stripes(struct kunit *test)
{
	struct lc_place place;

	make_place(&place, 100000, LC_MARK_BYTES, 0);
	make_neighbours(5);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 0, 0), LC_RUN_BLOCKS);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 0, NR - 7), 7);
	items[9].block++;
	items[10].block++;
	KUNIT_EXPECT_EQ(test, length(&place, 0, 0, 0), 9);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 0, 9), 2);
}

/* Neighbours are cut where a stripe ends on the disk, after the mark and in a partition. */
static void cut_at_a_stripe(struct kunit *test)
{
	struct lc_place place;

	/* The volume begins 256 blocks after the start of the disk, 16 into a stripe of 48. */
	make_place(&place, 100000, LC_MARK_BYTES, 0);
	make_neighbours(0);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 16, 0), 64);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 48, 0), 32);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 48, 32), 48);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 384, 0), 128);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 384, 128), 384);
	/* A partition that begins 8 blocks after a stripe's start. */
	KUNIT_EXPECT_EQ(test, length(&place, 8 * LC_BLOCK_SECTORS, 48, 0), 24);
	/* The end of what there is cuts nothing off. */
	KUNIT_EXPECT_EQ(test, length(&place, 0, 48, NR - 30), 30);
}

/* Blocks of one stripe stay together; beyond it only neighbours do. */
static void one_stripe_is_one_run(struct kunit *test)
{
	struct lc_place place;
	u32 i;

	make_place(&place, 100000, 0, 0);
	for (i = 0; i < NR; i++)
		items[i].block = 3 * i;
	KUNIT_EXPECT_EQ(test, length(&place, 0, 48, 0), 16);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 384, 0), 128);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 0, 0), 1);
	/* 0, 47 | 48, 60 | 97 */
	items[1].block = 47;
	items[2].block = 48;
	items[3].block = 60;
	items[4].block = 97;
	KUNIT_EXPECT_EQ(test, length(&place, 0, 48, 0), 4);
}

/* No run has blocks from both sides of the seam, with and without stripes (A2). */
static void ends_at_the_seam(struct kunit *test)
{
	u64 seam = LC_PLACE_SEAM / LC_BLOCK_SECTORS;
	struct lc_place place;

	make_place(&place, 100000, 0, LC_INCOMPAT_MOVED_HEAD);
	make_neighbours(seam - 20);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 0, 0), 20);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 0, 20), LC_RUN_BLOCKS);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 48, 0), 20);
	/* The head is after block 100000, which is 16 after a stripe's start. */
	make_neighbours(0);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 48, 0), 32);
	make_neighbours(seam);
	KUNIT_EXPECT_EQ(test, length(&place, 0, 48, 0), 32);
}

static u64 disk_block(const struct lc_place *place, u32 i)
{
	return lc_place_sector(place, items[i].block * LC_BLOCK_SECTORS) / LC_BLOCK_SECTORS;
}

/* RS1 of random batches: what one run has is one stripe or neighbours, and no two share one. */
static void check_batch(struct kunit *test, const struct lc_place *place, u32 offset, u32 blocks)
{
	u32 from, n, i, most = max(LC_RUN_BLOCKS, blocks);

	for (from = 0; from < NR; from += n) {
		n = length(place, (u64)offset * LC_BLOCK_SECTORS, blocks, from);
		KUNIT_ASSERT_GE(test, n, 1);
		KUNIT_ASSERT_LE(test, n, min(most, NR - from));
		for (i = from + 1; i < from + n; i++) {
			u64 a = offset + disk_block(place, i - 1);
			u64 b = offset + disk_block(place, i);

			KUNIT_ASSERT_TRUE(test, b == a + 1 || a / blocks == b / blocks);
		}
		if (from + n < NR)
			KUNIT_ASSERT_NE(test, (offset + disk_block(place, from + n - 1)) / blocks,
					(offset + disk_block(place, from + n)) / blocks);
	}
}

static void no_two_share_a_stripe(struct kunit *test)
{
	struct rnd_state rnd;
	struct lc_place place;
	u32 round, i, gap;

	prandom_seed_state(&rnd, 20240);
	for (round = 0; round < 400; round++) {
		make_place(&place, 1000000, round & 1 ? LC_MARK_BYTES : 0,
			   round & 2 ? LC_INCOMPAT_MOVED_HEAD : 0);
		gap = 1 + prandom_u32_state(&rnd) % 6;
		items[0].block = prandom_u32_state(&rnd) % 400;
		for (i = 1; i < NR; i++)
			items[i].block = items[i - 1].block + 1 +
				(prandom_u32_state(&rnd) % gap ? 0 :
				 prandom_u32_state(&rnd) % 70);
		check_batch(test, &place, prandom_u32_state(&rnd) % 1000,
			    1 + prandom_u32_state(&rnd) % 500);
	}
}

static struct kunit_case stripe_cases[] = {
	KUNIT_CASE(odd_sizes),
	KUNIT_CASE(no_stripes),
	KUNIT_CASE(cut_at_a_stripe),
	KUNIT_CASE(one_stripe_is_one_run),
	KUNIT_CASE(ends_at_the_seam),
	KUNIT_CASE(no_two_share_a_stripe),
	{}
};

static struct kunit_suite stripe_suite = {
	.name = "dm_lc_stripe",
	.test_cases = stripe_cases,
};

kunit_test_suite(stripe_suite);
