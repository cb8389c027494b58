// SPDX-License-Identifier: GPL-2.0-only
/*
 * Readers of the volume, and blocks that are promoted.
 *
 * With the parameter cache, read.c, promote.c, group.c and keep.c, unmodified, serve reads and keep
 * what they got from the HDD.  The policy is left out: what may be promoted is.  Two judges look at
 * it.  A read returns the newest write, if no other bio of its blocks was under way meanwhile.
 * And a promoted copy is what the HDD holds: judge_clean() and judge().
 *
 * A scan after a crash believes what a group says.  Too few crash states show that WS3, WS7, WS8 or
 * WS10 is broken, so check_group() looks at each group that is sent, the wrapped lc_warm_enter() at
 * each copy that the scan finds, and check_passed() at those that it left out.
 */
#include "bio/group.h"
#include "bio/promote.h"
#include "bio/read.h"
#include "history.h"
#include "judge.h"
#include "standin.h"
#include "store/admit.h"

u8 __wrap_lc_admit_miss(struct lc_admit *admit, u64 block, u32 stream);
bool __real_lc_admit_keep(struct lc_admit *admit, u8 flags);
bool __wrap_lc_admit_keep(struct lc_admit *admit, u8 flags);

u8 __wrap_lc_admit_miss(struct lc_admit *admit, u64 block, u32 stream)
{
	(void)admit;
	(void)block;
	(void)stream;
	return LC_ADMIT_PROMOTED;
}

/* Most are logged again, some evicted. */
bool __wrap_lc_admit_keep(struct lc_admit *admit, u8 flags)
{
	(void)admit;
	return flags & LC_ADMIT_PROMOTED && world->life->now % 4;
}

bool __real_lc_warm_enter(struct lc_warm *warm, struct lc_index *index, u64 block,
			  const struct lc_mapping *map);
bool __wrap_lc_warm_enter(struct lc_warm *warm, struct lc_index *index, u64 block,
			  const struct lc_mapping *map);
bool __real_lc_group_replace(struct lc_group *group, u32 i, u64 block, u32 slot, u8 use);
bool __wrap_lc_group_replace(struct lc_group *group, u32 i, u64 block, u32 slot, u8 use);

bool __wrap_lc_group_replace(struct lc_group *group, u32 i, u64 block, u32 slot, u8 use)
{
	bool kept = __real_lc_group_replace(group, i, block, slot, use);

	world->standin->nr_kept += kept;
	return kept;
}

/* --- reads ------------------------------------------------------------------------ */

static bool overlap(const struct user_bio *one, const struct user_bio *other)
{
	return one->sector < other->sector + other->nr && other->sector < one->sector + one->nr;
}

/* Is a discard under way there whose bio has perhaps ended? */
static bool being_discarded(const struct user_bio *user)
{
	const struct user_discard *one = world->standin->discards;
	u64 first = user->sector / PAGE_SECTORS, last = (user->sector + user->nr - 1) / PAGE_SECTORS;

	for (; one < world->standin->discards + MAX_DISCARDS; one++) {
		if (one->claim && one->claim->first <= last && one->claim->last >= first)
			return true;
	}
	return false;
}

/* A bio begins.  What a read returns that meets a write is open. */
void user_begins(struct user_bio *user)
{
	struct user_bio *other = world->standin->bios;

	user->sector = user->bio.bi_iter.bi_sector;
	user->nr = bio_sectors(&user->bio);
	for (; other < world->standin->bios + MAX_BIOS; other++) {
		if (!other->used || other->reads == user->reads || !overlap(user, other))
			continue;
		user->met |= user->reads;
		other->met |= other->reads;
	}
}

/* Part of a read is there. */
void user_got(const struct bio *bio, const struct bvec_iter *iter, const void *from, u32 len)
{
	struct user_bio *user = container_of((struct bio *)bio, struct user_bio, bio);
	u32 i;

	for (i = 0; i < len >> SECTOR_SHIFT; i++)
		user->got[iter->bi_sector - user->sector + i] =
			*(const u32 *)(from + (i << SECTOR_SHIFT));
}

/* The disk has done it, as it is: sectors of the disk. */
void user_read_ended(struct bio *bio)
{
	const struct image *view = &world->life->view[bio->bi_bdev - world->bdev];
	struct user_bio *user = container_of(bio, struct user_bio, bio);
	u32 i;

	for (i = 0; i < bio_sectors(bio); i++) {
		sector_t sector = bio->bi_iter.bi_sector + i;
		const struct dpage *page = image_page(view, sector / PAGE_SECTORS);

		if (page->tags[0] == TAG_UNREADABLE)
			bio->bi_status = BLK_STS_IOERR;
		user->got[i] = page->tags[sector % PAGE_SECTORS];
	}
	if (lc_read_end(&world->vol->c, bio, lc_bio_request(bio), &bio->bi_status) == DM_ENDIO_DONE)
		bio_endio(bio);
}

/* Return: the newest write of a sector, or NONE: it was discarded since, and anything may be there. */
static u32 newest(u32 sector)
{
	u32 block = sector / PAGE_SECTORS, n;

	for (n = world->nr_ops; n > world->life->start_op; n--) {
		const struct op *op = &world->ops[n];

		if (op->nr && block >= op->block && block < op->block + op->nr)
			return NONE;
		if (!op->nr && op->block == block && op->mask & 1u << sector % PAGE_SECTORS)
			return op->refused ? NONE : n;
	}
	return world->began[sector];
}

/* Is this what the user wrote to the sector, once? */
static bool written_there(u32 n, u32 sector)
{
	const struct op *op = &world->ops[n];

	return !n || (n <= world->nr_ops && !op->nr && !op->dead &&
		      op->block == sector / PAGE_SECTORS &&
		      op->mask & 1u << sector % PAGE_SECTORS);
}

/* It has ended.  One that met a write may return that, or what was there when it began. */
void user_read_over(const struct user_bio *user)
{
	u32 i, last;

	if (user->bio.bi_status) {
		trouble(BAD_P1, "a read of block %u failed", user->sector / PAGE_SECTORS);
		return;
	}
	world->standin->nr_reads += !user->met;
	for (i = 0; i < user->nr; i++) {
		u32 sector = user->sector + i, got = user->got[i], first = user->newest[i];

		if (!written_there(got, sector)) {
			trouble(BAD_P3, "a read of block %u sector %u returns bytes of something else",
				sector / PAGE_SECTORS, sector % PAGE_SECTORS);
			return;
		}
		last = being_discarded(user) ? NONE : newest(sector);
		if (first != NONE && last != NONE &&
		    !discarded_since(sector / PAGE_SECTORS, first, world->nr_ops) &&
		    (user->met ? got < first : got != last))
			trouble(BAD_P1, "a read of block %u sector %u returns write %u, not %u",
				sector / PAGE_SECTORS, sector % PAGE_SECTORS, got, last);
	}
}

/**
 * user_read() - the user reads
 * @first: sector, from the first block that the load writes to
 * @nr: sectors, at most MAX_READ
 */
void user_read(u32 first, u32 nr)
{
	struct user_bio *user = user_new(REQ_OP_READ);
	struct lc_volume *vol = world->vol;
	struct bio *bio = &user->bio;
	u32 i;
	int ret;

	user->reads = true;
	bio->bi_iter.bi_sector = world->first_block * PAGE_SECTORS + first;
	/* As map.c does. */
	nr = lc_place_run(&vol->c.env.place, bio->bi_iter.bi_sector, nr);
	bio->bi_iter.bi_size = nr << SECTOR_SHIFT;
	user_begins(user);
	for (i = 0; i < nr; i++)
		user->newest[i] = user->met || being_discarded(user) ? NONE :
								       newest(user->sector + i);
	ret = lc_read_map(&vol->c, vol->promote, bio, lc_bio_request(bio));
	if (ret == DM_MAPIO_REMAPPED)
		submit_bio(bio);
	else if (ret != DM_MAPIO_SUBMITTED)
		trouble(BAD_P1, "a read of block %u is refused", user->sector / PAGE_SECTORS);
}

/* Device mapper sends the rest as a bio of its own, which nobody misses here. */
void dm_accept_partial_bio(struct bio *bio, unsigned int sectors)
{
	if (bio_op(bio) != REQ_OP_READ) {
		trouble(BAD_WARNING, "a bio is cut");
		return;
	}
	container_of(bio, struct user_bio, bio)->nr = sectors;
	bio->bi_iter.bi_size = sectors << SECTOR_SHIFT;
}

/* --- promote.c and group.c --------------------------------------------------------- */

/* Of a user's bio, or of the one by which promote.c writes its blocks to the HDD and a group. */
void lc_io_disown(struct bio *bio)
{
	if (!user_owns(bio))
		bio->bi_opf |= REQ_THROUGH;
}

/* The copies are made here, of the same operations that a write around the log would be. */
void through_copied(const struct bio *bio, const struct bvec_iter *iter, void *to)
{
	u32 op = user_around_op(bio);

	op_stamp(to, op + iter->bi_sector / PAGE_SECTORS - world->ops[op].block, 0xff);
}

void write_through(struct life *life, struct bio *bio)
{
	struct cmd *cmd = cmd_new(life, HDD, OWNER_THROUGH);
	u32 page = bio->bi_iter.bi_sector / PAGE_SECTORS, i;

	cmd->bio = bio;
	for (i = 0; i < bio->bi_vcnt; i++)
		cmd_add_piece(life, cmd, page + i, 0xff,
			      page_of(bytes_at(bio, i * LC_SLOT_BYTES), false));
	world->standin->nr_through++;
}

/* A write around or through the log is on the HDD, or in its cache.  Its bio may end later. */
void around_landed(const struct cmd *cmd)
{
	u32 i, s;

	for (i = 0; !cmd->failed && i < cmd->nr_pieces; i++) {
		for (s = 0; s < PAGE_SECTORS; s++) {
			if (cmd->pieces[i].mask & 1u << s)
				world->ops[cmd->pieces[i].from->tags[s]].landed = true;
		}
	}
}

bool is_group(const struct bio *bio)
{
	const struct lc_record_header *raw = page_address(bio->bi_io_vec[0].bv_page);

	return !memcmp(raw->magic, LC_GROUP_MAGIC, LC_MAGIC_LEN);
}

/* Is a write around the log of this block on its way, or its copies not forgotten yet? */
static bool goes_around(u64 block)
{
	const struct user_bio *user = world->standin->bios;
	u32 i, first;

	for (i = 0; i < MAX_BIOS; i++, user++) {
		if (!user->used || !user->nr_around)
			continue;
		first = world->ops[user->around_op].block;
		if (block >= first && block - first < user->nr_around)
			return true;
	}
	return false;
}

/* May a scan believe a group that is sent to this page, if the power went before `from` rises? */
static void check_group(const struct bio *bio, u32 page)
{
	const struct lc_record_header *raw = page_address(bio->bi_io_vec[0].bv_page);
	const struct lc_cache *c = &world->vol->c;
	u64 slot = page - (c->sb.geo.segments_offset >> LC_SLOT_SHIFT);
	struct lc_record_info info;
	struct lc_entry_info entry;
	const char *why;
	u32 i;

	if (lc_group_decode(raw, &c->sb, le64_to_cpu(raw->segment), slot % c->sb.geo.seg_slots,
			    &info, &why)) {
		trouble(BAD_MEDIA, "the header of a group is refused: %s", why);
		return;
	}
	/* With `from` 0 no copy is believed. */
	if (!info.number || !c->warm.from || info.segment < c->warm.from)
		return;
	if (world->standin->failed_group >= c->warm.from)
		trouble(BAD_WARNING, "group %llu says that one whose write has failed is whole (WS8)",
			info.number);
	for (i = 0; i < info.nr_entries; i++) {
		lc_entry_decode(raw, i, &entry);
		if (entry.type != LC_ENTRY_DATA)
			continue;
		world->standin->named[entry.block] = info.segment;
		if (goes_around(entry.block))
			trouble(BAD_WARNING, "group %llu names block %llu, which is written around the log (WS3)",
				info.number, entry.block);
	}
}

static u64 segment_number(const struct lc_mapping *map)
{
	return lc_ring_segment(world->vol->c.ring, map->slot)->number;
}

/* The scan offers a copy of an earlier life. */
bool __wrap_lc_warm_enter(struct lc_warm *warm, struct lc_index *index, u64 block,
			  const struct lc_mapping *map)
{
	struct standin *s = world->standin;
	u64 segment = segment_number(map);
	bool enters = __real_lc_warm_enter(warm, index, block, map);
	struct lc_mapping found;

	if (enters && s->entered[block])
		trouble(BAD_INDEX, "an older copy of block %llu enters, too", block);
	if (enters && s->named[block] && warm->from && s->named[block] >= warm->from &&
	    !lc_warm_raising(warm))
		trouble(BAD_WARNING, "a copy of block %llu enters over that of a group (WS10)", block);
	s->entered[block] |= enters;
	if (!enters && lookup(block, &found) && !found.dirty && !found.mask && !found.lost) {
		s->passed[block] = max(s->passed[block], segment);
		s->nr_passed++;
	}
	return enters;
}

/*
 * Does the index know what stands for a copy that the scan has left out?  A write around the log of
 * its block would not find it otherwise.
 */
void check_passed(void)
{
	const struct lc_warm *warm = &world->vol->c.warm;
	struct lc_ring *ring = world->vol->c.ring;
	struct lc_mapping map;
	u32 block;

	if (!world->standin->nr_passed || !warm->from || warm->unsure)
		return;
	for (block = world->first_block; block < world->end_block; block++) {
		u64 passed = world->standin->passed[block];

		/* It may have been overwritten. */
		if (passed && passed >= warm->from && lc_ring_head(ring) - passed <= ring->nr &&
		    !lookup(block, &map) &&
		    !discarded_since(block, world->life->start_op, world->nr_ops))
			trouble(BAD_WARNING, "a copy of block %u was left out, and nothing tells (WS10)",
				block);
	}
}

void group_failed(const struct bio *bio)
{
	const struct lc_record_header *raw = page_address(bio->bi_io_vec[0].bv_page);
	u64 *failed = &world->standin->failed_group;

	*failed = max(*failed, le64_to_cpu(raw->segment));
}

void write_group(struct life *life, struct bio *bio)
{
	struct cmd *cmd = cmd_new(life, SSD, OWNER_GROUP);
	u32 page = bio->bi_iter.bi_sector / PAGE_SECTORS, i;

	cmd->bio = bio;
	check_group(bio, page);
	for (i = 0; i < bio->bi_vcnt; i++)
		cmd_add_piece(life, cmd, page + i, 0xff,
			      page_of(bytes_at(bio, i * LC_SLOT_BYTES), !i));
	say("%6u group of %u slots to page %u", life->now, bio->bi_vcnt, page);
}
