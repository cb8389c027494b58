// SPDX-License-Identifier: GPL-2.0-only
/*
 * Selection of the records that exist after a crash.  See replay.h.
 */
#include <linux/types.h>
#include <linux/errno.h>
#include <linux/string.h>
#ifdef __KERNEL__
#include <linux/sched.h>
#endif

#include "replay.h"

/* Loops over all records take seconds: there may be a hundred million. */
static void let_others_run(u32 i)
{
#ifdef __KERNEL__
	if (!(i & 0xffff))
		cond_resched();
#else
	(void)i;
#endif
}

/* --- what was found -------------------------------------------------------- */

void lc_replay_init(struct lc_replay_log *log, const struct lc_sb *sb)
{
	memset(log, 0, sizeof(*log));
	log->tail_seq = sb->tail_seq;
	log->tail_segment = sb->tail_segment;
	log->nr_segments = sb->geo.nr_segments;
	while (1u << log->slot_shift < sb->geo.seg_slots)
		log->slot_shift++;
	log->max = sb->geo.nr_slots;
	log->max_lives = log->max < LC_REPLAY_LIVES ? log->max : LC_REPLAY_LIVES;
	log->recent = LC_REPLAY_NONE;
}

u32 lc_replay_chunks(const struct lc_replay_log *log)
{
	return log->max / LC_REPLAY_CHUNK + !!(log->max % LC_REPLAY_CHUNK);
}

u32 lc_replay_wants(const struct lc_replay_log *log)
{
	u32 left = log->max - log->nr;

	if (!left || log->chunks[log->nr / LC_REPLAY_CHUNK])
		return 0;
	return left < LC_REPLAY_CHUNK ? left : LC_REPLAY_CHUNK;
}

/*
 * By epoch, the lowest first, and within it by what the headers say its first seq was, the
 * highest first: as the scan finds them, so that there is little to move.
 */
static int compare_life(const struct lc_replay_life *life, u64 epoch, u64 first_seq)
{
	if (life->epoch != epoch)
		return life->epoch < epoch ? -1 : 1;
	if (life->first_seq != first_seq)
		return life->first_seq > first_seq ? -1 : 1;
	return 0;
}

/* Return: the place in by_epoch[] where that life is, or should be: *@found says which. */
static u32 search_life(const struct lc_replay_log *log, u64 epoch, u64 first_seq, bool *found)
{
	u32 low = 0, high = log->nr_told;

	*found = false;
	while (low < high) {
		u32 middle = low + (high - low) / 2;
		int order = compare_life(&log->lives[log->by_epoch[middle]], epoch, first_seq);

		if (!order) {
			*found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Return: number of the life in lives[], or LC_REPLAY_NONE if there are too many. */
static u32 life_of(struct lc_replay_log *log, const struct lc_record_info *info)
{
	u32 at;
	bool found;

	if (log->recent != LC_REPLAY_NONE &&
	    !compare_life(&log->lives[log->recent], info->epoch, info->epoch_first_seq))
		return log->recent;
	at = search_life(log, info->epoch, info->epoch_first_seq, &found);
	if (!found) {
		if (log->nr_lives == log->max_lives)
			return LC_REPLAY_NONE;
		memmove(log->by_epoch + at + 1, log->by_epoch + at,
			(log->nr_told - at) * sizeof(*log->by_epoch));
		log->by_epoch[at] = log->nr_lives;
		log->nr_told++;
		log->lives[log->nr_lives++] = (struct lc_replay_life) {
			.epoch = info->epoch, .first_seq = info->epoch_first_seq,
			.segment = LC_REPLAY_NONE,
		};
	}
	log->recent = log->by_epoch[at];
	return log->recent;
}

/* See struct lc_replay_record. */
static u32 durable_distance(const struct lc_replay_log *log, u64 durable_seq)
{
	u64 distance = durable_seq - log->tail_seq;

	if (durable_seq < log->tail_seq)
		return 0;
	return distance < LC_REPLAY_NONE ? distance + 1 : LC_REPLAY_NONE;
}

static u32 segments_back(const struct lc_record_info *info)
{
	u64 back = info->boundary ? info->segment - info->boundary : 0;

	return back < LC_REPLAY_FAR_BACK ? back : LC_REPLAY_FAR_BACK;
}

int lc_replay_add(struct lc_replay_log *log, const struct lc_record_info *info, bool hidden)
{
	u64 distance = info->segment - log->tail_segment;
	struct lc_replay_life *life;
	u32 number;

	if (info->segment < log->tail_segment || distance >= log->nr_segments ||
	    info->first_slot >> log->slot_shift || log->nr == log->max)
		return -ERANGE;
	number = life_of(log, info);
	if (number == LC_REPLAY_NONE)
		return -E2BIG;
	life = &log->lives[number];
	if (distance < life->segment)
		life->segment = distance;
	*lc_replay_at(log, log->nr++) = (struct lc_replay_record) {
		.seq = info->seq, .durable = durable_distance(log, info->durable_seq),
		.place = (u32)distance << log->slot_shift | info->first_slot,
		.next = LC_REPLAY_NONE, .life = number, .back = segments_back(info),
		.hidden = hidden,
	};
	return 0;
}

void lc_replay_forget(struct lc_replay_log *log, u64 last_segment)
{
	u64 last = last_segment - log->tail_segment;
	u32 nr = 0, i;

	for (i = 0; i < log->nr; i++) {
		let_others_run(i);
		if (lc_replay_at(log, i)->place >> log->slot_shift <= last)
			*lc_replay_at(log, nr++) = *lc_replay_at(log, i);
	}
	log->nr = nr;
	/* Nor does it tell of a life. */
	for (nr = 0, i = 0; i < log->nr_told; i++) {
		if (log->lives[log->by_epoch[i]].segment <= last)
			log->by_epoch[nr++] = log->by_epoch[i];
	}
	log->nr_told = nr;
	log->recent = LC_REPLAY_NONE;
}

u64 lc_replay_latest(const struct lc_replay_log *log)
{
	return log->nr_told ? log->lives[log->by_epoch[log->nr_told - 1]].epoch : 0;
}

/* --- their order ----------------------------------------------------------- */

/* By seq, the higher epoch first. */
static int compare_records(const struct lc_replay_log *log, const struct lc_replay_record *x,
			   const struct lc_replay_record *y)
{
	u32 segment = x->place >> log->slot_shift, other = y->place >> log->slot_shift;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	if (log->lives[x->life].epoch != log->lives[y->life].epoch)
		return log->lives[x->life].epoch > log->lives[y->life].epoch ? -1 : 1;
	if (segment != other)
		return segment > other ? -1 : 1;
	/* No order left to chance: the order they are found in must not matter. */
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return 0;
}

/* A chain of records in order, linked by next. */
struct run {
	u32 first, last;
};

/* Records that were found in order, as those of a segment are, form the first chains. */
static struct run take_run(const struct lc_replay_log *log, u32 first)
{
	struct run run = { first, first };
	struct lc_replay_record *r = lc_replay_at(log, first);

	while (run.last + 1 < log->nr) {
		struct lc_replay_record *next = lc_replay_at(log, run.last + 1);

		if (compare_records(log, r, next) > 0)
			break;
		let_others_run(run.last);
		r->next = ++run.last;
		r = next;
	}
	return run;
}

static struct run merge_runs(const struct lc_replay_log *log, struct run a, struct run b)
{
	struct run merged = { a.first, b.last };
	u32 *link = &merged.first, n;

	/* Usually one ends before the other begins. */
	if (compare_records(log, lc_replay_at(log, a.last), lc_replay_at(log, b.first)) <= 0) {
		lc_replay_at(log, a.last)->next = b.first;
		return merged;
	}
	for (n = 0; ; n++) {
		struct lc_replay_record *r;

		let_others_run(n);
		r = lc_replay_at(log, a.first);
		if (compare_records(log, r, lc_replay_at(log, b.first)) > 0) {
			struct run other = a;

			a = b;
			b = other;
			r = lc_replay_at(log, a.first);
		}
		*link = a.first;
		link = &r->next;
		if (a.first == a.last)
			break;
		a.first = r->next;
	}
	*link = b.first;
	merged.last = b.last;
	return merged;
}

/* Move all records into the order of the chain that holds them all. */
static void put_in_order(const struct lc_replay_log *log, u32 first)
{
	struct lc_replay_record *r, *here, moved;
	u32 i;

	for (i = 0; i < log->nr; i++) {
		let_others_run(i);
		/* A place below @i is final: the record that was there has moved to its next. */
		while (first < i)
			first = lc_replay_at(log, first)->next;
		r = lc_replay_at(log, first);
		here = lc_replay_at(log, i);
		moved = *r;
		*r = *here;
		*here = moved;
		here->next = first;
		first = moved.next;
	}
}

/*
 * Chains are merged, each with one of as many, so that a record is merged 32 times at most,
 * whatever their order.  No memory is taken.
 */
static void sort_records(struct lc_replay_log *log)
{
	struct run stack[33], run;
	u8 ranks[33], rank;
	u32 depth = 0, nr_runs = 0, i;

	for (i = 0; i < log->nr; nr_runs++) {
		run = take_run(log, i);
		i = run.last + 1;
		for (rank = 0; depth && ranks[depth - 1] == rank; rank++)
			run = merge_runs(log, stack[--depth], run);
		stack[depth] = run;
		ranks[depth++] = rank;
	}
	for (; depth > 1; depth--)
		stack[depth - 2] = merge_runs(log, stack[depth - 2], stack[depth - 1]);
	if (nr_runs > 1)
		put_in_order(log, stack[0].first);
	log->nr_sorted = log->nr;
}

bool lc_replay_has(const struct lc_replay_log *log, const struct lc_record_info *info)
{
	struct lc_replay_record key = {
		.seq = info->seq,
		.place = (u32)(info->segment - log->tail_segment) << log->slot_shift |
			 info->first_slot,
	};
	u32 low = 0, high = log->nr_sorted, at;
	bool found;

	at = search_life(log, info->epoch, info->epoch_first_seq, &found);
	if (!found)
		return false;
	key.life = log->by_epoch[at];
	while (low < high) {
		u32 middle = low + (high - low) / 2;
		int order = compare_records(log, lc_replay_at(log, middle), &key);

		if (!order)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* --- the run --------------------------------------------------------------- */

/*
 * Return: the first seq of @epoch, from the superblock if that lists the epoch, else @first_seq,
 * which is from a header.  Called for falling epochs.  *@lives: how many epochs of the superblock
 * are below the last one visited.  *@limit: the lowest first seq of all epochs above.
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

/* R1 and R7, of each life: from where on its records do not exist. */
static void find_ends(const struct lc_sb *sb, struct lc_replay_log *log)
{
	u64 limit = ~0ULL;		/* lowest first seq of the epochs above this one */
	u64 epoch = sb->epoch;
	u64 epoch_first = sb->epoch_first_seq;
	u32 lives = sb->nr_lives;
	u32 later = LC_REPLAY_NONE;	/* lowest segment of the epochs above this one */
	u32 lowest = LC_REPLAY_NONE;	/* and of this one */
	const struct lc_replay_life *above = NULL;
	u32 i;

	for (i = log->nr_told; i--; ) {
		struct lc_replay_life *life = &log->lives[log->by_epoch[i]];

		if (above && above->epoch != life->epoch)
			later = lowest;
		above = life;
		if (life->segment < lowest)
			lowest = life->segment;
		life->end_segment = later;
		life->end_seq = 0;
		if (life->epoch > sb->epoch)
			continue;
		if (life->epoch < epoch) {
			if (epoch_first < limit)
				limit = epoch_first;
			epoch = life->epoch;
			epoch_first = enter_life(sb, epoch, life->first_seq, &lives, &limit);
		}
		/* Two first seqs for one epoch: believe the superblock, or the lowest. */
		if (life->first_seq == epoch_first)
			life->end_seq = limit;
	}
}

static bool exists(const struct lc_replay_log *log, const struct lc_replay_record *r)
{
	const struct lc_replay_life *life = &log->lives[r->life];

	return r->seq < life->end_seq && r->place >> log->slot_shift < life->end_segment;
}

static void fill_result(const struct lc_replay_log *log, struct lc_replay_result *result)
{
	u32 i;

	result->nr_kept = 0;
	result->next_segment = log->tail_segment;
	for (i = 0; i < log->nr; i++) {
		const struct lc_replay_record *r = lc_replay_at(log, i);

		let_others_run(i);
		if (!r->keep)
			continue;
		result->nr_kept++;
		if (lc_replay_segment(log, r) >= result->next_segment)
			result->next_segment = lc_replay_segment(log, r) + 1;
	}
}

/*
 * R5.  A life starts where the one before was durable, so all below it was.  So was all below
 * the tail.
 */
static void find_durable(const struct lc_sb *sb, const struct lc_replay_log *log,
			 struct lc_replay_result *result)
{
	u64 first = sb->epoch_first_seq < sb->tail_seq ? sb->tail_seq : sb->epoch_first_seq;
	u32 durable = 0, i;

	result->durable_seq = first ? first - 1 : 0;
	for (i = 0; i < log->nr; i++) {
		const struct lc_replay_record *r = lc_replay_at(log, i);

		let_others_run(i);
		if (exists(log, r) && r->durable > durable)
			durable = r->durable;
	}
	if (durable && log->tail_seq - 1 + durable > result->durable_seq)
		result->durable_seq = log->tail_seq - 1 + durable;
}

int lc_replay_select(const struct lc_sb *sb, struct lc_replay_log *log,
		     struct lc_replay_result *result)
{
	u64 expect = sb->tail_seq;
	u32 i;

	memset(result, 0, sizeof(*result));
	find_ends(sb, log);
	sort_records(log);
	find_durable(sb, log, result);
	for (i = 0; i < log->nr; i++) {
		struct lc_replay_record *r = lc_replay_at(log, i);

		let_others_run(i);
		r->keep = exists(log, r);
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
	fill_result(log, result);
	if (lc_replay_latest(log) > sb->epoch)
		return -ESTALE;
	return result->last_seq < result->durable_seq ? -EUCLEAN : 0;
}

void lc_replay_find_boundaries(struct lc_replay_log *log)
{
	u32 lowest = LC_REPLAY_NONE, next = 0;	/* of those from here on; above all before */
	u32 i;

	for (i = log->nr; i--; ) {
		struct lc_replay_record *r = lc_replay_at(log, i);

		let_others_run(i);
		if (r->keep && r->place >> log->slot_shift < lowest)
			lowest = r->place >> log->slot_shift;
		r->boundary = lowest;
	}
	for (i = 0; i < log->nr; i++) {
		struct lc_replay_record *r = lc_replay_at(log, i);
		u32 segment = r->place >> log->slot_shift;

		let_others_run(i);
		if (r->keep && r->boundary >= next) {
			next = segment + 1;
			continue;
		}
		if (r->keep && segment >= next)
			next = segment + 1;
		r->boundary = LC_REPLAY_NONE;
	}
}

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

void lc_replay_truncate(struct lc_replay_log *log, u64 last_seq, struct lc_replay_result *result)
{
	u32 i;

	for (i = 0; i < log->nr; i++) {
		let_others_run(i);
		if (lc_replay_at(log, i)->seq > last_seq)
			lc_replay_at(log, i)->keep = 0;
	}
	result->last_seq = last_seq;
	fill_result(log, result);
}
