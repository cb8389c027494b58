/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The chain of record headers of a segment.
 *
 * The first header is in slot 0.  After each header are the slots that it names, and after these
 * is the next header.  A slot that holds no header ends the chain, but a damaged header does not
 * hide those after it (L13): a walk may go on slot by slot.
 *
 * Groups of promoted blocks are in the same way behind the last record.  They are no part of the
 * log, so only a walk that looks for sums of slots follows them.
 *
 * Pure, as format.c is; the caller reads the headers.
 */
#ifndef LC_CHAIN_H
#define LC_CHAIN_H

#include <linux/errno.h>

#include "format.h"

struct lc_chain {
	u64 segment;	/* its number */
	u64 epoch;	/* of the life whose records are wanted, 0: of any (R7) */
	u32 slot;	/* of the segment, to be read next */
	u32 next;	/* slot after the last record, where the next header should be */
};

static inline void lc_chain_start(struct lc_chain *chain, u64 segment, u64 epoch)
{
	*chain = (struct lc_chain){ .segment = segment, .epoch = epoch };
}

static inline bool lc_chain_at_end(const struct lc_chain *chain, const struct lc_geometry *geo)
{
	return chain->slot >= geo->seg_slots;
}

/* Should the slot to be read hold a header?  If not, the walk goes on slot by slot. */
static inline bool lc_chain_unbroken(const struct lc_chain *chain)
{
	return chain->slot == chain->next;
}

/* Return: where the slot to be read is, in bytes on the SSD. */
static inline u64 lc_chain_address(const struct lc_chain *chain, const struct lc_geometry *geo)
{
	return lc_format_log_address(geo, chain->segment, chain->slot);
}

/* @ret: of decoding a header into @info. */
static inline int lc_chain_pass(struct lc_chain *chain, const struct lc_record_info *info, int ret,
				const char **why)
{
	if (!ret && chain->epoch && info->epoch != chain->epoch) {
		if (why)
			*why = "of another life";
		ret = -ESTALE;
	}
	if (ret)
		return ret;
	/* At least one slot further, and not beyond the segment: decoding has checked that. */
	chain->slot += LC_HEADER_SLOTS + info->nr_slots;
	chain->next = chain->slot;
	return 0;
}

/*
 * Decode @raw, which was read at the chain's address, and advance past the record.
 *
 * Return: 0, or an error of lc_record_decode(), -ESTALE for a record of another life: the chain
 * is unchanged and @info undefined.  @why, which may be NULL, gets the reason.
 */
static inline int lc_chain_step(struct lc_chain *chain, const struct lc_sb *sb,
				const struct lc_record_header *raw, struct lc_record_info *info,
				const char **why)
{
	int ret = lc_record_decode(raw, sb, chain->segment, chain->slot, info, why);

	return lc_chain_pass(chain, info, ret, why);
}

/* The same for a header of a record or of a group. */
static inline int lc_chain_step_any(struct lc_chain *chain, const struct lc_sb *sb,
				    const struct lc_record_header *raw,
				    struct lc_record_info *info)
{
	int ret = lc_record_decode(raw, sb, chain->segment, chain->slot, info, NULL);

	if (ret == -ENODATA)
		ret = lc_group_decode(raw, sb, chain->segment, chain->slot, info, NULL);
	return lc_chain_pass(chain, info, ret, NULL);
}

/* The slot holds no header: try the next one. */
static inline void lc_chain_skip(struct lc_chain *chain)
{
	chain->slot++;
}

#endif /* LC_CHAIN_H */
