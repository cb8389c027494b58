// SPDX-License-Identifier: GPL-2.0-only
/* What the targets that decode one block share, see blocks.h. */
#include "blocks.h"
#include "tests/formatted.h"

static void spoil(const struct block_target *target, u8 *block, struct rng *rng)
{
	unsigned int n = 1 + rng_below(rng, 3);

	while (n--)
		seal_spoil_field(block, target->kind, NULL, rng);
}

/* Another place or another cache; many zeroes, so that most fields are small. */
static void spoil_prefix(u8 *prefix, unsigned int len, struct rng *rng)
{
	unsigned int i;

	for (i = 0; i < len; i++) {
		if (rng_one_in(rng, 3))
			prefix[i] = rng_one_in(rng, 2) ? 0 : (u8)rng_next(rng);
	}
}

size_t blocks_mutate(const struct block_target *target, u8 *data, size_t size, size_t max,
		     unsigned int seed)
{
	u8 block[LC_SLOT_BYTES];
	struct rng rng = { seed };
	struct input in;
	size_t len;

	if (max < target->prefix + 64)
		return LLVMFuzzerMutate(data, size, max);
	if (rng_one_in(&rng, 4) || size < target->prefix)
		size = LLVMFuzzerMutate(data, size, max);
	if (size < target->prefix)
		memset(data + size, 0, target->prefix - size);
	in = (struct input){ data + target->prefix, size < target->prefix ? 0 :
			     size - target->prefix };
	input_block(&in, block);
	if (rng_one_in(&rng, 8))
		spoil_prefix(data, target->prefix, &rng);
	in = (struct input){ data, target->prefix };
	if (seal_kind(block) != target->kind)
		target->fresh(in, block, &rng);
	else if (rng_below(&rng, 4))
		spoil(target, block, &rng);
	if (rng_below(&rng, 16))
		target->reseal(in, block);
	else
		block[rng_below(&rng, sizeof(block))] ^= 1u << rng_below(&rng, 8);
	for (len = sizeof(block); len && !block[len - 1]; len--)
		;
	if (len > max - target->prefix)
		len = max - target->prefix;
	memcpy(data + target->prefix, block, len);
	return target->prefix + len;
}

void cache_from_input(struct input *in, struct lc_sb *sb)
{
	u64 cache_bytes = input_bytes(in, 7);
	u32 segment_bytes = LC_SEGMENT_BYTES_MIN << input_u8(in) % 7;
	u64 sectors = input_bytes(in, 6) ^ 1 << 20;	/* zero is not the least of them */
	u8 csum;

	if (formatted_sb(sb, cache_bytes, segment_bytes) &&
	    formatted_sb(sb, 8u << 20, LC_SEGMENT_BYTES_MIN))
		abort();
	sb->volume_sectors = 1 + sectors % (LC_MAX_BLOCKS * LC_BLOCK_SECTORS - 1);
	sb->lane_limit = 1 + input_u16(in) % 1024;
	csum = input_u8(in);
	sb->csum_type = csum % 2 ? LC_CSUM_XXH64 : LC_CSUM_CRC32C;
	sb->incompat = (csum / 2 % 2 ? LC_INCOMPAT_LANES : 0) |
		       (csum / 4 % 2 ? LC_INCOMPAT_SHORT_SUMS : 0) |
		       (csum / 8 % 2 ? LC_INCOMPAT_PROMOTED : 0);
	sb->tail_seq = 1 + csum / 8;
	sb->next_seq = sb->tail_seq + sb->lane_limit;
	sb->epoch = input_bytes(in, 6);
	sb->generation = input_u8(in);
}
