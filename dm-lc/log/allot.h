/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Allotment: which segment a lane opens next, and where the tail may move to.
 *
 * The refill worker evicts segments in the order of the ring and adds their numbers; lanes take
 * them.  With several lanes segments are opened in rounds: before the first one of a round is
 * opened, all that are open are closed.  The number of that first one is a cut (segment.h).  With
 * one lane every segment is a round of its own.
 *
 * Invariants
 *  AL1 cut_seq is above the seqs of all records in segments below cut, and at most those of all
 *      others: both were set with all lanes locked, and with all records that had been opened
 *      until then closed.
 *  AL2 A segment gets its number when it is opened, under lane->lock and allot->lock, in rising
 *      order; with several lanes never cut + round_len or above.
 */
#ifndef LC_ALLOT_H
#define LC_ALLOT_H

#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct lc_buffer;
struct lc_env;
struct lc_log;
struct lc_ring;

struct lc_allot {
	struct lc_env *env;
	struct lc_ring *ring;
	struct lc_log *log;
	u32 round_len;			/* segments from one cut to the next; 0: one lane */
	/*
	 * Writeback needs the reserve.  Set before a segment of the reserve is taken from the ring:
	 * a task that sees such a segment, or a record in it, sees this too (B5).  READ_ONCE()
	 */
	bool relog_wanted;
	/* The refill worker takes a segment of the reserve, and clears this.  READ_ONCE() */
	bool relog_starved;

	spinlock_t lock ____cacheline_aligned_in_smp;	/* inside lane->lock; all below */
	u64 next;			/* to be opened next; READ_ONCE() */
	u64 end;			/* one above the last evicted and idle one; READ_ONCE() */
	u64 cut;			/* AL1 */
	u64 cut_seq;
	u32 max_ready;			/* numbers that refill has at hand; READ_ONCE() */
	u32 most_ready;			/* or less for a slow SSD (backlog.h); READ_ONCE() */
};

/**
 * lc_allot_create() - allocate the room
 * @env: of the volume
 * @ring: whose segments are opened
 * @log: gives the seqs of cuts
 * @nr_lanes: how many share them
 *
 * May sleep.  Return: the room or NULL.
 */
struct lc_allot *lc_allot_create(struct lc_env *env, struct lc_ring *ring, struct lc_log *log,
				 u32 nr_lanes);

/* Free the room.  The lanes are gone, and refill does not run.  @allot or NULL. */
void lc_allot_destroy(struct lc_allot *allot);

/**
 * lc_allot_start() - a life begins
 * @allot: the room; the ring is started, cuts of earlier lives are known
 * @segment: number of its first segment
 * @next_seq: first seq
 */
void lc_allot_start(struct lc_allot *allot, u64 segment, u64 next_seq);

/**
 * lc_allot_add() - a segment is ready to be opened
 * @allot: the room
 * @number: one above the last; the segment is evicted, and no read is in flight there
 */
void lc_allot_add(struct lc_allot *allot, u64 number);

/**
 * lc_allot_take() - give a buffer its segment
 * @allot: the room
 * @lane: index of the lane, which is locked; nothing of it is open
 * @relog: for what is logged again
 * @buf: ready
 *
 * Return: 0, -EAGAIN: no segment is ready, or it is for relogging (B5), -EBUSY: the next round
 * must begin first (AL2).
 */
int lc_allot_take(struct lc_allot *allot, u32 lane, bool relog, struct lc_buffer *buf);

/**
 * lc_allot_cut_seq() - what seq must replay start with if the tail moves to a segment?
 * @allot: the room
 * @number: segment number, not below the tail; all below it are closed
 *
 * Process context, does not sleep.  Return: the seq, or 0: the number is not a cut, or of
 * an earlier life and not known to be one.
 */
u64 lc_allot_cut_seq(struct lc_allot *allot, u64 number);

/**
 * lc_allot_round_due() - must the next round begin before another segment is opened?
 * @allot: the room
 * @relog: the caller logs again; others must not close the segment in use for that (B5)
 *
 * All lanes are locked.
 */
bool lc_allot_round_due(const struct lc_allot *allot, bool relog);

/**
 * lc_allot_cut() - the next number is a cut (AL1)
 * @allot: the room
 *
 * All lanes are locked, and nothing is open.
 */
void lc_allot_cut(struct lc_allot *allot);

/* Numbers at hand, a hint. */
static inline u64 lc_allot_ready(const struct lc_allot *allot)
{
	return READ_ONCE(allot->end) - READ_ONCE(allot->next);
}

#endif /* LC_ALLOT_H */
