/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bios that wait until a seq is durable, sorted by rising io->target.  So a search for bios that
 * are due stops at the first one that is not.  The lock of the list's owner is held, and the
 * owner asserts it.
 */
#ifndef LC_WAITERS_H
#define LC_WAITERS_H

#include <linux/list.h>

#include "log/request.h"

/* The target was read before the lock was taken: bios with higher ones may be in the list. */
static inline void lc_waiters_add(struct list_head *waiters, struct lc_request *io)
{
	struct lc_request *last;

	list_for_each_entry_reverse(last, waiters, list) {
		if (last->target <= io->target)
			break;
	}
	list_add(&io->list, &last->list);
}

/* Is a bio due if that seq is durable? */
static inline bool lc_waiters_due(struct list_head *waiters, u64 seq)
{
	struct lc_request *io = list_first_entry_or_null(waiters, struct lc_request, list);

	return io && io->target <= seq;
}

/* Move those to @due that wait for nothing above the seq. */
static inline void lc_waiters_take(struct list_head *waiters, u64 seq, struct list_head *due)
{
	while (lc_waiters_due(waiters, seq))
		list_move_tail(waiters->next, due);
}

#endif /* LC_WAITERS_H */
