// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of a closed record to the SSD.
 *
 * Its last writer has left, so nobody changes its image any more (B1): it is summed, its
 * header finished, and one bio writes both.  Bios come from a pool that nobody else uses,
 * so that a record can always be written; or, for small records that are sent by whoever
 * waits for them, from a few places that need no memory at all, because he must not sleep
 * for it.
 *
 * Not all that workers are to send is sent at once, only a twentieth of what the buffers hold,
 * or two records, and of a slow SSD what it writes soon, or one record (W): a FLUSH may wait in the
 * SSD behind all writes that got there before it, and until it ends no buffer is free.  Others
 * wait for their turn, in the order in which they came.  One that must be written again has had
 * its turn: without it hardly any of those that wait can become durable.
 *
 * Invariant
 *  W  A record is counted in on_way from its turn, when a worker is told to send it, until
 *     its bio has ended or was given back; one that is sent by whoever waits, never.  If a
 *     record waits for its turn, then on_way is not 0: whoever takes from it looks whose
 *     turn it is.  So each gets its turn as long as the SSD answers, also to learn that the
 *     log was stopped (G5).
 */
#include <linux/bio.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "lc.h"
#include "backlog.h"
#include "record.h"
#include "io.h"
#include "lane.h"
#include "log.h"
#include "segment.h"
#include "send.h"
#include "sums.h"

#define NR_DIRECT	16
#define DIRECT_SLOTS	9	/* a header and 8 blocks */
#define ON_WAY_SHARE	20	/* one in so many slots of the buffers, or if that is less */
#define ON_WAY_RECORDS	2	/* the largest: one is summed while the other is on its way */

struct direct {
	struct bio bio;
	struct bio_vec vecs[DIRECT_SLOTS];
};

struct lc_send {
	struct lc_core *core;
	struct bio_set bios;
	struct direct *direct;		/* NR_DIRECT; each is his who set its bit */
	unsigned long busy;		/* bits */
	spinlock_t lock;		/* in completion context too */
	struct list_head waiting;	/* records; lock */
	u64 on_way;			/* slots; lock */
	u64 unwritten;			/* these, and of those that wait; lock, READ_ONCE() */
	struct lc_backlog backlog;	/* lock, but for lc_backlog_most() */
};

/**
 * lc_send_create() - allocate the pools
 * @core: the volume
 *
 * May sleep.  Return: the room or NULL.
 */
struct lc_send *lc_send_create(struct lc_core *core)
{
	struct lc_send *send = kzalloc(sizeof(*send), GFP_KERNEL);

	if (!send)
		return NULL;
	send->core = core;
	spin_lock_init(&send->lock);
	INIT_LIST_HEAD(&send->waiting);
	send->direct = kcalloc(NR_DIRECT, sizeof(*send->direct), GFP_KERNEL);
	if (!send->direct)
		goto free_send;
	if (bioset_init(&send->bios, 16, 0, BIOSET_NEED_BVECS))
		goto free_direct;
	return send;

free_direct:
	kfree(send->direct);
free_send:
	kfree(send);
	return NULL;
}

/* No record is on its way any more. */
void lc_send_destroy(struct lc_send *send)
{
	if (!send)
		return;
	WARN_ON_ONCE(send->busy || !lc_send_idle(send));
	bioset_exit(&send->bios);
	kfree(send->direct);
	kfree(send);
}

/* --- whose turn it is ----------------------------------------------------- */

static s64 record_slots(const struct lc_record *rec)
{
	return LC_HEADER_SLOTS + rec->nr_slots;
}

/* [lock] */
static void count_unwritten(struct lc_send *send, s64 slots)
{
	WRITE_ONCE(send->unwritten, send->unwritten + slots);
}

/* [lock] */
static bool has_room(const struct lc_send *send, const struct lc_record *rec)
{
	u32 seg_slots = send->core->sb.geo.seg_slots;
	u64 all = (u64)READ_ONCE(send->core->pool->nr) * seg_slots;
	u64 few = ON_WAY_RECORDS * min_t(u32, seg_slots, LC_HEADER_SLOTS + LC_RECORD_ENTRIES);
	u64 most = max(div_u64(all, ON_WAY_SHARE), few);

	if (READ_ONCE(send->core->head->piece))
		most = min_t(u64, most, lc_backlog_slots(&send->backlog));
	return !send->on_way || send->on_way + record_slots(rec) <= most;
}

/* [lock] Have a worker send it. */
static void give_turn(struct lc_send *send, struct lc_record *rec)
{
	if (!send->on_way)
		lc_backlog_begin(&send->backlog, ktime_get_ns());
	send->on_way += record_slots(rec);
	lc_log_turn(send->core->log, rec);
}

/* [lock] */
static void take_turns(struct lc_send *send)
{
	struct lc_record *rec;

	while ((rec = list_first_entry_or_null(&send->waiting, struct lc_record, turn)) &&
	       has_room(send, rec)) {
		list_del(&rec->turn);
		give_turn(send, rec);
	}
}

/**
 * lc_send_enter() - have a record sent by a worker when it is its turn
 * @send: the room
 * @rec: closed, and left by its writers
 *
 * Any context.  lc_log_turn() is called for it, perhaps before this returns.
 */
void lc_send_enter(struct lc_send *send, struct lc_record *rec)
{
	unsigned long flags;

	spin_lock_irqsave(&send->lock, flags);
	count_unwritten(send, record_slots(rec));
	list_add_tail(&rec->turn, &send->waiting);
	take_turns(send);
	spin_unlock_irqrestore(&send->lock, flags);
}

/**
 * lc_send_again() - have a record sent by a worker that was sent before
 * @send: the room
 * @rec: its write failed, or what came of it is in doubt
 *
 * Under log->lock.  As lc_send_enter(), but it does not wait for its turn.
 */
void lc_send_again(struct lc_send *send, struct lc_record *rec)
{
	unsigned long flags;

	spin_lock_irqsave(&send->lock, flags);
	count_unwritten(send, record_slots(rec));
	give_turn(send, rec);
	spin_unlock_irqrestore(&send->lock, flags);
}

/* What a worker was told to send is over. */
static void leave(struct lc_send *send, const struct lc_record *rec)
{
	unsigned long flags;

	spin_lock_irqsave(&send->lock, flags);
	lc_backlog_end(&send->backlog, ktime_get_ns(), record_slots(rec));
	send->on_way -= record_slots(rec);
	count_unwritten(send, -record_slots(rec));
	take_turns(send);
	spin_unlock_irqrestore(&send->lock, flags);
}

/**
 * lc_send_most() - how much may there be that is not on the SSD?
 * @send: the room
 *
 * Any context.  Return: segments of each lane, those that are open or ready included.
 */
u32 lc_send_most(const struct lc_send *send)
{
	const struct lc_core *core = send->core;

	return lc_backlog_most(&send->backlog, core->sb.geo.seg_slots, core->nr_lanes);
}

/**
 * lc_send_piece() - how many blocks may a record have?
 * @send: the room
 *
 * Any context.  Return: blocks, or 0: as many as there is room for, since the SSD is not slow.
 */
u32 lc_send_piece(const struct lc_send *send)
{
	const struct lc_core *core = send->core;

	return lc_backlog_piece(&send->backlog, core->sb.geo.seg_slots, core->nr_lanes);
}

/**
 * lc_send_enough() - has a slow SSD enough to do for now?
 * @send: the room
 *
 * Any context.  If so, a record is on its way.
 */
bool lc_send_enough(const struct lc_send *send)
{
	u32 piece = READ_ONCE(send->core->head->piece);

	return piece && READ_ONCE(send->unwritten) >= 2ull * piece;
}

/* Nothing waits, and nothing that waited is on its way. */
bool lc_send_idle(struct lc_send *send)
{
	unsigned long flags;
	bool idle;

	spin_lock_irqsave(&send->lock, flags);
	idle = !send->on_way && list_empty(&send->waiting);
	spin_unlock_irqrestore(&send->lock, flags);
	return idle;
}

/* --- the image ----------------------------------------------------------- */

static void sum_slots(struct lc_core *core, const struct lc_record *rec)
{
	u32 first = rec->first_slot + LC_HEADER_SLOTS;
	u32 base = (rec->buf->position << core->ring->slot_shift) + first, i;
	struct lc_record_header *raw = lc_record_image(rec);
	struct lc_entry_info entry;

	for (i = 0; i < rec->nr_slots; i++) {
		lc_entry_decode(raw, i, &entry);
		if (entry.type != LC_ENTRY_DATA)
			continue;
		entry.csum = lc_format_slot_csum(&core->sb, entry.block,
						 rec->buf->slots[first + i]);
		lc_entry_encode(raw, i, &entry);
		lc_sums_put(core, base + i, entry.csum);
	}
}

/**
 * lc_send_seal() - sum the slots and finish the header
 * @core: the volume
 * @rec: closed, and left by its writers
 * @durable_seq: of the log, now
 *
 * Process context, does not sleep.  The same record may be sealed again, to be written
 * again.
 */
void lc_send_seal(struct lc_core *core, struct lc_record *rec, u64 durable_seq)
{
	struct lc_record_info info = {
		.segment = rec->buf->segment,
		.first_slot = rec->first_slot,
		.seq = rec->seq,
		.epoch = core->sb.epoch,
		.epoch_first_seq = core->sb.epoch_first_seq,
		.cut = rec->buf->cut,
		.tail_seq = lc_ring_tail_seq(core->ring),
		.durable_seq = durable_seq,
		.wall_clock = ktime_get_real_ns(),
		.lane = rec->buf->home,
		.type = rec->type,
		.nr_entries = rec->nr_slots,
		.nr_slots = rec->nr_slots,
	};

	sum_slots(core, rec);
	if (!rec->nr_slots) {
		/* A tombstone, or every slot was given back: then a hole stands for nothing. */
		info.type = LC_RECORD_RANGE;
		info.nr_entries = max(rec->nr_ranges, 1u);
	}
	lc_record_seal(lc_record_image(rec), &core->sb, &info);
}

/* --- the bio ------------------------------------------------------------- */

static void pool_end(struct bio *bio)
{
	struct lc_record *rec = bio->bi_private;
	blk_status_t status = bio->bi_status;

	bio_put(bio);
	leave(rec->buf->lane->core->send, rec);
	lc_log_written(rec->buf->lane->core->log, rec, status);
}

static void direct_put(struct lc_send *send, struct bio *bio)
{
	bio_uninit(bio);
	clear_bit_unlock(container_of(bio, struct direct, bio) - send->direct, &send->busy);
}

static void direct_end(struct bio *bio)
{
	struct lc_record *rec = bio->bi_private;
	struct lc_core *core = rec->buf->lane->core;
	blk_status_t status = bio->bi_status;

	direct_put(core->send, bio);
	lc_log_written(core->log, rec, status);
}

/* What is in the record is not its sender's alone. */
static struct bio *direct_get(struct lc_send *send)
{
	struct direct *direct;
	unsigned int i;

	for (i = 0; i < NR_DIRECT; i++) {
		if (!test_bit(i, &send->busy) && !test_and_set_bit_lock(i, &send->busy))
			break;
	}
	if (i == NR_DIRECT)
		return NULL;
	direct = &send->direct[i];
	/* Without the device: that would look for the sender's own cgroup there. */
	bio_init(&direct->bio, NULL, direct->vecs, DIRECT_SLOTS,
		 REQ_OP_WRITE | LC_IO_COMMIT);
	direct->bio.bi_bdev = send->core->env.cache;
	lc_io_disown(&direct->bio);
	direct->bio.bi_end_io = direct_end;
	return &direct->bio;
}

/**
 * lc_send_prepare() - get a bio for a record
 * @send: the room
 * @rec: closed, and left by its writers
 * @direct: for whoever waits for the record; does not sleep then
 *
 * Without @direct, it is the record's turn.  Return: the bio; with @direct, NULL if the
 * record is large or all places are busy.
 */
struct bio *lc_send_prepare(struct lc_send *send, struct lc_record *rec, bool direct)
{
	u32 nr = LC_HEADER_SLOTS + rec->nr_slots;
	struct bio *bio;

	if (!direct) {
		bio = bio_alloc_bioset(send->core->env.cache, nr, REQ_OP_WRITE | LC_IO_COMMIT,
				       GFP_NOIO, &send->bios);
		bio->bi_end_io = pool_end;
	} else {
		bio = nr <= DIRECT_SLOTS ? direct_get(send) : NULL;
	}
	if (bio)
		bio->bi_private = rec;
	return bio;
}

/**
 * lc_send_cancel() - give a bio back that was not submitted
 * @send: the room
 * @bio: from lc_send_prepare()
 */
void lc_send_cancel(struct lc_send *send, struct bio *bio)
{
	const struct lc_record *rec = bio->bi_private;

	if (bio->bi_end_io != pool_end) {
		direct_put(send, bio);
		return;
	}
	bio_put(bio);
	leave(send, rec);
}

/**
 * lc_send_submit() - write a sealed record
 * @send: the room
 * @bio: from lc_send_prepare()
 * @fua: set REQ_FUA
 * @later: gets it, for lc_send_bios(), or NULL
 *
 * Process context, may sleep as submit_bio() does without @later.  lc_log_written() is called for
 * it in the end, perhaps before this returns.
 */
void lc_send_submit(struct lc_send *send, struct bio *bio, bool fua, struct bio_list *later)
{
	const struct lc_record *rec = bio->bi_private;
	const struct lc_buffer *buf = rec->buf;
	u32 i;

	if (fua)
		bio->bi_opf |= REQ_FUA;
	bio->bi_iter.bi_sector =
		lc_format_slot_address(&send->core->sb.geo, buf->position, rec->first_slot) >> 9;
	for (i = 0; i < LC_HEADER_SLOTS + rec->nr_slots; i++) {
		void *slot = buf->slots[rec->first_slot + i];

		/* Contiguous pages merge, so the bio has as few segments as the buffer chunks. */
		if (bio_add_page(bio, virt_to_page(slot), LC_SLOT_BYTES, 0) != LC_SLOT_BYTES) {
			WARN_ON_ONCE(1);
			bio_io_error(bio);
			return;
		}
	}
	if (later)
		bio_list_add(later, bio);
	else
		submit_bio(bio);
}

/**
 * lc_send_bios() - submit what lc_send_submit() has put off
 * @bios: emptied
 *
 * Process context, may sleep as submit_bio() does.
 */
void lc_send_bios(struct bio_list *bios)
{
	struct bio *bio;

	while ((bio = bio_list_pop(bios)))
		submit_bio(bio);
}

/**
 * lc_send_is_one_command() - will the SSD get a record in one piece for certain?
 * @core: the volume
 * @rec: closed
 *
 * That is, within what every queue takes, 4 KiB segments counted singly.  Any context.
 */
bool lc_send_is_one_command(struct lc_core *core, const struct lc_record *rec)
{
	u32 nr = LC_HEADER_SLOTS + rec->nr_slots;

	return nr <= bdev_max_segments(core->env.cache) &&
	       nr <= queue_max_sectors(bdev_get_queue(core->env.cache)) >> LC_BLOCK_SHIFT;
}
