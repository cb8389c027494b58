/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes that are planned but not done.
 *
 * While a device has a plan, device_write() adds to the plan and device_read() returns what
 * would be there.  So the whole effect of a repair is known before the first byte is written.
 * Afterwards lc-check does the writes in the order in which they were planned.
 */
#ifndef LC_PLAN_H
#define LC_PLAN_H

#include <linux/types.h>

struct device;

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

/* How plan_read() reads what is not planned.  0 or a negative errno. */
typedef int plan_read_fn(const struct device *dev, u64 offset, void *buf, size_t len);

/*
 * Read what will be there: from the plan, and the rest with @read from @dev.  What is planned is
 * not read from the medium: it may be planned because it is unreadable.
 * Return: 0, or what @read returned.
 */
int plan_read(const struct plan *plan, plan_read_fn *read, const struct device *dev, u64 offset,
	      void *buf, size_t len);
/* Plan to write whole blocks, which are copied.  Return: 0, or -EINVAL if they are not whole. */
int plan_write(struct plan *plan, u64 offset, const void *buf, size_t len);
void plan_free(struct plan *plan);

#endif
