/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dm-lc on-disk format, version 1.  Shared by the module, the tools, KUnit and
 * the fuzzers; docs/on-disk-format.rst is the prose to these tables.  All
 * integers are little-endian, all addresses are bytes, reserved fields are 0.
 *
 * Cache device (SSD)
 *
 *   0        512K      1M..              ckpt_offset        end_offset
 *   +---------+---------+--------- ... ---+------------------+-----------+
 *   | sb 0    | sb 1    | segments (ring) | checkpoint area  | sb 2      |
 *   +---------+---------+--------- ... ---+------------------+-----------+
 *
 *   Segment number n (64 bits, rises for ever, starts at 1) lives at ring
 *   position n % nr_segments.
 *
 * Segment
 *
 *   slot 0        1 .. k         k+1           k+2 ..
 *   +-------------+--------------+-------------+-----------------+-- ...
 *   | header seq s| k data slots | header s+1  | data slots      | unused
 *   +-------------+--------------+-------------+-----------------+-- ...
 *
 *   A record is one header slot and nr_slots data slots; the next record of
 *   the segment starts right after it.  Entry i of a DATA record describes
 *   data slot i.  A RANGE record has entries but no data slots.
 *
 *   What the log leaves unused may hold groups of promoted blocks: one header slot each, in the
 *   form of a DATA record's but with LC_GROUP_MAGIC, and nr_slots copies of what the HDD holds.
 *   They are no part of the log.  Replay does not see them.
 *
 * Backing device (HDD): the mark, two copies LC_MARK_COPY_STRIDE apart in the
 * 1 MiB at mark_offset, the first one.  The volume follows, or with --in-place begins at
 * byte 0, and its first MiB, the head, is moved to after its end (LC_INCOMPAT_MOVED_HEAD).
 * In-place volumes of older tools have the mark in the last MiB and no moved head.
 */
#ifndef LC_FORMAT_H
#define LC_FORMAT_H

#include <linux/build_bug.h>
#include <linux/types.h>

#define LC_SB_MAGIC		"dmlc-sb\n"
#define LC_MARK_MAGIC		"dmlc-mk\n"
#define LC_RECORD_MAGIC		"dmlc-rc\n"
#define LC_CKPT_MAGIC		"dmlc-cp\n"
#define LC_GROUP_MAGIC		"dmlc-gr\n"
#define LC_MAGIC_LEN		8

#define LC_FORMAT_VERSION	1

#define LC_SLOT_SHIFT		12
#define LC_SLOT_BYTES		(1u << LC_SLOT_SHIFT)
#define LC_BLOCK_SECTORS	(LC_SLOT_BYTES >> 9)

#define LC_SB_COPIES		3	/* the third is for identity only */
#define LC_SB_COPY_STRIDE	(512u << 10)
#define LC_MARK_BYTES		(1u << 20)
#define LC_MARK_COPY_STRIDE	(512u << 10)
#define LC_NO_MARK		(~0ULL)

#define LC_SEGMENT_BYTES_MIN	(64u << 10)
#define LC_SEGMENT_BYTES_MAX	(4u << 20)
#define LC_SEGMENT_BYTES_DEFAULT (1u << 20)
#define LC_MIN_SEGMENTS		16
#define LC_HEADER_SLOTS		1
#define LC_RECORD_ENTRIES	255
#define LC_BLOCK_BITS		40
#define LC_MAX_BLOCKS		(1ULL << LC_BLOCK_BITS)
#define LC_MAX_SLOTS		0xfffffff0ULL	/* a slot number fits 32 bits */

/* Feature words: unknown bits of compat are ignored, of ro_compat and incompat refused. */
#define LC_COMPAT_ALL		0ULL
#define LC_RO_COMPAT_ALL	0ULL
#define LC_INCOMPAT_LANES	(1ULL << 0)	/* segments may have been open side by side */
#define LC_INCOMPAT_SHORT_SUMS	(1ULL << 1)	/* headers of records: no sum of unused entries */
#define LC_INCOMPAT_MOVED_HEAD	(1ULL << 2)	/* the first MiB of the volume is after its end */
#define LC_INCOMPAT_PROMOTED	(1ULL << 3)	/* the checkpoint has blocks of groups, and uses */
#define LC_INCOMPAT_ALL		(LC_INCOMPAT_LANES | LC_INCOMPAT_SHORT_SUMS | \
				 LC_INCOMPAT_MOVED_HEAD | LC_INCOMPAT_PROMOTED)

enum lc_csum_type {
	LC_CSUM_CRC32C	= 1,
	LC_CSUM_XXH64	= 2,
};

enum lc_sb_flags {
	LC_SB_CLEAN	= 1 << 0,	/* the checkpoint is the whole index */
	LC_SB_IN_PLACE	= 1 << 1,	/* volume at byte 0 */
};

#define LC_SB_FLAGS_ALL	((u32)(LC_SB_CLEAN | LC_SB_IN_PLACE))

enum lc_mark_state {
	LC_MARK_PAIRED		= 1,
	LC_MARK_ABANDONED	= 2,	/* the cache of `epoch` must never be replayed */
	LC_MARK_ATTACHING	= 3,	/* head copied, first MiB not cleared yet */
	LC_MARK_DETACHING	= 4,	/* drained; the head is on its way back */
};

enum lc_record_type {
	LC_RECORD_DATA	= 1,
	LC_RECORD_RANGE	= 2,
};

/* lc_entry.type; NONE in any record, DATA and ZERO in DATA records, the others in RANGE ones */
enum lc_entry_type {
	LC_ENTRY_NONE		= 0,	/* hole: says nothing, its slot holds nothing */
	LC_ENTRY_DATA		= 1,	/* mask: sectors in the slot; lost[]: sectors gone */
	LC_ENTRY_ZERO		= 2,	/* the masked sectors read as zero */
	LC_ENTRY_RANGE_TOMBSTONE = 3,	/* older copies of these blocks do not exist */
	LC_ENTRY_RANGE_ZERO	= 4,
	LC_ENTRY_RANGE_LOST	= 5,
};

struct lc_entry {
	__le32 block_lo;
	__u8   block_hi;
	__u8   backing;		/* backing device id, 0 */
	__u8   mask;		/* bit i: sector i of the block is in the slot */
	__u8   type;
	__le32 csum;		/* of the 4 KiB slot; RANGE: number of blocks */
} __packed;

struct lc_skip {
	__le64 segment;		/* first skipped segment number */
	__le64 count;
} __packed;

/* An earlier life: see docs/on-disk-format.rst. */
struct lc_life {
	__le64 epoch;
	__le64 first_seq;
} __packed;

#define LC_SB_SKIPS	64
#define LC_SB_LIVES	64
#define LC_SB_SAMPLES	64

struct lc_superblock {
	__u8   magic[LC_MAGIC_LEN];
	__le64 csum;			/*    8: of the 4 KiB, this field as 0 */
	__le64 generation;		/*   16: random, new at every format */
	__u8   cache_uuid[16];		/*   24 */
	__u8   volume_uuid[16];		/*   40 */
	char   label[64];		/*   56 */
	__le64 address;			/*  120: own byte address */
	__le64 sb_seq;			/*  128: rises with every update */
	__le32 version;			/*  136 */
	__le32 creator_version;		/*  140: major << 16 | minor << 8 | patch */
	__le64 compat;			/*  144 */
	__le64 ro_compat;		/*  152 */
	__le64 incompat;		/*  160 */
	/* geometry, never changes */
	__le64 cache_bytes;		/*  168 */
	__le64 segments_offset;		/*  176 */
	__le64 nr_segments;		/*  184 */
	__le64 ckpt_offset;		/*  192 */
	__le64 ckpt_bytes;		/*  200 */
	__le64 end_offset;		/*  208: of the third copy */
	__le32 segment_bytes;		/*  216 */
	__le32 slot_bytes;		/*  220 */
	__le32 header_slots;		/*  224 */
	__le32 lane_limit;		/*  228: segments that may be open at once */
	__le32 csum_type;		/*  232 */
	__le32 cache_lbs;		/*  236: logical block size */
	__le32 backing_lbs;		/*  240 */
	__le32 flags;			/*  244: enum lc_sb_flags */
	__le64 volume_sectors;		/*  248 */
	__le64 backing_bytes;		/*  256: size of the backing device at format */
	__le64 data_offset;		/*  264: where the volume starts on it */
	__le64 mark_offset;		/*  272: LC_NO_MARK: none */
	/* life of the volume */
	__le64 epoch;			/*  280: lives so far, 0 after format */
	__le64 epoch_first_seq;		/*  288 */
	__le64 tail_seq;		/*  296: lower seqs are not needed */
	__le64 tail_segment;		/*  304: lowest one with a record >= tail_seq */
	__le64 next_seq;		/*  312: valid with LC_SB_CLEAN */
	__le64 head_segment;		/*  320: next to be opened; valid with LC_SB_CLEAN */
	__le64 ckpt_entries;		/*  328: valid with LC_SB_CLEAN */
	__le64 fingerprint;		/*  336: of sampled HDD blocks; valid with LC_SB_CLEAN */
	__le64 opened_at;		/*  344: wall clock, ns */
	__u8   opener_boot_id[16];	/*  352 */
	char   opener_host[64];		/*  368 */
	/* identity of the backing device, NUL-padded text */
	char   backing_wwn[64];		/*  432 */
	char   backing_serial[64];	/*  496 */
	char   backing_partuuid[64];	/*  560 */
	char   backing_dm_uuid[136];	/*  624 */
	char   options[512];		/*  760: persisted "key value ..." */
	__le32 nr_skips;		/* 1272 */
	__le32 nr_lives;		/* 1276 */
	struct lc_skip skips[LC_SB_SKIPS]; /* 1280 */
	struct lc_life lives[LC_SB_LIVES]; /* 2304 */
	__le64 mark_epoch;		/* 3328: the mark has reached it; 0: unknown */
	__le64 clean_epoch;		/* 3336: last clean stop; 0: unknown */
	__le32 samples[LC_SB_SAMPLES];	/* 3344: sampled blocks then; 0: unknown */
	__le64 warm_segment;		/* 3600: lowest whose copies are believed; 0: none */
	__le32 warm_ahead;		/* 3608: segments handed out beyond the last record */
	__u8   reserved1[4];		/* 3612 */
	__le64 warm_epoch;		/* 3616: latest earlier one that has records; 0: unknown */
	__le64 owner;			/* 3624: random, of this life; 0: unknown */
	__le64 mark_owner;		/* 3632: of the mark when it began; 0: unknown */
	__u8   reserved[456];		/* 3640 */
} __packed;

struct lc_lost_range {
	__le64 sector;
	__le64 nr_sectors;
} __packed;

#define LC_MARK_LOST		224
#define LC_MARK_LOST_TOO_MANY	0xffffffffu

/*
 * While it is put on a disk in place, or taken off, all behind the first 512 bytes is zero: what is
 * not may be newer data of the disk (AT3).  So a new field goes before lost[].
 */
struct lc_mark {
	__u8   magic[LC_MAGIC_LEN];
	__le64 csum;			/*    8 */
	__le64 generation;		/*   16 */
	__u8   cache_uuid[16];		/*   24 */
	__u8   volume_uuid[16];		/*   40 */
	__le64 address;			/*   56: own byte address */
	__le64 mark_seq;		/*   64 */
	__le32 version;			/*   72 */
	__le32 state;			/*   76: enum lc_mark_state */
	__le64 epoch;			/*   80 */
	__le64 volume_sectors;		/*   88 */
	__le64 data_offset;		/*   96 */
	__le32 nr_lost;			/*  104: or LC_MARK_LOST_TOO_MANY */
	__u8   csum_type;		/*  108: readable without its cache */
	__u8   reserved0[3];		/*  109 */
	__le64 head_offset;		/*  112: of the moved first MiB; 0: not moved */
	__le64 owner;			/*  120: of the life of `epoch`; 0: unknown */
	char   label[64];		/*  128 */
	struct lc_lost_range lost[LC_MARK_LOST]; /* 192 */
	__u8   reserved[320];		/* 3776 */
} __packed;

struct lc_record_header {
	__u8   magic[LC_MAGIC_LEN];
	__le64 csum;			/*    8: see LC_INCOMPAT_SHORT_SUMS */
	__le64 generation;		/*   16 */
	__u8   cache_uuid[16];		/*   24 */
	__le64 address;			/*   40: own byte address */
	__le64 segment;			/*   48: segment number */
	__le64 seq;			/*   56 */
	__le64 epoch;			/*   64 */
	__le64 epoch_first_seq;		/*   72 */
	__le64 boundary;		/*   80: lowest segment of higher seqs; 0: its own */
	__le64 tail_seq;		/*   88: at the time of sealing */
	__le64 durable_seq;		/*   96: every seq up to this one is durable */
	__le64 wall_clock;		/*  104: ns */
	__le16 lane;			/*  112 */
	__u8   type;			/*  114: enum lc_record_type */
	__u8   flags;			/*  115: 0 */
	__le16 nr_entries;		/*  116 */
	__le16 nr_slots;		/*  118: data slots after the header */
	__le64 number;			/*  120: of a group; 0 in records */
	struct lc_entry entries[LC_RECORD_ENTRIES]; /* 128 */
	__u8   lost[LC_RECORD_ENTRIES];	/* 3188: bit i: sector i of the block is gone */
	__u8   reserved[653];		/* 3443 */
} __packed;

#define LC_CKPT_ENTRY_DIRTY	1u
/* Of a segment, not a block: all lower seqs than block_lo to lost lie in lower segments. */
#define LC_CKPT_ENTRY_BOUNDARY	2u
/* With LC_INCOMPAT_PROMOTED, bits 3 to 7 of a block: how it came here and was used (admit.h). */
#define LC_CKPT_USE_SHIFT	3

struct lc_ckpt_entry {
	__le32 slot;		/* position * slots per segment + slot in the segment */
	__le32 block_lo;
	__u8   block_hi;
	__u8   mask;
	__u8   lost;
	__u8   flags;		/* LC_CKPT_ENTRY_* */
} __packed;

#define LC_CKPT_ENTRIES	336

struct lc_ckpt_block {
	__u8   magic[LC_MAGIC_LEN];
	__le64 csum;			/*    8 */
	__le64 generation;		/*   16 */
	__le64 epoch;			/*   24 */
	__le64 index;			/*   32: number of this block in the checkpoint */
	__le32 nr_entries;		/*   40 */
	__u8   reserved[20];		/*   44 */
	struct lc_ckpt_entry entries[LC_CKPT_ENTRIES]; /* 64 */
} __packed;

#define LC_ASSERT_AT(type, field, off) \
	static_assert(__builtin_offsetof(struct type, field) == (off), #type "." #field)

static_assert(sizeof(struct lc_entry) == 12, "lc_entry");
static_assert(sizeof(struct lc_ckpt_entry) == 12, "lc_ckpt_entry");
static_assert(sizeof(struct lc_superblock) == LC_SLOT_BYTES, "lc_superblock");
static_assert(sizeof(struct lc_mark) == LC_SLOT_BYTES, "lc_mark");
static_assert(sizeof(struct lc_record_header) == LC_SLOT_BYTES, "lc_record_header");
static_assert(sizeof(struct lc_ckpt_block) == LC_SLOT_BYTES, "lc_ckpt_block");
LC_ASSERT_AT(lc_superblock, cache_bytes, 168);
LC_ASSERT_AT(lc_superblock, epoch, 280);
LC_ASSERT_AT(lc_superblock, options, 760);
LC_ASSERT_AT(lc_superblock, skips, 1280);
LC_ASSERT_AT(lc_superblock, lives, 2304);
LC_ASSERT_AT(lc_superblock, mark_epoch, 3328);
LC_ASSERT_AT(lc_superblock, warm_segment, 3600);
LC_ASSERT_AT(lc_superblock, reserved, 3640);
LC_ASSERT_AT(lc_mark, owner, 120);
LC_ASSERT_AT(lc_mark, lost, 192);
LC_ASSERT_AT(lc_record_header, entries, 128);
LC_ASSERT_AT(lc_record_header, lost, 3188);

#endif /* LC_FORMAT_H */
