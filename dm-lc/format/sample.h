/* SPDX-License-Identifier: GPL-2.0-only */
/* Which blocks of the volume are sampled for the fingerprint.  Pure; any context. */
#ifndef LC_SAMPLE_H
#define LC_SAMPLE_H

#include <linux/math64.h>
#include <linux/types.h>

#include "lc_format.h"

#define LC_SAMPLES_HEAD		16	/* blocks at the start: file system superblocks */
#define LC_SAMPLES_SPREAD	(LC_SB_SAMPLES - LC_SAMPLES_HEAD)	/* over the rest */

/* Samples of a volume of this size. */
static inline u32 lc_samples(u64 nr_blocks)
{
	return nr_blocks < LC_SB_SAMPLES ? 1 : LC_SB_SAMPLES;
}

/* The sampled blocks: the first ones, then one from each equal stretch of the rest. */
static inline u64 lc_sample_block(u64 nr_blocks, u32 i)
{
	if (i < LC_SAMPLES_HEAD)
		return i;
	return LC_SAMPLES_HEAD +
	       div_u64(nr_blocks - LC_SAMPLES_HEAD, LC_SAMPLES_SPREAD) * (i - LC_SAMPLES_HEAD);
}

/* Return: which sample a block is, or -1. */
static inline int lc_sample_of(u64 nr_blocks, u64 block)
{
	u64 step, i;

	if (lc_samples(nr_blocks) == 1 || block < LC_SAMPLES_HEAD)
		return block < lc_samples(nr_blocks) ? block : -1;
	step = div_u64(nr_blocks - LC_SAMPLES_HEAD, LC_SAMPLES_SPREAD);
	i = div64_u64(block - LC_SAMPLES_HEAD, step);
	if (i >= LC_SAMPLES_SPREAD || LC_SAMPLES_HEAD + i * step != block)
		return -1;
	return LC_SAMPLES_HEAD + i;
}

#endif /* LC_SAMPLE_H */
