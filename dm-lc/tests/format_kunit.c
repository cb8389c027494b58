// SPDX-License-Identifier: GPL-2.0-only
/*
 * The codec: round trips, golden blocks, and every field of every block damaged
 * twice: as a rotten medium does it (the checksum tells) and as a forger does it
 * (the checksum is good, the bounds tell).
 */
#include <kunit/test.h>
#include <linux/crc32.h>

#include "../store/admit.h"
#include "fields.h"

/* --- superblock ---------------------------------------------------------- */

static void make_sb(union example_block *raw, const struct lc_sb *sb)
{
	lc_sb_encode(sb, 1, &raw->sb);
}

static int decode_sb(const union example_block *raw, const struct lc_sb *sb)
{
	static struct lc_sb out;

	return lc_sb_decode(&raw->sb, 1, &out, NULL);
}

static const struct kind sb_kind = { make_sb, decode_sb };

#define SB(field, value, forged)	FIELD(struct lc_superblock, field, value, forged, 0)

static const struct field sb_fields[] = {
	FIELD(struct lc_superblock, magic, 0, -ENODATA, -ENODATA),
	SB(generation, 1, 0),
	SB(cache_uuid, 1, 0),
	SB(volume_uuid, 1, 0),
	SB(label, ~0ULL, 0),
	SB(address, 0, -EXDEV),
	SB(address, 524288 + 4096, -EXDEV),
	SB(sb_seq, ~0ULL, 0),
	SB(creator_version, 0, 0),
	SB(compat, ~0ULL, 0),
	SB(ro_compat, 1, -EOPNOTSUPP),
	SB(incompat, TOP, -EOPNOTSUPP),
	SB(flags, 4, -ERANGE),
	SB(cache_bytes, 0, -ERANGE),
	SB(cache_bytes, TOP, -ERANGE),
	SB(cache_bytes, 67108865, -ERANGE),
	SB(cache_bytes, 66060288, -ERANGE),
	SB(segments_offset, 0, -ERANGE),
	SB(segments_offset, 524288, -ERANGE),
	SB(segments_offset, 1048576 + 4096, -ERANGE),
	SB(segments_offset, ~65535ULL, -ERANGE),
	SB(nr_segments, 0, -ERANGE),
	SB(nr_segments, 15, -ERANGE),
	SB(nr_segments, 990, -ERANGE),
	SB(nr_segments, TOP, -ERANGE),
	SB(nr_segments, ~0ULL, -ERANGE),
	SB(ckpt_offset, 0, -ERANGE),
	SB(ckpt_offset, 65863680 - 4096, -ERANGE),
	SB(ckpt_offset, 65863681, -ERANGE),
	SB(ckpt_offset, ~4095ULL, -ERANGE),
	SB(ckpt_bytes, 0, -ERANGE),
	SB(ckpt_bytes, 4096, -ERANGE),
	SB(ckpt_bytes, 196609, -ERANGE),
	SB(ckpt_bytes, 200704, -ERANGE),
	SB(ckpt_bytes, ~4095ULL, -ERANGE),
	SB(end_offset, 0, -ERANGE),
	SB(end_offset, 66060289, -ERANGE),
	SB(end_offset, 67108864, -ERANGE),
	SB(end_offset, ~4095ULL, -ERANGE),
	SB(segment_bytes, 0, -ERANGE),
	SB(segment_bytes, 32768, -ERANGE),
	SB(segment_bytes, 65537, -ERANGE),
	SB(segment_bytes, 8388608, -ERANGE),
	SB(slot_bytes, 512, -ERANGE),
	SB(header_slots, 0, -ERANGE),
	SB(header_slots, 2, -ERANGE),
	SB(lane_limit, 0, -ERANGE),
	SB(lane_limit, 1025, -ERANGE),
	SB(csum_type, 0, -EBADMSG),
	SB(csum_type, 3, -EBADMSG),
	SB(cache_lbs, 0, -ERANGE),
	SB(cache_lbs, 256, -ERANGE),
	SB(cache_lbs, 8192, -ERANGE),
	SB(backing_lbs, 768, -ERANGE),
	SB(volume_sectors, 0, -ERANGE),
	SB(volume_sectors, 8388608 + 32768, -ERANGE),
	SB(volume_sectors, LC_MAX_BLOCKS * 8, -ERANGE),
	SB(volume_sectors, ~0ULL, -ERANGE),
	SB(volume_sectors, 1ULL << 55, -ERANGE),
	SB(backing_bytes, 0, -ERANGE),
	SB(backing_bytes, TOP, -ERANGE),
	SB(backing_bytes, 4ULL << 30, -ERANGE),
	SB(data_offset, 0, -ERANGE),
	SB(data_offset, 1048576 + 512, -ERANGE),
	SB(data_offset, (16 << 20) + 4096, -ERANGE),
	SB(data_offset, ~4095ULL, -ERANGE),
	SB(mark_offset, 4096, -ERANGE),
	SB(mark_offset, 512, -ERANGE),
	SB(mark_offset, 4ULL << 30, -ERANGE),
	SB(mark_offset, (4ULL << 30) + (15 << 20) + 4096, -ERANGE),
	SB(mark_offset, ~4095ULL, -ERANGE),
	SB(mark_offset, (4ULL << 30) + (15 << 20), 0),
	SB(mark_offset, LC_NO_MARK, 0),
	SB(epoch, TOP, -ERANGE),
	SB(epoch_first_seq, TOP, -ERANGE),
	SB(tail_seq, 0, -ERANGE),
	SB(tail_seq, TOP, -ERANGE),
	SB(tail_segment, 0, -ERANGE),
	SB(tail_segment, TOP, -ERANGE),
	SB(next_seq, TOP, -ERANGE),
	SB(head_segment, ~0ULL, -ERANGE),
	SB(ckpt_entries, ~0ULL, 0),
	SB(fingerprint, ~0ULL, 0),
	SB(opened_at, 0, 0),
	SB(opener_boot_id, 0, 0),
	SB(opener_host, ~0ULL, 0),
	SB(backing_wwn, 0, 0),
	SB(backing_serial, 0, 0),
	SB(backing_partuuid, 0, 0),
	SB(backing_dm_uuid, 0, 0),
	SB(options, 0, 0),
	SB(nr_skips, LC_SB_SKIPS + 1, -ERANGE),
	SB(nr_skips, 0xffffffff, -ERANGE),
	SB(nr_skips, LC_SB_SKIPS, 0),
	SB(nr_lives, LC_SB_LIVES + 1, -ERANGE),
	SB(nr_lives, 1, 0),
	SB(nr_lives, 2, -ERANGE),
	SB(skips, ~0ULL, 0),
	SB(lives, ~0ULL, 0),
	SB(mark_epoch, 4, -ERANGE),
	SB(mark_epoch, 3, 0),
	SB(clean_epoch, ~0ULL, -ERANGE),
	SB(clean_epoch, 3, 0),
	SB(samples, ~0ULL, 0),
	SB(warm_segment, LC_NUMBERS_END, -ERANGE),
	SB(warm_segment, LC_NUMBERS_END - 1, 0),
	SB(warm_ahead, ~0ULL, 0),
	SB(warm_epoch, 4, -ERANGE),
	SB(warm_epoch, 3, 0),
	SB(owner, ~0ULL, 0),
	SB(mark_owner, 0, 0),
	SB(reserved, ~0ULL, 0),
};

KUNIT_ARRAY_PARAM_DESC(sb_fields, sb_fields, name);

static void sb_field(struct kunit *test)
{
	check_field(test, &sb_kind);
}

static void sb_bits(struct kunit *test)
{
	check_bits(test, &sb_kind, 3);
}

static void sb_version(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);

	/* A newer format may sum differently: it must not be called damaged. */
	make_sb(raw, sb);
	raw->sb.version = cpu_to_le32(LC_FORMAT_VERSION + 1);
	KUNIT_EXPECT_EQ(test, decode_sb(raw, sb), -EOPNOTSUPP);
	raw->sb.version = 0;
	KUNIT_EXPECT_EQ(test, decode_sb(raw, sb), -EBADMSG);
	example_reseal(raw, LC_CSUM_CRC32C);
	KUNIT_EXPECT_EQ(test, decode_sb(raw, sb), -ERANGE);
}

/* What only counts with LC_SB_CLEAN. */
static void sb_clean(struct kunit *test)
{
	static const struct field fields[] = {
		SB(head_segment, 19, -ERANGE),
		SB(head_segment, 20, 0),
		SB(head_segment, 20 + 989, 0),
		SB(head_segment, 20 + 990, -ERANGE),
		SB(next_seq, 49, -ERANGE),
		SB(next_seq, 50, 0),
		SB(ckpt_entries, 15824, 0),
		SB(ckpt_entries, 15825, -ERANGE),
	};
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_XXH64);
	union example_block *raw = example_block_alloc(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		sb->flags = LC_SB_CLEAN;
		make_sb(raw, sb);
		put_field(raw, &fields[i]);
		example_reseal(raw, LC_CSUM_XXH64);
		KUNIT_EXPECT_EQ_MSG(test, decode_sb(raw, sb), fields[i].forged, "%s",
				    fields[i].name);
		raw->sb.flags = 0;
		example_reseal(raw, LC_CSUM_XXH64);
		KUNIT_EXPECT_EQ_MSG(test, decode_sb(raw, sb), 0, "%s", fields[i].name);
	}
}

static void sb_round_trip(struct kunit *test)
{
	struct lc_sb *back = kunit_kzalloc(test, sizeof(*back), GFP_KERNEL);
	union example_block *raw = example_block_alloc(test);
	u32 type, copy, other;

	KUNIT_ASSERT_NOT_NULL(test, back);
	for (type = LC_CSUM_CRC32C; type <= LC_CSUM_XXH64; type++) {
		struct lc_sb *sb = example_sb_alloc(test, type);

		sb->compat = TOP | 1;	/* of a newer version: kept */
		for (copy = 0; copy < LC_SB_COPIES; copy++) {
			memset(raw, 0x5a, sizeof(*raw));
			lc_sb_encode(sb, copy, &raw->sb);
			for (other = 0; other < LC_SB_COPIES; other++)
				KUNIT_EXPECT_EQ(test,
						lc_sb_decode(&raw->sb, other, back, NULL),
						other == copy ? 0 : -EXDEV);
			lc_sb_decode(&raw->sb, copy, back, NULL);
			KUNIT_EXPECT_MEMEQ(test, sb, back, sizeof(*sb));
		}
	}
}

/* A text that fills its field is cut, and a native text always ends. */
static void sb_text(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	struct lc_sb *back = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);

	memset(sb->label, 'x', sizeof(sb->label));
	make_sb(raw, sb);
	KUNIT_EXPECT_EQ(test, raw->sb.label[63], 0);
	memset(raw->sb.options, 'y', sizeof(raw->sb.options));
	example_reseal(raw, LC_CSUM_CRC32C);
	KUNIT_ASSERT_EQ(test, lc_sb_decode(&raw->sb, 1, back, NULL), 0);
	KUNIT_EXPECT_EQ(test, strnlen(back->label, sizeof(back->label)), 63);
	KUNIT_EXPECT_EQ(test, strnlen(back->options, sizeof(back->options)), 511);
}

/* Where a life may begin, its superblock can be read back, and it has room to live. */
static void sb_next_life(struct kunit *test)
{
	static const u64 low[3] = { 0, 1, 1 };
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	u32 i;

	/* The lowest epoch is below those that the example has seen. */
	sb->mark_epoch = 0;
	sb->clean_epoch = 0;
	sb->warm_epoch = 0;
	KUNIT_EXPECT_TRUE(test, lc_life_possible(low[0], low[1], low[2]));
	for (i = 0; i < 3; i++) {
		u64 n[3] = { low[0], low[1], low[2] };

		n[i] = TOP / 2 - 1;
		KUNIT_EXPECT_TRUE(test, lc_life_possible(n[0], n[1], n[2]));
		sb->epoch = n[0] + 1;
		sb->epoch_first_seq = n[1];
		sb->tail_seq = n[1];
		sb->tail_segment = n[2];
		make_sb(raw, sb);
		KUNIT_EXPECT_EQ(test, decode_sb(raw, sb), 0);
		n[i] = TOP / 2;
		KUNIT_EXPECT_FALSE(test, lc_life_possible(n[0], n[1], n[2]));
		n[i] = ~0ULL;
		KUNIT_EXPECT_FALSE(test, lc_life_possible(n[0], n[1], n[2]));
	}
}

/* --- mark ---------------------------------------------------------------- */

static void make_mark(union example_block *raw, const struct lc_sb *sb)
{
	static struct lc_mark_info mark;

	example_mark(sb, &mark);
	lc_mark_encode(&mark, sb->csum_type, EXAMPLE_MARK_OFFSET, 1, &raw->mark);
}

static int decode_mark(const union example_block *raw, const struct lc_sb *sb)
{
	static struct lc_mark_info mark;

	return lc_mark_decode(&raw->mark, EXAMPLE_MARK_OFFSET, 1, &mark, NULL);
}

static const struct kind mark_kind = { make_mark, decode_mark };

#define MARK(field, value, forged)	FIELD(struct lc_mark, field, value, forged, 0)

static const struct field mark_fields[] = {
	FIELD(struct lc_mark, magic, 0, -ENODATA, -ENODATA),
	MARK(generation, 1, 0),
	MARK(cache_uuid, 1, 0),
	MARK(volume_uuid, 1, 0),
	MARK(address, 0, -EXDEV),
	MARK(address, EXAMPLE_MARK_OFFSET, -EXDEV),
	MARK(mark_seq, ~0ULL, 0),
	MARK(state, 0, -ERANGE),
	MARK(state, LC_MARK_ATTACHING, 0),
	MARK(state, LC_MARK_DETACHING, 0),
	MARK(state, 5, -ERANGE),
	MARK(head_offset, 8388608ULL << 9, -ERANGE),
	MARK(head_offset, 4096, -ERANGE),
	MARK(state, LC_MARK_PAIRED, 0),
	MARK(epoch, ~0ULL, 0),
	MARK(volume_sectors, 0, 0),
	MARK(data_offset, 0, 0),
	MARK(nr_lost, LC_MARK_LOST + 1, -ERANGE),
	MARK(nr_lost, LC_MARK_LOST_TOO_MANY - 1, -ERANGE),
	MARK(nr_lost, LC_MARK_LOST, 0),
	MARK(nr_lost, LC_MARK_LOST_TOO_MANY, 0),
	MARK(csum_type, 0, -EBADMSG),
	MARK(csum_type, 3, -EBADMSG),
	MARK(reserved0, ~0ULL, 0),
	MARK(label, ~0ULL, 0),
	MARK(lost, ~0ULL, 0),
	MARK(owner, ~0ULL, 0),
	MARK(reserved, ~0ULL, 0),
};

KUNIT_ARRAY_PARAM_DESC(mark_fields, mark_fields, name);

static void mark_field(struct kunit *test)
{
	check_field(test, &mark_kind);
}

static void mark_bits(struct kunit *test)
{
	check_bits(test, &mark_kind, 3);
}

static void mark_version(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);

	make_mark(raw, sb);
	raw->mark.version = cpu_to_le32(LC_FORMAT_VERSION + 1);
	KUNIT_EXPECT_EQ(test, decode_mark(raw, sb), -EOPNOTSUPP);
	raw->mark.version = 0;
	KUNIT_EXPECT_EQ(test, decode_mark(raw, sb), -EBADMSG);
	example_reseal(raw, LC_CSUM_CRC32C);
	KUNIT_EXPECT_EQ(test, decode_mark(raw, sb), -ERANGE);
}

static void mark_round_trip(struct kunit *test)
{
	struct lc_mark_info *mark = kunit_kzalloc(test, 2 * sizeof(*mark), GFP_KERNEL);
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_XXH64);
	union example_block *raw = example_block_alloc(test);
	static const u32 nr_lost[] = { 0, 1, LC_MARK_LOST };
	u32 copy, i;

	KUNIT_ASSERT_NOT_NULL(test, mark);
	for (copy = 0; copy < 2; copy++) {
		for (i = 0; i < ARRAY_SIZE(nr_lost); i++) {
			example_mark(sb, mark);
			mark->nr_lost = nr_lost[i];
			if (!nr_lost[i])
				memset(mark->lost, 0, sizeof(mark->lost));
			lc_mark_encode(mark, LC_CSUM_XXH64, 12345 << 12, copy, &raw->mark);
			KUNIT_EXPECT_EQ(test, lc_mark_decode(&raw->mark, 12345 << 12, copy,
							     mark + 1, NULL), 0);
			KUNIT_EXPECT_MEMEQ(test, mark, mark + 1, sizeof(*mark));
			KUNIT_EXPECT_EQ(test, lc_mark_decode(&raw->mark, 12345 << 12, !copy,
							     mark + 1, NULL), -EXDEV);
		}
	}
}

/* --- record header ------------------------------------------------------- */

static void make_record(union example_block *raw, const struct lc_sb *sb)
{
	struct lc_record_info info;

	example_record(&raw->record, sb, &info);
}

static int decode_record(const union example_block *raw, const struct lc_sb *sb)
{
	struct lc_record_info info;

	return lc_record_decode(&raw->record, sb, 1000, 3, &info, NULL);
}

static const struct kind record_kind = { make_record, decode_record };

#define REC(field, value, forged)	FIELD(struct lc_record_header, field, value, forged, 0)

static const struct field record_fields[] = {
	FIELD(struct lc_record_header, magic, 0, -ENODATA, -ENODATA),
	FIELD(struct lc_record_header, generation, 1, -ESTALE, -ESTALE),
	FIELD(struct lc_record_header, cache_uuid, 1, -ESTALE, -ESTALE),
	REC(address, 0, -EXDEV),
	REC(segment, 11, -ESTALE),
	REC(segment, 1000 + 989, -ESTALE),
	REC(seq, 0, -ERANGE),
	REC(seq, TOP, -ERANGE),
	REC(seq, 94, -ERANGE),
	REC(seq, 89, -ERANGE),
	REC(epoch, TOP, -ERANGE),
	REC(epoch, TOP - 1, 0),
	REC(epoch_first_seq, 0, -ERANGE),
	REC(epoch_first_seq, 96, -ERANGE),
	REC(epoch_first_seq, 95, 0),
	REC(boundary, ~0ULL, -ERANGE),
	REC(tail_seq, ~0ULL, 0),
	REC(durable_seq, 95, -ERANGE),
	REC(durable_seq, ~0ULL, -ERANGE),
	REC(wall_clock, ~0ULL, 0),
	REC(lane, 4, -ERANGE),
	REC(lane, 3, 0),
	REC(type, 0, -EOPNOTSUPP),
	REC(type, 3, -EOPNOTSUPP),
	REC(type, LC_RECORD_RANGE, -ERANGE),
	REC(flags, 1, -EOPNOTSUPP),
	REC(nr_entries, 0, -ERANGE),
	REC(nr_entries, 1, -ERANGE),
	REC(nr_entries, LC_RECORD_ENTRIES + 1, -ERANGE),
	REC(nr_slots, 0, -ERANGE),
	REC(nr_slots, 3, -ERANGE),
	REC(nr_slots, 0xffff, -ERANGE),
	REC(number, ~0ULL, 0),
	REC(entries[0].block_lo, 1048576, -ERANGE),
	REC(entries[0].block_lo, 1048575, 0),
	REC(entries[1].block_hi, 1, -ERANGE),
	REC(entries[0].backing, 1, -EOPNOTSUPP),
	REC(entries[0].mask, 0x1f, -ERANGE),
	REC(entries[1].type, 6, -ERANGE),
	REC(entries[1].type, LC_ENTRY_RANGE_TOMBSTONE, -ERANGE),
	REC(entries[1].type, LC_ENTRY_NONE, 0),
	REC(entries[1].type, LC_ENTRY_ZERO, 0),
	REC(entries[0].csum, 0, 0),
	REC(lost[1], 0x80, -ERANGE),
	REC(reserved, ~0ULL, 0),
};

KUNIT_ARRAY_PARAM_DESC(record_fields, record_fields, name);

static void record_field(struct kunit *test)
{
	check_field(test, &record_kind);
}

static void record_bits(struct kunit *test)
{
	check_bits(test, &record_kind, 3);
}

/* The same bytes in another place, of another lap or in another cache. */
static void record_place(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;

	make_record(raw, sb);
	KUNIT_EXPECT_EQ(test, lc_record_decode(&raw->record, sb, 1000, 4, &info, NULL), -EXDEV);
	KUNIT_EXPECT_EQ(test, lc_record_decode(&raw->record, sb, 1001, 3, &info, NULL), -EXDEV);
	KUNIT_EXPECT_EQ(test, lc_record_decode(&raw->record, sb, 1989, 3, &info, NULL), -ESTALE);
	sb->generation++;
	KUNIT_EXPECT_EQ(test, decode_record(raw, sb), -ESTALE);
	sb->generation--;
	sb->cache_uuid[15]++;
	KUNIT_EXPECT_EQ(test, decode_record(raw, sb), -ESTALE);
}

/* Up to the last slot of the segment, not further. */
static void record_bounds(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info, out;
	u32 first;

	for (first = 0; first < sb->geo.seg_slots; first++) {
		example_record(&raw->record, sb, &info);
		info.first_slot = first;
		lc_record_seal(&raw->record, sb, &info);
		KUNIT_EXPECT_EQ(test, lc_record_decode(&raw->record, sb, 1000, first, &out, NULL),
				first + 3 <= sb->geo.seg_slots ? 0 : -ERANGE);
	}
}

static void record_round_trip(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_XXH64);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info, out = {};
	struct lc_entry_info entry, back;
	struct rnd_state rnd;
	u32 round, i;

	lc_test_seed(test, &rnd);
	for (round = 0; round < 100; round++) {
		bool range = prandom_u32_state(&rnd) & 1;

		memset(raw, 0, sizeof(*raw));
		memset(&info, 0, sizeof(info));
		info.segment = example_random64(&rnd) >> 2;
		info.seq = 1 + (example_random64(&rnd) >> 3);
		info.epoch = example_random64(&rnd) >> 2;
		info.epoch_first_seq = 1 + example_random64(&rnd) % info.seq;
		info.durable_seq = info.seq - 1;
		info.tail_seq = example_random64(&rnd);
		info.wall_clock = example_random64(&rnd);
		info.lane = prandom_u32_state(&rnd) % 4;
		info.type = range ? LC_RECORD_RANGE : LC_RECORD_DATA;
		info.nr_entries = 1 + prandom_u32_state(&rnd) % 15;
		info.nr_slots = range ? 0 : info.nr_entries;
		for (i = 0; i < info.nr_entries; i++) {
			memset(&entry, 0, sizeof(entry));
			entry.block = example_random64(&rnd) % 1048576;
			entry.nr_blocks = range ? 1048576 - entry.block : 1;
			entry.type = LC_ENTRY_DATA;
			if (range)
				entry.type = LC_ENTRY_RANGE_TOMBSTONE + i % 3;
			entry.mask = prandom_u32_state(&rnd);
			entry.lost = prandom_u32_state(&rnd) & ~entry.mask;
			entry.csum = range ? 0 : prandom_u32_state(&rnd);
			lc_entry_encode(&raw->record, i, &entry);
			memset(&back, 0, sizeof(back));
			lc_entry_decode(&raw->record, i, &back);
			KUNIT_EXPECT_MEMEQ(test, &entry, &back, sizeof(entry));
		}
		lc_record_seal(&raw->record, sb, &info);
		KUNIT_EXPECT_EQ(test, lc_record_decode(&raw->record, sb, info.segment, 0, &out,
						       NULL), 0);
		KUNIT_EXPECT_MEMEQ(test, &info, &out, sizeof(info));
	}
}

/* --- checkpoint ---------------------------------------------------------- */

static void make_ckpt(union example_block *raw, const struct lc_sb *sb)
{
	example_ckpt(&raw->ckpt, sb);
}

static int decode_ckpt(const union example_block *raw, const struct lc_sb *sb)
{
	u32 nr;

	return lc_ckpt_decode(&raw->ckpt, sb, 5, &nr, NULL);
}

static const struct kind ckpt_kind = { make_ckpt, decode_ckpt };

static const struct field ckpt_fields[] = {
	FIELD(struct lc_ckpt_block, magic, 0, -ENODATA, -ENODATA),
	FIELD(struct lc_ckpt_block, generation, 1, -ESTALE, -ESTALE),
	FIELD(struct lc_ckpt_block, epoch, 2, -ESTALE, -ESTALE),
	FIELD(struct lc_ckpt_block, index, 6, -EXDEV, 0),
	FIELD(struct lc_ckpt_block, nr_entries, LC_CKPT_ENTRIES + 1, -ERANGE, 0),
	FIELD(struct lc_ckpt_block, nr_entries, 0xffffffff, -ERANGE, 0),
	FIELD(struct lc_ckpt_block, nr_entries, LC_CKPT_ENTRIES, 0, 0),
	FIELD(struct lc_ckpt_block, reserved, ~0ULL, 0, 0),
	FIELD(struct lc_ckpt_block, entries[1].slot, 0, 0, 0),
};

KUNIT_ARRAY_PARAM_DESC(ckpt_fields, ckpt_fields, name);

static void ckpt_field(struct kunit *test)
{
	check_field(test, &ckpt_kind);
}

static void ckpt_bits(struct kunit *test)
{
	check_bits(test, &ckpt_kind, 3);
}

static void ckpt_items(struct kunit *test)
{
	static const struct {
		struct lc_ckpt_item item;
		int ret;
	} cases[] = {
		{ { .slot = 0, .block = 0, .mask = 1 }, 0 },
		{ { .slot = 15823, .block = 1048575, .mask = 0xff, .flags = 1 }, 0 },
		{ { .slot = 1, .block = 1, .mask = 0x0f, .lost = 0xf0 }, 0 },
		{ { .slot = 1, .block = 1, .lost = 0xff }, 0 },
		{ { .slot = 15824, .block = 0, .mask = 1 }, -ERANGE },
		{ { .slot = 0, .block = 1048576, .mask = 1 }, -ERANGE },
		{ { .slot = 0, .block = LC_MAX_BLOCKS - 1, .mask = 1 }, -ERANGE },
		{ { .slot = 0, .block = 0 }, -ERANGE },
		{ { .slot = 0, .block = 0, .mask = 3, .lost = 2 }, -ERANGE },
		{ { .slot = 0, .block = 0, .mask = 1, .flags = 3 }, -ERANGE },
		{ { .slot = 0, .block = 0, .mask = 1, .flags = 1 << LC_CKPT_USE_SHIFT }, -ERANGE },
		{ { .slot = 0, .block = 0, .mask = 1, .flags = 0x80 }, -ERANGE },
		{ { .slot = 0, .seq = 64, .flags = LC_CKPT_ENTRY_BOUNDARY }, -ERANGE },
	};
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	struct lc_ckpt_item back = {};
	u32 i, nr;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 at = i ? LC_CKPT_ENTRIES - i : 0;

		lc_ckpt_encode(&raw->ckpt, at, &cases[i].item);
		lc_ckpt_seal(&raw->ckpt, sb, 0, LC_CKPT_ENTRIES);
		KUNIT_ASSERT_EQ(test, lc_ckpt_decode(&raw->ckpt, sb, 0, &nr, NULL), 0);
		KUNIT_EXPECT_EQ(test, nr, LC_CKPT_ENTRIES);
		KUNIT_EXPECT_EQ_MSG(test, lc_ckpt_item_decode(&raw->ckpt, sb, at, &back),
				    cases[i].ret, "item %u", i);
		KUNIT_EXPECT_MEMEQ(test, &back, &cases[i].item, sizeof(back));
	}
}

/* With the feature: how a block came here and was used, whatever else is said of it. */
static void ckpt_uses(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	struct lc_ckpt_item item = { .slot = 17, .block = 7, .mask = 0xff }, back;
	u32 flags, use, wrong = 0;
	int ret;

	sb->incompat |= LC_INCOMPAT_PROMOTED;
	for (flags = 0; flags <= U8_MAX; flags++) {
		item.flags = flags;
		lc_ckpt_encode(&raw->ckpt, 3, &item);
		ret = lc_ckpt_item_decode(&raw->ckpt, sb, 3, &back);
		/* The only flag of a boundary alone is none of a block. */
		if (flags == LC_CKPT_ENTRY_BOUNDARY)
			continue;
		wrong += ret != (flags & 6 ? -ERANGE : 0) || memcmp(&item, &back, sizeof(item));
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	for (use = 0; use <= LC_ADMIT_FLAGS; use++) {
		item.flags = LC_CKPT_ENTRY_DIRTY | use << LC_CKPT_USE_SHIFT;
		lc_ckpt_encode(&raw->ckpt, 3, &item);
		KUNIT_EXPECT_EQ(test, lc_ckpt_item_decode(&raw->ckpt, sb, 3, &back), 0);
		KUNIT_EXPECT_EQ(test, back.flags >> LC_CKPT_USE_SHIFT, use);
		KUNIT_EXPECT_TRUE(test, back.flags & LC_CKPT_ENTRY_DIRTY);
	}
}

/* --- golden -------------------------------------------------------------- */

/*
 * The bytes of the format, once and for all: the checksum in each example block
 * and the CRC32C over all of its 4 KiB, worked out apart from this codec.  A change
 * here is a new format version.
 */
static void golden_blocks(struct kunit *test)
{
	static const struct {
		const struct kind *kind;
		u32 csum_type;
		u64 csum;
		u32 block_crc;
		u64 incompat;
	} golden[] = {
		{ &sb_kind, LC_CSUM_CRC32C, 0x938893eb6c776c14, 0x49dff2de },
		{ &sb_kind, LC_CSUM_XXH64, 0x5ee09e79ad56ee15, 0x18d8cfba },
		{ &mark_kind, LC_CSUM_CRC32C, 0x63ea17d29c15e82d, 0x6a49ce14 },
		{ &mark_kind, LC_CSUM_XXH64, 0x8d8980e67bc54277, 0xa9a64b13 },
		{ &record_kind, LC_CSUM_CRC32C, 0x759505808a6afa7f, 0xec35ddd6 },
		{ &record_kind, LC_CSUM_XXH64, 0x0edd0dcf658a66fc, 0x458e6641 },
		{ &record_kind, LC_CSUM_CRC32C, 0xc46884f43b977b0b, 0x1d049263,
		  LC_INCOMPAT_SHORT_SUMS },
		{ &record_kind, LC_CSUM_XXH64, 0x0dde6a5c67e21836, 0x37f3030b,
		  LC_INCOMPAT_SHORT_SUMS },
		{ &ckpt_kind, LC_CSUM_CRC32C, 0xe4b472261b4b8dd9, 0x02a61bb1 },
		{ &ckpt_kind, LC_CSUM_XXH64, 0xd08d7e8c01e52902, 0xb8878c90 },
	};
	union example_block *raw = example_block_alloc(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(golden); i++) {
		struct lc_sb *sb = example_sb_alloc(test, golden[i].csum_type);

		sb->incompat = golden[i].incompat;
		golden[i].kind->make(raw, sb);
		KUNIT_EXPECT_EQ_MSG(test, le64_to_cpu(raw->sb.csum), golden[i].csum, "block %u", i);
		KUNIT_EXPECT_EQ_MSG(test, ~crc32c(~0, raw->bytes, LC_SLOT_BYTES),
				    golden[i].block_crc, "block %u", i);
	}
}

/* Every decoder gives a text for people. */
static void reasons(struct kunit *test)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;
	const char *why = NULL;
	u32 nr;

	KUNIT_EXPECT_EQ(test, lc_sb_decode(&raw->sb, 0, sb, &why), -ENODATA);
	KUNIT_EXPECT_STREQ(test, why, "no dm-lc superblock");
	example_sb(sb, LC_CSUM_CRC32C);
	KUNIT_EXPECT_EQ(test, lc_record_decode(&raw->record, sb, 1, 0, &info, &why), -ENODATA);
	KUNIT_EXPECT_STREQ(test, why, "no record header");
	KUNIT_EXPECT_EQ(test, lc_ckpt_decode(&raw->ckpt, sb, 1, &nr, &why), -ENODATA);
	KUNIT_EXPECT_STREQ(test, why, "no checkpoint block");
}

static struct kunit_case format_cases[] = {
	KUNIT_CASE(golden_blocks),
	KUNIT_CASE(reasons),
	KUNIT_CASE(sb_round_trip),
	KUNIT_CASE(sb_text),
	KUNIT_CASE(sb_version),
	KUNIT_CASE(sb_clean),
	KUNIT_CASE(sb_next_life),
	KUNIT_CASE_PARAM(sb_field, sb_fields_gen_params),
	KUNIT_CASE(sb_bits),
	KUNIT_CASE(mark_round_trip),
	KUNIT_CASE(mark_version),
	KUNIT_CASE_PARAM(mark_field, mark_fields_gen_params),
	KUNIT_CASE(mark_bits),
	KUNIT_CASE(record_round_trip),
	KUNIT_CASE(record_place),
	KUNIT_CASE(record_bounds),
	KUNIT_CASE_PARAM(record_field, record_fields_gen_params),
	KUNIT_CASE(record_bits),
	KUNIT_CASE(ckpt_items),
	KUNIT_CASE(ckpt_uses),
	KUNIT_CASE_PARAM(ckpt_field, ckpt_fields_gen_params),
	KUNIT_CASE(ckpt_bits),
	{}
};

static struct kunit_suite format_suite = {
	.name = "dm_lc_format",
	.test_cases = format_cases,
};

kunit_test_suite(format_suite);
