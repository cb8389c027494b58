/* SPDX-License-Identifier: GPL-2.0-only */
/* Giving up an SSD, and going on without it.  See rescue.c. */
#ifndef LC_RESCUE_H
#define LC_RESCUE_H

#include <linux/types.h>

struct lc_volume;
struct lc_rescue;

struct lc_rescue *lc_rescue_create(struct lc_volume *vol);
void lc_rescue_destroy(struct lc_rescue *rescue);
void lc_rescue_start(struct lc_rescue *rescue);
void lc_rescue_run(struct lc_rescue *rescue);
void lc_rescue_wait(struct lc_rescue *rescue);
bool lc_rescue_pause(struct lc_rescue *rescue);
void lc_rescue_resume(struct lc_rescue *rescue);
void lc_rescue_finish(struct lc_rescue *rescue, bool removing);
void lc_rescue_record_lost(struct lc_volume *vol, bool ending);

#endif /* LC_RESCUE_H */
