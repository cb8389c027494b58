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

#include "memory.h"
#include "repair-lanes.h"
#include "repair-run.h"
#include "repair.h"
#include "util.h"

/* More than that is no damage to mend but a log that is gone. */
#define MAX_MISSING	1000

/* Write a placeholder of @slots slots, its header included. */
static int write_placeholder(const struct existing *e, u64 segment, u32 slot, u32 slots, u64 seq)
{
	struct check *c = e->c;
	struct life life = exists_life_of(e, seq);
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
	u64 at = lc_format_log_address(&c->sb.geo, segment, slot);
	u64 lowest = exists_lowest_segment(e, seq);
	struct lc_record_header raw;

	if (e->lanes)
		info.boundary = lowest < segment ? lowest : segment;
	memset(&raw, 0, sizeof(raw));	/* all entries are LC_ENTRY_NONE */
	lc_record_seal(&raw, &c->sb, &info);
	repair_say(c, "record %llu, which cannot be read, becomes an empty one "
		  "(segment %llu, slot %u, %u slots)", seq, segment, slot, slots);
	return repair_write(c, c->ssd, at, &raw);
}

/*
 * In a log of one lane a hole takes all missing seqs between its neighbours, from the tail
 * on, or else one below the tail, which replay ignores.
 */
static void take_missing(const struct check *c, struct hole *hole)
{
	u64 seq = hole->from + 1 > c->sb.tail_seq ? hole->from + 1 : c->sb.tail_seq;

	hole->seqs = xcalloc(hole->slots + 1, sizeof(*hole->seqs));
	for (; seq < hole->to && hole->nr <= hole->slots; seq++)
		hole->seqs[hole->nr++] = seq;
	if (!hole->nr && hole->to - hole->from > 1)
		hole->seqs[hole->nr++] = hole->to - 1;
}

static int fill_hole(const struct existing *e, const struct hole *hole)
{
	u32 most = PLACEHOLDER_SLOTS, slot = hole->first, left = hole->slots, slots;
	size_t nr = hole->nr, i;
	int ret = 0;

	/* A hole damaged records left always fits; anything else was not made by damage. */
	if (!nr || nr > left || left > nr * most) {
		complain(e->c->ssd->path,
			 "the hole of %u slots in segment %llu cannot be filled with "
			 "%zu records; nothing was changed there",
			 left, hole->segment, nr);
		return 0;
	}
	for (i = 0; i < nr && !ret; i++) {
		/* As few as the others, at their largest, allow; the last one takes the rest. */
		slots = left > (nr - i - 1) * most + 1 ? left - (nr - i - 1) * most : 1;
		ret = write_placeholder(e, hole->segment, slot, slots, hole->seqs[i]);
		slot += slots;
		left -= slots;
	}
	return ret;
}

/* Is a record that replay needs at index @i or behind it in the same segment? */
static bool needed_behind(const struct existing *e, size_t i)
{
	const struct scan *scan = &e->c->scan;
	u64 segment = scan->found[i].segment;

	for (; i < scan->nr && scan->found[i].segment == segment; i++) {
		const struct lc_record_info *r = &scan->found[i];

		if (exists_record(e, r) && r->seq >= e->c->sb.tail_seq &&
		    r->seq <= e->durable + 1)
			return true;
	}
	return false;
}

/*
 * Slots before a record of a segment that no other one names, from @first on: the hole before the
 * record at index @i, if there is one that must be filled.
 */
static bool find_hole(const struct existing *e, size_t i, u32 first, struct hole *hole)
{
	const struct lc_record_info *r = &e->c->scan.found[i];
	size_t at;

	*hole = (struct hole){ .segment = r->segment, .to = r->seq, .first = first };
	/* It stands among the slots of one of an earlier life (L19). */
	if (first > r->first_slot)
		return false;
	hole->slots = r->first_slot - hole->first;
	if (!hole->slots || !exists_record(e, r) || !needed_behind(e, i))
		return false;
	at = exists_at_or_above(e, r->seq);
	if (e->lanes)
		hole->from = lanes_seq_before(e, i);
	else if (at)
		hole->from = e->record[at - 1]->seq;
	/* What is below the first seq is of another life. */
	if (hole->from < r->epoch_first_seq - 1)
		hole->from = r->epoch_first_seq - 1;
	return true;
}

static int fill_holes(const struct existing *e)
{
	const struct lc_record_info *r = e->c->scan.found;
	struct hole *holes = NULL, hole;
	u32 first = 0, end;		/* slots that records named so far */
	size_t nr = 0, i;
	int ret = 0;

	for (i = 0; i < e->c->scan.nr; i++) {
		bool found;

		if (!i || r[i].segment != r[i - 1].segment)
			first = 0;
		found = find_hole(e, i, first, &hole);
		end = r[i].first_slot + LC_HEADER_SLOTS + r[i].nr_slots;
		if (first < end)
			first = end;
		if (!found)
			continue;
		holes = xrealloc(holes, nr + 1, sizeof(*holes));
		holes[nr++] = hole;
	}
	if (e->lanes)
		lanes_share(e, holes, nr);
	for (i = 0; i < nr; i++) {
		if (!e->lanes)
			take_missing(e->c, &holes[i]);
		if (!ret)
			ret = fill_hole(e, &holes[i]);
		free(holes[i].seqs);
	}
	free(holes);
	return ret;
}

/* Where the records of a segment that follow each other from slot 0 on end. */
static u32 chain_end(const struct scan *scan, u64 segment)
{
	size_t i = exists_first_of_segment(scan, segment);
	u32 end = 0;

	for (; i < scan->nr && scan->found[i].segment == segment; i++) {
		const struct lc_record_info *r = &scan->found[i];

		if (r->first_slot == end)
			end = r->first_slot + LC_HEADER_SLOTS + r->nr_slots;
	}
	return end;
}

/* Can a record of @epoch exist in a segment, and whatever exists there and behind go on to? (R7) */
static bool may_hold(const struct existing *e, u64 segment, u64 epoch)
{
	const struct scan *scan = &e->c->scan;
	size_t i;

	for (i = 0; i < scan->nr; i++) {
		const struct lc_record_info *r = &scan->found[i];

		if (r->segment <= segment && r->epoch > epoch)
			return false;
		if (r->segment >= segment && r->epoch < epoch && exists_record(e, r))
			return false;
	}
	return true;
}

/* Would the seqs of a segment that exist still rise with another one at @slot? */
static bool would_rise(const struct existing *e, u64 segment, u32 slot, u64 seq)
{
	const struct scan *scan = &e->c->scan;
	size_t i = exists_first_of_segment(scan, segment);

	for (; i < scan->nr && scan->found[i].segment == segment; i++) {
		const struct lc_record_info *r = &scan->found[i];

		if (exists_record(e, r) && (r->first_slot < slot) != (r->seq < seq))
			return false;
	}
	return true;
}

/* Behind the last segment that a record may go to. */
static u64 end_of_rooms(const struct existing *e, u64 seq, u64 from)
{
	const struct check *c = e->c;
	size_t at = exists_at_or_above(e, seq);
	u64 to = from + c->sb.lane_limit, end = c->sb.tail_segment + c->sb.geo.nr_segments;

	/* With one lane what is behind it is in higher segments, with several anywhere. */
	if (!e->lanes && at < e->nr && e->record[at]->segment > from)
		to = e->record[at]->segment;
	else if (e->lanes && c->scan.nr && c->scan.found[c->scan.nr - 1].segment >= from)
		to = c->scan.found[c->scan.nr - 1].segment + c->sb.lane_limit;
	/* The segment behind the last one of the ring is the tail's. */
	return to < end ? to : end;
}

/* Place for a record of a missing seq; @tidy: where the seqs go on rising. */
static bool find_room(const struct existing *e, u64 seq, bool tidy, u64 *segment, u32 *slot)
{
	const struct check *c = e->c;
	u64 from = exists_lowest_segment(e, seq), to = end_of_rooms(e, seq, from);
	u64 epoch = exists_life_of(e, seq).epoch;

	for (*segment = from; *segment < to; ++*segment) {
		*slot = chain_end(&c->scan, *segment);
		if (*slot < c->sb.geo.seg_slots && may_hold(e, *segment, epoch) &&
		    (!tidy || would_rise(e, *segment, *slot, seq)))
			return true;
	}
	return false;
}

static void scan_again(struct check *c, struct existing *e)
{
	exists_free(e);
	scan_free(&c->scan);
	scan_log(&c->scan, c->ssd, &c->sb, SCAN_RING);
	scan_select(&c->scan, c->ssd, &c->sb);
	exists_find(e, c);
}

/* The first seq still missing up to the durable one; 0 if there is none. */
static u64 first_missing(const struct existing *e)
{
	u64 seq = e->c->sb.tail_seq;
	size_t i;

	for (i = exists_at_or_above(e, seq); i < e->nr && e->record[i]->seq <= seq; i++) {
		if (e->record[i]->seq == seq)
			seq++;
	}
	return seq <= e->durable ? seq : 0;
}

/* Seqs that are missing, but not from a hole with needed records behind it. */
static int fill_rest(struct existing *e)
{
	struct check *c = e->c;
	u64 seq, segment;
	int ret = 0;
	u32 slot;

	while (!ret && (seq = first_missing(e))) {
		if (!(e->lanes && find_room(e, seq, true, &segment, &slot)) &&
		    !find_room(e, seq, false, &segment, &slot)) {
			complain(c->ssd->path, "no room for a record in place of the missing %llu; "
				 "the log stays broken", seq);
			return 0;
		}
		ret = write_placeholder(e, segment, slot, 1, seq);
		/* The next one goes behind it. */
		scan_again(c, e);
		if (!ret && exists_seq(e, seq))
			continue;
		complain(c->ssd->path, "record %llu was written but cannot be read back", seq);
		return ret;
	}
	return ret;
}

static u64 count_missing(const struct existing *e)
{
	u64 last = e->durable, tail = e->c->sb.tail_seq, found = 0, before = 0;
	size_t i;

	for (i = exists_at_or_above(e, tail); i < e->nr && e->record[i]->seq <= last; i++) {
		found += e->record[i]->seq != before;
		before = e->record[i]->seq;
	}
	return last >= tail ? last - tail + 1 - found : 0;
}

int repair_run(struct check *c)
{
	struct existing e;
	u64 missing;
	int ret;

	exists_find(&e, c);
	missing = count_missing(&e);
	check_say(c,
		  "Records that cannot be read: %llu, of up to %d blocks each.  WHICH blocks they "
		  "held is not known:\nthose read older data now.  Check the file system.",
		  missing, LC_RECORD_ENTRIES);
	if (missing > MAX_MISSING) {
		complain(c->ssd->path, "too many records are missing to repair the log");
		exists_free(&e);
		return 0;
	}
	ret = fill_holes(&e);
	if (!ret) {
		scan_again(c, &e);
		ret = fill_rest(&e);
	}
	exists_free(&e);
	return ret;
}
