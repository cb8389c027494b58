/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Metadata blocks as raw bytes: which kind a block is, what its fields are called,
 * odd values for them, and the checksum that makes a decoder look at them.
 */
#ifndef FUZZ_SEAL_H
#define FUZZ_SEAL_H

#include "format.h"
#include "rng.h"

enum block_kind {
	KIND_OTHER,
	KIND_SUPERBLOCK,
	KIND_MARK,
	KIND_RECORD,
	KIND_CKPT,
	KIND_GROUP,
	NR_KINDS,
};

enum block_kind seal_kind(const u8 *block);
void seal_magic(u8 *block, enum block_kind kind);

/*
 * Make the checksum right.  Superblock and mark say how they are summed, the others
 * are summed as their superblock says: @sb, which may be NULL for the first two.
 */
void seal_block(u8 *block, const struct lc_sb *sb);

/* Make a record, a group or a checkpoint block one of this cache, at this place. */
void seal_adopt_record(u8 *block, const struct lc_sb *sb, u64 segment, u32 slot);
void seal_adopt_group(u8 *block, const struct lc_sb *sb, u64 segment, u32 slot);
void seal_adopt_ckpt(u8 *block, const struct lc_sb *sb, u64 index);

/*
 * Give one field of a block an odd value, unsealed; @sb, if not NULL, lends its numbers.
 * Returns the field's name.
 */
const char *seal_spoil_field(u8 *block, enum block_kind kind, const struct lc_sb *sb,
			     struct rng *rng);

#endif
