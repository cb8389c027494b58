// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims of places of the HDD.  See claims.h.
 *
 * There may be thousands of discards, and few copies.  Each kind has a tree, so that a claim finds
 * those of the other kind that overlap it.
 */
#include <linux/interval_tree_generic.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "store/claims.h"

#define START(claim)	((claim)->first)
#define LAST(claim)	((claim)->last)

INTERVAL_TREE_DEFINE(struct lc_claim, node, u64, subtree_last, START, LAST,
		     static __maybe_unused, tree)

/**
 * lc_claims_create() - allocate the room
 *
 * May sleep.  Return: the room or NULL.
 */
struct lc_claims *lc_claims_create(void)
{
	struct lc_claims *claims = kzalloc(sizeof(*claims), GFP_KERNEL);

	if (!claims)
		return NULL;
	spin_lock_init(&claims->lock);
	claims->trees[LC_CLAIM_COPY] = RB_ROOT_CACHED;
	claims->trees[LC_CLAIM_DISCARD] = RB_ROOT_CACHED;
	init_waitqueue_head(&claims->wait);
	return claims;
}

void lc_claims_destroy(struct lc_claims *claims)
{
	kfree(claims);
}

/**
 * lc_claims_add() - claim a range
 * @claims: the room
 * @claim: initialised, not added
 *
 * Any context.  Nothing may be done in the range before lc_claims_turn().
 */
void lc_claims_add(struct lc_claims *claims, struct lc_claim *claim)
{
	unsigned long flags;

	spin_lock_irqsave(&claims->lock, flags);
	claim->ticket = claims->next_ticket++;
	claim->added = true;
	tree_insert(claim, &claims->trees[claim->kind]);
	spin_unlock_irqrestore(&claims->lock, flags);
}

/**
 * lc_claims_turn() - has a claim its turn?
 * @claims: the room
 * @claim: added
 *
 * Any context.  Once it has, it keeps it until it is dropped.
 */
bool lc_claims_turn(struct lc_claims *claims, const struct lc_claim *claim)
{
	struct rb_root_cached *others = &claims->trees[!claim->kind];
	const struct lc_claim *other;
	unsigned long flags;
	bool turn = true;

	spin_lock_irqsave(&claims->lock, flags);
	for (other = tree_iter_first(others, claim->first, claim->last); other && turn;
	     other = tree_iter_next((struct lc_claim *)other, claim->first, claim->last))
		turn = other->ticket > claim->ticket;
	spin_unlock_irqrestore(&claims->lock, flags);
	return turn;
}

/**
 * lc_claims_wait() - wait for the turn of a claim
 * @claims: the room
 * @claim: added
 * @give_up: ends the wait early if it becomes true; lc_claims_wake() has it looked at
 * @arg: for @give_up
 *
 * May sleep, for as long as SSD and HDD need for the discards that came before.
 */
void lc_claims_wait(struct lc_claims *claims, const struct lc_claim *claim,
		    bool (*give_up)(const void *arg), const void *arg)
{
	wait_event_idle(claims->wait, lc_claims_turn(claims, claim) || give_up(arg));
}

/* [lock] */
static void let(struct lc_claims *claims, struct lc_claim *claim)
{
	if (!claim->holds)
		return;
	claim->holds = false;
	/* Pairs with lc_claims_holding(): a write that sees none goes behind what came before. */
	smp_store_release(&claims->nr_holding, claims->nr_holding - 1);
}

/**
 * lc_claims_drop() - the work is over, or not begun
 * @claims: the room
 * @claim: perhaps not added
 *
 * Any context.
 */
void lc_claims_drop(struct lc_claims *claims, struct lc_claim *claim)
{
	unsigned long flags;

	if (!claim->added)
		return;
	spin_lock_irqsave(&claims->lock, flags);
	tree_remove(claim, &claims->trees[claim->kind]);
	claim->added = false;
	let(claims, claim);
	/* Inside the lock: a task that waits for the last claim may free the room. */
	wake_up_all(&claims->wait);
	/* A discard is in its tree before it is seen not to have its turn: so none is missed. */
	if (claim->kind == LC_CLAIM_COPY &&
	    !RB_EMPTY_ROOT(&claims->trees[LC_CLAIM_DISCARD].rb_root))
		lc_kick(&claims->discards);
	spin_unlock_irqrestore(&claims->lock, flags);
}

/* Have those who wait look whether they are to give up.  Any context. */
void lc_claims_wake(struct lc_claims *claims)
{
	wake_up_all(&claims->wait);
}

/**
 * lc_claims_hold() - hold writes of a discard's blocks back from now on (CL3)
 * @claims: the room
 * @claim: added, holds none back yet
 *
 * Any context.  Until lc_claims_let() or lc_claims_drop().  Writes that are sent at the same time
 * may see it or not.
 */
void lc_claims_hold(struct lc_claims *claims, struct lc_claim *claim)
{
	unsigned long flags;

	spin_lock_irqsave(&claims->lock, flags);
	claim->holds = true;
	WRITE_ONCE(claims->nr_holding, claims->nr_holding + 1);
	spin_unlock_irqrestore(&claims->lock, flags);
}

/**
 * lc_claims_let() - hold none back any more
 * @claims: the room
 * @claim: added; perhaps it held none back
 *
 * Any context.  The caller kicks env.unpark.
 */
void lc_claims_let(struct lc_claims *claims, struct lc_claim *claim)
{
	unsigned long flags;

	spin_lock_irqsave(&claims->lock, flags);
	let(claims, claim);
	spin_unlock_irqrestore(&claims->lock, flags);
}

/**
 * lc_claims_held() - is a write of any of these blocks held back?
 * @claims: the room
 * @first: block number
 * @last: the last of them
 *
 * Any context.  Slower than lc_claims_holding(), which is to be asked first.
 */
bool lc_claims_held(struct lc_claims *claims, u64 first, u64 last)
{
	struct rb_root_cached *discards = &claims->trees[LC_CLAIM_DISCARD];
	struct lc_claim *claim;
	unsigned long flags;

	spin_lock_irqsave(&claims->lock, flags);
	for (claim = tree_iter_first(discards, first, last); claim && !claim->holds; )
		claim = tree_iter_next(claim, first, last);
	spin_unlock_irqrestore(&claims->lock, flags);
	return claim;
}

static bool no_discard(struct lc_claims *claims)
{
	unsigned long flags;
	bool none;

	spin_lock_irqsave(&claims->lock, flags);
	none = RB_EMPTY_ROOT(&claims->trees[LC_CLAIM_DISCARD].rb_root);
	spin_unlock_irqrestore(&claims->lock, flags);
	return none;
}

/**
 * lc_claims_wait_discards() - wait until no discard claims anything
 * @claims: the room
 *
 * May sleep.  The caller sees to it that none is added.
 */
void lc_claims_wait_discards(struct lc_claims *claims)
{
	wait_event_idle(claims->wait, no_discard(claims));
}
