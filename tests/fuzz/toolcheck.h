/* SPDX-License-Identifier: GPL-2.0-only */
/* What lc-check thinks of a medium; apart from the module, whose types differ. */
#ifndef FUZZ_TOOLCHECK_H
#define FUZZ_TOOLCHECK_H

#include "medium.h"

struct verdict {
	int code;		/* exit code of lc-check */
	bool has_log;		/* it is the log that counts, not a checkpoint */
	u64 last_seq;		/* where it ends */
	bool contradicts;	/* two headers disagree about the first seq of a life */
	bool nested;		/* a header lies in the data of a record */
	bool beyond;		/* there are records where no reader goes: behind a long gap */
	bool later;		/* there is a record of a later life than the superblock's */
	bool lost;		/* the mark lists lost ranges */
};

void toolcheck(struct medium *medium, struct verdict *verdict);

/* lc-check --repair; its exit code. */
int toolcheck_repair(struct medium *medium);

#endif
