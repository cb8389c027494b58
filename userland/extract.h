/* SPDX-License-Identifier: GPL-2.0-only */
/* What a cache holds that its hard disk may not: as an image of the volume, and as a list. */
#ifndef LC_EXTRACT_H
#define LC_EXTRACT_H

#include "device.h"
#include "format.h"

/*
 * Write the sectors to a new sparse file @image, and if @map is not NULL their ranges to a new
 * file.  Only reads the cache.  0 or a negative errno, after complaining; -EUCLEAN: all that is
 * good was written, but something is damaged or lost.
 */
int extract(const struct device *dev, const struct lc_sb *sb, const char *image, const char *map);

#endif
