/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the targets that decode one block of 4 KiB share.  Their input is a prefix of
 * fixed length, which says where the block was found and in which cache, and the
 * block without the zeroes at its end.
 */
#ifndef FUZZ_BLOCKS_H
#define FUZZ_BLOCKS_H

#include "expect.h"
#include "seal.h"

struct block_target {
	unsigned int prefix;
	enum block_kind kind;
	/* A good block to start from. */
	void (*fresh)(struct input in, u8 *block, struct rng *rng);
	/* Make the decoder look past address and checksum. */
	void (*reseal)(struct input in, u8 *block);
};

/* For LLVMFuzzerCustomMutator(): the same with the checksum right most of the time. */
size_t blocks_mutate(const struct block_target *target, u8 *data, size_t size, size_t max,
		     unsigned int seed);

/* The cache a record or checkpoint block is found in; always one lc_sb_decode() accepts. */
#define CACHE_INPUT	24
void cache_from_input(struct input *in, struct lc_sb *sb);

#endif
