/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The block devices that the kernel knows, and what sysfs says about each.  No device is
 * opened, and nothing complains.
 */
#ifndef LC_IDENTITY_H
#define LC_IDENTITY_H

#include <sys/types.h>
#include <linux/types.h>

/* What a device says about itself; empty texts where it says nothing. */
struct identity {
	char name[64];		/* kernel name, sda1 */
	char model[64];
	char serial[64];
	char wwn[64];
	char partuuid[64];	/* partitions only; device_open() fills it in */
	char dm_uuid[136];	/* device-mapper devices only */
	dev_t whole;		/* the disk a partition is on, else the device itself */
	bool is_partition;
	int rotational;		/* 1 or 0, -1 if the kernel does not say */
	bool host_managed;	/* zoned: sequential writes only */
};

/* All but the PARTUUID, which is empty.  Return: 0, or -ENODEV if sysfs does not know @devno. */
int identity_read(struct identity *id, dev_t devno);
/* The kernel's partitions of a whole disk; *parts is to be freed.  Return: how many. */
struct blkpg_partition;
unsigned int identity_partitions(const struct identity *id, struct blkpg_partition **parts);
/* "model, serial 123, wwn ..." for people, in a static buffer. */
const char *identity_text(const struct identity *id);
/*
 * Best guess of what keeps a device busy, ": mounted on /home" or "".  A partition can be held
 * through its disk.
 */
void identity_explain_busy(dev_t devno, char *text, size_t len);

/* All block devices but empty and RAM-only ones; *paths is "/dev/..." texts ending in NULL. */
char **identity_list(void);
void identity_list_free(char **paths);

#endif
