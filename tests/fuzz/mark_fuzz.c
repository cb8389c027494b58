// SPDX-License-Identifier: GPL-2.0-only
/*
 * lc_mark_decode(): any bytes, anywhere on the hard disk.
 *
 * Input: u64 offset of the mark, u8 copy, u16 bit to flip, the block.
 */
#include <errno.h>

#include "blocks.h"
#include "invariants.h"
#include "tests/formatted.h"

#define PREFIX	11

static void reseal(struct input in, u8 *block)
{
	u64 offset = input_u64(&in);
	u64 address = lc_format_mark_address(offset, input_u8(&in) % 2);
	unsigned int i;

	seal_magic(block, KIND_MARK);
	for (i = 0; i < 8; i++)
		block[offsetof(struct lc_mark, address) + i] = (u8)(address >> 8 * i);
	seal_block(block, NULL);
}

static void fresh(struct input in, u8 *block, struct rng *rng)
{
	u64 offset = input_u64(&in);
	struct lc_mark_info mark;
	struct lc_sb sb;

	if (formatted_sb(&sb, 8u << 20, LC_SEGMENT_BYTES_MIN))
		abort();
	if (rng_below(rng, 2))
		formatted_lay_out(&sb, LAYOUT_MOVED_HEAD, sb.volume_sectors);
	formatted_mark(&sb, &mark);
	mark.generation = rng_next(rng);
	mark.state = 1 + rng_below(rng, 4);
	mark.nr_lost = rng_below(rng, 3);
	lc_mark_encode(&mark, 1 + rng_below(rng, 2), offset, input_u8(&in) % 2,
		       (struct lc_mark *)block);
}

static const struct block_target target = { PREFIX, KIND_MARK, fresh, reseal };

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max_size, unsigned int seed)
{
	return blocks_mutate(&target, data, size, max_size, seed);
}

static void round_trip(const struct lc_mark_info *mark, u32 csum_type, u64 offset)
{
	struct lc_mark_info again;
	struct lc_mark raw;
	const char *why;
	unsigned int copy;

	for (copy = 0; copy < 2; copy++) {
		lc_mark_encode(mark, csum_type, offset, copy, &raw);
		EXPECT(!lc_mark_decode(&raw, offset, copy, &again, &why));
		EXPECT(!memcmp(mark, &again, sizeof(again)));
		EXPECT(lc_mark_decode(&raw, offset, !copy, &again, &why) == -EXDEV);
		EXPECT(lc_mark_decode(&raw, offset + 4096, copy, &again, &why) == -EXDEV);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };
	u64 offset = input_u64(&in);
	unsigned int copy = input_u8(&in) % 2;
	unsigned int bit = input_u16(&in) % (LC_SLOT_BYTES * 8);
	struct lc_mark_info mark;
	struct lc_mark raw;
	const char *why = NULL;
	int ret;

	input_block(&in, &raw);
	ret = lc_mark_decode(&raw, offset, copy, &mark, &why);
	expect_error(ret, why);
	EXPECT(lc_mark_decode(&raw, offset, copy, &mark, NULL) == ret);
	if (ret)
		return 0;
	EXPECT(mark.state >= LC_MARK_PAIRED && mark.state <= LC_MARK_DETACHING);
	EXPECT(!mark.head_offset || (mark.head_offset >= LC_MARK_BYTES && !mark.data_offset &&
				     mark.head_offset >> 9 == mark.volume_sectors));
	EXPECT(mark.nr_lost <= LC_MARK_LOST || mark.nr_lost == LC_MARK_LOST_TOO_MANY);
	EXPECT(memchr(mark.label, 0, sizeof(mark.label)));
	round_trip(&mark, raw.csum_type, offset);
	((u8 *)&raw)[bit / 8] ^= 1u << bit % 8;
	EXPECT(lc_mark_decode(&raw, offset, copy, &mark, &why));
	return 0;
}
