/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Texts from media and devices, for terminals, table lines and JSON.
 *
 * What a terminal shows as it is stays: printable ASCII and UTF-8.  Control characters, those that
 * change the direction of writing, and bytes that are no UTF-8 become \xNN.
 */
#ifndef LC_TEXT_H
#define LC_TEXT_H

#include <stdarg.h>
#include <stdbool.h>

/* Escaped, backslashes too, so that it can be read back; good for eight uses at a time. */
const char *shown(const char *text);

/* As printf() to a new text, of which nothing but printable characters is left; to be freed. */
char *shown_format(const char *fmt, va_list args);

bool has_control(const char *text);
/* Bytes of the UTF-8 character that @text begins with; 0 if it is none. */
unsigned int utf8_length(const char *text);

#endif
