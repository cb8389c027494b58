/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A lane: an open segment with its buffer, and the open record in it.
 *
 * A writer gets slots of the open record without a lock.  All else (closing a record, opening the
 * next, taking a ready buffer) happens under lane->lock, a few hundred cycles once per record.
 *
 * Invariant
 *  N3 Whatever a bio has put into a record before it completes is in lane->open or in a
 *     closed one: a record is opened and made lane->open under one lane->lock.  So a task that
 *     closes the open record of each lane, one after the other, has closed all records of
 *     bios that completed before it began (G3).
 */
#ifndef LC_LANE_H
#define LC_LANE_H

#include <linux/cache.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "log/record.h"

struct bio_list;
struct lc_allot;
struct lc_buffer;
struct lc_env;
struct lc_lanes;
struct lc_log;
struct lc_submit;

/* In cache lines of its own: the next lane is written by other CPUs. */
struct lc_lane {
	struct lc_lanes *lanes;		/* whose it is, opaque here */
	struct lc_env *env;
	struct lc_allot *allot;
	struct lc_log *log;
	struct lc_submit *submit;
	u32 index;			/* among the lanes */
	spinlock_t lock;		/* closing and opening records */
	struct lc_record *open;		/* written under lock, read without */
	struct lc_buffer *buf;		/* being filled; lock */
	struct list_head ready;		/* buffers with a clear header; lock */
	u32 nr_ready;			/* READ_ONCE() */
	u32 max_ready;			/* READ_ONCE() */
	u32 incarnation;		/* lock */
	bool stopped;			/* for good: nothing is opened any more; lock */
} ____cacheline_aligned_in_smp;

struct lc_lane *lc_lane_create(const struct lc_lane *how, int node);
void lc_lane_destroy(struct lc_lane *lane);
void lc_lane_add_ready(struct lc_lane *lane, struct lc_buffer *buf);
int lc_lane_try_reserve(const struct lc_lane *lane, u32 want, struct lc_cursor *cur);
int lc_lane_reserve(struct lc_lane *lane, u32 want, bool relog, struct lc_cursor *cur);
u64 lc_lane_seal(struct lc_lane *lane, bool close_segment, bool direct);
bool lc_lane_owes(const struct lc_lane *lane);
u64 lc_lane_activity(const struct lc_lane *lane);

void lc_lane_put(struct lc_record *rec, struct bio_list *direct);

/* For lanes.c, under lane->lock. */
void lc_lane_close_record(struct lc_lane *lane, bool want_durable, struct list_head *closed);
void lc_lane_close_segment(struct lc_lane *lane, bool want_durable, struct list_head *closed);
void lc_lane_reopen(struct lc_lane *lane);
struct lc_record *lc_lane_open_next(struct lc_lane *lane, u8 type, bool relog, int *ret);

#endif /* LC_LANE_H */
