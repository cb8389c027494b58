// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mark on a pair of disks: which copy counts (S1), what fits a superblock and what does not
 * (T2 to T5), the order of writes, and what a failed or torn one leaves (L9).
 */
#include <linux/string.h>

#include "pair.h"

/* --- what fits a superblock ------------------------------------------------ */

typedef void (*change_fn)(struct lc_sb *sb, struct lc_mark_info *mark);

/* lc_mark_check_pair() of a pair that is as pair_format() makes it but for a change. */
static int check_with(struct pair *pair, enum formatted_layout layout, change_fn change)
{
	pair_format(pair, layout);
	if (change)
		change(&pair->sb_media, &pair->mark_media);
	pair_put_both(pair);
	return pair_restart(pair);
}

static void other_generation(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->generation++;
}

static void other_cache(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->cache_uuid[15]++;
}

static void other_volume(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->volume_uuid[0]++;
}

static void attaching(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->state = LC_MARK_ATTACHING;
}

static void detaching(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->state = LC_MARK_DETACHING;
}

static void abandoned(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->state = LC_MARK_ABANDONED;
}

static void ahead(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->epoch = sb->epoch + 1;
}

static void one_behind(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->epoch = sb->epoch - 1;
	mark->owner = sb->mark_owner;
}

static void below_mark_epoch(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->epoch = sb->mark_epoch - 1;
}

static void below_clean_epoch(struct lc_sb *sb, struct lc_mark_info *mark)
{
	sb->mark_epoch = 0;
	sb->clean_epoch = 3;
	mark->epoch = 2;
}

static void below_clean(struct lc_sb *sb, struct lc_mark_info *mark)
{
	sb->flags |= LC_SB_CLEAN;
	mark->epoch = 2;
}

static void below_a_life(struct lc_sb *sb, struct lc_mark_info *mark)
{
	sb->mark_epoch = 0;
	sb->nr_lives = 1;
	sb->lives[0].epoch = 2;
	sb->lives[0].first_seq = 10;
	mark->epoch = 1;
}

static void of_no_life(struct lc_sb *sb, struct lc_mark_info *mark)
{
	sb->mark_epoch = 0;
	mark->epoch = 0;
	mark->owner = sb->mark_owner;
}

/* A copy of the SSD began a life of the same number. */
static void of_another_start(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->owner = PAIR_INTRUDER;
}

/* Of a lower number, behind a start that was cut before its mark. */
static void behind_of_another_start(struct lc_sb *sb, struct lc_mark_info *mark)
{
	one_behind(sb, mark);
	mark->owner = PAIR_INTRUDER;
}

static void behind_of_this_start(struct lc_sb *sb, struct lc_mark_info *mark)
{
	one_behind(sb, mark);
	mark->owner = sb->owner;
}

static void of_the_start_before(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->owner = sb->mark_owner;
}

/* Written last by a module, or repaired by a tool, that does not know owners. */
static void superblock_without_owner(struct lc_sb *sb, struct lc_mark_info *mark)
{
	sb->owner = 0;
	sb->mark_owner = 0;
}

static void mark_without_owner(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->owner = 0;
}

static void found_without_owner(struct lc_sb *sb, struct lc_mark_info *mark)
{
	one_behind(sb, mark);
	sb->mark_owner = 0;
	mark->owner = 0;
}

static void lost(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->nr_lost = 1;
	mark->lost[0] = (struct lc_lost){ .sector = 8, .nr_sectors = 8 };
}

static void head_at_its_place(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->head_offset = 0;
}

/* Identity first, then what is half done, then whose life is later. */
static void pairs_are_judged(struct kunit *test)
{
	static const struct {
		change_fn change;
		int ret;
	} cases[] = {
		{ NULL, 0 },
		{ other_generation, -EINVAL }, { other_cache, -EINVAL }, { other_volume, -EINVAL },
		{ attaching, -EINPROGRESS }, { detaching, -EINPROGRESS },
		{ abandoned, -ESTALE }, { ahead, -ESTALE },
		{ one_behind, 0 }, { of_no_life, 0 },
		{ below_mark_epoch, -ESTALE }, { below_clean_epoch, -ESTALE },
		{ below_clean, -ESTALE }, { below_a_life, -ESTALE },
		{ of_another_start, -ESTALE }, { behind_of_another_start, -ESTALE },
		{ behind_of_this_start, -ESTALE }, { of_the_start_before, -ESTALE },
		{ superblock_without_owner, 0 }, { mark_without_owner, 0 },
		{ found_without_owner, 0 },
		{ lost, -EUCLEAN },
	};
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, check_with(pair, LAYOUT_FRONT, cases[i].change),
				    cases[i].ret, "case %u", i);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "");
}

/* Superblock and mark say the same of where the first MiB is. */
static void head_is_checked(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_MOVED_HEAD);

	KUNIT_EXPECT_EQ(test, check_with(pair, LAYOUT_MOVED_HEAD, NULL), 0);
	KUNIT_EXPECT_EQ(test, check_with(pair, LAYOUT_MOVED_HEAD, head_at_its_place), -EUCLEAN);
	KUNIT_EXPECT_EQ(test, check_with(pair, LAYOUT_END, NULL), 0);
	KUNIT_EXPECT_EQ(test, lc_mark_epoch(pair->mark), 3);
}

/* Such a volume has the room, too. */
static void no_mark_no_io(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_NO_MARK);
	u64 owner = 1;
	u32 reads;

	KUNIT_EXPECT_EQ(test, pair_restart(pair), 0);
	reads = pair->nr_reads;
	KUNIT_EXPECT_EQ(test, reads, 2);	/* the superblock */
	KUNIT_EXPECT_EQ(test, lc_mark_epoch(pair->mark), ~0ULL);
	mutex_lock(lc_super_lock(pair->super));
	KUNIT_EXPECT_EQ(test, lc_mark_settle(pair->mark, &owner), 0);
	KUNIT_EXPECT_EQ(test, owner, 0);
	KUNIT_EXPECT_EQ(test, lc_mark_set_epoch(pair->mark, 4, 5), 0);
	KUNIT_EXPECT_EQ(test, lc_mark_check_unchanged(pair->mark, "now"), 0);
	mutex_unlock(lc_super_lock(pair->super));
	KUNIT_EXPECT_EQ(test, lc_mark_abandon(pair->mark, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, pair->nr_reads, reads);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "");
}

/* --- which copy counts ------------------------------------------------------ */

/* The higher mark_seq. */
static void later_copy_counts(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		pair_format(pair, LAYOUT_FRONT);
		pair->mark_media.epoch = 2;
		pair_put_both(pair);
		pair->mark_media.epoch = 3;
		pair->mark_media.mark_seq++;
		pair_put_mark(pair, copy);
		KUNIT_EXPECT_EQ(test, pair_restart(pair), 0);
		KUNIT_EXPECT_EQ_MSG(test, lc_mark_epoch(pair->mark), 3, "copy %u", copy);
	}
}

/* An older copy that says "abandoned" counts: the disk went on without its cache (S1). */
static void abandoned_in_either_copy_wins(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		pair_format(pair, LAYOUT_FRONT);
		pair->mark_media.mark_seq = 9;
		pair_put_both(pair);
		pair->mark_media.mark_seq = 5;
		pair->mark_media.state = LC_MARK_ABANDONED;
		pair_put_mark(pair, copy);
		KUNIT_EXPECT_EQ_MSG(test, pair_restart(pair), -ESTALE, "copy %u", copy);
	}
}

/* One copy is enough; of two failures the one that says more. */
static void damaged_copies(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		pair_put_both(pair);
		pair_spoil(pair_mark_at(pair, copy));
		KUNIT_EXPECT_EQ_MSG(test, pair_restart(pair), 0, "copy %u", copy);
		memset(pair_mark_at(pair, !copy), 0, LC_SLOT_BYTES);
		KUNIT_EXPECT_EQ_MSG(test, pair_restart(pair), -EBADMSG, "copy %u", copy);
	}
	memset(pair_mark_at(pair, 1), 0, LC_SLOT_BYTES);
	KUNIT_EXPECT_EQ(test, pair_restart(pair), -ENODATA);
	pair->disk[HDD].unreadable = true;
	KUNIT_EXPECT_EQ(test, pair_restart(pair), -EIO);
}

/* --- writing ----------------------------------------------------------------- */

static int set_epoch(struct pair *pair, u64 epoch)
{
	int ret;

	mutex_lock(lc_super_lock(pair->super));
	ret = lc_mark_set_epoch(pair->mark, epoch, PAIR_OWNER);
	mutex_unlock(lc_super_lock(pair->super));
	return ret;
}

/* Each with PREFLUSH and FUA, and the copy that is known to be whole last (L9). */
static void whole_copy_is_written_last(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_FRONT);

	KUNIT_ASSERT_EQ(test, pair_restart(pair), 0);
	KUNIT_EXPECT_EQ(test, set_epoch(pair, 4), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "m1 m0");
	KUNIT_EXPECT_EQ(test, pair_get_mark(pair, 0), 0);
	KUNIT_EXPECT_EQ(test, pair->mark_media.mark_seq, 2);
	KUNIT_EXPECT_EQ(test, pair->mark_media.epoch, 4);
	pair->mark_media.epoch = 3;
	pair_put_mark(pair, 1);
	pair_spoil(pair_mark_at(pair, 0));
	KUNIT_ASSERT_EQ(test, pair_restart(pair), 0);
	KUNIT_EXPECT_EQ(test, set_epoch(pair, 4), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "m0 m1");
}

/* Torn by the failure: the old epoch or the new one is there, and is not written over first. */
static void failed_write_spares_the_whole_copy(struct kunit *test)
{
	static const char * const next[] = { "m1 m0", "m0 m1" };
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	u32 n;

	for (n = 0; n < 2; n++) {
		KUNIT_EXPECT_EQ(test, check_with(pair, LAYOUT_FRONT, one_behind), 0);
		pair->failing = n;
		KUNIT_EXPECT_EQ(test, set_epoch(pair, 3), -EIO);
		KUNIT_EXPECT_EQ(test, pair->nr_writes, n + 1);
		pair_story(pair);
		KUNIT_EXPECT_EQ(test, pair_get_mark(pair, !n), -EBADMSG);
		KUNIT_EXPECT_EQ(test, pair_get_mark(pair, n), 0);
		KUNIT_EXPECT_EQ(test, pair->mark_media.epoch, n ? 3 : 2);
		KUNIT_EXPECT_EQ(test, set_epoch(pair, 3), 0);
		KUNIT_EXPECT_STREQ(test, pair_story(pair), next[n]);
	}
}

/* As failed_flush_beside_a_copy_counts() of the superblock, on the hard disk (DB3). */
static void failed_flush_beside_a_copy_counts(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_FRONT);

	KUNIT_EXPECT_EQ(test, check_with(pair, LAYOUT_FRONT, one_behind), 0);
	pair->flushing = 0;
	KUNIT_EXPECT_EQ(test, set_epoch(pair, 4), -EIO);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "m1");
	KUNIT_EXPECT_EQ(test, set_epoch(pair, 4), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "m1 m0");
}

/* Both copies as the one that counts, whatever a start that was cut has left (T5). */
static void settles(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	u64 owner;
	u32 copy;

	pair->mark_media.mark_seq++;
	pair_put_mark(pair, 0);
	pair->mark_media.mark_seq--;
	one_behind(&pair->sb_media, &pair->mark_media);
	pair_put_mark(pair, 1);
	KUNIT_ASSERT_EQ(test, pair_restart(pair), 0);
	mutex_lock(lc_super_lock(pair->super));
	KUNIT_EXPECT_EQ(test, lc_mark_settle(pair->mark, &owner), 0);
	mutex_unlock(lc_super_lock(pair->super));
	KUNIT_EXPECT_EQ(test, owner, PAIR_OWNER);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "m1 m0");
	for (copy = 0; copy < 2; copy++) {
		KUNIT_EXPECT_EQ(test, pair_get_mark(pair, copy), 0);
		KUNIT_EXPECT_EQ(test, pair->mark_media.epoch, 3);
		KUNIT_EXPECT_EQ(test, pair->mark_media.owner, PAIR_OWNER);
	}
}

/* Another machine that starts the volume at the same moment is seen, whichever write it meets. */
static void reads_back(struct kunit *test)
{
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	u32 n;

	for (n = 0; n < 2; n++) {
		KUNIT_EXPECT_EQ(test, check_with(pair, LAYOUT_FRONT, one_behind), 0);
		pair->intruding = n;
		/* It wrote copy 0 before this start did: that one is the last. */
		KUNIT_EXPECT_EQ(test, set_epoch(pair, 3), n ? -ESTALE : 0);
		KUNIT_EXPECT_STREQ(test, pair_story(pair), "m1 m0");
	}
}

/* With what is lost; once one copy says so, the cache is never replayed again (S1). */
static void abandons(struct kunit *test)
{
	static const struct lc_lost lost[] = { { 8, 8 }, { 64, 3 } };
	struct pair *pair = pair_create(test, LAYOUT_FRONT);

	KUNIT_ASSERT_EQ(test, check_with(pair, LAYOUT_FRONT, one_behind), 0);
	pair->failing = 1;
	KUNIT_EXPECT_EQ(test, lc_mark_abandon(pair->mark, NULL, LC_MARK_LOST_TOO_MANY), -EIO);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "m1 m0");
	KUNIT_EXPECT_EQ(test, pair_restart(pair), -ESTALE);
	KUNIT_EXPECT_EQ(test, lc_mark_abandon(pair->mark, lost, 2), 0);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "m0 m1");
	KUNIT_EXPECT_EQ(test, pair_get_mark(pair, 0), 0);
	KUNIT_EXPECT_EQ(test, pair->mark_media.state, LC_MARK_ABANDONED);
	KUNIT_EXPECT_EQ(test, pair->mark_media.epoch, 3);
	KUNIT_EXPECT_EQ(test, pair->mark_media.nr_lost, 2);
	KUNIT_EXPECT_MEMEQ(test, pair->mark_media.lost, lost, sizeof(lost));
	KUNIT_EXPECT_EQ(test, pair_restart(pair), -ESTALE);
}

/* --- unchanged? ---------------------------------------------------------------- */

static void later_write(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->mark_seq++;
}

static void earlier_write(struct lc_sb *sb, struct lc_mark_info *mark)
{
	mark->mark_seq--;
}

/* What another system may have done while this one was hibernated. */
static void used_since(struct kunit *test)
{
	static const struct {
		change_fn change;
		int ret;
	} cases[] = {
		{ NULL, 0 }, { earlier_write, 0 }, { later_write, -ESTALE }, { ahead, -ESTALE },
		{ one_behind, -ESTALE }, { abandoned, -ESTALE }, { other_generation, -ESTALE },
		{ other_cache, -ESTALE }, { of_another_start, -ESTALE },
	};
	struct pair *pair = pair_create(test, LAYOUT_FRONT);
	u32 i;

	KUNIT_ASSERT_EQ(test, pair_restart(pair), 0);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		pair_format(pair, LAYOUT_FRONT);
		if (cases[i].change)
			cases[i].change(&pair->sb_media, &pair->mark_media);
		pair_put_mark(pair, 0);
		pair_put_mark(pair, 1);
		KUNIT_EXPECT_EQ_MSG(test, lc_super_check_unchanged(pair->super, pair->mark),
				    cases[i].ret, "case %u", i);
	}
	KUNIT_EXPECT_EQ(test, lc_mark_epoch(pair->mark), 3);
	KUNIT_EXPECT_STREQ(test, pair_story(pair), "");
}

static struct kunit_case mark_cases[] = {
	KUNIT_CASE(pairs_are_judged),
	KUNIT_CASE(head_is_checked),
	KUNIT_CASE(no_mark_no_io),
	KUNIT_CASE(later_copy_counts),
	KUNIT_CASE(abandoned_in_either_copy_wins),
	KUNIT_CASE(damaged_copies),
	KUNIT_CASE(whole_copy_is_written_last),
	KUNIT_CASE(failed_write_spares_the_whole_copy),
	KUNIT_CASE(failed_flush_beside_a_copy_counts),
	KUNIT_CASE(settles),
	KUNIT_CASE(reads_back),
	KUNIT_CASE(abandons),
	KUNIT_CASE(used_since),
	{}
};

static struct kunit_suite mark_suite = {
	.name = "dm_lc_mark",
	.test_cases = mark_cases,
};

kunit_test_suite(mark_suite);
