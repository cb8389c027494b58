/* SPDX-License-Identifier: GPL-2.0-only */
/* Crash states: drawing one, and making the disks it leaves.  See crash.c. */
#ifndef EXPLORE_CRASH_H
#define EXPLORE_CRASH_H

#include "world.h"

void crash_draw(const struct life *life, struct crash *crash, u32 rot, struct rng *rng);
void crash_apply(const struct life *life, const struct crash *crash, struct life *next);
u32 crash_rot_place(const struct rec *rec, u32 at);

#endif /* EXPLORE_CRASH_H */
