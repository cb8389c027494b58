/* SPDX-License-Identifier: GPL-2.0-only */
/* The way of a discard.  See discard.c. */
#ifndef LC_DISCARD_H
#define LC_DISCARD_H

struct bio;
struct lc_core;
struct lc_discards;

/* Sectors of the largest discard bio: bounds the time it claims its places. */
#define LC_DISCARD_MAX_SECTORS	(1u << 21)

int lc_discard_create(struct lc_core *core);
void lc_discard_destroy(struct lc_core *core);

int lc_discard_map(struct lc_core *core, struct bio *bio);
void lc_discard_kick(struct lc_core *core);
void lc_discard_settle(struct lc_core *core);

#endif /* LC_DISCARD_H */
