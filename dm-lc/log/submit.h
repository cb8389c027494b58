/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of a closed record to the SSD: its final image, its turn, and its bio.
 *
 * The log above decides what a write means; it is told by operations.
 *
 * Invariant
 *  SU1 A record is counted in on_way from its turn, when a worker is told to send it, until its
 *      bio has ended or was given back; one that is sent by the task that waits for it, never.
 *      If a record waits for its turn, on_way is not 0: each end of one that is counted gives
 *      the next turn.  So each gets its turn as long as the SSD answers, also to learn that the
 *      log was stopped (G5).
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
	/* What begin() refused is not counted here any more.  As begin(). */
	void (*cancelled)(struct lc_log *log);
	/* The write is over.  Any context.  Nothing of @rec or the room is used behind it. */
	void (*end)(struct lc_log *log, struct lc_record *rec, blk_status_t status);
};

struct lc_submit *lc_submit_create(struct lc_env *env, struct lc_ring *ring, struct lc_pool *pool,
				   struct lc_sums *sums, u32 nr_lanes);
void lc_submit_bind(struct lc_submit *submit, const struct lc_submit_ops *ops, struct lc_log *log,
		    struct workqueue_struct *wq);
void lc_submit_destroy(struct lc_submit *submit);

void lc_submit_record(struct lc_submit *submit, struct lc_record *rec, struct bio_list *direct);
void lc_submit_again(struct lc_submit *submit, struct lc_record *rec);
void lc_submit_bios(struct bio_list *bios);
bool lc_submit_idle(struct lc_submit *submit);

void lc_submit_adapt(struct lc_submit *submit);
u32 lc_submit_most(const struct lc_submit *submit);
u32 lc_submit_piece(const struct lc_submit *submit);
bool lc_submit_enough(const struct lc_submit *submit);

#endif /* LC_SUBMIT_H */
