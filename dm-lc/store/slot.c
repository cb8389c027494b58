// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading a slot back from the SSD.  See slot.h.
 */
#include "format/chain.h"
#include "store/env.h"
#include "store/io.h"
#include "store/ring.h"
#include "store/slot.h"
#include "store/sums.h"

/* Headers of a segment that cannot be read, before the SSD is taken to be gone. */
#define MAX_BAD_HEADERS	4

/* Keep the sums of all slots of a record whose segment is not reused meanwhile (V1). */
static void learn_sums(const struct lc_slots *slots, u32 base, struct lc_record_header *header,
		       const struct lc_record_info *info)
{
	struct lc_entry_info entry;
	u32 i;

	if (!lc_sums_enabled(slots->sums))
		return;
	for (i = 0; i < info->nr_slots; i++) {
		lc_entry_decode(header, i, &entry);
		if (entry.type == LC_ENTRY_DATA)
			lc_sums_put(slots->sums, base + i, entry.csum);
	}
}

/*
 * Find the record or the group that holds a slot: the headers of a segment form a chain from
 * its first slot.  @header gets it.  Return: 0, -EBADMSG, or an I/O error.
 */
static int find_record(const struct lc_slots *slots, u32 slot, struct lc_record_header *header,
		       struct lc_record_info *info)
{
	struct lc_segment *seg = lc_ring_segment(slots->ring, slot);
	const struct lc_sb *sb = slots->env->sb;
	u32 wanted = lc_ring_slot_in_segment(slots->ring, slot);
	u32 base = slot - wanted, nr_bad = 0;
	int error = -EBADMSG, ret;
	struct lc_chain chain;

	lc_chain_start(&chain, seg->number,
		       seg->number >= slots->ring->life_start ? sb->epoch : 0);
	while (chain.slot < wanted && nr_bad < MAX_BAD_HEADERS) {
		ret = lc_io_sync(slots->env->cache, REQ_OP_READ,
				 lc_slot_address(&sb->geo, base + chain.slot), header,
				 LC_SLOT_BYTES);
		if (ret) {
			error = ret;
			nr_bad++;
		}
		/* One that rotted, or cannot be read, does not hide those after it (L13). */
		if (ret || lc_chain_step_any(&chain, sb, header, info)) {
			lc_chain_skip(&chain);
			continue;
		}
		learn_sums(slots, base + info->first_slot + LC_HEADER_SLOTS, header, info);
		if (wanted < chain.slot)
			return 0;
	}
	return error;
}

int lc_slot_find_sum(const struct lc_slots *slots, u64 block, u32 slot,
		     struct lc_record_header *header, u32 *csum)
{
	struct lc_record_info info;
	struct lc_entry_info entry;
	int ret;

	*csum = lc_sums_get(slots->sums, slot);
	if (*csum)
		return 0;
	ret = find_record(slots, slot, header, &info);
	if (ret)
		return ret;
	lc_entry_decode(header, lc_ring_slot_in_segment(slots->ring, slot) - info.first_slot -
			LC_HEADER_SLOTS, &entry);
	*csum = entry.csum;
	return entry.type == LC_ENTRY_DATA && entry.block == block ? 0 : -EBADMSG;
}

static int try_slot(const struct lc_slots *slots, u64 block, u32 slot, void *pages)
{
	const struct lc_sb *sb = slots->env->sb;
	u32 csum;
	int ret;

	ret = lc_slot_find_sum(slots, block, slot, pages + LC_SLOT_BYTES, &csum);
	if (!ret)
		ret = lc_io_sync(slots->env->cache, REQ_OP_READ, lc_slot_address(&sb->geo, slot),
				 pages, LC_SLOT_BYTES);
	if (!ret && csum != lc_format_slot_csum(sb, block, pages))
		ret = -EBADMSG;
	return ret;
}

int lc_slot_read(const struct lc_slots *slots, u64 block, u32 slot, void *pages)
{
	int ret = try_slot(slots, block, slot, pages);

	if (ret != -EBADMSG)
		return ret;
	/* It may have rotted on its way, or the sum in RAM. */
	lc_sums_put(slots->sums, slot, 0);
	if (!try_slot(slots, block, slot, pages))
		return 0;
	lc_err_limit(slots->env, "block %llu is damaged on the cache device", block);
	return ret;
}

void lc_slot_put(const struct lc_slots *slots, u32 slot)
{
	if (lc_segment_put(slots->ring, lc_ring_segment(slots->ring, slot)))
		lc_kick(&slots->env->refill);
}
