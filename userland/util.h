/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages, numbers and texts; nothing here knows a device. */
#ifndef LC_UTIL_H
#define LC_UTIL_H

#include <stdio.h>
#include <linux/types.h>

#define LC_VERSION_MAJOR	0
#define LC_VERSION_MINOR	1
#define LC_VERSION_PATCH	0

/* Exit codes of every command but lc-check, whose codes are fsck(8)'s. */
enum {
	LC_EXIT_OK	= 0,
	LC_EXIT_FAIL	= 1,	/* refused or failed; stderr says why */
	LC_EXIT_USAGE	= 2,
};

/* Messages come from "lc-COMMAND" from now on. */
void util_set_program(const char *command);
/* When the command ends, exit with @code if standard output could not be written completely. */
void util_check_output(int code);

/*
 * A line on stderr, "lc-format: SUBJECT: text".  @subject: the device or name it is about, NULL if
 * none.  The text says what is wrong and what to do about it; what is not printable is escaped.
 */
void complain(const char *subject, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same about the command line.  Return: LC_EXIT_USAGE. */
int usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Texts in a ring of static buffers, good for eight uses in one printf(). */
const char *size_text(u64 bytes);
const char *uuid_text(const u8 uuid[16]);
const char *time_text(u64 ns);

/* All of @text as a number; false if it is none, or too large. */
bool parse_u64(const char *text, u64 *value);
/* "65536", "64K", "1MiB": powers of 1024 only. */
bool parse_size(const char *text, u64 *bytes);
/* 0, or -EIO without a complaint. */
int random_bytes(void *buf, size_t len);
/* Of a clock that only moves forward. */
u64 now_ns(void);

/* Printable ASCII only, blanks at both ends gone: what devices say of themselves. */
void clean_text(char *text);

/* A path as one word of a table line, to be freed: blanks and backslashes are escaped. */
char *table_word(const char *text);

#endif
