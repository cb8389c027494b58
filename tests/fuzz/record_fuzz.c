// SPDX-License-Identifier: GPL-2.0-only
/*
 * lc_record_decode() and lc_group_decode(), and every entry behind them: any bytes, in any slot of
 * caches of any size.  What is to be a record is tried as a group, too.
 *
 * Input: the cache (see blocks.h), u64 segment, u16 slot, the block.
 */
#include <errno.h>

#include "blocks.h"
#include "invariants.h"

#define PREFIX	(CACHE_INPUT + 10)

struct place {
	struct lc_sb sb;
	u64 segment;
	u32 slot;
};

static void place_from_input(struct input *in, struct place *place)
{
	cache_from_input(in, &place->sb);
	place->segment = input_u64(in) >> 1;
	place->slot = input_u16(in) % place->sb.geo.seg_slots;
}

static void reseal(struct input in, u8 *block)
{
	struct place place;

	place_from_input(&in, &place);
	seal_adopt_record(block, &place.sb, place.segment, place.slot);
}

static void fresh(struct input in, u8 *block, struct rng *rng)
{
	struct lc_record_info info = {
		.seq = 77, .epoch = 3, .epoch_first_seq = 50, .durable_seq = 76,
		.nr_entries = 1 + rng_below(rng, 4),
	};
	bool range = rng_one_in(rng, 2), whole = rng_one_in(rng, 2);
	struct place place;
	unsigned int i;

	place_from_input(&in, &place);
	info.segment = place.segment;
	info.first_slot = place.slot;
	info.type = range ? LC_RECORD_RANGE : LC_RECORD_DATA;
	info.nr_slots = range ? 0 : info.nr_entries;
	memset(block, 0, LC_SLOT_BYTES);
	for (i = 0; i < info.nr_entries; i++) {
		struct lc_entry_info e = {
			.block = rng_below(rng, place.sb.volume_sectors) / LC_BLOCK_SECTORS,
			.nr_blocks = 1, .mask = range ? 0 : whole ? 0xff : 1, .csum = (u32)rng_next(rng),
			.type = range ? LC_ENTRY_RANGE_TOMBSTONE : LC_ENTRY_DATA,
		};

		lc_entry_encode((struct lc_record_header *)block, i, &e);
	}
	lc_record_seal((struct lc_record_header *)block, &place.sb, &info);
}

static const struct block_target target = { PREFIX, KIND_RECORD, fresh, reseal };

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max_size, unsigned int seed)
{
	return blocks_mutate(&target, data, size, max_size, seed);
}

static void same_entry(const struct lc_entry_info *a, const struct lc_entry_info *b)
{
	EXPECT(a->block == b->block && a->nr_blocks == b->nr_blocks && a->mask == b->mask &&
	       a->lost == b->lost && a->type == b->type && a->csum == b->csum);
}

static void round_trip(const struct place *p, const struct lc_record_header *raw,
		       const struct lc_record_info *info)
{
	struct lc_entry_info entry, other;
	struct lc_record_header made;
	struct lc_record_info again;
	const char *why;
	unsigned int i;

	memset(&made, 0, sizeof(made));
	for (i = 0; i < info->nr_entries; i++) {
		lc_entry_decode(raw, i, &entry);
		lc_entry_encode(&made, i, &entry);
	}
	lc_record_seal(&made, &p->sb, info);
	memset(&again, 0, sizeof(again));
	EXPECT(!lc_record_decode(&made, &p->sb, p->segment, p->slot, &again, &why));
	EXPECT(again.segment == info->segment && again.seq == info->seq &&
	       again.epoch == info->epoch && again.epoch_first_seq == info->epoch_first_seq &&
	       again.boundary == info->boundary && again.tail_seq == info->tail_seq &&
	       again.durable_seq == info->durable_seq && again.wall_clock == info->wall_clock &&
	       again.lane == info->lane && again.type == info->type &&
	       again.nr_entries == info->nr_entries && again.nr_slots == info->nr_slots &&
	       again.first_slot == info->first_slot);
	for (i = 0; i < info->nr_entries; i++) {
		lc_entry_decode(raw, i, &entry);
		lc_entry_decode(&made, i, &other);
		same_entry(&entry, &other);
	}
}

/* The same bytes anywhere else, or of another cache, are no record. */
static void nowhere_else(const struct place *p, const struct lc_record_header *raw)
{
	struct lc_sb other = p->sb;
	struct lc_record_info info;
	const char *why;

	EXPECT(lc_record_decode(raw, &p->sb, p->segment + p->sb.geo.nr_segments, p->slot, &info,
				&why) == -ESTALE);
	EXPECT(lc_record_decode(raw, &p->sb, p->segment, p->slot + 1, &info, &why) == -EXDEV);
	EXPECT(lc_record_decode(raw, &p->sb, p->segment + 1, p->slot, &info, &why) == -EXDEV);
	other.generation++;
	EXPECT(lc_record_decode(raw, &other, p->segment, p->slot, &info, &why) == -ESTALE);
}

static void group_round_trip(const struct place *p, const struct lc_record_header *raw,
			     const struct lc_record_info *info)
{
	struct lc_entry_info entry, other;
	struct lc_record_header made;
	struct lc_record_info again;
	unsigned int i;

	memset(&made, 0, sizeof(made));
	for (i = 0; i < info->nr_entries; i++) {
		lc_entry_decode(raw, i, &entry);
		lc_entry_encode(&made, i, &entry);
	}
	lc_group_seal(&made, &p->sb, info);
	EXPECT(!lc_group_decode(&made, &p->sb, p->segment, p->slot, &again, NULL));
	EXPECT(again.segment == info->segment && again.first_slot == info->first_slot &&
	       again.seq == info->seq && again.epoch == info->epoch &&
	       again.epoch_first_seq == info->epoch_first_seq &&
	       again.nr_entries == info->nr_entries && again.nr_slots == info->nr_slots);
	for (i = 0; i < info->nr_entries; i++) {
		lc_entry_decode(&made, i, &other);
		lc_entry_decode(raw, i, &entry);
		same_entry(&entry, &other);
	}
	EXPECT(lc_group_decode(&made, &p->sb, p->segment + p->sb.geo.nr_segments, p->slot, &again,
			       NULL) == -ESTALE);
	EXPECT(lc_group_decode(&made, &p->sb, p->segment, p->slot + 1, &again, NULL) == -EXDEV);
	/* Neither is ever taken for the other. */
	EXPECT(lc_record_decode(&made, &p->sb, p->segment, p->slot, &again, NULL) == -ENODATA);
}

static void as_group(const struct place *p, struct lc_record_header *raw)
{
	struct lc_record_info info;
	struct lc_entry_info entry;
	const char *why = NULL;
	unsigned int i;
	int ret;

	EXPECT(lc_group_decode(raw, &p->sb, p->segment, p->slot, &info, NULL) == -ENODATA ||
	       seal_kind((u8 *)raw) == KIND_GROUP);
	seal_magic((u8 *)raw, KIND_GROUP);
	seal_block((u8 *)raw, &p->sb);
	ret = lc_group_decode(raw, &p->sb, p->segment, p->slot, &info, &why);
	expect_error(ret, why);
	EXPECT(lc_group_decode(raw, &p->sb, p->segment, p->slot, &info, NULL) == ret);
	if (ret)
		return;
	EXPECT(info.segment == p->segment && info.first_slot == p->slot);
	expect_group(&p->sb, &info);
	for (i = 0; i < info.nr_entries; i++) {
		lc_entry_decode(raw, i, &entry);
		expect_entry(&p->sb, &info, &entry);
		EXPECT(entry.type == LC_ENTRY_NONE ||
		       (entry.type == LC_ENTRY_DATA && entry.mask == 0xff && !entry.lost));
	}
	group_round_trip(p, raw, &info);
}

static void as_record(const struct place *p, const struct lc_record_header *raw)
{
	struct lc_record_info info;
	struct lc_entry_info entry;
	const char *why = NULL;
	unsigned int i;
	int ret;

	ret = lc_record_decode(raw, &p->sb, p->segment, p->slot, &info, &why);
	expect_error(ret, why);
	EXPECT(lc_record_decode(raw, &p->sb, p->segment, p->slot, &info, NULL) == ret);
	if (ret)
		return;
	EXPECT(info.segment == p->segment && info.first_slot == p->slot);
	expect_record(&p->sb, &info);
	for (i = 0; i < info.nr_entries; i++) {
		lc_entry_decode(raw, i, &entry);
		expect_entry(&p->sb, &info, &entry);
	}
	round_trip(p, raw, &info);
	nowhere_else(p, raw);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };
	struct lc_record_header raw;
	struct place place;

	place_from_input(&in, &place);
	input_block(&in, &raw);
	as_record(&place, &raw);
	as_group(&place, &raw);
	return 0;
}
