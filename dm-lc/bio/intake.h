/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of writes in: they are written at once, or parked until there is space.
 *
 * Writes that find no space are parked, up to a limit, and one worker continues them in their turn.
 * The intake decides which writes wait and how many; queue.h says whose turn it is, throttle.h at
 * which rate.  write.h, merge.h, flush.h, around.h and bypass.h do the work.
 */
#ifndef LC_INTAKE_H
#define LC_INTAKE_H

#include <linux/types.h>

struct bio;
struct dm_target;
struct lc_around;
struct lc_bypass;
struct lc_cache;
struct lc_flush;
struct lc_intake;

/*
 * @c: set up to the log.  The other three outlive the intake.  Sets env.unpark.  May sleep.
 * Return: the intake or NULL.
 */
struct lc_intake *lc_intake_create(struct lc_cache *c, struct lc_flush *flush,
				   struct lc_bypass *bypass, struct lc_around *around);
/* After lc_intake_stop().  @intake or NULL.  May sleep. */
void lc_intake_destroy(struct lc_intake *intake);

/**
 * lc_intake_map() - map a write
 * @intake: the intake
 * @bio: device mapper's clone
 *
 * From map(): sleeps only if too much is parked.  The bio completes here or later.
 * Return: as lc_map_bio().
 */
int lc_intake_map(struct lc_intake *intake, struct bio *bio);

/* Have the worker look at the parked writes again, as env.unpark does.  Any context. */
void lc_intake_kick(struct lc_intake *intake);

/* How many blocks wait for space?  Any context; not those of writers who sleep. */
u64 lc_intake_blocks(const struct lc_intake *intake);

/**
 * lc_intake_presuspend() - a suspend begins, which waits for all tasks in map()
 * @intake: the intake
 * @ti: after a noflush suspend it is asked whether device mapper still takes back what is
 *	parked; valid until lc_intake_resume() or lc_intake_quiesce()
 *
 * Process context.
 */
void lc_intake_presuspend(struct lc_intake *intake, struct dm_target *ti);

/* Device mapper wants nothing back any more.  Process context. */
void lc_intake_resume(struct lc_intake *intake);

/*
 * No bio is under way; the intake does nothing afterwards.  Its work may run once more, if a worker
 * whose write has ended is still in park(), and finds no write.  May sleep.  A noflush suspend is
 * over: its table, which would be asked, may be gone soon.
 */
void lc_intake_quiesce(struct lc_intake *intake);

/* End the works for good: no bio will come, and nobody kicks any more.  May sleep. */
void lc_intake_stop(struct lc_intake *intake);

#endif /* LC_INTAKE_H */
