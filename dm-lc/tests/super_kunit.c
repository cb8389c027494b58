// SPDX-License-Identifier: GPL-2.0-only
/*
 * The superblock on a pair of disks: which copy counts, the order of writes, and what a failed or
 * torn one leaves (L1, L9, L10, F2, T1, T5).
 */
#include <linux/string.h>

#include "../store/fingerprint.h"
#include "pair.h"

static struct pair *started(struct kunit *test, enum formatted_layout layout)
{
	struct pair *pair = pair_create(test, layout);

	KUNIT_ASSERT_EQ(test, pair_restart(pair), 0);
	return pair;
}

/* --- which copy counts ---------------------------------------------------- */

/* The higher sb_seq, wherever it is. */
static void later_copy_counts(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	const char *why;
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		pair->sb_media.sb_seq++;
		pair->sb_media.tail_seq = 31 + copy;
		pair_put_sb(pair, copy);
		KUNIT_EXPECT_EQ(test, pair_load(pair, &why), 0);
		KUNIT_EXPECT_EQ(test, pair->sb.sb_seq, 8 + copy);
		KUNIT_EXPECT_EQ(test, pair->sb.tail_seq, 31 + copy);
	}
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "");
}

/* The one that can be read, also if the other one was later. */
static void one_good_copy_is_enough(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	const char *why;
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		pair->sb_media.sb_seq++;
		pair_put_sb(pair, copy);
		pair_spoil(pair_sb_at(pair, copy));
		KUNIT_EXPECT_EQ(test, pair_load(pair, &why), 0);
		KUNIT_EXPECT_EQ(test, pair->sb.sb_seq, 7 + copy);
		pair_put_sb(pair, copy);
	}
}

/* Of two failures the one that says more: damage rather than absence. */
static void no_good_copy(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	const char *why = NULL;
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		pair_put_both(pair);
		memset(pair_sb_at(pair, copy), 0, LC_SLOT_BYTES);
		pair_spoil(pair_sb_at(pair, !copy));
		KUNIT_EXPECT_EQ(test, pair_load(pair, &why), -EBADMSG);
	}
	memset(pair_sb_at(pair, 0), 0, LC_SLOT_BYTES);
	KUNIT_EXPECT_EQ(test, pair_load(pair, &why), -ENODATA);
	pair->disk[SSD].unreadable = true;
	KUNIT_EXPECT_EQ(test, pair_load(pair, &why), -EIO);
	KUNIT_EXPECT_NOT_NULL(test, why);
}

/* --- writing --------------------------------------------------------------- */

/* Each with PREFLUSH and FUA, and the copy that is known to be whole last (L9). */
static void whole_copy_is_written_last(struct kunit *test)
{
	struct pair *pair = started(test, LAYOUT_FRONT);

	KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 8, 33), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "s1 s0");
	KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 9, 34), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "s1 s0");
	pair_spoil(pair_sb_at(pair, 0));
	KUNIT_ASSERT_EQ(test, pair_restart(pair), 0);
	KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 10, 35), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "s0 s1");
	KUNIT_EXPECT_EQ(test, pair_get_sb(pair, 0), 0);
	KUNIT_EXPECT_EQ(test, pair->sb_media.tail_seq, 35);
	KUNIT_EXPECT_EQ(test, pair->sb_media.tail_segment, 10);
	KUNIT_EXPECT_EQ(test, pair->sb_media.sb_seq, 10);
}

/* The tail stays in memory, and the next write does not begin with the copy that is whole. */
static void failed_write_spares_the_whole_copy(struct kunit *test)
{
	static const char * const stories[] = { "s1", "s1 s0" };
	static const char * const next[] = { "s1 s0", "s0 s1" };
	u32 n;

	for (n = 0; n < 2; n++) {
		struct pair *pair = started(test, LAYOUT_FRONT);

		pair->failing = n;
		KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 8, 33), -EIO);
		KUNIT_EXPECT_STREQ(test, pair_story(pair), stories[n]);
		KUNIT_EXPECT_EQ(test, pair->sb.tail_seq, 30);
		KUNIT_EXPECT_EQ(test, pair->sb.tail_segment, 7);
		KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 8, 33), 0);
		KUNIT_EXPECT_STREQ(test, pair_story(pair), next[n]);
	}
}

/* A power cut tears the write that it meets: the old tail or the new one is there (L9). */
static void torn_write_leaves_a_tail(struct kunit *test)
{
	u32 n;

	for (n = 0; n < 2; n++) {
		struct pair *pair = started(test, LAYOUT_FRONT);

		pair->failing = n;
		lc_super_set_tail(pair->super, 8, 33);
		KUNIT_EXPECT_EQ(test, pair_restart(pair), 0);
		KUNIT_EXPECT_EQ(test, pair->sb.tail_seq, n ? 33 : 30);
		KUNIT_EXPECT_EQ(test, pair->sb.tail_segment, n ? 8 : 7);
	}
}

/* By the task that ends the write, so before the write returns (F2); of the third copy, too. */
static void failed_flush_is_told_by_its_end(struct kunit *test)
{
	struct pair *pair = started(test, LAYOUT_FRONT);

	KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 8, 33), 0);
	KUNIT_EXPECT_EQ(test, pair->told, 0);
	pair_story(pair);
	pair->failing = 0;
	KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 9, 34), -EIO);
	KUNIT_EXPECT_EQ(test, pair->told, 1);
	KUNIT_EXPECT_NOT_NULL(test, pair->teller);
	KUNIT_EXPECT_PTR_NE(test, pair->teller, current);
	pair_story(pair);
	pair->failing = 4;
	KUNIT_EXPECT_EQ(test, lc_super_begin_epoch(pair->super, pair->mark, 1, 40, 10), 0);
	KUNIT_EXPECT_EQ(test, pair->told, 2);
	KUNIT_EXPECT_PTR_NE(test, pair->teller, current);
}

/*
 * Without FUA, in the SSD or below it, the block layer flushes a copy after it was written.  If a
 * FLUSH of somebody else fails between the two, the copy may be gone.  It is written again, before
 * the other one (F2).
 */
static void failed_flush_beside_a_copy_counts(struct kunit *test)
{
	struct pair *pair = started(test, LAYOUT_FRONT);

	pair->flushing = 0;
	KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 9, 34), -EIO);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "s1");
	KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 9, 34), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "s1 s0");
}

/* --- lives ----------------------------------------------------------------- */

/*
 * The mark as it is, superblock, mark; the copies of the mark are those of the new life after that
 * (T1), and superblock and mark have its owner (T5).
 */
static void superblock_before_mark(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_MOVED_HEAD);

	pair->sb_media.flags |= LC_SB_CLEAN;
	pair_put_both(pair);
	KUNIT_ASSERT_EQ(test, pair_restart(pair), 0);
	KUNIT_EXPECT_EQ(test, lc_super_begin_epoch(pair->super, pair->mark, 1, 40, 10), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "m1 m0 s1 s0 s2 m1 m0");
	KUNIT_EXPECT_EQ(test, pair_get_sb(pair, 2), 0);
	KUNIT_EXPECT_EQ(test, pair_get_sb(pair, 0), 0);
	KUNIT_EXPECT_EQ(test, pair->sb_media.epoch, 4);
	KUNIT_EXPECT_EQ(test, pair->sb_media.epoch_first_seq, 40);
	KUNIT_EXPECT_EQ(test, pair->sb_media.flags, LC_SB_IN_PLACE);
	KUNIT_EXPECT_EQ(test, pair->sb_media.mark_epoch, 2);
	KUNIT_EXPECT_EQ(test, pair_get_mark(pair, 1), 0);
	KUNIT_EXPECT_EQ(test, pair->mark_media.epoch, 4);
	KUNIT_EXPECT_EQ(test, pair->sb_media.mark_owner, PAIR_OWNER);
	KUNIT_EXPECT_NE(test, pair->sb_media.owner, PAIR_OWNER);
	KUNIT_EXPECT_NE(test, pair->sb_media.owner, 0);
	KUNIT_EXPECT_EQ(test, pair->mark_media.owner, pair->sb_media.owner);
	KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 8, 33), 0);
	KUNIT_EXPECT_EQ(test, pair->sb.mark_epoch, 4);
}

#define START_WRITES	7
#define START_THIRD	4		/* the third superblock, which need not be written */

/* A start of which the write @n is cut.  Return: what the next one says to the pair. */
static int cut_start(struct pair *pair, u32 n)
{
	int ret;

	pair_story(pair);
	pair->failing = n;
	ret = lc_super_begin_epoch(pair->super, pair->mark, 1, 40, 10);
	KUNIT_EXPECT_EQ(pair->test, ret, n == START_THIRD ? 0 : -EIO);
	KUNIT_EXPECT_EQ_MSG(pair->test, pair->nr_writes,
			    n == START_THIRD ? START_WRITES : n + 1, "write %u", n);
	return pair_restart(pair);
}

/* A power cut anywhere in a start leaves a pair that starts (L1, L9, L10). */
static void cut_start_can_be_repeated(struct kunit *test)
{
	u32 n;

	for (n = 0; n < START_WRITES; n++) {
		struct pair *pair = started(test, LAYOUT_FRONT);

		KUNIT_EXPECT_EQ_MSG(test, cut_start(pair, n), 0, "write %u", n);
		KUNIT_EXPECT_LE(test, lc_mark_epoch(pair->mark), pair->sb.epoch);
	}
}

/*
 * Nor do two cuts in a row, also if a copy of the mark rots afterwards: whichever is left has an
 * owner that the superblock knows (T5).  A copy that the cut tore is not one of two that are left.
 */
static void cut_starts_and_rot(struct kunit *test)
{
	struct pair *pair = started(test, LAYOUT_FRONT);
	u32 i, n, k, copy;

	for (i = 0; i < START_WRITES * START_WRITES * 2; i++) {
		n = i / 2 / START_WRITES;
		k = i / 2 % START_WRITES;
		copy = i % 2;
		pair_format(pair, LAYOUT_FRONT);
		pair_put_both(pair);
		KUNIT_ASSERT_EQ(test, pair_restart(pair), 0);
		cut_start(pair, n);
		cut_start(pair, k);
		if (pair_get_mark(pair, !copy))
			continue;
		pair_spoil(pair_mark_at(pair, copy));
		KUNIT_EXPECT_EQ_MSG(test, pair_restart(pair), 0, "writes %u and %u, copy %u", n, k,
				    copy);
	}
}

static void other_owner(struct lc_sb *sb)
{
	sb->owner = PAIR_INTRUDER;
}

/* Another machine has started the volume while this one replayed the log: nothing is written. */
static void used_during_the_start(struct kunit *test)
{
	struct pair *pair = started(test, LAYOUT_FRONT);
	u32 i;

	for (i = 0; i < 4; i++) {
		pair_format(pair, LAYOUT_FRONT);
		pair_put_both(pair);
		KUNIT_ASSERT_EQ(test, pair_restart(pair), 0);
		pair->mark_media.mark_seq += i == 0;
		if (i == 1)
			pair->mark_media.owner = PAIR_INTRUDER;
		pair->sb_media.sb_seq += i == 2;
		if (i == 3)
			other_owner(&pair->sb_media);
		pair_put_both(pair);
		KUNIT_EXPECT_EQ_MSG(test, lc_super_begin_epoch(pair->super, pair->mark, 1, 40, 10),
				    -ESTALE, "case %u", i);
		KUNIT_EXPECT_STREQ(test, pair_story(pair), "");
	}
}

/* Numbers that decoders would refuse are not written at all. */
static void too_old_for_a_life(struct kunit *test)
{
	struct pair *pair = started(test, LAYOUT_FRONT);

	KUNIT_EXPECT_EQ(test, lc_super_begin_epoch(pair->super, pair->mark, 1,
						   LC_NUMBERS_END / 2, 10), -ERANGE);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "");
	KUNIT_EXPECT_EQ(test, pair->sb.epoch, 3);
}

/* A log of several lanes is called so until nothing of it is left. */
static void lanes_are_remembered(struct kunit *test)
{
	struct pair *pair = started(test, LAYOUT_NO_MARK);

	KUNIT_EXPECT_EQ(test, lc_super_begin_epoch(pair->super, pair->mark, 12, 40, 10), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "s1 s0 s2");
	KUNIT_EXPECT_TRUE(test, pair->sb.incompat & LC_INCOMPAT_LANES);
	KUNIT_EXPECT_EQ(test, pair->sb.lane_limit, 24);
	KUNIT_EXPECT_EQ(test, lc_super_begin_epoch(pair->super, pair->mark, 1, 50, 11), 0);
	KUNIT_EXPECT_TRUE(test, pair->sb.incompat & LC_INCOMPAT_LANES);
	KUNIT_EXPECT_EQ(test, lc_super_set_tail(pair->super, 12, 60), 0);
	KUNIT_EXPECT_EQ(test, lc_super_begin_epoch(pair->super, pair->mark, 1, 60, 12), 0);
	KUNIT_EXPECT_FALSE(test, pair->sb.incompat & LC_INCOMPAT_LANES);
	KUNIT_EXPECT_EQ(test, pair->sb.lane_limit, 24);
	KUNIT_EXPECT_EQ(test, pair->sb.mark_epoch, 0);
}

/* Only the tail of an empty log, and only in memory. */
static void empty_log_begins_at_the_next_segment(struct kunit *test)
{
	struct pair *pair = started(test, LAYOUT_FRONT);

	lc_super_settle_tail(pair->super, 31, 12);
	KUNIT_EXPECT_EQ(test, pair->sb.tail_segment, 7);
	lc_super_settle_tail(pair->super, 30, 12);
	KUNIT_EXPECT_EQ(test, pair->sb.tail_segment, 12);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "");
}

/* Clean on the SSD with all that comes with it, or not clean in memory either. */
static void clean_end(struct kunit *test)
{
	struct pair *pair = started(test, LAYOUT_FRONT);
	struct lc_fingerprint print = { .sum = 0x1234, .samples = { 5, 6 } };

	pair->failing = 1;
	KUNIT_EXPECT_EQ(test, lc_super_end_clean(pair->super, 40, 9, 3, &print, true), -EIO);
	KUNIT_EXPECT_FALSE(test, pair->sb.flags & LC_SB_CLEAN);
	pair_story(pair);
	KUNIT_EXPECT_EQ(test, lc_super_end_clean(pair->super, 40, 9, 3, &print, true), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "s0 s1 s2");
	KUNIT_EXPECT_EQ(test, pair_restart(pair), 0);
	KUNIT_EXPECT_TRUE(test, pair->sb.flags & LC_SB_CLEAN);
	KUNIT_EXPECT_EQ(test, pair->sb.next_seq, 40);
	KUNIT_EXPECT_EQ(test, pair->sb.head_segment, 9);
	KUNIT_EXPECT_EQ(test, pair->sb.ckpt_entries, 3);
	KUNIT_EXPECT_EQ(test, pair->sb.fingerprint, 0x1234);
	KUNIT_EXPECT_EQ(test, pair->sb.samples[1], 6);
	KUNIT_EXPECT_EQ(test, pair->sb.clean_epoch, 3);
	KUNIT_EXPECT_EQ(test, pair->sb.mark_epoch, 3);
}

/* A checkpoint with promoted blocks is called so until the next life begins. */
static void promoted_is_remembered(struct kunit *test)
{
	struct lc_fingerprint print = {};
	u32 promoted;

	for (promoted = 0; promoted < 2; promoted++) {
		struct pair *pair = started(test, LAYOUT_FRONT);

		pair->failing = 1;
		KUNIT_EXPECT_EQ(test, lc_super_end_clean(pair->super, 40, 9, 3, &print, promoted),
				-EIO);
		pair_story(pair);
		KUNIT_EXPECT_EQ(test, lc_super_end_clean(pair->super, 40, 9, 3, &print, promoted),
				0);
		KUNIT_EXPECT_EQ(test, pair_restart(pair), 0);
		KUNIT_EXPECT_EQ(test, pair->sb.incompat & LC_INCOMPAT_PROMOTED,
				promoted ? LC_INCOMPAT_PROMOTED : 0);
		KUNIT_EXPECT_TRUE(test, pair->sb.incompat & LC_INCOMPAT_SHORT_SUMS);
		KUNIT_EXPECT_EQ(test, lc_super_begin_epoch(pair->super, pair->mark, 1, 40, 10), 0);
		KUNIT_EXPECT_EQ(test, pair_restart(pair), 0);
		KUNIT_EXPECT_EQ(test, pair->sb.epoch, 4);
		KUNIT_EXPECT_FALSE(test, pair->sb.incompat & LC_INCOMPAT_PROMOTED);
		KUNIT_EXPECT_TRUE(test, pair->sb.incompat & LC_INCOMPAT_SHORT_SUMS);
	}
}

/* --- unchanged? -------------------------------------------------------------- */

static void other_generation(struct lc_sb *sb)
{
	sb->generation++;
}

static void other_cache(struct lc_sb *sb)
{
	sb->cache_uuid[15]++;
}

static void other_life(struct lc_sb *sb)
{
	sb->epoch++;
}

static void later_write(struct lc_sb *sb)
{
	sb->sb_seq++;
}

static void earlier_write(struct lc_sb *sb)
{
	sb->sb_seq -= 2;
}

/* What another system may have done while this one was hibernated. */
static void used_since(struct kunit *test)
{
	static const struct {
		void (*change)(struct lc_sb *sb);
		int ret;
	} cases[] = {
		{ other_generation, -ESTALE }, { other_cache, -ESTALE }, { other_life, -ESTALE },
		{ later_write, -ESTALE }, { earlier_write, 0 }, { other_owner, -ESTALE },
	};
	struct pair *pair = started(test, LAYOUT_FRONT);
	struct lc_sb *sb = &pair->sb_media;
	u32 i;

	KUNIT_EXPECT_EQ(test, lc_super_check_unchanged(pair->super, pair->mark), 0);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		*sb = pair->sb;
		cases[i].change(sb);
		pair_put_sb(pair, 0);
		pair_put_sb(pair, 1);
		KUNIT_EXPECT_EQ_MSG(test, lc_super_check_unchanged(pair->super, pair->mark),
				    cases[i].ret, "case %u", i);
	}
	pair->disk[SSD].unreadable = true;
	KUNIT_EXPECT_EQ(test, lc_super_check_unchanged(pair->super, pair->mark), -EIO);
	pair->health.mode = LC_MODE_DEGRADED;
	KUNIT_EXPECT_EQ(test, lc_super_check_unchanged(pair->super, pair->mark), 0);
	pair->disk[HDD].unreadable = true;
	KUNIT_EXPECT_EQ(test, lc_super_check_unchanged(pair->super, pair->mark), -EIO);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "");
}

/* Another machine that starts the same two devices is seen, whichever of them it wrote last. */
static void started_by_two(struct kunit *test)
{
	u32 shared;

	for (shared = 0; shared < 2; shared++) {
		struct pair *pair = started(test, LAYOUT_FRONT);

		pair->intruding = START_WRITES - 1;
		pair->shared = shared;
		KUNIT_EXPECT_EQ(test, lc_super_begin_epoch(pair->super, pair->mark, 1, 40, 10),
				-ESTALE);
		KUNIT_EXPECT_STREQ(test, pair_story(pair), "m1 m0 s1 s0 s2 m1 m0");
	}
}

static struct kunit_case super_cases[] = {
	KUNIT_CASE(later_copy_counts),
	KUNIT_CASE(one_good_copy_is_enough),
	KUNIT_CASE(no_good_copy),
	KUNIT_CASE(whole_copy_is_written_last),
	KUNIT_CASE(failed_write_spares_the_whole_copy),
	KUNIT_CASE(torn_write_leaves_a_tail),
	KUNIT_CASE(failed_flush_is_told_by_its_end),
	KUNIT_CASE(failed_flush_beside_a_copy_counts),
	KUNIT_CASE(superblock_before_mark),
	KUNIT_CASE(cut_start_can_be_repeated),
	KUNIT_CASE(cut_starts_and_rot),
	KUNIT_CASE(used_during_the_start),
	KUNIT_CASE(started_by_two),
	KUNIT_CASE(too_old_for_a_life),
	KUNIT_CASE(lanes_are_remembered),
	KUNIT_CASE(empty_log_begins_at_the_next_segment),
	KUNIT_CASE(clean_end),
	KUNIT_CASE(promoted_is_remembered),
	KUNIT_CASE(used_since),
	{}
};

static struct kunit_suite super_suite = {
	.name = "dm_lc_super",
	.test_cases = super_cases,
};

kunit_test_suite(super_suite);
