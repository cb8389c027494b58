// SPDX-License-Identifier: GPL-2.0-only
/* What messages and tables ask of a volume that runs.  See control.h. */
#include <linux/lockdep.h>
#include <linux/string.h>

#include "bio/promote.h"
#include "life/control.h"
#include "life/lc.h"
#include "life/rescue.h"
#include "life/suspend.h"
#include "log/pool.h"
#include "store/sums.h"
#include "writeback/writeback.h"

int lc_volume_sync(struct lc_volume *vol)
{
	int ret = lc_volume_flush(vol);

	if (!ret || !lc_ssd_failed(&vol->c.health))
		return ret;
	/* The SSD is being given up: what was asked for will be on the HDD. */
	lc_rescue_wait(vol->rescue);
	return lc_volume_flush(vol);
}

void lc_volume_drain(struct lc_volume *vol)
{
	lc_writeback_drain(vol->wb);
}

/* Allocate what options need that are switched on.  Return: 0 or -ENOMEM. */
static int enable(struct lc_volume *vol, bool verify_reads, bool read_cache)
{
	int ret = verify_reads ? lc_sums_enable(&vol->c.sums) : 0;

	lockdep_assert_not_held(&vol->life_lock);	/* lc_sums_enable() */
	if (!ret && read_cache)
		ret = lc_promote_enable(vol->promote);
	return ret;
}

int lc_volume_set(struct lc_volume *vol, struct lc_params *params, const char *key,
		  const char *value)
{
	struct lc_params next;
	unsigned int noio;
	const char *error;
	int ret;

	/* Before the lock: it may take long to find so much memory. */
	ret = !strcmp(value, "on") ? enable(vol, !strcmp(key, "verify_reads"),
					    !strcmp(key, "read_cache")) : 0;
	if (ret)
		return ret;
	mutex_lock(&vol->life_lock);
	/* Memory must not be reclaimed through this volume: a rescue may wait for the lock. */
	noio = lc_noio_save();
	next = *params;
	ret = lc_params_set(&next, key, value, true, &error);
	if (ret)
		lc_err(&vol->c.env, "message %.40s %.40s: %s", key, value, error);
	else if (next.writeback_batch != params->writeback_batch ||
		 next.writeback_depth != params->writeback_depth)
		ret = lc_volume_resize_writeback(vol, &next);
	if (!ret) {
		lc_params_store(params, &next);
		lc_params_store(&vol->c.env.params, &next);
		lc_stats_set(&vol->c.stats, next.stats);
	}
	lc_noio_restore(noio);
	mutex_unlock(&vol->life_lock);
	lc_writeback_mode(vol->wb);
	return ret;
}

int lc_volume_alloc_spare(struct lc_volume *vol, const struct lc_params *params,
			  struct list_head *spare, const char **error)
{
	u32 have = READ_ONCE(vol->c.pool->nr);
	int ret;

	ret = enable(vol, params->verify_reads, params->read_cache);
	if (ret) {
		*error = "Cannot allocate memory for verify_reads or read_cache";
		return ret;
	}
	if (params->buffers <= have)
		return 0;
	ret = lc_buffers_alloc(vol->c.pool, params->buffers - have, spare);
	if (ret)
		*error = "Cannot allocate write buffers";
	return ret;
}

void lc_volume_free_spare(struct list_head *spare)
{
	lc_buffers_free(spare);
}
