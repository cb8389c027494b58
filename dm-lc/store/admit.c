// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which blocks that are read are kept on the SSD.  See admit.h.
 *
 * The ghost is an array of words.  A block has one word, which holds the fingerprints of the last
 * eight blocks that were noted there, a byte each, the newest one lowest.  So what is forgotten is
 * what was noted the longest ago, a look is one load, and a note is one store.  Of blocks that were
 * never noted, one in 32 is taken for one that was.
 *
 * First and second touch have a score each, which tells what they are worth: in how many of the two
 * halves of its time in the ring a block was hit, from 0 to 1 on the average.  While it is too low,
 * one such miss in 16 is promoted nevertheless, so that a better time is noticed.
 */
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "store/admit.h"

#define EVERY_BYTE	0x0101010101010101ULL

/* Of a slot, in the unit of the budget. */
#define EARNS		305		/* for each block read: 0.298 */
#define COSTS		1024
#define COSTS_WRITES	1365		/* they need their room, too: 4/3 */

#define SAVES		4		/* caches, by which a calm time lets a busy one exceed */

#define SHORT		64u		/* sectors: the longest read for the first touch */
#define EXPLORE		16u

#define SCORE_ONE	65536
/* A time constant of 2048 blocks; while EXPLORE makes them rare, of as many misses. */
#define SLOW		11
#define FAST		7

enum touch {
	FIRST,
	SECOND,
	NR_TOUCHES,
};

/* The second touch writes less, so it pays with fewer hits. */
static const int pays[NR_TOUCHES] = {
	[FIRST] = SCORE_ONE / 6,
	[SECOND] = SCORE_ONE / 16,
};

struct lc_admit {
	u64 *ghost;		/* READ_ONCE() and WRITE_ONCE() */
	u32 nr_words;		/* constant, as the next two */
	u32 seg_slots;
	s64 volume;		/* all slots, in the unit of the budget */
	/* All that follow: written by any task if not said otherwise; READ_ONCE(). */
	s64 budget;		/* updates may be lost */
	int score[NR_TOUCHES];	/* by the worker that evicts */
	u32 kept;		/* blocks of this segment; of the worker that evicts */
};

static u64 words(u64 nr_slots)
{
	s64 bytes = (s64)(nr_slots / 2) - (s64)sizeof(struct lc_admit);

	return max_t(s64, bytes / (s64)sizeof(u64), 1);
}

u64 lc_admit_need(u64 nr_slots)
{
	return sizeof(struct lc_admit) + words(nr_slots) * sizeof(u64);
}

struct lc_admit *lc_admit_create(u64 nr_slots, u32 seg_slots)
{
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL | __GFP_ZERO;
	struct lc_admit *admit = kzalloc(sizeof(*admit), GFP_KERNEL);

	if (!admit)
		return NULL;
	admit->nr_words = words(nr_slots);
	admit->ghost = __vmalloc(admit->nr_words * sizeof(u64), gfp);
	if (!admit->ghost) {
		kfree(admit);
		return NULL;
	}
	admit->seg_slots = seg_slots;
	admit->volume = nr_slots * COSTS;
	admit->budget = admit->volume / 8;
	memcpy(admit->score, pays, sizeof(pays));
	return admit;
}

void lc_admit_destroy(struct lc_admit *admit)
{
	if (!admit)
		return;
	vfree(admit->ghost);
	kfree(admit);
}

static void earn(struct lc_admit *admit, s64 gain)
{
	s64 budget = READ_ONCE(admit->budget) + gain;

	WRITE_ONCE(admit->budget, clamp_t(s64, budget, -admit->volume / 8, SAVES * admit->volume));
}

/* All bits depend on all bits of @block: neighbours share neither a word nor a fingerprint. */
static u64 mix(u64 block)
{
	block = (block ^ block >> 32) * 0x9e3779b97f4a7c15ULL;
	return (block ^ block >> 32) * 0xc4ceb9fe1a85ec53ULL;
}

/* Note a block.  Return: whether it was noted already; *old is its word. */
static bool note(struct lc_admit *admit, u64 block, u64 *old)
{
	u64 hash = mix(block), *word, same;
	u8 print = (u8)(hash >> 24) ?: 1;

	word = &admit->ghost[reciprocal_scale(hash >> 32, admit->nr_words)];
	*old = READ_ONCE(*word);
	/* A byte of it is 0 if and only if it is the fingerprint. */
	same = *old ^ print * EVERY_BYTE;
	if ((same - EVERY_BYTE) & ~same & EVERY_BYTE << 7)
		return true;
	WRITE_ONCE(*word, *old << 8 | print);
	return false;
}

u8 lc_admit_miss(struct lc_admit *admit, u64 block, u32 stream)
{
	enum touch touch;
	u64 old;

	earn(admit, EARNS);
	if (stream > LC_ADMIT_CUTOFF)
		return 0;
	touch = note(admit, block, &old) ? SECOND : FIRST;
	if (touch == FIRST && stream > SHORT)
		return 0;
	if (READ_ONCE(admit->score[touch]) < pays[touch]) {
		if ((block ^ old >> 56) % EXPLORE)
			return 0;
	} else if (touch == FIRST && READ_ONCE(admit->budget) <= 0) {
		return 0;
	}
	return LC_ADMIT_PROMOTED | (touch == FIRST ? LC_ADMIT_FIRST : 0);
}

void lc_admit_hits(struct lc_admit *admit)
{
	earn(admit, (s64)EARNS * LC_ADMIT_SAMPLE);
}

void lc_admit_reuse(struct lc_admit *admit)
{
	admit->kept = 0;
	earn(admit, -(s64)admit->seg_slots * COSTS_WRITES);
}

void lc_admit_ceded(struct lc_admit *admit, u32 nr_slots)
{
	earn(admit, (s64)nr_slots * (COSTS_WRITES - COSTS));
}

static u32 hits(u8 flags)
{
	return !!(flags & LC_ADMIT_HIT_YOUNG) + !!(flags & LC_ADMIT_HIT_OLD);
}

static void learn(struct lc_admit *admit, u8 flags)
{
	enum touch touch = flags & LC_ADMIT_FIRST ? FIRST : SECOND;
	int score = admit->score[touch];
	int step = (int)hits(flags) * (SCORE_ONE / 2) - score;

	/* Division, not a shift: both directions round the same way. */
	step /= 1 << (score >= pays[touch] ? SLOW : FAST);
	WRITE_ONCE(admit->score[touch], score + step);
}

/* Less than half of a segment (AD4); half of that if the budget is exceeded by far. */
static u32 most_kept(const struct lc_admit *admit)
{
	bool debt = READ_ONCE(admit->budget) < -admit->volume / 16;

	return admit->seg_slots / (debt ? 4 : 2) - 1;
}

bool lc_admit_keep(struct lc_admit *admit, u8 flags)
{
	if (!(flags & LC_ADMIT_PROMOTED))
		return false;
	if (!(flags & LC_ADMIT_KEPT))
		learn(admit, flags);
	/* It was hit in both halves to get here, so one is enough to stay. */
	if (hits(flags) < (flags & LC_ADMIT_KEPT ? 1 : 2))
		return false;
	if (admit->kept >= most_kept(admit))
		return false;
	admit->kept++;
	return true;
}

void lc_admit_evicted(struct lc_admit *admit, u64 block, u8 flags)
{
	u64 old;

	/* One that was worth it is promoted again at its next miss. */
	if ((flags & LC_ADMIT_PROMOTED) && hits(flags))
		note(admit, block, &old);
}
