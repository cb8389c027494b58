// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checksums of blocks.  See csum.h.
 */
#include <linux/types.h>
#include <asm/byteorder.h>
#include <linux/xxhash.h>
#include <linux/crc32.h>

#include "csum.h"

u64 lc_format_csum64(u32 csum_type, u64 seed, const void *data, u32 len)
{
	u32 crc;

	if (csum_type == LC_CSUM_XXH64)
		return xxh64(data, len, seed);
	/* Summed, not xored: the halves of a sum of ours are complements and would cancel. */
	crc = crc32c(~((u32)seed + 2 * (u32)(seed >> 32)), data, len);
	return (u64)~crc << 32 | crc;
}

u32 lc_format_slot_csum(const struct lc_sb *sb, u64 block, const void *slot)
{
	u64 sum = lc_format_csum64(sb->csum_type, sb->generation + block, slot, LC_SLOT_BYTES);

	return sb->csum_type == LC_CSUM_XXH64 ? (u32)sum ^ (u32)(sum >> 32) : (u32)sum;
}

/* The first bytes of a metadata block: an 8-byte checksum at byte 8 is summed as zero. */
static u64 head_csum(u32 csum_type, u64 seed, const void *block, u32 len)
{
	static const u8 zero[8];
	u64 sum;

	sum = lc_format_csum64(csum_type, seed, block, 8);
	sum = lc_format_csum64(csum_type, sum, zero, 8);
	return lc_format_csum64(csum_type, sum, (const u8 *)block + 16, len - 16);
}

u64 lc_block_csum(u32 csum_type, u64 seed, const void *block)
{
	return head_csum(csum_type, seed, block, LC_SLOT_BYTES);
}

u64 lc_record_csum(const struct lc_record_header *raw, const struct lc_sb *sb)
{
	u32 nr = le16_to_cpu(raw->nr_entries);
	u64 sum;

	if (nr > LC_RECORD_ENTRIES)
		nr = LC_RECORD_ENTRIES;
	if (!(sb->incompat & LC_INCOMPAT_SHORT_SUMS))
		return lc_block_csum(sb->csum_type, sb->generation, raw);
	sum = head_csum(sb->csum_type, sb->generation, raw,
			offsetof(struct lc_record_header, entries) + nr * sizeof(struct lc_entry));
	return lc_format_csum64(sb->csum_type, sum, raw->lost, nr);
}
