/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who is at work at which places of the HDD: discards, and runs that writeback copies.
 *
 * A claim is for a range of blocks, of one of the two kinds.  It is added, gets its turn, and is
 * dropped.  Those of one kind do not mind each other.
 *
 * Invariants
 *  CL1 Of a copy and a discard whose ranges overlap one at a time has its turn, and that which was
 *      added first comes first (C5).
 *  CL2 A claim that has its turn is dropped before its owner waits for another one.  So each
 *      gets its turn, however many come behind it.
 *  CL3 A discard whose bio has ended holds writes of its blocks back until what they write is
 *      newer than it: none that was sent after the end is taken for older (D26).
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
	LC_CLAIM_DISCARD,
};

/* Owned by the task that claims; constant while it is added, but for the node. */
struct lc_claim {
	struct rb_node node;
	u64 first, last;	/* blocks */
	u64 subtree_last;	/* the node's */
	u64 ticket;
	u8 kind;
	bool added;		/* for who owns it */
	bool holds;		/* writes back; guarded by the room's lock */
};

struct lc_claims {
	spinlock_t lock;		/* in completion context too; guards all but the last two */
	struct rb_root_cached trees[2];	/* by kind */
	u64 next_ticket;
	u32 nr_holding;			/* claims that hold writes back; READ_ONCE() */
	struct lc_kick discards;	/* they look at their turns; set before the first copy */
	wait_queue_head_t wait;		/* a claim was dropped, or waiters are to look again */
};

struct lc_claims *lc_claims_create(void);
void lc_claims_destroy(struct lc_claims *claims);

static inline void lc_claim_init(struct lc_claim *claim, enum lc_claim_kind kind, u64 first, u64 nr)
{
	claim->kind = kind;
	claim->first = first;
	claim->last = first + nr - 1;
	claim->added = false;
	claim->holds = false;
}

void lc_claims_add(struct lc_claims *claims, struct lc_claim *claim);
bool lc_claims_turn(struct lc_claims *claims, const struct lc_claim *claim);
void lc_claims_wait(struct lc_claims *claims, const struct lc_claim *claim,
		    bool (*give_up)(const void *arg), const void *arg);
void lc_claims_drop(struct lc_claims *claims, struct lc_claim *claim);
void lc_claims_wake(struct lc_claims *claims);
void lc_claims_hold(struct lc_claims *claims, struct lc_claim *claim);
void lc_claims_let(struct lc_claims *claims, struct lc_claim *claim);
bool lc_claims_held(struct lc_claims *claims, u64 first, u64 last);
void lc_claims_wait_discards(struct lc_claims *claims);

/* Is any write held back?  Any context; all that each write pays for as long as none is. */
static inline bool lc_claims_holding(const struct lc_claims *claims)
{
	/* Pairs with let(). */
	return smp_load_acquire(&claims->nr_holding);
}

#endif /* LC_CLAIMS_H */
