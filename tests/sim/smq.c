// SPDX-License-Identifier: GPL-2.0-only
/*
 * A model of dm-cache with the policy smq, in writeback mode, with cache blocks of 4 KiB.
 *
 * As in dm-cache-policy-smq.c: a queue of hotspots, which are regions of the disk, has a quarter as
 * many entries as the cache, and levels up to which an entry rises by a swap each time it is hit in
 * a new period.  A missed block is promoted if its region is on a high level; how high follows from
 * how well the cache did lately.  The cache has such a queue of its own, the victim is the oldest
 * entry of the lowest level.  Periods are counted in accesses here.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define LEVELS		64u
#define REGION		16u		/* blocks */
#define HOT_PERIOD	1000u		/* accesses; a second in the policy */
#define CACHE_PERIOD	60000u

struct entry {
	u32 newer, older, key;
	u8 level, touched;
};

/* Entries by age on each level; the levels are filled evenly, as by q_redistribute(). */
struct queue {
	struct entry *entries;
	u32 *of;			/* by key: its entry, or NONE */
	u32 first[LEVELS], last[LEVELS], nr[LEVELS];
	u32 used, room, keys;
	u64 hits[LEVELS], all, misses;	/* of this period */
};

struct smq {
	struct queue hot, cache;
	const u64 *blocks;
	u32 *region_of;
	u32 promote;			/* the level from which blocks are promoted */
	u64 now, written;
};

static void queue_init(struct queue *q, u32 room, u32 keys)
{
	u32 i;

	memset(q, 0, sizeof(*q));
	q->room = room ? room : 1;
	q->keys = keys;
	q->entries = sim_alloc(q->room, sizeof(*q->entries));
	q->of = sim_alloc(keys, sizeof(u32));
	for (i = 0; i < keys; i++)
		q->of[i] = NONE;
	for (i = 0; i < LEVELS; i++)
		q->first[i] = q->last[i] = NONE;
}

static void unlink_entry(struct queue *q, u32 e)
{
	struct entry *one = &q->entries[e];

	if (one->newer != NONE)
		q->entries[one->newer].older = one->older;
	else
		q->first[one->level] = one->older;
	if (one->older != NONE)
		q->entries[one->older].newer = one->newer;
	else
		q->last[one->level] = one->newer;
	q->nr[one->level]--;
}

static void link_entry(struct queue *q, u32 e, u32 level)
{
	struct entry *one = &q->entries[e];

	one->level = level;
	one->newer = NONE;
	one->older = q->first[level];
	if (one->older != NONE)
		q->entries[one->older].newer = e;
	else
		q->last[level] = e;
	q->first[level] = e;
	q->nr[level]++;
}

/* Each level gets its part: from the top, the oldest go down, or those below come up. */
static void redistribute(struct queue *q)
{
	u32 level, part = q->used / LEVELS;

	for (level = LEVELS - 1; level; level--) {
		while (q->nr[level] > part) {
			u32 e = q->last[level];

			unlink_entry(q, e);
			link_entry(q, e, level - 1);
		}
		while (q->nr[level] < part) {
			u32 below = level, e;

			while (below && !q->nr[--below])
				;
			if (!q->nr[below] || below == level)
				break;
			e = q->first[below];
			unlink_entry(q, e);
			link_entry(q, e, level);
		}
	}
}

static u32 victim(struct queue *q)
{
	u32 level = 0, e;

	if (q->used < q->room)
		return q->used++;
	while (!q->nr[level])
		level++;
	e = q->last[level];
	unlink_entry(q, e);
	q->of[q->entries[e].key] = NONE;
	return e;
}

/* q_requeue(): up by some levels, and another one comes down for it. */
static void requeue(struct queue *q, u32 e, u32 up)
{
	u32 level = q->entries[e].level, to = level + up;

	if (to > LEVELS - 1)
		to = LEVELS - 1;
	unlink_entry(q, e);
	if (to != level && q->nr[to]) {
		u32 down = q->last[to];

		unlink_entry(q, down);
		link_entry(q, down, level);
	}
	link_entry(q, e, to);
}

static void touch(struct queue *q, u32 e, u32 up)
{
	q->hits[q->entries[e].level]++;
	q->all++;
	if (!q->entries[e].touched) {
		q->entries[e].touched = 1;
		requeue(q, e, up);
	}
}

static u32 insert(struct queue *q, u32 key, u32 level)
{
	u32 e = victim(q);

	q->entries[e].key = key;
	q->entries[e].touched = 1;
	q->of[key] = e;
	link_entry(q, e, level);
	return e;
}

static void end_period(struct queue *q)
{
	u32 i;

	redistribute(q);
	for (i = 0; i < q->used; i++)
		q->entries[i].touched = 0;
	memset(q->hits, 0, sizeof(q->hits));
	q->all = q->misses = 0;
}

static void *smq_create(const struct trace *trace, u32 slots)
{
	struct smq *s = sim_alloc(1, sizeof(*s));
	u64 highest = 0;
	u32 i;

	for (i = 0; i < trace->nr_ids; i++)
		highest = trace->blocks[i] > highest ? trace->blocks[i] : highest;
	s->blocks = trace->blocks;
	queue_init(&s->cache, slots, trace->nr_ids);
	queue_init(&s->hot, slots / 4 < 1024 ? 1024 : slots / 4, highest / REGION + 1);
	s->promote = LEVELS / 2;
	return s;
}

static void smq_destroy(void *cache)
{
	struct smq *s = cache;

	free(s->hot.entries);
	free(s->hot.of);
	free(s->cache.entries);
	free(s->cache.of);
	free(s);
}

static u64 smq_written(const void *cache)
{
	return ((const struct smq *)cache)->written;
}

/* stats_assess(): the hit ratio since the period began sets how readily blocks are promoted. */
static void assess(struct smq *s)
{
	u64 all = s->cache.all + s->cache.misses;
	u64 ratio = all ? s->cache.all * 16 / all : 0;

	if (ratio < 4)
		s->promote = LEVELS - LEVELS / 2 / 2;
	else if (ratio < 8)
		s->promote = LEVELS / 2;
	else
		s->promote = LEVELS - LEVELS / 2;
}

static bool hot_enough(struct smq *s, u32 id)
{
	u32 region = s->blocks[id] / REGION, e = s->hot.of[region];

	if (e != NONE)
		touch(&s->hot, e, LEVELS / 4);
	else
		e = insert(&s->hot, region, 0);
	return s->hot.entries[e].level >= s->promote;
}

static bool smq_access(void *cache, const struct access *access)
{
	struct smq *s = cache;
	u32 e = s->cache.of[access->id];

	if (++s->now % HOT_PERIOD == 0)
		end_period(&s->hot);
	if (s->now % CACHE_PERIOD == 0) {
		assess(s);
		end_period(&s->cache);
	}
	if (e != NONE) {
		hot_enough(s, access->id);
		touch(&s->cache, e, 1);
		s->written += access->write;
		return true;
	}
	s->cache.misses++;
	if (!hot_enough(s, access->id))
		return false;
	insert(&s->cache, access->id, LEVELS / 2);
	s->written++;
	return false;
}

const struct model sim_smq = {
	.name = "dm-cache",
	.create = smq_create,
	.access = smq_access,
	.written = smq_written,
	.destroy = smq_destroy,
};
