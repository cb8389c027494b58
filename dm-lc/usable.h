/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kind of device the target cannot use, as SSD or as hard disk.  Pure: the constructor
 * and the tools fill in the facts and ask the same table, so that lc-format refuses whatever
 * the kernel would refuse later.  Any context.
 *
 * Not in the table, because nothing has to be refused:
 *  - an integrity profile (T10 PI).  The volume has none, and the block layer adds and
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
	const struct {
		bool unfit;
		const char *why;
	} table[] = {
		{ facts->read_only,
		  "is read-only and would be written to; 'blockdev --setrw' makes it writable unless the hardware does not" },
		{ facts->host_managed,
		  "is a zoned disk that takes sequential writes only (host-managed); use a conventional disk" },
		{ facts->lbs > 4096,
		  "has logical blocks above 4096 bytes; use a disk with blocks of up to 4096, or format it so" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].unfit)
			return table[i].why;
	}
	return NULL;
}

#endif /* LC_USABLE_H */
