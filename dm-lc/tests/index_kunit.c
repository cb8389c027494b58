// SPDX-License-Identifier: GPL-2.0-only
/*
 * The index against a model that is too simple to be wrong: one array by block.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "../store/admit.h"
#include "../store/index.h"
#include "../store/ring.h"
#include "example.h"

static u64 kunit_seed;
module_param(kunit_seed, ullong, 0444);
MODULE_PARM_DESC(kunit_seed, "seed of the unit tests' random numbers, 0: a new one each time");

void lc_test_seed(struct kunit *test, struct rnd_state *rnd)
{
	u64 seed = kunit_seed ?: get_random_u32() + 1ULL;

	kunit_info(test, "repeat with kunit_seed=%llu", seed);
	prandom_seed_state(rnd, seed);
}

#define NR_SLOTS	1024
#define NR_BLOCKS	1536
#define ROUNDS		40000

/* The model; slot LC_NO_SLOT: not cached. */
struct model {
	struct lc_index *index;
	struct rnd_state rnd;
	struct lc_mapping by_block[NR_BLOCKS];
	u64 block_of[NR_BLOCKS];	/* real block numbers, up to 40 bits */
	int owner[NR_SLOTS];		/* model block in a slot, or -1 */
};

static void model_empty(struct model *m)
{
	u32 i;

	for (i = 0; i < NR_BLOCKS; i++)
		m->by_block[i].slot = LC_NO_SLOT;
	for (i = 0; i < NR_SLOTS; i++)
		m->owner[i] = -1;
}

static struct model *model_create(struct kunit *test)
{
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	lc_test_seed(test, &m->rnd);
	m->index = lc_index_create(NR_SLOTS, 256);
	KUNIT_ASSERT_NOT_NULL(test, m->index);
	model_empty(m);
	/* Neighbours, far ends, and numbers that differ above bit 32 only. */
	for (i = 0; i < NR_BLOCKS; i++) {
		u64 high = i % 3 == 1 ? 0xffULL << 32 : i % 3 == 2 ? LC_MAX_BLOCKS - NR_BLOCKS : 0;

		m->block_of[i] = high + (i % 3 == 1 ? i - 1 : i);
	}
	return m;
}

static void same_mapping(struct kunit *test, const struct lc_mapping *a,
			 const struct lc_mapping *b)
{
	KUNIT_EXPECT_EQ(test, a->slot, b->slot);
	KUNIT_EXPECT_EQ(test, a->mask, b->mask);
	KUNIT_EXPECT_EQ(test, a->lost, b->lost);
	KUNIT_EXPECT_EQ(test, a->dirty, b->dirty);
	KUNIT_EXPECT_EQ(test, a->use, b->use);
}

static void model_lookup(struct kunit *test, struct model *m, u32 i, u32 bucket)
{
	const struct lc_mapping *expect = &m->by_block[i];
	struct lc_mapping map;
	bool found = lc_index_lookup(m->index, bucket, m->block_of[i], &map);

	KUNIT_EXPECT_EQ(test, found, expect->slot != LC_NO_SLOT);
	if (found)
		same_mapping(test, &map, expect);
}

static void model_set(struct kunit *test, struct model *m, u32 i, u32 bucket)
{
	struct lc_mapping *have = &m->by_block[i], old;
	u32 random = prandom_u32_state(&m->rnd), slot = random % NR_SLOTS;
	struct lc_mapping map = {
		.slot = slot, .mask = random >> 10, .dirty = random & 1 << 30,
		.use = prandom_u32_state(&m->rnd) & LC_ADMIT_FLAGS,
	};

	map.lost = random >> 18 & ~map.mask;
	if (m->owner[slot] >= 0)
		return;
	KUNIT_EXPECT_EQ(test, lc_index_set(m->index, bucket, m->block_of[i], &map, &old),
			have->slot != LC_NO_SLOT);
	if (have->slot != LC_NO_SLOT) {
		same_mapping(test, &old, have);
		m->owner[have->slot] = -1;
	}
	*have = map;
	m->owner[slot] = i;
}

static void model_remove(struct kunit *test, struct model *m, u32 i, u32 bucket)
{
	struct lc_mapping *have = &m->by_block[i], old;
	bool found = lc_index_remove(m->index, bucket, m->block_of[i], &old);

	KUNIT_EXPECT_EQ(test, found, have->slot != LC_NO_SLOT);
	if (!found)
		return;
	same_mapping(test, &old, have);
	m->owner[have->slot] = -1;
	have->slot = LC_NO_SLOT;
}

static void model_hdd_has(struct model *m, u32 i, u32 bucket, u8 mask)
{
	struct lc_mapping *have = &m->by_block[i];

	lc_index_hdd_has(m->index, bucket, m->block_of[i], mask);
	if (have->slot == LC_NO_SLOT)
		return;
	have->mask &= ~mask;
	have->lost &= ~mask;
	have->dirty = have->dirty && have->mask;
	if (have->mask || have->lost)
		return;
	m->owner[have->slot] = -1;
	have->slot = LC_NO_SLOT;
}

static void model_step(struct kunit *test, struct model *m)
{
	u32 i = prandom_u32_state(&m->rnd) % NR_BLOCKS;
	u32 bucket = lc_index_lock(m->index, m->block_of[i]);
	struct lc_mapping *have = &m->by_block[i];
	u8 mask = prandom_u32_state(&m->rnd);

	switch (prandom_u32_state(&m->rnd) % 9) {
	case 0:
	case 1:
	case 2:
		model_set(test, m, i, bucket);
		break;
	case 3:
		model_remove(test, m, i, bucket);
		break;
	case 4:
		if (have->slot == LC_NO_SLOT)
			break;
		lc_index_add_sectors(m->index, bucket, have->slot, mask);
		have->mask |= mask;
		have->lost &= ~mask;
		break;
	case 5:
		if (have->slot == LC_NO_SLOT)
			break;
		lc_index_clean(m->index, bucket, have->slot);
		have->dirty = false;
		break;
	case 6:
		if (have->slot == LC_NO_SLOT)
			break;
		lc_index_mark_lost(m->index, bucket, have->slot, have->mask);
		have->lost |= have->mask;
		have->mask = 0;
		break;
	case 7:
		model_hdd_has(m, i, bucket, mask);
		break;
	case 8:
		if (have->slot == LC_NO_SLOT)
			break;
		have->use = mask & LC_ADMIT_FLAGS;
		lc_index_hit(m->index, bucket, have->slot, have->use);
		break;
	default:
		break;
	}
	model_lookup(test, m, i, bucket);
	lc_index_unlock(m->index, bucket);
}

static void model_compare(struct kunit *test, struct model *m)
{
	u64 cached = 0, dirty = 0, lost = 0, block;
	struct lc_mapping map;
	u32 i, bucket;

	for (i = 0; i < NR_BLOCKS; i++) {
		bucket = lc_index_lock(m->index, m->block_of[i]);
		model_lookup(test, m, i, bucket);
		lc_index_unlock(m->index, bucket);
		if (m->by_block[i].slot == LC_NO_SLOT)
			continue;
		cached++;
		dirty += m->by_block[i].dirty;
		lost += !!m->by_block[i].lost;
	}
	for (i = 0; i < NR_SLOTS; i++) {
		bool found = lc_index_peek(m->index, i, &block, &map);

		KUNIT_EXPECT_EQ(test, found, m->owner[i] >= 0);
		if (!found || m->owner[i] < 0)
			continue;
		KUNIT_EXPECT_EQ(test, block, m->block_of[m->owner[i]]);
		same_mapping(test, &map, &m->by_block[m->owner[i]]);
	}
	KUNIT_EXPECT_EQ(test, lc_index_cached(m->index), cached);
	KUNIT_EXPECT_EQ(test, lc_index_dirty(m->index), dirty);
	KUNIT_EXPECT_EQ(test, lc_index_lost(m->index), lost);	/* I5 */
}

static void against_model(struct kunit *test)
{
	struct model *m = model_create(test);
	u32 round;

	for (round = 0; round < ROUNDS; round++) {
		model_step(test, m);
		if (round % (ROUNDS / 8) == 0)
			model_compare(test, m);
		cond_resched();
	}
	model_compare(test, m);
	lc_index_clear(m->index);
	model_empty(m);
	model_compare(test, m);
	for (round = 0; round < 100; round++)
		model_step(test, m);
	model_compare(test, m);
	lc_index_destroy(m->index);
}

/* One block in every slot in turn, as a hot block of a wrapping log. */
static void hot_block(struct kunit *test)
{
	struct lc_index *index = lc_index_create(NR_SLOTS, 256);
	struct lc_mapping map = { .mask = 0xff }, old;
	u32 slot, bucket;

	KUNIT_ASSERT_NOT_NULL(test, index);
	for (slot = 0; slot < 3 * NR_SLOTS; slot++) {
		map.slot = slot % NR_SLOTS;
		map.dirty = slot & 1;
		bucket = lc_index_lock(index, 7);
		KUNIT_EXPECT_EQ(test, lc_index_set(index, bucket, 7, &map, &old), slot > 0);
		if (slot)
			KUNIT_EXPECT_EQ(test, old.slot, (slot - 1) % NR_SLOTS);
		lc_index_unlock(index, bucket);
	}
	KUNIT_EXPECT_EQ(test, lc_index_cached(index), 1);
	KUNIT_EXPECT_EQ(test, lc_index_dirty(index), 1);
	lc_index_destroy(index);
}

/* Every slot taken, the last one too, by sequential and by scattered blocks. */
static void full(struct kunit *test)
{
	static const u64 strides[] = { 1, 256, 4096, 1 << 20, 0x3e3779b1 };
	struct lc_index *index = lc_index_create(NR_SLOTS, 256);
	struct lc_mapping map = { .mask = 1, .dirty = true }, old;
	u32 i, slot, bucket;

	KUNIT_ASSERT_NOT_NULL(test, index);
	for (i = 0; i < ARRAY_SIZE(strides); i++) {
		for (slot = 0; slot < NR_SLOTS; slot++) {
			bucket = lc_index_lock(index, slot * strides[i]);
			map.slot = slot;
			KUNIT_EXPECT_FALSE(test, lc_index_set(index, bucket, slot * strides[i],
							      &map, &old));
			lc_index_unlock(index, bucket);
		}
		KUNIT_EXPECT_EQ(test, lc_index_cached(index), NR_SLOTS);
		for (slot = NR_SLOTS; slot--; ) {
			bucket = lc_index_lock(index, slot * strides[i]);
			KUNIT_EXPECT_TRUE(test, lc_index_remove(index, bucket, slot * strides[i],
								&old));
			KUNIT_EXPECT_EQ(test, old.slot, slot);
			lc_index_unlock(index, bucket);
		}
		KUNIT_EXPECT_EQ(test, lc_index_cached(index), 0);
		KUNIT_EXPECT_EQ(test, lc_index_dirty(index), 0);
	}
	lc_index_destroy(index);
}

/* --- promoted blocks ------------------------------------------------------- */

#define PENDING_SLOT	3
#define PENDING_USE	(LC_ADMIT_PROMOTED | LC_ADMIT_FIRST)

static bool set(struct lc_index *index, u64 block, const struct lc_mapping *map,
		struct lc_mapping *old)
{
	u32 bucket = lc_index_lock(index, block);
	bool replaced = lc_index_set(index, bucket, block, map, old);

	lc_index_unlock(index, bucket);
	return replaced;
}

/* Is the slot still the block's node? */
static bool linked(struct lc_index *index, u64 block, u32 slot, struct lc_mapping *map)
{
	u32 bucket;
	bool found = lc_index_lock_slot(index, block, slot, &bucket, map);

	lc_index_unlock(index, bucket);
	return found;
}

/* An index with one pending block, 7 (I6). */
static struct lc_index *pending_create(struct kunit *test)
{
	const struct lc_mapping pending = { .slot = PENDING_SLOT, .use = PENDING_USE };
	struct lc_index *index = lc_index_create(NR_SLOTS, 256);
	struct lc_mapping old;

	KUNIT_ASSERT_NOT_NULL(test, index);
	KUNIT_ASSERT_FALSE(test, set(index, 7, &pending, &old));
	return index;
}

static void expect_counts(struct kunit *test, struct lc_index *index, u64 cached, u64 dirty)
{
	KUNIT_EXPECT_EQ(test, lc_index_cached(index), cached);
	KUNIT_EXPECT_EQ(test, lc_index_dirty(index), dirty);
	KUNIT_EXPECT_EQ(test, lc_index_lost(index), 0);
	KUNIT_EXPECT_EQ(test, lc_index_refused(index), 0);
}

/* I6: linked, and no sector of it is in its slot, until it gets all of them at once. */
static void pending(struct kunit *test)
{
	const struct lc_mapping expect = { .slot = PENDING_SLOT, .use = PENDING_USE };
	struct lc_index *index = pending_create(test);
	struct lc_mapping map = {}, valid = expect;
	u64 block = 0;
	u32 bucket;

	expect_counts(test, index, 1, 0);
	KUNIT_EXPECT_FALSE(test, lc_index_absent(index, 7));
	KUNIT_ASSERT_TRUE(test, linked(index, 7, PENDING_SLOT, &map));
	same_mapping(test, &map, &expect);
	KUNIT_EXPECT_FALSE(test, linked(index, 7, PENDING_SLOT + 1, &map));
	KUNIT_ASSERT_TRUE(test, lc_index_peek(index, PENDING_SLOT, &block, &map));
	KUNIT_EXPECT_EQ(test, block, 7);
	same_mapping(test, &map, &expect);
	/* What fails to be read there loses nothing. */
	KUNIT_EXPECT_FALSE(test, lc_index_mark_slot_lost(index, 7, PENDING_SLOT));
	bucket = lc_index_lock(index, 7);
	lc_index_add_sectors(index, bucket, PENDING_SLOT, 0xff);
	lc_index_unlock(index, bucket);
	valid.mask = 0xff;
	KUNIT_ASSERT_TRUE(test, linked(index, 7, PENDING_SLOT, &map));
	same_mapping(test, &map, &valid);
	expect_counts(test, index, 1, 0);
	lc_index_destroy(index);
}

/* I6: a write replaces the node as any older copy, and the slot's filler does not find it. */
static void pending_is_written(struct kunit *test)
{
	const struct lc_mapping written = { .slot = 9, .mask = 0x0f, .dirty = true };
	struct lc_index *index = pending_create(test);
	struct lc_mapping old = {}, map = {};
	u64 block;

	KUNIT_EXPECT_TRUE(test, set(index, 7, &written, &old));
	KUNIT_EXPECT_EQ(test, old.slot, PENDING_SLOT);
	KUNIT_EXPECT_EQ(test, old.mask, 0);
	KUNIT_EXPECT_FALSE(test, linked(index, 7, PENDING_SLOT, &map));
	KUNIT_EXPECT_FALSE(test, lc_index_peek(index, PENDING_SLOT, &block, &map));
	KUNIT_ASSERT_TRUE(test, linked(index, 7, 9, &map));
	same_mapping(test, &map, &written);
	expect_counts(test, index, 1, 1);
	/* The slot may be taken for another block. */
	KUNIT_EXPECT_FALSE(test, set(index, 8, &(struct lc_mapping){ .slot = PENDING_SLOT },
				     &old));
	KUNIT_EXPECT_FALSE(test, linked(index, 7, PENDING_SLOT, &map));
	KUNIT_EXPECT_TRUE(test, linked(index, 8, PENDING_SLOT, &map));
	expect_counts(test, index, 2, 1);
	lc_index_destroy(index);
}

/* I6: so do a discard, and a write that goes to the HDD, whatever it writes. */
static void pending_is_dropped(struct kunit *test)
{
	struct lc_mapping old = {}, map = {};
	struct lc_index *index;
	u32 way, bucket;

	for (way = 0; way < 2; way++) {
		index = pending_create(test);
		bucket = lc_index_lock(index, 7);
		if (way) {
			lc_index_hdd_has(index, bucket, 7, 0x01);
		} else {
			KUNIT_EXPECT_TRUE(test, lc_index_remove(index, bucket, 7, &old));
			KUNIT_EXPECT_EQ(test, old.slot, PENDING_SLOT);
			KUNIT_EXPECT_EQ(test, old.use, PENDING_USE);
		}
		lc_index_unlock(index, bucket);
		KUNIT_EXPECT_FALSE_MSG(test, linked(index, 7, PENDING_SLOT, &map), "way %u", way);
		KUNIT_EXPECT_TRUE_MSG(test, lc_index_absent(index, 7), "way %u", way);
		expect_counts(test, index, 0, 0);
		lc_index_destroy(index);
	}
}

/* Each use beside each state, whatever happens to the node.  A hit changes nothing else. */
static void uses(struct kunit *test)
{
	struct lc_index *index = lc_index_create(NR_SLOTS, 256);
	struct lc_mapping map = {}, old;
	u32 bucket, use, next;

	KUNIT_ASSERT_NOT_NULL(test, index);
	for (use = 0; use <= LC_ADMIT_FLAGS; use++) {
		struct lc_mapping first = {
			.slot = use, .mask = 0x3f, .lost = 0x80, .dirty = use & 1,
			.refused = use & 1, .use = use,
		};

		next = ~use & LC_ADMIT_FLAGS;
		set(index, use, &first, &old);
		KUNIT_ASSERT_TRUE(test, linked(index, use, use, &map));
		same_mapping(test, &map, &first);
		bucket = lc_index_lock(index, use);
		lc_index_hit(index, bucket, use, next);
		lc_index_unlock(index, bucket);
		first.use = next;
		KUNIT_ASSERT_TRUE(test, linked(index, use, use, &map));
		same_mapping(test, &map, &first);
		KUNIT_EXPECT_EQ(test, map.refused, first.refused);
		KUNIT_EXPECT_EQ(test, lc_index_refused(index), first.refused);
		bucket = lc_index_lock(index, use);
		lc_index_add_sectors(index, bucket, use, 0x40);
		lc_index_mark_lost(index, bucket, use, 0x01);
		lc_index_clean(index, bucket, use);
		KUNIT_ASSERT_TRUE(test, lc_index_lookup(index, bucket, use, &map));
		KUNIT_EXPECT_EQ(test, map.use, next);
		/* Whatever the slot is used for next, it has none of that. */
		KUNIT_EXPECT_TRUE(test, lc_index_remove(index, bucket, use, &old));
		KUNIT_EXPECT_EQ(test, old.use, next);
		lc_index_unlock(index, bucket);
		set(index, use, &(struct lc_mapping){ .slot = use, .mask = 1 }, &old);
		KUNIT_ASSERT_TRUE(test, linked(index, use, use, &map));
		KUNIT_EXPECT_EQ(test, map.use, 0);
	}
	lc_index_destroy(index);
}

/* --- several at once ------------------------------------------------------ */

#define THREADS		4

struct worker {
	struct lc_index *index;
	struct task_struct *task;
	struct rnd_state rnd;
	u32 first_slot;		/* its own NR_SLOTS / THREADS slots */
	u32 wrong;
};

/* All workers fight for the same blocks, each with slots of its own. */
static int worker_thread(void *data)
{
	struct worker *w = data;
	u32 round, bucket, slot;
	struct lc_mapping map = { .dirty = true }, old, now;
	u64 block, seen;

	for (round = 0; round < 20000; round++) {
		block = prandom_u32_state(&w->rnd) % 200;
		slot = w->first_slot + round % (NR_SLOTS / THREADS);
		if (lc_index_peek(w->index, slot, &seen, &now)) {
			bucket = lc_index_lock(w->index, seen);
			if (lc_index_lookup(w->index, bucket, seen, &now) && now.slot == slot)
				lc_index_remove(w->index, bucket, seen, &old);
			lc_index_unlock(w->index, bucket);
		}
		map.slot = slot;
		map.mask = block | 1;
		bucket = lc_index_lock(w->index, block);
		lc_index_set(w->index, bucket, block, &map, &old);
		if (!lc_index_lookup(w->index, bucket, block, &now) || now.slot != slot ||
		    now.mask != map.mask)
			w->wrong++;
		if (round & 1)
			lc_index_clean(w->index, bucket, slot);
		lc_index_unlock(w->index, bucket);
		cond_resched();
	}
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

static void concurrent(struct kunit *test)
{
	struct lc_index *index = lc_index_create(NR_SLOTS, 256);
	struct worker workers[THREADS] = {};
	u64 found = 0, dirty = 0, block;
	struct lc_mapping map;
	struct rnd_state rnd;
	u32 i, bucket;

	KUNIT_ASSERT_NOT_NULL(test, index);
	lc_test_seed(test, &rnd);
	for (i = 0; i < THREADS; i++) {
		workers[i].index = index;
		workers[i].first_slot = i * (NR_SLOTS / THREADS);
		prandom_seed_state(&workers[i].rnd, prandom_u32_state(&rnd));
		workers[i].task = kthread_run(worker_thread, &workers[i], "lc-test/%u", i);
	}
	for (i = 0; i < THREADS; i++) {
		if (!IS_ERR(workers[i].task))
			kthread_stop(workers[i].task);
		KUNIT_EXPECT_FALSE(test, IS_ERR(workers[i].task));
		KUNIT_EXPECT_EQ(test, workers[i].wrong, 0);
	}
	for (block = 0; block < 200; block++) {
		bucket = lc_index_lock(index, block);
		if (lc_index_lookup(index, bucket, block, &map)) {
			found++;
			dirty += map.dirty;
			KUNIT_EXPECT_EQ(test, map.mask, block | 1);
		}
		lc_index_unlock(index, bucket);
	}
	KUNIT_EXPECT_EQ(test, lc_index_cached(index), found);
	KUNIT_EXPECT_EQ(test, lc_index_dirty(index), dirty);
	lc_index_destroy(index);
}

#define REPLACED	100000

static int replacer_thread(void *data)
{
	struct worker *w = data;
	struct lc_mapping map = { .mask = 0xff }, old;
	u32 bucket;

	while (!kthread_should_stop()) {
		WRITE_ONCE(w->wrong, w->wrong + 1);	/* here: how often */
		map.slot = !map.slot;
		bucket = lc_index_lock(w->index, 7);
		lc_index_set(w->index, bucket, 7, &map, &old);
		lc_index_unlock(w->index, bucket);
		cond_resched();
	}
	return 0;
}

/* I4: a block that is replaced again and again is never absent in between. */
static void never_absent(struct kunit *test)
{
	struct worker w = { .index = lc_index_create(NR_SLOTS, 256) };
	struct lc_mapping map = { .mask = 0xff }, old;
	u32 bucket, absent = 0;

	if (num_online_cpus() == 1)
		kunit_skip(test, "nobody can look in between on one CPU");
	KUNIT_ASSERT_NOT_NULL(test, w.index);
	KUNIT_EXPECT_TRUE(test, lc_index_absent(w.index, 7));
	bucket = lc_index_lock(w.index, 7);
	lc_index_set(w.index, bucket, 7, &map, &old);
	lc_index_unlock(w.index, bucket);
	w.task = kthread_run(replacer_thread, &w, "lc-test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(w.task));
	while (READ_ONCE(w.wrong) < REPLACED) {
		absent += lc_index_absent(w.index, 7);
		cond_resched();
	}
	kthread_stop(w.task);
	KUNIT_EXPECT_EQ(test, absent, 0);
	bucket = lc_index_lock(w.index, 7);
	KUNIT_EXPECT_TRUE(test, lc_index_remove(w.index, bucket, 7, &old));
	lc_index_unlock(w.index, bucket);
	KUNIT_EXPECT_TRUE(test, lc_index_absent(w.index, 7));
	KUNIT_EXPECT_EQ(test, lc_index_cached(w.index), 0);
	lc_index_destroy(w.index);
}

/* --- memory --------------------------------------------------------------- */

struct ram {
	const char *name;
	u64 cache_bytes;
	u32 segment_bytes;
};

static const struct ram rams[] = {
	{ "64 MiB, 64 KiB", 64ULL << 20, 64 << 10 },
	{ "256 MiB, 256 KiB", 256ULL << 20, 256 << 10 },
	{ "1 GiB, 256 KiB", 1ULL << 30, 256 << 10 },
	{ "1 GiB, 1 MiB", 1ULL << 30, 1 << 20 },
	{ "4 GiB, 64 KiB", 4ULL << 30, 64 << 10 },
	{ "4 GiB, 128 KiB", 4ULL << 30, 128 << 10 },
	{ "4 GiB, 1 MiB", 4ULL << 30, 1 << 20 },
	{ "8 GiB, 4 MiB", 8ULL << 30, 4 << 20 },
};

KUNIT_ARRAY_PARAM_DESC(rams, rams, name);

/*
 * At most 16 bytes of RAM per data slot, the segments included.  A debug kernel's locks
 * are larger than those of a normal one, so what locks take is left out; that is
 * 64 bytes for 128 slots and at most 256 KiB.
 */
static void memory(struct kunit *test)
{
	const struct ram *ram = test->param_value;
	struct lc_geometry geo;
	struct lc_index *index;
	u64 bytes, locks, blocks;

	KUNIT_ASSERT_EQ(test, lc_geometry_compute(&geo, ram->cache_bytes, ram->segment_bytes), 0);
	index = lc_index_create(geo.nr_slots, geo.seg_slots);
	KUNIT_ASSERT_NOT_NULL(test, index);
	bytes = lc_index_bytes(index) + geo.nr_segments * sizeof(struct lc_segment);
	locks = clamp_t(u64, rounddown_pow_of_two(geo.nr_slots / 128 + 1), 16, 4096);
	bytes -= locks * (round_up(sizeof(spinlock_t), SMP_CACHE_BYTES) - SMP_CACHE_BYTES);
	blocks = geo.nr_slots - geo.nr_segments * LC_HEADER_SLOTS;
	kunit_info(test, "%s: %llu blocks, %llu.%02llu bytes each", ram->name, blocks,
		   bytes / blocks, bytes * 100 / blocks % 100);
	KUNIT_EXPECT_LE(test, bytes, LC_INDEX_BUDGET * blocks);
	lc_index_destroy(index);
}

static struct kunit_case index_cases[] = {
	KUNIT_CASE(against_model),
	KUNIT_CASE(hot_block),
	KUNIT_CASE(full),
	KUNIT_CASE(pending),
	KUNIT_CASE(pending_is_written),
	KUNIT_CASE(pending_is_dropped),
	KUNIT_CASE(uses),
	KUNIT_CASE(concurrent),
	KUNIT_CASE(never_absent),
	KUNIT_CASE_PARAM(memory, rams_gen_params),
	{}
};

static struct kunit_suite index_suite = {
	.name = "dm_lc_index",
	.test_cases = index_cases,
};

kunit_test_suite(index_suite);
