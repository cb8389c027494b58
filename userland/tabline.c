// SPDX-License-Identifier: GPL-2.0-only
/* The line of a volume, see tabline.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tabline.h"
#include "util.h"

static int read_tab(struct lctab *tab, const char *path)
{
	FILE *from = fopen(path, "re");
	int ret;

	if (!from)
		return -errno;
	ret = lctab_read(tab, from);
	fclose(from);
	return ret;
}

const struct lctab_line *tabline_find(struct lctab *tab, const char *name)
{
	const char *path = getenv("LCTAB");
	size_t i;
	int ret;

	memset(tab, 0, sizeof(*tab));
	path = path ? path : LCTAB_PATH;
	ret = read_tab(tab, path);
	if (ret) {
		complain(path, "cannot be read (%s), and no SSD is named; name it, or put a line for "
			 "the volume there: see lctab(5)", strerror(-ret));
		return NULL;
	}
	for (i = 0; i < tab->nr; i++) {
		if (!strcmp(tab->lines[i].name, name))
			return &tab->lines[i];
	}
	/* One of them may be meant. */
	for (i = 0; i < tab->nr_faults; i++)
		complain(path, "line %u is left out: %s", tab->faults[i].number,
			 tab->faults[i].text);
	complain(name, "has no line in %s; add one, see lctab(5), or name the SSD", path);
	return NULL;
}
