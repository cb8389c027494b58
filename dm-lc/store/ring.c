// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring of segments.  See ring.h for the picture.
 */
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "format/format.h"
#include "store/ring.h"

/*
 * One is lost if the power goes while blocks are logged again, because the next life does
 * not go on in it.  Another one is needed if the blocks take more records than before.
 */
#define MOST_RESERVE	4

/* Enough to log one whole round again, even if that begins in the middle of another round. */
static u64 room_for(const struct lc_ring *ring, u64 round)
{
	u64 nr = clamp_t(u64, ring->nr / 16, 1, MOST_RESERVE);

	if (round > 1)
		nr += 2 * min(round - 1, ring->nr / 16);
	return nr;
}

/* [lock] */
static void set_reserve(struct lc_ring *ring)
{
	u64 grown = (ring->tail - ring->keep_tail) / 2;

	lockdep_assert_held(&ring->lock);
	WRITE_ONCE(ring->reserve, min(ring->keep_least + grown, ring->keep_most));
}

void lc_ring_keep(struct lc_ring *ring, u64 earlier, u64 round)
{
	spin_lock(&ring->lock);
	ring->keep_most = room_for(ring, max(earlier, round));
	ring->keep_least = clamp_t(u64, (ring->tail + ring->nr - ring->head) / 2,
				   room_for(ring, earlier), ring->keep_most);
	ring->keep_tail = ring->tail;
	set_reserve(ring);
	spin_unlock(&ring->lock);
}

struct lc_ring *lc_ring_create(const struct lc_geometry *geo)
{
	struct lc_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL);

	if (!ring)
		return NULL;
	ring->nr = geo->nr_segments;
	ring->slot_shift = ilog2(geo->seg_slots);
	spin_lock_init(&ring->lock);
	lc_ring_keep(ring, 1, 1);
	ring->segments = __vmalloc(ring->nr * sizeof(struct lc_segment), GFP_KERNEL | __GFP_ZERO);
	if (!ring->segments) {
		kfree(ring);
		return NULL;
	}
	return ring;
}

void lc_ring_destroy(struct lc_ring *ring)
{
	if (!ring)
		return;
	vfree(ring->segments);
	kfree(ring);
}

void lc_ring_start(struct lc_ring *ring, u64 tail, u64 tail_seq, u64 head)
{
	u64 n;

	spin_lock(&ring->lock);
	ring->tail = tail;
	WRITE_ONCE(ring->tail_seq, tail_seq);
	ring->head = head;
	ring->life_start = head;
	spin_unlock(&ring->lock);
	/* Whatever the index maps lies in the last nr numbers. */
	for (n = head > ring->nr ? head - ring->nr : 0; n < head; n++)
		ring->segments[lc_ring_position(ring, n)].number = n;
}

void lc_ring_set_boundary(struct lc_ring *ring, u64 number, u64 seq)
{
	ring->segments[lc_ring_position(ring, number)].boundary_seq = seq;
}

void lc_ring_forget_boundaries(struct lc_ring *ring)
{
	u64 i;

	for (i = 0; i < ring->nr; i++)
		ring->segments[i].boundary_seq = 0;
}

u64 lc_ring_position(const struct lc_ring *ring, u64 number)
{
	u64 position;

	div64_u64_rem(number, ring->nr, &position);
	return position;
}

/* [lock] Of the number to be handed out next. */
static struct lc_segment *next_place(struct lc_ring *ring)
{
	lockdep_assert_held(&ring->lock);
	return &ring->segments[lc_ring_position(ring, ring->head)];
}

bool lc_ring_blocked(struct lc_ring *ring)
{
	bool blocked;

	spin_lock(&ring->lock);
	blocked = next_place(ring)->filling;
	spin_unlock(&ring->lock);
	return blocked;
}

static void set_filling(struct lc_ring *ring, u64 number, bool filling)
{
	spin_lock(&ring->lock);
	ring->segments[lc_ring_position(ring, number)].filling = filling;
	spin_unlock(&ring->lock);
}

void lc_ring_fill(struct lc_ring *ring, u64 number)
{
	set_filling(ring, number, true);
}

bool lc_ring_fill_old(struct lc_ring *ring, u64 number)
{
	bool old;

	spin_lock(&ring->lock);
	old = ring->head - number <= ring->nr;
	if (old)
		ring->segments[lc_ring_position(ring, number)].filling = true;
	spin_unlock(&ring->lock);
	return old;
}

void lc_ring_filled(struct lc_ring *ring, u64 number)
{
	set_filling(ring, number, false);
}

bool lc_ring_take(struct lc_ring *ring, u64 reserve, u64 *number)
{
	bool ok;

	spin_lock(&ring->lock);
	ok = ring->tail + ring->nr - ring->head > reserve && !next_place(ring)->filling;
	if (ok) {
		*number = ring->head;
		WRITE_ONCE(ring->head, *number + 1);
	}
	spin_unlock(&ring->lock);
	return ok;
}

void lc_ring_set_tail(struct lc_ring *ring, u64 tail, u64 tail_seq)
{
	spin_lock(&ring->lock);
	ring->tail = tail;
	WRITE_ONCE(ring->tail_seq, tail_seq);
	set_reserve(ring);
	spin_unlock(&ring->lock);
}

u64 lc_ring_free(struct lc_ring *ring)
{
	u64 nr;

	spin_lock(&ring->lock);
	nr = ring->tail + ring->nr - ring->head;
	spin_unlock(&ring->lock);
	return nr;
}

bool lc_ring_spares(struct lc_ring *ring)
{
	return lc_ring_free(ring) > READ_ONCE(ring->reserve) + ring->nr / 4;
}

u64 lc_ring_tail_seq(const struct lc_ring *ring)
{
	return READ_ONCE(ring->tail_seq);
}

u64 lc_ring_head(struct lc_ring *ring)
{
	u64 head;

	spin_lock(&ring->lock);
	head = ring->head;
	spin_unlock(&ring->lock);
	return head;
}

u64 lc_ring_tail(struct lc_ring *ring)
{
	u64 tail;

	spin_lock(&ring->lock);
	tail = ring->tail;
	spin_unlock(&ring->lock);
	return tail;
}

bool lc_segment_idle(struct lc_ring *ring, struct lc_segment *seg)
{
	WRITE_ONCE(ring->waiting, true);
	/* Pairs with the full barrier in lc_segment_put(): either it sees waiting or we see 0. */
	smp_mb();
	if (atomic_read(&seg->refs))
		return false;
	WRITE_ONCE(ring->waiting, false);
	return true;
}
