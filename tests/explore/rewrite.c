// SPDX-License-Identifier: GPL-2.0-only
/*
 * Model of what the writer is to do when a record or a FLUSH fails.
 *
 * The module writes a failed record again where it was, and gives the SSD up if that
 * fails for long.  Its replay rules R2, R3 and R7 and the skips in the superblock are
 * there for a writer that goes on elsewhere, so the explorer has one:
 *
 *  - A failed record takes every later record of its segment with it (L7): all of them
 *    get a place in another segment, under their seqs, and nothing more is placed in the
 *    old one.  The copy that failed may be on the SSD all the same, whole or torn.
 *  - The new place is in a higher segment than the old one: R2 takes the higher copy.
 *  - In each segment seqs rise: a durable record must not stand behind one that is not,
 *    or the chain of headers ends before it.
 *  - After a failed FLUSH that holds for every record that is not durable (F2).
 *  - It is written when everything in lower segments is, and made durable by the same
 *    FLUSH: with later seqs in lower segments, these would be stale at a crash, and replay
 *    would stop before it (L8).
 *  - A segment that is left without its first record is named as skipped in a durable
 *    superblock before any FLUSH is sent that records behind it need (L8).
 *  - The tail is the lowest seq that is still needed, and the lowest segment with a record
 *    at or above it (L6): see tail_for() in drain.c.
 */
#include "index.h"
#include "history.h"
#include "super.h"
#include "writer.h"

static void queue_rewrite(struct rec *rec)
{
	struct writer *w = world->writer;
	u32 i = w->nr_rewrites++;

	rec->rewrite = true;
	/* By seq. */
	for (; i && world->recs[w->rewrites[i - 1]].seq > rec->seq; i--)
		w->rewrites[i] = w->rewrites[i - 1];
	w->rewrites[i] = rec_index(rec);
}

static void forget_closed(const struct rec *rec)
{
	struct writer *w = world->writer;
	u32 i, n = 0;

	for (i = 0; i < w->nr_closed; i++) {
		if (w->closed[i] != rec_index(rec))
			w->closed[n++] = w->closed[i];
	}
	w->nr_closed = n;
}

/* Its first record goes elsewhere, so no chain of headers begins there. */
static void skip_segment(u64 number)
{
	struct lc_sb *sb = &world->core->c.sb;

	if (sb->nr_skips == LC_SB_SKIPS)
		return;
	sb->skips[sb->nr_skips].segment = number;
	sb->skips[sb->nr_skips++].count = 1;
	world->writer->nr_skips++;
}

/**
 * rewrite_behind() - a record of a segment failed: it and all behind it go elsewhere
 * @rec: the record
 */
void rewrite_behind(struct rec *rec)
{
	struct writer *w = world->writer;
	struct wbuf *buf = rec->buf;
	u64 seq;

	if (w->rewrite_buf == buf) {
		w->rewrite_buf = NULL;
		buf_close(buf);
	}
	lane_give_up(buf);
	/* Records in one segment are in the order of their seqs. */
	for (seq = rec->seq; seq <= w->last_seq; seq++) {
		struct rec *behind = rec_of_seq(seq);

		if (behind->buf != buf || behind->rewrite || behind->stage == REC_DURABLE)
			continue;
		if (behind->stage == REC_CLOSED)
			forget_closed(behind);
		if (behind->stage != REC_FLYING)
			behind->stage = REC_FAILED;
		queue_rewrite(behind);
	}
	if (!rec->places[rec->cur].slot)
		skip_segment(rec->places[rec->cur].segment);
}

/* A FLUSH failed: what was written since the last good one may be gone (F2). */
void rewrite_undurable(void)
{
	struct writer *w = world->writer;
	u64 seq;

	w->written_seq = w->durable_seq;
	for (seq = w->durable_seq + 1; seq <= w->last_seq; seq++) {
		struct rec *rec = rec_of_seq(seq);

		if (rec->stage == REC_WRITTEN && !rec->rewrite)
			rewrite_behind(rec);
	}
}

static bool rewrite_fits(const struct rec *rec)
{
	const struct wbuf *buf = world->writer->rewrite_buf;

	return buf && rec->seq > buf->last_seq &&
	       buf->b.segment > rec->places[rec->cur].segment &&
	       buf->next_slot + LC_HEADER_SLOTS + rec->nr_slots <= SEG_SLOTS;
}

/* Is there a record to be written again, and a place for it? */
bool rewrite_possible(void)
{
	const struct writer *w = world->writer;
	u32 i;

	if (!w->nr_rewrites)
		return false;
	for (i = 0; i < w->nr_rewrites; i++) {
		/* Its old write must be over. */
		if (world->recs[w->rewrites[i]].stage == REC_FLYING)
			return false;
	}
	return rewrite_fits(&world->recs[w->rewrites[0]]) || lane_can_open(0);
}

/* Is all in lower segments written, but for what is to go elsewhere itself? */
bool rewrite_may_submit(const struct rec *rec)
{
	const struct writer *w = world->writer;
	u64 seq;

	for (seq = w->durable_seq + 1; seq <= w->last_seq; seq++) {
		const struct rec *other = rec_of_seq(seq);

		if ((other->stage == REC_CLOSED || other->stage == REC_FLYING) &&
		    other->places[other->cur].segment < rec->places[rec->cur].segment)
			return false;
	}
	return true;
}

/* The index follows to the new place what it still maps to the old one. */
static void move_mappings(const struct rec *rec, u32 from)
{
	struct lc_index *index = world->core->c.index;
	struct lc_mapping map, old;
	u32 i, bucket;

	for (i = 0; i < rec->nr_slots; i++) {
		const struct entry *entry = &rec->entries[i];

		if (!entry->used)
			continue;
		bucket = lc_index_lock(index, entry->block);
		if (lc_index_lookup(index, bucket, entry->block, &map) &&
		    map.slot == slot_of(rec, from, i)) {
			map.slot = slot_of(rec, rec->cur, i);
			lc_index_set(index, bucket, entry->block, &map, &old);
		}
		lc_index_unlock(index, bucket);
	}
}

/* Give the lowest of them its new place; a worker will write it. */
void rewrite_one(void)
{
	struct writer *w = world->writer;
	struct rec *rec = &world->recs[w->rewrites[0]];
	struct wbuf *from = rec->buf;
	u32 old = rec->cur;

	if (!rewrite_fits(rec)) {
		if (w->rewrite_buf)
			buf_close(w->rewrite_buf);
		w->rewrite_buf = lane_take_ready(0);
	}
	memmove(w->rewrites, w->rewrites + 1, --w->nr_rewrites * sizeof(w->rewrites[0]));
	rec_place(rec, w->rewrite_buf);
	w->rewrite_buf->next_slot += LC_HEADER_SLOTS + rec->nr_slots;
	w->rewrite_buf->last_seq = rec->seq;
	w->rewrite_buf->b.undurable++;
	rec->rewrite = false;
	rec->stage = REC_CLOSED;
	rec->want_durable = true;
	w->closed[w->nr_closed++] = rec_index(rec);
	move_mappings(rec, old);
	say("%6u record %llu is to go to segment %llu slot %u instead", world->life->now, rec->seq,
	    rec->places[rec->cur].segment, rec->places[rec->cur].slot);
	buf_drop_record(from);
	if (!w->nr_rewrites) {
		buf_close(w->rewrite_buf);
		w->rewrite_buf = NULL;
	}
}

/* Name what is skipped in a durable superblock. */
void rewrite_skip(void)
{
	struct lc_core *core = world->core;
	struct writer *w = world->writer;
	u32 nr = w->nr_skips;		/* those that come meanwhile want another one */

	w->meta_busy = true;
	lc_super_set_tail(core->c.super, core->c.sb.tail_segment, core->c.sb.tail_seq);
	w->meta_busy = false;
	w->nr_named = nr;
	log_flush_start();
}
