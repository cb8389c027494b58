// SPDX-License-Identifier: GPL-2.0-only
/*
 * FLUSH and FUA.  See flush.h.
 */
#include <linux/device-mapper.h>
#include <linux/jiffies.h>
#include <linux/llist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "bio/flush.h"
#include "log/cache.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/request.h"
#include "store/io.h"

#define COMMIT_TICKS	2	/* writes that meet may wait for a worker */

struct lc_flush {
	struct lc_cache *c;
	struct delayed_work idle_work;
	u64 idle_seen;			/* lc_lanes_activity() at the last tick; idle_work only */

	/* FUA writes that met in a worker, all of whose data is in a lane: commit_later() */
	struct workqueue_struct *commit_wq;
	struct work_struct commit_work;
	struct delayed_work commit_late;
	/* Not in a line with what every write reads: each FLUSH writes this. */
	struct llist_head commits ____cacheline_aligned_in_smp;
	atomic_t nr_flushes;		/* since the last FUA write in a worker; a hint */
};

/* --- FUA writes that meet ------------------------------------------------ */

/*
 * Device mapper sends all writes with PREFLUSH and FUA from one worker, one after the other.  If
 * more come, the record stays open until that worker is done with them: commit_work is queued on
 * the same pool of workers on the same CPU, which starts it when that worker ends or sleeps.  So
 * all writes that meet there share one record.  The worker may take long: commit_late bounds the
 * wait.
 */

void lc_flush_commit(struct lc_flush *flush)
{
	struct llist_node *ios = llist_reverse_order(llist_del_all(&flush->commits));
	struct lc_request *io, *next;
	u64 seq;

	/* The other work has taken them; the volume may be suspended by now. */
	if (!ios)
		return;
	seq = lc_lanes_close_all(flush->c->lanes, true);
	llist_for_each_entry_safe(io, next, ios, commit)
		lc_log_flush_io(flush->c->log, io, seq);
}

static void commit_work(struct work_struct *work)
{
	lc_flush_commit(container_of(work, struct lc_flush, commit_work));
}

static void commit_late(struct work_struct *work)
{
	lc_flush_commit(container_of(to_delayed_work(work), struct lc_flush, commit_late));
}

/*
 * May the bio wait for others?  Only in a worker that is bound to its CPU, as commit_work's
 * is.  With a lone writer there is one FLUSH before each write.
 */
static bool others_come(struct lc_flush *flush)
{
	return current->flags & PF_WQ_WORKER && is_percpu_thread() &&
	       (atomic_xchg(&flush->nr_flushes, 0) > 1 || !llist_empty(&flush->commits));
}

/* The bio ends when its data is durable.  @batch: the caller commits it soon. */
static void commit_later(struct lc_flush *flush, struct lc_request *io, bool batch)
{
	if (!llist_add(&io->commit, &flush->commits))
		return;
	if (!batch)
		queue_work(flush->commit_wq, &flush->commit_work);
	queue_delayed_work(flush->c->env.wq, &flush->commit_late, COMMIT_TICKS);
}

/* End the bio when all that was completed so far is durable. */
static void flush_io(struct lc_flush *flush, struct lc_request *io, bool direct)
{
	u64 seq;

	direct = direct && lc_io_may_send(lc_request_bio(io));
	if (direct)
		lc_io_leave_plug();
	if (lc_request_bio(io)->bi_opf & REQ_FUA)
		seq = lc_lanes_close_all(flush->c->lanes, direct);
	else
		seq = lc_lanes_close_for_flush(flush->c->lanes, direct);
	lc_log_flush_io(flush->c->log, io, seq);
}

void lc_flush_write(struct lc_flush *flush, struct lc_request *io, bool batch)
{
	if (batch || others_come(flush))
		commit_later(flush, io, batch);
	else
		flush_io(flush, io, true);
}

int lc_flush_map(struct lc_flush *flush, struct bio *bio, bool alone)
{
	atomic_inc(&flush->nr_flushes);
	flush_io(flush, lc_bio_request(bio), alone);
	return DM_MAPIO_SUBMITTED;
}

/* --- idle ------------------------------------------------------------------ */

/* Nothing came for a while: do not sit on data that is not durable. */
static void idle_work(struct work_struct *work)
{
	struct lc_flush *flush = container_of(to_delayed_work(work), struct lc_flush, idle_work);
	struct lc_cache *c = flush->c;
	u32 ms = READ_ONCE(c->env.params.idle_seal_ms);
	u64 mark = lc_lanes_activity(c->lanes);

	if (ms && mark == flush->idle_seen)
		lc_log_want_durable(c->log, lc_lanes_close_used(c->lanes, false));
	flush->idle_seen = mark;
	queue_delayed_work(c->env.wq, &flush->idle_work,
			   msecs_to_jiffies(ms ? ms : MSEC_PER_SEC));
}

/* --- life ------------------------------------------------------------------ */

void lc_flush_resume(struct lc_flush *flush)
{
	queue_delayed_work(flush->c->env.wq, &flush->idle_work, HZ);
}

void lc_flush_quiesce(struct lc_flush *flush)
{
	cancel_delayed_work_sync(&flush->idle_work);
}

struct lc_flush *lc_flush_create(struct lc_cache *c)
{
	struct lc_flush *flush = kzalloc(sizeof(*flush), GFP_KERNEL);

	if (!flush)
		return NULL;
	flush->c = c;
	init_llist_head(&flush->commits);
	INIT_WORK(&flush->commit_work, commit_work);
	INIT_DELAYED_WORK(&flush->commit_late, commit_late);
	INIT_DELAYED_WORK(&flush->idle_work, idle_work);
	/* As device mapper's workqueue, so that both have the same pool of workers: see above. */
	flush->commit_wq = alloc_workqueue("lc-commit", WQ_MEM_RECLAIM | WQ_PERCPU, 0);
	if (flush->commit_wq)
		return flush;
	kfree(flush);
	return NULL;
}

void lc_flush_destroy(struct lc_flush *flush)
{
	if (!flush)
		return;
	/* No bio is left that they could find. */
	cancel_delayed_work_sync(&flush->commit_late);
	destroy_workqueue(flush->commit_wq);
	kfree(flush);
}
