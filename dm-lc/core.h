/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The core's life, as the target drives it.  See core.c.  All may sleep.
 */
#ifndef LC_CORE_H
#define LC_CORE_H

#include <linux/list.h>
#include <linux/types.h>

struct dm_dev;
struct dm_table;
struct dm_target;
struct lc_core;
struct lc_params;

int lc_core_get(struct dm_target *ti, struct dm_dev *backing, struct dm_dev *cache,
		const struct lc_params *params, struct lc_core **result, const char **error);
void lc_core_put(struct lc_core *core, struct dm_table *table);

int lc_core_resume(struct lc_core *core, struct dm_table *table, struct lc_params *params,
		   struct list_head *spare);
void lc_core_presuspend(struct lc_core *core, struct dm_target *ti);
void lc_core_presuspend_undo(struct lc_core *core);
void lc_core_postsuspend(struct lc_core *core, bool removing);

int lc_core_flush(struct lc_core *core);

#endif /* LC_CORE_H */
