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

struct lc_core;
struct lc_params;
struct work_struct;

/* core->refill_work */
void lc_refill_work(struct work_struct *work);
/* core->pace_work: kicks the worker when writes have been slowed down for long enough. */
void lc_refill_pace_work(struct work_struct *work);

/* How many buffers each lane has at hand, and how many segments are evicted for them. */
void lc_refill_set_ready(struct lc_core *core, const struct lc_params *params);

#endif /* LC_REFILL_H */
