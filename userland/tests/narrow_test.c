// SPDX-License-Identifier: GPL-2.0-only
/*
 * What replay keeps of a header has fewer bits than the header (hazard L17): numbers that do not
 * fit, or that look like others if they are cut off, and logs that are as large as they can be.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

#define NR_SEGMENTS	24
#define SEG_SLOTS	16

static struct lc_sb sb;
static struct lc_replay_log found_log;

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "narrow_test: %s\n", what);
	exit(1);
}

static void *take(size_t nr, size_t size)
{
	void *memory = calloc(nr, size);

	if (!memory)
		die("no memory");
	return memory;
}

/* An empty log by the superblock, instead of the last one. */
static void new_log(void)
{
	u32 i;

	for (i = 0; i < lc_replay_chunks(&found_log); i++)
		free(found_log.chunks[i]);
	free(found_log.chunks);
	free(found_log.lives);
	free(found_log.by_epoch);
	lc_replay_init(&found_log, &sb);
	found_log.chunks = take(lc_replay_chunks(&found_log), sizeof(*found_log.chunks));
	found_log.lives = take(found_log.max_lives, sizeof(*found_log.lives));
	found_log.by_epoch = take(found_log.max_lives, sizeof(*found_log.by_epoch));
}

static int add(const struct lc_record_info *info, bool hidden)
{
	u32 nr = lc_replay_wants(&found_log);

	if (nr)
		found_log.chunks[found_log.nr / LC_REPLAY_CHUNK] =
			take(nr, sizeof(struct lc_replay_record));
	return lc_replay_add(&found_log, info, hidden);
}

static struct lc_replay_record *at(u32 i)
{
	return lc_replay_at(&found_log, i);
}

static u64 segment_of(const struct lc_replay_record *r)
{
	return lc_replay_segment(&found_log, r);
}

static u64 epoch_of(const struct lc_replay_record *r)
{
	return found_log.lives[r->life].epoch;
}

/* The run of a few headers, which all lie within the log. */
static int select_of(const struct lc_record_info *records, u32 nr, struct lc_replay_result *run)
{
	u32 i;

	new_log();
	for (i = 0; i < nr; i++) {
		if (add(&records[i], false))
			die("a header was not taken");
	}
	return lc_replay_select(&sb, &found_log, run);
}

static void start_round(void)
{
	memset(&sb, 0, sizeof(sb));
	sb.geo.nr_segments = NR_SEGMENTS;
	sb.geo.seg_slots = SEG_SLOTS;
	sb.geo.nr_slots = NR_SEGMENTS * SEG_SLOTS;
	sb.epoch_first_seq = 1;
	sb.tail_seq = 1;
	sb.tail_segment = 1;
}

#define WRAP	(1ULL << 32)

/* A life of @nr records from the tail on, one to a segment. */
static u32 short_log(struct lc_record_info *r, u64 tail, u32 nr)
{
	u32 i;

	start_round();
	sb.epoch = 9;
	sb.epoch_first_seq = 1;
	sb.tail_seq = tail;
	for (i = 0; i < nr; i++)
		r[i] = (struct lc_record_info) {
			.seq = tail + i, .epoch = 9, .epoch_first_seq = 1, .segment = 1 + i,
		};
	return nr;
}

/* What is durable is as far from the tail as a header says, at either side of it. */
static void durable_seqs(void)
{
	static const u64 tails[] = { 1, 3, WRAP - 2, WRAP, 2 * WRAP + 5, LC_NUMBERS_END / 2 };
	static const u64 ahead[] = { 3, 4, WRAP - 2, WRAP - 1, WRAP, WRAP + 1, WRAP + 2, 3 * WRAP };
	static const u64 behind[] = { 1, 2, WRAP - 5, WRAP - 1, WRAP, WRAP + 1, 2 * WRAP };
	struct lc_record_info r[5];
	struct lc_replay_result run;
	u32 i, j, nr;

	for (i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
		u64 tail = tails[i];

		for (j = 0; j < sizeof(ahead) / sizeof(*ahead); j++) {
			nr = short_log(r, tail, 4);
			r[nr] = r[3];
			r[nr].segment = 6;
			r[nr].seq = LC_NUMBERS_END - 1;
			r[nr].durable_seq = tail + ahead[j];
			if (select_of(r, 5, &run) != (ahead[j] > 3 ? -EUCLEAN : 0))
				die("a durable seq behind the end of the run was not seen");
			if (run.nr_kept != 4 || run.durable_seq < tail + 3)
				die("a durable seq far ahead changed the run");
			if (run.durable_seq != tail + (ahead[j] < WRAP - 2 ? ahead[j] : WRAP - 2))
				die("a durable seq was not told as it is");
		}
		for (j = 0; j < sizeof(behind) / sizeof(*behind) && behind[j] < tail; j++) {
			nr = short_log(r, tail, 4);
			r[3].durable_seq = tail - behind[j];
			if (select_of(r, nr, &run) || run.last_seq != tail + 3 ||
			    run.durable_seq != tail - 1)
				die("a durable seq below the tail counted");
		}
	}
}

/* A seq or an epoch is not another one, however many bits they have in common. */
static void far_seqs(void)
{
	static const u64 steps[] = { 1 << 16, 1 << 20, WRAP, 1ULL << 48 };
	struct lc_record_info r[6];
	struct lc_replay_result run;
	u32 i, k;

	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		u64 step = steps[i];

		short_log(r, 2 * step, 6);
		r[2].seq += step;
		if (select_of(r, 6, &run) || run.last_seq != 2 * step + 1)
			die("a seq from far ahead filled a gap");
		short_log(r, 2 * step, 6);
		r[2].seq -= step;
		if (select_of(r, 6, &run) || run.last_seq != 2 * step + 1)
			die("a seq from far behind filled a gap");
		/* R1: of two lives the later one begins far above. */
		short_log(r, step + 2, 6);
		sb.epoch = 9 + step;
		sb.epoch_first_seq = step + 8;
		if (select_of(r, 6, &run) || run.last_seq != step + 7)
			die("a later life that begins above them killed records");
		sb.epoch_first_seq = step + 5;
		if (select_of(r, 6, &run) || run.last_seq != step + 4)
			die("a later life that begins below them did not kill records");
		/* R6 */
		short_log(r, 2, 6);
		r[5].epoch += step;
		if (select_of(r, 6, &run) != -ESTALE)
			die("a much later life was taken for this one");
		/* R7: record 4 was left behind a much later life, too. */
		short_log(r, 2, 5);
		sb.epoch = 9 + step;
		sb.epoch_first_seq = 5;
		r[3].epoch = sb.epoch;
		r[3].epoch_first_seq = 5;
		r[4].seq = 4;
		if (select_of(r, 5, &run) || run.last_seq != 5 || run.nr_kept != 4)
			die("a run up to a much later life was not found");
		for (k = 0; k < 5; k++) {
			if (at(k)->keep && segment_of(at(k)) == 5)
				die("what is left behind a much later life exists");
		}
	}
}

/* The boundary that a header tells is its own or a lower one, and never below the tail. */
static void told_boundaries(void)
{
	static const u32 back[] = {
		1, 2, 1023, 1024, 2048, 16381, 16382, 16383, 16384, 16385, 32766, 32767, 32768, 50000,
	};
	struct lc_record_info r = { .seq = 1, .epoch = 9, .epoch_first_seq = 1, .segment = 60001 };
	u32 i;

	for (i = 0; i < sizeof(back) / sizeof(*back); i++) {
		start_round();
		sb.tail_segment = 900;
		sb.geo.nr_segments = 60000;
		sb.geo.nr_slots = 60000 * SEG_SLOTS;
		r.boundary = r.segment - back[i];
		new_log();
		if (add(&r, false) || lc_replay_told_boundary(&found_log, at(0)) !=
				      (back[i] < LC_REPLAY_FAR_BACK ? r.boundary : 900))
			die("a boundary far back was not told as it is, or as the tail");
		sb.tail_segment = r.boundary + 1;
		new_log();
		if (add(&r, false) || lc_replay_told_boundary(&found_log, at(0)) != sb.tail_segment)
			die("a boundary below the tail was told as another one");
		r.boundary = 0;
		new_log();
		if (add(&r, false) || lc_replay_told_boundary(&found_log, at(0)) != r.segment)
			die("a record of its own boundary was told as another one's");
	}
}

/* Only places of the ring from the tail's segment on; the last slot of the largest SSD is one. */
static void places(void)
{
	struct lc_record_info r = { .seq = 1, .epoch = 9, .epoch_first_seq = 1 };
	static const u64 refused[] = { 999, 0, 1000 + NR_SEGMENTS, 1000 + WRAP, 999 - WRAP,
				       1000 + WRAP / SEG_SLOTS, 1000 + 2 * WRAP };
	u32 i;

	start_round();
	sb.tail_segment = 1000;
	new_log();
	for (i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		r.segment = refused[i];
		if (add(&r, false) != -ERANGE)
			die("a segment that is not of this log was taken");
	}
	r.segment = 1000;
	r.first_slot = SEG_SLOTS;
	if (add(&r, false) != -ERANGE || found_log.nr)
		die("a slot behind the end of its segment was taken");
	for (i = 0; i < NR_SEGMENTS * SEG_SLOTS; i++) {
		r.segment = 1000 + i / SEG_SLOTS;
		r.first_slot = i % SEG_SLOTS;
		if (add(&r, false))
			die("not each slot of the ring can be a header");
	}
	if (add(&r, false) != -ERANGE || found_log.nr != NR_SEGMENTS * SEG_SLOTS)
		die("more headers than slots were taken");
	sb.tail_segment = LC_NUMBERS_END - 3;
	sb.geo.seg_slots = 1024;
	sb.geo.nr_segments = LC_MAX_SLOTS / 1024;
	sb.geo.nr_slots = sb.geo.nr_segments * 1024;
	new_log();
	r.segment = sb.tail_segment + sb.geo.nr_segments - 1;
	r.first_slot = 1023;
	if (add(&r, false) || lc_replay_segment(&found_log, at(0)) != r.segment ||
	    lc_replay_slot(&found_log, at(0)) != r.first_slot)
		die("the last slot of the largest SSD was not told as it is");
}

/* What was read ahead leaves no trace, nor of a life; a header that is there is known. */
static void forgotten(void)
{
	struct lc_record_info r[6];
	struct lc_replay_result run;
	u32 i;

	short_log(r, 5, 6);
	sb.epoch = 11;
	sb.epoch_first_seq = 11;
	r[4].epoch = 10;		/* in segment 5: would end life 9 at seq 7 */
	r[4].epoch_first_seq = 7;
	r[4].seq = 7;
	r[5].epoch = 12;		/* would be a later life than the superblock's */
	new_log();
	for (i = 0; i < 6; i++)
		add(&r[i], false);
	lc_replay_forget(&found_log, 4);
	if (lc_replay_latest(&found_log) != 9)
		die("a life is known of what was forgotten");
	if (lc_replay_select(&sb, &found_log, &run) != -EUCLEAN || run.last_seq != 8)
		die("what was forgotten killed records");
	for (i = 0; i < 6; i++) {
		if (lc_replay_has(&found_log, &r[i]) != (i < 4))
			die("a header is not known, or one that was forgotten is");
	}
	r[2].first_slot = 1;
	if (lc_replay_has(&found_log, &r[2]))
		die("a header was taken for that of another slot");
	r[4].segment = 4;		/* found after all, where nothing was forgotten */
	r[4].first_slot = 3;
	if (add(&r[4], true) || lc_replay_select(&sb, &found_log, &run) != -EUCLEAN ||
	    run.last_seq != 6 || lc_replay_latest(&found_log) != 10)
		die("a life that was forgotten did not count when it was found again");
}

/* As many lives as there may be, found from the latest to the first; then one more. */
static void many_lives(void)
{
	struct lc_record_info r = { .epoch = 0 };
	struct lc_replay_result run;
	u32 i;

	start_round();
	sb.geo.nr_segments = 1 << 13;
	sb.geo.nr_slots = sb.geo.nr_segments * SEG_SLOTS;
	sb.epoch = WRAP + LC_REPLAY_LIVES;
	sb.epoch_first_seq = 1 + LC_REPLAY_LIVES;
	new_log();
	for (i = LC_REPLAY_LIVES; i--; ) {
		r.epoch = WRAP + i;
		r.seq = 1 + i;
		r.epoch_first_seq = 1 + i;
		r.segment = 1 + i / SEG_SLOTS;
		r.first_slot = i % SEG_SLOTS;
		if (add(&r, false))
			die("a life was too many");
	}
	r.segment = sb.geo.nr_segments;
	if (add(&r, false))
		die("another record of a life that is known was too many");
	/* Each life of a segment but the last one is a leftover there (R7). */
	if (lc_replay_select(&sb, &found_log, &run) != -EUCLEAN || run.nr_kept)
		die("of many lives in a segment not the last one counts");
	for (i = 0; i < found_log.nr; i++) {
		if (epoch_of(at(i)) != WRAP + at(i)->seq - 1)
			die("a record was taken for one of another life");
	}
	r.epoch = 7;
	if (add(&r, false) != -E2BIG)
		die("more lives than can be told apart were taken");
}

/* The order of any log is that of its seqs; what was in order needs no move. */
static void orders(void)
{
	enum { SEGMENTS = 512, SLOTS = 64, WINDOW = 32 };
	struct lc_record_info r = { .epoch = 1, .epoch_first_seq = 1 };
	struct lc_replay_result run;
	u32 how, i;

	for (how = 0; how < 6; how++) {
		start_round();
		sb.epoch = 1;
		sb.geo.seg_slots = SLOTS;
		sb.geo.nr_segments = SEGMENTS;
		sb.geo.nr_slots = SEGMENTS * SLOTS;
		new_log();
		for (i = 0; i < SEGMENTS * SLOTS; i++) {
			u32 lane = how == 2 ? 4 : how == 3 ? 7 : 1;
			u32 round = 16 * lane * SLOTS, in = i % round;
			u32 n = how == 4 ? SEGMENTS * SLOTS - 1 - i : i;

			if (how == 1)	/* as chains are followed, 32 at a time */
				n = i / (WINDOW * SLOTS) * WINDOW * SLOTS +
				    i % WINDOW * SLOTS + i / WINDOW % SLOTS;
			r.seq = 1 + n;
			if (lane > 1 && i / round * round + round <= SEGMENTS * SLOTS)
				r.seq = 1 + i / round * round + in % (16 * SLOTS) * lane +
					in / (16 * SLOTS);
			if (how == 5)
				r.seq = 1 + (u64)i * 20011 % (SEGMENTS * SLOTS);
			r.segment = 1 + n / SLOTS;
			r.first_slot = n % SLOTS;
			if (add(&r, false))
				die("a header was not taken");
		}
		if (lc_replay_select(&sb, &found_log, &run) || run.nr_kept != SEGMENTS * SLOTS)
			die("not all records of a log were found");
		for (i = 0; i < SEGMENTS * SLOTS; i++) {
			if (at(i)->seq != 1 + i)
				die("records are not in the order of their seqs");
		}
		if (lc_replay_select(&sb, &found_log, &run) || run.nr_kept != SEGMENTS * SLOTS)
			die("a second look found another run");
	}
}

int main(void)
{
	durable_seqs();
	far_seqs();
	told_boundaries();
	places();
	forgotten();
	many_lives();
	orders();
	printf("narrow_test: ok\n");
	return 0;
}
