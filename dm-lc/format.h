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

#include "lc_format.h"

struct lc_geometry {
	u64 cache_bytes;
	u64 segments_offset;	/* bytes */
	u64 nr_segments;
	u64 ckpt_offset;	/* bytes */
	u64 ckpt_bytes;
	u64 end_offset;		/* bytes */
	u32 segment_bytes;
	u32 seg_slots;		/* slots in a segment */
	u64 nr_slots;		/* in all segments, headers included */
};

/* A superblock in native form. */
struct lc_sb {
	u64 generation;
	u8 cache_uuid[16];
	u8 volume_uuid[16];
	char label[64];
	u64 sb_seq;
	u32 creator_version;
	u64 compat;		/* unknown bits are kept */
	u64 incompat;		/* LC_INCOMPAT_* */
	struct lc_geometry geo;
	u32 lane_limit;
	u32 csum_type;
	u32 cache_lbs;
	u32 backing_lbs;
	u32 flags;
	u64 volume_sectors;
	u64 backing_bytes;
	u64 data_offset;	/* bytes */
	u64 mark_offset;	/* bytes or LC_NO_MARK */
	u64 epoch;
	u64 epoch_first_seq;
	u64 tail_seq;
	u64 tail_segment;
	u64 next_seq;
	u64 head_segment;
	u64 ckpt_entries;
	u64 fingerprint;
	u64 opened_at;
	u8 opener_boot_id[16];
	char opener_host[64];
	char backing_wwn[64];
	char backing_serial[64];
	char backing_partuuid[64];
	char backing_dm_uuid[136];
	char options[512];
	u32 nr_skips;
	struct {
		u64 segment;
		u64 count;
	} skips[LC_SB_SKIPS];
	/*
	 * Earlier lives, so that their dead records are known as dead though all headers
	 * of the lives that outdid them rotted (L2).  Epochs and seqs rise strictly and
	 * are below those of this life.  Kept by lc_replay_next_life().
	 */
	u32 nr_lives;
	struct {
		u64 epoch;
		u64 first_seq;
	} lives[LC_SB_LIVES];
	/* What the hard disk has seen of the volume's lives: see pairing.h. */
	u64 mark_epoch;
	u64 clean_epoch;
	u32 samples[LC_SB_SAMPLES];
};

/* Sectors of the volume. */
struct lc_lost {
	u64 sector;
	u64 nr_sectors;
};

struct lc_mark_info {
	u64 generation;
	u8 cache_uuid[16];
	u8 volume_uuid[16];
	char label[64];
	u64 mark_seq;
	u32 state;
	u64 epoch;
	u64 volume_sectors;
	u64 data_offset;
	u64 head_offset;	/* bytes; 0: not moved */
	u32 nr_lost;		/* or LC_MARK_LOST_TOO_MANY */
	struct lc_lost lost[LC_MARK_LOST];
};

/* A record header in native form, entries apart. */
struct lc_record_info {
	u64 segment;
	u64 seq;
	u64 epoch;
	u64 epoch_first_seq;
	u64 cut;		/* all higher seqs are in it or behind it; 0: in its own */
	u64 tail_seq;
	u64 durable_seq;
	u64 wall_clock;
	u16 lane;
	u8 type;
	u16 nr_entries;
	u16 nr_slots;
	u32 first_slot;		/* of the header, within its segment */
};

struct lc_entry_info {
	u64 block;
	u64 nr_blocks;		/* 1, or the length of a RANGE */
	u8 mask;
	u8 lost;
	u8 type;
	u32 csum;		/* 0 for RANGE entries */
};

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

/* csum.c */
u64 lc_format_csum64(u32 csum_type, u64 seed, const void *data, u32 len);
u32 lc_format_slot_csum(const struct lc_sb *sb, u64 block, const void *slot);
u64 lc_block_csum(u32 csum_type, u64 seed, const void *block);
u64 lc_record_csum(const struct lc_record_header *raw, const struct lc_sb *sb);

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
