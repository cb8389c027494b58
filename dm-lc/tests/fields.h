/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For suites of the codec: blocks of one kind, damaged field by field and bit by bit.
 */
#ifndef LC_TESTS_FIELDS_H
#define LC_TESTS_FIELDS_H

#include <kunit/test.h>

#include "example.h"

/* A field, a value it may not have, and what the decoder says to it. */
struct field {
	const char *name;
	u16 offset;
	u16 len;	/* only the first 8 bytes are tried */
	u64 value;	/* put there under a good checksum */
	int forged;	/* answer to that; 0: any value is fine */
	int rotten;	/* answer to one flipped bit; 0: -EBADMSG */
};

#define PLACE(...)	.offset = offsetof(__VA_ARGS__), .len = sizeof_field(__VA_ARGS__)

#define FIELD(_type, _field, _value, _forged, _rotten) {				\
	.name = #_field " = " #_value, PLACE(_type, _field),				\
	.value = _value, .forged = _forged, .rotten = _rotten,				\
}

#define TOP	(1ULL << 62)

static inline void put_field(union example_block *raw, const struct field *f)
{
	u32 i;

	for (i = 0; i < min(f->len, 8); i++)
		raw->bytes[f->offset + i] = f->value >> 8 * i;
}

/* How one kind of block is made and read. */
struct kind {
	void (*make)(union example_block *raw, const struct lc_sb *sb);
	int (*decode)(const union example_block *raw, const struct lc_sb *sb);
};

static inline void check_field(struct kunit *test, const struct kind *kind)
{
	const struct field *f = test->param_value;
	union example_block *raw = example_block_alloc(test);
	u32 type, i;

	for (type = LC_CSUM_CRC32C; type <= LC_CSUM_XXH64; type++) {
		struct lc_sb *sb = example_sb_alloc(test, type);

		kind->make(raw, sb);
		KUNIT_ASSERT_EQ(test, kind->decode(raw, sb), 0);
		for (i = 0; i < min(f->len, 8); i++) {
			raw->bytes[f->offset + i] ^= 1 << (i & 7);
			KUNIT_EXPECT_EQ(test, kind->decode(raw, sb), f->rotten ?: -EBADMSG);
			raw->bytes[f->offset + i] ^= 1 << (i & 7);
		}
		put_field(raw, f);
		example_reseal(raw, type);
		KUNIT_EXPECT_EQ(test, kind->decode(raw, sb), f->forged);
	}
}

/* Bit by bit, also what no field names. */
static inline void check_bits(struct kunit *test, const struct kind *kind, u32 step)
{
	struct lc_sb *sb = example_sb_alloc(test, LC_CSUM_CRC32C);
	union example_block *raw = example_block_alloc(test);
	u32 bit;

	kind->make(raw, sb);
	for (bit = 0; bit < LC_SLOT_BYTES * 8; bit += step) {
		raw->bytes[bit / 8] ^= 1 << bit % 8;
		if (!kind->decode(raw, sb))
			KUNIT_FAIL(test, "flipped bit %u went unnoticed", bit);
		raw->bytes[bit / 8] ^= 1 << bit % 8;
	}
	KUNIT_EXPECT_EQ(test, kind->decode(raw, sb), 0);
}

#endif /* LC_TESTS_FIELDS_H */
