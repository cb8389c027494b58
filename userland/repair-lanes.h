/* SPDX-License-Identifier: GPL-2.0-only */
/* Places in a log where records must go, so that a chain of headers leads on. */
#ifndef LC_REPAIR_LANES_H
#define LC_REPAIR_LANES_H

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

/*
 * In a log of several lanes: all seqs in the place before record @i of the scan, which exists, are
 * above this one.  It is that of the record before it in its segment or, if there is none, the
 * highest in the segments that were closed when this one was opened.
 */
u64 lanes_seq_before(const struct existing *e, size_t i);
/*
 * Give each of the holes of a log of several lanes its seqs, which are to be freed, as far as there
 * are enough.  Not so many are missing that they cannot be listed.
 */
void lanes_share(const struct existing *e, struct hole *holes, size_t nr_holes);

#endif
