/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A worker to be told that what it waits for may have come.
 *
 * A room holds the kick of a room above it and does not know what the worker does.  A kick that
 * comes while the worker runs makes it run once more, so that it misses nothing.
 */
#ifndef LC_KICK_H
#define LC_KICK_H

#include <linux/workqueue.h>

struct lc_kick {
	struct workqueue_struct *wq;
	struct work_struct *work;
};

/* Any context.  The owner of the work cancels it when nobody is left who kicks. */
static inline void lc_kick(const struct lc_kick *kick)
{
	queue_work(kick->wq, kick->work);
}

#endif /* LC_KICK_H */
