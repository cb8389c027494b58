/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The second chance: promoted blocks that are read often are logged again when their segment is
 * reused.
 *
 * The policy (admit.h) says which, at most half of a segment.  The refill worker hands them over
 * while it evicts the segment.  Each gets a slot of a group (group.h), and its node is replaced by
 * a pending one, so that it is read from the HDD for a while.  A worker then reads the old slots,
 * verifies them, and puts what is right into the group.  Until that is done it holds a reference on
 * the segment, so refill waits for a bounded number of reads of the SSD.  If no group is open, or
 * the worker is still busy with another segment, the blocks are evicted as all others.
 */
#ifndef LC_KEEP_H
#define LC_KEEP_H

struct lc_cache;
struct lc_groups;
struct lc_keep;

/**
 * lc_keep_create() - attach to the refill worker
 * @c: the cache
 * @groups: where blocks are put
 *
 * Before the first kick of the refill worker.  May sleep.  Return: the room or NULL.
 */
struct lc_keep *lc_keep_create(struct lc_cache *c, struct lc_groups *groups);

/* The refill worker has ended, and so has verify_wq.  @keep or NULL.  May sleep. */
void lc_keep_destroy(struct lc_keep *keep);

#endif /* LC_KEEP_H */
