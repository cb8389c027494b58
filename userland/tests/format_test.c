// SPDX-License-Identifier: GPL-2.0-only
/*
 * The codec in userspace: known checksums, round trips of random structs, every
 * bit of every block flipped once, and random bytes with a good checksum, which
 * no decoder may follow out of bounds (run it under the sanitizers).
 *
 *   format_test [rounds [seed]]
 */
#include <linux/crc32.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../dm-lc/tests/formatted.h"

static u64 seed, state;

static u64 rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void die(const char *what)
{
	fprintf(stderr, "format_test: %s (seed %llu)\n", what, seed);
	exit(1);
}

static void check(bool ok, const char *what)
{
	if (!ok)
		die(what);
}

static void known_sums(void)
{
	static const char digits[] = "123456789";
	u8 zeros[32] = { 0 };
	unsigned int type;

	check(~crc32c(~0u, digits, 9) == 0xe3069283u, "crc32c of 123456789");
	check(~crc32c(~0u, zeros, 32) == 0x8a9136aau, "crc32c of 32 zeroes (RFC 3720)");
	check(crc32c(crc32c(~0u, digits, 4), digits + 4, 5) == crc32c(~0u, digits, 9),
	      "crc32c in two pieces");
	for (type = LC_CSUM_CRC32C; type <= LC_CSUM_XXH64; type++) {
		u64 a = lc_format_csum64(type, 1, digits, 8),
		    b = lc_format_csum64(type, 2, digits, 8);

		check(a != b, "the seed is not in the sum");
		check(lc_format_csum64(type, a, digits, 8) != lc_format_csum64(type, b, digits, 8),
		      "a sum does not depend on the sum it continues");
	}
}

static void random_sb(struct lc_sb *sb)
{
	u64 bytes = (128ULL << 20) + rnd() % (1ULL << (27 + rnd() % 20)), volume;
	u32 i = 0;
	bool moved;

	if (formatted_sb(sb, bytes, 65536u << rnd() % 7) ||
	    lc_geometry_check(&sb->geo))
		die("geometry");
	check(sb->geo.ckpt_offset + sb->geo.ckpt_bytes <= sb->geo.end_offset, "overlap");
	sb->generation = rnd() | 1;
	sb->sb_seq = rnd() >> 3;
	sb->incompat = rnd() & LC_INCOMPAT_ALL;
	sb->lane_limit = 1 + rnd() % 1024;
	sb->csum_type = 1 + rnd() % 2;
	sb->cache_lbs = 512 << rnd() % 4;
	sb->backing_lbs = 512 << rnd() % 4;
	volume = 8 * (1 + rnd() % (1ULL << 36));
	moved = sb->incompat & LC_INCOMPAT_MOVED_HEAD && volume >= LC_MARK_BYTES >> 9;
	formatted_lay_out(sb, moved ? LAYOUT_MOVED_HEAD : LAYOUT_FRONT, volume);
	sb->epoch = rnd() >> 3;
	sb->epoch_first_seq = rnd() >> 3;
	sb->tail_seq = 1 + (rnd() >> 3);
	sb->tail_segment = 1 + (rnd() >> 3);
	sb->nr_skips = rnd() % (LC_SB_SKIPS + 1);
	for (sb->nr_lives = rnd() % 4; i < sb->nr_lives; i++) {
		sb->lives[i].epoch = sb->epoch / 8 * (i + 1);
		sb->lives[i].first_seq = sb->epoch_first_seq / 8 * (i + 1);
	}
	snprintf(sb->label, sizeof(sb->label), "%llx", rnd());
}

/* Flip each bit once; @decode must refuse every one that is summed (@summed: NULL means all). */
static void flip_summed(u8 *raw, int (*decode)(const void *raw, const struct lc_sb *sb),
			const struct lc_sb *sb, bool (*summed)(const u8 *raw, unsigned int byte))
{
	unsigned int bit, step = 1 + rnd() % 61;

	check(!decode(raw, sb), "round trip");
	for (bit = rnd() % step; bit < LC_SLOT_BYTES * 8; bit += step) {
		bool noticed;

		raw[bit / 8] ^= 1 << bit % 8;
		noticed = decode(raw, sb);
		raw[bit / 8] ^= 1 << bit % 8;
		check(noticed == (!summed || summed(raw, bit / 8)),
		      noticed ? "a bit that means nothing matters" : "a flipped bit went unnoticed");
	}
}

static void flip_all(u8 *raw, int (*decode)(const void *raw, const struct lc_sb *sb),
		     const struct lc_sb *sb)
{
	flip_summed(raw, decode, sb, NULL);
}

static bool in_short_sum(const u8 *raw, unsigned int byte)
{
	unsigned int nr = raw[116] | raw[117] << 8;

	return byte < 128 + 12 * nr || (byte >= 3188 && byte < 3188 + nr);
}

static int decode_sb(const void *raw, const struct lc_sb *sb)
{
	struct lc_sb out;
	int ret = lc_sb_decode(raw, 1, &out, NULL);

	(void)sb;
	return ret;
}

static int decode_mark(const void *raw, const struct lc_sb *sb)
{
	struct lc_mark_info out;

	(void)sb;
	return lc_mark_decode(raw, 1 << 20, 1, &out, NULL);
}

static int decode_record(const void *raw, const struct lc_sb *sb)
{
	struct lc_record_info out;

	return lc_record_decode(raw, sb, 77, 3, &out, NULL);
}

static int decode_ckpt(const void *raw, const struct lc_sb *sb)
{
	u32 nr;

	return lc_ckpt_decode(raw, sb, 5, &nr, NULL);
}

static void random_record(const struct lc_sb *sb, struct lc_record_header *raw)
{
	struct lc_record_info info = {
		.segment = 77, .seq = 100, .epoch = 3, .epoch_first_seq = 50, .durable_seq = 99,
		.boundary = rnd() % 78, .lane = rnd() % sb->lane_limit, .type = LC_RECORD_DATA,
		.first_slot = 3,
	};
	u64 blocks = (sb->volume_sectors + 7) / 8;

	memset(raw, 0, sizeof(*raw));
	info.nr_entries = 1 + rnd() % (sb->geo.seg_slots - 4 < 255 ? sb->geo.seg_slots - 4 : 255);
	info.nr_slots = info.nr_entries;
	for (unsigned int i = 0; i < info.nr_entries; i++) {
		struct lc_entry_info e = { .type = rnd() % 3,
					   .block = rnd() % blocks,
					   .mask = rnd() };
		struct lc_entry_info back;

		e.lost = rnd() & ~e.mask;
		e.csum = rnd();
		e.nr_blocks = 1;
		lc_entry_encode(raw, i, &e);
		lc_entry_decode(raw, i, &back);
		check(e.block == back.block && e.mask == back.mask && e.lost == back.lost &&
		      e.csum == back.csum && e.type == back.type, "entry round trip");
	}
	lc_record_seal(raw, sb, &info);
}

/* Random contents behind a good seal: decoders may say no, but must stay in bounds. */
static void hostile(const struct lc_sb *sb)
{
	struct lc_record_info info = { 0 };
	struct lc_ckpt_item item;
	struct lc_ckpt_block ckpt;
	struct lc_record_header raw;
	struct lc_entry_info e;
	unsigned int i;
	u32 nr;

	for (i = 0; i < sizeof(raw); i++) {
		((u8 *)&raw)[i] = rnd();
		((u8 *)&ckpt)[i] = rnd();
	}
	info.segment = 77;
	info.first_slot = rnd() % sb->geo.seg_slots;
	info.seq = 1 + rnd() % 1000;
	info.epoch_first_seq = 1;
	info.type = 1 + rnd() % 2;
	info.nr_entries = rnd() % 300;
	info.nr_slots = rnd() % 300;
	lc_record_seal(&raw, sb, &info);
	if (!lc_record_decode(&raw, sb, 77, info.first_slot, &info, NULL)) {
		check(info.first_slot + 1 + info.nr_slots <= sb->geo.seg_slots, "record bounds");
		for (i = 0; i < info.nr_entries; i++)
			lc_entry_decode(&raw, i, &e);
	}
	lc_ckpt_seal(&ckpt, sb, 5, rnd() % 400);
	if (!lc_ckpt_decode(&ckpt, sb, 5, &nr, NULL)) {
		for (i = 0; i < nr; i++) {
			if (!lc_ckpt_item_decode(&ckpt, sb, i, &item))
				check(item.slot < sb->geo.nr_slots, "item bounds");
		}
	}
}

/* The last block of a volume may have fewer sectors: nothing may claim the others. */
static void partial_last_block(void)
{
	struct lc_record_info info = { .segment = 77, .seq = 2, .epoch_first_seq = 1,
				       .type = LC_RECORD_DATA, .nr_entries = 1, .nr_slots = 1 };
	struct lc_record_header raw;
	struct lc_ckpt_block ckpt;
	struct lc_ckpt_item back;
	struct lc_sb sb;
	unsigned int bit;

	random_sb(&sb);
	sb.volume_sectors -= 5;
	for (bit = 0; bit < 16; bit++) {
		struct lc_entry_info e = { .type = LC_ENTRY_DATA, .block = sb.volume_sectors / 8 };
		struct lc_ckpt_item item = { .block = e.block };
		bool ok = bit % 8 < 3;

		e.mask = item.mask = bit < 8 ? 1 << bit : 0;
		e.lost = item.lost = bit < 8 ? 0 : 1 << (bit - 8);
		memset(&raw, 0, sizeof(raw));
		lc_entry_encode(&raw, 0, &e);
		lc_record_seal(&raw, &sb, &info);
		check(!lc_record_decode(&raw, &sb, 77, 0, &info, NULL) == ok,
		      "sectors behind the volume's end");
		memset(&ckpt, 0, sizeof(ckpt));
		lc_ckpt_encode(&ckpt, 0, &item);
		check(!lc_ckpt_item_decode(&ckpt, &sb, 0, &back) == ok,
		      "checkpointed sectors behind the volume's end");
	}
}

/*
 * No record of a higher seq is in a lower segment than the boundary, so the record is not either.
 */
static void boundary_of_record(void)
{
	struct lc_record_info info = { .segment = 77, .seq = 2, .epoch_first_seq = 1,
				       .type = LC_RECORD_RANGE, .nr_entries = 1 }, back;
	struct lc_record_header raw;
	struct lc_sb sb;

	random_sb(&sb);
	for (info.boundary = 0; info.boundary < 100; info.boundary++) {
		memset(&raw, 0, sizeof(raw));
		lc_record_seal(&raw, &sb, &info);
		check(!lc_record_decode(&raw, &sb, 77, 0, &back, NULL) == (info.boundary <= 77),
		      "a boundary above the record's segment");
		check(info.boundary > 77 || back.boundary == info.boundary, "boundary round trip");
	}
}

static int recode(const struct lc_sb *sb, const struct lc_ckpt_item *item,
		  struct lc_ckpt_item *back)
{
	struct lc_ckpt_block raw;

	memset(&raw, 0, sizeof(raw));
	lc_ckpt_encode(&raw, 7, item);
	return lc_ckpt_item_decode(&raw, sb, 7, back);
}

/*
 * Boundaries in a checkpoint: of the start of a segment, seqs of the log, and of several lanes
 * only.
 */
static void boundaries_of_checkpoint(void)
{
	struct lc_ckpt_item boundary = { .flags = LC_CKPT_ENTRY_BOUNDARY }, bad, back;
	struct lc_sb sb;

	random_sb(&sb);
	sb.incompat = LC_INCOMPAT_LANES;
	sb.tail_seq = 1 + rnd() % (1ULL << (1 + rnd() % 55));
	sb.next_seq = sb.tail_seq + rnd() % (LC_CKPT_SEQ_END - sb.tail_seq);
	boundary.seq = sb.tail_seq + rnd() % (sb.next_seq - sb.tail_seq + 1);
	boundary.slot = rnd() % sb.geo.nr_segments * sb.geo.seg_slots;
	check(!recode(&sb, &boundary, &back) && back.seq == boundary.seq &&
	      back.slot == boundary.slot &&
	      back.flags == boundary.flags, "round trip of a boundary");
	bad = boundary;
	bad.slot += 1 + rnd() % (sb.geo.seg_slots - 1);
	check(recode(&sb, &bad, &back), "a boundary within a segment");
	bad.slot = sb.geo.nr_slots;
	check(recode(&sb, &bad, &back), "a boundary behind the last segment");
	bad = boundary;
	bad.seq = sb.tail_seq - 1;
	check(recode(&sb, &bad, &back), "a boundary of a seq below the tail");
	bad.seq = sb.next_seq + 1;
	check(bad.seq == LC_CKPT_SEQ_END || recode(&sb, &bad, &back),
	      "a boundary of a seq nobody has");
	bad = boundary;
	bad.flags |= LC_CKPT_ENTRY_DIRTY;
	check(recode(&sb, &bad, &back), "a boundary with another flag");
	sb.incompat = 0;
	check(recode(&sb, &boundary, &back), "a boundary in a log of one lane");
}

static void one_round(void)
{
	union {
		struct lc_superblock sb;
		struct lc_mark mark;
		struct lc_record_header record;
		struct lc_ckpt_block ckpt;
		u8 bytes[LC_SLOT_BYTES];
	} raw;
	struct lc_mark_info mark = { .generation = rnd(), .state = 1 + rnd() % 2 };
	struct lc_sb sb, back;

	random_sb(&sb);
	lc_sb_encode(&sb, 1, &raw.sb);
	flip_all(raw.bytes, decode_sb, &sb);
	check(!lc_sb_decode(&raw.sb, 1, &back, NULL) && !memcmp(&sb, &back, sizeof(sb)),
	      "superblock round trip");
	check(lc_sb_decode(&raw.sb, 0, &back, NULL), "superblock in another one's place");
	mark.nr_lost = rnd() % (LC_MARK_LOST + 1);
	lc_mark_encode(&mark, sb.csum_type, 1 << 20, 1, &raw.mark);
	flip_all(raw.bytes, decode_mark, &sb);
	random_record(&sb, &raw.record);
	flip_summed(raw.bytes, decode_record, &sb,
		    sb.incompat & LC_INCOMPAT_SHORT_SUMS ? in_short_sum : NULL);
	memset(&raw, 0, sizeof(raw));
	lc_ckpt_seal(&raw.ckpt, &sb, 5, 0);
	flip_all(raw.bytes, decode_ckpt, &sb);
	hostile(&sb);
	partial_last_block();
	boundary_of_record();
	boundaries_of_checkpoint();
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 100, i;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (u64)time(NULL);
	printf("format_test: %lu rounds from seed %llu\n", rounds, seed);
	known_sums();
	for (i = 0; i < rounds; i++, seed++) {
		state = seed * 0x9e3779b97f4a7c15ULL | 1;
		one_round();
	}
	printf("format_test: ok\n");
	return 0;
}
