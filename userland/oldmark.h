/* SPDX-License-Identifier: GPL-2.0-only */
/* Marks that earlier pairings left on a device, wherever they are. */
#ifndef LC_OLDMARK_H
#define LC_OLDMARK_H

#include "image.h"

#define OLD_MARKS_MAX	8

struct old_marks {
	unsigned int nr;
	u64 offset[OLD_MARKS_MAX];	/* of areas in which a copy has a mark's magic */
};

/*
 * Looks at the start and at the end of the device, and, because it may have grown since, at the end
 * of its contents.  @known_end: of a file system or table on it, 0 if unknown.  0 or a negative
 * errno.
 */
int old_marks_find(const struct device *dev, u64 known_end, struct old_marks *marks);

/* Overwrite both copies of each but the one at @keep; durable afterwards. */
int old_marks_wipe(const struct device *dev, const struct old_marks *marks, u64 keep);

#endif
