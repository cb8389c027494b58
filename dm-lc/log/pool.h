/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Write buffers: their memory, the pool of them, and who holds one.
 *
 * A buffer is the RAM image of one segment.  Its life:
 *
 *   free -> ready -> open (has its segment) -> closed -> free
 *         refill worker             lane                      log: all durable
 *
 * Invariants
 *  B2 segment->buf is set before the first slot is reserved, and stays set at least until
 *     every record of the buffer is durable (G5): a block that is not on the SSD is found
 *     in RAM.  So a mapped slot whose segment has no buffer is in a record of a lower
 *     seq than any that a writer still holds a reference on.
 *  B3 A buffer is reused only when nobody has it pinned (C6).
 */
#ifndef LC_POOL_H
#define LC_POOL_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "format/lc_format.h"
#include "store/ring.h"
#include "store/upper.h"

struct lc_env;
struct lc_lane;
struct lc_submit;

enum lc_record_stage {
	LC_RECORD_OPEN,
	LC_RECORD_CLOSED,
	LC_RECORD_WRITTEN,
	LC_RECORD_FAILED,		/* to be written again */
};

/*
 * A record passes through several rooms of log/, which therefore share this struct.  One file
 * writes each field:
 *   record.c   state to needs_flush; and stage, when the record opens
 *   log.c      stage to list, from lc_log_append() on
 *   lane.h     link, until lc_submit_record(): lc_lane_keep_closed()
 *   submit.c   link and work, from then on
 */
struct lc_record {
	/*
	 * 63: closed, 62..32: incarnation, 31..16: slots reserved, 15..0: writers.
	 * The incarnation makes a cmpxchg fail on a record that was recycled.
	 */
	atomic64_t state;
	struct lc_buffer *buf;
	u32 first_slot;			/* of the header; set before it opens */
	u32 limit;			/* data slots it may hold; READ_ONCE() */
	u32 nr_slots;			/* data slots it holds; set when closed */
	u32 nr_ranges;			/* entries of a tombstone; set when closed */
	u8 type;
	bool needs_flush;		/* the next FLUSH must close it (G7); READ_ONCE() */
	/* log->lock, from lc_log_append() on, but for the last two; seq is constant then */
	u8 stage;
	bool want_durable;		/* closed on behalf of a flush */
	bool durable_when_written;	/* durable once WRITTEN (G2) */
	u32 flush_gen;			/* log->flush_gen when it was submitted */
	u64 seq;
	struct list_head list;		/* log->pending, in seq order */
	union {
		struct list_head link;	/* submit->waiting until its turn comes; submit->lock */
		struct work_struct work;	/* sends it when its turn has come; submit.c */
	};
};

/* Most pages of a chunk of a buffer's memory, as a power of two. */
#define LC_CHUNK_ORDER	4

/*
 * As with struct lc_record, one file writes each field:
 *   record.c   nr_records
 *   log.c      undurable, unwritten, closed
 *   lane.c     end, from lc_lane_cede() on
 *   pool.c     all others but the locks; and it clears these in lc_buffer_make_ready()
 * But `list` is of the file that has the buffer: pool.c while it is free, lane.c while it is ready,
 * log.c while it is retired.
 */
struct lc_buffer {
	struct list_head list;		/* free or lane->ready */
	struct list_head all;		/* pool->all; pool->lock */
	void **slots;			/* address of each slot */
	struct page **chunks;		/* for freeing */
	u8 *orders;
	u32 nr_chunks;
	u64 segment;			/* number */
	u64 position;
	u64 boundary;			/* alloc->boundary when it was opened; 0: its own segment */
	/*
	 * Slots of the segment from here on are not in the buffer (lc_lane_cede()).  Lowered before
	 * anything is mapped there; READ_ONCE()
	 */
	u32 end;
	struct lc_upper_lock lane_lock;	/* of the lane that fills it */
	struct lc_upper_lock log_lock;	/* of the log, once it has seen the buffer */
	struct lc_pool *pool;
	u32 lane_pool;			/* index of the lane that uses it, and whose node has it */
	struct lc_lane *lane;		/* that fills it, opaque here; set before it is ready */
	atomic_t pins;			/* owner and readers; 0: free */
	u32 nr_records;			/* opened so far; lane->lock */
	u32 undurable;			/* records not durable yet; log->lock */
	u32 unwritten;			/* of these not WRITTEN; log->lock */
	bool closed;			/* no record will be added; log->lock */
	struct lc_record *records;
};

/* The buffers of one lane; pool.c only.  The numbers are read without the lock, too: READ_ONCE() */
struct lc_lane_pool {
	struct list_head free;
	u32 nr_free;
	u32 nr;				/* in all */
	u32 nr_unflushed;		/* closed and written, not durable; log->lock */
	int node;			/* of their memory, or NUMA_NO_NODE; set first */
};

struct lc_pool {
	struct lc_env *env;
	struct lc_ring *ring;
	struct lc_submit *submit;	/* writes what is in them, opaque here; lc_pool_bind() */
	/* Written for each buffer.  In another cache line than the above, read for each block. */
	spinlock_t lock ____cacheline_aligned_in_smp;	/* below, and lane_pools but nr_unflushed */
	struct list_head all;
	u32 nr;				/* in all; READ_ONCE() */
	u32 wanted;	/* more are freed when they come back; written without lock; READ_ONCE() */
	u32 nr_lane_pools;		/* constant */
	struct lc_lane_pool lane_pools[];	/* one for each lane */
};

/*
 * @ring outlives the pool; @nr_lane_pools: lanes.  May sleep.
 * Return: a pool without buffers, or NULL.
 */
struct lc_pool *lc_pool_create(struct lc_env *env, struct lc_ring *ring, u32 nr_lane_pools);

/* Buffers of one lane are allocated on this node from now on.  Does not sleep, takes no lock. */
void lc_pool_set_node(struct lc_pool *pool, u32 lane_pool, int node);

/*
 * Set who writes what is in the buffers.  Once, from lc_submit_create(): nothing is in a buffer
 * yet.  Does not sleep, takes no lock.
 */
void lc_pool_bind(struct lc_pool *pool, struct lc_submit *submit);

/*
 * Free the pool and all its buffers, also those that were in a lane or in the log.  The lanes and
 * the log are gone, and no read copies from a buffer.  What is not on the SSD is lost.  @pool or
 * NULL.  May sleep.
 */
void lc_pool_destroy(struct lc_pool *pool);

/**
 * lc_buffers_alloc() - allocate write buffers
 * @pool: the next buffers are for its lanes in turn
 * @nr: how many
 * @list: gets them, untouched on error
 *
 * Fails if the buffers would take more than half of the RAM.
 * May sleep.  Return: 0 or -ENOMEM.
 */
int lc_buffers_alloc(struct lc_pool *pool, u32 nr, struct list_head *list);

/* Free buffers that lc_buffers_alloc() has put into @list and no pool has taken.  May sleep. */
void lc_buffers_free(struct list_head *list);

/* Take the buffers of @list over; it is empty afterwards.  Any context. */
void lc_pool_add(struct lc_pool *pool, struct list_head *list);

/* Free buffers until @nr are left; those in use are freed when they come back.  May sleep. */
void lc_pool_shrink(struct lc_pool *pool, u32 nr);

/**
 * lc_pool_get() - take a free buffer, pinned by its owner
 * @pool: the pool
 * @lane_pool: index of the lane it is for
 *
 * May sleep.  Return: NULL if none is free.
 */
struct lc_buffer *lc_pool_get(struct lc_pool *pool, u32 lane_pool);

/**
 * lc_buffer_make_ready() - a buffer is for a lane now: forget what was in it
 * @buf: from lc_pool_get()
 * @lane: that is going to fill it
 *
 * Clears the first slot, where a header comes.  Process context, takes no lock: no other task has
 * the buffer.
 */
void lc_buffer_make_ready(struct lc_buffer *buf, struct lc_lane *lane);

/**
 * lc_buffer_set_segment() - a lane begins to fill a buffer
 * @buf: ready
 * @number: of its segment
 * @boundary: number of the last boundary, 0: the segment is one itself
 *
 * Process context, takes no lock.  From lc_alloc_take(), before lc_segment_open().
 */
void lc_buffer_set_segment(struct lc_buffer *buf, u64 number, u64 boundary);

/*
 * [log->lock] Only a FLUSH is missing until the buffer is free, or that is so no more: @change is
 * 1 or -1.
 */
void lc_buffer_count_unflushed(struct lc_buffer *buf, int change);

/* How many buffers are not free?  Any context; a hint. */
u32 lc_pool_used(const struct lc_pool *pool);

/* The rest of lc_buffer_pin(); not inline, because few segments have a buffer. */
struct lc_buffer *lc_buffer_try_pin(struct lc_ring *ring, u32 slot);

/**
 * lc_buffer_pin() - keep the RAM image of a slot, if it has one
 * @ring: of the segments
 * @slot: mapped by a block whose bucket the caller has locked
 *
 * Return: the buffer, pinned, or NULL: the slot is durable on the SSD, or clean there.
 */
static inline struct lc_buffer *lc_buffer_pin(struct lc_ring *ring, u32 slot)
{
	if (!rcu_access_pointer(lc_ring_segment(ring, slot)->buf))
		return NULL;
	return lc_buffer_try_pin(ring, slot);
}

/**
 * lc_buffer_unpin() - let go of a buffer
 * @buf: the buffer
 *
 * Any context.  The last one puts it back and wakes the refill worker.
 */
void lc_buffer_unpin(struct lc_buffer *buf);

static inline void *lc_buffer_slot(const struct lc_buffer *buf, u32 slot)
{
	return buf->slots[lc_ring_slot_in_segment(buf->pool->ring, slot)];
}

/*
 * How many of the @most slots from slot @first of the segment on lie behind each other in memory?
 * At least 1; the bio of a record has one entry for them.  An entry ends where a chunk may end: the
 * struct pages of different chunks need not lie behind each other.  Any context; the caller has the
 * buffer.
 */
static inline u32 lc_buffer_adjacent(const struct lc_buffer *buf, u32 first, u32 most)
{
	u32 n = 1;

	while (n < most && buf->slots[first + n] == buf->slots[first] + n * LC_SLOT_BYTES &&
	       (unsigned long)buf->slots[first + n] & ((PAGE_SIZE << LC_CHUNK_ORDER) - 1))
		n++;
	return n;
}

#endif /* LC_POOL_H */
