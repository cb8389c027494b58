// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which records of a log exist, of all that a scan of the whole ring has found: what
 * replay.c decides, but for what it does not come to see behind a damaged header.
 */
#include <stdlib.h>
#include <string.h>

#include "alive.h"
#include "memory.h"

static void add_life(struct alive *a, u64 epoch, u64 first_seq)
{
	size_t i;

	for (i = 0; i < a->nr_lives; i++) {
		if (a->life[i].epoch != epoch)
			continue;
		/* The superblock's, or the lowest, as for replay. */
		if (i >= a->nr_told && first_seq < a->life[i].first_seq)
			a->life[i].first_seq = first_seq;
		return;
	}
	a->life = xrealloc(a->life, a->nr_lives + 1, sizeof(*a->life));
	a->life[a->nr_lives++] = (struct life){ epoch, first_seq };
}

/**
 * alive_life_of() - the life that a seq belongs to
 *
 * A record of a seq exists only in the last life that began at or below it, so
 * that is also the one a placeholder must belong to.
 */
struct life alive_life_of(const struct alive *a, u64 seq)
{
	struct life best = { 0, 1 };
	size_t i;

	for (i = 0; i < a->nr_lives; i++) {
		if (a->life[i].first_seq <= seq && a->life[i].epoch >= best.epoch)
			best = a->life[i];
	}
	return best;
}

/**
 * alive_is() - does a record of the scan exist?
 */
bool alive_is(const struct alive *a, const struct lc_record_info *r)
{
	return a->exists[r - a->c->scan.found];
}

/**
 * alive_first_of_segment() - index in the scan of the first record of a segment, or of what
 * follows if it has none
 */
size_t alive_first_of_segment(const struct scan *scan, u64 segment)
{
	size_t low = 0, high = scan->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (scan->found[mid].segment < segment)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * A record that replay does not come to see, in a segment whose first one is of another
 * life?  Only one life writes to a segment, and replay has decided that it is that one.
 */
static bool is_foreign(const struct alive *a, size_t i)
{
	const struct scan *scan = &a->c->scan;
	const struct lc_record_info *first;
	struct life life;

	if (scan->seen[i])
		return false;
	first = &scan->found[alive_first_of_segment(scan, scan->found[i].segment)];
	life = alive_life_of(a, first->seq);
	/* One that a later life's seqs say is dead decides nothing (R1). */
	return first->epoch != scan->found[i].epoch && first->epoch == life.epoch &&
	       first->epoch_first_seq == life.first_seq;
}

/* Rules R1 and R7 of replay: epochs do not fall while segment numbers rise. */
static void find_existing(struct alive *a)
{
	const struct scan *scan = &a->c->scan;
	u64 latest = 0;			/* epoch up to this segment */
	size_t i, of_segment = 0;

	for (i = 0; i < scan->nr; i++) {
		const struct lc_record_info *r = &scan->found[i];
		struct life life = alive_life_of(a, r->seq);

		for (; of_segment < scan->nr && scan->found[of_segment].segment <= r->segment;
		     of_segment++) {
			if (scan->found[of_segment].epoch > latest && !is_foreign(a, of_segment))
				latest = scan->found[of_segment].epoch;
		}
		a->exists[i] = r->epoch == latest && r->epoch == life.epoch &&
			       r->epoch_first_seq == life.first_seq && !is_foreign(a, i);
	}
}

static int compare_alive(const void *x, const void *y)
{
	u64 a = (*(const struct lc_record_info *const *)x)->seq;
	u64 b = (*(const struct lc_record_info *const *)y)->seq;

	return a < b ? -1 : a > b;
}

/*
 * With several lanes all that exists is believed at once (R5).  What replay sees tells less,
 * and a record put where a damaged one was between two that are not promised yet might be in
 * the way when the one behind is found to be.
 */
static void find_durable(struct alive *a)
{
	size_t i;

	a->durable = a->c->scan.run.durable_seq;
	for (i = 0; a->lanes && i < a->nr; i++) {
		if (a->record[i]->durable_seq > a->durable)
			a->durable = a->record[i]->durable_seq;
	}
}

/**
 * alive_find() - decide which records of the scan exist
 * @a: result, to be freed with alive_free()
 * @c: what was found
 */
void alive_find(struct alive *a, struct check *c)
{
	size_t i;

	memset(a, 0, sizeof(*a));
	a->c = c;
	a->lanes = c->sb.incompat & LC_INCOMPAT_LANES;
	a->record = xcalloc(c->scan.nr, sizeof(*a->record));
	a->exists = xcalloc(c->scan.nr, sizeof(*a->exists));
	add_life(a, c->sb.epoch, c->sb.epoch_first_seq);
	for (i = 0; i < c->sb.nr_lives; i++)
		add_life(a, c->sb.lives[i].epoch, c->sb.lives[i].first_seq);
	a->nr_told = a->nr_lives;
	for (i = 0; i < c->scan.nr; i++)
		add_life(a, c->scan.found[i].epoch, c->scan.found[i].epoch_first_seq);
	find_existing(a);
	for (i = 0; i < c->scan.nr; i++) {
		if (alive_is(a, &c->scan.found[i]))
			a->record[a->nr++] = &c->scan.found[i];
	}
	qsort(a->record, a->nr, sizeof(*a->record), compare_alive);
	find_durable(a);
}

void alive_free(struct alive *a)
{
	free(a->record);
	free(a->exists);
	free(a->life);
}

/**
 * alive_at_or_above() - index in record[] of the first one at or above @seq
 */
size_t alive_at_or_above(const struct alive *a, u64 seq)
{
	size_t low = 0, high = a->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (a->record[mid]->seq < seq)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/**
 * alive_has() - is there a record of a seq?
 */
bool alive_has(const struct alive *a, u64 seq)
{
	size_t i = alive_at_or_above(a, seq);

	return i < a->nr && a->record[i]->seq == seq;
}

/**
 * alive_cut() - the lowest segment that any record of a higher seq can be in, as a record
 * that exists tells
 */
u64 alive_cut(const struct alive *a, const struct lc_record_info *r)
{
	return a->lanes && r->cut ? r->cut : r->segment;
}

/**
 * alive_lowest_segment() - the lowest segment that a record of a seq, or of any above it, can
 * be in, as the record before it tells
 */
u64 alive_lowest_segment(const struct alive *a, u64 seq)
{
	size_t at = alive_at_or_above(a, seq);
	u64 lowest = at ? alive_cut(a, a->record[at - 1]) : 0;

	return lowest > a->c->sb.tail_segment ? lowest : a->c->sb.tail_segment;
}
