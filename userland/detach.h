/* SPDX-License-Identifier: GPL-2.0-only */
/* Taking a pair apart: the disk as it was, and an SSD that is no cache any more. */
#ifndef LC_DETACH_H
#define LC_DETACH_H

#include "image.h"

enum {
	DETACH_NO_CACHE	= 1 << 0,	/* the SSD is gone; what only it held is lost */
	DETACH_LOST	= 1 << 1,	/* the lost ranges in the mark are known */
	DETACH_PATH	= 1 << 2,	/* a disk with the same WWN that is in use is another one */
};

/*
 * All of lc-detach, for a pair that is not running; @ssd may be NULL.  @forced: mask of DETACH_*,
 * the refusals that are overruled.  What was interrupted is finished.  Return: 0, or a negative
 * errno after complaining.
 */
int detach_pair(const struct device *ssd, const struct device *hdd, unsigned int forced);

/*
 * Its halves; the steps are those of attach.c.  Both return 0, or a negative errno after
 * complaining.
 *
 * Steps 1 to 5: put the head back and remove the mark.  @marks: on @hdd, as read; one is good.
 */
int detach_disk(const struct device *hdd, const struct mark_pair *marks);
/* Step 6: remove the superblocks.  @img: those on @ssd, of which one is good. */
int detach_ssd(const struct device *ssd, const struct image *img);

#endif
