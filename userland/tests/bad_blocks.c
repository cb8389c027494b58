// SPDX-License-Identifier: GPL-2.0-only
/*
 * A disk with unreadable blocks (LD_PRELOAD): reads that touch one of the 4 KiB blocks
 * whose byte addresses are in the file named by BAD_BLOCKS, one a line, fail with EIO.
 * Writing a whole block makes it good again, as disks do.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK	4096LL
#define MOST	64

static size_t load(long long *at)
{
	FILE *file = fopen(getenv("BAD_BLOCKS"), "r");
	size_t nr = 0;

	while (file && nr < MOST && fscanf(file, "%lld", &at[nr]) == 1)
		nr++;
	if (file)
		fclose(file);
	return nr;
}

static void store(const long long *at, size_t nr)
{
	FILE *file = fopen(getenv("BAD_BLOCKS"), "w");
	size_t i;

	for (i = 0; file && i < nr; i++)
		fprintf(file, "%lld\n", at[i]);
	if (file)
		fclose(file);
}

ssize_t pread64(int fd, void *buf, size_t len, off64_t offset)
{
	ssize_t (*real)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
	long long at[MOST];
	size_t nr = load(at), i;

	for (i = 0; i < nr; i++) {
		if (offset < at[i] + BLOCK && at[i] < offset + (long long)len) {
			errno = EIO;
			return -1;
		}
	}
	return real(fd, buf, len, offset);
}

ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
	size_t nr, i, kept = 0;
	long long at[MOST];

	nr = load(at);
	for (i = 0; i < nr; i++) {
		if (at[i] < offset || at[i] + BLOCK > offset + (long long)len)
			at[kept++] = at[i];
	}
	if (kept != nr)
		store(at, kept);
	return real(fd, buf, len, offset);
}
