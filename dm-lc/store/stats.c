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
	int cpu;

	*sum = (struct lc_counts) {};
	for_each_possible_cpu(cpu) {
		const struct lc_counts *one = per_cpu_ptr(stats->counts, cpu);

		/* Its CPU may be counting: then it is one less. */
		sum->local += data_race(one->local);
		/* As above. */
		sum->remote += data_race(one->remote);
		/* As above. */
		sum->parked += data_race(one->parked);
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

void lc_stats_add_parked(struct lc_stats *stats)
{
	if (READ_ONCE(stats->on))
		this_cpu_inc(stats->counts->parked);
}
