// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which records exist after a crash: logs made by hand, each with the run that
 * replay must find.  The letters are those of the hazards and of replay.c.
 */
#include <kunit/test.h>
#include <linux/sort.h>

#include "../format/replay.h"
#include "example.h"

#define MAX_RECORDS	64

/* A log under construction: its headers, and what replay makes of them. */
struct log {
	struct kunit *test;
	struct lc_sb *sb;
	struct lc_record_info records[MAX_RECORDS];
	bool hidden[MAX_RECORDS];
	struct lc_replay_log found;
	struct lc_replay_result result;
	size_t nr;
	u64 epoch, first_seq, durable;	/* of the records added next */
};

static struct log *log_create(struct kunit *test, u64 epoch, u64 epoch_first_seq, u64 tail_seq,
			      u64 tail_segment)
{
	struct log *log = kunit_kzalloc(test, sizeof(*log), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, log);
	log->test = test;
	log->sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	log->sb->epoch = epoch;
	log->sb->epoch_first_seq = epoch_first_seq;
	log->sb->tail_seq = tail_seq;
	log->sb->tail_segment = tail_segment;
	log->epoch = epoch;
	log->first_seq = epoch_first_seq;
	return log;
}

/* Hand the headers to replay, in one chunk. */
static void load(struct log *log)
{
	struct lc_replay_log *found = &log->found;
	struct kunit *test = log->test;
	void *chunks = found->chunks, *lives = found->lives, *by_epoch = found->by_epoch;
	u32 i;

	lc_replay_init(found, log->sb);
	if (!chunks) {
		chunks = kunit_kcalloc(test, lc_replay_chunks(found), sizeof(void *), GFP_KERNEL);
		lives = kunit_kcalloc(test, found->max_lives, sizeof(*found->lives), GFP_KERNEL);
		by_epoch = kunit_kcalloc(test, found->max_lives, sizeof(u32), GFP_KERNEL);
		KUNIT_ASSERT_TRUE(test, chunks && lives && by_epoch);
		found->chunks = chunks;
		found->chunks[0] = kunit_kcalloc(test, MAX_RECORDS, sizeof(**found->chunks),
						 GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, found->chunks[0]);
	}
	found->chunks = chunks;
	found->lives = lives;
	found->by_epoch = by_epoch;
	for (i = 0; i < log->nr; i++) {
		const struct lc_record_info *info = &log->records[i];

		/* Where no scan comes to. */
		if (info->segment >= log->sb->tail_segment)
			KUNIT_ASSERT_EQ(test, lc_replay_add(found, info, log->hidden[i]), 0);
	}
}

static int select_run(struct log *log)
{
	load(log);
	return lc_replay_select(log->sb, &log->found, &log->result);
}

/* The life whose records are added next; durable: what their headers claim. */
static void life(struct log *log, u64 epoch, u64 first_seq, u64 durable)
{
	log->epoch = epoch;
	log->first_seq = first_seq;
	log->durable = durable;
}

/* Records first..last, three to a segment from @segment on. */
static void add(struct log *log, u64 first, u64 last, u64 segment)
{
	u64 seq;

	for (seq = first; seq <= last; seq++) {
		KUNIT_ASSERT_LT(log->test, log->nr, MAX_RECORDS);
		log->records[log->nr++] = (struct lc_record_info) {
			.seq = seq, .epoch = log->epoch, .epoch_first_seq = log->first_seq,
			.durable_seq = min(log->durable, seq - 1),
			.segment = segment + (seq - first) / 3,
			.first_slot = (seq - first) % 3 * 4,
			.nr_entries = 3, .type = LC_RECORD_DATA,
		};
	}
}

static void drop(struct log *log, u64 seq)
{
	size_t i;

	for (i = 0; i < log->nr; i++) {
		if (log->records[i].seq == seq && log->records[i].epoch == log->epoch)
			log->records[i] = log->records[--log->nr];
	}
}

/* The order in which a scan finds them must not matter. */
static void shuffle(struct log *log, struct rnd_state *rnd)
{
	size_t i, other;

	for (i = log->nr; i > 1; i--) {
		other = prandom_u32_state(rnd) % i;
		swap(log->records[i - 1], log->records[other]);
		swap(log->hidden[i - 1], log->hidden[other]);
	}
}

/* Replay in several orders: the run must be tail..last, and end in @next_segment. */
static void expect(struct log *log, int ret, u64 last, u64 next_segment)
{
	struct kunit *test = log->test;
	struct rnd_state rnd;
	u32 round, i;

	prandom_seed_state(&rnd, 1);
	for (round = 0; round < 8; round++) {
		u64 seq = log->sb->tail_seq;

		KUNIT_EXPECT_EQ(test, select_run(log), ret);
		KUNIT_EXPECT_EQ(test, log->result.first_seq, log->sb->tail_seq);
		KUNIT_EXPECT_EQ(test, log->result.last_seq, last);
		KUNIT_EXPECT_EQ(test, log->result.next_segment, next_segment);
		KUNIT_EXPECT_EQ(test, log->result.nr_kept, last + 1 - log->sb->tail_seq);
		for (i = 0; i < log->found.nr; i++) {
			if (lc_replay_at(&log->found, i)->keep)
				KUNIT_EXPECT_EQ(test, lc_replay_at(&log->found, i)->seq, seq++);
		}
		KUNIT_EXPECT_EQ(test, seq, last + 1);
		shuffle(log, &rnd);
	}
}

/* The epoch of the record kept for a seq. */
static u64 kept_epoch(struct log *log, u64 seq)
{
	u32 i;

	for (i = 0; i < log->found.nr; i++) {
		const struct lc_replay_record *r = lc_replay_at(&log->found, i);

		if (r->seq == seq && r->keep)
			return log->found.lives[r->life].epoch;
	}
	return 0;
}

/* --- one life ------------------------------------------------------------ */

static void empty(struct kunit *test)
{
	struct log *log = log_create(test, 0, 0, 1, 1);

	expect(log, 0, 0, 1);
	/* The second life wrote nothing, the first had drained everything. */
	log = log_create(test, 2, 50, 50, 20);
	expect(log, 0, 49, 20);
}

/* Records of one life, some of which are missing. */
static void one_life(struct kunit *test)
{
	static const struct {
		u64 durable, last, missing[2];
		int ret;
		u64 end, next_segment;
	} lives[] = {
		{ 5, 7, { }, 0, 7, 4 },
		/* The last record never came to the disk, or only half of it did. */
		{ 4, 8, { 8 }, 0, 7, 4 },
		{ 4, 8, { 8, 7 }, 0, 6, 3 },
		/* Unflushed records after the gap are gone, whatever they hold. */
		{ 3, 9, { 5 }, 0, 4, 3 },
		{ 3, 9, { 5, 4 }, 0, 3, 2 },
		/* L4: header 3 rots; 8 says that 6 was durable. */
		{ 6, 8, { 3 }, -EUCLEAN, 2, 2 },
		/* The break just above what was durable is a torn tail, one lower is damage. */
		{ 6, 9, { 7 }, 0, 6, 3 },
		{ 6, 9, { 7, 6 }, -EUCLEAN, 5, 3 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lives); i++) {
		struct log *log = log_create(test, 1, 1, 1, 1);

		log->durable = lives[i].durable;
		add(log, 1, lives[i].last, 1);
		drop(log, lives[i].missing[0]);
		drop(log, lives[i].missing[1]);
		expect(log, lives[i].ret, lives[i].end, lives[i].next_segment);
		KUNIT_EXPECT_EQ(test, log->result.durable_seq, lives[i].durable);
	}
}

/* The whole log rots: the superblock alone knows that it was there. */
static void nothing_left(struct kunit *test)
{
	struct log *log = log_create(test, 2, 50, 20, 7);

	expect(log, -EUCLEAN, 19, 7);
	KUNIT_EXPECT_EQ(test, log->result.durable_seq, 49);
}

/* Records below the tail are drained; their segments may hold newer ones. */
static void below_tail(struct kunit *test)
{
	struct log *log = log_create(test, 1, 1, 5, 2);

	log->durable = 8;
	add(log, 1, 9, 1);
	expect(log, 0, 9, 4);
	KUNIT_EXPECT_EQ(test, log->result.nr_kept, 5);
	/* Segment numbers go on from the tail's even if nothing is kept. */
	log = log_create(test, 1, 1, 10, 9);
	log->durable = 8;
	add(log, 1, 9, 1);
	expect(log, 0, 9, 9);
}

/* --- several lives -------------------------------------------------------- */

/* L1: the new life's 101 is durable, the old life's whole 102 must not follow it. */
static void l1_dead_record_follows(struct kunit *test)
{
	struct log *log = log_create(test, 2, 101, 90, 30);

	life(log, 1, 1, 99);
	add(log, 90, 100, 30);
	add(log, 102, 102, 33);
	life(log, 2, 101, 100);
	add(log, 101, 101, 34);
	expect(log, 0, 101, 35);
	KUNIT_EXPECT_EQ(test, kept_epoch(log, 101), 2);
}

/* Two lives have the seq: the later one's. */
static void duplicate_seq(struct kunit *test)
{
	struct log *log = log_create(test, 2, 101, 100, 33);

	life(log, 1, 1, 99);
	add(log, 100, 103, 33);
	life(log, 2, 101, 100);
	add(log, 101, 102, 36);
	expect(log, 0, 102, 37);
	KUNIT_EXPECT_EQ(test, kept_epoch(log, 100), 1);
	KUNIT_EXPECT_EQ(test, kept_epoch(log, 101), 2);
	KUNIT_EXPECT_EQ(test, kept_epoch(log, 102), 2);
}

/* L2: life 2's 102 rots; life 1's whole 102 must not fill the gap. */
static void l2_dead_record_fills_gap(struct kunit *test)
{
	struct log *log = log_create(test, 3, 104, 100, 33);

	life(log, 1, 1, 99);
	add(log, 100, 102, 33);
	life(log, 2, 101, 100);
	add(log, 101, 103, 36);
	drop(log, 102);
	life(log, 3, 104, 103);
	add(log, 104, 105, 40);
	expect(log, -EUCLEAN, 101, 37);
	KUNIT_EXPECT_EQ(test, log->result.durable_seq, 103);
}

/* The same, and only life 2's headers know of its first seq. */
static void l2_known_from_headers(struct kunit *test)
{
	struct log *log = log_create(test, 3, 104, 100, 33);

	life(log, 1, 1, 99);
	add(log, 100, 103, 33);
	life(log, 2, 101, 100);
	add(log, 101, 103, 36);
	drop(log, 101);
	expect(log, -EUCLEAN, 100, 34);
}

/* The same, and all headers of life 2 rot, or its only one: the superblock tells of it. */
static void l2_lone_header(struct kunit *test)
{
	struct log *log = log_create(test, 2, 101, 100, 33);

	lc_replay_next_life(log->sb, 102);
	life(log, 1, 1, 99);
	add(log, 100, 103, 33);
	expect(log, -EUCLEAN, 100, 34);
	log = log_create(test, 3, 102, 100, 33);
	life(log, 1, 1, 99);
	add(log, 100, 103, 33);
	expect(log, 0, 101, 34);	/* nothing tells of it */
}

/* Which lives the superblock goes on telling of. */
static void told_lives(struct kunit *test)
{
	struct log *log = log_create(test, 0, 1, 1, 1);
	struct lc_sb *sb = log->sb;
	u64 epoch;

	lc_replay_next_life(sb, 1);
	KUNIT_EXPECT_EQ(test, sb->epoch, 1);
	KUNIT_EXPECT_EQ(test, sb->nr_lives, 0);		/* format wrote no records */
	lc_replay_next_life(sb, 5);
	lc_replay_next_life(sb, 5);			/* life 2 had none */
	lc_replay_next_life(sb, 9);
	KUNIT_EXPECT_EQ(test, sb->epoch, 4);
	KUNIT_EXPECT_EQ(test, sb->epoch_first_seq, 9);
	KUNIT_ASSERT_EQ(test, sb->nr_lives, 2);
	KUNIT_EXPECT_EQ(test, sb->lives[0].epoch, 1);
	KUNIT_EXPECT_EQ(test, sb->lives[0].first_seq, 1);
	KUNIT_EXPECT_EQ(test, sb->lives[1].epoch, 3);
	KUNIT_EXPECT_EQ(test, sb->lives[1].first_seq, 5);
	sb->tail_seq = 7;				/* 3 still tells what 1 does */
	lc_replay_next_life(sb, 12);
	KUNIT_ASSERT_EQ(test, sb->nr_lives, 2);
	KUNIT_EXPECT_EQ(test, sb->lives[0].epoch, 3);
	KUNIT_EXPECT_EQ(test, sb->lives[1].epoch, 4);
	sb->tail_seq = 12;
	lc_replay_next_life(sb, 12);
	KUNIT_EXPECT_EQ(test, sb->nr_lives, 0);
	KUNIT_EXPECT_EQ(test, sb->lives[0].epoch, 0);
	for (epoch = 7; epoch < 100; epoch++)
		lc_replay_next_life(sb, 10 * epoch);
	KUNIT_ASSERT_EQ(test, sb->nr_lives, LC_SB_LIVES);
	KUNIT_EXPECT_EQ(test, sb->lives[LC_SB_LIVES - 1].epoch, 98);
	KUNIT_EXPECT_EQ(test, sb->lives[0].epoch, 99 - LC_SB_LIVES);
}

/* Three lives that each lost their end. */
static void many_crashes(struct kunit *test)
{
	struct log *log = log_create(test, 4, 30, 10, 5);

	life(log, 1, 1, 15);
	add(log, 10, 22, 5);		/* up to 17 counted, 18 was torn */
	life(log, 2, 18, 20);
	add(log, 18, 24, 11);
	life(log, 3, 25, 27);
	add(log, 25, 33, 15);
	life(log, 4, 30, 29);
	add(log, 30, 31, 20);
	expect(log, 0, 31, 21);
	KUNIT_EXPECT_EQ(test, kept_epoch(log, 17), 1);
	KUNIT_EXPECT_EQ(test, kept_epoch(log, 18), 2);
	KUNIT_EXPECT_EQ(test, kept_epoch(log, 25), 3);
	KUNIT_EXPECT_EQ(test, kept_epoch(log, 30), 4);
}

/* A dead record's durable_seq counts for nothing: that life's end was cut off. */
static void dead_durable(struct kunit *test)
{
	struct log *log = log_create(test, 2, 101, 100, 33);

	life(log, 1, 1, 109);
	add(log, 110, 112, 33);
	life(log, 1, 1, 99);
	add(log, 100, 100, 36);
	life(log, 2, 101, 100);
	add(log, 101, 103, 37);
	expect(log, 0, 103, 38);
	KUNIT_EXPECT_EQ(test, log->result.durable_seq, 100);
}

/* L9: a record of a life the superblock does not know: it is an old one. */
static void later_life(struct kunit *test)
{
	struct log *log = log_create(test, 2, 10, 5, 3);

	life(log, 1, 1, 9);
	add(log, 5, 9, 3);
	life(log, 2, 10, 9);
	add(log, 10, 12, 6);
	life(log, 3, 13, 12);
	add(log, 13, 13, 8);
	expect(log, -ESTALE, 12, 7);
}

/* R7: what an earlier life left in a segment used again does not exist. */
static void leftovers(struct kunit *test)
{
	struct log *log = log_create(test, 2, 5, 1, 1);

	life(log, 1, 1, 3);
	add(log, 1, 3, 1);
	add(log, 4, 6, 2);		/* 4..6 in segment 2 */
	life(log, 2, 5, 4);
	add(log, 5, 7, 2);		/* and there again */
	expect(log, -EUCLEAN, 3, 2);	/* 4 was in that segment: its life's copy is gone */
	life(log, 1, 1, 3);
	add(log, 4, 4, 3);		/* after it neither */
	expect(log, -EUCLEAN, 3, 2);
	add(log, 4, 4, 1);		/* but if it lies before it, too */
	expect(log, 0, 7, 3);
}

/* R4: what no chain of headers leads to tells of others, and is not of the run. */
static void hidden(struct kunit *test)
{
	struct log *log = log_create(test, 1, 1, 1, 1);

	log->durable = 2;
	add(log, 1, 5, 1);
	log->hidden[3] = true;
	expect(log, 0, 3, 2);
	log = log_create(test, 1, 1, 1, 1);
	log->durable = 4;
	add(log, 1, 5, 1);
	log->hidden[3] = true;
	log->hidden[4] = true;
	expect(log, -EUCLEAN, 3, 2);	/* 5 says that 4 was durable */
}

/* Two headers of one life disagree about its beginning: not both are believed. */
static void two_beginnings(struct kunit *test)
{
	struct log *log = log_create(test, 2, 10, 8, 3);

	life(log, 1, 1, 9);
	add(log, 8, 9, 3);
	life(log, 2, 10, 9);
	add(log, 10, 11, 4);
	life(log, 2, 12, 11);
	add(log, 12, 13, 5);
	expect(log, 0, 11, 5);
}

/* --- lanes and laps ------------------------------------------------------- */

/* Three lanes filled in turn: seqs interleave over segments. */
static void lanes(struct kunit *test)
{
	struct log *log = log_create(test, 1, 1, 1, 1);
	u64 seq;

	log->durable = 6;
	for (seq = 1; seq <= 12; seq++)
		add(log, seq, seq, 1 + (seq * 7) % 3);
	expect(log, 0, 12, 4);
	/* One lane's last record was torn: the others' later ones go with it. */
	drop(log, 9);
	expect(log, 0, 8, 4);
}

/* A lane that was taken long ago still holds the lowest seq. */
static void slow_lane(struct kunit *test)
{
	struct log *log = log_create(test, 1, 1, 20, 5);

	log->durable = 24;
	add(log, 20, 20, 5);
	add(log, 21, 25, 40);
	add(log, 26, 26, 5);
	expect(log, 0, 26, 42);
}

/* L14: all before the boundary is in lower segments than it, all from it on in none lower. */
static void boundaries(struct kunit *test)
{
	static const u64 segments[] = { 5, 7, 5, 6, 8, 8, 10, 9 };
	static const u64 expected[] = { 5, 0, 0, 0, 8, 0, 9, 0, 0 };
	struct log *log = log_create(test, 1, 1, 1, 5);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(segments); i++)
		add(log, 1 + i, 1 + i, segments[i]);
	add(log, 10, 10, 12);		/* after the end of the run */
	expect(log, 0, 8, 11);
	lc_replay_find_boundaries(&log->found);
	for (i = 0; i < ARRAY_SIZE(expected); i++)
		KUNIT_EXPECT_EQ(test, expected[i],
				lc_replay_boundary_segment(&log->found,
							   lc_replay_at(&log->found, i)));
}

/* Numbers beyond 32 bits, and a ring that is in its billionth lap. */
static void wrap(struct kunit *test)
{
	static const u64 seqs[] = { 0xfffffffcULL, 0xfffffffffffcULL, (1ULL << 61) - 4 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(seqs); i++) {
		u64 first = seqs[i], segment = first * 3;
		struct log *log = log_create(test, 9, first - 100, first, segment);

		log->durable = first + 3;
		add(log, first, first + 9, segment);
		expect(log, 0, first + 9, segment + 4);
		drop(log, first + 8);
		expect(log, 0, first + 7, segment + 3);
	}
}

/* The data of a record above the durable seq turned out torn. */
static void truncated(struct kunit *test)
{
	struct log *log = log_create(test, 1, 1, 1, 1);

	log->durable = 4;
	add(log, 1, 9, 1);
	expect(log, 0, 9, 4);
	KUNIT_ASSERT_EQ(test, select_run(log), 0);
	lc_replay_truncate(&log->found, 6, &log->result);
	KUNIT_EXPECT_EQ(test, log->result.last_seq, 6);
	KUNIT_EXPECT_EQ(test, log->result.next_segment, 3);
	KUNIT_EXPECT_EQ(test, log->result.nr_kept, 6);
	KUNIT_EXPECT_EQ(test, kept_epoch(log, 7), 0);
	lc_replay_truncate(&log->found, 0, &log->result);
	KUNIT_EXPECT_EQ(test, log->result.nr_kept, 0);
	KUNIT_EXPECT_EQ(test, log->result.next_segment, 1);
}

/* --- from headers --------------------------------------------------------- */

/* As a scan does: what decodes is added, what does not is nothing. */
static int scan_header(struct log *log, const union example_block *raw, u64 segment, u32 slot)
{
	struct lc_record_info info;
	int ret = lc_record_decode(&raw->record, log->sb, segment, slot, &info, NULL);

	if (!ret)
		log->records[log->nr++] = info;
	return ret;
}

/* Headers of another format run, of the last lap, and torn ones never come to select. */
static void foreign_headers(struct kunit *test)
{
	struct log *log = log_create(test, 3, 90, 90, 1000);
	union example_block *raw = example_block_alloc(test);
	struct lc_record_info info;
	u64 seq;

	for (seq = 90; seq <= 97; seq++) {
		u64 segment = 1000 + (seq - 90) / 2;
		u32 slot = seq % 2 ? 3 : 0;

		example_record(&raw->record, log->sb, &info);
		info.segment = segment;
		info.first_slot = slot;
		info.seq = seq;
		info.durable_seq = min(92ULL, seq - 1);
		if (seq == 96)
			log->sb->generation++;
		lc_record_seal(&raw->record, log->sb, &info);
		if (seq == 96)
			log->sb->generation--;
		KUNIT_EXPECT_EQ(test, scan_header(log, raw, segment, slot),
				seq == 96 ? -ESTALE : 0);
		/* The same place a lap later, and torn in the middle. */
		KUNIT_EXPECT_NE(test, scan_header(log, raw, segment + 989, slot), 0);
		raw->bytes[2048] ^= 0xff;
		KUNIT_EXPECT_EQ(test, scan_header(log, raw, segment, slot),
				seq == 96 ? -ESTALE : -EBADMSG);
	}
	expect(log, 0, 95, 1003);
}

static struct kunit_case replay_cases[] = {
	KUNIT_CASE(empty),
	KUNIT_CASE(one_life),
	KUNIT_CASE(nothing_left),
	KUNIT_CASE(below_tail),
	KUNIT_CASE(l1_dead_record_follows),
	KUNIT_CASE(duplicate_seq),
	KUNIT_CASE(l2_dead_record_fills_gap),
	KUNIT_CASE(l2_known_from_headers),
	KUNIT_CASE(l2_lone_header),
	KUNIT_CASE(told_lives),
	KUNIT_CASE(many_crashes),
	KUNIT_CASE(dead_durable),
	KUNIT_CASE(later_life),
	KUNIT_CASE(leftovers),
	KUNIT_CASE(hidden),
	KUNIT_CASE(two_beginnings),
	KUNIT_CASE(lanes),
	KUNIT_CASE(slow_lane),
	KUNIT_CASE(boundaries),
	KUNIT_CASE(wrap),
	KUNIT_CASE(truncated),
	KUNIT_CASE(foreign_headers),
	{}
};

static struct kunit_suite replay_suite = {
	.name = "dm_lc_replay",
	.test_cases = replay_cases,
};

kunit_test_suite(replay_suite);
