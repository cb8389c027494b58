/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of a read: from RAM, remapped to the SSD or the HDD, or block by block in a worker.
 *
 * With verify_reads, or after an error, a worker checks what the SSD gave against the checksum of
 * the log (slot.h) before the bio ends.
 */
#ifndef LC_READ_H
#define LC_READ_H

#include <linux/blk_types.h>

struct bio;
struct lc_cache;
struct lc_promote;

/**
 * lc_read_map() - map a read
 * @c: the cache
 * @promote: for what is read from the HDD
 * @bio: device mapper's clone
 *
 * From map(): does not sleep.  Return: as lc_map_bio().
 */
int lc_read_map(struct lc_cache *c, struct lc_promote *promote, struct bio *bio);

/**
 * lc_read_end() - end_io of a read
 * @c: the cache
 * @bio: device mapper's clone
 * @error: the bio's status
 *
 * Completion context.  Return: as lc_map_end().
 */
int lc_read_end(struct lc_cache *c, struct bio *bio, blk_status_t *error);

#endif /* LC_READ_H */
