/* SPDX-License-Identifier: GPL-2.0-only */
/* Just enough of the kernel's types for ../dm-lc/format/format.c and replay.c to compile unchanged. */
#ifndef LC_SHIM_TYPES_H
#define LC_SHIM_TYPES_H

#include_next <linux/types.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
/* As in the kernel, so that %llu prints it on every machine. */
typedef unsigned long long u64;

#define cpu_to_le16(x)	htole16(x)
#define cpu_to_le32(x)	htole32(x)
#define cpu_to_le64(x)	htole64(x)
#define le16_to_cpu(x)	le16toh(x)
#define le32_to_cpu(x)	le32toh(x)
#define le64_to_cpu(x)	((u64)le64toh(x))

#ifndef __packed
#define __packed __attribute__((__packed__))
#endif

#endif
