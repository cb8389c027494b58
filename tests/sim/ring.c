// SPDX-License-Identifier: GPL-2.0-only
/*
 * Models with a ring of segments: lc with the module's own policy, lc without read caching, and
 * dm-writeboost with read caching.
 *
 * Writes and promoted blocks fill segments of their own, one open at a time of each kind.  A
 * segment is taken in the order of the ring, and what it still holds is evicted.  A block that is
 * in an open segment is overwritten there.
 *
 * Blocks of a request that are missed in a row are read together.  As in promote.c, the policy
 * hears of each.  If it would promote half of them, all are promoted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

#define SEGMENT		256u		/* slots */
#define HEADERS		1u
#define READS_A_TICK	32u		/* of the clock that samples hits */
#define READ_BLOCKS	32u		/* read together at most */

struct open {
	u32 base, fill;			/* first slot of the segment, or NONE */
};

struct ring {
	u32 *slot_of;			/* by block, or NONE */
	u32 *block_in;			/* by slot, or NONE */
	u8 *flags;			/* by slot */
	const u64 *blocks;
	u32 nr_segments;
	u64 number;			/* of the next segment */
	struct open write, promote;
	struct lc_admit *admit;		/* or NULL */
	bool admit_all;
	u32 run[READ_BLOCKS], nr_run;	/* missed in a row */
	u32 nr_yes;			/* of these the policy would promote */
	u8 answer;			/* LC_ADMIT_* of all of them */
	u32 pending[4 * SEGMENT], nr_pending;	/* kept, to be logged again */
	u8 pending_flags[4 * SEGMENT];
	u64 accesses, written, promoted, kept;
};

static struct ring *ring_create(const struct trace *trace, u32 slots)
{
	struct ring *r = sim_alloc(1, sizeof(*r));
	u32 i;

	r->nr_segments = (slots + SEGMENT / 2) / SEGMENT;
	if (r->nr_segments < 4)
		r->nr_segments = 4;
	r->slot_of = sim_alloc(trace->nr_ids, sizeof(u32));
	for (i = 0; i < trace->nr_ids; i++)
		r->slot_of[i] = NONE;
	r->block_in = sim_alloc((size_t)r->nr_segments * SEGMENT, sizeof(u32));
	for (i = 0; i < r->nr_segments * SEGMENT; i++)
		r->block_in[i] = NONE;
	r->flags = sim_alloc((size_t)r->nr_segments * SEGMENT, 1);
	r->blocks = trace->blocks;
	r->write.base = NONE;
	r->promote.base = NONE;
	return r;
}

static void *today_create(const struct trace *trace, u32 slots)
{
	return ring_create(trace, slots);
}

static void *writeboost_create(const struct trace *trace, u32 slots)
{
	struct ring *r = ring_create(trace, slots);

	r->admit_all = true;
	return r;
}

static void *lc_create(const struct trace *trace, u32 slots)
{
	struct ring *r = ring_create(trace, slots);

	r->admit = lc_admit_create((u64)r->nr_segments * SEGMENT, SEGMENT);
	if (!r->admit)
		sim_die("no memory");
	return r;
}

static void ring_destroy(void *cache)
{
	struct ring *r = cache;

	lc_admit_destroy(r->admit);
	free(r->slot_of);
	free(r->block_in);
	free(r->flags);
	free(r);
}

static u64 ring_written(const void *cache)
{
	return ((const struct ring *)cache)->written;
}

/* As the refill worker does. */
static void evict(struct ring *r, u32 base, bool promote)
{
	u32 slot;

	if (r->admit)
		lc_admit_reuse(r->admit);
	if (r->admit && promote)
		lc_admit_ceded(r->admit, SEGMENT);
	for (slot = base; slot < base + SEGMENT; slot++) {
		u32 id = r->block_in[slot];

		if (id == NONE)
			continue;
		r->block_in[slot] = NONE;
		r->slot_of[id] = NONE;
		if (!r->admit)
			continue;
		if (lc_admit_keep(r->admit, r->flags[slot])) {
			if (r->nr_pending < 4 * SEGMENT) {
				r->pending_flags[r->nr_pending] = lc_admit_kept(r->flags[slot]);
				r->pending[r->nr_pending++] = id;
				continue;
			}
		}
		lc_admit_evicted(r->admit, r->blocks[id], r->flags[slot]);
	}
}

static void append(struct ring *r, struct open *open, u32 id, u8 flags)
{
	u32 slot = r->slot_of[id];

	if (slot != NONE && slot / SEGMENT == open->base / SEGMENT && open->base != NONE) {
		r->flags[slot] = flags;
		return;
	}
	if (open->base == NONE || open->fill == SEGMENT) {
		open->base = r->number++ % r->nr_segments * SEGMENT;
		open->fill = HEADERS;
		evict(r, open->base, open == &r->promote);
		r->written += HEADERS;
	}
	slot = r->slot_of[id];
	if (slot != NONE)
		r->block_in[slot] = NONE;
	slot = open->base + open->fill++;
	r->block_in[slot] = id;
	r->slot_of[id] = slot;
	r->flags[slot] = flags;
	r->written++;
}

/* Blocks that are kept are logged after what needed the segment. */
static void append_pending(struct ring *r)
{
	while (r->nr_pending) {
		u32 id = r->pending[--r->nr_pending];

		if (r->slot_of[id] != NONE)
			continue;
		append(r, &r->promote, id, r->pending_flags[r->nr_pending]);
		r->kept++;
	}
}

static u8 ask(struct ring *r, const struct access *access)
{
	if (r->admit)
		return lc_admit_miss(r->admit, r->blocks[access->id], access->stream);
	return r->admit_all && access->stream <= CUTOFF ? LC_ADMIT_PROMOTED : 0;
}

/* The blocks that were missed in a row are read. */
static void end_run(struct ring *r)
{
	u32 i;

	for (i = 0; r->nr_yes && 2 * r->nr_yes >= r->nr_run && i < r->nr_run; i++) {
		append(r, r->admit ? &r->promote : &r->write, r->run[i], r->answer);
		r->promoted++;
	}
	r->nr_run = 0;
	r->nr_yes = 0;
	r->answer = LC_ADMIT_PROMOTED | LC_ADMIT_FIRST;
}

static void missed(struct ring *r, const struct access *access)
{
	u8 answer = ask(r, access);

	r->nr_yes += !!answer;
	if (answer)
		r->answer &= answer;
	r->run[r->nr_run++] = access->id;
	if (r->nr_run == READ_BLOCKS)
		end_run(r);
}

static void hit(struct ring *r, const struct access *access, u32 slot)
{
	/* How many segments were taken since this one was. */
	u64 age = (r->number - 1 + r->nr_segments - slot / SEGMENT) % r->nr_segments;

	r->flags[slot] = lc_admit_hit(r->flags[slot], age >= r->nr_segments / 2);
	if (r->admit && lc_admit_counts(r->blocks[access->id], r->accesses / READS_A_TICK))
		lc_admit_hits(r->admit);
}

static bool ring_access(void *cache, const struct access *access)
{
	struct ring *r = cache;
	u32 slot;

	r->accesses++;
	if (access->first || r->slot_of[access->id] != NONE)
		end_run(r);
	slot = r->slot_of[access->id];
	if (access->write) {
		append(r, &r->write, access->id, 0);
	} else if (slot != NONE) {
		hit(r, access, slot);
	} else {
		missed(r, access);
	}
	append_pending(r);
	return slot != NONE;
}

static void ring_tell(const void *cache)
{
	const struct ring *r = cache;

	fprintf(stderr, "promoted %llu, logged again %llu, written %llu\n",
		(unsigned long long)r->promoted, (unsigned long long)r->kept,
		(unsigned long long)r->written);
}

#define MODEL(_name, _create) \
	{ .name = _name, .create = _create, .access = ring_access, .written = ring_written, \
	  .tell = ring_tell, .destroy = ring_destroy }

const struct model sim_today = MODEL("writes only", today_create);
const struct model sim_writeboost = MODEL("writeboost", writeboost_create);
const struct model sim_lc = MODEL("lc", lc_create);
