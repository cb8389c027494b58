// SPDX-License-Identifier: GPL-2.0-only
/* Memory, see memory.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

static void *check_memory(void *p)
{
	if (!p) {
		fprintf(stderr, "%s: out of memory; nothing more was done\n",
			program_invocation_short_name);
		exit(EXIT_FAILURE);
	}
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	return check_memory(calloc(n ? n : 1, size));
}

void *xrealloc(void *p, size_t n, size_t size)
{
	return check_memory(reallocarray(p, n ? n : 1, size));
}

char *xasprintf(const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	return check_memory(text);
}
