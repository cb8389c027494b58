/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which bytes of which disk or file a block device stands for: partitions, loop devices,
 * device-mapper and md devices are followed down.  Two names of one storage are found by what
 * they come down to, not by how they are called.  Two disks with one WWN are two paths to one
 * disk, as it seems: nothing proves it.
 *
 * From sysfs, the loop driver and device mapper; nothing is written.
 */
#ifndef LC_STORAGE_H
#define LC_STORAGE_H

#include "device.h"

enum storage_relation {
	STORAGE_APART,
	STORAGE_SAME_DISK,	/* they use one device, but not the same bytes as far as is known */
	STORAGE_SAME_WWN,	/* at least one byte is part of both, if one WWN is one disk */
	STORAGE_OVERLAP,	/* at least one byte is part of both */
};

/*
 * How do two devices lie to each other?  *chains gets a text such as
 * "loop1 on sda2 on sda, dm-0 on sda", to be freed, NULL if they are apart.
 */
enum storage_relation storage_relate(const struct device *a, const struct device *b, char **chains);

/*
 * Is storage of @dev in use through another device than itself, or is another device built on
 * it?  Complains and returns -EBUSY then, 0 otherwise.  @other is left out: the second device
 * of a pair, or NULL.  *doubt gets a text, to be freed, if it may be in use through another
 * path, as a WWN tells; it is not complained about.
 */
int storage_check_unused(const struct device *dev, const struct device *other, char **doubt);

/*
 * The same for both devices of a pair, of which one may be NULL, before something is written
 * to them.  @way_out: added to the complaint if only a WWN tells that a device is in use, which is
 * refused then; NULL: that is not refused.
 */
int storage_check_pair(const struct device *ssd, const struct device *hdd, const char *way_out);

#endif
