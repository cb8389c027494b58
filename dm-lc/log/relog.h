/* SPDX-License-Identifier: GPL-2.0-only */
/* Logging a block again at the head, so that its slot no longer keeps the tail from moving. */
#ifndef LC_RELOG_H
#define LC_RELOG_H

#include <linux/types.h>

struct lc_cache;

enum lc_relog_as {
	LC_RELOG_LOST,		/* of its sectors some are lost, the others are on the HDD */
	LC_RELOG_DAMAGED,	/* the same, and those of the slot are lost, too */
	LC_RELOG_DATA,		/* the HDD did not take the data */
};

/**
 * lc_relog() - log a block again whose slot is about to leave the log
 * @c: the cache
 * @block: block number
 * @slot: its newest copy, unless it was overwritten meanwhile
 * @as: what becomes of its sectors
 * @data: LC_RELOG_DATA: the verified slot
 *
 * Process context, does not sleep.  Takes a slot of the reserve (D1).
 * Return: 1, 0 if there is nothing to log, or -EAGAIN: no record with space is open.
 */
int lc_relog(struct lc_cache *c, u64 block, u32 slot, enum lc_relog_as as, const void *data);

#endif /* LC_RELOG_H */
