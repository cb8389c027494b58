// SPDX-License-Identifier: GPL-2.0-only
/* Texts as systemd's unit files take them, see unit.h. */
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "text.h"
#include "unit.h"

static const char alnum[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* The locale has no say in what is plain. */
static bool is_plain(char c, const char *others)
{
	return c && (strchr(alnum, c) || strchr(others, c));
}

static char *hex(char *to, char c)
{
	return to + sprintf(to, "\\x%02x", (unsigned char)c);
}

char *unit_escape(const char *text)
{
	char *out = xcalloc(strlen(text) + 1, 4), *to = out;
	const char *p;

	for (p = text; *p; p++) {
		if (*p == '/')
			*to++ = '-';
		else if (is_plain(*p, p == text ? ":_" : ":_."))
			*to++ = *p;
		else
			to = hex(to, *p);
	}
	return out;
}

char *unit_escape_path(const char *path)
{
	return unit_escape(path + strspn(path, "/"));
}

/* @doubled: characters that are written twice. */
static char *word(const char *text, const char *doubled)
{
	char *out = xcalloc(strlen(text) + 1, 4), *to = out;

	for (; *text; text++) {
		if (is_plain(*text, "/_.:=,+@-")) {
			*to++ = *text;
		} else if (strchr(doubled, *text)) {
			*to++ = *text;
			*to++ = *text;
		} else {
			to = hex(to, *text);
		}
	}
	return out;
}

char *unit_word(const char *text)
{
	return word(text, "%$");
}

char *unit_command(const char *path)
{
	return word(path, "%");
}

char *udev_escape(const char *text)
{
	char *out = xcalloc(strlen(text) + 1, 4), *to = out;
	unsigned int len;

	while (*text) {
		len = is_plain(*text, "#+-.:=@_") ? 1 : utf8_length(text);
		if (len == 1 && !is_plain(*text, "#+-.:=@_"))
			len = 0;
		if (!len)
			to = hex(to, *text++);
		while (len--)
			*to++ = *text++;
	}
	return out;
}
