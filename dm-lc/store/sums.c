// SPDX-License-Identifier: GPL-2.0-only
/* The sums of all slots.  See sums.h. */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "store/sums.h"

int lc_sums_enable(struct lc_sums *sums)
{
	u64 bytes = sums->nr_slots * sizeof(u32);
	u32 *by_slot;

	if (lc_sums_enabled(sums))
		return 0;
	if (bytes >> PAGE_SHIFT > totalram_pages() / 2)
		return -ENOMEM;
	by_slot = __vmalloc(bytes, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY);
	if (!by_slot)
		return -ENOMEM;
	/* A task that sees the array sees zeros: READ_ONCE() orders what depends on it. */
	if (cmpxchg_release(&sums->by_slot, NULL, by_slot))
		vfree(by_slot);
	return 0;
}

void lc_sums_destroy(struct lc_sums *sums)
{
	vfree(sums->by_slot);
}

u64 lc_sums_bytes(const struct lc_sums *sums)
{
	return lc_sums_enabled(sums) ? sums->nr_slots * sizeof(u32) : 0;
}
