/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The superblock of the SSD: reading it, a new epoch, a new tail, a clean end.  Every change is
 * durable in both front copies, one after the other, before the call returns (L9).
 *
 * Only super.c writes the superblock in memory.  Other rooms read it as env->sb.  Its identity
 * and geometry are constant once it is loaded.  Its other fields belong to the lock, with these
 * exceptions.  While start.c begins or ends a life, no other task writes them, so it and what it
 * calls read them without the lock.  epoch, epoch_first_seq and incompat do not change in between,
 * so all rooms read them without it during a life.  The status line may show old values.
 *
 * The lock also guards the mark of the HDD (mark.h): a start writes mark, superblock and mark, and
 * nothing comes between the three.
 *
 * All functions may sleep.  Those that do I/O wait for it.
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
 * lc_super_create() - allocate the state of a volume's superblock
 * @env: of the volume
 * @sb: the superblock in memory, for lc_super_load() to fill; outlives what is returned
 * @flush_failed: called when a write of the superblock fails.  Its PREFLUSH may be what failed,
 *	so that writes which the SSD completed before may be gone (F2).  In completion context,
 *	before the write returns and before a later FLUSH can complete and be believed.
 * @arg: for @flush_failed
 *
 * Return: the state, for lc_super_destroy(), or NULL without memory.
 */
struct lc_super *lc_super_create(struct lc_env *env, struct lc_sb *sb,
				 void (*flush_failed)(void *arg), void *arg);

/* Free the state.  No call is in progress, and the mark is destroyed.  @super may be NULL. */
void lc_super_destroy(struct lc_super *super);

/* Return: the mutex that guards superblock and mark; it belongs to @super. */
struct mutex *lc_super_lock(struct lc_super *super);

/**
 * lc_super_load() - read the superblock of the SSD into memory
 * @super: just created; no other task knows it
 * @why: gets the reason on error, constant text
 *
 * Only reads.  Of two good front copies the one with the higher sb_seq counts.
 * Return: 0, or what the better copy failed with: the error of a read, or that of lc_sb_decode().
 */
int lc_super_load(struct lc_super *super, const char **why);

/**
 * lc_super_check_unchanged() - are superblock and mark those that memory knows?
 * @super: of a volume that is started and suspended
 * @mark: of the same volume
 *
 * Only reads, and says why not.  Does not look at the SSD of a volume in mode degraded.
 * Return: 0; -ESTALE: one is of another cache or start, or later; another errno: one cannot be
 * read.
 */
int lc_super_check_unchanged(struct lc_super *super, struct lc_hdd_mark *mark);

/**
 * lc_super_settle_tail() - say where the log begins, before an epoch is opened
 * @super: of a volume whose log was read
 * @next_seq: of the first record of the next life
 * @next_segment: number of its first segment
 *
 * If the log holds no record from the tail on, the tail moves to @next_segment.  In memory only:
 * lc_super_begin_epoch() writes it.
 */
void lc_super_settle_tail(struct lc_super *super, u64 next_seq, u64 next_segment);

/**
 * lc_super_settle_warm() - say which copies a later scan may believe, before an epoch is opened
 * @super: of a volume whose log was read
 * @segment: the lowest whose copies are believed (WS3)
 * @ahead: segments that this life hands out, at most, beyond its last record (WS5)
 *
 * In memory only: lc_super_begin_epoch() writes it.
 */
void lc_super_settle_warm(struct lc_super *super, u64 segment, u32 ahead);

/**
 * lc_super_set_warm() - change which copies a later scan may believe
 * @super: of the volume, whose life has begun
 * @segment: the lowest, or 0: none (WS3)
 *
 * Return: 0, or a negative errno: nothing has changed in memory, and may have on the SSD.
 */
int lc_super_set_warm(struct lc_super *super, u64 segment);

/* The same, but it is durable some time later, with the next change. */
void lc_super_note_warm(struct lc_super *super, u64 segment);

/**
 * lc_super_set_ahead() - this life hands out more segments (WS5)
 * @super: of the volume, whose life has begun
 * @ahead: segments
 *
 * Return: 0 or a negative errno.
 */
int lc_super_set_ahead(struct lc_super *super, u32 ahead);

/**
 * lc_super_begin_epoch() - open a life
 * @super: of a volume whose tail is settled
 * @mark: of the same volume
 * @nr_lanes: of the log in this life
 * @first_seq: of its first record
 * @first_segment: number of its first segment
 *
 * Writes the mark as it counts, the superblock with the next epoch and without `clean`, then the
 * mark with the same epoch (L1, L9, L10).  Superblock and mark have a new random owner (T5).  Both
 * are read again, before and after, to find another machine that starts the volume.  Nothing else
 * may have been written in this life.
 * Return: 0 or a negative errno, and says why; with -ERANGE nothing was written at all; -ESTALE:
 * another machine has started the volume meanwhile.
 */
int lc_super_begin_epoch(struct lc_super *super, struct lc_hdd_mark *mark, u32 nr_lanes,
			 u64 first_seq, u64 first_segment);

/**
 * lc_super_set_tail() - replay needs no record below @seq any more
 * @super: of the volume
 * @segment: number of the lowest segment that holds a record at or above @seq (L6)
 * @seq: sequence number
 *
 * The records that the move relies on are durable (L5).
 * Return: 0, or a negative errno: the tail did not move in memory, and may have on the SSD.
 */
int lc_super_set_tail(struct lc_super *super, u64 segment, u64 seq);

/**
 * lc_super_tell_life() - have the SSD say that the mark has reached this life (T2)
 * @super: of the volume, whose life has begun
 *
 * May sleep.  Return: 0 or a negative errno.
 */
int lc_super_tell_life(struct lc_super *super);

/*
 * Does the SSD say so, durably?  A mark of an earlier life tells an old copy of the HDD then.
 * Without a mark nothing could.  Any context.
 */
bool lc_super_life_told(const struct lc_super *super);

/**
 * lc_super_end_clean() - close a life
 * @super: of a volume whose checkpoint is complete
 * @next_seq: of the first record of the next life
 * @head_segment: number of the first segment without a record
 * @ckpt_entries: blocks in the checkpoint
 * @print: fingerprint of the HDD
 * @promoted: the checkpoint has blocks of groups, and uses
 *
 * Nothing is written in this life afterwards.  Return: 0, or a negative errno: the life is not
 * clean.
 */
int lc_super_end_clean(struct lc_super *super, u64 next_seq, u64 head_segment, u64 ckpt_entries,
		       const struct lc_fingerprint *print, bool promoted);

#endif /* LC_SUPER_H */
