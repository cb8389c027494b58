/* SPDX-License-Identifier: GPL-2.0-only */
/* Just enough of the kernel for ../../../dm-lc/format/params.c to compile unchanged; only for that file. */
#ifndef LC_SHIM_KERNEL_H
#define LC_SHIM_KERNEL_H

#include <ctype.h>
#include <errno.h>
#include <linux/types.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define READ_ONCE(x)	(x)
#define WRITE_ONCE(x, value)	((x) = (value))
#define smp_load_acquire(p)	(*(p))
#define smp_store_release(p, value)	(*(p) = (value))
#define hweight32(x)	((unsigned int)__builtin_popcount(x))
#define kstrtouint	kstrtou32

/* As in the kernel: digits, perhaps behind a plus, nothing else. */
static inline int kstrtou32(const char *text, unsigned int base, u32 *value)
{
	unsigned long long n;
	char *end;

	if (*text == '+')
		text++;
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, base);
	if (errno || n > UINT32_MAX)
		return -ERANGE;
	if (*end)
		return -EINVAL;
	*value = n;
	return 0;
}

static inline int scnprintf(char *to, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static inline int scnprintf(char *to, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(to, size, format, args);
	va_end(args);
	return !size ? 0 : n < (int)size ? n : (int)size - 1;
}

#endif
