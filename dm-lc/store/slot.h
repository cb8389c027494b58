/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading a slot back from the SSD and verifying it against the checksum that the log has for it.
 *
 * The caller holds a reference on the slot's segment, or the tail waits for the caller: so the
 * segment is not reused meanwhile, and a sum that is learnt from a header is right (V1).
 */
#ifndef LC_SLOT_H
#define LC_SLOT_H

#include <linux/types.h>

struct lc_env;
struct lc_record_header;
struct lc_ring;
struct lc_sums;

/* What reading a slot needs.  life/volume.c sets it, before the first read.  Constant then. */
struct lc_slots {
	struct lc_env *env;
	struct lc_ring *ring;
	struct lc_sums *sums;
};

/**
 * lc_slot_read() - read a slot from the SSD and verify it
 * @slots: of the volume
 * @block: that it should hold
 * @slot: number over the whole SSD; its segment is not reused meanwhile, see above
 * @pages: two pages, physically contiguous; the first one gets the slot
 *
 * May sleep.  A slot that does not match is read a second time, together with its header.
 * Return: 0, -EBADMSG if slot or header are damaged, or an I/O error.
 */
int lc_slot_read(const struct lc_slots *slots, u64 block, u32 slot, void *pages);

/**
 * lc_slot_find_sum() - look up the checksum of a slot
 * @slots: of the volume
 * @block: that the slot should hold
 * @slot: number over the whole SSD; its segment is not reused meanwhile, see above
 * @header: memory for a record header
 * @csum: gets the sum
 *
 * May sleep and read from the SSD, unless the sum is in RAM.
 * Return: 0, -EBADMSG if the log has no such slot, or an I/O error.
 */
int lc_slot_find_sum(const struct lc_slots *slots, u64 block, u32 slot,
		     struct lc_record_header *header, u32 *csum);

/* Drop the reference on the segment of a slot.  Any context. */
void lc_slot_put(const struct lc_slots *slots, u32 slot);

#endif /* LC_SLOT_H */
