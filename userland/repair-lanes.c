// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which missing seq goes into which hole of a log of several lanes?
 *
 * With one lane the seqs between two neighbours of a segment are those of the hole between
 * them.  With several, segments that were open side by side share the seqs: each seq fits
 * many holes, and which one it was in nobody knows.  Nor does it matter, for replay goes
 * by seq; but a hole without a seq keeps all behind it hidden.  So each hole gets as many
 * as it needs to be filled, if there are enough.
 *
 * The highest seqs are given first, each to that of the holes it fits that begins at the
 * highest seq: the others can still take lower ones.  So no hole stays without a seq while
 * there is a way to give one to each.
 */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "repair-lanes.h"

/* Which seqs are given in which order. */
enum round {
	ROUND_NEEDY,		/* to holes that nothing else can fill */
	ROUND_CONTENT,		/* to those that seqs below the tail would fill */
	ROUND_REST,		/* what is left, where there is room */
};

u64 lanes_seq_before(const struct existing *e, size_t i)
{
	const struct lc_record_info *r = &e->c->scan.found[i], *p;
	u64 boundary = exists_boundary(e, r);
	size_t k;

	for (p = r; p > e->c->scan.found && p[-1].segment == r->segment; p--) {
		if (exists_record(e, p - 1))
			return p[-1].seq;
	}
	for (k = e->nr; k--; ) {
		if (e->record[k]->segment < boundary)
			return e->record[k]->seq;
	}
	return 0;
}

/* Records that it takes at least. */
static size_t least(const struct hole *hole)
{
	return (hole->slots + PLACEHOLDER_SLOTS - 1) / PLACEHOLDER_SLOTS;
}

/*
 * The highest seqs below the tail that fit and that no record has, as many as it takes.
 * Replay ignores them.  Return: whether there are so many.
 */
static bool ignored_seqs(const struct existing *e, const struct hole *hole, u64 *seqs)
{
	u64 tail = e->c->sb.tail_seq, seq = hole->to < tail ? hole->to : tail;
	size_t nr = 0;

	while (nr < least(hole) && seq-- > hole->from + 1) {
		if (!exists_seq(e, seq))
			seqs[nr++] = seq;
	}
	return nr == least(hole);
}

static bool takes(const struct hole *hole, u64 seq, enum round round)
{
	if (seq <= hole->from || seq >= hole->to)
		return false;
	if (round == ROUND_REST)
		return hole->nr >= least(hole) && hole->nr < hole->slots;
	return hole->nr < least(hole) && hole->content == (round == ROUND_CONTENT);
}

/* Give what is in @missing, rising, to holes; what none takes stays there. */
static size_t give(struct hole *holes, size_t nr_holes, u64 *missing, size_t nr, enum round round)
{
	size_t left = nr, k, i;

	for (k = nr; k--; ) {
		struct hole *best = NULL;

		for (i = 0; i < nr_holes; i++) {
			if (takes(&holes[i], missing[k], round) &&
			    (!best || holes[i].from >= best->from))
				best = &holes[i];
		}
		if (!best)
			continue;
		best->seqs[best->nr++] = missing[k];
		left--;
		memmove(missing + k, missing + k + 1, (left - k) * sizeof(*missing));
	}
	return left;
}

static int compare_seqs(const void *x, const void *y)
{
	u64 a = *(const u64 *)x, b = *(const u64 *)y;

	return a < b ? -1 : a > b;
}

static size_t missing_seqs(const struct existing *e, u64 **missing)
{
	u64 seq, last = e->durable;
	size_t nr = 0;

	*missing = NULL;
	for (seq = e->c->sb.tail_seq; seq <= last; seq++) {
		if (exists_seq(e, seq))
			continue;
		*missing = xrealloc(*missing, nr + 1, sizeof(**missing));
		(*missing)[nr++] = seq;
	}
	return nr;
}

void lanes_share(const struct existing *e, struct hole *holes, size_t nr_holes)
{
	size_t nr, i;
	u64 *missing;
	int round;

	for (i = 0; i < nr_holes; i++) {
		holes[i].seqs = xcalloc(holes[i].slots, sizeof(*holes[i].seqs));
		holes[i].content = ignored_seqs(e, &holes[i], holes[i].seqs);
	}
	nr = missing_seqs(e, &missing);
	for (round = ROUND_NEEDY; round <= ROUND_REST; round++)
		nr = give(holes, nr_holes, missing, nr, round);
	free(missing);
	for (i = 0; i < nr_holes; i++) {
		if (holes[i].content && holes[i].nr < least(&holes[i])) {
			ignored_seqs(e, &holes[i], holes[i].seqs);
			holes[i].nr = least(&holes[i]);
		}
		qsort(holes[i].seqs, holes[i].nr, sizeof(*holes[i].seqs), compare_seqs);
	}
}
