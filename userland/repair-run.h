/* SPDX-License-Identifier: GPL-2.0-only */
/* Filling holes in a log. */
#ifndef LC_REPAIR_RUN_H
#define LC_REPAIR_RUN_H

#include "report.h"

/*
 * Make the run of records unbroken up to the highest durable seq, with empty records where some
 * are missing.  c->scan is of the whole ring, and is read anew.  Return: 0, also if that is not
 * possible, or a negative errno; both after complaining.
 */
int repair_run(struct check *c);

#endif
