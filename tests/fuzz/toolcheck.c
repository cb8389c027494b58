// SPDX-License-Identifier: GPL-2.0-only
/* What lc-check thinks of a medium, see toolcheck.h. */
#include <getopt.h>
#include <string.h>

#include "check.h"
#include "cmd.h"
#include "memdev.h"
#include "toolcheck.h"

static bool lives_differ(const struct lc_record_info *r, u64 epoch, u64 epoch_first_seq)
{
	return r->epoch == epoch && r->epoch_first_seq != epoch_first_seq;
}

static bool has_header_inside(const struct check *c, const struct lc_record_info *r)
{
	struct lc_record_header raw;
	struct lc_record_info info;
	const char *why;
	u32 i;

	for (i = 0; i < r->nr_slots; i++) {
		if (!scan_read_header(c->ssd, &c->sb, r->segment,
				      r->first_slot + LC_HEADER_SLOTS + i, &raw, &info, &why))
			return true;
	}
	return false;
}

/* A record of a life that no superblock has begun, in a slot that this start or the next reads. */
static bool has_later_life(const struct check *c)
{
	u64 first = c->sb.tail_segment, n;
	struct lc_record_header raw;
	struct lc_record_info info;
	const char *why;
	u32 slot;

	for (n = first; n < first + 2 * c->sb.geo.nr_segments; n++) {
		for (slot = 0; slot < c->sb.geo.seg_slots; slot++) {
			if (!scan_read_header(c->ssd, &c->sb, n, slot, &raw, &info, &why) &&
			    info.epoch > c->sb.epoch)
				return true;
		}
	}
	return false;
}

/* What only somebody who means harm can make: no life of a log leaves it. */
static void look_for_lies(const struct check *c, struct verdict *verdict)
{
	struct scan scan;
	size_t i, j, nr;
	bool unknown;

	verdict->later = has_later_life(c);
	scan_log(&scan, c->ssd, &c->sb, SCAN_LOG);
	nr = scan.nr;
	unknown = scan_unknown(&scan);
	scan_free(&scan);
	scan_log(&scan, c->ssd, &c->sb, SCAN_RING);
	verdict->beyond = scan.nr != nr || (scan_unknown(&scan) && !unknown);
	for (i = 0; i < scan.nr; i++) {
		const struct lc_record_info *r = &scan.found[i];

		verdict->nested |= has_header_inside(c, r);
		verdict->contradicts |= lives_differ(r, c->sb.epoch, c->sb.epoch_first_seq);
		for (j = 0; j < i; j++)
			verdict->contradicts |= lives_differ(r, scan.found[j].epoch,
							     scan.found[j].epoch_first_seq);
	}
	scan_free(&scan);
}

static int lc_check(const char *option)
{
	char *argv[] = { "lc-check", (char *)option, "--backing", "hdd", "ssd", NULL };

	optind = 0;	/* glibc: start over */
	return cmd_check.run(5, argv);
}

void toolcheck(struct medium *medium, struct verdict *verdict)
{
	const struct lc_mark_info *mark;
	struct device ssd, hdd;
	struct check c = { .ssd = &ssd, .hdd = &hdd, .quiet = true };

	memdev_use(medium);
	device_open(&ssd, "ssd", 0);
	device_open(&hdd, "hdd", 0);
	check_run(&c);
	memset(verdict, 0, sizeof(*verdict));
	verdict->last_seq = c.scan.run.last_seq;
	if (c.img.best >= 0) {
		mark = c.sb.mark_offset == LC_NO_MARK ? NULL : marks_best(&c.marks);
		verdict->lost = mark && mark->nr_lost;
		verdict->has_log = !(c.sb.flags & LC_SB_CLEAN);
		look_for_lies(&c, verdict);
	}
	check_free(&c);
	verdict->code = lc_check("--quiet");
}

int toolcheck_repair(struct medium *medium)
{
	memdev_use(medium);
	return lc_check("--repair");
}
