/* SPDX-License-Identifier: GPL-2.0-only */
/* Images as the module leaves them, small and random. */
#ifndef FUZZ_PLAUSIBLE_H
#define FUZZ_PLAUSIBLE_H

#include "medium.h"
#include "rng.h"

/*
 * Fill an empty medium.  No tool finds any damage in the result.  Returns what it
 * is: "fresh", "log" or "clean".
 */
const char *plausible_image(struct medium *m, struct rng *rng);

#endif
