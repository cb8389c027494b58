// SPDX-License-Identifier: GPL-2.0-only
/* What checksums are of: the golden sum of a slot, and the short sums of record headers. */
#include <kunit/test.h>

#include "example.h"

static void golden_slot(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	u32 i;

	for (i = 0; i < LC_SLOT_BYTES; i++)
		raw->bytes[i] = i * 7;
	KUNIT_EXPECT_EQ(test, lc_format_slot_csum(sb, 0x89abc, raw), 0xc35a4f4d);
	KUNIT_EXPECT_NE(test, lc_format_slot_csum(sb, 0x89abd, raw), 0xc35a4f4d);
	sb->csum_type = LC_CSUM_XXH64;
	KUNIT_EXPECT_EQ(test, lc_format_slot_csum(sb, 0x89abc, raw), 0x486e822c);
	sb->generation++;
	KUNIT_EXPECT_NE(test, lc_format_slot_csum(sb, 0x89abc, raw), 0x486e822c);
}

static int decode_record(const union example_block *raw, const struct lc_sb *sb)
{
	struct lc_record_info info;

	return lc_record_decode(&raw->record, sb, 1000, 3, &info, NULL);
}

/* Is this byte of the example among those that a short sum is of, its own field included? */
static bool in_short_sum(u32 byte)
{
	return byte < offsetof(struct lc_record_header, entries[2]) ||
	       byte - offsetof(struct lc_record_header, lost) < 2;
}

/* A short sum is of all that is used, and of nothing else. */
static void record_short_sum(struct kunit *test)
{
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;
	u32 type, bit;

	for (type = LC_CSUM_CRC32C; type <= LC_CSUM_XXH64; type++) {
		struct lc_sb *sb = example_sb_alloc(test, type);

		sb->incompat = LC_INCOMPAT_SHORT_SUMS;
		example_record(&raw->record, sb, &info);
		for (bit = 0; bit < LC_SLOT_BYTES * 8; bit += 3) {
			raw->bytes[bit / 8] ^= 1 << bit % 8;
			if (!decode_record(raw, sb) == in_short_sum(bit / 8))
				KUNIT_FAIL(test, "flipped bit %u: %d", bit, decode_record(raw, sb));
			raw->bytes[bit / 8] ^= 1 << bit % 8;
		}
		KUNIT_EXPECT_EQ(test, decode_record(raw, sb), 0);
		/* With an impossible number of entries, nothing is read after the last one. */
		raw->record.nr_entries = cpu_to_le16(0xffff);
		KUNIT_EXPECT_EQ(test, decode_record(raw, sb), -EBADMSG);
		raw->record.csum = cpu_to_le64(lc_record_csum(&raw->record, sb));
		KUNIT_EXPECT_EQ(test, decode_record(raw, sb), -ERANGE);
		/* Neither kind passes for the other. */
		example_record(&raw->record, sb, &info);
		sb->incompat = 0;
		KUNIT_EXPECT_EQ(test, decode_record(raw, sb), -EBADMSG);
		example_record(&raw->record, sb, &info);
		sb->incompat = LC_INCOMPAT_SHORT_SUMS;
		KUNIT_EXPECT_EQ(test, decode_record(raw, sb), -EBADMSG);
	}
}

static struct kunit_case csum_cases[] = {
	KUNIT_CASE(golden_slot),
	KUNIT_CASE(record_short_sum),
	{}
};

static struct kunit_suite csum_suite = {
	.name = "dm_lc_csum",
	.test_cases = csum_cases,
};

kunit_test_suite(csum_suite);
