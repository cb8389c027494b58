// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of a read.
 *
 * The bio is cut to the longest run that comes from one place:
 *  - RAM: copied under the bucket locks;
 *  - SSD: remapped; if the segment was reused by the end of the read, read again (H1);
 *  - HDD: remapped, or promoted as well (promote.h);
 *  - nowhere: lost sectors are an error until they are overwritten.
 *
 * A run is found sector by sector, because a slot may hold part of a block.  A bio of
 * which no block can be cached goes to the HDD without taking a lock.
 *
 * With verify_reads, what the SSD gave is checked by a worker before the bio ends, in the
 * bio's own pages.  The worker references the segment, if it was not reused and a block is still
 * mapped there.  The reader may write to the pages meanwhile, so a mismatch there proves nothing:
 * the blocks are read again into pages of our own.  So are all blocks if there was no reference
 * to be had, and those of which a bio wants less than the slot.
 */
#include <linux/bio.h>
#include <linux/mempool.h>

#include "bio/promote.h"
#include "bio/read.h"
#include "format/mask.h"
#include "log/cache.h"
#include "log/pool.h"
#include "log/request.h"
#include "store/admit.h"
#include "store/fit.h"
#include "store/index.h"
#include "store/io.h"
#include "store/ring.h"
#include "store/slot.h"
#include "store/trace.h"

enum place {
	PLACE_NONE,
	PLACE_RAM = LC_TRACE_RAM,
	PLACE_SSD = LC_TRACE_SSD,
	PLACE_HDD = LC_TRACE_HDD,
	PLACE_LOST = LC_TRACE_LOST,
};

/* A run under construction. */
struct run {
	enum place place;
	u32 next_slot;		/* SSD: the slot that would continue it */
	u32 nr_sectors;
};

static bool ssd_continues(struct lc_cache *c, const struct run *run, u32 slot, u32 first)
{
	if (run->place == PLACE_NONE)
		return true;
	return run->place == PLACE_SSD && !first && slot == run->next_slot &&
	       lc_ring_slot_in_segment(c->ring, slot);
}

/* Where is sector @first of the block, and how far does that reach? */
static enum place find_place(const struct lc_mapping *map, bool found, bool in_ram, u32 first,
			     u32 nr, u32 *reach)
{
	u8 lost = found ? map->lost : 0;
	u8 mask = found ? map->mask : 0;

	*reach = min3(lc_mask_run(mask, first), lc_mask_run(lost, first), nr);
	if (lc_mask_has(lost, first))
		return PLACE_LOST;
	if (!lc_mask_has(mask, first))
		return PLACE_HDD;
	return in_ram ? PLACE_RAM : PLACE_SSD;
}

/* [bucket locked] Until it is unlocked, the mapping keeps the segment from being reused. */
static void enter_segment(struct lc_cache *c, u32 bucket, struct lc_request *io, u32 slot)
{
	lc_index_assert_locked(c->index, bucket);
	io->segment = READ_ONCE(lc_ring_segment(c->ring, slot)->number);
	io->position = slot;
}

/* [bucket locked] The policy learns that the copy is of use. */
static void note_hit(struct lc_cache *c, u32 bucket, u64 block, const struct lc_mapping *map)
{
	u8 use = lc_admit_hit(map->use, lc_ring_half_a_lap(c->ring, map->slot));
	/* Pairs with lc_promote_enable(). */
	struct lc_admit *admit = smp_load_acquire(&c->admit);

	if (use != map->use)
		lc_index_hit(c->index, bucket, map->slot, use);
	if (admit && lc_admit_counts(block, jiffies))
		lc_admit_hits(admit);
}

/*
 * Look one block up and add it to the run if it comes from the same place.
 * Return: sectors added; fewer than @nr end the run.
 */
static u32 extend_run(struct lc_cache *c, struct lc_request *io, struct bvec_iter *iter,
		      struct run *run, u64 block, u32 first, u32 nr)
{
	u32 bucket = lc_index_lock(c->index, block);
	struct lc_buffer *buf = NULL;
	struct lc_mapping map;
	enum place place;
	bool found;
	u32 n;

	found = lc_index_lookup(c->index, bucket, block, &map);
	if (found) {
		lc_cache_view(c, bucket, &map);
		buf = lc_buffer_pin(c->ring, map.slot);
	}
	place = find_place(&map, found, buf, first, nr, &n);
	if (run->place != PLACE_NONE && run->place != place)
		n = 0;
	else if (place == PLACE_SSD && !ssd_continues(c, run, map.slot, first))
		n = 0;
	if (n && place == PLACE_RAM) {
		lc_io_copy_to_bio(lc_request_bio(io), iter,
				  lc_buffer_slot(buf, map.slot) + (first << 9), n << 9);
	} else if (n && place == PLACE_SSD) {
		if (run->place == PLACE_NONE)
			enter_segment(c, bucket, io, map.slot);
		run->next_slot = map.slot + 1;
	}
	if (n) {
		run->place = place;
		if (place <= PLACE_SSD && READ_ONCE(c->env.params.read_cache))
			note_hit(c, bucket, block, &map);
	}
	lc_index_unlock(c->index, bucket);
	if (buf)
		lc_buffer_unpin(buf);
	return n;
}

/* A checksum is of a whole slot: cut the run so that most of it is in whole ones. */
static u32 trim_to_slots(const struct bio *bio, u32 nr)
{
	u32 first = bio->bi_iter.bi_sector & (LC_BLOCK_SECTORS - 1);

	if (first || nr < LC_BLOCK_SECTORS)
		return min(nr, LC_BLOCK_SECTORS - first);
	return round_down(nr, LC_BLOCK_SECTORS);
}

/* The longest run that comes from one place; what comes after it is cut off.  Return: the place. */
static enum place find_run(struct lc_cache *c, struct bio *bio, struct lc_request *io)
{
	struct run run = { .place = PLACE_NONE };
	struct bvec_iter iter = bio->bi_iter;
	sector_t sector = bio->bi_iter.bi_sector;
	u32 left = bio_sectors(bio);

	while (left) {
		u32 first = sector & (LC_BLOCK_SECTORS - 1);
		u32 nr = min_t(u32, LC_BLOCK_SECTORS - first, left);
		u32 n = extend_run(c, io, &iter, &run, sector >> LC_BLOCK_SHIFT, first, nr);

		run.nr_sectors += n;
		sector += n;
		left -= n;
		if (n < nr)
			break;
	}
	if (run.place == PLACE_SSD && io->verify)
		run.nr_sectors = trim_to_slots(bio, run.nr_sectors);
	if (run.nr_sectors < bio_sectors(bio))
		dm_accept_partial_bio(bio, run.nr_sectors);
	return run.place;
}

/*
 * Most reads are within one block, of which all that is wanted is in one place.  What is in RAM is
 * copied; for the SSD, position and segment of @io are set.  Return: that place, or PLACE_NONE: it
 * has to be looked for sector by sector, because it is in several places, or lost.
 */
static enum place find_at_once(struct lc_cache *c, struct bio *bio, struct lc_request *io)
{
	u64 block = bio->bi_iter.bi_sector >> LC_BLOCK_SHIFT;
	u32 first = bio->bi_iter.bi_sector & (LC_BLOCK_SECTORS - 1);
	u8 wanted = lc_mask_of(first, bio_sectors(bio)), cached;
	u32 bucket = lc_index_lock(c->index, block);
	enum place place = PLACE_HDD;
	struct lc_buffer *buf = NULL;
	struct lc_mapping map;

	if (!lc_index_lookup(c->index, bucket, block, &map))
		goto unlock;
	lc_cache_view(c, bucket, &map);
	cached = map.mask & wanted;
	if (map.lost & wanted || (cached && cached != wanted))
		place = PLACE_NONE;
	else if (cached)
		place = PLACE_SSD;
	if (place != PLACE_SSD)
		goto unlock;
	buf = lc_buffer_pin(c->ring, map.slot);
	if (buf) {
		struct bvec_iter iter = bio->bi_iter;

		place = PLACE_RAM;
		lc_io_copy_to_bio(bio, &iter, lc_buffer_slot(buf, map.slot) + (first << 9),
				  bio->bi_iter.bi_size);
	} else {
		enter_segment(c, bucket, io, map.slot);
	}
	if (READ_ONCE(c->env.params.read_cache))
		note_hit(c, bucket, block, &map);
unlock:
	lc_index_unlock(c->index, bucket);
	if (buf)
		lc_buffer_unpin(buf);
	return place;
}

/* --- the slow way: block by block, in a worker ---------------------------- */

#define PAUSE_FIRST	(HZ / 8 ?: 1)
#define PAUSE_LAST	(2 * HZ)

/* Some sectors of one block. */
struct piece {
	u64 block;
	u32 first;
	u32 nr;			/* wanted; then how many come from one place */
	enum place place;
	struct lc_mapping map;
};

/* Where is the piece?  What is in RAM is copied, a segment is referenced. */
static void find_piece(struct lc_cache *c, struct bio *bio, struct bvec_iter *iter,
		       struct piece *p)
{
	u32 bucket = lc_index_lock(c->index, p->block);
	struct lc_buffer *buf = NULL;
	bool found;

	found = lc_index_lookup(c->index, bucket, p->block, &p->map);
	if (found) {
		lc_cache_view(c, bucket, &p->map);
		buf = lc_buffer_pin(c->ring, p->map.slot);
	}
	p->place = find_place(&p->map, found, buf, p->first, p->nr, &p->nr);
	if (p->place == PLACE_RAM)
		lc_io_copy_to_bio(bio, iter, lc_buffer_slot(buf, p->map.slot) +
				  (p->first << 9), p->nr << 9);
	else if (p->place == PLACE_SSD)
		lc_segment_get(lc_ring_segment(c->ring, p->map.slot));
	lc_index_unlock(c->index, bucket);
	if (buf)
		lc_buffer_unpin(buf);
}

/* One try.  Return: 0, -EBADMSG, or an I/O error that may pass. */
static int read_piece(struct lc_cache *c, struct bio *bio, struct bvec_iter *iter,
		      struct piece *p)
{
	void *pages;
	int ret = 0;

	find_piece(c, bio, iter, p);
	if (p->place == PLACE_RAM)
		return 0;
	if (p->place == PLACE_LOST)
		return -EBADMSG;
	pages = page_address(mempool_alloc(&c->slot_pages, GFP_NOIO));
	if (p->place == PLACE_SSD) {
		ret = lc_slot_read(&c->slots, p->block, p->map.slot, pages);
		lc_slot_put(&c->slots, p->map.slot);
	}
	if (p->place == PLACE_HDD || (ret && !p->map.dirty)) {
		lc_stamp(&c->env.last_hdd_read);
		ret = lc_io_sync(c->env.backing, REQ_OP_READ,
				 lc_place_sector(&c->env.place,
						 (p->block << LC_BLOCK_SHIFT) + p->first) << 9,
				 pages + (p->first << 9), p->nr << 9);
		lc_stamp(&c->env.last_hdd_read);
	}
	if (!ret)
		lc_io_copy_to_bio(bio, iter, pages + (p->first << 9), p->nr << 9);
	mempool_free(virt_to_page(pages), &c->slot_pages);
	return ret;
}

/*
 * Errors of the SSD may pass.  While the SSD is being given up, the block may be saved:
 * soon it is on the HDD, or lost.  Once the SSD was given up, a block that it fails to
 * give back is lost.  The index lists it before the reader gets the error.
 */
static int read_piece_patiently(struct lc_cache *c, struct bio *bio, struct bvec_iter *iter)
{
	unsigned long pause = PAUSE_FIRST;
	enum lc_mode mode;
	struct piece p;
	int ret;

	for (;;) {
		p.block = iter->bi_sector >> LC_BLOCK_SHIFT;
		p.first = iter->bi_sector & (LC_BLOCK_SECTORS - 1);
		p.nr = min_t(u32, LC_BLOCK_SECTORS - p.first, iter->bi_size >> 9);
		mode = lc_mode(&c->health);
		ret = read_piece(c, bio, iter, &p);
		if (!ret || p.place != PLACE_SSD)
			return ret;
		/* Before a block is lost for good it is read again, also after -EBADMSG (S-f). */
		if (pause > PAUSE_LAST || mode == LC_MODE_FAIL ||
		    (ret == -EBADMSG && mode != LC_MODE_DEGRADED)) {
			if (mode != LC_MODE_DEGRADED || !p.map.dirty ||
			    lc_index_mark_slot_lost(c->index, p.block, p.map.slot))
				return ret;
			/* It was saved, or written to, just now. */
			continue;
		}
		schedule_timeout_idle(pause);
		if (mode == LC_MODE_DEGRADED || !lc_ssd_failed(&c->health))
			pause *= 2;
	}
}

/*
 * For reads that are smaller than the SSD's logical block or whose memory does not suit it,
 * and for those it failed.  Slots are verified here.
 */
static void slow_read_work(struct work_struct *work)
{
	struct lc_request *io = container_of(work, struct lc_request, work);
	struct bio *bio = lc_request_bio(io);
	struct bvec_iter iter = io->iter;
	int ret = 0;

	while (!ret && iter.bi_size)
		ret = read_piece_patiently(io->owner, bio, &iter);
	bio->bi_status = ret ? BLK_STS_IOERR : BLK_STS_OK;
	lc_io_end_again(bio);
}

static void read_slowly(struct lc_cache *c, struct lc_request *io)
{
	io->owner = c;
	INIT_WORK(&io->work, slow_read_work);
	queue_work(c->patient_wq, &io->work);
}

/* --- verify_reads -------------------------------------------------------- */

static bool whole_slots(const struct bvec_iter *iter)
{
	return !(iter->bi_sector & (LC_BLOCK_SECTORS - 1)) &&
	       !(iter->bi_size & (LC_SLOT_BYTES - 1));
}

/* Does the next slot's worth of the bio hold the block?  Moves on. */
static bool check_block(struct lc_cache *c, struct bio *bio, struct bvec_iter *iter, u64 block,
			u32 slot, void *pages)
{
	u32 csum;

	lc_io_copy_from_bio(bio, iter, pages, LC_SLOT_BYTES);
	return !lc_slot_find_sum(&c->slots, block, slot, pages + LC_SLOT_BYTES, &csum) &&
	       csum == lc_format_slot_csum(&c->sb, block, pages);
}

/*
 * Keep the segment, if it is what it was when the read was mapped, and one of its blocks is
 * still mapped there.  Until the put, neither slots nor sums change.
 */
static bool hold_segment(struct lc_cache *c, const struct lc_request *io)
{
	struct lc_segment *seg = lc_ring_segment(c->ring, io->position);
	u32 slot = io->position, end = slot + (io->iter.bi_size >> LC_SLOT_SHIFT), bucket;
	u64 block = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	struct lc_mapping map;
	bool held = false;

	for (; slot < end && !held; slot++, block++) {
		held = lc_index_lock_slot(c->index, block, slot, &bucket, &map) &&
		       READ_ONCE(seg->number) == io->segment;
		if (held)
			lc_segment_get(seg);
		lc_index_unlock(c->index, bucket);
	}
	return held;
}

/* Does the SSD hold all of the read as it was mapped, with the sums of the log? */
static bool check_read(struct lc_cache *c, struct bio *bio, const struct lc_request *io)
{
	u64 block = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	struct bvec_iter iter = io->iter;
	u32 slot = io->position;
	bool good = true;
	void *pages;

	/* Overwritten, or the segment was reused while others held the read back (H1). */
	if (!hold_segment(c, io))
		return false;
	pages = page_address(mempool_alloc(&c->slot_pages, GFP_NOIO));
	while (good && iter.bi_size)
		good = check_block(c, bio, &iter, block++, slot++, pages);
	mempool_free(virt_to_page(pages), &c->slot_pages);
	lc_slot_put(&c->slots, io->position);
	return good;
}

static void verify_work(struct work_struct *work)
{
	struct lc_request *io = container_of(work, struct lc_request, work);
	struct bio *bio = lc_request_bio(io);

	if (check_read(io->owner, bio, io))
		lc_io_end_again(bio);
	else
		read_slowly(io->owner, io);
}

/* --- entry points ------------------------------------------------------- */

static int map_to_hdd(struct lc_cache *c, struct lc_promote *promote, struct bio *bio,
		      struct lc_request *io)
{
	if (READ_ONCE(c->env.params.read_cache) && lc_promote_map(promote, bio))
		return DM_MAPIO_SUBMITTED;
	lc_request_aim_at_hdd(&c->env, bio, io);
	return DM_MAPIO_REMAPPED;
}

static int map_to_ssd(struct lc_cache *c, struct bio *bio, struct lc_request *io)
{
	u32 first = bio->bi_iter.bi_sector & (LC_BLOCK_SECTORS - 1);
	u64 address = lc_slot_address(&c->sb.geo, io->position) + ((u64)first << 9);

	io->iter = bio->bi_iter;
	if ((address | bio->bi_iter.bi_size) & (c->sb.cache_lbs - 1) ||
	    !lc_fits_ssd(&c->fit, bio) ||
	    (io->verify && !whole_slots(&bio->bi_iter))) {
		read_slowly(c, io);
		return DM_MAPIO_SUBMITTED;
	}
	io->on_ssd = true;
	bio->bi_iter.bi_sector = address >> 9;
	bio_set_dev(bio, c->env.cache);
	return DM_MAPIO_REMAPPED;
}

/* Is nothing of it cached?  Without a lock, and false if that is not certain. */
static bool all_absent(struct lc_cache *c, const struct bio *bio)
{
	u64 block = bio->bi_iter.bi_sector >> LC_BLOCK_SHIFT;
	u64 last = (bio_end_sector(bio) - 1) >> LC_BLOCK_SHIFT;

	while (block <= last && lc_index_absent(c->index, block))
		block++;
	return block > last;
}

/* The read goes there.  @place is of all of it. */
static int map_to(struct lc_cache *c, struct lc_promote *promote, struct bio *bio,
		  struct lc_request *io, enum place place)
{
	trace_lc_read(c->env.dev, bio->bi_iter.bi_sector, bio_sectors(bio), place);
	switch (place) {
	case PLACE_SSD:
		return map_to_ssd(c, bio, io);
	case PLACE_HDD:
		return map_to_hdd(c, promote, bio, io);
	case PLACE_RAM:
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	default:
		lc_err_limit_atomic(&c->env, "read of lost sector %llu",
				    (unsigned long long)bio->bi_iter.bi_sector);
		return DM_MAPIO_KILL;
	}
}

/* Of several blocks, or of one that is in several places. */
static noinline int map_in_pieces(struct lc_cache *c, struct lc_promote *promote, struct bio *bio,
				  struct lc_request *io)
{
	enum place place = PLACE_HDD;

	if (!all_absent(c, bio))
		place = find_run(c, bio, io);
	return map_to(c, promote, bio, io, place);
}

static noinline int map_block(struct lc_cache *c, struct lc_promote *promote, struct bio *bio,
			      struct lc_request *io)
{
	enum place place = find_at_once(c, bio, io);

	if (place == PLACE_NONE)
		return map_in_pieces(c, promote, bio, io);
	return map_to(c, promote, bio, io, place);
}

/* Each way is a function of its own: the shorter ones save fewer registers. */
int lc_read_map(struct lc_cache *c, struct lc_promote *promote, struct bio *bio,
		struct lc_request *io)
{
	u64 block = bio->bi_iter.bi_sector >> LC_BLOCK_SHIFT;

	io->verify = READ_ONCE(c->env.params.verify_reads);
	if ((bio_end_sector(bio) - 1) >> LC_BLOCK_SHIFT != block)
		return map_in_pieces(c, promote, bio, io);
	if (lc_index_absent(c->index, block))
		return map_to(c, promote, bio, io, PLACE_HDD);
	return map_block(c, promote, bio, io);
}

int lc_read_end_slowly(struct lc_cache *c, struct bio *bio, struct lc_request *io,
		       blk_status_t *error)
{
	io->on_ssd = false;
	if (!*error && io->verify) {
		io->owner = c;
		INIT_WORK(&io->work, verify_work);
		queue_work(c->verify_wq, &io->work);
		return DM_ENDIO_INCOMPLETE;
	}
	if (*error == BLK_STS_AGAIN)
		return DM_ENDIO_DONE;
	if (*error)
		lc_err_limit_atomic(&c->env, "the cache device failed a read, trying again");
	read_slowly(c, io);
	return DM_ENDIO_INCOMPLETE;
}
