/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes that find no room are parked, and continued in their turn.  See park.c. */
#ifndef LC_PARK_H
#define LC_PARK_H

#include <linux/types.h>

struct dm_target;
struct lc_core;
struct lc_io;
struct lc_park;

struct lc_park *lc_park_create(struct lc_core *core);
void lc_park_destroy(struct lc_park *park);
void lc_park_kick(struct lc_park *park);
bool lc_park_must(struct lc_park *park, struct lc_io *io);
void lc_park_add(struct lc_park *park, struct lc_io *io, bool may_sleep);
u64 lc_park_blocks(const struct lc_park *park);
void lc_park_presuspend(struct lc_park *park, struct dm_target *ti);
void lc_park_resume(struct lc_park *park);
void lc_park_rest(struct lc_park *park);
void lc_park_stop(struct lc_park *park);

#endif /* LC_PARK_H */
