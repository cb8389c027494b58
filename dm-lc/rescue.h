/* SPDX-License-Identifier: GPL-2.0-only */
/* Giving up an SSD, and going on without it.  See rescue.c. */
#ifndef LC_RESCUE_H
#define LC_RESCUE_H

#include <linux/blk_types.h>

struct bio;
struct lc_core;
struct lc_io;
struct lc_rescue;
struct work_struct;

struct lc_rescue *lc_rescue_create(struct lc_core *core);
void lc_rescue_destroy(struct lc_rescue *rescue);
void lc_rescue_start(struct lc_rescue *rescue);
void lc_rescue_run(struct lc_rescue *rescue);
void lc_rescue_wait(struct lc_rescue *rescue);
int lc_rescue_record_lost(struct lc_core *core);

int lc_bypass_map(struct lc_core *core, struct bio *bio);
void lc_bypass_submit(struct lc_core *core, struct lc_io *io);
int lc_bypass_end(struct lc_core *core, struct bio *bio, blk_status_t *error);

#endif /* LC_RESCUE_H */
