// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything a tool writes, in its order (LD_PRELOAD): each pwrite and fsync of a block
 * device appends a record to the file named by WRITE_LOG.  "W PATH OFFSET LENGTH\n" and the
 * bytes, or "S PATH\n".
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *device_of(int fd)
{
	static char path[PATH_MAX];
	char link[64];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) || !S_ISBLK(st.st_mode))
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return NULL;
	path[n] = '\0';
	return path;
}

static FILE *log_file(void)
{
	return fopen(getenv("WRITE_LOG"), "ab");
}

ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
	ssize_t done = real(fd, buf, len, offset);
	const char *path = device_of(fd);
	FILE *file = path && done > 0 ? log_file() : NULL;

	if (file) {
		fprintf(file, "W %s %lld %zd\n", path, (long long)offset, done);
		fwrite(buf, 1, done, file);
		fclose(file);
	}
	return done;
}

int fsync(int fd)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
	int ret = real(fd);
	const char *path = device_of(fd);
	FILE *file = path && !ret ? log_file() : NULL;

	if (file) {
		fprintf(file, "S %s\n", path);
		fclose(file);
	}
	return ret;
}
