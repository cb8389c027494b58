// SPDX-License-Identifier: GPL-2.0-only
/*
 * The log: order of seqs, what one FLUSH is shared by, when durable_seq may rise
 * (G1 to G4 of log.h), FUA, and that a failure is never forgotten.
 */
#include <kunit/test.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#include "fake.h"

/* A FLUSH that only waits: seals nothing. */
static struct fake_io *flush_to(struct fake *fake, u64 seq)
{
	struct fake_io *fio = fake_io(fake);

	lc_log_flush_io(fake->c.log, &fio->io, seq);
	return fio;
}

/* --- order ------------------------------------------------------------------ */

static void headers(struct kunit *test)
{
	struct fake_options options = { .next_seq = 700, .segment = 2000 };
	struct fake *fake = fake_create(test, &options);
	struct lc_record_info info;
	struct bio *bio;
	u64 seq;

	for (seq = 700; seq < 706; seq++) {
		KUNIT_EXPECT_EQ(test, fake_record(fake, 2), seq);
		bio = fake_take(fake, seq);
		KUNIT_ASSERT_EQ(test, fake_decode(fake, bio, &info), 0);
		KUNIT_EXPECT_EQ(test, info.seq, seq);
		KUNIT_EXPECT_EQ(test, info.epoch, fake->c.sb.epoch);
		KUNIT_EXPECT_EQ(test, info.epoch_first_seq, 700);
		KUNIT_EXPECT_EQ(test, info.tail_seq, 700);
		KUNIT_EXPECT_EQ(test, info.durable_seq, seq == 705 ? 704 : 699);
		KUNIT_EXPECT_EQ(test, info.boundary, 0);
		KUNIT_EXPECT_EQ(test, info.lane, 0);
		fake_end(bio, BLK_STS_OK);
		if (seq == 704) {
			lc_log_want_durable(fake->c.log, 704);
			fake_finish(fake, 0, BLK_STS_OK);
		}
	}
}

/* Written in any order, durable only in that of the seqs. */
static void out_of_order(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *one, *three;

	fake_record(fake, 1);
	fake_record(fake, 1);
	fake_record(fake, 1);
	one = flush_to(fake, 1);
	three = flush_to(fake, 3);
	fake_finish(fake, 3, BLK_STS_OK);
	fake_finish(fake, 2, BLK_STS_OK);
	fake_expect_flushes(fake, 0);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_expect_flushes(fake, 1);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 3);
	KUNIT_EXPECT_EQ(test, one->ended, 0);
	KUNIT_EXPECT_EQ(test, three->ended, 0);
}

/* A writer still sits in record 1: 2 and 3 cannot be durable before it (F1). */
static void held_back(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {};
	struct fake_io *fio;

	fake_feed(fake);
	KUNIT_ASSERT_EQ(test, fake_reserve(fake, 0, 1, &cur), 0);
	fake_put_block(fake, &cur, 5, 5);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[0], false, false), 1);
	KUNIT_EXPECT_EQ(test, fake_record(fake, 1), 2);
	fio = fake_flush(fake);
	fake_finish(fake, 2, BLK_STS_OK);
	fake_expect_flushes(fake, 0);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	lc_cursor_release(&cur);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
}

/* --- flush -------------------------------------------------------------------- */

/* Nothing to make durable: no command, no waiting. */
static void flush_nothing(struct kunit *test)
{
	struct fake_options options = { .next_seq = 10 };
	struct fake *fake = fake_create(test, &options);

	KUNIT_EXPECT_EQ(test, fake_flush(fake)->ended, 0);
	lc_log_want_durable(fake->c.log, 9);
	lc_log_want_buffers(fake->c.log);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(fake->c.log, 9), 0);
	KUNIT_EXPECT_EQ(test, fake_flush(fake)->ended, 0);
	fake_expect_flushes(fake, 0);
}

/* Those who come while a FLUSH runs share the next one. */
static void batching(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *first, *rest[10];
	u32 i;

	fake_write(fake, 0, 1);
	first = fake_flush(fake);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_wait(fake, 1);
	for (i = 0; i < ARRAY_SIZE(rest); i++) {
		if (i % 2)
			fake_write(fake, 10 * i, 1);
		rest[i] = fake_flush(fake);
	}
	for (i = 2; i <= 6; i++)
		fake_finish(fake, i, BLK_STS_OK);
	fake_expect_flushes(fake, 1);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, first->ended, 0);
	/* The first of the rest came when nothing but record 1 was there. */
	KUNIT_EXPECT_EQ(test, rest[0]->ended, 0);
	for (i = 1; i < ARRAY_SIZE(rest); i++)
		KUNIT_EXPECT_EQ(test, rest[i]->ended, FAKE_PENDING);
	fake_expect_flushes(fake, 2);
	fake_finish(fake, 0, BLK_STS_OK);
	for (i = 1; i < ARRAY_SIZE(rest); i++)
		KUNIT_EXPECT_EQ(test, rest[i]->ended, 0);
	fake_expect_flushes(fake, 2);
}

/* G2: a FLUSH covers what was written when it was sent, not when it ends. */
static void flush_covers(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *fio;

	fake_record(fake, 1);
	fake_finish(fake, 1, BLK_STS_OK);
	lc_log_want_durable(fake->c.log, 1);
	fake_wait(fake, 1);
	fake_record(fake, 1);
	fake_finish(fake, 2, BLK_STS_OK);
	fio = flush_to(fake, 2);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
}

/* Waiters that come in another order than their seqs: each is let go by its own seq. */
static void late_waiters(struct kunit *test)
{
	static const u64 order[] = { 2, 3, 1, 3, 2, 1 };
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *fios[ARRAY_SIZE(order)];
	u32 i, seq;

	for (i = 0; i < 3; i++)
		fake_record(fake, 1);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		fios[i] = flush_to(fake, order[i]);
	for (seq = 1; seq <= 3; seq++) {
		fake_finish(fake, seq, BLK_STS_OK);
		fake_wait(fake, 4 - seq);	/* the other records, and a FLUSH */
		fake_finish(fake, 0, BLK_STS_OK);
		for (i = 0; i < ARRAY_SIZE(order); i++)
			KUNIT_EXPECT_EQ(test, fios[i]->ended, order[i] <= seq ? 0 : FAKE_PENDING);
	}
	fake_expect_flushes(fake, 3);
}

/* Records alone cause no FLUSH; a wish for one does, once. */
static void wishes(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);

	fake_record(fake, 1);
	fake_record(fake, 1);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_expect_flushes(fake, 0);
	lc_log_want_durable(fake->c.log, 2);
	lc_log_want_durable(fake->c.log, 1);
	fake_expect_flushes(fake, 0);	/* 2 is not written yet */
	fake_finish(fake, 2, BLK_STS_OK);
	fake_expect_flushes(fake, 1);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
}

/* A wish for buffers asks for what is written, one request at a time, and forgets none (G6). */
static void want_buffers(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);

	fake_record(fake, 1);
	lc_log_want_buffers(fake->c.log);
	fake_record(fake, 1);
	lc_log_want_buffers(fake->c.log);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_expect_flushes(fake, 1);
	fake_finish(fake, 2, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
	fake_expect_flushes(fake, 2);
	/* This one comes while the FLUSH runs, which does not cover it. */
	fake_record(fake, 1);
	lc_log_want_buffers(fake->c.log);
	fake_record(fake, 1);		/* nobody wished for it */
	fake_finish(fake, 3, BLK_STS_OK);
	fake_expect_flushes(fake, 2);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
	fake_expect_flushes(fake, 3);
	fake_finish(fake, 4, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 3);
	fake_expect_flushes(fake, 3);
	/* Not for what may still be written: the FLUSH waits for nothing. */
	fake_record(fake, 1);
	lc_log_want_buffers(fake->c.log);
	fake_expect_flushes(fake, 4);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 4);
	fake_expect_flushes(fake, 4);
	fake_finish(fake, 5, BLK_STS_OK);
	fake_expect_flushes(fake, 5);
}

/* A buffer that comes back is what was wished for; the refill worker looks again. */
static void want_buffers_end(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	int refills;

	fake_record(fake, 1);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	lc_log_want_buffers(fake->c.log);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_expect_flushes(fake, 1);
	fake_record(fake, 1);
	fake_finish(fake, 2, BLK_STS_OK);
	lc_log_want_buffers(fake->c.log);
	flush_workqueue(fake->c.env.wq);
	refills = atomic_read(&fake->refills);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
	fake_expect_flushes(fake, 1);
	KUNIT_EXPECT_GT(test, atomic_read(&fake->refills), refills);
	lc_log_want_buffers(fake->c.log);
	fake_expect_flushes(fake, 2);
}

struct sleeper {
	struct fake *fake;
	u64 seq;
	int ret;
};

static int sleeper_thread(void *data)
{
	struct sleeper *s = data;

	s->ret = lc_log_wait_durable(s->fake->c.log, s->seq);
	while (!kthread_should_stop())
		schedule_timeout_uninterruptible(1);
	return 0;
}

static void sleepers(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct sleeper s[2] = { { fake, 1, 1 }, { fake, 2, 1 } };
	struct task_struct *tasks[2];
	u32 i;

	fake_record(fake, 1);
	fake_record(fake, 1);
	for (i = 0; i < 2; i++) {
		tasks[i] = kthread_run(sleeper_thread, &s[i], "lc-test");
		KUNIT_ASSERT_FALSE(test, IS_ERR(tasks[i]));
		/* One that is stopped before it has begun never calls what is tested. */
		while (READ_ONCE(tasks[i]->__state) != TASK_UNINTERRUPTIBLE)
			schedule_timeout_uninterruptible(1);
	}
	fake_finish(fake, 1, BLK_STS_OK);
	fake_settle(fake);
	KUNIT_EXPECT_EQ(test, READ_ONCE(s[1].ret), 1);
	/* The second sleeps on over a failure, and is woken by the end of the log. */
	fake_finish(fake, 2, BLK_STS_IOERR);
	fake_settle(fake);
	KUNIT_EXPECT_EQ(test, READ_ONCE(s[1].ret), 1);
	lc_log_stop(fake->c.log);
	fake_pass(fake);
	for (i = 0; i < 2; i++)
		kthread_stop(tasks[i]);
	KUNIT_EXPECT_EQ(test, s[1].ret, -EIO);
}

/* --- FUA ------------------------------------------------------------------------ */

static bool is_fua(struct bio *bio)
{
	return bio->bi_opf & REQ_FUA;
}

static void fua_alone(struct kunit *test)
{
	struct fake_options options = { .fua = true };
	struct fake *fake = fake_create(test, &options);
	struct fake_io *fio;
	struct bio *bio;
	u64 seq;

	for (seq = 1; seq <= 3; seq++) {
		fake_write(fake, 10 * seq, 1);
		fio = fake_flush(fake);
		bio = fake_take(fake, seq);
		KUNIT_EXPECT_TRUE(test, is_fua(bio));
		KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
		fake_end(bio, BLK_STS_OK);
		KUNIT_EXPECT_EQ(test, fio->ended, 0);
		KUNIT_EXPECT_EQ(test, fake_durable(fake), seq);
	}
	fake_expect_flushes(fake, 0);
}

/* F4: no FUA while an earlier record is not durable; then one FLUSH for both. */
static void fua_not_alone(struct kunit *test)
{
	struct fake_options options = { .fua = true };
	struct fake *fake = fake_create(test, &options);
	struct fake_io *fio;
	struct bio *first, *second;

	fake_write(fake, 0, 1);
	lc_lane_seal(fake->c.lanes->lane[0], false, false);
	first = fake_take(fake, 1);
	fake_write(fake, 10, 1);
	fio = fake_flush(fake);
	second = fake_take(fake, 2);
	KUNIT_EXPECT_FALSE(test, is_fua(second));
	fake_end(second, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	fake_end(first, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), is_fua(first) ? 1 : 0);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
}

/* F4: what was written before, and not flushed, is not made durable by it. */
static void fua_behind(struct kunit *test)
{
	struct fake_options options = { .fua = true };
	struct fake *fake = fake_create(test, &options);
	struct fake_io *fio;

	fake_write(fake, 0, 16);	/* 15 fill the first record, which closes by itself */
	fake_finish(fake, 1, BLK_STS_OK);
	fio = fake_flush(fake);
	fake_finish(fake, 2, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
}

/* Sent by the task that waits. */
static void fua_direct(struct kunit *test)
{
	struct fake_options options = { .fua = true };
	struct fake *fake = fake_create(test, &options);
	struct fake_io *fio;
	struct bio *bio;

	fake_write(fake, 0, 1);
	fio = fake_flush_direct(fake);
	bio = fake_take(fake, 1);
	KUNIT_EXPECT_PTR_EQ(test, READ_ONCE(fake->sender), current);
	KUNIT_EXPECT_TRUE(test, is_fua(bio));
	fake_end(bio, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
	fake_expect_flushes(fake, 0);
}

/* A record that nobody waits for is an ordinary write. */
static void fua_unasked(struct kunit *test)
{
	struct fake_options options = { .fua = true };
	struct fake *fake = fake_create(test, &options);
	struct bio *bio;

	fake_write(fake, 0, 16);	/* 15 fill the first record, which closes by itself */
	bio = fake_take(fake, 1);
	KUNIT_EXPECT_FALSE(test, is_fua(bio));
	fake_end(bio, BLK_STS_OK);
	fake_expect_flushes(fake, 0);
}

/* F4: more than one command, or perhaps more. */
static void fua_large(struct kunit *test)
{
	struct fake_options options = { .fua = true };
	struct fake *fake = fake_create(test, &options);
	struct fake_io *fio;
	struct bio *bio;

	fake_write(fake, 0, 8);		/* with its header 9 pieces, the disk takes 8 */
	fio = fake_flush(fake);
	bio = fake_take(fake, 1);
	KUNIT_EXPECT_FALSE(test, is_fua(bio));
	fake_end(bio, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	fake_write(fake, 100, 6);
	fio = fake_flush(fake);
	bio = fake_take(fake, 2);
	KUNIT_EXPECT_TRUE(test, is_fua(bio));
	fake_end(bio, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	fake_expect_flushes(fake, 1);
}

/* A disk without FUA gets a FLUSH instead. */
static void fua_unknown(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *fio;
	struct bio *bio;

	fake_write(fake, 0, 1);
	fio = fake_flush(fake);
	bio = fake_take(fake, 1);
	KUNIT_EXPECT_FALSE(test, is_fua(bio));
	fake_end(bio, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
}

/* A FUA record that ends after the next one was written. */
static void fua_overtaken(struct kunit *test)
{
	struct fake_options options = { .fua = true };
	struct fake *fake = fake_create(test, &options);
	struct fake_io *one, *two;
	struct bio *bio;

	fake_write(fake, 0, 1);
	one = fake_flush(fake);
	bio = fake_take(fake, 1);
	KUNIT_ASSERT_TRUE(test, is_fua(bio));
	fake_write(fake, 10, 1);
	two = fake_flush(fake);
	fake_finish(fake, 2, BLK_STS_OK);
	fake_expect_flushes(fake, 0);
	fake_end(bio, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
	KUNIT_EXPECT_EQ(test, one->ended, 0);
	KUNIT_EXPECT_EQ(test, two->ended, FAKE_PENDING);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, two->ended, 0);
}

/* --- failure ---------------------------------------------------------------------- */

/* G4: from now on nothing becomes durable and everybody is told so. */
static void expect_failed(struct fake *fake, u64 durable_seq)
{
	u64 last = lc_log_last_seq(fake->c.log);

	KUNIT_EXPECT_EQ(fake->test, lc_mode(&fake->c.health), LC_MODE_FAIL);
	KUNIT_EXPECT_EQ(fake->test, fake_durable(fake), durable_seq);
	KUNIT_EXPECT_EQ(fake->test, flush_to(fake, last)->ended, -EIO);
	KUNIT_EXPECT_EQ(fake->test, flush_to(fake, 0)->ended, -EIO);
	KUNIT_EXPECT_EQ(fake->test, lc_log_wait_durable(fake->c.log, last + 1), -EIO);
	KUNIT_EXPECT_EQ(fake->test, lc_log_wait_durable(fake->c.log, durable_seq), 0);
}

/* L7, G4: a failed record holds back all above it until it has been written again. */
static void failed_record(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *fio[3];
	u32 i;

	for (i = 0; i < 3; i++) {
		fake_write(fake, 10 * i, 1);
		fio[i] = fake_flush(fake);
	}
	fake_finish(fake, 2, BLK_STS_IOERR);
	fake_finish(fake, 3, BLK_STS_OK);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio[0]->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
	fake_finish(fake, 2, BLK_STS_IOERR);
	fake_expect_flushes(fake, 1);
	KUNIT_EXPECT_EQ(test, fio[1]->ended, FAKE_PENDING);
	KUNIT_EXPECT_EQ(test, fio[2]->ended, FAKE_PENDING);
	fake_finish(fake, 2, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio[1]->ended, 0);
	KUNIT_EXPECT_EQ(test, fio[2]->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 3);
	KUNIT_EXPECT_EQ(test, lc_mode(&fake->c.health), LC_MODE_RW);
}

/*
 * F2: the drive dropped its cache, and the success of the next FLUSH means nothing for
 * what was in it; nor for a write that was on its way at that time.
 */
static void failed_flush(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *fio;

	fake_write(fake, 0, 1);
	fio = fake_flush(fake);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_wait(fake, 1);
	fake_record(fake, 1);
	fake_wait(fake, 2);
	fake_finish(fake, 0, BLK_STS_IOERR);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	fake_finish(fake, 2, BLK_STS_OK);
	/* Both come again, and no FLUSH before they are written. */
	fake_finish(fake, 2, BLK_STS_OK);
	fake_expect_flushes(fake, 1);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
}

/* S2: a glitch with nothing to be written again is over when the volume has come to rest. */
static void glitch_at_rest(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);

	lc_log_flush_failed(fake->c.log);
	KUNIT_EXPECT_TRUE(test, lc_log_in_trouble(fake->c.log));
	lc_log_quiesce(fake->c.log);
	KUNIT_EXPECT_FALSE(test, lc_log_in_trouble(fake->c.log));
}

/* The same, if it was not the log's own: a superblock's PREFLUSH. */
static void failed_foreign_flush(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *fio;

	fake_write(fake, 0, 1);
	fio = fake_flush(fake);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_wait(fake, 1);
	lc_log_flush_failed(fake->c.log);
	/* This one began before: it says nothing about what was dropped. */
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
}

static void failed_fua(struct kunit *test)
{
	struct fake_options options = { .fua = true };
	struct fake *fake = fake_create(test, &options);
	struct fake_io *fio;

	fake_write(fake, 0, 1);
	fio = fake_flush(fake);
	fake_finish(fake, 1, BLK_STS_MEDIUM);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	fake_finish(fake, 1, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
}

/* G5: no error is retried for ever. */
static void failed_for_good(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *fio;

	fake->c.env.params.ssd_patience_ms = 0;
	fake_write(fake, 0, 1);
	fio = fake_flush(fake);
	fake_finish(fake, 1, BLK_STS_IOERR);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(fake->c.log, 1), -EIO);
	/* The task that waits may be told a moment before the bio is ended and the mode set. */
	while (lc_mode(&fake->c.health) == LC_MODE_RW)
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, fio->ended, -EIO);
	expect_failed(fake, 0);
}

/* A log that was stopped writes nothing; flushes end as the task that stopped it says. */
static void stopped(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *fio;

	fake_record(fake, 1);
	fake_wait(fake, 1);
	fake_write(fake, 10, 1);
	lc_log_stop(fake->c.log);
	lc_lanes_stop(fake->c.lanes);
	fio = fake_flush(fake);
	fake_finish(fake, 1, BLK_STS_OK);
	lc_log_wait_stopped(fake->c.log);
	KUNIT_EXPECT_EQ(test, fake_held(fake), 0);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(fake->c.log, 2), -EIO);
	lc_log_end_flushes(fake->c.log, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_flush(fake)->ended, 0);
}

/* A write that ends well after the stop does not count: only RAM is known to give it back (G5). */
static void stopped_midway(struct kunit *test, bool fua)
{
	struct fake_options options = { .fua = fua };
	struct fake *fake = fake_create(test, &options);
	struct fake_io *fio;
	struct bio *bio;

	fake_write(fake, 10, 1);
	fio = fake_flush(fake);
	if (!fua)
		fake_finish(fake, 1, BLK_STS_OK);
	bio = fake_take(fake, fua);
	KUNIT_EXPECT_EQ(test, is_fua(bio), fua);
	lc_log_stop(fake->c.log);
	fake_end(bio, BLK_STS_OK);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	lc_log_wait_stopped(fake->c.log);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	KUNIT_EXPECT_EQ(test, lc_pool_used(fake->c.pool), 1);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	lc_log_end_flushes(fake->c.log, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
}

static void stopped_fua(struct kunit *test)
{
	stopped_midway(test, true);
}

static void stopped_flush(struct kunit *test)
{
	stopped_midway(test, false);
}

/* Nor does what was durable before the stop leave RAM after it. */
static void stopped_close(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);

	fake_record(fake, 2);
	lc_log_want_durable(fake->c.log, 1);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
	lc_log_stop(fake->c.log);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	KUNIT_EXPECT_EQ(test, lc_pool_used(fake->c.pool), 1);
}

/* What was durable before stays so. */
static void failed_later(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct fake_io *fio;

	fake_write(fake, 0, 1);
	fio = fake_flush(fake);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	fake_write(fake, 10, 1);
	fio = fake_flush(fake);
	fake_finish(fake, 2, BLK_STS_OK);
	fake_wait(fake, 1);
	lc_health_fail(&fake->c.health, "a test says so");
	KUNIT_EXPECT_EQ(test, fio->ended, -EIO);
	fake_pass(fake);
	fake_settle(fake);
	KUNIT_EXPECT_STREQ(test, fake->c.health.reason, "a test says so");
	KUNIT_EXPECT_EQ(test, flush_to(fake, 2)->ended, -EIO);
}

/* --- buffers ------------------------------------------------------------------------ */

/* A buffer is free when its last record is durable and none will follow. */
static void retire(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cache *c = &fake->c;

	fake_record(fake, 2);
	fake_record(fake, 2);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_finish(fake, 2, BLK_STS_OK);
	lc_log_want_durable(c->log, 2);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
	KUNIT_EXPECT_EQ(test, lc_pool_used(c->pool), 1);	/* open */
	KUNIT_EXPECT_NOT_NULL(test, rcu_access_pointer(c->ring->segments[1].buf));
	lc_lane_seal(c->lanes->lane[0], true, false);
	KUNIT_EXPECT_EQ(test, lc_pool_used(c->pool), 0);
	KUNIT_EXPECT_NULL(test, rcu_access_pointer(c->ring->segments[1].buf));

	fake_record(fake, 2);
	lc_lane_seal(c->lanes->lane[0], true, false);
	fake_finish(fake, 3, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, lc_pool_used(c->pool), 1);	/* written, not durable */
	lc_log_want_durable(c->log, 3);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, lc_pool_used(c->pool), 0);
}

/* After a failure RAM is the only good copy: it stays. */
static void retire_failed(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cache *c = &fake->c;
	struct lc_buffer *buf;

	fake_record(fake, 2);
	lc_lane_seal(c->lanes->lane[0], true, false);
	fake_finish(fake, 1, BLK_STS_IOERR);
	buf = lc_buffer_pin(c->ring, 16 + 1);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	lc_buffer_unpin(buf);
	KUNIT_EXPECT_EQ(test, lc_pool_used(c->pool), 1);
}

static struct kunit_case log_cases[] = {
	KUNIT_CASE(headers),
	KUNIT_CASE(out_of_order),
	KUNIT_CASE(held_back),
	KUNIT_CASE(flush_nothing),
	KUNIT_CASE(batching),
	KUNIT_CASE(flush_covers),
	KUNIT_CASE(late_waiters),
	KUNIT_CASE(wishes),
	KUNIT_CASE(want_buffers),
	KUNIT_CASE(want_buffers_end),
	KUNIT_CASE(sleepers),
	KUNIT_CASE(fua_alone),
	KUNIT_CASE(fua_not_alone),
	KUNIT_CASE(fua_behind),
	KUNIT_CASE(fua_direct),
	KUNIT_CASE(fua_unasked),
	KUNIT_CASE(fua_large),
	KUNIT_CASE(fua_unknown),
	KUNIT_CASE(fua_overtaken),
	KUNIT_CASE(failed_record),
	KUNIT_CASE(failed_flush),
	KUNIT_CASE(failed_foreign_flush),
	KUNIT_CASE(failed_fua),
	KUNIT_CASE(failed_for_good),
	KUNIT_CASE(stopped),
	KUNIT_CASE(stopped_fua),
	KUNIT_CASE(stopped_flush),
	KUNIT_CASE(stopped_close),
	KUNIT_CASE(failed_later),
	KUNIT_CASE(retire),
	KUNIT_CASE(retire_failed),
	KUNIT_CASE(glitch_at_rest),
	{}
};

static struct kunit_suite log_suite = {
	.name = "dm_lc_log",
	.test_cases = log_cases,
};

kunit_test_suite(log_suite);
