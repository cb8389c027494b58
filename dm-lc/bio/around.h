/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes that go around the log, straight to the HDD, while the SSD works.
 *
 * A long sequential write gains nothing from the SSD: the HDD is as fast, and everything would be
 * written twice.  With option bypass_kb, what follows the first so many KiB of a sequential stream
 * goes around the log, if replay cannot bring an older copy of it back.  If it could, or if
 * anything else is in the way, the write goes into the log as all others do.  So nothing ever waits
 * for a write around the log but a copy of the same blocks, and a FLUSH.
 *
 * Invariants
 *  AR1 Replay, whenever the power goes, finds no copy of a block that a write goes around the log
 *      for, but one that was written later.  The block is absent from the index, or its copy is
 *      clean and either below the durable tail or in a group, which replay does not see.  A block
 *      that is absent is in no record that replay would use (discard.c).
 *  AR2 From before AR1 is looked at until the write has ended, its blocks are claimed, with no
 *      other claim beside it (CL5).  So no copy of them is on its way to the HDD, nor begins, and
 *      no discard of them that was sent before is still to come there.  A write of the blocks that
 *      comes meanwhile goes into the log.  It is the newer one, and stays dirty until this one
 *      has ended.
 *  AR3 When the HDD has ended the write, well or not, clean and pending copies of its blocks leave
 *      the index before its bio ends and before the claim goes.  A dirty copy is newer and stays.
 *  AR4 A FLUSH ends well only if a FLUSH of the HDD has ended well that was sent after the end of
 *      each write around the log that had ended before it came.  A start flushes the HDD, too: an
 *      earlier life may have left some in its cache.  A FLUSH of writeback, or of another user,
 *      that fails meanwhile may have dropped those writes (DB3).  So a FLUSH of a user ends with an
 *      error if any has failed that no FLUSH has told of which came afterwards.  What fails while
 *      no such write is on its way or volatile does not count.
 *  AR5 The room allocates nothing, and holds no lock while a bio is on its way.  A write around the
 *      log that has a claim is not held back on account of its sender, as in S-g.
 *  AR6 No write goes around the log before a record of this life is durable, or the superblock
 *      says that the mark has reached it (lc_super_life_told()).  So an old copy of the HDD, which
 *      lacks such writes, is told by its mark (T2).
 */
#ifndef LC_AROUND_H
#define LC_AROUND_H

#include <linux/bio.h>
#include <linux/blk_types.h>
#include <linux/types.h>

#include "log/cache.h"

struct lc_around;
struct lc_flush;
struct lc_promote;
struct lc_request;

/* What becomes of a write that the HDD has failed. */
struct lc_around_failed {
	/* Write it into the log: io->iter is all of it, and it has ended once.  Process context. */
	void (*log)(void *owner, struct lc_request *io);
	void *owner;
};

/*
 * Shorter writes always go into the log.  What they cost there is a seek that the HDD is spared,
 * and so no write of a page pays for this room.
 */
#define LC_AROUND_LEAST		64u	/* sectors */

/* @c and @flush outlive it.  May sleep.  Return: the room or NULL. */
struct lc_around *lc_around_create(struct lc_cache *c, struct lc_flush *flush);
/* Once, before the first bio. */
void lc_around_attach(struct lc_around *around, struct lc_around_failed failed);
/* Who keeps what is written, with cache_mode writethrough.  Once, before the first bio. */
void lc_around_keep(struct lc_around *around, struct lc_promote *promote);
/* No bio is left.  @around or NULL.  May sleep. */
void lc_around_destroy(struct lc_around *around);

/**
 * lc_around_wants() - is a write long enough to be looked at?
 * @c: the cache
 * @bio: a write
 *
 * Any context.  All that other writes pay.  A commit is short, and durable sooner in the log.
 */
static inline bool lc_around_wants(const struct lc_cache *c, const struct bio *bio)
{
	if (lc_writes_around(c))
		return true;
	return bio_sectors(bio) >= LC_AROUND_LEAST && READ_ONCE(c->env.params.bypass_kb) &&
	       !(bio->bi_opf & (REQ_FUA | REQ_META | REQ_PRIO));
}

/**
 * lc_around_follows() - is a write far enough in a sequential stream to go around the log?
 * @around: the room
 * @bio: a write that lc_around_wants()
 *
 * Any context.  Once for each of them: the streams are told of it.
 */
bool lc_around_follows(struct lc_around *around, const struct bio *bio);

/*
 * Cut a write, to which device mapper has split nothing yet, to what may go around the log at once.
 * From map().
 */
void lc_around_cut(struct bio *bio);

/**
 * lc_around_claim() - may a write go around the log now?
 * @around: the room
 * @io: the write; io->iter is what is left of it, and the rest is in the log
 *
 * Process context, mode rw; does not sleep.  Return: whether its blocks are claimed (AR1, AR2);
 * lc_around_send() must follow then.
 */
bool lc_around_claim(struct lc_around *around, struct lc_request *io);

/**
 * lc_around_send() - send a write that lc_around_claim() has let
 * @around: the room
 * @io: the write, which nobody else refers to; io->work is not in use
 * @worker: a worker of the log's calls, which must not wait for the HDD
 *
 * Process context.  Without @worker, sleeps only as submit_bio() does, and not with REQ_NOWAIT.
 * The bio may have ended when this returns.
 */
void lc_around_send(struct lc_around *around, struct lc_request *io, bool worker);

/**
 * lc_around_map_flush() - does the HDD have to be flushed, too?
 * @around: the room
 * @bio: an empty FLUSH, device mapper's clone
 *
 * From map(), mode rw; does not sleep.  If so, the bio is for the HDD, and goes to lc_flush_map()
 * when it has ended there (AR4).  Return: whether that is so.
 */
bool lc_around_map_flush(struct lc_around *around, struct bio *bio);

/**
 * lc_around_end() - end_io of a bio for which io->around is set
 * @around: the room
 * @bio: device mapper's clone
 * @error: its status; may be changed
 *
 * Completion context.  Return: as lc_map_end().
 */
int lc_around_end(struct lc_around *around, struct bio *bio, blk_status_t *error);

/**
 * lc_around_flush() - make writes around the log durable that have ended
 * @around: the room
 *
 * Process context; may sleep.  Return: 0 or a negative errno, which the kernel log has, too.
 */
int lc_around_flush(struct lc_around *around);

#endif /* LC_AROUND_H */
