/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Force-included.  The source is written for the newest kernel; whatever an
 * older one lacks is made up for here, and only here is a version tested.
 */
#ifndef LC_COMPAT_H
#define LC_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "dm-lc needs Linux 6.1 or newer"
#endif

/* Memory of the index, by the terabyte of SSD, is more than 32 bits can say. */
#ifndef CONFIG_64BIT
#error "dm-lc needs a 64-bit kernel"
#endif

/* 6.14 moved crc32c() into linux/crc32.h. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#include <linux/crc32c.h>
#endif

/* New kernels ask for a flag where queues were bound to a CPU without one. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#include <linux/workqueue.h>
#define WQ_PERCPU 0
#endif

/* 6.5 gave block device modes a type and names of their own. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#include <linux/fs.h>
#define BLK_OPEN_WRITE FMODE_WRITE
#endif

/* 6.9 counts host-aware disks, which take any write, as ordinary ones. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define lc_bdev_host_managed(bdev) (bdev_zoned_model(bdev) == BLK_ZONED_HM)
#else
#define lc_bdev_host_managed(bdev) bdev_is_zoned(bdev)
#endif

/* 6.10 replaced the inode in a block device by its mapping. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define lc_bdev_inode(bdev) ((bdev)->bd_inode)
#else
#define lc_bdev_inode(bdev) ((bdev)->bd_mapping->host)
#endif

/* Exported to targets, but declared in drivers/md/dm.h, which no kernel installs. */
struct mapped_device;

void dm_internal_suspend_noflush(struct mapped_device *md);
void dm_internal_resume(struct mapped_device *md);

#endif /* LC_COMPAT_H */
