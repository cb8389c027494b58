/* SPDX-License-Identifier: GPL-2.0-only */
/* Replay: reading the log after a crash, and filling the index from it. */
#ifndef LC_RECOVERY_H
#define LC_RECOVERY_H

#include <linux/types.h>

struct lc_cache;

/**
 * lc_recovery_check_clean() - does the log end where a clean superblock says?
 * @c: the cache
 *
 * Without a mark, nothing but the log itself can tell a clean superblock of an
 * earlier life, put back by a backup or found after the newer copies rotted.  The
 * first record of every life opens the segment its predecessor's superblock names, or,
 * with several lanes, one of the next.
 *
 * May sleep.  Only reads.  Return: 0, -ESTALE, -ENOMEM.
 */
int lc_recovery_check_clean(struct lc_cache *c);

/**
 * lc_recovery_read_boundaries() - find the boundaries of a log of one lane
 * @c: the cache, stopped cleanly; its index is loaded
 *
 * Each segment whose first header can be read is one.  May sleep.  Only reads.
 * Return: 0 or -ENOMEM.
 */
int lc_recovery_read_boundaries(struct lc_cache *c);

/**
 * lc_recovery_run() - fill the empty index from the log
 * @c: the cache
 * @next_seq: first seq of the new life
 * @next_segment: number of its first segment
 *
 * May sleep.  Only reads, and flushes the SSD.  Return: 0, -EUCLEAN if durable
 * records are damaged, or another errno.
 */
int lc_recovery_run(struct lc_cache *c, u64 *next_seq, u64 *next_segment);

#endif /* LC_RECOVERY_H */
