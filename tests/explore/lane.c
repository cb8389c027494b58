// SPDX-License-Identifier: GPL-2.0-only
/*
 * Model of the lane: blocks into slots of the open record, records into segments.
 *
 * As buffer.c and write.c: one record is open; a block that is in it already is
 * overwritten in place, any other gets the next slot and brings the sectors along that
 * are dirty on the SSD only.  A record is closed when it is full or a flush wants it,
 * gets its seq then, and the next one opens behind it if a block fits.  Buffers come with
 * a segment from the module's own refill worker (core.c), which takes the number from the
 * ring and evicts what the index still maps there.
 */
#include "history.h"
#include "index.h"
#include "life.h"
#include "segment.h"
#include "writer.h"

struct lc_segment *segment_of(u64 number)
{
	struct lc_ring *ring = world->core->ring;

	return &ring->segments[lc_ring_position(ring, number)];
}

/* Data slot of an entry, numbered over the whole SSD. */
u32 slot_of(const struct rec *rec, u32 place, u32 entry)
{
	const struct lc_ring *ring = world->core->ring;
	const struct place *at = &rec->places[place];

	return (lc_ring_position(ring, at->segment) << ring->slot_shift) + at->slot +
	       LC_HEADER_SLOTS + entry;
}

/* --- buffers ------------------------------------------------------------- */

struct lc_pool *lc_pool_create(void)
{
	return kzalloc(sizeof(struct lc_pool), GFP_KERNEL);
}

void lc_pool_destroy(struct lc_pool *pool)
{
	kfree(pool);
}

int lc_buffers_alloc(struct lc_core *core, u32 nr, struct list_head *list)
{
	struct writer *w = world->writer;
	u32 i;

	(void)list;
	w->nr_bufs = nr;
	for (i = 0; i < nr; i++) {
		w->bufs[i] = (struct wbuf) { .free = true };
		w->bufs[i].b.core = core;
	}
	return 0;
}

void lc_pool_add(struct lc_pool *pool, struct list_head *list)
{
	(void)list;
	pool->nr = world->writer->nr_bufs;
	pool->nr_free = pool->nr;
}

void lc_pool_shrink(struct lc_pool *pool, u32 nr)
{
	(void)pool;
	(void)nr;
}

/* Nobody reads them meanwhile. */
void lc_params_store(struct lc_params *to, const struct lc_params *from)
{
	*to = *from;
}

struct lc_buffer *lc_pool_get(struct lc_pool *pool)
{
	struct writer *w = world->writer;
	u32 i;

	for (i = 0; i < w->nr_bufs; i++) {
		if (w->bufs[i].free) {
			w->bufs[i].free = false;
			pool->nr_free--;
			return &w->bufs[i].b;
		}
	}
	return NULL;
}

u32 lc_pool_used(struct lc_pool *pool)
{
	return pool->nr - pool->nr_free;
}

/* The SSD holds all of it that counts (B2). */
static void buf_retire(struct wbuf *buf)
{
	struct lc_core *core = world->core;

	segment_of(buf->b.segment)->buf = NULL;
	buf->free = true;
	core->pool->nr_free++;
	queue_work(core->wq, &core->refill_work);
}

/* One record of a closed or open buffer is durable, or goes elsewhere. */
void buf_drop_record(struct wbuf *buf)
{
	if (!--buf->b.undurable && buf->b.closed)
		buf_retire(buf);
}

/* No record will be added. */
void buf_close(struct wbuf *buf)
{
	buf->b.closed = true;
	if (!buf->b.undurable)
		buf_retire(buf);
	else if (buf_lacks_flush(buf))
		queue_work(world->core->wq, &world->core->refill_work);
}

/* --- lane ---------------------------------------------------------------- */

struct lc_lane *lc_lane_create(struct lc_core *core)
{
	struct lc_lane *lane = kzalloc(sizeof(*lane), GFP_KERNEL);

	lane->core = core;
	return lane;
}

void lc_lane_destroy(struct lc_lane *lane)
{
	kfree(lane);
}

void lc_lane_start(struct lc_lane *lane, u64 segment)
{
	lane->start_segment = segment;
	world->writer->next_segment = segment;
}

void lc_lane_add_ready(struct lc_lane *lane, struct lc_buffer *b)
{
	struct wbuf *buf = container_of(b, struct wbuf, b);
	struct writer *w = world->writer;
	struct lc_segment *seg = segment_of(b->segment);

	b->nr_records = 0;
	b->undurable = 0;
	b->closed = false;
	buf->next_slot = 0;
	buf->last_seq = 0;
	seg->number = b->segment;
	seg->first_seq = 0;
	seg->buf = b;
	w->ready[w->nr_ready++] = buf;
	lane->nr_ready = w->nr_ready;
}

struct wbuf *lane_take_ready(void)
{
	struct writer *w = world->writer;
	struct wbuf *buf = w->ready[0];

	if (!w->nr_ready)
		return NULL;
	memmove(w->ready, w->ready + 1, --w->nr_ready * sizeof(w->ready[0]));
	world->core->lane->nr_ready = w->nr_ready;
	if (w->nr_ready * 2 < world->core->lane->max_ready)
		queue_work(world->core->wq, &world->core->refill_work);
	w->next_segment = buf->b.segment + 1;
	return buf;
}

static void lane_close_buf(void)
{
	struct wbuf *buf = world->writer->lane_buf;

	world->writer->lane_buf = NULL;
	buf_close(buf);
}

/* A record gets its place, behind what the buffer holds already. */
void rec_place(struct rec *rec, struct wbuf *buf)
{
	rec->buf = buf;
	rec->cur = rec->nr_places;
	rec->places[rec->nr_places++] = (struct place) {
		.segment = buf->b.segment, .slot = buf->next_slot, .time = NEVER,
	};
	buf->b.nr_records++;
}

/* Open the next record of the lane's buffer if at least one block fits. */
static bool record_open(u8 type)
{
	struct writer *w = world->writer;
	u32 needed = LC_HEADER_SLOTS + (type == LC_RECORD_DATA);
	struct rec *rec;

	if (w->lane_buf->next_slot + needed > SEG_SLOTS)
		return false;
	rec = rec_new();
	rec->type = type;
	rec->stage = REC_OPEN;
	rec_place(rec, w->lane_buf);
	w->open = rec_index(rec);
	return true;
}

static bool lane_open_next(u8 type)
{
	struct writer *w = world->writer;

	for (;;) {
		if (w->lane_buf) {
			if (record_open(type))
				return true;
			lane_close_buf();
		}
		w->lane_buf = lane_take_ready();
		if (!w->lane_buf)
			return false;
	}
}

/* The open record gets its seq; nothing is open then. */
static void record_close(bool want_durable)
{
	struct writer *w = world->writer;
	struct rec *rec = &world->recs[w->open];

	w->open = NONE;
	rec->buf->next_slot = rec->places[rec->cur].slot + LC_HEADER_SLOTS + rec->nr_slots;
	log_append(rec, want_durable);
}

/* Take an open record that nobody touched back, as if it had never been opened. */
static bool lane_retract(void)
{
	struct writer *w = world->writer;

	if (w->open == NONE)
		return true;
	if (world->recs[w->open].nr_slots)
		return false;
	w->lane_buf->b.nr_records--;
	w->open = NONE;
	return true;
}

/**
 * lane_seal() - close the open record if it holds anything
 * @close_segment: put nothing more into its segment either
 *
 * Return: the highest seq given so far.
 */
u64 lane_seal(bool close_segment)
{
	struct writer *w = world->writer;
	bool closed = w->open != NONE && world->recs[w->open].nr_slots;

	if (closed)
		record_close(true);
	if (close_segment && lane_retract()) {
		if (w->lane_buf && w->lane_buf->b.nr_records)
			lane_close_buf();
	} else if (closed && !record_open(LC_RECORD_DATA)) {
		lane_close_buf();
	}
	return w->last_seq;
}

/* Is there a slot for one more block?  Opens the next record if need be. */
bool lane_can_take(void)
{
	struct writer *w = world->writer;

	if (w->open != NONE) {
		const struct rec *rec = &world->recs[w->open];

		if (rec->places[0].slot + LC_HEADER_SLOTS + rec->nr_slots < SEG_SLOTS)
			return true;
		record_close(false);
	}
	return lane_open_next(LC_RECORD_DATA);
}

/**
 * lane_give_up() - a write to this buffer's segment failed: put nothing more there
 * @buf: the buffer (L7)
 */
void lane_give_up(struct wbuf *buf)
{
	struct writer *w = world->writer;

	if (w->lane_buf != buf)
		return;
	if (!lane_retract())
		record_close(true);
	lane_close_buf();
}

/**
 * lane_append_range() - log a RANGE record of one tombstone
 * @first: first block
 * @nr: blocks
 *
 * Return: the record, closed, or NULL: no buffer.
 */
struct rec *lane_append_range(u32 first, u32 nr)
{
	struct writer *w = world->writer;
	struct rec *rec;

	if (!lane_retract())
		record_close(true);
	if (!lane_open_next(LC_RECORD_RANGE))
		return NULL;
	rec = &world->recs[w->open];
	rec->range_first = first;
	rec->range_nr = nr;
	op_add(first, nr, 0, w->open);
	record_close(true);
	lane_open_next(LC_RECORD_DATA);
	return rec;
}

/* --- a block into the lane ------------------------------------------------ */

static u32 entry_of(const struct rec *rec, u32 block)
{
	u32 i;

	for (i = 0; i < rec->nr_slots; i++) {
		if (rec->entries[i].used && rec->entries[i].block == block)
			return i;
	}
	return NONE;
}

static void overwrite_in_place(u32 block, u8 mask, const struct lc_mapping *old, u32 bucket)
{
	struct writer *w = world->writer;
	struct rec *rec = &world->recs[w->open];
	struct entry *entry = &rec->entries[entry_of(rec, block)];

	op_stamp(entry->data, op_add(block, 0, mask, w->open), mask);
	entry->mask |= mask;
	lc_index_widen(world->core->index, bucket, old->slot, mask);
}

static void write_new_slot(u32 block, u8 mask, const struct lc_mapping *old, u32 bucket)
{
	struct lc_mapping map = { .dirty = true }, replaced;
	struct writer *w = world->writer;
	struct rec *rec = &world->recs[w->open];
	struct entry *entry = &rec->entries[rec->nr_slots];
	/* What is clean is on the HDD and need not come along. */
	u8 keep = old && old->dirty ? old->mask & ~mask : 0;

	*entry = (struct entry) {
		.block = block, .mask = mask | keep, .used = true, .data = dpage_new(),
	};
	memset(entry->data, 0, sizeof(*entry->data));
	if (keep) {
		const struct rec *from = &world->recs[world->newest[block]];
		const struct dpage *data = from->entries[entry_of(from, block)].data;
		u32 i;

		/* A discard that is under way does not reach what is brought along. */
		if (w->discard.state == DISCARD_TOMBSTONE)
			op_stays(data, keep);
		for (i = 0; i < PAGE_SECTORS; i++) {
			if (!(keep & 1u << i))
				continue;
			memcpy(entry->data->bytes + (i << 9), data->bytes + (i << 9), 512);
			entry->data->tags[i] = data->tags[i];
		}
	}
	op_stamp(entry->data, op_add(block, 0, mask, w->open), mask);
	map.slot = slot_of(rec, rec->cur, rec->nr_slots++);
	map.mask = entry->mask;
	lc_index_set(world->core->index, bucket, block, &map, &replaced);
	world->newest[block] = w->open;
}

/**
 * lane_put() - the user writes part of a block
 * @block: the block
 * @mask: sectors
 *
 * Return: false if there is no buffer: nothing was written.
 */
bool lane_put(u32 block, u8 mask)
{
	struct lc_index *index = world->core->index;
	struct writer *w = world->writer;
	struct lc_mapping old;
	u32 bucket;
	bool found;

	if (!lane_can_take())
		return false;
	bucket = lc_index_lock(index, block);
	found = lc_index_lookup(index, bucket, block, &old);
	if (found && world->newest[block] == w->open)
		overwrite_in_place(block, mask, &old, bucket);
	else
		write_new_slot(block, mask, found ? &old : NULL, bucket);
	lc_index_unlock(index, bucket);
	return true;
}

/* A writer reserved a slot and could not give it back (B4). */
bool lane_hole(void)
{
	struct writer *w = world->writer;

	if (!lane_can_take())
		return false;
	world->recs[w->open].nr_slots++;
	return true;
}

/* --- for core.c ------------------------------------------------------------ */

/* First segment without a record: none of this life's records is in it or behind it. */
u64 first_unused_segment(void)
{
	u64 number = world->core->lane->start_segment, seq;

	for (seq = world->life->start_seq + 1; seq <= world->writer->last_seq; seq++) {
		const struct rec *rec = rec_of_seq(seq);
		u32 i;

		for (i = 0; i < rec->nr_places; i++) {
			if (rec->places[i].segment >= number)
				number = rec->places[i].segment + 1;
		}
	}
	return number;
}

u64 lc_lane_next_segment(struct lc_lane *lane)
{
	const struct writer *w = world->writer;
	u64 number = first_unused_segment();

	(void)lane;
	/* The open record counts if anything is in it. */
	if (w->open != NONE && world->recs[w->open].nr_slots && w->lane_buf->b.segment >= number)
		number = w->lane_buf->b.segment + 1;
	return number;
}

u64 lc_lane_seal(struct lc_lane *lane, bool close_segment)
{
	(void)lane;
	return lane_seal(close_segment);
}

u64 lc_lane_mark(struct lc_lane *lane)
{
	(void)lane;
	return 0;
}
