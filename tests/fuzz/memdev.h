/* SPDX-License-Identifier: GPL-2.0-only */
/* The tools' devices, in memory: a medium instead of files. */
#ifndef FUZZ_MEMDEV_H
#define FUZZ_MEMDEV_H

#include "medium.h"

struct memdev {
	struct medium *medium;	/* "ssd" and "hdd" are its disks */
	u64 bad_block;		/* of the SSD, cannot be read until it is written; NO_BAD_BLOCK */
	u64 bytes_read;		/* of both */
	u64 nr_writes;
	u64 nr_outside;		/* reads and writes beyond the end */
};

extern struct memdev memdev;

#define NO_BAD_BLOCK	(~0ULL)

void memdev_use(struct medium *medium);

#endif
