// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the module's log does, noted in the history, and its bios to the modelled disks.
 *
 * A record is noted when something is put into it, or when it gets its seq; its place when it is
 * opened there, and what the SSD gets of it when its bio is submitted.  Nothing here changes what
 * the module does.
 */
#include "history.h"
#include "store/io.h"
#include "life.h"
#include "store/ring.h"
#include "standin.h"

struct lc_segment *segment_of(u64 number)
{
	struct lc_ring *ring = world->vol->c.ring;

	return &ring->segments[lc_ring_position(ring, number)];
}

/* Data slot of an entry, numbered over the whole SSD. */
u32 slot_of(const struct rec *rec, u32 place, u32 entry)
{
	const struct lc_ring *ring = world->vol->c.ring;
	const struct place *at = &rec->places[place];

	return (lc_ring_position(ring, at->segment) << ring->slot_shift) + at->slot +
	       LC_HEADER_SLOTS + entry;
}

u64 last_seq(void)
{
	return lc_log_last_seq(the_log());
}

/* By what the log says. */
bool rec_durable(const struct rec *rec)
{
	return rec->seq && rec->seq <= lc_log_durable_seq(the_log());
}

/* --- records --------------------------------------------------------------------- */

static struct rec *rec_of(const struct lc_record *record)
{
	const struct lc_buffer *buf = record->buf;
	u32 *known = &world->standin->known[buf->position][record->first_slot];
	struct rec *rec;

	if (record->stage != LC_RECORD_OPEN)
		return rec_of_seq(record->seq);
	if (*known != NONE && world->recs[*known].places[0].segment == buf->segment)
		return &world->recs[*known];
	rec = rec_new();
	rec->type = record->type;
	rec->places[rec->nr_places++] = (struct place) {
		.segment = buf->segment, .slot = record->first_slot, .time = NEVER,
	};
	*known = rec_index(rec);
	return rec;
}

/* The buffer and the slot of it at an address in RAM.  Return: it, or NULL. */
static struct lc_buffer *buffer_at(const void *address, u32 *slot)
{
	struct lc_buffer *buf;

	list_for_each_entry(buf, &world->vol->c.pool->all, all) {
		for (*slot = 0; *slot < SEG_SLOTS; ++*slot) {
			if (address >= buf->slots[*slot] &&
			    address < buf->slots[*slot] + LC_SLOT_BYTES)
				return buf;
		}
	}
	return NULL;
}

/* The record that holds the slot at an address in RAM. */
static struct rec *rec_at(const void *address)
{
	u32 slot, i;
	struct lc_buffer *buf = buffer_at(address, &slot);

	for (i = buf ? buf->nr_records : 0; i--; ) {
		if (buf->records[i].first_slot < slot)
			return rec_of(&buf->records[i]);
	}
	trouble(BAD_WARNING, "a write went to no open record");
	return rec_new();
}

/* Its slots are what its header says when it is sent: until then a writer may hold some. */
static void note_entries(struct rec *rec, const struct lc_record_header *raw)
{
	struct lc_entry_info entry;
	u32 i;

	for (i = 0; i < rec->nr_slots; i++) {
		lc_entry_decode(raw, i, &entry);
		rec->entries[i].block = entry.block;
		rec->entries[i].mask = entry.mask;
		rec->entries[i].used = entry.type == LC_ENTRY_DATA;
	}
}

static void note_ranges(struct rec *rec, const struct lc_record *record)
{
	const struct lc_record_header *raw = lc_record_image(record);
	struct lc_entry_info entry;

	for (rec->nr_ranges = 0; rec->nr_ranges < record->nr_ranges; rec->nr_ranges++) {
		lc_entry_decode(raw, rec->nr_ranges, &entry);
		if (!lc_entry_is_range(entry.type))
			break;	/* one that says nothing: lc_lane_cede() */
		rec->ranges[rec->nr_ranges].first = entry.block;
		rec->ranges[rec->nr_ranges].nr = entry.nr_blocks;
	}
}

void __real_lc_log_append(struct lc_log *log, struct lc_record *record, bool want_durable);
void __wrap_lc_log_append(struct lc_log *log, struct lc_record *record, bool want_durable);

void __wrap_lc_log_append(struct lc_log *log, struct lc_record *record, bool want_durable)
{
	struct rec *rec = rec_of(record);

	__real_lc_log_append(log, record, want_durable);
	if (record->seq >= MAX_SEQ) {
		fprintf(stderr, "explore: too many records\n");
		exit(2);
	}
	rec->seq = record->seq;
	rec->epoch = world->vol->c.sb.epoch;
	rec->boundary = record->buf->boundary;
	rec->nr_slots = record->nr_slots;
	note_ranges(rec, record);
	world->hist[rec->seq] = rec_index(rec);
	world->last_seq = rec->seq;
	world->standin->closed[rec->seq] = record;
	say("%6u record %llu of %u slots is closed", world->life->now, rec->seq, rec->nr_slots);
}

/* --- writes ------------------------------------------------------------------------- */

void lc_io_copy_to_bio(struct bio *bio, struct bvec_iter *iter, const void *from, u32 len)
{
	if (user_owns(bio))
		user_got(bio, iter, from, len);
	iter->bi_sector += len >> SECTOR_SHIFT;
	iter->bi_size -= len;
}

/* The bytes of a user's write are made here. */
void lc_io_copy_from_bio(struct bio *bio, struct bvec_iter *iter, void *to, u32 len)
{
	u32 block = iter->bi_sector / PAGE_SECTORS, first = iter->bi_sector % PAGE_SECTORS;
	u8 mask = ((1u << (len >> SECTOR_SHIFT)) - 1) << first;
	u32 op, slot;

	if (world->params.cache && !buffer_at(to, &slot)) {
		through_copied(bio, iter, to);
	} else {
		op = op_add(block, 0, mask, rec_index(rec_at(to)));
		if (bio->bi_opf & REQ_FUA)
			world->ops[op].fua = 1 + (container_of(bio, struct user_bio, bio) -
						  world->standin->bios);
		op_stamp(to - (first << SECTOR_SHIFT), op, mask);
	}
	iter->bi_sector += len >> SECTOR_SHIFT;
	iter->bi_size -= len;
}

void __real_lc_cursor_describe(const struct lc_cursor *cur, u32 slot, u64 block, u8 mask, u8 lost);
void __wrap_lc_cursor_describe(const struct lc_cursor *cur, u32 slot, u64 block, u8 mask, u8 lost);

/* A discard that is under way does not reach what a write brings along. */
void __wrap_lc_cursor_describe(const struct lc_cursor *cur, u32 slot, u64 block, u8 mask, u8 lost)
{
	const u8 *image = lc_cursor_image(cur, slot);
	u32 i;

	__real_lc_cursor_describe(cur, slot, block, mask, lost);
	for (i = 0; i < PAGE_SECTORS && discard_seq(block); i++) {
		u32 op = *(const u32 *)(image + (i << SECTOR_SHIFT));

		if (mask & 1u << i && op < world->nr_ops)
			world->ops[op].stays = true;
	}
}

/* --- bios ------------------------------------------------------------------------------ */

/* Where a header is zeros, these may as well be those of a user's block. */
struct dpage *page_of(const void *bytes, bool header)
{
	static const u8 zeros[1 << SECTOR_SHIFT];
	struct dpage *page = dpage_new();
	u32 i;

	memcpy(page->bytes, bytes, LC_SLOT_BYTES);
	for (i = 0; i < PAGE_SECTORS; i++)
		page->tags[i] = header && memcmp(page->bytes + (i << SECTOR_SHIFT), zeros,
						 sizeof(zeros)) ? TAG_META :
					 *(const u32 *)(page->bytes + (i << SECTOR_SHIFT));
	return page;
}

/* Where the history has it? */
static void check_place(const struct rec *rec, const struct bio *bio)
{
	const struct place *place = &rec->places[rec->cur];
	const struct lc_geometry *geo = &world->vol->c.sb.geo;

	if (bio->bi_iter.bi_sector << SECTOR_SHIFT !=
	    lc_format_log_address(geo, place->segment, place->slot))
		trouble(BAD_MEDIA, "record %llu is written elsewhere than it was opened",
			rec->seq);
}

const void *bytes_at(const struct bio *bio, u32 offset)
{
	const struct bio_vec *vec = bio->bi_io_vec;

	for (; offset >= vec->bv_len; vec++)
		offset -= vec->bv_len;
	return page_address(vec->bv_page) + vec->bv_offset + offset;
}

static void write_record(struct life *life, struct bio *bio)
{
	const struct lc_record_header *raw = page_address(bio->bi_io_vec[0].bv_page);
	u64 seq = le64_to_cpu(raw->seq);
	struct rec *rec = rec_of_seq(seq && seq <= world->last_seq ? seq : world->last_seq);
	struct place *place = &rec->places[rec->cur];
	u32 page = bio->bi_iter.bi_sector / PAGE_SECTORS, i;
	struct dpage *data;
	struct cmd *cmd;

	check_place(rec, bio);
	note_entries(rec, raw);
	/* Nothing more goes to a segment that has failed: see rewrite.c. */
	if (rec->rewrite) {
		bio_io_error(bio);
		return;
	}
	cmd = cmd_new(life, SSD, OWNER_RECORD);
	cmd->bio = bio;
	cmd->rec = rec_index(rec);
	cmd->place = rec->cur;
	world->standin->nr_solid += !!(bio->bi_opf & REQ_FUA);
	if (place->time == NEVER) {
		place->time = life->now;
		place->told_durable = le64_to_cpu(raw->durable_seq);
	} else {
		world->standin->nr_again++;
	}
	for (i = 0; i < bio->bi_iter.bi_size / LC_SLOT_BYTES; i++) {
		data = page_of(bytes_at(bio, i * LC_SLOT_BYTES), !i);
		cmd_add_piece(life, cmd, page + i, 0xff, data);
		if (i)
			rec->entries[i - 1].data = data;
	}
	say("%6u record %llu to segment %llu slot %u%s, durable %llu", life->now, rec->seq,
	    place->segment, place->slot, cmd->fua ? " with FUA" : "",
	    le64_to_cpu(raw->durable_seq));
}

/* Neighbouring pages, each vector within one. */
static u32 vec_page(const struct bio_vec *vec, sector_t *sector, u8 *mask)
{
	u32 first = *sector % PAGE_SECTORS, page = *sector / PAGE_SECTORS;

	*mask = ((1u << (vec->bv_len >> SECTOR_SHIFT)) - 1) << first;
	*sector += vec->bv_len >> SECTOR_SHIFT;
	return page;
}

/* Both runs that meet at the seam of the moved head, one behind the other? */
static bool meets_seam(const struct bio *bio)
{
	static sector_t end;
	bool was = end;

	if (world->params.layout != LAYOUT_MOVED_HEAD)
		return false;
	end = bio_end_sector(bio) == (hdd_page(HEAD_BLOCKS - 1) + 1) * PAGE_SECTORS;
	return was && bio->bi_iter.bi_sector == hdd_page(HEAD_BLOCKS) * PAGE_SECTORS;
}

/* From writeback, to the HDD. */
static void write_back(struct life *life, struct bio *bio)
{
	struct cmd *cmd = cmd_new(life, HDD, OWNER_WRITEBACK);
	sector_t sector = bio->bi_iter.bi_sector;
	u32 i, s;
	u8 mask;

	cmd->bio = bio;
	world->standin->nr_cut_runs += meets_seam(bio);
	for (i = 0; i < bio->bi_vcnt; i++) {
		const struct bio_vec *vec = &bio->bi_io_vec[i];
		struct dpage *data = dpage_new();
		u32 page = vec_page(vec, &sector, &mask);

		memcpy(data->bytes + (__builtin_ctz(mask) << SECTOR_SHIFT),
		       page_address(vec->bv_page) + vec->bv_offset, vec->bv_len);
		for (s = 0; s < PAGE_SECTORS; s++) {
			if (!(mask & 1u << s))
				continue;
			data->tags[s] = *(const u32 *)(data->bytes + (s << SECTOR_SHIFT));
			/* W1; what went around the log is in no record. */
			if (data->tags[s] > world->nr_ops ||
			    world->ops[data->tags[s]].rec == NONE ||
			    !rec_durable(&world->recs[world->ops[data->tags[s]].rec]))
				trouble(BAD_INDEX, "writeback copies write %u, which is not durable",
					data->tags[s]);
		}
		op_stays(data, mask);
		cmd_add_piece(life, cmd, page, mask, data);
	}
}

/* A user's write straight to the HDD.  Its bytes are made here. */
static void write_around(struct life *life, struct bio *bio)
{
	struct cmd *cmd = cmd_new(life, HDD, OWNER_AROUND);
	u32 page = bio->bi_iter.bi_sector / PAGE_SECTORS, i, s;
	u32 nr = DIV_ROUND_UP(bio_end_sector(bio), PAGE_SECTORS) - page;
	struct dpage *data;

	cmd->bio = bio;
	cmd->rec = user_around_op(bio);
	for (i = 0; i < nr; i++) {
		const struct op *op = &world->ops[cmd->rec + i];

		data = dpage_new();
		op_stamp(data->bytes, cmd->rec + i, op->mask);
		for (s = 0; s < PAGE_SECTORS; s++)
			data->tags[s] = op->mask & 1u << s ? cmd->rec + i : 0;
		cmd_add_piece(life, cmd, page + i, op->mask, data);
	}
}

static void discard_below(struct life *life, struct bio *bio)
{
	static const struct dpage zeros;
	struct cmd *cmd = cmd_new(life, HDD, OWNER_DISCARD);
	u32 page = bio->bi_iter.bi_sector / PAGE_SECTORS, i;

	cmd->bio = bio;
	cmd->rec = discard_sent(bio->bi_private);
	/* A hint: some blocks are zeroed, others not. */
	for (i = 0; i < bio->bi_iter.bi_size >> LC_SLOT_SHIFT; i++) {
		if (world->params.zeroing && (life->now + page + i) % 3)
			cmd_add_piece(life, cmd, page + i, 0xff, &zeros);
	}
	if (world->params.layout == LAYOUT_MOVED_HEAD && page == hdd_page(HEAD_BLOCKS))
		world->standin->nr_cut_discards++;
}

static void read_ended(struct bio *bio)
{
	const struct image *view = &world->life->view[bio->bi_bdev - world->bdev];
	sector_t sector = bio->bi_iter.bi_sector;
	u32 i;
	u8 mask;

	if (user_owns(bio)) {
		user_read_ended(bio);
		return;
	}
	for (i = 0; i < bio->bi_vcnt; i++) {
		const struct bio_vec *vec = &bio->bi_io_vec[i];
		const struct dpage *page = image_page(view, vec_page(vec, &sector, &mask));

		if (page->tags[0] == TAG_UNREADABLE)
			bio->bi_status = BLK_STS_IOERR;
		memcpy(page_address(vec->bv_page) + vec->bv_offset,
		       page->bytes + (__builtin_ctz(mask) << SECTOR_SHIFT), vec->bv_len);
		/* What a read that fails leaves is nothing that was written. */
		if (bio->bi_status)
			memset(page_address(vec->bv_page) + vec->bv_offset, 0x7f, vec->bv_len);
	}
	bio_endio(bio);
}

/* A command has just been made for a bio. */
static void native_fua(struct life *life, struct bio *bio)
{
	struct cmd *cmd = &life->cmds[life->nr_cmds - 1];

	if (cmd->bio == bio && cmd->nr_pieces && bio->bi_opf & REQ_FUA)
		cmd->fua = cmd->disk == HDD ? !world->params.hdd_flush : world->params.fua;
}

/* A disk without FUA gets a FLUSH behind the write.  Return: whether it is sent now. */
static bool flush_behind(struct life *life, const struct cmd *write)
{
	struct cmd *cmd;

	if (write->failed || write->flush || write->fua || !write->nr_pieces ||
	    !(write->bio->bi_opf & REQ_FUA) || world->bdev[write->disk].write_through)
		return false;
	cmd = cmd_new(life, write->disk, write->owner);
	cmd->flush = true;
	cmd->bio = write->bio;
	cmd->rec = write->rec;
	cmd->place = write->place;
	return true;
}

void submit_bio(struct bio *bio)
{
	enum disk_id disk = bio->bi_bdev - world->bdev;
	struct life *life = world->life;
	struct cmd *cmd;

	if (bio->bi_opf & REQ_OP_DISCARD) {
		discard_below(life, bio);
	} else if (!(bio->bi_opf & REQ_OP_WRITE) && !world->params.reading) {
		read_ended(bio);
	} else if (!(bio->bi_opf & REQ_OP_WRITE)) {
		cmd_new(life, disk, OWNER_READ)->bio = bio;
	} else if (user_owns(bio) && bio->bi_opf & REQ_PREFLUSH) {
		cmd = cmd_new(life, HDD, OWNER_AROUND);
		cmd->flush = true;
		cmd->bio = bio;
	} else if (user_owns(bio)) {
		write_around(life, bio);
	} else if (disk == HDD && bio->bi_opf & REQ_THROUGH) {
		write_through(life, bio);
	} else if (disk == HDD) {
		write_back(life, bio);
	} else if (bio->bi_vcnt && is_group(bio)) {
		write_group(life, bio);
	} else if (bio->bi_vcnt) {
		write_record(life, bio);
	} else {
		cmd = cmd_new(life, SSD, OWNER_LOG_FLUSH);
		cmd->flush = true;
		cmd->bio = bio;
	}
	if (life->nr_cmds)
		native_fua(life, bio);
}

/* What was submitted above is over. */
void bio_ended(struct cmd *cmd)
{
	bool elsewhere = cmd->owner == OWNER_RECORD && world->recs[cmd->rec].rewrite;
	struct bio *bio = cmd->bio;

	if (cmd->owner == OWNER_AROUND || cmd->owner == OWNER_THROUGH)
		around_landed(cmd);
	if (flush_behind(world->life, cmd))
		return;
	/* A write that succeeded after one in its segment has failed does not count (L7). */
	bio->bi_status = cmd->failed || elsewhere ? BLK_STS_IOERR : BLK_STS_OK;
	if (cmd->owner == OWNER_DISCARD)
		world->standin->discards[cmd->rec].flying--;
	if (cmd->owner == OWNER_READ)
		read_ended(bio);
	else
		bio_endio(bio);
	rewrite_look();
}

static void wake_sleeper(struct bio *bio)
{
	bio->bi_private = NULL;
	shim_wake(bio);
}

/* A task submits a bio and waits for it. */
void bio_wait(struct bio *bio)
{
	bio->bi_private = bio;
	bio->bi_end_io = wake_sleeper;
	submit_bio(bio);
	while (bio->bi_private)
		shim_sleep(bio, false);
}
