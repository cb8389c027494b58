// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes that wait for space, and whose turn it is.  See queue.h.
 */
#include <linux/interval_tree_generic.h>
#include <linux/minmax.h>

#include "bio/queue.h"

/* How far one slot advances the clock of a class: shares of 8, 4 and 1 in 13. */
static const u32 costs[LC_NR_CLASSES] = {
	[LC_CLASS_COMMIT] = 1,
	[LC_CLASS_SYNC] = 2,
	[LC_CLASS_BACKGROUND] = 8,
};

/* In the same unit: a commit is often several bios, a sync write seldom many. */
static const u32 leads[LC_NR_CLASSES] = {
	[LC_CLASS_COMMIT] = 256,
	[LC_CLASS_SYNC] = 64,
};

#define START	256	/* no clock less its lead is below zero */

#define FIRST(one)	((one)->first)
#define LAST(one)	((one)->last)
INTERVAL_TREE_DEFINE(struct lc_waiting, node, u64, subtree_last, FIRST, LAST, static inline,
		     blocks)

void lc_queue_init(struct lc_queue *queue)
{
	u32 i;

	*queue = (struct lc_queue) { .blocks = RB_ROOT_CACHED, .now = START };
	for (i = 0; i < LC_NR_CLASSES; i++) {
		INIT_LIST_HEAD(&queue->waiting[i]);
		queue->clock[i] = START;
	}
}

void lc_queue_add(struct lc_queue *queue, struct lc_waiting *one)
{
	u64 *clock = &queue->clock[one->class];

	if (!queue->nr_class[one->class])
		*clock = max(*clock, queue->now - leads[one->class]);
	one->number = queue->next_number++;
	list_add_tail(&one->list, &queue->waiting[one->class]);
	blocks_insert(one, &queue->blocks);
	WRITE_ONCE(queue->slots[one->class],
		   queue->slots[one->class] + one->last - one->first + 1);
	queue->nr_class[one->class]++;
	WRITE_ONCE(queue->nr, queue->nr + 1);
}

void lc_queue_remove(struct lc_queue *queue, struct lc_waiting *one)
{
	u64 slots = one->last - one->first + 1;

	list_del(&one->list);
	blocks_remove(one, &queue->blocks);
	queue->clock[one->class] += slots * costs[one->class];
	WRITE_ONCE(queue->slots[one->class], queue->slots[one->class] - slots);
	queue->nr_class[one->class]--;
	WRITE_ONCE(queue->nr, queue->nr - 1);
}

/* Return: one that came before @one and has a block in common with it, or NULL. */
static struct lc_waiting *earlier(struct lc_queue *queue, const struct lc_waiting *one)
{
	struct lc_waiting *other = blocks_iter_first(&queue->blocks, one->first, one->last);

	while (other && other->number >= one->number)
		other = blocks_iter_next(other, one->first, one->last);
	return other;
}

struct lc_waiting *lc_queue_first(struct lc_queue *queue)
{
	struct lc_waiting *one, *before;
	u32 i, class = LC_NR_CLASSES;

	for (i = 0; i < LC_NR_CLASSES; i++) {
		if (queue->nr_class[i] &&
		    (class == LC_NR_CLASSES || queue->clock[i] < queue->clock[class]))
			class = i;
	}
	if (class == LC_NR_CLASSES)
		return NULL;
	queue->now = max(queue->now, queue->clock[class]);
	one = list_first_entry(&queue->waiting[class], struct lc_waiting, list);
	while ((before = earlier(queue, one)))
		one = before;
	return one;
}

bool lc_queue_overlaps(struct lc_queue *queue, u64 first, u64 last)
{
	return blocks_iter_first(&queue->blocks, first, last);
}
