/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What lc-check knows of a cache device, and how it says so.
 *
 * Nothing is called damage because of one read: what cannot be read, or is not what its
 * checksum says, is read again with pauses first.
 */
#ifndef LC_REPORT_H
#define LC_REPORT_H

#include "image.h"
#include "lost.h"
#include "scan.h"

struct bad_slot {
	size_t record;		/* index in scan.found */
	unsigned int entry;
	bool unreadable;
};

/* A slot that cannot be read and holds nothing that is known. */
struct unread_slot {
	u64 segment;
	u32 slot;
};

/* What a repair does, a line each. */
struct steps {
	char **line;
	size_t nr;
};

struct check {
	const struct device *ssd;
	const struct device *hdd;	/* NULL: not looked at */
	bool quiet;
	bool this_copy;			/* whatever the mark says of another one (T5) */

	struct image img;
	struct lc_sb sb;		/* the one believed, if img.best >= 0 */
	struct mark_pair marks;
	struct scan scan;
	struct bad_slot *bad;		/* in records of the run, at or below the durable seq */
	size_t nr_bad;
	struct unread_slot *unread;
	size_t nr_unread;
	struct lost_set lost;		/* sectors whose newest version is gone */

	bool bad_copy[LC_SB_COPIES];
	bool bad_mark[2];
	bool bad_checkpoint;
	bool forked;			/* and it is to be believed all the same */
	bool bad_run;			/* headers are missing below the durable seq */
	bool beyond_repair;
	unsigned int nr_damage;
	u64 damage_sum;			/* tells one list of damage from another */
	unsigned int nr_writes;		/* by the repair */
	struct steps *steps;		/* of the repair, in words; NULL: not kept */
	u64 nr_slots_read;
};

/* A line on stdout, unless @c is quiet; what is not printable is escaped. */
void check_say(const struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same of damage, which is counted and summed up; the caller notes what a repair needs. */
void check_damage(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
