// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocation of segments: which one a lane opens next.  See alloc.h.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "log/alloc.h"
#include "log/log.h"
#include "log/pool.h"
#include "store/env.h"
#include "store/ring.h"
#include "store/trace.h"

/*
 * At the end of a round each lane leaves the rest of its segment unused: on average half a segment
 * of a round, which is one slot in 32.
 */
#define ROUND_SEGMENTS	16	/* for each lane */
#define ROUND_SHARE	16	/* a round is at most one in so many segments of the ring */

struct lc_alloc *lc_alloc_create(struct lc_env *env, struct lc_ring *ring, struct lc_log *log,
				 u32 nr_lanes)
{
	struct lc_alloc *alloc = kzalloc(sizeof(*alloc), GFP_KERNEL);

	if (!alloc)
		return NULL;
	alloc->env = env;
	alloc->ring = ring;
	alloc->log = log;
	alloc->max_ready = 1;
	alloc->most_ready = 1;
	spin_lock_init(&alloc->lock);
	if (nr_lanes > 1)
		alloc->round_len = min_t(u64, ROUND_SEGMENTS * nr_lanes,
					 div_u64(ring->nr, ROUND_SHARE));
	return alloc;
}

void lc_alloc_destroy(struct lc_alloc *alloc)
{
	kfree(alloc);
}

/* Segments from one boundary to the next in what earlier lives left. */
static u64 longest_round(const struct lc_alloc *alloc, u64 head)
{
	const struct lc_ring *ring = alloc->ring;
	u64 boundary = alloc->env->sb->tail_segment, longest = 0, n;

	if (!(alloc->env->sb->incompat & LC_INCOMPAT_LANES))
		return 0;
	for (n = boundary + 1; n <= head; n++) {
		const struct lc_segment *seg = &ring->segments[lc_ring_position(ring, n)];

		if (n == head || (seg->number == n && seg->boundary_seq)) {
			longest = max(longest, n - boundary);
			boundary = n;
		}
	}
	return longest;
}

void lc_alloc_start(struct lc_alloc *alloc, u64 segment, u64 next_seq)
{
	spin_lock(&alloc->lock);
	alloc->next = segment;
	alloc->end = segment;
	alloc->boundary = segment;
	alloc->boundary_seq = next_seq;
	spin_unlock(&alloc->lock);
	/* All of a round may have to be logged again before the tail can pass it (D1). */
	lc_ring_keep(alloc->ring, longest_round(alloc, segment), alloc->round_len);
}

void lc_alloc_add(struct lc_alloc *alloc, u64 number)
{
	spin_lock(&alloc->lock);
	WRITE_ONCE(alloc->end, number + 1);
	spin_unlock(&alloc->lock);
}

/*
 * [lock] Give the buffer the next number.  Writeback takes a segment below alloc->next that has no
 * buffer for durable, without a lock.  So the buffer is set before alloc->next rises.
 */
static void take(struct lc_alloc *alloc, u32 lane, struct lc_buffer *buf)
{
	struct lc_ring *ring = alloc->ring;
	u64 boundary_seq = 0;

	lockdep_assert_held(&alloc->lock);
	lc_buffer_set_segment(buf, alloc->next, alloc->round_len ? alloc->boundary : 0);
	if (!alloc->round_len)
		boundary_seq = lc_log_last_seq(alloc->log) + 1;
	else if (alloc->next == alloc->boundary)
		boundary_seq = alloc->boundary_seq;
	lc_segment_open(&ring->segments[buf->position], buf->segment, boundary_seq, lane, buf);
	trace_lc_segment_opened(alloc->env->dev, buf->segment, lane);
	/* Pairs with lc_alloc_next(). */
	smp_store_release(&alloc->next, alloc->next + 1);
}

int lc_alloc_take(struct lc_alloc *alloc, u32 lane, bool relog, struct lc_buffer *buf)
{
	int ret = -EAGAIN;

	lc_assert_upper_held(&buf->lane_lock);
	spin_lock(&alloc->lock);
	if (alloc->next != alloc->end && (relog || !READ_ONCE(alloc->writers_held))) {
		ret = alloc->round_len &&
		      alloc->next - alloc->boundary >= alloc->round_len ? -EBUSY : 0;
		if (!ret)
			take(alloc, lane, buf);
	}
	spin_unlock(&alloc->lock);
	return ret;
}

u64 lc_alloc_boundary_seq(struct lc_alloc *alloc, u64 number)
{
	struct lc_ring *ring = alloc->ring;
	const struct lc_segment *seg = &ring->segments[lc_ring_position(ring, number)];
	u64 seq = 0;

	spin_lock(&alloc->lock);
	if (seg->number == number)
		seq = seg->boundary_seq;
	else if (alloc->round_len && number == alloc->boundary)
		seq = alloc->boundary_seq;
	else if (!alloc->round_len && number >= alloc->next)
		/* Nothing is open, and opening needs this lock: the next record will be there. */
		seq = lc_log_last_seq(alloc->log) + 1;
	spin_unlock(&alloc->lock);
	return seq;
}

bool lc_alloc_round_due(const struct lc_alloc *alloc, bool relog)
{
	lc_assert_upper_held(&alloc->all_lock);
	return alloc->next - alloc->boundary >= alloc->round_len &&
	       (relog || !READ_ONCE(alloc->writers_held));
}

void lc_alloc_set_boundary(struct lc_alloc *alloc)
{
	lc_assert_upper_held(&alloc->all_lock);
	spin_lock(&alloc->lock);
	alloc->boundary = alloc->next;
	alloc->boundary_seq = lc_log_last_seq(alloc->log) + 1;
	spin_unlock(&alloc->lock);
}

/* --- the reserve ---------------------------------------------------------- */

/*
 * Why no writer gets a slot of the reserve while writers_held is set (B5):
 *
 *  1. Writeback sets writers_held, and then lend_reserve with release.
 *  2. Refill reads lend_reserve with acquire (lc_alloc_lends()).  Only then does it take a segment
 *     of the reserve from the ring, and add its number under alloc->lock.
 *  3. A lane takes the number under alloc->lock and opens a record in its segment.  It sets the
 *     state of the record with release, the last of its fields.
 *  4. A writer reads the state with acquire, and writers_held after it (lc_record_get(),
 *     lc_record_join()).  If the state changes afterwards, the writer gets no slot, and reads both
 *     again.
 *
 * What a task does in one step happens before what the next task does in the next one.  So a lane
 * that takes such a number sees writers_held, and so does a writer that sees a record there.
 * A slot that a writer got before step 1 is in another segment.
 */

void lc_alloc_hold_writers(struct lc_alloc *alloc)
{
	WRITE_ONCE(alloc->writers_held, true);
	/* Pairs with lc_alloc_lends(). */
	smp_store_release(&alloc->lend_reserve, true);
}

void lc_alloc_keep_reserve(struct lc_alloc *alloc)
{
	WRITE_ONCE(alloc->lend_reserve, false);
}

void lc_alloc_admit_writers(struct lc_alloc *alloc)
{
	WRITE_ONCE(alloc->writers_held, false);
}

/* --- how many are ready ---------------------------------------------------- */

void lc_alloc_set_ready(struct lc_alloc *alloc, u32 nr)
{
	WRITE_ONCE(alloc->max_ready, nr);
	WRITE_ONCE(alloc->most_ready, nr);
}

void lc_alloc_limit_ready(struct lc_alloc *alloc, u64 nr)
{
	WRITE_ONCE(alloc->most_ready, min_t(u64, READ_ONCE(alloc->max_ready), nr));
}
