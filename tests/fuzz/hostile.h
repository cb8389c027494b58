/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Damage to an image, by rot or by somebody who means harm: with the right
 * checksums, so that it gets past them, or without.
 */
#ifndef FUZZ_HOSTILE_H
#define FUZZ_HOSTILE_H

#include "medium.h"
#include "rng.h"

#define HOSTILE_NOTE	128

/* One random change.  @note gets what and where, in a few words. */
void hostile_mutate(struct medium *m, struct rng *rng, char note[HOSTILE_NOTE]);

#endif
