/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The core's life, as the target drives it.  See core.c.  All may sleep.
 */
#ifndef LC_CORE_H
#define LC_CORE_H

#include <linux/list.h>
#include <linux/types.h>

struct block_device;
struct dm_table;
struct dm_target;
struct lc_core;
struct lc_health_ops;
struct lc_params;
struct mapped_device;

struct lc_core *lc_core_alloc(struct mapped_device *md, struct block_device *backing,
			      struct block_device *cache);
int lc_core_setup(struct lc_core *core, struct dm_target *ti, const struct lc_params *params,
		  const char **error);
int lc_core_check_table(struct lc_core *core, struct dm_target *ti,
			const struct lc_params *params, const char **error);
void lc_core_unbind(struct lc_core *core, struct dm_table *table);
void lc_core_teardown(struct lc_core *core);

int lc_core_resume(struct lc_core *core, struct dm_table *table, struct lc_params *params,
		   struct list_head *spare);
void lc_core_presuspend(struct lc_core *core, struct dm_target *ti);
void lc_core_presuspend_undo(struct lc_core *core);
void lc_core_postsuspend(struct lc_core *core, bool removing);

int lc_core_flush(struct lc_core *core);

/* What follows when a room of a core reports a failure. */
extern const struct lc_health_ops lc_core_health_ops;

#endif /* LC_CORE_H */
