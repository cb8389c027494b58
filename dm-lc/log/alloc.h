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

#include "store/upper.h"

struct lc_buffer;
struct lc_env;
struct lc_log;
struct lc_ring;

/* Only alloc.c writes it, but for all_lock, which lanes.c sets.  Other rooms read it. */
struct lc_alloc {
	struct lc_env *env;
	struct lc_ring *ring;
	struct lc_log *log;
	struct lc_upper_lock all_lock;	/* of the lanes: held while all of them are locked */
	u32 round_len;			/* segments from one boundary to the next; 0: one lane */
	/* Two flags without a lock; alloc.c says in what order they are used (B5).  READ_ONCE() */
	bool writers_held;		/* writeback needs the reserve: writers get no slot */
	bool lend_reserve;		/* refill may take a segment of the reserve */

	/*
	 * Inside lane->lock; for the four below.  Without it, next and boundary are read while all
	 * lanes are locked: then neither changes.
	 */
	spinlock_t lock ____cacheline_aligned_in_smp;
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

/* Free the allocator.  The lanes are gone, and refill does not run.  @alloc or NULL.  May sleep. */
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
 * Under the lane's lock; takes alloc->lock.
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

/**
 * lc_alloc_hold_writers() - writeback needs a slot of the reserve
 * @alloc: the allocator
 *
 * From now on writers get no slot, until lc_alloc_admit_writers() (B5).  Refill may take a segment
 * of the reserve, see lc_alloc_lends(), until lc_alloc_keep_reserve().  Process context, takes no
 * lock.  From the writeback thread only, which kicks refill afterwards.
 */
void lc_alloc_hold_writers(struct lc_alloc *alloc);

/**
 * lc_alloc_keep_reserve() - refill takes no further segment of the reserve
 * @alloc: the allocator
 *
 * A run of the refill worker that is under way may still take one.  Process context, takes no lock.
 * From the refill worker when relogging has a segment, and from the writeback thread when it needs
 * none.
 */
void lc_alloc_keep_reserve(struct lc_alloc *alloc);

/**
 * lc_alloc_admit_writers() - writers may have slots again
 * @alloc: the allocator; it lends nothing of the reserve
 *
 * Process context, takes no lock.  From the writeback thread only, which kicks the writes that are
 * parked afterwards.
 */
void lc_alloc_admit_writers(struct lc_alloc *alloc);

/**
 * lc_alloc_set_ready() - how many numbers should refill have at hand?
 * @alloc: the allocator
 * @nr: at least 1; ends an earlier lc_alloc_limit_ready()
 *
 * Any context, takes no lock.  At creation it is 1.
 */
void lc_alloc_set_ready(struct lc_alloc *alloc, u32 nr);

/**
 * lc_alloc_limit_ready() - the SSD is slow: expect fewer numbers at hand (backlog.h)
 * @alloc: the allocator
 * @nr: that there may be, or more than lc_alloc_set_ready() has set: no limit
 *
 * Any context, takes no lock.  One caller at a time (the refill worker).
 */
void lc_alloc_limit_ready(struct lc_alloc *alloc, u64 nr);

/* Numbers at hand, a hint.  Any context, takes no lock. */
static inline u64 lc_alloc_ready(const struct lc_alloc *alloc)
{
	return READ_ONCE(alloc->end) - READ_ONCE(alloc->next);
}

/*
 * May refill take a segment of the reserve?  If so, tasks that see the segment, or a record in it,
 * see alloc->writers_held, too (B5).  For the refill worker.  Any context, takes no lock.
 */
static inline bool lc_alloc_lends(const struct lc_alloc *alloc)
{
	/* Pairs with lc_alloc_hold_writers(). */
	return smp_load_acquire(&alloc->lend_reserve) && !lc_alloc_ready(alloc);
}

/*
 * The number to be opened next.  A segment below it that is seen without a buffer afterwards is
 * durable: the buffer was set before the number passed it.  Any context, takes no lock.
 */
static inline u64 lc_alloc_next(const struct lc_alloc *alloc)
{
	/* Pairs with take() in alloc.c. */
	return smp_load_acquire(&alloc->next);
}

#endif /* LC_ALLOC_H */
