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

#include "checkpoint.h"
#include "memory.h"

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

static u64 segment_of(const struct check *c, const struct lc_ckpt_item *item)
{
	return image_segment_at(&c->sb, item->slot / c->sb.geo.seg_slots);
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
		    segment_of(c, &items[i]) < c->sb.tail_segment)
			return "what is only here lies behind the tail";
	}
	return NULL;
}

/* The same of boundaries. */
static const char *boundary_contradiction(const struct check *c, struct lc_ckpt_item *boundaries,
					  size_t nr)
{
	size_t i;

	qsort(boundaries, nr, sizeof(*boundaries), compare_slots);
	for (i = 0; i < nr; i++) {
		if (i && boundaries[i].slot == boundaries[i - 1].slot)
			return "it names a boundary twice";
		if (segment_of(c, &boundaries[i]) <= c->sb.tail_segment)
			return "a boundary is not above the tail";
	}
	return NULL;
}

static void read_position(struct check *c, struct position *p, u64 number)
{
	struct lc_record_header raw;
	struct lc_chain chain;

	p->number = number;
	p->nr = 0;
	/* The lap is not in the checkpoint; the first header says it and proves it. */
	if (device_read(c->ssd, lc_format_slot_address(&c->sb.geo, number, 0), &raw, sizeof(raw)))
		return;
	p->segment = le64_to_cpu(raw.segment);
	if (lc_format_position(&c->sb.geo, p->segment) != number)
		return;
	lc_chain_start(&chain, p->segment, 0);
	while (!lc_chain_at_end(&chain, &c->sb.geo)) {
		p->raw = xrealloc(p->raw, p->nr + 1, sizeof(*p->raw));
		p->info = xrealloc(p->info, p->nr + 1, sizeof(*p->info));
		if (!scan_step_any(c->ssd, &c->sb, &chain, &p->raw[p->nr], &p->info[p->nr]))
			p->nr++;
		else if (c->sb.incompat & LC_INCOMPAT_PROMOTED)
			lc_chain_skip(&chain);	/* behind a group that was not written are others */
		else
			break;
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
		return scan_slot(c->ssd, &c->sb,
				 lc_format_slot_address(&c->sb.geo, p->number, slot), e.block,
				 e.csum, data);
	}
	return "no record holds it";
}

/* What a checkpoint lists. */
struct listed {
	struct lc_ckpt_item *blocks, *boundaries;
	size_t nr_blocks, nr_boundaries;
};

static void check_blocks(struct check *c, const struct listed *l)
{
	struct position p = { .number = ~0ULL };
	const char *why;
	size_t i;

	for (i = 0; i < l->nr_blocks; i++) {
		const struct lc_ckpt_item *item = &l->blocks[i];
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

static void check_listed(struct check *c, struct listed *l)
{
	const char *why = NULL;

	check_say(c, "Stopped cleanly: %zu blocks in the checkpoint.", l->nr_blocks);
	if (l->nr_blocks)
		why = contradiction(c, l->blocks, l->nr_blocks);
	if (l->nr_boundaries && !why)
		why = boundary_contradiction(c, l->boundaries, l->nr_boundaries);
	if (!why) {
		check_blocks(c, l);
		return;
	}
	check_damage(c, "checkpoint: %s", why);
	c->bad_checkpoint = true;
}

/* Add the items of a block.  Return: what is wrong with one, or NULL. */
static const char *add_items(const struct check *c, const struct lc_ckpt_block *raw, u32 nr,
			     struct listed *l)
{
	u32 i;

	l->blocks = xrealloc(l->blocks, l->nr_blocks + nr, sizeof(*l->blocks));
	for (i = 0; i < nr; i++) {
		struct lc_ckpt_item *item = &l->blocks[l->nr_blocks];

		if (lc_ckpt_item_decode(raw, &c->sb, i, item))
			return "an entry is out of bounds";
		if (!(item->flags & LC_CKPT_ENTRY_BOUNDARY)) {
			l->nr_blocks++;
			continue;
		}
		l->boundaries = xrealloc(l->boundaries, l->nr_boundaries + 1,
					 sizeof(*l->boundaries));
		l->boundaries[l->nr_boundaries++] = *item;
	}
	return NULL;
}

void check_checkpoint(struct check *c)
{
	struct listed l = { 0 };
	struct lc_ckpt_block raw;
	const char *why = NULL;
	u64 index, seen = 0;
	u32 nr;

	for (index = 0; seen < c->sb.ckpt_entries; index++, seen += nr) {
		if (!image_ckpt_block(c->ssd, &c->sb, index, &raw, &nr, &why))
			why = add_items(c, &raw, nr, &l);
		if (why)
			break;
	}
	if (!why && seen != c->sb.ckpt_entries)
		why = "it has more entries than the superblock says";
	if (why) {
		check_damage(c, "checkpoint block %llu: %s", index, why);
		c->bad_checkpoint = true;
	} else {
		check_listed(c, &l);
	}
	free(l.blocks);
	free(l.boundaries);
}
