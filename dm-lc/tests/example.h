/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What several suites start from: the superblock of a small cache, its other
 * blocks, a way to put a good checksum under bad contents, and random numbers
 * that a failing run can be repeated with.
 */
#ifndef LC_TESTS_EXAMPLE_H
#define LC_TESTS_EXAMPLE_H

#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "formatted.h"

#define EXAMPLE_MARK_OFFSET	(1ULL << 20)

/* All 4 KiB metadata blocks begin alike. */
union example_block {
	struct lc_superblock sb;
	struct lc_mark mark;
	struct lc_record_header record;
	struct lc_ckpt_block ckpt;
	u8 bytes[LC_SLOT_BYTES];
};

/*
 * Seed for this test's random numbers: the module parameter kunit_seed, or a new
 * one.  Printed, so that the run can be repeated.
 */
void lc_test_seed(struct kunit *test, struct rnd_state *rnd);

static inline u64 example_random64(struct rnd_state *rnd)
{
	u64 high = prandom_u32_state(rnd);

	return high << 32 | prandom_u32_state(rnd);
}

/* Every field has a value of its own; the numbers are those of the golden blocks. */
static inline void example_sb(struct lc_sb *sb, u32 csum_type)
{
	u32 i;

	formatted_sb(sb, 64 << 20, LC_SEGMENT_BYTES_MIN);
	formatted_lay_out(sb, LAYOUT_FRONT, 8388608);
	sb->incompat = 0;
	for (i = 0; i < 16; i++) {
		sb->cache_uuid[i] = 0x10 + i;
		sb->volume_uuid[i] = 0x20 + i;
		sb->opener_boot_id[i] = 0x30 + i;
	}
	strscpy(sb->label, "golden", sizeof(sb->label));
	sb->sb_seq = 7;
	sb->creator_version = 0x010203;
	sb->lane_limit = 4;
	sb->csum_type = csum_type;
	sb->backing_lbs = 4096;
	sb->backing_bytes = (4ULL << 30) + (16 << 20);
	sb->epoch = 3;
	sb->epoch_first_seq = 90;
	sb->tail_seq = 50;
	sb->tail_segment = 20;
	sb->next_seq = 100;
	sb->head_segment = 30;
	sb->ckpt_entries = 5;
	sb->fingerprint = 0xabcdef;
	sb->opened_at = 1700000000000000000ULL;
	strscpy(sb->opener_host, "host", sizeof(sb->opener_host));
	strscpy(sb->backing_wwn, "wwn-1", sizeof(sb->backing_wwn));
	strscpy(sb->backing_serial, "serial-1", sizeof(sb->backing_serial));
	strscpy(sb->backing_partuuid, "partuuid-1", sizeof(sb->backing_partuuid));
	strscpy(sb->backing_dm_uuid, "dm-1", sizeof(sb->backing_dm_uuid));
	strscpy(sb->options, "buffers 8", sizeof(sb->options));
	sb->nr_skips = 1;
	sb->skips[0].segment = 40;
	sb->skips[0].count = 2;
	sb->mark_epoch = 3;
	sb->clean_epoch = 2;
	for (i = 0; i < LC_SB_SAMPLES; i++)
		sb->samples[i] = 0x1000 + i;
	sb->warm_segment = 15;
	sb->warm_ahead = 7;
	sb->warm_epoch = 2;
	sb->owner = 0x0102030405060708ULL;
	sb->mark_owner = 0x1112131415161718ULL;
}

static inline struct lc_sb *example_sb_alloc(struct kunit *test, u32 csum_type)
{
	struct lc_sb *sb = kunit_kzalloc(test, sizeof(*sb), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sb);
	example_sb(sb, csum_type);
	return sb;
}

static inline union example_block *example_block_alloc(struct kunit *test)
{
	union example_block *raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, raw);
	return raw;
}

/* Of the disk of example_sb(), which went on without its cache. */
static inline void example_mark(const struct lc_sb *sb, struct lc_mark_info *mark)
{
	formatted_mark(sb, mark);
	mark->mark_seq = 9;
	mark->state = LC_MARK_ABANDONED;
	mark->nr_lost = 1;
	mark->lost[0].sector = 800;
	mark->lost[0].nr_sectors = 16;
}

/* Seq 95 in slot 3 of segment 1000, two blocks. */
static inline void example_record(struct lc_record_header *raw, const struct lc_sb *sb,
				  struct lc_record_info *info)
{
	static const struct lc_entry_info entries[] = {
		{ .block = 0x89abc, .nr_blocks = 1, .mask = 0x0f, .lost = 0xf0,
		  .type = LC_ENTRY_DATA, .csum = 0xdeadbeef },
		{ .block = 0x12345, .nr_blocks = 1, .mask = 0xff,
		  .type = LC_ENTRY_DATA, .csum = 0x01020304 },
	};

	*info = (struct lc_record_info) {
		.segment = 1000, .first_slot = 3, .seq = 95, .epoch = 3, .epoch_first_seq = 90,
		.tail_seq = 50, .durable_seq = 94, .wall_clock = 1700000000000000001ULL,
		.lane = 2, .type = LC_RECORD_DATA, .nr_entries = 2, .nr_slots = 2,
	};
	memset(raw, 0, sizeof(*raw));
	lc_entry_encode(raw, 0, &entries[0]);
	lc_entry_encode(raw, 1, &entries[1]);
	lc_record_seal(raw, sb, info);
}

/* Block 5 of a checkpoint, two items. */
static inline void example_ckpt(struct lc_ckpt_block *raw, const struct lc_sb *sb)
{
	static const struct lc_ckpt_item items[] = {
		{ .slot = 17, .block = 0x89abc, .mask = 0x0f, .lost = 0xf0,
		  .flags = LC_CKPT_ENTRY_DIRTY },
		{ .slot = 15823, .block = 0x12345, .mask = 0xff },
	};

	memset(raw, 0, sizeof(*raw));
	lc_ckpt_encode(raw, 0, &items[0]);
	lc_ckpt_encode(raw, 1, &items[1]);
	lc_ckpt_seal(raw, sb, 5, 2);
}

/* A good checksum under whatever the block holds, as a forger would. */
static inline void example_reseal(union example_block *raw, u32 csum_type)
{
	static const u8 zero[8];
	u64 generation, sum;
	__le64 csum;

	generation = le64_to_cpu(raw->sb.generation);	/* byte 16 in all of them */
	sum = lc_format_csum64(csum_type, generation, raw->bytes, 8);
	sum = lc_format_csum64(csum_type, sum, zero, 8);
	csum = cpu_to_le64(lc_format_csum64(csum_type, sum, raw->bytes + 16,
					    LC_SLOT_BYTES - 16));
	memcpy(raw->bytes + 8, &csum, sizeof(csum));
}

#endif /* LC_TESTS_EXAMPLE_H */
