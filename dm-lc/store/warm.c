// SPDX-License-Identifier: GPL-2.0-only
/* Where the scan after a crash meets the rest of the volume.  See warm.h. */
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "store/index.h"
#include "store/warm.h"

void lc_warm_init(struct lc_warm *warm)
{
	spin_lock_init(&warm->lock);
	warm->from = LC_WARM_NOTHING;
}

int lc_warm_begin(struct lc_warm *warm, u32 most)
{
	struct lc_range *ranges = kvmalloc_array(most, sizeof(*ranges), GFP_KERNEL);

	if (!ranges)
		return -ENOMEM;
	spin_lock(&warm->lock);
	warm->touched = (struct lc_ranges){ .ranges = ranges, .most = most };
	warm->full = false;
	warm->missed = false;
	WRITE_ONCE(warm->scanning, true);
	spin_unlock(&warm->lock);
	return 0;
}

bool lc_warm_end(struct lc_warm *warm)
{
	struct lc_range *ranges;
	bool missed;

	spin_lock(&warm->lock);
	ranges = warm->touched.ranges;
	missed = warm->missed;
	warm->missed = false;
	warm->touched = (struct lc_ranges){ };
	/* Pairs with lc_warm_touch(). */
	smp_store_release(&warm->scanning, false);
	spin_unlock(&warm->lock);
	kvfree(ranges);
	return missed;
}

static bool is_pending(const struct lc_mapping *map)
{
	return !map->dirty && !map->mask && !map->lost;
}

/* [lock] Nor does an older copy enter, if the pending one leaves the index (WS10). */
static void pass(struct lc_warm *warm, u64 block)
{
	lockdep_assert_held(&warm->lock);
	WRITE_ONCE(warm->passed, true);
	if (!lc_ranges_add(&warm->touched, block, block))
		warm->full = true;
}

bool lc_warm_enter(struct lc_warm *warm, struct lc_index *index, u64 block,
		   const struct lc_mapping *map)
{
	u32 bucket = lc_index_lock(index, block);
	struct lc_mapping old;
	bool enters, found;

	/* Held until the copy is in the index: then who touches the block finds it there. */
	spin_lock(&warm->lock);
	found = lc_index_lookup(index, bucket, block, &old);
	enters = !found && !warm->full && !lc_ranges_have(&warm->touched, block);
	if (enters)
		lc_index_set(index, bucket, block, map, &old);
	else if (found && is_pending(&old))
		pass(warm, block);
	spin_unlock(&warm->lock);
	lc_index_unlock(index, bucket);
	return enters;
}

void lc_warm_missed(struct lc_warm *warm)
{
	spin_lock(&warm->lock);
	if (warm->scanning) {
		warm->missed = true;
	} else if (warm->from < warm->end) {
		/* All that it left out is below its end. */
		WRITE_ONCE(warm->raise_to, max(warm->raise_to, warm->end));
		WRITE_ONCE(warm->unsure, true);
	}
	spin_unlock(&warm->lock);
}

void lc_warm_drop_pending(struct lc_warm *warm, struct lc_index *index, u32 bucket, u64 block)
{
	struct lc_mapping old;

	if (READ_ONCE(warm->passed)) {
		lc_warm_missed(warm);
		/* Pairs with lc_warm_unsure_now(): it looks at the index without a lock before. */
		smp_wmb();
	}
	lc_index_remove(index, bucket, block, &old);
}

void lc_warm_touch_scan(struct lc_warm *warm, u64 first, u64 last)
{
	spin_lock(&warm->lock);
	if (warm->scanning && !lc_ranges_add(&warm->touched, first, last))
		warm->full = true;
	spin_unlock(&warm->lock);
}

bool lc_warm_raise(struct lc_warm *warm, u64 segment, bool unsure)
{
	bool fresh;

	spin_lock(&warm->lock);
	fresh = segment > warm->raise_to;
	WRITE_ONCE(warm->raise_to, max(warm->raise_to, segment));
	if (unsure)
		WRITE_ONCE(warm->unsure, true);
	spin_unlock(&warm->lock);
	return fresh;
}

/* [lock] */
static void be_sure(struct lc_warm *warm)
{
	lockdep_assert_held(&warm->lock);
	if (!warm->raise_to && !warm->raising)
		/* Pairs with lc_warm_unsure(). */
		smp_store_release(&warm->unsure, false);
}

void lc_warm_sure(struct lc_warm *warm)
{
	spin_lock(&warm->lock);
	be_sure(warm);
	spin_unlock(&warm->lock);
}

u64 lc_warm_take_raise(struct lc_warm *warm)
{
	u64 segment;

	spin_lock(&warm->lock);
	segment = warm->raise_to;
	WRITE_ONCE(warm->raising, segment);
	/* Pairs with lc_warm_raising(). */
	smp_store_release(&warm->raise_to, 0);
	spin_unlock(&warm->lock);
	return segment;
}

void lc_warm_raised(struct lc_warm *warm, u64 from)
{
	spin_lock(&warm->lock);
	WRITE_ONCE(warm->from, from);
	WRITE_ONCE(warm->raising, false);
	be_sure(warm);
	spin_unlock(&warm->lock);
}

void lc_warm_not_raised(struct lc_warm *warm, u64 segment)
{
	spin_lock(&warm->lock);
	WRITE_ONCE(warm->raise_to, max(warm->raise_to, segment));
	/* After that, for lc_warm_raising(). */
	smp_store_release(&warm->raising, false);
	spin_unlock(&warm->lock);
}

void lc_warm_lower(struct lc_warm *warm, u64 from)
{
	spin_lock(&warm->lock);
	WRITE_ONCE(warm->from, from);
	spin_unlock(&warm->lock);
}
