/* SPDX-License-Identifier: GPL-2.0-only */
/* Listing what a segment holds that the HDD does not.  See wbcollect.c. */
#ifndef LC_WBCOLLECT_H
#define LC_WBCOLLECT_H

#include <linux/types.h>

struct lc_core;
struct lc_wb_item;

struct lc_wb_list {
	struct lc_wb_item *items;
	u32 max;
	u32 nr;
};

int lc_wbcollect_segment(struct lc_core *core, u64 number, struct lc_wb_list *list, void *header,
			 bool patient, const bool *stop);
u32 lc_wbcollect_sort(struct lc_wb_list *list);

#endif /* LC_WBCOLLECT_H */
