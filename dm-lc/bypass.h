/* SPDX-License-Identifier: GPL-2.0-only */
/* The way of writes once the SSD was given up.  See bypass.c. */
#ifndef LC_BYPASS_H
#define LC_BYPASS_H

#include <linux/blk_types.h>

#include "index.h"
#include "lc.h"

struct bio;
struct lc_bypass;
struct lc_core;
struct lc_io;

struct lc_bypass *lc_bypass_create(struct lc_core *core);
void lc_bypass_destroy(struct lc_bypass *bypass);

void lc_bypass_watch(struct lc_bypass *bypass, bool on);
void lc_bypass_claim(struct lc_bypass *bypass, const u64 *blocks, u32 nr);
void lc_bypass_settle(struct lc_bypass *bypass);
void lc_bypass_release(struct lc_bypass *bypass);
u32 lc_bypass_failed_flushes(struct lc_bypass *bypass);
int lc_bypass_flush(struct lc_core *core);

int lc_bypass_map(struct lc_core *core, struct bio *bio);
void lc_bypass_submit(struct lc_core *core, struct lc_io *io);
int lc_bypass_end(struct lc_core *core, struct bio *bio, blk_status_t *error);

/*
 * What counts of a mapping.  Once writes may have gone past the cache, a clean copy is not the
 * newest one any more, in RAM or on the SSD: the HDD has what it held.  [bucket locked]
 */
static inline void lc_bypass_view(const struct lc_core *core, struct lc_mapping *map)
{
	if (!map->dirty && READ_ONCE(core->c.bypassed))
		map->mask = 0;
}

#endif /* LC_BYPASS_H */
