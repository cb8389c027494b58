// SPDX-License-Identifier: GPL-2.0-only
/*
 * The record headers of a log, as replay reads them: segments in ring order
 * from the tail's, in each of them one record behind the other, until more segments
 * in a row hold nothing than lanes can be open.
 *
 * Behind a slot that holds no header every further slot of the segment is tried:
 * one damaged header must not hide the durable records behind it (L13).  Nor may one of an
 * earlier life, which stands where a record of this life was never written: where the log ends, the
 * slots of records are tried, too (L19).  A data slot cannot be taken for a header: generation, own
 * address and segment number are in the checksum, and only the log itself ever writes them there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "scan.h"

static void add_record(struct scan *scan, const struct lc_record_info *info, bool hidden)
{
	if (!(scan->nr & (scan->nr + 1))) {
		scan->found = xrealloc(scan->found, (scan->nr + 1) * 2, sizeof(*scan->found));
		scan->hidden = xrealloc(scan->hidden, (scan->nr + 1) * 2, sizeof(*scan->hidden));
	}
	scan->hidden[scan->nr] = hidden;
	scan->found[scan->nr++] = *info;
}

/* No magic, or of another lap or format run: the usual end of a chain. */
static void add_bad(struct scan *scan, u64 segment, u32 slot, int err, const char *why)
{
	if (err == -ENODATA || err == -ESTALE)
		return;
	scan->bad = xrealloc(scan->bad, scan->nr_bad + 1, sizeof(*scan->bad));
	scan->bad[scan->nr_bad].segment = segment;
	scan->bad[scan->nr_bad].slot = slot;
	scan->bad[scan->nr_bad].err = err;
	scan->bad[scan->nr_bad++].why = why;
}

/* A slot that may hold a header which no chain leads to, and cannot be read. */
static void add_dark(struct scan *scan, u64 segment, u32 slot)
{
	scan->dark = xrealloc(scan->dark, scan->nr_dark + 1, sizeof(*scan->dark));
	scan->dark[scan->nr_dark++] = (struct scan_dark){ segment, slot };
}

/* @groups: those of groups, too. */
static int step(const struct device *dev, const struct lc_sb *sb, struct lc_chain *chain,
		bool groups, struct lc_record_header *raw, struct lc_record_info *info,
		const char **why)
{
	u64 at = lc_chain_address(chain, &sb->geo);
	unsigned int tries = 0;
	int ret;

	do {
		if (device_read(dev, at, raw, sizeof(*raw))) {
			*why = "unreadable";
			return -EIO;
		}
		ret = groups ? lc_chain_step_any(chain, sb, raw, info) :
			       lc_chain_step(chain, sb, raw, info, why);
		/* It would be one but for its checksum: perhaps it was not read well. */
	} while (ret == -EBADMSG && device_again(dev, &tries));
	return ret;
}

int scan_step(const struct device *dev, const struct lc_sb *sb, struct lc_chain *chain,
	      struct lc_record_header *raw, struct lc_record_info *info, const char **why)
{
	return step(dev, sb, chain, false, raw, info, why);
}

int scan_step_any(const struct device *dev, const struct lc_sb *sb, struct lc_chain *chain,
		  struct lc_record_header *raw, struct lc_record_info *info)
{
	const char *why;

	return step(dev, sb, chain, true, raw, info, &why);
}

int scan_read_header(const struct device *dev, const struct lc_sb *sb, u64 segment, u32 slot,
		     struct lc_record_header *raw, struct lc_record_info *info, const char **why)
{
	struct lc_chain chain = { .segment = segment, .slot = slot };

	return scan_step(dev, sb, &chain, raw, info, why);
}

/* Bytes of the slots from @from up to @end, or NULL: each slot is read for itself then. */
static u8 *read_slots(const struct device *dev, const struct lc_sb *sb, u64 segment, u32 from,
		      u32 end)
{
	size_t len = (size_t)(end - from) * LC_SLOT_BYTES;
	u8 *bytes = xcalloc(1, len);

	if (!device_read(dev, lc_format_log_address(&sb->geo, segment, from), bytes, len))
		return bytes;
	free(bytes);
	return NULL;
}

/*
 * Headers in the slots from @from up to @end, to which no chain leads.  Each slot is tried, also
 * those that a header found here names: it may be of an earlier life (L19).
 */
static void scan_slots(struct scan *scan, const struct device *dev, const struct lc_sb *sb,
		       u64 segment, u32 from, u32 end)
{
	u8 *bytes = from < end ? read_slots(dev, sb, segment, from, end) : NULL;
	u32 slot;

	for (slot = from; slot < end; slot++) {
		struct lc_record_header raw;
		struct lc_record_info info;
		const char *why;
		int ret = -EBADMSG;

		if (bytes) {
			memcpy(&raw, bytes + (slot - from) * LC_SLOT_BYTES, sizeof(raw));
			ret = lc_record_decode(&raw, sb, segment, slot, &info, &why);
		}
		if (ret == -EBADMSG)
			ret = scan_read_header(dev, sb, segment, slot, &raw, &info, &why);
		if (ret == -EIO)
			add_dark(scan, segment, slot);
		if (!ret)
			add_record(scan, &info, true);
	}
	free(bytes);
}

/* Returns how many records the segment has. */
static size_t scan_segment(struct scan *scan, const struct device *dev, const struct lc_sb *sb,
			   u64 segment)
{
	size_t before = scan->nr;
	struct lc_chain chain;

	scan->nr_segments_read++;
	/* Of any life: replay tells dead records. */
	lc_chain_start(&chain, segment, 0);
	while (!lc_chain_at_end(&chain, &sb->geo)) {
		struct lc_record_header raw;
		struct lc_record_info info;
		const char *why;
		int ret;

		ret = scan_step(dev, sb, &chain, &raw, &info, &why);
		if (ret) {
			add_bad(scan, segment, chain.slot, ret, why);
			scan_slots(scan, dev, sb, segment, chain.slot + 1, sb->geo.seg_slots);
			break;
		}
		add_record(scan, &info, false);
	}
	return scan->nr - before;
}

static bool is_skipped(const struct lc_sb *sb, u64 segment)
{
	u32 i;

	for (i = 0; i < sb->nr_skips; i++) {
		if (segment - sb->skips[i].segment < sb->skips[i].count &&
		    segment >= sb->skips[i].segment)
			return true;
	}
	return false;
}

void scan_log(struct scan *scan, const struct device *dev, const struct lc_sb *sb,
	      enum scan_mode mode)
{
	u64 segment, last = sb->tail_segment + sb->geo.nr_segments;
	u32 stale = 0;

	memset(scan, 0, sizeof(*scan));
	for (segment = sb->tail_segment; segment < last; segment++) {
		if (scan_segment(scan, dev, sb, segment)) {
			stale = 0;
		} else if (!is_skipped(sb, segment)) {
			stale++;
			if (stale > sb->lane_limit && mode == SCAN_LOG)
				break;
		}
	}
}

static int compare_place(const void *a, const void *b)
{
	const struct lc_record_info *x = a, *y = b;

	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return x->first_slot < y->first_slot ? -1 : x->first_slot > y->first_slot;
}

/*
 * Where a run ends: its last record, and the lowest segment that those behind it can be in.
 * Hidden headers are looked for from there on.
 */
struct end {
	u64 boundary, segment;
	u32 slot;
};

static void alloc_log(struct lc_replay_log *log, const struct lc_sb *sb)
{
	lc_replay_init(log, sb);
	log->chunks = xcalloc(lc_replay_chunks(log), sizeof(*log->chunks));
	log->lives = xcalloc(log->max_lives, sizeof(*log->lives));
	log->by_epoch = xcalloc(log->max_lives, sizeof(*log->by_epoch));
}

static void free_log(struct lc_replay_log *log)
{
	u32 i;

	for (i = 0; i < lc_replay_chunks(log); i++)
		free(log->chunks[i]);
	free(log->chunks);
	free(log->lives);
	free(log->by_epoch);
}

/*
 * What replay comes to see: hidden headers only in segments without a first one, and from
 * @end on.  Sets seen[] and fills the empty @log.  Return: 0 or an error of lc_replay_add().
 */
static int add_visible(struct scan *scan, struct end end, struct lc_replay_log *log)
{
	u64 with_first = 0;	/* latest segment that has a first header; there is no segment 0 */
	int ret = 0;
	size_t i;

	for (i = 0; i < scan->nr && !ret; i++) {
		const struct lc_record_info *info = &scan->found[i];
		u32 nr;

		if (!info->first_slot)
			with_first = info->segment;
		scan->seen[i] = !scan->hidden[i] || info->segment != with_first ||
				(info->segment >= end.boundary &&
				 (info->segment != end.segment || info->first_slot > end.slot));
		if (!scan->seen[i])
			continue;
		nr = lc_replay_wants(log);
		if (nr)
			log->chunks[log->nr / LC_REPLAY_CHUNK] = xcalloc(nr, sizeof(**log->chunks));
		ret = lc_replay_add(log, info, scan->hidden[i]);
	}
	return ret;
}

/* As a start does: look, look behind where the log ends then, and decide. */
static int select_run(struct scan *scan, const struct lc_sb *sb, struct lc_replay_log *log)
{
	struct end end = { ~0ULL, ~0ULL, 0 };
	int ret;
	u32 i;

	ret = add_visible(scan, end, log);
	if (!ret)
		ret = lc_replay_select(sb, log, &scan->run);
	if (ret)
		return ret;
	end = (struct end) { sb->tail_segment, sb->tail_segment, 0 };
	for (i = 0; i < log->nr; i++) {
		const struct lc_replay_record *r = lc_replay_at(log, i);

		if (r->keep && r->seq == scan->run.last_seq)
			end = (struct end) { lc_replay_told_boundary(log, r),
					    lc_replay_segment(log, r),
					     lc_replay_slot(log, r) };
	}
	scan->boundary = end.boundary;
	free_log(log);
	alloc_log(log, sb);
	ret = add_visible(scan, end, log);
	return ret ? ret : lc_replay_select(sb, log, &scan->run);
}

static void decide(struct scan *scan, const struct lc_sb *sb)
{
	struct lc_replay_log log;
	size_t i;
	u32 n;

	free(scan->seen);
	scan->seen = xcalloc(scan->nr, sizeof(*scan->seen));
	scan->run = (struct lc_replay_result) {
		.first_seq = sb->tail_seq, .last_seq = sb->tail_seq - 1,
		.durable_seq = sb->tail_seq - 1, .next_segment = sb->tail_segment,
	};
	scan->boundary = sb->tail_segment;
	alloc_log(&log, sb);
	scan->verdict = select_run(scan, sb, &log);
	/* R6 here of all that was found: nothing may be repaired by such a superblock. */
	for (i = 0; i < scan->nr; i++) {
		if (scan->found[i].epoch > sb->epoch)
			scan->verdict = -ESTALE;
	}
	free(scan->kept);
	scan->kept = xcalloc(scan->nr, sizeof(*scan->kept));
	/* Without a run, as there are too many lives, none is kept. */
	for (n = 0; n < log.nr; n++) {
		const struct lc_replay_record *r = lc_replay_at(&log, n);
		struct lc_record_info key = {
			.segment = lc_replay_segment(&log, r),
			.first_slot = lc_replay_slot(&log, r),
		};
		struct lc_record_info *at = bsearch(&key, scan->found, scan->nr, sizeof(key),
						    compare_place);

		if (at && r->keep)
			scan->kept[at - scan->found] = true;
	}
	free_log(&log);
}

/*
 * May record @i hide others (L19)?  Where the log ends, as a start does, look into the slots of each
 * that a chain leads to.
 */
static bool may_hide(const struct scan *scan, size_t i)
{
	return !scan->hidden[i] && scan->found[i].segment >= scan->boundary;
}

/* Try the slots of records that may hide others.  Return: whether any was found there. */
static bool look_inside(struct scan *scan, const struct device *dev, const struct lc_sb *sb)
{
	struct scan all = *scan;
	size_t i, nr_dark;

	for (i = 0; i < scan->nr && !may_hide(scan, i); i++)
		;
	if (i == scan->nr)
		return false;
	all.found = NULL;
	all.hidden = NULL;
	all.nr = 0;
	for (i = 0; i < scan->nr; i++) {
		const struct lc_record_info *info = &scan->found[i];
		u32 from = info->first_slot + LC_HEADER_SLOTS;

		add_record(&all, info, scan->hidden[i]);
		if (!may_hide(scan, i))
			continue;
		nr_dark = all.nr_dark;
		scan_slots(&all, dev, sb, info->segment, from, from + info->nr_slots);
		/* If the record is part of the run, its slots hold its own data. */
		if (scan->kept[i])
			all.nr_dark = nr_dark;
	}
	i = scan->nr;
	free(scan->found);
	free(scan->hidden);
	*scan = all;
	return scan->nr != i;
}

void scan_select(struct scan *scan, const struct device *dev, const struct lc_sb *sb)
{
	decide(scan, sb);
	if (look_inside(scan, dev, sb))
		decide(scan, sb);
}

void scan_truncate(struct scan *scan, u64 last_seq)
{
	size_t i;

	for (i = 0; i < scan->nr; i++) {
		if (scan->kept[i] && scan->found[i].seq > last_seq) {
			scan->kept[i] = false;
			scan->run.nr_kept--;
		}
	}
	scan->run.last_seq = last_seq;
}

const struct scan_bad *scan_unknown(const struct scan *scan)
{
	size_t i;

	for (i = 0; i < scan->nr_bad; i++) {
		if (scan->bad[i].err == -EOPNOTSUPP)
			return &scan->bad[i];
	}
	return NULL;
}

const char *scan_slot(const struct device *dev, const struct lc_sb *sb, u64 at, u64 block, u32 csum,
		      void *data)
{
	unsigned int tries = 0;

	do {
		if (device_read(dev, at, data, LC_SLOT_BYTES))
			return "unreadable";
		if (lc_format_slot_csum(sb, block, data) == csum)
			return NULL;
	} while (device_again(dev, &tries));
	return "its checksum does not match";
}

void scan_free(struct scan *scan)
{
	free(scan->found);
	free(scan->hidden);
	free(scan->seen);
	free(scan->kept);
	free(scan->bad);
	free(scan->dark);
	memset(scan, 0, sizeof(*scan));
}

static const struct scan *sorting;

static int compare_seq(const void *a, const void *b)
{
	u64 x = sorting->found[*(const size_t *)a].seq;
	u64 y = sorting->found[*(const size_t *)b].seq;

	return x < y ? -1 : x > y;
}

size_t *scan_by_seq(const struct scan *scan, size_t *nr)
{
	size_t *order = xcalloc(scan->nr, sizeof(*order));
	size_t i;

	*nr = 0;
	for (i = 0; i < scan->nr; i++) {
		if (scan->kept[i])
			order[(*nr)++] = i;
	}
	sorting = scan;
	qsort(order, *nr, sizeof(*order), compare_seq);
	return order;
}
