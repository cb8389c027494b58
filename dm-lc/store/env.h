/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each room knows of the volume: its devices, its identity, its options, its name.
 *
 * All of it is constant from the constructor on, except where a field says otherwise.  A room that
 * holds only this, and the rooms below it, can be linked without the others.
 */
#ifndef LC_ENV_H
#define LC_ENV_H

#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/jiffies.h>
#include <linux/ratelimit.h>
#include <linux/sched/mm.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "format/format.h"
#include "format/params.h"
#include "format/place.h"
#include "store/kick.h"
#include "store/name.h"
#include "store/stats.h"

#undef DM_MSG_PREFIX
#define DM_MSG_PREFIX "lc"

#define LC_BLOCK_SHIFT	3	/* sectors to 4 KiB blocks */

struct lc_health;

struct lc_env {
	struct lc_name name;
	dev_t dev;			/* the mapped device's number, for tracepoints */
	struct block_device *cache;
	struct block_device *backing;
	struct lc_place place;		/* of the volume on the backing device */
	u64 nr_blocks;
	const struct lc_sb *sb;		/* identity and geometry: constant; the rest: super.h */
	struct lc_params params;	/* in force; single words, READ_ONCE() */
	struct workqueue_struct *wq;	/* refill, parked bios */
	struct lc_kick unpark;		/* writes that wait for space may go on */
	struct lc_kick refill;		/* buffers, segments or space for them have come back */
	struct lc_kick fill;		/* a segment is wanted whose place is being filled */
	struct lc_health *health;	/* to be told of failures */
	struct lc_stats *stats;		/* NULL until they exist, while the volume is loaded */
	/* FLUSHes of the SSD that have failed (F2); under the log's lock, READ_ONCE() */
	u32 ssd_flush_failures;
	unsigned long last_write;	/* jiffies, approximate, for idle detection; READ_ONCE() */
	unsigned long last_hdd_read;	/* the same of what others read there (Y); READ_ONCE() */
};

/* Something happens now; a shared cache line: written once a tick, not each time. */
static inline void lc_stamp(unsigned long *stamp)
{
	unsigned long now = jiffies;

	if (READ_ONCE(*stamp) != now)
		WRITE_ONCE(*stamp, now);
}

/* Has nobody written for a second?  Then there is time to drain, for example.  Any context. */
static inline bool lc_env_idle(const struct lc_env *env)
{
	return time_after(jiffies, READ_ONCE(env->last_write) + HZ);
}

/**
 * lc_env_fua_kept() - was a FUA write of the SSD that has ended well made durable?
 * @env: of the volume
 * @failures: env->ssd_flush_failures before it was sent
 *
 * Without FUA the block layer sends a write and a FLUSH.  A FLUSH of somebody else that fails
 * between the two may drop what was written, and the FLUSH that follows does not tell (F2).  A
 * device that takes FUA may be stacked on one that does not, which bdev_fua() does not tell.  Any
 * context.
 */
static inline bool lc_env_fua_kept(const struct lc_env *env, u32 failures)
{
	return READ_ONCE(env->ssd_flush_failures) == failures;
}

/* A bio of dm-lc's own, of @bytes, is sent to one of the devices.  Any context. */
static inline void lc_env_sent(const struct lc_env *env, const struct block_device *bdev,
			       blk_opf_t opf, u32 bytes)
{
	if (env->stats)
		lc_stats_sent(env->stats, bdev == env->cache, opf, bytes);
}

static inline unsigned int lc_noio_save(void)
{
	/*
	 * A task writes its flags by itself, without a lock, and others read them: the
	 * scheduler, for one.  The kernel lives with that race everywhere.
	 */
	return data_race(memalloc_noio_save());
}

static inline void lc_noio_restore(unsigned int flags)
{
	/* As in lc_noio_save(). */
	data_race(({ memalloc_noio_restore(flags); 0; }));
}

/* All but those that end in _atomic may sleep, as lc_name_look(): see name.h. */
#define lc_say_now(env, level, fmt, ...)					\
do {										\
	struct lc_env *env_ = (env);						\
										\
	lc_name_look(&env_->name);						\
	lc_say(&env_->name, level, fmt, ##__VA_ARGS__);				\
} while (0)

#define lc_say_atomic(env, level, fmt, ...)					\
do {										\
	struct lc_env *env_ = (env);						\
										\
	lc_say(&env_->name, level, fmt, ##__VA_ARGS__);				\
	lc_name_look_later(&env_->name);					\
} while (0)

#define lc_err(env, fmt, ...) lc_say_now(env, LOGLEVEL_ERR, fmt, ##__VA_ARGS__)
#define lc_warn(env, fmt, ...) lc_say_now(env, LOGLEVEL_WARNING, fmt, ##__VA_ARGS__)
#define lc_info(env, fmt, ...) lc_say_now(env, LOGLEVEL_INFO, fmt, ##__VA_ARGS__)
#define lc_err_atomic(env, fmt, ...) lc_say_atomic(env, LOGLEVEL_ERR, fmt, ##__VA_ARGS__)
#define lc_info_atomic(env, fmt, ...) lc_say_atomic(env, LOGLEVEL_INFO, fmt, ##__VA_ARGS__)

#define lc_limited(say, env, fmt, ...)						\
do {										\
	static DEFINE_RATELIMIT_STATE(limit_, DEFAULT_RATELIMIT_INTERVAL,	\
				      DEFAULT_RATELIMIT_BURST);			\
	if (__ratelimit(&limit_))						\
		say(env, LOGLEVEL_ERR, fmt, ##__VA_ARGS__);			\
} while (0)

#define lc_err_limit(env, fmt, ...) lc_limited(lc_say_now, env, fmt, ##__VA_ARGS__)
#define lc_err_limit_atomic(env, fmt, ...) lc_limited(lc_say_atomic, env, fmt, ##__VA_ARGS__)

#endif /* LC_ENV_H */
