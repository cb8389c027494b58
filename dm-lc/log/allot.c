// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allotment: which segment a lane opens next.  See allot.h.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "log/allot.h"
#include "log/log.h"
#include "log/pool.h"
#include "store/env.h"
#include "store/segment.h"

/*
 * At the end of a round each lane leaves the rest of its segment unused: on average half a segment
 * of a round, which is one slot in 32.
 */
#define ROUND_SEGMENTS	16	/* for each lane */
#define ROUND_SHARE	16	/* a round is at most one in so many segments of the ring */

struct lc_allot *lc_allot_create(struct lc_env *env, struct lc_ring *ring, struct lc_log *log,
				 u32 nr_lanes)
{
	struct lc_allot *allot = kzalloc(sizeof(*allot), GFP_KERNEL);

	if (!allot)
		return NULL;
	allot->env = env;
	allot->ring = ring;
	allot->log = log;
	allot->max_ready = 1;
	allot->most_ready = 1;
	spin_lock_init(&allot->lock);
	if (nr_lanes > 1)
		allot->round_len = min_t(u64, ROUND_SEGMENTS * nr_lanes,
					 div_u64(ring->nr, ROUND_SHARE));
	return allot;
}

void lc_allot_destroy(struct lc_allot *allot)
{
	kfree(allot);
}

/* Segments from one cut to the next in what earlier lives left. */
static u64 longest_round(const struct lc_allot *allot, u64 head)
{
	const struct lc_ring *ring = allot->ring;
	u64 cut = allot->env->sb->tail_segment, longest = 0, n;

	if (!(allot->env->sb->incompat & LC_INCOMPAT_LANES))
		return 0;
	for (n = cut + 1; n <= head; n++) {
		const struct lc_segment *seg = &ring->segments[lc_ring_position(ring, n)];

		if (n == head || (seg->number == n && seg->cut_seq)) {
			longest = max(longest, n - cut);
			cut = n;
		}
	}
	return longest;
}

void lc_allot_start(struct lc_allot *allot, u64 segment, u64 next_seq)
{
	spin_lock(&allot->lock);
	allot->next = segment;
	allot->end = segment;
	allot->cut = segment;
	allot->cut_seq = next_seq;
	spin_unlock(&allot->lock);
	/* All of a round may have to be logged again before the tail can pass it (D1). */
	lc_ring_keep(allot->ring, longest_round(allot, segment), allot->round_len);
}

void lc_allot_add(struct lc_allot *allot, u64 number)
{
	spin_lock(&allot->lock);
	WRITE_ONCE(allot->end, number + 1);
	spin_unlock(&allot->lock);
}

/*
 * [lock] Give the buffer the next number.  Writeback takes a segment below allot->next that has no
 * buffer for durable, without a lock.  So the buffer is set before allot->next rises.
 */
static void take(struct lc_allot *allot, u32 lane, struct lc_buffer *buf)
{
	struct lc_ring *ring = allot->ring;
	struct lc_segment *seg;
	u64 cut_seq = 0;

	lockdep_assert_held(&allot->lock);
	WRITE_ONCE(buf->segment, allot->next);
	buf->position = lc_ring_position(ring, buf->segment);
	buf->cut = allot->round_len ? allot->cut : 0;
	if (!allot->round_len)
		cut_seq = lc_log_last_seq(allot->log) + 1;
	else if (allot->next == allot->cut)
		cut_seq = allot->cut_seq;
	seg = &ring->segments[buf->position];
	/* Before anything is written there: see lc_read_end(). */
	WRITE_ONCE(seg->number, buf->segment);
	seg->cut_seq = cut_seq;
	seg->lane = lane;
	/* Before any slot of it can be mapped (B2). */
	rcu_assign_pointer(seg->buf, buf);
	/* Pairs with segment_settled(). */
	smp_store_release(&allot->next, allot->next + 1);
}

int lc_allot_take(struct lc_allot *allot, u32 lane, bool relog, struct lc_buffer *buf)
{
	int ret = -EAGAIN;

	spin_lock(&allot->lock);
	if (allot->next != allot->end && (relog || !READ_ONCE(allot->relog_wanted))) {
		ret = allot->round_len && allot->next - allot->cut >= allot->round_len ? -EBUSY : 0;
		if (!ret)
			take(allot, lane, buf);
	}
	spin_unlock(&allot->lock);
	return ret;
}

u64 lc_allot_cut_seq(struct lc_allot *allot, u64 number)
{
	struct lc_ring *ring = allot->ring;
	const struct lc_segment *seg = &ring->segments[lc_ring_position(ring, number)];
	u64 seq = 0;

	spin_lock(&allot->lock);
	if (seg->number == number)
		seq = seg->cut_seq;
	else if (allot->round_len && number == allot->cut)
		seq = allot->cut_seq;
	else if (!allot->round_len && number >= allot->next)
		/* Nothing is open, and opening needs this lock: the next record will be there. */
		seq = lc_log_last_seq(allot->log) + 1;
	spin_unlock(&allot->lock);
	return seq;
}

bool lc_allot_round_due(const struct lc_allot *allot, bool relog)
{
	return allot->next - allot->cut >= allot->round_len &&
	       (relog || !READ_ONCE(allot->relog_wanted));
}

void lc_allot_cut(struct lc_allot *allot)
{
	spin_lock(&allot->lock);
	allot->cut = allot->next;
	allot->cut_seq = lc_log_last_seq(allot->log) + 1;
	spin_unlock(&allot->lock);
}
