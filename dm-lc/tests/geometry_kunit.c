// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where things lie, for cache devices from the smallest to beyond what one index
 * can address, and every segment size.  All of it in 64 bits.
 */
#include <kunit/test.h>

#include "example.h"

#define KIB	1024ULL
#define MIB	(1024 * KIB)
#define GIB	(1024 * MIB)
#define TIB	(1024 * GIB)

struct size {
	const char *name;
	u64 bytes;
};

static const struct size sizes[] = {
	{ "4 MiB", 4 * MIB },
	{ "64 MiB", 64 * MIB },
	{ "100 MB", 100000000 },
	{ "1 GiB", GIB },
	{ "4 GiB - 512", 4 * GIB - 512 },
	{ "4 GiB", 4 * GIB },
	{ "4 GiB + 4096", 4 * GIB + 4096 },
	{ "500 GB", 500107862016 },
	{ "2 TiB", 2 * TIB },
	{ "8 TiB", 8 * TIB },
	{ "16 TiB - 4096", 16 * TIB - 4096 },
	{ "16 TiB", 16 * TIB },
	{ "16 TiB + 1 GiB", 16 * TIB + GIB },
	{ "64 TiB", 64 * TIB },
	{ "1 EiB", 1ULL << 60 },
};

KUNIT_ARRAY_PARAM_DESC(sizes, sizes, name);

/* Superblocks, segments, checkpoint, third superblock: in this order, apart. */
static void check_layout(struct kunit *test, const struct lc_geometry *geo, u64 bytes)
{
	u64 segments_end = geo->segments_offset + geo->nr_segments * geo->segment_bytes;
	u64 entries = geo->ckpt_bytes / LC_SLOT_BYTES * LC_CKPT_ENTRIES;

	KUNIT_EXPECT_EQ(test, lc_geometry_check(geo), 0);
	KUNIT_EXPECT_LE(test, geo->cache_bytes, bytes);
	KUNIT_EXPECT_LT(test, bytes - geo->cache_bytes, (u64)LC_SLOT_BYTES);
	KUNIT_EXPECT_GE(test, geo->segments_offset, lc_format_sb_address(geo, 1) + LC_SLOT_BYTES);
	KUNIT_EXPECT_EQ(test, geo->segments_offset % geo->segment_bytes, 0);
	KUNIT_EXPECT_LE(test, segments_end, geo->ckpt_offset);
	KUNIT_EXPECT_LE(test, geo->ckpt_offset + geo->ckpt_bytes, geo->end_offset);
	KUNIT_EXPECT_LE(test, lc_format_sb_address(geo, 2) + LC_SLOT_BYTES, geo->cache_bytes);
	KUNIT_EXPECT_GE(test, geo->nr_segments, (u64)LC_MIN_SEGMENTS);
	KUNIT_EXPECT_EQ(test, geo->nr_slots, geo->nr_segments * geo->seg_slots);
	KUNIT_EXPECT_EQ(test, geo->seg_slots, geo->segment_bytes / LC_SLOT_BYTES);
	/* Slot numbers fit 32 bits with room for LC_NO_SLOT; every slot fits the checkpoint. */
	KUNIT_EXPECT_LE(test, geo->nr_slots, LC_MAX_SLOTS);
	KUNIT_EXPECT_GE(test, entries, geo->nr_slots);
	/* Little is wasted, unless more slots could not be addressed. */
	KUNIT_EXPECT_TRUE(test, geo->nr_slots + geo->seg_slots > LC_MAX_SLOTS ||
			  geo->end_offset - geo->ckpt_offset - geo->ckpt_bytes <
			  geo->segment_bytes + 65536 + (bytes >> 13));
}

static void layout(struct kunit *test)
{
	const struct size *size = test->param_value;
	struct lc_geometry geo;
	u32 seg;
	int ret;

	for (seg = LC_SEGMENT_BYTES_MIN; seg <= LC_SEGMENT_BYTES_MAX; seg *= 2) {
		ret = lc_geometry_compute(&geo, size->bytes, seg);
		if (size->bytes < (LC_MIN_SEGMENTS + 1) * (u64)seg + 2 * MIB) {
			KUNIT_EXPECT_EQ(test, ret, -ENOSPC);
			continue;
		}
		KUNIT_ASSERT_EQ(test, ret, 0);
		check_layout(test, &geo, size->bytes);
	}
}

/* Addresses of a ring's ends, in every lap, by arithmetic of their own. */
static void addresses(struct kunit *test)
{
	const struct size *size = test->param_value;
	struct lc_geometry geo;
	u64 lap, start;
	u32 seg;

	for (seg = LC_SEGMENT_BYTES_MIN; seg <= LC_SEGMENT_BYTES_MAX; seg *= 2) {
		if (lc_geometry_compute(&geo, size->bytes, seg))
			continue;
		start = max_t(u64, seg, MIB);
		KUNIT_EXPECT_EQ(test, lc_format_slot_address(&geo, 0, 0), start);
		KUNIT_EXPECT_EQ(test, lc_format_slot_address(&geo, geo.nr_segments, 0),
				start + geo.nr_slots * LC_SLOT_BYTES);
		KUNIT_EXPECT_EQ(test, lc_format_slot_address(&geo, geo.nr_segments - 1,
							     geo.seg_slots - 1),
				start + geo.nr_slots * LC_SLOT_BYTES - LC_SLOT_BYTES);
		KUNIT_EXPECT_EQ(test, lc_slot_address(&geo, geo.nr_slots - 1),
				start + geo.nr_slots * LC_SLOT_BYTES - LC_SLOT_BYTES);
		for (lap = 1; lap < 1ULL << 28; lap *= 37) {
			u64 first = lap * geo.nr_segments;

			KUNIT_EXPECT_EQ(test, lc_format_position(&geo, first), 0);
			KUNIT_EXPECT_EQ(test, lc_format_position(&geo, first - 1),
					geo.nr_segments - 1);
			KUNIT_EXPECT_EQ(test, lc_format_position(&geo, first + 1), 1);
			KUNIT_EXPECT_EQ(test, lc_format_log_address(&geo, first + 1, 2),
					lc_slot_address(&geo, geo.seg_slots + 2));
		}
	}
}

/* A superblock and a record at the far end survive their round trip. */
static void far_end(struct kunit *test)
{
	const struct size *size = test->param_value;
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	struct lc_sb *back = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info, out;
	struct lc_ckpt_item item = { .mask = 1 }, item_back = {};

	if (lc_geometry_compute(&sb->geo, size->bytes, LC_SEGMENT_BYTES_MIN))
		return;
	lc_sb_encode(sb, 2, &raw->sb);
	KUNIT_ASSERT_EQ(test, lc_sb_decode(&raw->sb, 2, back, NULL), 0);
	KUNIT_EXPECT_MEMEQ(test, &sb->geo, &back->geo, sizeof(sb->geo));

	example_record(&raw->record, sb, &info);
	info.segment = (1ULL << 30) * sb->geo.nr_segments - 1;
	info.first_slot = sb->geo.seg_slots - 3;
	lc_record_seal(&raw->record, sb, &info);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(raw->record.address),
			sb->geo.segments_offset + (sb->geo.nr_slots - 3) * LC_SLOT_BYTES);
	KUNIT_EXPECT_EQ(test, lc_record_decode(&raw->record, sb, info.segment, info.first_slot,
					       &out, NULL), 0);

	item.slot = sb->geo.nr_slots - 1;
	lc_ckpt_encode(&raw->ckpt, 0, &item);
	KUNIT_EXPECT_EQ(test, lc_ckpt_item_decode(&raw->ckpt, sb, 0, &item_back), 0);
	KUNIT_EXPECT_EQ(test, item_back.slot, item.slot);
}

static void bad_segment_sizes(struct kunit *test)
{
	static const u32 bad[] = {
		0, 1, 4096, 32768, 65535, 65537, 98304, 3 << 20, 8 << 20, 0x80000000, 0xffffffff,
	};
	struct lc_geometry geo;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test, lc_geometry_compute(&geo, GIB, bad[i]), -EINVAL,
				    "segments of %u", bad[i]);
}

/* The smallest device, to the slot. */
static void too_small(struct kunit *test)
{
	struct lc_geometry geo;
	u64 least, ckpt;
	u32 seg;

	for (seg = LC_SEGMENT_BYTES_MIN; seg <= LC_SEGMENT_BYTES_MAX; seg *= 2) {
		ckpt = DIV_ROUND_UP(LC_MIN_SEGMENTS * seg / LC_SLOT_BYTES, LC_CKPT_ENTRIES);
		ckpt = round_up(ckpt * LC_SLOT_BYTES, 65536);
		least = max_t(u64, seg, MIB) + LC_MIN_SEGMENTS * (u64)seg + ckpt + MIB;
		KUNIT_EXPECT_EQ(test, lc_geometry_compute(&geo, least - 1, seg), -ENOSPC);
		KUNIT_EXPECT_EQ(test, lc_geometry_compute(&geo, 0, seg), -ENOSPC);
		KUNIT_EXPECT_EQ(test, lc_geometry_compute(&geo, 4095, seg), -ENOSPC);
		KUNIT_EXPECT_EQ(test, lc_geometry_compute(&geo, 2 * MIB, seg), -ENOSPC);
		KUNIT_ASSERT_EQ(test, lc_geometry_compute(&geo, least, seg), 0);
		KUNIT_EXPECT_EQ(test, geo.nr_segments, (u64)LC_MIN_SEGMENTS);
		check_layout(test, &geo, least);
	}
}

/* 16 TiB is where slot numbers end: more device, not more segments. */
static void slot_limit(struct kunit *test)
{
	struct lc_geometry at, beyond;

	KUNIT_ASSERT_EQ(test, lc_geometry_compute(&at, 17 * TIB, LC_SEGMENT_BYTES_DEFAULT), 0);
	KUNIT_ASSERT_EQ(test, lc_geometry_compute(&beyond, 1ULL << 61,
						  LC_SEGMENT_BYTES_DEFAULT), 0);
	KUNIT_EXPECT_EQ(test, at.nr_segments, 16777215);
	KUNIT_EXPECT_EQ(test, beyond.nr_segments, 16777215);
	KUNIT_EXPECT_EQ(test, beyond.nr_slots, 16777215ULL * 256);
	KUNIT_EXPECT_EQ(test, beyond.end_offset, (1ULL << 61) - MIB);
}

static void mark_addresses(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, lc_format_mark_address(0, 0), 0);
	KUNIT_EXPECT_EQ(test, lc_format_mark_address(0, 1), 512 * KIB);
	KUNIT_EXPECT_EQ(test, lc_format_mark_address(64 * TIB - MIB, 1), 64 * TIB - 512 * KIB);
}

static struct kunit_case geometry_cases[] = {
	KUNIT_CASE_PARAM(layout, sizes_gen_params),
	KUNIT_CASE_PARAM(addresses, sizes_gen_params),
	KUNIT_CASE_PARAM(far_end, sizes_gen_params),
	KUNIT_CASE(bad_segment_sizes),
	KUNIT_CASE(too_small),
	KUNIT_CASE(slot_limit),
	KUNIT_CASE(mark_addresses),
	{}
};

static struct kunit_suite geometry_suite = {
	.name = "dm_lc_geometry",
	.test_cases = geometry_cases,
};

kunit_test_suite(geometry_suite);
