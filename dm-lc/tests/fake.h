/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cache without device mapper: the rooms from the index to the log are real, the
 * SSD is a disk that hands every bio to the test, which ends it when and how it
 * likes.  Nothing in the module knows of this.
 *
 * Lanes get buffers and segments only by fake_feed(); no writeback runs.
 */
#ifndef LC_TESTS_FAKE_H
#define LC_TESTS_FAKE_H

#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "../log/cache.h"
#include "../log/record.h"
#include "../log/request.h"
#include "../store/index.h"
#include "../log/lanes.h"
#include "../log/log.h"
#include "../store/ring.h"
#include "../log/submit.h"
#include "../store/super.h"
#include "example.h"

#define FAKE_PATIENCE	(30 * HZ)

struct fake {
	struct kunit *test;
	struct lc_cache c;
	struct work_struct refill_work;
	struct gendisk *disk;

	spinlock_t lock;		/* bios, pass, counters */
	struct bio_list bios;		/* held until the test ends them */
	bool pass;			/* end new bios at once, well */
	/* With pass: looks at each bio first; may be NULL. */
	void (*look)(struct fake *fake, struct bio *bio);
	void *private;
	u32 nr_records;
	u32 nr_flushes;
	struct task_struct *sender;	/* of the last record; READ_ONCE() */
	wait_queue_head_t wait;		/* a bio came */
	atomic_t refills;		/* times the refill worker was asked for */
};

/* --- the disk ------------------------------------------------------------ */

static void fake_submit_bio(struct bio *bio)
{
	struct fake *fake = bio->bi_bdev->bd_disk->private_data;
	unsigned long flags;
	bool pass;

	spin_lock_irqsave(&fake->lock, flags);
	if (bio_sectors(bio)) {
		fake->nr_records++;
		WRITE_ONCE(fake->sender, current);
	} else {
		fake->nr_flushes++;
	}
	pass = fake->pass;
	if (!pass)
		bio_list_add(&fake->bios, bio);
	spin_unlock_irqrestore(&fake->lock, flags);
	wake_up_all(&fake->wait);
	if (!pass)
		return;
	if (fake->look)
		fake->look(fake, bio);
	bio_endio(bio);
}

static const struct block_device_operations fake_disk_ops = {
	.submit_bio = fake_submit_bio,
};

/* What a test wants different from the usual. */
struct fake_options {
	u32 segment_bytes;	/* 0: the smallest, 16 slots */
	u32 buffers;		/* 0: 8 */
	u64 next_seq;		/* 0: 1 */
	u64 segment;		/* first to be handed out; 0: 1 */
	u32 lanes;		/* 0: 1 */
	bool fua;		/* the disk knows FUA */
	bool through;		/* the disk has no volatile cache */
};

static inline int fake_disk_create(struct fake *fake, u64 bytes,
				   const struct fake_options *options)
{
	struct gendisk *disk = lc_test_disk(8, 256, !options->through, options->fua);
	int ret;

	if (IS_ERR(disk))
		return PTR_ERR(disk);
	snprintf(disk->disk_name, DISK_NAME_LEN, "lc-test");
	disk->fops = &fake_disk_ops;
	disk->private_data = fake;
	/* Hidden: nobody but us finds it, nothing scans it. */
	disk->flags |= GENHD_FL_HIDDEN | GENHD_FL_NO_PART;
	set_capacity(disk, bytes >> SECTOR_SHIFT);
	ret = add_disk(disk);
	if (ret) {
		put_disk(disk);
		return ret;
	}
	fake->disk = disk;
	fake->c.env.cache = disk->part0;
	return 0;
}

static inline u32 fake_held(struct fake *fake)
{
	u32 nr;

	spin_lock_irq(&fake->lock);
	nr = bio_list_size(&fake->bios);
	spin_unlock_irq(&fake->lock);
	return nr;
}

/* Wait until @nr bios are held. */
static inline void fake_wait(struct fake *fake, u32 nr)
{
	KUNIT_ASSERT_NE_MSG(fake->test,
			    wait_event_timeout(fake->wait, fake_held(fake) >= nr, FAKE_PATIENCE),
			    0, "waited for %u bios", nr);
}

/* All that was to be submitted has been. */
static inline void fake_settle(struct fake *fake)
{
	u32 before;

	/* The log's workqueue is its own; what it does takes no time but the CPU's. */
	do {
		before = fake_held(fake);
		schedule_timeout_uninterruptible(HZ / 20);
	} while (fake_held(fake) != before);
}

static inline struct lc_record_header *fake_header(const struct bio *bio)
{
	return bio_has_data((struct bio *)bio) ? bvec_virt(bio->bi_io_vec) : NULL;
}

/* The record a bio writes, verified; its place from the bio's sector. */
static inline int fake_decode(struct fake *fake, const struct bio *bio,
			      struct lc_record_info *info)
{
	const struct lc_geometry *geo = &fake->c.sb.geo;
	struct lc_record_header *raw = fake_header(bio);
	u64 in_ring = (bio->bi_iter.bi_sector << SECTOR_SHIFT) - geo->segments_offset;
	u32 slot = in_ring % geo->segment_bytes / LC_SLOT_BYTES;

	return lc_record_decode(raw, &fake->c.sb, le64_to_cpu(raw->segment), slot, info, NULL);
}

/* Take a held bio: the record with @seq, or a FLUSH if @seq is 0.  Waits for it. */
static inline struct bio *fake_take(struct fake *fake, u64 seq)
{
	unsigned long end = jiffies + FAKE_PATIENCE;
	struct bio *bio, *found = NULL;

	while (!found && time_before(jiffies, end)) {
		spin_lock_irq(&fake->lock);
		bio_list_for_each(bio, &fake->bios) {
			struct lc_record_header *raw = fake_header(bio);

			if (raw ? le64_to_cpu(raw->seq) == seq : !seq) {
				found = bio;
				break;
			}
		}
		if (found) {
			struct bio_list rest = BIO_EMPTY_LIST;

			while ((bio = bio_list_pop(&fake->bios))) {
				if (bio != found)
					bio_list_add(&rest, bio);
			}
			fake->bios = rest;
		}
		spin_unlock_irq(&fake->lock);
		if (!found)
			schedule_timeout_uninterruptible(1);
	}
	KUNIT_ASSERT_NOT_NULL_MSG(fake->test, found, "no bio for record %llu came", seq);
	return found;
}

static inline void fake_end(struct bio *bio, blk_status_t status)
{
	bio->bi_status = status;
	bio_endio(bio);
}

static inline void fake_finish(struct fake *fake, u64 seq, blk_status_t status)
{
	fake_end(fake_take(fake, seq), status);
}

/* Take a RANGE record, which is to be at this place, with so many entries. */
static inline struct bio *fake_take_range(struct fake *fake, u64 seq, u64 segment, u32 first_slot,
					  u32 nr_entries)
{
	struct bio *bio = fake_take(fake, seq);
	struct lc_record_info info = {};

	KUNIT_EXPECT_EQ(fake->test, fake_decode(fake, bio, &info), 0);
	KUNIT_EXPECT_EQ(fake->test, info.type, LC_RECORD_RANGE);
	KUNIT_EXPECT_EQ(fake->test, info.segment, segment);
	KUNIT_EXPECT_EQ(fake->test, info.first_slot, first_slot);
	KUNIT_EXPECT_EQ(fake->test, info.nr_entries, nr_entries);
	KUNIT_EXPECT_EQ(fake->test, bio_sectors(bio), LC_BLOCK_SECTORS);
	return bio;
}

/* End all that is held and, from now on, all that comes. */
static inline void fake_pass(struct fake *fake)
{
	struct bio *bio;

	spin_lock_irq(&fake->lock);
	fake->pass = true;
	spin_unlock_irq(&fake->lock);
	for (;;) {
		spin_lock_irq(&fake->lock);
		bio = bio_list_pop(&fake->bios);
		spin_unlock_irq(&fake->lock);
		if (!bio)
			return;
		if (fake->look)
			fake->look(fake, bio);
		bio_endio(bio);
	}
}

/* --- the cache ----------------------------------------------------------- */

static void fake_refill_work(struct work_struct *work)
{
	atomic_inc(&container_of(work, struct fake, refill_work)->refills);
}

static void fake_flush_failed(void *arg)
{
	struct lc_cache *c = arg;

	lc_log_flush_failed(c->log);
}

static void fake_refuse_flushes(struct lc_health *health)
{
	lc_log_fail(container_of(health, struct fake, c.health)->c.log);
}

static void fake_give_up_ssd(struct lc_health *health)
{
	lc_log_stop(container_of(health, struct fake, c.health)->c.log);
}

/* Nothing waits for the mode here, and userland is not told. */
static void fake_no_op(struct lc_health *health)
{
}

static const struct lc_health_ops fake_health_ops = {
	.refuse_flushes = fake_refuse_flushes,
	.give_up_ssd = fake_give_up_ssd,
	.wake = fake_no_op,
	.tell = fake_no_op,
};

static void fake_destroy(void *data)
{
	struct fake *fake = data;
	struct lc_cache *c = &fake->c;

	if (fake->disk)
		fake_pass(fake);
	if (c->log)
		lc_log_quiesce(c->log);
	lc_name_stop(&c->env.name);
	lc_log_destroy(c->log);
	lc_submit_destroy(c->submit);
	if (c->env.wq)
		destroy_workqueue(c->env.wq);
	lc_lanes_destroy(c->lanes);
	lc_alloc_destroy(c->alloc);
	lc_pool_destroy(c->pool);
	lc_ring_destroy(c->ring);
	lc_index_destroy(c->index);
	lc_super_destroy(c->super);
	if (fake->disk) {
		del_gendisk(fake->disk);
		put_disk(fake->disk);
	}
	kfree(fake);
}

static inline void fake_rooms(struct fake *fake, const struct fake_options *options)
{
	struct lc_cache *c = &fake->c;
	struct kunit *test = fake->test;
	LIST_HEAD(buffers);

	c->env.wq = alloc_workqueue("lc-test", WQ_UNBOUND, 0);
	c->env.refill = (struct lc_kick){ c->env.wq, &fake->refill_work };
	c->super = lc_super_create(&c->env, &c->sb, fake_flush_failed, c);
	c->index = lc_index_create(c->sb.geo.nr_slots, c->sb.geo.seg_slots);
	c->ring = lc_ring_create(&c->sb.geo);
	c->pool = lc_pool_create(&c->env, c->ring, options->lanes ?: 1);
	KUNIT_ASSERT_TRUE(test, c->env.wq && c->super && c->index &&
			  c->ring && c->pool);
	c->nr_lanes = options->lanes ?: 1;
	c->slots = (struct lc_slots){ &c->env, c->ring, &c->sums };
	c->sums.nr_slots = c->sb.geo.nr_slots;
	c->submit = lc_submit_create(&c->env, c->ring, c->pool, &c->sums, c->nr_lanes);
	KUNIT_ASSERT_NOT_NULL(test, c->submit);
	c->log = lc_log_create(&c->env, c->submit);
	KUNIT_ASSERT_NOT_NULL(test, c->log);
	c->alloc = lc_alloc_create(&c->env, c->ring, c->log, c->nr_lanes);
	KUNIT_ASSERT_NOT_NULL(test, c->alloc);
	c->lanes = lc_lanes_create(&c->env, c->alloc, c->log, c->submit, c->pool);
	KUNIT_ASSERT_NOT_NULL(test, c->lanes);
	c->lanes->lane[0]->max_ready = 4;
	KUNIT_ASSERT_EQ(test, lc_buffers_alloc(c->pool, options->buffers ?: 8, &buffers), 0);
	lc_pool_add(c->pool, &buffers);
	KUNIT_ASSERT_EQ(test, fake_disk_create(fake, c->sb.geo.cache_bytes, options), 0);
	c->env.backing = c->env.cache;
	lc_ring_start(c->ring, options->segment ?: 1, c->sb.tail_seq,
		      options->segment ?: 1);
	lc_alloc_start(c->alloc, options->segment ?: 1, options->next_seq ?: 1);
	lc_log_start(c->log, options->next_seq ?: 1);
}

/* Gone when the test ends, whatever state it is in. */
static inline struct fake *fake_create(struct kunit *test, const struct fake_options *options)
{
	static const struct fake_options usual;
	struct fake *fake = kzalloc(sizeof(*fake), GFP_KERNEL);
	struct lc_cache *c;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	options = options ?: &usual;
	c = &fake->c;
	fake->test = test;
	spin_lock_init(&fake->lock);
	bio_list_init(&fake->bios);
	init_waitqueue_head(&fake->wait);
	INIT_WORK(&fake->refill_work, fake_refill_work);
	c->env.sb = &c->sb;
	c->env.health = &c->health;
	lc_name_init(&c->env.name, NULL, "kunit");
	lc_health_init(&c->health, &c->env, &fake_health_ops);
	lc_params_defaults(&c->env.params);
	example_sb(&c->sb, LC_CSUM_CRC32C);
	c->sb.mark_offset = LC_NO_MARK;	/* no HDD to save anything to */
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, fake_destroy, fake), 0);
	KUNIT_ASSERT_EQ(test, lc_geometry_compute(&c->sb.geo, 64 << 20,
						  options->segment_bytes ?:
						  LC_SEGMENT_BYTES_MIN), 0);
	c->sb.epoch_first_seq = options->next_seq ?: 1;
	c->sb.tail_seq = c->sb.epoch_first_seq;
	c->env.nr_blocks = c->sb.volume_sectors >> LC_BLOCK_SHIFT;
	fake_rooms(fake, options);
	return fake;
}

/* Slots of a lane, as a writer gets them. */
static inline int fake_reserve(struct fake *fake, u32 lane, u32 want, struct lc_cursor *cur)
{
	struct lc_lanes *lanes = fake->c.lanes;

	return lc_lanes_reserve(lanes, lanes->lane[lane], want, cur);
}

/* Give the lanes the next segment.  Return: whether there was one. */
static inline bool fake_feed_head(struct fake *fake)
{
	struct lc_cache *c = &fake->c;
	u64 number;

	if (!lc_ring_take(c->ring, 0, &number))
		return false;
	lc_alloc_add(c->alloc, number);
	return true;
}

/* And a lane one buffer for it.  Return: whether there were both. */
static inline bool fake_feed_lane(struct fake *fake, u32 lane)
{
	struct lc_cache *c = &fake->c;
	struct lc_buffer *buf = lc_pool_get(c->pool, lane);

	if (!buf)
		return false;
	if (!fake_feed_head(fake)) {
		lc_buffer_unpin(buf);
		return false;
	}
	lc_lane_add_ready(c->lanes->lane[lane], buf);
	return true;
}

static inline bool fake_feed(struct fake *fake)
{
	return fake_feed_lane(fake, 0);
}

/* --- bios that wait for a FLUSH ------------------------------------------- */

/*
 * What device mapper lays around a clone, as far as finding one from the other
 * goes: a magic number after the per-bio data says that a bio follows.
 */
struct fake_io {
	struct lc_request io;
	u16 dm_magic;
	u8 dm_rest[510];
	struct bio *bio;
	int ended;		/* FAKE_PENDING, or 0 or an errno */
};

#define FAKE_DM_TIO_MAGIC	28714
#define FAKE_PENDING		1

static void fake_io_end(struct bio *bio)
{
	struct fake_io *fio = bio->bi_private;

	fio->ended = blk_status_to_errno(bio->bi_status);
}

static inline struct fake_io *fake_io(struct fake *fake)
{
	struct fake_io *fio = kunit_kzalloc(fake->test, sizeof(*fio), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(fake->test, fio);
	fio->dm_magic = FAKE_DM_TIO_MAGIC;
	fio->bio = lc_request_bio(&fio->io);
	KUNIT_ASSERT_TRUE(fake->test, (u8 *)(fio->bio + 1) <= fio->dm_rest + sizeof(fio->dm_rest));
	bio_init(fio->bio, fake->c.env.cache, NULL, 0, REQ_OP_WRITE | REQ_PREFLUSH);
	fio->bio->bi_private = fio;
	fio->bio->bi_end_io = fake_io_end;
	fio->ended = FAKE_PENDING;
	return fio;
}

/* As a FLUSH of the volume: seal and wait. */
static inline struct fake_io *fake_flush(struct fake *fake)
{
	struct fake_io *fio = fake_io(fake);

	lc_log_flush_io(fake->c.log, &fio->io, lc_lanes_close_all(fake->c.lanes, false));
	return fio;
}

/* The same by a task that may submit bios. */
static inline struct fake_io *fake_flush_direct(struct fake *fake)
{
	struct fake_io *fio = fake_io(fake);

	lc_log_flush_io(fake->c.log, &fio->io, lc_lanes_close_all(fake->c.lanes, true));
	return fio;
}

/* --- writing -------------------------------------------------------------- */

/* Put @block into the cursor's next slot, as write.c does. */
static inline u32 fake_put_block(struct fake *fake, struct lc_cursor *cur, u64 block, u8 fill)
{
	struct lc_mapping map = { .slot = lc_cursor_slot(cur), .mask = 0xff, .dirty = true };
	u32 bucket = lc_index_lock(fake->c.index, block);
	struct lc_mapping old;

	memset(lc_cursor_image(cur, map.slot), fill, LC_SLOT_BYTES);
	lc_cursor_describe(cur, map.slot, block, 0xff, 0);
	lc_index_set(fake->c.index, bucket, block, &map, &old);
	lc_index_unlock(fake->c.index, bucket);
	lc_cursor_advance(cur);
	return map.slot;
}

/* One whole write of @nr blocks from @block on.  Feeds the lane as needed. */
static inline void fake_write(struct fake *fake, u64 block, u32 nr)
{
	struct lc_cursor cur = {};
	int ret;

	while (nr) {
		ret = fake_reserve(fake, 0, nr, &cur);
		if (ret) {
			KUNIT_ASSERT_EQ(fake->test, ret, -EAGAIN);
			KUNIT_ASSERT_TRUE(fake->test, fake_feed(fake));
			continue;
		}
		for (; cur.next < cur.end; block++, nr--)
			fake_put_block(fake, &cur, block, block);
		lc_cursor_release(&cur);
	}
}

/* --- records -------------------------------------------------------------- */

/* A record of @nr blocks, closed without wish for a FLUSH.  Return: its seq. */
static inline u64 fake_record(struct fake *fake, u32 nr)
{
	static u64 block;
	u64 seq;

	block = (block + 16) % 4096;
	fake_write(fake, block, nr);
	seq = lc_lane_seal(fake->c.lanes->lane[0], false, false);
	return seq;
}

static inline u64 fake_durable(struct fake *fake)
{
	return lc_log_durable_seq(fake->c.log);
}

static inline void fake_expect_flushes(struct fake *fake, u32 nr)
{
	fake_settle(fake);
	KUNIT_EXPECT_EQ(fake->test, fake->nr_flushes, nr);
}

#endif /* LC_TESTS_FAKE_H */
