/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes that wait for space, and whose turn it is.  Pure: no lock, no allocation, no I/O.
 *
 * A commit must not wait until all of the page cache is written.  So each write belongs to a class,
 * and each class has a clock.  Each block that a class writes advances its clock, by less if the
 * class has more weight.  The class with the lowest clock has its turn; `now` is the clock of the
 * last turn.  When a write comes to a class in which none waits, the clock of the class is set to
 * `now` less its lead, unless it is higher already.  Until its clock has made up for the lead, the
 * class has its turn before the others.
 *
 * Invariants
 *  Q1 Shares: while a class has something waiting, it gets the part of the slots that its weight
 *     gives it, but for the others' leads and one bio of each class.  So no class starves (C7),
 *     and a new commit waits for no more than the commits before it and one bio (D12).
 *  Q2 Order: a write never goes before an earlier one that waits and has a block in common with
 *     it.  If its turn comes first, the earlier one is written instead, and charged to its own
 *     class.  Writes wait for earlier ones only, so there is no cycle of waits.
 *
 * A write waits from lc_queue_add() to lc_queue_remove(), also while the worker writes it.
 */
#ifndef LC_QUEUE_H
#define LC_QUEUE_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#include "log/request.h"

/*
 * The owner has a lock for it, and takes it before each call: nothing here can assert that.  Any
 * context.
 */
struct lc_queue {
	struct list_head waiting[LC_NR_CLASSES];
	struct rb_root_cached blocks;	/* all that wait, by their blocks */
	u64 clock[LC_NR_CLASSES];
	u64 now;			/* clock of the last turn */
	u64 next_number;
	u32 nr;				/* how many wait; READ_ONCE() */
	u32 nr_class[LC_NR_CLASSES];
	u64 slots[LC_NR_CLASSES];	/* blocks of those that wait; READ_ONCE() */
};

/**
 * lc_queue_init() - nothing waits
 * @queue: the queue
 */
void lc_queue_init(struct lc_queue *queue);

/**
 * lc_queue_add() - one more waits
 * @queue: the queue
 * @one: with first, last and class; belongs to the queue until it is removed
 */
void lc_queue_add(struct lc_queue *queue, struct lc_waiting *one);

/**
 * lc_queue_remove() - one waits no more, its class has had its turn
 * @queue: the queue
 * @one: any that waits
 */
void lc_queue_remove(struct lc_queue *queue, struct lc_waiting *one);

/**
 * lc_queue_first() - whose turn is it?
 * @queue: the queue
 *
 * The next call may return another one, although this one still waits: a write that has come
 * since may go first.  Return: the write, or NULL.
 */
struct lc_waiting *lc_queue_first(struct lc_queue *queue);

/**
 * lc_queue_overlaps() - does one wait that is to write to any of these blocks?
 * @queue: the queue
 * @first: block number
 * @last: the last of them
 */
bool lc_queue_overlaps(struct lc_queue *queue, u64 first, u64 last);

#endif /* LC_QUEUE_H */
