// SPDX-License-Identifier: GPL-2.0-only
/* lc-status: what the running volumes do. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "dm.h"
#include "memory.h"
#include "prometheus.h"
#include "text.h"
#include "util.h"

static const struct cmd_option long_options[] = {
	{ "json", 'j', NULL, "machine-readable, everything the kernel says" },
	{ "format", 'f', "FORMAT", "json, or prometheus: metrics as Prometheus reads them" },
	{ "output", 'o', "FILE", "to a file, which is replaced as a whole" },
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

static void print_row(FILE *out, const struct dm_facts *facts, const struct lc_status *status)
{
	fprintf(out, "%-16s %-9s %10s %10s %10s %10s  %s\n", shown(facts->name),
		text_or_unknown(status, "mode"),
		size_text(facts->sectors << 9), blocks_text(status, "capacity"),
		blocks_text(status, "cached"), blocks_text(status, "dirty"),
		text_or_unknown(status, "writeback"));
}

static void print_all(FILE *out, const struct dm_facts *facts, const struct lc_status *status)
{
	static const char * const in_blocks[] = {
		"dirty", "cached", "capacity", "lost", "relogged",
	};
	unsigned int i, k;
	u64 n;

	fprintf(out, "%s\n  %-16s %s\n  %-16s %s\n", shown(facts->name), "size",
		size_text(facts->sectors << 9), "table", shown(facts->params));
	fprintf(out, "  %-16s %s, open %d\n", "device", facts->suspended ? "suspended" : "running",
		facts->open_count);
	for (i = 0; i < status->nr; i++) {
		fprintf(out, "  %-16s %s", shown(status->pair[i].key), shown(status->pair[i].value));
		for (k = 0; k < ARRAY_SIZE(in_blocks); k++) {
			if (!strcmp(status->pair[i].key, in_blocks[k]) &&
			    dm_status_number(status, in_blocks[k], &n))
				fprintf(out, " blocks (%s)", size_text(n << 12));
		}
		fprintf(out, "\n");
	}
}

enum style { TEXT, ROWS, ALL, JSON, PROMETHEUS };

/* Return: how --format calls it, or TEXT after complaining. */
static enum style style_of(const char *name)
{
	if (!strcmp(name, "json"))
		return JSON;
	if (!strcmp(name, "prometheus"))
		return PROMETHEUS;
	usage_error("--format=%s: must be json or prometheus", shown(name));
	return TEXT;
}

/* The volumes of these names that can be asked, in *@views, to be freed by free_views(). */
static int ask_these(char **names, struct volume_view **views, size_t *nr)
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

static void free_views(struct volume_view *views, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		dm_status_free(&views[i].status);
		dm_facts_free(&views[i].facts);
	}
	free(views);
}

static void print_json(FILE *out, const struct volume_view *views, size_t nr)
{
	json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < nr; i++)
		json_object_array_add(array, json_volume(&views[i].facts, &views[i].status));
	fprintf(out, "%s\n", json_object_to_json_string_ext(array, JSON_C_TO_STRING_PRETTY |
							    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(array);
}

static void print_rows(FILE *out, const struct volume_view *views, size_t nr)
{
	size_t i;

	if (!nr) {
		fprintf(out, "No lc volume is running.\n");
		return;
	}
	fprintf(out, "%-16s %-9s %10s %10s %10s %10s  %s\n", "NAME", "MODE", "SIZE", "CAPACITY",
		"CACHED", "DIRTY", "WRITEBACK");
	for (i = 0; i < nr; i++)
		print_row(out, &views[i].facts, &views[i].status);
}

static void print_views(FILE *out, enum style style, const struct volume_view *views, size_t nr)
{
	size_t i;

	switch (style) {
	case JSON:
		print_json(out, views, nr);
		break;
	case PROMETHEUS:
		prometheus_print(out, views, nr);
		break;
	case ALL:
		for (i = 0; i < nr; i++)
			print_all(out, &views[i].facts, &views[i].status);
		break;
	default:
		print_rows(out, views, nr);
	}
}

/*
 * To a new file that takes the place of @path once it is whole: a program that reads it meanwhile
 * sees the old one or the new one.  Return: an exit code.
 */
static int print_to_file(const char *path, enum style style, const struct volume_view *views,
			 size_t nr)
{
	char *part = xasprintf("%s.%ld", path, (long)getpid());
	FILE *out = fopen(part, "we");
	bool failed;

	if (!out) {
		complain(part, "cannot be created: %s; name a file in a folder that exists",
			 strerror(errno));
		free(part);
		return LC_EXIT_FAIL;
	}
	print_views(out, style, views, nr);
	failed = ferror(out);
	failed |= fclose(out) != 0;
	failed = failed || rename(part, path);
	if (failed) {
		complain(path, "cannot be written: %s; what was there is kept", strerror(errno));
		unlink(part);
	}
	free(part);
	return failed ? LC_EXIT_FAIL : LC_EXIT_OK;
}

static int show(char **names, enum style style, const char *path)
{
	struct volume_view *views;
	size_t nr;
	int ret;

	ret = ask_these(names, &views, &nr);
	if (path)
		ret |= print_to_file(path, style, views, nr);
	else if (nr || style == JSON || style == PROMETHEUS || !*names)
		print_views(stdout, style, views, nr);
	free_views(views, nr);
	return ret;
}

static int run(int argc, char **argv)
{
	enum style style = TEXT;
	const char *path = NULL;
	char **names = NULL;
	int c, ret;

	while ((c = cmd_option(&cmd_status, argc, argv, &ret)) >= 0) {
		if (c == 'o')
			path = optarg;
		else
			style = c == 'j' ? JSON : style_of(optarg);
		if (c == 'f' && style == TEXT)
			return LC_EXIT_USAGE;
	}
	if (c == CMD_END)
		return ret;
	dm_setup();
	if (optind < argc)
		return show(argv + optind, style == TEXT ? ALL : style, path);
	ret = dm_list_lc(&names) ? LC_EXIT_FAIL : show(names, style == TEXT ? ROWS : style, path);
	dm_list_free(names);
	return ret;
}

const struct cmd cmd_status = {
	.name = "status",
	.summary = "show running volumes",
	.usage = "[--json | --format=FORMAT] [--output=FILE] [NAME...]",
	.text = "Shows running volumes: one line each, or all there is to know of those named.",
	.options = long_options,
	.run = run,
};
