/* SPDX-License-Identifier: GPL-2.0-only */
/* Verification of a cache device.  Only reads. */
#ifndef LC_CHECK_H
#define LC_CHECK_H

#include "report.h"

/*
 * Look at everything.  The caller sets the devices of @c, which is zero otherwise, and how it
 * speaks.  Return: 0, or a negative errno if it could not be checked; c->nr_damage says what was
 * found.  Either way @c is to be freed.
 */
int check_run(struct check *c);
/* What was found; the devices stay open. */
void check_free(struct check *c);

#endif
