// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of a read.
 *
 * The bio is cut to the longest run that comes from one place and served from
 * there: RAM (copied under the bucket locks), SSD (remapped; if the segment was
 * reused when the read ends, it is read again, H1), HDD (remapped), or
 * nowhere: lost sectors are an error until they are overwritten.
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

#include "lc.h"
#include "record.h"
#include "bypass.h"
#include "chain.h"
#include "fit.h"
#include "index.h"
#include "io.h"
#include "lanes.h"
#include "mask.h"
#include "read.h"
#include "rescue.h"
#include "segment.h"
#include "sums.h"

enum place {
	PLACE_NONE,
	PLACE_RAM,
	PLACE_SSD,
	PLACE_HDD,
	PLACE_LOST,
};

/* A run under construction. */
struct run {
	enum place place;
	u32 slot;		/* SSD: of the first block */
	u32 next_slot;		/* SSD: the slot that would continue it */
	u64 segment;		/* SSD: number of the segment of both */
	bool verify;		/* SSD: check what is read */
	u32 nr_sectors;
};

static bool ssd_continues(struct lc_core *core, const struct run *run, u32 slot, u32 first)
{
	if (run->place == PLACE_NONE)
		return true;
	return run->place == PLACE_SSD && !first && slot == run->next_slot &&
	       lc_ring_slot_in_segment(core->c.ring, slot);
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

/* [bucket locked] The mapping keeps the segment as it is until then. */
static void enter_segment(struct lc_core *core, struct run *run, u32 slot)
{
	run->segment = READ_ONCE(lc_ring_segment(core->c.ring, slot)->number);
	run->slot = slot;
}

/*
 * Look one block up and add it to the run if it comes from the same place.
 * Return: sectors added; fewer than @nr end the run.
 */
static u32 extend_run(struct lc_core *core, struct bio *bio, struct bvec_iter *iter,
		      struct run *run, u64 block, u32 first, u32 nr)
{
	u32 bucket = lc_index_lock(core->c.index, block);
	struct lc_buffer *buf = NULL;
	struct lc_mapping map;
	enum place place;
	bool found;
	u32 n;

	found = lc_index_lookup(core->c.index, bucket, block, &map);
	if (found) {
		lc_bypass_view(core, &map);
		buf = lc_buffer_pin(core->c.ring, map.slot);
	}
	place = find_place(&map, found, buf, first, nr, &n);
	if (run->place != PLACE_NONE && run->place != place)
		n = 0;
	else if (place == PLACE_SSD && !ssd_continues(core, run, map.slot, first))
		n = 0;
	if (n && place == PLACE_RAM) {
		lc_io_copy_to_bio(bio, iter, lc_buffer_slot(buf, map.slot) + (first << 9),
				  n << 9);
	} else if (n && place == PLACE_SSD) {
		if (run->place == PLACE_NONE)
			enter_segment(core, run, map.slot);
		run->next_slot = map.slot + 1;
	}
	if (n)
		run->place = place;
	lc_index_unlock(core->c.index, bucket);
	if (buf)
		lc_buffer_unpin(buf);
	return n;
}

static void find_run(struct lc_core *core, struct bio *bio, struct run *run)
{
	struct bvec_iter iter = bio->bi_iter;
	sector_t sector = bio->bi_iter.bi_sector;
	u32 left = bio_sectors(bio);

	while (left) {
		u32 first = sector & (LC_BLOCK_SECTORS - 1);
		u32 nr = min_t(u32, LC_BLOCK_SECTORS - first, left);
		u32 n = extend_run(core, bio, &iter, run, sector >> LC_BLOCK_SHIFT, first, nr);

		run->nr_sectors += n;
		sector += n;
		left -= n;
		if (n < nr)
			break;
	}
}

/**
 * lc_read_put_segment() - a read of a slot is over
 * @core: the volume
 * @slot: slot number, over the whole SSD
 *
 * Any context.
 */
void lc_read_put_segment(struct lc_core *core, u32 slot)
{
	if (lc_segment_put(core->c.ring, lc_ring_segment(core->c.ring, slot)))
		lc_kick(&core->c.env.refill);
}

/* --- reading a slot back ------------------------------------------------ */

/* Headers of a segment that cannot be read, before the SSD is taken to be gone. */
#define MAX_BAD_HEADERS	4

/* Keep the sums of all slots of a record whose segment is not reused meanwhile (V1). */
static void learn_sums(struct lc_core *core, u32 base, struct lc_record_header *header,
		       const struct lc_record_info *info)
{
	struct lc_entry_info entry;
	u32 i;

	if (!lc_sums_enabled(&core->c.sums))
		return;
	for (i = 0; i < info->nr_slots; i++) {
		lc_entry_decode(header, i, &entry);
		if (entry.type == LC_ENTRY_DATA)
			lc_sums_put(&core->c.sums, base + i, entry.csum);
	}
}

/*
 * Find the record that holds a slot: the headers of a segment form a chain from
 * its first slot.  @header gets it.  Return: 0, -EBADMSG, or an I/O error.
 */
static int find_record(struct lc_core *core, u32 slot, struct lc_record_header *header,
		       struct lc_record_info *info)
{
	struct lc_segment *seg = lc_ring_segment(core->c.ring, slot);
	u32 wanted = lc_ring_slot_in_segment(core->c.ring, slot);
	u32 base = slot - wanted, nr_bad = 0;
	int error = -EBADMSG, ret;
	struct lc_chain chain;

	lc_chain_start(&chain, seg->number,
		       seg->number >= core->c.allot->start ? core->c.sb.epoch : 0);
	while (chain.slot < wanted && nr_bad < MAX_BAD_HEADERS) {
		ret = lc_io_sync(core->c.env.cache, REQ_OP_READ,
				 lc_slot_address(&core->c.sb.geo, base + chain.slot), header,
				 LC_SLOT_BYTES);
		if (ret) {
			error = ret;
			nr_bad++;
		}
		/* One that rotted, or cannot be read, does not hide those behind it (L13). */
		if (ret || lc_chain_step(&chain, &core->c.sb, header, info, NULL)) {
			lc_chain_skip(&chain);
			continue;
		}
		learn_sums(core, base + info->first_slot + LC_HEADER_SLOTS, header, info);
		if (wanted < chain.slot)
			return 0;
	}
	return error;
}

/* What has the checksum of the slot to be?  Return: 0, -EBADMSG, or an I/O error. */
static int find_sum(struct lc_core *core, u64 block, u32 slot, struct lc_record_header *header,
		    u32 *csum)
{
	struct lc_record_info info;
	struct lc_entry_info entry;
	int ret;

	*csum = lc_sums_get(&core->c.sums, slot);
	if (*csum)
		return 0;
	ret = find_record(core, slot, header, &info);
	if (ret)
		return ret;
	lc_entry_decode(header, lc_ring_slot_in_segment(core->c.ring, slot) - info.first_slot -
			LC_HEADER_SLOTS, &entry);
	*csum = entry.csum;
	return entry.type == LC_ENTRY_DATA && entry.block == block ? 0 : -EBADMSG;
}

static int try_slot(struct lc_core *core, u64 block, u32 slot, void *pages)
{
	u32 csum;
	int ret;

	ret = find_sum(core, block, slot, pages + LC_SLOT_BYTES, &csum);
	if (!ret)
		ret = lc_io_sync(core->c.env.cache, REQ_OP_READ, lc_slot_address(&core->c.sb.geo, slot),
				 pages, LC_SLOT_BYTES);
	if (!ret && csum != lc_format_slot_csum(&core->c.sb, block, pages))
		ret = -EBADMSG;
	return ret;
}

/**
 * lc_read_slot() - read a slot from the SSD and verify it
 * @core: the volume
 * @block: that it should hold
 * @slot: whose segment the caller has referenced
 * @pages: two pages; the slot is in the first one afterwards
 *
 * May sleep.  Return: 0, -EBADMSG if slot or header are damaged, or an I/O error.
 */
int lc_read_slot(struct lc_core *core, u64 block, u32 slot, void *pages)
{
	int ret = try_slot(core, block, slot, pages);

	if (ret != -EBADMSG)
		return ret;
	/* It may have rotted on its way, or the sum in RAM. */
	lc_sums_put(&core->c.sums, slot, 0);
	if (!try_slot(core, block, slot, pages))
		return 0;
	lc_err_limit(&core->c.env, "block %llu is damaged on the cache device", block);
	return ret;
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
static void find_piece(struct lc_core *core, struct bio *bio, struct bvec_iter *iter,
		       struct piece *p)
{
	u32 bucket = lc_index_lock(core->c.index, p->block);
	struct lc_buffer *buf = NULL;
	bool found;

	found = lc_index_lookup(core->c.index, bucket, p->block, &p->map);
	if (found) {
		lc_bypass_view(core, &p->map);
		buf = lc_buffer_pin(core->c.ring, p->map.slot);
	}
	p->place = find_place(&p->map, found, buf, p->first, p->nr, &p->nr);
	if (p->place == PLACE_RAM)
		lc_io_copy_to_bio(bio, iter, lc_buffer_slot(buf, p->map.slot) +
				  (p->first << 9), p->nr << 9);
	else if (p->place == PLACE_SSD)
		lc_segment_get(lc_ring_segment(core->c.ring, p->map.slot));
	lc_index_unlock(core->c.index, bucket);
	if (buf)
		lc_buffer_unpin(buf);
}

/* One try.  Return: 0, -EBADMSG, or an I/O error that may pass. */
static int read_piece(struct lc_core *core, struct bio *bio, struct bvec_iter *iter,
		      struct piece *p)
{
	void *pages;
	int ret = 0;

	find_piece(core, bio, iter, p);
	if (p->place == PLACE_RAM)
		return 0;
	if (p->place == PLACE_LOST)
		return -EBADMSG;
	pages = page_address(mempool_alloc(&core->c.merge_pool, GFP_NOIO));
	if (p->place == PLACE_SSD) {
		ret = lc_read_slot(core, p->block, p->map.slot, pages);
		lc_read_put_segment(core, p->map.slot);
	}
	if (p->place == PLACE_HDD || (ret && !p->map.dirty)) {
		lc_stamp(&core->c.env.last_hdd_read);
		ret = lc_io_sync(core->c.env.backing, REQ_OP_READ,
				 lc_place_sector(&core->c.env.place,
						 (p->block << LC_BLOCK_SHIFT) + p->first) << 9,
				 pages + (p->first << 9), p->nr << 9);
		lc_stamp(&core->c.env.last_hdd_read);
	}
	if (!ret)
		lc_io_copy_to_bio(bio, iter, pages + (p->first << 9), p->nr << 9);
	mempool_free(virt_to_page(pages), &core->c.merge_pool);
	return ret;
}

/*
 * Errors of the SSD may pass, and if it is being given up, the block may be saved:
 * then it is on the HDD, or lost, soon.  Once it was given up, what it fails to give
 * back is lost: who is told so must find it in the list.
 */
static int read_piece_patiently(struct lc_core *core, struct bio *bio, struct bvec_iter *iter)
{
	unsigned long pause = PAUSE_FIRST;
	enum lc_mode mode;
	struct piece p;
	int ret;

	for (;;) {
		p.block = iter->bi_sector >> LC_BLOCK_SHIFT;
		p.first = iter->bi_sector & (LC_BLOCK_SECTORS - 1);
		p.nr = min_t(u32, LC_BLOCK_SECTORS - p.first, iter->bi_size >> 9);
		mode = lc_mode(&core->c.health);
		ret = read_piece(core, bio, iter, &p);
		if (!ret || p.place != PLACE_SSD)
			return ret;
		/* What would be lost for good is asked for again, also if it does not fit (S-f). */
		if (pause > PAUSE_LAST || mode == LC_MODE_FAIL ||
		    (ret == -EBADMSG && mode != LC_MODE_DEGRADED)) {
			if (mode != LC_MODE_DEGRADED || !p.map.dirty ||
			    lc_rescue_lose(core, p.block, p.map.slot))
				return ret;
			/* It was saved, or written to, just now. */
			continue;
		}
		schedule_timeout_idle(pause);
		if (mode == LC_MODE_DEGRADED || !lc_ssd_failed(&core->c.health))
			pause *= 2;
	}
}

/*
 * For reads that are smaller than the SSD's logical block or whose memory does not suit it,
 * and for those it failed.  Slots are verified here.
 */
static void slow_read_work(struct work_struct *work)
{
	struct lc_io *io = container_of(work, struct lc_io, work);
	struct bio *bio = lc_io_bio(io);
	struct bvec_iter iter = io->iter;
	int ret = 0;

	while (!ret && iter.bi_size)
		ret = read_piece_patiently(io->core, bio, &iter);
	bio->bi_status = ret ? BLK_STS_IOERR : BLK_STS_OK;
	lc_io_end_again(bio);
}

static void read_slowly(struct lc_core *core, struct lc_io *io)
{
	INIT_WORK(&io->work, slow_read_work);
	queue_work(core->c.patient_wq, &io->work);
}

/* --- verify_reads -------------------------------------------------------- */

static bool whole_slots(const struct bvec_iter *iter)
{
	return !(iter->bi_sector & (LC_BLOCK_SECTORS - 1)) &&
	       !(iter->bi_size & (LC_SLOT_BYTES - 1));
}

/* A checksum is of a whole slot: cut the run so that most of it is in whole ones. */
static u32 cut_to_slots(const struct bio *bio, u32 nr)
{
	u32 first = bio->bi_iter.bi_sector & (LC_BLOCK_SECTORS - 1);

	if (first || nr < LC_BLOCK_SECTORS)
		return min(nr, LC_BLOCK_SECTORS - first);
	return round_down(nr, LC_BLOCK_SECTORS);
}

/* Does the next slot's worth of the bio hold the block?  Moves on. */
static bool check_block(struct lc_core *core, struct bio *bio, struct bvec_iter *iter, u64 block,
			u32 slot, void *pages)
{
	u32 csum;

	lc_io_copy_from_bio(bio, iter, pages, LC_SLOT_BYTES);
	return !find_sum(core, block, slot, pages + LC_SLOT_BYTES, &csum) &&
	       csum == lc_format_slot_csum(&core->c.sb, block, pages);
}

/*
 * Keep the segment, if it is what it was when the read was mapped, and one of its blocks is
 * still mapped there.  Until the put, neither slots nor sums change.
 */
static bool hold_segment(struct lc_core *core, const struct lc_io *io)
{
	struct lc_segment *seg = lc_ring_segment(core->c.ring, io->position);
	u32 slot = io->position, end = slot + (io->iter.bi_size >> LC_SLOT_SHIFT), bucket;
	u64 block = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	struct lc_mapping map;
	bool held = false;

	for (; slot < end && !held; slot++, block++) {
		held = lc_index_lock_slot(core->c.index, block, slot, &bucket, &map) &&
		       READ_ONCE(seg->number) == io->segment;
		if (held)
			lc_segment_get(seg);
		lc_index_unlock(core->c.index, bucket);
	}
	return held;
}

/* Does the SSD hold all of the read as it was mapped, with the sums of the log? */
static bool check_read(struct lc_core *core, struct bio *bio, const struct lc_io *io)
{
	u64 block = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	struct bvec_iter iter = io->iter;
	u32 slot = io->position;
	bool good = true;
	void *pages;

	/* Overwritten, or the segment was reused while others held the read back (H1). */
	if (!hold_segment(core, io))
		return false;
	pages = page_address(mempool_alloc(&core->c.merge_pool, GFP_NOIO));
	while (good && iter.bi_size)
		good = check_block(core, bio, &iter, block++, slot++, pages);
	mempool_free(virt_to_page(pages), &core->c.merge_pool);
	lc_read_put_segment(core, io->position);
	return good;
}

static void verify_work(struct work_struct *work)
{
	struct lc_io *io = container_of(work, struct lc_io, work);
	struct bio *bio = lc_io_bio(io);

	if (check_read(io->core, bio, io))
		lc_io_end_again(bio);
	else
		read_slowly(io->core, io);
}

/* --- entry points ------------------------------------------------------- */

static int map_to_hdd(struct lc_core *core, struct bio *bio)
{
	lc_bio_io(bio)->on_hdd = true;
	lc_stamp(&core->c.env.last_hdd_read);
	bio_set_dev(bio, core->c.env.backing);
	bio->bi_iter.bi_sector = lc_place_sector(&core->c.env.place, bio->bi_iter.bi_sector);
	return DM_MAPIO_REMAPPED;
}

static int map_to_ssd(struct lc_core *core, struct bio *bio, struct lc_io *io,
		      const struct run *run)
{
	u32 first = bio->bi_iter.bi_sector & (LC_BLOCK_SECTORS - 1);
	u64 address = lc_slot_address(&core->c.sb.geo, run->slot) + ((u64)first << 9);

	if ((address | bio->bi_iter.bi_size) & (core->c.sb.cache_lbs - 1) ||
	    !lc_fits_ssd(&core->c.fit, bio) ||
	    (run->verify && !whole_slots(&bio->bi_iter))) {
		read_slowly(core, io);
		return DM_MAPIO_SUBMITTED;
	}
	io->position = run->slot;
	io->segment = run->segment;
	io->on_ssd = true;
	io->verify = run->verify;
	bio_set_dev(bio, core->c.env.cache);
	bio->bi_iter.bi_sector = address >> 9;
	return DM_MAPIO_REMAPPED;
}

/* Is nothing of it cached?  Without a lock, and false if that is not certain. */
static bool all_absent(struct lc_core *core, const struct bio *bio)
{
	u64 block = bio->bi_iter.bi_sector >> LC_BLOCK_SHIFT;
	u64 last = (bio_end_sector(bio) - 1) >> LC_BLOCK_SHIFT;

	while (block <= last && lc_index_absent(core->c.index, block))
		block++;
	return block > last;
}

/**
 * lc_read_map() - map a read
 * @core: the volume
 * @bio: device mapper's clone
 *
 * From map(): does not sleep.
 */
int lc_read_map(struct lc_core *core, struct bio *bio)
{
	struct lc_io *io = lc_bio_io(bio);
	struct run run = { .verify = READ_ONCE(core->c.env.params.verify_reads) };

	if (all_absent(core, bio))
		return map_to_hdd(core, bio);
	find_run(core, bio, &run);
	if (run.place == PLACE_SSD && run.verify)
		run.nr_sectors = cut_to_slots(bio, run.nr_sectors);
	if (run.nr_sectors < bio_sectors(bio))
		dm_accept_partial_bio(bio, run.nr_sectors);
	io->iter = bio->bi_iter;
	switch (run.place) {
	case PLACE_RAM:
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	case PLACE_SSD:
		return map_to_ssd(core, bio, io, &run);
	case PLACE_HDD:
		return map_to_hdd(core, bio);
	default:
		lc_err_limit_atomic(&core->c.env, "read of lost sector %llu",
				    (unsigned long long)bio->bi_iter.bi_sector);
		return DM_MAPIO_KILL;
	}
}

/* Has the segment been given away since the read was mapped (H1)? */
static bool reused(struct lc_core *core, const struct lc_io *io)
{
	/*
	 * If the data is of the new content, its number is seen: it was stored before a writer
	 * got slots there, and what was written is sent after the full barrier of lc_record_put().
	 */
	smp_rmb();
	return READ_ONCE(lc_ring_segment(core->c.ring, io->position)->number) != io->segment;
}

/**
 * lc_read_end() - end_io of a read
 * @core: the volume
 * @bio: device mapper's clone
 * @error: the bio's status
 *
 * Completion context.
 */
int lc_read_end(struct lc_core *core, struct bio *bio, blk_status_t *error)
{
	struct lc_io *io = lc_bio_io(bio);

	if (io->on_hdd)
		lc_stamp(&core->c.env.last_hdd_read);
	if (!io->on_ssd)
		return DM_ENDIO_DONE;
	io->on_ssd = false;
	if (!*error && io->verify) {
		INIT_WORK(&io->work, verify_work);
		queue_work(core->verify_wq, &io->work);
		return DM_ENDIO_INCOMPLETE;
	}
	if (*error == BLK_STS_AGAIN || (!*error && !reused(core, io)))
		return DM_ENDIO_DONE;
	if (*error)
		lc_err_limit_atomic(&core->c.env, "the cache device failed a read, trying again");
	read_slowly(core, io);
	return DM_ENDIO_INCOMPLETE;
}
