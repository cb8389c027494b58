/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The refill worker: has free buffers and evicted segments at hand for the lanes.
 *
 * It runs when it is kicked: a buffer has come back, the tail has moved, a lane has taken half of
 * what was ready.  It gives less than there is when writes are to be slowed down: while the log is
 * as good as full (pace.h), and while too much waits for the SSD (backlog.h).
 *
 * All in process context.  The worker may sleep, but not for a device.
 */
#ifndef LC_REFILL_H
#define LC_REFILL_H

struct lc_cache;
struct lc_params;
struct lc_refill;

/* What the room that drains the log says, and is told.  Process context; neither sleeps. */
struct lc_refill_ops {
	/* How many jiffies after a segment was taken may the next one be? */
	unsigned long (*pace)(const void *owner);
	/* The worker has run: the number of free segments may be another. */
	void (*ran)(void *owner);
};

/*
 * @c: its workqueue is there.  Sets env.refill, which is kicked only when the rooms up to the log
 * are there, and lc_refill_attach() was called.  May sleep.  Return: the room or NULL.
 */
struct lc_refill *lc_refill_create(struct lc_cache *c);
/* After lc_refill_stop().  @refill or NULL. */
void lc_refill_destroy(struct lc_refill *refill);

/* Before the first kick.  @ops and @owner stay until the last one. */
void lc_refill_attach(struct lc_refill *refill, const struct lc_refill_ops *ops, void *owner);

/* Wait until the worker has done what it was kicked for before.  May sleep. */
void lc_refill_wait(struct lc_refill *refill);

/* Writes come: slow them down if that is due; and kick the worker.  Any context. */
void lc_refill_resume(struct lc_refill *refill);
/* Nothing of the room runs afterwards until it is kicked again.  May sleep. */
void lc_refill_quiesce(struct lc_refill *refill);
/* The worker ends for good: nobody kicks it any more.  After lc_refill_quiesce().  May sleep. */
void lc_refill_stop(struct lc_refill *refill);

/* How many buffers each lane has at hand, and how many segments are evicted for them. */
void lc_refill_set_ready(struct lc_cache *c, const struct lc_params *params);

#endif /* LC_REFILL_H */
