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

#include <linux/types.h>

#include "format/lc_format.h"

struct lc_env;

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
