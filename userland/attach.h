/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The first MiB of a disk that is cached in place, the head: moving it to where nothing that
 * probes disks finds it, and back.  See attach.c for the order and its reasons.
 *
 * All may complain, and return 0 or a negative errno.
 *
 * Invariants
 *  AT1 While the disk is a pair's, the whole of its first MiB is zero but for the marks.
 *  AT2 The head at the end is not written to while it is the only one.
 *  AT3 Until the pair exists, or once it is being taken apart, a sector of the first MiB is
 *     overwritten only if it holds what was copied from it, zeros, or a mark of ours:
 *     anything else was written by a user of the bare disk, and is newer.
 */
#ifndef LC_ATTACH_H
#define LC_ATTACH_H

#include "image.h"

/* Step 1: only copies the head to after the end of the volume, and reads the copy back. */
int attach_copy_head(const struct device *hdd, const struct lc_sb *sb);
/* Steps 3 and 4: from the first write on, the disk is the volume's, or lc-detach puts it back. */
int attach_begin(const struct device *hdd, const struct lc_sb *sb);
/* Steps 5 and 6, whether some of it was done before or not. */
int attach_finish(const struct device *hdd, const struct lc_sb *sb);

/* Does the mark say that the disk is half way between a bare disk and a pair? */
bool attach_interrupted(const struct lc_mark_info *mark);
/* Of such a mark: "lc-format was interrupted here: ..." with the remedy, in a static buffer. */
const char *attach_text(const struct lc_mark_info *mark, const char *hdd);

/*
 * The mark of a disk, at its start or at its end.  Return: 0 also if there is none
 * (marks_best() is NULL then).
 */
int attach_find_marks(const struct device *hdd, struct mark_pair *marks);

/* Write, and make durable; @len may be 0. */
int attach_write(const struct device *dev, u64 offset, const void *data, size_t len);
/* @len is not 0. */
bool attach_is_zero(const u8 *data, size_t len);

#endif
