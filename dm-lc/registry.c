// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registry of volumes.  See registry.h.
 *
 * A core passes through three stages.  While it is COMING, its superblock is read and its rooms
 * are allocated; while it is GOING, they are freed.  Both happen without the lock.  Another
 * target that asks for one of its devices meanwhile sleeps until the core is LIVE or gone.
 *
 * Teardown: only a task that is in lc_registry_get() or lc_registry_put() changes the list, and
 * device mapper holds a reference on the module during both, so the module is not unloaded
 * while an entry is left.
 */
#include <linux/mutex.h>
#include <linux/wait.h>

#include "lc.h"
#include "registry.h"
#include "volume.h"

static DEFINE_MUTEX(lc_cores_lock);
static LIST_HEAD(lc_cores);
static unsigned long nr_changes;	/* of stages; written under the lock, READ_ONCE() */
static DECLARE_WAIT_QUEUE_HEAD(changed);

/* A stage has changed, or a core has left the list. */
static void tell_change(void)
{
	lockdep_assert_held(&lc_cores_lock);
	WRITE_ONCE(nr_changes, nr_changes + 1);
	wake_up_all(&changed);
}

/* A few volumes at most, so a list is enough. */
static struct lc_core *core_using(dev_t devt)
{
	struct lc_core *core;

	lockdep_assert_held(&lc_cores_lock);
	list_for_each_entry(core, &lc_cores, list) {
		if (core->c.env.cache->bd_dev == devt || core->c.env.backing->bd_dev == devt)
			return core;
	}
	return NULL;
}

/*
 * Is there another core with this cache's UUID: the same SSD under another name, such as a
 * linear device on it?  Of two that come at the same time the second one to ask finds the first.
 */
static bool same_cache(const struct lc_core *fresh)
{
	struct lc_core *core;

	lockdep_assert_held(&lc_cores_lock);
	list_for_each_entry(core, &lc_cores, list) {
		if (core->stage != LC_STAGE_COMING &&
		    !memcmp(core->c.sb.cache_uuid, fresh->c.sb.cache_uuid, 16))
			return true;
	}
	return false;
}

/*
 * Take the lock and find a core that uses one of the devices, once none of these is coming or
 * going.  Return: 0 with the lock held, or -EINTR.
 */
static int lock_settled(dev_t cache, dev_t backing, struct lc_core **result)
{
	unsigned long seen;
	int ret;

	for (;;) {
		mutex_lock(&lc_cores_lock);
		*result = core_using(cache);
		if (!*result)
			*result = core_using(backing);
		if (!*result || (*result)->stage == LC_STAGE_LIVE)
			return 0;
		seen = nr_changes;
		mutex_unlock(&lc_cores_lock);
		ret = wait_event_killable(changed, READ_ONCE(nr_changes) != seen);
		if (ret)
			return -EINTR;
	}
}

/* The core has no rooms (E1). */
static void forget(struct lc_core *core)
{
	mutex_lock(&lc_cores_lock);
	list_del(&core->list);
	tell_change();
	mutex_unlock(&lc_cores_lock);
	lc_core_free(core);
}

static void drop(struct lc_core *core)
{
	lc_core_teardown(core);
	forget(core);
}

/* The core is in the list and COMING, so nobody else touches it (E1). */
static int bring_up(struct lc_core *core, struct dm_target *ti, const struct lc_params *params,
		    struct lc_user *user, const char **error)
{
	int ret = lc_core_setup(core, ti, params, error);

	if (ret) {
		forget(core);
		return ret;
	}
	mutex_lock(&lc_cores_lock);
	if (same_cache(core)) {
		*error = "Cache is in use by another lc volume under another name";
		ret = -EBUSY;
	} else {
		core->stage = LC_STAGE_LIVE;
		list_add(&user->list, &core->users);
		tell_change();
	}
	mutex_unlock(&lc_cores_lock);
	if (ret)
		drop(core);
	return ret;
}

/* May the table of @ti have a share in a core that lives? */
static int check_user(struct lc_core *core, struct dm_target *ti, const struct dm_dev *backing,
		      const struct dm_dev *cache, const struct lc_params *params,
		      const char **error)
{
	struct lc_user *other;

	lockdep_assert_held(&lc_cores_lock);
	if (core->c.env.name.md != dm_table_get_md(ti->table) || core->c.env.cache != cache->bdev ||
	    core->c.env.backing != backing->bdev) {
		*error = "Cache or backing device is in use by another lc volume";
		return -EBUSY;
	}
	/* Both would write the same blocks, each believing that the volume is its own (D20). */
	list_for_each_entry(other, &core->users, list) {
		if (other->table == ti->table) {
			*error = "Another target of this table has the same devices";
			return -EBUSY;
		}
	}
	return lc_core_check_table(core, ti, params, error);
}

int lc_registry_get(struct dm_target *ti, struct dm_dev *backing, struct dm_dev *cache,
		    const struct lc_params *params, struct lc_user *user, const char **error)
{
	struct lc_core *fresh, *core;
	int ret;

	*error = "Cannot allocate memory";
	fresh = lc_core_alloc(dm_table_get_md(ti->table), backing->bdev, cache->bdev);
	if (!fresh)
		return -ENOMEM;
	ret = lock_settled(cache->bdev->bd_dev, backing->bdev->bd_dev, &core);
	if (ret) {
		*error = "Interrupted while another lc volume uses the devices";
		lc_core_free(fresh);
		return ret;
	}
	user->table = ti->table;
	user->core = core;
	if (core) {
		ret = check_user(core, ti, backing, cache, params, error);
		if (!ret)
			list_add(&user->list, &core->users);
		mutex_unlock(&lc_cores_lock);
		lc_core_free(fresh);
		return ret;
	}
	list_add(&fresh->list, &lc_cores);
	mutex_unlock(&lc_cores_lock);
	user->core = fresh;
	return bring_up(fresh, ti, params, user, error);
}

void lc_registry_put(struct lc_user *user)
{
	struct lc_core *core = user->core;
	bool last;

	lc_core_unbind(core, user->table);
	mutex_lock(&lc_cores_lock);
	list_del(&user->list);
	last = list_empty(&core->users);
	if (last) {
		core->stage = LC_STAGE_GOING;
		tell_change();
	}
	mutex_unlock(&lc_cores_lock);
	if (last)
		drop(core);
}

void lc_registry_hold(struct list_head *held)
{
	struct lc_core *core;

	mutex_lock(&lc_cores_lock);
	list_for_each_entry(core, &lc_cores, list) {
		/* Its mapped device is never without a table of it, until the device goes. */
		if (core->stage == LC_STAGE_LIVE && READ_ONCE(core->started) &&
		    !dm_hold(core->c.env.name.md))
			list_add_tail(&core->held, held);
	}
	mutex_unlock(&lc_cores_lock);
}
