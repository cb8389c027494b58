/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LC_SHIM_STRING_H
#define LC_SHIM_STRING_H

#include <string.h>

#endif
