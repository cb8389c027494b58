// SPDX-License-Identifier: GPL-2.0-only
/* The mode of the volume.  See health.h. */
#include "store/env.h"
#include "store/health.h"
#include "store/trace.h"

void lc_health_init(struct lc_health *health, struct lc_env *env, const struct lc_health_ops *ops)
{
	health->env = env;
	health->ops = ops;
	health->reason = NULL;
	health->mode = LC_MODE_RW;
	atomic_set(&health->ssd_failed, 0);
}

/* Return: whether it was this call that changed the mode. */
static bool enter(struct lc_health *health, enum lc_mode from, enum lc_mode to)
{
	if (cmpxchg(&health->mode, from, to) != from)
		return false;
	trace_lc_mode_changed(health->env->dev, to);
	return true;
}

void lc_health_fail(struct lc_health *health, const char *reason)
{
	health->ops->refuse_flushes(health);
	if (!enter(health, LC_MODE_RW, LC_MODE_FAIL))
		return;
	cmpxchg(&health->reason, NULL, reason);
	lc_err_atomic(health->env, "mode fail: %s; writes are refused", reason);
	health->ops->wake(health);
	health->ops->tell(health);
}

void lc_health_ssd_failed(struct lc_health *health, const char *reason)
{
	if (lc_mode(health) != LC_MODE_RW || atomic_read(&health->ssd_failed))
		return;
	cmpxchg(&health->reason, NULL, reason);
	if (atomic_xchg(&health->ssd_failed, 1))
		return;
	/* Without a mark nothing would keep the SSD from being replayed when it comes back. */
	if (health->env->sb->mark_offset == LC_NO_MARK)
		lc_health_fail(health, reason);
	else
		health->ops->give_up_ssd(health);
}

bool lc_health_degrade(struct lc_health *health)
{
	return enter(health, LC_MODE_RW, LC_MODE_DEGRADED);
}

void lc_health_hdd_failed(struct lc_health *health)
{
	health->ops->refuse_flushes(health);
	if (!enter(health, LC_MODE_DEGRADED, LC_MODE_FAIL))
		return;
	lc_err(health->env, "mode fail: the backing device failed a FLUSH; writes are refused");
	health->ops->tell(health);
}

void lc_health_outdated(struct lc_health *health, const char *reason)
{
	health->ops->refuse_flushes(health);
	cmpxchg(&health->reason, NULL, reason);
	WRITE_ONCE(health->mode, LC_MODE_FAIL);
	trace_lc_mode_changed(health->env->dev, LC_MODE_FAIL);
}

void lc_health_tell(struct lc_health *health)
{
	health->ops->tell(health);
}

void lc_health_end(struct lc_health *health)
{
	WRITE_ONCE(health->mode, LC_MODE_FAIL);
}
