/* SPDX-License-Identifier: GPL-2.0-only */
/* The way of a read, and reading a slot back with its checksum.  See read.c. */
#ifndef LC_READ_H
#define LC_READ_H

#include <linux/blk_types.h>
#include <linux/types.h>

struct bio;
struct lc_core;

int lc_read_map(struct lc_core *core, struct bio *bio);
int lc_read_end(struct lc_core *core, struct bio *bio, blk_status_t *error);
int lc_read_slot(struct lc_core *core, u64 block, u32 slot, void *pages);
void lc_read_put_segment(struct lc_core *core, u32 slot);

#endif /* LC_READ_H */
