/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The mark on the HDD: which cache the HDD is paired with, the last epoch it was used in, and
 * whether it went on without that cache.  pairing.h says what the mark and the superblock must
 * have in common.
 *
 * The mark reads the superblock (env->sb) and never writes it.  It shares the superblock's lock
 * (super.h), which is handed over at creation.
 */
#ifndef LC_MARK_H
#define LC_MARK_H

#include <linux/types.h>

struct lc_env;
struct lc_hdd_mark;
struct lc_lost;
struct mutex;

struct lc_hdd_mark *lc_mark_create(struct lc_env *env, struct mutex *lock);
void lc_mark_destroy(struct lc_hdd_mark *mark);

int lc_mark_check_pair(struct lc_hdd_mark *mark);
u64 lc_mark_epoch(struct lc_hdd_mark *mark);
void lc_mark_say_old_disk(struct lc_hdd_mark *mark, u64 seen);
int lc_mark_check_unchanged(struct lc_hdd_mark *mark);
int lc_mark_set_epoch(struct lc_hdd_mark *mark, u64 epoch);
int lc_mark_abandon(struct lc_hdd_mark *mark, const struct lc_lost *lost, u32 nr);

#endif /* LC_MARK_H */
