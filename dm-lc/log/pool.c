// SPDX-License-Identifier: GPL-2.0-only
/*
 * Write buffers: their memory, the pool of them, and who holds one.  See pool.h.
 */
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "log/pool.h"
#include "store/env.h"
#include "store/ring.h"

struct lc_pool *lc_pool_create(struct lc_env *env, struct lc_ring *ring, u32 nr_lane_pools)
{
	struct lc_pool *pool = kzalloc(struct_size(pool, lane_pools, nr_lane_pools), GFP_KERNEL);
	u32 i;

	if (!pool)
		return NULL;
	pool->env = env;
	pool->ring = ring;
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->all);
	pool->wanted = U32_MAX;
	pool->nr_lane_pools = nr_lane_pools;
	for (i = 0; i < nr_lane_pools; i++) {
		INIT_LIST_HEAD(&pool->lane_pools[i].free);
		pool->lane_pools[i].node = NUMA_NO_NODE;
	}
	return pool;
}

void lc_pool_set_node(struct lc_pool *pool, u32 lane_pool, int node)
{
	pool->lane_pools[lane_pool].node = node;
}

void lc_pool_bind(struct lc_pool *pool, struct lc_submit *submit)
{
	pool->submit = submit;
}

static void buffer_free(struct lc_buffer *buf)
{
	u32 i;

	for (i = 0; i < buf->nr_chunks; i++)
		__free_pages(buf->chunks[i], buf->orders[i]);
	kvfree(buf->chunks);
	kvfree(buf->orders);
	kvfree(buf->slots);
	kvfree(buf->records);
	kfree(buf);
}

/* The largest pieces the page allocator gives without effort, down to pages. */
static int buffer_alloc_chunks(struct lc_buffer *buf, u32 nr_slots, int node)
{
	unsigned int order = LC_CHUNK_ORDER;
	u32 slot = 0, i;

	while (slot < nr_slots) {
		gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN;
		struct page *page;

		while (order && (1u << order) > nr_slots - slot)
			order--;
		/* No process is to be killed for the single pages either. */
		gfp |= order ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
		page = alloc_pages_node(node, gfp, order);
		if (!page) {
			if (!order)
				return -ENOMEM;
			order--;
			continue;
		}
		buf->chunks[buf->nr_chunks] = page;
		buf->orders[buf->nr_chunks++] = order;
		for (i = 0; i < 1u << order; i++)
			buf->slots[slot++] = page_address(page) + i * PAGE_SIZE;
	}
	return 0;
}

static struct lc_buffer *buffer_alloc(struct lc_pool *pool, u32 lane_pool)
{
	u32 nr_slots = 1u << pool->ring->slot_shift;
	int node = pool->lane_pools[lane_pool].node;
	struct lc_buffer *buf = kzalloc_node(sizeof(*buf), GFP_KERNEL, node);
	gfp_t gfp = GFP_KERNEL | __GFP_ZERO;

	if (!buf)
		return NULL;
	buf->pool = pool;
	buf->lane_pool = lane_pool;
	buf->slots = kvmalloc_node(nr_slots * sizeof(*buf->slots), gfp, node);
	buf->chunks = kvcalloc(nr_slots, sizeof(*buf->chunks), GFP_KERNEL);
	buf->orders = kvcalloc(nr_slots, sizeof(*buf->orders), GFP_KERNEL);
	/* Every record has a header; one without data slots is possible. */
	buf->records = kvmalloc_node(nr_slots * sizeof(*buf->records), gfp, node);
	if (!buf->slots || !buf->chunks || !buf->orders || !buf->records ||
	    buffer_alloc_chunks(buf, nr_slots, node)) {
		buffer_free(buf);
		return NULL;
	}
	return buf;
}

int lc_buffers_alloc(struct lc_pool *pool, u32 nr, struct list_head *list)
{
	u32 lane_pool = READ_ONCE(pool->nr);
	LIST_HEAD(fresh);

	BUILD_BUG_ON_MSG(PAGE_SIZE != LC_SLOT_BYTES, "dm-lc needs a kernel with pages of 4 KiB");
	if ((u64)nr << pool->ring->slot_shift > totalram_pages() / 2)
		return -ENOMEM;
	while (nr--) {
		struct lc_buffer *buf = buffer_alloc(pool, lane_pool++ % pool->nr_lane_pools);

		if (!buf) {
			lc_buffers_free(&fresh);
			return -ENOMEM;
		}
		list_add(&buf->list, &fresh);
	}
	list_splice(&fresh, list);
	return 0;
}

void lc_buffers_free(struct list_head *list)
{
	struct lc_buffer *buf, *tmp;

	list_for_each_entry_safe(buf, tmp, list, list)
		buffer_free(buf);
	INIT_LIST_HEAD(list);
}

void lc_pool_destroy(struct lc_pool *pool)
{
	struct lc_buffer *buf, *tmp;

	if (!pool)
		return;
	list_for_each_entry_safe(buf, tmp, &pool->all, all)
		buffer_free(buf);
	kfree(pool);
}

void lc_pool_add(struct lc_pool *pool, struct list_head *list)
{
	struct lc_buffer *buf, *tmp;
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	list_for_each_entry_safe(buf, tmp, list, list) {
		struct lc_lane_pool *lane_pool = &pool->lane_pools[buf->lane_pool];

		list_add(&buf->all, &pool->all);
		list_move(&buf->list, &lane_pool->free);
		WRITE_ONCE(lane_pool->nr_free, lane_pool->nr_free + 1);
		WRITE_ONCE(lane_pool->nr, lane_pool->nr + 1);
		WRITE_ONCE(pool->nr, pool->nr + 1);
	}
	spin_unlock_irqrestore(&pool->lock, flags);
}

/* [lock] Take a free buffer out of a lane's pool. */
static struct lc_buffer *lane_pool_take(struct lc_pool *pool, u32 i)
{
	struct lc_lane_pool *lane_pool = &pool->lane_pools[i];
	struct lc_buffer *buf;

	lockdep_assert_held(&pool->lock);
	buf = list_first_entry_or_null(&lane_pool->free, struct lc_buffer, list);
	if (buf) {
		list_del(&buf->list);
		WRITE_ONCE(lane_pool->nr_free, lane_pool->nr_free - 1);
	}
	return buf;
}

/*
 * Free what is free beyond the wanted number; the rest when it comes back.  Each lane's pool keeps
 * its share.
 */
static void pool_trim(struct lc_pool *pool)
{
	struct lc_buffer *buf;
	LIST_HEAD(drop);
	u32 i, share, wanted;

	spin_lock_irq(&pool->lock);
	wanted = READ_ONCE(pool->wanted);
	for (i = 0; i < pool->nr_lane_pools; i++) {
		struct lc_lane_pool *lane_pool = &pool->lane_pools[i];

		share = wanted / pool->nr_lane_pools + (i < wanted % pool->nr_lane_pools);
		while (pool->nr > wanted && lane_pool->nr > share &&
		       (buf = lane_pool_take(pool, i))) {
			list_add(&buf->list, &drop);
			list_del(&buf->all);
			WRITE_ONCE(lane_pool->nr, lane_pool->nr - 1);
			WRITE_ONCE(pool->nr, pool->nr - 1);
		}
	}
	spin_unlock_irq(&pool->lock);
	/* lc_buffer_pin() or try_reserve() may be looking at one of them. */
	if (!list_empty(&drop))
		synchronize_rcu();
	lc_buffers_free(&drop);
}

void lc_pool_shrink(struct lc_pool *pool, u32 nr)
{
	WRITE_ONCE(pool->wanted, nr);
	pool_trim(pool);
}

struct lc_buffer *lc_pool_get(struct lc_pool *pool, u32 lane_pool)
{
	struct lc_buffer *buf;

	if (READ_ONCE(pool->nr) > READ_ONCE(pool->wanted))
		pool_trim(pool);
	spin_lock_irq(&pool->lock);
	buf = lane_pool_take(pool, lane_pool);
	spin_unlock_irq(&pool->lock);
	if (buf)
		atomic_set(&buf->pins, 1);
	return buf;
}

void lc_buffer_make_ready(struct lc_buffer *buf, struct lc_lane *lane)
{
	buf->nr_records = 0;
	buf->undurable = 0;
	buf->unwritten = 0;
	buf->closed = false;
	buf->lane = lane;
}

void lc_buffer_set_segment(struct lc_buffer *buf, u64 number, u64 boundary)
{
	WRITE_ONCE(buf->segment, number);
	buf->position = lc_ring_position(buf->pool->ring, number);
	buf->boundary = boundary;
	WRITE_ONCE(buf->end, 1u << buf->pool->ring->slot_shift);
}

void lc_buffer_count_unflushed(struct lc_buffer *buf, int change)
{
	struct lc_lane_pool *lane_pool = &buf->pool->lane_pools[buf->lane_pool];

	WRITE_ONCE(lane_pool->nr_unflushed, lane_pool->nr_unflushed + change);
}

u32 lc_pool_used(const struct lc_pool *pool)
{
	u32 nr = READ_ONCE(pool->nr), nr_free = 0, i;

	for (i = 0; i < pool->nr_lane_pools; i++)
		nr_free += READ_ONCE(pool->lane_pools[i].nr_free);
	return nr - min(nr, nr_free);
}

void lc_buffer_unpin(struct lc_buffer *buf)
{
	struct lc_pool *pool = buf->pool;
	struct lc_lane_pool *lane_pool = &pool->lane_pools[buf->lane_pool];
	unsigned long flags;

	if (!atomic_dec_and_test(&buf->pins))
		return;
	spin_lock_irqsave(&pool->lock, flags);
	list_add(&buf->list, &lane_pool->free);
	WRITE_ONCE(lane_pool->nr_free, lane_pool->nr_free + 1);
	spin_unlock_irqrestore(&pool->lock, flags);
	lc_kick(&pool->env->refill);
}

struct lc_buffer *lc_buffer_try_pin(struct lc_ring *ring, u32 slot)
{
	struct lc_segment *seg = lc_ring_segment(ring, slot);
	struct lc_buffer *buf;

	rcu_read_lock();
	buf = rcu_dereference(seg->buf);
	if (buf && !atomic_inc_not_zero(&buf->pins))
		buf = NULL;
	/*
	 * It may have been recycled for another segment between the two steps;
	 * then this segment was durable before we looked.  Or the slot is in the part of the
	 * segment that the buffer does not have.
	 */
	if (buf && (rcu_access_pointer(seg->buf) != buf ||
		    lc_ring_slot_in_segment(ring, slot) >= READ_ONCE(buf->end))) {
		lc_buffer_unpin(buf);
		buf = NULL;
	}
	rcu_read_unlock();
	return buf;
}
