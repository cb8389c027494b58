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

/*
 * Decide which records of c->scan exist; the scan is of the whole ring.  Both @c and its scan must
 * stay while @e is used, which is to be freed by exists_free().
 */
void exists_find(struct existing *e, struct check *c);
void exists_free(struct existing *e);

/* Does a record of the scan exist?  @r: in scan.found. */
bool exists_record(const struct existing *e, const struct lc_record_info *r);
/* Index in record[] of the first one at or above @seq; e->nr if there is none. */
size_t exists_at_or_above(const struct existing *e, u64 seq);
/* Is there a record of a seq? */
bool exists_seq(const struct existing *e, u64 seq);
/*
 * The life that a seq belongs to.  A record of a seq exists only in the last life that began at or
 * below it, so that is also the one a placeholder must belong to.
 */
struct life exists_life_of(const struct existing *e, u64 seq);
/* The lowest segment that any record of a higher seq can be in, as a record that exists tells. */
u64 exists_boundary(const struct existing *e, const struct lc_record_info *r);
/*
 * The lowest segment that a record of a seq, or of any above it, can be in, as the record before
 * it tells.
 */
u64 exists_lowest_segment(const struct existing *e, u64 seq);
/* Index in the scan of the first record of a segment, or of what follows if it has none. */
size_t exists_first_of_segment(const struct scan *scan, u64 segment);

#endif
