// SPDX-License-Identifier: GPL-2.0-only
/*
 * Headers of groups of promoted blocks: as those of records, with a magic of their own, no place
 * among the seqs, and whole blocks only.
 */
#include <kunit/test.h>
#include <linux/crc32.h>

#include "fields.h"

#define SEGMENT	1000ULL
#define SLOT	3

/* Behind the record of seq 95: two blocks, and a slot between them that says nothing. */
static void group(union example_block *raw, const struct lc_sb *sb, struct lc_record_info *info)
{
	static const struct lc_entry_info entries[] = {
		{ .block = 0x89abc, .nr_blocks = 1, .mask = 0xff, .type = LC_ENTRY_DATA,
		  .csum = 0xdeadbeef },
		{ },
		{ .block = 0x12345, .nr_blocks = 1, .mask = 0xff, .type = LC_ENTRY_DATA,
		  .csum = 0x01020304 },
	};
	u32 i;

	*info = (struct lc_record_info) {
		.segment = SEGMENT, .first_slot = SLOT, .seq = 95, .epoch = 3,
		.epoch_first_seq = 90, .wall_clock = 1700000000000000001ULL,
		.type = LC_RECORD_DATA, .nr_entries = 3, .nr_slots = 3,
	};
	memset(raw, 0, sizeof(*raw));
	for (i = 0; i < ARRAY_SIZE(entries); i++)
		lc_entry_encode(&raw->record, i, &entries[i]);
	lc_group_seal(&raw->record, sb, info);
}

static void make_group(union example_block *raw, const struct lc_sb *sb)
{
	struct lc_record_info info;

	group(raw, sb, &info);
}

static int decode_group(const union example_block *raw, const struct lc_sb *sb)
{
	struct lc_record_info info;

	return lc_group_decode(&raw->record, sb, SEGMENT, SLOT, &info, NULL);
}

static const struct kind group_kind = { make_group, decode_group };

/* --- damaged --------------------------------------------------------------- */

#define GROUP(field, value, forged)	FIELD(struct lc_record_header, field, value, forged, 0)
#define RECORD_MAGIC	0x0a63722d636c6d64	/* LC_RECORD_MAGIC, the first byte lowest */

static const struct field group_fields[] = {
	FIELD(struct lc_record_header, magic, 0, -ENODATA, -ENODATA),
	FIELD(struct lc_record_header, magic, RECORD_MAGIC, -ENODATA, -ENODATA),
	FIELD(struct lc_record_header, generation, 1, -ESTALE, -ESTALE),
	FIELD(struct lc_record_header, cache_uuid, 1, -ESTALE, -ESTALE),
	GROUP(address, 0, -EXDEV),
	GROUP(segment, 11, -ESTALE),
	GROUP(segment, 1000 + 989, -ESTALE),
	GROUP(seq, 0, -ERANGE),
	GROUP(seq, 88, -ERANGE),
	GROUP(seq, 89, 0),
	GROUP(seq, TOP, -ERANGE),
	GROUP(seq, TOP - 1, 0),
	GROUP(epoch, TOP, -ERANGE),
	GROUP(epoch, TOP - 1, 0),
	GROUP(epoch_first_seq, 0, -ERANGE),
	GROUP(epoch_first_seq, 97, -ERANGE),
	GROUP(epoch_first_seq, 96, 0),
	GROUP(wall_clock, ~0ULL, 0),
	GROUP(type, 0, -EOPNOTSUPP),
	GROUP(type, LC_RECORD_RANGE, -EOPNOTSUPP),
	GROUP(type, 3, -EOPNOTSUPP),
	GROUP(flags, 1, -EOPNOTSUPP),
	GROUP(nr_entries, 0, -ERANGE),
	GROUP(nr_entries, 2, -ERANGE),
	GROUP(nr_entries, LC_RECORD_ENTRIES + 1, -ERANGE),
	GROUP(nr_slots, 0, -ERANGE),
	GROUP(nr_slots, 4, -ERANGE),
	GROUP(nr_slots, 0xffff, -ERANGE),
	GROUP(number, ~0ULL, 0),
	GROUP(entries[0].block_lo, 1048576, -ERANGE),
	GROUP(entries[0].block_lo, 1048575, 0),
	GROUP(entries[2].block_hi, 1, -ERANGE),
	GROUP(entries[0].backing, 1, -EOPNOTSUPP),
	GROUP(entries[0].mask, 0x7f, -ERANGE),
	GROUP(entries[2].mask, 0xfe, -ERANGE),
	GROUP(entries[0].mask, 0, -ERANGE),
	GROUP(entries[1].type, LC_ENTRY_DATA, -ERANGE),
	GROUP(entries[0].type, LC_ENTRY_NONE, 0),
	GROUP(entries[0].type, LC_ENTRY_ZERO, -ERANGE),
	GROUP(entries[2].type, LC_ENTRY_RANGE_TOMBSTONE, -ERANGE),
	GROUP(entries[0].type, 6, -ERANGE),
	GROUP(entries[0].csum, 0, 0),
	GROUP(lost[0], 0x80, -ERANGE),
	GROUP(reserved, ~0ULL, 0),
};

KUNIT_ARRAY_PARAM_DESC(group_fields, group_fields, name);

static void group_field(struct kunit *test)
{
	check_field(test, &group_kind);
}

static void group_bits(struct kunit *test)
{
	check_bits(test, &group_kind, 3);
}

/* --- whole ------------------------------------------------------------------ */

/* The same bytes in another place, of another lap or in another cache. */
static void group_place(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;

	make_group(raw, sb);
	KUNIT_EXPECT_EQ(test, lc_group_decode(&raw->record, sb, SEGMENT, SLOT + 1, &info, NULL),
			-EXDEV);
	KUNIT_EXPECT_EQ(test, lc_group_decode(&raw->record, sb, SEGMENT + 1, SLOT, &info, NULL),
			-EXDEV);
	KUNIT_EXPECT_EQ(test, lc_group_decode(&raw->record, sb, SEGMENT + 989, SLOT, &info, NULL),
			-ESTALE);
	sb->generation++;
	KUNIT_EXPECT_EQ(test, decode_group(raw, sb), -ESTALE);
	sb->generation--;
	sb->cache_uuid[15]++;
	KUNIT_EXPECT_EQ(test, decode_group(raw, sb), -ESTALE);
}

/* Up to the last slot of the segment, not further. */
static void group_bounds(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info, out;
	u32 first;

	for (first = 0; first < sb->geo.seg_slots; first++) {
		group(raw, sb, &info);
		info.first_slot = first;
		lc_group_seal(&raw->record, sb, &info);
		KUNIT_EXPECT_EQ(test, lc_group_decode(&raw->record, sb, SEGMENT, first, &out,
						      NULL),
				first + LC_HEADER_SLOTS + 3 <= sb->geo.seg_slots ? 0 : -ERANGE);
	}
}

static void same_info(struct kunit *test, const struct lc_record_info *a,
		      const struct lc_record_info *b)
{
	KUNIT_EXPECT_EQ(test, a->segment, b->segment);
	KUNIT_EXPECT_EQ(test, a->first_slot, b->first_slot);
	KUNIT_EXPECT_EQ(test, a->seq, b->seq);
	KUNIT_EXPECT_EQ(test, a->epoch, b->epoch);
	KUNIT_EXPECT_EQ(test, a->epoch_first_seq, b->epoch_first_seq);
	KUNIT_EXPECT_EQ(test, a->wall_clock, b->wall_clock);
	KUNIT_EXPECT_EQ(test, a->type, b->type);
	KUNIT_EXPECT_EQ(test, a->nr_entries, b->nr_entries);
	KUNIT_EXPECT_EQ(test, a->nr_slots, b->nr_slots);
}

/* What the seal was told comes back, of either kind of sum; 0 is a seq of the first life. */
static void group_round_trip(struct kunit *test)
{
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info, out;
	u32 type, seq;

	for (type = LC_CSUM_CRC32C; type <= LC_CSUM_XXH64; type++) {
		struct lc_sb *sb = example_sb_alloc(test, type);

		for (seq = 0; seq < 3; seq++) {
			group(raw, sb, &info);
			info.seq = seq;
			info.epoch_first_seq = 1;
			lc_group_seal(&raw->record, sb, &info);
			memset(&out, 0x5a, sizeof(out));
			KUNIT_EXPECT_EQ(test, lc_group_decode(&raw->record, sb, SEGMENT, SLOT,
							      &out, NULL), 0);
			same_info(test, &info, &out);
		}
		/* No record was before it, so its life cannot begin behind that. */
		info.seq = 0;
		info.epoch_first_seq = 2;
		lc_group_seal(&raw->record, sb, &info);
		KUNIT_EXPECT_EQ(test, decode_group(raw, sb), -ERANGE);
	}
}

/* The last block of the volume may be a part of one: that is not promoted. */
static void group_of_last_block(struct kunit *test)
{
	static const u8 masks[] = { 0x0f, 0xff };
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	struct lc_entry_info entry = { .block = 1048575, .nr_blocks = 1, .type = LC_ENTRY_DATA };
	struct lc_record_info info;
	u32 i, whole;

	for (whole = 0; whole < 2; whole++) {
		sb->volume_sectors = 1048576 * LC_BLOCK_SECTORS - (whole ? 0 : 4);
		for (i = 0; i < ARRAY_SIZE(masks); i++) {
			group(raw, sb, &info);
			entry.mask = masks[i];
			lc_entry_encode(&raw->record, 1, &entry);
			lc_group_seal(&raw->record, sb, &info);
			KUNIT_EXPECT_EQ(test, decode_group(raw, sb),
					whole && masks[i] == 0xff ? 0 : -ERANGE);
		}
	}
}

/* Replay does not take a group for a record, nor anybody a record for a group. */
static void group_or_record(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_XXH64);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;
	const char *why = NULL;

	make_group(raw, sb);
	KUNIT_EXPECT_EQ(test, lc_record_decode(&raw->record, sb, SEGMENT, SLOT, &info, &why),
			-ENODATA);
	KUNIT_EXPECT_NOT_NULL(test, why);
	why = NULL;
	example_record(&raw->record, sb, &info);
	KUNIT_ASSERT_EQ(test, lc_record_decode(&raw->record, sb, SEGMENT, SLOT, &info, NULL), 0);
	KUNIT_EXPECT_EQ(test, lc_group_decode(&raw->record, sb, SEGMENT, SLOT, &info, &why),
			-ENODATA);
	KUNIT_EXPECT_NOT_NULL(test, why);
}

/* As golden_blocks() of the format suite. */
static void golden_group(struct kunit *test)
{
	static const struct {
		u32 csum_type;
		u64 csum;
		u32 block_crc;
		u64 incompat;
	} golden[] = {
		{ LC_CSUM_CRC32C, 0x3f9d0b4bc062f4b4, 0x4b047327 },
		{ LC_CSUM_XXH64, 0x251a6089644ade2b, 0x780fb6d8 },
		{ LC_CSUM_CRC32C, 0x2ab39580d54c6a7f, 0x3ef00c31, LC_INCOMPAT_SHORT_SUMS },
		{ LC_CSUM_XXH64, 0x0fee67c81f1b0de3, 0xabc10282, LC_INCOMPAT_SHORT_SUMS },
	};
	union example_block *raw = example_block_alloc(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(golden); i++) {
		struct lc_sb *sb = example_sb_alloc(test, golden[i].csum_type);

		sb->incompat = golden[i].incompat;
		make_group(raw, sb);
		KUNIT_EXPECT_EQ_MSG(test, le64_to_cpu(raw->sb.csum), golden[i].csum, "block %u", i);
		KUNIT_EXPECT_EQ_MSG(test, ~crc32c(~0, raw->bytes, LC_SLOT_BYTES),
				    golden[i].block_crc, "block %u", i);
	}
}

static struct kunit_case group_cases[] = {
	KUNIT_CASE(golden_group),
	KUNIT_CASE(group_round_trip),
	KUNIT_CASE(group_of_last_block),
	KUNIT_CASE(group_or_record),
	KUNIT_CASE(group_place),
	KUNIT_CASE(group_bounds),
	KUNIT_CASE_PARAM(group_field, group_fields_gen_params),
	KUNIT_CASE(group_bits),
	{}
};

static struct kunit_suite group_suite = {
	.name = "dm_lc_group",
	.test_cases = group_cases,
};

kunit_test_suite(group_suite);
