/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An array in RAM of the checksums of all slots, for option verify_reads.  slot.h compares.
 *
 * Allocated when a table or a message first asks for the option, and kept up to date until the
 * volume is destroyed.
 *
 * Invariant
 *  V1 The sum kept for a slot that the index maps, and that is not in RAM, is that of its
 *     entry in the log, or 0: not known.
 *
 * A slot is sealed before it leaves RAM, and sealing stores the sum.  A sum that was
 * read from a header is stored while the segment cannot be reused: there is a reference on
 * it, or the tail waits for the task that stores it.
 */
#ifndef LC_SUMS_H
#define LC_SUMS_H

#include <linux/compiler.h>
#include <linux/types.h>

struct lc_sums {
	u32 *by_slot;		/* or NULL; READ_ONCE() */
	u64 nr_slots;		/* of the SSD; constant */
};

/* No sums are kept yet.  @nr_slots: of the SSD.  No other task uses @sums. */
static inline void lc_sums_init(struct lc_sums *sums, u64 nr_slots)
{
	sums->by_slot = NULL;
	sums->nr_slots = nr_slots;
}

/**
 * lc_sums_enable() - keep sums from now on
 * @sums: of the volume
 *
 * Does nothing if they are kept already.  May sleep, and reclaim memory through this volume: not
 * while it is suspended, nor under life_lock, which a rescue needs.  Does not invoke the OOM
 * killer, and fails rather than take more than half of the RAM.
 * Return: 0 or -ENOMEM.
 */
int lc_sums_enable(struct lc_sums *sums);

/* Nobody reads or writes the SSD any more.  May sleep. */
void lc_sums_destroy(struct lc_sums *sums);

/* Any context.  Return: bytes of RAM. */
u64 lc_sums_bytes(const struct lc_sums *sums);

/* Any context.  Are sums kept? */
static inline bool lc_sums_enabled(const struct lc_sums *sums)
{
	return READ_ONCE(sums->by_slot);
}

/* Any context. */
static inline void lc_sums_put(struct lc_sums *sums, u32 slot, u32 csum)
{
	u32 *by_slot = READ_ONCE(sums->by_slot);

	if (by_slot)
		WRITE_ONCE(by_slot[slot], csum);
}

/* Any context.  Return: the sum, or 0 if it is not known. */
static inline u32 lc_sums_get(const struct lc_sums *sums, u32 slot)
{
	const u32 *by_slot = READ_ONCE(sums->by_slot);

	return by_slot ? READ_ONCE(by_slot[slot]) : 0;
}

#endif /* LC_SUMS_H */
