// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policies of papers that every cache is compared with: FIFO, LRU, SIEVE, S3-FIFO and ARC.
 *
 * They admit all but long sequential reads.  A write is admitted, too, and each is written to the
 * SSD.  A cached block, or one that a ghost remembers, is on one list.
 */
#include <stdlib.h>

#include "sim.h"

#define LISTS	4u

struct list {
	u32 first, last;	/* the newest, the oldest */
	u32 nr;
};

struct lists {
	u32 *newer, *older;
	u8 *on;			/* of each block: its list, or LISTS */
	u8 *hits;
	struct list list[LISTS];
	u32 slots;
	u32 hand;		/* SIEVE's */
	u32 target;		/* ARC's for list 0 */
	u64 written;
};

static void *lists_create(const struct trace *trace, u32 slots)
{
	struct lists *l = sim_alloc(1, sizeof(*l));
	u32 i;

	l->newer = sim_alloc(trace->nr_ids, sizeof(u32));
	l->older = sim_alloc(trace->nr_ids, sizeof(u32));
	l->on = sim_alloc(trace->nr_ids, 1);
	l->hits = sim_alloc(trace->nr_ids, 1);
	for (i = 0; i < trace->nr_ids; i++)
		l->on[i] = LISTS;
	for (i = 0; i < LISTS; i++)
		l->list[i] = (struct list) { NONE, NONE, 0 };
	l->slots = slots;
	l->hand = NONE;
	return l;
}

static void lists_destroy(void *cache)
{
	struct lists *l = cache;

	free(l->newer);
	free(l->older);
	free(l->on);
	free(l->hits);
	free(l);
}

static u64 lists_written(const void *cache)
{
	return ((const struct lists *)cache)->written;
}

static void put(struct lists *l, u32 to, u32 id)
{
	struct list *list = &l->list[to];

	l->on[id] = to;
	l->newer[id] = NONE;
	l->older[id] = list->first;
	if (list->first != NONE)
		l->newer[list->first] = id;
	else
		list->last = id;
	list->first = id;
	list->nr++;
}

static void take(struct lists *l, u32 id)
{
	struct list *list = &l->list[l->on[id]];

	if (l->newer[id] != NONE)
		l->older[l->newer[id]] = l->older[id];
	else
		list->first = l->older[id];
	if (l->older[id] != NONE)
		l->newer[l->older[id]] = l->newer[id];
	else
		list->last = l->newer[id];
	list->nr--;
	l->on[id] = LISTS;
}

static void move(struct lists *l, u32 to, u32 id)
{
	take(l, id);
	put(l, to, id);
}

/* --- FIFO and LRU: list 0 -------------------------------------------------- */

static bool fifo_or_lru(struct lists *l, const struct access *access, bool lru)
{
	l->written += access->write;
	if (l->on[access->id] == 0) {
		if (lru)
			move(l, 0, access->id);
		return true;
	}
	if (access->stream > CUTOFF)
		return false;
	l->written += !access->write;
	if (l->list[0].nr == l->slots)
		take(l, l->list[0].last);
	put(l, 0, access->id);
	return false;
}

static bool fifo_access(void *cache, const struct access *access)
{
	return fifo_or_lru(cache, access, false);
}

static bool lru_access(void *cache, const struct access *access)
{
	return fifo_or_lru(cache, access, true);
}

/* --- SIEVE: a hand over list 0, from the oldest to the newest --------------- */

static void sieve_evict(struct lists *l)
{
	u32 id = l->hand;

	if (id == NONE)
		id = l->list[0].last;
	while (l->hits[id]) {
		l->hits[id] = 0;
		id = l->newer[id];
		if (id == NONE)
			id = l->list[0].last;
	}
	l->hand = l->newer[id];
	take(l, id);
}

static bool sieve_access(void *cache, const struct access *access)
{
	struct lists *l = cache;

	l->written += access->write;
	if (l->on[access->id] == 0) {
		l->hits[access->id] = 1;
		return true;
	}
	if (access->stream > CUTOFF)
		return false;
	l->written += !access->write;
	if (l->list[0].nr == l->slots)
		sieve_evict(l);
	l->hits[access->id] = 0;
	put(l, 0, access->id);
	return false;
}

/* --- S3-FIFO: list 0 small, 1 main, 2 ghost --------------------------------- */

static void s3_evict_main(struct lists *l)
{
	for (;;) {
		u32 id = l->list[1].last;

		if (!l->hits[id]) {
			take(l, id);
			return;
		}
		l->hits[id]--;
		move(l, 1, id);
	}
}

static void s3_evict(struct lists *l)
{
	u32 id = l->list[0].last;

	if (l->list[0].nr < l->slots / 10 || !l->list[0].nr) {
		s3_evict_main(l);
		return;
	}
	if (l->hits[id] > 1) {
		l->hits[id] = 0;
		move(l, 1, id);
		if (l->list[1].nr > l->slots - l->slots / 10)
			s3_evict_main(l);
		return;
	}
	if (l->list[2].nr == l->slots - l->slots / 10)
		take(l, l->list[2].last);
	move(l, 2, id);
}

static bool s3_access(void *cache, const struct access *access)
{
	struct lists *l = cache;
	u32 to = 0;

	l->written += access->write;
	if (l->on[access->id] < 2) {
		if (l->hits[access->id] < 3)
			l->hits[access->id]++;
		return true;
	}
	if (access->stream > CUTOFF)
		return false;
	l->written += !access->write;
	while (l->list[0].nr + l->list[1].nr >= l->slots)
		s3_evict(l);
	if (l->on[access->id] == 2) {
		take(l, access->id);
		to = 1;
	}
	l->hits[access->id] = 0;
	put(l, to, access->id);
	return false;
}

/* --- ARC: lists 0 and 1 cached, seen once and more often, 2 and 3 their ghosts --- */

static void arc_replace(struct lists *l, bool from_frequent_ghost)
{
	u32 recent = l->list[0].nr;

	if (recent && (recent > l->target || (from_frequent_ghost && recent == l->target)))
		move(l, 2, l->list[0].last);
	else if (l->list[1].nr)
		move(l, 3, l->list[1].last);
	else
		move(l, 2, l->list[0].last);
}

static void arc_adapt(struct lists *l, u32 ghost)
{
	u32 mine = l->list[ghost].nr, other = l->list[5 - ghost].nr;
	u32 step = other > mine ? other / mine : 1;

	if (ghost == 2)
		l->target = l->target + step > l->slots ? l->slots : l->target + step;
	else
		l->target = l->target < step ? 0 : l->target - step;
}

/* Make room for a block that nobody remembers. */
static void arc_room(struct lists *l)
{
	u32 cached = l->list[0].nr + l->list[1].nr;

	if (l->list[0].nr + l->list[2].nr == l->slots) {
		if (l->list[0].nr < l->slots) {
			take(l, l->list[2].last);
			arc_replace(l, false);
		} else {
			take(l, l->list[0].last);
		}
	} else if (cached + l->list[2].nr + l->list[3].nr >= l->slots) {
		if (cached + l->list[2].nr + l->list[3].nr == 2 * l->slots)
			take(l, l->list[3].last);
		if (cached == l->slots)
			arc_replace(l, false);
	}
}

static bool arc_access(void *cache, const struct access *access)
{
	struct lists *l = cache;
	u32 on = l->on[access->id];

	l->written += access->write;
	if (on < 2) {
		move(l, 1, access->id);
		return true;
	}
	if (access->stream > CUTOFF)
		return false;
	l->written += !access->write;
	if (on < LISTS) {
		arc_adapt(l, on);
		if (l->list[0].nr + l->list[1].nr == l->slots)
			arc_replace(l, on == 3);
		move(l, 1, access->id);
		return false;
	}
	arc_room(l);
	put(l, 0, access->id);
	return false;
}

#define MODEL(_name, _access) \
	{ .name = _name, .create = lists_create, .access = _access, .written = lists_written, \
	  .destroy = lists_destroy }

const struct model sim_fifo = MODEL("FIFO", fifo_access);
const struct model sim_lru = MODEL("LRU", lru_access);
const struct model sim_sieve = MODEL("SIEVE", sieve_access);
const struct model sim_s3fifo = MODEL("S3-FIFO", s3_access);
const struct model sim_arc = MODEL("ARC", arc_access);
