// SPDX-License-Identifier: GPL-2.0-only
/* What the targets that take whole images share, see images.h. */
#include "expect.h"
#include "hostile.h"
#include "images.h"
#include "plausible.h"
#include "seal.h"

/* Every block that says it is one of ours gets the checksum to prove it. */
static void reseal(struct medium *m)
{
	struct lc_sb sb = { .csum_type = LC_CSUM_XXH64 };
	unsigned int disk, i;

	for (disk = 0; disk < MEDIUM_DISKS; disk++) {
		/* Superblocks are the first: the rest is summed as they say. */
		for (i = 0; i < m->nr_blocks[disk]; i++) {
			if (m->block[disk][i] && seal_kind(m->block[disk][i]) != KIND_OTHER)
				seal_block(m->block[disk][i], &sb);
			if (i << LC_SLOT_SHIFT == LC_SB_COPY_STRIDE)
				medium_superblock(m, &sb);
		}
	}
}

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max_size, unsigned int seed)
{
	static struct medium m;
	struct rng rng = { seed };
	char note[HOSTILE_NOTE];
	unsigned int n;

	if (max_size < 1024)
		return LLVMFuzzerMutate(data, size, max_size);
	if (size < 64 || rng_one_in(&rng, 32)) {
		medium_free(&m);
		plausible_image(&m, &rng);
	} else {
		medium_unpack(&m, data + IMAGES_PREFIX, size - IMAGES_PREFIX);
	}
	if (rng_one_in(&rng, 4)) {
		size = LLVMFuzzerMutate(data, size, max_size);
		if (size < IMAGES_PREFIX)
			return size;
		medium_unpack(&m, data + IMAGES_PREFIX, size - IMAGES_PREFIX);
		if (rng_below(&rng, 4))
			reseal(&m);
	} else {
		for (n = 1 + rng_below(&rng, 3); n; n--)
			hostile_mutate(&m, &rng, note);
	}
	data[0] = (u8)rng_next(&rng);
	data[1] = rng_one_in(&rng, 4) ? (u8)rng_next(&rng) : 0;
	n = medium_pack(&m, data + IMAGES_PREFIX, max_size - IMAGES_PREFIX);
	return n ? n + IMAGES_PREFIX : size;
}

/* Blocks of both images, each from one of them. */
size_t LLVMFuzzerCustomCrossOver(const u8 *a, size_t a_size, const u8 *b, size_t b_size, u8 *out,
				 size_t max_size, unsigned int seed)
{
	static struct medium from, to;
	struct rng rng = { seed };
	unsigned int disk, i;
	size_t n;

	if (a_size < IMAGES_PREFIX || b_size < IMAGES_PREFIX || max_size < IMAGES_PREFIX)
		return 0;
	medium_unpack(&to, a + IMAGES_PREFIX, a_size - IMAGES_PREFIX);
	medium_unpack(&from, b + IMAGES_PREFIX, b_size - IMAGES_PREFIX);
	for (disk = 0; disk < MEDIUM_DISKS; disk++) {
		for (i = 0; i < from.nr_blocks[disk]; i++) {
			u8 *block = medium_block(&to, disk, i);

			if (block && from.block[disk][i] && rng_one_in(&rng, 2))
				memcpy(block, from.block[disk][i], LC_SLOT_BYTES);
		}
	}
	memcpy(out, a, IMAGES_PREFIX);
	n = medium_pack(&to, out + IMAGES_PREFIX, max_size - IMAGES_PREFIX);
	return n ? n + IMAGES_PREFIX : 0;
}
