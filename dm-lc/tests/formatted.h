/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The superblock and the mark of a pair that was just formatted, as userland/pair.c makes them, but
 * for what differs from pair to pair: identity and label are always the same here.
 *
 * KUnit suites, the explorer, the fuzzers and the helpers of the tools' tests start from it and set
 * only what they want different.  Pure, like format.h.  Any context.
 */
#ifndef LC_TESTS_FORMATTED_H
#define LC_TESTS_FORMATTED_H

#include <linux/string.h>

#include "../format/format.h"

#define FORMATTED_GENERATION	0x1122334455667788ULL

/* Where volume and mark are on the hard disk.  Paths of the explorer name the layout by number. */
enum formatted_layout {
	LAYOUT_FRONT,		/* mark, then the volume */
	LAYOUT_END,		/* in place, as older tools did it: mark at the end */
	LAYOUT_NO_MARK,		/* in place */
	LAYOUT_MOVED_HEAD,	/* in place: mark where the head was, the head at the end */
};

/**
 * formatted_lay_out() - the fields that concern the hard disk
 * @sb: all other fields may be set before or after
 * @layout: of the hard disk, which is as large as it must be
 * @volume_sectors: size of the volume
 */
static inline void formatted_lay_out(struct lc_sb *sb, enum formatted_layout layout,
				     u64 volume_sectors)
{
	u64 bytes = (volume_sectors + LC_BLOCK_SECTORS - 1) / LC_BLOCK_SECTORS * LC_SLOT_BYTES;

	sb->volume_sectors = volume_sectors;
	sb->backing_bytes = bytes + (layout == LAYOUT_NO_MARK ? 0 : LC_MARK_BYTES);
	sb->data_offset = layout == LAYOUT_FRONT ? LC_MARK_BYTES : 0;
	sb->mark_offset = layout == LAYOUT_NO_MARK ? LC_NO_MARK : layout == LAYOUT_END ? bytes : 0;
	sb->flags &= ~LC_SB_IN_PLACE;
	if (layout != LAYOUT_FRONT)
		sb->flags |= LC_SB_IN_PLACE;
	sb->incompat &= ~LC_INCOMPAT_MOVED_HEAD;
	if (layout == LAYOUT_MOVED_HEAD)
		sb->incompat |= LC_INCOMPAT_MOVED_HEAD;
}

/**
 * formatted_sb() - a whole superblock
 * @sb: set whole; the volume has 512 MiB behind the mark, until formatted_lay_out() says otherwise
 * @cache_bytes: size of the SSD
 * @segment_bytes: of its log
 *
 * Return: 0, or the error of lc_geometry_compute().
 */
static inline int formatted_sb(struct lc_sb *sb, u64 cache_bytes, u32 segment_bytes)
{
	memset(sb, 0, sizeof(*sb));
	formatted_lay_out(sb, LAYOUT_FRONT, 1 << 20);
	sb->generation = FORMATTED_GENERATION;
	memset(sb->cache_uuid, 0xca, sizeof(sb->cache_uuid));
	memset(sb->volume_uuid, 0xb0, sizeof(sb->volume_uuid));
	sb->incompat |= LC_INCOMPAT_SHORT_SUMS;
	sb->csum_type = LC_CSUM_XXH64;
	sb->cache_lbs = 512;
	sb->backing_lbs = 512;
	sb->lane_limit = 16;
	sb->sb_seq = 1;
	sb->epoch_first_seq = 1;
	sb->tail_seq = 1;
	sb->tail_segment = 1;
	sb->next_seq = 1;
	sb->head_segment = 1;
	return lc_geometry_compute(&sb->geo, cache_bytes, segment_bytes);
}

/**
 * formatted_mark() - the mark of a superblock's hard disk
 * @sb: the superblock
 * @mark: set whole, of the life of @sb
 */
static inline void formatted_mark(const struct lc_sb *sb, struct lc_mark_info *mark)
{
	memset(mark, 0, sizeof(*mark));
	mark->generation = sb->generation;
	memcpy(mark->cache_uuid, sb->cache_uuid, sizeof(mark->cache_uuid));
	memcpy(mark->volume_uuid, sb->volume_uuid, sizeof(mark->volume_uuid));
	memcpy(mark->label, sb->label, sizeof(mark->label));
	mark->mark_seq = 1;
	mark->state = LC_MARK_PAIRED;
	mark->epoch = sb->epoch;
	mark->owner = sb->owner;
	mark->volume_sectors = sb->volume_sectors;
	mark->data_offset = sb->data_offset;
	if (sb->incompat & LC_INCOMPAT_MOVED_HEAD)
		mark->head_offset = sb->volume_sectors << 9;
}

#endif /* LC_TESTS_FORMATTED_H */
