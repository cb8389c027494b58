// SPDX-License-Identifier: GPL-2.0-only
/* Which reads the SSD gets with the memory they have (FT1, C11). */
#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/mm.h>
#include <linux/prandom.h>

#include "../store/fit.h"
#include "example.h"

#define ORDER		4
#define MAX_PIECES	32

struct pieces {
	struct bio bio;
	struct bio_vec vecs[MAX_PIECES];
	void *memory;
};

static void free_memory(void *memory)
{
	free_pages((unsigned long)memory, ORDER);
}

static int fit_init(struct kunit *test)
{
	struct pieces *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	p->memory = (void *)__get_free_pages(GFP_KERNEL, ORDER);
	KUNIT_ASSERT_NOT_NULL(test, p->memory);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_memory, p->memory), 0);
	test->priv = p;
	return 0;
}

static void begin(struct pieces *p)
{
	bio_init(&p->bio, NULL, p->vecs, MAX_PIECES, REQ_OP_READ);
}

static void add(struct pieces *p, u32 at, u32 len)
{
	__bio_add_page(&p->bio, virt_to_page(p->memory + at), len, offset_in_page(at));
}

static void whole_blocks(struct kunit *test)
{
	struct pieces *p = test->priv;

	begin(p);
	add(p, 0, 4096);
	add(p, 8192, 8192);
	KUNIT_EXPECT_TRUE(test, lc_fit_pieces(&p->bio, 4096, 4095));
	KUNIT_EXPECT_TRUE(test, lc_fit_pieces(&p->bio, 512, 3));
}

/* Eight pieces of a sector: one block of the SSD, and no place to split it. */
static void sectors(struct kunit *test)
{
	struct pieces *p = test->priv;
	u32 i;

	begin(p);
	for (i = 0; i < 8; i++)
		add(p, i * 8192 % 65536, 512);
	KUNIT_EXPECT_FALSE(test, lc_fit_pieces(&p->bio, 4096, 511));
	KUNIT_EXPECT_TRUE(test, lc_fit_pieces(&p->bio, 512, 511));
}

static void odd_addresses(struct kunit *test)
{
	struct pieces *p = test->priv;

	begin(p);
	add(p, 16, 4096);
	KUNIT_EXPECT_FALSE(test, lc_fit_pieces(&p->bio, 512, 511));
	KUNIT_EXPECT_TRUE(test, lc_fit_pieces(&p->bio, 512, 15));
	KUNIT_EXPECT_TRUE(test, lc_fit_pieces(&p->bio, 4096, 3));
}

/* What was cut off the bio, or is behind, does not matter; what is left of a piece does. */
static void part_of_bio(struct kunit *test)
{
	struct pieces *p = test->priv;

	begin(p);
	add(p, 512, 3584);
	add(p, 8192, 8192);
	add(p, 512 + 16384, 512);
	KUNIT_EXPECT_FALSE(test, lc_fit_pieces(&p->bio, 4096, 511));
	bio_advance(&p->bio, 3584);
	p->bio.bi_iter.bi_size = 8192;
	KUNIT_EXPECT_TRUE(test, lc_fit_pieces(&p->bio, 4096, 4095));
	p->bio.bi_iter.bi_size = 4096 + 512;
	KUNIT_EXPECT_FALSE(test, lc_fit_pieces(&p->bio, 4096, 4095));
}

/* If it fits, then each place where two pieces meet is a multiple of a block. */
static void random_pieces(struct kunit *test)
{
	static const u32 lengths[] = { 512, 1024, 3584, 4096, 8192 };
	struct pieces *p = test->priv;
	u32 round, i, nr, len, fits = 0;
	struct rnd_state rnd;

	lc_test_seed(test, &rnd);
	for (round = 0; round < 2000; round++) {
		u32 sum = 0;
		bool legal = true;

		begin(p);
		nr = 1 + prandom_u32_state(&rnd) % 3;
		for (i = 0; i < nr; i++) {
			len = lengths[prandom_u32_state(&rnd) % ARRAY_SIZE(lengths)];
			add(p, 16384 * i + 512 * (prandom_u32_state(&rnd) % 8), len);
			sum += len;
			legal &= !(sum % 4096);
		}
		if (!lc_fit_pieces(&p->bio, 4096, 511))
			continue;
		KUNIT_ASSERT_TRUE(test, legal);
		fits++;
	}
	KUNIT_EXPECT_GT(test, fits, 0);
}

static struct kunit_case fit_cases[] = {
	KUNIT_CASE(whole_blocks),
	KUNIT_CASE(sectors),
	KUNIT_CASE(odd_addresses),
	KUNIT_CASE(part_of_bio),
	KUNIT_CASE(random_pieces),
	{}
};

static struct kunit_suite fit_suite = {
	.name = "dm_lc_fit",
	.init = fit_init,
	.test_cases = fit_cases,
};

kunit_test_suite(fit_suite);
