// SPDX-License-Identifier: GPL-2.0-only
/*
 * Model of the log: closed records to the SSD, FLUSH, and what is durable.
 *
 * As the module's log.c.  A closed record waits for a worker, which may take it in any
 * order, sums it, seals its header with what is durable then, and submits it.
 * written_seq follows the unbroken run of written records; one FLUSH is under way at a
 * time and covers what was written when it was decided (G1, G2).
 */
#include "history.h"
#include "life.h"
#include "log.h"
#include "bypass.h"
#include "rescue.h"
#include "submit.h"
#include "writer.h"

/* Only its address matters. */
struct lc_log {
	int unused;
};

struct lc_log *lc_log_create(struct lc_env *env, struct lc_submit *submit)
{
	(void)env;
	(void)submit;
	return kzalloc(sizeof(struct lc_log), GFP_KERNEL);
}

void lc_log_destroy(struct lc_log *log)
{
	kfree(log);
}

/* Its room of bios: there is none. */
struct lc_submit *lc_submit_create(struct lc_env *env, struct lc_ring *ring, struct lc_pool *pool,
				   struct lc_sums *sums, u32 nr_lanes)
{
	(void)env;
	(void)ring;
	(void)pool;
	(void)sums;
	(void)nr_lanes;
	return kzalloc(sizeof(u64), GFP_KERNEL);
}

/* The paths say when a record is written, so that no SSD is slow here. */
u32 lc_submit_most(const struct lc_submit *submit)
{
	(void)submit;
	return ~0U;
}

void lc_submit_adapt(struct lc_submit *submit)
{
	(void)submit;
}

void lc_submit_destroy(struct lc_submit *submit)
{
	kfree(submit);
}

void lc_log_start(struct lc_log *log, u64 next_seq)
{
	struct writer *w = world->writer;

	(void)log;
	w->last_seq = next_seq - 1;
	w->written_seq = w->last_seq;
	w->durable_seq = w->last_seq;
	w->want_seq = w->last_seq;
	w->relief_seq = w->last_seq;
	world->life->start_seq = w->last_seq;
}

u64 lc_log_last_seq(struct lc_log *log)
{
	(void)log;
	return world->writer->last_seq;
}

/**
 * log_append() - a closing record gets its seq
 * @rec: the record
 * @want_durable: a flush closed it
 */
void log_append(struct rec *rec, bool want_durable)
{
	struct writer *w = world->writer;

	if (w->last_seq + 1 == MAX_SEQ) {
		fprintf(stderr, "explore: too many records\n");
		exit(2);
	}
	rec->seq = ++w->last_seq;
	rec->epoch = world->core->c.sb.epoch;
	rec->stage = REC_CLOSED;
	rec->want_durable = want_durable;
	rec->buf->b.undurable++;
	world->hist[rec->seq] = rec_index(rec);
	world->last_seq = rec->seq;
	w->closed[w->nr_closed++] = rec_index(rec);
	say("%6u record %llu of %u slots is closed", world->life->now, rec->seq, rec->nr_slots);
}

/* --- flush --------------------------------------------------------------- */

static bool flush_wanted(void)
{
	struct writer *w = world->writer;
	u32 i;

	/* L8: what lies behind a skipped segment counts only once that is named. */
	if (w->flushing || skip_wanted(w) || w->written_seq == w->durable_seq)
		return false;
	if (w->want_seq > w->durable_seq && w->want_seq <= w->written_seq)
		return true;
	if (w->relief_seq > w->durable_seq)
		return true;
	for (i = 0; i < w->nr_waiters; i++) {
		if (w->waiters[i].seq <= w->written_seq)
			return true;
	}
	return false;
}

/* Decide on the next FLUSH if one is due. */
void log_flush_start(void)
{
	struct writer *w = world->writer;

	if (!flush_wanted())
		return;
	w->flushing = true;
	w->flush_queued = true;
	w->flush_seq = w->written_seq;
}

void log_flush_submit(void)
{
	world->writer->flush_queued = false;
	cmd_new(world->life, SSD, OWNER_LOG_FLUSH)->flush = true;
}

static u32 bufs_used(void)
{
	const struct writer *w = world->writer;
	u32 i, nr = 0;

	for (i = 0; i < w->nr_bufs; i++)
		nr += !w->bufs[i].free;
	return nr;
}

/* durable_seq rose to @seq: what that sets free, and who waited for it. */
static void set_durable(u64 seq)
{
	struct writer *w = world->writer;
	u32 i, n = 0, used = bufs_used();

	while (w->durable_seq < seq) {
		struct rec *rec = rec_of_seq(++w->durable_seq);

		rec->stage = REC_DURABLE;
		buf_drop_record(rec->buf);
	}
	if (bufs_used() != used)
		w->relief_seq = w->durable_seq;
	for (i = 0; i < w->nr_waiters; i++) {
		if (w->waiters[i].seq <= w->durable_seq)
			life_ack(w->waiters[i].seq, w->waiters[i].op);
		else
			w->waiters[n++] = w->waiters[i];
	}
	w->nr_waiters = n;
}

/* Make a seq durable soon, nobody waits for it. */
void log_want(u64 seq)
{
	struct writer *w = world->writer;

	if (seq > w->want_seq)
		w->want_seq = seq;
	log_flush_start();
}

/**
 * log_wait() - a FLUSH or FUA bio of the user waits
 * @seq: to be durable
 * @op: all operations up to this one are in records up to that
 */
void log_wait(u64 seq, u32 op)
{
	struct writer *w = world->writer;

	if (seq <= w->durable_seq) {
		life_ack(seq, op);
		return;
	}
	w->waiters[w->nr_waiters++] = (struct waiter) { .seq = seq, .op = op };
	log_flush_start();
}

void log_flush_ended(struct cmd *cmd)
{
	struct writer *w = world->writer;

	w->flushing = false;
	if (cmd->failed)
		rewrite_undurable();
	else if (w->flush_seq > w->durable_seq)
		set_durable(w->flush_seq);
	log_flush_start();
}

/* --- records -------------------------------------------------------------- */

/* May this record be made durable by FUA alone? (F4) */
static bool record_fua(const struct rec *rec)
{
	const struct writer *w = world->writer;

	return world->params.fua && LC_HEADER_SLOTS + rec->nr_slots <= world->params.fua_slots &&
	       rec->want_durable && rec->nr_places == 1 && !w->flushing && !skip_wanted(w) &&
	       w->durable_seq == rec->seq - 1;
}

/* Sum the slots and finish the header. */
static struct dpage *record_seal(struct rec *rec)
{
	const struct lc_sb *sb = &world->core->c.sb;
	struct place *place = &rec->places[rec->cur];
	struct dpage *page = dpage_new();
	struct lc_record_header *raw = (void *)page->bytes;
	struct lc_record_info info = {
		.segment = place->segment, .first_slot = place->slot, .seq = rec->seq,
		.epoch = sb->epoch, .epoch_first_seq = sb->epoch_first_seq,
		.cut = rec->cut, .tail_seq = lc_ring_tail_seq(world->core->c.ring),
		.durable_seq = world->writer->durable_seq,
		.type = rec->type, .nr_entries = rec->nr_slots, .nr_slots = rec->nr_slots,
	};
	struct lc_entry_info entry = {};
	u32 i;

	memset(page->bytes, 0, sizeof(page->bytes));
	memset(page->tags, 0xff, sizeof(page->tags));
	for (i = 0; i < rec->nr_slots; i++) {
		const struct entry *e = &rec->entries[i];

		if (!e->used)
			continue;
		entry.block = e->block;
		entry.mask = e->mask;
		entry.type = LC_ENTRY_DATA;
		entry.csum = lc_format_slot_csum(sb, e->block, e->data->bytes);
		lc_entry_encode(raw, i, &entry);
	}
	if (!rec->nr_slots) {
		entry.block = rec->range_first;
		entry.nr_blocks = rec->range_nr;
		entry.type = LC_ENTRY_RANGE_TOMBSTONE;
		lc_entry_encode(raw, 0, &entry);
		info.nr_entries = 1;
	}
	lc_record_seal(raw, sb, &info);
	place->told_durable = info.durable_seq;
	return page;
}

/**
 * log_submit() - the worker of a closed record seals and writes it
 * @i: which of the closed ones
 *
 * Return: whether it may be written now.
 */
bool log_submit(u32 i)
{
	static const struct dpage hole;
	struct writer *w = world->writer;
	struct life *life = world->life;
	struct rec *rec = &world->recs[w->closed[i]];
	struct place *place = &rec->places[rec->cur];
	const struct lc_geometry *geo = &world->core->c.sb.geo;
	struct cmd *cmd;
	u32 page, n;

	if (rec->nr_places > 1 && !rewrite_may_submit(rec))
		return false;
	memmove(&w->closed[i], &w->closed[i + 1], (--w->nr_closed - i) * sizeof(w->closed[0]));
	page = lc_format_log_address(geo, place->segment, place->slot) >> LC_SLOT_SHIFT;
	cmd = cmd_new(life, SSD, OWNER_RECORD);
	cmd->rec = rec_index(rec);
	cmd->place = rec->cur;
	cmd->fua = record_fua(rec);
	place->time = life->now;
	cmd_add_piece(life, cmd, page, 0xff, record_seal(rec));
	for (n = 0; n < rec->nr_slots; n++)
		cmd_add_piece(life, cmd, page + 1 + n, 0xff,
			      rec->entries[n].used ? rec->entries[n].data : &hole);
	rec->stage = REC_FLYING;
	say("%6u record %llu to segment %llu slot %u%s, durable %llu", life->now, rec->seq,
	    place->segment, place->slot, cmd->fua ? " with FUA" : "", place->told_durable);
	return true;
}

/* written_seq follows the unbroken run. */
static void advance_written(void)
{
	struct writer *w = world->writer;

	while (w->written_seq < w->last_seq &&
	       rec_of_seq(w->written_seq + 1)->stage == REC_WRITTEN)
		w->written_seq++;
}

void log_record_ended(struct cmd *cmd)
{
	struct writer *w = world->writer;
	struct rec *rec = &world->recs[cmd->rec];

	if (cmd->failed) {
		rec->stage = REC_FAILED;
		rewrite_behind(rec);
	} else if (rec->rewrite) {
		/* It succeeded, but behind one that failed (L7). */
		rec->stage = REC_FAILED;
	} else {
		rec->stage = REC_WRITTEN;
		/* FUA was chosen because all below was durable (G2). */
		advance_written();
		if (buf_lacks_flush(rec->buf))
			lc_kick(&world->core->c.env.refill);
		if (cmd->fua && w->durable_seq == rec->seq - 1)
			set_durable(rec->seq);
	}
	log_flush_start();
}

/* --- for core.c ------------------------------------------------------------ */

static bool durable_reached(const void *arg)
{
	return world->writer->durable_seq >= *(const u64 *)arg;
}

int lc_log_wait_durable(struct lc_log *log, u64 seq)
{
	(void)log;
	log_want(seq);
	wait_until(durable_reached, &seq);
	return 0;
}

void lc_log_want_durable(struct lc_log *log, u64 seq)
{
	(void)log;
	log_want(seq);
}

/* Is all of a closed buffer written, but not durable? */
bool buf_lacks_flush(const struct wbuf *buf)
{
	u64 seq;

	if (buf->free || !buf->b.closed || !buf->b.undurable)
		return false;
	for (seq = world->writer->durable_seq + 1; seq <= world->writer->last_seq; seq++) {
		if (rec_of_seq(seq)->buf == buf && rec_of_seq(seq)->stage != REC_WRITTEN)
			return false;
	}
	return true;
}

/* What the refill worker reads, which the module keeps up to date all the time. */
void log_count_unflushed(void)
{
	struct writer *w = world->writer;
	u32 i;

	for (i = 0; i < world->core->c.nr_lanes; i++)
		world->core->c.pool->homes[i].nr_unflushed = 0;
	for (i = 0; i < w->nr_bufs; i++)
		world->core->c.pool->homes[w->bufs[i].b.home].nr_unflushed +=
			buf_lacks_flush(&w->bufs[i]);
}

/* Buffers run short: make what is written durable, until one comes back (G6). */
void lc_log_relieve(struct lc_log *log)
{
	struct writer *w = world->writer;

	(void)log;
	w->relief_seq = w->last_seq;
	log_flush_start();
}

static bool quiet(const void *arg)
{
	const struct life *life = world->life;
	u32 i;

	(void)arg;
	for (i = 0; i < life->nr_flying; i++) {
		u8 owner = life->cmds[life->flying[i]].owner;

		if (owner == OWNER_RECORD || owner == OWNER_LOG_FLUSH)
			return false;
	}
	return !world->writer->nr_closed && !world->writer->flushing;
}

void lc_log_quiesce(struct lc_log *log)
{
	(void)log;
	wait_until(quiet, NULL);
}

/* Nothing that fails is modelled where the module gives up: see rewrite.c. */
void lc_log_fail(struct lc_log *log)
{
	(void)log;
	trouble(BAD_WARNING, "the log was failed");
}

/* Records may have been dropped by a PREFLUSH that failed: they are written again. */
void lc_log_void(struct lc_log *log)
{
	(void)log;
	rewrite_undurable();
	log_flush_start();
}

void lc_log_stop(struct lc_log *log)
{
	lc_log_fail(log);
}

/* --- for core.c: there is no rescue, as no SSD is given up ------------------- */

struct lc_rescue *lc_rescue_create(struct lc_core *core)
{
	(void)core;
	/* Only its address matters. */
	return kzalloc(16, GFP_KERNEL);
}

void lc_rescue_destroy(struct lc_rescue *rescue)
{
	kfree(rescue);
}

void lc_rescue_start(struct lc_rescue *rescue)
{
	(void)rescue;
	trouble(BAD_WARNING, "the SSD was given up");
}

void lc_rescue_run(struct lc_rescue *rescue)
{
	(void)rescue;
}

bool lc_rescue_pause(struct lc_rescue *rescue)
{
	(void)rescue;
	return false;
}

void lc_rescue_resume(struct lc_rescue *rescue)
{
	(void)rescue;
}

void lc_rescue_finish(struct lc_rescue *rescue, bool removing)
{
	(void)rescue;
	(void)removing;
}

struct lc_bypass *lc_bypass_create(struct lc_cache *c)
{
	(void)c;
	return kzalloc(16, GFP_KERNEL);
}

void lc_bypass_destroy(struct lc_bypass *bypass)
{
	kfree(bypass);
}

int lc_bypass_flush(struct lc_bypass *bypass)
{
	(void)bypass;
	return -EIO;
}

void lc_rescue_record_lost(struct lc_core *core, bool ending)
{
	(void)core;
	(void)ending;
}
