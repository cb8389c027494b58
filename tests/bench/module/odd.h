/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of a bio in random pieces, and sectors that tell which they are.
 *
 * Pieces begin and end at any multiple of a granule, within a sector too. They are a few bytes
 * to several pages long, and lie in memory in another order than in the bio.
 */
#ifndef LCLOAD_ODD_H
#define LCLOAD_ODD_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/string.h>

#define ODD_MAX_PIECES	64u	/* fewer than any queue takes in one command */
#define ODD_MAX_GRANULE	64u
#define ODD_ROOM	PAGE_SIZE	/* of a bio's memory, for the gaps */
#define ODD_POISON	0xdb		/* what a read that fills nothing leaves */
#define ODD_WORDS	(SECTOR_SIZE / sizeof(u64))

static inline u32 odd_draw(struct rnd_state *rnd, u32 below)
{
	return prandom_u32_state(rnd) % below;
}

/* The length of the next piece of a bio; @way was drawn for the whole of it. */
static inline u32 odd_length(struct rnd_state *rnd, u32 way, u32 granule)
{
	switch (way) {
	case 0:
		return granule * (1 + odd_draw(rnd, 16));
	case 1:
		return SECTOR_SIZE + granule * odd_draw(rnd, 8) - granule * odd_draw(rnd, 8);
	case 2:
		return PAGE_SIZE - granule * odd_draw(rnd, 32);
	case 3:
		return odd_draw(rnd, 2) ? PAGE_SIZE - 16 : 16;
	default:
		return granule * (1 + odd_draw(rnd, 3 * PAGE_SIZE / granule));
	}
}

/* Give the bio @bytes of the memory at @pages, which has ODD_ROOM more: @most pieces or fewer. */
static inline void odd_pieces(struct bio *bio, struct page *pages, u32 bytes, u32 most,
			      u32 granule, struct rnd_state *rnd)
{
	u32 len[ODD_MAX_PIECES], start[ODD_MAX_PIECES], way = odd_draw(rnd, 5);
	u32 nr = 0, at = 0, left, least, gap, i, k;
	u8 order[ODD_MAX_PIECES];

	for (left = bytes; left; left -= len[nr++]) {
		/* Not smaller than that, or there will be too many. */
		least = max(DIV_ROUND_UP(left, most - nr), odd_length(rnd, way, granule));
		len[nr] = min(round_up(least, granule), left);
	}
	for (i = 0; i < nr; i++) {
		k = odd_draw(rnd, i + 1);
		order[i] = order[k];
		order[k] = i;
	}
	gap = max_t(u32, ODD_ROOM / granule / nr, 1);
	for (i = 0; i < nr; i++) {
		at += granule * odd_draw(rnd, gap);
		start[order[i]] = at;
		at += len[order[i]];
	}
	for (i = 0; i < nr; i++)
		__bio_add_page(bio, pages + (start[i] >> PAGE_SHIFT), len[i],
			       offset_in_page(start[i]));
}

/* A place in the memory of a bio. */
struct odd_cursor {
	const struct bio_vec *vec;
	u32 done;		/* bytes of it */
};

/* Copy the next sector of a bio, or, with @into, fill it. */
static inline void odd_copy(struct odd_cursor *cursor, void *sector, bool into)
{
	u32 left, n;

	for (left = SECTOR_SIZE; left; left -= n) {
		void *there = page_address(cursor->vec->bv_page) + cursor->vec->bv_offset +
			      cursor->done;

		n = min(left, cursor->vec->bv_len - cursor->done);
		if (into)
			memcpy(there, sector, n);
		else
			memcpy(sector, there, n);
		sector += n;
		cursor->done += n;
		if (cursor->done == cursor->vec->bv_len) {
			cursor->vec++;
			cursor->done = 0;
		}
	}
}

/* What that version of the sector at @place holds. */
static inline void odd_fill(u64 *words, u64 place, u64 version)
{
	u64 x = place << 32 ^ version;
	unsigned int i;

	words[0] = place;
	words[1] = version;
	for (i = 2; i < ODD_WORDS; i++) {
		x += 0x9e3779b97f4a7c15ULL;
		words[i] = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	}
}

/* Is it the sector at @place, all of it, of a version from @least to @most? */
static inline bool odd_is(const u64 *words, u64 place, u64 least, u64 most)
{
	u64 want[ODD_WORDS];

	if (words[1] < least || words[1] > most)
		return false;
	odd_fill(want, place, words[1]);
	return !memcmp(words, want, SECTOR_SIZE);
}

#endif /* LCLOAD_ODD_H */
