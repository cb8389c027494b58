// SPDX-License-Identifier: GPL-2.0-only
/*
 * A model of bcache in writeback mode.
 *
 * Blocks that are written or missed are appended to an open bucket of 512 KiB, so an overwritten
 * block leaves a hole.  When a bucket is needed, the one with the lowest priority is invalidated:
 * how lately it was hit, times how much of it is valid, as bucket_prio() of alloc.c weighs it.
 */
#include <stdlib.h>

#include "sim.h"

#define BUCKET		128u		/* blocks */

struct bucket {
	u64 last;			/* access */
	u32 valid;
};

struct bcache {
	u32 *slot_of;			/* by block, or NONE */
	u32 *block_in;			/* by slot, or NONE */
	struct bucket *buckets;
	u32 nr_buckets, unused;		/* buckets from `unused` on were never written */
	u32 open, fill;
	u64 now, written;
};

static void *bcache_create(const struct trace *trace, u32 slots)
{
	struct bcache *b = sim_alloc(1, sizeof(*b));
	u32 i;

	b->nr_buckets = slots / BUCKET < 2 ? 2 : slots / BUCKET;
	b->slot_of = sim_alloc(trace->nr_ids, sizeof(u32));
	for (i = 0; i < trace->nr_ids; i++)
		b->slot_of[i] = NONE;
	b->block_in = sim_alloc((size_t)b->nr_buckets * BUCKET, sizeof(u32));
	b->buckets = sim_alloc(b->nr_buckets, sizeof(*b->buckets));
	b->open = NONE;
	return b;
}

static void bcache_destroy(void *cache)
{
	struct bcache *b = cache;

	free(b->slot_of);
	free(b->block_in);
	free(b->buckets);
	free(b);
}

static u64 bcache_written(const void *cache)
{
	return ((const struct bcache *)cache)->written;
}

static u32 lowest(const struct bcache *b)
{
	u64 oldest = b->now, best = ~0ULL;
	u32 i, found = 0;

	for (i = 0; i < b->nr_buckets; i++) {
		if (b->buckets[i].last < oldest)
			oldest = b->buckets[i].last;
	}
	for (i = 0; i < b->nr_buckets; i++) {
		const struct bucket *one = &b->buckets[i];
		u64 prio = (one->last - oldest + (b->now - oldest) / 8) * one->valid;

		if (i != b->open && prio < best) {
			best = prio;
			found = i;
		}
	}
	return found;
}

static void open_bucket(struct bcache *b)
{
	u32 i;

	if (b->unused < b->nr_buckets) {
		b->open = b->unused++;
	} else {
		b->open = lowest(b);
		for (i = b->open * BUCKET; i < (b->open + 1) * BUCKET; i++) {
			if (b->block_in[i] != NONE)
				b->slot_of[b->block_in[i]] = NONE;
		}
	}
	b->buckets[b->open].valid = 0;
	b->fill = 0;
}

static void append(struct bcache *b, u32 id)
{
	u32 slot = b->slot_of[id];

	if (slot != NONE) {
		b->block_in[slot] = NONE;
		b->buckets[slot / BUCKET].valid--;
		b->slot_of[id] = NONE;
	}
	if (b->open == NONE || b->fill == BUCKET)
		open_bucket(b);
	slot = b->open * BUCKET + b->fill++;
	b->slot_of[id] = slot;
	b->block_in[slot] = id;
	b->buckets[b->open].valid++;
	b->buckets[b->open].last = b->now;
	b->written++;
}

static bool bcache_access(void *cache, const struct access *access)
{
	struct bcache *b = cache;
	u32 slot = b->slot_of[access->id];

	b->now++;
	if (!access->write && slot != NONE) {
		b->buckets[slot / BUCKET].last = b->now;
		return true;
	}
	if (access->stream <= CUTOFF)
		append(b, access->id);
	return slot != NONE;
}

const struct model sim_bcache = {
	.name = "bcache",
	.create = bcache_create,
	.access = bcache_access,
	.written = bcache_written,
	.destroy = bcache_destroy,
};
