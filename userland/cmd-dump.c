// SPDX-License-Identifier: GPL-2.0-only
/* lc-dump: show what is on a cache device.  Needs no kernel module, changes nothing. */
#include <errno.h>
#include <getopt.h>

#include "commands.h"
#include "dump.h"
#include "extract.h"
#include "signature.h"
#include "util.h"

struct dump_args {
	bool json, segments, records, entries;
	const char *extract, *map;
};

static void help(void)
{
	printf("Usage: lc-dump [OPTIONS] SSD\n\n"
	       "Shows superblock and log of a cache device, or of an image of one in a file.\n\n"
	       "  -s, --segments  the segments from the tail on, and where it may move to\n"
	       "  -r, --records   the record headers from the tail on\n"
	       "  -e, --entries   and what each record holds\n"
	       "  -j, --json      machine-readable\n"
	       "  -x, --extract=FILE      instead, write what the hard disk may not have to a new\n"
	       "                          sparse file, an image of the volume\n"
	       "      --extract-map=FILE  and which sectors that are to another one\n"
	       "  -h, --help; -V, --version\n");
}

enum { OPT_MAP = 256 };

static const struct option long_options[] = {
	{ "segments", no_argument, NULL, 's' },
	{ "records", no_argument, NULL, 'r' },
	{ "entries", no_argument, NULL, 'e' },
	{ "json", no_argument, NULL, 'j' },
	{ "extract", required_argument, NULL, 'x' },
	{ "extract-map", required_argument, NULL, OPT_MAP },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 }
};

static void add_log(json_object *top, const struct device *dev, const struct lc_sb *sb,
		    const struct dump_args *args)
{
	struct scan scan;

	scan_log(&scan, dev, sb, SCAN_LOG);
	scan_select(&scan, sb);
	json_object_object_add(top, "log", dump_log(&scan));
	if (args->segments)
		json_object_object_add(top, "segments", dump_segments(&scan, sb));
	if (args->segments && sb->flags & LC_SB_CLEAN && sb->incompat & LC_INCOMPAT_LANES)
		json_object_object_add(top, "cuts", dump_cuts(dev, sb));
	if (args->records || args->entries)
		json_object_object_add(top, "records",
				       dump_records(&scan, dev, sb, args->entries));
	scan_free(&scan);
}

static void complain_unformatted(const struct device *dev)
{
	struct signatures found;
	struct mark_pair marks;

	if (!marks_read(&marks, dev, 0) && marks_any_magic(&marks))
		complain(dev->path,
			 "is the hard disk of an lc volume, not its cache; name the SSD");
	else if (!signatures_probe(dev, &found))
		complain(dev->path, "is not formatted for dm-lc, it holds %s; see lc-format",
			 found.nr ? signatures_text(&found) : "nothing that is recognised");
}

static int dump(const struct device *dev, const struct dump_args *args)
{
	const struct lc_sb *sb;
	struct image img;
	json_object *top;

	if (image_read(&img, dev))
		return LC_EXIT_FAIL;
	if (!image_any_magic(&img)) {
		complain_unformatted(dev);
		return LC_EXIT_FAIL;
	}
	sb = image_sb(&img);
	if (args->extract && sb)
		return extract(dev, sb, args->extract, args->map) ? LC_EXIT_FAIL : LC_EXIT_OK;
	top = json_object_new_object();
	json_object_object_add(top, "copies", dump_copies(&img));
	/* The third copy may be old, but it is better than nothing to look at. */
	if (sb || !img.err[2])
		json_object_object_add(top, "superblock", dump_superblock(sb ? sb : &img.copy[2]));
	if (sb)
		add_log(top, dev, sb, args);
	if (args->json)
		printf("%s\n", json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY |
							      JSON_C_TO_STRING_NOSLASHESCAPE));
	else
		dump_print(top, 0);
	json_object_put(top);
	if (sb)
		return LC_EXIT_OK;
	complain(dev->path, "has no valid superblock at its start; see lc-check");
	return LC_EXIT_FAIL;
}

int cmd_dump(int argc, char **argv)
{
	struct dump_args args = { false };
	struct device dev;
	int c, ret;

	while ((c = getopt_long(argc, argv, "srejx:hV", long_options, NULL)) != -1) {
		switch (c) {
		case 's':
			args.segments = true;
			break;
		case 'r':
			args.records = true;
			break;
		case 'e':
			args.entries = true;
			break;
		case 'j':
			args.json = true;
			break;
		case 'x':
			args.extract = optarg;
			break;
		case OPT_MAP:
			args.map = optarg;
			break;
		case 'h':
			help();
			return LC_EXIT_OK;
		case 'V':
			util_print_version();
			return LC_EXIT_OK;
		default:
			return usage_error("bad command line");
		}
	}
	if (optind != argc - 1)
		return usage_error("name exactly one cache device");
	if (args.map && !args.extract)
		return usage_error("--extract-map needs --extract");
	/* Looking at a running one is fine, if only half true; half of its data is not. */
	if (device_open(&dev, argv[optind], DEVICE_FILE_OK | (args.extract ? DEVICE_EXCL : 0)))
		return LC_EXIT_FAIL;
	ret = dump(&dev, &args);
	device_close(&dev);
	return ret;
}
