// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes to a part of a block whose other sectors are dirty on the SSD only.  See merge.h.
 */
#include <linux/jiffies.h>
#include <linux/mempool.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "bio/merge.h"
#include "bio/write.h"
#include "log/cache.h"
#include "log/pool.h"
#include "log/request.h"
#include "store/index.h"
#include "store/ring.h"
#include "store/slot.h"

#define MERGE_PATIENCE_MS	8000u	/* at least: sectors are at stake */

/* Find the slot whose sectors the next block of the bio needs; references its segment. */
static bool merge_find(struct lc_cache *c, struct lc_request *io, struct lc_mapping *old)
{
	u64 block = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	u32 bucket = lc_index_lock(c->index, block);
	struct lc_buffer *buf = NULL;
	bool found;

	found = lc_index_lookup(c->index, bucket, block, old) && old->dirty;
	if (found)
		buf = lc_buffer_pin(c->ring, old->slot);
	if (buf) {
		lc_buffer_unpin(buf);
		found = false;
	}
	if (found)
		lc_segment_get(lc_ring_segment(c->ring, old->slot));
	lc_index_unlock(c->index, bucket);
	return found;
}

/*
 * Read the old slot and go on.  Return: as lc_write_run(), or -EIO: the SSD does not give the
 * slot back as it was written.  @last: then its sectors are lost.
 */
static int merge_try(struct lc_cache *c, struct lc_request *io, bool last)
{
	u64 block = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	struct lc_old_slot old_slot = {};
	struct lc_mapping old;
	struct page *pages;
	int ret;

	if (lc_ssd_failed(&c->health))
		return -EAGAIN;
	if (!merge_find(c, io, &old))
		return lc_write_run(c, io, true, NULL);
	pages = mempool_alloc(&c->slot_pages, GFP_NOIO);
	ret = lc_slot_read(&c->slots, block, old.slot, page_address(pages));
	if (!ret || last) {
		old_slot.slot = old.slot;
		old_slot.data = ret ? NULL : page_address(pages);
		ret = lc_write_run(c, io, true, &old_slot);
	} else {
		ret = -EIO;
	}
	lc_slot_put(&c->slots, old.slot);
	mempool_free(pages, &c->slot_pages);
	return ret;
}

/*
 * Errors may pass, and so may wrong data: the slot is read again for ssd_patience_ms, or for
 * MERGE_PATIENCE_MS if that is longer (L18).
 */
static void merge_work(struct work_struct *work)
{
	struct lc_request *io = container_of(work, struct lc_request, work);
	struct lc_merge *merge = io->owner;
	u32 patience = max(READ_ONCE(merge->c->env.params.ssd_patience_ms), MERGE_PATIENCE_MS);
	unsigned long end = jiffies + msecs_to_jiffies(patience), pause = HZ / 2;
	int ret;

	while ((ret = merge_try(merge->c, io, time_after(jiffies, end))) == -EIO) {
		schedule_timeout_idle(pause);
		pause = min_t(unsigned long, pause * 2, 4 * HZ);
	}
	merge->merged(merge, io, ret);
}

void lc_merge_start(struct lc_merge *merge, struct lc_request *io)
{
	io->owner = merge;
	INIT_WORK(&io->work, merge_work);
	queue_work(merge->c->patient_wq, &io->work);
}
