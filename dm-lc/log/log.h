/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The log: closed records to the SSD, FLUSH, and what is durable.
 *
 * Records are kept in seq order from closing until they are durable.
 *   last_seq     highest seq given
 *   written_seq  every record up to it was written without error
 *   durable_seq  every record up to it survives a power cut
 *
 * Invariants
 *  G1 durable_seq <= written_seq <= last_seq.  None of them ever falls, except
 *     written_seq, which falls back to durable_seq when a FLUSH fails (F2).
 *  G2 durable_seq rises to s in two cases only.  A FLUSH ends well that was issued when
 *     written_seq was at least s.  Or durable_seq is s - 1, and a write of s has ended well
 *     that needs no FLUSH: a FUA write that began when durable_seq was s - 1 (F4), or any
 *     write if the SSD had no volatile cache when it ended.
 *  G3 A FLUSH or FUA bio completes well only when durable_seq reached the last
 *     seq that was given when it came (P1, F1), or the rescue has saved it (G5).
 *  G4 A record whose write failed, or that was written since the last good FLUSH
 *     when one failed, is written again from RAM, where it stays until it is
 *     durable.  Until then every FLUSH and FUA above it waits (F1, F2).
 *  G5 If that does not help for params.ssd_patience_ms, the SSD has failed: the log
 *     stops for good.  From then on durable_seq stays as it is and nothing leaves RAM,
 *     even if a write still succeeds: an SSD may take writes and not give them back.
 *     Flushes that wait are ended by the rescue, which saves what is in RAM (rescue.c), or
 *     with an error in mode fail.
 *  G6 A request for buffers, lc_log_want_buffers(), holds until a buffer comes back, which
 *     kicks the refill worker, or until all seqs given before the request are durable (D3).
 *     Each FLUSH for it covers what is written when the FLUSH is queued.
 *  G7 rec->needs_flush of an open record is set before a write without FUA in it completes.  A
 *     FLUSH closes the open records that need it (F5), and no others.  A FUA write completes only
 *     when it is durable.  A block that is logged again is durable in its old slot until the tail
 *     moves, and before that the whole log is made durable (L5).
 */
#ifndef LC_LOG_H
#define LC_LOG_H

#include <linux/blk_types.h>
#include <linux/types.h>

struct lc_buffer;
struct lc_env;
struct lc_request;
struct lc_log;
struct lc_record;
struct lc_submit;

/**
 * lc_log_create() - allocate the log
 * @env: of the volume
 * @submit: writes its records, for this log from now on
 *
 * May sleep.  Return: the log or NULL.
 */
struct lc_log *lc_log_create(struct lc_env *env, struct lc_submit *submit);

/*
 * Stop the log's workers and free it.  No record or FLUSH is in flight, and no room calls the log
 * any more.  Records that are not durable belong to their buffers.  @log or NULL.  May sleep.
 */
void lc_log_destroy(struct lc_log *log);

/**
 * lc_log_start() - a life begins; everything below @next_seq is durable
 * @log: the log
 * @next_seq: first seq of this life
 *
 * Does not sleep; takes log->lock, because the status may be asked for.  From lc_start(): no record
 * has been closed.
 */
void lc_log_start(struct lc_log *log, u64 next_seq);

/**
 * lc_log_append() - close a record and give it its seq
 * @log: the log
 * @rec: open
 * @want_durable: a flush closes it
 *
 * Under lane->lock.  The caller holds one reference afterwards and must put it, unlocked.
 */
void lc_log_append(struct lc_log *log, struct lc_record *rec, bool want_durable);

/**
 * lc_log_close_buffer() - no record will be added to a buffer
 * @log: the log
 * @buf: the buffer
 *
 * Under lane->lock.
 */
void lc_log_close_buffer(struct lc_log *log, struct lc_buffer *buf);

/**
 * lc_log_flush_io() - complete a bio when a seq is durable
 * @log: the log
 * @io: of a FLUSH, or of a FUA write whose data is in the log
 * @seq: from lc_lanes_close_for_flush() or lc_lanes_close_all()
 *
 * Does not sleep.  The bio ends here or later, well or with an error.
 */
void lc_log_flush_io(struct lc_log *log, struct lc_request *io, u64 seq);

/**
 * lc_log_want_durable() - make a seq durable soon, without waiting for it
 * @log: the log
 * @seq: sequence number
 *
 * Does not sleep; takes log->lock.
 */
void lc_log_want_durable(struct lc_log *log, u64 seq);

/**
 * lc_log_want_buffers() - few buffers are free: make what is written durable
 * @log: the log
 *
 * Does not sleep.  Holds until a buffer comes back (G6).
 */
void lc_log_want_buffers(struct lc_log *log);

/**
 * lc_log_wait_durable() - make a seq durable and wait for it
 * @log: the log
 * @seq: sequence number
 *
 * May sleep.  Return: 0, or -EIO if that will never be.
 */
int lc_log_wait_durable(struct lc_log *log, u64 seq);

/**
 * lc_log_quiesce() - wait until no own I/O is in flight
 * @log: the log
 *
 * May sleep.  No task puts anything into a lane any more.
 */
void lc_log_quiesce(struct lc_log *log);

/**
 * lc_log_fail() - nothing more becomes durable
 * @log: the log
 *
 * Any context.  Waiting flushes end with an error, now and later (F1).
 */
void lc_log_fail(struct lc_log *log);

/**
 * lc_log_flush_failed() - take records written since the last good FLUSH for not written (G4)
 * @log: the log
 *
 * Called when a FLUSH of the SSD has failed that the log did not send.  Any context.
 */
void lc_log_flush_failed(struct lc_log *log);

/**
 * lc_log_stop() - write nothing more to the SSD, ever
 * @log: the log
 *
 * Any context.  lc_log_wait_durable() waits no more: it returns an error for a seq that is not
 * durable.  Bios that wait for a flush go on waiting, until lc_log_end_flushes() or lc_log_fail().
 */
void lc_log_stop(struct lc_log *log);

/**
 * lc_log_wait_stopped() - wait until nothing changes any more
 * @log: stopped, and so is the lane
 *
 * May sleep.  Every record has been left by its writers: its image is final.
 */
void lc_log_wait_stopped(struct lc_log *log);

/**
 * lc_log_end_flushes() - everything given so far is durable elsewhere, or lost
 * @log: stopped
 * @status: for the bios that wait for a flush, and those that still come
 *
 * Any context; takes log->lock, and ends the bios without it.
 */
void lc_log_end_flushes(struct lc_log *log, blk_status_t status);

/* Records are waiting to be written again, a hint.  Any context. */
bool lc_log_in_trouble(const struct lc_log *log);

/* The last seq that was given.  Any context. */
u64 lc_log_last_seq(struct lc_log *log);

/* Is a record of this life durable?  Any context. */
bool lc_log_life_durable(struct lc_log *log);

/* The last seq that is durable.  Any context. */
u64 lc_log_durable_seq(struct lc_log *log);

#endif /* LC_LOG_H */
