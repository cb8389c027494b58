// SPDX-License-Identifier: GPL-2.0-only
/* Where a sector of the volume lies on the backing device. */
#include <kunit/test.h>

#include "../format/place.h"

#define MIB_SECTORS	2048ULL

static void make(struct lc_place *place, u64 volume_sectors, u64 data_offset, u64 incompat)
{
	static struct lc_sb sb;

	memset(&sb, 0, sizeof(sb));
	sb.volume_sectors = volume_sectors;
	sb.data_offset = data_offset;
	sb.incompat = incompat;
	lc_place_init(place, &sb);
}

/* After the mark, or at byte 0 without a moved head: one piece. */
static void one_piece(struct kunit *test)
{
	struct lc_place place;

	make(&place, 8 * MIB_SECTORS, LC_MARK_BYTES, 0);
	KUNIT_EXPECT_EQ(test, lc_place_sector(&place, 0), MIB_SECTORS);
	KUNIT_EXPECT_EQ(test, lc_place_sector(&place, 5000), MIB_SECTORS + 5000);
	KUNIT_EXPECT_EQ(test, lc_place_run(&place, 0, 8 * MIB_SECTORS), 8 * MIB_SECTORS);
	KUNIT_EXPECT_EQ(test, place.extent, 8 * MIB_SECTORS);
	make(&place, 8 * MIB_SECTORS, 0, 0);
	KUNIT_EXPECT_EQ(test, lc_place_sector(&place, 0), 0);
	KUNIT_EXPECT_EQ(test, lc_place_sector(&place, 5000), 5000);
	KUNIT_EXPECT_EQ(test, lc_place_run(&place, 2047, 2), 2);
}

/* The first MiB after the end, everything else where it was, all sectors apart. */
static void moved_head(struct kunit *test)
{
	u64 volume = 8 * MIB_SECTORS + 8, s;
	struct lc_place place;

	make(&place, volume, 0, LC_INCOMPAT_MOVED_HEAD);
	KUNIT_EXPECT_EQ(test, place.extent, volume + MIB_SECTORS);
	for (s = 0; s < volume; s++) {
		u64 want = s < MIB_SECTORS ? volume + s : s;

		KUNIT_ASSERT_EQ_MSG(test, lc_place_sector(&place, s), want, "sector %llu", s);
		KUNIT_ASSERT_LT(test, lc_place_sector(&place, s), place.extent);
		KUNIT_ASSERT_GE(test, lc_place_sector(&place, s), MIB_SECTORS);
	}
}

/* No run crosses the seam, and none is shorter than it must be. */
static void runs_end_at_the_seam(struct kunit *test)
{
	u64 volume = 4 * MIB_SECTORS, s, nr, n, i;
	struct lc_place place;

	make(&place, volume, 0, LC_INCOMPAT_MOVED_HEAD);
	for (s = MIB_SECTORS - 24; s < MIB_SECTORS + 8; s++) {
		for (nr = 1; nr < 40; nr++) {
			n = lc_place_run(&place, s, nr);
			KUNIT_ASSERT_GE(test, n, 1);
			KUNIT_ASSERT_LE(test, n, nr);
			for (i = 0; i < n; i++)
				KUNIT_ASSERT_EQ(test, lc_place_sector(&place, s + i),
						lc_place_sector(&place, s) + i);
			if (n < nr)
				KUNIT_ASSERT_NE(test, lc_place_sector(&place, s + n),
						lc_place_sector(&place, s) + n);
		}
	}
	KUNIT_EXPECT_EQ(test, lc_place_run(&place, 0, volume), MIB_SECTORS);
}

static struct kunit_case place_cases[] = {
	KUNIT_CASE(one_piece),
	KUNIT_CASE(moved_head),
	KUNIT_CASE(runs_end_at_the_seam),
	{}
};

static struct kunit_suite place_suite = {
	.name = "dm_lc_place",
	.test_cases = place_cases,
};

kunit_test_suite(place_suite);
