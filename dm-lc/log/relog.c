// SPDX-License-Identifier: GPL-2.0-only
/*
 * Logging a block again.  See relog.h.
 */
#include <linux/string.h>

#include "log/cache.h"
#include "log/lanes.h"
#include "log/record.h"
#include "log/relog.h"
#include "store/index.h"

int lc_relog(struct lc_cache *c, u64 block, u32 slot, enum lc_relog_as as, const void *data)
{
	struct lc_mapping old, replaced, map = { .dirty = true };
	struct lc_cursor cur = {};
	void *image;
	u32 bucket;
	int ret = 0;

	lc_hold();
	if (lc_lanes_relog(c->lanes, &cur)) {
		lc_unhold();
		return -EAGAIN;
	}
	if (lc_index_lock_slot(c->index, block, slot, &bucket, &old)) {
		map.slot = lc_cursor_slot(&cur);
		map.lost = old.lost;
		image = lc_cursor_image(&cur, map.slot);
		if (as == LC_RELOG_DATA) {
			map.mask = old.mask;
			map.refused = true;
			memcpy(image, data, LC_SLOT_BYTES);
		} else {
			if (as == LC_RELOG_DAMAGED)
				map.lost |= old.mask;
			memset(image, 0, LC_SLOT_BYTES);
		}
		lc_cursor_describe(&cur, map.slot, block, map.mask, map.lost);
		lc_index_set(c->index, bucket, block, &map, &replaced);
		lc_cursor_advance(&cur);
		ret = 1;
	}
	lc_index_unlock(c->index, bucket);
	lc_cursor_release(&cur);
	lc_unhold();
	return ret;
}
