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

#include <asm/byteorder.h>

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

/**
 * lc_geometry_compute() - lay out a cache device
 * @geo: result
 * @cache_bytes: size of the device
 * @segment_bytes: power of two, LC_SEGMENT_BYTES_MIN..MAX
 *
 * Return: 0, -EINVAL for a bad segment size, -ENOSPC if fewer than LC_MIN_SEGMENTS fit.
 */
int lc_geometry_compute(struct lc_geometry *geo, u64 cache_bytes, u32 segment_bytes);

/**
 * lc_geometry_check() - is a geometry read from media possible at all?
 * @geo: all fields but nr_slots and seg_slots as read
 *
 * Return: 0 or -ERANGE.  Nothing overlaps and nothing lies beyond cache_bytes.
 */
int lc_geometry_check(const struct lc_geometry *geo);

/*
 * Where things are.  Any context.  Functions named _address return bytes from the start of the
 * device; lc_format_position() returns where the segment numbered @segment is, in segments.
 * @mark_offset: bytes.  @copy: 0 or 1, of a superblock also 2.
 * @position: of a segment on the SSD, in segments.  @slot: of that segment.
 */
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

/**
 * lc_sb_encode() - make copy @copy of a superblock
 * @sb: complete and valid
 * @copy: 0..LC_SB_COPIES-1
 * @raw: 4 KiB, written whole
 */
void lc_sb_encode(const struct lc_sb *sb, unsigned int copy, struct lc_superblock *raw);

/**
 * lc_sb_decode() - verify and read one copy of a superblock
 * @raw: 4 KiB as found at the address of copy @copy
 * @copy: 0, 1, or 2 (whose address only the superblock itself knows)
 * @sb: result, undefined on error
 * @why: text on error, may be NULL
 */
int lc_sb_decode(const struct lc_superblock *raw, unsigned int copy, struct lc_sb *sb,
		 const char **why);

/**
 * lc_mark_encode() - make copy @copy of the mark on the backing device
 * @mark: complete and valid
 * @csum_type: how to sum it
 * @mark_offset: of the mark area, bytes
 * @copy: 0 or 1
 * @raw: 4 KiB, written whole
 */
void lc_mark_encode(const struct lc_mark_info *mark, u32 csum_type, u64 mark_offset,
		    unsigned int copy, struct lc_mark *raw);

/**
 * lc_mark_decode() - verify and read one copy of the mark
 * @raw: 4 KiB as found
 * @mark_offset: of the mark area it was found in
 * @copy: 0 or 1
 * @mark: result, undefined on error
 * @why: text on error, may be NULL
 */
int lc_mark_decode(const struct lc_mark *raw, u64 mark_offset, unsigned int copy,
		   struct lc_mark_info *mark, const char **why);

/**
 * lc_record_seal() - set the fixed part and the checksum of a header
 * @raw: the entries that count were set with lc_entry_encode(); not changed afterwards
 * @sb: identity, geometry and checksum type
 * @info: everything else
 *
 * Any context.
 */
void lc_record_seal(struct lc_record_header *raw, const struct lc_sb *sb,
		    const struct lc_record_info *info);

/**
 * lc_record_decode() - verify and read a record header
 * @raw: 4 KiB as found
 * @sb: of the format run
 * @segment: segment number expected at this ring position
 * @first_slot: slot of the segment @raw was read from
 * @info: result, undefined on error
 * @why: text on error, may be NULL
 *
 * Any context.  Return: 0 or a negative errno.  If it is 0, the record lies within its segment and
 * every entry within the volume.
 */
int lc_record_decode(const struct lc_record_header *raw, const struct lc_sb *sb, u64 segment,
		     u32 first_slot, struct lc_record_info *info, const char **why);

/**
 * lc_group_seal() - finish the header of a group of promoted blocks
 * @raw: as for lc_record_seal()
 * @sb: the same
 * @info: segment, seq, epoch, epoch_first_seq, wall_clock, nr_entries, nr_slots, first_slot,
 *	number; of type LC_RECORD_DATA; the rest is 0
 *
 * Any context.
 */
void lc_group_seal(struct lc_record_header *raw, const struct lc_sb *sb,
		   const struct lc_record_info *info);

/**
 * lc_group_decode() - verify and read the header of a group
 *
 * As lc_record_decode().  If it returns 0, the group lies within its segment, and every entry is a
 * whole block of the volume or says nothing.
 */
int lc_group_decode(const struct lc_record_header *raw, const struct lc_sb *sb, u64 segment,
		    u32 first_slot, struct lc_record_info *info, const char **why);

/**
 * lc_entry_encode() - set entry @i of a header under construction
 * @raw: header, sealed later by lc_record_seal()
 * @i: 0..LC_RECORD_ENTRIES-1
 * @entry: for a RANGE, nr_blocks must fit 32 bits
 */
void lc_entry_encode(struct lc_record_header *raw, unsigned int i,
		     const struct lc_entry_info *entry);

/**
 * lc_entry_decode() - read an entry of a header lc_record_decode() accepted
 * @raw: the bytes on media
 * @i: number of the entry
 * @entry: the entry
 */
void lc_entry_decode(const struct lc_record_header *raw, unsigned int i,
		     struct lc_entry_info *entry);

/* The block of an entry, as lc_entry_decode() says it. */
static inline u64 lc_entry_block(const struct lc_entry *entry)
{
	return (u64)entry->block_hi << 32 | le32_to_cpu(entry->block_lo);
}

/* Is @type one of LC_ENTRY_RANGE_*?  Any value may be asked for.  Any context. */
bool lc_entry_is_range(u8 type);

struct lc_ckpt_item {
	u64 block;
	u64 seq;		/* with LC_CKPT_ENTRY_BOUNDARY: instead of block, mask and lost */
	u32 slot;		/* with LC_CKPT_ENTRY_BOUNDARY: the first one of the segment */
	u8 mask;
	u8 lost;
	u8 flags;
};

#define LC_CKPT_SEQ_END	(1ULL << 56)	/* seqs of boundaries are below */

/**
 * lc_ckpt_encode() - set item @i of a checkpoint block under construction
 * @raw: the bytes on media
 * @i: number of the entry
 * @item: seqs are below LC_CKPT_SEQ_END
 */
void lc_ckpt_encode(struct lc_ckpt_block *raw, unsigned int i, const struct lc_ckpt_item *item);

/**
 * lc_ckpt_seal() - finish a checkpoint block
 * @raw: entries set by lc_ckpt_encode(), the rest zero
 * @sb: identity; sb->epoch is the life the checkpoint ends
 * @index: number of this block, from 0
 * @nr_entries: used entries
 */
void lc_ckpt_seal(struct lc_ckpt_block *raw, const struct lc_sb *sb, u64 index, u32 nr_entries);

/**
 * lc_ckpt_decode() - verify a checkpoint block
 * @raw: the bytes on media
 * @sb: superblock
 * @index: the index
 * @nr_entries: entries in it
 * @why: text on error, may be NULL
 */
int lc_ckpt_decode(const struct lc_ckpt_block *raw, const struct lc_sb *sb, u64 index,
		   u32 *nr_entries, const char **why);

/**
 * lc_ckpt_item_decode() - read and bound item @i of a verified checkpoint block
 * @raw: the bytes on media
 * @sb: superblock
 * @i: number of the entry
 * @item: the item
 *
 * Return: 0 or -ERANGE.
 */
int lc_ckpt_item_decode(const struct lc_ckpt_block *raw, const struct lc_sb *sb, unsigned int i,
			struct lc_ckpt_item *item);

#endif /* LC_FORMAT_CODEC_H */
