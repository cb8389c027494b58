/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Allocation of segments: which one a lane opens next, and where the tail may move to.
 *
 * The refill worker evicts segments in the order of the ring and adds their numbers; lanes take
 * them.  With several lanes segments are opened in rounds: before the first one of a round is
 * opened, all that are open are closed.  The number of that first one is a boundary (ring.h).  With
 * one lane every segment is a round of its own.
 *
 * Invariants
 *  AL1 boundary_seq is above the seqs of all records in segments below boundary, and at most those
 *      of all others: both were set with all lanes locked, and with all records that had been
 *      opened until then closed.
 *  AL2 A segment gets its number when it is opened, under lane->lock and alloc->lock, in rising
 *      order; with several lanes never boundary + round_len or above.
 */
#ifndef LC_ALLOC_H
#define LC_ALLOC_H

#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct lc_buffer;
struct lc_env;
struct lc_log;
struct lc_ring;

struct lc_alloc {
	struct lc_env *env;
	struct lc_ring *ring;
	struct lc_log *log;
	u32 round_len;			/* segments from one boundary to the next; 0: one lane */
	/*
	 * Writeback needs the reserve.  Set before a segment of the reserve is taken from the ring:
	 * a task that sees such a segment, or a record in it, sees this too (B5).  READ_ONCE()
	 */
	bool writers_held;
	/* The refill worker takes a segment of the reserve, and clears this.  READ_ONCE() */
	bool lend_reserve;

	spinlock_t lock ____cacheline_aligned_in_smp;	/* inside lane->lock; all below */
	u64 next;			/* to be opened next; READ_ONCE() */
	u64 end;			/* one above the last evicted and idle one; READ_ONCE() */
	u64 boundary;			/* AL1 */
	u64 boundary_seq;
	u32 max_ready;			/* numbers that refill has at hand; READ_ONCE() */
	u32 most_ready;			/* or less for a slow SSD (backlog.h); READ_ONCE() */
};

/**
 * lc_alloc_create() - allocate the allocator
 * @env: of the volume
 * @ring: whose segments are opened
 * @log: gives the seqs of boundaries
 * @nr_lanes: how many share them
 *
 * May sleep.  Return: the allocator or NULL.
 */
struct lc_alloc *lc_alloc_create(struct lc_env *env, struct lc_ring *ring, struct lc_log *log,
				 u32 nr_lanes);

/* Free the allocator.  The lanes are gone, and refill does not run.  @alloc or NULL. */
void lc_alloc_destroy(struct lc_alloc *alloc);

/**
 * lc_alloc_start() - a life begins
 * @alloc: the allocator; the ring is started, boundaries of earlier lives are known
 * @segment: number of its first segment
 * @next_seq: first seq
 *
 * Process context, does not sleep; takes alloc->lock, then ring->lock.  From lc_start(): no lane
 * and no worker uses the allocator yet.
 */
void lc_alloc_start(struct lc_alloc *alloc, u64 segment, u64 next_seq);

/**
 * lc_alloc_add() - a segment is ready to be opened
 * @alloc: the allocator
 * @number: one above the last; the segment is evicted, and no read is in flight there
 *
 * Process context, does not sleep; takes alloc->lock.  One caller at a time (the refill worker).
 */
void lc_alloc_add(struct lc_alloc *alloc, u64 number);

/**
 * lc_alloc_take() - give a buffer its segment
 * @alloc: the allocator
 * @lane: index of the lane, which is locked; nothing of it is open
 * @relog: for what is logged again
 * @buf: ready
 *
 * Return: 0, -EAGAIN: no segment is ready, or it is for relogging (B5), -EBUSY: the next round
 * must begin first (AL2).
 */
int lc_alloc_take(struct lc_alloc *alloc, u32 lane, bool relog, struct lc_buffer *buf);

/**
 * lc_alloc_boundary_seq() - what seq must replay start with if the tail moves to a segment?
 * @alloc: the allocator
 * @number: segment number, not below the tail; all below it are closed
 *
 * Process context, does not sleep.  Return: the seq, or 0: the number is not a boundary, or of
 * an earlier life and not known to be one.
 */
u64 lc_alloc_boundary_seq(struct lc_alloc *alloc, u64 number);

/**
 * lc_alloc_round_due() - must the next round begin before another segment is opened?
 * @alloc: the allocator
 * @relog: the caller logs again; others must not close the segment in use for that (B5)
 *
 * All lanes are locked.
 */
bool lc_alloc_round_due(const struct lc_alloc *alloc, bool relog);

/**
 * lc_alloc_set_boundary() - the next number is a boundary (AL1)
 * @alloc: the allocator
 *
 * All lanes are locked, and nothing is open.
 */
void lc_alloc_set_boundary(struct lc_alloc *alloc);

/* Numbers at hand, a hint. */
static inline u64 lc_alloc_ready(const struct lc_alloc *alloc)
{
	return READ_ONCE(alloc->end) - READ_ONCE(alloc->next);
}

#endif /* LC_ALLOC_H */
