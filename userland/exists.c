// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which records of a log exist, of all that a scan of the whole ring has found: what
 * replay.c decides, but for what it does not come to see behind a damaged header.
 */
#include <stdlib.h>
#include <string.h>

#include "exists.h"
#include "memory.h"

static void add_life(struct existing *e, u64 epoch, u64 first_seq)
{
	size_t i;

	for (i = 0; i < e->nr_lives; i++) {
		if (e->life[i].epoch != epoch)
			continue;
		/* The superblock's, or the lowest, as for replay. */
		if (i >= e->nr_told && first_seq < e->life[i].first_seq)
			e->life[i].first_seq = first_seq;
		return;
	}
	e->life = xrealloc(e->life, e->nr_lives + 1, sizeof(*e->life));
	e->life[e->nr_lives++] = (struct life){ epoch, first_seq };
}

struct life exists_life_of(const struct existing *e, u64 seq)
{
	struct life best = { 0, 1 };
	size_t i;

	for (i = 0; i < e->nr_lives; i++) {
		if (e->life[i].first_seq <= seq && e->life[i].epoch >= best.epoch)
			best = e->life[i];
	}
	return best;
}

bool exists_record(const struct existing *e, const struct lc_record_info *r)
{
	return e->exists[r - e->c->scan.found];
}

size_t exists_first_of_segment(const struct scan *scan, u64 segment)
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
static bool is_foreign(const struct existing *e, size_t i)
{
	const struct scan *scan = &e->c->scan;
	const struct lc_record_info *first;
	struct life life;

	if (scan->seen[i])
		return false;
	first = &scan->found[exists_first_of_segment(scan, scan->found[i].segment)];
	life = exists_life_of(e, first->seq);
	/* One that a later life's seqs say is dead decides nothing (R1). */
	return first->epoch != scan->found[i].epoch && first->epoch == life.epoch &&
	       first->epoch_first_seq == life.first_seq;
}

/* Rules R1 and R7 of replay: epochs do not fall while segment numbers rise. */
static void find_existing(struct existing *e)
{
	const struct scan *scan = &e->c->scan;
	u64 latest = 0;			/* epoch up to this segment */
	size_t i, of_segment = 0;

	for (i = 0; i < scan->nr; i++) {
		const struct lc_record_info *r = &scan->found[i];
		struct life life = exists_life_of(e, r->seq);

		for (; of_segment < scan->nr && scan->found[of_segment].segment <= r->segment;
		     of_segment++) {
			if (scan->found[of_segment].epoch > latest && !is_foreign(e, of_segment))
				latest = scan->found[of_segment].epoch;
		}
		e->exists[i] = r->epoch == latest && r->epoch == life.epoch &&
			       r->epoch_first_seq == life.first_seq && !is_foreign(e, i);
	}
}

static int compare_seqs(const void *x, const void *y)
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
static void find_durable(struct existing *e)
{
	size_t i;

	e->durable = e->c->scan.run.durable_seq;
	for (i = 0; e->lanes && i < e->nr; i++) {
		if (e->record[i]->durable_seq > e->durable)
			e->durable = e->record[i]->durable_seq;
	}
}

void exists_find(struct existing *e, struct check *c)
{
	size_t i;

	memset(e, 0, sizeof(*e));
	e->c = c;
	e->lanes = c->sb.incompat & LC_INCOMPAT_LANES;
	e->record = xcalloc(c->scan.nr, sizeof(*e->record));
	e->exists = xcalloc(c->scan.nr, sizeof(*e->exists));
	add_life(e, c->sb.epoch, c->sb.epoch_first_seq);
	for (i = 0; i < c->sb.nr_lives; i++)
		add_life(e, c->sb.lives[i].epoch, c->sb.lives[i].first_seq);
	e->nr_told = e->nr_lives;
	for (i = 0; i < c->scan.nr; i++)
		add_life(e, c->scan.found[i].epoch, c->scan.found[i].epoch_first_seq);
	find_existing(e);
	for (i = 0; i < c->scan.nr; i++) {
		if (exists_record(e, &c->scan.found[i]))
			e->record[e->nr++] = &c->scan.found[i];
	}
	qsort(e->record, e->nr, sizeof(*e->record), compare_seqs);
	find_durable(e);
}

void exists_free(struct existing *e)
{
	free(e->record);
	free(e->exists);
	free(e->life);
}

size_t exists_at_or_above(const struct existing *e, u64 seq)
{
	size_t low = 0, high = e->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (e->record[mid]->seq < seq)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool exists_seq(const struct existing *e, u64 seq)
{
	size_t i = exists_at_or_above(e, seq);

	return i < e->nr && e->record[i]->seq == seq;
}

u64 exists_boundary(const struct existing *e, const struct lc_record_info *r)
{
	return e->lanes && r->boundary ? r->boundary : r->segment;
}

u64 exists_lowest_segment(const struct existing *e, u64 seq)
{
	size_t at = exists_at_or_above(e, seq);
	u64 lowest = at ? exists_boundary(e, e->record[at - 1]) : 0;

	return lowest > e->c->sb.tail_segment ? lowest : e->c->sb.tail_segment;
}
