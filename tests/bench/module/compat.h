/* SPDX-License-Identifier: GPL-2.0-only */
/* Force-included: what differs between 6.1 and the newest kernel, tested here only. */
#ifndef LCLOAD_COMPAT_H
#define LCLOAD_COMPAT_H

#include <linux/blkdev.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/version.h>

/* 6.9 opens block devices as files; before 6.5 there was no type for the mode. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
struct lcload_dev {
	struct file *file;
	struct block_device *bdev;
};

static inline int lcload_open(struct lcload_dev *dev, const char *path)
{
	dev->file = bdev_file_open_by_path(path, BLK_OPEN_READ | BLK_OPEN_WRITE, NULL, NULL);
	if (IS_ERR(dev->file))
		return PTR_ERR(dev->file);
	dev->bdev = file_bdev(dev->file);
	return 0;
}

static inline void lcload_close(struct lcload_dev *dev)
{
	bdev_fput(dev->file);
}
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
struct lcload_dev {
	struct block_device *bdev;
};

static inline int lcload_open(struct lcload_dev *dev, const char *path)
{
	dev->bdev = blkdev_get_by_path(path, FMODE_READ | FMODE_WRITE, NULL);
	return PTR_ERR_OR_ZERO(dev->bdev);
}

static inline void lcload_close(struct lcload_dev *dev)
{
	blkdev_put(dev->bdev, FMODE_READ | FMODE_WRITE);
}
#else
#error "the load generator is built for 6.1 to 6.4 and for 6.9 and newer"
#endif

/* 6.13 sets a timer and its function at once. */
static inline void lcprof_timer_setup(struct hrtimer *timer,
				      enum hrtimer_restart (*function)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer->function = function;
#endif
}

#endif /* LCLOAD_COMPAT_H */
