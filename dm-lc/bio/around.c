// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes around the log.  See around.h.
 *
 * W is a write around the log of block b, which AR1 allows.  The cases of order:
 *
 * v, a write of b into the log that comes while W is on its way
 *	The sender allows either order: v is the newer one.  Its copy in the log is dirty until W
 *	has ended, because a copy to the HDD waits for the claim.  So AR3 leaves it, and it is
 *	copied over W.  After a crash replay has v, or, if v was not durable, nothing.
 * v, clean when W looks
 *	Above the tail replay would bring it back over W: W goes into the log.  Below the tail, or
 *	in a group, v is dropped at the end of W.  A crash drops it as well.
 * A read of b while W is on its way
 *	It gets v for as long as v is in the index, or what the HDD has.  After the end of W it
 *	gets W.
 * A read of b that promotes it
 *	Registered before W has its claim: the node is found at the end of W and dropped, whatever
 *	was read.  Afterwards: the reader finds the claim and registers nothing.  After the end of
 *	W: it reads W.
 * A group that b is logged again in (keep.h)
 *	Its node is pending or valid: it is dropped at the end of W.  After that there is no node
 *	to be replaced.
 * D, a discard of b
 *	Sent before W: W finds its claim and goes into the log, until D has ended on the HDD, too.
 *	Sent while W is on its way: the sender allows either order.
 * Another write W2 around the log of b
 *	It finds the claim of W and goes into the log, as v does.
 * The SSD fails
 *	Writes that have begun end on the HDD.  The rescue waits for their claims with those of
 *	discards.  One that is added meanwhile is of a user, as are those that go past the cache
 *	then: the sender allows either order.
 * A FLUSH of the HDD fails
 *	Data that writeback has copied may be gone with the rest: lc_doubt_flush_failed() (DB3).
 *
 * Teardown: no bio is left, so no work is queued.
 */
#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/device-mapper.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "bio/around.h"
#include "bio/flush.h"
#include "bio/stream.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/request.h"
#include "store/admit.h"
#include "store/claims.h"
#include "store/doubt.h"
#include "store/index.h"
#include "store/io.h"
#include "store/ring.h"
#include "store/stats.h"

struct lc_around {
	struct lc_cache *c;
	struct lc_flush *flush;
	struct lc_streams streams;	/* of long writes */
	atomic64_t begun;		/* writes around the log */
	atomic64_t ended;		/* so many of them have ended */
	atomic64_t flushed;		/* so many of them are durable */
	u32 failures;			/* of FLUSHes of the HDD, that users know of; READ_ONCE() */
	bool told;			/* AR6 holds from now on; READ_ONCE() */
};

/* --- when it has ended -------------------------------------------------------- */

static bool any_copy(struct lc_cache *c, u64 block, u64 last)
{
	while (block <= last && lc_index_absent(c->index, block))
		block++;
	return block <= last;
}

/* AR3 */
static void forget_copies(struct lc_cache *c, u64 block, u64 last)
{
	struct lc_mapping map;
	u32 bucket;

	for (; block <= last; block++) {
		if (lc_index_absent(c->index, block))
			continue;
		bucket = lc_index_lock(c->index, block);
		if (lc_index_lookup(c->index, bucket, block, &map) && !map.dirty && !map.lost)
			lc_index_remove(c->index, bucket, block, &map);
		lc_index_unlock(c->index, bucket);
	}
}

static void forget_work(struct work_struct *work)
{
	struct lc_request *io = container_of(work, struct lc_request, work);
	struct lc_around *around = io->owner;
	struct lc_cache *c = around->c;

	forget_copies(c, io->claim.first, io->claim.last);
	lc_claims_drop(c->claims, &io->claim);
	lc_io_end_again(lc_request_bio(io));
}

static int write_ended(struct lc_around *around, struct lc_request *io)
{
	struct lc_cache *c = around->c;

	lc_doubt_changed(&c->doubt, io->claim.first, io->claim.last);
	/* Before the bio ends: a FLUSH that comes afterwards must find it (AR4). */
	atomic64_inc(&around->ended);
	if (any_copy(c, io->claim.first, io->claim.last)) {
		io->owner = around;
		INIT_WORK(&io->work, forget_work);
		queue_work(c->env.wq, &io->work);
		return DM_ENDIO_INCOMPLETE;
	}
	lc_claims_drop(c->claims, &io->claim);
	return DM_ENDIO_DONE;
}

/* The HDD is flushed: now the log. */
static void hdd_flushed_work(struct work_struct *work)
{
	struct lc_request *io = container_of(work, struct lc_request, work);
	struct lc_around *around = io->owner;
	struct bio *bio = lc_request_bio(io);

	lc_io_renew(bio);
	lc_flush_map(around->flush, bio, false);
}

static int flush_ended(struct lc_around *around, struct lc_request *io, blk_status_t *error)
{
	s64 flushed = atomic64_read(&around->flushed), target = io->target;
	u32 failures;

	if (*error)
		lc_doubt_flush_failed(&around->c->doubt);
	failures = lc_doubt_failures(&around->c->doubt);
	WRITE_ONCE(around->failures, failures);
	if (failures != io->position)
		*error = BLK_STS_IOERR;
	if (*error)
		return DM_ENDIO_DONE;
	while (flushed < target && !atomic64_try_cmpxchg(&around->flushed, &flushed, target))
		;
	io->owner = around;
	INIT_WORK(&io->work, hdd_flushed_work);
	queue_work(around->c->env.wq, &io->work);
	return DM_ENDIO_INCOMPLETE;
}

int lc_around_end(struct lc_around *around, struct bio *bio, blk_status_t *error)
{
	struct lc_request *io = lc_bio_request(bio);

	io->around = false;
	return bio->bi_opf & REQ_PREFLUSH ? flush_ended(around, io, error) :
					    write_ended(around, io);
}

/* --- when it comes --------------------------------------------------------------- */

bool lc_around_follows(struct lc_around *around, const struct bio *bio)
{
	u32 kb = READ_ONCE(around->c->env.params.bypass_kb);
	u32 sectors = lc_stream_note(&around->streams, bio->bi_iter.bi_sector, bio_sectors(bio));

	return sectors / 2 > kb;
}

/* [bucket locked] Would replay not find this copy, if the power went now or later? (AR1) */
static bool replay_forgets(struct lc_cache *c, const struct lc_mapping *map, u64 tail)
{
	if (map->dirty || map->lost)
		return false;
	return map->use & LC_ADMIT_PROMOTED ||
	       READ_ONCE(lc_ring_segment(c->ring, map->slot)->number) < tail;
}

/* AR1 for all blocks of a claim that has its turn. */
static bool allowed(struct lc_cache *c, const struct lc_claim *claim)
{
	u64 tail = lc_ring_tail(c->ring), block;
	struct lc_mapping map;
	bool allowed = true;
	u32 bucket;

	for (block = claim->first; block <= claim->last && allowed; block++) {
		if (lc_index_absent(c->index, block))
			continue;
		bucket = lc_index_lock(c->index, block);
		allowed = !lc_index_lookup(c->index, bucket, block, &map) ||
			  replay_forgets(c, &map, tail);
		lc_index_unlock(c->index, bucket);
	}
	return allowed;
}

/* AR6.  If not, that is changed soon. */
static bool life_is_told(struct lc_around *around)
{
	struct lc_cache *c = around->c;

	if (READ_ONCE(around->told))
		return true;
	if (!lc_log_life_durable(c->log)) {
		lc_log_want_durable(c->log, lc_lanes_close_used(c->lanes, false));
		return false;
	}
	WRITE_ONCE(around->told, true);
	return true;
}

static void submit_work(struct work_struct *work)
{
	submit_bio_noacct(lc_request_bio(container_of(work, struct lc_request, work)));
}

/* Device mapper would put what map() hands back into its sender's cgroup again (AR5). */
static void send(struct lc_cache *c, struct bio *bio, struct lc_request *io)
{
	lc_io_disown(bio);
	if (lc_io_may_send(bio)) {
		lc_io_leave_plug();
		submit_bio_noacct(bio);
		return;
	}
	INIT_WORK(&io->work, submit_work);
	queue_work(c->env.wq, &io->work);
}

bool lc_around_map(struct lc_around *around, struct lc_request *io)
{
	struct lc_cache *c = around->c;
	struct bio *bio = lc_request_bio(io);
	u64 first = bio->bi_iter.bi_sector >> LC_BLOCK_SHIFT;
	u64 last = (bio_end_sector(bio) - 1) >> LC_BLOCK_SHIFT;

	if (lc_ssd_failed(&c->health) || !life_is_told(around))
		return false;
	lc_claim_init(&io->claim, LC_CLAIM_DISCARD, first, last - first + 1);
	if (!lc_claims_try(c->claims, &io->claim))
		return false;
	if (!allowed(c, &io->claim)) {
		lc_claims_drop(c->claims, &io->claim);
		return false;
	}
	atomic64_inc(&around->begun);
	lc_doubt_changed(&c->doubt, first, last);
	lc_stats_around(&c->stats, bio->bi_iter.bi_size);
	lc_stamp(&c->env.last_write);
	io->around = true;
	bio_set_dev(bio, c->env.backing);
	bio->bi_iter.bi_sector = lc_place_sector(&c->env.place, bio->bi_iter.bi_sector);
	send(c, bio, io);
	return true;
}

/* Nothing is to be flushed.  If no write has begun either, what has failed took none away. */
static void look_at_failures(struct lc_around *around)
{
	u32 failures = lc_doubt_failures(&around->c->doubt);

	if (READ_ONCE(around->failures) == failures)
		return;
	/* A write that begins after this was looked at is not touched by these failures. */
	smp_mb();
	if (atomic64_read(&around->begun) <= atomic64_read(&around->flushed))
		WRITE_ONCE(around->failures, failures);
}

bool lc_around_map_flush(struct lc_around *around, struct bio *bio)
{
	struct lc_request *io = lc_bio_request(bio);

	/* Those that have ended before this FLUSH came are counted by now. */
	io->target = atomic64_read(&around->ended);
	if (atomic64_read(&around->flushed) >= (s64)io->target) {
		look_at_failures(around);
		return false;
	}
	io->position = READ_ONCE(around->failures);
	io->around = true;
	bio_set_dev(bio, around->c->env.backing);
	return true;
}

/* --- life ---------------------------------------------------------------------- */

struct lc_around *lc_around_create(struct lc_cache *c, struct lc_flush *flush)
{
	struct lc_around *around = kzalloc(sizeof(*around), GFP_KERNEL);

	if (!around)
		return NULL;
	around->c = c;
	around->flush = flush;
	lc_stream_init(&around->streams);
	return around;
}

void lc_around_destroy(struct lc_around *around)
{
	kfree(around);
}
