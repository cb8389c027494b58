// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the writer is to do when a record or a FLUSH fails, in paths with the parameter elsewhere.
 *
 * The module writes a failed record again where it was, and gives the SSD up if that
 * fails for long.  Its replay rules R2, R3 and R7 and the skips in the superblock are
 * there for a writer that goes on elsewhere, so the explorer has one, on top of log.c:
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
 *    at or above it (L6): see tail_for().
 */
#include "standin.h"

#include "history.h"
#include "log/lane.h"
#include "log/record.h"
#include "log/submit.h"
#include "store/index.h"
#include "store/ring.h"
#include "store/super.h"

void __real_lc_submit_again(struct lc_submit *submit, struct lc_record *record);
void __wrap_lc_submit_again(struct lc_submit *submit, struct lc_record *record);
void __real_lc_submit_record(struct lc_submit *submit, struct lc_record *record,
			     struct bio_list *direct);
void __wrap_lc_submit_record(struct lc_submit *submit, struct lc_record *record,
			     struct bio_list *direct);

/* --- whose work? -------------------------------------------------------------- */

void __real_lc_submit_bind(struct lc_submit *submit, const struct lc_submit_ops *ops,
			   struct lc_log *log, struct workqueue_struct *wq);
void __wrap_lc_submit_bind(struct lc_submit *submit, const struct lc_submit_ops *ops,
			   struct lc_log *log, struct workqueue_struct *wq);

/* Of the log. */
static const struct lc_submit_ops *log_ops;
static struct workqueue_struct *log_wq;

void __wrap_lc_submit_bind(struct lc_submit *submit, const struct lc_submit_ops *ops,
			   struct lc_log *log, struct workqueue_struct *wq)
{
	log_ops = ops;
	log_wq = wq;
	__real_lc_submit_bind(submit, ops, log, wq);
}

/* WORKER_NOBODY: it is none of the log. */
enum worker log_worker(const struct work_struct *work)
{
	struct lc_buffer *buf;

	if (work->wq != log_wq)
		return WORKER_NOBODY;
	if (work->delay)
		return WORKER_RETRY;
	list_for_each_entry(buf, &world->vol->c.pool->all, all) {
		if ((const void *)work >= (const void *)buf->records &&
		    (const void *)work < (const void *)&buf->records[buf->nr_records])
			return WORKER_RECORD;
	}
	return WORKER_FLUSH;
}

/* For the account of what was met. */
void __wrap_lc_submit_record(struct lc_submit *submit, struct lc_record *record,
			     struct bio_list *direct)
{
	bool had = direct && direct->head;
	u32 queued = workers(WORKER_RECORD);

	__real_lc_submit_record(submit, record, direct);
	if (direct && direct->head && !had)
		world->standin->nr_direct++;
	else if (workers(WORKER_RECORD) == queued)
		world->standin->nr_waits++;
}

/* --- records that are to go elsewhere ------------------------------------------------------ */

/* Its first record goes elsewhere, so no chain of headers begins there. */
static void skip_segment(u64 number)
{
	struct lc_sb *sb = &world->vol->c.sb;

	if (sb->nr_skips == LC_SB_SKIPS)
		return;
	sb->skips[sb->nr_skips].segment = number;
	sb->skips[sb->nr_skips++].count = 1;
	world->standin->nr_skips++;
}

/* Put nothing more into the lane's segment. */
static void close_lane(struct lc_lane *lane, bool want_durable)
{
	struct lc_record *record, *tmp;
	LIST_HEAD(closed);

	lc_hold();
	spin_lock(&lane->lock);
	lc_lane_close_segment(lane, want_durable, &closed);
	spin_unlock(&lane->lock);
	list_for_each_entry_safe(record, tmp, &closed, link)
		lc_lane_put(record, NULL);
	lc_unhold();
}

/* A write to this buffer's segment failed: put nothing more there (L7). */
static void give_up(struct lc_buffer *buf)
{
	struct standin *s = world->standin;
	const struct lc_lanes *lanes = world->vol->c.lanes;
	u32 i;

	if (s->rewrite_buf == buf) {
		s->rewrite_buf = NULL;
		lc_log_close_buffer(the_log(), buf);
	}
	for (i = 0; i < lanes->nr; i++) {
		if (lanes->lane[i]->buf == buf)
			close_lane(lanes->lane[i], true);
	}
}

/* As in log.c, where closed buffers are counted that only need a FLUSH. */
static void count_unflushed(const struct lc_buffer *buf, int change)
{
	if (buf->closed && !buf->unwritten && buf->undurable)
		buf->pool->lane_pools[buf->lane_pool].nr_unflushed += change;
}

/* A record is to go elsewhere, when its write is over.  If it is, it is written again, and fails. */
static void mark(struct lc_record *record)
{
	struct rec *rec = rec_of_seq(record->seq);
	bool fua;

	if (rec->rewrite)
		return;
	rec->rewrite = true;
	world->standin->nr_marked++;
	if (record->stage != LC_RECORD_WRITTEN)
		return;
	count_unflushed(record->buf, -1);
	record->buf->unwritten++;
	record->stage = LC_RECORD_CLOSED;
	log_ops->begin(the_log(), record, false, &fua);
	log_ops->end(the_log(), record, BLK_STS_IOERR);
}

/* A record failed: it and all that follow in its segment go elsewhere. */
static void rewrite_behind(struct lc_record *record)
{
	const struct rec *rec = rec_of_seq(record->seq);
	struct lc_buffer *buf = record->buf;
	u64 seq;

	give_up(buf);
	if (!rec->places[rec->cur].slot)
		skip_segment(rec->places[rec->cur].segment);
	/* Records in one segment are in the order of their seqs. */
	for (seq = record->seq; seq <= last_seq(); seq++) {
		record = world->standin->closed[seq];
		if (record->buf == buf)
			mark(record);
	}
}

static struct lc_record *first_failed(void)
{
	struct lc_record *record;
	u64 seq;

	for (seq = lc_log_durable_seq(the_log()) + 1; seq <= last_seq(); seq++) {
		record = world->standin->closed[seq];
		if (record->stage == LC_RECORD_FAILED && !rec_of_seq(seq)->rewrite)
			return record;
	}
	return NULL;
}

/* A bio of the log has ended: has anything failed? */
void rewrite_look(void)
{
	struct lc_record *record;

	while (world->params.elsewhere && lc_log_in_trouble(the_log()) &&
	       (record = first_failed()))
		rewrite_behind(record);
}

/* From log_retry_work(), of a record whose write is over. */
void __wrap_lc_submit_again(struct lc_submit *submit, struct lc_record *record)
{
	struct standin *s = world->standin;
	u32 i = s->nr_rewrites;

	if (!world->params.elsewhere) {
		__real_lc_submit_again(submit, record);
		return;
	}
	s->nr_rewrites++;
	for (; i && s->rewrites[i - 1]->seq > record->seq; i--)
		s->rewrites[i] = s->rewrites[i - 1];
	s->rewrites[i] = record;
}

/* --- and its new place -------------------------------------------------------------- */

static bool rewrite_fits(const struct lc_record *record)
{
	const struct lc_buffer *buf = world->standin->rewrite_buf;

	return buf && record->seq > world->standin->rewrite_seq &&
	       buf->segment > record->buf->segment &&
	       lc_buffer_end(buf) + LC_HEADER_SLOTS + record->nr_slots <= SEG_SLOTS;
}

/* Is there a record to be written again, and perhaps a place for it? */
bool rewrite_possible(void)
{
	const struct standin *s = world->standin;

	/* The old writes of all of them must be over. */
	if (!s->nr_rewrites || s->nr_rewrites < s->nr_marked)
		return false;
	return rewrite_fits(s->rewrites[0]) ||
	       (READ_ONCE(world->vol->c.lanes->lane[0]->nr_ready) &&
		lc_alloc_ready(world->vol->c.alloc));
}

static bool is_queued(const struct lc_record *record)
{
	const struct standin *s = world->standin;
	u32 i;

	for (i = 0; i < s->nr_rewrites; i++) {
		if (s->rewrites[i] == record)
			return true;
	}
	return false;
}

/* Are all records in lower segments written, but for those that are to go elsewhere? */
static bool may_submit(const struct lc_record *record)
{
	const struct lc_record *other;
	u64 seq;

	for (seq = lc_log_durable_seq(the_log()) + 1; seq <= last_seq(); seq++) {
		other = world->standin->closed[seq];
		if (other->stage == LC_RECORD_CLOSED && !is_queued(other) &&
		    other->buf->segment < record->buf->segment)
			return false;
	}
	return true;
}

/* Is it too early for this work of the log? */
bool rewrite_holds(enum worker kind, const struct work_struct *work)
{
	struct lc_record *record = container_of(work, struct lc_record, work);
	const struct rec *rec;

	/* L8: a record in a segment after a skipped one counts only when that is named. */
	if (kind == WORKER_FLUSH)
		return skip_wanted(world->standin);
	rec = rec_of_seq(record->seq);
	/* It does not get to its old place: see write_record(). */
	if (rec->rewrite)
		return false;
	/* Its write may make it durable without a FLUSH. */
	if (skip_wanted(world->standin) && (record->want_durable || world->params.through))
		return true;
	if (rec->nr_places > 1) {
		/* Its header keeps the boundary of the round it was opened in. */
		record->buf->boundary = rec->boundary;
		return !may_submit(record);
	}
	return false;
}

/* The index follows to the new place what it still maps to the old one. */
static void move_mappings(const struct rec *rec, u32 from)
{
	struct lc_index *index = world->vol->c.index;
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
			/* Above the tombstone it would pass for newer (N4). */
			if (rec->seq < discard_seq(entry->block))
				lc_index_remove(index, bucket, entry->block, &old);
			else
				lc_index_set(index, bucket, entry->block, &map, &old);
		}
		lc_index_unlock(index, bucket);
	}
}

/* The next buffer of the first lane.  What it has open is in a lower segment: it is closed. */
static struct lc_buffer *take_buffer(void)
{
	struct lc_lanes *lanes = world->vol->c.lanes;
	struct lc_lane *lane = lanes->lane[0];
	struct lc_buffer *buf = list_first_entry_or_null(&lane->ready, struct lc_buffer, list);
	int ret = buf ? lc_alloc_take(lanes->alloc, 0, false, buf) : -EAGAIN;

	if (ret == -EBUSY) {
		lc_lanes_close_used(lanes, true);
		ret = lc_alloc_take(lanes->alloc, 0, false, buf);
	}
	if (ret)
		return NULL;
	list_del(&buf->list);
	lane->nr_ready--;
	close_lane(lane, false);
	lc_kick(&world->vol->c.env.refill);
	return buf;
}

/* It is not in that buffer any more. */
static void leave_buffer(struct lc_buffer *buf)
{
	buf->undurable--;
	buf->unwritten--;
	count_unflushed(buf, 1);
	lc_kick(&world->vol->c.env.refill);
	if (buf->undurable || !buf->closed)
		return;
	segment_of(buf->segment)->buf = NULL;
	lc_buffer_unpin(buf);
}

static struct lc_record *move_record(struct lc_record *old)
{
	struct lc_buffer *buf = world->standin->rewrite_buf;
	struct lc_record *record = &buf->records[buf->nr_records];
	u32 first = lc_buffer_end(buf), i;

	*record = *old;
	record->buf = buf;
	record->first_slot = first;
	record->want_durable = false;	/* not by FUA */
	buf->nr_records++;
	for (i = 0; i < LC_HEADER_SLOTS + old->nr_slots; i++)
		memcpy(buf->slots[first + i], old->buf->slots[old->first_slot + i], LC_SLOT_BYTES);
	buf->undurable++;
	buf->unwritten++;
	list_replace(&old->list, &record->list);
	world->standin->closed[record->seq] = record;
	leave_buffer(old->buf);
	return record;
}

/* Give the lowest of them its new place, if there is one; a worker will write it. */
void rewrite_one(void)
{
	struct standin *s = world->standin;
	struct lc_record *record = s->rewrites[0];
	struct rec *rec = rec_of_seq(record->seq);
	u32 old = rec->cur;

	if (!rewrite_fits(record)) {
		if (s->rewrite_buf)
			lc_log_close_buffer(the_log(), s->rewrite_buf);
		s->rewrite_buf = take_buffer();
		s->rewrite_seq = 0;
		if (!s->rewrite_buf)
			return;
	}
	memmove(s->rewrites, s->rewrites + 1, --s->nr_rewrites * sizeof(s->rewrites[0]));
	s->nr_marked--;
	rec->cur = rec->nr_places;
	rec->places[rec->nr_places++] = (struct place) {
		.segment = s->rewrite_buf->segment, .slot = lc_buffer_end(s->rewrite_buf),
		.time = NEVER,
	};
	move_mappings(rec, old);
	record = move_record(record);
	s->rewrite_seq = record->seq;
	rec->rewrite = false;
	__real_lc_submit_again(world->vol->c.submit, record);
	say("%6u record %llu is to go to segment %llu slot %u instead", world->life->now, rec->seq,
	    rec->places[rec->cur].segment, rec->places[rec->cur].slot);
	if (!s->nr_rewrites) {
		lc_log_close_buffer(the_log(), s->rewrite_buf);
		s->rewrite_buf = NULL;
	}
}

/* --- and the tail ------------------------------------------------------------------- */

int __real_lc_super_set_tail(struct lc_super *super, u64 segment, u64 seq);
int __wrap_lc_super_set_tail(struct lc_super *super, u64 segment, u64 seq);
void __real_lc_ring_set_tail(struct lc_ring *ring, u64 tail, u64 tail_seq);
void __wrap_lc_ring_set_tail(struct lc_ring *ring, u64 tail, u64 tail_seq);
u64 __real_lc_alloc_boundary_seq(struct lc_alloc *alloc, u64 number);
u64 __wrap_lc_alloc_boundary_seq(struct lc_alloc *alloc, u64 number);

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

/* With rewritten records there are no boundaries.  Return: as the module's. */
u64 __wrap_lc_alloc_boundary_seq(struct lc_alloc *alloc, u64 number)
{
	u64 segment, seq;

	if (!any_rewritten())
		return __real_lc_alloc_boundary_seq(alloc, number);
	tail_for(number, &segment, &seq);
	return segment > lc_ring_tail(world->vol->c.ring) ? seq : 0;
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

/* From writeback: where the module would have it, and is that a boundary? */
int __wrap_lc_super_set_tail(struct lc_super *super, u64 segment, u64 seq)
{
	struct standin *s = world->standin;
	u64 low_segment, low_seq;
	int ret;

	tail_for(segment, &low_segment, &low_seq);
	if (!any_rewritten()) {
		s->nr_boundaries += nr_lanes() > 1;
		s->nr_old_boundaries += nr_lanes() > 1 && segment < world->vol->c.ring->life_start;
		if (low_seq != seq || low_segment < segment)
			trouble(BAD_INDEX,
				"segment %llu is no boundary from record %llu on: %llu in %llu",
				segment, seq, low_seq, low_segment);
	}
	s->tail_end = segment;
	s->tail_segment = low_segment;
	s->tail_seq = low_seq;
	say("%6u tail to record %llu in segment %llu", world->life->now, low_seq, low_segment);
	s->meta_busy++;
	ret = __real_lc_super_set_tail(super, low_segment, low_seq);
	s->meta_busy--;
	/* Not before: rewrite_skip() may be writing the superblock with the old tail. */
	if (!ret)
		forget_skips(&world->vol->c.sb, low_segment);
	return ret;
}

void __wrap_lc_ring_set_tail(struct lc_ring *ring, u64 tail, u64 tail_seq)
{
	const struct standin *s = world->standin;
	bool told = tail == s->tail_end;

	__real_lc_ring_set_tail(ring, told ? s->tail_segment : tail, told ? s->tail_seq : tail_seq);
}

/* Name the skipped segments in a durable superblock. */
int rewrite_skip(void *unused)
{
	struct lc_volume *vol = world->vol;
	struct standin *s = world->standin;
	u32 nr = s->nr_skips;		/* those that come meanwhile want another one */

	(void)unused;
	s->meta_busy++;
	__real_lc_super_set_tail(vol->c.super, vol->c.sb.tail_segment, vol->c.sb.tail_seq);
	s->meta_busy--;
	s->nr_named = nr;
	s->skipping = false;
	return 0;
}
