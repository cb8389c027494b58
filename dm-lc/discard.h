/* SPDX-License-Identifier: GPL-2.0-only */
/* The way of a discard.  See discard.c. */
#ifndef LC_DISCARD_H
#define LC_DISCARD_H

struct bio;
struct lc_core;

/* Sectors of the largest discard bio: bounds the time it holds the HDD's places. */
#define LC_DISCARD_MAX_SECTORS	(1u << 21)

int lc_discard_map(struct lc_core *core, struct bio *bio);

#endif /* LC_DISCARD_H */
