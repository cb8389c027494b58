/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes to a part of a block whose other sectors are dirty on the SSD only.
 *
 * A worker reads and verifies the old slot.  The block is looked up again under its lock before
 * anything is merged: if another slot holds it by then, that one is read (C2, C3).  A slot that
 * the SSD does not give back gets ssd_patience_ms, then its sectors are lost (L18).
 */
#ifndef LC_MERGE_H
#define LC_MERGE_H

struct lc_cache;
struct lc_request;
struct lc_merge;

/* Embedded in the room that owns the writes; constant. */
struct lc_merge {
	struct lc_cache *c;
	/*
	 * lc_write_run() has stopped.  Process context.  @ret: its return value.  -EINPROGRESS:
	 * another old slot must be read, of the next block or a newer one of the same block.
	 */
	void (*merged)(struct lc_merge *merge, struct lc_request *io, int ret);
};

/* Read the old slot of the next block, and go on.  Any context; io->work is not in use. */
void lc_merge_start(struct lc_merge *merge, struct lc_request *io);

#endif /* LC_MERGE_H */
