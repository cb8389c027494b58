/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The refill worker: keeps free buffers and evicted segments ready for the lanes.
 *
 * It runs when it is kicked: a buffer has come back, the tail has moved, a lane has taken half of
 * what was ready.  It hands out less than there is while writes have to be slowed down: the log is
 * as good as full (pace.h), or too much waits for the SSD (backlog.h).
 *
 * All in process context.  The worker may sleep, but not for a device.
 */
#ifndef LC_REFILL_H
#define LC_REFILL_H

#define LC_MOST_READY	16u	/* segments and buffers at hand, for each lane */

struct lc_cache;
struct lc_params;
struct lc_refill;

/* Operations of writeback.  Process context; neither sleeps. */
struct lc_refill_ops {
	/* Return: jiffies from one segment that is taken to the next. */
	unsigned long (*pace)(const void *owner);
	/* The worker has run: the number of free segments may have changed. */
	void (*ran)(void *owner);
};

/* Operations of the room that logs clean blocks again.  By the worker; neither sleeps. */
struct lc_refill_keeper {
	/*
	 * A clean block of a segment that is being evicted is to be logged again, with these
	 * LC_ADMIT_*.  No lock is held.  Return: whether the slot is not mapped any more.
	 */
	bool (*keep)(void *owner, u64 block, u32 slot, u8 use);
	/* All of a segment was evicted. */
	void (*evicted)(void *owner);
};

/*
 * @c: env.wq exists.  Sets env.refill, which must not be kicked before the rooms up to the log
 * exist and lc_refill_attach() was called.  May sleep.  Return: the refill worker or NULL.
 */
struct lc_refill *lc_refill_create(struct lc_cache *c);
/* After lc_refill_stop().  @refill or NULL.  May sleep. */
void lc_refill_destroy(struct lc_refill *refill);

/* Before the first kick, from any context.  @ops and @owner stay until the last one. */
void lc_refill_attach(struct lc_refill *refill, const struct lc_refill_ops *ops, void *owner);

/* The same; perhaps never. */
void lc_refill_attach_keeper(struct lc_refill *refill, const struct lc_refill_keeper *keeper,
			     void *owner);

/* Wait until the worker has done what it was kicked for before.  May sleep. */
void lc_refill_wait(struct lc_refill *refill);

/* Writes come: slow them down if that is due; and kick the worker.  Any context. */
void lc_refill_resume(struct lc_refill *refill);
/* Wait until the worker and its timer do not run; the next kick starts the worker.  May sleep. */
void lc_refill_quiesce(struct lc_refill *refill);
/* End the worker for good: no room kicks it any more.  After lc_refill_quiesce().  May sleep. */
void lc_refill_stop(struct lc_refill *refill);

/*
 * How many buffers each lane has at hand, and how many segments are evicted for them.  @params: in
 * force from now on.  Any context, takes no lock; the worker reads it when it runs next.
 */
void lc_refill_set_ready(struct lc_cache *c, const struct lc_params *params);

#endif /* LC_REFILL_H */
