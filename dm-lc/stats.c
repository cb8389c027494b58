// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters.  See stats.h.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/topology.h>

#include "cache.h"
#include "stats.h"

DEFINE_STATIC_KEY_FALSE(lc_stats_wanted);

/* May sleep.  Return: 0 or -ENOMEM. */
int lc_stats_create(struct lc_cache *c)
{
	c->stats = alloc_percpu(struct lc_stats);
	return c->stats ? 0 : -ENOMEM;
}

void lc_stats_destroy(struct lc_cache *c)
{
	free_percpu(c->stats);
}

/**
 * lc_stats_sum() - what was counted, over all CPUs
 * @c: the volume
 * @sum: gets it
 *
 * Any context; exact while nothing is counted.
 */
void lc_stats_sum(const struct lc_cache *c, struct lc_stats *sum)
{
	int cpu;

	*sum = (struct lc_stats) {};
	for_each_possible_cpu(cpu) {
		const struct lc_stats *one = per_cpu_ptr(c->stats, cpu);

		/* Its CPU may be counting: then it is one less. */
		sum->local += data_race(one->local);
		/* As above. */
		sum->remote += data_race(one->remote);
		/* As above. */
		sum->parked += data_race(one->parked);
	}
}

void lc_stats_add_copy(struct lc_cache *c, const void *to)
{
	if (!READ_ONCE(c->stats_on))
		return;
	if (page_to_nid(virt_to_page(to)) == numa_node_id())
		this_cpu_inc(c->stats->local);
	else
		this_cpu_inc(c->stats->remote);
}

void lc_stats_add_parked(struct lc_cache *c)
{
	if (READ_ONCE(c->stats_on))
		this_cpu_inc(c->stats->parked);
}
