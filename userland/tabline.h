/* SPDX-License-Identifier: GPL-2.0-only */
/* The line of /etc/lctab about one volume, for a command that was given a name only. */
#ifndef LC_TABLINE_H
#define LC_TABLINE_H

#include "lctab.h"

/*
 * Find it in /etc/lctab, or in the file that $LCTAB names.  Return: the line, which belongs to
 * @tab; NULL after complaining if there is none, it is a bad one, or the file cannot be read.
 * @tab is to be freed by lctab_free() whatever comes.
 */
const struct lctab_line *tabline_find(struct lctab *tab, const char *name);

#endif
