// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for writeback and for discards.
 *
 * As writeback.c and copy.c: collect the dirty slots of the settled segments from the
 * tail on, copy them to the HDD in the order of blocks, several runs in flight, FLUSH the
 * HDD, mark clean what is still the newest copy, make the log durable (L5), and only then
 * move the tail, by the module's own super.c.
 *
 * As discard.c: claim the blocks until the end, so that no run copies them meanwhile (C5), make
 * earlier records durable (L12), log a tombstone, make it durable, drop older copies from the
 * index, discard on the HDD.
 */
#include "bio/discard.h"
#include "history.h"
#include "store/index.h"
#include "life.h"
#include "store/segment.h"
#include "log/refill.h"
#include "standin.h"
#include "writeback/stripe.h"
#include "store/super.h"
#include "writeback/writeback.h"

/* --- when ------------------------------------------------------------------ */

static bool segment_settled(u64 number)
{
	return number < world->vol->c.allot->next && !segment_of(number)->buf;
}

u64 drain_limit(void)
{
	u64 number = lc_ring_tail(world->vol->c.ring);

	while (segment_settled(number))
		number++;
	return number;
}

/* @lazy: only when the ring is full. */
bool drain_needed(bool lazy)
{
	struct lc_volume *vol = world->vol;

	return lc_ring_free(vol->c.ring) <= READ_ONCE(vol->c.ring->reserve) +
	       (lazy ? 1 : vol->c.sb.geo.nr_segments / 4);
}

static u64 close_used(bool close_segments)
{
	return lc_lanes_close_used(world->vol->c.lanes, close_segments);
}

static void want_durable(u64 seq)
{
	lc_log_want_durable(the_log(), seq);
}

/* --- steps ----------------------------------------------------------------- */

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

static void collect_slot(struct drain *d, u32 slot)
{
	struct lc_volume *vol = world->vol;
	const struct rec *rec;
	struct lc_mapping map;
	u64 block;
	u32 i;

	if (!lc_index_peek(vol->c.index, slot, &block, &map) || !map.dirty)
		return;
	rec = &world->recs[world->newest[block]];
	for (i = 0; i < rec->nr_slots; i++) {
		if (rec->entries[i].used && rec->entries[i].block == block)
			break;
	}
	d->items[d->nr_items++] = (struct item) {
		.block = block, .slot = slot, .mask = map.mask,
		.data = image_page(&world->life->view[SSD],
				   (vol->c.sb.geo.segments_offset >> LC_SLOT_SHIFT) + slot),
	};
	/* W1: only durable slots, only verified ones; the model's memory is the sum. */
	if (!rec_durable(rec) || i == rec->nr_slots ||
	    memcmp(d->items[d->nr_items - 1].data->bytes, rec->entries[i].data->bytes,
		   LC_SLOT_BYTES))
		trouble(BAD_INDEX, "writeback would copy a damaged slot of block %llu", block);
}

static void collect(struct drain *d)
{
	u64 number = lc_ring_tail(world->vol->c.ring), limit = drain_limit();
	u32 i;

	d->first = number;
	d->nr_items = 0;
	d->next_item = 0;
	for (; number < limit; number++) {
		if (d->nr_items + SEG_SLOTS > max(world->params.batch, 1u * SEG_SLOTS))
			break;
		for (i = 0; i < SEG_SLOTS; i++)
			collect_slot(d, lc_ring_position(world->vol->c.ring, number) * SEG_SLOTS +
				     i);
	}
	d->end = number;
	qsort(d->items, d->nr_items, sizeof(d->items[0]), compare_items);
}

/* Items of the next run, which are neighbours on the HDD. */
static u32 run_length(const struct drain *d)
{
	u32 nr = min(d->nr_items - d->next_item, LC_RUN_BLOCKS), i;
	const struct lc_stripe none = {};
	struct lc_wb_item items[LC_RUN_BLOCKS];

	for (i = 0; i < nr; i++)
		items[i].block = d->items[d->next_item + i].block;
	return lc_stripe_run(&none, &world->vol->c.env.place, items, nr, LC_RUN_BLOCKS);
}

/* For the account of what was met: do the next run and the one behind it meet at the seam? */
static bool cut_at_seam(const struct drain *d, u32 nr)
{
	const struct item *next = d->items + d->next_item + nr;

	return d->next_item + nr < d->nr_items && next->block == HEAD_BLOCKS &&
	       next[-1].block == HEAD_BLOCKS - 1 &&
	       world->params.layout == LAYOUT_MOVED_HEAD;
}

/* As lc_claims_turn(): is it the next run's turn, for all that the discard has claimed? */
static bool run_turn(const struct drain *d)
{
	const struct discard *discard = &world->standin->discard;
	u64 first = d->items[d->next_item].block;

	return discard->state == DISCARD_REST || first + run_length(d) <= discard->first ||
	       discard->first + discard->nr <= first;
}

/* As copy.c's run_refresh(). */
static bool still_newest(const struct item *item)
{
	struct lc_index *index = world->vol->c.index;
	u32 bucket = lc_index_lock(index, item->block);
	struct lc_mapping map;
	bool newest = lc_index_lookup(index, bucket, item->block, &map) && map.slot == item->slot;

	lc_index_unlock(index, bucket);
	return newest;
}

/* On the HDD, of a block, as the module has it. */
static u32 place_page(u32 block)
{
	return lc_place_sector(&world->vol->c.env.place, block * PAGE_SECTORS) / PAGE_SECTORS;
}

/* One run of neighbouring blocks, each stretch of valid sectors a command. */
static void copy_run(struct drain *d)
{
	struct life *life = world->life;
	u32 nr = run_length(d), next = 0, i;
	struct cmd *cmd = NULL;

	world->standin->nr_cut_runs += cut_at_seam(d, nr);
	while (nr--) {
		struct item *item = &d->items[d->next_item++];
		u32 page = place_page(item->block);
		u8 mask;

		if (!still_newest(item))
			continue;
		item->sent = true;
		lc_doubt_sent(&world->vol->c.doubt, item->block, item->mask);
		for (i = 0; i < PAGE_SECTORS; i++) {
			if (!(item->mask & 1u << i))
				continue;
			mask = 1u << i;
			while (i + 1 < PAGE_SECTORS && item->mask & 1u << (i + 1))
				mask |= 1u << ++i;
			op_stays(item->data, mask);
			if (!cmd || next != page * PAGE_SECTORS + __builtin_ctz(mask)) {
				cmd = cmd_new(life, HDD, OWNER_WRITEBACK);
				d->flying++;
			}
			cmd_add_piece(life, cmd, page, mask, item->data);
			next = page * PAGE_SECTORS + i + 1;
		}
	}
}

/* As finish.c's lc_wb_flush(). */
static void flush_hdd(const struct drain *d)
{
	struct lc_doubt *doubt = &world->vol->c.doubt;
	u32 i;

	for (i = 0; i < d->nr_items; i++) {
		if (d->items[i].sent)
			lc_doubt_taken(doubt, d->items[i].block, d->items[i].mask);
	}
	lc_doubt_begin(doubt);
	cmd_new(world->life, HDD, OWNER_WRITEBACK_FLUSH)->flush = true;
}

static void mark_clean(struct drain *d)
{
	struct lc_index *index = world->vol->c.index;
	struct lc_mapping map;
	u32 i, bucket;

	for (i = 0; i < d->nr_items; i++) {
		const struct item *item = &d->items[i];

		bucket = lc_index_lock(index, item->block);
		if (lc_index_lookup(index, bucket, item->block, &map) && map.slot == item->slot)
			lc_index_clean(index, bucket, item->slot);
		lc_index_unlock(index, bucket);
	}
}

static void copy_done(struct drain *d)
{
	mark_clean(d);
	d->seq = close_used(false);
	want_durable(d->seq);
	d->state = DRAIN_SUPERSEDERS;
}

/*
 * Where replay must begin when all in segments below @end is drained (L6): the lowest seq
 * elsewhere, and the lowest segment with a record at or above it.  Without rewritten
 * records that is @end and its first seq.
 */
static void tail_for(u64 end, u64 *segment, u64 *tail_seq)
{
	u64 last = last_seq();
	u64 seq;

	*tail_seq = last + 1;
	for (seq = last; seq >= world->vol->c.sb.tail_seq; seq--) {
		const struct rec *rec = rec_of_seq(seq);

		if (rec->places[rec->cur].segment >= end)
			*tail_seq = seq;
	}
	*segment = end;
	for (seq = *tail_seq; seq <= last; seq++) {
		const struct rec *rec = rec_of_seq(seq);

		if (rec->places[rec->cur].segment < *segment)
			*segment = rec->places[rec->cur].segment;
	}
}

/* Has any record that replay would need been written again elsewhere? */
static bool any_rewritten(void)
{
	u64 seq;

	for (seq = world->vol->c.sb.tail_seq; seq <= last_seq(); seq++) {
		if (rec_of_seq(seq)->nr_places > 1)
			return true;
	}
	return false;
}

/*
 * As writeback.c's find_tail(): to the last cut at or below @end.  With rewritten records there
 * are none.  Return: whether there is one.
 */
static bool tail_at_cut(u64 first, u64 end, u64 *segment, u64 *tail_seq)
{
	struct lc_allot *allot = world->vol->c.allot;
	u64 low_segment, low_seq;

	for (; end > first; end--) {
		*tail_seq = lc_allot_cut_seq(allot, end);
		if (*tail_seq)
			break;
	}
	if (end == first)
		return false;
	*segment = end;
	world->standin->nr_cuts += nr_lanes() > 1;
	world->standin->nr_old_cuts += nr_lanes() > 1 && end < world->vol->c.ring->life_start;
	tail_for(end, &low_segment, &low_seq);
	if (low_seq != *tail_seq || low_segment < end)
		trouble(BAD_INDEX, "segment %llu is no cut from record %llu on: %llu in %llu", end,
			*tail_seq, low_seq, low_segment);
	return true;
}

static void forget_skips(struct lc_sb *sb, u64 tail)
{
	u32 i, n = 0;

	for (i = 0; i < sb->nr_skips; i++) {
		if (sb->skips[i].segment + sb->skips[i].count > tail)
			sb->skips[n++] = sb->skips[i];
	}
	sb->nr_skips = n;
}

static void move_tail(struct drain *d)
{
	struct lc_volume *vol = world->vol;
	struct standin *s = world->standin;
	u64 segment, seq;

	d->state = DRAIN_REST;
	if (any_rewritten()) {
		tail_for(d->end, &segment, &seq);
	} else if (!tail_at_cut(d->first, d->end, &segment, &seq)) {
		/* As await_cut(), when there is time. */
		if (!d->nr_items)
			want_durable(close_used(true));
		return;
	}
	d->state = DRAIN_TAIL;
	say("%6u tail to record %llu in segment %llu", world->life->now, seq, segment);
	forget_skips(&vol->c.sb, segment);
	s->meta_busy = true;
	lc_super_set_tail(vol->c.super, segment, seq);
	s->meta_busy = false;
	lc_ring_set_tail(vol->c.ring, segment, seq);
	lc_kick(&vol->c.env.refill);
	d->state = DRAIN_REST;
}

/**
 * drain_begin() - writeback starts a batch
 * @all: down to the open segment
 */
void drain_begin(bool all)
{
	struct standin *s = world->standin;
	struct drain *d = &s->drain;

	if (all && !segment_settled(lc_ring_tail(world->vol->c.ring))) {
		d->seq = close_used(true);
		want_durable(d->seq);
		d->state = DRAIN_SEALING;
	} else {
		d->state = DRAIN_COLLECT;
	}
}

bool drain_can_step(void)
{
	const struct standin *s = world->standin;
	const struct drain *d = &s->drain;

	switch (d->state) {
	case DRAIN_REST:
	case DRAIN_FLUSHING:
		return false;
	case DRAIN_SEALING:
	case DRAIN_SUPERSEDERS:
		return lc_log_durable_seq(the_log()) >= d->seq;
	case DRAIN_COLLECT:
		return true;
	case DRAIN_COPY:
		if (!d->paused && d->next_item < d->nr_items)
			return d->flying < world->params.depth && run_turn(d);
		return !d->flying;
	case DRAIN_TAIL:
		return !s->meta_busy;
	}
	return false;
}

void drain_step(void)
{
	struct standin *s = world->standin;
	struct drain *d = &s->drain;

	switch (d->state) {
	case DRAIN_SEALING:
		d->state = DRAIN_COLLECT;
		break;
	case DRAIN_COLLECT:
		collect(d);
		d->state = d->end > d->first ? DRAIN_COPY : DRAIN_REST;
		if (d->state == DRAIN_REST)
			/* The oldest segment is still in RAM: its flush must come first. */
			want_durable(close_used(true));
		break;
	case DRAIN_COPY:
		if (!d->paused && d->next_item < d->nr_items) {
			copy_run(d);
		} else if (d->next_item < d->nr_items) {
			/* Told to stop: the batch is given up, its blocks stay dirty. */
			d->state = DRAIN_REST;
		} else if (d->nr_items) {
			flush_hdd(d);
			d->state = DRAIN_FLUSHING;
		} else {
			copy_done(d);
		}
		break;
	case DRAIN_SUPERSEDERS:
		d->state = DRAIN_TAIL;
		break;
	case DRAIN_TAIL:
		move_tail(d);
		break;
	default:
		break;
	}
}

void drain_ended(struct cmd *cmd)
{
	struct drain *d = &world->standin->drain;

	if (cmd->owner == OWNER_WRITEBACK) {
		d->flying--;
	} else if (cmd->failed) {
		/* F3: all of the batch stays dirty, the tail stays. */
		lc_doubt_end(&world->vol->c.doubt, false);
		d->state = DRAIN_REST;
	} else {
		lc_doubt_end(&world->vol->c.doubt, true);
		copy_done(d);
	}
}

/* --- discards ---------------------------------------------------------------- */

/* Which blocks have copies the range covers?  @drop: forget them. */
static bool visit_range(const struct discard *d, bool drop)
{
	struct lc_index *index = world->vol->c.index;
	struct lc_mapping map;
	bool any = false;
	u32 block, bucket;

	for (block = d->first; block < d->first + d->nr; block++) {
		const struct rec *rec;

		bucket = lc_index_lock(index, block);
		if (lc_index_lookup(index, bucket, block, &map)) {
			any = true;
			rec = &world->recs[world->newest[block]];
			if (drop && rec->seq && rec->seq < world->recs[d->rec].seq) {
				lc_index_remove(index, bucket, block, &map);
				world->newest[block] = NONE;
			}
		}
		lc_index_unlock(index, bucket);
	}
	return any;
}

/* Blocks that lie in one piece, from the @from-th of the discard on. */
static void discard_piece(struct discard *d, u32 from, u32 nr)
{
	static const struct dpage zeros;
	struct life *life = world->life;
	struct cmd *cmd = cmd_new(life, HDD, OWNER_DISCARD);
	u32 page = place_page(d->first + from), i;

	d->flying++;
	/* A hint: some blocks are zeroed, others not. */
	for (i = 0; i < nr; i++) {
		if (world->params.zeroing && (life->now + from + i) % 3)
			cmd_add_piece(life, cmd, page + i, 0xff, &zeros);
	}
}

/* As send_below(). */
static void discard_on_hdd(struct discard *d)
{
	u32 nr = lc_place_run(&world->vol->c.env.place, d->first * PAGE_SECTORS,
			      d->nr * PAGE_SECTORS) / PAGE_SECTORS;

	d->state = DISCARD_HDD;
	lc_doubt_discarded(&world->vol->c.doubt, d->first, d->first + d->nr - 1);
	discard_piece(d, 0, nr);
	if (nr < d->nr) {
		world->standin->nr_cut_discards++;
		discard_piece(d, nr, d->nr - nr);
	}
}

void discard_begin(u32 first, u32 nr)
{
	world->standin->discard = (struct discard) {
		.state = DISCARD_CLAIMED, .first = first, .nr = nr, .rec = NONE,
	};
}

/* As lc_claims_turn(): no copy of its blocks is on its way; none has been begun since it came. */
static bool discard_turn(const struct discard *d)
{
	const struct life *life = world->life;
	u32 i, j, n;

	for (i = 0; i < life->nr_flying; i++) {
		const struct cmd *cmd = &life->cmds[life->flying[i]];

		for (j = 0; cmd->owner == OWNER_WRITEBACK && j < cmd->nr_pieces; j++) {
			for (n = 0; n < d->nr; n++) {
				if (cmd->pieces[j].page == place_page(d->first + n))
					return false;
			}
		}
	}
	return true;
}

bool discard_can_step(void)
{
	const struct standin *s = world->standin;

	switch (s->discard.state) {
	case DISCARD_CLAIMED:
		return discard_turn(&s->discard);
	case DISCARD_EARLIER:
	case DISCARD_TOMBSTONE:
		/* The tombstone is sent at once: see rewrite_holds(). */
		if (s->discard.state == DISCARD_EARLIER && skip_wanted(s))
			return false;
		return lc_log_durable_seq(the_log()) >= s->discard.seq;
	default:
		return false;
	}
}

/* Return: false if there is no room. */
static bool append_range(struct discard *d)
{
	const struct lc_entry_info range = {
		.block = d->first, .nr_blocks = d->nr, .type = LC_ENTRY_RANGE_TOMBSTONE,
	};

	if (lc_lanes_append_ranges(world->vol->c.lanes, &range, 1))
		return false;
	d->rec = rec_index(rec_of_seq(world->last_seq));
	d->op = op_add(d->first, d->nr, 0, d->rec);
	return true;
}

void discard_step(void)
{
	struct standin *s = world->standin;
	struct discard *d = &s->discard;

	switch (d->state) {
	case DISCARD_CLAIMED:
		if (!visit_range(d, false)) {
			d->op = op_add(d->first, d->nr, 0, NONE);
			discard_on_hdd(d);
			break;
		}
		d->seq = close_used(false);
		want_durable(d->seq);
		d->state = DISCARD_EARLIER;
		break;
	case DISCARD_EARLIER:
		if (!append_range(d)) {
			/* No buffer: dropping a hint loses nothing. */
			d->state = DISCARD_REST;
			break;
		}
		d->seq = close_used(false);
		want_durable(d->seq);
		d->state = DISCARD_TOMBSTONE;
		break;
	case DISCARD_TOMBSTONE:
		visit_range(d, true);
		discard_on_hdd(d);
		break;
	default:
		break;
	}
}

void discard_ended(void)
{
	struct standin *s = world->standin;

	if (--s->discard.flying)
		return;
	lc_doubt_discarded(&world->vol->c.doubt, s->discard.first,
			   s->discard.first + s->discard.nr - 1);
	world->ops[s->discard.op].acked = world->life->now;
	s->discard.state = DISCARD_REST;
}

/* --- for volume.c ---------------------------------------------------------------- */

/* Only its address matters. */
struct lc_writeback {
	int unused;
};

struct lc_discards *lc_discard_create(struct lc_cache *c)
{
	return (struct lc_discards *)c;
}

/* The user's discard ends when all of it has: none goes on without its bio. */
void lc_discard_settle(struct lc_discards *d)
{
	(void)d;
}

void lc_discard_destroy(struct lc_discards *d)
{
	(void)d;
}

struct lc_claims *lc_claims_create(void)
{
	static u64 unused;

	return (struct lc_claims *)&unused;
}

void lc_claims_destroy(struct lc_claims *claims)
{
	(void)claims;
}

static unsigned long pace(const void *owner)
{
	(void)owner;
	return 0;
}

static void refill_ran(void *owner)
{
	(void)owner;
}

static const struct lc_refill_ops refill_ops = {
	.pace = pace,
	.ran = refill_ran,
};

struct lc_writeback *lc_writeback_create(struct lc_cache *c)
{
	struct lc_writeback *wb = kzalloc(sizeof(*wb), GFP_KERNEL);

	if (wb)
		lc_refill_attach(c->refill, &refill_ops, wb);
	return wb;
}

void lc_writeback_destroy(struct lc_writeback *wb)
{
	kfree(wb);
}

int lc_writeback_resize(struct lc_writeback *wb, u32 batch, u32 depth)
{
	(void)wb;
	(void)batch;
	(void)depth;
	return 0;
}

void lc_writeback_resume(struct lc_writeback *wb)
{
	(void)wb;
	world->standin->drain.paused = false;
}

void lc_writeback_kick(struct lc_writeback *wb)
{
	(void)wb;
}

static bool resting(const void *arg)
{
	(void)arg;
	return world->standin->drain.state == DRAIN_REST;
}

void lc_writeback_pause(struct lc_writeback *wb)
{
	(void)wb;
	world->standin->drain.paused = true;
	wait_until(resting, NULL);
}
