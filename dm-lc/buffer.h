/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Write buffers, the records in them, and the lane that fills them.
 *
 * A buffer is the RAM image of one segment.  Its life:
 *
 *   free -> ready (has a segment, evicted and idle) -> open -> closed -> free
 *                 refill worker                lane       log: all durable
 *
 * A record's life:  open -> closed (has its seq) -> sealed (image final) ->
 * written -> durable.  It is closed under lane->lock and log->lock together, so
 * seqs follow the order of closing; sealed when the last writer let go.
 *
 * Invariants
 *  B1 The image of a record changes only while a writer holds a reference, which
 *     can be taken only while the record is open (C1).
 *  B2 segment->buf is set from before the first slot is reserved until every
 *     record of the buffer is durable, or longer (G5): what is not on the SSD is found
 *     in RAM.
 *  B3 A buffer is reused only when nobody has it pinned (C6).
 *  B4 Slots handed out but not used become holes: entry NONE, bytes zero (C8).
 *  B5 While lane->relog_wanted, nobody but lc_lane_relog() gets a slot of the segment
 *     that the ring kept back, and no segment is closed before it is full (D1).
 */
#ifndef LC_BUFFER_H
#define LC_BUFFER_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct lc_core;
struct lc_record_header;

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
	u8 type;
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
	struct list_head list;		/* pool->free or lane->ready */
	struct list_head all;		/* pool->all; pool->lock */
	void **slots;			/* address of each slot */
	struct page **chunks;		/* for freeing */
	u8 *orders;
	u32 nr_chunks;
	u64 segment;			/* number */
	u64 position;
	struct lc_core *core;
	atomic_t pins;			/* owner and readers; 0: free */
	u32 nr_records;			/* opened so far; lane->lock */
	u32 undurable;			/* records not durable yet; log->lock */
	u32 unwritten;			/* of these not WRITTEN; log->lock */
	bool closed;			/* no record will be added; log->lock */
	struct lc_record *records;
};

struct lc_pool {
	spinlock_t lock;		/* all below */
	struct list_head free;
	struct list_head all;
	/* These three are read without the lock, too: READ_ONCE() */
	u32 nr_free;
	u32 nr;				/* in all */
	u32 wanted;			/* more than these are freed when they come back */
};

struct lc_lane {
	struct lc_core *core;
	spinlock_t lock;		/* closing and opening records */
	struct lc_record *open;		/* written under lock, read without */
	/*
	 * Writeback needs the reserve segment.  Set before that is taken from the ring, so
	 * whoever sees a record's state there sees this too (B5).  READ_ONCE()
	 */
	bool relog_wanted;
	bool relog_starved;		/* take one kept back; until it is ready.  READ_ONCE() */
	struct lc_buffer *buf;		/* being filled; lock */
	struct list_head ready;		/* buffers with a segment; lock */
	u32 nr_ready;			/* READ_ONCE() */
	u32 max_ready;			/* READ_ONCE() */
	u32 incarnation;		/* lock */
	bool stopped;			/* for good: nothing is opened any more; lock */
	u64 start_segment;		/* first of this life */
	u64 next_segment;		/* behind the last one opened; lock */
};

/* Slots of one record held by one writer, together with a reference. */
struct lc_cursor {
	struct lc_record *rec;
	u32 next;			/* data slot index to use next */
	u32 end;
};

struct lc_pool *lc_pool_create(void);
void lc_pool_destroy(struct lc_pool *pool);
int lc_buffers_alloc(struct lc_core *core, u32 nr, struct list_head *list);
void lc_buffers_free(struct list_head *list);
void lc_pool_add(struct lc_pool *pool, struct list_head *list);
void lc_pool_shrink(struct lc_pool *pool, u32 nr);
struct lc_buffer *lc_pool_get(struct lc_pool *pool);
u32 lc_pool_used(struct lc_pool *pool);

struct lc_buffer *lc_buffer_pin(struct lc_core *core, u32 slot);
void lc_buffer_unpin(struct lc_buffer *buf);
void *lc_buffer_slot(struct lc_core *core, const struct lc_buffer *buf, u32 slot);

struct lc_lane *lc_lane_create(struct lc_core *core);
void lc_lane_destroy(struct lc_lane *lane);
void lc_lane_start(struct lc_lane *lane, u64 segment);
void lc_lane_add_ready(struct lc_lane *lane, struct lc_buffer *buf);
int lc_lane_reserve(struct lc_lane *lane, u32 want, struct lc_cursor *cur);
int lc_lane_relog(struct lc_lane *lane, struct lc_cursor *cur);
void lc_lane_release(struct lc_cursor *cur);
u64 lc_lane_seal(struct lc_lane *lane, bool close_segment);
u64 lc_lane_flush(struct lc_lane *lane, bool direct);
void lc_lane_stop(struct lc_lane *lane);
u64 lc_lane_mark(struct lc_lane *lane);
int lc_lane_append_ranges(struct lc_lane *lane, u64 block, u64 nr_blocks, u8 entry_type,
			  u64 *segment, u32 *first_slot);
u64 lc_lane_next_segment(struct lc_lane *lane);
u64 lc_lane_first_seq(struct lc_lane *lane, u64 number);

u32 lc_cursor_slot(const struct lc_cursor *cur);
bool lc_cursor_owns(const struct lc_cursor *cur, u32 slot);
bool lc_cursor_outdated(const struct lc_cursor *cur, u32 slot);
void *lc_cursor_image(const struct lc_cursor *cur, u32 slot);
void lc_cursor_describe(const struct lc_cursor *cur, u32 slot, u64 block, u8 mask, u8 lost);

void lc_record_put(struct lc_record *rec);
struct lc_record_header *lc_record_image(const struct lc_record *rec);

#endif /* LC_BUFFER_H */
