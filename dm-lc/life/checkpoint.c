// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checkpoint: the whole index, in slot order, as one sequential write at a clean
 * stop and one sequential read at the next start; 12 bytes a block.  For a log of several
 * lanes it holds the boundaries, too, because no header there tells where the tail may move to.
 *
 * It is valid only while the superblock says clean, which ends before the first record of
 * the next life (L10).
 */
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "life/checkpoint.h"
#include "log/cache.h"
#include "log/lanes.h"
#include "store/admit.h"
#include "store/index.h"
#include "store/io.h"
#include "store/ring.h"

#define PIECE_ORDER	4
#define PIECE_BYTES	(PAGE_SIZE << PIECE_ORDER)
#define PIECE_BLOCKS	(PIECE_BYTES >> LC_SLOT_SHIFT)

struct stream {
	struct lc_cache *c;
	void *piece;
	u32 nr_blocks;		/* in a piece */
	u32 fill;		/* blocks finished in this piece */
	u32 nr_entries;		/* in the block at hand */
	u64 index;		/* of the block at hand */
};

static int stream_alloc(struct stream *s, struct lc_cache *c)
{
	unsigned int order = PIECE_ORDER;
	struct page *page;

	/* Large pieces if they are to be had, single pages if not. */
	page = alloc_pages(GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN, order);
	if (!page) {
		order = 0;
		page = alloc_pages(GFP_NOIO, order);
	}
	if (!page)
		return -ENOMEM;
	*s = (struct stream) {
		.c = c, .piece = page_address(page), .nr_blocks = 1u << order,
	};
	return 0;
}

static void stream_free(struct stream *s)
{
	free_pages((unsigned long)s->piece, s->nr_blocks > 1 ? PIECE_ORDER : 0);
}

static int stream_flush(struct stream *s)
{
	struct lc_cache *c = s->c;
	u64 address = c->sb.geo.ckpt_offset + ((s->index - s->fill) << LC_SLOT_SHIFT);
	int ret;

	if (!s->fill)
		return 0;
	lc_env_sent(&c->env, c->env.cache, REQ_OP_WRITE, s->fill << LC_SLOT_SHIFT);
	ret = lc_io_sync(c->env.cache, REQ_OP_WRITE, address, s->piece,
			 s->fill << LC_SLOT_SHIFT);
	s->fill = 0;
	return ret;
}

static int stream_end_block(struct stream *s)
{
	struct lc_ckpt_block *raw = s->piece + (s->fill << LC_SLOT_SHIFT);

	lc_ckpt_seal(raw, &s->c->sb, s->index, s->nr_entries);
	s->nr_entries = 0;
	s->index++;
	if (++s->fill < s->nr_blocks)
		return 0;
	return stream_flush(s);
}

static int stream_add(struct stream *s, const struct lc_ckpt_item *item)
{
	struct lc_ckpt_block *raw = s->piece + (s->fill << LC_SLOT_SHIFT);

	if (!s->nr_entries)
		memset(raw, 0, sizeof(*raw));
	lc_ckpt_encode(raw, s->nr_entries, item);
	if (++s->nr_entries < LC_CKPT_ENTRIES)
		return 0;
	return stream_end_block(s);
}

/*
 * Add the boundary of the segment that begins at @slot, if it is one of a log that ends below
 * @head.
 */
static int add_boundary(struct stream *s, u32 slot, u64 head, u64 *nr_entries)
{
	const struct lc_cache *c = s->c;
	const struct lc_segment *seg = lc_ring_segment(c->ring, slot);
	struct lc_ckpt_item item = {
		.slot = slot, .seq = seg->boundary_seq, .flags = LC_CKPT_ENTRY_BOUNDARY,
	};

	if (lc_ring_slot_in_segment(c->ring, slot) ||
	    !(c->sb.incompat & LC_INCOMPAT_LANES) || !seg->boundary_seq ||
	    seg->number <= c->sb.tail_segment || seg->number >= head ||
	    item.seq >= LC_CKPT_SEQ_END)
		return 0;
	(*nr_entries)++;
	return stream_add(s, &item);
}

/* Is there a block left that is in a group?  If not, older modules may use the checkpoint, too. */
static bool any_promoted(struct lc_cache *c)
{
	struct lc_mapping map;
	u64 slot = 0, block;

	if (!READ_ONCE(c->promoted))
		return false;
	for (; lc_index_next(c->index, &slot, c->sb.geo.nr_slots, &block, &map); slot++) {
		if (map.use & LC_ADMIT_PROMOTED)
			return true;
	}
	return false;
}

int lc_checkpoint_write(struct lc_cache *c, u64 *nr_entries)
{
	u64 head = lc_lanes_used(c->lanes), slot;
	struct lc_mapping map;
	struct lc_ckpt_item item;
	struct stream s;
	int ret;

	*nr_entries = 0;
	WRITE_ONCE(c->promoted, any_promoted(c));
	ret = stream_alloc(&s, c);
	for (slot = 0; !ret && slot < c->sb.geo.nr_slots; slot++) {
		if (!(slot & 4095))
			cond_resched();
		ret = add_boundary(&s, slot, head, nr_entries);
		if (ret || !lc_index_peek(c->index, slot, &item.block, &map))
			continue;
		if (WARN_ON_ONCE(!(map.mask | map.lost)))
			continue;	/* pending: a bug, but nothing is lost (I6) */
		/* The HDD may have lost what was read from there: lc_hdd_may_lose(). */
		if (map.use & LC_ADMIT_PROMOTED && lc_doubt_failures(&c->doubt))
			continue;
		item.slot = slot;
		item.mask = map.mask;
		item.lost = map.lost;
		item.flags = map.dirty ? LC_CKPT_ENTRY_DIRTY : 0;
		if (READ_ONCE(c->promoted))
			item.flags |= map.use << LC_CKPT_USE_SHIFT;
		ret = stream_add(&s, &item);
		(*nr_entries)++;
	}
	if (ret == -ENOMEM)
		return ret;
	if (!ret && s.nr_entries)
		ret = stream_end_block(&s);
	if (!ret)
		ret = stream_flush(&s);
	stream_free(&s);
	return ret;
}

/* Put one item into the index of a volume that is not running yet. */
static int load_item(struct lc_cache *c, const struct lc_ckpt_item *item)
{
	struct lc_mapping old, map = {
		.slot = item->slot, .mask = item->mask, .lost = item->lost,
		.dirty = item->flags & LC_CKPT_ENTRY_DIRTY,
		.use = item->flags >> LC_CKPT_USE_SHIFT,
	};
	struct lc_segment *seg = lc_ring_segment(c->ring, item->slot);
	u64 ignored;
	u32 bucket;
	bool twice;

	if (item->flags & LC_CKPT_ENTRY_BOUNDARY) {
		if (seg->boundary_seq || seg->number <= c->sb.tail_segment)
			return -EUCLEAN;
		lc_ring_set_boundary(c->ring, seg->number, item->seq);
		return 0;
	}
	/* What is dirty is at or above the tail, or the tail would have lost it. */
	if (map.dirty && seg->number < c->sb.tail_segment)
		return -EUCLEAN;
	/* Slots come in rising order, each once; a block twice is damage too. */
	if (lc_index_peek(c->index, item->slot, &ignored, &old))
		return -EUCLEAN;
	bucket = lc_index_lock(c->index, item->block);
	twice = lc_index_set(c->index, bucket, item->block, &map, &old);
	lc_index_unlock(c->index, bucket);
	return twice ? -EUCLEAN : 0;
}

static int load_block(struct lc_cache *c, const struct lc_ckpt_block *raw, u64 index,
		      u64 *nr_entries)
{
	const char *why = "entry out of bounds";
	struct lc_ckpt_item item;
	u32 nr, i;
	int ret;

	ret = lc_ckpt_decode(raw, &c->sb, index, &nr, &why);
	for (i = 0; !ret && i < nr; i++) {
		ret = lc_ckpt_item_decode(raw, &c->sb, i, &item);
		if (!ret)
			ret = load_item(c, &item);
	}
	if (ret)
		lc_err(&c->env, "checkpoint block %llu: %s", index, why);
	*nr_entries += nr;
	return ret;
}

int lc_checkpoint_load(struct lc_cache *c)
{
	u64 expect = c->sb.ckpt_entries, found = 0, index = 0, blocks;
	struct stream s;
	u32 i, n;
	int ret;

	blocks = DIV_ROUND_UP_ULL(expect, LC_CKPT_ENTRIES);
	ret = stream_alloc(&s, c);
	if (ret)
		return ret;
	while (!ret && index < blocks) {
		n = min_t(u64, s.nr_blocks, blocks - index);
		ret = lc_io_sync(c->env.cache, REQ_OP_READ,
				 c->sb.geo.ckpt_offset + (index << LC_SLOT_SHIFT), s.piece,
				 n << LC_SLOT_SHIFT);
		for (i = 0; !ret && i < n; i++)
			ret = load_block(c, s.piece + (i << LC_SLOT_SHIFT), index + i, &found);
		index += n;
		cond_resched();
	}
	stream_free(&s);
	if (!ret && found != expect) {
		lc_err(&c->env, "checkpoint lists %llu blocks instead of %llu", found, expect);
		ret = -EUCLEAN;
	}
	if (!ret && c->sb.incompat & LC_INCOMPAT_PROMOTED)
		WRITE_ONCE(c->promoted, true);
	return ret;
}
