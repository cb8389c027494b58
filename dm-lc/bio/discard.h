/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of a discard: its blocks leave the index, a record says so, and the HDD is told.
 *
 * Discards wait for copies of their blocks, and copies for discards: claims.h.
 */
#ifndef LC_DISCARD_H
#define LC_DISCARD_H

struct bio;
struct lc_cache;
struct lc_discards;

/* Sectors of the largest discard bio: bounds the time it claims its places. */
#define LC_DISCARD_MAX_SECTORS	(1u << 21)

/*
 * @c: set up to the log, and the claims.  Sets the kick of the claims.  May sleep.
 * Return: the discards or NULL.
 */
struct lc_discards *lc_discard_create(struct lc_cache *c);
/* No bio, no discard and no copy is left.  @d or NULL.  May sleep. */
void lc_discard_destroy(struct lc_discards *d);

/**
 * lc_discard_map() - map a discard
 * @d: the discards
 * @bio: device mapper's clone
 *
 * From map(): does not sleep.  The bio completes here or later.  Return: as lc_map_bio().
 */
int lc_discard_map(struct lc_discards *d, struct bio *bio);

/**
 * lc_discard_settle() - wait until no discard is on its way, whether its bio has ended or not
 * @d: the discards; writeback is quiesced.  No bio is in flight, or the SSD is being given up and
 *	the log stopped
 *
 * May sleep, for as long as SSD and HDD need.  If the SSD is given up, those that wait end without
 * effect, as do those that still come (S3).
 */
void lc_discard_settle(struct lc_discards *d);

#endif /* LC_DISCARD_H */
