/* SPDX-License-Identifier: GPL-2.0-only */
/* /etc/lctab, the volumes that start at boot: see lctab(5).  Nothing here complains. */
#ifndef LC_LCTAB_H
#define LC_LCTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

#define LCTAB_PATH	"/etc/lctab"
#define LCTAB_FOREVER	(~0ULL)

struct lctab_line {
	unsigned int number;	/* of the line, from 1 */
	char *name;		/* of the volume: good for device mapper and for a unit */
	char *ssd;		/* below /dev, without "//", "." and ".." */
	char *hdd;		/* the same; NULL: lc-resume looks for it */
	char **pairs;		/* "KEY=VALUE" options of the target, ending in NULL */
	size_t nr_pairs;
	bool noauto, nofail, netdev, in_initrd, iostats;
	bool has_timeout;	/* for the devices to appear */
	u64 timeout;		/* seconds, or LCTAB_FOREVER */
};

/* A line that is left out. */
struct lctab_fault {
	unsigned int number;
	char *text;		/* the reason and the remedy; may hold what the file holds */
};

struct lctab {
	struct lctab_line *lines;
	size_t nr;
	struct lctab_fault *faults;
	size_t nr_faults;
};

/*
 * Read all of a file.  Each line is good and in @tab->lines, or bad and in @tab->faults, whatever
 * the others are.  @tab is to be freed by lctab_free().  Return: 0, or a negative errno if the
 * file cannot be read to its end; what was read before counts.
 */
int lctab_read(struct lctab *tab, FILE *from);
void lctab_free(struct lctab *tab);

#endif
