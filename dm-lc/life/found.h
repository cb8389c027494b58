/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The record headers that a start has found in the log, and the memory for them: a chunk at a time,
 * as headers turn up (RP1 in replay.h).
 *
 * Invariants
 *
 *  FD1 No chunk is taken that leaves less than a sixteenth of the RAM available, and no process
 *      is killed for one.
 *  FD2 If a chunk cannot be had, all are given back at once, and the headers to come are only
 *      counted: so the refusal can say what the start would have taken.
 */
#ifndef LC_FOUND_H
#define LC_FOUND_H

#include "format/replay.h"

struct lc_cache;

struct lc_found {
	struct lc_cache *c;
	struct lc_replay_log log;	/* empty once a chunk could not be had */
	u64 nr_headers;			/* taken in, also those that are only counted */
	bool full;			/* a chunk could not be had */
};

/*
 * Allocate the memory for the lives.  May sleep.  lc_found_free() is called afterwards, also after
 * an error.  Return: 0 or -ENOMEM.
 */
int lc_found_alloc(struct lc_found *found, struct lc_cache *c);

/*
 * Keep one header, or count it if there is no memory left (FD2).  @hidden: no chain of headers
 * leads to it.  May sleep.  Return: 0, or -E2BIG: too many lives; the kernel log says so.
 */
int lc_found_add(struct lc_found *found, const struct lc_record_info *info, bool hidden);

/* Free all that is kept; also after a lc_found_alloc() that has failed.  May sleep. */
void lc_found_free(struct lc_found *found);

/* All headers are in.  Return: 0; -ENOMEM: not all were kept; the kernel log has what they take. */
int lc_found_check(const struct lc_found *found);

#endif /* LC_FOUND_H */
