/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kind of device the target cannot use, as SSD or as hard disk.  Pure: the constructor
 * and the tools fill in the facts and ask the same function, so that lc-format refuses every
 * device that the kernel would refuse later.  Any context.
 *
 * Not asked for, because nothing has to be refused:
 *  - an integrity profile, such as T10 PI.  The volume has none, and the block layer adds and
 *    verifies the protection of every bio that comes without it, those of the target and
 *    those it remaps.
 *  - DAX.  A block device with DAX is written with bios like any other.  One without block
 *    I/O (device DAX) is a character device, which cannot be opened here.
 */
#ifndef LC_USABLE_H
#define LC_USABLE_H

#include <linux/types.h>

struct lc_device_facts {
	bool read_only;		/* by the administrator, or write protected */
	bool host_managed;	/* zoned, and only sequential writes are taken */
	u32 lbs;		/* logical block size, bytes */
};

/**
 * lc_device_unfit() - why a device cannot be used
 * @facts: the device
 *
 * Return: constant text, what it is and what to do about it; NULL if it can be used.
 */
static inline const char *lc_device_unfit(const struct lc_device_facts *facts)
{
	if (facts->read_only)
		return "is read-only and would be written to; make it writable (blockdev --setrw)";
	if (facts->host_managed)
		return "is a host-managed zoned disk, written in sequence only; use another";
	if (facts->lbs > 4096)
		return "has logical blocks above 4096 bytes; use a disk with blocks of up to 4096";
	return NULL;
}

#endif /* LC_USABLE_H */
