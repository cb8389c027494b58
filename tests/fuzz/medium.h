/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two small disks in memory, in blocks of 4 KiB, and their short form: the bytes
 * a fuzzer works on and the corpus keeps.
 *
 * Short form: le16 size of the SSD, le16 size of the hard disk, in blocks; then
 * extents of le16 block, le16 where (bits 0-11 offset in the block, bit 14 one byte
 * repeated, bit 15 hard disk), le16 length, and the bytes.  All else is zero.  Any
 * bytes at all are the short form of something.
 */
#ifndef FUZZ_MEDIUM_H
#define FUZZ_MEDIUM_H

#include "format.h"

#define MEDIUM_BLOCKS	4096	/* of each disk, at most */
#define MEDIUM_PACKED	(1u << 20)

enum {
	MEDIUM_SSD,
	MEDIUM_HDD,
	MEDIUM_DISKS,
};

struct medium {
	u32 nr_blocks[MEDIUM_DISKS];
	u8 *block[MEDIUM_DISKS][MEDIUM_BLOCKS];	/* NULL: zeroes */
};

void medium_init(struct medium *m);
void medium_free(struct medium *m);
void medium_copy(struct medium *to, const struct medium *from);
bool medium_same(const struct medium *a, const struct medium *b, unsigned int disk);

/* A block to change; NULL behind the end of the disk. */
u8 *medium_block(struct medium *m, unsigned int disk, u64 block);
/* A block to look at; NULL behind the end of the disk. */
const u8 *medium_peek(const struct medium *m, unsigned int disk, u64 block);

/* Offsets and lengths are multiples of 512.  -EIO beyond the end. */
int medium_read(const struct medium *m, unsigned int disk, u64 offset, void *to, size_t len);
int medium_write(struct medium *m, unsigned int disk, u64 offset, const void *from, size_t len);

/* Replaces what the medium held. */
void medium_unpack(struct medium *m, const u8 *data, size_t size);
/* Returns the length, 0 if it does not fit. */
size_t medium_pack(const struct medium *m, u8 *data, size_t max);

/* The superblock of the first front copy that is good; false if none is. */
bool medium_superblock(const struct medium *m, struct lc_sb *sb);

#endif
