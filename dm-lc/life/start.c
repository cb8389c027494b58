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
#include "store/doubt.h"
#include "store/fingerprint.h"
#include "store/foreign.h"
#include "store/index.h"
#include "store/mark.h"
#include "store/ring.h"
#include "store/super.h"

static int load_clean(struct lc_cache *c, u64 *next_seq, u64 *next_segment)
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
	int ret;

	ret = lc_mark_check_pair(c->mark);
	if (!ret)
		ret = lc_foreign_check(&c->env);
	if (ret)
		return ret;
	if (c->sb.flags & LC_SB_CLEAN)
		ret = load_clean(c, &next_seq, &next_segment);
	else
		ret = load_log(c, &next_seq, &next_segment);
	if (ret)
		return ret;
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
	if (!ret)
		ret = lc_super_end_clean(c->super, lc_log_last_seq(c->log) + 1,
					 lc_lanes_used(c->lanes), entries, &print,
					 READ_ONCE(c->promoted));
	if (ret)
		lc_warn(&c->env, "no clean stop, error %d: the next start replays the log", ret);
}
