// SPDX-License-Identifier: GPL-2.0-only
/*
 * lc_replay_select() and lc_replay_truncate() against a slow implementation of the same
 * rules, on any facts at all: also such as no life of a log leaves.
 *
 * Input: u8 how, then the superblock's epoch, first seq, tail seq and tail segment and
 * up to 48 records, with numbers of one byte, or of eight bytes if bit 0 of how is
 * set.  Bit 1: only what lc_record_decode() lets through.  Bits 2-3: what seqs count
 * from.  Bit 4: the seqs' first seqs and epochs are those of a few lives.  Bit 5: no
 * chain of headers leads to records in odd slots.  Bit 6: the superblock tells of earlier
 * lives.  Of two records in one slot the first one counts: a scan finds no more.
 */
#include <errno.h>
#include <stdlib.h>

#include "expect.h"
#include "replay.h"
#include "rng.h"

#define MAX_RECORDS	48
#define SEGMENTS	16
#define SLOTS		16

/* A record as its header tells of it. */
struct told {
	struct lc_record_info info;
	bool hidden;
};

struct facts {
	struct lc_sb sb;
	struct told records[MAX_RECORDS];
	size_t nr;
};

/* --- the rules, one by one (docs/design.rst) ----------------------------- */

/* The first seq of a life: of several that are told, the lowest; the superblock knows best. */
static u64 first_seq(const struct facts *f, u64 epoch)
{
	u64 lowest = ~0ULL;
	size_t i;

	if (epoch == f->sb.epoch)
		return f->sb.epoch_first_seq;
	for (i = 0; i < f->sb.nr_lives; i++) {
		if (f->sb.lives[i].epoch == epoch)
			return f->sb.lives[i].first_seq;
	}
	for (i = 0; i < f->nr; i++) {
		const struct lc_record_info *r = &f->records[i].info;

		if (r->epoch == epoch && r->epoch_first_seq < lowest)
			lowest = r->epoch_first_seq;
	}
	return lowest;
}

static bool rule1(const struct facts *f, const struct lc_record_info *r)
{
	size_t i;

	if (r->epoch > f->sb.epoch || r->epoch_first_seq != first_seq(f, r->epoch))
		return false;
	if (r->epoch < f->sb.epoch && r->seq >= f->sb.epoch_first_seq)
		return false;
	for (i = 0; i < f->sb.nr_lives; i++) {
		if (f->sb.lives[i].epoch > r->epoch && r->seq >= f->sb.lives[i].first_seq)
			return false;
	}
	for (i = 0; i < f->nr; i++) {
		u64 later = f->records[i].info.epoch;

		if (later > r->epoch && later <= f->sb.epoch && r->seq >= first_seq(f, later))
			return false;
	}
	return true;
}

static bool rule7(const struct facts *f, const struct lc_record_info *r)
{
	size_t i;

	for (i = 0; i < f->nr; i++) {
		const struct lc_record_info *other = &f->records[i].info;

		if (other->segment <= r->segment && other->epoch > r->epoch)
			return false;
	}
	return true;
}

static bool exists(const struct facts *f, const struct lc_record_info *r)
{
	return rule1(f, r) && rule7(f, r);
}

/* Rule 2, and where it leaves a choice: the higher segment, there the lower slot. */
static bool better(const struct lc_record_info *a, const struct lc_record_info *b)
{
	if (a->epoch != b->epoch)
		return a->epoch > b->epoch;
	if (a->segment != b->segment)
		return a->segment > b->segment;
	return a->first_slot < b->first_slot;
}

static const struct lc_record_info *record_of(const struct facts *f, u64 seq)
{
	const struct lc_record_info *best = NULL;
	size_t i;

	for (i = 0; i < f->nr; i++) {
		const struct lc_record_info *r = &f->records[i].info;

		if (r->seq == seq && exists(f, r) && !f->records[i].hidden &&
		    (!best || better(r, best)))
			best = r;
	}
	return best;
}

/* Rule 5 of one record.  Below the tail all was durable; no log is as long as 2^32. */
static u64 told_durable(const struct facts *f, const struct lc_record_info *r)
{
	u64 tail = f->sb.tail_seq;

	if (r->durable_seq < tail)
		return 0;
	return r->durable_seq - tail < (1ULL << 32) - 2 ? r->durable_seq : tail + (1ULL << 32) - 2;
}

/* Fills run[] in the order of seqs. */
static int slow_select(const struct facts *f, struct lc_replay_result *result,
		       const struct lc_record_info **run)
{
	const struct lc_record_info *r;
	bool newer_life = false;
	size_t i;
	u64 seq;

	memset(result, 0, sizeof(*result));
	result->durable_seq = f->sb.epoch_first_seq ? f->sb.epoch_first_seq - 1 : 0;
	if (f->sb.tail_seq > result->durable_seq)
		result->durable_seq = f->sb.tail_seq - 1;
	result->next_segment = f->sb.tail_segment;
	result->first_seq = f->sb.tail_seq;
	for (seq = f->sb.tail_seq; (r = record_of(f, seq)); seq++) {	/* rules 3 and 4 */
		run[result->nr_kept++] = r;
		if (r->segment + 1 > result->next_segment)
			result->next_segment = r->segment + 1;
	}
	result->last_seq = seq - 1;
	for (i = 0; i < f->nr; i++) {
		r = &f->records[i].info;
		newer_life |= r->epoch > f->sb.epoch;			/* rule 6 */
		if (exists(f, r) && told_durable(f, r) > result->durable_seq)
			result->durable_seq = told_durable(f, r);
	}
	if (newer_life)
		return -ESTALE;
	return result->last_seq < result->durable_seq ? -EUCLEAN : 0;
}

/* --- input --------------------------------------------------------------- */

static void bound(struct lc_record_info *r)
{
	u64 top = 1ULL << 62;

	r->seq = r->seq % (top - 1) + 1;
	r->epoch %= top;
	r->epoch_first_seq = r->epoch_first_seq ? (r->epoch_first_seq - 1) % r->seq + 1 : 1;
	r->durable_seq %= r->seq;
}

/* Up to three earlier lives; as decoding lets them through, they rise. */
static void take_lives(struct input *in, struct facts *f, unsigned int n)
{
	u64 epoch = f->sb.epoch, seq = f->sb.epoch_first_seq;
	u64 step[3][2];
	u32 i, nr;

	for (nr = 0; nr < 3; nr++) {
		step[nr][0] = 1 + input_bytes(in, n) % 4;
		step[nr][1] = 1 + input_bytes(in, n) % 16;
		if (step[nr][0] > epoch || step[nr][1] > seq)
			break;
		epoch -= step[nr][0];
		seq -= step[nr][1];
	}
	for (i = 0; i < nr; i++) {
		f->sb.lives[i].epoch = epoch;
		f->sb.lives[i].first_seq = seq;
		epoch += step[nr - 1 - i][0];
		seq += step[nr - 1 - i][1];
	}
	f->sb.nr_lives = nr;
}

static void take_facts(struct input *in, struct facts *f)
{
	static const u64 bases[] = { 0, 1ULL << 32, (1ULL << 62) - 40, 1ULL << 63 };
	u8 how = input_u8(in);
	unsigned int n = how & 1 ? 8 : 1;
	u64 base = how & 1 ? 0 : bases[how >> 2 & 3];
	u64 epochs = how & 1 ? ~0ULL : 8, top = ~0ULL >> 1;
	bool taken[SEGMENTS * SLOTS] = { false };

	memset(f, 0, sizeof(*f));
	f->sb.geo.nr_segments = SEGMENTS;
	f->sb.geo.seg_slots = SLOTS;
	f->sb.geo.nr_slots = SEGMENTS * SLOTS;
	f->sb.epoch = input_bytes(in, n) % epochs;
	f->sb.epoch_first_seq = base + (input_bytes(in, n) & top);
	f->sb.tail_seq = base + (input_bytes(in, n) & top);
	f->sb.tail_segment = 1 + (input_bytes(in, n) & top);
	if (how & 2) {
		f->sb.epoch_first_seq %= 1ULL << 62;
		f->sb.tail_seq = f->sb.tail_seq % ((1ULL << 62) - 1) + 1;
	}
	if (how & 64)
		take_lives(in, f, n);
	while (in->size && f->nr < MAX_RECORDS) {
		struct lc_record_info *r = &f->records[f->nr].info;
		u8 place = input_u8(in);

		r->seq = base + (input_bytes(in, n) & top);
		r->epoch = input_bytes(in, n) % epochs;
		r->epoch_first_seq = base + (input_bytes(in, n) & top);
		r->durable_seq = base + (input_bytes(in, n) & top);
		r->segment = f->sb.tail_segment + (place >> 4);
		r->first_slot = place & 15;
		f->records[f->nr].hidden = how & 32 && place & 1;
		if (how & 16)
			r->epoch_first_seq = base + r->epoch * 8;
		if (how & 2)
			bound(r);
		f->nr += !taken[place];
		taken[place] = true;
	}
}

/* A log of a few lives as a whole, which single bytes would take long to become. */
static size_t lives(struct rng *rng, u8 *data, size_t max)
{
	u64 seq = 1 + rng_below(rng, 9), epoch = rng_below(rng, 4), first = seq, segment = 0;
	size_t size = 5;

	data[0] = rng_below(rng, 2) << 1 | rng_below(rng, 4) << 2;
	data[3] = seq;
	data[4] = 0;
	while (size + 5 <= max && size < 5 + 5 * MAX_RECORDS && !rng_one_in(rng, 24)) {
		if (rng_one_in(rng, 8)) {
			epoch++;
			seq -= rng_below(rng, seq < 3 ? 1 : 3);
			first = seq;
			segment += rng_below(rng, 2);
		}
		segment += rng_one_in(rng, 4);
		data[size++] = (segment & 15) << 4 | rng_below(rng, 16);
		data[size++] = seq;
		data[size++] = epoch;
		data[size++] = first;
		data[size++] = seq - 1 - rng_below(rng, seq < 4 ? 1 : 4);
		seq++;
	}
	data[1] = epoch;
	data[2] = first;
	return size;
}

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max_size, unsigned int seed)
{
	struct rng rng = { seed };

	if (max_size < 64)
		return LLVMFuzzerMutate(data, size, max_size);
	if (size < 10 || rng_one_in(&rng, 16))
		return lives(&rng, data, max_size);
	if (rng_one_in(&rng, 3)) {	/* one number of one record, if they have one byte each */
		u8 *at = data + 5 + rng_below(&rng, size - 5);

		*at = rng_one_in(&rng, 2) ? *at + rng_below(&rng, 5) - 2 :
					    data[rng_below(&rng, size)];
		return size;
	}
	return LLVMFuzzerMutate(data, size, max_size);
}

/* --- comparison ---------------------------------------------------------- */

/* The log that replay makes of the facts; each input has its own, so that nothing is left over. */
static void load(const struct facts *f, struct lc_replay_log *log)
{
	u32 nr, i;

	lc_replay_init(log, &f->sb);
	EXPECT(lc_replay_chunks(log) == 1);
	log->chunks = calloc(1, sizeof(*log->chunks));
	log->lives = calloc(log->max_lives, sizeof(*log->lives));
	log->by_epoch = calloc(log->max_lives, sizeof(*log->by_epoch));
	for (i = 0; i < f->nr; i++) {
		nr = lc_replay_wants(log);
		EXPECT(!nr == !!i);
		if (nr)
			log->chunks[0] = calloc(nr, sizeof(**log->chunks));
		EXPECT(!lc_replay_add(log, &f->records[i].info, f->records[i].hidden));
	}
}

static void unload(struct lc_replay_log *log)
{
	free(log->chunks[0]);
	free(log->chunks);
	free(log->lives);
	free(log->by_epoch);
}

static bool same_record(const struct lc_replay_log *log, const struct lc_replay_record *a,
			const struct lc_record_info *b)
{
	const struct lc_replay_life *life = &log->lives[a->life];

	return a->seq == b->seq && life->epoch == b->epoch &&
	       life->first_seq == b->epoch_first_seq &&
	       lc_replay_segment(log, a) == b->segment && lc_replay_slot(log, a) == b->first_slot;
}

static void expect_same_run(const struct facts *f, const struct lc_replay_log *log,
			    const struct lc_replay_result *result,
			    const struct lc_record_info **run, size_t nr_run)
{
	size_t kept = 0;
	u32 i;

	EXPECT(log->nr == f->nr);
	for (i = 0; i < log->nr; i++) {
		const struct lc_replay_record *r = lc_replay_at(log, i);

		EXPECT(!i || lc_replay_at(log, i - 1)->seq <= r->seq);
		if (!r->keep)
			continue;
		EXPECT(kept < nr_run && same_record(log, r, run[kept]));
		EXPECT(r->seq == result->first_seq + kept);
		kept++;
	}
	for (i = 0; i < f->nr; i++)
		EXPECT(lc_replay_has(log, &f->records[i].info));
	EXPECT(kept == nr_run && kept == result->nr_kept);
}

static void shuffle(struct facts *f, struct rng *rng)
{
	size_t i;

	for (i = f->nr; i > 1; i--) {
		size_t j = rng_below(rng, i);
		struct told swap = f->records[j];

		f->records[j] = f->records[i - 1];
		f->records[i - 1] = swap;
	}
}

/* The run's end turned out torn: the shorter run and where the next life goes. */
static void truncate_run(const struct facts *f, struct lc_replay_log *log,
			 const struct lc_record_info **run, struct lc_replay_result *result, u64 by)
{
	u64 last = result->last_seq - (result->nr_kept ? by % (result->nr_kept + 1) : 0);
	u64 next = f->sb.tail_segment;
	size_t nr = 0;

	for (; nr < result->nr_kept && run[nr]->seq <= last; nr++) {
		if (run[nr]->segment + 1 > next)
			next = run[nr]->segment + 1;
	}
	lc_replay_truncate(log, last, result);
	EXPECT(result->last_seq == last && result->nr_kept == nr && result->next_segment == next);
	expect_same_run(f, log, result, run, nr);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const struct lc_record_info *run[MAX_RECORDS];
	struct lc_replay_result slow, fast;
	static struct facts facts, work;
	struct input in = { data, size };
	struct rng rng = { size };
	struct lc_replay_log log;
	unsigned int i;
	int expected;

	take_facts(&in, &facts);
	expected = slow_select(&facts, &slow, run);
	work = facts;
	for (i = 0; i < 3; i++) {
		load(&work, &log);
		memset(&fast, 0xff, sizeof(fast));
		EXPECT(lc_replay_select(&work.sb, &log, &fast) == expected);
		EXPECT(fast.first_seq == slow.first_seq && fast.last_seq == slow.last_seq);
		EXPECT(fast.durable_seq == slow.durable_seq && fast.nr_kept == slow.nr_kept);
		EXPECT(fast.next_segment == slow.next_segment);
		expect_same_run(&work, &log, &fast, run, slow.nr_kept);
		if (i == 2)
			truncate_run(&work, &log, run, &fast, size);
		unload(&log);
		shuffle(&work, &rng);
	}
	return 0;
}
