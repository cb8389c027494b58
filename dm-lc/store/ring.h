/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring of segments: which one may be written next, and which ones replay still needs.
 *
 *        tail             head
 *   ------|================|------------|  numbers rise to the right
 *   free   needed by replay  free          position = number % nr_segments
 *
 * A free segment may still hold clean blocks that reads are served from; they
 * are dropped from the index when the segment is taken.  A number is handed out only
 * when it is below the durable tail + nr_segments: then a superblock is durable that no
 * longer needs the old content.  The segment is written only when no read references it.
 *
 *  H1 A read that is remapped to the SSD holds no reference on the segment, because a cgroup's
 *     limit may hold the read back for long (D16).  It remembers the number of the segment
 *     instead.  If the segment has another number when the read ends, the data may be of the
 *     new content, and the blocks are read again.  A read that has to be verified takes a
 *     reference when it has ended, not before.
 *
 * The last `reserve` free segments are kept back for blocks that writeback must log again: until
 * these are logged, the tail cannot move (D1).
 *
 * A boundary is a number that the tail may move to: all seqs below its boundary_seq are in lower
 * segments, all others in this segment or in higher ones.  With one lane every number is a
 * boundary.
 */
#ifndef LC_RING_H
#define LC_RING_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct lc_buffer;
struct lc_geometry;

/*
 * Only the functions of this header write it.  Other rooms read it.  A segment gets its buffer when
 * a lane opens it, and loses the buffer when that is retired or goes back to the lane.
 */
struct lc_segment {
	/*
	 * Its RAM image until that is durable; opaque here.  Set under lane->lock.  Cleared under
	 * it if nothing was put into the segment, else by the one task that finds the buffer closed
	 * and durable, with that lock or without.
	 */
	struct lc_buffer __rcu *buf;
	/* Of the content.  Changes before anything of the next content is written (H1). */
	u64 number;			/* READ_ONCE() */
	/*
	 * 0: not a boundary, or not known to be one.  alloc->lock, from lc_alloc_start() on.
	 * Before, a start sets it without: no other task uses the ring.  A clean stop reads it
	 * without: no lane opens a segment then.
	 */
	u64 boundary_seq;
	atomic_t refs;			/* reads in flight that hold it (H1) */
	u16 lane;			/* that opened it in this life; set with number */
	bool filling;			/* see lc_ring_fill(); ring->lock */
};

struct lc_ring {
	struct lc_segment *segments;
	u64 nr;
	u64 reserve;			/* segments kept back for relogging (D1); READ_ONCE() */
	u64 keep_least, keep_most;	/* the reserve grows from one to the other; lock */
	u64 keep_tail;			/* by half of what the tail has moved from here; lock */
	u32 slot_shift;			/* slots per segment, log2 */
	u64 life_start;			/* first number of this life; set before it begins */
	spinlock_t lock;
	u64 head;			/* next number to hand out; lock, READ_ONCE() */
	u64 tail;			/* of the durable superblock; lock */
	u64 tail_seq;			/* the same, for record headers; lock, READ_ONCE() */
	bool waiting;			/* the refill worker waits for refs to go; READ_ONCE() */
};

/**
 * lc_ring_create() - allocate the ring of a cache
 * @geo: geometry
 *
 * May sleep.  Return: the ring or NULL.
 */
struct lc_ring *lc_ring_create(const struct lc_geometry *geo);

/* Free the ring.  The lanes and the pool are gone.  @ring or NULL.  May sleep. */
void lc_ring_destroy(struct lc_ring *ring);

/**
 * lc_ring_keep() - set how many segments are kept back for relogging
 * @ring: the ring; nothing is taken from it yet
 * @earlier: longest distance between two boundaries of earlier lives, in segments
 * @round: distance between two boundaries of this life, in segments
 *
 * Process context.  If fewer segments are free than this life needs, writers do not wait for them:
 * every second segment that the tail frees is added to the reserve.  The reserve is complete before
 * the tail reaches this life.
 */
void lc_ring_keep(struct lc_ring *ring, u64 earlier, u64 round);

/**
 * lc_ring_start() - a life begins
 * @ring: the ring
 * @tail: lowest segment number replay would need
 * @tail_seq: lowest seq replay would need
 * @head: number of the first segment to hand out, tail <= head <= tail + nr
 *
 * Process context, does not sleep; takes ring->lock, because the status may be asked for.  From
 * lc_start(), perhaps twice: no lane and no worker uses the ring yet.
 */
void lc_ring_start(struct lc_ring *ring, u64 tail, u64 tail_seq, u64 head);

/**
 * lc_ring_set_boundary() - a boundary of an earlier life was found
 * @ring: the ring
 * @number: segment number
 * @seq: of the boundary, not 0
 *
 * Does not sleep, takes no lock: from lc_start(), as lc_ring_start().
 */
void lc_ring_set_boundary(struct lc_ring *ring, u64 number, u64 seq);

/*
 * Drop the boundaries that a checkpoint has named: replay finds them itself.  Does not sleep, takes
 * no lock: from lc_start(), as lc_ring_start().
 */
void lc_ring_forget_boundaries(struct lc_ring *ring);

/**
 * lc_ring_take() - hand out the next segment number
 * @ring: the ring
 * @reserve: free segments that must remain
 * @number: the number
 *
 * Any context but hard interrupt.  The caller evicts the old content from the
 * index and waits for lc_segment_idle() before it writes there.
 *
 * Return: false if too few are free, or if the place of the next one is being filled.
 */
bool lc_ring_take(struct lc_ring *ring, u64 reserve, u64 *number);

/**
 * lc_ring_fill() - a segment is written to apart from its records
 * @ring: the ring
 * @number: of the segment: opened, and not a lap old
 *
 * Until lc_ring_filled() its place is not handed out again: lc_ring_take() refuses.  So the caller
 * ends that within a lap, or when it is told that a number is wanted.  Any context; takes
 * ring->lock.
 */
void lc_ring_fill(struct lc_ring *ring, u64 number);

/**
 * lc_ring_fill_old() - the same for a segment of an earlier life, of which slots are mapped again
 * @ring: the ring
 * @number: of the segment, below the first one of this life
 *
 * Return: false if its place was handed out since.
 */
bool lc_ring_fill_old(struct lc_ring *ring, u64 number);

/* No write to the segment is on its way any more, nor will one be.  The caller kicks refill. */
void lc_ring_filled(struct lc_ring *ring, u64 number);

/* Is a number wanted whose place is still being filled?  Process context. */
bool lc_ring_blocked(struct lc_ring *ring);

/**
 * lc_ring_set_tail() - a superblock with this tail is durable
 * @ring: the ring
 * @tail: segment number
 * @tail_seq: the seq that it names
 *
 * Process context, does not sleep; takes ring->lock.  One caller at a time (the writeback thread).
 */
void lc_ring_set_tail(struct lc_ring *ring, u64 tail, u64 tail_seq);

/* How many segments are free, those kept back included?  Process context. */
u64 lc_ring_free(struct lc_ring *ring);

/*
 * Is a quarter of the segments free, besides those kept back?  So much is left to writes when
 * blocks are promoted (GR4).  Process context.
 */
bool lc_ring_spares(struct lc_ring *ring);

/* The next number to be handed out.  Process context. */
u64 lc_ring_head(struct lc_ring *ring);

/* The lowest number that replay would need.  Process context. */
u64 lc_ring_tail(struct lc_ring *ring);

/* Of the durable superblock.  Any context. */
u64 lc_ring_tail_seq(const struct lc_ring *ring);

/* Where on the SSD the segment of this number is.  Any context. */
u64 lc_ring_position(const struct lc_ring *ring, u64 number);

/**
 * lc_segment_open() - a segment gets new content
 * @seg: handed out by lc_ring_take(), evicted and idle; without a buffer
 * @number: of the content
 * @boundary_seq: the seq of the boundary, or 0: the segment is none
 * @lane: that opens it
 * @buf: its RAM image, which says already that it is of this segment
 *
 * Under alloc->lock, which take() in alloc.c asserts.  A task that sees the buffer sees the other
 * fields, too.
 */
static inline void lc_segment_open(struct lc_segment *seg, u64 number, u64 boundary_seq, u16 lane,
				   struct lc_buffer *buf)
{
	/* Before anything is written there: see lc_read_reused(). */
	WRITE_ONCE(seg->number, number);
	seg->boundary_seq = boundary_seq;
	seg->lane = lane;
	/* Before any slot of it can be mapped (B2). */
	rcu_assign_pointer(seg->buf, buf);
}

/*
 * The segment has no RAM image any more: all of it is durable, or nothing was put into it.  Any
 * context, takes no lock.  From the task that takes the buffer away: there is one for each buffer.
 */
static inline void lc_segment_drop_buffer(struct lc_segment *seg)
{
	rcu_assign_pointer(seg->buf, NULL);
}

/*
 * A read may take a reference only under the bucket lock of a block mapped there.  The caller locks
 * it; this cannot assert it, because a segment does not know its blocks.
 */
static inline void lc_segment_get(struct lc_segment *seg)
{
	atomic_inc(&seg->refs);
}

/* Return: whether this was the last reference, and the refill worker waits for that. */
static inline bool lc_segment_put(struct lc_ring *ring, struct lc_segment *seg)
{
	/* The full barrier of dec_and_test pairs with the one in lc_segment_idle(). */
	return atomic_dec_and_test(&seg->refs) && READ_ONCE(ring->waiting);
}

/**
 * lc_segment_idle() - are all reads of an evicted segment over?
 * @ring: the ring
 * @seg: the segment
 *
 * Any context, takes no lock.  One caller at a time (the refill worker).  If it returns false, the
 * put of the last reference returns true.
 */
bool lc_segment_idle(struct lc_ring *ring, struct lc_segment *seg);

static inline struct lc_segment *lc_ring_segment(struct lc_ring *ring, u32 slot)
{
	return &ring->segments[slot >> ring->slot_shift];
}

/* Were half of all numbers given away since that of the slot's segment?  A hint.  Any context. */
static inline bool lc_ring_half_a_lap(const struct lc_ring *ring, u32 slot)
{
	u64 number = READ_ONCE(ring->segments[slot >> ring->slot_shift].number);

	return READ_ONCE(ring->head) - number > ring->nr / 2;
}

static inline u32 lc_ring_slot_in_segment(const struct lc_ring *ring, u32 slot)
{
	return slot & ((1u << ring->slot_shift) - 1);
}

#endif /* LC_RING_H */
