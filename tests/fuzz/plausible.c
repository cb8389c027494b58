// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images as the module leaves them: up to four lives in a log of few segments,
 * each but the last ended by a power cut that tears what was not flushed, the last
 * one by a power cut or a clean stop.  Leftovers of dead records and of an earlier
 * lap of the ring stay where they are.  A clean stop may leave groups of promoted blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "plausible.h"
#include "tests/formatted.h"

#define MAX_RECORDS	160
#define MAX_BLOCKS	512	/* of the volume */

struct made {
	struct lc_record_info info;
	struct lc_record_header raw;
	bool dead;
};

#define MAX_LANES	3

struct maker {
	struct medium *m;
	struct rng *rng;
	struct lc_sb sb;
	struct made records[MAX_RECORDS];
	unsigned int nr, life;		/* life: index of its first record */
	u64 nr_blocks;			/* of the volume */
	u64 next_segment;
	struct {
		u64 segment;
		u32 slot;
		bool open;		/* segment and slot are where the next record goes */
	} lanes[MAX_LANES];
	unsigned int nr_lanes;
	u64 round;			/* segments from one boundary to the next */
	u64 boundary;
	u64 next_seq, durable;
};

static u64 rnd(struct maker *k, u64 below)
{
	return rng_below(k->rng, below);
}

static u64 pick(struct maker *k, const u64 *values, unsigned int nr)
{
	return values[rnd(k, nr)];
}

static void put(struct maker *k, unsigned int disk, u64 address, const void *block)
{
	if (medium_write(k->m, disk, address, block, LC_SLOT_BYTES))
		abort();
}

static u64 slot_address(const struct maker *k, u64 segment, u32 slot)
{
	return lc_format_log_address(&k->sb.geo, segment, slot);
}

/* --- layout ------------------------------------------------------------- */

static void lay_out_ssd(struct maker *k)
{
	u32 segment_bytes = LC_SEGMENT_BYTES_MIN << !rnd(k, 8);
	u64 nr = LC_MIN_SEGMENTS + rnd(k, 8);
	u64 bytes = (2u << 20) + (64u << 10) + nr * segment_bytes + (rnd(k, 4) << 12);

	if (formatted_sb(&k->sb, bytes, segment_bytes))
		abort();
	k->m->nr_blocks[MEDIUM_SSD] = bytes >> LC_SLOT_SHIFT;
}

static void lay_out_hdd(struct maker *k)
{
	static const enum formatted_layout layouts[] = {
		LAYOUT_END, LAYOUT_NO_MARK, LAYOUT_FRONT, LAYOUT_FRONT,
	};
	u64 sectors;

	k->nr_blocks = 16 + rnd(k, MAX_BLOCKS - 16);
	sectors = k->nr_blocks * LC_BLOCK_SECTORS;
	if (!rnd(k, 4))
		sectors -= rnd(k, LC_BLOCK_SECTORS);
	formatted_lay_out(&k->sb, layouts[rnd(k, 4)], sectors);
	k->m->nr_blocks[MEDIUM_HDD] = k->sb.backing_bytes >> LC_SLOT_SHIFT;
}

static void lay_out(struct maker *k)
{
	struct lc_sb *sb = &k->sb;

	lay_out_ssd(k);
	lay_out_hdd(k);
	sb->generation = rng_next(k->rng) | 1;
	strcpy(sb->label, "fuzz");
	if (rnd(k, 2))
		strcpy(sb->options, "buffers 16");
	sb->sb_seq = 1 + rnd(k, 100);
	sb->lane_limit = rnd(k, 3) ? 16 : 1 + rnd(k, 4);
	sb->csum_type = rnd(k, 2) ? LC_CSUM_XXH64 : LC_CSUM_CRC32C;
	sb->incompat = rnd(k, 4) ? LC_INCOMPAT_SHORT_SUMS : 0;
	sb->cache_lbs = 512 << rnd(k, 4);
	sb->backing_lbs = 512 << rnd(k, 4);
	k->nr_lanes = rnd(k, 3) ? 1 : 2 + rnd(k, MAX_LANES - 1);
	k->round = k->nr_lanes > 1 ? k->nr_lanes + rnd(k, 6) : 1;
	if (k->nr_lanes > 1) {
		sb->incompat |= LC_INCOMPAT_LANES;
		sb->lane_limit = 16;
	}
}

/* --- the log ------------------------------------------------------------ */

static void close_all(struct maker *k)
{
	unsigned int i;

	for (i = 0; i < MAX_LANES; i++)
		k->lanes[i].open = false;
	k->boundary = k->next_segment;
}

static bool open_segment(struct maker *k, unsigned int lane, u32 slots)
{
	if (k->lanes[lane].open && k->lanes[lane].slot + slots <= k->sb.geo.seg_slots && rnd(k, 6))
		return true;
	if (k->next_segment + 1 >= k->sb.tail_segment + k->sb.geo.nr_segments)
		return false;
	if (k->next_segment - k->boundary >= k->round)
		close_all(k);
	k->lanes[lane].segment = k->next_segment++;
	k->lanes[lane].slot = 0;
	k->lanes[lane].open = true;
	return true;
}

static u8 whole_mask(const struct maker *k, u64 block)
{
	u64 left = k->sb.volume_sectors - block * LC_BLOCK_SECTORS;

	return left < LC_BLOCK_SECTORS ? (1u << left) - 1 : 0xff;
}

static void add_entry(struct maker *k, struct made *r, unsigned int i)
{
	struct lc_entry_info e = { .type = LC_ENTRY_DATA, .nr_blocks = 1 };
	u8 data[LC_SLOT_BYTES];

	e.block = rnd(k, rnd(k, 2) ? k->nr_blocks : 16);
	if (r->info.type == LC_RECORD_RANGE) {
		e.type = LC_ENTRY_RANGE_TOMBSTONE;
		e.nr_blocks = 1 + rnd(k, k->nr_blocks - e.block);
	} else if (rnd(k, 10)) {
		u8 all = whole_mask(k, e.block);

		e.mask = rnd(k, 3) ? all : rng_next(k->rng) & all;
		e.lost = rnd(k, 8) ? 0 : rng_next(k->rng) & all & ~e.mask;
		if (!(e.mask | e.lost))
			e.mask = 1;
		memset(data, (int)rnd(k, 256), sizeof(data));
		e.csum = lc_format_slot_csum(&k->sb, e.block, data);
		put(k, MEDIUM_SSD, slot_address(k, r->info.segment,
						r->info.first_slot + LC_HEADER_SLOTS + i), data);
	} else {
		memset(&e, 0, sizeof(e));	/* a hole */
	}
	lc_entry_encode(&r->raw, i, &e);
}

static void add_record(struct maker *k)
{
	u32 most = k->sb.geo.seg_slots - LC_HEADER_SLOTS, slots;
	unsigned int lane = rnd(k, k->nr_lanes), i;
	struct made *r = &k->records[k->nr];

	if (k->nr == MAX_RECORDS)
		return;
	memset(r, 0, sizeof(*r));
	r->info.type = rnd(k, 8) ? LC_RECORD_DATA : LC_RECORD_RANGE;
	r->info.nr_entries = rnd(k, 12) ? 1 + rnd(k, 4) : most;
	r->info.nr_slots = r->info.type == LC_RECORD_DATA ? r->info.nr_entries : 0;
	slots = LC_HEADER_SLOTS + r->info.nr_slots;
	if (!open_segment(k, lane, slots))
		return;
	r->info.segment = k->lanes[lane].segment;
	r->info.first_slot = k->lanes[lane].slot;
	r->info.lane = lane;
	r->info.boundary = k->nr_lanes > 1 ? k->boundary : 0;
	r->info.seq = k->next_seq++;
	r->info.epoch = k->sb.epoch;
	r->info.epoch_first_seq = k->sb.epoch_first_seq;
	r->info.tail_seq = k->sb.tail_seq;
	r->info.durable_seq = k->durable;
	for (i = 0; i < r->info.nr_entries; i++)
		add_entry(k, r, i);
	lc_record_seal(&r->raw, &k->sb, &r->info);
	put(k, MEDIUM_SSD, slot_address(k, r->info.segment, r->info.first_slot), &r->raw);
	k->lanes[lane].slot += slots;
	k->nr++;
}

/* The tail may stand anywhere up to the first record that is not durable. */
static void move_tail(struct maker *k)
{
	u64 tail = k->sb.tail_seq, lowest = k->next_segment;
	unsigned int i;

	if (k->durable < tail)
		return;
	tail += rnd(k, k->durable - tail + 2);
	for (i = 0; i < k->nr; i++) {
		const struct made *r = &k->records[i];

		if (!r->dead && r->info.seq >= tail && r->info.segment < lowest)
			lowest = r->info.segment;
	}
	for (i = 0; i < MAX_LANES; i++) {
		if (k->lanes[i].open && k->lanes[i].segment < lowest)
			lowest = k->lanes[i].segment;
	}
	k->sb.tail_seq = tail;
	k->sb.tail_segment = lowest;
	k->sb.sb_seq++;
}

static void live(struct maker *k)
{
	unsigned int steps = rnd(k, 14);

	k->life = k->nr;
	close_all(k);
	k->sb.epoch++;
	k->sb.epoch_first_seq = k->next_seq;
	k->sb.sb_seq++;
	k->durable = k->next_seq - 1;
	while (steps--) {
		switch (rnd(k, 6)) {
		case 0:
			k->durable = k->next_seq - 1;
			break;
		case 1:
			if (!rnd(k, 3))
				move_tail(k);
			break;
		default:
			add_record(k);
		}
	}
}

/* What a power cut does to a record that was not flushed; true if it is still whole. */
static bool tear(struct maker *k, const struct made *r)
{
	u64 at = slot_address(k, r->info.segment, r->info.first_slot);
	unsigned int i, torn = rnd(k, 3);
	struct lc_entry_info e;
	bool whole = true;
	u8 junk[LC_SLOT_BYTES];

	memset(junk, 0x5a, sizeof(junk));
	if (torn == 1) {
		put(k, MEDIUM_SSD, at, junk);
		return false;
	}
	for (i = 0; torn == 2 && i < r->info.nr_slots; i++) {
		lc_entry_decode(&r->raw, i, &e);
		if (e.type != LC_ENTRY_DATA)
			continue;
		put(k, MEDIUM_SSD, at + (u64)(LC_HEADER_SLOTS + i) * LC_SLOT_BYTES, junk);
		whole = false;
	}
	return whole;
}

static void power_cut(struct maker *k)
{
	u64 last = k->sb.epoch_first_seq - 1;
	bool broken = false;
	unsigned int i;

	k->next_segment = k->sb.tail_segment;
	for (i = k->life; i < k->nr; i++) {
		struct made *r = &k->records[i];

		if (r->info.seq > k->durable && !tear(k, r))
			broken = true;
		r->dead = broken;
		if (!broken)
			last = r->info.seq;
	}
	for (i = 0; i < k->nr; i++) {
		if (!k->records[i].dead && k->records[i].info.seq >= k->sb.tail_seq &&
		    k->records[i].info.segment >= k->next_segment)
			k->next_segment = k->records[i].info.segment + 1;
	}
	k->next_seq = last + 1;
}

/* Records of the lap before, which every reader must take for nothing. */
static void old_lap(struct maker *k)
{
	u64 segment = k->next_segment, ring = k->sb.geo.nr_segments;
	unsigned int i, nr = rnd(k, 12);
	struct lc_sb sb = k->sb;

	if (k->sb.tail_segment <= ring || k->next_seq < 50)
		return;
	k->sb.tail_segment -= ring;
	k->next_segment -= ring;
	k->next_seq -= 40;
	k->sb.epoch_first_seq = k->next_seq;
	k->durable = k->next_seq - 1;
	for (i = 0; i < nr; i++)
		add_record(k);
	k->nr = 0;
	k->next_segment = segment;
	close_all(k);
	k->next_seq += 40 - (k->next_seq - k->sb.epoch_first_seq);
	k->sb = sb;
}

/* --- the end ------------------------------------------------------------ */

struct copy {
	bool used, dirty;
	struct lc_ckpt_item item;
};

static void apply(struct maker *k, struct copy *map, const struct made *r)
{
	u64 base = lc_format_position(&k->sb.geo, r->info.segment) * k->sb.geo.seg_slots +
		   r->info.first_slot + LC_HEADER_SLOTS, b;
	struct lc_entry_info e;
	unsigned int i;

	for (i = 0; i < r->info.nr_entries; i++) {
		lc_entry_decode(&r->raw, i, &e);
		if (e.type == LC_ENTRY_RANGE_TOMBSTONE) {
			for (b = e.block; b < e.block + e.nr_blocks; b++)
				map[b].used = false;
		} else if (e.type == LC_ENTRY_DATA) {
			map[e.block] = (struct copy){
				.used = true,
				.item = {
					.block = e.block, .slot = (u32)(base + i), .mask = e.mask,
					.lost = e.lost, .flags = LC_CKPT_ENTRY_DIRTY,
				},
			};
		}
	}
}

static int compare_slots(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	return x->item.slot < y->item.slot ? -1 : x->item.slot > y->item.slot;
}

/*
 * The boundaries of a log of several lanes: where all lower seqs lie lower, and all others do not.
 */
static void add_boundaries(struct maker *k, struct copy *map)
{
	u64 highest = k->sb.tail_segment, lowest;
	unsigned int i, j;

	for (i = 0; k->sb.incompat & LC_INCOMPAT_LANES && i < k->nr; i++) {
		if (k->records[i].dead || k->records[i].info.seq < k->sb.tail_seq)
			continue;
		lowest = k->next_segment;
		for (j = i; j < k->nr; j++) {
			if (!k->records[j].dead && k->records[j].info.segment < lowest)
				lowest = k->records[j].info.segment;
		}
		if (lowest > highest && k->records[i].info.seq < LC_CKPT_SEQ_END) {
			map[i].used = true;
			map[i].item = (struct lc_ckpt_item){
				.seq = k->records[i].info.seq, .flags = LC_CKPT_ENTRY_BOUNDARY,
				.slot = lc_format_position(&k->sb.geo, lowest) *
					k->sb.geo.seg_slots,
			};
		}
		if (k->records[i].info.segment > highest)
			highest = k->records[i].info.segment;
	}
}

/* Add one, at this slot.  Return: the slot behind it, or 0: it does not fit. */
static u32 add_group(struct maker *k, struct copy *map, u64 segment, u32 slot)
{
	u64 base = lc_format_position(&k->sb.geo, segment) * k->sb.geo.seg_slots;
	struct lc_record_info info = {
		.segment = segment, .first_slot = slot, .seq = k->next_seq - 1,
		.epoch = k->sb.epoch, .epoch_first_seq = k->sb.epoch_first_seq,
		.type = LC_RECORD_DATA, .nr_entries = 1 + rnd(k, 4),
	};
	struct lc_record_header raw;
	u8 data[LC_SLOT_BYTES];
	unsigned int i;

	info.nr_slots = info.nr_entries;
	if (slot + LC_HEADER_SLOTS + info.nr_slots > k->sb.geo.seg_slots)
		return 0;
	memset(&raw, 0, sizeof(raw));
	for (i = 0; i < info.nr_entries; i++) {
		u64 block = rnd(k, k->nr_blocks), at = slot + LC_HEADER_SLOTS + i;
		struct lc_entry_info e = {
			.block = block, .nr_blocks = 1, .mask = 0xff, .type = LC_ENTRY_DATA,
		};

		/* Else a hole. */
		if (map[block].used || whole_mask(k, block) != 0xff || !rnd(k, 6))
			continue;
		memset(data, (int)rnd(k, 256), sizeof(data));
		e.csum = lc_format_slot_csum(&k->sb, block, data);
		lc_entry_encode(&raw, i, &e);
		put(k, MEDIUM_SSD, slot_address(k, segment, at), data);
		map[block] = (struct copy){
			.used = true,
			.item = { .block = block, .slot = base + at, .mask = 0xff },
		};
	}
	lc_group_seal(&raw, &k->sb, &info);
	put(k, MEDIUM_SSD, slot_address(k, segment, slot), &raw);
	k->sb.incompat |= LC_INCOMPAT_PROMOTED;
	return slot + LC_HEADER_SLOTS + info.nr_slots;
}

/* Behind the last records of this life's segments, and how each block was used. */
static void add_groups(struct maker *k, struct copy *map)
{
	unsigned int i, j;
	u32 slot;

	for (i = k->life; i < k->nr; i++) {
		const struct lc_record_info *r = &k->records[i].info;

		for (j = i + 1; j < k->nr && k->records[j].info.segment != r->segment; j++)
			;
		if (j < k->nr || r->segment < k->sb.tail_segment)
			continue;
		slot = r->first_slot + LC_HEADER_SLOTS + r->nr_slots;
		while (slot && rnd(k, 3))
			slot = add_group(k, map, r->segment, slot);
	}
	for (i = 0; k->sb.incompat & LC_INCOMPAT_PROMOTED && i < MAX_BLOCKS; i++)
		map[i].item.flags |= rnd(k, 32) << LC_CKPT_USE_SHIFT;
}

static void write_checkpoint(struct maker *k)
{
	static struct copy map[MAX_BLOCKS + MAX_RECORDS];
	struct lc_ckpt_block raw;
	u64 index = 0;
	u32 i, nr = 0;

	memset(map, 0, sizeof(map));
	for (i = 0; i < k->nr; i++) {
		if (!k->records[i].dead && k->records[i].info.seq >= k->sb.tail_seq)
			apply(k, map, &k->records[i]);
	}
	if (rnd(k, 2))
		add_groups(k, map);
	add_boundaries(k, map + MAX_BLOCKS);
	qsort(map, MAX_BLOCKS + MAX_RECORDS, sizeof(map[0]), compare_slots);
	memset(&raw, 0, sizeof(raw));
	for (i = 0; i < MAX_BLOCKS + MAX_RECORDS; i++) {
		if (!map[i].used)
			continue;
		lc_ckpt_encode(&raw, nr++, &map[i].item);
		k->sb.ckpt_entries++;
		if (nr < LC_CKPT_ENTRIES)
			continue;
		lc_ckpt_seal(&raw, &k->sb, index, nr);
		put(k, MEDIUM_SSD, k->sb.geo.ckpt_offset + index++ * LC_SLOT_BYTES, &raw);
		memset(&raw, 0, sizeof(raw));
		nr = 0;
	}
	if (!nr)
		return;
	lc_ckpt_seal(&raw, &k->sb, index, nr);
	put(k, MEDIUM_SSD, k->sb.geo.ckpt_offset + index * LC_SLOT_BYTES, &raw);
}

/* The formula of docs/on-disk-format.rst. */
static u64 fingerprint(struct maker *k)
{
	u64 sum = k->sb.generation, i;
	u8 block[LC_SLOT_BYTES];

	for (i = 0; i < (k->nr_blocks < 64 ? 1 : 64); i++) {
		u64 nr = i < 16 ? i : 16 + (i - 16) * ((k->nr_blocks - 16) / 48);

		if (medium_read(k->m, MEDIUM_HDD, k->sb.data_offset + (nr << LC_SLOT_SHIFT), block,
				sizeof(block)))
			abort();
		sum = lc_format_csum64(k->sb.csum_type, sum, block, sizeof(block));
		k->sb.samples[i] = lc_format_slot_csum(&k->sb, nr, block) ?: 1;
	}
	return sum;
}

static void stop_cleanly(struct maker *k)
{
	k->durable = k->next_seq - 1;
	k->sb.next_seq = k->next_seq;
	k->sb.head_segment = k->next_segment;
	write_checkpoint(k);
	k->sb.fingerprint = fingerprint(k);
	k->sb.clean_epoch = k->sb.epoch;
	k->sb.mark_epoch = k->sb.mark_offset == LC_NO_MARK ? 0 : k->sb.epoch;
	k->sb.flags |= LC_SB_CLEAN;
	k->sb.sb_seq++;
}

static void write_ends(struct maker *k)
{
	struct lc_mark_info mark;
	struct lc_superblock raw;
	struct lc_mark raw_mark;
	unsigned int copy;

	k->sb.owner = rnd(k, 2);	/* 0: not known */
	k->sb.mark_owner = rnd(k, 2);
	for (copy = 0; copy < LC_SB_COPIES; copy++) {
		lc_sb_encode(&k->sb, copy, &raw);
		put(k, MEDIUM_SSD, lc_format_sb_address(&k->sb.geo, copy), &raw);
	}
	formatted_mark(&k->sb, &mark);
	mark.mark_seq = 1 + k->sb.epoch;
	for (copy = 0; copy < 2 && k->sb.mark_offset != LC_NO_MARK; copy++) {
		lc_mark_encode(&mark, k->sb.csum_type, k->sb.mark_offset, copy, &raw_mark);
		put(k, MEDIUM_HDD, lc_format_mark_address(k->sb.mark_offset, copy), &raw_mark);
	}
}

/* Numbers as they are after long use. */
static void grow_old(struct maker *k)
{
	static const u64 seqs[] = { 1, 1, 1000, 0xfffffffd, 1ULL << 60 };
	static const u64 laps[] = { 0, 0, 1, 3, 1ULL << 33 };
	u64 lap = pick(k, laps, 5) * k->sb.geo.nr_segments;

	k->next_seq = pick(k, seqs, 5);
	k->next_segment = lap + 1 + rnd(k, lap ? k->sb.geo.nr_segments : 1);
	k->sb.tail_seq = k->next_seq;
	k->sb.tail_segment = k->next_segment;
	k->sb.epoch = k->next_seq == 1 ? 0 : 1 + rnd(k, 9);
	old_lap(k);
}

const char *plausible_image(struct medium *m, struct rng *rng)
{
	static struct maker maker;
	struct maker *k = &maker;
	const char *what = "fresh";
	unsigned int lives;

	memset(k, 0, sizeof(*k));
	k->m = m;
	k->rng = rng;
	lay_out(k);
	if (rnd(k, 12)) {
		grow_old(k);
		what = "log";
		for (lives = 1 + rnd(k, 4); lives; lives--) {
			live(k);
			if (lives > 1 || rnd(k, 3)) {
				power_cut(k);
			} else {
				stop_cleanly(k);
				what = "clean";
			}
		}
	}
	write_ends(k);
	return what;
}
