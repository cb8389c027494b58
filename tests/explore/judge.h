/* SPDX-License-Identifier: GPL-2.0-only */
/* Is what recovery made of a crash state right?  See judge.c. */
#ifndef EXPLORE_JUDGE_H
#define EXPLORE_JUDGE_H

#include "world.h"

struct lc_mapping;

extern const char *const verdict_names[NR_VERDICTS];

/* Is the block in the index?  @map is set then. */
bool lookup(u64 block, struct lc_mapping *map);

/*
 * In the state that was judged last: how many sectors of a write are read as that write, and how
 * many as an older one.
 */
void judge_clean(const struct life *life);
void judge_saw(u32 op, u32 *same, u32 *older);

enum verdict judge(const struct life *life, const struct crash *crash, const struct life *next,
		   int ret, bool bytes);

#endif /* EXPLORE_JUDGE_H */
