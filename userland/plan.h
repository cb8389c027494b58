/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes that are planned but not done.
 *
 * While a device has a plan, device_write() adds to the plan and device_read() returns what
 * would be there.  So the whole effect of a repair is known before the first byte is written.
 * plan_apply() does the writes in the order in which they were planned.
 */
#ifndef LC_PLAN_H
#define LC_PLAN_H

#include "device.h"

/* More blocks than that (256 MiB) go into another plan. */
#define PLAN_MOST	65536

struct plan_write {
	u64 address;		/* multiple of LC_SLOT_BYTES */
	u8 *block;		/* LC_SLOT_BYTES */
};

/* One for each device. */
struct plan {
	struct plan_write *write;	/* in the order of their planning */
	size_t nr, space;
	size_t *sorted;			/* indices of the latest write to each address */
	size_t nr_sorted;
};

/* The device layer calls these; @dev has a plan.  0 or a negative errno. */
int plan_read(const struct device *dev, u64 offset, void *buf, size_t len);
int plan_write(const struct device *dev, u64 offset, const void *buf, size_t len);

/* Do write number @i of a plan on @dev, which has none, and make it durable. */
int plan_apply(const struct plan *plan, size_t i, const struct device *dev);
void plan_free(struct plan *plan);

#endif
