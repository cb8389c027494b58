/* SPDX-License-Identifier: GPL-2.0-only */
/* Draining a volume; lc-flush and lc-remove share it. */
#ifndef LC_FLUSH_H
#define LC_FLUSH_H

/* Both complain and return a negative errno on failure. */
int flush_buffers(const char *name);
int flush_volume(const char *name);

#endif
