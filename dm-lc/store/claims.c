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

void lc_claims_attach(struct lc_claims *claims, struct lc_kick discards)
{
	claims->discards = discards;
}

void lc_claims_destroy(struct lc_claims *claims)
{
	kfree(claims);
}

/* [lock] */
static void add(struct lc_claims *claims, struct lc_claim *claim)
{
	lockdep_assert_held(&claims->lock);
	claim->ticket = claims->next_ticket++;
	claim->added = true;
	tree_insert(claim, &claims->trees[claim->kind]);
}

void lc_claims_add(struct lc_claims *claims, struct lc_claim *claim)
{
	unsigned long flags;

	spin_lock_irqsave(&claims->lock, flags);
	add(claims, claim);
	spin_unlock_irqrestore(&claims->lock, flags);
}

bool lc_claims_try(struct lc_claims *claims, struct lc_claim *claim)
{
	unsigned long flags;

	spin_lock_irqsave(&claims->lock, flags);
	if (!tree_iter_first(&claims->trees[LC_CLAIM_COPY], claim->first, claim->last) &&
	    !tree_iter_first(&claims->trees[LC_CLAIM_DISCARD], claim->first, claim->last))
		add(claims, claim);
	spin_unlock_irqrestore(&claims->lock, flags);
	return claim->added;
}

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

void lc_claims_wait(struct lc_claims *claims, const struct lc_claim *claim,
		    bool (*give_up)(const void *arg), const void *arg)
{
	wait_event_idle(claims->wait, lc_claims_turn(claims, claim) || give_up(arg));
}

/* [lock] */
static void let(struct lc_claims *claims, struct lc_claim *claim)
{
	lockdep_assert_held(&claims->lock);
	if (!claim->holds)
		return;
	claim->holds = false;
	/* Pairs with lc_claims_holding(): a write that sees none also sees what was done before. */
	smp_store_release(&claims->nr_holding, claims->nr_holding - 1);
}

void lc_claims_drop(struct lc_claims *claims, struct lc_claim *claim)
{
	unsigned long flags;

	if (!claim->added)
		return;
	spin_lock_irqsave(&claims->lock, flags);
	tree_remove(claim, &claims->trees[claim->kind]);
	claim->added = false;
	let(claims, claim);
	/* Inside the lock: a task that waits for the last claim may free @claims. */
	wake_up_all(&claims->wait);
	/* CL4 */
	if (claim->kind == LC_CLAIM_COPY &&
	    !RB_EMPTY_ROOT(&claims->trees[LC_CLAIM_DISCARD].rb_root))
		lc_kick(&claims->discards);
	spin_unlock_irqrestore(&claims->lock, flags);
}

void lc_claims_wake(struct lc_claims *claims)
{
	wake_up_all(&claims->wait);
}

void lc_claims_hold(struct lc_claims *claims, struct lc_claim *claim)
{
	unsigned long flags;

	spin_lock_irqsave(&claims->lock, flags);
	claim->holds = true;
	WRITE_ONCE(claims->nr_holding, claims->nr_holding + 1);
	spin_unlock_irqrestore(&claims->lock, flags);
}

void lc_claims_let(struct lc_claims *claims, struct lc_claim *claim)
{
	unsigned long flags;

	spin_lock_irqsave(&claims->lock, flags);
	let(claims, claim);
	spin_unlock_irqrestore(&claims->lock, flags);
}

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

bool lc_claims_discards(struct lc_claims *claims, u64 first, u64 last)
{
	unsigned long flags;
	bool any;

	spin_lock_irqsave(&claims->lock, flags);
	any = tree_iter_first(&claims->trees[LC_CLAIM_DISCARD], first, last);
	spin_unlock_irqrestore(&claims->lock, flags);
	return any;
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

void lc_claims_wait_discards(struct lc_claims *claims)
{
	wait_event_idle(claims->wait, no_discard(claims));
}
