// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random lives of a log, each ended by a power cut, against lc_replay_select().
 *
 * The model writes records into the segments of a ring, through several lanes,
 * flushes now and then, moves the tail, rewrites failed records elsewhere and
 * names what it skips, all by the rules of docs/design.rst.  A power cut leaves
 * any subset of the unflushed records: whole, without data, without header, or
 * not at all.  What replay finds must be
 *
 *   - everything that was durable, and
 *   - a prefix of what this life and, before it, the surviving part of the
 *     lives before wrote: no dead record ever comes back.
 *
 * And it must find the boundaries that the lanes have left in it.
 *
 * With rot, one durable record vanishes besides.  Then replay may only succeed
 * if nothing that survived tells of it.
 *
 *   replay_test [rounds [seed]]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log_of_facts.h"

#define NR_SEGMENTS	24
#define SEG_SLOTS	16
#define LANES		3
#define MAX_RECORDS	4096
#define CRASHES		7

struct rec {
	u64 seq, epoch, first, durable, segment;
	u32 slot, slots;
	bool unflushed, data_bad, rewritten;
};

struct lane {
	bool open;
	u64 segment;
	u32 slot;
};

static struct rec recs[MAX_RECORDS];
static int nr_recs;
static int media[NR_SEGMENTS][SEG_SLOTS];	/* record whose header is there, or -1 */
static int owner[NR_SEGMENTS][SEG_SLOTS];	/* record that was last written there, or -1 */
static int history[MAX_RECORDS];		/* by seq: the record that counts */
static u64 last_seq, acked;
static u64 next_segment;
static struct lane lanes[LANES];
static struct lc_sb sb;
static bool lives_told;		/* the superblock tells of earlier lives */
static u64 seed, state;

static u32 rnd(u32 below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(state >> 33) % below;
}

void die(const char *what)
{
	fprintf(stderr, "replay_test: %s (seed %llu)\n", what, seed);
	exit(1);
}

static void start_round(void)
{
	memset(&sb, 0, sizeof(sb));
	memset(media, -1, sizeof(media));
	memset(owner, -1, sizeof(owner));
	memset(lanes, 0, sizeof(lanes));
	sb.geo.nr_segments = NR_SEGMENTS;
	sb.geo.seg_slots = SEG_SLOTS;
	sb.geo.nr_slots = NR_SEGMENTS * SEG_SLOTS;
	sb.lane_limit = LANES;
	sb.epoch_first_seq = 1;
	sb.tail_seq = 1;
	sb.tail_segment = 1;
	lives_told = seed % 2;
	next_segment = 1;
	nr_recs = 0;
	last_seq = 0;
	acked = 0;
}

/* The lowest segment that holds a record still needed, or may get one: open lanes count. */
static u64 lowest_segment(u64 tail)
{
	u64 lowest = next_segment, seq;
	int i;

	for (i = 0; i < LANES; i++) {
		if (lanes[i].open && lanes[i].segment < lowest)
			lowest = lanes[i].segment;
	}
	for (seq = tail; seq <= last_seq; seq++) {
		if (recs[history[seq]].segment < lowest)
			lowest = recs[history[seq]].segment;
	}
	return lowest;
}

static void write_superblock(u64 tail)
{
	u32 i, n = 0;

	sb.tail_seq = tail;
	sb.tail_segment = lowest_segment(tail);
	for (i = 0; i < sb.nr_skips; i++) {
		if (sb.skips[i].segment + sb.skips[i].count > sb.tail_segment)
			sb.skips[n++] = sb.skips[i];
	}
	sb.nr_skips = n;
}

static void flush(void)
{
	int i;

	for (i = 0; i < nr_recs; i++)
		recs[i].unflushed = false;
	acked = last_seq;
}

static void close_lanes(void)
{
	memset(lanes, 0, sizeof(lanes));
}

/* A lane's open segment far behind the head is closed, so that it does not pin the tail. */
static void move_tail(void)
{
	int i;

	for (i = 0; i < LANES; i++) {
		if (lanes[i].open && lanes[i].segment + LANES < next_segment)
			lanes[i].open = false;
	}
	if (acked >= sb.tail_seq)
		write_superblock(sb.tail_seq + rnd((u32)(acked - sb.tail_seq) + 2));
}

static void skip_segments(u64 count)
{
	if (sb.nr_skips == LC_SB_SKIPS)
		return;
	/* Named in a durable superblock before any flush covers what is behind. */
	sb.skips[sb.nr_skips].segment = next_segment;
	sb.skips[sb.nr_skips++].count = count;
	next_segment += count;
}

static bool open_segment(struct lane *lane)
{
	if (next_segment + 1 >= sb.tail_segment + NR_SEGMENTS)
		return false;
	lane->open = true;
	lane->segment = next_segment++;
	lane->slot = 0;
	return true;
}

static void place(int id, struct lane *lane)
{
	struct rec *r = &recs[id];

	r->segment = lane->segment;
	r->slot = lane->slot;
	lane->slot += r->slots;
}

static bool fits(const struct lane *lane, u32 slots)
{
	return lane->open && lane->slot + slots <= SEG_SLOTS;
}

static void append(void)
{
	struct lane *lane = &lanes[rnd(LANES)];
	u32 slots = 1 + rnd(5);
	struct rec *r = &recs[nr_recs];

	if (nr_recs >= MAX_RECORDS - 64)
		return;
	if (!fits(lane, slots) && !open_segment(lane))
		return;
	memset(r, 0, sizeof(*r));
	r->seq = ++last_seq;
	r->epoch = sb.epoch;
	r->first = sb.epoch_first_seq;
	r->durable = acked;
	r->slots = slots;
	r->unflushed = true;
	place(nr_recs, lane);
	history[r->seq] = nr_recs++;
}

/*
 * The unflushed records of one lane from a random one on failed: all of them go
 * elsewhere under their seqs (L7).  The old ones may be on the media or not.
 */
static void rewrite(void)
{
	struct lane *lane = &lanes[rnd(LANES)];
	u64 segment = lane->segment;
	int i, n = nr_recs, first = -1;
	bool emptied = true;

	if (!lane->open || next_segment + 4 >= sb.tail_segment + NR_SEGMENTS)
		return;
	for (i = 0; i < n; i++) {
		if (recs[i].segment != segment || recs[i].epoch != sb.epoch || recs[i].rewritten)
			continue;
		if (recs[i].unflushed && (first >= 0 || rnd(2)))
			first = first < 0 ? i : first;
		else if (first < 0)
			emptied = false;
	}
	lane->open = false;
	if (first < 0)
		return;
	if (emptied && sb.nr_skips < LC_SB_SKIPS) {
		sb.skips[sb.nr_skips].segment = segment;
		sb.skips[sb.nr_skips++].count = 1;
	}
	for (i = first; i < n && nr_recs < MAX_RECORDS - 64; i++) {
		if (recs[i].segment != segment || recs[i].epoch != sb.epoch || recs[i].rewritten)
			continue;
		if (!fits(lane, recs[i].slots) && !open_segment(lane))
			die("the model ran out of segments");
		recs[nr_recs] = recs[i];
		recs[i].rewritten = true;
		place(nr_recs, lane);
		history[recs[i].seq] = nr_recs++;
	}
}

/* One slot of a record reaches the media: what was there before is gone. */
static void put_slot(int id, u32 i)
{
	u64 position = recs[id].segment % NR_SEGMENTS;
	u32 slot = recs[id].slot + i;
	int before = owner[position][slot];

	if (before >= 0 && before != id && recs[before].slot != slot)
		recs[before].data_bad = true;
	owner[position][slot] = id;
	media[position][slot] = i ? -1 : id;
}

static void put_on_media(int id, bool header, bool data)
{
	u32 i;

	recs[id].data_bad = !data;
	if (header)
		put_slot(id, 0);
	for (i = 1; i < recs[id].slots; i++) {
		if (data || !rnd(3))
			put_slot(id, i);
	}
}

/* The header was being written when the power went. */
static void tear_header(int id)
{
	put_slot(id, 0);
	media[recs[id].segment % NR_SEGMENTS][recs[id].slot] = -1;
}

static void power_cut(int first_of_life)
{
	int i;

	for (i = first_of_life; i < nr_recs; i++) {
		if (!recs[i].unflushed && !recs[i].rewritten) {
			put_on_media(i, true, true);
			continue;
		}
		switch (rnd(6)) {
		case 0:
			put_on_media(i, true, false);
			break;
		case 1:
			put_on_media(i, false, rnd(2));
			if (rnd(2))
				tear_header(i);
			break;
		case 2:
			recs[i].data_bad = true;
			break;
		default:
			put_on_media(i, true, true);
		}
	}
	close_lanes();
}

static bool is_skipped(u64 segment)
{
	u32 i;

	for (i = 0; i < sb.nr_skips; i++) {
		if (segment >= sb.skips[i].segment &&
		    segment < sb.skips[i].segment + sb.skips[i].count)
			return true;
	}
	return false;
}

/* What was found. */
static struct lc_record_info found[NR_SEGMENTS * SEG_SLOTS];
static u32 nr_found;

static void scan(void)
{
	u64 segment;
	u32 stale = 0, slot, nr = 0;

	for (segment = sb.tail_segment; segment < sb.tail_segment + NR_SEGMENTS; segment++) {
		u32 before = nr;

		for (slot = 0; slot < SEG_SLOTS; ) {
			int id = media[segment % NR_SEGMENTS][slot];

			if (id < 0 || recs[id].segment != segment || recs[id].slot != slot) {
				slot++;
				continue;
			}
			found[nr++] = (struct lc_record_info) {
				.seq = recs[id].seq,
				.epoch = recs[id].epoch,
				.epoch_first_seq = recs[id].first,
				.durable_seq = recs[id].durable,
				.segment = segment,
				.first_slot = slot,
				.type = LC_RECORD_DATA,
			};
			slot += recs[id].slots;
		}
		if (nr > before)
			stale = 0;
		else if (!is_skipped(segment) && ++stale > sb.lane_limit)
			break;
	}
	nr_found = nr;
	new_log(&sb);
	for (nr = 0; nr < nr_found; nr++) {
		if (add(&found[nr], false))
			die("a header was not taken");
	}
}

static int id_of(const struct lc_replay_record *r)
{
	return media[segment_of(r) % NR_SEGMENTS][lc_replay_slot(&found_log, r)];
}

static void check_run(struct lc_replay_result *run)
{
	u64 expect = sb.tail_seq, highest = 0;
	u32 i, kept = 0;

	if (run->durable_seq > acked && run->durable_seq >= sb.tail_seq)
		die("replay believes more durable than was");
	for (i = 0; i < found_log.nr; i++) {
		if (at(i)->keep && at(i)->seq > run->durable_seq && recs[id_of(at(i))].data_bad) {
			lc_replay_truncate(&found_log, at(i)->seq - 1, run);
			break;
		}
	}
	for (i = 0; i < found_log.nr; i++) {
		const struct lc_replay_record *r = at(i);

		if (!r->keep)
			continue;
		kept++;
		if (r->seq != expect++)
			die("the run is not in order or has a gap");
		if (recs[id_of(r)].seq != r->seq || recs[history[r->seq]].epoch != epoch_of(r))
			die("a dead record came back");
		if (recs[id_of(r)].data_bad)
			die("a record without its data was kept");
		/* Of a rewritten record either place may be the one that survived. */
		history[r->seq] = id_of(r);
		if (segment_of(r) > highest)
			highest = segment_of(r);
	}
	if (run->last_seq != expect - 1 || run->nr_kept != kept)
		die("the result does not describe the run");
	if (run->last_seq < acked)
		die("a durable record is missing");
	if (kept && run->next_segment <= highest)
		die("the next life would overwrite the run");
}

/* What a boundary is, by looking at all pairs: lc_replay_find_boundaries() must find the same. */
static u64 boundary_at(const struct lc_replay_record *r)
{
	u64 boundary = ~0ULL;
	u32 i;

	for (i = 0; i < found_log.nr; i++) {
		if (at(i)->keep && at(i)->seq >= r->seq && segment_of(at(i)) < boundary)
			boundary = segment_of(at(i));
	}
	for (i = 0; i < found_log.nr; i++) {
		if (at(i)->keep && at(i)->seq < r->seq && segment_of(at(i)) >= boundary)
			return 0;
	}
	return boundary;
}

static void check_boundaries(void)
{
	u32 i;

	lc_replay_find_boundaries(&found_log);
	for (i = 0; i < found_log.nr; i++) {
		if (lc_replay_boundary_segment(&found_log, at(i)) !=
		    (at(i)->keep ? boundary_at(at(i)) : 0))
			die("the tail may not move to a boundary, or might to what is none");
	}
}

static void replay(void)
{
	struct lc_replay_result run;
	int ret;

	scan();
	ret = lc_replay_select(&sb, &found_log, &run);
	if (ret)
		die(ret == -EUCLEAN ? "a torn tail was called damage" : "replay refused");
	check_run(&run);
	check_boundaries();
	last_seq = run.last_seq;
	next_segment = run.next_segment;
	acked = last_seq;
	lc_replay_next_life(&sb, last_seq + 1);
	if (!lives_told)
		sb.nr_lives = 0;
	write_superblock(sb.tail_seq);
}

/*
 * Is this record of another life than the one that has its seq by right, and can replay
 * know?  If the superblock does not tell of earlier lives, it takes a header that does.
 */
static bool known_dead(const struct lc_replay_record *r)
{
	u32 i;

	if (lives_told)
		return r->seq > last_seq || epoch_of(r) != recs[history[r->seq]].epoch;
	if (sb.epoch > epoch_of(r) && sb.epoch_first_seq <= r->seq)
		return true;
	for (i = 0; i < nr_found; i++) {
		if (found[i].epoch > epoch_of(r) && found[i].epoch_first_seq <= r->seq)
			return true;
	}
	return false;
}

/* One needed durable record rots: success is only allowed if nobody tells of it. */
static void rot(void)
{
	struct lc_replay_result run;
	u64 seq, told = sb.epoch_first_seq - 1;
	int id, ret;
	u32 i;

	if (acked < sb.tail_seq)
		return;
	seq = sb.tail_seq + rnd((u32)(acked - sb.tail_seq) + 1);
	id = history[seq];
	media[recs[id].segment % NR_SEGMENTS][recs[id].slot] = -1;
	scan();
	for (i = 0; i < nr_found; i++) {
		if (found[i].epoch == sb.epoch && found[i].durable_seq > told)
			told = found[i].durable_seq;
	}
	ret = lc_replay_select(&sb, &found_log, &run);
	for (i = 0; i < found_log.nr; i++) {
		if (at(i)->keep && known_dead(at(i)))
			die("a dead record filled the place of a rotten one");
	}
	if (told >= seq && ret != -EUCLEAN && run.last_seq < seq)
		die("rot below the durable seq went unnoticed");
	if (told < seq && run.last_seq >= seq && !recs[id].rewritten &&
	    recs[history[seq]].seq != seq)
		die("a record that rotted is in the run");
}

static void live(void)
{
	int first = nr_recs, steps = rnd(60), i;

	for (i = 0; i < steps; i++) {
		switch (rnd(12)) {
		case 0:
		case 1:
			flush();
			break;
		case 2:
			move_tail();
			break;
		case 3:
			rewrite();
			break;
		case 4:
			if (!rnd(4) && next_segment + 10 < sb.tail_segment + NR_SEGMENTS)
				skip_segments(1 + rnd(6));
			break;
		default:
			append();
		}
	}
	power_cut(first);
}

/* --- logs made by hand ------------------------------------------------------ */

static void stale_superblock(void)
{
	struct lc_record_info r = { .seq = 5, .epoch = 3, .epoch_first_seq = 5, .segment = 1 };
	struct lc_replay_result run;

	start_round();
	sb.epoch = 2;
	if (select_of(&sb, &r, 1, &run) != -ESTALE)
		die("a record of a later life than the superblock was ignored");
}

/* A copy of record 3 that an earlier replay did not see, in a segment used again since. */
static void leftover(void)
{
	const struct lc_record_info r[] = {
		{ .seq = 3, .epoch = 1, .epoch_first_seq = 1, .segment = 2 },
		{ .seq = 4, .epoch = 2, .epoch_first_seq = 4, .segment = 6 },
		{ .seq = 3, .epoch = 1, .epoch_first_seq = 1, .segment = 6, .first_slot = 5 },
	};
	struct lc_replay_result run;
	u32 i;

	start_round();
	sb.epoch = 2;
	sb.epoch_first_seq = 4;
	sb.tail_seq = 3;
	if (select_of(&sb, r, 3, &run) || run.last_seq != 4 || run.nr_kept != 2)
		die("a run of two records was not found");
	for (i = 0; i < 3; i++) {
		if (at(i)->keep && lc_replay_slot(&found_log, at(i)))
			die("a leftover of an earlier life won");
	}
}

/* Headers that contradict each other: the same run, whatever order they are found in. */
static void any_order(void)
{
	const struct lc_record_info all[] = {
		{ .seq = 3, .epoch = 1, .epoch_first_seq = 1, .segment = 1, .first_slot = 5 },
		{ .seq = 4, .epoch = 1, .epoch_first_seq = 3, .segment = 2 },
		{ .seq = 3, .epoch = 1, .epoch_first_seq = 1, .segment = 1, .first_slot = 2 },
	};
	struct lc_record_info r[3];
	struct lc_replay_result run;
	u32 i, first;

	for (first = 0; first < 3; first++) {
		start_round();
		sb.epoch = 2;
		sb.epoch_first_seq = 5;
		sb.tail_seq = 3;
		for (i = 0; i < 3; i++)
			r[i] = all[(first + i) % 3];
		if (select_of(&sb, r, 3, &run) != -EUCLEAN || run.last_seq != 3)
			die("of two first seqs of one life the lower one was not believed");
		for (i = 0; i < 3; i++) {
			if (at(i)->keep != (lc_replay_slot(&found_log, at(i)) == 2))
				die("of two copies in a segment the lower slot was not taken");
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 20000, i;
	int crash;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (u64)time(NULL);
	printf("replay_test: %lu rounds from seed %llu\n", rounds, seed);
	stale_superblock();
	leftover();
	any_order();
	for (i = 0; i < rounds; i++, seed++) {
		state = seed * 0x9e3779b97f4a7c15ULL + 1;
		start_round();
		for (crash = 0; crash < CRASHES; crash++) {
			replay();
			live();
		}
		if (seed & 1)
			rot();
	}
	printf("replay_test: ok\n");
	return 0;
}
