/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's name and argument types for XXH64; header-only, nothing to link. */
#ifndef LC_SHIM_XXHASH_H
#define LC_SHIM_XXHASH_H

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>
#include <linux/types.h>

static inline u64 xxh64(const void *input, size_t length, u64 seed)
{
	return XXH64(input, length, seed);
}

#endif
