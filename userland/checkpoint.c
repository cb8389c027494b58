// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verification of the checkpoint a clean stop leaves: every block of it, and
 * every slot it names against the record that holds the slot.
 *
 * Damage to the checkpoint costs only that: the records at and behind the tail say
 * the same about every block that is not on the hard disk yet.  That all of them are
 * durable is what repair_superblocks() keeps of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "util.h"

/* The record headers of one ring position, found once for all its items. */
struct position {
	u64 number;
	u64 segment;
	struct lc_record_header *raw;
	struct lc_record_info *info;
	size_t nr;
};

static int compare_slots(const void *a, const void *b)
{
	const struct lc_ckpt_item *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static int compare_blocks(const void *a, const void *b)
{
	const struct lc_ckpt_item *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

/* Number of the segment that was last opened in a position, 0 if none was. */
static u64 segment_at(const struct lc_sb *sb, u64 position)
{
	u64 last = sb->head_segment - 1, nr = sb->geo.nr_segments;
	u64 back = (lc_format_position(&sb->geo, last) + nr - position) % nr;

	return back > last ? 0 : last - back;
}

/* What the kernel refuses of items that are each in bounds; leaves them sorted by slot. */
static const char *contradiction(const struct check *c, struct lc_ckpt_item *items, size_t nr)
{
	size_t i;

	qsort(items, nr, sizeof(*items), compare_blocks);
	for (i = 1; i < nr; i++) {
		if (items[i].block == items[i - 1].block)
			return "it names a block twice";
	}
	qsort(items, nr, sizeof(*items), compare_slots);
	for (i = 0; i < nr; i++) {
		if (i && items[i].slot == items[i - 1].slot)
			return "it names a slot twice";
		if (items[i].flags & LC_CKPT_ENTRY_DIRTY &&
		    segment_at(&c->sb, items[i].slot / c->sb.geo.seg_slots) < c->sb.tail_segment)
			return "what is only here lies behind the tail";
	}
	return NULL;
}

static void read_position(struct check *c, struct position *p, u64 number)
{
	struct lc_record_header raw;
	u32 slot = 0;
	const char *why;

	p->number = number;
	p->nr = 0;
	/* The lap is not in the checkpoint; the first header says it and proves it. */
	if (device_read(c->ssd, lc_format_slot_address(&c->sb.geo, number, 0), &raw, sizeof(raw)))
		return;
	p->segment = le64_to_cpu(raw.segment);
	if (lc_format_position(&c->sb.geo, p->segment) != number)
		return;
	while (slot < c->sb.geo.seg_slots) {
		p->raw = xrealloc(p->raw, p->nr + 1, sizeof(*p->raw));
		p->info = xrealloc(p->info, p->nr + 1, sizeof(*p->info));
		if (scan_read_header(c->ssd, &c->sb, p->segment, slot, &p->raw[p->nr],
				     &p->info[p->nr], &why))
			break;
		slot += LC_HEADER_SLOTS + p->info[p->nr].nr_slots;
		p->nr++;
	}
}

static const char *check_item(struct check *c, const struct position *p,
			      const struct lc_ckpt_item *item)
{
	u32 slot = item->slot % c->sb.geo.seg_slots;
	struct lc_entry_info e;
	u8 data[LC_SLOT_BYTES];
	size_t i;

	for (i = 0; i < p->nr; i++) {
		const struct lc_record_info *info = &p->info[i];
		u32 first = info->first_slot + LC_HEADER_SLOTS;

		if (slot < first || slot - first >= info->nr_slots)
			continue;
		lc_entry_decode(&p->raw[i], slot - first, &e);
		if (e.type == LC_ENTRY_NONE || e.block != item->block)
			return "its record says another block";
		if (e.type != LC_ENTRY_DATA || !e.mask)
			return NULL;
		c->nr_slots_read++;
		if (device_read(c->ssd, lc_format_slot_address(&c->sb.geo, p->number, slot), data,
				sizeof(data)))
			return "unreadable";
		return lc_format_slot_csum(&c->sb, e.block, data) == e.csum ? NULL :
		       "its checksum does not match";
	}
	return "no record holds it";
}

static void check_items(struct check *c, struct lc_ckpt_item *items, size_t nr)
{
	struct position p = { .number = ~0ULL };
	const char *why;
	size_t i;

	why = nr ? contradiction(c, items, nr) : NULL;
	if (why) {
		check_damage(c, "checkpoint: %s", why);
		c->bad_checkpoint = true;
		return;
	}
	for (i = 0; i < nr; i++) {
		const struct lc_ckpt_item *item = &items[i];
		u64 number = item->slot / c->sb.geo.seg_slots;

		lost_add_mask(&c->lost, item->block, item->lost);
		if (!item->mask)
			continue;
		if (number != p.number)
			read_position(c, &p, number);
		why = check_item(c, &p, item);
		if (!why)
			continue;
		check_damage(c, "slot %u (sectors %llu-%llu, %s): %s", item->slot,
			     item->block * LC_BLOCK_SECTORS,
			     item->block * LC_BLOCK_SECTORS + LC_BLOCK_SECTORS - 1,
			     item->flags & LC_CKPT_ENTRY_DIRTY ? "only here"
							       : "also on the hard disk",
			     why);
		c->bad_checkpoint = true;
		if (item->flags & LC_CKPT_ENTRY_DIRTY)
			lost_add_mask(&c->lost, item->block, item->mask);
	}
	free(p.raw);
	free(p.info);
}

/**
 * check_checkpoint() - verify the checkpoint of a clean stop, and all it names
 */
int check_checkpoint(struct check *c)
{
	struct lc_ckpt_item *items = NULL;
	struct lc_ckpt_block raw;
	const char *why = NULL;
	u64 index, seen = 0;
	u32 i, nr;

	for (index = 0; seen < c->sb.ckpt_entries; index++, seen += nr) {
		nr = 0;
		if ((index + 1) * LC_SLOT_BYTES > c->sb.geo.ckpt_bytes)
			why = "it has fewer entries than the superblock says";
		else if (device_read(c->ssd, c->sb.geo.ckpt_offset + index * LC_SLOT_BYTES, &raw,
				     sizeof(raw)))
			why = "unreadable";
		else if (!lc_ckpt_decode(&raw, &c->sb, index, &nr, &why) && !nr)
			why = "an empty block";
		if (why)
			break;
		items = xrealloc(items, seen + nr, sizeof(*items));
		for (i = 0; i < nr && !why; i++) {
			if (lc_ckpt_item_decode(&raw, &c->sb, i, &items[seen + i]))
				why = "an entry is out of bounds";
		}
		if (why)
			break;
	}
	if (!why && seen != c->sb.ckpt_entries)
		why = "it has more entries than the superblock says";
	if (why) {
		check_damage(c, "checkpoint block %llu: %s", index, why);
		c->bad_checkpoint = true;
	} else {
		check_say(c, "Stopped cleanly: %llu blocks in the checkpoint.", seen);
		check_items(c, items, seen);
	}
	free(items);
	return 0;
}
