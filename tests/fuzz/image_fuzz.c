// SPDX-License-Identifier: GPL-2.0-only
/*
 * lc-dump, lc-check and lc-check --repair, all of them, on an image in memory.
 *
 * Input: an image (see images.h); the options are the tools'.
 *
 * Besides documented exit codes:
 *  - what does not repair does not write
 *  - no read or write beyond the end of a device, and no more reading than a few
 *    times its size
 *  - repaired means repaired: looking again finds nothing
 *  - a repair takes no record away that was found and whole before
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "expect.h"
#include "image.h"
#include "memdev.h"
#include "scan.h"

/* The tools' exit codes. */
enum { CLEAN = 0, REPAIRED = 1, DAMAGED = 4, FAILED = 8 };

static struct medium before, now;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	/* libFuzzer itself speaks on stderr. */
	return freopen("/dev/null", "w", stdout) ? 0 : -1;
}

/* --- the tools ----------------------------------------------------------- */

static int run(int (*command)(int, char **), const char *const *args)
{
	char *argv[8];
	int argc = 0;

	for (; args[argc]; argc++)
		argv[argc] = (char *)args[argc];
	argv[argc] = NULL;
	optind = 0;	/* glibc: start over */
	memdev_use(&now);
	return command(argc, argv);
}

/* The n-th written block of the SSD, from 1. */
static u64 written_block(unsigned int n)
{
	u64 i;

	for (i = 0; n && i < before.nr_blocks[MEDIUM_SSD]; i++) {
		if (before.block[MEDIUM_SSD][i] && !--n)
			return i;
	}
	return NO_BAD_BLOCK;
}

static u64 device_bytes(void)
{
	return (u64)(now.nr_blocks[MEDIUM_SSD] + now.nr_blocks[MEDIUM_HDD] + 256) << LC_SLOT_SHIFT;
}

static void expect_untouched(void)
{
	EXPECT(!memdev.nr_writes && !memdev.nr_outside);
	EXPECT(medium_same(&before, &now, MEDIUM_SSD) && medium_same(&before, &now, MEDIUM_HDD));
	/* All slots of the ring twice, as it is found damaged, headers and data once more. */
	EXPECT(memdev.bytes_read <= 6 * device_bytes());
}

static void dump(u8 options)
{
	const char *args[6] = { "lc-dump" };
	unsigned int n = 1;

	if (options & 1)
		args[n++] = "--json";
	if (options & 2)
		args[n++] = "--entries";
	if (options & 4)
		args[n++] = "--segments";
	args[n] = "ssd";
	EXPECT((unsigned int)run(cmd_dump.run, args) <= 1);
	expect_untouched();
}

/* What lc-format asks before it overwrites a cache. */
static void judge(void)
{
	struct device dev;
	struct image img;
	const char *why;

	memdev_use(&now);
	device_open(&dev, "ssd", 0);
	if (image_read(&img, &dev))
		return;
	EXPECT((unsigned int)image_dirty(&img, &why) <= 1);
	expect_untouched();
}

static int check(bool repair, bool with_hdd)
{
	const char *args[8] = { "lc-check" };
	unsigned int n = 1;
	int code;

	if (repair)
		args[n++] = "--repair";
	if (with_hdd) {
		args[n++] = "--backing";
		args[n++] = "hdd";
	}
	args[n] = "ssd";
	code = run(cmd_check.run, args);
	EXPECT(code == CLEAN || code == REPAIRED || code == DAMAGED || code == FAILED);
	EXPECT(!memdev.nr_outside);
	if (!repair)
		EXPECT(code != REPAIRED);
	return code;
}

/* --- what a repair may not change ---------------------------------------- */

/* The log as replay sees it; false if a checkpoint says it all, or nothing does. */
static bool log_of(struct medium *m, struct lc_sb *sb, struct scan *scan)
{
	struct device dev;
	struct image img;

	memdev_use(m);
	device_open(&dev, "ssd", 0);
	if (image_read(&img, &dev) || !image_sb(&img) || image_sb(&img)->flags & LC_SB_CLEAN)
		return false;
	*sb = *image_sb(&img);
	scan_log(scan, &dev, sb, SCAN_RING);
	scan_select(scan, &dev, sb);
	return true;
}

static bool same_place(const struct lc_record_info *a, const struct lc_record_info *b)
{
	return a->segment == b->segment && a->first_slot == b->first_slot && a->seq == b->seq &&
	       a->epoch == b->epoch && a->nr_entries == b->nr_entries && a->type == b->type;
}

/* The header of a record, which scan_log() has found. */
static void header_of(struct medium *m, const struct lc_sb *sb, const struct lc_record_info *info,
		      struct lc_record_header *raw)
{
	u64 position = lc_format_position(&sb->geo, info->segment);

	EXPECT(!medium_read(m, MEDIUM_SSD,
			    lc_format_slot_address(&sb->geo, position, info->first_slot), raw,
			    sizeof(*raw)));
}

/* What it says of each block is what it said, only that sectors may be lost by now. */
static void expect_entries_kept(const struct lc_sb *sb, const struct lc_record_info *info)
{
	struct lc_record_header old, new;
	struct lc_entry_info was, is;
	unsigned int i;

	header_of(&before, sb, info, &old);
	header_of(&now, sb, info, &new);
	for (i = 0; i < info->nr_entries; i++) {
		lc_entry_decode(&old, i, &was);
		lc_entry_decode(&new, i, &is);
		EXPECT(was.block == is.block && was.nr_blocks == is.nr_blocks &&
		       was.type == is.type);
		EXPECT((was.mask | was.lost) == (is.mask | is.lost));
		EXPECT(is.mask ? is.mask == was.mask && is.csum == was.csum : true);
	}
}

static void expect_kept(const struct scan *scan, const struct lc_sb *sb,
			const struct lc_record_info *info)
{
	size_t i;

	for (i = 0; i < scan->nr; i++) {
		if (!scan->kept[i] || !same_place(&scan->found[i], info))
			continue;
		expect_entries_kept(sb, info);
		return;
	}
	fprintf(stderr, "record %llu (segment %llu, slot %u) is gone\n", info->seq, info->segment,
		info->first_slot);
	EXPECT(!"a repair took a good record away");
}

/* Is it there twice?  No writer does that, and of two copies a repair may uncover the other. */
static bool is_twice(const struct scan *scan, const struct lc_record_info *info)
{
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < scan->nr; i++)
		nr += scan->found[i].seq == info->seq && scan->found[i].epoch == info->epoch;
	return nr > 1;
}

/*
 * Does a header that replay does not see say that a later life began at or below the record,
 * so that this does not exist (R1)?  A repair goes by it.  If a writer left such a log, its
 * superblock tells as much, and replay does not take the record for good.
 */
static bool is_undone(const struct scan *scan, const struct lc_record_info *info)
{
	size_t i;

	for (i = 0; i < scan->nr; i++) {
		const struct lc_record_info *r = &scan->found[i];

		if (!scan->seen[i] && r->epoch > info->epoch && r->epoch_first_seq <= info->seq)
			return true;
	}
	return false;
}

/* Do two headers, or one and the superblock, disagree about where a life began? */
static bool contradicts(const struct scan *scan, const struct lc_sb *sb)
{
	size_t i, k;

	for (i = 0; i < scan->nr; i++) {
		const struct lc_record_info *r = &scan->found[i];

		if (r->epoch == sb->epoch && r->epoch_first_seq != sb->epoch_first_seq)
			return true;
		for (k = 0; k < i; k++) {
			if (scan->found[k].epoch == r->epoch &&
			    scan->found[k].epoch_first_seq != r->epoch_first_seq)
				return true;
		}
	}
	return false;
}

/* Every record of the run that was durable is there as before. */
static void expect_log_kept(const struct scan *old)
{
	struct scan new;
	struct lc_sb sb;
	size_t i;

	EXPECT(log_of(&now, &sb, &new));
	for (i = 0; i < old->nr; i++) {
		if (old->kept[i] && old->found[i].seq <= old->run.durable_seq &&
		    !is_twice(old, &old->found[i]) && !is_undone(old, &old->found[i]))
			expect_kept(&new, &sb, &old->found[i]);
	}
	scan_free(&new);
}

/* The run that lc_replay_select() found, and what else it promises of any log. */
static void expect_run(void)
{
	size_t *order, nr, i;
	struct scan scan;
	struct lc_sb sb;

	if (!log_of(&now, &sb, &scan))
		return;
	order = scan_by_seq(&scan, &nr);
	EXPECT(nr == scan.run.nr_kept && scan.run.first_seq == sb.tail_seq);
	EXPECT(scan.run.last_seq - scan.run.first_seq + 1 == nr);
	for (i = 0; i < nr; i++) {
		const struct lc_record_info *r = &scan.found[order[i]];

		EXPECT(r->seq == sb.tail_seq + i && r->segment < scan.run.next_segment);
		EXPECT(r->segment - sb.tail_segment < sb.geo.nr_segments);
	}
	EXPECT(scan.run.next_segment - sb.tail_segment <= sb.geo.nr_segments);
	free(order);
	scan_free(&scan);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };
	u8 options = input_u8(&in);
	bool with_hdd = options & 8, has_log;
	struct scan log;
	struct lc_sb sb;
	int found, repaired;
	u8 bad = input_u8(&in);

	medium_unpack(&before, in.data, in.size);
	medium_copy(&now, &before);
	memdev.bad_block = written_block(bad);
	dump(options);
	judge();
	expect_run();
	found = check(false, with_hdd);
	expect_untouched();
	has_log = log_of(&before, &sb, &log);
	repaired = check(true, with_hdd);
	/* Filling a gap looks at all of the ring for each record it writes. */
	EXPECT(memdev.bytes_read <= (60 + 4 * memdev.nr_writes) * device_bytes());
	if (found != DAMAGED) {
		EXPECT(repaired == found);
		expect_untouched();
	}
	if (repaired == REPAIRED) {
		EXPECT(check(false, with_hdd) == CLEAN);
		EXPECT(!memdev.nr_writes);
	}
	if (has_log) {
		/* A repair takes all headers together, replay what it comes to see. */
		if (!contradicts(&log, &sb))
			expect_log_kept(&log);
		scan_free(&log);
	}
	expect_run();
	return 0;
}
