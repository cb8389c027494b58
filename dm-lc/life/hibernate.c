// SPDX-License-Identifier: GPL-2.0-only
/* Hibernation.  See hibernate.h. */
#include <linux/device.h>
#include <linux/notifier.h>
#include <linux/pm.h>
#include <linux/slab.h>
#include <linux/suspend.h>
#include <linux/workqueue.h>

#include "life/hibernate.h"
#include "life/lc.h"
#include "life/registry.h"
#include "store/super.h"

#define READ_TRIES	5	/* a second apart: a disk may be slow to wake up */

static bool hibernating;	/* set and cleared by the notifier; READ_ONCE() */
static LIST_HEAD(held);		/* suspended volumes: of prepare(), then of thaw_work */
static struct workqueue_struct *thaw_wq;
static struct device *sleeper;	/* is told when devices are prepared */

/* The devices belong to a later life (HB2). */
static void outdate(struct lc_volume *vol)
{
	mutex_lock(&vol->life_lock);
	WRITE_ONCE(vol->outdated, true);
	lc_health_outdated(&vol->c.health, "the devices are not as they were at hibernation");
	mutex_unlock(&vol->life_lock);
	lc_err(&vol->c.env, "mode fail: nothing is read or written any more: unmount and remove the volume, and start it again with lc-resume");
	lc_health_tell(&vol->c.health);
}

static void compare(struct lc_volume *vol)
{
	unsigned int noio, tries = READ_TRIES;
	int ret;

	/* Memory must not be reclaimed through a volume that is suspended. */
	noio = lc_noio_save();
	while ((ret = lc_super_check_unchanged(vol->c.super, vol->c.mark)) && ret != -ESTALE &&
	       --tries)
		schedule_timeout_idle(HZ);
	lc_noio_restore(noio);
	/* Mode fail writes nothing; without its SSD it still reads the HDD. */
	if (ret == -ESTALE || (ret && lc_mode(&vol->c.health) != LC_MODE_FAIL))
		outdate(vol);
}

static void let_go(void)
{
	struct lc_volume *vol, *next;

	list_for_each_entry_safe(vol, next, &held, held) {
		list_del(&vol->held);
		dm_put(vol->c.env.name.md);
	}
}

/* Tasks and workqueues are thawed. */
static void thaw(struct work_struct *work)
{
	struct lc_volume *vol;

	/* All before the first one goes on: a table may have several. */
	list_for_each_entry(vol, &held, held)
		compare(vol);
	list_for_each_entry_reverse(vol, &held, held)
		dm_internal_resume(vol->c.env.name.md);
	let_go();
}

static DECLARE_WORK(thaw_work, thaw);

/* The image would wait for a volume that is suspended. */
static int refuse_swap(void)
{
	struct lc_volume *vol;

	list_for_each_entry(vol, &held, held) {
		if (IS_SWAPFILE(lc_bdev_inode(dm_disk(vol->c.env.name.md)->part0))) {
			lc_err(&vol->c.env, "hibernation is refused while the volume is swap: swapoff it, and keep swap for hibernation on another disk");
			return -EBUSY;
		}
	}
	return 0;
}

/* Tasks and freezable threads are frozen, devices still work. */
static int prepare(struct device *dev)
{
	struct lc_volume *vol;
	int ret;

	if (!READ_ONCE(hibernating))
		return 0;
	lc_registry_hold(&held);
	ret = refuse_swap();
	if (ret) {
		let_go();
		return ret;
	}
	list_for_each_entry(vol, &held, held)
		dm_internal_suspend_noflush(vol->c.env.name.md);
	/* It is not begun before freezable workqueues are thawed. */
	queue_work(thaw_wq, &thaw_work);
	return 0;
}

/* In the kernel that has booted and found an image (HB3). */
static int refuse_restore(void)
{
	struct lc_volume *vol, *next;
	LIST_HEAD(started);
	int ret = 0;

	lc_registry_hold(&started);
	list_for_each_entry_safe(vol, next, &started, held) {
		lc_err(&vol->c.env, "the image of hibernation is not restored: the volume has been started since: start volumes only after the kernel has looked for an image");
		ret = -EBUSY;
		list_del(&vol->held);
		dm_put(vol->c.env.name.md);
	}
	return ret;
}

static int notify(struct notifier_block *nb, unsigned long event, void *unused)
{
	switch (event) {
	case PM_HIBERNATION_PREPARE:
		WRITE_ONCE(hibernating, true);
		break;
	case PM_POST_HIBERNATION:
		WRITE_ONCE(hibernating, false);
		flush_work(&thaw_work);
		break;
	case PM_RESTORE_PREPARE:
		return notifier_from_errno(refuse_restore());
	}
	return NOTIFY_OK;
}

static struct notifier_block notifier = { .notifier_call = notify };

static const struct dev_pm_ops sleeper_ops = { .prepare = prepare };
static const struct device_type sleeper_type = { .name = "dm-lc", .pm = &sleeper_ops };

static void free_sleeper(struct device *dev)
{
	kfree(dev);
}

static int register_sleeper(void)
{
	struct device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int ret;

	if (!dev)
		return -ENOMEM;
	dev->type = &sleeper_type;
	dev->release = free_sleeper;
	device_initialize(dev);
	ret = dev_set_name(dev, "dm-lc");
	if (!ret)
		ret = device_add(dev);
	if (ret)
		put_device(dev);
	else
		sleeper = dev;
	return ret;
}

static int register_all(void)
{
	int ret = register_sleeper();

	if (ret)
		return ret;
	ret = register_pm_notifier(&notifier);
	if (ret)
		device_unregister(sleeper);
	return ret;
}

int lc_hibernate_init(void)
{
	unsigned int flags;
	int ret;

	if (!IS_ENABLED(CONFIG_HIBERNATION))
		return 0;
	thaw_wq = alloc_workqueue("lc-thaw", WQ_FREEZABLE | WQ_MEM_RECLAIM | WQ_UNBOUND, 1);
	if (!thaw_wq)
		return -ENOMEM;
	flags = lock_system_sleep();
	ret = register_all();
	unlock_system_sleep(flags);
	if (ret)
		destroy_workqueue(thaw_wq);
	return ret;
}

void lc_hibernate_exit(void)
{
	if (!IS_ENABLED(CONFIG_HIBERNATION))
		return;
	device_unregister(sleeper);
	unregister_pm_notifier(&notifier);
	destroy_workqueue(thaw_wq);
}
