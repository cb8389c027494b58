/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The halves of pairs that are attached.
 *
 * udev's database has them, as 59-dm-lc.rules found them, so that no device is read: a read of a
 * suspended device, or of a multipath device without paths, does not end.  Left out are those paths
 * and suspended devices.  Where udev does not run, all devices are read.
 */
#ifndef LC_HALVES_H
#define LC_HALVES_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#define HALVES_UUID	36	/* characters */

struct half {
	char *path;		/* /dev/sda */
	bool cache;		/* the SSD */
	bool newer;		/* of a version that is not known; it has no UUID then */
	char uuid[HALVES_UUID + 1];	/* of the pair; empty if its superblock or mark is damaged */
};

struct halves {
	struct half *list;
	size_t nr;
};

/* To be freed by halves_free().  What cannot be asked or read is not in it. */
void halves_find(struct halves *halves);
void halves_free(struct halves *halves);

/*
 * Is @path the link of 61-dm-lc.rules to a half?  @kind: "cache" or "backing".  *@uuid is set to
 * the pair's then.
 */
bool halves_link(const char *path, const char *kind, char uuid[HALVES_UUID + 1]);

#endif
