/* SPDX-License-Identifier: GPL-2.0-only */
/* A block on its way from the SSD to the HDD. */
#ifndef LC_WBITEM_H
#define LC_WBITEM_H

#include <linux/types.h>

/* What became of a block on its way to the HDD. */
enum lc_wb_result {
	LC_WB_COPIED,
	LC_WB_DAMAGED,		/* the SSD does not give it back as it was written */
	LC_WB_REFUSED,		/* the HDD did not take it */
	LC_WB_UNREADABLE,	/* as DAMAGED, but it may come back (LC_WB_SKIP) */
};

struct lc_wb_item {
	u64 block;
	u32 slot;
	u32 csum;
	u8 mask;
	u8 lost;
	u8 result;	/* enum lc_wb_result */
	bool done;	/* the result is final: with COPIED, the HDD took it */
};

#endif /* LC_WBITEM_H */
