/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Claims of blocks on the HDD, by discards, by the runs that writeback copies, and by writes that
 * go around the log.
 *
 * A claim is for a range of blocks, of one of the two kinds.  It is added, gets its turn, and is
 * dropped.  Claims of one kind do not exclude each other.  To a copy, a write around the log is the
 * same as a discard: it changes what the HDD holds.  So it has that kind.
 *
 * Invariants
 *  CL1 A copy and a discard with overlapping ranges never have their turns at the same time.  The
 *      one that was added first has its turn first (C5).
 *  CL2 A claim that has its turn is dropped before its owner waits for another one.  So each
 *      gets its turn, however many are added after it.
 *  CL3 A discard whose bio has ended holds writes of its blocks back until new writes are ordered
 *      after the discard.  So no write that was sent after that end is taken for older (D26).
 *  CL4 A copy whose claim is dropped kicks the discards if any is claimed, under the lock.  A
 *      discard is claimed before it finds that it is not its turn: so it misses no end of a copy.
 *  CL5 lc_claims_try() adds a claim only while no other one overlaps it.  So it has its turn at
 *      once, and whatever came before it has ended on the HDD.
 */
#ifndef LC_CLAIMS_H
#define LC_CLAIMS_H

#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "store/kick.h"

enum lc_claim_kind {
	LC_CLAIM_COPY,
	LC_CLAIM_DISCARD,		/* and writes around the log */
};

/*
 * Owned by the task that claims.  While it is added, node, subtree_last and holds change under
 * claims->lock, and the rest is constant.
 */
struct lc_claim {
	struct rb_node node;
	u64 first, last;	/* blocks */
	u64 subtree_last;	/* the highest `last` in the subtree of node */
	u64 ticket;
	u8 kind;
	bool added;		/* read and written by the owner only */
	bool holds;		/* this claim holds writes back; claims->lock */
};

struct lc_claims {
	spinlock_t lock;		/* in completion context too; guards all but the last two */
	struct rb_root_cached trees[2];	/* by kind */
	u64 next_ticket;
	u32 nr_holding;			/* claims that hold writes back; READ_ONCE() */
	struct lc_kick discards;	/* they look at their turns; lc_claims_attach() */
	wait_queue_head_t wait;		/* a claim was dropped, or waiters are to look again */
};

/**
 * lc_claims_create() - allocate the claims
 *
 * May sleep.  Return: the claims or NULL.
 */
struct lc_claims *lc_claims_create(void);

/* Whom to kick when discards may look at their turns.  Once, before the first copy claims. */
void lc_claims_attach(struct lc_claims *claims, struct lc_kick discards);

/* Free the claims.  No claim is added, and no task waits for one.  @claims or NULL.  May sleep. */
void lc_claims_destroy(struct lc_claims *claims);

/* A claim of @nr blocks from @first on, which is not added.  Any context. */
static inline void lc_claim_init(struct lc_claim *claim, enum lc_claim_kind kind, u64 first, u64 nr)
{
	claim->kind = kind;
	claim->first = first;
	claim->last = first + nr - 1;
	claim->added = false;
	claim->holds = false;
}

/**
 * lc_claims_add() - claim a range
 * @claims: the claims
 * @claim: initialised, not added
 *
 * Any context.  Nothing may be done in the range before lc_claims_turn().
 */
void lc_claims_add(struct lc_claims *claims, struct lc_claim *claim);

/**
 * lc_claims_try() - claim a range that nobody has claimed
 * @claims: the claims
 * @claim: initialised, not added
 *
 * Any context.  Return: whether it was added; then it has its turn (CL5).
 */
bool lc_claims_try(struct lc_claims *claims, struct lc_claim *claim);

/**
 * lc_claims_turn() - has a claim its turn?
 * @claims: the claims
 * @claim: added
 *
 * Any context.  Once it has, it keeps it until it is dropped.
 */
bool lc_claims_turn(struct lc_claims *claims, const struct lc_claim *claim);

/**
 * lc_claims_wait() - wait for the turn of a claim
 * @claims: the claims
 * @claim: added
 * @give_up: ends the wait early if it becomes true; lc_claims_wake() has it looked at
 * @arg: for @give_up
 *
 * May sleep, for as long as SSD and HDD need for the discards that came before.
 */
void lc_claims_wait(struct lc_claims *claims, const struct lc_claim *claim,
		    bool (*give_up)(const void *arg), const void *arg);

/**
 * lc_claims_drop() - the work is over, or not begun
 * @claims: the claims
 * @claim: perhaps not added
 *
 * Any context.
 */
void lc_claims_drop(struct lc_claims *claims, struct lc_claim *claim);

/* Have the waiters of lc_claims_wait() look at @give_up again.  Any context. */
void lc_claims_wake(struct lc_claims *claims);

/**
 * lc_claims_hold() - hold writes of a discard's blocks back from now on (CL3)
 * @claims: the claims
 * @claim: added, holds none back yet
 *
 * Any context.  Until lc_claims_let() or lc_claims_drop().  Writes that are sent at the same time
 * may see it or not.
 */
void lc_claims_hold(struct lc_claims *claims, struct lc_claim *claim);

/**
 * lc_claims_let() - hold none back any more
 * @claims: the claims
 * @claim: added; perhaps it held none back
 *
 * Any context.  The caller kicks env.unpark.
 */
void lc_claims_let(struct lc_claims *claims, struct lc_claim *claim);

/**
 * lc_claims_held() - is a write of any of these blocks held back?
 * @claims: the claims
 * @first: block number
 * @last: the last of them
 *
 * Any context.  Slower than lc_claims_holding(), which is to be asked first.
 */
bool lc_claims_held(struct lc_claims *claims, u64 first, u64 last);

/**
 * lc_claims_discards() - does a discard, or a write around the log, claim any of these blocks?
 * @claims: the claims
 * @first: block number
 * @last: the last of them
 *
 * Any context.
 */
bool lc_claims_discards(struct lc_claims *claims, u64 first, u64 last);

/**
 * lc_claims_wait_discards() - wait until no discard claims anything
 * @claims: the claims
 *
 * May sleep.  The caller sees to it that none is added.
 */
void lc_claims_wait_discards(struct lc_claims *claims);

/* Is any write held back?  Any context; all that each write pays for as long as none is. */
static inline bool lc_claims_holding(const struct lc_claims *claims)
{
	/* Pairs with let(). */
	return smp_load_acquire(&claims->nr_holding);
}

#endif /* LC_CLAIMS_H */
