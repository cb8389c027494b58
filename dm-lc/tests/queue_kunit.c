// SPDX-License-Identifier: GPL-2.0-only
/* Whose turn it is among writes that wait. */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../bio/queue.h"
#include "example.h"

#define NR	200u
#define BLOCKS	64u

struct line {
	struct lc_queue queue;
	struct lc_waiting ones[NR];
	bool waits[NR];
};

static void put(struct line *line, u32 i, enum lc_class class, u64 first, u64 count)
{
	struct lc_waiting *one = &line->ones[i];

	*one = (struct lc_waiting) { .first = first, .last = first + count - 1, .class = class };
	lc_queue_add(&line->queue, one);
	line->waits[i] = true;
}

/* Continue the one whose turn it is.  Return: its index. */
static u32 next(struct kunit *test, struct line *line)
{
	struct lc_waiting *one = lc_queue_first(&line->queue);

	KUNIT_ASSERT_NOT_NULL(test, one);
	lc_queue_remove(&line->queue, one);
	line->waits[one - line->ones] = false;
	return one - line->ones;
}

static struct line *line_create(struct kunit *test)
{
	struct line *line = kunit_kzalloc(test, sizeof(*line), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, line);
	lc_queue_init(&line->queue);
	return line;
}

/* Slots of each class in the next @slots, while each has some waiting, of @size blocks each. */
static void run(struct kunit *test, struct line *line, const u32 *size, u64 slots, u64 *got)
{
	u64 at = 0, done = 0;
	u32 i, class;

	memset(got, 0, LC_NR_CLASSES * sizeof(*got));
	for (class = 0; class < LC_NR_CLASSES; class++) {
		if (!line->waits[class] && size[class])
			put(line, class, class, at++ << 20, size[class]);
	}
	while (done < slots) {
		i = next(test, line);
		got[i] += size[i];
		done += size[i];
		put(line, i, i, at++ << 20, size[i]);
	}
}

static const u32 sizes[][LC_NR_CLASSES] = {
	{ 1, 1, 1 }, { 1, 256, 256 }, { 2, 1, 256 }, { 256, 256, 1 }, { 1, 0, 1 },
};

/* Each class gets its part; the one with the least is never long without (Q1, C7). */
static void shares(struct kunit *test)
{
	static const u32 weights[] = { 8, 4, 1 };
	u64 got[LC_NR_CLASSES], slots = 130000, all = 0;
	u32 i, class;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct line *line = line_create(test);

		run(test, line, sizes[i], slots, got);
		for (all = 0, class = 0; class < LC_NR_CLASSES; class++)
			all += sizes[i][class] ? weights[class] : 0;
		for (class = 0; class < LC_NR_CLASSES; class++) {
			u64 want = sizes[i][class] ? slots * weights[class] / all : 0;

			KUNIT_EXPECT_GE(test, got[class] + 4096, want);
			KUNIT_EXPECT_LE(test, got[class], want + 4096);
		}
	}
}

/* However much came before, a commit is next, and several are (D12). */
static void commits_come_first(struct kunit *test)
{
	static const u32 flood[] = { 0, 256, 256 };
	struct line *line = line_create(test);
	u64 got[LC_NR_CLASSES];
	u32 i;

	run(test, line, flood, 100000, got);
	for (i = 10; i < NR; i++)
		put(line, i, LC_CLASS_COMMIT, i, 1);
	for (i = 10; i < NR; i++)
		KUNIT_EXPECT_EQ(test, next(test, line), i);
}

/* That they were first for a while is no credit: in the long run they get their part (Q1). */
static void lead_is_no_credit(struct kunit *test)
{
	struct line *line = line_create(test);
	u64 commits = 0, others = 0, at = 0;
	u32 i;

	put(line, 1, LC_CLASS_BACKGROUND, at++, 1);
	while (others < 1000) {
		/* One at a time, so that the class has nothing to do in between. */
		if (!line->waits[0])
			put(line, 0, LC_CLASS_COMMIT, at++, 1);
		i = next(test, line);
		if (i) {
			put(line, 1, LC_CLASS_BACKGROUND, at++, 1);
			others++;
		} else {
			commits++;
		}
		KUNIT_ASSERT_LE(test, commits, 8 * others + 512);
	}
}

/* What came first to a block goes first, whatever the class, and what wants it is told (Q2). */
static void order(struct kunit *test)
{
	struct line *line = line_create(test);
	u32 turn, i, j, left = 0;
	struct rnd_state rnd;

	lc_test_seed(test, &rnd);
	for (turn = 0; turn < 20000; turn++) {
		u64 first = prandom_u32_state(&rnd) % BLOCKS, count = 1;
		bool found = false;

		if (!(prandom_u32_state(&rnd) % 4))
			count += prandom_u32_state(&rnd) % 16;
		for (j = 0; j < NR; j++)
			found |= line->waits[j] && line->ones[j].first < first + count &&
				 first <= line->ones[j].last;
		KUNIT_ASSERT_EQ(test, lc_queue_overlaps(&line->queue, first, first + count - 1),
				found);
		for (i = 0; i < NR && line->waits[i]; i++)
			;
		if (i < NR && prandom_u32_state(&rnd) % 100 < (turn / 1000 % 2 ? 45 : 55)) {
			put(line, i, prandom_u32_state(&rnd) % LC_NR_CLASSES, first, count);
			left++;
			continue;
		}
		if (!left)
			continue;
		i = next(test, line);
		left--;
		for (j = 0; j < NR; j++) {
			struct lc_waiting *one = &line->ones[i], *other = &line->ones[j];

			if (line->waits[j] && other->number < one->number)
				KUNIT_ASSERT_FALSE(test, other->first <= one->last &&
						   one->first <= other->last);
		}
	}
	KUNIT_EXPECT_EQ(test, line->queue.nr, left);
	while (left--)
		next(test, line);
	KUNIT_EXPECT_NULL(test, lc_queue_first(&line->queue));
	for (i = 0; i < LC_NR_CLASSES; i++)
		KUNIT_EXPECT_EQ(test, line->queue.slots[i], 0);
}

static struct kunit_case queue_cases[] = {
	KUNIT_CASE(shares),
	KUNIT_CASE(commits_come_first),
	KUNIT_CASE(lead_is_no_credit),
	KUNIT_CASE(order),
	{}
};

static struct kunit_suite queue_suite = {
	.name = "dm_lc_queue",
	.test_cases = queue_cases,
};

kunit_test_suite(queue_suite);
