/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing the blocks of a bio into a lane.
 *
 * For each block, under its bucket lock, a write reserves slots of the lane's open record unless
 * it has some, copies the data, describes it in the record header, and points the index at it.  A
 * block that is in an open record already is overwritten there, without a slot.  No I/O, no
 * allocation, no sleep.
 *
 * Two things stop it: no buffer is ready, or writeback needs the reserve (D1); and a part of a
 * block is written whose older sectors are dirty on the SSD only (merge.h).  The rooms above
 * decide what to do about that.
 *
 * A slot always holds every sector of its block that is not on the HDD.  So a block never needs
 * more than one slot.
 */
#ifndef LC_WRITE_H
#define LC_WRITE_H

#include <linux/types.h>

struct lc_cache;
struct lc_request;

/* An older slot of the next block, read from the SSD; valid while its segment is referenced. */
struct lc_old_slot {
	u32 slot;
	const void *data;	/* NULL: its sectors are lost */
};

/**
 * lc_write_run() - write as much as possible of a bio
 * @c: the cache
 * @io: the write; io->iter is what is left, before and after
 * @waited: it is not in map(): it takes space of any lane
 * @old_slot: of the first block that is left, or NULL
 *
 * Process context, does not sleep.
 * Return: 0 (all), -EAGAIN (no buffer), -EINPROGRESS (an old slot must be read first).
 */
int lc_write_run(struct lc_cache *c, struct lc_request *io, bool waited,
		 const struct lc_old_slot *old_slot);

/**
 * lc_write_again() - write as much as possible of a write that was parked
 * @c: the cache
 * @io: the write; io->iter is what is left, io->waiting says its class
 *
 * Process context, does not sleep.  Return: as lc_write_run(), or -EBUSY: a slow SSD has enough
 * to do, and the write is no commit (BL3).
 */
int lc_write_again(struct lc_cache *c, struct lc_request *io);

#endif /* LC_WRITE_H */
