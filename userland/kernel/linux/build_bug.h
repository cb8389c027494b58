/* SPDX-License-Identifier: GPL-2.0-only */
/* static_assert() for the format header. */
#ifndef LC_SHIM_BUILD_BUG_H
#define LC_SHIM_BUILD_BUG_H

#include <assert.h>

#endif
