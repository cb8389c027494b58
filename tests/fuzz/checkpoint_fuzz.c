// SPDX-License-Identifier: GPL-2.0-only
/*
 * lc_ckpt_decode() and lc_ckpt_item_decode(): any bytes, as any block of the
 * checkpoint of caches of any size.
 *
 * Input: the cache (see blocks.h), u64 index, the block.
 */
#include <errno.h>

#include "blocks.h"
#include "invariants.h"

#define PREFIX	(CACHE_INPUT + 8)

static void reseal(struct input in, u8 *block)
{
	struct lc_sb sb;

	cache_from_input(&in, &sb);
	seal_adopt_ckpt(block, &sb, input_u64(&in));
}

static void fresh(struct input in, u8 *block, struct rng *rng)
{
	u32 nr = 1 + rng_below(rng, 4), i;
	struct lc_sb sb;

	cache_from_input(&in, &sb);
	memset(block, 0, LC_SLOT_BYTES);
	for (i = 0; i < nr; i++) {
		struct lc_ckpt_item item = {
			.block = rng_below(rng, sb.volume_sectors) / LC_BLOCK_SECTORS,
			.slot = (u32)rng_below(rng, sb.geo.nr_slots), .mask = 1,
			.flags = rng_below(rng, 2),
		};

		if (sb.incompat & LC_INCOMPAT_PROMOTED)
			item.flags |= rng_below(rng, 32) << LC_CKPT_USE_SHIFT;

		if (sb.incompat & LC_INCOMPAT_LANES && !rng_below(rng, 4)) {
			item.flags = LC_CKPT_ENTRY_BOUNDARY;
			item.slot -= item.slot % sb.geo.seg_slots;
			item.seq = sb.tail_seq + rng_below(rng, sb.lane_limit + 1);
		}
		lc_ckpt_encode((struct lc_ckpt_block *)block, i, &item);
	}
	lc_ckpt_seal((struct lc_ckpt_block *)block, &sb, input_u64(&in), nr);
}

static const struct block_target target = { PREFIX, KIND_CKPT, fresh, reseal };

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max_size, unsigned int seed)
{
	return blocks_mutate(&target, data, size, max_size, seed);
}

static void round_trip(const struct lc_sb *sb, const struct lc_ckpt_block *raw, unsigned int i,
		       const struct lc_ckpt_item *item)
{
	struct lc_ckpt_item again;
	struct lc_ckpt_block made;

	memset(&made, 0, sizeof(made));
	lc_ckpt_encode(&made, i, item);
	EXPECT(!memcmp(&made.entries[i], &raw->entries[i], sizeof(made.entries[i])));
	EXPECT(!lc_ckpt_item_decode(&made, sb, i, &again));
	EXPECT(again.seq == item->seq && again.block == item->block && again.slot == item->slot &&
	       again.mask == item->mask && again.lost == item->lost &&
	       again.flags == item->flags);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };
	struct lc_ckpt_block raw;
	struct lc_ckpt_item item;
	const char *why = NULL;
	struct lc_sb sb;
	u64 index;
	u32 nr, i;
	int ret;

	cache_from_input(&in, &sb);
	index = input_u64(&in);
	input_block(&in, &raw);
	ret = lc_ckpt_decode(&raw, &sb, index, &nr, &why);
	expect_error(ret, why);
	EXPECT(lc_ckpt_decode(&raw, &sb, index, &nr, NULL) == ret);
	if (ret)
		return 0;
	EXPECT(nr <= LC_CKPT_ENTRIES);
	for (i = 0; i < nr; i++) {
		ret = lc_ckpt_item_decode(&raw, &sb, i, &item);
		EXPECT(!ret || ret == -ERANGE);
		if (ret)
			continue;
		expect_item(&sb, &item);
		round_trip(&sb, &raw, i, &item);
	}
	EXPECT(lc_ckpt_decode(&raw, &sb, index + 1, &nr, &why) == -EXDEV);
	sb.epoch++;
	EXPECT(lc_ckpt_decode(&raw, &sb, index, &nr, &why) == -ESTALE);
	return 0;
}
