// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metadata blocks as raw bytes, see seal.h.  The checksum is computed by the
 * words of docs/on-disk-format.rst, not by the codec under test.
 */
#include <string.h>

#include "seal.h"

struct field {
	const char *name;
	u16 at, size;
	u16 stride, count;	/* of a table */
};

#define FIELD(type, field) \
	{ #field, offsetof(struct type, field), sizeof(((struct type *)0)->field), 0, 1 }
#define TABLE(type, table, count, field)					\
	{ #table "." #field,							\
	  offsetof(struct type, table) + offsetof(typeof(((struct type *)0)->table[0]), field), \
	  sizeof(((struct type *)0)->table[0].field), sizeof(((struct type *)0)->table[0]), count }

static const struct field superblock_fields[] = {
	FIELD(lc_superblock, generation), FIELD(lc_superblock, address),
	FIELD(lc_superblock, sb_seq), FIELD(lc_superblock, version),
	FIELD(lc_superblock, creator_version), FIELD(lc_superblock, compat),
	FIELD(lc_superblock, ro_compat), FIELD(lc_superblock, incompat),
	FIELD(lc_superblock, cache_bytes), FIELD(lc_superblock, segments_offset),
	FIELD(lc_superblock, nr_segments), FIELD(lc_superblock, ckpt_offset),
	FIELD(lc_superblock, ckpt_bytes), FIELD(lc_superblock, end_offset),
	FIELD(lc_superblock, segment_bytes), FIELD(lc_superblock, slot_bytes),
	FIELD(lc_superblock, header_slots), FIELD(lc_superblock, lane_limit),
	FIELD(lc_superblock, csum_type), FIELD(lc_superblock, cache_lbs),
	FIELD(lc_superblock, backing_lbs), FIELD(lc_superblock, flags),
	FIELD(lc_superblock, volume_sectors), FIELD(lc_superblock, backing_bytes),
	FIELD(lc_superblock, data_offset), FIELD(lc_superblock, mark_offset),
	FIELD(lc_superblock, epoch), FIELD(lc_superblock, epoch_first_seq),
	FIELD(lc_superblock, tail_seq), FIELD(lc_superblock, tail_segment),
	FIELD(lc_superblock, next_seq), FIELD(lc_superblock, head_segment),
	FIELD(lc_superblock, ckpt_entries), FIELD(lc_superblock, fingerprint),
	FIELD(lc_superblock, opened_at), FIELD(lc_superblock, label),
	FIELD(lc_superblock, opener_host), FIELD(lc_superblock, options),
	FIELD(lc_superblock, backing_dm_uuid), FIELD(lc_superblock, nr_skips),
	TABLE(lc_superblock, skips, LC_SB_SKIPS, segment),
	TABLE(lc_superblock, skips, LC_SB_SKIPS, count),
	FIELD(lc_superblock, nr_lives), TABLE(lc_superblock, lives, LC_SB_LIVES, epoch),
	TABLE(lc_superblock, lives, LC_SB_LIVES, first_seq), FIELD(lc_superblock, mark_epoch),
	FIELD(lc_superblock, clean_epoch),
	FIELD(lc_superblock, warm_segment), FIELD(lc_superblock, warm_ahead),
	FIELD(lc_superblock, warm_epoch), FIELD(lc_superblock, owner),
	FIELD(lc_superblock, mark_owner),
	{ "samples", offsetof(struct lc_superblock, samples), 4, 4, LC_SB_SAMPLES },
};

static const struct field mark_fields[] = {
	FIELD(lc_mark, generation), FIELD(lc_mark, cache_uuid), FIELD(lc_mark, volume_uuid),
	FIELD(lc_mark, address), FIELD(lc_mark, mark_seq), FIELD(lc_mark, version),
	FIELD(lc_mark, state), FIELD(lc_mark, epoch), FIELD(lc_mark, volume_sectors),
	FIELD(lc_mark, data_offset), FIELD(lc_mark, nr_lost), FIELD(lc_mark, csum_type),
	FIELD(lc_mark, label), TABLE(lc_mark, lost, LC_MARK_LOST, sector),
	TABLE(lc_mark, lost, LC_MARK_LOST, nr_sectors), FIELD(lc_mark, head_offset),
	FIELD(lc_mark, owner),
};

static const struct field record_fields[] = {
	FIELD(lc_record_header, generation), FIELD(lc_record_header, cache_uuid),
	FIELD(lc_record_header, address), FIELD(lc_record_header, segment),
	FIELD(lc_record_header, seq), FIELD(lc_record_header, epoch),
	FIELD(lc_record_header, epoch_first_seq), FIELD(lc_record_header, boundary),
	FIELD(lc_record_header, tail_seq), FIELD(lc_record_header, durable_seq),
	FIELD(lc_record_header, wall_clock), FIELD(lc_record_header, lane),
	FIELD(lc_record_header, type), FIELD(lc_record_header, flags),
	FIELD(lc_record_header, nr_entries), FIELD(lc_record_header, nr_slots),
	TABLE(lc_record_header, entries, LC_RECORD_ENTRIES, block_lo),
	TABLE(lc_record_header, entries, LC_RECORD_ENTRIES, block_hi),
	TABLE(lc_record_header, entries, LC_RECORD_ENTRIES, backing),
	TABLE(lc_record_header, entries, LC_RECORD_ENTRIES, mask),
	TABLE(lc_record_header, entries, LC_RECORD_ENTRIES, type),
	TABLE(lc_record_header, entries, LC_RECORD_ENTRIES, csum),
	{ "lost", offsetof(struct lc_record_header, lost), 1, 1, LC_RECORD_ENTRIES },
};

static const struct field ckpt_fields[] = {
	FIELD(lc_ckpt_block, generation), FIELD(lc_ckpt_block, epoch),
	FIELD(lc_ckpt_block, index), FIELD(lc_ckpt_block, nr_entries),
	TABLE(lc_ckpt_block, entries, LC_CKPT_ENTRIES, slot),
	TABLE(lc_ckpt_block, entries, LC_CKPT_ENTRIES, block_lo),
	TABLE(lc_ckpt_block, entries, LC_CKPT_ENTRIES, block_hi),
	TABLE(lc_ckpt_block, entries, LC_CKPT_ENTRIES, mask),
	TABLE(lc_ckpt_block, entries, LC_CKPT_ENTRIES, lost),
	TABLE(lc_ckpt_block, entries, LC_CKPT_ENTRIES, flags),
};

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *magic;
	const struct field *fields;
	unsigned int nr_fields;
} kinds[NR_KINDS] = {
	[KIND_SUPERBLOCK] = { LC_SB_MAGIC, superblock_fields, ARRAY_SIZE(superblock_fields) },
	[KIND_MARK] = { LC_MARK_MAGIC, mark_fields, ARRAY_SIZE(mark_fields) },
	[KIND_RECORD] = { LC_RECORD_MAGIC, record_fields, ARRAY_SIZE(record_fields) },
	[KIND_CKPT] = { LC_CKPT_MAGIC, ckpt_fields, ARRAY_SIZE(ckpt_fields) },
	[KIND_GROUP] = { LC_GROUP_MAGIC, record_fields, ARRAY_SIZE(record_fields) },
};

enum block_kind seal_kind(const u8 *block)
{
	unsigned int i;

	for (i = 1; i < NR_KINDS; i++) {
		if (!memcmp(block, kinds[i].magic, LC_MAGIC_LEN))
			return i;
	}
	return KIND_OTHER;
}

void seal_magic(u8 *block, enum block_kind kind)
{
	memcpy(block, kinds[kind].magic, LC_MAGIC_LEN);
}

static u64 get(const u8 *at, unsigned int size)
{
	u64 value = 0;

	while (size--)
		value = value << 8 | at[size];
	return value;
}

static void put(u8 *at, unsigned int size, u64 value)
{
	for (; size--; value >>= 8)
		*at++ = (u8)value;
}

void seal_block(u8 *block, const struct lc_sb *sb)
{
	static const u8 zero[8];
	enum block_kind kind = seal_kind(block);
	u64 sum = get(block + 16, 8);	/* the generation, in all four */
	u32 csum_type = sb ? sb->csum_type : 0, nr = LC_RECORD_ENTRIES, len = LC_SLOT_BYTES;
	bool is_short = (kind == KIND_RECORD || kind == KIND_GROUP) && sb &&
			sb->incompat & LC_INCOMPAT_SHORT_SUMS;

	if (is_short) {
		nr = get(block + offsetof(struct lc_record_header, nr_entries), 2);
		nr = nr < LC_RECORD_ENTRIES ? nr : LC_RECORD_ENTRIES;
		len = offsetof(struct lc_record_header, entries) + nr * sizeof(struct lc_entry);
	}
	if (kind == KIND_SUPERBLOCK)
		csum_type = get(block + offsetof(struct lc_superblock, csum_type), 4);
	else if (kind == KIND_MARK)
		csum_type = block[offsetof(struct lc_mark, csum_type)];
	sum = lc_format_csum64(csum_type, sum, block, 8);
	sum = lc_format_csum64(csum_type, sum, zero, 8);
	sum = lc_format_csum64(csum_type, sum, block + 16, len - 16);
	if (is_short)
		sum = lc_format_csum64(csum_type, sum,
				       block + offsetof(struct lc_record_header, lost), nr);
	put(block + 8, 8, sum);
}

static void adopt_header(u8 *block, enum block_kind kind, const struct lc_sb *sb, u64 segment,
			 u32 slot)
{
	u64 position = lc_format_position(&sb->geo, segment);

	seal_magic(block, kind);
	put(block + offsetof(struct lc_record_header, generation), 8, sb->generation);
	memcpy(block + offsetof(struct lc_record_header, cache_uuid), sb->cache_uuid, 16);
	put(block + offsetof(struct lc_record_header, address), 8,
	    lc_format_slot_address(&sb->geo, position, slot));
	put(block + offsetof(struct lc_record_header, segment), 8, segment);
	seal_block(block, sb);
}

void seal_adopt_record(u8 *block, const struct lc_sb *sb, u64 segment, u32 slot)
{
	adopt_header(block, KIND_RECORD, sb, segment, slot);
}

void seal_adopt_group(u8 *block, const struct lc_sb *sb, u64 segment, u32 slot)
{
	adopt_header(block, KIND_GROUP, sb, segment, slot);
}

void seal_adopt_ckpt(u8 *block, const struct lc_sb *sb, u64 index)
{
	seal_magic(block, KIND_CKPT);
	put(block + offsetof(struct lc_ckpt_block, generation), 8, sb->generation);
	put(block + offsetof(struct lc_ckpt_block, epoch), 8, sb->epoch);
	put(block + offsetof(struct lc_ckpt_block, index), 8, index);
	seal_block(block, sb);
}

/* Numbers that mean something to this cache. */
static u64 borrowed(const struct lc_sb *sb, struct rng *rng)
{
	const u64 values[] = {
		sb->geo.cache_bytes, sb->geo.segments_offset, sb->geo.nr_segments,
		sb->geo.ckpt_offset, sb->geo.ckpt_bytes, sb->geo.end_offset,
		sb->geo.segment_bytes, sb->geo.seg_slots, sb->geo.nr_slots, sb->volume_sectors,
		sb->volume_sectors / LC_BLOCK_SECTORS, sb->backing_bytes, sb->data_offset,
		sb->mark_offset, sb->epoch, sb->epoch_first_seq, sb->tail_seq, sb->tail_segment,
		sb->next_seq, sb->head_segment, sb->ckpt_entries, sb->lane_limit,
	};

	return values[rng_below(rng, ARRAY_SIZE(values))];
}

static u64 odd_value(u64 old, const struct lc_sb *sb, struct rng *rng)
{
	static const u8 edges[] = { 7, 8, 15, 16, 31, 32, 40, 43, 61, 62, 63 };
	u64 near = rng_below(rng, 3) - 1;	/* -1, 0, 1 */

	switch (rng_below(rng, sb ? 10 : 8)) {
	case 0:
		return 0;
	case 1:
		return ~0ULL;
	case 2:
		return (1ULL << edges[rng_below(rng, ARRAY_SIZE(edges))]) + near;
	case 3:
		return old ^ 1ULL << rng_below(rng, 64);
	case 4:
		return old + rng_below(rng, 33) - 16;
	case 5:
		return rng_below(rng, 2) ? old << 1 : old >> 1;
	case 6:
		return rng_below(rng, 300);
	case 7:
		return rng_next(rng) >> rng_below(rng, 64);
	default:
		return borrowed(sb, rng) + near;
	}
}

const char *seal_spoil_field(u8 *block, enum block_kind kind, const struct lc_sb *sb,
			     struct rng *rng)
{
	const struct field *f = &kinds[kind].fields[rng_below(rng, kinds[kind].nr_fields)];
	/* The first entries of a table are used, most others are not. */
	u64 nth = rng_below(rng, rng_one_in(rng, 4) || f->count < 4 ? f->count : 4);
	u8 *at = block + f->at + nth * f->stride;
	u64 i;

	if (f->size <= 8) {
		put(at, f->size, odd_value(get(at, f->size), sb, rng));
		return f->name;
	}
	if (rng_one_in(rng, 2)) {
		at[rng_below(rng, f->size)] = (u8)rng_next(rng);
		return f->name;
	}
	for (i = 0; i < f->size; i++)
		at[i] = (u8)rng_next(rng);
	return f->name;
}
