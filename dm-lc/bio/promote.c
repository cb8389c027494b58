// SPDX-License-Identifier: GPL-2.0-only
/*
 * Promotion of blocks that are read.  See promote.h.
 *
 * The order that keeps an old copy from becoming valid (GR1): each block is registered, then the
 * discards are asked for, then the read is sent.
 *  - A write that comes after the registration replaces the node, whatever becomes of the write.
 *  - A write that was before it is found by the registration: the block is not promoted.
 *  - A discard claims its blocks before it looks for copies.  So it finds the registered node and
 *    drops it, or its claim is found here and the block is forgotten.
 *  - What the HDD holds changes by writeback only for blocks that have a dirty copy.  A block that
 *    was absent when it was registered got its last copy on the HDD before it became absent.
 */
#include <linux/bio.h>
#include <linux/blk-cgroup.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "bio/group.h"
#include "bio/promote.h"
#include "bio/stream.h"
#include "log/cache.h"
#include "log/request.h"
#include "store/admit.h"
#include "store/claims.h"
#include "store/index.h"
#include "store/io.h"
#include "store/trace.h"

#define NR_TRANSFERS	32
#define MOST_BLOCKS	32u	/* 128 KiB, which is a file's readahead */
#define PAUSE		(10 * HZ)	/* after a read that failed */
/* Of the user's bio: what it is, and how urgent. */
#define KEPT_FLAGS	(REQ_SYNC | REQ_META | REQ_PRIO | REQ_IDLE | REQ_RAHEAD | REQ_SWAP)

/* A bio that reads blocks into a group, or writes those of a group, for a bio of a user. */
struct transfer {
	struct list_head list;		/* promote->idle */
	struct lc_promote *promote;
	struct bio *user;
	struct lc_group *group;
	u32 first, nr;			/* slots of the group */
	struct work_struct work;
	struct bio bio;
	struct bio_vec vecs[MOST_BLOCKS];
};

struct lc_promote {
	struct lc_cache *c;
	struct lc_groups *groups;
	spinlock_t lock;		/* for the next two */
	struct transfer *all;	/* NR_TRANSFERS, or NULL; lock */
	struct list_head idle;		/* lock */
	struct lc_streams streams;	/* of reads of the HDD */
	struct lc_streams written;	/* of writes there */
	unsigned long paused;		/* jiffies until which nothing is promoted; READ_ONCE() */
};

/* --- when it has been read -------------------------------------------------- */

/* Copy what the user wants of the blocks. */
static void copy_to_user_bio(const struct transfer *read)
{
	struct bio *bio = read->user;
	struct bvec_iter iter = bio->bi_iter;
	u32 skip = (iter.bi_sector & (LC_BLOCK_SECTORS - 1)) << SECTOR_SHIFT, i;

	for (i = read->first; iter.bi_size; i++, skip = 0)
		lc_io_copy_to_bio(bio, &iter, lc_group_page(read->group, i) + skip,
				  min(iter.bi_size, LC_SLOT_BYTES - skip));
}

static void make_idle(struct transfer *read)
{
	struct lc_promote *promote = read->promote;

	spin_lock(&promote->lock);
	list_add(&read->list, &promote->idle);
	spin_unlock(&promote->lock);
}

/*
 * The user's bio ends last: a suspend may follow at once.  The groups end before the volume does,
 * and a read is idle before its bio ends.
 */
static void read_work(struct work_struct *work)
{
	struct transfer *read = container_of(work, struct transfer, work);
	struct lc_cache *c = read->promote->c;
	blk_status_t status = read->bio.bi_status;
	struct bio *user = read->user;
	u64 block = user->bi_iter.bi_sector >> LC_BLOCK_SHIFT;

	bio_uninit(&read->bio);
	if (status) {
		lc_group_forget(read->group, read->first, read->nr);
		/* A disk that fails takes long for each read: widen none for a while. */
		WRITE_ONCE(read->promote->paused, jiffies + PAUSE);
	} else {
		copy_to_user_bio(read);
		trace_lc_promoted(c->env.dev, block, read->nr);
	}
	lc_group_put(read->group);
	make_idle(read);
	if (!status) {
		lc_request_end(lc_bio_request(user), status);
		return;
	}
	/* It may want less than whole blocks, and get that. */
	lc_request_aim_at_hdd(&c->env, user, lc_bio_request(user));
	submit_bio_noacct(user);
}

/* The blocks are still claimed: nobody else writes them before the user's bio ends. */
static void write_work(struct work_struct *work)
{
	struct transfer *write = container_of(work, struct transfer, work);
	struct lc_cache *c = write->promote->c;
	u64 block = write->user->bi_iter.bi_sector >> LC_BLOCK_SHIFT;
	blk_status_t status = write->bio.bi_status;
	struct bio *user = write->user;
	u32 i;

	bio_uninit(&write->bio);
	if (status)
		lc_group_forget(write->group, write->first, write->nr);
	else
		trace_lc_promoted(c->env.dev, block, write->nr);
	for (i = 0; i < write->nr; i++)
		lc_group_renewed(write->group, write->first + i, block + i);
	lc_group_put(write->group);
	make_idle(write);
	lc_request_end(lc_bio_request(user), status);
}

static void transfer_end(struct bio *bio)
{
	struct transfer *one = bio->bi_private;
	struct lc_cache *c = one->promote->c;

	/* Before a FLUSH of writeback is believed (DB3). */
	if (bio->bi_status && bio_op(bio) == REQ_OP_WRITE)
		lc_doubt_fua_failed(&c->doubt, bio->bi_opf);
	queue_work(one->promote->c->verify_wq, &one->work);
}

/* --- when it comes ------------------------------------------------------------ */

/*
 * The policy hears of each block.  If it would promote half of them, all are: what is read together
 * once is likely to be read together again.  Return: LC_ADMIT_* of the blocks, or 0.
 */
static u8 ask(struct lc_admit *admit, u32 stream, u64 block, u32 nr)
{
	u8 use = LC_ADMIT_PROMOTED | LC_ADMIT_FIRST, answer;
	u32 yes = 0, i;

	for (i = 0; i < nr; i++) {
		answer = lc_admit_miss(admit, block + i, stream);
		yes += !!answer;
		/* At the second touch of one, it is that of all. */
		if (answer)
			use &= answer;
	}
	return yes && 2 * yes >= nr ? use : 0;
}

/* The user reads what the HDD holds, but other sectors of the blocks may be cached. */
static bool any_cached(struct lc_cache *c, u64 block, u32 nr)
{
	struct lc_mapping map;
	bool found = false;
	u32 bucket, i;

	for (i = 0; i < nr && !found; i++) {
		if (lc_index_absent(c->index, block + i))
			continue;
		bucket = lc_index_lock(c->index, block + i);
		found = lc_index_lookup(c->index, bucket, block + i, &map);
		lc_index_unlock(c->index, bucket);
	}
	return found;
}

/* With slots of a group.  Return: it, or NULL. */
static struct transfer *take_transfer(struct lc_promote *promote, struct bio *user, u32 nr)
{
	struct transfer *one;

	spin_lock(&promote->lock);
	one = list_first_entry_or_null(&promote->idle, struct transfer, list);
	if (one)
		list_del(&one->list);
	spin_unlock(&promote->lock);
	if (!one)
		return NULL;
	one->user = user;
	one->nr = nr;
	one->group = lc_groups_take(promote->groups, nr, &one->first);
	if (one->group)
		return one;
	make_idle(one);
	return NULL;
}

/* The user's bio is counted already. */
static void send_work(struct work_struct *work)
{
	struct transfer *one = container_of(work, struct transfer, work);

	INIT_WORK(&one->work, bio_op(&one->bio) == REQ_OP_WRITE ? write_work : read_work);
	submit_bio_noacct(&one->bio);
}

static void init_bio(struct transfer *one, u64 block, blk_opf_t opf)
{
	struct lc_cache *c = one->promote->c;
	struct bio *bio = &one->bio;
	u32 i;

	bio_init(bio, c->env.backing, one->vecs, one->nr, opf);
	bio->bi_iter.bi_sector = lc_place_sector(&c->env.place, block << LC_BLOCK_SHIFT);
	for (i = 0; i < one->nr; i++) {
		void *page = lc_group_page(one->group, one->first + i);

		__bio_add_page(bio, virt_to_page(page), LC_SLOT_BYTES, offset_in_page(page));
	}
	bio->bi_private = one;
	bio->bi_end_io = transfer_end;
	INIT_WORK(&one->work, send_work);
}

static void send(struct transfer *read, u64 block)
{
	struct lc_cache *c = read->promote->c;
	struct bio *bio = &read->bio, *user = read->user;

	init_bio(read, block, REQ_OP_READ | (user->bi_opf & KEPT_FLAGS));
	bio_clone_blkg_association(bio, user);
	bio->bi_ioprio = user->bi_ioprio;
	/* A task that must not wait does not: a bio of many pieces may have to be split. */
	if (user->bi_opf & REQ_NOWAIT)
		queue_work(c->verify_wq, &read->work);
	else
		send_work(&read->work);
}

bool lc_promote_map(struct lc_promote *promote, struct bio *bio)
{
	struct lc_cache *c = promote->c;
	/* Pairs with lc_promote_enable(). */
	struct lc_admit *admit = smp_load_acquire(&c->admit);
	u64 block = bio->bi_iter.bi_sector >> LC_BLOCK_SHIFT;
	u64 end = DIV_ROUND_UP_ULL(bio_end_sector(bio), LC_BLOCK_SECTORS);
	struct transfer *read;
	u32 stream, kb, nr, i;
	u8 use;

	if (!admit)
		return false;
	/* Also of those that are too long: what follows them belongs to their stream. */
	stream = lc_stream_note(&promote->streams, bio->bi_iter.bi_sector, bio_sectors(bio));
	kb = READ_ONCE(c->env.params.bypass_kb);
	if (end - block > MOST_BLOCKS || (kb && stream / 2 > kb) ||
	    end << LC_BLOCK_SHIFT > c->sb.volume_sectors ||
	    lc_mode(&c->health) != LC_MODE_RW || lc_ssd_failed(&c->health) ||
	    !time_after_eq(jiffies, READ_ONCE(promote->paused)))
		return false;
	nr = end - block;
	if (any_cached(c, block, nr))
		return false;
	use = ask(admit, stream, block, nr);
	if (!use)
		return false;
	read = take_transfer(promote, bio, nr);
	if (!read)
		return false;
	for (i = 0; i < nr; i++)
		lc_group_register(read->group, read->first + i, block + i, use);
	if (lc_claims_discards(c->claims, block, end - 1))
		lc_group_forget(read->group, read->first, nr);
	lc_bio_request(bio)->on_hdd = true;
	lc_stamp(&c->env.last_hdd_read);
	send(read, block);
	return true;
}

/*
 * A block that is cached is renewed.  For others the policy is asked, as if they were read.
 * Return: LC_ADMIT_* of the blocks, or 0.
 */
static u8 ask_written(struct lc_cache *c, struct lc_admit *admit, u32 stream, u64 block, u32 nr)
{
	u8 use = LC_ADMIT_PROMOTED | LC_ADMIT_FIRST, answer;
	u32 yes = 0, i;

	for (i = 0; i < nr; i++) {
		answer = any_cached(c, block + i, 1) ? LC_ADMIT_PROMOTED :
						       lc_admit_miss(admit, block + i, stream);
		yes += !!answer;
		if (answer)
			use &= answer;
	}
	return yes && 2 * yes >= nr ? use : 0;
}

/* The user may change the pages of the bio: HDD and SSD get what is in ours. */
static void copy_from_user_bio(const struct transfer *write)
{
	struct bvec_iter iter = write->user->bi_iter;
	u32 i;

	for (i = 0; i < write->nr; i++)
		lc_io_copy_from_bio(write->user, &iter,
				    lc_group_page(write->group, write->first + i), LC_SLOT_BYTES);
}

bool lc_promote_write(struct lc_promote *promote, struct bio *bio, struct workqueue_struct *wq)
{
	struct lc_cache *c = promote->c;
	/* Pairs with lc_promote_enable(). */
	struct lc_admit *admit = smp_load_acquire(&c->admit);
	u64 block = bio->bi_iter.bi_sector >> LC_BLOCK_SHIFT;
	u32 nr = bio_sectors(bio) >> LC_BLOCK_SHIFT, stream, kb, i;
	struct transfer *write;
	u8 use;

	if (!admit || !READ_ONCE(c->env.params.read_cache))
		return false;
	stream = lc_stream_note(&promote->written, bio->bi_iter.bi_sector, bio_sectors(bio));
	kb = READ_ONCE(c->env.params.bypass_kb);
	if ((bio->bi_iter.bi_sector | bio_sectors(bio)) & (LC_BLOCK_SECTORS - 1) ||
	    nr > MOST_BLOCKS || (kb && stream / 2 > kb))
		return false;
	use = ask_written(c, admit, stream, block, nr);
	write = use ? take_transfer(promote, bio, nr) : NULL;
	if (!write)
		return false;
	for (i = 0; i < nr; i++)
		lc_group_renew(write->group, write->first + i, block + i, use);
	copy_from_user_bio(write);
	init_bio(write, block, REQ_OP_WRITE | (bio->bi_opf & (KEPT_FLAGS | REQ_FUA)));
	lc_io_disown(&write->bio);
	if (wq) {
		queue_work(wq, &write->work);
	} else {
		lc_io_leave_plug();
		send_work(&write->work);
	}
	return true;
}

/* --- life --------------------------------------------------------------------- */

int lc_promote_enable(struct lc_promote *promote)
{
	struct lc_cache *c = promote->c;
	struct transfer *all;
	struct lc_admit *admit;
	u32 i;
	int ret;

	/* Pairs with the release below. */
	if (smp_load_acquire(&c->admit))
		return 0;
	all = kvcalloc(NR_TRANSFERS, sizeof(*all), GFP_KERNEL);
	admit = lc_admit_create(c->sb.geo.nr_slots, c->sb.geo.seg_slots);
	ret = all && admit ? lc_groups_enable(promote->groups) : -ENOMEM;
	spin_lock(&promote->lock);
	if (!ret && !promote->all) {
		for (i = 0; i < NR_TRANSFERS; i++) {
			all[i].promote = promote;
			list_add_tail(&all[i].list, &promote->idle);
		}
		promote->all = all;
		all = NULL;
		/* Pairs with lc_promote_map() and the refill worker. */
		smp_store_release(&c->admit, admit);
		admit = NULL;
	}
	spin_unlock(&promote->lock);
	/* Another task was first, or memory was short. */
	lc_admit_destroy(admit);
	kvfree(all);
	return ret;
}

struct lc_promote *lc_promote_create(struct lc_cache *c, struct lc_groups *groups)
{
	struct lc_promote *promote = kzalloc(sizeof(*promote), GFP_KERNEL);

	if (!promote)
		return NULL;
	promote->c = c;
	promote->groups = groups;
	spin_lock_init(&promote->lock);
	INIT_LIST_HEAD(&promote->idle);
	promote->paused = jiffies;
	lc_stream_init(&promote->streams);
	lc_stream_init(&promote->written);
	return promote;
}

void lc_promote_destroy(struct lc_promote *promote)
{
	if (!promote)
		return;
	lc_admit_destroy(promote->c->admit);
	kvfree(promote->all);
	kfree(promote);
}
