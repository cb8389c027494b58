// SPDX-License-Identifier: GPL-2.0-only
/* Writes that are planned but not done, see plan.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "memory.h"
#include "plan.h"

/* Where the latest write to @address is in sorted[], or would be. */
static size_t find(const struct plan *plan, u64 address)
{
	size_t low = 0, high = plan->nr_sorted;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (plan->write[plan->sorted[middle]].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int plan_read(const struct plan *plan, plan_read_fn *read, const struct device *dev, u64 offset,
	      void *buf, size_t len)
{
	u64 end = offset + len;
	size_t i = find(plan, offset & ~(u64)(LC_SLOT_BYTES - 1));
	u8 *to = buf;
	int ret = 0;

	for (; i < plan->nr_sorted && offset < end && !ret; i++) {
		const struct plan_write *w = &plan->write[plan->sorted[i]];
		u64 from, till;

		if (w->address >= end)
			break;
		if (w->address > offset)
			ret = read(dev, offset, to, w->address - offset);
		from = w->address > offset ? w->address : offset;
		till = w->address + LC_SLOT_BYTES < end ? w->address + LC_SLOT_BYTES : end;
		memcpy(to + (from - offset), w->block + (from - w->address), till - from);
		to += till - offset;
		offset = till;
	}
	return ret || offset == end ? ret : read(dev, offset, to, end - offset);
}

int plan_write(struct plan *plan, u64 offset, const void *buf, size_t len)
{
	const u8 *from = buf;

	if (offset % LC_SLOT_BYTES || len % LC_SLOT_BYTES)
		return -EINVAL;
	for (; len; len -= LC_SLOT_BYTES, offset += LC_SLOT_BYTES, from += LC_SLOT_BYTES) {
		size_t at = find(plan, offset);

		if (plan->nr == plan->space) {
			plan->space = plan->space ? plan->space * 2 : 16;
			plan->write = xrealloc(plan->write, plan->space, sizeof(*plan->write));
			plan->sorted = xrealloc(plan->sorted, plan->space, sizeof(*plan->sorted));
		}
		plan->write[plan->nr].address = offset;
		plan->write[plan->nr].block = xcalloc(1, LC_SLOT_BYTES);
		memcpy(plan->write[plan->nr].block, from, LC_SLOT_BYTES);
		if (at == plan->nr_sorted || plan->write[plan->sorted[at]].address != offset) {
			memmove(plan->sorted + at + 1, plan->sorted + at,
				(plan->nr_sorted - at) * sizeof(*plan->sorted));
			plan->nr_sorted++;
		}
		plan->sorted[at] = plan->nr++;
	}
	return 0;
}

void plan_free(struct plan *plan)
{
	size_t i;

	for (i = 0; i < plan->nr; i++)
		free(plan->write[i].block);
	free(plan->write);
	free(plan->sorted);
	memset(plan, 0, sizeof(*plan));
}
