/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The codec of the on-disk format: bytes in, native structs or an errno out.
 *
 * Pure: no allocation, lock, I/O or printing, so that module, tools, KUnit and
 * fuzzers compile the very same file.  Any context.  Decoders check before they
 * believe: a struct they return has every field inside its bounds.
 *
 * Errors: -ENODATA not ours (magic), -EBADMSG checksum, -EXDEV found at another
 * address than it says, -ESTALE of another format run, device or lap,
 * -EOPNOTSUPP newer format or unknown feature, -ERANGE a field out of bounds.
 * *why gets a constant text for people.
 */
#ifndef LC_FORMAT_CODEC_H
#define LC_FORMAT_CODEC_H

#include "csum.h"
#include "lc_format.h"
#include "native.h"

/* Epochs, seqs and segment numbers are below: sums of a few cannot overflow. */
#define LC_NUMBERS_END	(1ULL << 62)

/*
 * Can a life begin, with this epoch in the superblock before it, this seq and this
 * segment?  A writer asks first, because decoders refuse higher numbers.  Only the lower half of
 * them is used: at a thousand million records a second the upper half lasts 73 years.
 */
static inline bool lc_life_possible(u64 epoch, u64 next_seq, u64 next_segment)
{
	u64 end = LC_NUMBERS_END / 2;

	return epoch < end && next_seq < end && next_segment < end;
}

int lc_geometry_compute(struct lc_geometry *geo, u64 cache_bytes, u32 segment_bytes);
int lc_geometry_check(const struct lc_geometry *geo);

/* Where things are, in bytes on the device they live on. */
u64 lc_format_sb_address(const struct lc_geometry *geo, unsigned int copy);
u64 lc_format_mark_address(u64 mark_offset, unsigned int copy);
u64 lc_format_slot_address(const struct lc_geometry *geo, u64 position, u32 slot);
u64 lc_format_position(const struct lc_geometry *geo, u64 segment);
/* Slot @slot of the segment numbered @segment. */
u64 lc_format_log_address(const struct lc_geometry *geo, u64 segment, u32 slot);

/* @slot is numbered over the whole SSD, as in the index and in a checkpoint. */
static inline u64 lc_slot_address(const struct lc_geometry *geo, u32 slot)
{
	return geo->segments_offset + ((u64)slot << LC_SLOT_SHIFT);
}

void lc_sb_encode(const struct lc_sb *sb, unsigned int copy, struct lc_superblock *raw);
int lc_sb_decode(const struct lc_superblock *raw, unsigned int copy, struct lc_sb *sb,
		 const char **why);

void lc_mark_encode(const struct lc_mark_info *mark, u32 csum_type, u64 mark_offset,
		    unsigned int copy, struct lc_mark *raw);
int lc_mark_decode(const struct lc_mark *raw, u64 mark_offset, unsigned int copy,
		   struct lc_mark_info *mark, const char **why);

/*
 * Sets the fixed part and the checksum of a header whose entries were set with
 * lc_entry_encode(); nothing may be changed afterwards.
 */
void lc_record_seal(struct lc_record_header *raw, const struct lc_sb *sb,
		    const struct lc_record_info *info);
/*
 * Verify the header found at info->first_slot of segment number `segment`.
 * On success the record lies within its segment and every entry within the volume.
 */
int lc_record_decode(const struct lc_record_header *raw, const struct lc_sb *sb, u64 segment,
		     u32 first_slot, struct lc_record_info *info, const char **why);
void lc_entry_encode(struct lc_record_header *raw, unsigned int i,
		     const struct lc_entry_info *entry);
void lc_entry_decode(const struct lc_record_header *raw, unsigned int i,
		     struct lc_entry_info *entry);
bool lc_entry_is_range(u8 type);

struct lc_ckpt_item {
	u64 block;
	u64 seq;		/* with LC_CKPT_ENTRY_CUT: instead of block, mask and lost */
	u32 slot;		/* with LC_CKPT_ENTRY_CUT: the first one of the segment */
	u8 mask;
	u8 lost;
	u8 flags;
};

#define LC_CKPT_SEQ_END	(1ULL << 56)	/* seqs of cuts are below */

void lc_ckpt_encode(struct lc_ckpt_block *raw, unsigned int i, const struct lc_ckpt_item *item);
void lc_ckpt_seal(struct lc_ckpt_block *raw, const struct lc_sb *sb, u64 index, u32 nr_entries);
int lc_ckpt_decode(const struct lc_ckpt_block *raw, const struct lc_sb *sb, u64 index,
		   u32 *nr_entries, const char **why);
int lc_ckpt_item_decode(const struct lc_ckpt_block *raw, const struct lc_sb *sb, unsigned int i,
			struct lc_ckpt_item *item);

#endif /* LC_FORMAT_CODEC_H */
