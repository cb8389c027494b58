/* SPDX-License-Identifier: GPL-2.0-only */
/* What was written, by operation of the user and by record of the log.  See history.c. */
#ifndef EXPLORE_HISTORY_H
#define EXPLORE_HISTORY_H

#include "world.h"

void history_reset(void);
u32 op_add(u32 block, u32 nr, u8 mask, u32 rec);
void op_stamp(u8 *bytes, u32 op, u8 mask);
void op_stays(const struct dpage *page, u8 mask);
struct rec *rec_new(void);
u32 rec_index(const struct rec *rec);
struct rec *rec_of_seq(u64 seq);
u32 rec_find_place(const struct rec *rec, const struct kept *kept, u32 at);

bool op_survives(u32 n, u32 last_write, u64 last_seq);
void content_apply(struct content *content, u32 from, u32 to, u32 last_write, u64 last_seq,
		   u32 at);
void map_apply(u32 *map, u64 from, u64 to);

bool discarded_since(u32 block, u32 n, u32 last);
u32 ops_until(u32 time);
void floor_at(const struct life *life, u32 time, u32 *op, u64 *seq);
void history_around(const struct crash *crash, void (*saw)(u32 op, u32 *same, u32 *older));
void history_cut(const struct life *life, u32 at, struct life *next, u64 last_seq);

#endif /* EXPLORE_HISTORY_H */
