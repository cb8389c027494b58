/* SPDX-License-Identifier: GPL-2.0-only */
/* The way of a write into the lane.  See write.c. */
#ifndef LC_WRITE_H
#define LC_WRITE_H

#include <linux/blk_types.h>
#include <linux/types.h>

#include "wbcopy.h"

struct bio;
struct lc_core;
struct lc_io;
struct work_struct;

int lc_write_map(struct lc_core *core, struct bio *bio);
int lc_write_flush_map(struct lc_core *core, struct bio *bio, bool alone);
int lc_write_again(struct lc_core *core, struct lc_io *io);
void lc_write_continue(struct lc_core *core, struct lc_io *io, int ret, bool batch);
void lc_write_end(struct lc_io *io, blk_status_t status);
void lc_write_commit(struct lc_core *core);
void lc_write_commit_work(struct work_struct *work);
void lc_write_commit_late(struct work_struct *work);
int lc_write_relog(struct lc_core *core, u64 block, u32 slot, enum lc_wb_fate fate,
		   const void *data);

#endif /* LC_WRITE_H */
