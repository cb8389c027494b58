// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listing what a segment holds that the HDD does not.
 *
 * The index knows which slots are dirty.  The record headers of the segment, on the SSD, say what
 * each slot should hold: block, sectors and checksum.
 */
#include <linux/sort.h>

#include "format/chain.h"
#include "log/cache.h"
#include "log/lanes.h"
#include "log/record.h"
#include "store/index.h"
#include "store/io.h"
#include "store/ring.h"
#include "writeback/collect.h"
#include "writeback/copy.h"

#define HEADER_TRIES	3	/* of one that does not decode: it may have rotted on its way */

static bool slot_dirty(struct lc_cache *c, u32 slot, u64 *block)
{
	struct lc_mapping map;

	return lc_index_peek(c->index, slot, block, &map) && map.dirty;
}

/* The first slot of a segment, numbered over the whole SSD. */
static u32 base_of(struct lc_cache *c, u64 number)
{
	return lc_ring_position(c->ring, number) << c->ring->slot_shift;
}

/* Is the slot for the list?  @block: gets what is in it. */
static bool slot_wanted(struct lc_cache *c, const struct lc_wb_list *list, u32 slot, u64 *block)
{
	return slot_dirty(c, slot, block) && *block >= list->from && *block < list->to;
}

/* Is anything for the list from @slot of the segment on? */
static bool slots_left(struct lc_cache *c, const struct lc_wb_list *list, u64 number, u32 slot)
{
	u32 base = base_of(c, number);
	u64 block;

	for (; slot < c->sb.geo.seg_slots; slot++) {
		if (slot_wanted(c, list, base + slot, &block))
			return true;
	}
	return false;
}

static void collect_record(struct lc_cache *c, struct lc_wb_list *list,
			   const struct lc_record_header *header,
			   const struct lc_record_info *info, u32 base)
{
	struct lc_entry_info entry;
	u64 block;
	u32 i;

	base += info->first_slot + LC_HEADER_SLOTS;
	for (i = 0; i < info->nr_slots; i++) {
		lc_entry_decode(header, i, &entry);
		if (entry.type != LC_ENTRY_DATA || !slot_wanted(c, list, base + i, &block) ||
		    block != entry.block)
			continue;
		list->items[list->nr++] = (struct lc_wb_item) {
			.block = block, .slot = base + i, .csum = entry.csum,
			.mask = entry.mask, .lost = entry.lost,
		};
	}
}

/*
 * Read what should be a header, @tries times at most, and step past it.  Return: 0, -EBADMSG if
 * it is none of this segment, -EREMOTEIO if the SSD fails it, or -EINTR.
 */
static int read_header(struct lc_cache *c, const struct lc_wb_source *source,
		       struct lc_chain *chain, u32 tries, struct lc_record_info *info)
{
	u64 address = lc_chain_address(chain, &c->sb.geo);
	int ret;

	do {
		lc_env_sent(&c->env, c->env.cache, REQ_OP_READ, LC_SLOT_BYTES);
		ret = lc_io_sync(c->env.cache, REQ_OP_READ, address, source->header,
				 LC_SLOT_BYTES);
		if (READ_ONCE(*source->stop))
			return -EINTR;
		if (ret)
			ret = -EREMOTEIO;
		else if (lc_chain_step(chain, &c->sb, source->header, info, NULL))
			ret = -EBADMSG;
	} while (ret && --tries);
	return ret;
}

/*
 * Follow the headers of a segment and collect its dirty slots.  The end of the chain
 * looks like damage here (see collect_unnamed_slots()).  After the last record there may be one
 * that a crash killed, to whose slots nothing is mapped.  But where dirty slots follow
 * there was a header.  It may be readable later, so its slots are given up only when the
 * SSD has had its time (L18).
 */
static int walk_segment(struct lc_cache *c, const struct lc_wb_source *source,
			struct lc_wb_list *list)
{
	struct lc_record_info info;
	struct lc_chain chain;
	int ret;

	lc_chain_start(&chain, source->number,
		       source->number >= c->ring->life_start ? c->sb.epoch : 0);
	while (!lc_chain_at_end(&chain, &c->sb.geo)) {
		ret = read_header(c, source, &chain,
				  lc_chain_unbroken(&chain) ? HEADER_TRIES : 1, &info);
		if (!ret) {
			chain.epoch = info.epoch;
			collect_record(c, list, source->header, &info,
				       base_of(c, source->number));
			/* In a sweep most headers may be of blocks that are not for this batch. */
			if (!slots_left(c, list, source->number, chain.slot))
				break;
			continue;
		}
		if (ret == -EINTR || (ret == -EREMOTEIO && source->patient))
			return ret;
		/* Damage, or the end.  A header after it still names its slots (L13). */
		if (!slots_left(c, list, source->number, chain.slot))
			break;
		if (source->patient)
			return -EREMOTEIO;
		list->nr_bad += lc_chain_unbroken(&chain);
		lc_chain_skip(&chain);
	}
	return 0;
}

/*
 * Dirty slots of the segment that no header names: nothing says what they should
 * hold, so they are damaged.  The list from @from on is in slot order.
 */
static void collect_unnamed_slots(struct lc_cache *c, u64 number, struct lc_wb_list *list, u32 from)
{
	u32 next = from, end = list->nr, base = base_of(c, number), i;
	u64 block;

	for (i = 0; i < c->sb.geo.seg_slots; i++) {
		bool named = next < end && list->items[next].slot == base + i;

		next += named;
		if (named || !slot_wanted(c, list, base + i, &block))
			continue;
		lc_err_limit(&c->env,
			     "block %llu: its header on the cache device is damaged: lost",
			     block);
		list->items[list->nr++] = (struct lc_wb_item) {
			.block = block, .slot = base + i, .result = LC_WB_DAMAGED,
		};
	}
}

int lc_wbcollect_segment(struct lc_cache *c, const struct lc_wb_source *source,
			 struct lc_wb_list *list)
{
	u32 from = list->nr;
	int ret = 0;

	if (!slots_left(c, list, source->number, 0))
		return 0;
	if (!source->unreadable)
		ret = walk_segment(c, source, list);
	if (!ret)
		collect_unnamed_slots(c, source->number, list, from);
	return ret;
}

static int compare_items(const void *a, const void *b)
{
	const struct lc_wb_item *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return 0;
}

void lc_wbcollect_begin(struct lc_wb_list *list, u64 from)
{
	list->nr = 0;
	list->nr_bad = 0;
	list->from = from;
	list->to = U64_MAX;
}

void lc_wbcollect_halve(struct lc_wb_list *list)
{
	lc_wbcollect_sort(list);
	list->nr /= 2;
	list->to = list->items[list->nr].block;
}

bool lc_wbcollect_clean(struct lc_cache *c, u64 number)
{
	const struct lc_wb_list all = { .to = U64_MAX };

	return !slots_left(c, &all, number, 0);
}

u32 lc_wbcollect_sort(struct lc_wb_list *list)
{
	u32 runs = 0, i;

	sort(list->items, list->nr, sizeof(*list->items), compare_items, NULL);
	for (i = 0; i < list->nr; i++)
		runs += !i || list->items[i].block != list->items[i - 1].block + 1;
	return runs;
}
