/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fingerprint of the HDD: sums of sampled blocks, taken at a clean stop and compared at the
 * next start, so that a disk that was changed in between is refused (S5).
 *
 * A block that cannot be read tells neither that the disk was changed nor that it was not (S8).
 * It is logged and left out.  At least half of the samples must be comparable.
 */
#ifndef LC_FINGERPRINT_H
#define LC_FINGERPRINT_H

#include <linux/math64.h>
#include <linux/types.h>

#include "lc_format.h"

struct lc_env;

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

struct lc_fingerprint {
	u64 sum;			/* of all samples in one; of those that can be read */
	u32 samples[LC_SB_SAMPLES];	/* of each; 0: cannot be read */
	u32 nr;				/* samples of a volume of this size */
	u32 unreadable;			/* of those */
};

/**
 * lc_fingerprint_take() - sum the sampled blocks of the HDD
 * @env: of the volume
 * @print: gets the sums
 *
 * Before a stop: all writes to the HDD are complete and flushed, and no sample is doubtful
 * (doubt.h).  May sleep.  Only reads.  Logs each block that cannot be read.
 * Return: 0; -ENOMEM; -EIO if more than half of the samples cannot be read.
 */
int lc_fingerprint_take(struct lc_env *env, struct lc_fingerprint *print);

/**
 * lc_fingerprint_check() - is the HDD as the last clean stop left it?
 * @env: of a volume of which lc_pairing_unwritten() holds
 *
 * A superblock of a writer that does not know samples has one sum of all.  If a sample cannot be
 * read, that sum cannot be compared; then the mark, which is of the same life, has to do.
 *
 * May sleep.  Only reads, and says why not.  Return: 0; -ESTALE: the HDD was changed; -EIO: too
 * few samples can be compared; -ENOMEM.
 */
int lc_fingerprint_check(struct lc_env *env);

#endif /* LC_FINGERPRINT_H */
