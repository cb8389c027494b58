// SPDX-License-Identifier: GPL-2.0-only
/*
 * lc_geometry_compute() and lc_geometry_check().
 *
 * Input: u64 size of the device, u32 bytes of a segment, u8 how to read the latter,
 * then up to four changes to the layout: u8 what, and a number of one byte or eight.
 */
#include <errno.h>

#include "expect.h"
#include "invariants.h"

typedef unsigned __int128 wide;

#define MIB	((wide)1 << 20)

/* A block of the checkpoint for every 336 slots, in pieces of 64 KiB. */
static wide ckpt_bytes(wide slots)
{
	wide blocks = slots / LC_CKPT_ENTRIES + (slots % LC_CKPT_ENTRIES != 0);

	return (blocks + 15) / 16 * 65536;
}

/* The most segments that leave room for all else: bisected, for more never need less. */
static u64 most_segments(wide avail, u32 segment_bytes)
{
	u32 seg_slots = segment_bytes / LC_SLOT_BYTES;
	u64 low = 0, high = LC_MAX_SLOTS / seg_slots;

	while (low < high) {
		u64 mid = high - (high - low) / 2;

		if ((wide)mid * segment_bytes + ckpt_bytes((wide)mid * seg_slots) <= avail)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

static bool good_segment_bytes(u32 n)
{
	return __builtin_popcount(n) == 1 && n >= 65536 && n <= 4194304;
}

/* Returns whether there is a layout. */
static bool compute(struct lc_geometry *geo, u64 cache_bytes, u32 segment_bytes)
{
	wide whole = cache_bytes / LC_SLOT_BYTES * LC_SLOT_BYTES;
	wide first = segment_bytes > MIB ? segment_bytes : MIB;
	int ret = lc_geometry_compute(geo, cache_bytes, segment_bytes);
	u64 most;

	if (!good_segment_bytes(segment_bytes)) {
		EXPECT(ret == -EINVAL);
		return false;
	}
	most = whole < first + MIB ? 0 : most_segments(whole - first - MIB, segment_bytes);
	if (ret) {
		EXPECT(ret == -ENOSPC && most < LC_MIN_SEGMENTS);
		return false;
	}
	EXPECT(geo->cache_bytes == whole && geo->segments_offset == first);
	EXPECT(geo->end_offset == whole - MIB);
	EXPECT(geo->ckpt_offset == first + (wide)geo->nr_segments * segment_bytes);
	EXPECT(geo->ckpt_bytes == ckpt_bytes(geo->nr_slots));
	EXPECT(geo->nr_segments <= most && most - geo->nr_segments <= 1 + most / 65536);
	/* More than 4 EiB is refused when it is read: no such device exists. */
	if (whole >> 62)
		return false;
	EXPECT(!lc_geometry_check(geo));
	expect_geometry(geo);
	return true;
}

/* What to do with a field: bits 6 and 7; the field: bits 0 to 2. */
enum { CHANGE_ADD, CHANGE_ADD_SLOTS, CHANGE_FLIP, CHANGE_SET };

static u64 changed(u64 old, u8 what, u64 value)
{
	switch (what >> 6) {
	case CHANGE_ADD:
		return old + (u64)(signed char)value;
	case CHANGE_ADD_SLOTS:
		return old + ((u64)(signed char)value << LC_SLOT_SHIFT);
	case CHANGE_FLIP:
		return old ^ 1ULL << value % 64;
	default:
		return value;
	}
}

static void change(struct lc_geometry *geo, u8 what, u64 value)
{
	u64 *const fields[] = {
		&geo->cache_bytes, &geo->segments_offset, &geo->nr_segments, &geo->ckpt_offset,
		&geo->ckpt_bytes, &geo->end_offset, &geo->nr_slots,
	};

	if (what % 8 == 7) {
		geo->segment_bytes = (u32)changed(geo->segment_bytes, what, value);
		geo->seg_slots = geo->segment_bytes / LC_SLOT_BYTES;
	} else {
		*fields[what % 8] = changed(*fields[what % 8], what, value);
	}
	/* As the decoder computes it, also if that overflows. */
	if (what & 0x20)
		geo->nr_slots = geo->nr_segments * geo->seg_slots;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };
	u64 cache_bytes = input_u64(&in);
	u32 segment_bytes = (u32)input_bytes(&in, 4), changes;
	struct lc_geometry geo;
	u8 how = input_u8(&in);

	if (how & 1)
		segment_bytes = 1u << segment_bytes % 32;
	if (how & 2)
		cache_bytes >>= how >> 2;
	if (!compute(&geo, cache_bytes, segment_bytes))
		memset(&geo, 0, sizeof(geo));
	for (changes = 0; in.size && changes < 4; changes++) {
		u8 what = input_u8(&in);

		change(&geo, what, input_bytes(&in, what >> 6 == CHANGE_SET ? 8 : 1));
		if (!lc_geometry_check(&geo))
			expect_geometry(&geo);
	}
	return 0;
}
