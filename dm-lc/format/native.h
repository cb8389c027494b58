/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks of the on-disk format in native form, as format.h decodes and encodes them: byte order of
 * the CPU, each field in its own member, bounds checked.
 */
#ifndef LC_NATIVE_H
#define LC_NATIVE_H

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
	/* What a later life may bring back into the index (WS3, WS5). */
	u64 warm_segment;
	u32 warm_ahead;
	u64 warm_epoch;		/* latest life before this one that has records; 0: not known */
	/* Random, of this life, and that of the mark when it began (T5); 0: not known. */
	u64 owner;
	u64 mark_owner;
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
	u64 owner;		/* of the life that `epoch` numbers (T5); 0: not known */
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
	u64 boundary;		/* no lower segment holds a higher seq; 0: its own segment */
	u64 tail_seq;
	u64 durable_seq;
	u64 wall_clock;
	u16 lane;
	u8 type;
	u16 nr_entries;
	u16 nr_slots;
	u32 first_slot;		/* of the header, within its segment */
	u64 number;		/* of a group, in the order they are sent in a life; 0: a record */
};

struct lc_entry_info {
	u64 block;
	u64 nr_blocks;		/* 1, or the length of a RANGE */
	u8 mask;
	u8 lost;
	u8 type;
	u32 csum;		/* 0 for RANGE entries */
};

#endif /* LC_NATIVE_H */
