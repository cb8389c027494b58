/* SPDX-License-Identifier: GPL-2.0-only */
/* The record headers of a log, as replay reads them. */
#ifndef LC_SCAN_H
#define LC_SCAN_H

#include "chain.h"
#include "device.h"
#include "format.h"
#include "replay.h"

enum scan_mode {
	SCAN_LOG,		/* as replay: up to where the log ends */
	SCAN_RING,		/* the whole ring, also past damage */
};

/* A slot that should have held a header but does not. */
struct scan_bad {
	u64 segment;
	u32 slot;
	int err;
	const char *why;
};

/* A slot that cannot be read.  Replay goes on without it. */
struct scan_dark {
	u64 segment;
	u32 slot;
};

/* Records in the order of segments and slots; seen[], kept[] and run after scan_select(). */
struct scan {
	struct lc_record_info *found;
	bool *hidden;		/* found after a slot that holds no header */
	bool *seen;		/* by replay, which does not look everywhere */
	bool *kept;
	size_t nr;
	struct scan_bad *bad;
	size_t nr_bad;
	struct scan_dark *dark;
	size_t nr_dark;
	u64 nr_segments_read;
	u64 boundary;		/* where the run ends: its last record's */
	struct lc_replay_result run;
	int verdict;		/* of lc_replay_select(), or -E2BIG: too many lives */
};

/*
 * Find the headers of the log from its tail on.  @scan: result, to be freed by scan_free().  What
 * cannot be read is listed in it, and complained about.
 */
void scan_log(struct scan *scan, const struct device *dev, const struct lc_sb *sb,
	      enum scan_mode mode);
/*
 * Let the replay rules decide which of them exist: fills in seen[], kept[], run and verdict.  Adds
 * records that others have hidden (L19).
 */
void scan_select(struct scan *scan, const struct device *dev, const struct lc_sb *sb);
/* Drop the records above @last_seq from the run: their data is torn. */
void scan_truncate(struct scan *scan, u64 last_seq);
/*
 * The first header that is whole but beyond this version, or NULL.  The kernel does not start from
 * such a log: more may have been meant by it.
 */
const struct scan_bad *scan_unknown(const struct scan *scan);
void scan_free(struct scan *scan);

/*
 * Read the header at @chain, decode it and advance past its record.  Return: 0, or a negative errno
 * and *why; @chain is unchanged then.
 */
int scan_step(const struct device *dev, const struct lc_sb *sb, struct lc_chain *chain,
	      struct lc_record_header *raw, struct lc_record_info *info, const char **why);
/* As scan_step(), and past groups of promoted blocks as well, which are behind the records. */
int scan_step_any(const struct device *dev, const struct lc_sb *sb, struct lc_chain *chain,
		  struct lc_record_header *raw, struct lc_record_info *info);
/* Read and decode the header at a slot of segment number @segment.  Return: as scan_step(). */
int scan_read_header(const struct device *dev, const struct lc_sb *sb, u64 segment, u32 slot,
		     struct lc_record_header *raw, struct lc_record_info *info, const char **why);
/*
 * Read the data slot at byte @at, several times if it is not what its checksum says, because a
 * passing error is no damage.  @data: LC_SLOT_BYTES.  Return: what is wrong with it, or NULL.
 */
const char *scan_slot(const struct device *dev, const struct lc_sb *sb, u64 at, u64 block, u32 csum,
		      void *data);
/* Indices of the kept records in the order of their seqs; to be freed. */
size_t *scan_by_seq(const struct scan *scan, size_t *nr);

#endif
