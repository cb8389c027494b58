// SPDX-License-Identifier: GPL-2.0-only
/*
 * Filling holes in a log, so that replay finds an unbroken run again.
 *
 * A damaged header takes the names of what its record held with it, and replay
 * ends before its seq.  In its place go placeholders: records of the missing seqs
 * that say nothing about any block.  Replay goes on behind them; what the damaged
 * record held is gone, and nobody can tell which blocks that were.
 *
 * Two kinds of places:
 *  - a hole in a segment, with records behind it, is filled to its last slot:
 *    one-slot RANGE records, then one DATA record over the rest
 *  - a seq missing elsewhere (the end of a segment, or all of it) goes behind
 *    the record before it, or to the start of an empty segment that follows
 *
 * Only seqs up to the highest durable one are filled in: behind that the log
 * may end anywhere, and what survives behind a gap there must not come back.
 *
 * A placeholder is of the life its seq belongs to, and shares no segment with another
 * life's records: of one segment only the latest life's exist (rule R7 of replay.c),
 * so it would not exist, or end the existence of good ones.
 *
 * Written from low slots to high ones, each durable before the next: after a
 * crash in between the hole is smaller and the next lc-check --repair goes on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "util.h"

/* More than that is no damage to mend but a log that is gone. */
#define MAX_MISSING	1000

struct hole {
	u64 segment;
	u32 first, slots;
	u64 from, to;		/* seqs that may go in: from < seq < to */
};

struct life {
	u64 epoch;
	u64 first_seq;
};

/* The log's records that exist by the replay rules, sorted by seq. */
struct alive {
	struct check *c;
	bool *exists;		/* by their index in the scan */
	const struct lc_record_info **record;
	size_t nr;
	struct life *life;
	size_t nr_lives;
	size_t nr_told;		/* of them by the superblock, which knows best */
};

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

/*
 * A record of a seq exists only in the last life that began at or below it, so
 * that is also the one a placeholder must belong to.
 */
static struct life life_of(const struct alive *a, u64 seq)
{
	struct life best = { 0, 1 };
	size_t i;

	for (i = 0; i < a->nr_lives; i++) {
		if (a->life[i].first_seq <= seq && a->life[i].epoch >= best.epoch)
			best = a->life[i];
	}
	return best;
}

static bool lives(const struct alive *a, const struct lc_record_info *r)
{
	return a->exists[r - a->c->scan.found];
}

/* Index of the first record of a segment, or of what follows if it has none. */
static size_t first_of_segment(const struct scan *scan, u64 segment)
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
	first = &scan->found[first_of_segment(scan, scan->found[i].segment)];
	life = life_of(a, first->seq);
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
		struct life life = life_of(a, r->seq);

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

static void find_alive(struct check *c, struct alive *a)
{
	size_t i;

	memset(a, 0, sizeof(*a));
	a->c = c;
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
		if (lives(a, &c->scan.found[i]))
			a->record[a->nr++] = &c->scan.found[i];
	}
	qsort(a->record, a->nr, sizeof(*a->record), compare_alive);
}

static void free_alive(struct alive *a)
{
	free(a->record);
	free(a->exists);
	free(a->life);
}

/* Index of the first record at or above @seq. */
static size_t at_or_above(const struct alive *a, u64 seq)
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

static bool seq_exists(const struct alive *a, u64 seq)
{
	size_t i = at_or_above(a, seq);

	return i < a->nr && a->record[i]->seq == seq;
}

/* Write a placeholder of @slots slots, its header included. */
static int write_placeholder(const struct alive *a, u64 segment, u32 slot, u32 slots, u64 seq)
{
	struct check *c = a->c;
	struct life life = life_of(a, seq);
	struct lc_record_info info = {
		.segment = segment,
		.seq = seq,
		.epoch = life.epoch,
		.epoch_first_seq = life.first_seq,
		.tail_seq = c->sb.tail_seq,
		.type = slots == 1 ? LC_RECORD_RANGE : LC_RECORD_DATA,
		.nr_entries = slots == 1 ? 1 : slots - 1,
		.nr_slots = slots - 1,
		.first_slot = slot,
	};
	u64 at = lc_format_slot_address(&c->sb.geo, lc_format_position(&c->sb.geo, segment), slot);
	struct lc_record_header raw;

	memset(&raw, 0, sizeof(raw));	/* all entries are LC_ENTRY_NONE */
	lc_record_seal(&raw, &c->sb, &info);
	check_say(c, "REPAIR: record %llu, which cannot be read, becomes an empty one "
		  "(segment %llu, slot %u, %u slots)", seq, segment, slot, slots);
	return repair_write(c, c->ssd, at, &raw);
}

/*
 * The missing seqs a hole takes, at most @max: those from the tail on all of
 * them, or else one below the tail, which replay ignores.
 */
static size_t missing_seqs(const struct check *c, const struct hole *hole, u64 *seqs, size_t max)
{
	u64 seq = hole->from + 1 > c->sb.tail_seq ? hole->from + 1 : c->sb.tail_seq;
	size_t nr = 0;

	for (; seq < hole->to && nr < max; seq++)
		seqs[nr++] = seq;
	if (!nr && hole->to - hole->from > 1 && max)
		seqs[nr++] = hole->to - 1;
	return nr;
}

static int fill_hole(const struct alive *a, const struct hole *hole)
{
	u32 most = 1 + LC_RECORD_ENTRIES, slot = hole->first, left = hole->slots, slots;
	u64 *seqs = xcalloc(hole->slots + 1, sizeof(*seqs));
	size_t nr = missing_seqs(a->c, hole, seqs, hole->slots + 1), i;
	int ret = 0;

	/* A hole damaged records left always fits; anything else was not made by damage. */
	if (!nr || nr > left || left > nr * most) {
		complain(a->c->ssd->path,
			 "the hole of %u slots in segment %llu cannot be filled with "
			 "%zu records; nothing was changed there",
			 left, hole->segment, nr);
		free(seqs);
		return 0;
	}
	for (i = 0; i < nr && !ret; i++) {
		/* As few as the others, at their largest, allow; the last one takes the rest. */
		slots = left > (nr - i - 1) * most + 1 ? left - (nr - i - 1) * most : 1;
		ret = write_placeholder(a, hole->segment, slot, slots, seqs[i]);
		slot += slots;
		left -= slots;
	}
	free(seqs);
	return ret;
}

/* Is a record that replay needs at index @i or behind it in the same segment? */
static bool needed_behind(const struct alive *a, size_t i)
{
	const struct scan *scan = &a->c->scan;
	u64 segment = scan->found[i].segment;

	for (; i < scan->nr && scan->found[i].segment == segment; i++) {
		const struct lc_record_info *r = &scan->found[i];

		if (lives(a, r) && r->seq >= a->c->sb.tail_seq &&
		    r->seq <= scan->run.durable_seq + 1)
			return true;
	}
	return false;
}

/* Slots between two records of a segment, or before its first, for every segment. */
static int fill_holes(const struct alive *a)
{
	const struct scan *scan = &a->c->scan;
	int ret = 0;
	size_t i;

	for (i = 0; i < scan->nr && !ret; i++) {
		const struct lc_record_info *r = &scan->found[i], *p = r - 1;
		struct hole hole = { .segment = r->segment, .to = r->seq };
		size_t at;

		if (i && p->segment == r->segment)
			hole.first = p->first_slot + LC_HEADER_SLOTS + p->nr_slots;
		hole.slots = r->first_slot - hole.first;
		if (!hole.slots || !lives(a, r) || !needed_behind(a, i))
			continue;
		at = at_or_above(a, r->seq);
		hole.from = at ? a->record[at - 1]->seq : 0;
		/* What is below the first seq is of another life. */
		if (hole.from < r->epoch_first_seq - 1)
			hole.from = r->epoch_first_seq - 1;
		ret = fill_hole(a, &hole);
	}
	return ret;
}

/* Where the records of a segment that follow each other from slot 0 on end. */
static u32 chain_end(const struct scan *scan, u64 segment)
{
	size_t i = first_of_segment(scan, segment);
	u32 end = 0;

	for (; i < scan->nr && scan->found[i].segment == segment; i++) {
		const struct lc_record_info *r = &scan->found[i];

		if (r->first_slot == end)
			end = r->first_slot + LC_HEADER_SLOTS + r->nr_slots;
	}
	return end;
}

/* Can a record of @epoch exist in a segment, and whatever exists there and behind go on to? (R7) */
static bool may_hold(const struct alive *a, u64 segment, u64 epoch)
{
	const struct scan *scan = &a->c->scan;
	size_t i;

	for (i = 0; i < scan->nr; i++) {
		const struct lc_record_info *r = &scan->found[i];

		if (r->segment <= segment && r->epoch > epoch)
			return false;
		if (r->segment >= segment && r->epoch < epoch && lives(a, r))
			return false;
	}
	return true;
}

/* Place for a record of @epoch between two neighbours, either of which may be NULL. */
static bool find_room(const struct alive *a, u64 epoch, const struct lc_record_info *before,
		      const struct lc_record_info *behind, u64 *segment, u32 *slot)
{
	const struct check *c = a->c;
	u64 from = c->sb.tail_segment, end = from + c->sb.geo.nr_segments, to;

	if (before && before->segment > from)
		from = before->segment;
	to = behind && behind->segment > from ? behind->segment : from + c->sb.lane_limit;
	/* The segment behind the last one of the ring is the tail's. */
	to = to < end ? to : end;
	for (*segment = from; *segment < to; ++*segment) {
		*slot = chain_end(&c->scan, *segment);
		if (*slot < c->sb.geo.seg_slots && may_hold(a, *segment, epoch))
			return true;
	}
	return false;
}

static void scan_again(struct check *c, struct alive *a)
{
	free_alive(a);
	scan_free(&c->scan);
	scan_log(&c->scan, c->ssd, &c->sb, SCAN_RING);
	scan_select(&c->scan, &c->sb);
	find_alive(c, a);
}

/* The first seq still missing up to the durable one; 0 if there is none. */
static u64 first_missing(const struct alive *a)
{
	u64 seq = a->c->sb.tail_seq;
	size_t i;

	for (i = at_or_above(a, seq); i < a->nr && a->record[i]->seq <= seq; i++) {
		if (a->record[i]->seq == seq)
			seq++;
	}
	return seq <= a->c->scan.run.durable_seq ? seq : 0;
}

/* Seqs that are missing, but not from a hole with needed records behind it. */
static int fill_rest(struct alive *a)
{
	struct check *c = a->c;
	u64 seq, segment;
	int ret = 0;
	u32 slot;

	while (!ret && (seq = first_missing(a))) {
		size_t at = at_or_above(a, seq);

		if (!find_room(a, life_of(a, seq).epoch, at ? a->record[at - 1] : NULL,
			       at < a->nr ? a->record[at] : NULL, &segment, &slot)) {
			complain(c->ssd->path, "no room for a record in place of the missing %llu; "
				 "the log stays broken", seq);
			return 0;
		}
		ret = write_placeholder(a, segment, slot, 1, seq);
		/* The next one goes behind it. */
		scan_again(c, a);
		if (!ret && seq_exists(a, seq))
			continue;
		complain(c->ssd->path, "record %llu was written but cannot be read back", seq);
		return ret;
	}
	return ret;
}

static u64 count_missing(const struct alive *a)
{
	u64 last = a->c->scan.run.durable_seq, tail = a->c->sb.tail_seq, found = 0, before = 0;
	size_t i;

	for (i = at_or_above(a, tail); i < a->nr && a->record[i]->seq <= last; i++) {
		found += a->record[i]->seq != before;
		before = a->record[i]->seq;
	}
	return last >= tail ? last - tail + 1 - found : 0;
}

/**
 * repair_run() - make the run unbroken up to the highest durable seq
 */
int repair_run(struct check *c)
{
	struct alive a;
	u64 missing;
	int ret;

	find_alive(c, &a);
	missing = count_missing(&a);
	check_say(c,
		  "Records that cannot be read: %llu, of up to %d blocks each.  WHICH blocks they "
		  "held is not known:\nthose read older data now.  Check the file system.",
		  missing, LC_RECORD_ENTRIES);
	if (missing > MAX_MISSING) {
		complain(c->ssd->path, "too many records are missing to repair the log");
		free_alive(&a);
		return 0;
	}
	ret = fill_holes(&a);
	if (!ret) {
		scan_again(c, &a);
		ret = fill_rest(&a);
	}
	free_alive(&a);
	return ret;
}
