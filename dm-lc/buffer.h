/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Write buffers and the records in them.  lane.h has who opens and closes them.
 *
 * A buffer is the RAM image of one segment.  Its life:
 *
 *   free -> ready (header cleared) -> open (has its segment) -> closed -> free
 *         refill worker             lane                      log: all durable
 *
 * A record's life:  open -> closed (has its seq) -> sealed (image final) ->
 * written -> durable.  It is closed under lane->lock and log->lock together, so
 * seqs follow the order of closing, of all lanes; sealed when the last writer let go.
 *
 * Invariants
 *  B1 The image of a record changes only while a writer holds a reference, which
 *     can be taken only while the record is open (C1).
 *  B2 segment->buf is set from before the first slot is reserved until every
 *     record of the buffer is durable, or longer (G5): what is not on the SSD is found
 *     in RAM.  So a mapped slot whose segment has no buffer is in a record of a lower
 *     seq than any that a writer still holds a reference on.
 *  B3 A buffer is reused only when nobody has it pinned (C6).
 *  B4 Slots handed out but not used become holes: entry NONE, bytes zero (C8).
 *  B5 While head->relog_wanted, nobody but lc_lane_relog() opens a segment or gets a
 *     slot, and the segment it is at work in is not closed before it is full (D1).
 *  B6 A block that is in an open record, whosever lane that is, is overwritten there: of
 *     two records open at once none is the newer one yet.  A writer looks for it before
 *     slots are reserved: slots that others reserved behind cannot be given back (B4).
 *  B7 A task that holds a reference on a record, or has closed one, is not preempted until it
 *     has dropped the reference, and has handed the record over if it was the last one: see
 *     lc_hold().  It copies at most LC_HOLD_SLOTS slots meanwhile.  So a writer that gets no CPU
 *     delays no FLUSH.
 */
#ifndef LC_BUFFER_H
#define LC_BUFFER_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/preempt.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "lc.h"
#include "segment.h"

struct bio_list;
struct lc_lane;
struct lc_record_header;

/* 64 KiB: by estimate 10 us to copy, and 60 us from memory that is far and slow. */
#define LC_HOLD_SLOTS	16u

enum lc_record_stage {
	LC_RECORD_OPEN,
	LC_RECORD_CLOSED,
	LC_RECORD_WRITTEN,
	LC_RECORD_FAILED,		/* to be written again */
};

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
	bool owed;			/* to the next FLUSH (G7); READ_ONCE() */
	/* below: log->lock */
	u8 stage;
	bool want_durable;		/* closed on behalf of a flush */
	bool solid;			/* durable once WRITTEN (G2) */
	u32 round;			/* log->round when it was submitted */
	u64 seq;
	struct list_head list;		/* log->pending, in seq order */
	union {
		struct list_head turn;	/* send->waiting: its turn comes; send->lock */
		struct work_struct work;	/* it has come; whose that is */
	};
};

struct lc_buffer {
	struct list_head list;		/* free or lane->ready */
	struct list_head all;		/* pool->all; pool->lock */
	void **slots;			/* address of each slot */
	struct page **chunks;		/* for freeing */
	u8 *orders;
	u32 nr_chunks;
	u64 segment;			/* number */
	u64 position;
	u64 cut;			/* head->cut when it was opened; 0: its own segment */
	struct lc_core *core;
	u32 home;			/* lane in whose node its memory is; only that one has it */
	atomic_t pins;			/* owner and readers; 0: free */
	u32 nr_records;			/* opened so far; lane->lock */
	u32 undurable;			/* records not durable yet; log->lock */
	u32 unwritten;			/* of these not WRITTEN; log->lock */
	bool closed;			/* no record will be added; log->lock */
	struct lc_record *records;
};

/* The buffers of one lane.  The numbers are read without the lock, too: READ_ONCE() */
struct lc_home {
	struct list_head free;
	u32 nr_free;
	u32 nr;				/* in all */
	u32 nr_unflushed;		/* closed and written, not durable; log->lock */
	int node;			/* of their memory, or NUMA_NO_NODE */
};

struct lc_pool {
	spinlock_t lock;		/* all below, and the homes */
	struct list_head all;
	u32 nr;				/* in all; READ_ONCE() */
	u32 wanted;			/* more are freed when they come back; READ_ONCE() */
	u32 nr_homes;
	struct lc_home homes[];		/* one for each lane */
};

/* Slots of one record held by one writer, perhaps none, together with a reference. */
struct lc_cursor {
	struct lc_record *rec;
	u32 next;			/* data slot index to use next */
	u32 end;			/* behind the last; 0: none were reserved */
	bool owes;			/* the write completes before it is durable (G7) */
};

/* How the record of a mapped slot and the cursor's are to each other. */
enum lc_order {
	LC_ORDER_OLDER,		/* it loses at replay */
	LC_ORDER_OWN,		/* the cursor's own */
	LC_ORDER_NEWER,		/* it wins, or may win */
	LC_ORDER_OPEN,		/* open in another lane: overwrite it there (B6) */
};

/*
 * From before a reference on a record is taken, or a record is closed, until it has been let go of
 * (B7).  Nests.  With PREEMPT_RT spin locks sleep, and the one who waits lends its priority to
 * nobody who copies; there B7 does not hold.
 */
static inline void lc_hold(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
}

static inline void lc_unhold(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
}

struct lc_pool *lc_pool_create(u32 nr_homes);
void lc_pool_destroy(struct lc_pool *pool);
int lc_buffers_alloc(struct lc_core *core, u32 nr, struct list_head *list);
void lc_buffers_free(struct list_head *list);
void lc_pool_add(struct lc_pool *pool, struct list_head *list);
void lc_pool_shrink(struct lc_pool *pool, u32 nr);
struct lc_buffer *lc_pool_get(struct lc_pool *pool, u32 home);
u32 lc_pool_used(const struct lc_pool *pool);

struct lc_buffer *lc_buffer_pin(struct lc_core *core, u32 slot);
void lc_buffer_unpin(struct lc_buffer *buf);

bool lc_cursor_join(const struct lc_core *core, u32 slot, struct lc_cursor *cur);
enum lc_order lc_cursor_compare(const struct lc_cursor *cur, u32 slot, struct lc_cursor *other);
void lc_cursor_describe(const struct lc_cursor *cur, u32 slot, u64 block, u8 mask, u8 lost);
void lc_cursor_release(struct lc_cursor *cur);

/* For the lane, under its lock; the first and the last one without. */
int lc_record_get(struct lc_record *rec, u32 want, const bool *refuse, struct lc_cursor *cur);
struct lc_record *lc_record_open(struct lc_buffer *buf, u8 type, u32 incarnation);
void lc_record_shut(struct lc_record *rec);
bool lc_record_retract(struct lc_record *rec);
bool lc_record_used(const struct lc_record *rec);
bool lc_record_untouched(const struct lc_record *rec);
u32 lc_buffer_end(const struct lc_buffer *buf);
void lc_record_put(struct lc_record *rec, struct bio_list *direct);
struct lc_record_header *lc_record_image(const struct lc_record *rec);

static inline void *lc_buffer_slot(struct lc_core *core, const struct lc_buffer *buf, u32 slot)
{
	return buf->slots[lc_ring_slot_in_segment(core->ring, slot)];
}

/* The cursor's next slot, numbered over the whole SSD. */
static inline u32 lc_cursor_slot(const struct lc_cursor *cur)
{
	const struct lc_record *rec = cur->rec;

	return (rec->buf->position << rec->buf->core->ring->slot_shift) + rec->first_slot +
	       LC_HEADER_SLOTS + cur->next;
}

static inline void *lc_cursor_image(const struct lc_cursor *cur, u32 slot)
{
	return lc_buffer_slot(cur->rec->buf->core, cur->rec->buf, slot);
}

#endif /* LC_BUFFER_H */
