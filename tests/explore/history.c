// SPDX-License-Identifier: GPL-2.0-only
/*
 * What was written.
 *
 * Two accounts are kept, and the judge holds recovery to both.  By operation: every write
 * to a block and every discard has a number, in the order in which the user saw them
 * complete; what survives a crash must be what some first n of them leave, n at least what
 * was acknowledged.  By record: the index after a crash must be that of the records up to
 * some seq.  The first knows nothing of logs.
 *
 * What is acknowledged is folded into world->base and base_map at each crash, so that a
 * judgement only looks at what came since.
 */
#include "history.h"
#include "standin.h"

void history_reset(void)
{
	world->last_seq = 0;
	world->base_seq = 0;
	world->base_op = world->nr_ops;
	world->around_op = world->nr_ops + 1;
	memset(&world->base, 0, sizeof(world->base));
	memset(world->base_map, 0xff, sizeof(world->base_map));
}

/**
 * op_add() - the user wrote part of a block, or discards blocks
 * @block: the block, or the first one
 * @nr: blocks of a discard, 0: a write
 * @mask: sectors written
 * @rec: the record that holds it, or NONE
 */
u32 op_add(u32 block, u32 nr, u8 mask, u32 rec)
{
	if (world->nr_ops == MAX_OPS) {
		fprintf(stderr, "explore: too many operations\n");
		exit(2);
	}
	world->ops[++world->nr_ops] = (struct op) {
		.block = block, .nr = nr, .mask = mask, .rec = rec, .time = world->life->now,
		.acked = NEVER, .ended = NEVER,
	};
	if (rec != NONE)
		world->recs[rec].last_op = world->nr_ops;
	return world->nr_ops;
}

/* The bytes of an operation in a block: who, where, and a rest that is the same for all. */
void op_stamp(u8 *bytes, u32 op, u8 mask)
{
	u32 i;

	for (i = 0; i < PAGE_SECTORS; i++) {
		u32 *words = (u32 *)(bytes + (i << 9));

		if (!(mask & 1u << i))
			continue;
		memset(words, 0, 512);
		words[0] = op;
		words[1] = world->ops[op].block;
		words[2] = i;
		words[127] = ~op;
	}
}

/* What is in these sectors may be read again after a discard. */
void op_stays(const struct dpage *page, u8 mask)
{
	u32 i;

	for (i = 0; i < PAGE_SECTORS; i++) {
		if (mask & 1u << i)
			world->ops[page->tags[i]].stays = true;
	}
}

struct rec *rec_new(void)
{
	struct rec *rec = &world->recs[world->nr_recs];

	if (world->nr_recs == MAX_RECS) {
		fprintf(stderr, "explore: too many records\n");
		exit(2);
	}
	memset(rec, 0, sizeof(*rec));
	world->nr_recs++;
	return rec;
}

u32 rec_index(const struct rec *rec)
{
	return rec - world->recs;
}

struct rec *rec_of_seq(u64 seq)
{
	return &world->recs[world->hist[seq]];
}

/* Is a write among what a crash left: the first ones, in records up to a seq? */
bool op_survives(u32 n, u32 last_write, u64 last_seq)
{
	const struct op *op = &world->ops[n];
	u64 seq;

	if (n > last_write)
		return false;
	if (world->params.lanes < 2 || op->rec == NONE)
		return true;
	seq = world->recs[op->rec].seq;
	return seq && seq <= last_seq;
}

/* A write around the log, if it is one and was promised: newer ones stay. */
static void around_apply(struct content *content, u32 n, u32 at)
{
	const struct op *op = &world->ops[n];
	u32 first = op->block * PAGE_SECTORS, s;

	if (!op->around || op->dead || op->acked > at)
		return;
	for (s = 0; s < PAGE_SECTORS; s++) {
		if (!(op->mask & 1u << s) || content->op[first + s] > n)
			continue;
		content->op[first + s] = n;
		content->weak[first + s] = false;
	}
}

/**
 * content_apply() - what operations make of the volume
 * @content: before, and after
 * @from: after this one
 * @to: up to this one
 * @last_write: writes only up to here: a later discard may be in force although writes
 *	between were lost, for it also acts on the HDD
 * @last_seq: and in records up to here
 * @at: writes around the log that were promised until then; of others nothing is said
 */
void content_apply(struct content *content, u32 from, u32 to, u32 last_write, u64 last_seq,
		   u32 at)
{
	u32 n, s;

	/* Written before, and promised since. */
	for (n = max(world->around_op, 1u); n <= from; n++)
		around_apply(content, n, at);
	for (n = from + 1; n <= to; n++) {
		const struct op *op = &world->ops[n];

		if (op->dead)
			continue;
		if (op->around) {
			around_apply(content, n, at);
			continue;
		}
		if (op->nr) {
			for (s = op->block * PAGE_SECTORS;
			     s < (op->block + op->nr) * PAGE_SECTORS; s++) {
				content->op[s] = n;
				content->weak[s] = true;
			}
			continue;
		}
		if (!op_survives(n, last_write, last_seq))
			continue;
		for (s = 0; s < PAGE_SECTORS; s++) {
			if (!(op->mask & 1u << s))
				continue;
			content->op[op->block * PAGE_SECTORS + s] = n;
			content->weak[op->block * PAGE_SECTORS + s] = false;
		}
	}
}

/**
 * map_apply() - which record holds the newest copy of each block
 * @map: by block, before and after
 * @from: after this seq
 * @to: up to this seq
 */
void map_apply(u32 *map, u64 from, u64 to)
{
	u64 seq;
	u32 i, n;

	for (seq = from + 1; seq <= to; seq++) {
		const struct rec *rec = rec_of_seq(seq);

		for (i = 0; i < rec->nr_slots; i++) {
			if (rec->entries[i].used)
				map[rec->entries[i].block] = world->hist[seq];
		}
		for (i = 0; i < rec->nr_ranges; i++) {
			for (n = 0; n < rec->ranges[i].nr; n++)
				map[rec->ranges[i].first + n] = NONE;
		}
	}
}

/* Is a discard of the block, that counts, among the operations behind @n, up to @last? */
bool discarded_since(u32 block, u32 n, u32 last)
{
	while (++n <= last) {
		const struct op *op = &world->ops[n];

		if (op->nr && !op->dead && block >= op->block && block < op->block + op->nr)
			return true;
	}
	return false;
}

/* Operations up to a time of the life at hand. */
u32 ops_until(u32 time)
{
	u32 n = world->nr_ops;

	while (n > world->base_op && world->ops[n].time > time)
		n--;
	return n;
}

/**
 * floor_at() - what is acknowledged at a time
 * @life: the life
 * @time: the time
 * @op: operations up to this one survive
 * @seq: and records up to this one
 */
void floor_at(const struct life *life, u32 time, u32 *op, u64 *seq)
{
	u32 i;

	*op = world->base_op;
	*seq = world->base_seq;
	/* Before the start is over nobody was told what it found. */
	if (life->started <= time) {
		*op = life->start_op;
		*seq = life->start_seq;
	}
	for (i = 0; i < life->nr_acks && life->acks[i].time <= time; i++) {
		if (life->acks[i].op > *op)
			*op = life->acks[i].op;
		if (life->acks[i].seq > *seq)
			*seq = life->acks[i].seq;
	}
}

/**
 * rec_find_place() - which place of a record is this?
 * @rec: the record
 * @kept: where recovery found it
 * @at: of the places submitted until then
 *
 * Return: its number, or NONE.
 */
u32 rec_find_place(const struct rec *rec, const struct kept *kept, u32 at)
{
	u32 i;

	for (i = 0; i < rec->nr_places; i++) {
		if (rec->places[i].segment == kept->segment &&
		    rec->places[i].slot == kept->slot && rec->places[i].time <= at)
			return i;
	}
	return NONE;
}

/* May it still be promised, or come back? */
static bool around_open(u32 n)
{
	return world->ops[n].around && !world->ops[n].dead && world->ops[n].acked;
}

/**
 * history_around() - a crash ended the life: what is known of writes around the log
 * @crash: the crash
 * @saw: how many sectors of an operation are read now, and of how many an older one
 *
 * Before history_cut(), which changes times.  A power cut decides: what is there whole is durable,
 * and where nothing of it is, it must not come back.  A newer copy in the log may hide it.  After a
 * warm crash what had ended is in the cache, unless a FLUSH that failed has dropped it.
 */
void history_around(const struct crash *crash, void (*saw)(u32 op, u32 *same, u32 *older))
{
	u32 n, same, older, all;

	for (n = max(world->around_op, 1u); n <= ops_until(crash->at); n++) {
		struct op *op = &world->ops[n];

		if (!op->around || op->dead)
			continue;
		saw(n, &same, &older);
		all = hweight8(op->mask);
		if (op->acked <= crash->at || (!crash->warm && same == all))
			op->acked = 0;
		else
			op->acked = NEVER;
		op->dead = !crash->warm && older == all && op->acked;
		op->ended = crash->warm && op->ended <= crash->at && !older ? 0 : NEVER;
	}
}

/**
 * history_cut() - a crash ended the life, the next one has started: forget what is lost
 * @life: the life that ended
 * @at: when
 * @next: the life that has started
 * @last_seq: the last record that survived
 */
void history_cut(const struct life *life, u32 at, struct life *next, u64 last_seq)
{
	u32 floor_op, n, i;
	u64 floor_seq, seq;

	floor_at(life, at, &floor_op, &floor_seq);
	world->nr_ops = ops_until(at);
	for (n = world->base_op + 1; n <= world->nr_ops; n++) {
		struct op *op = &world->ops[n];
		const struct rec *rec = op->rec == NONE ? NULL : &world->recs[op->rec];

		op->time = 0;		/* times are those of the life at hand */
		if (op->around)
			continue;
		op->acked = op->acked > at ? NEVER : 0;
		if (rec && (!rec->seq || rec->seq > last_seq ||
			    world->hist[rec->seq] != op->rec))
			op->dead = true;
	}
	for (i = 0; i < next->nr_kept; i++) {
		struct rec *rec = rec_of_seq(next->kept[i].seq);

		rec->cur = rec_find_place(rec, &next->kept[i], at);
	}
	for (seq = world->base_seq + 1; seq <= last_seq; seq++) {
		struct rec *rec = rec_of_seq(seq);

		for (i = 0; i < rec->nr_places; i++)
			rec->places[i].time = rec->places[i].time > at ? NEVER : 0;
		rec->rewrite = false;
	}
	content_apply(&world->base, world->base_op, floor_op, floor_op, last_seq, 0);
	while (world->around_op < floor_op && !around_open(world->around_op))
		world->around_op++;
	map_apply(world->base_map, world->base_seq, floor_seq);
	world->base_op = floor_op;
	world->base_seq = floor_seq;
	world->last_seq = last_seq;
	next->start_op = world->nr_ops;
}
