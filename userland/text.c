// SPDX-License-Identifier: GPL-2.0-only
/* Texts from media and devices, see text.h. */
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "text.h"

/* Bytes of the UTF-8 character at @p, and its number; 0 if it is none. */
static unsigned int decode(const u8 *p, u32 *number)
{
	static const u32 lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int len, i;

	if (*p < 0x80) {
		*number = *p;
		return 1;
	}
	len = *p >= 0xf0 && *p < 0xf8 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc0 ? 2 : 0;
	if (!len || *p >= 0xf8)
		return 0;
	*number = *p & (0x7f >> len);
	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)	/* the end of the text, too */
			return 0;
		*number = *number << 6 | (p[i] & 0x3f);
	}
	if (*number < lowest[len] || *number > 0x10ffff || (*number >= 0xd800 && *number < 0xe000))
		return 0;
	return len;
}

static bool is_control(u32 number)
{
	return number < 0x20 || (number >= 0x7f && number < 0xa0) ||
	       number == 0x200e || number == 0x200f ||		/* marks of direction */
	       (number >= 0x2028 && number <= 0x202e) ||	/* ends of lines, directions */
	       (number >= 0x2066 && number <= 0x2069) || number == 0xfeff;
}

/* To be freed.  @backslashes: escape them, too. */
static char *escape(const char *text, bool backslashes)
{
	const u8 *p = (const u8 *)text;
	char *out = xcalloc(strlen(text) + 1, 4), *to = out;

	while (*p) {
		u32 number = 0;
		unsigned int len = decode(p, &number), i;

		if (!len || is_control(number)) {
			for (i = 0; i < (len ? len : 1); i++)
				to += sprintf(to, "\\x%02x", *p++);
			continue;
		}
		if (*p == '\\' && backslashes)
			*to++ = '\\';
		memcpy(to, p, len);
		to += len;
		p += len;
	}
	return out;
}

const char *shown(const char *text)
{
	static char *ring[8];
	static unsigned int at;
	char **mine = &ring[at++ % ARRAY_SIZE(ring)];

	free(*mine);
	*mine = escape(text, true);
	return *mine;
}

char *shown_format(const char *fmt, va_list args)
{
	char *text, *clean;

	if (vasprintf(&text, fmt, args) < 0)
		return xasprintf("(out of memory)");
	clean = escape(text, false);
	free(text);
	return clean;
}

bool has_control(const char *text)
{
	const u8 *p = (const u8 *)text;

	while (*p) {
		u32 number = 0;
		unsigned int len = decode(p, &number);

		if (len && is_control(number))
			return true;
		p += len ? len : 1;
	}
	return false;
}

unsigned int utf8_length(const char *text)
{
	u32 number;

	return decode((const u8 *)text, &number);
}
