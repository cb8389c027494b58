// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lanes under load: several writers, a thread that seals, closes segments and
 * logs tombstones, one that takes the rest of segments, a log whose every record is
 * looked at when it is submitted.
 *
 * Checked all the time: no slot is handed out twice, no record is submitted while
 * a writer is in it, every record says what was put into it and nothing else.
 * Checked in the end: seqs are dense, every buffer comes back, each boundary is one.
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/vmalloc.h>

#include "fake.h"

#define WRITERS		4
#define ROUNDS		700
#define MAX_SEQ		65536
#define ID_BITS		17	/* of a writer's count; volume blocks have 20 */

struct storm;

/* A record, by its seq. */
struct place {
	u64 segment;
	u64 boundary;		/* below it, as its header says */
	u64 boundary_seq;	/* of its segment; 0: that is no boundary */
	/* In the end: segments of all lower seqs and it, of all higher ones and it. */
	u64 highest, lowest;
};

struct writer {
	struct storm *storm;
	struct task_struct *task;
	struct rnd_state rnd;
	u32 id;
	u32 count;
	bool done;
};

struct storm {
	struct fake *fake;
	struct writer writers[WRITERS];
	struct task_struct *feeder;
	struct task_struct *sealer;
	struct task_struct *resizer;
	struct task_struct *ceder;
	struct rnd_state rnd;		/* sealer */
	atomic_t *taken;		/* per slot: times handed out and in use */
	atomic_t *inside;		/* per slot of a header: writers in the record */
	unsigned long *seqs;		/* submitted */
	struct place *places;		/* of these */
	/* what went wrong */
	atomic_t twice, early, torn, alien, dirty_hole, odd_seq;
	atomic_t nr_data, nr_used, nr_ceded;
};

/* --- what is submitted ----------------------------------------------------- */

static void look_at_slot(struct storm *storm, struct lc_record_header *raw, u32 i, u32 slot,
			 const void *data)
{
	struct lc_entry_info entry;

	lc_entry_decode(raw, i, &entry);
	if (entry.type == LC_ENTRY_NONE) {
		if (memchr_inv(data, 0, LC_SLOT_BYTES))
			atomic_inc(&storm->dirty_hole);
		return;
	}
	atomic_inc(&storm->nr_data);
	if (atomic_xchg(&storm->taken[slot], 0) != 1)
		atomic_inc(&storm->twice);
	if (entry.csum != lc_format_slot_csum(&storm->fake->c.sb, entry.block, data))
		atomic_inc(&storm->torn);
	if (*(u64 *)data != entry.block || *(u64 *)(data + LC_SLOT_BYTES - 8) != entry.block)
		atomic_inc(&storm->alien);
}

static void look(struct fake *fake, struct bio *bio)
{
	struct storm *storm = fake->private;
	struct lc_record_info info;
	struct bvec_iter iter;
	struct bio_vec bv;
	u32 slot, i = 0;

	if (!bio_sectors(bio))
		return;
	if (fake_decode(fake, bio, &info)) {
		atomic_inc(&storm->alien);
		return;
	}
	if (info.seq >= MAX_SEQ || test_and_set_bit(info.seq, storm->seqs)) {
		atomic_inc(&storm->odd_seq);
		return;
	}
	storm->places[info.seq] = (struct place) {
		.segment = info.segment,
		.boundary = info.boundary ?: info.segment,
		.boundary_seq = lc_alloc_boundary_seq(fake->c.alloc, info.segment),
	};
	slot = (lc_ring_position(fake->c.ring, info.segment) << fake->c.ring->slot_shift) +
	       info.first_slot;
	if (atomic_read(&storm->inside[slot]))
		atomic_inc(&storm->early);
	bio_for_each_segment(bv, bio, iter) {
		if (i)
			look_at_slot(storm, fake_header(bio), i - 1, slot + i, bvec_virt(&bv));
		i++;
	}
}

/* --- those who write -------------------------------------------------------- */

static void fill(struct storm *storm, struct writer *w, struct lc_cursor *cur)
{
	u64 id = (u64)w->id << ID_BITS | (w->count++ & ((1u << ID_BITS) - 1));
	u32 slot = lc_cursor_slot(cur);
	u64 *image = lc_cursor_image(cur, slot);

	memset(image, (u8)id, LC_SLOT_BYTES);
	image[0] = id;
	image[LC_SLOT_BYTES / 8 - 1] = id;
	lc_cursor_describe(cur, slot, id, 0xff, 0);
	lc_cursor_advance(cur);
	atomic_inc(&storm->nr_used);
}

static void write_some(struct storm *storm, struct writer *w, struct lc_cursor *cur)
{
	u32 header = lc_cursor_slot(cur) - cur->next - LC_HEADER_SLOTS;
	u32 nr = cur->end - cur->next, use, i;

	atomic_inc(&storm->inside[header]);
	for (i = 0; i < nr; i++) {
		if (atomic_inc_return(&storm->taken[lc_cursor_slot(cur) + i]) != 1)
			atomic_inc(&storm->twice);
	}
	/* Mostly all; sometimes some are left over, given back or not. */
	use = prandom_u32_state(&w->rnd) % 4 ? nr : prandom_u32_state(&w->rnd) % (nr + 1);
	for (i = 0; i < use; i++)
		fill(storm, w, cur);
	if (!(prandom_u32_state(&w->rnd) % 16))
		usleep_range(20, 200);
	for (i = 0; i < nr - use; i++)
		atomic_dec(&storm->taken[lc_cursor_slot(cur) + i]);
	atomic_dec(&storm->inside[header]);
	lc_cursor_release(cur);
}

static int writer_thread(void *data)
{
	struct writer *w = data;
	struct storm *storm = w->storm;
	struct lc_cache *c = &storm->fake->c;
	struct lc_cursor cur = {};
	u32 round = 0;

	while (round < ROUNDS && !kthread_should_stop()) {
		u32 lane = prandom_u32_state(&w->rnd) % c->nr_lanes;
		u32 want = 1 + prandom_u32_state(&w->rnd) % 20;

		if (lc_lanes_reserve(c->lanes, c->lanes->lane[lane], want, &cur)) {
			usleep_range(50, 100);
			continue;
		}
		write_some(storm, w, &cur);
		round++;
		cond_resched();
	}
	/* Pairs with writers_done(): the storm sees all that this writer counted. */
	smp_store_release(&w->done, true);
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

/* As the refill worker, with a tail that stays a few dozen segments below the head. */
static int feeder_thread(void *data)
{
	struct storm *storm = data;
	struct lc_cache *c = &storm->fake->c;

	while (!kthread_should_stop()) {
		u64 head = lc_ring_head(c->ring);
		bool fed = false;
		u32 i;

		if (head > 64 * c->nr_lanes)
			lc_ring_set_tail(c->ring, head - 64 * c->nr_lanes, 1);
		for (i = 0; i < c->nr_lanes; i++)
			fed |= READ_ONCE(c->lanes->lane[i]->nr_ready) < 3 &&
			       fake_feed_lane(storm->fake, i);
		/* A segment that nothing was put into gives back its buffer only. */
		if (!lc_alloc_ready(c->alloc))
			fed |= fake_feed_head(storm->fake);
		if (!fed) {
			lc_log_want_buffers(c->log);
			usleep_range(50, 200);
		}
	}
	return 0;
}

static int sealer_thread(void *data)
{
	struct lc_entry_info range = { .nr_blocks = 1, .type = LC_ENTRY_RANGE_TOMBSTONE };
	struct storm *storm = data;
	struct lc_cache *c = &storm->fake->c;

	while (!kthread_should_stop()) {
		u32 random = prandom_u32_state(&storm->rnd);

		switch (random % 8) {
		case 0:
			range.block = random >> 20;
			lc_lanes_append_ranges(c->lanes, &range, 1);
			break;
		case 1:
			lc_lanes_close_used(c->lanes, true);
			break;
		case 2:
		case 3:
			lc_log_want_durable(c->log, lc_lanes_close_all(c->lanes, true));
			break;
		default:
			lc_log_want_durable(c->log, lc_lanes_close_used(c->lanes, false));
			break;
		}
		usleep_range(random >> 28, 30 * (random >> 28) + 20);
	}
	return 0;
}

/* Options change under load: fewer buffers, then as many as before. */
static int resizer_thread(void *data)
{
	struct storm *storm = data;
	struct lc_cache *c = &storm->fake->c;

	while (!kthread_should_stop()) {
		LIST_HEAD(more);

		lc_pool_shrink(c->pool, 4 * c->nr_lanes);
		usleep_range(500, 2000);
		if (!lc_buffers_alloc(c->pool, 4 * c->nr_lanes, &more))
			lc_pool_add(c->pool, &more);
		lc_pool_shrink(c->pool, 8 * c->nr_lanes);
		usleep_range(500, 2000);
	}
	return 0;
}

/* The rest of a segment is nobody else's, and not in RAM. */
static void use_region(struct storm *storm, const struct lc_region *region)
{
	struct lc_ring *ring = storm->fake->c.ring;
	u32 base = lc_ring_position(ring, region->segment) << ring->slot_shift, i;
	struct lc_buffer *buf;

	for (i = region->next; i < region->end; i++) {
		if (atomic_inc_return(&storm->taken[base + i]) != 1)
			atomic_inc(&storm->twice);
		buf = lc_buffer_pin(ring, base + i);
		if (buf) {
			atomic_inc(&storm->alien);
			lc_buffer_unpin(buf);
		}
	}
	usleep_range(1000, 3000);
	for (i = region->next; i < region->end; i++) {
		if (atomic_dec_return(&storm->taken[base + i]))
			atomic_inc(&storm->twice);
	}
	atomic_inc(&storm->nr_ceded);
}

/* As next_work() of groups. */
static int ceder_thread(void *data)
{
	struct storm *storm = data;
	struct lc_cache *c = &storm->fake->c;
	struct lc_region region;
	u32 least = 1;

	while (!kthread_should_stop()) {
		if (lc_lanes_cede(c->lanes, least, &region)) {
			usleep_range(50, 200);
			continue;
		}
		if (region.end - region.next < least)
			atomic_inc(&storm->alien);
		use_region(storm, &region);
		lc_ring_filled(c->ring, region.segment);
		least = least % 8 + 1;
	}
	return 0;
}

/* --- the storm ---------------------------------------------------------------- */

static void free_arrays(void *data)
{
	struct storm *storm = data;

	vfree(storm->taken);
	vfree(storm->inside);
	vfree(storm->places);
	bitmap_free(storm->seqs);
	kfree(storm);
}

static struct storm *storm_create(struct kunit *test, u32 lanes)
{
	struct fake_options options = { .buffers = 8 * lanes, .lanes = lanes };
	struct storm *storm = kzalloc(sizeof(*storm), GFP_KERNEL);
	u64 nr_slots;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, storm);
	/* Registered before the vol, so freed after it. */
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_arrays, storm), 0);
	storm->fake = fake_create(test, &options);
	nr_slots = storm->fake->c.sb.geo.nr_slots;
	storm->taken = vzalloc(nr_slots * sizeof(atomic_t));
	storm->inside = vzalloc(nr_slots * sizeof(atomic_t));
	storm->seqs = bitmap_zalloc(MAX_SEQ, GFP_KERNEL);
	storm->places = vzalloc(MAX_SEQ * sizeof(*storm->places));
	KUNIT_ASSERT_TRUE(test, storm->taken && storm->inside && storm->seqs && storm->places);
	storm->fake->private = storm;
	storm->fake->look = look;
	fake_pass(storm->fake);
	lc_test_seed(test, &storm->rnd);
	for (i = 0; i < WRITERS; i++) {
		storm->writers[i].storm = storm;
		storm->writers[i].id = i;
		prandom_seed_state(&storm->writers[i].rnd, prandom_u32_state(&storm->rnd));
	}
	return storm;
}

static struct task_struct *start(struct kunit *test, int (*thread)(void *data), void *data)
{
	struct task_struct *task = kthread_run(thread, data, "lc-test");

	KUNIT_EXPECT_FALSE(test, IS_ERR(task));
	return task;
}

static void stop(struct task_struct *task)
{
	if (!IS_ERR_OR_NULL(task))
		kthread_stop(task);
}

static bool writers_done(struct storm *storm)
{
	u32 i;

	for (i = 0; i < WRITERS; i++) {
		/* Pairs with the end of writer_thread(). */
		if (!smp_load_acquire(&storm->writers[i].done))
			return false;
	}
	return true;
}

static void run_storm(struct kunit *test, struct storm *storm, bool resize, bool cede)
{
	unsigned long end = jiffies + 120 * HZ;
	u32 i;

	storm->feeder = start(test, feeder_thread, storm);
	storm->sealer = start(test, sealer_thread, storm);
	if (resize)
		storm->resizer = start(test, resizer_thread, storm);
	if (cede)
		storm->ceder = start(test, ceder_thread, storm);
	for (i = 0; i < WRITERS; i++)
		storm->writers[i].task = start(test, writer_thread, &storm->writers[i]);
	while (!writers_done(storm) && time_before(jiffies, end))
		msleep(20);
	KUNIT_EXPECT_TRUE_MSG(test, writers_done(storm), "the writers got stuck");
	for (i = 0; i < WRITERS; i++)
		stop(storm->writers[i].task);
	stop(storm->sealer);
	stop(storm->resizer);
	stop(storm->ceder);
	stop(storm->feeder);
}

/* AL1, and what headers say of it (L14). */
static void check_boundaries(struct kunit *test, struct place *places, u64 last)
{
	u64 seq, wrong = 0, nr_boundaries = 0;

	for (seq = 1; seq <= last; seq++)
		places[seq].highest = max(places[seq].segment, places[seq - 1].highest);
	places[last + 1].lowest = ~0ULL;
	for (seq = last; seq; seq--) {
		wrong += places[seq].boundary > places[seq + 1].lowest;
		places[seq].lowest = min(places[seq].segment, places[seq + 1].lowest);
	}
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "a higher seq lies below the boundary of a header");
	for (seq = 1; seq <= last; seq++) {
		u64 segment = places[seq].segment, boundary = places[seq].boundary_seq;

		if (!boundary)
			continue;
		nr_boundaries++;
		wrong += boundary > seq || places[boundary - 1].highest >= segment ||
			 places[boundary].lowest < segment;
	}
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "lower seqs are not in lower segments");
	KUNIT_EXPECT_GT(test, nr_boundaries, 1);
}

static void check_storm(struct kunit *test, struct storm *storm)
{
	struct lc_cache *c = &storm->fake->c;
	u64 last = lc_lanes_close_used(c->lanes, true);
	u32 i, ready = 0;

	KUNIT_EXPECT_EQ(test, lc_log_wait_durable(c->log, last), 0);
	KUNIT_EXPECT_EQ(test, lc_log_last_seq(c->log), last);
	KUNIT_EXPECT_EQ(test, lc_log_durable_seq(c->log), last);
	KUNIT_ASSERT_LT(test, last + 1, (u64)MAX_SEQ);
	KUNIT_EXPECT_EQ(test, bitmap_weight(storm->seqs, MAX_SEQ), last);
	KUNIT_EXPECT_EQ(test, find_next_zero_bit(storm->seqs, MAX_SEQ, 1), last + 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&storm->nr_data), atomic_read(&storm->nr_used));
	KUNIT_EXPECT_EQ(test, atomic_read(&storm->twice), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&storm->early), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&storm->torn), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&storm->alien), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&storm->dirty_hole), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&storm->odd_seq), 0);
	check_boundaries(test, storm->places, last);
	/* Only those that wait for a writer, and one that a retracted record left open. */
	for (i = 0; i < c->nr_lanes; i++)
		ready += READ_ONCE(c->lanes->lane[i]->nr_ready) + 1;
	KUNIT_EXPECT_LE(test, lc_pool_used(c->pool), ready);
	kunit_info(test, "%llu records, %d slots, %u flushes, %d segments ceded", last,
		   atomic_read(&storm->nr_used), storm->fake->nr_flushes,
		   atomic_read(&storm->nr_ceded));
}

static void storm_of(struct kunit *test, u32 lanes, bool resize, bool cede)
{
	struct storm *storm = storm_create(test, lanes);

	run_storm(test, storm, resize, cede);
	check_storm(test, storm);
	KUNIT_EXPECT_EQ(test, atomic_read(&storm->nr_ceded) > 0, cede);
}

static void storm(struct kunit *test)
{
	storm_of(test, 1, false, false);
}

static void storm_resize(struct kunit *test)
{
	storm_of(test, 1, true, false);
}

static void storm_lanes(struct kunit *test)
{
	storm_of(test, 3, true, false);
}

static void storm_cede(struct kunit *test)
{
	storm_of(test, 1, false, true);
}

static void storm_cede_lanes(struct kunit *test)
{
	storm_of(test, 3, true, true);
}

/* --- one moment of it ------------------------------------------------------------ */

struct late {
	struct fake *fake;
	struct lc_cursor cur;
	int ret;
	bool done;
};

static int late_thread(void *data)
{
	struct late *late = data;

	late->ret = fake_reserve(late->fake, 0, 1, &late->cur);
	WRITE_ONCE(late->done, true);
	return 0;
}

/* Let the thread find @closed in the place of the open record, as just before its closing. */
static void run_late(struct lc_lane *lane, struct lc_record *closed, struct task_struct *task,
		     struct late *late)
{
	unsigned long end = jiffies + HZ / 4;
	struct lc_record *open;

	migrate_disable();	/* it must run beside us */
	kthread_bind(task, cpumask_any_but(cpu_online_mask, smp_processor_id()));
	spin_lock(&lane->lock);
	open = lane->open;
	WRITE_ONCE(lane->open, closed);
	wake_up_process(task);
	/* It gets a slot, or it waits for the lock to see what became of the record. */
	while (!READ_ONCE(late->done) && time_before(jiffies, end))
		cpu_relax();
	WRITE_ONCE(lane->open, open);
	spin_unlock(&lane->lock);
	migrate_enable();
}

/* No slot of a closed record, although it has free ones and somebody holds it (C1). */
static void late_writer(struct kunit *test)
{
	struct fake *fake = fake_create(test, NULL);
	struct late *late = kunit_kzalloc(test, sizeof(*late), GFP_KERNEL);
	struct lc_lane *lane = fake->c.lanes->lane[0];
	struct task_struct *task;
	struct lc_cursor cur = {};

	KUNIT_ASSERT_NOT_NULL(test, late);
	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	late->fake = fake;
	KUNIT_ASSERT_TRUE(test, fake_feed(fake));
	KUNIT_ASSERT_EQ(test, lc_lanes_reserve(lane->lanes, lane, 1, &cur), 0);
	fake_put_block(fake, &cur, 1, 1);
	KUNIT_EXPECT_EQ(test, lc_lane_seal(lane, false, false), 1);
	task = kthread_create(late_thread, late, "lc-test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	run_late(lane, cur.rec, task, late);
	kthread_stop(task);
	put_task_struct(task);
	KUNIT_EXPECT_EQ(test, late->ret, 0);
	KUNIT_EXPECT_PTR_NE(test, late->cur.rec, cur.rec);
	lc_cursor_release(&late->cur);
	lc_cursor_release(&cur);
	fake_finish(fake, 1, BLK_STS_OK);
}

static struct kunit_case late_cases[] = {
	KUNIT_CASE(late_writer),
	{}
};

static struct kunit_suite late_suite = {
	.name = "dm_lc_late",
	.test_cases = late_cases,
};

static struct kunit_case lane_cases[] = {
	KUNIT_CASE_SLOW(storm),
	KUNIT_CASE_SLOW(storm_resize),
	KUNIT_CASE_SLOW(storm_lanes),
	KUNIT_CASE_SLOW(storm_cede),
	KUNIT_CASE_SLOW(storm_cede_lanes),
	{}
};

static struct kunit_suite lane_suite = {
	.name = "dm_lc_lane",
	.test_cases = lane_cases,
};

kunit_test_suites(&lane_suite, &late_suite);
