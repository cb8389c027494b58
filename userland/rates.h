/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What running volumes do per second, for lc-status --watch.
 *
 * The numbers are differences between two status lines.  What a volume did before it was seen
 * first is not in them.
 */
#ifndef LC_RATES_H
#define LC_RATES_H

#include <stdio.h>

#include "view.h"

/* Volumes as they were when rates_print() was called last.  All zero at first. */
struct rates {
	struct rate *known;
	size_t nr;
	unsigned int lines;	/* printed since the last heading */
};

/*
 * Print a line for each volume, "-" in place of what is not known: the volume was not there last
 * time, it was started anew since, or its module does not count that.
 */
void rates_print(FILE *out, struct rates *rates, const struct volume_view *views, size_t nr);
void rates_free(struct rates *rates);

#endif
