/* SPDX-License-Identifier: GPL-2.0-only */
/* Draining a volume; lc-flush and lc-remove share it. */
#ifndef LC_FLUSH_H
#define LC_FLUSH_H

struct dm_facts;

/* The name of the volume follows a rename.  Both complain and return a negative errno on failure. */
int flush_buffers(struct dm_facts *volume);
int flush_volume(struct dm_facts *volume);

#endif
