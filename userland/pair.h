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

int pair_layout(const struct pair_request *req, const struct pair_choices *choices,
		struct lc_sb *sb);
int pair_write(const struct pair_request *req, const struct pair_choices *choices,
	       const struct lc_sb *sb);

#endif
