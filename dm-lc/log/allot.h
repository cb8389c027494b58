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
	 * Writeback needs the reserve.  Set before that is taken from the ring, so that a task
	 * that finds a segment of it, or a record there, sees this too (B5).  READ_ONCE()
	 */
	bool relog_wanted;
	bool relog_starved;		/* take one kept back; until it is ready.  READ_ONCE() */

	spinlock_t lock ____cacheline_aligned_in_smp;	/* inside lane->lock; all below */
	u64 next;			/* to be opened next; READ_ONCE() */
	u64 end;			/* behind the last that is evicted and idle; READ_ONCE() */
	u64 cut;			/* AL1 */
	u64 cut_seq;
	u32 max_ready;			/* numbers at hand; READ_ONCE() */
	u32 most_ready;			/* that many or less, see backlog.h; READ_ONCE() */
};

struct lc_allot *lc_allot_create(struct lc_env *env, struct lc_ring *ring, struct lc_log *log,
				 u32 nr_lanes);
void lc_allot_destroy(struct lc_allot *allot);
void lc_allot_start(struct lc_allot *allot, u64 segment, u64 next_seq);

void lc_allot_add(struct lc_allot *allot, u64 number);
int lc_allot_take(struct lc_allot *allot, u32 lane, bool relog, struct lc_buffer *buf);
u64 lc_allot_cut_seq(struct lc_allot *allot, u64 number);

bool lc_allot_round_due(const struct lc_allot *allot, bool relog);
void lc_allot_cut(struct lc_allot *allot);

/* Numbers at hand, a hint. */
static inline u64 lc_allot_ready(const struct lc_allot *allot)
{
	return READ_ONCE(allot->end) - READ_ONCE(allot->next);
}

#endif /* LC_ALLOT_H */
