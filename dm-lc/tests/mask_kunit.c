// SPDX-License-Identifier: GPL-2.0-only
/* Runs of sectors in all masks there are. */
#include <kunit/test.h>

#include "../format/mask.h"

/* Bit by bit: which sectors are in a range? */
static void ranges(struct kunit *test)
{
	u32 first, nr, i;

	for (first = 0; first < LC_BLOCK_SECTORS; first++) {
		for (nr = 1; first + nr <= LC_BLOCK_SECTORS; nr++) {
			u8 mask = lc_mask_of(first, nr);

			for (i = 0; i < LC_BLOCK_SECTORS; i++)
				KUNIT_EXPECT_EQ(test, lc_mask_has(mask, i),
						i >= first && i < first + nr);
		}
	}
}

/* A run ends where the next sector differs, or with the block. */
static void runs(struct kunit *test)
{
	u32 mask, first, n;

	for (mask = 0; mask < 1u << LC_BLOCK_SECTORS; mask++) {
		for (first = 0; first < LC_BLOCK_SECTORS; first++) {
			for (n = 1; first + n < LC_BLOCK_SECTORS; n++) {
				if (lc_mask_has(mask, first + n) != lc_mask_has(mask, first))
					break;
			}
			KUNIT_EXPECT_EQ(test, lc_mask_run(mask, first), n);
		}
	}
}

/* All that are visited make up the mask, and no two touch. */
static void visits(struct kunit *test)
{
	u32 mask, first, nr, end;
	u8 seen;

	for (mask = 0; mask < 1u << LC_BLOCK_SECTORS; mask++) {
		seen = 0;
		end = 0;
		for (first = 0; lc_mask_next(mask, &first, &nr); first += nr) {
			KUNIT_EXPECT_TRUE(test, !seen || first > end);
			seen |= lc_mask_of(first, nr);
			end = first + nr;
		}
		KUNIT_EXPECT_EQ(test, seen, mask);
	}
}

static struct kunit_case mask_cases[] = {
	KUNIT_CASE(ranges),
	KUNIT_CASE(runs),
	KUNIT_CASE(visits),
	{}
};

static struct kunit_suite mask_suite = {
	.name = "dm_lc_mask",
	.test_cases = mask_cases,
};

kunit_test_suite(mask_suite);
