// SPDX-License-Identifier: GPL-2.0-only
/*
 * Selection of the records that exist after a crash.
 *
 * Rules (docs/design.rst, hazards L1, L2, L4):
 *  R1 A record of epoch e does not exist if its seq is at or above the first
 *     seq of any later epoch, known from any valid header or from the superblock,
 *     which also tells of earlier lives.
 *  R2 Among records of one seq the higher epoch wins.
 *  R3 Seqs below the superblock's tail are ignored.
 *  R4 The run starts at the tail seq and ends before the first missing seq.  A
 *     record that no chain of headers leads to is missing: whether it is found
 *     depends on where somebody looks, and must not decide what the log is.
 *  R5 durable_seq is believed from every record that exists after R1, also
 *     beyond the break.  A run that ends below it is damage, not a torn tail.
 *  R6 A record of an epoch above the superblock's proves that the superblock is
 *     an old one: the first record of a life is written only after both front
 *     copies hold its epoch (L1, L9).  A whole life would be missed, so refuse.
 *     The mark would say the same, but there may be none (lc-format --no-mark).
 *  R7 Epochs do not fall while segment numbers rise: a record at or behind one of a
 *     later life does not exist, for every life opens its segments behind all that the
 *     one before it left.  (Else: a record was rewritten, and only its first copy was
 *     found after a crash, the second one hidden behind a torn header, or behind more
 *     stale segments than the scan goes through.  The records of the next life lead to
 *     the second copy, which now wins and may lack its data; below the durable seq
 *     nobody looks.)
 */
#include <linux/types.h>
#include <linux/errno.h>
#include <linux/string.h>
#ifdef __KERNEL__
#include <linux/sched.h>
#include <linux/sort.h>
#else
#include <stdlib.h>
#endif

#include "replay.h"

/* By seq, the higher epoch first. */
static int compare_records(const void *a, const void *b)
{
	const struct lc_replay_record *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	if (x->epoch != y->epoch)
		return x->epoch > y->epoch ? -1 : 1;
	if (x->segment != y->segment)
		return x->segment > y->segment ? -1 : 1;
	/* No order left to chance: sort() here and qsort() in the tools break ties differently. */
	if (x->first_slot != y->first_slot)
		return x->first_slot < y->first_slot ? -1 : 1;
	return 0;
}

/*
 * By epoch, the lowest first, and within it by what the headers say its first seq was, the
 * highest first: as the scan finds them, so that there is nothing to sort.
 */
static int compare_epochs(const void *a, const void *b)
{
	const struct lc_replay_record *x = a, *y = b;

	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	if (x->epoch_first_seq != y->epoch_first_seq)
		return x->epoch_first_seq > y->epoch_first_seq ? -1 : 1;
	return 0;
}

/* By segment, the highest epoch first. */
static int compare_segments(const void *a, const void *b)
{
	const struct lc_replay_record *x = a, *y = b;

	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	if (x->epoch != y->epoch)
		return x->epoch > y->epoch ? -1 : 1;
	return 0;
}

typedef int (*compare_fn)(const void *a, const void *b);

#ifdef __KERNEL__
/* Loops over all records take seconds: there may be a hundred million. */
static void let_others_run(size_t i)
{
	if (!(i & 0xffff))
		cond_resched();
}

static int compare_slowly(const void *a, const void *b, const void *compare)
{
	cond_resched();
	return (*(const compare_fn *)compare)(a, b);
}
#else
static void let_others_run(size_t i)
{
	(void)i;
}
#endif

/*
 * What the scan finds is nearly in order already: of one lane all but the dead records of a
 * crash.  Put these in their places, as long as that takes no more than a few moves a record.
 * Return: whether all are.
 */
static bool insert_records(struct lc_replay_record *records, size_t nr, compare_fn compare)
{
	size_t budget = 4 * nr, i, j;

	for (i = 1; i < nr; i++) {
		struct lc_replay_record moved = records[i];

		for (j = i; j && compare(&records[j - 1], &moved) > 0 && budget; j--, budget--)
			records[j] = records[j - 1];
		records[j] = moved;
		if (!budget)
			return false;
		let_others_run(i);
	}
	return true;
}

static void sort_records(struct lc_replay_record *records, size_t nr, compare_fn compare)
{
	if (insert_records(records, nr, compare))
		return;
#ifdef __KERNEL__
	sort_r(records, nr, sizeof(*records), compare_slowly, NULL, &compare);
#else
	qsort(records, nr, sizeof(*records), compare);
#endif
}

/*
 * The first seq of life @epoch, which a header says is @first_seq.  @lives: how many of the
 * superblock's are below the life before; now: below this one.  @limit: lowest first seq
 * of the epochs above this one.
 */
static u64 enter_life(const struct lc_sb *sb, u64 epoch, u64 first_seq, u32 *lives, u64 *limit)
{
	for (; *lives && sb->lives[*lives - 1].epoch > epoch; --*lives) {
		if (sb->lives[*lives - 1].first_seq < *limit)
			*limit = sb->lives[*lives - 1].first_seq;
	}
	if (!*lives || sb->lives[*lives - 1].epoch != epoch)
		return first_seq;
	return sb->lives[--*lives].first_seq;
}

/* R1: sets keep on the records that exist. */
static void drop_dead(const struct lc_sb *sb, struct lc_replay_record *records, size_t nr)
{
	u64 limit = ~0ULL;		/* lowest first seq of the epochs above this one */
	u64 epoch = sb->epoch;
	u64 epoch_first = sb->epoch_first_seq;
	u32 lives = sb->nr_lives;
	size_t i;

	sort_records(records, nr, compare_epochs);
	for (i = nr; i--; ) {
		struct lc_replay_record *r = &records[i];

		let_others_run(i);
		r->keep = 0;
		if (r->epoch > sb->epoch)
			continue;
		if (r->epoch < epoch) {
			if (epoch_first < limit)
				limit = epoch_first;
			epoch = r->epoch;
			epoch_first = enter_life(sb, epoch, r->epoch_first_seq, &lives, &limit);
		}
		/* Two first seqs for one epoch: believe the superblock, or the lowest. */
		if (r->epoch_first_seq == epoch_first)
			r->keep = r->seq < limit;
	}
}

/* R7: takes keep from records an earlier life left where a later one has been. */
static void drop_leftovers(struct lc_replay_record *records, size_t nr)
{
	u64 epoch = 0;
	size_t i;

	sort_records(records, nr, compare_segments);
	for (i = 0; i < nr; i++) {
		let_others_run(i);
		if (records[i].epoch < epoch)
			records[i].keep = 0;
		else
			epoch = records[i].epoch;
	}
}

static void fill_result(const struct lc_sb *sb, const struct lc_replay_record *records, size_t nr,
			struct lc_replay_result *result)
{
	size_t i;

	result->nr_kept = 0;
	result->next_segment = sb->tail_segment;
	for (i = 0; i < nr; i++) {
		let_others_run(i);
		if (!records[i].keep)
			continue;
		result->nr_kept++;
		if (records[i].segment >= result->next_segment)
			result->next_segment = records[i].segment + 1;
	}
}

/**
 * lc_replay_select() - find the unbroken run
 * @sb: the superblock replay trusts
 * @records: facts of every header found; sorted by seq afterwards, keep set on the run
 * @nr: how many
 * @result: the run
 *
 * Return: 0; -EUCLEAN if the run ends below a seq that was durable: damage that
 * replay must not paper over; -ESTALE if a record is of a later life than the
 * superblock: that is not the newest one.  @result is valid in all cases.
 */
int lc_replay_select(const struct lc_sb *sb, struct lc_replay_record *records, size_t nr,
		     struct lc_replay_result *result)
{
	u64 expect = sb->tail_seq;
	bool newer_life = false;
	size_t i;

	memset(result, 0, sizeof(*result));
	/* A life starts where the one before was durable, so all below it was. */
	result->durable_seq = sb->epoch_first_seq ? sb->epoch_first_seq - 1 : 0;
	drop_dead(sb, records, nr);
	drop_leftovers(records, nr);
	sort_records(records, nr, compare_records);
	for (i = 0; i < nr; i++) {
		let_others_run(i);
		if (records[i].epoch > sb->epoch)
			newer_life = true;
		if (records[i].keep && records[i].durable_seq > result->durable_seq)
			result->durable_seq = records[i].durable_seq;
	}
	for (i = 0; i < nr; i++) {
		struct lc_replay_record *r = &records[i];

		let_others_run(i);
		if (r->hidden)
			r->keep = 0;
		if (!r->keep)
			continue;
		if (r->seq == expect)
			expect++;
		else
			r->keep = 0;	/* below the tail, a duplicate, or beyond the break */
	}
	result->first_seq = sb->tail_seq;
	result->last_seq = expect - 1;
	fill_result(sb, records, nr, result);
	if (newer_life)
		return -ESTALE;
	return result->last_seq < result->durable_seq ? -EUCLEAN : 0;
}

/**
 * lc_replay_find_cuts() - where may the tail move to?
 * @records: sorted by lc_replay_select()
 * @nr: how many
 *
 * Sets cut of each kept record: a segment that it and all of higher seqs are in or behind,
 * and all others of the run before; or 0.
 */
void lc_replay_find_cuts(struct lc_replay_record *records, size_t nr)
{
	u64 lowest = ~0ULL, next = 0;		/* from here on; behind all before */
	size_t i;

	for (i = nr; i--; ) {
		let_others_run(i);
		if (records[i].keep && records[i].segment < lowest)
			lowest = records[i].segment;
		records[i].cut = lowest;
	}
	for (i = 0; i < nr; i++) {
		struct lc_replay_record *r = &records[i];

		let_others_run(i);
		if (r->keep && r->cut >= next) {
			next = r->segment + 1;
			continue;
		}
		if (r->keep && r->segment >= next)
			next = r->segment + 1;
		r->cut = 0;
	}
}

/**
 * lc_replay_next_life() - a life begins: its numbers, and what is to be known of earlier ones
 * @sb: tail fields are set already
 * @first_seq: of the life
 *
 * What a life tells in R1 is told by the next one, too, if that begins at the same seq,
 * and by the latest of those that begin at or below the tail.  If there are too many all
 * the same, only headers tell of the oldest.
 */
void lc_replay_next_life(struct lc_sb *sb, u64 first_seq)
{
	u64 lowest = sb->epoch_first_seq < first_seq ? sb->epoch_first_seq : first_seq;
	u32 told = sb->nr_lives, nr = 0, i;

	while (told && sb->lives[told - 1].first_seq >= lowest)
		told--;
	if (sb->epoch && sb->epoch_first_seq < first_seq) {
		if (told == LC_SB_LIVES)
			memmove(sb->lives, sb->lives + 1, --told * sizeof(sb->lives[0]));
		sb->lives[told].epoch = sb->epoch;
		sb->lives[told++].first_seq = sb->epoch_first_seq;
	}
	sb->epoch++;
	sb->epoch_first_seq = first_seq;
	for (i = 0; i < told; i++) {
		u64 next = i + 1 < told ? sb->lives[i + 1].first_seq : first_seq;

		if (next > sb->tail_seq)
			sb->lives[nr++] = sb->lives[i];
	}
	sb->nr_lives = nr;
	memset(sb->lives + nr, 0, (LC_SB_LIVES - nr) * sizeof(sb->lives[0]));
}

/**
 * lc_replay_cut() - shorten the run, its data turned out torn
 * @sb: as for lc_replay_select()
 * @records: sorted by lc_replay_select()
 * @nr: how many
 * @last_seq: new end of the run, at least result->durable_seq
 * @result: updated
 */
void lc_replay_cut(const struct lc_sb *sb, struct lc_replay_record *records, size_t nr,
		   u64 last_seq, struct lc_replay_result *result)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (records[i].seq > last_seq)
			records[i].keep = 0;
	}
	result->last_seq = last_seq;
	fill_result(sb, records, nr, result);
}
