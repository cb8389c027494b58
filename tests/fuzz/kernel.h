/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the module's start stands on, over a medium: memory, messages and I/O.  The
 * declarations are those of ../explore/shim.h.
 */
#ifndef FUZZ_KERNEL_H
#define FUZZ_KERNEL_H

#include "shim.h"
#include "lc.h"
#include "medium.h"

struct kernel {
	struct medium *medium;
	struct block_device bdev[MEDIUM_DISKS];
	u64 bytes_read;
	u64 nr_writes;
	u64 nr_outside;		/* reads and writes beyond the end */
	char said[256];		/* the last error */
};

extern struct kernel kernel;

/* The disks come up; nothing was read or written yet. */
void kernel_boot(struct medium *medium);

#endif
