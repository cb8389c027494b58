// SPDX-License-Identifier: GPL-2.0-only
/* Work that is queued, and time.  See shim_work.h. */
#include "shim.h"

LIST_HEAD(shim_works);
int shim_atomic;
u64 shim_now;

bool shim_queue(struct workqueue_struct *wq, struct work_struct *work, bool delayed)
{
	if (work->queued)
		return false;
	work->wq = wq;
	work->queued = true;
	work->delayed = delayed;
	list_add_tail(&work->entry, &shim_works);
	return true;
}

bool shim_cancel(struct work_struct *work)
{
	bool was = work->queued;

	if (was)
		list_del(&work->entry);
	work->queued = false;
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
		if (work->wq == wq && !work->delayed)
			return true;
	}
	return false;
}

void shim_works_reset(void)
{
	INIT_LIST_HEAD(&shim_works);
	shim_atomic = 0;
}
