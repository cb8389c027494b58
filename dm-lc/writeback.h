/* SPDX-License-Identifier: GPL-2.0-only */
/* Draining the log to the HDD.  See writeback.c. */
#ifndef LC_WRITEBACK_H
#define LC_WRITEBACK_H

#include <linux/types.h>

struct lc_core;
struct lc_wb_list;
struct lc_wbcopy;
struct lc_writeback;

struct lc_writeback *lc_writeback_create(struct lc_core *core);
void lc_writeback_destroy(struct lc_writeback *wb);

int lc_writeback_resize(struct lc_writeback *wb, u32 batch, u32 depth);
void lc_writeback_resume(struct lc_writeback *wb);
void lc_writeback_pause(struct lc_writeback *wb);
void lc_writeback_kick(struct lc_writeback *wb);
void lc_writeback_drain(struct lc_writeback *wb);
const char *lc_writeback_state(struct lc_writeback *wb);
unsigned long lc_writeback_pace(const struct lc_writeback *wb);
unsigned long lc_writeback_rest(const struct lc_writeback *wb, u32 runs, u32 blocks);

/*
 * What a batch needs, for the rescue, once the mode is not rw any more: writeback begins no batch
 * then.  Process context.
 */
struct lc_wb_list *lc_writeback_list(struct lc_writeback *wb);
struct lc_wbcopy *lc_writeback_copy(struct lc_writeback *wb);
void *lc_writeback_header(struct lc_writeback *wb);	/* memory for two slots */

#endif /* LC_WRITEBACK_H */
