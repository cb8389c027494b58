/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * FLUSH and FUA bios: group commit, and the wait until all that was completed before is durable.
 *
 * FUA writes that meet in a worker of device mapper share one record.  The log decides when a
 * sequence number is durable (log.h).  Data that nobody asks to be durable becomes so after
 * idle_seal_ms without a write.
 */
#ifndef LC_FLUSH_H
#define LC_FLUSH_H

#include <linux/types.h>

struct bio;
struct lc_cache;
struct lc_flush;
struct lc_request;

/* @c: set up to the log.  May sleep.  Return: the flush state or NULL. */
struct lc_flush *lc_flush_create(struct lc_cache *c);
/*
 * No bio is left, nobody calls lc_flush_commit() any more, and lc_flush_quiesce() was called if the
 * clock was ever started.  @flush or NULL.  May sleep.
 */
void lc_flush_destroy(struct lc_flush *flush);

/* Start the idle clock, and stop it: it does nothing afterwards.  Process context; may sleep. */
void lc_flush_resume(struct lc_flush *flush);
void lc_flush_quiesce(struct lc_flush *flush);

/**
 * lc_flush_map() - map an empty flush
 * @flush: the flush state
 * @bio: device mapper's clone
 * @alone: the volume is all of the mapped device
 *
 * From map().  Without @alone a worker sends the records.  Else device mapper would allocate the
 * clone for its next target before a bio that is submitted here leaves the task's list, and might
 * wait for a bio that waits for this record.  With @alone, may sleep as submit_bio() does.
 * Return: as lc_map_bio().
 */
int lc_flush_map(struct lc_flush *flush, struct bio *bio, bool alone);

/**
 * lc_flush_write() - end a FUA write, all of whose data is in a lane, when it is durable
 * @flush: the flush state
 * @io: the write
 * @batch: the caller calls lc_flush_commit() soon
 *
 * Process context.  Without @batch, may sleep as submit_bio() does.
 */
void lc_flush_write(struct lc_flush *flush, struct lc_request *io, bool batch);

/* Make FUA writes durable that wait for others.  Process context; may sleep as submit_bio(). */
void lc_flush_commit(struct lc_flush *flush);

#endif /* LC_FLUSH_H */
