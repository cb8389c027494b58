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
 *  G1 durable_seq <= written_seq <= last_seq.  None of them ever falls, but
 *     written_seq, back to durable_seq, when a FLUSH failed (F2).
 *  G2 durable_seq rises to s only by a FLUSH that was issued when written_seq was
 *     at least s, or from s - 1 once a write of s has ended well that needs no FLUSH: a
 *     FUA write, begun when durable_seq was s - 1 (F4), or any write if the SSD had no
 *     volatile cache when it ended.
 *  G3 A FLUSH or FUA bio completes well only when durable_seq reached the last
 *     seq that was given when it came (P1, F1), or the rescue has saved it (G5).
 *  G4 A record whose write failed, or that was written since the last good FLUSH
 *     when one failed, is written again from RAM, where it stays until it is
 *     durable.  Until then every FLUSH and FUA above it waits (F1, F2).
 *  G5 If that does not help for params.ssd_patience_ms, the SSD has failed: the log
 *     stops for good.  From then on durable_seq stays as it is and nothing leaves RAM,
 *     whatever still ends well: an SSD may take writes and give nothing back.  Flushes
 *     that wait are ended by the rescue, which saves what is in RAM (rescue.c), or with
 *     an error in mode fail.
 *  G6 A wish for buffers, lc_log_relieve(), holds until a buffer comes back, which lets
 *     the refill worker look again, or until all that was given when it came is
 *     durable (D3).  Each FLUSH for it covers what is written by then.
 *  G7 rec->owed of an open record is set before a write without FUA completes that is in
 *     it, and a FLUSH closes the open records that are owed (F5).  What else is there no
 *     FLUSH has to wait for: FUA writes complete when they are durable, and what is logged
 *     again is durable where it was, until the tail moves, and before that the whole log
 *     is made durable (L5).
 */
#ifndef LC_LOG_H
#define LC_LOG_H

#include <linux/blk_types.h>
#include <linux/types.h>

struct lc_buffer;
struct lc_env;
struct lc_io;
struct lc_log;
struct lc_record;
struct lc_submit;

struct lc_log *lc_log_create(struct lc_env *env, struct lc_submit *submit);
void lc_log_destroy(struct lc_log *log);
void lc_log_start(struct lc_log *log, u64 next_seq);

/* From the lanes, under lane->lock. */
void lc_log_append(struct lc_log *log, struct lc_record *rec, bool want_durable);
void lc_log_close_buffer(struct lc_log *log, struct lc_buffer *buf);

void lc_log_flush_io(struct lc_log *log, struct lc_io *io, u64 seq);
void lc_log_want_durable(struct lc_log *log, u64 seq);
void lc_log_relieve(struct lc_log *log);
int lc_log_wait_durable(struct lc_log *log, u64 seq);
void lc_log_quiesce(struct lc_log *log);
void lc_log_fail(struct lc_log *log);
void lc_log_void(struct lc_log *log);
void lc_log_stop(struct lc_log *log);
void lc_log_wait_stopped(struct lc_log *log);
void lc_log_end_flushes(struct lc_log *log, blk_status_t status);

bool lc_log_in_trouble(const struct lc_log *log);
u64 lc_log_last_seq(struct lc_log *log);
u64 lc_log_durable_seq(struct lc_log *log);

#endif /* LC_LOG_H */
