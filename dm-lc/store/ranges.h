/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A set of blocks, as ranges that neither overlap nor touch, in order.
 *
 * It keeps what must not be brought back after a crash (warm.h): what discards cover and writes
 * around the log, which are few and long, and few single blocks.  Otherwise the set gets full.
 *
 * Pure, without a lock: the owner has one.
 */
#ifndef LC_RANGES_H
#define LC_RANGES_H

#include <linux/types.h>

struct lc_range {
	u64 first, last;	/* blocks */
};

struct lc_ranges {
	struct lc_range *ranges;	/* of the owner */
	u32 nr, most;
};

/**
 * lc_ranges_add() - have the set contain some blocks
 * @set: the set
 * @first: block number
 * @last: the last of them
 *
 * Takes as many steps as there are ranges.  Return: false if the set is full, and unchanged.
 */
bool lc_ranges_add(struct lc_ranges *set, u64 first, u64 last);

/* Is the block in the set?  In as many steps as the number of ranges has bits. */
bool lc_ranges_have(const struct lc_ranges *set, u64 block);

#endif /* LC_RANGES_H */
