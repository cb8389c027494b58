/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A pair of disks in RAM, with the rooms of superblock and mark and nothing above them.
 *
 * The disks note each write in one list, so that a test sees the order of both.  They end a bio in
 * a worker, as a driver does in an interrupt.  One write may fail, and leaves a torn block: after
 * pair_restart() that is what a power cut leaves.  Behind one write another machine may write the
 * mark.
 */
#ifndef LC_TESTS_PAIR_H
#define LC_TESTS_PAIR_H

#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../store/doubt.h"
#include "../store/env.h"
#include "../store/health.h"
#include "../store/mark.h"
#include "../store/super.h"
#include "formatted.h"

#define PAIR_SSD_BYTES	(4ULL << 20)
#define PAIR_WRITES	16
#define PAIR_NONE	(~0U)
#define PAIR_OWNER	0x31		/* of the superblock */
#define PAIR_MARK_OWNER	0x21		/* of the mark when that life began */
#define PAIR_INTRUDER	0x41
#define PAIR_TORN	32		/* bytes: the checksum is new, most of the rest old */

enum { SSD, HDD, NR_DISKS };

struct pair_disk {
	struct pair *pair;
	struct gendisk *gd;
	void *bytes;
	struct work_struct work;	/* ends the bio */
	struct bio *bio;
	bool unreadable;
};

struct pair_write {
	u32 disk;
	u64 address;
	blk_opf_t opf;
};

/* The test and the disks' workers never run at the same time: each waits for the other. */
struct pair {
	struct kunit *test;
	struct lc_env env;
	struct lc_health health;
	struct lc_doubt doubt;
	struct lc_sb sb;		/* in memory, lc_super_load() fills it */
	struct lc_super *super;
	struct lc_hdd_mark *mark;
	struct lc_sb sb_media;		/* for pair_put_sb(), and from pair_get_sb() */
	struct lc_mark_info mark_media;	/* for pair_put_mark(), and from pair_get_mark() */
	struct pair_disk disk[NR_DISKS];
	struct pair_write writes[PAIR_WRITES];
	u32 nr_writes, nr_reads;
	u32 failing;			/* number of a write in writes[], or PAIR_NONE */
	u32 flushing;			/* the same; a FLUSH of somebody else fails behind it */
	u32 intruding;			/* the same; another machine writes copy 0 of the mark, */
	bool shared;			/* or the superblock, if it has that SSD, too */
	u32 told;			/* failed writes of the superblock */
	struct task_struct *teller;	/* of the last one */
	char story[4 * PAIR_WRITES];
};

/* --- the disks ----------------------------------------------------------- */

static void pair_intrude(struct pair *pair);

static void pair_do_write(struct pair_disk *disk, struct bio *bio)
{
	u64 address = bio->bi_iter.bi_sector << SECTOR_SHIFT;
	struct pair *pair = disk->pair;
	u32 len = bio->bi_iter.bi_size;

	if (pair->nr_writes == pair->failing) {
		bio->bi_status = BLK_STS_IOERR;
		len = PAIR_TORN;
	}
	memcpy(disk->bytes + address, bvec_virt(bio->bi_io_vec), len);
	if (pair->nr_writes == pair->flushing) {
		pair->env.ssd_flush_failures += disk == &pair->disk[SSD];
		if (disk == &pair->disk[HDD])
			lc_doubt_flush_failed(&pair->doubt);
	}
	if (pair->nr_writes == pair->intruding)
		pair_intrude(pair);
	if (pair->nr_writes < PAIR_WRITES)
		pair->writes[pair->nr_writes++] = (struct pair_write) {
			.disk = disk - pair->disk, .address = address, .opf = bio->bi_opf,
		};
}

static void pair_end_bio(struct work_struct *work)
{
	struct pair_disk *disk = container_of(work, struct pair_disk, work);
	struct bio *bio = disk->bio;

	if (op_is_write(bio_op(bio))) {
		pair_do_write(disk, bio);
	} else {
		disk->pair->nr_reads++;
		memcpy(bvec_virt(bio->bi_io_vec),
		       disk->bytes + (bio->bi_iter.bi_sector << SECTOR_SHIFT),
		       bio->bi_iter.bi_size);
		if (disk->unreadable)
			bio->bi_status = BLK_STS_IOERR;
	}
	bio_endio(bio);
}

static void pair_submit_bio(struct bio *bio)
{
	struct pair_disk *disk = bio->bi_bdev->bd_disk->private_data;

	disk->bio = bio;
	schedule_work(&disk->work);
}

static const struct block_device_operations pair_disk_ops = {
	.submit_bio = pair_submit_bio,
};

static inline struct block_device *pair_disk_create(struct pair *pair, u32 nr, u64 bytes)
{
	struct pair_disk *disk = &pair->disk[nr];
	static u32 number;
	struct gendisk *gd;
	int ret;

	disk->bytes = kvzalloc(bytes, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(pair->test, disk->bytes);
	gd = lc_test_disk(0, 0, true, true);
	KUNIT_ASSERT_FALSE(pair->test, IS_ERR(gd));
	snprintf(gd->disk_name, DISK_NAME_LEN, "lc-test%u", number++);
	gd->fops = &pair_disk_ops;
	gd->private_data = disk;
	/* Hidden: nobody but us finds it, nothing scans it. */
	gd->flags |= GENHD_FL_HIDDEN | GENHD_FL_NO_PART;
	set_capacity(gd, bytes >> SECTOR_SHIFT);
	ret = add_disk(gd);
	if (ret)
		put_disk(gd);
	KUNIT_ASSERT_EQ(pair->test, ret, 0);
	disk->gd = gd;
	return gd->part0;
}

/*
 * The writes since the last call, as "m1 m0 s1 s0 s2": copies of superblock and mark.  Behind a
 * write that lacks PREFLUSH or FUA there is a "!".
 */
static inline const char *pair_story(struct pair *pair)
{
	u64 mark_offset = pair->sb.mark_offset;
	u32 i, copy, len = 0;

	pair->story[0] = 0;
	for (i = 0; i < pair->nr_writes; i++) {
		const struct pair_write *w = &pair->writes[i];
		bool safe = w->opf & REQ_PREFLUSH && w->opf & REQ_FUA;

		for (copy = 0; copy < (w->disk == SSD ? LC_SB_COPIES : 2); copy++) {
			if (w->address == (w->disk == SSD ?
					   lc_format_sb_address(&pair->sb.geo, copy) :
					   lc_format_mark_address(mark_offset, copy)))
				break;
		}
		len += scnprintf(pair->story + len, sizeof(pair->story) - len, "%s%c%u%s",
				 len ? " " : "", w->disk == SSD ? 's' : 'm', copy,
				 safe ? "" : "!");
	}
	pair->nr_writes = 0;
	pair->failing = PAIR_NONE;
	pair->flushing = PAIR_NONE;
	pair->intruding = PAIR_NONE;
	return pair->story;
}

/* --- what is on them ----------------------------------------------------- */

static inline void *pair_sb_at(struct pair *pair, u32 copy)
{
	return pair->disk[SSD].bytes + lc_format_sb_address(&pair->sb_media.geo, copy);
}

static inline void *pair_mark_at(struct pair *pair, u32 copy)
{
	return pair->disk[HDD].bytes + lc_format_mark_address(pair->sb_media.mark_offset, copy);
}

static inline void pair_put_sb(struct pair *pair, u32 copy)
{
	lc_sb_encode(&pair->sb_media, copy, pair_sb_at(pair, copy));
}

static inline void pair_put_mark(struct pair *pair, u32 copy)
{
	lc_mark_encode(&pair->mark_media, pair->sb_media.csum_type, pair->sb_media.mark_offset,
		       copy, pair_mark_at(pair, copy));
}

static inline void pair_put_both(struct pair *pair)
{
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		pair_put_sb(pair, copy);
		if (pair->sb_media.mark_offset != LC_NO_MARK)
			pair_put_mark(pair, copy);
	}
}

static void pair_intrude(struct pair *pair)
{
	if (pair->shared) {
		pair->sb_media = pair->sb;
		pair->sb_media.owner = PAIR_INTRUDER;
		pair_put_sb(pair, 0);
		pair_put_sb(pair, 1);
		return;
	}
	pair->mark_media.owner = PAIR_INTRUDER;
	pair_put_mark(pair, 0);
}

static inline int pair_get_sb(struct pair *pair, u32 copy)
{
	return lc_sb_decode(pair_sb_at(pair, copy), copy, &pair->sb_media, NULL);
}

static inline int pair_get_mark(struct pair *pair, u32 copy)
{
	return lc_mark_decode(pair_mark_at(pair, copy), pair->sb_media.mark_offset, copy,
			      &pair->mark_media, NULL);
}

/* A block is no longer what was written. */
static inline void pair_spoil(void *block)
{
	((u8 *)block)[1000] ^= 1;
}

/* --- the rooms ----------------------------------------------------------- */

static void pair_flush_failed(void *arg)
{
	struct pair *pair = arg;

	pair->told++;
	pair->teller = current;
}

static inline void pair_stop(struct pair *pair)
{
	lc_mark_destroy(pair->mark);
	lc_super_destroy(pair->super);
	pair->mark = NULL;
	pair->super = NULL;
}

/* The rooms anew, empty.  Return: what lc_super_load() does. */
static inline int pair_load(struct pair *pair, const char **why)
{
	int ret;

	pair_stop(pair);
	pair->super = lc_super_create(&pair->env, &pair->sb, pair_flush_failed, pair);
	KUNIT_ASSERT_NOT_NULL(pair->test, pair->super);
	pair->mark = lc_mark_create(&pair->env, lc_super_lock(pair->super), &pair->doubt);
	KUNIT_ASSERT_NOT_NULL(pair->test, pair->mark);
	ret = lc_super_load(pair->super, why);
	lc_place_init(&pair->env.place, &pair->sb);
	return ret;
}

/* As after a power cut.  Return: what lc_mark_check_pair() does. */
static inline int pair_restart(struct pair *pair)
{
	const char *why = "";

	KUNIT_ASSERT_EQ_MSG(pair->test, pair_load(pair, &why), 0, "%s", why);
	return lc_mark_check_pair(pair->mark);
}

static void pair_destroy(void *data)
{
	struct pair *pair = data;
	struct pair_disk *disk;

	pair_stop(pair);
	lc_name_stop(&pair->env.name);
	for (disk = pair->disk; disk < pair->disk + NR_DISKS; disk++) {
		cancel_work_sync(&disk->work);
		if (disk->gd) {
			del_gendisk(disk->gd);
			put_disk(disk->gd);
		}
		kvfree(disk->bytes);
	}
	kfree(pair);
}

/* In its third life, which was not stopped; both copies of superblock and mark are alike. */
static inline void pair_format(struct pair *pair, enum formatted_layout layout)
{
	struct lc_sb *sb = &pair->sb_media;

	KUNIT_ASSERT_EQ(pair->test, formatted_sb(sb, PAIR_SSD_BYTES, LC_SEGMENT_BYTES_MIN), 0);
	formatted_lay_out(sb, layout, 4 * LC_MARK_BYTES >> SECTOR_SHIFT);
	sb->sb_seq = 7;
	sb->epoch = 3;
	sb->epoch_first_seq = 20;
	sb->tail_seq = 30;
	sb->tail_segment = 7;
	sb->next_seq = 40;
	sb->head_segment = 9;
	sb->mark_epoch = layout == LAYOUT_NO_MARK ? 0 : 2;
	sb->owner = PAIR_OWNER;
	sb->mark_owner = PAIR_MARK_OWNER;
	formatted_mark(sb, &pair->mark_media);
}

/* Formatted; gone when the test ends. */
static inline struct pair *pair_create(struct kunit *test, enum formatted_layout layout)
{
	struct pair *pair = kzalloc(sizeof(*pair), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, pair);
	pair->test = test;
	pair->failing = PAIR_NONE;
	pair->flushing = PAIR_NONE;
	pair->intruding = PAIR_NONE;
	for (i = 0; i < NR_DISKS; i++) {
		pair->disk[i].pair = pair;
		INIT_WORK(&pair->disk[i].work, pair_end_bio);
	}
	pair->env.sb = &pair->sb;
	pair->env.health = &pair->health;
	pair->health.env = &pair->env;
	lc_name_init(&pair->env.name, NULL, "kunit");
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pair_destroy, pair), 0);
	pair_format(pair, layout);
	lc_doubt_init(&pair->doubt, pair->sb_media.volume_sectors >> LC_BLOCK_SHIFT);
	pair->env.cache = pair_disk_create(pair, SSD, PAIR_SSD_BYTES);
	pair->env.backing = pair_disk_create(pair, HDD, pair->sb_media.backing_bytes);
	pair_put_both(pair);
	return pair;
}

#endif /* LC_TESTS_PAIR_H */
