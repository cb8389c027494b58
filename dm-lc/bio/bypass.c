// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of writes once the SSD was given up (mode degraded): straight to the HDD.
 *
 * In this mode the index lists the sectors that the HDD does not hold: those that are
 * lost, and those that are only on the SSD until the salvage has copied them (mask).
 * A write that covers such sectors makes them valid on the HDD, but not before it is
 * complete, so that a read never sees what the HDD held before (S-c).
 *
 * The salvage copies old data to blocks that users may write to at the same time.  So
 * that the new data wins, the salvage claims them (S-d).
 *
 * Writes on their way are counted in one of two generations.  A claim begins the other
 * generation and waits until the count of the old one is 0 (S-g).
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "bio/bypass.h"
#include "format/mask.h"
#include "log/cache.h"
#include "log/request.h"
#include "store/index.h"
#include "store/io.h"

struct lc_bypass {
	struct lc_cache *c;
	spinlock_t lock;		/* in completion context too; guards all below */
	bool watching;			/* count writes */
	const u64 *claimed;		/* sorted block numbers */
	u32 nr_claimed;
	u32 generation;			/* of writes that come: 0 or 1 */
	u64 in_flight[2];		/* writes in flight */
	struct list_head waiting;	/* struct lc_request, first come first served */
	wait_queue_head_t wait;
	atomic_t failed_flushes;	/* of users; lockless */
};

/* --- the rescue's side ----------------------------------------------------- */

struct lc_bypass *lc_bypass_create(struct lc_cache *c)
{
	struct lc_bypass *bypass = kzalloc(sizeof(*bypass), GFP_KERNEL);

	if (!bypass)
		return NULL;
	bypass->c = c;
	spin_lock_init(&bypass->lock);
	INIT_LIST_HEAD(&bypass->waiting);
	init_waitqueue_head(&bypass->wait);
	return bypass;
}

void lc_bypass_destroy(struct lc_bypass *bypass)
{
	kfree(bypass);
}

void lc_bypass_watch(struct lc_bypass *bypass, bool on)
{
	unsigned long flags;

	spin_lock_irqsave(&bypass->lock, flags);
	bypass->watching = on;
	spin_unlock_irqrestore(&bypass->lock, flags);
}

static bool all_ended(struct lc_bypass *bypass, u32 generation)
{
	bool ended;

	spin_lock_irq(&bypass->lock);
	ended = !bypass->in_flight[generation];
	spin_unlock_irq(&bypass->lock);
	return ended;
}

/* [lock] Begin another generation.  Return: the one before. */
static u32 next_generation(struct lc_bypass *bypass)
{
	u32 before = bypass->generation;

	lockdep_assert_held(&bypass->lock);
	/*
	 * The generation that begins is empty: it was waited for, and no write has joined it
	 * since.
	 */
	bypass->generation = !before;
	return before;
}

void lc_bypass_claim(struct lc_bypass *bypass, const u64 *blocks, u32 nr)
{
	u32 before;

	spin_lock_irq(&bypass->lock);
	bypass->claimed = blocks;
	bypass->nr_claimed = nr;
	before = next_generation(bypass);
	spin_unlock_irq(&bypass->lock);
	wait_event_idle(bypass->wait, all_ended(bypass, before));
}

void lc_bypass_wait_in_flight(struct lc_bypass *bypass)
{
	u32 before;

	spin_lock_irq(&bypass->lock);
	before = next_generation(bypass);
	spin_unlock_irq(&bypass->lock);
	wait_event_idle(bypass->wait, all_ended(bypass, before));
}

void lc_bypass_release(struct lc_bypass *bypass)
{
	struct lc_request *io, *next;
	LIST_HEAD(waiting);

	spin_lock_irq(&bypass->lock);
	bypass->nr_claimed = 0;
	list_splice_init(&bypass->waiting, &waiting);
	spin_unlock_irq(&bypass->lock);
	list_for_each_entry_safe(io, next, &waiting, list)
		lc_bypass_submit(bypass, io);
}

u32 lc_bypass_failed_flushes(struct lc_bypass *bypass)
{
	return atomic_read(&bypass->failed_flushes);
}

int lc_bypass_flush(struct lc_bypass *bypass)
{
	struct lc_env *env = &bypass->c->env;
	int ret = lc_io_flush(env, env->backing);

	if (ret)
		atomic_inc(&bypass->failed_flushes);
	return ret;
}

/* --- the writes' side -------------------------------------------------------- */

/* [lock] Is a block from @first up to @end claimed? */
static bool is_claimed(const struct lc_bypass *bypass, u64 first, u64 end)
{
	u32 low = 0, high = bypass->nr_claimed;

	lockdep_assert_held(&bypass->lock);
	while (low < high) {
		u32 middle = (low + high) / 2;

		if (bypass->claimed[middle] < first)
			low = middle + 1;
		else
			high = middle;
	}
	return low < bypass->nr_claimed && bypass->claimed[low] < end;
}

static u64 first_block(const struct lc_request *io)
{
	return io->iter.bi_sector >> LC_BLOCK_SHIFT;
}

static u64 end_block(const struct lc_request *io)
{
	return (io->iter.bi_sector + (io->iter.bi_size >> 9) + LC_BLOCK_SECTORS - 1) >>
	       LC_BLOCK_SHIFT;
}

/* Count a write, unless it has to wait; then it is in the list, or @nowait. */
static bool write_start(struct lc_bypass *bypass, struct lc_request *io, bool nowait)
{
	unsigned long flags;
	bool out = true;

	spin_lock_irqsave(&bypass->lock, flags);
	if (is_claimed(bypass, first_block(io), end_block(io))) {
		out = false;
		if (!nowait)
			list_add_tail(&io->list, &bypass->waiting);
	} else if (bypass->watching) {
		io->in_flight = 1 + bypass->generation;
		bypass->in_flight[bypass->generation]++;
	}
	spin_unlock_irqrestore(&bypass->lock, flags);
	return out;
}

static void write_end(struct lc_bypass *bypass, struct lc_request *io)
{
	unsigned long flags;

	if (!io->in_flight)
		return;
	spin_lock_irqsave(&bypass->lock, flags);
	if (!--bypass->in_flight[io->in_flight - 1])
		wake_up_all(&bypass->wait);
	spin_unlock_irqrestore(&bypass->lock, flags);
	io->in_flight = 0;
}

/* The sectors of @block that the bio covers. */
static u8 covered(const struct bvec_iter *iter, u64 block)
{
	u64 first = block << LC_BLOCK_SHIFT, end = iter->bi_sector + (iter->bi_size >> 9);
	u32 from = iter->bi_sector > first ? iter->bi_sector - first : 0;
	u32 to = min_t(u64, end - first, LC_BLOCK_SECTORS);

	return lc_mask_of(from, to - from);
}

/* Does the write cover sectors that the HDD does not hold? */
static bool covers_missing(struct lc_cache *c, const struct lc_request *io)
{
	u64 block = first_block(io), end = end_block(io);
	struct lc_mapping map;
	bool any = false;
	u32 bucket;

	for (; block < end && !any; block++) {
		bucket = lc_index_lock(c->index, block);
		any = lc_index_lookup(c->index, bucket, block, &map);
		if (any) {
			lc_cache_view(c, bucket, &map);
			any = (map.lost | map.mask) & covered(&io->iter, block);
		}
		lc_index_unlock(c->index, bucket);
	}
	return any;
}

/* The HDD holds what was written: now it may be read there. */
static void mark_hdd_valid(struct lc_cache *c, const struct lc_request *io)
{
	u64 block = first_block(io), end = end_block(io);
	u32 bucket;

	for (; block < end; block++) {
		bucket = lc_index_lock(c->index, block);
		lc_index_hdd_has(c->index, bucket, block, covered(&io->iter, block));
		lc_index_unlock(c->index, bucket);
	}
}

static void hdd_valid_work(struct work_struct *work)
{
	struct lc_request *io = container_of(work, struct lc_request, work);
	struct lc_bypass *bypass = io->owner;

	mark_hdd_valid(bypass->c, io);
	write_end(bypass, io);
	lc_io_end_again(lc_request_bio(io));
}

/* io->iter is where the bio goes.  Return: false if it has to wait. */
static bool aim_at_hdd(struct lc_bypass *bypass, struct bio *bio, struct lc_request *io,
		       bool nowait)
{
	struct lc_cache *c = bypass->c;

	/* FLUSHes, too: those that fail count before they have ended. */
	if (bio_op(bio) == REQ_OP_WRITE) {
		if (!write_start(bypass, io, nowait))
			return false;
		/* After that: what is missing may only become less until the write ends. */
		io->hdd_becomes_valid = (io->in_flight || lc_index_lost(c->index)) &&
					covers_missing(c, io);
	}
	bio->bi_iter = io->iter;
	bio_set_dev(bio, c->env.backing);
	if (io->iter.bi_size)
		bio->bi_iter.bi_sector = lc_place_sector(&c->env.place, io->iter.bi_sector);
	/* After bio_set_dev(), which looks for the sender's cgroup (S-g). */
	if (io->in_flight)
		lc_io_disown(bio);
	return true;
}

static void submit_work(struct work_struct *work)
{
	submit_bio_noacct(lc_request_bio(container_of(work, struct lc_request, work)));
}

/*
 * A claim may wait for this write (S-g).  Device mapper would put what map() hands back into its
 * sender's cgroup again.
 */
static void send_counted(struct lc_cache *c, struct bio *bio, struct lc_request *io)
{
	if (lc_io_may_send(bio)) {
		lc_io_leave_plug();
		submit_bio_noacct(bio);
		return;
	}
	INIT_WORK(&io->work, submit_work);
	queue_work(c->env.wq, &io->work);
}

/* A discard is a hint: of one that crosses the seam, only the part after the seam is sent (A2). */
static void leave_head(struct lc_cache *c, struct bio *bio)
{
	u64 n = lc_place_run(&c->env.place, bio->bi_iter.bi_sector, bio_sectors(bio));

	if (n == bio_sectors(bio))
		return;
	bio->bi_iter.bi_sector += n;
	bio->bi_iter.bi_size -= n << 9;
}

int lc_bypass_map(struct lc_bypass *bypass, struct bio *bio)
{
	struct lc_cache *c = bypass->c;
	struct lc_request *io = lc_bio_request(bio);
	bool nowait = bio->bi_opf & REQ_NOWAIT;

	if (bio_op(bio) == REQ_OP_DISCARD && !bdev_max_discard_sectors(c->env.backing)) {
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	}
	if (bio_op(bio) == REQ_OP_DISCARD)
		leave_head(c, bio);
	io->iter = bio->bi_iter;
	if (!aim_at_hdd(bypass, bio, io, nowait)) {
		if (nowait)
			bio_wouldblock_error(bio);
		return DM_MAPIO_SUBMITTED;
	}
	if (!io->in_flight)
		return DM_MAPIO_REMAPPED;
	send_counted(c, bio, io);
	return DM_MAPIO_SUBMITTED;
}

void lc_bypass_submit(struct lc_bypass *bypass, struct lc_request *io)
{
	struct bio *bio = lc_request_bio(io);

	if (aim_at_hdd(bypass, bio, io, false))
		submit_bio_noacct(bio);
}

int lc_bypass_end(struct lc_bypass *bypass, struct bio *bio, blk_status_t *error)
{
	struct lc_request *io = lc_bio_request(bio);

	if (io->hdd_becomes_valid && !*error) {
		io->hdd_becomes_valid = false;
		io->owner = bypass;
		INIT_WORK(&io->work, hdd_valid_work);
		queue_work(bypass->c->env.wq, &io->work);
		return DM_ENDIO_INCOMPLETE;
	}
	if (*error && bio->bi_opf & (REQ_PREFLUSH | REQ_FUA))
		atomic_inc(&bypass->failed_flushes);
	write_end(bypass, io);
	return DM_ENDIO_DONE;
}
