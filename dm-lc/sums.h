/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In RAM, what the checksum of each slot has to be: for option verify_reads.
 *
 * Allocated when a table or a message first asks for the option, kept and looked after
 * until the volume goes away.
 *
 * Invariant
 *  V1 The sum kept for a slot that the index maps, and that is not in RAM, is that of its
 *     entry in the log, or 0: not known.
 *
 * A slot is sealed before it leaves RAM, and sealing stores the sum.  Who stores one that
 * was read from a header does so while the segment cannot be reused: there is a reference
 * on it, or the tail waits for whoever stores it.
 */
#ifndef LC_SUMS_H
#define LC_SUMS_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "lc.h"

int lc_sums_enable(struct lc_core *core);
void lc_sums_destroy(struct lc_core *core);
u64 lc_sums_bytes(const struct lc_core *core);

/* Any context. */
static inline void lc_sums_put(struct lc_core *core, u32 slot, u32 csum)
{
	u32 *sums = READ_ONCE(core->sums);

	if (sums)
		WRITE_ONCE(sums[slot], csum);
}

/* Any context.  Return: the sum, or 0 if it is not known. */
static inline u32 lc_sums_get(const struct lc_core *core, u32 slot)
{
	const u32 *sums = READ_ONCE(core->sums);

	return sums ? READ_ONCE(sums[slot]) : 0;
}

#endif /* LC_SUMS_H */
