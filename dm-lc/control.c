// SPDX-License-Identifier: GPL-2.0-only
/* What messages and tables ask of a volume that runs.  See control.h. */
#include <linux/string.h>

#include "control.h"
#include "lc.h"
#include "pool.h"
#include "rescue.h"
#include "sums.h"
#include "suspend.h"
#include "writeback.h"

int lc_core_sync(struct lc_core *core)
{
	int ret = lc_core_flush(core);

	if (!ret || !lc_ssd_failed(&core->c.health))
		return ret;
	/* The SSD is being given up: what was asked for will be on the HDD. */
	lc_rescue_wait(core->rescue);
	return lc_core_flush(core);
}

void lc_core_drain(struct lc_core *core)
{
	lc_writeback_drain(core->wb);
}

int lc_core_set(struct lc_core *core, struct lc_params *params, const char *key,
		const char *value)
{
	struct lc_params next;
	unsigned int noio;
	const char *error;
	int ret;

	/* Before the lock: nobody knows how long it takes to find so much memory. */
	if (!strcmp(key, "verify_reads") && !strcmp(value, "on")) {
		ret = lc_sums_enable(&core->c.sums);
		if (ret)
			return ret;
	}
	mutex_lock(&core->life_lock);
	/* Memory must not be reclaimed through this volume: a rescue may wait for the lock. */
	noio = lc_noio_save();
	next = *params;
	ret = lc_params_set(&next, key, value, true, &error);
	if (ret)
		lc_err(&core->c.env, "message %.40s %.40s: %s", key, value, error);
	else if (next.writeback_batch != params->writeback_batch ||
		 next.writeback_depth != params->writeback_depth)
		ret = lc_core_resize_writeback(core, &next);
	if (!ret) {
		lc_params_store(params, &next);
		lc_params_store(&core->c.env.params, &next);
		lc_stats_set(&core->c.stats, next.stats);
	}
	lc_noio_restore(noio);
	mutex_unlock(&core->life_lock);
	lc_writeback_kick(core->wb);
	return ret;
}

int lc_core_alloc_spare(struct lc_core *core, const struct lc_params *params,
			struct list_head *spare, const char **error)
{
	u32 have = READ_ONCE(core->c.pool->nr);
	int ret;

	ret = params->verify_reads ? lc_sums_enable(&core->c.sums) : 0;
	if (ret) {
		*error = "Cannot allocate memory for verify_reads";
		return ret;
	}
	if (params->buffers <= have)
		return 0;
	ret = lc_buffers_alloc(core->c.pool, params->buffers - have, spare);
	if (ret)
		*error = "Cannot allocate write buffers";
	return ret;
}

void lc_core_free_spare(struct list_head *spare)
{
	lc_buffers_free(spare);
}
