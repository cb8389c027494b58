/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Superblock of the SSD and mark of the HDD: reading them at start, and the five
 * moments at which they change.  Every change is durable in both front copies,
 * one after the other, before the call returns (L9).  All may sleep.
 *
 * sb->life fields of c->sb belong to meta->lock once the core is started.
 */
#ifndef LC_SUPERBLOCK_H
#define LC_SUPERBLOCK_H

#include <linux/types.h>

struct block_device;
struct lc_cache;
struct lc_fingerprint;
struct lc_lost;
struct lc_meta;
struct lc_sb;

int lc_meta_read_sb(struct block_device *bdev, struct lc_sb *sb, u8 *which, const char **why);

struct lc_meta *lc_meta_create(struct lc_cache *c);
void lc_meta_destroy(struct lc_meta *meta);

int lc_meta_check_pair(struct lc_cache *c);
u64 lc_meta_mark_epoch(struct lc_cache *c);
void lc_meta_say_old_disk(struct lc_cache *c, u64 seen);
int lc_meta_check_unchanged(struct lc_cache *c);
int lc_meta_begin_epoch(struct lc_cache *c, u64 first_seq, u64 first_segment);
int lc_meta_set_tail(struct lc_cache *c, u64 segment, u64 seq);
int lc_meta_end_clean(struct lc_cache *c, u64 next_seq, u64 head_segment, u64 ckpt_entries,
		      const struct lc_fingerprint *print);
int lc_meta_abandon(struct lc_cache *c, const struct lc_lost *lost, u32 nr);

#endif /* LC_SUPERBLOCK_H */
