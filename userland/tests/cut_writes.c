// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tool that is killed (LD_PRELOAD): CUT_AFTER is the number of writes that are done, the process
 * ends with the exit code 99 instead of the next one.  With CUT_TORN, so many bytes of that one
 * are still written.  CUT_LOG is a file that gets a line "length offset" for each write.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
	const char *after = getenv("CUT_AFTER"), *torn = getenv("CUT_TORN");
	const char *name = getenv("CUT_LOG");
	static long done;
	FILE *log;

	if (after && done == atol(after)) {
		if (torn && real(fd, buf, (size_t)atol(torn) < len ? (size_t)atol(torn) : len,
				 offset) < 0)
			_exit(98);
		_exit(99);
	}
	done++;
	log = name ? fopen(name, "a") : NULL;
	if (log) {
		fprintf(log, "%zu %lld\n", len, (long long)offset);
		fclose(log);
	}
	return real(fd, buf, len, offset);
}
