// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lines of /etc/lctab, see lctab.h.
 *
 * A line that is not understood completely is left out: a volume with options that nobody meant is
 * worse than a boot without it, which says why.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lctab.h"
#include "memory.h"
#include "options.h"
#include "text.h"
#include "unit.h"

#define MAX_SECONDS	1000000000ULL

/*
 * Device mapper's library takes these characters as they are and spells others in its own way: the
 * node in /dev/mapper would have another name than the volume.
 */
static bool is_name(const char *name)
{
	const char *p;

	for (p = name; *p; p++) {
		if ((unsigned char)*p >= 0x80 || (!isalnum((unsigned char)*p) && !strchr("#+-.:=@_", *p)))
			return false;
	}
	return strcmp(name, ".") && strcmp(name, "..") && strcmp(name, "control") &&
	       strlen(name) < 128;
}

/* Names of units, and of the folders beside them, are names of files. */
static bool unit_fits(const char *path)
{
	char *name = unit_escape_path(path);
	bool fits = strlen(name) + strlen("blockdev@.target.requires") < NAME_MAX;

	free(name);
	return fits;
}

static char *name_why_bad(const char *name)
{
	char *path, *why = NULL;

	if (!is_name(name))
		return xasprintf("'%s' is no name for a volume that starts at boot: take letters, "
				 "digits and #+-.:=@_, at most 127 of them", name);
	path = xasprintf("/dev/mapper/%s", name);
	if (!unit_fits(path))
		why = xasprintf("'%s' is too long for the name of a unit, where '-' takes four "
				"characters; take a shorter name", name);
	free(path);
	return why;
}

/* getmntent(3)'s escapes, \040 for a blank, in place.  Return: false if one is no character. */
static bool unescape(char *text)
{
	char *to = text;

	while (*text) {
		if (text[0] == '\\' && strspn(text + 1, "01234567") >= 3) {
			char digits[4] = { text[1], text[2], text[3] };
			unsigned long c = strtoul(digits, NULL, 8);

			if (!c || c > 0xff)
				return false;
			*to++ = c;
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
	return true;
}

/* Below /dev, and the only way to write it: systemd has a unit for this way only. */
static bool is_device_path(const char *path)
{
	const char *p = path + strlen("/dev");
	size_t len;

	if (strncmp(path, "/dev/", 5))
		return false;
	while (*p) {
		p++;	/* the slash */
		len = strcspn(p, "/");
		if (!len || (len == 1 && p[0] == '.') || (len == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += len;
	}
	return true;
}

/* 8-4-4-4-12 digits; in place, as udev's links have them. */
static bool lower_uuid(char *uuid)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t i;

	for (i = 0; form[i]; i++) {
		if (form[i] == 'x' ? !isxdigit((unsigned char)uuid[i]) : uuid[i] != form[i])
			return false;
		uuid[i] = tolower((unsigned char)uuid[i]);
	}
	return !uuid[i];
}

/* The path of what fstab(5) calls by a tag, to be freed; NULL if it is none. */
static char *path_of_tag(const char *text)
{
	static const char *const tags[][2] = {
		{ "UUID=", "by-uuid" }, { "LABEL=", "by-label" }, { "PARTUUID=", "by-partuuid" },
		{ "PARTLABEL=", "by-partlabel" },
	};
	char *value, *path;
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(tags); i++) {
		len = strlen(tags[i][0]);
		if (strncmp(text, tags[i][0], len) || !text[len])
			continue;
		value = udev_escape(text + len);
		path = xasprintf("/dev/disk/%s/%s", tags[i][1], value);
		free(value);
		return path;
	}
	return NULL;
}

/*
 * The path of a device, to be freed.  @kind: of its link by the pair's UUID.  NULL: it is none, and
 * *@why is the reason.
 */
static char *device_path(char *text, const char *kind, char **why)
{
	char *path = NULL;

	if (!unescape(text) || has_control(text)) {
		*why = xasprintf("'%s' holds a character that no device has in its name", text);
		return NULL;
	}
	if (!strncmp(text, "LC=", 3)) {
		if (lower_uuid(text + 3))
			path = xasprintf("/dev/disk/by-lc/%s.%s", text + 3, kind);
		else
			*why = xasprintf("'%s' is no UUID of a pair: lc-dump shows it as cache_uuid",
					 text);
	} else if (is_device_path(text)) {
		path = xasprintf("%s", text);
	} else {
		path = path_of_tag(text);
	}
	if (!path && !*why)
		*why = xasprintf("'%s' is no device: name it by LC=, UUID=, LABEL=, PARTUUID=, "
				 "PARTLABEL= or a path below /dev without '//', '.' and '..'", text);
	if (path && !unit_fits(path)) {
		*why = xasprintf("'%s' is too long for the name of a unit; take a shorter link to "
				 "that device", text);
		free(path);
		path = NULL;
	}
	return path;
}

/* "90", "1min30s", "infinity": the units of systemd.time(7) down to seconds.  0 is for ever. */
static bool parse_timeout(const char *text, u64 *seconds)
{
	static const struct { const char *unit; u64 seconds; } units[] = {
		{ "", 1 }, { "s", 1 }, { "sec", 1 }, { "m", 60 }, { "min", 60 }, { "h", 3600 },
		{ "hr", 3600 }, { "d", 86400 },
	};
	size_t i, len;
	char *end;
	u64 n;

	*seconds = 0;
	if (!strcmp(text, "infinity")) {
		*seconds = LCTAB_FOREVER;
		return true;
	}
	do {
		if (!isdigit((unsigned char)*text))
			return false;
		n = strtoull(text, &end, 10);
		len = strspn(end, "abcdefghijklmnopqrstuvwxyz");
		for (i = 0; i < ARRAY_SIZE(units); i++) {
			if (strlen(units[i].unit) == len && !strncmp(units[i].unit, end, len))
				break;
		}
		if (i == ARRAY_SIZE(units) || n > MAX_SECONDS)
			return false;
		*seconds += n * units[i].seconds;
		text = end + len;
	} while (*text);
	if (!*seconds)
		*seconds = LCTAB_FOREVER;
	return *seconds == LCTAB_FOREVER || *seconds <= MAX_SECONDS;
}

/* One word of the options.  Return: why it is none, to be freed. */
static char *set_option(struct lctab_line *line, const char *word)
{
	static const char device_timeout[] = "x-systemd.device-timeout=";
	const struct { const char *word; bool *set; } switches[] = {
		{ "noauto", &line->noauto }, { "nofail", &line->nofail },
		{ "_netdev", &line->netdev }, { "x-initrd.attach", &line->in_initrd },
		{ "iostats", &line->iostats },
	};
	char *why;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(switches); i++) {
		if (strcmp(word, switches[i].word))
			continue;
		*switches[i].set = true;
		return NULL;
	}
	if (!strcmp(word, "defaults"))
		return NULL;
	if (!strncmp(word, device_timeout, strlen(device_timeout))) {
		line->has_timeout = parse_timeout(word + strlen(device_timeout), &line->timeout);
		return line->has_timeout ? NULL :
		       xasprintf("'%s': write the time as 90s, 5min or infinity", word);
	}
	if (!strchr(word, '=') || !strncmp(word, "x-", 2))
		return xasprintf("'%s' is no option: see lctab(5)", word);
	why = options_why_bad_pair(word);
	if (why)
		return why;
	line->pairs = xrealloc(line->pairs, line->nr_pairs + 2, sizeof(*line->pairs));
	line->pairs[line->nr_pairs++] = xasprintf("%s", word);
	line->pairs[line->nr_pairs] = NULL;
	return NULL;
}

static char *set_options(struct lctab_line *line, char *text)
{
	char *save = NULL, *word, *why = NULL;

	for (word = strtok_r(text, ",", &save); word && !why; word = strtok_r(NULL, ",", &save))
		why = set_option(line, word);
	return why;
}

/* The other disk of the pair, as the line names it or not; NULL: the superblock knows it. */
static char *set_hdd(struct lctab_line *line, char *text)
{
	static const char by_lc[] = "/dev/disk/by-lc/";
	char *why = NULL;

	if (text && strcmp(text, "-")) {
		line->hdd = device_path(text, "backing", &why);
		if (line->hdd && !strcmp(line->hdd, line->ssd))
			why = xasprintf("SSD and hard disk are the same device; name two");
	} else if (!strncmp(line->ssd, by_lc, strlen(by_lc)) && strchr(line->ssd, '.')) {
		line->hdd = xasprintf("%.*s.backing", (int)strcspn(line->ssd, "."), line->ssd);
	}
	return why;
}

/* All of a line that is no comment.  Return: why it is bad, to be freed. */
static char *parse(struct lctab_line *line, char *text)
{
	char *save = NULL, *field[4] = { NULL }, *why;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(field); i++)
		field[i] = strtok_r(i ? NULL : text, " \t", &save);
	if (!field[1])
		return xasprintf("names no SSD: write NAME SSD HDD OPTIONS");
	if (field[3] && strtok_r(NULL, " \t", &save))
		return xasprintf("has more than four fields: write blanks in names of devices as "
				 "\\040, and no blanks between options");
	why = name_why_bad(field[0]);
	if (why)
		return why;
	line->name = xasprintf("%s", field[0]);
	line->ssd = device_path(field[1], "cache", &why);
	if (!why)
		why = set_hdd(line, field[2]);
	if (!why && field[3])
		why = set_options(line, field[3]);
	return why;
}

static void free_line(struct lctab_line *line)
{
	size_t i;

	for (i = 0; i < line->nr_pairs; i++)
		free(line->pairs[i]);
	free(line->pairs);
	free(line->name);
	free(line->ssd);
	free(line->hdd);
}

static char *why_double(const struct lctab *tab, const struct lctab_line *line)
{
	size_t i;

	for (i = 0; i < tab->nr; i++) {
		if (!strcmp(tab->lines[i].name, line->name))
			return xasprintf("line %u names volume %s too; take another name, or remove "
					 "one of the lines", tab->lines[i].number, line->name);
	}
	return NULL;
}

/* @text of @len bytes, which may hold any; it is changed. */
static void take(struct lctab *tab, unsigned int number, char *text, size_t len)
{
	struct lctab_line line = { .number = number };
	char *why;

	if (len && text[len - 1] == '\n')
		text[--len] = '\0';
	for (; *text == ' ' || *text == '\t'; text++, len--)
		;
	if (text[0] == '#' || !len)
		return;
	for (char *tab_at = text; (tab_at = strchr(tab_at, '\t')); )
		*tab_at = ' ';
	if (strlen(text) != len || has_control(text))
		why = xasprintf("holds control characters; remove them");
	else
		why = parse(&line, text);
	if (!why)
		why = why_double(tab, &line);
	if (!why) {
		tab->lines = xrealloc(tab->lines, tab->nr + 1, sizeof(*tab->lines));
		tab->lines[tab->nr++] = line;
		return;
	}
	free_line(&line);
	tab->faults = xrealloc(tab->faults, tab->nr_faults + 1, sizeof(*tab->faults));
	tab->faults[tab->nr_faults++] = (struct lctab_fault){ number, why };
}

int lctab_read(struct lctab *tab, FILE *from)
{
	unsigned int number = 0;
	char *text = NULL;
	size_t size = 0;
	ssize_t len;
	int err;

	memset(tab, 0, sizeof(*tab));
	errno = 0;
	while ((len = getline(&text, &size, from)) > 0)
		take(tab, ++number, text, len);
	err = ferror(from) ? errno : 0;
	free(text);
	return err ? -err : 0;
}

void lctab_free(struct lctab *tab)
{
	size_t i;

	for (i = 0; i < tab->nr; i++)
		free_line(&tab->lines[i]);
	for (i = 0; i < tab->nr_faults; i++)
		free(tab->faults[i].text);
	free(tab->lines);
	free(tab->faults);
}
