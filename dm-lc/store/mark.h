/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The mark on the HDD: which cache the HDD is paired with, the last epoch it was used in, and
 * whether it went on without that cache.  pairing.h says what the mark and the superblock must
 * have in common.
 *
 * The mark reads the superblock (env->sb) and never writes it.  It shares the superblock's lock
 * (super.h), which is handed over at creation.
 *
 * All functions may sleep, and take the lock if nothing else is said.  A volume without a mark
 * (LC_NO_MARK) has this room, too: then no function does I/O.
 */
#ifndef LC_MARK_H
#define LC_MARK_H

#include <linux/types.h>

struct lc_doubt;
struct lc_env;
struct lc_hdd_mark;
struct lc_lost;
struct mutex;

/**
 * lc_mark_create() - allocate the state of a volume's mark
 * @env: of the volume, whose superblock is loaded before any other call
 * @lock: of the superblock; outlives the mark
 * @doubt: of the volume; outlives the mark
 *
 * Return: the mark, for lc_mark_destroy(), or NULL without memory.
 */
struct lc_hdd_mark *lc_mark_create(struct lc_env *env, struct mutex *lock,
				   const struct lc_doubt *doubt);

/* Free the mark.  No call is in progress.  @mark may be NULL. */
void lc_mark_destroy(struct lc_hdd_mark *mark);

/**
 * lc_mark_check_pair() - do SSD and HDD belong together?
 * @mark: of a volume that is not started
 *
 * Reads the mark from the HDD into memory, and says why not.  Writes nothing.
 * Return: 0; -EINVAL: of another cache; -EINPROGRESS: lc-format or lc-detach is half done;
 * -ESTALE: one of the devices is an old copy, or the cache was abandoned; -EUCLEAN: lost blocks
 * are recorded, or the two contradict each other; or the error of reading it.
 */
int lc_mark_check_pair(struct lc_hdd_mark *mark);

/**
 * lc_mark_epoch() - the last life that the HDD was used in
 * @mark: after lc_mark_check_pair()
 *
 * Return: the epoch, or all ones without a mark.
 */
u64 lc_mark_epoch(struct lc_hdd_mark *mark);

/**
 * lc_mark_say_old_disk() - log that the HDD is a copy from before a life it was used in (S7)
 * @mark: after lc_mark_check_pair(), of a volume that is not started; with or without the lock
 * @seen: epoch of that life
 */
void lc_mark_say_old_disk(struct lc_hdd_mark *mark, u64 seen);

/**
 * lc_mark_check_unchanged() - is the mark on the HDD the one that memory knows?
 * @mark: of a volume that writes nothing; the caller holds the lock
 * @since: when memory was right, constant text for people, as "the system was hibernated"
 *
 * Only reads, and says why not.
 * Return: 0; -ESTALE: it is of another cache or start, or later; another errno: it cannot be read.
 */
int lc_mark_check_unchanged(struct lc_hdd_mark *mark, const char *since);

/**
 * lc_mark_settle() - write both copies of the mark as they count
 * @mark: of a volume that is about to begin a life; the caller holds the lock
 * @owner: gets the owner in it, 0 if there is none
 *
 * A start that was cut may have left two owners, and one of them in the HDD's cache only.  After
 * this there is one, whichever copy rots (T5).
 * Return: 0, or a negative errno: the copies may differ as before.
 */
int lc_mark_settle(struct lc_hdd_mark *mark, u64 *owner);

/**
 * lc_mark_set_epoch() - write the mark: the HDD is used in this epoch from now on
 * @mark: of the volume; the caller holds the lock
 * @epoch: of the superblock, which is durable
 * @owner: of the superblock, too
 *
 * The FLUSH in it covers all writes to the HDD before.  The mark is read back, which finds another
 * machine that is starting the same volume, if that has written the mark meanwhile.  It finds none
 * that does so later: a mark is no lock.
 * Return: 0; -ESTALE: another start has written it, and this is said; or another negative errno:
 * the copies may differ.
 */
int lc_mark_set_epoch(struct lc_hdd_mark *mark, u64 epoch, u64 owner);

/**
 * lc_mark_abandon() - write the mark: this cache must never be replayed again (S1)
 * @mark: of the volume
 * @lost: sectors that only the SSD had, or NULL
 * @nr: how many, or LC_MARK_LOST_TOO_MANY: not known, or more than fit; @lost is NULL then
 *
 * May be called again, with a more exact list.  Return: 0, or a negative errno: one copy may say
 * so already, and counts.
 */
int lc_mark_abandon(struct lc_hdd_mark *mark, const struct lc_lost *lost, u32 nr);

#endif /* LC_MARK_H */
