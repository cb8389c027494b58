/* SPDX-License-Identifier: GPL-2.0-only */
/* Is what recovery made of a crash state right?  See judge.c. */
#ifndef EXPLORE_JUDGE_H
#define EXPLORE_JUDGE_H

#include "world.h"

extern const char *const verdict_names[NR_VERDICTS];

enum verdict judge(const struct life *life, const struct crash *crash, const struct life *next,
		   int ret, bool bytes);

#endif /* EXPLORE_JUDGE_H */
