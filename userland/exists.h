/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of a log that exist by the replay rules, whether or not replay comes to them. */
#ifndef LC_EXISTS_H
#define LC_EXISTS_H

#include "report.h"

struct life {
	u64 epoch;
	u64 first_seq;
};

struct existing {
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

void exists_find(struct existing *e, struct check *c);
void exists_free(struct existing *e);

bool exists_record(const struct existing *e, const struct lc_record_info *r);
size_t exists_at_or_above(const struct existing *e, u64 seq);
bool exists_seq(const struct existing *e, u64 seq);
struct life exists_life_of(const struct existing *e, u64 seq);
u64 exists_cut(const struct existing *e, const struct lc_record_info *r);
u64 exists_lowest_segment(const struct existing *e, u64 seq);
size_t exists_first_of_segment(const struct scan *scan, u64 segment);

#endif
