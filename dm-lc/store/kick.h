/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A kick: wakes the worker of a room above, because what it waits for may have come.
 *
 * The room that kicks does not know what the worker does.  A kick that comes while the worker runs
 * makes it run once more, so that it misses nothing.
 */
#ifndef LC_KICK_H
#define LC_KICK_H

#include <linux/workqueue.h>

struct lc_kick {
	struct workqueue_struct *wq;
	struct work_struct *work;
};

/* Any context.  The owner of the work cancels it when no room is left that kicks. */
static inline void lc_kick(const struct lc_kick *kick)
{
	queue_work(kick->wq, kick->work);
}

#endif /* LC_KICK_H */
