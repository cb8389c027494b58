// SPDX-License-Identifier: GPL-2.0-only
/* What a decoder promises, see invariants.h. */
#include <errno.h>

#include "expect.h"
#include "invariants.h"

typedef unsigned __int128 wide;

#define TOP	((wide)1 << 62)

struct area {
	wide from, to;
};

static bool apart(struct area a, struct area b)
{
	return a.to <= b.from || b.to <= a.from;
}

void expect_geometry(const struct lc_geometry *geo)
{
	struct area areas[5] = {
		{ 0, LC_SLOT_BYTES },
		{ LC_SB_COPY_STRIDE, LC_SB_COPY_STRIDE + LC_SLOT_BYTES },
		{ geo->segments_offset,
		  geo->segments_offset + (wide)geo->nr_segments * geo->segment_bytes },
		{ geo->ckpt_offset, (wide)geo->ckpt_offset + geo->ckpt_bytes },
		{ geo->end_offset, (wide)geo->end_offset + LC_SLOT_BYTES },
	};
	unsigned int i, j;

	EXPECT(geo->cache_bytes < TOP);
	EXPECT(geo->segment_bytes >= LC_SEGMENT_BYTES_MIN);
	EXPECT(geo->segment_bytes <= LC_SEGMENT_BYTES_MAX);
	EXPECT(__builtin_popcount(geo->segment_bytes) == 1);
	EXPECT((u64)geo->seg_slots * LC_SLOT_BYTES == geo->segment_bytes);
	EXPECT(geo->nr_segments >= LC_MIN_SEGMENTS);
	EXPECT((wide)geo->nr_segments * geo->seg_slots == geo->nr_slots);
	EXPECT(geo->nr_slots <= LC_MAX_SLOTS);
	EXPECT((wide)geo->ckpt_bytes / LC_SLOT_BYTES * LC_CKPT_ENTRIES >= geo->nr_slots);
	for (i = 0; i < 5; i++) {
		EXPECT(areas[i].from % LC_SLOT_BYTES == 0 && areas[i].to % LC_SLOT_BYTES == 0);
		EXPECT(areas[i].from <= areas[i].to && areas[i].to <= geo->cache_bytes);
		for (j = 0; j < i; j++)
			EXPECT(apart(areas[i], areas[j]));
	}
}

static void expect_addresses(const struct lc_geometry *geo)
{
	u64 last = lc_format_slot_address(geo, geo->nr_segments - 1, geo->seg_slots - 1);

	EXPECT(lc_format_slot_address(geo, 0, 0) == geo->segments_offset);
	EXPECT(last > geo->segments_offset && last + LC_SLOT_BYTES <= geo->ckpt_offset);
	EXPECT(lc_format_position(geo, ~0ULL) < geo->nr_segments);
	EXPECT(lc_format_position(geo, geo->nr_segments) == 0);
	EXPECT(lc_format_position(geo, geo->nr_segments - 1) == geo->nr_segments - 1);
}

static bool block_size(u32 lbs)
{
	return lbs == 512 || lbs == 1024 || lbs == 2048 || lbs == 4096;
}

static void expect_backing(const struct lc_sb *sb)
{
	struct area volume = {
		sb->data_offset, sb->data_offset + (wide)sb->volume_sectors * 512
	};
	struct area mark = { sb->mark_offset, (wide)sb->mark_offset + LC_MARK_BYTES };

	EXPECT(block_size(sb->cache_lbs) && block_size(sb->backing_lbs));
	EXPECT(sb->volume_sectors && sb->backing_bytes < TOP);
	EXPECT((sb->volume_sectors + 7) / 8 <= LC_MAX_BLOCKS);
	EXPECT(volume.to <= sb->backing_bytes && volume.from % LC_SLOT_BYTES == 0);
	if (sb->incompat & LC_INCOMPAT_MOVED_HEAD) {
		EXPECT(!sb->mark_offset && !sb->data_offset && sb->flags & LC_SB_IN_PLACE);
		EXPECT(volume.to >= LC_MARK_BYTES && volume.to % LC_SLOT_BYTES == 0);
		EXPECT(volume.to + LC_MARK_BYTES <= sb->backing_bytes);
		return;
	}
	if (sb->mark_offset == LC_NO_MARK)
		return;
	EXPECT(mark.to <= sb->backing_bytes && mark.from % LC_SLOT_BYTES == 0);
	EXPECT(apart(mark, volume));
}

static bool ends(const char *text, size_t size)
{
	return memchr(text, 0, size);
}

void expect_superblock(const struct lc_sb *sb)
{
	expect_geometry(&sb->geo);
	expect_addresses(&sb->geo);
	expect_backing(sb);
	EXPECT(sb->csum_type == LC_CSUM_XXH64 || sb->csum_type == LC_CSUM_CRC32C);
	EXPECT(!(sb->flags & ~3u) && !(sb->incompat & ~15ULL));
	EXPECT(sb->epoch < TOP && sb->epoch_first_seq < TOP && sb->next_seq < TOP);
	EXPECT(sb->tail_seq && sb->tail_seq < TOP);
	EXPECT(sb->tail_segment && sb->tail_segment < TOP && sb->head_segment < TOP);
	EXPECT(sb->lane_limit && sb->lane_limit <= 1024);
	EXPECT(sb->nr_skips <= LC_SB_SKIPS);
	EXPECT(sb->nr_lives <= LC_SB_LIVES);
	EXPECT(sb->mark_epoch <= sb->epoch && sb->clean_epoch <= sb->epoch);
	if (sb->flags & LC_SB_CLEAN) {
		EXPECT(sb->next_seq >= sb->tail_seq);
		EXPECT(sb->head_segment >= sb->tail_segment);
		EXPECT(sb->head_segment - sb->tail_segment <= sb->geo.nr_segments);
		EXPECT(sb->ckpt_entries <= sb->geo.nr_slots);
	}
	EXPECT(ends(sb->label, sizeof(sb->label)));
	EXPECT(ends(sb->opener_host, sizeof(sb->opener_host)));
	EXPECT(ends(sb->backing_wwn, sizeof(sb->backing_wwn)));
	EXPECT(ends(sb->backing_serial, sizeof(sb->backing_serial)));
	EXPECT(ends(sb->backing_partuuid, sizeof(sb->backing_partuuid)));
	EXPECT(ends(sb->backing_dm_uuid, sizeof(sb->backing_dm_uuid)));
	EXPECT(ends(sb->options, sizeof(sb->options)));
}

void expect_record(const struct lc_sb *sb, const struct lc_record_info *info)
{
	EXPECT(info->type == LC_RECORD_DATA || info->type == LC_RECORD_RANGE);
	EXPECT(info->nr_entries >= 1 && info->nr_entries <= LC_RECORD_ENTRIES);
	EXPECT(info->nr_slots == (info->type == LC_RECORD_DATA ? info->nr_entries : 0));
	EXPECT((wide)info->first_slot + LC_HEADER_SLOTS + info->nr_slots <= sb->geo.seg_slots);
	EXPECT(info->seq && info->seq < TOP && info->epoch < TOP);
	EXPECT(info->epoch_first_seq && info->epoch_first_seq <= info->seq);
	EXPECT(info->durable_seq < info->seq);
	EXPECT(info->lane < sb->lane_limit && info->boundary <= info->segment);
}

void expect_group(const struct lc_sb *sb, const struct lc_record_info *info)
{
	EXPECT(info->type == LC_RECORD_DATA);
	EXPECT(info->nr_entries >= 1 && info->nr_entries <= LC_RECORD_ENTRIES);
	EXPECT(info->nr_slots == info->nr_entries);
	EXPECT((wide)info->first_slot + LC_HEADER_SLOTS + info->nr_slots <= sb->geo.seg_slots);
	EXPECT(info->seq < TOP && info->epoch < TOP);
	EXPECT(info->epoch_first_seq && info->epoch_first_seq <= (wide)info->seq + 1);
}

/* Sectors of a block that the volume has. */
static u8 volume_mask(const struct lc_sb *sb, u64 block)
{
	wide left = (wide)sb->volume_sectors - (wide)block * LC_BLOCK_SECTORS;

	return left < LC_BLOCK_SECTORS ? (1u << left) - 1 : 0xff;
}

void expect_entry(const struct lc_sb *sb, const struct lc_record_info *info,
		  const struct lc_entry_info *entry)
{
	bool range = entry->type >= LC_ENTRY_RANGE_TOMBSTONE && entry->type <= LC_ENTRY_RANGE_LOST;

	if (entry->type == LC_ENTRY_NONE)
		return;
	EXPECT(range ? info->type == LC_RECORD_RANGE :
		       (entry->type == LC_ENTRY_DATA || entry->type == LC_ENTRY_ZERO) &&
		       info->type == LC_RECORD_DATA);
	EXPECT(entry->nr_blocks && (range || entry->nr_blocks == 1));
	EXPECT(((wide)entry->block + entry->nr_blocks - 1) * LC_BLOCK_SECTORS <
	       sb->volume_sectors);
	EXPECT(!(entry->mask & entry->lost));
	EXPECT(range || !((entry->mask | entry->lost) & ~volume_mask(sb, entry->block)));
}

void expect_item(const struct lc_sb *sb, const struct lc_ckpt_item *item)
{
	EXPECT(item->slot < sb->geo.nr_slots);
	if (item->flags == LC_CKPT_ENTRY_BOUNDARY) {
		EXPECT(sb->incompat & LC_INCOMPAT_LANES && !(item->slot % sb->geo.seg_slots));
		EXPECT(item->seq >= sb->tail_seq && item->seq <= sb->next_seq);
		return;
	}
	EXPECT((wide)item->block * LC_BLOCK_SECTORS < sb->volume_sectors);
	EXPECT(!(item->mask & item->lost) && (item->mask | item->lost));
	EXPECT(!((item->mask | item->lost) & ~volume_mask(sb, item->block)));
	EXPECT(!(item->flags & ~(sb->incompat & LC_INCOMPAT_PROMOTED ? 0xf9u : 1u)));
}

void expect_error(int ret, const char *why)
{
	EXPECT(!ret || ret == -ENODATA || ret == -EBADMSG || ret == -EXDEV || ret == -ESTALE ||
	       ret == -EOPNOTSUPP || ret == -ERANGE);
	EXPECT(!ret || (why && strlen(why) > 5));
}
