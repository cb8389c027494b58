// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records that are sent by the task that waits for them, those that wait for their turn (SU1 of
 * submit.h), and those that are durable once they are written (G2 of log.h): an SSD without
 * a volatile cache.
 */
#include <kunit/test.h>

#include "fake.h"

/* --- sent by the task that waits -------------------------------------------------------- */

/* A record of @nr blocks and a FLUSH.  Return: whether the record was sent from here. */
static bool sent_from_here(struct fake *fake, u32 nr, u64 seq)
{
	WRITE_ONCE(fake->sender, NULL);
	fake_write(fake, 16 * seq, nr);
	fake_flush_direct(fake);
	/* By a worker, perhaps. */
	KUNIT_EXPECT_NE(fake->test,
			wait_event_timeout(fake->wait, READ_ONCE(fake->sender), FAKE_PATIENCE), 0);
	return READ_ONCE(fake->sender) == current;
}

static void direct(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_record_info info;
	struct fake_io *fio;
	struct bio *bio;

	fake_write(fake, 0, 2);
	fio = fake_flush_direct(fake);
	KUNIT_EXPECT_EQ(test, fake_held(fake), 1);
	KUNIT_EXPECT_PTR_EQ(test, READ_ONCE(fake->sender), current);
	bio = fake_take(fake, 1);
	KUNIT_EXPECT_EQ(test, fake_decode(fake, bio, &info), 0);
	KUNIT_EXPECT_EQ(test, info.nr_slots, 2);
	KUNIT_EXPECT_EQ(test, bio->bi_iter.bi_size, 3 * LC_SLOT_BYTES);
	fake_end(bio, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	/* Large ones are the worker's. */
	KUNIT_EXPECT_TRUE(test, sent_from_here(fake, 8, 2));
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	KUNIT_EXPECT_FALSE(test, sent_from_here(fake, 9, 3));
	fake_pass(fake);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(fake->c.log, 3), 0);
}

/* Closed for a writer whose slots were all given back: one entry that says nothing (C8). */
static void says_nothing(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_record_info info = {};
	struct lc_cursor cur = {};
	struct lc_record *rec;
	struct bio *bio;

	fake_feed(fake);
	KUNIT_ASSERT_EQ(test, fake_reserve(fake, 0, 1, &cur), 0);
	rec = cur.rec;
	memset(lc_record_image(rec), LC_ENTRY_DATA, LC_SLOT_BYTES);	/* what was there before */
	rcu_read_lock();
	KUNIT_EXPECT_TRUE(test, lc_record_join(rec, 1, 1, NULL));
	rcu_read_unlock();
	lc_cursor_release(&cur);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(fake->c.lanes->lane[0], true, false), 1);
	lc_lane_put(rec, NULL);
	bio = fake_take(fake, 1);
	KUNIT_EXPECT_EQ(test, fake_decode(fake, bio, &info), 0);
	KUNIT_EXPECT_EQ(test, info.nr_slots, 0);
	fake_end(bio, BLK_STS_OK);
}

static bool passes_throttle(const struct bio *bio)
{
	return (bio->bi_opf & (REQ_SYNC | REQ_IDLE)) == (REQ_SYNC | REQ_IDLE);
}

/* Records, by any sender, and FLUSHes have the flags that blk-wbt lets pass. */
static void not_throttled(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct bio *bio;

	KUNIT_EXPECT_TRUE(test, sent_from_here(fake, 1, 1));
	bio = fake_take(fake, 1);
	KUNIT_EXPECT_TRUE(test, passes_throttle(bio));
	fake_end(bio, BLK_STS_OK);
	bio = fake_take(fake, 0);
	KUNIT_EXPECT_TRUE(test, passes_throttle(bio));
	fake_end(bio, BLK_STS_OK);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	KUNIT_EXPECT_FALSE(test, sent_from_here(fake, 9, 2));
	bio = fake_take(fake, 2);
	KUNIT_EXPECT_TRUE(test, passes_throttle(bio));
	fake_end(bio, BLK_STS_OK);
	fake_pass(fake);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(fake->c.log, 2), 0);
}

/* So many at a time, then the worker again. */
static void direct_many(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	u64 seq;

	for (seq = 1; seq <= 16; seq++)
		KUNIT_EXPECT_TRUE(test, sent_from_here(fake, 1, seq));
	KUNIT_EXPECT_FALSE(test, sent_from_here(fake, 1, 17));
	fake_finish(fake, 5, BLK_STS_OK);
	fake_finish(fake, 9, BLK_STS_IOERR);
	fake_wait(fake, 16);		/* it comes again */
	KUNIT_EXPECT_TRUE(test, sent_from_here(fake, 1, 18));
	KUNIT_EXPECT_TRUE(test, sent_from_here(fake, 1, 19));
	KUNIT_EXPECT_FALSE(test, sent_from_here(fake, 1, 20));
	fake_pass(fake);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(fake->c.log, 20), 0);
}

/* The task that seals is not the last one out: the worker sends it. */
static void direct_not_last(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_cursor cur = {};

	fake_feed(fake);
	KUNIT_ASSERT_EQ(test, fake_reserve(fake, 0, 1, &cur), 0);
	fake_put_block(fake, &cur, 5, 5);
	KUNIT_EXPECT_EQ(test, lc_lanes_close_all(fake->c.lanes, true), 1);
	fake_settle(fake);
	KUNIT_EXPECT_EQ(test, fake_held(fake), 0);
	lc_cursor_release(&cur);
	fake_wait(fake, 1);
	KUNIT_EXPECT_PTR_NE(test, READ_ONCE(fake->sender), current);
}

/* G5: nothing is sent after the stop, and none stays counted in on_way. */
static void direct_stopped(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	u64 seq;

	lc_log_stop(fake->c.log);
	for (seq = 1; seq <= 20; seq++) {
		fake_write(fake, seq, 1);
		KUNIT_EXPECT_EQ(test, fake_flush_direct(fake)->ended, FAKE_PENDING);
	}
	lc_lanes_stop(fake->c.lanes);
	lc_log_wait_stopped(fake->c.log);
	KUNIT_EXPECT_EQ(test, fake_held(fake), 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	lc_log_end_flushes(fake->c.log, BLK_STS_OK);
}

/* --- whose turn it is ------------------------------------------------------------------ */

/* So many are on their way, and it stays at that.  Else what follows might wait for ever. */
static void expect_on_way(struct fake *fake, u32 nr)
{
	fake_wait(fake, nr);
	fake_settle(fake);
	KUNIT_ASSERT_EQ(fake->test, fake_held(fake), nr);
}

/* Records of 8 slots: four of them are as much as two that fill a segment. */
static struct fake *with_records(struct kunit *test, u32 nr)
{
	struct fake *fake = fake_create(test, NULL);

	while (nr--)
		fake_record(fake, 7);
	expect_on_way(fake, 4);
	return fake;
}

static void turns(struct kunit *test)
{
	struct fake *fake = with_records(test, 8);
	struct fake_io *fio;
	u64 seq;

	fake_write(fake, 900, 1);
	fio = fake_flush_direct(fake);		/* 9: the task that waits need not queue */
	KUNIT_EXPECT_EQ(test, fake_held(fake), 5);
	fake_finish(fake, 9, BLK_STS_OK);
	expect_on_way(fake, 4);
	fake_finish(fake, 2, BLK_STS_OK);
	fake_finish(fake, 5, BLK_STS_OK);
	fake_finish(fake, 6, BLK_STS_OK);
	expect_on_way(fake, 4);
	for (seq = 1; seq <= 8; seq++) {
		if (seq != 2 && seq != 5 && seq != 6)
			fake_finish(fake, seq, BLK_STS_OK);
	}
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	KUNIT_EXPECT_TRUE(test, lc_submit_idle(fake->c.submit));
}

/* Of records that fill a segment, @on_way are on their way. */
static void turns_of_large_ones(struct kunit *test, u32 buffers, u32 on_way)
{
	struct fake_options options = { .buffers = buffers };
	struct fake *fake = fake_create(test, &options);
	u32 i;

	for (i = 0; i < 2 * on_way; i++)
		fake_record(fake, 15);
	expect_on_way(fake, on_way);
	fake_finish(fake, 1, BLK_STS_OK);
	expect_on_way(fake, on_way);
	fake_pass(fake);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(fake->c.log, 2 * on_way), 0);
	KUNIT_EXPECT_TRUE(test, lc_submit_idle(fake->c.submit));
}

static void turns_few_buffers(struct kunit *test)
{
	turns_of_large_ones(test, 4, 2);
}

/* A twentieth of them. */
static void turns_many_buffers(struct kunit *test)
{
	turns_of_large_ones(test, 64, 3);
}

/* One that failed leaves its place to another one; it comes again without a turn. */
static void turn_after_failure(struct kunit *test)
{
	struct fake *fake = with_records(test, 6);
	struct bio *bio;

	fake_finish(fake, 1, BLK_STS_IOERR);
	bio = fake_take(fake, 1);		/* beside 2 to 5 */
	expect_on_way(fake, 4);
	fake_finish(fake, 2, BLK_STS_OK);
	expect_on_way(fake, 3);			/* four again, with it */
	fake_end(bio, BLK_STS_OK);
	fake_pass(fake);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(fake->c.log, 6), 0);
	KUNIT_EXPECT_TRUE(test, lc_submit_idle(fake->c.submit));
}

/* G5: those that wait learn of the stop as their turns come. */
static void turns_stopped(struct kunit *test)
{
	struct fake *fake = with_records(test, 8);

	lc_log_stop(fake->c.log);
	expect_on_way(fake, 4);
	lc_lanes_stop(fake->c.lanes);
	fake_finish(fake, 4, BLK_STS_OK);
	fake_finish(fake, 1, BLK_STS_IOERR);
	fake_finish(fake, 2, BLK_STS_OK);
	fake_finish(fake, 3, BLK_STS_OK);
	lc_log_wait_stopped(fake->c.log);
	KUNIT_EXPECT_EQ(test, fake_held(fake), 0);
	lc_log_quiesce(fake->c.log);
	KUNIT_EXPECT_TRUE(test, lc_submit_idle(fake->c.submit));
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	lc_log_end_flushes(fake->c.log, BLK_STS_OK);
}

/* Those that wait are own I/O, too. */
static void turns_quiesced(struct kunit *test)
{
	struct fake *fake = with_records(test, 8);

	fake_pass(fake);
	lc_log_quiesce(fake->c.log);
	KUNIT_EXPECT_TRUE(test, lc_submit_idle(fake->c.submit));
	KUNIT_EXPECT_EQ(test, fake->nr_records, 8);
}

/* A buffer that is written and closed only lacks a FLUSH, unless one fails. */
static void unflushed(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct lc_log *log = fake->c.log;
	int refills;

	fake_record(fake, 3);
	fake_record(fake, 3);
	fake_finish(fake, 2, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake->c.pool->lane_pools[0].nr_unflushed, 0);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	KUNIT_EXPECT_EQ(test, fake->c.pool->lane_pools[0].nr_unflushed, 0);
	flush_workqueue(fake->c.env.wq);
	refills = atomic_read(&fake->refills);
	fake_finish(fake, 1, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake->c.pool->lane_pools[0].nr_unflushed, 1);
	flush_workqueue(fake->c.env.wq);
	KUNIT_EXPECT_GT(test, atomic_read(&fake->refills), refills);
	/* Another one, written before it is closed. */
	fake_record(fake, 3);
	fake_finish(fake, 3, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake->c.pool->lane_pools[0].nr_unflushed, 1);
	flush_workqueue(fake->c.env.wq);
	refills = atomic_read(&fake->refills);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	KUNIT_EXPECT_EQ(test, fake->c.pool->lane_pools[0].nr_unflushed, 2);
	flush_workqueue(fake->c.env.wq);
	KUNIT_EXPECT_GT(test, atomic_read(&fake->refills), refills);
	lc_log_want_buffers(log);
	fake_finish(fake, 0, BLK_STS_IOERR);
	KUNIT_EXPECT_EQ(test, fake->c.pool->lane_pools[0].nr_unflushed, 0);
	fake_finish(fake, 1, BLK_STS_OK);
	fake_finish(fake, 3, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake->c.pool->lane_pools[0].nr_unflushed, 1);
	fake_pass(fake);
	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(log, 3), 0);
	lc_log_quiesce(log);
	KUNIT_EXPECT_EQ(test, fake->c.pool->lane_pools[0].nr_unflushed, 0);
	KUNIT_EXPECT_EQ(test, lc_pool_used(fake->c.pool), 0);
}

/* --- no volatile cache ---------------------------------------------------------------- */

static const struct fake_options through_options = { .through = true };

/* Durable once written, but only in the order of the seqs (G2). */
static void through(struct kunit *test)
{
	struct fake *fake = fake_create(test, &through_options);
	struct fake_io *fio[3];
	u32 i;

	for (i = 0; i < 3; i++) {
		fake_write(fake, 10 * i, 1);
		fio[i] = i ? fake_flush(fake) : fake_flush_direct(fake);
	}
	fake_finish(fake, 2, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	KUNIT_EXPECT_EQ(test, fio[1]->ended, FAKE_PENDING);
	fake_finish(fake, 1, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
	KUNIT_EXPECT_EQ(test, fio[0]->ended, 0);
	KUNIT_EXPECT_EQ(test, fio[1]->ended, 0);
	KUNIT_EXPECT_EQ(test, fio[2]->ended, FAKE_PENDING);
	fake_finish(fake, 3, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio[2]->ended, 0);
	fake_expect_flushes(fake, 0);
}

/* G4 holds here as well: a record that failed holds back those above it. */
static void through_failed(struct kunit *test)
{
	struct fake *fake = fake_create(test, &through_options);
	struct fake_io *one, *two;

	fake_write(fake, 0, 1);
	one = fake_flush_direct(fake);
	fake_write(fake, 10, 1);
	two = fake_flush_direct(fake);
	fake_finish(fake, 1, BLK_STS_IOERR);
	fake_finish(fake, 2, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	KUNIT_EXPECT_TRUE(test, lc_log_in_trouble(fake->c.log));
	fake_finish(fake, 1, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, one->ended, 0);
	KUNIT_EXPECT_EQ(test, two->ended, 0);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
	KUNIT_EXPECT_FALSE(test, lc_log_in_trouble(fake->c.log));
	fake_expect_flushes(fake, 0);
}

/*
 * What has failed may be the FLUSH that a disk without FUA gets behind the write.  It may have
 * dropped what others have written before (F2).
 */
static void failed_fua_takes_others_along(struct kunit *test)
{
	struct fake_options options = { .fua = true };
	struct fake *fake = fake_create(test, &options);
	struct bio *first, *second;
	struct fake_io *fio;

	fake_write(fake, 0, 1);
	fio = fake_flush(fake);
	first = fake_take(fake, 1);
	KUNIT_ASSERT_TRUE(test, first->bi_opf & REQ_FUA);
	fake_write(fake, 10, 1);
	lc_lane_seal(fake->c.lanes->lane[0], false, false);
	second = fake_take(fake, 2);
	KUNIT_EXPECT_FALSE(test, second->bi_opf & REQ_FUA);
	fake_end(second, BLK_STS_OK);
	fake_end(first, BLK_STS_IOERR);
	KUNIT_EXPECT_EQ(test, READ_ONCE(fake->c.env.ssd_flush_failures), 1);
	fake_finish(fake, 1, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
	fake_finish(fake, 2, BLK_STS_OK);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
}

/* A FLUSH that others sent failed meanwhile: the record counts as not written (F2). */
static void flush_failed_meanwhile(struct kunit *test)
{
	struct fake *fake = fake_create(test, &through_options);
	struct fake_io *fio;
	struct bio *bio;

	fake_write(fake, 0, 1);
	fio = fake_flush_direct(fake);
	bio = fake_take(fake, 1);
	lc_log_flush_failed(fake->c.log);
	fake_end(bio, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	fake_finish(fake, 1, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fio->ended, 0);
}

/*
 * The cache was switched on while the record was on its way: it may be in there.  What was
 * written before is not affected.
 */
static void through_no_more(struct kunit *test)
{
	struct fake *fake = fake_create(test, &through_options);
	struct fake_io *one, *two;
	struct bio *bio;

	fake_write(fake, 0, 1);
	one = fake_flush_direct(fake);
	fake_write(fake, 10, 1);
	two = fake_flush_direct(fake);
	bio = fake_take(fake, 2);
	fake_finish(fake, 1, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, one->ended, 0);
	lc_test_write_cache(fake->disk);
	fake_end(bio, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 1);
	KUNIT_EXPECT_EQ(test, two->ended, FAKE_PENDING);
	fake_finish(fake, 0, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
	KUNIT_EXPECT_EQ(test, two->ended, 0);
	fake_expect_flushes(fake, 1);
}

/* In mode fail, too, what is in RAM stays there. */
static void through_dead(struct kunit *test)
{
	struct fake *fake = fake_create(test, &through_options);
	struct fake_io *fio;

	fake_write(fake, 0, 1);
	fio = fake_flush_direct(fake);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	lc_health_fail(&fake->c.health, "a test says so");
	fake_finish(fake, 1, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	KUNIT_EXPECT_EQ(test, lc_pool_used(fake->c.pool), 1);
	KUNIT_EXPECT_EQ(test, fio->ended, -EIO);
}

/* G5 */
static void through_stopped(struct kunit *test)
{
	struct fake *fake = fake_create(test, &through_options);
	struct fake_io *fio;
	struct bio *bio;

	fake_write(fake, 0, 1);
	fio = fake_flush_direct(fake);
	bio = fake_take(fake, 1);
	lc_log_stop(fake->c.log);
	fake_end(bio, BLK_STS_OK);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	lc_log_wait_stopped(fake->c.log);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 0);
	KUNIT_EXPECT_EQ(test, lc_pool_used(fake->c.pool), 1);
	KUNIT_EXPECT_EQ(test, fio->ended, FAKE_PENDING);
	lc_log_end_flushes(fake->c.log, BLK_STS_OK);
}

/* A closed buffer is free once its last record is written. */
static void through_retire(struct kunit *test)
{
	struct fake *fake = fake_create(test, &through_options);

	fake_record(fake, 2);
	fake_record(fake, 2);
	lc_lane_seal(fake->c.lanes->lane[0], true, false);
	fake_finish(fake, 2, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, lc_pool_used(fake->c.pool), 1);
	fake_finish(fake, 1, BLK_STS_OK);
	KUNIT_EXPECT_EQ(test, fake_durable(fake), 2);
	KUNIT_EXPECT_EQ(test, lc_pool_used(fake->c.pool), 0);
}

static struct kunit_case submit_cases[] = {
	KUNIT_CASE(direct),
	KUNIT_CASE(says_nothing),
	KUNIT_CASE(not_throttled),
	KUNIT_CASE(direct_many),
	KUNIT_CASE(direct_not_last),
	KUNIT_CASE(direct_stopped),
	KUNIT_CASE(turns),
	KUNIT_CASE(turns_few_buffers),
	KUNIT_CASE(turns_many_buffers),
	KUNIT_CASE(turn_after_failure),
	KUNIT_CASE(turns_stopped),
	KUNIT_CASE(turns_quiesced),
	KUNIT_CASE(unflushed),
	KUNIT_CASE(through),
	KUNIT_CASE(through_failed),
	KUNIT_CASE(failed_fua_takes_others_along),
	KUNIT_CASE(flush_failed_meanwhile),
	KUNIT_CASE(through_no_more),
	KUNIT_CASE(through_dead),
	KUNIT_CASE(through_stopped),
	KUNIT_CASE(through_retire),
	{}
};

static struct kunit_suite submit_suite = {
	.name = "dm_lc_submit",
	.test_cases = submit_cases,
};

kunit_test_suite(submit_suite);
