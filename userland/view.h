/* SPDX-License-Identifier: GPL-2.0-only */
/* Running volumes as lc-status shows them: what device mapper and the kernel say of each. */
#ifndef LC_VIEW_H
#define LC_VIEW_H

#include <stddef.h>

#include "dm.h"

struct volume_view {
	struct dm_facts facts;
	struct lc_status status;
};

/*
 * The volumes of these names that can be asked, in *@views, to be freed by views_free(); all
 * running ones without @names.  Return: an exit code; what cannot be asked is complained about.
 */
int views_ask(char *const *names, struct volume_view **views, size_t *nr);
void views_free(struct volume_view *views, size_t nr);

/* A word of the status line, or "?". */
const char *view_text(const struct volume_view *view, const char *key);
/* A number of blocks there as a size, or "?"; as size_text(). */
const char *view_blocks(const struct volume_view *view, const char *key);

#endif
