/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the processors of this machine can do.  The source is /proc/cpuinfo, which tells what the
 * kernel found and left switched on.
 */
#ifndef LC_CPU_H
#define LC_CPU_H

#include <stdbool.h>

/*
 * Do the kernels sum CRC32C with instructions for it here?  On x86-64 they need SSE 4.2, and PCLMULQDQ
 * to join streams; on arm64 the CRC32 extension.  False also if /proc/cpuinfo cannot be read.
 */
bool cpu_sums_crc32c(void);

#endif
