// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hash index over an array of nodes, one per slot.  See index.h.
 *
 * A node may be linked again for another block once it was unlinked: the slot
 * was reused.  lc_index_peek() may therefore return a mixture; callers lock the
 * bucket of the block they saw and look again.  What it reads is written with
 * WRITE_ONCE().
 */
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "format/lc_format.h"
#include "store/index.h"
#include "store/ring.h"

#define NODE_LINKED	1u
#define NODE_DIRTY	2u
#define NODE_REFUSED	4u
#define NODE_USE_SHIFT	3	/* LC_ADMIT_*: the five bits from here on */

/* So large that a shared cache line is touched once in thousands of updates. */
#define COUNTER_BATCH	4096

struct lc_node {
	u32 next;
	u32 block_lo;
	u8 block_hi;
	u8 mask;
	u8 lost;
	u8 flags;
};

static_assert(sizeof(struct lc_node) == 12);

static u64 node_block(const struct lc_node *n)
{
	return (u64)READ_ONCE(n->block_hi) << 32 | READ_ONCE(n->block_lo);
}

static void node_map(const struct lc_index *index, u32 slot, struct lc_mapping *map)
{
	const struct lc_node *n = &index->nodes[slot];

	map->slot = slot;
	map->mask = n->mask;
	map->lost = n->lost;
	map->dirty = n->flags & NODE_DIRTY;
	map->refused = n->flags & NODE_REFUSED;
	map->use = n->flags >> NODE_USE_SHIFT;
}

/*
 * The smaller the segments, the more of them, each with its struct and its header
 * slots: bucket heads get what these leave of the budget.  Locks take at most half a
 * byte a slot.
 */
static u64 heads_of_segment(u32 seg_slots)
{
	u64 budget = (u64)(seg_slots - LC_HEADER_SLOTS) * LC_INDEX_BUDGET;
	u64 fixed = (u64)seg_slots * sizeof(struct lc_node) + seg_slots / 2 +
		    sizeof(struct lc_segment);

	return clamp_t(u64, (budget - fixed) / sizeof(u32), seg_slots / 8, seg_slots / 8 * 5);
}

static u64 buckets(u64 nr_slots, u32 seg_slots)
{
	return max_t(u64, div_u64(nr_slots, seg_slots) * heads_of_segment(seg_slots), 16);
}

static u32 locks(u64 nr_slots)
{
	return clamp_t(u64, rounddown_pow_of_two(nr_slots / 128 + 1), 16, 4096);
}

u64 lc_index_need(u64 nr_slots, u32 seg_slots)
{
	return nr_slots * sizeof(struct lc_node) + buckets(nr_slots, seg_slots) * sizeof(u32) +
	       locks(nr_slots) * sizeof(struct lc_bucket_lock);
}

struct lc_index *lc_index_create(u64 nr_slots, u32 seg_slots)
{
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	struct lc_index *index = kzalloc(sizeof(*index), GFP_KERNEL);
	u32 nr_locks, i;

	if (!index)
		return NULL;
	index->nr_slots = nr_slots;
	index->nr_buckets = buckets(nr_slots, seg_slots);
	nr_locks = locks(nr_slots);
	index->lock_mask = nr_locks - 1;
	index->nodes = __vmalloc(nr_slots * sizeof(struct lc_node), gfp | __GFP_ZERO);
	index->heads = __vmalloc((u64)index->nr_buckets * sizeof(u32), gfp);
	index->locks = kvcalloc(nr_locks, sizeof(*index->locks), GFP_KERNEL);
	if (!index->nodes || !index->heads || !index->locks)
		goto free_arrays;
	if (percpu_counter_init(&index->cached, 0, GFP_KERNEL))
		goto free_arrays;
	if (percpu_counter_init(&index->dirty, 0, GFP_KERNEL))
		goto free_cached;
	for (i = 0; i < nr_locks; i++)
		spin_lock_init(&index->locks[i].lock);
	memset(index->heads, 0xff, (u64)index->nr_buckets * sizeof(u32));
	return index;

free_cached:
	percpu_counter_destroy(&index->cached);
free_arrays:
	kvfree(index->locks);
	vfree(index->heads);
	vfree(index->nodes);
	kfree(index);
	return NULL;
}

void lc_index_destroy(struct lc_index *index)
{
	if (!index)
		return;
	percpu_counter_destroy(&index->dirty);
	percpu_counter_destroy(&index->cached);
	kvfree(index->locks);
	vfree(index->heads);
	vfree(index->nodes);
	kfree(index);
}

void lc_index_clear(struct lc_index *index)
{
	memset(index->nodes, 0, index->nr_slots * sizeof(struct lc_node));
	memset(index->heads, 0xff, (u64)index->nr_buckets * sizeof(u32));
	percpu_counter_set(&index->cached, 0);
	percpu_counter_set(&index->dirty, 0);
	atomic64_set(&index->refused, 0);
	atomic64_set(&index->lost, 0);
}

/* Also where the host shim stands in for the kernel, which has no CONFIG_LOCKDEP. */
static void assert_locked(const struct lc_index *index, u32 bucket)
{
	lockdep_assert_held(&index->locks[bucket & index->lock_mask].lock);
}

#ifdef CONFIG_LOCKDEP
void lc_index_assert_locked(const struct lc_index *index, u32 bucket)
{
	assert_locked(index, bucket);
}
#endif

/* Returns the link that points at the node of @block, or NULL. */
static u32 *find_link(struct lc_index *index, u32 bucket, u64 block)
{
	u32 *link = &index->heads[bucket];

	assert_locked(index, bucket);
	while (*link != LC_NO_SLOT) {
		struct lc_node *n = &index->nodes[*link];

		if (node_block(n) == block)
			return link;
		link = &n->next;
	}
	return NULL;
}

bool lc_index_lookup(struct lc_index *index, u32 bucket, u64 block, struct lc_mapping *map)
{
	u32 *link = find_link(index, bucket, block);

	if (!link)
		return false;
	node_map(index, *link, map);
	return true;
}

bool lc_index_lock_slot(struct lc_index *index, u64 block, u32 slot, u32 *bucket,
			struct lc_mapping *map)
	__acquires(bucket)
{
	*bucket = lc_index_lock(index, block);
	return lc_index_lookup(index, *bucket, block, map) && map->slot == slot;
}

bool lc_index_mark_slot_lost(struct lc_index *index, u64 block, u32 slot)
{
	struct lc_mapping map;
	u32 bucket;
	bool lost;

	lost = lc_index_lock_slot(index, block, slot, &bucket, &map) && map.dirty && map.mask;
	if (lost) {
		lc_index_mark_lost(index, bucket, slot, map.mask);
		lc_index_clean(index, bucket, slot);
	}
	lc_index_unlock(index, bucket);
	return lost;
}

static void count(struct percpu_counter *counter, int change)
{
	if (change)
		percpu_counter_add_batch(counter, change, COUNTER_BATCH);
}

static void count_refused(struct lc_index *index, int change)
{
	if (change)
		atomic64_add(change, &index->refused);
}

static void count_lost(struct lc_index *index, u8 before, u8 after)
{
	if (!before != !after)
		atomic64_add(after ? 1 : -1, &index->lost);
}

/* [locked] */
static void set_lost(struct lc_index *index, u32 bucket, struct lc_node *n, u8 lost)
{
	assert_locked(index, bucket);
	count_lost(index, n->lost, lost);
	WRITE_ONCE(n->lost, lost);
}

/* [locked: @link is of find_link(), which asserts it] Without counting it out. */
static void unlink_node(struct lc_index *index, u32 *link, struct lc_mapping *old)
{
	struct lc_node *n = &index->nodes[*link];

	node_map(index, *link, old);
	/* Pairs with lc_index_absent(). */
	smp_store_release(link, n->next);
	WRITE_ONCE(n->flags, 0);
}

/* [locked, as unlink_node()] */
static void forget_node(struct lc_index *index, u32 *link, struct lc_mapping *old)
{
	unlink_node(index, link, old);
	count(&index->cached, -1);
	count(&index->dirty, -old->dirty);
	count_refused(index, -old->refused);
	count_lost(index, old->lost, 0);
}

bool lc_index_set(struct lc_index *index, u32 bucket, u64 block, const struct lc_mapping *map,
		  struct lc_mapping *old)
{
	struct lc_node *n = &index->nodes[map->slot];
	u32 *head = &index->heads[bucket], *link = find_link(index, bucket, block);
	bool replaced = link;

	if (WARN_ON_ONCE(n->flags & NODE_LINKED) && link) {
		forget_node(index, link, old);	/* a bug, but no loop in the chain */
		replaced = false;
	}
	WRITE_ONCE(n->block_lo, (u32)block);
	WRITE_ONCE(n->block_hi, (u8)(block >> 32));
	WRITE_ONCE(n->mask, map->mask);
	WRITE_ONCE(n->lost, map->lost);
	n->next = *head;
	WRITE_ONCE(*head, map->slot);
	WRITE_ONCE(n->flags, NODE_LINKED | (map->dirty ? NODE_DIRTY : 0) |
		   (map->refused ? NODE_REFUSED : 0) | map->use << NODE_USE_SHIFT);
	/* After the new node is linked: the block is cached all the time (I4). */
	if (replaced)
		unlink_node(index, link == head ? &n->next : link, old);
	count(&index->cached, !replaced);
	count(&index->dirty, map->dirty - (replaced && old->dirty));
	count_refused(index, map->refused - (replaced && old->refused));
	count_lost(index, replaced ? old->lost : 0, map->lost);
	return replaced;
}

void lc_index_add_sectors(struct lc_index *index, u32 bucket, u32 slot, u8 mask)
{
	struct lc_node *n = &index->nodes[slot];

	assert_locked(index, bucket);
	WRITE_ONCE(n->mask, n->mask | mask);
	set_lost(index, bucket, n, n->lost & ~mask);
}

void lc_index_hit(struct lc_index *index, u32 bucket, u32 slot, u8 use)
{
	struct lc_node *n = &index->nodes[slot];

	assert_locked(index, bucket);
	WRITE_ONCE(n->flags, (n->flags & ((1u << NODE_USE_SHIFT) - 1)) | use << NODE_USE_SHIFT);
}

bool lc_index_remove(struct lc_index *index, u32 bucket, u64 block, struct lc_mapping *old)
{
	u32 *link = find_link(index, bucket, block);

	if (!link)
		return false;
	forget_node(index, link, old);
	return true;
}

void lc_index_clean(struct lc_index *index, u32 bucket, u32 slot)
{
	struct lc_node *n = &index->nodes[slot];

	assert_locked(index, bucket);
	if (!(n->flags & NODE_DIRTY))
		return;
	if (n->flags & NODE_REFUSED)
		count_refused(index, -1);
	WRITE_ONCE(n->flags, n->flags & ~(NODE_DIRTY | NODE_REFUSED));
	count(&index->dirty, -1);
}

void lc_index_mark_lost(struct lc_index *index, u32 bucket, u32 slot, u8 mask)
{
	struct lc_node *n = &index->nodes[slot];

	assert_locked(index, bucket);
	set_lost(index, bucket, n, n->lost | mask);
	WRITE_ONCE(n->mask, 0);
	if (n->flags & NODE_REFUSED) {
		count_refused(index, -1);
		WRITE_ONCE(n->flags, n->flags & ~NODE_REFUSED);
	}
}

void lc_index_hdd_has(struct lc_index *index, u32 bucket, u64 block, u8 mask)
{
	u32 *link = find_link(index, bucket, block);
	struct lc_mapping old;
	struct lc_node *n;

	if (!link)
		return;
	n = &index->nodes[*link];
	WRITE_ONCE(n->mask, n->mask & ~mask);
	set_lost(index, bucket, n, n->lost & ~mask);
	if (!n->mask && !n->lost)
		forget_node(index, link, &old);
	else if (!n->mask)
		lc_index_clean(index, bucket, *link);
}

bool lc_index_peek(struct lc_index *index, u32 slot, u64 *block, struct lc_mapping *map)
{
	struct lc_node *n = &index->nodes[slot];
	u8 flags = READ_ONCE(n->flags);

	if (!(flags & NODE_LINKED))
		return false;
	*block = node_block(n);
	map->slot = slot;
	map->mask = READ_ONCE(n->mask);
	map->lost = READ_ONCE(n->lost);
	map->dirty = flags & NODE_DIRTY;
	map->refused = flags & NODE_REFUSED;
	map->use = flags >> NODE_USE_SHIFT;
	return true;
}

bool lc_index_next(struct lc_index *index, u64 *slot, u64 end, u64 *block,
		   struct lc_mapping *map)
{
	for (; *slot < end; ++*slot) {
		if (!(*slot & 1023))
			cond_resched();
		if (lc_index_peek(index, *slot, block, map))
			return true;
	}
	return false;
}

u64 lc_index_cached(struct lc_index *index)
{
	return percpu_counter_sum_positive(&index->cached);
}

u64 lc_index_dirty(struct lc_index *index)
{
	return percpu_counter_sum_positive(&index->dirty);
}

u64 lc_index_refused(struct lc_index *index)
{
	return atomic64_read(&index->refused);
}

u64 lc_index_lost(struct lc_index *index)
{
	return atomic64_read(&index->lost);
}

u64 lc_index_bytes(struct lc_index *index)
{
	return index->nr_slots * sizeof(struct lc_node) + (u64)index->nr_buckets * sizeof(u32) +
	       ((u64)index->lock_mask + 1) * sizeof(struct lc_bucket_lock);
}
