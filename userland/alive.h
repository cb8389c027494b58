/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of a log that exist by the replay rules, whether or not replay comes to them. */
#ifndef LC_ALIVE_H
#define LC_ALIVE_H

#include "check.h"

struct life {
	u64 epoch;
	u64 first_seq;
};

struct alive {
	struct check *c;
	bool lanes;		/* of several lanes: see LC_INCOMPAT_LANES */
	bool *exists;		/* by their index in the scan */
	const struct lc_record_info **record;	/* sorted by seq */
	size_t nr;
	u64 durable;		/* highest seq known to be durable */
	struct life *life;
	size_t nr_lives;
	size_t nr_told;		/* of them by the superblock, which knows best */
};

void alive_find(struct alive *a, struct check *c);
void alive_free(struct alive *a);

bool alive_is(const struct alive *a, const struct lc_record_info *r);
size_t alive_at_or_above(const struct alive *a, u64 seq);
bool alive_has(const struct alive *a, u64 seq);
struct life alive_life_of(const struct alive *a, u64 seq);
u64 alive_cut(const struct alive *a, const struct lc_record_info *r);
u64 alive_lowest_segment(const struct alive *a, u64 seq);
size_t alive_first_of_segment(const struct scan *scan, u64 segment);

#endif
