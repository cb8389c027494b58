// SPDX-License-Identifier: GPL-2.0-only
/* Messages, numbers and texts. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"
#include "text.h"
#include "util.h"

static int output_failed;	/* the exit code then; 0: not looked at */

void util_set_program(const char *command)
{
	program_invocation_short_name = xasprintf("lc-%s", command);
}

void complain(const char *subject, const char *fmt, ...)
{
	va_list args;
	char *text;

	fflush(stdout);
	va_start(args, fmt);
	text = shown_format(fmt, args);
	va_end(args);
	if (subject)
		fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name,
			shown(subject), text);
	else
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
	free(text);
}

int usage_error(const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = shown_format(fmt, args);
	va_end(args);
	fprintf(stderr, "%s: %s\nTry '%s --help'.\n", program_invocation_short_name, text,
		program_invocation_short_name);
	free(text);
	return LC_EXIT_USAGE;
}

static char *next_text(void)
{
	static char ring[8][64];
	static unsigned int at;

	return ring[at++ % ARRAY_SIZE(ring)];
}

const char *size_text(u64 bytes)
{
	static const char units[] = "KMGTPE";
	char *text = next_text();
	double n = bytes;
	int unit = -1;

	while (n >= 1024 && unit < 5) {
		n /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(text, 64, "%llu B", bytes);
	else
		snprintf(text, 64, "%.*f %ciB", n < 100 && n != (u64)n ? 1 : 0, n, units[unit]);
	return text;
}

const char *uuid_text(const u8 uuid[16])
{
	char *text = next_text(), *p = text;
	int i;

	for (i = 0; i < 16; i++)
		p += sprintf(p, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			     uuid[i]);
	return text;
}

const char *time_text(u64 ns)
{
	time_t seconds = ns / 1000000000;
	char *text = next_text();
	struct tm tm;

	if (!ns || !gmtime_r(&seconds, &tm) || !strftime(text, 64, "%Y-%m-%d %H:%M:%S UTC", &tm))
		strcpy(text, "never");
	return text;
}

bool parse_u64(const char *text, u64 *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return !errno && !*end;
}

bool parse_size(const char *text, u64 *bytes)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;
	int shift;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*bytes = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (!*end)
		return true;
	unit = strchr(units, toupper((unsigned char)*end));
	if (!unit || (end[1] && strcmp(end + 1, "iB")))
		return false;
	shift = 10 * (unit - units + 1);
	if (*bytes >> (64 - shift))
		return false;
	*bytes <<= shift;
	return true;
}

int random_bytes(void *buf, size_t len)
{
	return getrandom(buf, len, 0) == (ssize_t)len ? 0 : -EIO;
}

u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Standard output, when the command ends: what did not get out is an error. */
static void close_output(void)
{
	bool failed = ferror(stdout);

	if (fclose(stdout) || failed) {
		fprintf(stderr, "%s: standard output could not be written completely: %s\n",
			program_invocation_short_name, failed ? "an earlier write failed" : strerror(errno));
		_exit(output_failed);
	}
}

void util_check_output(int code)
{
	if (!output_failed)
		atexit(close_output);
	output_failed = code;
}

void clean_text(char *text)
{
	size_t len, skip;
	char *p;

	for (p = text; *p; p++) {
		if (*p < 0x20 || *p > 0x7e)
			*p = ' ';
	}
	skip = strspn(text, " ");
	len = strlen(text + skip);
	memmove(text, text + skip, len + 1);
	while (len && text[len - 1] == ' ')
		text[--len] = '\0';
}

char *table_word(const char *text)
{
	char *word = xcalloc(2 * strlen(text) + 1, 1), *p = word;

	for (; *text; text++) {
		if (isspace((unsigned char)*text) || *text == '\\')
			*p++ = '\\';
		*p++ = *text;
	}
	return word;
}
