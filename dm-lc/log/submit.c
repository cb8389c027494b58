// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of a closed record to the SSD.  See submit.h.
 *
 * The last writer of the record has left, so its image does not change any more (B1).  Its slots
 * are summed, its header is finished, and one bio writes both.  Bios come from a pool of their
 * own, so that a record can always be written.  The task that waits for a small record sends it
 * itself, and must not sleep for memory: it takes one of a few bios that exist for that.
 *
 * Workers do not send all records at once.  In the SSD a FLUSH may wait for all writes that got
 * there before it, and until it ends no buffer is free.  So at most a twentieth of what the
 * buffers hold, or two records, is on its way; to a slow SSD, what it writes soon, or one record
 * (SU1).  Other records wait for their turn in the order in which they came.  A record that is
 * written again does not wait: until it is written, hardly any record after it can be durable.
 */
#include <linux/bio.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "log/backlog.h"
#include "log/record.h"
#include "log/submit.h"
#include "store/env.h"
#include "store/io.h"
#include "store/ring.h"
#include "store/sums.h"
#include "store/trace.h"

#define NR_DIRECT	16
#define DIRECT_SLOTS	9	/* a header and 8 blocks */
#define ON_WAY_SHARE	20	/* one in so many slots of the buffers, or if that is less */
#define ON_WAY_RECORDS	2	/* the largest: one is summed while the other is on its way */

struct direct {
	struct bio bio;
	struct bio_vec vecs[DIRECT_SLOTS];
};

struct lc_submit {
	struct lc_env *env;
	struct lc_ring *ring;
	struct lc_pool *pool;
	struct lc_sums *sums;
	u32 nr_lanes;
	/* Constant after lc_submit_bind(). */
	const struct lc_submit_ops *ops;
	struct lc_log *log;
	struct workqueue_struct *wq;

	u32 piece;			/* blocks of a record, at most; 0: all; READ_ONCE() */
	struct bio_set bios;
	struct direct *direct;		/* NR_DIRECT; each belongs to the task that set its bit */
	unsigned long busy;		/* bits */
	spinlock_t lock;		/* in completion context too */
	struct list_head waiting;	/* records; lock */
	u64 on_way;			/* slots; lock */
	u64 unwritten;			/* these, and of those that wait; lock, READ_ONCE() */
	struct lc_backlog backlog;	/* lock; its rate is read without it, too */
};

struct lc_submit *lc_submit_create(struct lc_env *env, struct lc_ring *ring, struct lc_pool *pool,
				   struct lc_sums *sums, u32 nr_lanes)
{
	struct lc_submit *submit = kzalloc(sizeof(*submit), GFP_KERNEL);

	if (!submit)
		return NULL;
	submit->env = env;
	submit->ring = ring;
	submit->pool = pool;
	submit->sums = sums;
	submit->nr_lanes = nr_lanes;
	spin_lock_init(&submit->lock);
	INIT_LIST_HEAD(&submit->waiting);
	submit->direct = kcalloc(NR_DIRECT, sizeof(*submit->direct), GFP_KERNEL);
	if (!submit->direct)
		goto free_submit;
	if (bioset_init(&submit->bios, 16, 0, BIOSET_NEED_BVECS))
		goto free_direct;
	lc_pool_bind(pool, submit);
	return submit;

free_direct:
	kfree(submit->direct);
free_submit:
	kfree(submit);
	return NULL;
}

void lc_submit_bind(struct lc_submit *submit, const struct lc_submit_ops *ops, struct lc_log *log,
		    struct workqueue_struct *wq)
{
	submit->ops = ops;
	submit->log = log;
	submit->wq = wq;
}

void lc_submit_destroy(struct lc_submit *submit)
{
	if (!submit)
		return;
	WARN_ON_ONCE(submit->busy || !lc_submit_idle(submit));
	bioset_exit(&submit->bios);
	kfree(submit->direct);
	kfree(submit);
}

static void record_work(struct work_struct *work);

/* --- whose turn it is ----------------------------------------------------- */

static s64 record_slots(const struct lc_record *rec)
{
	return LC_HEADER_SLOTS + rec->nr_slots;
}

/* [lock] */
static void count_unwritten(struct lc_submit *submit, s64 slots)
{
	lockdep_assert_held(&submit->lock);
	WRITE_ONCE(submit->unwritten, submit->unwritten + slots);
}

/* [lock] */
static bool may_start(const struct lc_submit *submit, const struct lc_record *rec)
{
	u32 seg_slots = submit->env->sb->geo.seg_slots;
	u64 all = (u64)READ_ONCE(submit->pool->nr) * seg_slots;
	u64 few = ON_WAY_RECORDS * min_t(u32, seg_slots, LC_HEADER_SLOTS + LC_RECORD_ENTRIES);
	u64 most = max(div_u64(all, ON_WAY_SHARE), few);

	lockdep_assert_held(&submit->lock);
	if (READ_ONCE(submit->piece))
		most = min_t(u64, most, lc_backlog_slots(&submit->backlog));
	return !submit->on_way || submit->on_way + record_slots(rec) <= most;
}

/* [lock] Have a worker send it. */
static void start_record(struct lc_submit *submit, struct lc_record *rec)
{
	lockdep_assert_held(&submit->lock);
	if (!submit->on_way)
		lc_backlog_begin(&submit->backlog, ktime_get_ns());
	submit->on_way += record_slots(rec);
	INIT_WORK(&rec->work, record_work);
	queue_work(submit->wq, &rec->work);
}

/* [lock] */
static void start_waiting(struct lc_submit *submit)
{
	struct lc_record *rec;

	lockdep_assert_held(&submit->lock);
	while ((rec = list_first_entry_or_null(&submit->waiting, struct lc_record, link)) &&
	       may_start(submit, rec)) {
		list_del(&rec->link);
		start_record(submit, rec);
	}
}

/* Have a record sent by a worker when it is its turn. */
static void enter(struct lc_submit *submit, struct lc_record *rec)
{
	unsigned long flags;

	spin_lock_irqsave(&submit->lock, flags);
	count_unwritten(submit, record_slots(rec));
	list_add_tail(&rec->link, &submit->waiting);
	start_waiting(submit);
	spin_unlock_irqrestore(&submit->lock, flags);
}

void lc_submit_again(struct lc_submit *submit, struct lc_record *rec)
{
	unsigned long flags;

	spin_lock_irqsave(&submit->lock, flags);
	count_unwritten(submit, record_slots(rec));
	start_record(submit, rec);
	spin_unlock_irqrestore(&submit->lock, flags);
}

/* What a worker was told to send is over. */
static void leave(struct lc_submit *submit, const struct lc_record *rec)
{
	unsigned long flags;

	spin_lock_irqsave(&submit->lock, flags);
	lc_backlog_end(&submit->backlog, ktime_get_ns(), record_slots(rec));
	submit->on_way -= record_slots(rec);
	count_unwritten(submit, -record_slots(rec));
	start_waiting(submit);
	spin_unlock_irqrestore(&submit->lock, flags);
}

u32 lc_submit_most(const struct lc_submit *submit)
{
	return lc_backlog_most(&submit->backlog, submit->env->sb->geo.seg_slots, submit->nr_lanes);
}

void lc_submit_adapt(struct lc_submit *submit)
{
	u32 seg_slots = submit->env->sb->geo.seg_slots;

	WRITE_ONCE(submit->piece,
		   lc_backlog_piece(&submit->backlog, seg_slots, submit->nr_lanes));
}

u32 lc_submit_piece(const struct lc_submit *submit)
{
	return READ_ONCE(submit->piece);
}

bool lc_submit_enough(const struct lc_submit *submit)
{
	u32 piece = READ_ONCE(submit->piece);

	return piece && READ_ONCE(submit->unwritten) >= 2ull * piece;
}

bool lc_submit_idle(struct lc_submit *submit)
{
	unsigned long flags;
	bool idle;

	spin_lock_irqsave(&submit->lock, flags);
	idle = !submit->on_way && list_empty(&submit->waiting);
	spin_unlock_irqrestore(&submit->lock, flags);
	return idle;
}

/* --- the image ----------------------------------------------------------- */

static void sum_slots(struct lc_submit *submit, const struct lc_record *rec)
{
	u32 first = rec->first_slot + LC_HEADER_SLOTS;
	u32 base = (rec->buf->position << submit->ring->slot_shift) + first, i;
	struct lc_record_header *raw = lc_record_image(rec);
	u32 csum;

	for (i = 0; i < rec->nr_slots; i++) {
		if (raw->entries[i].type != LC_ENTRY_DATA)
			continue;
		csum = lc_format_slot_csum(submit->env->sb, lc_entry_block(&raw->entries[i]),
					   rec->buf->slots[first + i]);
		raw->entries[i].csum = cpu_to_le32(csum);
		lc_sums_put(submit->sums, base + i, csum);
	}
}

/*
 * Sum the slots and finish the header.  The same record may be sealed again, to be written again.
 * Process context, does not sleep.
 */
static void seal(struct lc_submit *submit, struct lc_record *rec)
{
	const struct lc_entry_info hole = { .type = LC_ENTRY_NONE };
	const struct lc_sb *sb = submit->env->sb;
	struct lc_record_info info = {
		.segment = rec->buf->segment,
		.first_slot = rec->first_slot,
		.seq = rec->seq,
		.epoch = sb->epoch,
		.epoch_first_seq = sb->epoch_first_seq,
		.boundary = rec->buf->boundary,
		.tail_seq = lc_ring_tail_seq(submit->ring),
		.durable_seq = submit->ops->durable_seq(submit->log),
		.wall_clock = ktime_get_real_ns(),
		.lane = rec->buf->lane_pool,
		.type = rec->type,
		.nr_entries = rec->nr_slots,
		.nr_slots = rec->nr_slots,
	};

	sum_slots(submit, rec);
	if (!rec->nr_slots) {
		/* A tombstone, or all slots were given back: then its one entry is NONE. */
		info.type = LC_RECORD_RANGE;
		info.nr_entries = rec->nr_ranges;
	}
	if (!info.nr_entries) {
		lc_entry_encode(lc_record_image(rec), 0, &hole);
		info.nr_entries = 1;
	}
	lc_record_seal(lc_record_image(rec), sb, &info);
}

/* --- the bio ------------------------------------------------------------- */

static void pool_end(struct bio *bio)
{
	struct lc_record *rec = bio->bi_private;
	struct lc_submit *submit = rec->buf->pool->submit;
	blk_status_t status = bio->bi_status;

	bio_put(bio);
	leave(submit, rec);
	submit->ops->end(submit->log, rec, status);
}

static void direct_put(struct lc_submit *submit, struct bio *bio)
{
	bio_uninit(bio);
	clear_bit_unlock(container_of(bio, struct direct, bio) - submit->direct, &submit->busy);
}

static void direct_end(struct bio *bio)
{
	struct lc_record *rec = bio->bi_private;
	struct lc_submit *submit = rec->buf->pool->submit;
	blk_status_t status = bio->bi_status;

	direct_put(submit, bio);
	submit->ops->end(submit->log, rec, status);
}

/* The record holds data of other tasks, too. */
static struct bio *direct_get(struct lc_submit *submit)
{
	struct direct *direct;
	unsigned int i;

	for (i = 0; i < NR_DIRECT; i++) {
		if (!test_bit(i, &submit->busy) && !test_and_set_bit_lock(i, &submit->busy))
			break;
	}
	if (i == NR_DIRECT)
		return NULL;
	direct = &submit->direct[i];
	/* Without the device: that would look for the sender's own cgroup there. */
	bio_init(&direct->bio, NULL, direct->vecs, DIRECT_SLOTS,
		 REQ_OP_WRITE | LC_IO_COMMIT);
	direct->bio.bi_bdev = submit->env->cache;
	lc_io_disown(&direct->bio);
	direct->bio.bi_end_io = direct_end;
	return &direct->bio;
}

/*
 * Get a bio for a record.  Without @direct, it is the record's turn.  With @direct, does not
 * sleep, and returns NULL if the record is large or all places are busy.
 */
static struct bio *prepare(struct lc_submit *submit, struct lc_record *rec, bool direct)
{
	u32 nr = LC_HEADER_SLOTS + rec->nr_slots;
	struct bio *bio;

	if (!direct) {
		bio = bio_alloc_bioset(submit->env->cache, nr, REQ_OP_WRITE | LC_IO_COMMIT,
				       GFP_NOIO, &submit->bios);
		bio->bi_end_io = pool_end;
	} else {
		bio = nr <= DIRECT_SLOTS ? direct_get(submit) : NULL;
	}
	if (bio)
		bio->bi_private = rec;
	return bio;
}

/* Give a bio back that was not submitted. */
static void cancel(struct lc_submit *submit, struct bio *bio)
{
	const struct lc_record *rec = bio->bi_private;

	if (bio->bi_end_io != pool_end) {
		direct_put(submit, bio);
		return;
	}
	bio_put(bio);
	leave(submit, rec);
}

/*
 * Submit the bio of a sealed record, or add it to @later.  Without @later, may sleep as
 * submit_bio() does.  It ends in pool_end() or direct_end(), perhaps before this returns.
 */
static void submit_or_add(struct lc_submit *submit, struct bio *bio, bool fua,
			  struct bio_list *later)
{
	const struct lc_record *rec = bio->bi_private;
	u32 nr = LC_HEADER_SLOTS + rec->nr_slots, i, n;
	const struct lc_buffer *buf = rec->buf;

	if (fua)
		bio->bi_opf |= REQ_FUA;
	bio->bi_iter.bi_sector =
		lc_format_slot_address(&submit->env->sb->geo, buf->position, rec->first_slot) >> 9;
	for (i = 0; i < nr; i += n) {
		void *slot = buf->slots[rec->first_slot + i];
		u32 bytes;

		n = lc_buffer_adjacent(buf, rec->first_slot + i, nr - i);
		bytes = n * LC_SLOT_BYTES;
		if (bio_add_page(bio, virt_to_page(slot), bytes, 0) != bytes) {
			WARN_ON_ONCE(1);
			bio_io_error(bio);
			return;
		}
	}
	lc_env_sent(submit->env, submit->env->cache, bio->bi_opf, bio->bi_iter.bi_size);
	trace_lc_record_sent(submit->env->dev, rec->seq, rec->nr_slots, fua);
	if (later)
		bio_list_add(later, bio);
	else
		submit_bio(bio);
}

void lc_submit_bios(struct bio_list *bios)
{
	struct bio *bio;

	while ((bio = bio_list_pop(bios)))
		submit_bio(bio);
}

/*
 * Will the SSD get a record in one piece for certain?  That is, within what every queue takes,
 * 4 KiB segments counted singly.
 */
static bool is_one_command(const struct lc_submit *submit, const struct lc_record *rec)
{
	struct block_device *cache = submit->env->cache;
	u32 nr = LC_HEADER_SLOTS + rec->nr_slots;

	return nr <= bdev_max_segments(cache) &&
	       nr <= queue_max_sectors(bdev_get_queue(cache)) >> LC_BLOCK_SHIFT;
}

/* Return: whether that was possible here and now; always, if not @direct. */
static bool write_record(struct lc_submit *submit, struct lc_record *rec, struct bio_list *direct)
{
	struct bio *bio = prepare(submit, rec, direct);
	bool fua;

	if (!bio)
		return false;
	seal(submit, rec);
	if (submit->ops->begin(submit->log, rec, is_one_command(submit, rec), &fua)) {
		submit_or_add(submit, bio, fua, direct);
	} else {
		cancel(submit, bio);
		submit->ops->cancelled(submit->log);
	}
	return true;
}

static void record_work(struct work_struct *work)
{
	struct lc_record *rec = container_of(work, struct lc_record, work);

	write_record(rec->buf->pool->submit, rec, NULL);
}

void lc_submit_record(struct lc_submit *submit, struct lc_record *rec, struct bio_list *direct)
{
	trace_lc_record_ready(submit->env->dev, rec->seq, rec->buf->segment, rec->first_slot,
			      rec->nr_slots);
	if (!direct || !write_record(submit, rec, direct))
		enter(submit, rec);
}
