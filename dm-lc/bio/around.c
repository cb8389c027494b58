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
 *	was read.  Afterwards: the reader finds the claim and forgets what it has registered.
 *	After the end of W: it reads W.
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
#include "bio/promote.h"
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
#include "store/super.h"

#define MOST_BLOCKS	4096u	/* longer bios, which few senders have, go into the log */
#define LOOK_BLOCKS	256u	/* so many are looked at in completion context */

struct lc_around {
	struct lc_cache *c;
	struct lc_flush *flush;
	struct lc_promote *promote;	/* constant */
	struct lc_around_failed failed;
	struct lc_streams streams;	/* of long writes */
	/* How many have begun, and are durable, is in struct lc_cache. */
	atomic64_t ended;		/* so many of them have ended */
	atomic64_t known;		/* FLUSHes of the HDD that failed, as far as users know */
	bool awaited;			/* a claim could not be had; READ_ONCE() */
	bool told;			/* AR6 holds from now on; READ_ONCE() */
	/* Sends what a task may not send.  Workers wait for the HDD, which the log's must not. */
	struct workqueue_struct *wq;
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
		cond_resched();
	}
}

/* Parked writes may wait for the claim.  One that is missed here is looked at next tick (MO3). */
static void drop_claim(struct lc_around *around, struct lc_request *io)
{
	struct lc_cache *c = around->c;

	lc_claims_drop(c->claims, &io->claim);
	if (!READ_ONCE(around->awaited) || !READ_ONCE(c->closed))
		return;
	WRITE_ONCE(around->awaited, false);
	lc_kick(&c->env.unpark);
}

static void forget_work(struct work_struct *work)
{
	struct lc_request *io = container_of(work, struct lc_request, work);
	struct lc_around *around = io->owner;
	struct lc_cache *c = around->c;
	struct bio *bio = lc_request_bio(io);
	bool rest = io->around == LC_AROUND_REST;

	io->around = LC_AROUND_NOTHING;
	forget_copies(c, io->claim.first, io->claim.last);
	drop_claim(around, io);
	if (!bio->bi_status && rest) {
		lc_io_renew(bio);
		lc_flush_write(around->flush, io, false);
		return;
	}
	if (!bio->bi_status || bio->bi_status == BLK_STS_AGAIN || READ_ONCE(c->closed)) {
		lc_io_end_again(bio);
		return;
	}
	/* The HDD may have written any part of it.  The log has all of it, and is the newer one. */
	bio->bi_iter = io->iter;
	bio->bi_status = BLK_STS_OK;
	lc_io_renew(bio);
	around->failed.log(around->failed.owner, io);
}

static int write_ended(struct lc_around *around, struct lc_request *io, blk_status_t error)
{
	struct bio *bio = lc_request_bio(io);
	struct lc_cache *c = around->c;

	lc_doubt_changed(&c->doubt, io->claim.first, io->claim.last);
	/* A disk without FUA was flushed, perhaps in vain (DB3).  promote.c counts its own. */
	if (error && io->around != LC_AROUND_THROUGH)
		lc_doubt_fua_failed(&c->doubt, bio->bi_opf);
	/* Or the FLUSH of somebody else has failed before that one, and dropped the write (DB3). */
	if (!error && bio->bi_opf & REQ_FUA && lc_doubt_failures(&c->doubt) != io->failures) {
		error = BLK_STS_IOERR;
		bio->bi_status = error;
	}
	/* Before the bio ends: a FLUSH that comes afterwards must find it (AR4). */
	atomic64_inc(&around->ended);
	if (error || io->around == LC_AROUND_REST ||
	    io->claim.last - io->claim.first >= LOOK_BLOCKS ||
	    (io->around != LC_AROUND_THROUGH && any_copy(c, io->claim.first, io->claim.last))) {
		io->owner = around;
		INIT_WORK(&io->work, forget_work);
		queue_work(c->env.wq, &io->work);
		return DM_ENDIO_INCOMPLETE;
	}
	io->around = LC_AROUND_NOTHING;
	drop_claim(around, io);
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

/* Of two that end at the same time the higher number counts. */
static void users_know(struct lc_around *around, u32 failures)
{
	s64 known = atomic64_read(&around->known);

	while ((int)(failures - (u32)known) > 0 &&
	       !atomic64_try_cmpxchg(&around->known, &known, failures))
		;
}

/* A FLUSH that begin() was told of has ended on the HDD.  Return: its status, or an error (DB3). */
static blk_status_t flush_result(struct lc_around *around, const struct lc_hdd_flush *hdd,
				 blk_status_t error)
{
	atomic64_t *durable = &around->c->around_flushed;
	s64 flushed = atomic64_read(durable);
	u32 failures;

	if (error)
		lc_doubt_flush_failed(&around->c->doubt);
	failures = lc_doubt_failures(&around->c->doubt);
	/*
	 * What failed after this one had come, those who come later must hear of; but as on a bare
	 * disk, of the FLUSH of a user only its sender does.
	 */
	users_know(around, error && failures == hdd->seen + 1 ? failures : hdd->seen);
	if (error || failures != hdd->known)
		return BLK_STS_IOERR;
	while (flushed < hdd->ended &&
	       !atomic64_try_cmpxchg(durable, &flushed, hdd->ended))
		;
	return BLK_STS_OK;
}

static int flush_ended(struct lc_around *around, struct lc_request *io, blk_status_t *error)
{
	io->around = LC_AROUND_NOTHING;
	*error = flush_result(around, &io->hdd, *error);
	if (*error)
		return DM_ENDIO_DONE;
	io->owner = around;
	INIT_WORK(&io->work, hdd_flushed_work);
	queue_work(around->c->env.wq, &io->work);
	return DM_ENDIO_INCOMPLETE;
}

int lc_around_end(struct lc_around *around, struct bio *bio, blk_status_t *error)
{
	struct lc_request *io = lc_bio_request(bio);
	bool flush = io->around == LC_AROUND_FLUSH;

	return flush ? flush_ended(around, io, error) : write_ended(around, io, *error);
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

/* Writeback is woken when the refill worker has run. */
static void want_raise(struct lc_cache *c)
{
	if (lc_warm_raise(&c->warm, LC_WARM_NEXT, false))
		lc_kick(&c->env.refill);
}

/* [bucket locked] Would a scan after a crash not believe this copy (WS3)?  If so, not for long. */
static bool scan_forgets(struct lc_cache *c, const struct lc_mapping *map)
{
	if (READ_ONCE(lc_ring_segment(c->ring, map->slot)->number) < READ_ONCE(c->warm.from))
		return true;
	want_raise(c);
	return false;
}

/*
 * Does the index know all copies that are believed (WS4)?  If not, that is changed soon.  If so,
 * the scan that is under way brings none of these blocks back from now on.
 */
static bool scan_knows(struct lc_cache *c, const struct lc_claim *claim)
{
	/* Where nothing is believed, it does not matter. */
	if (lc_warm_unsure(&c->warm) && READ_ONCE(c->warm.from) != LC_WARM_NOTHING) {
		want_raise(c);
		return false;
	}
	lc_warm_touch(&c->warm, claim->first, claim->last);
	return true;
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
			  (replay_forgets(c, &map, tail) && scan_forgets(c, &map));
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
	if (!lc_super_life_told(c->super) && !lc_log_life_durable(c->log)) {
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
static void send(struct lc_around *around, struct bio *bio, struct lc_request *io, bool worker)
{
	lc_io_disown(bio);
	if (!worker && lc_io_may_send(bio)) {
		lc_io_leave_plug();
		submit_bio_noacct(bio);
		return;
	}
	INIT_WORK(&io->work, submit_work);
	queue_work(around->wq, &io->work);
}

/* If no write is on its way or volatile, what has failed took none away. */
static void look_at_failures(struct lc_around *around)
{
	u32 failures = lc_doubt_failures(&around->c->doubt);

	if ((u32)atomic64_read(&around->known) == failures)
		return;
	/* A write that begins after this was looked at is not touched by these failures. */
	smp_mb();
	if (atomic64_read(&around->c->around_begun) <= atomic64_read(&around->c->around_flushed))
		users_know(around, failures);
}

void lc_around_cut(struct bio *bio)
{
	u64 first = bio->bi_iter.bi_sector >> LC_BLOCK_SHIFT;
	u64 end = (first + MOST_BLOCKS) << LC_BLOCK_SHIFT;

	if (bio_end_sector(bio) > end)
		dm_accept_partial_bio(bio, end - bio->bi_iter.bi_sector);
}

bool lc_around_claim(struct lc_around *around, struct lc_request *io)
{
	struct lc_cache *c = around->c;
	u64 first = io->iter.bi_sector >> LC_BLOCK_SHIFT;
	u64 last = (io->iter.bi_sector + (io->iter.bi_size >> SECTOR_SHIFT) - 1) >> LC_BLOCK_SHIFT;

	/* A longer one that was cut by nobody began before the log was closed. */
	if (last - first >= MOST_BLOCKS && !READ_ONCE(c->closed))
		return false;
	if (lc_ssd_failed(&c->health) || !life_is_told(around))
		return false;
	lc_claim_init(&io->claim, LC_CLAIM_DISCARD, first, last - first + 1);
	if (!lc_claims_try(c->claims, &io->claim)) {
		WRITE_ONCE(around->awaited, true);
		return false;
	}
	if (scan_knows(c, &io->claim) && allowed(c, &io->claim) &&
	    (!lc_warm_unsure_now(&c->warm) || READ_ONCE(c->warm.from) == LC_WARM_NOTHING))
		return true;
	lc_claims_drop(c->claims, &io->claim);
	if (READ_ONCE(c->closed))
		WRITE_ONCE(c->in_the_way, true);
	return false;
}

/* Return: whether the SSD gets it, too.  Then promote.c sends it. */
static bool through(struct lc_around *around, struct lc_request *io, bool worker)
{
	struct bio *bio = lc_request_bio(io);

	if (READ_ONCE(around->c->env.params.cache_mode) != LC_WRITETHROUGH || io->logged)
		return false;
	/* Before it is sent, which may end it. */
	io->around = LC_AROUND_THROUGH;
	if (lc_promote_write(around->promote, bio,
			     worker || !lc_io_may_send(bio) ? around->wq : NULL))
		return true;
	io->around = LC_AROUND_WRITE;
	return false;
}

void lc_around_send(struct lc_around *around, struct lc_request *io, bool worker)
{
	struct lc_cache *c = around->c;
	struct bio *bio = lc_request_bio(io);

	look_at_failures(around);
	io->failures = lc_doubt_failures(&c->doubt);
	atomic64_inc(&c->around_begun);
	lc_doubt_changed(&c->doubt, io->claim.first, io->claim.last);
	lc_stats_around(&c->stats, io->iter.bi_size);
	lc_stamp(&c->env.last_write);
	io->logged |= io->iter.bi_size != bio->bi_iter.bi_size;
	io->around = bio->bi_opf & REQ_FUA && io->logged ? LC_AROUND_REST : LC_AROUND_WRITE;
	/* It was parked, although it could have been refused. */
	if (worker)
		bio->bi_opf &= ~REQ_NOWAIT;
	if (through(around, io, worker))
		return;
	bio->bi_iter = io->iter;
	bio_set_dev(bio, c->env.backing);
	bio->bi_iter.bi_sector = lc_place_sector(&c->env.place, bio->bi_iter.bi_sector);
	send(around, bio, io, worker);
}

/*
 * A FLUSH comes.  Return: whether the HDD has to be flushed.  The writes that have ended before are
 * counted by now.
 */
static bool begin(struct lc_around *around, struct lc_hdd_flush *hdd)
{
	hdd->ended = atomic64_read(&around->ended);
	if (atomic64_read(&around->c->around_flushed) >= hdd->ended) {
		look_at_failures(around);
		return false;
	}
	hdd->known = atomic64_read(&around->known);
	hdd->seen = lc_doubt_failures(&around->c->doubt);
	return true;
}

bool lc_around_map_flush(struct lc_around *around, struct bio *bio)
{
	struct lc_request *io = lc_bio_request(bio);

	if (!begin(around, &io->hdd))
		return false;
	io->around = LC_AROUND_FLUSH;
	bio_set_dev(bio, around->c->env.backing);
	return true;
}

int lc_around_flush(struct lc_around *around)
{
	struct lc_env *env = &around->c->env;
	struct lc_hdd_flush hdd;
	int ret;

	if (!begin(around, &hdd))
		return 0;
	ret = lc_io_flush(env, env->backing);
	ret = blk_status_to_errno(flush_result(around, &hdd, errno_to_blk_status(ret)));
	if (ret)
		lc_err(env, "the backing device failed a FLUSH, error %d: see its messages", ret);
	return ret;
}

/* --- life ---------------------------------------------------------------------- */

void lc_around_attach(struct lc_around *around, struct lc_around_failed failed)
{
	around->failed = failed;
}

void lc_around_keep(struct lc_around *around, struct lc_promote *promote)
{
	around->promote = promote;
}

struct lc_around *lc_around_create(struct lc_cache *c, struct lc_flush *flush)
{
	struct lc_around *around = kzalloc(sizeof(*around), GFP_KERNEL);

	if (!around)
		return NULL;
	around->c = c;
	around->flush = flush;
	lc_stream_init(&around->streams);
	around->wq = alloc_workqueue("lc-around", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (around->wq)
		return around;
	kfree(around);
	return NULL;
}

void lc_around_destroy(struct lc_around *around)
{
	if (!around)
		return;
	destroy_workqueue(around->wq);
	kfree(around);
}
