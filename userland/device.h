/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A block device, or an image of one in a file: opening, size, whole reads and
 * writes.  Every function that fails has complained already and returns a negative
 * errno.
 */
#ifndef LC_DEVICE_H
#define LC_DEVICE_H

#include <sys/types.h>
#include <linux/types.h>

#include "identity.h"

enum {
	DEVICE_WRITE	= 1 << 0,
	DEVICE_EXCL	= 1 << 1,	/* refuse a device something else holds */
	DEVICE_FILE_OK	= 1 << 2,	/* an image in a regular file will do */
	DEVICE_QUIET	= 1 << 3,	/* do not complain while opening */
	DEVICE_USE	= 1 << 4,	/* for a pair: refuse what the target cannot use */
	DEVICE_GLANCE	= 1 << 5,	/* leave @id empty, and repeat no read that fails */
};

/*
 * @path is for messages.  It is looked up once: all that is asked of the device, read from it
 * and written to it goes through @fd, and the kernel gets @devno, so that a name that changes
 * meanwhile cannot direct a write to another disk.
 */
struct device {
	const char *path;	/* as given; the caller keeps it */
	int fd;
	int node;		/* O_PATH descriptor of the device node, for opening it again */
	bool is_file;
	bool glance;	/* opened with DEVICE_GLANCE */
	dev_t devno;
	u64 bytes;
	u32 lbs;		/* logical block size */
	struct identity id;
	struct plan *plan;	/* writes go there, see plan.h; NULL: to the device */
};

/*
 * Open a device and learn its size, block size and identity.  @dev: result; after an error there is
 * nothing to close.  @path must stay valid as long as @dev.  @flags: DEVICE_...
 */
int device_open(struct device *dev, const char *path, unsigned int flags);
/*
 * The two halves of device_open(): which device is it (devno and is_file are set), then the rest.
 * device_close() is right after either, whether it failed or not.
 */
int device_find(struct device *dev, const char *path, unsigned int flags);
int device_open_found(struct device *dev, unsigned int flags);
void device_close(struct device *dev);
/* Let others claim a device opened with DEVICE_EXCL, but keep it open, so that @devno stays. */
int device_unclaim(struct device *dev);

/*
 * Offsets and lengths are multiples of dev->lbs; buffers may be anywhere.  All of a range is read
 * or written, or it is an error.  A read that fails is repeated with pauses before it counts as
 * failed, see device_again().  What was written is durable only after device_sync().
 */
int device_read(const struct device *dev, u64 offset, void *buf, size_t len);
int device_write(const struct device *dev, u64 offset, const void *buf, size_t len);
/* Really writes: a discard may leave what was there.  @dev has no plan. */
int device_zero(const struct device *dev, u64 offset, u64 len);
int device_sync(const struct device *dev);
/* All of the device. */
int device_discard(const struct device *dev);
/*
 * The kernel's partitions of a disk, not its table: have it forget them, which fails and leaves
 * them as they were while one of them is open; and have it read the table again, which may fail.
 */
int device_forget_partitions(const struct device *dev);
void device_reread_partitions(const struct device *dev);
/*
 * Does this errno of a read say that a place on the medium cannot be read, not that the device
 * fails?  The block layer has several for what a disk reports as unreadable.
 */
bool device_bad_medium(int err);
/*
 * Shall what was read, or could not be, be read again?  Pauses first; not for an image in a file.
 * With DEVICE_GLANCE never.
 * *@tries starts at 0 for each place.
 *
 * A cable, a controller that resets or an overloaded bus makes reads fail, or return nonsense,
 * for a moment.  All pauses of a command together are bounded: of a device with many bad places
 * the first ones show whether time helps.
 */
bool device_again(const struct device *dev, unsigned int *tries);

/*
 * Have libblkid look at a device, from byte @offset on, through the descriptor that is written to.
 * NULL after complaining.  No device_read() or device_write() until device_probe_end().
 */
struct blkid_struct_probe *device_probe_begin(const struct device *dev, u64 offset);
void device_probe_end(const struct device *dev, struct blkid_struct_probe *probe);

#endif
