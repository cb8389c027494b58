/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a sector of the volume lies on the backing device.
 *
 * Sector s lies at `data` + s.  In the layout `moved_head` the first MiB of the device holds
 * the mark, so sectors below LC_PLACE_SEAM lie after the end of the volume instead, at
 * `head` + s.  The rest stays where it was.  So a probe recognises nothing on the bare device
 * while it has a cache.
 *
 * Invariant
 *  PL1 Nobody else adds an offset to a sector of the volume, and no bio for the backing device
 *      has sectors from both sides of the seam: lc_place_run() says how far one may go.
 *
 * Pure; any context.
 */
#ifndef LC_PLACE_H
#define LC_PLACE_H

#include <linux/types.h>

#include "format.h"

#define LC_PLACE_SEAM	(LC_MARK_BYTES >> 9)

/* Sectors; set once. */
struct lc_place {
	u64 data;		/* of sector 0, were the head not moved */
	u64 seam;		/* sectors below it are at `head`; 0: not moved */
	u64 head;
	u64 extent;		/* from `data` to the end of the volume, a moved head included */
};

static inline void lc_place_init(struct lc_place *place, const struct lc_sb *sb)
{
	bool moved = sb->incompat & LC_INCOMPAT_MOVED_HEAD;

	place->data = sb->data_offset >> 9;
	place->seam = moved ? LC_PLACE_SEAM : 0;
	place->head = moved ? sb->volume_sectors : 0;
	place->extent = sb->volume_sectors + place->seam;
}

/* Of a sector of the volume: its sector on the backing device. */
static inline u64 lc_place_sector(const struct lc_place *place, u64 sector)
{
	return sector + (sector < place->seam ? place->head : place->data);
}

/* How many of @nr sectors of the volume from @sector on lie in one piece? */
static inline u64 lc_place_run(const struct lc_place *place, u64 sector, u64 nr)
{
	if (sector < place->seam && nr > place->seam - sector)
		return place->seam - sector;
	return nr;
}

#endif /* LC_PLACE_H */
