/* SPDX-License-Identifier: GPL-2.0-only */
/* glibc's <errno.h> includes this name too, so it must stay the system's. */
#include_next <linux/errno.h>
