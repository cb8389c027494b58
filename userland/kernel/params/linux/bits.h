/* SPDX-License-Identifier: GPL-2.0-only */
/* See kernel.h. */
#define BIT(n)	(1u << (n))
