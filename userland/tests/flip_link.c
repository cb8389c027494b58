// SPDX-License-Identifier: GPL-2.0-only
/*
 * LD_PRELOAD that turns a symbolic link while a program uses it.
 * FLIP_PATH=LINK FLIP_TO=OTHER: the first time LINK is opened, OTHER is renamed over it directly
 * afterwards.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void flip(const char *path)
{
	const char *from = getenv("FLIP_PATH"), *to = getenv("FLIP_TO");

	if (from && to && !strcmp(path, from))
		rename(to, from);
}

int open(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...);
	va_list args;
	mode_t mode;
	int fd;

	real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	fd = real(path, flags, mode);
	flip(path);
	return fd;
}
