/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of a bio: which room it goes to, by its operation and the mode of the volume.
 *
 * Below target.c; above read, write, discard, around and bypass, which do not know it.
 */
#ifndef LC_MAP_H
#define LC_MAP_H

#include <linux/blk_types.h>
#include <linux/types.h>

struct bio;
struct lc_volume;

/**
 * lc_map_bio() - device mapper's map() of a bio with data, or of a discard
 * @vol: the volume
 * @bio: a clone with struct lc_request as its per-bio data; its sectors are those of the volume
 *
 * Task context.  Does no I/O and allocates nothing, but a FUA bio may send a record.
 * Sleeps only for a write while too much is parked, and not with REQ_NOWAIT.
 * Part of the bio may be left for another one (dm_accept_partial_bio()).
 * Return: DM_MAPIO_SUBMITTED: the volume ends the bio; DM_MAPIO_REMAPPED; or DM_MAPIO_KILL.
 */
int lc_map_bio(struct lc_volume *vol, struct bio *bio);

/**
 * lc_map_flush() - device mapper's map() of a FLUSH, which has no data
 * @vol: the volume
 * @bio: as for lc_map_bio()
 * @alone: the volume is all of the mapped device
 *
 * Task context.  May send a record.  Return: as lc_map_bio().
 */
int lc_map_flush(struct lc_volume *vol, struct bio *bio, bool alone);

/**
 * lc_map_end() - device mapper's end_io()
 * @vol: the volume
 * @bio: was given to lc_map_bio() or lc_map_flush(), which has remapped it or not
 * @error: its status; may be changed
 *
 * Any context.  Return: DM_ENDIO_DONE, or DM_ENDIO_INCOMPLETE: the volume ends the bio later.
 */
int lc_map_end(struct lc_volume *vol, struct bio *bio, blk_status_t *error);

/**
 * lc_map_resume() - look at the limits of the devices again
 * @vol: the volume; no bio is mapped
 *
 * Before each resume: the devices below may have changed.  Does not sleep.
 */
void lc_map_resume(struct lc_volume *vol);

#endif /* LC_MAP_H */
