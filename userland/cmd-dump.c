// SPDX-License-Identifier: GPL-2.0-only
/* lc-dump: show what is on a cache device.  Needs no kernel module, changes nothing. */
#include <errno.h>

#include "cmd.h"
#include "dump.h"
#include "extract.h"
#include "signature.h"
#include "util.h"

struct dump_args {
	bool json, segments, records, entries;
	const char *extract, *map;
};

enum { OPT_MAP = 256 };

static const struct cmd_option long_options[] = {
	{ "segments", 's', NULL, "the segments from the tail on, with their groups of\n"
	  "promoted blocks, and where the tail may move to" },
	{ "records", 'r', NULL, "the record headers from the tail on" },
	{ "entries", 'e', NULL, "and what each record holds" },
	{ "json", 'j', NULL, "machine-readable" },
	{ "extract", 'x', "FILE", "instead, write what the hard disk may not have to a new\n"
	  "sparse file, an image of the volume" },
	{ "extract-map", OPT_MAP, "FILE", "and which sectors that are to another one" },
	{ NULL, 0, NULL, NULL }
};

static void add_log(json_object *top, const struct device *dev, const struct lc_sb *sb,
		    const struct dump_args *args)
{
	struct scan scan;

	scan_log(&scan, dev, sb, SCAN_LOG);
	scan_select(&scan, dev, sb);
	json_object_object_add(top, "log", dump_log(&scan));
	if (args->segments)
		json_object_object_add(top, "segments", dump_segments(&scan, sb));
	if (args->segments)
		json_object_object_add(top, "groups", dump_groups(&scan, dev, sb));
	if (args->segments && sb->flags & LC_SB_CLEAN && sb->incompat & LC_INCOMPAT_LANES)
		json_object_object_add(top, "cuts", dump_boundaries(dev, sb));
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

static void take(struct dump_args *args, int option)
{
	switch (option) {
	case 's':
		args->segments = true;
		break;
	case 'r':
		args->records = true;
		break;
	case 'e':
		args->entries = true;
		break;
	case 'j':
		args->json = true;
		break;
	case 'x':
		args->extract = optarg;
		break;
	case OPT_MAP:
		args->map = optarg;
		break;
	}
}

static int run(int argc, char **argv)
{
	struct dump_args args = { false };
	struct device dev;
	const char *ssd;
	int c, ret;

	while ((c = cmd_option(&cmd_dump, argc, argv, &ret)) >= 0)
		take(&args, c);
	if (c == CMD_END)
		return ret;
	ssd = cmd_argument(argc, argv, "cache device");
	if (!ssd)
		return LC_EXIT_USAGE;
	if (args.map && !args.extract)
		return usage_error("--extract-map needs --extract");
	/* Looking at a running one is fine, if only half true; half of its data is not. */
	if (device_open(&dev, ssd, DEVICE_FILE_OK | (args.extract ? DEVICE_EXCL : 0)))
		return LC_EXIT_FAIL;
	ret = dump(&dev, &args);
	device_close(&dev);
	return ret;
}

const struct cmd cmd_dump = {
	.name = "dump",
	.summary = "show what is on a cache device",
	.usage = "[OPTIONS] SSD",
	.text = "Shows superblock and log of a cache device, or of an image of one in a file.",
	.options = long_options,
	.run = run,
};
