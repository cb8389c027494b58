/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fingerprint of the HDD: sums of sampled blocks, taken at a clean stop and compared at the
 * next start, so that a disk that was changed meanwhile is refused (S5).
 *
 * A block that cannot be read tells nothing, neither that the disk was changed nor that it was
 * not (S8).  It is named in the log and left out, as long as at least half of the others can be
 * compared.
 */
#ifndef LC_FINGERPRINT_H
#define LC_FINGERPRINT_H

#include <linux/types.h>

#include "lc_format.h"

struct lc_cache;

struct lc_fingerprint {
	u64 sum;			/* of all samples in one; of those that can be read */
	u32 samples[LC_SB_SAMPLES];	/* of each; 0: cannot be read */
	u32 nr;				/* samples of a volume of this size */
	u32 unreadable;			/* of those */
};

int lc_fingerprint_take(struct lc_cache *c, struct lc_fingerprint *print);
int lc_fingerprint_check(struct lc_cache *c);

#endif /* LC_FINGERPRINT_H */
