// SPDX-License-Identifier: GPL-2.0-only
/* Damage to an image, see hostile.h. */
#include <stdio.h>
#include <string.h>

#include "hostile.h"
#include "seal.h"

struct target {
	struct medium *m;
	struct rng *rng;
	struct lc_sb sb;
	bool has_sb;
	char *note;
};

/* One written block of a kind, or of any if @kind is NR_KINDS. */
static u8 *written_block(struct target *t, enum block_kind kind, unsigned int *disk, u64 *nr)
{
	unsigned int d, i, seen = 0;
	u8 *found = NULL;

	for (d = 0; d < MEDIUM_DISKS; d++) {
		for (i = 0; i < t->m->nr_blocks[d]; i++) {
			u8 *block = t->m->block[d][i];

			if (!block || (kind < NR_KINDS && seal_kind(block) != kind))
				continue;
			if (rng_below(t->rng, ++seen))
				continue;
			found = block;
			*disk = d;
			*nr = i;
		}
	}
	return found;
}

static enum block_kind some_kind(struct target *t)
{
	static const enum block_kind kinds[] = {
		KIND_SUPERBLOCK, KIND_MARK, KIND_RECORD, KIND_RECORD, KIND_RECORD, KIND_CKPT,
		KIND_GROUP,
	};

	return kinds[rng_below(t->rng, sizeof(kinds) / sizeof(kinds[0]))];
}

static const char *name_of(unsigned int disk)
{
	return disk == MEDIUM_SSD ? "ssd" : "hdd";
}

static bool in_segments(const struct target *t, u64 nr)
{
	u64 first = t->sb.geo.segments_offset >> LC_SLOT_SHIFT;

	return t->has_sb && nr >= first && nr < first + t->sb.geo.nr_slots;
}

/* The number of the segment a block of the SSD is in now: that of the lap from the tail on. */
static u64 segment_at(const struct target *t, u64 nr, u32 *slot)
{
	const struct lc_geometry *geo = &t->sb.geo;
	u64 at = nr - (geo->segments_offset >> LC_SLOT_SHIFT), position = at / geo->seg_slots;
	u64 tail = lc_format_position(geo, t->sb.tail_segment);

	*slot = at % geo->seg_slots;
	return t->sb.tail_segment + (position + geo->nr_segments - tail) % geo->nr_segments;
}

static void adopt(struct target *t, u8 *block, u64 nr)
{
	enum block_kind kind = seal_kind(block);
	u64 segment;
	u32 slot;

	if ((kind == KIND_RECORD || kind == KIND_GROUP) && in_segments(t, nr)) {
		segment = segment_at(t, nr, &slot);
		if (kind == KIND_RECORD)
			seal_adopt_record(block, &t->sb, segment, slot);
		else
			seal_adopt_group(block, &t->sb, segment, slot);
	} else if (kind == KIND_CKPT && t->has_sb) {
		seal_adopt_ckpt(block, &t->sb, nr - (t->sb.geo.ckpt_offset >> LC_SLOT_SHIFT));
	} else if (kind != KIND_OTHER) {
		seal_block(block, &t->sb);
	}
}

/* --- the kinds of damage ------------------------------------------------ */

static void rot(struct target *t)
{
	unsigned int disk, bits = 1 + rng_below(t->rng, 8), i;
	u64 nr;
	u8 *block = written_block(t, rng_one_in(t->rng, 2) ? some_kind(t) : NR_KINDS, &disk, &nr);

	if (!block)
		return;
	for (i = 0; i < bits; i++)
		block[rng_below(t->rng, LC_SLOT_BYTES)] ^= 1u << rng_below(t->rng, 8);
	snprintf(t->note, HOSTILE_NOTE, "%u bits of %s block %llu", bits, name_of(disk), nr);
}

static void spoil(struct target *t)
{
	enum block_kind kind = some_kind(t);
	const char *field;
	unsigned int disk;
	u64 nr;
	u8 *block = written_block(t, kind, &disk, &nr);

	if (!block)
		return;
	field = seal_spoil_field(block, kind, t->has_sb ? &t->sb : NULL, t->rng);
	seal_block(block, &t->sb);
	snprintf(t->note, HOSTILE_NOTE, "field %s of %s block %llu", field, name_of(disk), nr);
}

/* The same field of both front copies: what one of them says is not enough. */
static void spoil_both(struct target *t)
{
	struct rng again = *t->rng;
	const char *field = "";
	unsigned int copy;

	for (copy = 0; copy < 2; copy++) {
		u8 *block = medium_block(t->m, MEDIUM_SSD,
					 copy * LC_SB_COPY_STRIDE >> LC_SLOT_SHIFT);

		if (!block || seal_kind(block) != KIND_SUPERBLOCK)
			return;
		again = *t->rng;
		field = seal_spoil_field(block, KIND_SUPERBLOCK, t->has_sb ? &t->sb : NULL,
					 &again);
		seal_block(block, NULL);
	}
	*t->rng = again;
	snprintf(t->note, HOSTILE_NOTE, "field %s of both superblocks", field);
}

static void wipe(struct target *t)
{
	unsigned int disk;
	u64 nr;
	u8 *block = written_block(t, rng_one_in(t->rng, 2) ? some_kind(t) : NR_KINDS, &disk, &nr);

	if (!block)
		return;
	memset(block, rng_one_in(t->rng, 2) ? 0 : (int)rng_below(t->rng, 256), LC_SLOT_BYTES);
	snprintf(t->note, HOSTILE_NOTE, "%s block %llu wiped", name_of(disk), nr);
}

static void wipe_segment(struct target *t)
{
	u64 position, first;
	u32 i;

	if (!t->has_sb)
		return;
	position = rng_below(t->rng, t->sb.geo.nr_segments);
	first = lc_format_slot_address(&t->sb.geo, position, 0) >> LC_SLOT_SHIFT;
	for (i = 0; i < t->sb.geo.seg_slots; i++) {
		if (medium_peek(t->m, MEDIUM_SSD, first + i))
			memset(medium_block(t->m, MEDIUM_SSD, first + i), 0, LC_SLOT_BYTES);
	}
	snprintf(t->note, HOSTILE_NOTE, "segment position %llu wiped", position);
}

/* A misdirected write, or with a seal a record that claims the place. */
static void copy_block(struct target *t)
{
	bool sealed = rng_one_in(t->rng, 2);
	unsigned int disk, to_disk;
	u64 nr, to_nr;
	u8 *from = written_block(t, rng_one_in(t->rng, 4) ? NR_KINDS : some_kind(t), &disk, &nr);
	u8 *to;

	if (!from)
		return;
	to_disk = rng_one_in(t->rng, 8) ? !disk : disk;
	if (!t->m->nr_blocks[to_disk])
		return;
	to_nr = rng_below(t->rng, t->m->nr_blocks[to_disk]);
	if (rng_one_in(t->rng, 2) && to_disk == disk)
		to_nr = nr + rng_below(t->rng, 32);
	to = medium_block(t->m, to_disk, to_nr);
	if (!to || to == from)
		return;
	memcpy(to, from, LC_SLOT_BYTES);
	if (sealed)
		adopt(t, to, to_nr);
	snprintf(t->note, HOSTILE_NOTE, "%s block %llu copied to %s block %llu%s", name_of(disk),
		 nr, name_of(to_disk), to_nr, sealed ? ", sealed there" : "");
}

/* Records that fill a segment from some slot on, each as small as can be. */
static void flood(struct target *t)
{
	unsigned int disk;
	u64 nr, segment, seq = 1 + rng_below(t->rng, 1u << 20);
	u8 *like = written_block(t, KIND_RECORD, &disk, &nr);
	struct lc_record_header raw;
	u32 slot;

	if (!like || disk != MEDIUM_SSD || !in_segments(t, nr))
		return;
	memcpy(&raw, like, sizeof(raw));
	raw.type = LC_RECORD_RANGE;
	raw.nr_entries = cpu_to_le16(1);
	raw.nr_slots = 0;
	memset(&raw.entries[0], 0, sizeof(raw.entries[0]));
	if (rng_one_in(t->rng, 2))
		seq = le64_to_cpu(raw.seq);
	segment = segment_at(t, nr, &slot);
	for (; slot < t->sb.geo.seg_slots; slot++, nr++, seq++) {
		u8 *block = medium_block(t->m, MEDIUM_SSD, nr);

		if (!block)
			break;
		raw.seq = cpu_to_le64(seq);
		memcpy(block, &raw, sizeof(raw));
		seal_adopt_record(block, &t->sb, segment, slot);
	}
	snprintf(t->note, HOSTILE_NOTE, "segment %llu full of records to seq %llu", segment,
		 seq - 1);
}

static void random_block(struct target *t)
{
	enum block_kind kind = some_kind(t);
	unsigned int disk, i;
	u64 nr;
	u8 *block = written_block(t, rng_one_in(t->rng, 2) ? kind : NR_KINDS, &disk, &nr);

	if (!block)
		return;
	for (i = 0; i < LC_SLOT_BYTES; i++)
		block[i] = (u8)rng_next(t->rng);
	seal_magic(block, kind);
	adopt(t, block, nr);
	snprintf(t->note, HOSTILE_NOTE, "%s block %llu random behind a good seal", name_of(disk),
		 nr);
}

/* One entry of a table says what another one says, or takes its slot. */
static void twin(struct target *t)
{
	bool ckpt = rng_one_in(t->rng, 2);
	unsigned int disk;
	u64 nr, from = rng_below(t->rng, 4), to = (from + 1 + rng_below(t->rng, 3)) % 4;
	u8 *block = written_block(t, ckpt ? KIND_CKPT : KIND_RECORD, &disk, &nr);

	if (!block)
		return;
	if (ckpt) {
		struct lc_ckpt_entry *entries = ((struct lc_ckpt_block *)block)->entries;

		if (rng_one_in(t->rng, 2))
			entries[to] = entries[from];
		else
			entries[to].slot = entries[from].slot;
	} else {
		struct lc_entry *entries = ((struct lc_record_header *)block)->entries;

		entries[to] = entries[from];
	}
	seal_block(block, &t->sb);
	snprintf(t->note, HOSTILE_NOTE, "entry %llu of %s block %llu as entry %llu", to,
		 name_of(disk), nr, from);
}

static void resize(struct target *t)
{
	unsigned int disk = rng_below(t->rng, MEDIUM_DISKS);
	u32 *nr = &t->m->nr_blocks[disk], old = *nr, i;

	*nr += rng_below(t->rng, 2) ? rng_below(t->rng, 16) : -rng_below(t->rng, 300);
	if (*nr > MEDIUM_BLOCKS)
		*nr = old;
	for (i = *nr; i < old; i++) {	/* what is cut off is gone */
		if (t->m->block[disk][i])
			memset(t->m->block[disk][i], 0, LC_SLOT_BYTES);
	}
	snprintf(t->note, HOSTILE_NOTE, "%s has %u blocks, had %u", name_of(disk), *nr, old);
}

void hostile_mutate(struct medium *m, struct rng *rng, char note[HOSTILE_NOTE])
{
	static void (*const damages[])(struct target *t) = {
		rot, rot, spoil, spoil, spoil, spoil, spoil, spoil_both, wipe, wipe_segment,
		copy_block, copy_block, flood, random_block, twin, resize,
	};
	struct target t = { .m = m, .rng = rng, .note = note };

	strcpy(note, "nothing");
	t.has_sb = medium_superblock(m, &t.sb);
	damages[rng_below(rng, sizeof(damages) / sizeof(damages[0]))](&t);
}
