// SPDX-License-Identifier: GPL-2.0-only
/*
 * lc_sb_decode(): any bytes, as any of the three copies.
 *
 * Input: u8 copy, u16 bit to flip, the block.
 */
#include <errno.h>

#include "blocks.h"
#include "invariants.h"
#include "tests/formatted.h"

#define PREFIX	3

static u64 field64(const u8 *block, size_t at)
{
	struct input in = { block + at, 8 };

	return input_u64(&in);
}

static u64 address_of(const u8 *block, unsigned int copy)
{
	return copy < 2 ? copy * LC_SB_COPY_STRIDE :
			  field64(block, offsetof(struct lc_superblock, end_offset));
}

static void reseal(struct input in, u8 *block)
{
	u64 address = address_of(block, input_u8(&in) % LC_SB_COPIES);
	unsigned int i;

	seal_magic(block, KIND_SUPERBLOCK);
	for (i = 0; i < 8; i++)
		block[offsetof(struct lc_superblock, address) + i] = (u8)(address >> 8 * i);
	seal_block(block, NULL);
}

static void fresh(struct input in, u8 *block, struct rng *rng)
{
	struct lc_sb sb;

	if (formatted_sb(&sb, 8u << 20, LC_SEGMENT_BYTES_MIN))
		abort();
	sb.generation = rng_next(rng) | 1;
	sb.csum_type = 1 + rng_below(rng, 2);
	sb.flags = rng_below(rng, 4);
	sb.epoch = 3;
	sb.epoch_first_seq = 40;
	sb.tail_seq = 30;
	sb.tail_segment = 7;
	sb.next_seq = 50;
	sb.head_segment = 9;
	lc_sb_encode(&sb, input_u8(&in) % LC_SB_COPIES, (struct lc_superblock *)block);
}

static const struct block_target target = { PREFIX, KIND_SUPERBLOCK, fresh, reseal };

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max_size, unsigned int seed)
{
	return blocks_mutate(&target, data, size, max_size, seed);
}

/* Skips and lives that are not counted are not written either. */
static void forget_unused(struct lc_sb *sb)
{
	memset(sb->skips + sb->nr_skips, 0, (LC_SB_SKIPS - sb->nr_skips) * sizeof(sb->skips[0]));
	memset(sb->lives + sb->nr_lives, 0, (LC_SB_LIVES - sb->nr_lives) * sizeof(sb->lives[0]));
}

static void round_trip(struct lc_sb *sb)
{
	struct lc_superblock raw;
	unsigned int to, from;
	struct lc_sb again;
	const char *why;

	forget_unused(sb);
	for (to = 0; to < LC_SB_COPIES; to++) {
		lc_sb_encode(sb, to, &raw);
		for (from = 0; from < LC_SB_COPIES; from++) {
			if (from == to)
				EXPECT(!lc_sb_decode(&raw, from, &again, &why) &&
				       !memcmp(sb, &again, sizeof(again)));
			else
				EXPECT(lc_sb_decode(&raw, from, &again, &why) == -EXDEV);
		}
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };
	unsigned int copy = input_u8(&in) % LC_SB_COPIES;
	unsigned int bit = input_u16(&in) % (LC_SLOT_BYTES * 8);
	struct lc_superblock raw;
	const char *why = NULL;
	struct lc_sb sb;
	int ret;

	input_block(&in, &raw);
	ret = lc_sb_decode(&raw, copy, &sb, &why);
	expect_error(ret, why);
	EXPECT(lc_sb_decode(&raw, copy, &sb, NULL) == ret);
	if (ret)
		return 0;
	expect_superblock(&sb);
	round_trip(&sb);
	((u8 *)&raw)[bit / 8] ^= 1u << bit % 8;
	EXPECT(lc_sb_decode(&raw, copy, &sb, &why));
	return 0;
}
