// SPDX-License-Identifier: GPL-2.0-only
/* The beginning and the end of a life.  See start.h. */
#include "format/pairing.h"
#include "life/checkpoint.h"
#include "life/recovery.h"
#include "life/start.h"
#include "log/alloc.h"
#include "log/cache.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/pool.h"
#include "log/refill.h"
#include "store/doubt.h"
#include "store/fingerprint.h"
#include "store/foreign.h"
#include "store/index.h"
#include "store/mark.h"
#include "store/ring.h"
#include "store/super.h"
#include "store/warm.h"

#define MOST_TOUCHED	16384u		/* ranges of blocks that change during the scan */

/*
 * WS5.  Each segment that was opened and has no durable record holds a buffer, or has no record at
 * all: at the end of each round a lane may have one of these.
 */
static u32 most_ahead(const struct lc_cache *c, u32 buffers)
{
	u32 share = c->nr_lanes > 1 ? 1 + c->nr_lanes : 1;
	u32 ready = min_t(u64, max(buffers / 4, c->nr_lanes), LC_MOST_READY * c->nr_lanes);

	return min_t(u64, c->sb.geo.nr_segments,
		     (u64)buffers * share + ready + 2 * c->nr_lanes + 1);
}

/* Of a life that begins after a crash: which segments are to be scanned (WS3, WS5)? */
static void plan_scan(struct lc_cache *c, u64 next_segment)
{
	u64 handed_out = next_segment + c->sb.warm_ahead, nr = c->sb.geo.nr_segments;
	struct lc_warm *warm = &c->warm;
	unsigned int noio;
	bool begun;

	warm->lowest = max(c->sb.warm_segment, handed_out > nr ? handed_out - nr : 1);
	if (!c->sb.warm_segment || warm->lowest >= next_segment)
		return;
	warm->unsure = true;
	warm->end = next_segment;
	warm->tail_seq = c->sb.tail_seq;
	noio = lc_noio_save();
	begun = READ_ONCE(c->env.params.warm) && !lc_warm_begin(warm, MOST_TOUCHED);
	lc_noio_restore(noio);
	if (begun)
		return;
	warm->end = 0;
	lc_warm_raise(warm, next_segment, true);
}

/* Before the epoch is opened. */
static void settle_warm(struct lc_cache *c, bool crashed, u64 next_segment)
{
	u32 ahead = most_ahead(c, max(c->env.params.buffers, READ_ONCE(c->pool->nr)));

	if (crashed)
		plan_scan(c, next_segment);
	if (c->sb.warm_segment)
		ahead = max(ahead, c->sb.warm_ahead);
	c->warm.from = c->sb.warm_segment ?: next_segment;
	lc_super_settle_warm(c->super, c->warm.from, ahead);
}

int lc_start_more_buffers(struct lc_cache *c, u32 buffers)
{
	int ret;

	/* In other modes nothing is handed out, and the superblock may be another life's (HB2). */
	if (buffers <= READ_ONCE(c->pool->nr) || lc_mode(&c->health) != LC_MODE_RW ||
	    lc_ssd_failed(&c->health))
		return 0;
	ret = lc_super_set_ahead(c->super, most_ahead(c, buffers));
	if (ret)
		lc_warn(&c->env, "the superblock cannot be written, error %d: no more buffers than before",
			ret);
	return ret;
}

static int load_clean(struct lc_cache *c, u64 *next_seq, u64 *next_segment, bool *crashed)
{
	int ret;

	lc_ring_start(c->ring, c->sb.tail_segment, c->sb.tail_seq, c->sb.head_segment);
	ret = lc_recovery_check_clean(c);
	if (ret)
		return ret;
	ret = lc_fingerprint_check(&c->env);
	if (ret)
		return ret;
	ret = lc_checkpoint_load(c);
	if (ret == -ENOMEM)
		return ret;
	if (ret) {
		/* Nothing is lost: the log from the tail on says the same. */
		lc_warn(&c->env, "checkpoint unusable, replaying the log instead");
		lc_index_clear(c->index);
		lc_ring_forget_boundaries(c->ring);
		ret = lc_recovery_run(c, next_seq, next_segment);
		*crashed = true;
		if (!ret && *next_seq != c->sb.next_seq) {
			/* All of it was durable: this is damage, no torn tail (L4). */
			lc_err(&c->env, "the log ends at record %llu but was stopped cleanly at %llu: see lc-check --repair",
			       *next_seq - 1, c->sb.next_seq - 1);
			ret = -EUCLEAN;
		}
		return ret;
	}
	*next_seq = c->sb.next_seq;
	*next_segment = c->sb.head_segment;
	/* A log of one lane, which goes on with several: its headers tell the boundaries. */
	if (c->nr_lanes > 1 && !(c->sb.incompat & LC_INCOMPAT_LANES))
		return lc_recovery_read_boundaries(c);
	return 0;
}

static int load_log(struct lc_cache *c, u64 *next_seq, u64 *next_segment)
{
	int ret = 0;

	/* A start that the power cut before it wrote anything else: the stop before it counts. */
	if (lc_pairing_unwritten(&c->sb, lc_mark_epoch(c->mark)))
		ret = lc_fingerprint_check(&c->env);
	return ret ? ret : lc_recovery_run(c, next_seq, next_segment);
}

/*
 * What an earlier life wrote around the log may still be in the HDD's cache, after a warm reboot
 * (AR4).  The mark was written with a FLUSH.
 */
static int flush_hdd(struct lc_cache *c)
{
	int ret = 0;

	if (c->sb.mark_offset != LC_NO_MARK)
		lc_doubt_marked(&c->doubt);
	else
		ret = lc_doubt_flush(&c->doubt, &c->env);
	if (ret)
		lc_err(&c->env, "the backing device failed a FLUSH, error %d: see its messages",
		       ret);
	return ret;
}

int lc_start(struct lc_cache *c)
{
	u64 next_seq, next_segment;
	bool crashed;
	int ret;

	ret = lc_mark_check_pair(c->mark);
	if (!ret)
		ret = lc_foreign_check(&c->env);
	if (ret)
		return ret;
	crashed = !(c->sb.flags & LC_SB_CLEAN);
	if (crashed)
		ret = load_log(c, &next_seq, &next_segment);
	else
		ret = load_clean(c, &next_seq, &next_segment, &crashed);
	if (ret)
		return ret;
	settle_warm(c, crashed, next_segment);
	lc_super_settle_tail(c->super, next_seq, next_segment);
	lc_ring_start(c->ring, c->sb.tail_segment, c->sb.tail_seq, next_segment);
	lc_alloc_start(c->alloc, next_segment, next_seq);
	lc_log_start(c->log, next_seq);
	ret = lc_super_begin_epoch(c->super, c->mark, c->nr_lanes, next_seq, next_segment);
	if (ret)
		return ret;
	ret = flush_hdd(c);
	if (ret)
		return ret;
	lc_info(&c->env, "epoch %llu: %llu blocks cached, %llu dirty", c->sb.epoch,
		lc_index_cached(c->index), lc_index_dirty(c->index));
	return 0;
}

void lc_stop_clean(struct lc_cache *c)
{
	struct lc_fingerprint print;
	u64 entries;
	int ret;

	/* A late write must not be acknowledged any more. */
	lc_health_end(&c->health);
	/* A fingerprint of what is gone after a power cut would refuse the next start (F8). */
	ret = lc_doubt_flush(&c->doubt, &c->env);
	if (!ret && lc_doubt_any(&c->doubt))
		ret = -EIO;
	if (!ret)
		ret = lc_fingerprint_take(&c->env, &print);
	if (!ret)
		ret = lc_checkpoint_write(c, &entries);
	/*
	 * The checkpoint has neither what the index does not know (WS4), nor promoted copies of
	 * what the HDD may have lost.
	 */
	if (!ret && (lc_warm_unsure(&c->warm) || lc_doubt_failures(&c->doubt)))
		lc_super_note_warm(c->super, lc_lanes_used(c->lanes));
	if (!ret)
		ret = lc_super_end_clean(c->super, lc_log_last_seq(c->log) + 1,
					 lc_lanes_used(c->lanes), entries, &print,
					 READ_ONCE(c->promoted));
	if (ret)
		lc_warn(&c->env, "no clean stop, error %d: the next start replays the log", ret);
}
