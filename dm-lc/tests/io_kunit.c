// SPDX-License-Identifier: GPL-2.0-only
/* Copying to and from bios whose memory is in pieces of any length (IO1, C10). */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/prandom.h>

#include "../store/io.h"
#include "example.h"

#define MAX_PIECES	200
#define MAX_BYTES	(64 * 1024)
#define ORDER		6		/* room for the pieces, and gaps between them */

struct odd {
	struct bio bio;
	struct bio_vec vecs[MAX_PIECES];
	void *memory;
	u8 *data;		/* what the bio holds, or should */
	u8 *flat;
	u32 bytes;
	struct rnd_state rnd;
};

static u32 draw(struct odd *odd, u32 below)
{
	return prandom_u32_state(&odd->rnd) % below;
}

static void *odd_alloc(struct kunit *test, size_t bytes)
{
	void *memory = kunit_kzalloc(test, bytes, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, memory);
	return memory;
}

static void free_memory(void *memory)
{
	free_pages((unsigned long)memory, ORDER);
}

static int odd_init(struct kunit *test)
{
	struct odd *odd = odd_alloc(test, sizeof(*odd));

	odd->data = odd_alloc(test, MAX_BYTES);
	odd->flat = odd_alloc(test, MAX_BYTES);
	odd->memory = (void *)__get_free_pages(GFP_KERNEL, ORDER);
	KUNIT_ASSERT_NOT_NULL(test, odd->memory);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_memory, odd->memory), 0);
	lc_test_seed(test, &odd->rnd);
	test->priv = odd;
	return 0;
}

/* The next piece lies @gap bytes after the last one. */
static void add_piece(struct odd *odd, u32 *at, u32 gap, u32 len)
{
	void *memory = odd->memory + *at + gap;

	__bio_add_page(&odd->bio, virt_to_page(memory), len, offset_in_page(memory));
	*at += gap + len;
	odd->bytes += len;
}

static void begin(struct odd *odd, sector_t sector)
{
	bio_init(&odd->bio, NULL, odd->vecs, MAX_PIECES, REQ_OP_WRITE);
	odd->bio.bi_iter.bi_sector = sector;
	odd->bytes = 0;
}

/* A bio of random length in random pieces: of a byte, of several pages, and between. */
static void make_odd(struct odd *odd)
{
	u32 want = (1 + draw(odd, 64)) << 9, at = 0, least, len;

	begin(odd, draw(odd, 1 << 20));
	while (want) {
		least = DIV_ROUND_UP(want, MAX_PIECES - odd->bio.bi_vcnt);
		switch (draw(odd, 4)) {
		case 0:
			len = 1 + draw(odd, 16);
			break;
		case 1:
			len = 504 + draw(odd, 16);
			break;
		case 2:
			len = PAGE_SIZE - draw(odd, 32);
			break;
		default:
			len = 1 + draw(odd, 3 * PAGE_SIZE);
		}
		len = min(max(len, least), want);
		add_piece(odd, &at, draw(odd, 8), len);
		want -= len;
	}
}

static void fill_pieces(struct odd *odd)
{
	u32 i, done = 0;

	for (i = 0; i < odd->bio.bi_vcnt; i++) {
		memcpy(bvec_virt(&odd->vecs[i]), odd->data + done, odd->vecs[i].bv_len);
		done += odd->vecs[i].bv_len;
	}
}

static void gather_pieces(struct odd *odd)
{
	u32 i, done = 0;

	for (i = 0; i < odd->bio.bi_vcnt; i++) {
		memcpy(odd->data + done, bvec_virt(&odd->vecs[i]), odd->vecs[i].bv_len);
		done += odd->vecs[i].bv_len;
	}
}

static void random_bytes(struct odd *odd, void *to)
{
	prandom_bytes_state(&odd->rnd, to, MAX_BYTES);
}

/* Copy all of it, a few sectors at a time; the iterator tells the place each time. */
static void copy_all(struct kunit *test, struct odd *odd, bool from_bio)
{
	struct bvec_iter iter = odd->bio.bi_iter;
	u32 done = 0, len;

	while (iter.bi_size) {
		len = min_t(u32, (1 + draw(odd, 8)) << 9, iter.bi_size);
		if (from_bio)
			lc_io_copy_from_bio(&odd->bio, &iter, odd->flat + done, len);
		else
			lc_io_copy_to_bio(&odd->bio, &iter, odd->flat + done, len);
		done += len;
		KUNIT_ASSERT_EQ(test, iter.bi_sector,
				odd->bio.bi_iter.bi_sector + (done >> SECTOR_SHIFT));
		KUNIT_ASSERT_EQ(test, iter.bi_size, odd->bytes - done);
	}
	KUNIT_EXPECT_EQ(test, done, odd->bytes);
}

/* As LIO sends memory that begins 16 bytes into a page: seven sectors and a bit. */
static void page_and_sixteen(struct kunit *test)
{
	struct odd *odd = test->priv;
	struct bvec_iter iter;
	u32 at = 0;

	begin(odd, 128);
	add_piece(odd, &at, 16, PAGE_SIZE - 16);
	add_piece(odd, &at, 0, 16);
	add_piece(odd, &at, PAGE_SIZE, PAGE_SIZE - 16);
	add_piece(odd, &at, 0, 16);
	iter = odd->bio.bi_iter;
	lc_io_copy_from_bio(&odd->bio, &iter, odd->flat, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, iter.bi_sector, 128 + PAGE_SIZE / 512);
	lc_io_copy_to_bio(&odd->bio, &iter, odd->flat, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, iter.bi_sector, 128 + 2 * PAGE_SIZE / 512);
	KUNIT_EXPECT_EQ(test, iter.bi_size, 0);
}

static void from_odd_pieces(struct kunit *test)
{
	struct odd *odd = test->priv;
	u32 round;

	for (round = 0; round < 300; round++) {
		make_odd(odd);
		random_bytes(odd, odd->data);
		fill_pieces(odd);
		copy_all(test, odd, true);
		KUNIT_ASSERT_EQ(test, memcmp(odd->flat, odd->data, odd->bytes), 0);
	}
}

static void to_odd_pieces(struct kunit *test)
{
	struct odd *odd = test->priv;
	u32 round;

	for (round = 0; round < 300; round++) {
		make_odd(odd);
		random_bytes(odd, odd->flat);
		copy_all(test, odd, false);
		gather_pieces(odd);
		KUNIT_ASSERT_EQ(test, memcmp(odd->flat, odd->data, odd->bytes), 0);
	}
}

static struct kunit_case io_cases[] = {
	KUNIT_CASE(page_and_sixteen),
	KUNIT_CASE(from_odd_pieces),
	KUNIT_CASE(to_odd_pieces),
	{}
};

static struct kunit_suite io_suite = {
	.name = "dm_lc_io",
	.init = odd_init,
	.test_cases = io_cases,
};

kunit_test_suite(io_suite);
