/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Work, and waiting for others.  See shim.h.
 *
 * What is queued waits in shim_works, in the order in which it was queued, until the user of the
 * shim takes it out with shim_run(): in any order, as workers of an unbound queue do.  Delayed work
 * waits there, too, and its time may come whenever the user likes.
 */
#ifndef HOST_SHIM_WORK_H
#define HOST_SHIM_WORK_H

struct workqueue_struct;

struct work_struct {
	void (*func)(struct work_struct *work);
	struct list_head entry;		/* shim_works, if queued */
	struct workqueue_struct *wq;
	bool queued;
	bool delayed;			/* its time has not come */
};

struct delayed_work {
	struct work_struct work;
};

extern struct list_head shim_works;

/* Return: false if it is queued already. */
bool shim_queue(struct workqueue_struct *wq, struct work_struct *work, bool delayed);
/* Return: whether it was queued. */
bool shim_cancel(struct work_struct *work);
/* Run one that is queued. */
void shim_run(struct work_struct *work);
/* Is any work of the queue pending, delayed work not counted? */
bool shim_busy(const struct workqueue_struct *wq);
/* Forget all of it, and that anything is held. */
void shim_works_reset(void);

/* Of the user of the shim: the task waits, others go on.  Returns when something has happened. */
void shim_wait(void);

#define WQ_MEM_RECLAIM	0
#define WQ_UNBOUND	0
#define WQ_PERCPU	0
#define WQ_HIGHPRI	0
#define WQ_MAX_ACTIVE	0
#define HZ		250
#define MSEC_PER_SEC	1000
#define INIT_WORK(w, f)		((w)->func = (f), (w)->queued = false)
#define INIT_DELAYED_WORK(w, f)	INIT_WORK(&(w)->work, f)
#define queue_work(wq, w)	shim_queue(wq, w, false)
#define queue_delayed_work(wq, w, ticks) ((void)(ticks), shim_queue(wq, &(w)->work, true))
#define mod_delayed_work(wq, w, ticks) queue_delayed_work(wq, w, ticks)
#define to_delayed_work(w)	container_of(w, struct delayed_work, work)
#define cancel_work_sync(w)	shim_cancel(w)
#define cancel_delayed_work_sync(w) shim_cancel(&(w)->work)
#define flush_work(w)		do { while ((w)->queued) shim_wait(); } while (0)
#define flush_workqueue(wq)	do { while (shim_busy(wq)) shim_wait(); } while (0)
#define msecs_to_jiffies(ms)	((ms) * HZ / 1000)
/* Never looked into: any address says that there is one. */
#define alloc_workqueue(name, flags, n) ((struct workqueue_struct *)(name))
#define alloc_ordered_workqueue(name, flags) alloc_workqueue(name, flags, 1)
#define destroy_workqueue(wq)	((void)(wq))

/* Who waits looks again when anything has happened. */
typedef struct { int unused; } wait_queue_head_t;

#define init_waitqueue_head(head) ((void)(head))
#define wake_up_all(head)	((void)(head))
#define wait_event(head, cond)	do { (void)(head); while (!(cond)) shim_wait(); } while (0)

#endif /* HOST_SHIM_WORK_H */
