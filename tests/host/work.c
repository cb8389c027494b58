// SPDX-License-Identifier: GPL-2.0-only
/* Work that is queued, tasks, and time.  See shim_work.h. */
#include <ucontext.h>

#include "shim.h"

LIST_HEAD(shim_works);
int shim_atomic;
u64 shim_now;
u64 shim_random;

bool shim_queue(struct workqueue_struct *wq, struct work_struct *work, unsigned long delay)
{
	if (work->queued)
		return false;
	work->wq = wq;
	work->queued = true;
	work->delay = delay;
	list_add_tail(&work->entry, &shim_works);
	return true;
}

bool shim_cancel(struct work_struct *work)
{
	bool was = work->queued;

	if (was)
		list_del(&work->entry);
	work->queued = false;
	shim_wake(work);
	return was;
}

void shim_run(struct work_struct *work)
{
	shim_cancel(work);
	/* It may be queued again, or freed, from here on. */
	work->func(work);
}

bool shim_busy(const struct workqueue_struct *wq)
{
	struct work_struct *work;

	list_for_each_entry(work, &shim_works, entry) {
		if (work->wq == wq && !work->delay)
			return true;
	}
	return false;
}

/* --- tasks ------------------------------------------------------------------ */

#define STACK_BYTES	(128u << 10)

static struct task {
	enum shim_state state;
	bool woken;
	int (*func)(void *arg);
	void *arg;
	const void *on;			/* what it sleeps on */
	ucontext_t context;
	u8 *stack;
} tasks[SHIM_TASKS], *running;
static u32 nr_tasks;			/* no higher ones are in use */
static ucontext_t others;

static void task_main(void)
{
	running->func(running->arg);
	running->state = SHIM_NONE;
}

unsigned int shim_task(int (*func)(void *arg), void *arg)
{
	struct task *task = tasks;

	while (task < tasks + SHIM_TASKS && task->state)
		task++;
	if (task == tasks + SHIM_TASKS) {
		fprintf(stderr, "shim: too many tasks\n");
		exit(2);
	}
	nr_tasks = max(nr_tasks, (u32)(task - tasks) + 1);
	task->state = SHIM_AWAKE;
	task->func = func;
	task->arg = arg;
	task->on = NULL;
	return task - tasks;
}

/* Many a task is made that never runs. */
static void task_begin(struct task *task)
{
	if (!task->stack)
		task->stack = malloc(STACK_BYTES);
	getcontext(&task->context);
	task->context.uc_stack.ss_sp = task->stack;
	task->context.uc_stack.ss_size = STACK_BYTES;
	task->context.uc_link = &others;
	task->on = task;
	makecontext(&task->context, task_main, 0);
}

static int work_task(void *arg)
{
	struct work_struct *work = arg;

	work->func(work);
	work->running = false;
	shim_wake(work);
	return 0;
}

void shim_run_task(struct work_struct *work)
{
	shim_cancel(work);
	work->running = true;
	shim_task(work_task, work);
}

enum shim_state shim_state(unsigned int task)
{
	return task < nr_tasks ? tasks[task].state : SHIM_NONE;
}

const void *shim_arg(unsigned int task)
{
	return tasks[task].arg;
}

void shim_step(unsigned int task)
{
	running = &tasks[task];
	if (!running->on)
		task_begin(running);
	running->woken = running->state == SHIM_AWAKE;
	running->state = SHIM_AWAKE;
	swapcontext(&others, &running->context);
	running = NULL;
}

bool shim_in_task(void)
{
	return running;
}

bool shim_sleep(const void *on, bool timed)
{
	struct task *task = running;

	if (shim_atomic)
		shim_warn("sleeps with a lock", __FILE__, __LINE__);
	if (!task) {
		shim_wait();
		return true;
	}
	task->on = on ?: task;
	task->state = timed ? SHIM_ASLEEP_FOR_A_TIME : SHIM_ASLEEP;
	swapcontext(&task->context, &others);
	return task->woken;
}

static struct task *first_asleep(const void *on)
{
	struct task *task = tasks;

	for (; task < tasks + nr_tasks; task++) {
		if (task->state > SHIM_AWAKE && task->on == on)
			return task;
	}
	return NULL;
}

bool shim_asleep(const void *on)
{
	return first_asleep(on);
}

void shim_wake_one(const void *on)
{
	struct task *task = first_asleep(on);

	if (task)
		task->state = SHIM_AWAKE;
}

void shim_wake(const void *on)
{
	while (shim_asleep(on))
		shim_wake_one(on);
}

/* Nobody else is there, unless the user of the shim says so. */
void __attribute__((weak)) shim_wait(void)
{
	fprintf(stderr, "shim: a task would wait for ever\n");
	exit(2);
}

void shim_works_reset(void)
{
	while (nr_tasks)
		tasks[--nr_tasks].state = SHIM_NONE;
	INIT_LIST_HEAD(&shim_works);
	shim_atomic = 0;
}
