/* SPDX-License-Identifier: GPL-2.0-only */
/* Places in a log where records must go, so that a chain of headers leads on. */
#ifndef LC_HOLE_H
#define LC_HOLE_H

#include "exists.h"

/* Slots that the largest placeholder takes. */
#define PLACEHOLDER_SLOTS	(LC_HEADER_SLOTS + LC_RECORD_ENTRIES)

/* Slots before a record of the same segment. */
struct hole {
	u64 segment;
	u32 first, slots;
	u64 from, to;		/* seqs that may go in: from < seq < to */
	u64 *seqs;		/* that do, rising */
	size_t nr;
	bool content;		/* of several lanes: seqs below the tail would do */
};

/* repair-lanes.c: logs of several lanes */
u64 lanes_seq_before(const struct existing *e, size_t i);
void lanes_share(const struct existing *e, struct hole *holes, size_t nr_holes);

#endif
