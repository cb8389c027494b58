// SPDX-License-Identifier: GPL-2.0-only
/* Running volumes, see view.h. */
#include <stdlib.h>

#include "memory.h"
#include "text.h"
#include "util.h"
#include "view.h"

static int ask_these(char *const *names, struct volume_view **views, size_t *nr)
{
	struct volume_view *view;
	int ret = LC_EXIT_OK;
	size_t n = 0;

	while (names[n])
		n++;
	*views = xcalloc(n + 1, sizeof(**views));
	*nr = 0;
	for (; *names; names++) {
		view = *views + *nr;
		if (dm_require_lc(*names, &view->facts)) {
			ret = LC_EXIT_FAIL;
			continue;
		}
		if (dm_status(&view->facts, &view->status)) {
			dm_facts_free(&view->facts);
			ret = LC_EXIT_FAIL;
			continue;
		}
		++*nr;
	}
	return ret;
}

int views_ask(char *const *names, struct volume_view **views, size_t *nr)
{
	char **all;
	int ret;

	if (*names)
		return ask_these(names, views, nr);
	*views = NULL;
	*nr = 0;
	if (dm_list_lc(&all))
		return LC_EXIT_FAIL;
	ret = ask_these(all, views, nr);
	dm_list_free(all);
	return ret;
}

void views_free(struct volume_view *views, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		dm_status_free(&views[i].status);
		dm_facts_free(&views[i].facts);
	}
	free(views);
}

const char *view_text(const struct volume_view *view, const char *key)
{
	const char *text = dm_status_get(&view->status, key);

	return text ? shown(text) : "?";
}

const char *view_blocks(const struct volume_view *view, const char *key)
{
	u64 n;

	return dm_status_number(&view->status, key, &n) ? size_text(n << 12) : "?";
}
