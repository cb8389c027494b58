/* SPDX-License-Identifier: GPL-2.0-only */
/* Start of a life: what does the log hold?  See recovery.c. */
#ifndef LC_RECOVERY_H
#define LC_RECOVERY_H

#include <linux/types.h>

struct lc_cache;

int lc_recovery_check_clean(struct lc_cache *c);
int lc_recovery_read_cuts(struct lc_cache *c);
int lc_recovery_run(struct lc_cache *c, u64 *next_seq, u64 *next_segment);

#endif /* LC_RECOVERY_H */
