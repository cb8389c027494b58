// SPDX-License-Identifier: GPL-2.0-only
/* Promoted blocks that are logged again.  See keep.h. */
#include <linux/mempool.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "bio/group.h"
#include "bio/keep.h"
#include "log/cache.h"
#include "log/refill.h"
#include "store/claims.h"
#include "store/slot.h"

struct kept_block {
	u64 block;
	u32 slot;			/* old one, numbered over the whole SSD */
	u32 i;				/* new one, of the group */
	struct lc_group *group;
};

struct lc_keep {
	struct lc_cache *c;
	struct lc_groups *groups;
	/* The list is of the work while this is set, else of the refill worker. */
	bool busy;
	u32 nr;
	u32 most;
	struct work_struct work;
	struct kept_block list[];
};

/* Read it back, with the checksum of the log: what has rotted must not get a new one. */
static void read_back(struct lc_cache *c, const struct kept_block *kept, void *pages)
{
	if (lc_slot_read(&c->slots, kept->block, kept->slot, pages))
		lc_group_forget(kept->group, kept->i, 1);
	else
		memcpy(lc_group_page(kept->group, kept->i), pages, LC_SLOT_BYTES);
	lc_group_put(kept->group);
	lc_slot_put(&c->slots, kept->slot);
}

static void keep_work(struct work_struct *work)
{
	struct lc_keep *keep = container_of(work, struct lc_keep, work);
	struct lc_cache *c = keep->c;
	void *pages = page_address(mempool_alloc(&c->slot_pages, GFP_NOIO));
	u32 i;

	for (i = 0; i < keep->nr; i++)
		read_back(c, &keep->list[i], pages);
	mempool_free(virt_to_page(pages), &c->slot_pages);
	keep->nr = 0;
	/* Pairs with keep_block(). */
	smp_store_release(&keep->busy, false);
}

static bool keep_block(void *owner, u64 block, u32 slot, u8 use)
{
	struct lc_keep *keep = owner;
	struct kept_block kept = { .block = block, .slot = slot };

	/* Pairs with keep_work(). */
	if (smp_load_acquire(&keep->busy) || keep->nr == keep->most)
		return false;
	kept.group = lc_groups_take(keep->groups, 1, &kept.i);
	if (!kept.group)
		return false;
	if (!lc_group_replace(kept.group, kept.i, block, slot, use)) {
		lc_group_put(kept.group);
		return false;
	}
	/* One that changes the HDD meanwhile may have looked at the old copy (WS3). */
	if (lc_claims_discards(keep->c->claims, block, block))
		lc_group_forget(kept.group, kept.i, 1);
	keep->list[keep->nr++] = kept;
	return true;
}

static void evicted(void *owner)
{
	struct lc_keep *keep = owner;

	/* Pairs with keep_work(). */
	if (smp_load_acquire(&keep->busy) || !keep->nr)
		return;
	/* Only this worker sets it; queueing the work orders the list. */
	WRITE_ONCE(keep->busy, true);
	queue_work(keep->c->verify_wq, &keep->work);
}

static const struct lc_refill_keeper keeper = {
	.keep = keep_block,
	.evicted = evicted,
};

struct lc_keep *lc_keep_create(struct lc_cache *c, struct lc_groups *groups)
{
	u32 most = c->sb.geo.seg_slots / 2;
	struct lc_keep *keep = kzalloc(struct_size(keep, list, most), GFP_KERNEL);

	if (!keep)
		return NULL;
	keep->c = c;
	keep->groups = groups;
	keep->most = most;
	INIT_WORK(&keep->work, keep_work);
	lc_refill_attach_keeper(c->refill, &keeper, keep);
	return keep;
}

void lc_keep_destroy(struct lc_keep *keep)
{
	kfree(keep);
}
