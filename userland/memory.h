/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that is there: a command that gets none says so and exits.  The caller frees what it
 * gets.
 */
#ifndef LC_MEMORY_H
#define LC_MEMORY_H

#include <stddef.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Zeroed; @n may be 0. */
void *xcalloc(size_t n, size_t size);
/* As reallocarray(): what was there stays, what is new is undefined; @n may be 0. */
void *xrealloc(void *p, size_t n, size_t size);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
