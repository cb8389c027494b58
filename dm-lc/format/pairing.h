/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a superblock and a mark belong together, and neither device is an old copy.  Pure, like
 * format.h, and shared with the tools.  Any context.
 *
 * An old copy of one of the two devices must never be used with the other one as it is now:
 * the log lacks what was drained since, or replays over what is newer (S7).
 *
 * Invariants
 *  T1 The mark of a life is durable in both copies before the first record of that life,
 *     its first write to the hard disk, its first move of the tail and its clean stop.  A write
 *     around the log comes after its first durable record, or after mark_epoch (AR6).
 *  T2 So the mark of the right disk is of a life at or above
 *       sb->epoch of a superblock that is clean,
 *       sb->mark_epoch: when the superblock was last written, both copies had reached it,
 *       sb->clean_epoch: the last life that stopped cleanly,
 *       the latest of sb->lives: each of those has records,
 *       the epoch of every record (recovery.c).
 *     A mark of an earlier life is that of an old disk.
 *  T3 A mark below sb->epoch that T2 admits is left by a power cut between superblock and mark
 *     of a start, or by several such cuts in a row.  Then the volume has written nothing to the
 *     hard disk since the life of the mark.  If that life stopped cleanly (clean_epoch), its
 *     fingerprint still holds.
 *  T4 A mark above sb->epoch is that of a newer disk: the cache device is the old one.
 *  T5 Each start draws a random owner.  It writes, in this order: both copies of the mark as they
 *     count; the superblock, with that owner in sb->owner and the mark's in sb->mark_owner; the
 *     mark with the new epoch and the new owner.  So a mark of sb->epoch has sb->owner, and an
 *     earlier one that T2 admits has sb->mark_owner.  A mark with another owner is of a start
 *     that this superblock does not descend from: that of a copy of the cache device.  Epochs do
 *     not tell: a start that was cut before its mark, and one of the copy later, have the same.
 *
 * mark_epoch and clean_epoch are 0 in superblocks of writers that do not know them; the other
 * fields remain.  Owners are 0 if a writer that does not know them wrote the superblock or the mark
 * last; T5 says nothing then.  A copy made within the life of the mark is not detected.
 */
#ifndef LC_PAIRING_H
#define LC_PAIRING_H

#include <linux/string.h>

#include "format.h"

enum lc_pairing {
	LC_PAIRING_FITS,
	LC_PAIRING_FOREIGN,	/* the mark is of another cache */
	LC_PAIRING_INTERRUPTED,	/* lc-format or lc-detach is half done (A3) */
	LC_PAIRING_ABANDONED,	/* the disk went on without the cache */
	LC_PAIRING_OLD_CACHE,	/* T4 */
	LC_PAIRING_OLD_DISK,	/* T2 */
	LC_PAIRING_FORKED,	/* T5 */
	LC_PAIRING_LOST,	/* the mark lists lost ranges */
};

/* Of two good copies of the mark: does @copy count, and not @other? */
static inline bool lc_mark_counts(const struct lc_mark_info *copy,
				  const struct lc_mark_info *other)
{
	bool abandoned = copy->state == LC_MARK_ABANDONED;
	bool other_abandoned = other->state == LC_MARK_ABANDONED;

	if (abandoned != other_abandoned)
		return abandoned;
	return copy->mark_seq > other->mark_seq;
}

/* The latest life that the hard disk must have seen, by the superblock alone (T2). */
static inline u64 lc_pairing_seen(const struct lc_sb *sb)
{
	u64 seen = sb->flags & LC_SB_CLEAN ? sb->epoch : sb->mark_epoch;

	if (sb->clean_epoch > seen)
		seen = sb->clean_epoch;
	if (sb->nr_lives && sb->lives[sb->nr_lives - 1].epoch > seen)
		seen = sb->lives[sb->nr_lives - 1].epoch;
	return seen;
}

/* Is the mark of the start that @sb is of, or of the one before it (T5)?  T2 and T4 hold. */
static inline bool lc_pairing_descends(const struct lc_sb *sb, const struct lc_mark_info *mark)
{
	u64 owner = mark->epoch == sb->epoch ? sb->owner : sb->mark_owner;

	return !sb->owner || !mark->owner || mark->owner == owner;
}

static inline enum lc_pairing lc_pairing_check(const struct lc_sb *sb,
					       const struct lc_mark_info *mark)
{
	if (mark->generation != sb->generation || memcmp(mark->cache_uuid, sb->cache_uuid, 16) ||
	    memcmp(mark->volume_uuid, sb->volume_uuid, 16))
		return LC_PAIRING_FOREIGN;
	if (mark->state == LC_MARK_ATTACHING || mark->state == LC_MARK_DETACHING)
		return LC_PAIRING_INTERRUPTED;
	if (mark->state == LC_MARK_ABANDONED)
		return LC_PAIRING_ABANDONED;
	if (mark->epoch > sb->epoch)
		return LC_PAIRING_OLD_CACHE;
	if (mark->epoch < lc_pairing_seen(sb))
		return LC_PAIRING_OLD_DISK;
	if (!lc_pairing_descends(sb, mark))
		return LC_PAIRING_FORKED;
	return mark->nr_lost ? LC_PAIRING_LOST : LC_PAIRING_FITS;
}

/*
 * Has the volume written nothing to the hard disk since the last clean stop (T3)?
 * @mark_epoch: of the mark; with LC_NO_MARK only a clean superblock tells.
 */
static inline bool lc_pairing_unwritten(const struct lc_sb *sb, u64 mark_epoch)
{
	if (sb->flags & LC_SB_CLEAN)
		return true;
	return sb->mark_offset != LC_NO_MARK && sb->clean_epoch &&
	       sb->clean_epoch == mark_epoch;
}

#endif /* LC_PAIRING_H */
