/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The mode of the volume: read-write, degraded (without its SSD), or failed.
 *
 * Rooms report failures here, in any context.  What follows from a failure is in the operations,
 * which belong to the volume (volume.c).
 *
 * Invariants
 *  HE1 The mode only ever gets worse: RW, then DEGRADED, then FAIL.  Only health.c writes it.
 *  HE2 Flushes are refused before the mode is FAIL: none is acknowledged that was not done (F2).
 *     The exception is lc_health_end(): all is durable then, and no bio comes any more.
 *  HE3 The reason is the first one given, and is set before ssd_failed: a task that sees that the
 *     SSD has failed may say why.
 */
#ifndef LC_HEALTH_H
#define LC_HEALTH_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/types.h>

struct lc_env;
struct lc_health;

enum lc_mode {
	LC_MODE_RW,
	LC_MODE_RO,		/* reserved: the log cannot advance */
	LC_MODE_DEGRADED,	/* the SSD was given up: straight to the HDD */
	LC_MODE_FAIL,		/* writes and flushes fail, reads go on */
};

/* All of them in any context; all but give_up_ssd() may be called more than once. */
struct lc_health_ops {
	/* No FLUSH may be acknowledged from now on (HE2). */
	void (*refuse_flushes)(struct lc_health *health);
	/* Save what is only in RAM, and go on without the SSD.  Called once. */
	void (*give_up_ssd)(struct lc_health *health);
	/* The mode has changed: all that wait for something look again. */
	void (*wake)(struct lc_health *health);
	/* Send userland an event. */
	void (*tell)(struct lc_health *health);
};

struct lc_health {
	struct lc_env *env;			/* constant */
	const struct lc_health_ops *ops;	/* constant */
	const char *reason;			/* HE3; constant text; READ_ONCE() */
	enum lc_mode mode;			/* HE1; READ_ONCE() */
	atomic_t ssd_failed;			/* the SSD is given up, or about to be */
};

/* The mode, which may change at once.  Any context. */
static inline enum lc_mode lc_mode(const struct lc_health *health)
{
	return READ_ONCE(health->mode);
}

/* Is the SSD given up, or about to be?  Any context. */
static inline bool lc_ssd_failed(const struct lc_health *health)
{
	return atomic_read(&health->ssd_failed);
}

/* Before any other call, from any context.  @env: for messages.  @ops outlives @health. */
void lc_health_init(struct lc_health *health, struct lc_env *env, const struct lc_health_ops *ops);

/**
 * lc_health_fail() - enter mode fail from mode RW, once
 * @health: of the volume
 * @reason: constant text
 *
 * Any context.  Writes and flushes fail from now on, parked ones too.  A volume in another mode
 * keeps it, but refuses flushes.
 */
void lc_health_fail(struct lc_health *health, const char *reason);

/**
 * lc_health_ssd_failed() - give the SSD up, once
 * @health: of the volume
 * @reason: constant text
 *
 * Any context.  What can be saved is saved, and the volume goes on without a cache (rescue.c);
 * without a mark on the HDD it enters mode fail.
 */
void lc_health_ssd_failed(struct lc_health *health, const char *reason);

/*
 * Enter mode degraded, after a rescue: what was in RAM is on the HDD.  Any context.  Return:
 * whether this call has entered it; mode fail stays.
 */
bool lc_health_degrade(struct lc_health *health);

/* Enter mode fail from mode degraded: the HDD failed a FLUSH.  May sleep. */
void lc_health_hdd_failed(struct lc_health *health);

/* Enter mode fail for good: the devices are not those of this life.  Any context; says nothing. */
void lc_health_outdated(struct lc_health *health, const char *reason);

/* Tell userland that something has changed.  Any context. */
void lc_health_tell(struct lc_health *health);

/* Enter mode fail because this life ends with a clean stop.  Any context; says nothing. */
void lc_health_end(struct lc_health *health);

#endif /* LC_HEALTH_H */
