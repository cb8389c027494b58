// SPDX-License-Identifier: GPL-2.0-only
/*
 * The log.  See log.h for its three seqs and their invariants.
 *
 * Closed records are sent by submit.c, which asks here whether the write may begin and tells how
 * it ended.  Completions only record and wake.  written_seq advances over the unbroken run of
 * written records.  A task that waits for durability causes one FLUSH at a time; requests that
 * come meanwhile share the next one.  An SSD without a volatile cache needs none.
 *
 * A record whose write failed, and all that a failed FLUSH may have dropped, wait in
 * stage FAILED for retry_work, which writes them again to the same place.  Pauses
 * grow from RETRY_FIRST to RETRY_LAST.
 *
 * Nothing here allocates from a pool that is not the log's own (submit.c).
 */
#include <linux/bio.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "log/log.h"
#include "log/record.h"
#include "log/request.h"
#include "log/submit.h"
#include "log/waiters.h"
#include "store/env.h"
#include "store/health.h"
#include "store/io.h"
#include "store/ring.h"
#include "store/trace.h"

#define RETRY_FIRST	(HZ / 10 ?: 1)
#define RETRY_LAST	(4 * HZ)

struct lc_log {
	struct lc_env *env;
	struct lc_submit *submit;
	spinlock_t lock;		/* in completion context too */
	struct list_head pending;	/* records not durable, in seq order; lock */
	u64 first_seq;			/* of this life; constant once it has begun */
	u64 last_seq;			/* lock */
	u64 written_seq;		/* lock */
	u64 durable_seq;		/* lock */
	u64 want_seq;			/* to become durable up to here, without a waiter; lock */
	u64 want_buffers_seq;		/* last_seq at the last request that holds (G6); lock */
	u64 flush_seq;			/* written_seq when the running FLUSH began; lock */
	u32 flushing_gen;		/* flush_gen then; lock */
	bool flushing;			/* lock */
	bool failed;			/* every FLUSH ends with an error; lock */
	bool stopped;			/* nothing is written any more; lock */
	bool ended;			/* flushes end with end_status at once; lock */
	blk_status_t end_status;	/* lock */
	u32 flush_gen;			/* FLUSHes that failed; lock */
	u32 nr_failed;			/* records in stage FAILED; lock */
	bool trouble;			/* something failed and is not durable yet; lock */
	unsigned long trouble_since;	/* jiffies; lock */
	u64 trouble_seq;		/* last_seq at the last failure; lock */
	unsigned long retry_pause;	/* lock */
	u32 nr_writes;			/* record bios in flight, completions at work; lock */
	struct list_head waiters;	/* waiters.h; lock */
	wait_queue_head_t wait;		/* durable_seq rose, or failed */

	struct workqueue_struct *wq;
	struct work_struct flush_work;
	struct delayed_work retry_work;
	struct bio flush_bio;		/* owned by flushing */
};

bool lc_log_in_trouble(const struct lc_log *log)
{
	return READ_ONCE(log->trouble);
}

u64 lc_log_last_seq(struct lc_log *log)
{
	unsigned long flags;
	u64 seq;

	spin_lock_irqsave(&log->lock, flags);
	seq = log->last_seq;
	spin_unlock_irqrestore(&log->lock, flags);
	return seq;
}

u64 lc_log_durable_seq(struct lc_log *log)
{
	unsigned long flags;
	u64 seq;

	spin_lock_irqsave(&log->lock, flags);
	seq = log->durable_seq;
	spin_unlock_irqrestore(&log->lock, flags);
	return seq;
}

bool lc_log_life_durable(struct lc_log *log)
{
	return lc_log_durable_seq(log) >= log->first_seq;
}

void lc_log_append(struct lc_log *log, struct lc_record *rec, bool want_durable)
{
	unsigned long flags;

	lc_assert_upper_held(&rec->buf->lane_lock);
	spin_lock_irqsave(&log->lock, flags);
	lc_upper_lock_set(&rec->buf->log_lock, &log->lock);
	lc_record_shut(rec);
	rec->seq = ++log->last_seq;
	rec->stage = LC_RECORD_CLOSED;
	rec->want_durable = want_durable;
	rec->buf->undurable++;
	rec->buf->unwritten++;
	list_add_tail(&rec->list, &log->pending);
	trace_lc_record_closed(log->env->dev, rec->seq, rec->buf->segment, rec->first_slot,
			       rec->nr_slots);
	spin_unlock_irqrestore(&log->lock, flags);
}

/* [lock] Whether the buffer is one of nr_unflushed. */
static bool lacks_flush(const struct lc_buffer *buf)
{
	lc_assert_upper_held(&buf->log_lock);
	return buf->closed && !buf->unwritten && buf->undurable;
}

/* [lock] If one more only needs a FLUSH to be free, refill looks (too_many_unwritten()). */
static void count_unflushed(struct lc_log *log, struct lc_buffer *buf, int change)
{
	lockdep_assert_held(&log->lock);
	lc_buffer_count_unflushed(buf, change);
	if (change > 0)
		lc_kick(&log->env->refill);
}

/* The SSD holds all of the buffer: reads go there, the RAM is free (B2). */
static void buffer_retire(struct lc_buffer *buf)
{
	lc_segment_drop_buffer(&buf->pool->ring->segments[buf->position]);
	lc_buffer_unpin(buf);
}

void lc_log_close_buffer(struct lc_log *log, struct lc_buffer *buf)
{
	unsigned long flags;
	bool retire;

	lc_assert_upper_held(&buf->lane_lock);
	spin_lock_irqsave(&log->lock, flags);
	lc_upper_lock_set(&buf->log_lock, &log->lock);
	buf->closed = true;
	retire = !buf->undurable && !log->stopped;	/* G5 */
	if (lacks_flush(buf))
		count_unflushed(log, buf, 1);
	spin_unlock_irqrestore(&log->lock, flags);
	if (retire)
		buffer_retire(buf);
}

/* --- flush -------------------------------------------------------------- */

/* [lock] Would a FLUSH now make something durable that is waited for? */
static bool flush_wanted(struct lc_log *log)
{
	lockdep_assert_held(&log->lock);
	if (log->flushing || log->failed || log->stopped || log->written_seq == log->durable_seq)
		return false;
	if (log->want_seq > log->durable_seq && log->want_seq <= log->written_seq)
		return true;
	/* Buffers are short: flush what is written now, while others are on their way (G6). */
	if (log->want_buffers_seq > log->durable_seq)
		return true;
	return lc_waiters_due(&log->waiters, log->written_seq);
}

/* [lock] Start the next FLUSH if one is due. */
static void flush_start(struct lc_log *log)
{
	lockdep_assert_held(&log->lock);
	if (!flush_wanted(log))
		return;
	log->flushing = true;
	log->flush_seq = log->written_seq;
	log->flushing_gen = log->flush_gen;
	queue_work(log->wq, &log->flush_work);
}

/* [lock] durable_seq rose: collect what that sets free. */
static void collect_durable(struct lc_log *log, struct list_head *ios, struct list_head *bufs)
{
	struct lc_record *rec, *tmp;

	lockdep_assert_held(&log->lock);
	trace_lc_durable(log->env->dev, log->durable_seq);
	/* All that there was at the last failure is durable. */
	if (log->trouble && log->durable_seq >= log->trouble_seq) {
		lc_info_atomic(log->env, "the cache device takes writes again");
		WRITE_ONCE(log->trouble, false);
	}
	list_for_each_entry_safe(rec, tmp, &log->pending, list) {
		if (rec->seq > log->durable_seq)
			break;
		list_del(&rec->list);
		if (!--rec->buf->undurable && rec->buf->closed) {
			count_unflushed(log, rec->buf, -1);
			list_add_tail(&rec->buf->list, bufs);
		}
	}
	if (!list_empty(bufs))
		/* if still short, refill asks again (G6) */
		log->want_buffers_seq = log->durable_seq;
	lc_waiters_take(&log->waiters, log->durable_seq, ios);
}

static void release_durable(struct lc_log *log, struct list_head *ios, struct list_head *bufs)
{
	struct lc_buffer *buf, *tmp;
	struct lc_request *io, *next;

	list_for_each_entry_safe(buf, tmp, bufs, list)
		buffer_retire(buf);
	list_for_each_entry_safe(io, next, ios, list)
		lc_request_end(io, BLK_STS_OK);
	wake_up_all(&log->wait);
}

void lc_log_fail(struct lc_log *log)
{
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	log->failed = true;
	spin_unlock_irqrestore(&log->lock, flags);
	lc_log_end_flushes(log, BLK_STS_IOERR);
	wake_up_all(&log->wait);
}

/* --- trouble ------------------------------------------------------------ */

/* [lock] Something failed: write it again after a pause. */
static void retry_later(struct lc_log *log)
{
	lockdep_assert_held(&log->lock);
	if (log->failed || log->stopped)
		return;
	log->trouble_seq = log->last_seq;
	if (!log->trouble) {
		lc_err_atomic(log->env,
			      "the cache device fails writes or flushes: trying again for %u ms",
			      READ_ONCE(log->env->params.ssd_patience_ms));
		WRITE_ONCE(log->trouble, true);
		log->trouble_since = jiffies;
		log->retry_pause = RETRY_FIRST;
	}
	queue_delayed_work(log->wq, &log->retry_work, log->retry_pause);
}

/* [lock] */
static void record_failed(struct lc_log *log, struct lc_record *rec)
{
	lockdep_assert_held(&log->lock);
	rec->stage = LC_RECORD_FAILED;
	log->nr_failed++;
	retry_later(log);
}

/*
 * [lock] A FLUSH failed: the drive may have dropped what it had taken since the last good one (F2).
 * Writes in flight now are told from later ones by their flush_gen.
 */
static void redo_undurable(struct lc_log *log)
{
	struct lc_record *rec;

	lockdep_assert_held(&log->lock);
	log->flush_gen++;
	WRITE_ONCE(log->env->ssd_flush_failures, log->flush_gen);
	log->written_seq = log->durable_seq;
	list_for_each_entry(rec, &log->pending, list) {
		if (rec->stage != LC_RECORD_WRITTEN)
			continue;
		if (lacks_flush(rec->buf))
			count_unflushed(log, rec->buf, -1);
		rec->buf->unwritten++;
		record_failed(log, rec);
	}
	retry_later(log);
}

void lc_log_flush_failed(struct lc_log *log)
{
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	redo_undurable(log);
	spin_unlock_irqrestore(&log->lock, flags);
}

static void log_retry_work(struct work_struct *work)
{
	struct lc_log *log = container_of(to_delayed_work(work), struct lc_log, retry_work);
	unsigned long patience = msecs_to_jiffies(READ_ONCE(log->env->params.ssd_patience_ms));
	struct lc_record *rec;
	bool give_up;

	spin_lock_irq(&log->lock);
	if (!log->trouble || log->failed || log->stopped) {
		spin_unlock_irq(&log->lock);
		return;
	}
	log->retry_pause = min_t(unsigned long, log->retry_pause * 2, RETRY_LAST);
	/*
	 * No record has failed, and none waits for a FLUSH: there may be no further write or FLUSH
	 * whose success would end the trouble.
	 */
	if (!log->nr_failed && log->written_seq == log->durable_seq)
		WRITE_ONCE(log->trouble, false);
	give_up = log->trouble && time_after(jiffies, log->trouble_since + patience);
	list_for_each_entry(rec, &log->pending, list) {
		if (give_up || rec->stage != LC_RECORD_FAILED)
			continue;
		rec->stage = LC_RECORD_CLOSED;
		log->nr_failed--;
		lc_submit_again(log->submit, rec);
	}
	spin_unlock_irq(&log->lock);
	if (give_up)
		lc_health_ssd_failed(log->env->health, "the cache device fails writes or flushes");
}

void lc_log_stop(struct lc_log *log)
{
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	log->stopped = true;
	spin_unlock_irqrestore(&log->lock, flags);
	wake_up_all(&log->wait);
}

static bool all_still(struct lc_log *log)
{
	struct lc_record *rec;
	unsigned long flags;
	bool still;

	spin_lock_irqsave(&log->lock, flags);
	still = !log->nr_writes && !log->flushing;
	list_for_each_entry(rec, &log->pending, list)
		still &= rec->stage != LC_RECORD_CLOSED;
	spin_unlock_irqrestore(&log->lock, flags);
	return still;
}

void lc_log_wait_stopped(struct lc_log *log)
{
	wait_event(log->wait, all_still(log));
}

void lc_log_end_flushes(struct lc_log *log, blk_status_t status)
{
	struct lc_request *io, *next;
	unsigned long flags;
	LIST_HEAD(ios);

	spin_lock_irqsave(&log->lock, flags);
	log->ended = true;
	log->end_status = status;
	list_splice_init(&log->waiters, &ios);
	spin_unlock_irqrestore(&log->lock, flags);
	list_for_each_entry_safe(io, next, &ios, list)
		lc_request_end(io, status);
}

/* The very last access of a completion: the log may be freed right afterwards. */
static void write_over(struct lc_log *log)
{
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	if (!--log->nr_writes)
		wake_up_all(&log->wait);
	spin_unlock_irqrestore(&log->lock, flags);
}

static void log_flush_end(struct bio *bio)
{
	struct lc_log *log = bio->bi_private;
	LIST_HEAD(ios);
	LIST_HEAD(bufs);
	blk_status_t status = bio->bi_status;
	unsigned long flags;

	/* Ours until flushing is taken back. */
	bio_uninit(bio);
	spin_lock_irqsave(&log->lock, flags);
	log->nr_writes++;
	trace_lc_flush_end(log->env->dev, log->flush_seq, status);
	if (status)
		redo_undurable(log);	/* with flushing: no other FLUSH slips in (F2) */
	else if (log->flushing_gen == log->flush_gen && !log->failed && !log->stopped &&
		 log->flush_seq > log->durable_seq)
		log->durable_seq = log->flush_seq;
	log->flushing = false;
	collect_durable(log, &ios, &bufs);
	flush_start(log);
	spin_unlock_irqrestore(&log->lock, flags);
	release_durable(log, &ios, &bufs);
	write_over(log);
}

static void log_flush_work(struct work_struct *work)
{
	struct lc_log *log = container_of(work, struct lc_log, flush_work);

	bio_init(&log->flush_bio, log->env->cache, NULL, 0,
		 REQ_OP_WRITE | REQ_PREFLUSH | LC_IO_COMMIT);
	log->flush_bio.bi_private = log;
	log->flush_bio.bi_end_io = log_flush_end;
	lc_env_sent(log->env, log->env->cache, REQ_PREFLUSH, 0);
	trace_lc_flush_begin(log->env->dev, log->flush_seq);
	submit_bio(&log->flush_bio);
}

void lc_log_flush_io(struct lc_log *log, struct lc_request *io, u64 seq)
{
	blk_status_t status = BLK_STS_OK;
	unsigned long flags;
	bool done = true;

	spin_lock_irqsave(&log->lock, flags);
	if (log->failed) {
		status = BLK_STS_IOERR;
	} else if (log->ended) {
		status = log->end_status;
	} else if (seq > log->durable_seq) {
		io->target = seq;
		lc_waiters_add(&log->waiters, io);
		flush_start(log);
		done = false;
	}
	spin_unlock_irqrestore(&log->lock, flags);
	if (done)
		lc_request_end(io, status);
}

void lc_log_want_durable(struct lc_log *log, u64 seq)
{
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	if (seq > log->want_seq)
		log->want_seq = seq;
	flush_start(log);
	spin_unlock_irqrestore(&log->lock, flags);
}

void lc_log_want_buffers(struct lc_log *log)
{
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	log->want_buffers_seq = log->last_seq;
	flush_start(log);
	spin_unlock_irqrestore(&log->lock, flags);
}

static bool durable_or_failed(struct lc_log *log, u64 seq, int *ret)
{
	unsigned long flags;
	bool done;

	spin_lock_irqsave(&log->lock, flags);
	done = log->durable_seq >= seq || log->failed || log->stopped;
	*ret = log->durable_seq >= seq ? 0 : -EIO;
	spin_unlock_irqrestore(&log->lock, flags);
	return done;
}

int lc_log_wait_durable(struct lc_log *log, u64 seq)
{
	int ret;

	lc_log_want_durable(log, seq);
	wait_event(log->wait, durable_or_failed(log, seq, &ret));
	return ret;
}

static bool quiet(struct lc_log *log)
{
	unsigned long flags;
	bool ret;

	spin_lock_irqsave(&log->lock, flags);
	ret = !log->nr_writes && !log->flushing && lc_submit_idle(log->submit);
	spin_unlock_irqrestore(&log->lock, flags);
	return ret;
}

void lc_log_quiesce(struct lc_log *log)
{
	/* Either nothing is left to be written again, or it never will be. */
	do {
		cancel_delayed_work_sync(&log->retry_work);
		flush_workqueue(log->wq);
		wait_event(log->wait, quiet(log));
		/* A record that has failed just now must not be sent again either. */
	} while (cancel_delayed_work_sync(&log->retry_work) || !quiet(log));
	flush_workqueue(log->wq);
	/* If nothing has failed, the trouble is over: the next error counts as the first (S2). */
	spin_lock_irq(&log->lock);
	if (!log->nr_failed)
		WRITE_ONCE(log->trouble, false);
	spin_unlock_irq(&log->lock);
}

/* --- records ------------------------------------------------------------ */

/*
 * [lock] Raise durable_seq over the unbroken run of records that need no FLUSH (G2).
 * Return: whether it rose.
 */
static bool durable_alone(struct lc_log *log)
{
	u64 before = log->durable_seq;
	struct lc_record *rec;

	lockdep_assert_held(&log->lock);
	if (log->failed || log->stopped)	/* G5 */
		return false;
	list_for_each_entry(rec, &log->pending, list) {
		if (rec->seq != log->durable_seq + 1 || rec->stage != LC_RECORD_WRITTEN ||
		    !rec->durable_when_written)
			break;
		log->durable_seq = rec->seq;
	}
	return log->durable_seq != before;
}

/* [lock] The record is the next one: what is written from there on is one unbroken run now (G1). */
static void extend_written(struct lc_log *log, struct lc_record *rec)
{
	lockdep_assert_held(&log->lock);
	if (log->failed)
		return;
	list_for_each_entry_from(rec, &log->pending, list) {
		if (rec->stage != LC_RECORD_WRITTEN)
			break;
		log->written_seq = rec->seq;
	}
}

/* The write of a record is over.  Log and record may be gone right afterwards. */
static void record_written(struct lc_log *log, struct lc_record *rec, blk_status_t status)
{
	LIST_HEAD(ios);
	LIST_HEAD(bufs);
	unsigned long flags;
	bool risen;

	spin_lock_irqsave(&log->lock, flags);
	trace_lc_record_written(log->env->dev, rec->seq, status);
	/* A disk without FUA was flushed behind it, and perhaps that has failed (F2). */
	if (status && rec->durable_when_written)
		redo_undurable(log);
	if (status || rec->flush_gen != log->flush_gen) {
		record_failed(log, rec);
	} else {
		rec->stage = LC_RECORD_WRITTEN;
		rec->buf->unwritten--;
		if (lacks_flush(rec->buf))
			count_unflushed(log, rec->buf, 1);
		/*
		 * What a FLUSH sent now would do, not one sent with the write: the cache may
		 * have been switched on, or the device exchanged, before that got there.
		 */
		rec->durable_when_written = rec->durable_when_written ||
					    !bdev_write_cache(log->env->cache);
		/* After trouble a FLUSH shows whether it is over. */
		if (log->trouble && rec->seq > log->want_seq)
			log->want_seq = rec->seq;
	}
	if (rec->seq == log->written_seq + 1)
		extend_written(log, rec);
	risen = durable_alone(log);
	if (risen)
		collect_durable(log, &ios, &bufs);
	flush_start(log);
	spin_unlock_irqrestore(&log->lock, flags);
	if (risen)
		release_durable(log, &ios, &bufs);
	write_over(log);
}

/* [lock] May this record be made durable by FUA alone? (F4) */
static bool record_fua(const struct lc_log *log, const struct lc_record *rec)
{
	lockdep_assert_held(&log->lock);
	return rec->want_durable && !log->flushing && log->durable_seq == rec->seq - 1;
}

/* Count the write of a record as begun, unless the log is stopped: it stays in RAM then (G5). */
static bool record_begin(struct lc_log *log, struct lc_record *rec, bool one_command, bool *fua)
{
	bool may_fua = one_command && bdev_fua(log->env->cache), stopped;
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	stopped = log->stopped;
	if (stopped) {
		record_failed(log, rec);
	} else {
		log->nr_writes++;
		rec->flush_gen = log->flush_gen;
		*fua = may_fua && record_fua(log, rec);
		/* Without a volatile cache REQ_FUA is dropped on the way, see record_written(). */
		rec->durable_when_written = *fua && bdev_write_cache(log->env->cache);
	}
	spin_unlock_irqrestore(&log->lock, flags);
	return !stopped;
}

static void record_cancelled(struct lc_log *log)
{
	wake_up_all(&log->wait);
}

static const struct lc_submit_ops submit_ops = {
	.durable_seq = lc_log_durable_seq,
	.begin = record_begin,
	.cancelled = record_cancelled,
	.end = record_written,
};

/* --- life ------------------------------------------------------------------- */

struct lc_log *lc_log_create(struct lc_env *env, struct lc_submit *submit)
{
	struct lc_log *log = kzalloc(sizeof(*log), GFP_KERNEL);

	if (!log)
		return NULL;
	log->env = env;
	log->submit = submit;
	spin_lock_init(&log->lock);
	INIT_LIST_HEAD(&log->pending);
	INIT_LIST_HEAD(&log->waiters);
	init_waitqueue_head(&log->wait);
	INIT_WORK(&log->flush_work, log_flush_work);
	INIT_DELAYED_WORK(&log->retry_work, log_retry_work);
	log->wq = alloc_workqueue("lc-log", WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_UNBOUND, 0);
	if (!log->wq) {
		kfree(log);
		return NULL;
	}
	lc_submit_bind(submit, &submit_ops, log, log->wq);
	return log;
}

void lc_log_destroy(struct lc_log *log)
{
	if (!log)
		return;
	cancel_delayed_work_sync(&log->retry_work);
	destroy_workqueue(log->wq);
	kfree(log);
}

void lc_log_start(struct lc_log *log, u64 next_seq)
{
	unsigned long flags;

	/* Somebody may ask for the status. */
	spin_lock_irqsave(&log->lock, flags);
	log->first_seq = next_seq;
	log->last_seq = next_seq - 1;
	log->written_seq = log->last_seq;
	log->durable_seq = log->last_seq;
	log->want_seq = log->last_seq;
	log->want_buffers_seq = log->last_seq;
	spin_unlock_irqrestore(&log->lock, flags);
}
