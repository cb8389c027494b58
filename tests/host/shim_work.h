/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Work, tasks, and waiting for others.  See shim.h.
 *
 * What is queued waits in shim_works, in the order in which it was queued, until the user of the
 * shim takes it out with shim_run(): in any order, as workers of an unbound queue do.  Delayed work
 * waits there, too, and its time may come whenever the user likes.
 *
 * Work that may sleep is taken out with shim_run_task(): it, and a kernel thread, is a task with a
 * stack of its own.  A task runs until it sleeps, in shim_step(), and goes on in another one when
 * what it sleeps on was woken, or its time has come: whenever the user likes, too.  Nothing else
 * wakes it: without a wake-up it sleeps for ever.  What is no task calls shim_wait() instead.
 */
#ifndef HOST_SHIM_WORK_H
#define HOST_SHIM_WORK_H

struct workqueue_struct;

struct work_struct {
	void (*func)(struct work_struct *work);
	struct list_head entry;		/* shim_works, if queued */
	struct workqueue_struct *wq;
	bool queued;
	bool running;			/* as a task */
	unsigned long delay;		/* ticks until its time comes; 0: it has come */
};

struct delayed_work {
	struct work_struct work;
};

extern struct list_head shim_works;

/* Return: false if it is queued already. */
bool shim_queue(struct workqueue_struct *wq, struct work_struct *work, unsigned long delay);
/* Return: whether it was queued. */
bool shim_cancel(struct work_struct *work);
/* Run one that is queued. */
void shim_run(struct work_struct *work);
/* Is any work of the queue pending, delayed work not counted? */
bool shim_busy(const struct workqueue_struct *wq);
/* Forget all of it, all tasks, and that anything is held. */
void shim_works_reset(void);

/* Of the user of the shim: others go on.  Returns when something has happened. */
void shim_wait(void);

#define SHIM_TASKS	16

enum shim_state { SHIM_NONE, SHIM_AWAKE, SHIM_ASLEEP, SHIM_ASLEEP_FOR_A_TIME };

/* A task that will call @func.  Return: its number, from 0: the lowest that is free. */
unsigned int shim_task(int (*func)(void *arg), void *arg);
/* Take work that is queued, for a task. */
void shim_run_task(struct work_struct *work);
enum shim_state shim_state(unsigned int task);
/* What a task runs for, as of shim_task(). */
const void *shim_arg(unsigned int task);
/* A task goes on until it sleeps or ends.  It is not asleep, or for a time: that is over then. */
void shim_step(unsigned int task);
/* In a task? */
bool shim_in_task(void);
/* Sleep until @on is woken; @timed: or until a time is over.  Return: whether it was woken. */
bool shim_sleep(const void *on, bool timed);
void shim_wake(const void *on);
void shim_wake_one(const void *on);
/* Does a task sleep on it? */
bool shim_asleep(const void *on);

#define WQ_MEM_RECLAIM	0
#define WQ_UNBOUND	0
#define WQ_PERCPU	0
#define WQ_HIGHPRI	0
#define WQ_MAX_ACTIVE	0
#define HZ		250
#define MSEC_PER_SEC	1000
#define INIT_WORK(w, f)		((w)->func = (f), (w)->queued = false, (w)->running = false)
#define INIT_DELAYED_WORK(w, f)	INIT_WORK(&(w)->work, f)
#define queue_work(wq, w)	shim_queue(wq, w, 0)
#define queue_delayed_work(wq, w, ticks) shim_queue(wq, &(w)->work, ticks)
#define mod_delayed_work(wq, w, ticks) queue_delayed_work(wq, w, ticks)
#define to_delayed_work(w)	container_of(w, struct delayed_work, work)
#define cancel_work_sync(w)	shim_cancel(w)
#define cancel_delayed_work_sync(w) shim_cancel(&(w)->work)
#define flush_work(w)		do { while ((w)->queued || (w)->running) \
					shim_sleep(w, false); } while (0)
#define flush_workqueue(wq)	do { while (shim_busy(wq)) shim_wait(); } while (0)
#define msecs_to_jiffies(ms)	((ms) * HZ / 1000)
/* Never looked into: any address says that there is one. */
#define alloc_workqueue(name, flags, n) ((struct workqueue_struct *)(name))
#define alloc_ordered_workqueue(name, flags) alloc_workqueue(name, flags, 1)
#define destroy_workqueue(wq)	((void)(wq))

#define kthread_run(func, data, name) (shim_task(func, data), &shim_current)
#define kthread_should_stop()	false
#define kthread_stop(task)	((void)(task))
#define IS_ERR(pointer)		((void)(pointer), false)

/* Its address is all that counts. */
typedef struct { int unused; } wait_queue_head_t;

#define MAX_SCHEDULE_TIMEOUT	(~0UL >> 1)
#define init_waitqueue_head(head) ((void)(head))
#define wake_up_all(head)	shim_wake(head)
#define wake_up(head)		shim_wake_one(head)
#define wq_has_sleeper(head)	shim_asleep(head)
#define wait_event(head, cond)	do { while (!(cond)) shim_sleep(&(head), false); } while (0)
#define wait_event_idle(head, cond) wait_event(head, cond)
#define wait_event_idle_timeout(head, cond, ticks) \
	do { while (!(cond) && shim_sleep(&(head), (ticks) != (long)MAX_SCHEDULE_TIMEOUT)); \
	} while (0)
/* Nobody else runs between the two: nothing is missed. */
#define DEFINE_WAIT(name)	const void *name
#define prepare_to_wait_exclusive(head, wait, state) (shim_current.on = *(wait) = (head))
#define io_schedule()		((void)shim_sleep(shim_current.on, false))
#define finish_wait(head, wait)	((void)(head))
#define schedule_timeout_idle(ticks) ((void)(ticks), (void)shim_sleep(NULL, true))

#endif /* HOST_SHIM_WORK_H */
