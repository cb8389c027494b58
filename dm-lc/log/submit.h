/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of a closed record to the SSD: its final image, its turn, and its bio.
 *
 * The log above decides what a write means; it is told by operations.
 *
 * Invariant
 *  SU1 A record that a worker sends is counted in on_way from its turn until its bio has ended
 *      or was given back.  A record that the waiting task sends itself is never counted.  While a
 *      record waits for its turn, on_way is not 0, and each end of a counted record gives the
 *      next turn.  So each record gets its turn while the SSD answers, also to learn that the log
 *      was stopped (G5).
 */
#ifndef LC_SUBMIT_H
#define LC_SUBMIT_H

#include <linux/blk_types.h>
#include <linux/types.h>

struct bio_list;
struct lc_env;
struct lc_log;
struct lc_pool;
struct lc_record;
struct lc_ring;
struct lc_submit;
struct lc_sums;
struct workqueue_struct;

struct lc_submit_ops {
	/* For the header of a record.  Process context, does not sleep. */
	u64 (*durable_seq)(struct lc_log *log);
	/*
	 * The image of a record is final: count its write as begun.  @one_command: the SSD gets it
	 * in one piece.  @fua is set: whether it is to be written with FUA.  Process context, does
	 * not sleep.  Return: false: it is not to be written.
	 */
	bool (*begin)(struct lc_log *log, struct lc_record *rec, bool one_command, bool *fua);
	/* The submitter no longer counts a record that begin() has refused.  As begin(). */
	void (*cancelled)(struct lc_log *log);
	/*
	 * The write is over.  Any context.  The submitter uses neither @rec nor itself afterwards.
	 */
	void (*end)(struct lc_log *log, struct lc_record *rec, blk_status_t status);
};

/**
 * lc_submit_create() - allocate the bios
 * @env: of the volume
 * @ring: of the segments
 * @pool: of the buffers whose records are written; its field submit is set
 * @sums: of the slots
 * @nr_lanes: how many share the SSD
 *
 * May sleep.  Return: the submitter or NULL.
 */
struct lc_submit *lc_submit_create(struct lc_env *env, struct lc_ring *ring, struct lc_pool *pool,
				   struct lc_sums *sums, u32 nr_lanes);

/**
 * lc_submit_bind() - set the operations, which the log provides
 * @submit: the submitter; no record came yet
 * @ops: of the log
 * @log: their first argument
 * @wq: its workers send records
 *
 * Does not sleep, takes no lock.  From lc_log_create(): no other task uses the submitter yet.
 */
void lc_submit_bind(struct lc_submit *submit, const struct lc_submit_ops *ops, struct lc_log *log,
		    struct workqueue_struct *wq);

/*
 * Free the submitter and its bios.  No record waits or is on its way.  @submit or NULL.  May sleep.
 */
void lc_submit_destroy(struct lc_submit *submit);

/**
 * lc_submit_record() - write a record
 * @submit: the submitter
 * @rec: closed, and left by its writers
 * @direct: gets the bio if it is small, for lc_submit_bios(); else, or if it is NULL, a worker
 *	sends it, when it is its turn
 *
 * Process context, does not sleep.
 */
void lc_submit_record(struct lc_submit *submit, struct lc_record *rec, struct bio_list *direct);

/**
 * lc_submit_again() - have a worker send a record once more
 * @submit: the submitter
 * @rec: its write failed, or a FLUSH after it
 *
 * Any context; the log's lock may be held.  It does not wait for its turn.
 */
void lc_submit_again(struct lc_submit *submit, struct lc_record *rec);

/**
 * lc_submit_bios() - submit the bios that lc_submit_record() has left to the caller
 * @bios: emptied
 *
 * Process context, may sleep as submit_bio() does.
 */
void lc_submit_bios(struct bio_list *bios);

/*
 * Does no record wait, and is none on its way that was counted (SU1)?  Any context; takes
 * submit->lock, also with log->lock held.
 */
bool lc_submit_idle(struct lc_submit *submit);

/**
 * lc_submit_adapt() - decide anew how large records may be
 * @submit: the submitter
 *
 * Any context.
 */
void lc_submit_adapt(struct lc_submit *submit);

/**
 * lc_submit_most() - the bound of what is not on the SSD (BL2)
 * @submit: the submitter
 *
 * Any context.  Return: segments of each lane, those that are open or ready included.
 */
u32 lc_submit_most(const struct lc_submit *submit);

/**
 * lc_submit_piece() - how many blocks may a record have?
 * @submit: the submitter
 *
 * Any context.  Return: blocks, or 0: as many as fit, since the SSD is not slow.
 */
u32 lc_submit_piece(const struct lc_submit *submit);

/**
 * lc_submit_enough() - has a slow SSD enough to do for now (BL3)?
 * @submit: the submitter
 *
 * Any context.  If so, a record is on its way.
 */
bool lc_submit_enough(const struct lc_submit *submit);

#endif /* LC_SUBMIT_H */
