// SPDX-License-Identifier: GPL-2.0-only
/*
 * Model of the lanes: blocks into slots of the open record, records into segments.
 *
 * As lanes.c, lane.c, allot.c, record.c and write.c.  Each lane has one record open; a block in
 * an open one already is overwritten there, any other gets the next slot and brings the
 * sectors along that are dirty on the SSD only.  A record is closed when it is full or a
 * flush wants it, gets its seq then, and the next one opens behind it if a block fits.
 * Buffers and segments come from the module's own refill worker (refill.c), which takes the
 * numbers from the ring and evicts what the index still maps there.  What is done with all
 * lanes locked is one step.
 */
#include "history.h"
#include "index.h"
#include "life.h"
#include "segment.h"
#include "stats.h"
#include "writer.h"

struct lc_segment *segment_of(u64 number)
{
	struct lc_ring *ring = world->core->c.ring;

	return &ring->segments[lc_ring_position(ring, number)];
}

/* Data slot of an entry, numbered over the whole SSD. */
u32 slot_of(const struct rec *rec, u32 place, u32 entry)
{
	const struct lc_ring *ring = world->core->c.ring;
	const struct place *at = &rec->places[place];

	return (lc_ring_position(ring, at->segment) << ring->slot_shift) + at->slot +
	       LC_HEADER_SLOTS + entry;
}

/* --- buffers ------------------------------------------------------------- */

static u32 lanes_now = 1;

/* Of this life. */
u32 nr_lanes(void)
{
	return lanes_now;
}

/* The core would take as many as there are segments for; here the path says how many. */
struct lc_pool *lc_pool_create(struct lc_env *env, struct lc_ring *ring, u32 nr_homes)
{
	(void)env;
	(void)ring;
	(void)nr_homes;
	return kzalloc(sizeof(struct lc_pool) + MAX_LANES * sizeof(struct lc_home), GFP_KERNEL);
}

void lc_pool_destroy(struct lc_pool *pool)
{
	kfree(pool);
}

int lc_buffers_alloc(struct lc_pool *pool, u32 nr, struct list_head *list)
{
	struct writer *w = world->writer;
	u32 i;

	(void)list;
	w->nr_bufs = nr;
	for (i = 0; i < nr; i++) {
		w->bufs[i] = (struct wbuf) { .free = true };
		w->bufs[i].b.pool = pool;
		w->bufs[i].b.home = i % nr_lanes();
	}
	return 0;
}

void lc_pool_add(struct lc_pool *pool, struct list_head *list)
{
	u32 i;

	(void)list;
	pool->nr = world->writer->nr_bufs;
	for (i = 0; i < pool->nr; i++) {
		pool->homes[i % nr_lanes()].nr++;
		pool->homes[i % nr_lanes()].nr_free++;
	}
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

struct lc_buffer *lc_pool_get(struct lc_pool *pool, u32 home)
{
	struct writer *w = world->writer;
	u32 i;

	for (i = 0; i < w->nr_bufs; i++) {
		if (w->bufs[i].free && w->bufs[i].b.home == home) {
			w->bufs[i].free = false;
			pool->homes[home].nr_free--;
			return &w->bufs[i].b;
		}
	}
	return NULL;
}

/* The SSD holds all of it that counts (B2). */
static void buf_retire(struct wbuf *buf)
{
	struct lc_core *core = world->core;

	segment_of(buf->b.segment)->buf = NULL;
	buf->free = true;
	core->c.pool->homes[buf->b.home].nr_free++;
	lc_kick(&core->c.env.refill);
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
		lc_kick(&world->core->c.env.refill);
}

/* --- allotment and lanes ------------------------------------------------------- */

struct lc_allot *lc_allot_create(struct lc_env *env, struct lc_ring *ring, struct lc_log *log,
				 u32 nr)
{
	struct lc_allot *allot = kzalloc(sizeof(*allot), GFP_KERNEL);
	struct lc_core *core = container_of(env, struct lc_core, c.env);

	(void)ring;
	(void)log;
	(void)nr;
	/* The path says how many. */
	lanes_now = world->params.lanes ?: 1;
	if (world->params.mixed && core->c.sb.epoch % 2)
		lanes_now = 1;
	core->c.nr_lanes = nr_lanes();
	allot->round_len = nr_lanes() > 1 ? world->params.round : 0;
	return allot;
}

void lc_allot_destroy(struct lc_allot *allot)
{
	kfree(allot);
}

struct lc_lanes *lc_lanes_create(struct lc_env *env, struct lc_allot *allot, struct lc_log *log,
				 struct lc_submit *submit, struct lc_pool *pool)
{
	struct lc_lanes *lanes = kzalloc(sizeof(*lanes) + nr_lanes() * sizeof(lanes->lane[0]),
					 GFP_KERNEL);
	u32 i;

	(void)env;
	(void)allot;
	(void)log;
	(void)submit;
	(void)pool;
	lanes->nr = nr_lanes();
	for (i = 0; i < lanes->nr; i++) {
		lanes->lane[i] = kzalloc(sizeof(*lanes->lane[i]), GFP_KERNEL);
		lanes->lane[i]->lanes = lanes;
		lanes->lane[i]->index = i;
	}
	return lanes;
}

void lc_lanes_destroy(struct lc_lanes *lanes)
{
	kfree(lanes);
}

void lc_allot_start(struct lc_allot *allot, u64 segment, u64 next_seq)
{
	allot->next = segment;
	allot->end = segment;
	allot->cut = segment;
	allot->cut_seq = next_seq;
}

void lc_allot_add(struct lc_allot *allot, u64 number)
{
	allot->end = number + 1;
}

static void ready_put(u32 lane, struct wbuf *buf)
{
	struct writer *w = world->writer;

	w->lanes[lane].ready[w->lanes[lane].nr_ready++] = buf;
	world->core->c.lanes->lane[lane]->nr_ready = w->lanes[lane].nr_ready;
}

void lc_lane_add_ready(struct lc_lane *lane, struct lc_buffer *b)
{
	struct wbuf *buf = container_of(b, struct wbuf, b);

	b->nr_records = 0;
	b->undurable = 0;
	b->closed = false;
	buf->next_slot = 0;
	buf->last_seq = 0;
	ready_put(lane->index, buf);
}

static void cut(void);

/* Could the lane open a segment now? */
bool lane_can_open(u32 lane)
{
	const struct lc_allot *allot = world->core->c.allot;

	return world->writer->lanes[lane].nr_ready && allot->next != allot->end;
}

/* A ready buffer gets the next segment, which may begin a round. */
struct wbuf *lane_take_ready(u32 lane)
{
	struct lc_allot *allot = world->core->c.allot;
	struct writer *w = world->writer;
	struct wbuf *buf = w->lanes[lane].ready[0];
	struct lc_segment *seg;

	if (!lane_can_open(lane))
		return NULL;
	memmove(w->lanes[lane].ready, w->lanes[lane].ready + 1,
		--w->lanes[lane].nr_ready * sizeof(buf));
	world->core->c.lanes->lane[lane]->nr_ready = w->lanes[lane].nr_ready;
	lc_kick(&world->core->c.env.refill);
	if (nr_lanes() > 1 && allot->next - allot->cut >= allot->round_len)
		cut();
	buf->b.segment = allot->next++;
	buf->b.position = lc_ring_position(world->core->c.ring, buf->b.segment);
	buf->b.cut = nr_lanes() > 1 ? allot->cut : 0;
	seg = segment_of(buf->b.segment);
	seg->number = buf->b.segment;
	seg->cut_seq = seg->number == allot->cut ? allot->cut_seq : 0;
	if (nr_lanes() == 1)
		seg->cut_seq = w->last_seq + 1;
	seg->buf = &buf->b;
	return buf;
}

static void lane_close_buf(u32 lane)
{
	struct wbuf *buf = world->writer->lanes[lane].buf;

	world->writer->lanes[lane].buf = NULL;
	buf_close(buf);
}

/* Nothing was put into it: its segment stays without a record. */
static void lane_return_buf(u32 lane)
{
	struct writer *w = world->writer;
	struct wbuf *buf = w->lanes[lane].buf;

	w->lanes[lane].buf = NULL;
	segment_of(buf->b.segment)->buf = NULL;
	ready_put(lane, buf);
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
static bool record_open(u32 lane, u8 type)
{
	struct writer *w = world->writer;
	u32 needed = LC_HEADER_SLOTS + (type == LC_RECORD_DATA);
	struct rec *rec;

	if (w->lanes[lane].buf->next_slot + needed > SEG_SLOTS)
		return false;
	rec = rec_new();
	rec->type = type;
	rec->stage = REC_OPEN;
	rec_place(rec, w->lanes[lane].buf);
	w->lanes[lane].open = rec_index(rec);
	return true;
}

static bool lane_open_next(u32 lane, u8 type)
{
	struct writer *w = world->writer;

	for (;;) {
		if (w->lanes[lane].buf) {
			if (record_open(lane, type))
				return true;
			lane_close_buf(lane);
		}
		w->lanes[lane].buf = lane_take_ready(lane);
		if (!w->lanes[lane].buf)
			return false;
	}
}

/* The open record gets its seq; nothing is open then. */
static void record_close(u32 lane, bool want_durable)
{
	struct writer *w = world->writer;
	struct rec *rec = &world->recs[w->lanes[lane].open];

	w->lanes[lane].open = NONE;
	rec->buf->next_slot = rec->places[rec->cur].slot + LC_HEADER_SLOTS + rec->nr_slots;
	rec->cut = rec->buf->b.cut;
	log_append(rec, want_durable);
}

/* Take an open record that nobody touched back, as if it had never been opened. */
static bool lane_retract(u32 lane)
{
	struct writer *w = world->writer;
	u32 open = w->lanes[lane].open;

	if (open == NONE)
		return true;
	if (world->recs[open].nr_slots)
		return false;
	w->lanes[lane].buf->b.nr_records--;
	w->lanes[lane].open = NONE;
	return true;
}

static void close_record(u32 lane, bool want_durable)
{
	if (!lane_retract(lane))
		record_close(lane, want_durable);
}

/* All that is open is closed: the next number is a cut (AL1). */
static void cut(void)
{
	struct lc_allot *allot = world->core->c.allot;
	struct writer *w = world->writer;
	u32 i;

	for (i = 0; i < nr_lanes(); i++) {
		close_record(i, true);
		if (!w->lanes[i].buf)
			continue;
		if (w->lanes[i].buf->b.nr_records)
			lane_close_buf(i);
		else
			lane_return_buf(i);
	}
	allot->cut = allot->next;
	allot->cut_seq = w->last_seq + 1;
	say("%6u segment %llu is a cut, from record %llu on", world->life->now, allot->cut,
	    allot->cut_seq);
}

static void lane_seal_one(u32 lane, bool close_segment)
{
	struct writer *w = world->writer;
	u32 open = w->lanes[lane].open;
	bool closed = open != NONE && world->recs[open].nr_slots;

	if (closed)
		record_close(lane, true);
	if (close_segment && lane_retract(lane)) {
		if (w->lanes[lane].buf && w->lanes[lane].buf->b.nr_records)
			lane_close_buf(lane);
	} else if (closed && !record_open(lane, LC_RECORD_DATA)) {
		lane_close_buf(lane);
	}
}

/**
 * lane_seal() - close the open records that hold anything
 * @close_segment: put nothing more into their segments either
 *
 * Return: the highest seq given so far.
 */
u64 lane_seal(bool close_segment)
{
	struct lc_core *core = world->core;
	u32 i;

	if (nr_lanes() > 1 && close_segment && lc_lanes_used(core->c.lanes) > core->c.allot->cut)
		cut();
	for (i = 0; i < nr_lanes(); i++)
		lane_seal_one(i, close_segment && nr_lanes() == 1);
	return world->writer->last_seq;
}

/* Is there a slot for one more block?  Opens the next record if need be. */
static bool lane_can_take(u32 lane)
{
	struct writer *w = world->writer;

	if (w->lanes[lane].open != NONE) {
		const struct rec *rec = &world->recs[w->lanes[lane].open];

		if (rec->places[0].slot + LC_HEADER_SLOTS + rec->nr_slots < SEG_SLOTS)
			return true;
		record_close(lane, false);
	}
	return lane_open_next(lane, LC_RECORD_DATA);
}

/**
 * lane_give_up() - a write to this buffer's segment failed: put nothing more there
 * @buf: the buffer (L7)
 */
void lane_give_up(struct wbuf *buf)
{
	struct writer *w = world->writer;
	u32 i;

	for (i = 0; i < nr_lanes(); i++) {
		if (w->lanes[i].buf != buf)
			continue;
		close_record(i, true);
		lane_close_buf(i);
	}
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
	struct rec *rec = NULL;
	u32 i;

	for (i = 0; i < nr_lanes(); i++)
		close_record(i, true);
	if (lane_open_next(0, LC_RECORD_RANGE)) {
		rec = &world->recs[w->lanes[0].open];
		rec->range_first = first;
		rec->range_nr = nr;
		op_add(first, nr, 0, rec_index(rec));
		record_close(0, true);
	}
	for (i = 0; i < nr_lanes(); i++) {
		if (w->lanes[i].buf && !record_open(i, LC_RECORD_DATA))
			lane_close_buf(i);
	}
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
	struct rec *rec = &world->recs[world->newest[block]];
	struct entry *entry = &rec->entries[entry_of(rec, block)];

	op_stamp(entry->data, op_add(block, 0, mask, rec_index(rec)), mask);
	entry->mask |= mask;
	lc_index_widen(world->core->c.index, bucket, old->slot, mask);
}

static void write_new_slot(u32 lane, u32 block, u8 mask, const struct lc_mapping *old, u32 bucket)
{
	struct lc_mapping map = { .dirty = true }, replaced;
	struct writer *w = world->writer;
	u32 open = w->lanes[lane].open;
	struct rec *rec = &world->recs[open];
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
	op_stamp(entry->data, op_add(block, 0, mask, open), mask);
	map.slot = slot_of(rec, rec->cur, rec->nr_slots++);
	map.mask = entry->mask;
	lc_index_set(world->core->c.index, bucket, block, &map, &replaced);
	world->newest[block] = open;
}

/**
 * lane_put() - the user writes part of a block
 * @lane: that he uses
 * @block: the block
 * @mask: sectors
 *
 * Return: false if there is no buffer: nothing was written.
 */
bool lane_put(u32 lane, u32 block, u8 mask)
{
	struct lc_index *index = world->core->c.index;
	struct lc_mapping old;
	u32 bucket;
	bool found;

	if (!lane_can_take(lane))
		return false;
	bucket = lc_index_lock(index, block);
	found = lc_index_lookup(index, bucket, block, &old);
	/* Open, in whatever lane (B6). */
	if (found && !world->recs[world->newest[block]].seq)
		overwrite_in_place(block, mask, &old, bucket);
	else
		write_new_slot(lane, block, mask, found ? &old : NULL, bucket);
	lc_index_unlock(index, bucket);
	return true;
}

/* A writer reserved a slot and could not give it back (B4). */
bool lane_hole(u32 lane)
{
	if (!lane_can_take(lane))
		return false;
	world->recs[world->writer->lanes[lane].open].nr_slots++;
	return true;
}

/* --- for core.c ------------------------------------------------------------ */

int lc_stats_create(struct lc_stats *stats)
{
	(void)stats;
	return 0;
}

void lc_stats_destroy(struct lc_stats *stats)
{
	(void)stats;
}

/* First segment without a record: none of this life's records is in it or behind it. */
u64 first_unused_segment(void)
{
	u64 number = world->core->c.ring->life_start, seq;

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

u64 lc_lanes_used(struct lc_lanes *lanes)
{
	const struct writer *w = world->writer;
	/* A segment without a record that a cut has closed keeps its number. */
	u64 number = max(first_unused_segment(), world->core->c.allot->cut);
	u32 i;

	(void)lanes;

	/* An open record counts if anything is in it. */
	for (i = 0; i < nr_lanes(); i++) {
		if (w->lanes[i].open != NONE && world->recs[w->lanes[i].open].nr_slots &&
		    w->lanes[i].buf->b.segment >= number)
			number = w->lanes[i].buf->b.segment + 1;
	}
	return number;
}

u64 lc_lanes_close_used(struct lc_lanes *lanes, bool close_segments)
{
	(void)lanes;
	return lane_seal(close_segments);
}

u64 lc_lanes_activity(const struct lc_lanes *lanes)
{
	(void)lanes;
	return 0;
}
