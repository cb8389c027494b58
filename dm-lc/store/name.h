/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the volume is called, in the kernel log and the status line.
 *
 * A mapped device keeps its number, as "253:0".  `dmsetup rename` may give it another name at
 * any time, and no target is told.  Device mapper gives the name to callers that may sleep.  So
 * each line of the log has both.  A caller that may sleep asks for the name before each line.
 * Any other writes the name that was seen last, and queues a work that asks afterwards.  A
 * change of the name is logged when it is found.
 *
 * Invariants
 *  NM1 A line of lc_err(), lc_warn() or lc_info() has the name of that moment.  If a line of
 *     their _atomic variants has an older name, another line follows that has both names.
 *  NM2 An answer of device mapper never replaces a later one: they are asked for and stored
 *     under one mutex.
 */
#ifndef LC_NAME_H
#define LC_NAME_H

#include <linux/dm-ioctl.h>
#include <linux/kern_levels.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#define LC_FORMER_NAMES	4

struct mapped_device;

/* Texts are ASCII without blanks and commas: other bytes are \xNN, as libdevmapper has them. */
struct lc_name {
	struct mapped_device *md;	/* constant */
	struct mutex look_lock;		/* NM2; all below but number and work */
	spinlock_t lock;		/* irqsave; now, which changes under both */
	char number[16];		/* "253:0"; constant */
	char now[DM_NAME_LEN];		/* "": not known yet */
	char former[LC_FORMER_NAMES][DM_NAME_LEN]; /* others that were seen, newest first */
	struct work_struct work;	/* looks again */
};

/*
 * Before a line is logged.  @md: outlives @name.  @number: "253:0", is copied.  Does not sleep,
 * takes no lock.
 */
void lc_name_init(struct lc_name *name, struct mapped_device *md, const char *number);

/* Process context, may sleep: nothing is said from now on but by the caller. */
void lc_name_stop(struct lc_name *name);

/*
 * Ask device mapper for the name.  May sleep, but waits neither for a device nor for memory.  A
 * device that is going away has no name there: then the last one stays.
 */
void lc_name_look(struct lc_name *name);

/*
 * Other names that the volume had, as far as known, newest first, with commas between them; or
 * "-".  May sleep.  @text: LC_FORMER_NAMES * DM_NAME_LEN bytes.
 */
void lc_name_former(struct lc_name *name, char *text);

/* Queue work that calls lc_name_look() soon.  Any context. */
void lc_name_look_later(struct lc_name *name);

/* Log a line at @level (LOGLEVEL_*), with the name that was seen last.  Any context. */
__printf(3, 4)
void lc_say(struct lc_name *name, int level, const char *fmt, ...);

#endif /* LC_NAME_H */
