// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replay of the log after a crash.
 *
 *  1. Scan: from the tail's segment on in ring order, read the chain of record
 *     headers of each segment, many segments at a time; try every slot of those
 *     without a first one.  Stop after more stale segments in a row than lanes can
 *     be open; segments the superblock names as skipped do not count (L8).
 *  2. Select the unbroken run (replay.c).  In the segments that were open where it ends,
 *     and in all later ones, try every slot: a header that rotted or was never written hides
 *     what follows it (L4, L13), and one of an earlier life in its place names slots in which
 *     this life may have written (L19).  If the run ends below a seq that was durable, records
 *     are damaged: refuse, nothing is changed, lc-check decides.
 *  3. Verify the data of records above the highest durable seq; the first one
 *     that is torn ends the run.  What a power cut tore may also be an error when it is
 *     read: such data is torn, and such a header counts as none (L16).  If that hides a
 *     durable record, step 2 notices, as it does for a rotten header.
 *  4. FLUSH the SSD: after a warm reboot what was read may still be volatile (L3).
 *  5. Apply the entries in seq order to the index.
 *
 * Work and memory grow with the log between tail and head, not with the SSD.  With n headers in
 * it, step 1 reads each of them once, and keeps 24 bytes of it (RP1).  Step 2 merges chains of
 * them, in n log n steps at most, and reads the first sector of each slot that it tries: of a round
 * (16 segments a lane at most) and of what was in flight, however long the log is.  Step 3 reads
 * what is not known to be durable, which is what was in RAM at the crash.  Step 5 reads each header
 * of the run once more.  All loops over headers let other tasks run.  Nothing is written.
 */
#include <linux/blkdev.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "format/chain.h"
#include "life/found.h"
#include "life/recovery.h"
#include "log/cache.h"
#include "store/index.h"
#include "store/io.h"
#include "store/mark.h"
#include "store/ring.h"
#include "store/sums.h"

#define WINDOW	32	/* segments scanned, or headers fetched, at a time */
/*
 * How often a read that fails is repeated, a quarter of a second apart, and how often all reads
 * of a start together (MAX_AGAIN).  Errors may pass; one that does not ends the log.
 */
#define AGAIN		4
#define MAX_AGAIN	40
/* Headers that cannot be read: more are a device that fails, not writes that were torn. */
#define MAX_UNREADABLE	16

/* A chain of headers that is followed beside others. */
struct walk {
	struct lc_io_read read;
	struct lc_chain chain;
	bool ended;
	bool stale;		/* not even a first header */
	int unreadable;		/* error of reading the header at chain.slot */
	int error;		/* of decoding it, and why */
	const char *why;
};

struct scan {
	struct lc_cache *c;
	struct walk *walks;
	struct lc_found found;
	u64 stale_run;		/* stale segments in a row */
	u64 end;		/* one above the last segment with a record */
	u32 nr_again;		/* reads repeated */
	u32 nr_unreadable;	/* headers, but for those read ahead */
};

/* In loops over all headers, of which there may be a hundred million. */
static void let_others_run(u32 i)
{
	if (!(i & 0xffff))
		cond_resched();
}

static bool is_skipped(const struct lc_sb *sb, u64 segment)
{
	u32 i;

	for (i = 0; i < sb->nr_skips; i++) {
		if (segment >= sb->skips[i].segment &&
		    segment - sb->skips[i].segment < sb->skips[i].count)
			return true;
	}
	return false;
}

/* A read of a slot failed.  Return: 0 if it ends well after all, or its error. */
static int read_again(struct scan *s, u64 address, void *data, int error)
{
	u32 i;

	for (i = 0; error && i < AGAIN && s->nr_again < MAX_AGAIN; i++) {
		s->nr_again++;
		msleep(250);
		error = lc_io_sync(s->c->env.cache, REQ_OP_READ, address, data, LC_SLOT_BYTES);
	}
	return error;
}

/* Take one header in; the chain ends at the first that does not belong to it. */
static int walk_on(struct scan *s, struct walk *w)
{
	const struct lc_sb *sb = &s->c->sb;
	struct lc_record_info info;
	const char *why;
	int ret;

	w->unreadable = read_again(s, lc_chain_address(&w->chain, &sb->geo), w->read.data,
				   w->read.status);
	ret = w->unreadable;
	if (!ret)
		ret = lc_chain_step(&w->chain, sb, w->read.data, &info, &why);
	if (ret) {
		w->ended = true;
		w->stale = !w->chain.slot;
		/* It counts only if the scan comes here: windows reach past the end. */
		if (ret == -EOPNOTSUPP && !w->unreadable) {
			w->error = ret;
			w->why = why;
			w->stale = false;
		}
		return 0;
	}
	w->ended = lc_chain_at_end(&w->chain, &sb->geo);
	return lc_found_add(&s->found, &info, false);
}

/* Follow the chains of @nr segments from @segment on, all at once. */
static int scan_window(struct scan *s, u64 segment, u32 nr)
{
	struct lc_io_batch batch;
	bool alive = true;
	u32 i;
	int ret;

	for (i = 0; i < nr; i++) {
		struct walk *w = &s->walks[i];

		/* Of any life: replay tells dead records (R7). */
		lc_chain_start(&w->chain, segment + i, 0);
		w->ended = false;
		w->stale = false;
		w->error = 0;
		w->unreadable = 0;
	}
	while (alive) {
		lc_io_batch_init(&batch);
		for (i = 0; i < nr; i++) {
			struct walk *w = &s->walks[i];

			if (!w->ended)
				lc_io_batch_read(&batch, &w->read, s->c->env.cache,
						 lc_chain_address(&w->chain, &s->c->sb.geo),
						 LC_SLOT_BYTES);
		}
		lc_io_batch_wait(&batch);
		alive = false;
		for (i = 0; i < nr; i++) {
			struct walk *w = &s->walks[i];

			if (w->ended)
				continue;
			ret = walk_on(s, w);
			if (ret)
				return ret;
			alive |= !w->ended;
		}
	}
	return 0;
}

/* By its first sector, may this be a header of the segment? */
static bool may_be_header(const struct lc_io_read *read, u64 segment)
{
	const struct lc_record_header *raw = read->data;

	return !read->status && !memcmp(raw->magic, LC_RECORD_MAGIC, LC_MAGIC_LEN) &&
	       le64_to_cpu(raw->segment) == segment;
}

/*
 * Read what may be headers in @nr slots: of all of them the first sector, the rest only
 * where that says so.  Hardly any slot is one, and there are many to try.
 */
static void read_candidates(struct scan *s, u64 segment, u32 slot, u32 nr)
{
	u32 sector = bdev_logical_block_size(s->c->env.cache), i;
	const struct lc_geometry *geo = &s->c->sb.geo;
	struct lc_io_batch batch;

	lc_io_batch_init(&batch);
	for (i = 0; i < nr; i++)
		lc_io_batch_read(&batch, &s->walks[i].read, s->c->env.cache,
				 lc_format_log_address(geo, segment, slot + i), sector);
	lc_io_batch_wait(&batch);
	lc_io_batch_init(&batch);
	for (i = 0; i < nr; i++) {
		struct lc_io_read *read = &s->walks[i].read;

		if (!may_be_header(read, segment))
			read->status = -ENODATA;
		else if (sector < LC_SLOT_BYTES)
			lc_io_batch_read(&batch, read, s->c->env.cache,
					 lc_format_log_address(geo, segment, slot + i),
					 LC_SLOT_BYTES);
	}
	lc_io_batch_wait(&batch);
}

/*
 * Try the slots of a segment from @slot on for headers that no chain leads to, those of records
 * included (L19).
 */
static int look_behind(struct scan *s, u64 segment, u32 slot)
{
	u32 seg_slots = s->c->sb.geo.seg_slots, nr, i;
	struct lc_record_info info;
	int ret;

	for (; slot < seg_slots; slot += nr) {
		nr = min_t(u32, WINDOW, seg_slots - slot);
		read_candidates(s, segment, slot, nr);
		for (i = 0; i < nr; i++) {
			const struct lc_io_read *read = &s->walks[i].read;

			if (read->status || lc_record_decode(read->data, &s->c->sb, segment,
							     slot + i, &info, NULL))
				continue;
			/* Chains lead to some of them, if this is not the first look (RP2). */
			if (lc_replay_has(&s->found.log, &info))
				continue;
			ret = lc_found_add(&s->found, &info, true);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/*
 * The chain of a segment was followed.  Of one without a first header every slot is
 * tried: a header that rotted may be followed by the only record that tells of a life,
 * and by which dead records are known to be dead (L2, L13).
 */
static int scan_settle(struct scan *s, u64 segment, const struct walk *w)
{
	u64 address = lc_chain_address(&w->chain, &s->c->sb.geo);
	bool stale = w->stale;
	u64 before = s->found.nr_headers;
	int ret;

	if (w->error) {
		lc_err(&s->c->env, "cache device: record at %llu: %s, see lc-check", address,
		       w->why);
		return w->error;
	}
	if (w->unreadable) {
		lc_warn(&s->c->env, "cache device: slot at %llu cannot be read: error %d; taken as torn by the crash",
			address, w->unreadable);
		if (++s->nr_unreadable > MAX_UNREADABLE) {
			lc_err(&s->c->env, "cache device: more than %u headers cannot be read: see to the device first, nothing was changed",
			       MAX_UNREADABLE);
			return w->unreadable;
		}
	}
	if (stale) {
		ret = look_behind(s, segment, 0);
		if (ret)
			return ret;
		stale = s->found.nr_headers == before;
	}
	if (!stale) {
		s->stale_run = 0;
		s->end = segment + 1;
	} else if (!is_skipped(&s->c->sb, segment)) {
		s->stale_run++;
	}
	return 0;
}

static int scan_log(struct scan *s)
{
	const struct lc_sb *sb = &s->c->sb;
	u64 first = sb->tail_segment, end = first + sb->geo.nr_segments, n;
	u32 nr, i;
	int ret;

	for (n = first; n < end; n += nr) {
		nr = min_t(u64, WINDOW, end - n);
		ret = scan_window(s, n, nr);
		if (ret)
			return ret;
		for (i = 0; i < nr; i++) {
			ret = scan_settle(s, n + i, &s->walks[i]);
			if (ret)
				return ret;
			if (s->stale_run > sb->lane_limit) {
				/* Where the windows lie must not matter. */
				lc_replay_forget(&s->found.log, n + i);
				return 0;
			}
		}
		cond_resched();
	}
	return 0;
}

/*
 * The mark gets the epoch of a life before the first record of that life is written (T1).  So a
 * record of an epoch above the mark's proves that the disk is an old copy, put back after that life
 * began (S7).
 */
static int check_disk(const struct scan *s)
{
	u64 epoch = lc_mark_epoch(s->c->mark), latest = lc_replay_latest(&s->found.log);

	/* If the epoch is above the superblock's, too, the superblock is the old one (R6). */
	if (latest <= epoch || latest > s->c->sb.epoch)
		return 0;
	lc_mark_say_old_disk(s->c->mark, latest);
	return -ESTALE;
}

/* Step 2. */
static int select_run(struct scan *s, struct lc_replay_result *result)
{
	const struct lc_replay_log *log = &s->found.log;
	const struct lc_sb *sb = &s->c->sb;
	u64 first = sb->tail_segment, last = first, n;
	u32 slot = 0, i;
	int ret;

	ret = lc_replay_select(sb, &s->found.log, result);
	if (ret)
		return ret;
	for (i = 0; i < log->nr; i++) {
		const struct lc_replay_record *r = lc_replay_at(log, i);

		let_others_run(i);
		if (r->keep && r->seq == result->last_seq) {
			first = lc_replay_told_boundary(log, r);
			last = lc_replay_segment(log, r);
			slot = lc_replay_slot(log, r) + LC_HEADER_SLOTS;
		}
	}
	/* Records in flight at the crash are in these segments, in any order. */
	for (n = first; !ret && !s->found.full && (n == last || n < s->end); n++)
		ret = look_behind(s, n, n == last ? slot : 0);
	if (!ret)
		ret = lc_found_check(&s->found);
	return ret ? ret : lc_replay_select(sb, &s->found.log, result);
}

/* Of a slot of the record, the first one is its header. */
static u64 record_address(struct scan *s, const struct lc_replay_record *r, u32 slot)
{
	const struct lc_replay_log *log = &s->found.log;

	return lc_format_log_address(&s->c->sb.geo, lc_replay_segment(log, r),
				     lc_replay_slot(log, r) + slot);
}

/*
 * The header of a selected record was read again into @raw; @error: of that.  Return: 0, -EIO
 * if it cannot be read any more, or what is wrong with it.
 */
static int fetched_header(struct scan *s, const struct lc_replay_record *r, void *raw, int error,
			  struct lc_record_info *info)
{
	const struct lc_replay_log *log = &s->found.log;
	u64 segment = lc_replay_segment(log, r);
	u32 slot = lc_replay_slot(log, r);
	u64 address = lc_format_log_address(&s->c->sb.geo, segment, slot);
	const char *why;
	int ret;

	if (read_again(s, address, raw, error)) {
		lc_warn(&s->c->env, "cache device: record %llu, slot at %llu, cannot be read: error %d",
			r->seq, address, error);
		return -EIO;
	}
	ret = lc_record_decode(raw, &s->c->sb, segment, slot, info, &why);
	if (!ret && info->seq != r->seq)
		ret = -EUCLEAN;
	if (ret)
		lc_err(&s->c->env, "record %llu changed while it was replayed", r->seq);
	return ret == -EIO ? -EUCLEAN : ret;
}

/* Is the data of an entry there?  What cannot be read is not (L16). */
static bool slot_whole(struct scan *s, const struct lc_replay_record *r, u32 i,
		       const struct lc_entry_info *entry, void *data)
{
	u64 address = record_address(s, r, LC_HEADER_SLOTS + i);
	int ret;

	ret = lc_io_sync(s->c->env.cache, REQ_OP_READ, address, data, LC_SLOT_BYTES);
	if (!read_again(s, address, data, ret))
		return entry->csum == lc_format_slot_csum(&s->c->sb, entry->block, data);
	lc_warn(&s->c->env, "cache device: record %llu, slot at %llu, cannot be read: error %d; taken as torn by the crash",
		r->seq, address, ret);
	return false;
}

/* Is all data of a record there?  @raw: header page, then one page of data. */
static int verify_record(struct scan *s, const struct lc_replay_record *r, void *raw, bool *whole)
{
	struct lc_record_info info;
	struct lc_entry_info entry;
	u32 i;
	int ret;

	*whole = false;
	ret = lc_io_sync(s->c->env.cache, REQ_OP_READ, record_address(s, r, 0), raw,
			 LC_SLOT_BYTES);
	ret = fetched_header(s, r, raw, ret, &info);
	if (ret)
		return ret == -EIO ? 0 : ret;
	for (i = 0; i < info.nr_slots; i++) {
		lc_entry_decode(raw, i, &entry);
		if (entry.type == LC_ENTRY_DATA &&
		    !slot_whole(s, r, i, &entry, raw + LC_SLOT_BYTES))
			return 0;
	}
	*whole = true;
	return 0;
}

static int verify_tail(struct scan *s, struct lc_replay_result *result, void *raw)
{
	struct lc_replay_log *log = &s->found.log;
	bool whole;
	u32 i;
	int ret;

	for (i = 0; i < log->nr; i++) {
		struct lc_replay_record *r = lc_replay_at(log, i);

		let_others_run(i);
		if (!r->keep || r->seq <= result->durable_seq)
			continue;
		ret = verify_record(s, r, raw, &whole);
		if (ret)
			return ret;
		if (!whole) {
			lc_info(&s->c->env, "record %llu was torn by the crash, the log ends before it",
				r->seq);
			lc_replay_truncate(log, r->seq - 1, result);
			return 0;
		}
		cond_resched();
	}
	return 0;
}

/* --- applying ----------------------------------------------------------- */

static void apply_data(struct lc_cache *c, const struct lc_entry_info *entry, u32 slot)
{
	struct lc_mapping old, map = {
		.slot = slot, .mask = entry->mask, .lost = entry->lost, .dirty = true,
	};
	u32 bucket = lc_index_lock(c->index, entry->block);

	lc_index_set(c->index, bucket, entry->block, &map, &old);
	lc_index_unlock(c->index, bucket);
}

static void apply_tombstone(struct lc_cache *c, u64 block)
{
	u32 bucket = lc_index_lock(c->index, block);
	struct lc_mapping old;

	lc_index_remove(c->index, bucket, block, &old);
	lc_index_unlock(c->index, bucket);
}

static void apply_range(struct lc_cache *c, const struct lc_entry_info *entry)
{
	struct lc_mapping map;
	u64 slot, block, i;

	if (entry->nr_blocks <= c->sb.geo.nr_slots) {
		for (i = 0; i < entry->nr_blocks; i++) {
			apply_tombstone(c, entry->block + i);
			if (!(i & 1023))
				cond_resched();
		}
		return;
	}
	for (slot = 0; lc_index_next(c->index, &slot, c->sb.geo.nr_slots, &block, &map);
	     slot++) {
		if (block >= entry->block && block - entry->block < entry->nr_blocks)
			apply_tombstone(c, block);
	}
}

static int apply_record(struct scan *s, const struct lc_replay_record *r,
			struct lc_io_read *read)
{
	struct lc_cache *c = s->c;
	const struct lc_replay_log *log = &s->found.log;
	u64 position = lc_ring_position(c->ring, lc_replay_segment(log, r));
	u64 boundary = lc_replay_boundary_segment(log, r);
	u32 base = (position << c->ring->slot_shift) + lc_replay_slot(log, r) + LC_HEADER_SLOTS;
	struct lc_record_info info;
	struct lc_entry_info entry;
	u32 i;
	int ret;

	ret = fetched_header(s, r, read->data, read->status, &info);
	if (ret)
		return ret;
	if (boundary)
		lc_ring_set_boundary(c->ring, boundary, r->seq);
	for (i = 0; i < info.nr_entries; i++) {
		lc_entry_decode(read->data, i, &entry);
		switch (entry.type) {
		case LC_ENTRY_NONE:
			break;
		case LC_ENTRY_DATA:
			apply_data(c, &entry, base + i);
			lc_sums_put(&c->sums, base + i, entry.csum);
			break;
		case LC_ENTRY_RANGE_TOMBSTONE:
			apply_range(c, &entry);
			break;
		default:
			lc_err(&c->env, "record %llu has an entry this version never writes: type %u",
			       r->seq, entry.type);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

/* Read the headers of the next records of the run, from the @next-th on.  Return: how many. */
static u32 fetch_window(struct scan *s, u32 *next, const struct lc_replay_record **fetched)
{
	const struct lc_replay_log *log = &s->found.log;
	struct lc_io_batch batch;
	u32 nr = 0;

	lc_io_batch_init(&batch);
	for (; *next < log->nr && nr < WINDOW; ++*next) {
		const struct lc_replay_record *r = lc_replay_at(log, *next);

		let_others_run(*next);
		if (!r->keep)
			continue;
		lc_io_batch_read(&batch, &s->walks[nr].read, s->c->env.cache,
				 record_address(s, r, 0), LC_SLOT_BYTES);
		fetched[nr++] = r;
	}
	lc_io_batch_wait(&batch);
	return nr;
}

static int apply_log(struct scan *s)
{
	const struct lc_replay_record *fetched[WINDOW];
	u32 next = 0, nr, i;
	int ret;

	lc_replay_find_boundaries(&s->found.log);
	while ((nr = fetch_window(s, &next, fetched))) {
		for (i = 0; i < nr; i++) {
			ret = apply_record(s, fetched[i], &s->walks[i].read);
			if (ret)
				return ret;
		}
		cond_resched();
	}
	return 0;
}

/* --- entry point -------------------------------------------------------- */

static void scan_free(struct scan *s)
{
	u32 i;

	for (i = 0; s->walks && i < WINDOW; i++)
		kfree(s->walks[i].read.data);
	kvfree(s->walks);
}

static int scan_alloc(struct scan *s, struct lc_cache *c)
{
	u32 i;

	s->c = c;
	s->walks = kvcalloc(WINDOW, sizeof(*s->walks), GFP_KERNEL);
	if (!s->walks)
		return -ENOMEM;
	for (i = 0; i < WINDOW; i++) {
		s->walks[i].read.data = kmalloc(LC_SLOT_BYTES, GFP_NOIO);
		if (!s->walks[i].read.data)
			return -ENOMEM;
	}
	return 0;
}

static int recover(struct scan *s, struct lc_replay_result *result, void *raw)
{
	struct lc_cache *c = s->c;
	int ret;

	ret = scan_log(s);
	if (!ret)
		ret = lc_found_check(&s->found);
	if (ret)
		return ret;
	ret = select_run(s, result);
	if (ret != -ENOMEM && check_disk(s))
		return -ESTALE;
	if (ret == -ESTALE) {
		lc_err(&c->env, "the log has records of a later life than the superblock: an old superblock, see lc-check");
		return ret;
	}
	if (ret == -EUCLEAN) {
		lc_err(&c->env, "the log ends at record %llu but %llu was durable: records are damaged, see lc-check --repair",
		       result->last_seq, result->durable_seq);
		if (s->nr_unreadable)
			lc_err(&c->env, "%u headers cannot be read, and may be what is missing",
			       s->nr_unreadable);
		return ret;
	}
	if (!ret)
		ret = verify_tail(s, result, raw);
	if (!ret)
		ret = lc_io_flush(&c->env, c->env.cache);
	return ret ? ret : apply_log(s);
}

int lc_recovery_check_clean(struct lc_cache *c)
{
	const struct lc_sb *sb = &c->sb;
	void *raw = kmalloc(LC_SLOT_BYTES, GFP_NOIO);
	struct lc_record_info info = {};
	u64 n = sb->head_segment;

	if (!raw)
		return -ENOMEM;
	/* A place that cannot be read or decoded holds no record of a later life. */
	for (; info.epoch <= sb->epoch && n - sb->head_segment <= sb->lane_limit; n++) {
		if (lc_io_sync(c->env.cache, REQ_OP_READ, lc_format_log_address(&sb->geo, n, 0),
			       raw, LC_SLOT_BYTES) ||
		    lc_record_decode(raw, sb, n, 0, &info, NULL))
			info.epoch = 0;
	}
	kfree(raw);
	if (info.epoch <= sb->epoch)
		return 0;
	lc_err(&c->env, "the superblock is of epoch %llu, the log has records of %llu: an old superblock, see lc-check",
	       sb->epoch, info.epoch);
	return -ESTALE;
}

/* A seq that the log cannot have is of a damaged header: its segment is no boundary. */
static bool may_be_boundary(const struct lc_sb *sb, u64 seq)
{
	return seq >= sb->tail_seq && seq < sb->next_seq;
}

int lc_recovery_read_boundaries(struct lc_cache *c)
{
	u64 n = c->sb.tail_segment + 1, end = c->sb.head_segment;
	struct lc_record_info info;
	struct lc_io_batch batch;
	struct scan s = {};
	u32 nr, i;
	int ret;

	ret = scan_alloc(&s, c);
	for (; !ret && n < end; n += nr) {
		nr = min_t(u64, WINDOW, end - n);
		lc_io_batch_init(&batch);
		for (i = 0; i < nr; i++)
			lc_io_batch_read(&batch, &s.walks[i].read, c->env.cache,
					 lc_format_log_address(&c->sb.geo, n + i, 0),
					 LC_SLOT_BYTES);
		lc_io_batch_wait(&batch);
		for (i = 0; i < nr; i++) {
			struct lc_io_read *read = &s.walks[i].read;

			if (!read->status &&
			    !lc_record_decode(read->data, &c->sb, n + i, 0, &info, NULL) &&
			    may_be_boundary(&c->sb, info.seq))
				lc_ring_set_boundary(c->ring, n + i, info.seq);
		}
		cond_resched();
	}
	scan_free(&s);
	return ret;
}

int lc_recovery_run(struct lc_cache *c, u64 *next_seq, u64 *next_segment)
{
	struct lc_replay_result result;
	struct scan s = {};
	void *raw = (void *)__get_free_pages(GFP_NOIO, 1);
	int ret;

	ret = raw ? scan_alloc(&s, c) : -ENOMEM;
	if (!ret)
		ret = lc_found_alloc(&s.found, c);
	if (!ret)
		ret = recover(&s, &result, raw);
	lc_found_free(&s.found);
	scan_free(&s);
	free_pages((unsigned long)raw, 1);
	if (ret)
		return ret;
	*next_seq = result.last_seq + 1;
	*next_segment = result.next_segment;
	if (result.nr_kept)
		lc_info(&c->env, "replayed %u records, %llu to %llu", result.nr_kept,
			result.first_seq, result.last_seq);
	else
		lc_info(&c->env, "the log is empty, nothing to replay");
	return 0;
}
