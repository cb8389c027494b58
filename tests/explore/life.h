/* SPDX-License-Identifier: GPL-2.0-only */
/* One life, and the calls of the module that sleep.  See life.c. */
#ifndef EXPLORE_LIFE_H
#define EXPLORE_LIFE_H

#include "world.h"

void format_volume(struct life *life);
void life_images_alloc(void);
void life_remember(const struct life *life);
void life_images_clear(struct life *life);
void life_prepare(struct life *life);
int life_start(struct life *life);
void life_go_on(struct life *life);
void life_stop_clean(void);
void life_tick(struct life *life);

void life_ack(u64 seq, u32 op);

#endif /* EXPLORE_LIFE_H */
