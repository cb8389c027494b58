// SPDX-License-Identifier: GPL-2.0-only
/* lc-check: verify a cache device, and repair it. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "commands.h"
#include "find.h"
#include "signature.h"
#include "util.h"

/* Exit codes of fsck(8). */
enum {
	CHECK_CLEAN	= 0,
	CHECK_REPAIRED	= 1,
	CHECK_DAMAGED	= 4,
	CHECK_FAILED	= 8,
	CHECK_USAGE	= 16,
};

static void help(void)
{
	printf("Usage: lc-check [--repair] [--backing HDD] SSD\n\n"
	       "Verifies everything a cache device holds.  Changes nothing without --repair.\n\n"
	       "  -b, --backing=HDD  its hard disk, if it shall not be searched for\n"
	       "  -r, --repair       cut damage out; sectors that are gone then give errors until\n"
	       "                     they are written again\n"
	       "  -q, --quiet        only errors and the exit code\n"
	       "  -h, --help; -V, --version\n\n"
	       "Exit codes: 0 no damage, 1 damage repaired, 4 damage left, 8 failed, 16 usage.\n");
}

static const struct option long_options[] = {
	{ "backing", required_argument, NULL, 'b' },
	{ "repair", no_argument, NULL, 'r' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 }
};

static void print_lost(const struct check *c)
{
	size_t i;

	if (!c->lost.nr)
		return;
	check_say(c, "Lost: %llu sectors of the volume:", lost_sectors(&c->lost));
	for (i = 0; i < c->lost.nr; i++)
		check_say(c, "  sectors %llu-%llu", c->lost.span[i].sector,
			  c->lost.span[i].end - 1);
}

static int repair(struct check *c)
{
	int ret;

	ret = repair_superblocks(c);
	if (!ret)
		ret = repair_marks(c);
	if (ret || c->bad_checkpoint)
		return ret;	/* the log is looked at in the next round */
	if (c->nr_unread)
		return repair_unread(c);	/* and again */
	/* Names before holes: filling holes looks at the log anew. */
	ret = repair_slots(c);
	if (!ret && c->bad_run)
		ret = repair_run(c);
	return ret;
}

static void start(struct check *c, const struct device *ssd, const struct device *hdd, bool quiet)
{
	memset(c, 0, sizeof(*c));
	c->ssd = ssd;
	c->hdd = hdd;
	c->quiet = quiet;
}

/* Repairs uncover more (behind a filled hole), so look again, but not for ever. */
static int check_and_repair(const struct device *ssd, const struct device *hdd, bool fix,
			    bool quiet)
{
	unsigned int rounds, damage = 0;
	struct check c;
	int ret;

	for (rounds = 0; ; rounds++) {
		start(&c, ssd, hdd, quiet);
		ret = check_run(&c);
		if (ret || !fix || !c.nr_damage || c.beyond_repair || rounds == 8)
			break;
		damage += c.nr_damage;
		ret = repair(&c);
		if (!ret && !c.nr_writes)
			break;		/* it would find the same */
		check_free(&c);
		if (ret)
			break;
	}
	if (ret)
		return CHECK_FAILED;
	print_lost(&c);
	if (!c.nr_damage)
		check_say(&c, "%s: %s, %llu data slots verified", ssd->path,
			  damage ? "repaired" : "no damage", c.nr_slots_read);
	else
		complain(ssd->path, "is damaged%s", c.beyond_repair ?
			 " beyond repair; see above, and find the newer copy if there is one" :
			 fix ? " and could not be repaired completely" :
			 "; lc-check --repair cuts the damage out");
	ret = c.nr_damage ? CHECK_DAMAGED : damage ? CHECK_REPAIRED : CHECK_CLEAN;
	check_free(&c);
	return ret;
}

/* Not a cache at all: say what it is instead. */
static bool is_cache(const struct device *ssd)
{
	struct signatures found;
	struct image img;

	if (image_read(&img, ssd))
		return false;
	if (image_any_magic(&img))
		return true;
	if (!signatures_probe(ssd, &found))
		complain(ssd->path, "is not formatted for dm-lc, it holds %s",
			 found.nr ? signatures_text(&found) : "nothing that is recognised");
	return false;
}

/* Open the hard disk if it is named or can be found; a cache can be checked without it. */
static int open_backing(struct device *hdd, const struct device *ssd, const char *path, bool fix,
			bool quiet, char **found)
{
	struct image img;

	*found = NULL;
	if (path)
		return device_open(hdd, path, DEVICE_FILE_OK | DEVICE_EXCL |
				   (fix ? DEVICE_WRITE : 0));
	/* An image in a file is looked at for itself. */
	if (!ssd->is_file && !image_read(&img, ssd) && image_sb(&img) &&
	    image_sb(&img)->mark_offset != LC_NO_MARK) {
		*found = backing_find(image_sb(&img), ssd, true);
		if (*found && !device_open(hdd, *found, DEVICE_QUIET | DEVICE_EXCL |
					   (fix ? DEVICE_WRITE : 0)))
			return 0;
		if (!quiet)
			printf("The hard disk was not found; its mark is not checked.\n");
	}
	return -ENOENT;
}

static int run(const char *ssd_path, const char *hdd_path, bool fix, bool quiet)
{
	struct device ssd, hdd;
	bool has_hdd;
	char *found;
	int ret;

	if (device_open(&ssd, ssd_path, DEVICE_FILE_OK | DEVICE_EXCL | (fix ? DEVICE_WRITE : 0)))
		return CHECK_FAILED;
	if (!is_cache(&ssd)) {
		device_close(&ssd);
		return CHECK_FAILED;
	}
	has_hdd = !open_backing(&hdd, &ssd, hdd_path, fix, quiet, &found);
	if (!has_hdd && hdd_path) {
		ret = CHECK_FAILED;
	} else {
		ret = check_and_repair(&ssd, has_hdd ? &hdd : NULL, fix, quiet);
		if (has_hdd)
			device_close(&hdd);
	}
	free(found);
	device_close(&ssd);
	return ret;
}

int cmd_check(int argc, char **argv)
{
	bool fix = false, quiet = false;
	const char *hdd = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "b:rqhV", long_options, NULL)) != -1) {
		switch (c) {
		case 'b':
			hdd = optarg;
			break;
		case 'r':
			fix = true;
			break;
		case 'q':
			quiet = true;
			break;
		case 'h':
			help();
			return CHECK_CLEAN;
		case 'V':
			util_print_version();
			return CHECK_CLEAN;
		default:
			usage_error("bad command line");
			return CHECK_USAGE;
		}
	}
	if (optind != argc - 1) {
		usage_error("name exactly one cache device");
		return CHECK_USAGE;
	}
	return run(argv[optind], hdd, fix, quiet);
}
