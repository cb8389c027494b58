// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registry of volumes.  See registry.h.
 *
 * A volume passes through three stages.  While it is COMING, its superblock is read and its rooms
 * are allocated; while it is GOING, they are freed.  Both happen without the lock.  Another
 * target that asks for one of its devices meanwhile sleeps until the volume is LIVE or gone.
 *
 * Teardown: only a task that is in lc_registry_get() or lc_registry_put() changes the list, and
 * device mapper holds a reference on the module during both, so the module is not unloaded
 * while an entry is left.
 */
#include <linux/mutex.h>
#include <linux/wait.h>

#include "life/lc.h"
#include "life/registry.h"
#include "life/volume.h"

static DEFINE_MUTEX(lc_volumes_lock);
static LIST_HEAD(lc_volumes);
static unsigned long nr_changes;	/* of stages; written under the lock, READ_ONCE() */
static DECLARE_WAIT_QUEUE_HEAD(changed);

/* A stage has changed, or a volume has left the list. */
static void tell_change(void)
{
	lockdep_assert_held(&lc_volumes_lock);
	WRITE_ONCE(nr_changes, nr_changes + 1);
	wake_up_all(&changed);
}

/* A few volumes at most, so a list is enough. */
static struct lc_volume *volume_using(dev_t devt)
{
	struct lc_volume *vol;

	lockdep_assert_held(&lc_volumes_lock);
	list_for_each_entry(vol, &lc_volumes, list) {
		if (vol->c.env.cache->bd_dev == devt || vol->c.env.backing->bd_dev == devt)
			return vol;
	}
	return NULL;
}

/*
 * Is there another volume with this cache's UUID: the same SSD under another name, such as a
 * linear device on it?  Of two that come at the same time the second one to ask finds the first.
 */
static bool same_cache(const struct lc_volume *fresh)
{
	struct lc_volume *vol;

	lockdep_assert_held(&lc_volumes_lock);
	list_for_each_entry(vol, &lc_volumes, list) {
		if (vol->stage != LC_STAGE_COMING &&
		    !memcmp(vol->c.sb.cache_uuid, fresh->c.sb.cache_uuid, 16))
			return true;
	}
	return false;
}

/*
 * Take the lock and find a volume that uses one of the devices, once none of these is coming or
 * going.  Return: 0 with the lock held, or -EINTR.
 */
static int lock_settled(dev_t cache, dev_t backing, struct lc_volume **result)
{
	unsigned long seen;
	int ret;

	for (;;) {
		mutex_lock(&lc_volumes_lock);
		*result = volume_using(cache);
		if (!*result)
			*result = volume_using(backing);
		if (!*result || (*result)->stage == LC_STAGE_LIVE)
			return 0;
		seen = nr_changes;
		mutex_unlock(&lc_volumes_lock);
		ret = wait_event_killable(changed, READ_ONCE(nr_changes) != seen);
		if (ret)
			return -EINTR;
	}
}

/* The volume has no rooms (E1). */
static void forget(struct lc_volume *vol)
{
	mutex_lock(&lc_volumes_lock);
	list_del(&vol->list);
	tell_change();
	mutex_unlock(&lc_volumes_lock);
	lc_volume_free(vol);
}

static void drop(struct lc_volume *vol)
{
	lc_volume_teardown(vol);
	forget(vol);
}

/* The volume is in the list and COMING, so no other task touches it (E1). */
static int bring_up(struct lc_volume *vol, struct dm_target *ti, const struct lc_params *params,
		    struct lc_user *user, const char **error)
{
	int ret = lc_volume_setup(vol, ti, params, error);

	if (ret) {
		forget(vol);
		return ret;
	}
	mutex_lock(&lc_volumes_lock);
	if (same_cache(vol)) {
		*error = "Cache is in use by another lc volume under another name";
		ret = -EBUSY;
	} else {
		vol->stage = LC_STAGE_LIVE;
		list_add(&user->list, &vol->users);
		tell_change();
	}
	mutex_unlock(&lc_volumes_lock);
	if (ret)
		drop(vol);
	return ret;
}

/* May the table of @ti have a share in a volume that lives? */
static int check_user(struct lc_volume *vol, struct dm_target *ti, const struct dm_dev *backing,
		      const struct dm_dev *cache, const struct lc_params *params,
		      const char **error)
{
	struct lc_user *other;

	lockdep_assert_held(&lc_volumes_lock);
	if (vol->c.env.name.md != dm_table_get_md(ti->table) || vol->c.env.cache != cache->bdev ||
	    vol->c.env.backing != backing->bdev) {
		*error = "Cache or backing device is in use by another lc volume";
		return -EBUSY;
	}
	/* Both would write the same blocks, each believing that the volume is its own (D20). */
	list_for_each_entry(other, &vol->users, list) {
		if (other->table == ti->table) {
			*error = "Another target of this table has the same devices";
			return -EBUSY;
		}
	}
	return lc_volume_check_table(vol, ti, params, error);
}

int lc_registry_get(struct dm_target *ti, struct dm_dev *backing, struct dm_dev *cache,
		    const struct lc_params *params, struct lc_user *user, const char **error)
{
	struct lc_volume *fresh, *vol;
	int ret;

	*error = "Cannot allocate memory";
	fresh = lc_volume_alloc(dm_table_get_md(ti->table), backing->bdev, cache->bdev);
	if (!fresh)
		return -ENOMEM;
	ret = lock_settled(cache->bdev->bd_dev, backing->bdev->bd_dev, &vol);
	if (ret) {
		*error = "Interrupted while another lc volume uses the devices";
		lc_volume_free(fresh);
		return ret;
	}
	user->table = ti->table;
	user->vol = vol;
	if (vol) {
		ret = check_user(vol, ti, backing, cache, params, error);
		if (!ret)
			list_add(&user->list, &vol->users);
		mutex_unlock(&lc_volumes_lock);
		lc_volume_free(fresh);
		return ret;
	}
	list_add(&fresh->list, &lc_volumes);
	mutex_unlock(&lc_volumes_lock);
	user->vol = fresh;
	return bring_up(fresh, ti, params, user, error);
}

void lc_registry_put(struct lc_user *user)
{
	struct lc_volume *vol = user->vol;
	bool last;

	lc_volume_unbind(vol, user->table);
	mutex_lock(&lc_volumes_lock);
	list_del(&user->list);
	last = list_empty(&vol->users);
	if (last) {
		vol->stage = LC_STAGE_GOING;
		tell_change();
	}
	mutex_unlock(&lc_volumes_lock);
	if (last)
		drop(vol);
}

void lc_registry_hold(struct list_head *held)
{
	struct lc_volume *vol;

	mutex_lock(&lc_volumes_lock);
	list_for_each_entry(vol, &lc_volumes, list) {
		/* Its mapped device is never without a table of it, until the device goes. */
		if (vol->stage == LC_STAGE_LIVE && READ_ONCE(vol->started) &&
		    !dm_hold(vol->c.env.name.md))
			list_add_tail(&vol->held, held);
	}
	mutex_unlock(&lc_volumes_lock);
}
