/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which bytes of each kind of block are summed, and how: docs/on-disk-format.rst, "Checksums".
 *
 * Pure: no allocation, lock, I/O or printing.  Any context.
 */
#ifndef LC_CSUM_H
#define LC_CSUM_H

#include "native.h"

/**
 * lc_format_csum64() - checksum of a metadata block or slot
 * @csum_type: enum lc_csum_type, already validated
 * @seed: mixed in, so that equal data elsewhere has another checksum
 * @data: bytes to sum
 * @len: how many
 *
 * CRC32C has 32 bits only; the upper half is its complement: a zeroed field never matches.
 */
u64 lc_format_csum64(u32 csum_type, u64 seed, const void *data, u32 len);

/**
 * lc_format_slot_csum() - checksum of a data slot holding @block
 * @sb: whose generation and checksum type apply
 * @block: block number the slot belongs to
 * @slot: LC_SLOT_BYTES of data
 */
u32 lc_format_slot_csum(const struct lc_sb *sb, u64 block, const void *slot);

/**
 * lc_block_csum() - checksum of a metadata block that is no record header
 * @csum_type: enum lc_csum_type, already validated
 * @seed: the generation, or what stands for it
 * @block: LC_SLOT_BYTES
 */
u64 lc_block_csum(u32 csum_type, u64 seed, const void *block);

/**
 * lc_record_csum() - checksum of a record header
 * @raw: header
 * @sb: generation, checksum type and features
 *
 * With short sums, the bytes after the last entry are not summed, and mean nothing.  Most
 * records that a FLUSH waits for have few entries, and the FLUSH waits for the sum, too.
 */
u64 lc_record_csum(const struct lc_record_header *raw, const struct lc_sb *sb);

#endif /* LC_CSUM_H */
