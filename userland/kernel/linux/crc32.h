/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LC_SHIM_CRC32_H
#define LC_SHIM_CRC32_H

#include <linux/types.h>

/* As the kernel's: the raw register goes in and comes out, no inversion at either end. */
u32 crc32c(u32 crc, const void *data, unsigned int len);

#endif
