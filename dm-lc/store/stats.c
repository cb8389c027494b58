// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters.  See stats.h.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/topology.h>

#include "store/stats.h"

DEFINE_STATIC_KEY_FALSE(lc_stats_wanted);

int lc_stats_create(struct lc_stats *stats)
{
	stats->counts = alloc_percpu(struct lc_counts);
	return stats->counts ? 0 : -ENOMEM;
}

void lc_stats_destroy(struct lc_stats *stats)
{
	free_percpu(stats->counts);
}

void lc_stats_sum(const struct lc_stats *stats, struct lc_counts *sum)
{
	u64 *to = (u64 *)sum;
	unsigned int i;
	int cpu;

	static_assert(!(sizeof(*sum) % sizeof(*to)));
	*sum = (struct lc_counts) {};
	for_each_possible_cpu(cpu) {
		const u64 *one = (const u64 *)per_cpu_ptr(stats->counts, cpu);

		for (i = 0; i < sizeof(*sum) / sizeof(*to); i++) {
			/* Its CPU may be counting: then it is one less. */
			to[i] += data_race(one[i]);
		}
	}
}

void lc_stats_add_copy(struct lc_stats *stats, const void *to)
{
	if (!READ_ONCE(stats->on))
		return;
	if (page_to_nid(virt_to_page(to)) == numa_node_id())
		this_cpu_inc(stats->counts->local);
	else
		this_cpu_inc(stats->counts->remote);
}

void lc_stats_parked(struct lc_stats *stats)
{
	this_cpu_inc(stats->counts->parked);
}

void lc_stats_batch(struct lc_stats *stats)
{
	this_cpu_inc(stats->counts->batches);
}

void lc_stats_promoted(struct lc_stats *stats, u32 nr)
{
	this_cpu_add(stats->counts->promoted, nr);
}

void lc_stats_around(struct lc_stats *stats, u32 bytes)
{
	this_cpu_add(stats->counts->around, bytes);
}

void lc_stats_sent(struct lc_stats *stats, bool ssd, blk_opf_t opf, u32 bytes)
{
	struct lc_sent __percpu *sent = ssd ? &stats->counts->ssd : &stats->counts->hdd;

	if (opf & REQ_PREFLUSH)
		this_cpu_inc(sent->flushes);
	if (!bytes)
		return;
	if (op_is_write(opf)) {
		this_cpu_inc(sent->writes);
		this_cpu_add(sent->written, bytes);
	} else {
		this_cpu_add(sent->read, bytes);
	}
}
