/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The refusals of lc-format that a person may overrule, each by its own name.
 * What is not here (in use, too small, SSD = HDD) cannot be overruled.
 */
#ifndef LC_REFUSAL_H
#define LC_REFUSAL_H

#include <stdio.h>

#include "device.h"
#include "image.h"
#include "oldmark.h"

enum refusal {
	REFUSE_SSD_SIGNATURE	= 1 << 0,
	REFUSE_DIRTY_CACHE	= 1 << 1,
	REFUSE_HDD_SIGNATURE	= 1 << 2,
	REFUSE_PAIRED		= 1 << 3,
	REFUSE_FS_AT_END	= 1 << 4,
	REFUSE_SAME_DISK	= 1 << 5,
	REFUSE_ROLES		= 1 << 6,
	REFUSE_OTHER_PATH	= 1 << 7,
};

struct pair_request {
	struct device *ssd;
	struct device *hdd;
	bool in_place;
	bool no_mark;
	bool head_is_moved;	/* in place, and was so with another cache; by refuse_pair() */
	unsigned int forced;	/* mask of enum refusal */
	/* By refuse_pair(): */
	struct old_marks ssd_marks, hdd_marks;
	bool keep_volume;	/* the disk has a volume in this layout, which stays */
};

/* The enum refusal of this name, 0 if there is none. */
unsigned int refusal_by_name(const char *name);
/* All names and what they mean, for --help. */
void refusals_print(FILE *to);

/* The content of a device, for the question on a terminal: one line, to be freed. */
char *holds_text(const struct device *dev);
/*
 * May these two be formatted?  Looks at all there is to refuse, writes nothing, and fills @req in.
 * Return: 0 yes, 1 no (all reasons were told), or a negative errno after complaining.
 */
int refuse_pair(struct pair_request *req);

#endif
