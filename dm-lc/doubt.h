/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * May the HDD show in a sampled block what it does not hold?
 *
 * A FLUSH that fails may have dropped what was in the HDD's cache; the HDD may show that until
 * the power goes, and no later FLUSH says anything about it (F3).  No block is lost by that, since
 * none was marked clean.  But a fingerprint of it would refuse the next start behind a power cut
 * (F8, S5).  So the doubtful sectors of each sampled block are known, and a stop is clean only if
 * there are none.  Of other blocks nothing needs to be known.
 *
 * Invariants
 *  DB1 A sector of a sample that went to the HDD, by any sender and with any result, is in
 *      `sent` until a FLUSH begins behind its end, then in `covered` until that has ended, and
 *      then in `doubtful` if that has failed.  At the start of a life all are in `sent`, for an
 *      earlier one may have left them in the HDD's cache; behind the mark, which is written with
 *      a FLUSH, none is.
 *  DB2 A sector leaves `doubtful` only when the HDD has taken a write of it that began behind the
 *      FLUSH that failed, and a FLUSH that began behind the end of that write has ended well.
 *      That FLUSH alone is not enough, nor that nothing is dirty, nor that the tail has passed
 *      the failed batch: the block may have been overwritten in the cache since and not be
 *      drained, or discarded, lost or refused, and then nobody has written it again.
 *
 * A discard makes nothing certain: what a block holds behind it is for the HDD to say, for as long
 * as it likes.  So it is sent, and takes no sector out of `doubtful`.
 *
 * One FLUSH of the HDD at a time: from writeback with batch_lock, or when it rests.
 */
#ifndef LC_DOUBT_H
#define LC_DOUBT_H

#include <linux/spinlock.h>
#include <linux/types.h>

#include "lc_format.h"

struct block_device;

/* A byte for each sample: its sectors. */
struct lc_doubt {
	spinlock_t lock;		/* in completion context too; for all of the following */
	u64 nr_blocks;			/* constant */
	u8 sent[LC_SB_SAMPLES];
	u8 covered[LC_SB_SAMPLES];
	u8 taken[LC_SB_SAMPLES];	/* by the HDD, of what was begun behind the last FLUSH */
	u8 doubtful[LC_SB_SAMPLES];
};

/* None of them sleeps. */
void lc_doubt_init(struct lc_doubt *doubt, u64 nr_blocks);
void lc_doubt_marked(struct lc_doubt *doubt);
void lc_doubt_sent(struct lc_doubt *doubt, u64 block, u8 mask);
void lc_doubt_discarded(struct lc_doubt *doubt, u64 first, u64 last);
void lc_doubt_taken(struct lc_doubt *doubt, u64 block, u8 mask);
void lc_doubt_begin(struct lc_doubt *doubt);
void lc_doubt_end(struct lc_doubt *doubt, bool well);
bool lc_doubt_any(struct lc_doubt *doubt);

int lc_doubt_flush(struct lc_doubt *doubt, struct block_device *hdd);

#endif /* LC_DOUBT_H */
