// SPDX-License-Identifier: GPL-2.0-only
/*
 * A disk with bad blocks (LD_PRELOAD).  The file named by BAD_BLOCKS has a line for each bad
 * block of 4 KiB: its byte address, then optionally how many reads of it are still bad (for ever
 * if nothing is said), then optionally the word "flip": such reads succeed, with a bit of the
 * block flipped, and fail with EIO otherwise.  Writing a whole block makes it good again, as
 * disks do.  BAD_BLOCKS_OF is a part of the path of the files or devices that are meant; without
 * it all are.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK	4096LL
#define MOST	64

struct bad {
	long long at;
	long left;		/* -1: for ever */
	bool flip;
};

static size_t load(struct bad *bad)
{
	FILE *file = fopen(getenv("BAD_BLOCKS"), "r");
	char line[80], word[16];
	size_t nr = 0;

	while (file && nr < MOST && fgets(line, sizeof(line), file)) {
		bad[nr] = (struct bad){ .left = -1 };
		word[0] = '\0';
		if (sscanf(line, "%lld %ld %15s", &bad[nr].at, &bad[nr].left, word) < 1)
			continue;
		bad[nr++].flip = !strcmp(word, "flip");
	}
	if (file)
		fclose(file);
	return nr;
}

static void store(const struct bad *bad, size_t nr)
{
	FILE *file = fopen(getenv("BAD_BLOCKS"), "w");
	size_t i;

	for (i = 0; file && i < nr; i++)
		fprintf(file, "%lld %ld %s\n", bad[i].at, bad[i].left, bad[i].flip ? "flip" : "");
	if (file)
		fclose(file);
}

static bool is_meant(int fd)
{
	const char *part = getenv("BAD_BLOCKS_OF");
	char link[32], path[4096];
	ssize_t n;

	if (!part)
		return true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	return strstr(path, part);
}

ssize_t pread64(int fd, void *buf, size_t len, off64_t offset)
{
	ssize_t (*real)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
	size_t nr = 0, i, flips[MOST], nr_flips = 0;
	struct bad bad[MOST];
	ssize_t got;

	if (is_meant(fd))
		nr = load(bad);
	for (i = 0; i < nr; i++) {
		if (offset >= bad[i].at + BLOCK || bad[i].at >= offset + (long long)len ||
		    !bad[i].left)
			continue;
		if (bad[i].left > 0) {
			bad[i].left--;
			store(bad, nr);
		}
		if (!bad[i].flip) {
			errno = EIO;
			return -1;
		}
		flips[nr_flips++] = bad[i].at < offset ? 0 : bad[i].at - offset;
	}
	got = real(fd, buf, len, offset);
	for (i = 0; i < nr_flips; i++) {
		if ((ssize_t)flips[i] + 600 < got)
			((unsigned char *)buf)[flips[i] + 600] ^= 1;
	}
	return got;
}

ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
	size_t nr = 0, i, kept = 0;
	struct bad bad[MOST];

	if (is_meant(fd))
		nr = load(bad);
	for (i = 0; i < nr; i++) {
		if (bad[i].at < offset || bad[i].at + BLOCK > offset + (long long)len)
			bad[kept++] = bad[i];
	}
	if (kept != nr)
		store(bad, kept);
	return real(fd, buf, len, offset);
}
