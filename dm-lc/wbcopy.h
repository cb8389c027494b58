/* SPDX-License-Identifier: GPL-2.0-only */
/* Copying sorted slots from the SSD to the HDD.  See wbcopy.c. */
#ifndef LC_WBCOPY_H
#define LC_WBCOPY_H

#include <linux/types.h>

struct lc_core;
struct workqueue_struct;
struct lc_wbcopy;

struct lc_wb_item {
	u64 block;
	u32 slot;
	u32 csum;
	u8 mask;
	u8 lost;
};

struct lc_wbcopy *lc_wbcopy_create(struct lc_core *core, struct workqueue_struct *wq, u32 depth);
void lc_wbcopy_destroy(struct lc_wbcopy *copy);
int lc_wbcopy_run(struct lc_wbcopy *copy, const struct lc_wb_item *items, u32 nr,
		  const bool *stop);

#endif /* LC_WBCOPY_H */
