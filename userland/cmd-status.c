// SPDX-License-Identifier: GPL-2.0-only
/* lc-status: what the running volumes do. */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "dm.h"
#include "memory.h"
#include "text.h"
#include "util.h"

static const struct cmd_option long_options[] = {
	{ "json", 'j', NULL, "machine-readable, everything the kernel says" },
	{ NULL, 0, NULL, NULL }
};

/* Numbers become numbers, all else stays text: a generation has letters, a name may have none. */
static json_object *json_value(const char *key, const char *value)
{
	size_t digits = strspn(value, "0123456789");

	if (*value && !value[digits] && digits < 19 && strcmp(key, "generation") &&
	    strcmp(key, "former_names"))
		return json_object_new_int64(strtoll(value, NULL, 10));
	return json_object_new_string(shown(value));
}

static json_object *json_volume(const struct dm_facts *facts, const struct lc_status *status)
{
	json_object *obj = json_object_new_object();
	json_object *keys = json_object_new_object();
	unsigned int i;

	json_object_object_add(obj, "name", json_object_new_string(shown(facts->name)));
	json_object_object_add(obj, "sectors", json_object_new_int64(facts->sectors));
	json_object_object_add(obj, "suspended", json_object_new_boolean(facts->suspended));
	json_object_object_add(obj, "open_count", json_object_new_int(facts->open_count));
	json_object_object_add(obj, "table", json_object_new_string(shown(facts->params)));
	for (i = 0; i < status->nr; i++)
		json_object_object_add(keys, status->pair[i].key,
				       json_value(status->pair[i].key, status->pair[i].value));
	json_object_object_add(obj, "status", keys);
	return obj;
}

static const char *blocks_text(const struct lc_status *status, const char *key)
{
	u64 n;

	return dm_status_number(status, key, &n) ? size_text(n << 12) : "?";
}

static const char *text_or_unknown(const struct lc_status *status, const char *key)
{
	const char *text = dm_status_get(status, key);

	return text ? text : "?";
}

static void print_row(const struct dm_facts *facts, const struct lc_status *status)
{
	printf("%-16s %-9s %10s %10s %10s %10s  %s\n", shown(facts->name),
	       text_or_unknown(status, "mode"),
	       size_text(facts->sectors << 9), blocks_text(status, "capacity"),
	       blocks_text(status, "cached"), blocks_text(status, "dirty"),
	       text_or_unknown(status, "writeback"));
}

static void print_all(const struct dm_facts *facts, const struct lc_status *status)
{
	static const char * const in_blocks[] = {
		"dirty", "cached", "capacity", "lost", "relogged",
	};
	unsigned int i, k;
	u64 n;

	printf("%s\n  %-16s %s\n  %-16s %s\n", shown(facts->name), "size", size_text(facts->sectors << 9),
	       "table", shown(facts->params));
	printf("  %-16s %s, open %d\n", "device", facts->suspended ? "suspended" : "running",
	       facts->open_count);
	for (i = 0; i < status->nr; i++) {
		printf("  %-16s %s", shown(status->pair[i].key), shown(status->pair[i].value));
		for (k = 0; k < ARRAY_SIZE(in_blocks); k++) {
			if (!strcmp(status->pair[i].key, in_blocks[k]) &&
			    dm_status_number(status, in_blocks[k], &n))
				printf(" blocks (%s)", size_text(n << 12));
		}
		printf("\n");
	}
}

enum style { ROWS, ALL, JSON };

static int show(const char *name, enum style style, json_object *array)
{
	struct lc_status status;
	struct dm_facts facts;
	int ret;

	ret = dm_require_lc(name, &facts);
	if (ret)
		return ret;
	ret = dm_status(&facts, &status);
	if (!ret) {
		if (style == JSON)
			json_object_array_add(array, json_volume(&facts, &status));
		else if (style == ALL)
			print_all(&facts, &status);
		else
			print_row(&facts, &status);
		dm_status_free(&status);
	}
	dm_facts_free(&facts);
	return ret;
}

static int show_these(char **names, enum style style)
{
	json_object *array = json_object_new_array();
	int ret = LC_EXIT_OK;

	if (style == ROWS && names[0])
		printf("%-16s %-9s %10s %10s %10s %10s  %s\n", "NAME", "MODE", "SIZE", "CAPACITY",
		       "CACHED", "DIRTY", "WRITEBACK");
	else if (style == ROWS)
		printf("No lc volume is running.\n");
	for (; *names; names++) {
		if (show(*names, style, array))
			ret = LC_EXIT_FAIL;
	}
	if (style == JSON)
		printf("%s\n", json_object_to_json_string_ext(array, JSON_C_TO_STRING_PRETTY |
							      JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(array);
	return ret;
}

static int run(int argc, char **argv)
{
	bool json = false;
	char **names;
	int c, ret;

	while ((c = cmd_option(&cmd_status, argc, argv, &ret)) >= 0)
		json |= c == 'j';
	if (c == CMD_END)
		return ret;
	dm_setup();
	if (optind < argc)
		return show_these(argv + optind, json ? JSON : ALL);
	if (dm_list_lc(&names)) {
		dm_list_free(names);
		return LC_EXIT_FAIL;
	}
	ret = show_these(names, json ? JSON : ROWS);
	dm_list_free(names);
	return ret;
}

const struct cmd cmd_status = {
	.name = "status",
	.summary = "show running volumes",
	.usage = "[--json] [NAME...]",
	.text = "Shows running volumes: one line each, or all there is to know of those named.",
	.options = long_options,
	.run = run,
};
