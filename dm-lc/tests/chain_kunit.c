// SPDX-License-Identifier: GPL-2.0-only
/* The walk along the headers of a segment: whole, damaged, and of two lives. */
#include <kunit/test.h>

#include "../format/chain.h"
#include "example.h"

#define SEGMENT	1000ULL

/* Seal a header of @nr_slots slots at @slot, with the life's epoch. */
static void seal(struct lc_record_header *raw, const struct lc_sb *sb, u32 slot, u32 nr_slots,
		 u64 epoch)
{
	struct lc_record_info info;
	u32 i;

	example_record(raw, sb, &info);
	for (i = 0; i < nr_slots; i++)
		lc_entry_encode(raw, i, &(struct lc_entry_info){
			.block = i, .nr_blocks = 1, .mask = 0xff, .type = LC_ENTRY_DATA });
	info.segment = SEGMENT;
	info.first_slot = slot;
	info.epoch = epoch;
	info.nr_entries = nr_slots;
	info.nr_slots = nr_slots;
	lc_record_seal(raw, sb, &info);
}

/* Records of three slots fill the segment but for one record that ends with it. */
static void whole(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_XXH64);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;
	struct lc_chain chain;
	u32 slot = 0;

	lc_chain_start(&chain, SEGMENT, 0);
	while (!lc_chain_at_end(&chain, &sb->geo)) {
		u32 nr = min(3U, sb->geo.seg_slots - slot - LC_HEADER_SLOTS);

		KUNIT_ASSERT_EQ(test, chain.slot, slot);
		KUNIT_EXPECT_TRUE(test, lc_chain_unbroken(&chain));
		KUNIT_EXPECT_EQ(test, lc_chain_address(&chain, &sb->geo),
				lc_format_log_address(&sb->geo, SEGMENT, slot));
		seal(&raw->record, sb, slot, nr, sb->epoch);
		KUNIT_ASSERT_EQ(test, lc_chain_step(&chain, sb, &raw->record, &info, NULL), 0);
		KUNIT_EXPECT_EQ(test, info.first_slot, slot);
		slot += LC_HEADER_SLOTS + nr;
	}
	KUNIT_EXPECT_EQ(test, slot, sb->geo.seg_slots);
}

/* A header that does not decode leaves the walk where it is; it can go on after it (L13). */
static void broken(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_XXH64);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;
	const char *why = NULL;
	struct lc_chain chain;

	lc_chain_start(&chain, SEGMENT, 0);
	seal(&raw->record, sb, 0, 2, sb->epoch);
	raw->bytes[LC_SLOT_BYTES - 1] ^= 1;
	KUNIT_EXPECT_EQ(test, lc_chain_step(&chain, sb, &raw->record, &info, &why), -EBADMSG);
	KUNIT_EXPECT_NOT_NULL(test, why);
	KUNIT_EXPECT_EQ(test, chain.slot, 0);
	KUNIT_EXPECT_TRUE(test, lc_chain_unbroken(&chain));
	lc_chain_skip(&chain);
	KUNIT_EXPECT_FALSE(test, lc_chain_unbroken(&chain));
	lc_chain_skip(&chain);
	lc_chain_skip(&chain);
	seal(&raw->record, sb, 3, 2, sb->epoch);
	KUNIT_EXPECT_EQ(test, lc_chain_step(&chain, sb, &raw->record, &info, NULL), 0);
	KUNIT_EXPECT_EQ(test, chain.slot, 6);
	KUNIT_EXPECT_TRUE(test, lc_chain_unbroken(&chain));
}

/* A record of another life ends a chain of one life, and no chain of any. */
static void lives(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_XXH64);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;
	struct lc_chain one, any;
	const char *why = NULL;

	lc_chain_start(&one, SEGMENT, sb->epoch);
	lc_chain_start(&any, SEGMENT, 0);
	seal(&raw->record, sb, 0, 2, sb->epoch);
	KUNIT_EXPECT_EQ(test, lc_chain_step(&one, sb, &raw->record, &info, NULL), 0);
	KUNIT_EXPECT_EQ(test, lc_chain_step(&any, sb, &raw->record, &info, NULL), 0);
	seal(&raw->record, sb, 3, 2, sb->epoch - 1);
	KUNIT_EXPECT_EQ(test, lc_chain_step(&one, sb, &raw->record, &info, &why), -ESTALE);
	KUNIT_EXPECT_STREQ(test, why, "of another life");
	KUNIT_EXPECT_EQ(test, one.slot, 3);
	KUNIT_EXPECT_EQ(test, lc_chain_step(&any, sb, &raw->record, &info, NULL), 0);
	KUNIT_EXPECT_EQ(test, any.slot, 6);
}

/* Seal a group of @nr blocks at @slot. */
static void seal_group(struct lc_record_header *raw, const struct lc_sb *sb, u32 slot, u32 nr,
		       u64 epoch)
{
	struct lc_record_info info = {
		.segment = SEGMENT, .first_slot = slot, .seq = sb->epoch_first_seq,
		.epoch = epoch, .epoch_first_seq = sb->epoch_first_seq, .type = LC_RECORD_DATA,
		.nr_entries = nr, .nr_slots = nr,
	};

	/* What it said before is whole blocks, too. */
	seal(raw, sb, slot, nr, epoch);
	memset(raw->lost, 0, sizeof(raw->lost));
	lc_group_seal(raw, sb, &info);
}

/* The walk of the log ends where the groups begin; the one for sums goes on. */
static void groups(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_XXH64);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;
	struct lc_chain log, any;

	lc_chain_start(&log, SEGMENT, 0);
	lc_chain_start(&any, SEGMENT, 0);
	seal(&raw->record, sb, 0, 2, sb->epoch);
	KUNIT_EXPECT_EQ(test, lc_chain_step(&log, sb, &raw->record, &info, NULL), 0);
	KUNIT_EXPECT_EQ(test, lc_chain_step_any(&any, sb, &raw->record, &info), 0);
	KUNIT_EXPECT_EQ(test, any.slot, 3);
	seal_group(&raw->record, sb, 3, 4, sb->epoch);
	KUNIT_EXPECT_EQ(test, lc_chain_step(&log, sb, &raw->record, &info, NULL), -ENODATA);
	KUNIT_EXPECT_EQ(test, log.slot, 3);
	KUNIT_EXPECT_EQ(test, lc_chain_step_any(&any, sb, &raw->record, &info), 0);
	KUNIT_EXPECT_EQ(test, info.first_slot, 3);
	KUNIT_EXPECT_EQ(test, info.nr_slots, 4);
	KUNIT_EXPECT_EQ(test, any.slot, 8);
	KUNIT_EXPECT_TRUE(test, lc_chain_unbroken(&any));
	seal_group(&raw->record, sb, 8, sb->geo.seg_slots - 9, sb->epoch);
	KUNIT_EXPECT_EQ(test, lc_chain_step_any(&any, sb, &raw->record, &info), 0);
	KUNIT_EXPECT_TRUE(test, lc_chain_at_end(&any, &sb->geo));
}

/* A group that rotted, of another place or of another life leaves the walk where it is. */
static void broken_group(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_XXH64);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;
	struct lc_chain chain;

	lc_chain_start(&chain, SEGMENT, sb->epoch);
	seal_group(&raw->record, sb, 0, 4, sb->epoch - 1);
	KUNIT_EXPECT_EQ(test, lc_chain_step_any(&chain, sb, &raw->record, &info), -ESTALE);
	seal_group(&raw->record, sb, 1, 4, sb->epoch);
	KUNIT_EXPECT_EQ(test, lc_chain_step_any(&chain, sb, &raw->record, &info), -EXDEV);
	seal_group(&raw->record, sb, 0, 4, sb->epoch);
	raw->bytes[LC_SLOT_BYTES - 1] ^= 1;
	KUNIT_EXPECT_EQ(test, lc_chain_step_any(&chain, sb, &raw->record, &info), -EBADMSG);
	/* So is a record that rotted told from no header at all. */
	seal(&raw->record, sb, 0, 2, sb->epoch);
	raw->bytes[LC_SLOT_BYTES - 1] ^= 1;
	KUNIT_EXPECT_EQ(test, lc_chain_step_any(&chain, sb, &raw->record, &info), -EBADMSG);
	memset(raw, 0, sizeof(*raw));
	KUNIT_EXPECT_EQ(test, lc_chain_step_any(&chain, sb, &raw->record, &info), -ENODATA);
	KUNIT_EXPECT_EQ(test, chain.slot, 0);
	KUNIT_EXPECT_TRUE(test, lc_chain_unbroken(&chain));
	seal_group(&raw->record, sb, 0, 4, sb->epoch);
	KUNIT_EXPECT_EQ(test, lc_chain_step_any(&chain, sb, &raw->record, &info), 0);
	KUNIT_EXPECT_EQ(test, chain.slot, 5);
}

static struct kunit_case chain_cases[] = {
	KUNIT_CASE(whole),
	KUNIT_CASE(broken),
	KUNIT_CASE(lives),
	KUNIT_CASE(groups),
	KUNIT_CASE(broken_group),
	{}
};

static struct kunit_suite chain_suite = {
	.name = "dm_lc_chain",
	.test_cases = chain_cases,
};

kunit_test_suite(chain_suite);
