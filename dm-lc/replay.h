/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which records of a log exist after a crash?  The decision apart from the I/O:
 * record facts in, the unbroken run out.  Pure, like format.h, and shared with
 * lc-check, KUnit and the userspace explorer.
 */
#ifndef LC_REPLAY_H
#define LC_REPLAY_H

#include "format.h"

/*
 * What replay keeps of one record header that decoded.  Whoever scans follows the
 * chains, and tries every slot of segments without a first header and from the end of
 * the run on: else one rotten header would make all behind it look like a torn tail
 * (L4, L13).  What only that finds is hidden (R4).
 */
struct lc_replay_record {
	u64 seq;
	u64 epoch;
	u64 epoch_first_seq;
	u64 durable_seq;
	u64 segment;
	u64 cut;	/* that its header tells; out: see lc_replay_find_cuts() */
	u32 first_slot;
	u16 nr_entries;
	u8 type;
	bool hidden;	/* no chain of headers leads to it: it only tells of others */
	u8 keep;	/* out: part of the run */
};

struct lc_replay_result {
	u64 first_seq;		/* of the run; last_seq + 1 if it is empty */
	u64 last_seq;		/* of the run */
	u64 durable_seq;	/* highest believed: data up to it needs no check */
	u64 next_segment;	/* where the next life opens its first segment */
	size_t nr_kept;
};

int lc_replay_select(const struct lc_sb *sb, struct lc_replay_record *records, size_t nr,
		     struct lc_replay_result *result);
void lc_replay_find_cuts(struct lc_replay_record *records, size_t nr);
void lc_replay_next_life(struct lc_sb *sb, u64 first_seq);
void lc_replay_cut(const struct lc_sb *sb, struct lc_replay_record *records, size_t nr,
		   u64 last_seq, struct lc_replay_result *result);

#endif /* LC_REPLAY_H */
