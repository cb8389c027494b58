// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is summed of each kind of block, and how: docs/on-disk-format.rst, "Checksums".  Pure, as
 * format.c is, whose header has the contract.
 */
#include <linux/types.h>
#include <asm/byteorder.h>
#include <linux/xxhash.h>
#include <linux/crc32.h>

#include "format.h"

/**
 * lc_format_csum64() - checksum of a metadata block or slot
 * @csum_type: enum lc_csum_type, already validated
 * @seed: mixed in, so that equal data elsewhere has another checksum
 * @data: bytes to sum
 * @len: how many
 *
 * CRC32C has 32 bits only; the upper half is its complement: a zeroed field never matches.
 */
u64 lc_format_csum64(u32 csum_type, u64 seed, const void *data, u32 len)
{
	u32 crc;

	if (csum_type == LC_CSUM_XXH64)
		return xxh64(data, len, seed);
	/* Summed, not xored: the halves of a sum of ours are complements and would cancel. */
	crc = crc32c(~((u32)seed + 2 * (u32)(seed >> 32)), data, len);
	return (u64)~crc << 32 | crc;
}

/**
 * lc_format_slot_csum() - checksum of a data slot holding @block
 * @sb: whose generation and checksum type apply
 * @block: block number the slot belongs to
 * @slot: LC_SLOT_BYTES of data
 */
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

/**
 * lc_block_csum() - checksum of a metadata block that is no record header
 * @csum_type: enum lc_csum_type, already validated
 * @seed: the generation, or what stands for it
 * @block: LC_SLOT_BYTES
 */
u64 lc_block_csum(u32 csum_type, u64 seed, const void *block)
{
	return head_csum(csum_type, seed, block, LC_SLOT_BYTES);
}

/**
 * lc_record_csum() - checksum of a record header
 * @raw: header
 * @sb: generation, checksum type and features
 *
 * With short sums, what lies behind the last entry is not summed, and means nothing: most
 * records that a FLUSH waits for have few entries, and it waits for the sum, too.
 */
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
