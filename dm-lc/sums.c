// SPDX-License-Identifier: GPL-2.0-only
/* The sums of all slots.  See sums.h. */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "lc.h"
#include "sums.h"

/**
 * lc_sums_enable() - keep sums from now on
 * @core: the volume
 *
 * Does nothing if they are kept already.  May sleep, and reclaim memory through this very
 * volume: not while it is suspended, nor under a lock that its way out of trouble needs.
 * Nobody is killed for it, and not more than half of the RAM taken.
 * Return: 0 or -ENOMEM.
 */
int lc_sums_enable(struct lc_core *core)
{
	u64 bytes = core->sb.geo.nr_slots * sizeof(u32);
	u32 *sums;

	if (READ_ONCE(core->sums))
		return 0;
	if (bytes >> PAGE_SHIFT > totalram_pages() / 2)
		return -ENOMEM;
	sums = __vmalloc(bytes, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY);
	if (!sums)
		return -ENOMEM;
	/* Whoever sees the array sees zeros: READ_ONCE() orders what depends on it. */
	if (cmpxchg_release(&core->sums, NULL, sums))
		vfree(sums);
	return 0;
}

/* Nobody reads or writes the SSD any more. */
void lc_sums_destroy(struct lc_core *core)
{
	vfree(core->sums);
}

/* Any context.  Return: bytes of RAM. */
u64 lc_sums_bytes(const struct lc_core *core)
{
	return READ_ONCE(core->sums) ? core->sb.geo.nr_slots * sizeof(u32) : 0;
}
