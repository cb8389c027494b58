/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The superblock of the SSD: reading it, and the moments at which it changes.  Every change is
 * durable in both front copies, one after the other, before the call returns (L9).
 *
 * Only super.c writes the superblock in memory.  Its identity and geometry are constant once it
 * is read.  Its other fields belong to the lock; before the epoch is open nothing else runs.
 *
 * The lock also guards the mark of the HDD (mark.h): a start writes the superblock, then the
 * mark, and nothing comes between the two.
 */
#ifndef LC_SUPER_H
#define LC_SUPER_H

#include <linux/types.h>

struct lc_env;
struct lc_fingerprint;
struct lc_hdd_mark;
struct lc_sb;
struct lc_super;
struct mutex;

/**
 * lc_super_create() - the room of a volume's superblock
 * @env: of the volume
 * @sb: the superblock in memory, for lc_super_load() to fill; outlives the room
 * @flush_failed: called when a write of the superblock fails.  Its PREFLUSH may be what failed,
 *	so that writes which the SSD completed before may be gone (F2).  In completion context,
 *	before the write returns and before a later FLUSH can complete and be believed.
 * @arg: for @flush_failed
 *
 * May sleep.  Return: the room, for lc_super_destroy(), or NULL.
 */
struct lc_super *lc_super_create(struct lc_env *env, struct lc_sb *sb,
				 void (*flush_failed)(void *arg), void *arg);
void lc_super_destroy(struct lc_super *super);
struct mutex *lc_super_lock(struct lc_super *super);

/**
 * lc_super_load() - read the superblock of the SSD into memory
 * @super: just created
 * @why: gets the reason on error, constant text
 *
 * May sleep.  Only reads.  Return: 0, or what the better copy failed with.
 */
int lc_super_load(struct lc_super *super, const char **why);

int lc_super_check_unchanged(struct lc_super *super, struct lc_hdd_mark *mark);
int lc_super_begin_epoch(struct lc_super *super, struct lc_hdd_mark *mark, u32 nr_lanes,
			 u64 first_seq, u64 first_segment);
/**
 * lc_super_settle_tail() - say where the log begins, before an epoch is opened
 * @super: of a volume whose log was read
 * @next_seq: of the first record of the next life
 * @next_segment: number of its first segment
 *
 * If the log holds no record from the tail on, the tail moves to @next_segment.  In memory only:
 * lc_super_begin_epoch() writes it.  May sleep.
 */
void lc_super_settle_tail(struct lc_super *super, u64 next_seq, u64 next_segment);

int lc_super_set_tail(struct lc_super *super, u64 segment, u64 seq);
int lc_super_end_clean(struct lc_super *super, u64 next_seq, u64 head_segment, u64 ckpt_entries,
		       const struct lc_fingerprint *print);

#endif /* LC_SUPER_H */
