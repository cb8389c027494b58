/* SPDX-License-Identifier: GPL-2.0-only */
/* Random numbers that are the same for the same seed on every machine (splitmix64). */
#ifndef FUZZ_RNG_H
#define FUZZ_RNG_H

#include <linux/types.h>

struct rng {
	u64 state;
};

static inline u64 rng_next(struct rng *rng)
{
	u64 z = rng->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* 0 <= result < below */
static inline u64 rng_below(struct rng *rng, u64 below)
{
	return rng_next(rng) % below;
}

static inline bool rng_one_in(struct rng *rng, u64 n)
{
	return !rng_below(rng, n);
}

#endif
