/* SPDX-License-Identifier: GPL-2.0-only */
/* Laying out and writing a new pair of SSD and hard disk; the writing half of lc-format. */
#ifndef LC_PAIR_H
#define LC_PAIR_H

#include "refusal.h"

struct pair_choices {
	u32 segment_bytes;
	u32 csum_type;
	const char *label;
	const char *options;
	bool discard;
};

/*
 * The superblock of a new pair.  The devices in @req are open; nothing is written.  Return: 0, or
 * a negative errno after complaining.
 */
int pair_layout(const struct pair_request *req, const struct pair_choices *choices,
		struct lc_sb *sb);
/*
 * Make the pair that pair_layout() has laid out and refuse_pair() has not refused.  What an error
 * or a crash leaves, the same command finishes or overwrites: see pair.c.  Return: 0, or a
 * negative errno after complaining.
 */
int pair_write(const struct pair_request *req, const struct pair_choices *choices,
	       const struct lc_sb *sb);

#endif
