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
#include "rates.h"
#include "text.h"
#include "util.h"
#include "view.h"

static const struct cmd_option long_options[] = {
	{ "json", 'j', NULL, "machine-readable, everything the kernel says" },
	{ "format", 'f', "FORMAT", "json, or prometheus: metrics as Prometheus reads them" },
	{ "output", 'o', "FILE", "to a file, which is replaced as a whole" },
	{ "watch", 'w', "SECONDS", "a line for each volume again and again, with rates" },
	{ "count", 'c', "N", "with --watch: end after so many reports" },
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

static void print_row(FILE *out, const struct volume_view *view)
{
	fprintf(out, "%-16s %-9s %10s %10s %10s %10s  %s\n", shown(view->facts.name),
		view_text(view, "mode"),
		size_text(view->facts.sectors << 9), view_blocks(view, "capacity"),
		view_blocks(view, "cached"), view_blocks(view, "dirty"),
		view_text(view, "writeback"));
}

static void print_all(FILE *out, const struct dm_facts *facts, const struct lc_status *status)
{
	static const char * const in_blocks[] = {
		"dirty", "cached", "capacity", "lost", "relogged", "promoted",
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
		print_row(out, &views[i]);
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

	ret = views_ask(names, &views, &nr);
	if (!views)
		return ret;
	if (style == TEXT)
		style = *names ? ALL : ROWS;
	if (path)
		ret |= print_to_file(path, style, views, nr);
	else if (nr || style == JSON || style == PROMETHEUS || style == ROWS)
		print_views(stdout, style, views, nr);
	views_free(views, nr);
	return ret;
}

/* Until a volume cannot be asked, or after @count reports, if that is not 0. */
static int watch(char **names, u64 seconds, u64 count)
{
	struct rates rates = { 0 };
	struct volume_view *views;
	size_t nr;
	int ret;

	for (;;) {
		ret = views_ask(names, &views, &nr);
		if (!ret)
			rates_print(stdout, &rates, views, nr);
		views_free(views, nr);
		if (ret || ferror(stdout) || (count && !--count))
			break;
		sleep((unsigned int)seconds);
	}
	rates_free(&rates);
	return ret;
}

/* What the command line says. */
struct wish {
	enum style style;
	const char *path;
	u64 seconds, count;
};

/* Return: 0, or an exit code after complaining. */
static int take_option(struct wish *wish, int c)
{
	switch (c) {
	case 'o':
		wish->path = optarg;
		return 0;
	case 'j':
		wish->style = JSON;
		return 0;
	case 'w':
		if (!parse_u64(optarg, &wish->seconds) || !wish->seconds || wish->seconds > 86400)
			return usage_error("--watch=%s: must be 1 to 86400 seconds", shown(optarg));
		return 0;
	case 'c':
		if (!parse_u64(optarg, &wish->count) || !wish->count)
			return usage_error("--count=%s: must be a number from 1 on", shown(optarg));
		return 0;
	default:
		wish->style = style_of(optarg);
		return wish->style == TEXT ? LC_EXIT_USAGE : 0;
	}
}

static int run(int argc, char **argv)
{
	struct wish wish = { .style = TEXT };
	int c, ret;

	while ((c = cmd_option(&cmd_status, argc, argv, &ret)) >= 0) {
		ret = take_option(&wish, c);
		if (ret)
			return ret;
	}
	if (c == CMD_END)
		return ret;
	if (wish.seconds && (wish.style != TEXT || wish.path))
		return usage_error("--watch prints text, to standard output only");
	if (wish.count && !wish.seconds)
		return usage_error("--count is for --watch");
	dm_setup();
	if (wish.seconds)
		return watch(argv + optind, wish.seconds, wish.count);
	return show(argv + optind, wish.style, wish.path);
}

const struct cmd cmd_status = {
	.name = "status",
	.summary = "show running volumes",
	.usage = "[--json | --format=FORMAT | --watch=SECONDS] [OPTIONS] [NAME...]",
	.text = "Shows running volumes: one line each, or all there is to know of those named.",
	.options = long_options,
	.run = run,
};
