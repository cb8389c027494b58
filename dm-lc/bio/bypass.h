/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of writes past the cache, once the SSD was given up.  See bypass.c.
 *
 * One caller at a time claims blocks: the salvage.
 *
 * Invariants
 *  S-c Sectors that the HDD does not hold become valid there only when the write over them is
 *     complete.
 *  S-d While a block is claimed, no write of a user to it is on its way: those that came before
 *     have ended, the change of the index included, and later ones wait until it is released.
 *  S-g A write that is counted is not held back on account of its sender: no limit of the
 *     sender's cgroup, no idle I/O class and no plug applies to it, and a task that may get no
 *     CPU for long does not send it.  So a claim waits for no more than the HDD, and for a task
 *     that is preempted within submit_bio().  After the salvage nothing is counted.
 */
#ifndef LC_BYPASS_H
#define LC_BYPASS_H

#include <linux/blk_types.h>
#include <linux/types.h>

struct bio;
struct lc_bypass;
struct lc_cache;
struct lc_request;

/* @c: outlives the bypass.  May sleep.  Return: the bypass or NULL. */
struct lc_bypass *lc_bypass_create(struct lc_cache *c);
/* No bio and no claim is left.  @bypass or NULL.  May sleep. */
void lc_bypass_destroy(struct lc_bypass *bypass);

/**
 * lc_bypass_watch() - there will be claims, or none any more
 * @bypass: the bypass
 * @on: before mode degraded is entered; off when nothing is claimed
 *
 * Any context.
 */
void lc_bypass_watch(struct lc_bypass *bypass, bool on);

/**
 * lc_bypass_claim() - keep writes away from some blocks (S-d)
 * @bypass: the bypass; nothing is claimed
 * @blocks: sorted; the caller's until lc_bypass_release()
 * @nr: how many
 *
 * May sleep, for as long as the HDD needs for the writes it has.
 */
void lc_bypass_claim(struct lc_bypass *bypass, const u64 *blocks, u32 nr);

/**
 * lc_bypass_wait_in_flight() - wait for the writes and FLUSHes in flight
 * @bypass: the bypass
 *
 * May sleep, as above.  Not at the same time as a claim.
 */
void lc_bypass_wait_in_flight(struct lc_bypass *bypass);

/**
 * lc_bypass_release() - let writes to all blocks go on
 * @bypass: the bypass
 *
 * Process context.
 */
void lc_bypass_release(struct lc_bypass *bypass);

/**
 * lc_bypass_failed_flushes() - how many FLUSHes of users did the HDD fail?
 * @bypass: the bypass
 *
 * After each of them it may have dropped what was written before (F3).  Any context.
 */
u32 lc_bypass_failed_flushes(struct lc_bypass *bypass);

/**
 * lc_bypass_flush() - make durable what was written to the HDD
 * @bypass: the bypass; the volume is degraded
 *
 * May sleep.  Return: 0 or a negative errno.
 */
int lc_bypass_flush(struct lc_bypass *bypass);

/**
 * lc_bypass_map() - map anything but a read straight to the HDD
 * @bypass: the bypass; the volume is degraded
 * @bio: device mapper's clone
 *
 * From map(): does not sleep.  Return: as lc_map_bio().
 */
int lc_bypass_map(struct lc_bypass *bypass, struct bio *bio);

/**
 * lc_bypass_submit() - send what is left of a write that waited to the HDD
 * @bypass: the bypass; the volume is degraded
 * @io: io->iter is what is left
 *
 * Process context.
 */
void lc_bypass_submit(struct lc_bypass *bypass, struct lc_request *io);

/**
 * lc_bypass_end() - end_io of a bio that may have gone straight to the HDD
 * @bypass: the bypass
 * @bio: device mapper's clone
 * @error: the bio's status
 *
 * Completion context.  Return: as lc_map_end().
 */
int lc_bypass_end(struct lc_bypass *bypass, struct bio *bio, blk_status_t *error);

#endif /* LC_BYPASS_H */
