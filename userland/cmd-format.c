// SPDX-License-Identifier: GPL-2.0-only
/* lc-format: pair an SSD with a hard disk. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "cmd.h"
#include "cpu.h"
#include "identity.h"
#include "options.h"
#include "pair.h"
#include "storage.h"
#include "text.h"
#include "util.h"

struct format_args {
	const char *ssd;
	const char *hdd;
	struct pair_choices choices;
	char options[512];
	unsigned int forced;
	bool in_place, no_mark, yes;
};

enum { OPT_NO_MARK = 256, OPT_DISCARD };

static const struct cmd_option long_options[] = {
	{ "backing", 'b', "HDD", "the hard disk to cache" },
	{ "in-place", 'i', NULL, "keep the data that is on the hard disk" },
	{ "no-mark", OPT_NO_MARK, NULL,
	  "with --in-place: write nothing at all to the hard disk" },
	{ "segment-size", 's', "SIZE", "64K to 4M, a power of two (1M)" },
	{ "checksum", 'c', "TYPE", "crc32c or xxh64; by default the faster one on this CPU" },
	{ "label", 'L', "TEXT", "up to 63 bytes, no control characters" },
	{ "option", 'o', "KEY=VALUE",
	  "an option of the volume, kept on the SSD; repeatable" },
	{ "discard", OPT_DISCARD, NULL, "discard the whole SSD first" },
	{ "yes", 'y', NULL, "do not ask; refusals stand" },
	{ "force", 'f', "CLASS", "overrule one class of refusal; repeatable:" },
	{ NULL, 0, NULL, NULL }
};

/* Behind --force, the last option. */
static void print_classes(void)
{
	refusals_print(stdout);
}

static int take_value(struct format_args *args, int option, const char *text)
{
	u64 size;

	switch (option) {
	case 's':
		if (!parse_size(text, &size) || size < LC_SEGMENT_BYTES_MIN ||
		    size > LC_SEGMENT_BYTES_MAX || size & (size - 1))
			return usage_error(
				"--segment-size=%s: must be a power of two from 64K to 4M", text);
		args->choices.segment_bytes = size;
		return 0;
	case 'c':
		if (strcmp(text, "xxh64") && strcmp(text, "crc32c"))
			return usage_error("--checksum=%s: must be xxh64 or crc32c", text);
		args->choices.csum_type = text[0] == 'x' ? LC_CSUM_XXH64 : LC_CSUM_CRC32C;
		return 0;
	case 'L':
		if (strlen(text) > 63)
			return usage_error("--label: longer than 63 bytes");
		if (has_control(text))
			return usage_error("--label=%s: control characters cannot be in it", text);
		args->choices.label = text;
		return 0;
	case 'o':
		if (!options_set_pair(args->options, sizeof(args->options), text))
			return usage_error("--option=%s: must be KEY=VALUE, and all fit 511 bytes",
					   text);
		return 0;
	default:
		if (!refusal_by_name(text))
			return usage_error("--force=%s: no such class of refusal", text);
		args->forced |= refusal_by_name(text);
		return 0;
	}
}

/* All of them together: kept on the SSD, they would make the kernel refuse every start. */
static int check_options(const struct format_args *args)
{
	char *why = options_why_bad(args->options);

	if (!why)
		return 0;
	usage_error("--option: %s", why);
	free(why);
	return LC_EXIT_USAGE;
}

/* An exit code, or -1 to go on. */
static int parse(int argc, char **argv, struct format_args *args)
{
	int c, ret = 0;

	while ((c = cmd_option(&cmd_format, argc, argv, &ret)) >= 0) {
		switch (c) {
		case 'b':
			args->hdd = optarg;
			break;
		case 'i':
			args->in_place = true;
			break;
		case OPT_NO_MARK:
			args->no_mark = true;
			break;
		case OPT_DISCARD:
			args->choices.discard = true;
			break;
		case 'y':
			args->yes = true;
			break;
		default:
			ret = take_value(args, c, optarg);
			if (ret)
				return ret;
		}
	}
	if (c == CMD_END)
		return ret;
	if (!args->hdd || optind != argc - 1)
		return usage_error("give --backing=HDD and exactly one SSD");
	if (args->no_mark && !args->in_place)
		return usage_error("--no-mark needs --in-place: without it the mark costs nothing");
	args->ssd = argv[optind];
	ret = check_options(args);
	return ret ? ret : -1;
}

/* Before opening: O_EXCL on both would call a device "in use" by ourselves. */
static int refuse_same(const struct device *ssd, const struct device *hdd)
{
	struct identity ssd_id, hdd_id;

	if (ssd->devno == hdd->devno) {
		complain(ssd->path, "SSD and hard disk are the same device; name two");
		return -EINVAL;
	}
	if (identity_read(&ssd_id, ssd->devno) || identity_read(&hdd_id, hdd->devno))
		return 0;
	if (ssd_id.whole == hdd->devno || hdd_id.whole == ssd->devno) {
		complain(ssd->path,
			 "one of SSD and hard disk is a part of the other; name two devices");
		return -EINVAL;
	}
	return 0;
}

/* Always: a script that took the wrong names leaves a trace of what they stood for. */
static void show(const struct pair_request *req)
{
	char *ssd = holds_text(req->ssd), *hdd = holds_text(req->hdd);

	fprintf(stderr, "SSD        %s: %s, %s\n           holds %s\n           "
		"all of it will be LOST\n", req->ssd->path, size_text(req->ssd->bytes),
		identity_text(&req->ssd->id), ssd);
	fprintf(stderr, "hard disk  %s: %s, %s\n           holds %s\n           %s\n",
		req->hdd->path, size_text(req->hdd->bytes), identity_text(&req->hdd->id), hdd,
		req->in_place ? "its data stays" : "all of it will be LOST");
	free(ssd);
	free(hdd);
}

static bool ask(void)
{
	char answer[16] = "";

	fprintf(stderr, "Type 'yes' to go on: ");
	if (fgets(answer, sizeof(answer), stdin) && !strcmp(answer, "yes\n"))
		return true;
	complain(NULL, "not confirmed; nothing was written");
	return false;
}

/* Alone on stdout, so that it can be piped to dmsetup create. */
static void print_table(const struct format_args *args, const struct lc_sb *sb)
{
	char *hdd = table_word(args->hdd), *ssd = table_word(args->ssd);

	printf("0 %llu lc %s %s", sb->volume_sectors, hdd, ssd);
	if (sb->options[0])
		printf(" %u %s", options_words(sb->options), sb->options);
	printf("\n");
	free(hdd);
	free(ssd);
}

static void say_pair(const struct format_args *args, const struct lc_sb *sb)
{
	fprintf(stderr, "Cache %s: %llu segments of %s for %s.\nStart it with: lc-resume NAME %s\n",
		uuid_text(sb->cache_uuid), sb->geo.nr_segments, size_text(sb->geo.segment_bytes),
		size_text(sb->volume_sectors << 9), args->ssd);
	print_table(args, sb);
}

/* Is it the same command again?  Then finish what it began.  Return: false if it is not. */
static bool finish_interrupted(const struct format_args *args, const struct pair_request *req,
			       int *code)
{
	const struct lc_mark_info *mark;
	struct mark_pair marks;
	struct image img;

	if (!req->in_place || marks_read(&marks, req->hdd, 0) || image_read(&img, req->ssd))
		return false;
	mark = marks_best(&marks);
	if (!mark || mark->state != LC_MARK_ATTACHING || !image_sb(&img) ||
	    !mark_belongs(mark, image_sb(&img)))
		return false;
	*code = LC_EXIT_FAIL;
	if (storage_check_pair(req->ssd, req->hdd, req->forced & REFUSE_OTHER_PATH ? NULL :
			       ", or give --force=other-path to overrule"))
		return true;
	complain(req->hdd->path, "an interrupted lc-format is finished, with what was given then");
	if (attach_finish(req->hdd, image_sb(&img)))
		return true;
	device_reread_partitions(req->hdd);
	say_pair(args, image_sb(&img));
	*code = LC_EXIT_OK;
	return true;
}

static int format(struct format_args *args, struct pair_request *req)
{
	struct lc_sb sb;
	int ret;

	if (finish_interrupted(args, req, &ret))
		return ret;
	ret = pair_layout(req, &args->choices, &sb);
	if (ret)
		return LC_EXIT_FAIL;
	show(req);
	ret = refuse_pair(req);
	if (ret) {
		complain(NULL, "nothing was written");
		return LC_EXIT_FAIL;
	}
	if (!args->yes && isatty(STDIN_FILENO) && !ask())
		return LC_EXIT_FAIL;
	if (device_forget_partitions(req->ssd))
		return LC_EXIT_FAIL;
	if (device_forget_partitions(req->hdd)) {
		device_reread_partitions(req->ssd);
		return LC_EXIT_FAIL;
	}
	if (pair_write(req, &args->choices, &sb)) {
		complain(req->ssd->path,
			 "was not formatted; put the error above right and try again");
		return LC_EXIT_FAIL;
	}
	say_pair(args, &sb);
	return LC_EXIT_OK;
}

static int open_pair(const struct format_args *args, struct device *ssd, struct device *hdd)
{
	unsigned int flags = DEVICE_WRITE | DEVICE_EXCL | DEVICE_USE;

	if (device_find(ssd, args->ssd, flags))
		return -ENODEV;
	if (device_find(hdd, args->hdd, flags)) {
		device_close(ssd);
		return -ENODEV;
	}
	if (!refuse_same(ssd, hdd) && !device_open_found(ssd, flags) &&
	    !device_open_found(hdd, flags))
		return 0;
	device_close(hdd);
	device_close(ssd);
	return -EINVAL;
}

static int run(int argc, char **argv)
{
	struct format_args args = {
		.choices = {
			.segment_bytes = LC_SEGMENT_BYTES_DEFAULT,
			.csum_type = cpu_sums_crc32c() ? LC_CSUM_CRC32C : LC_CSUM_XXH64,
			.label = "",
		},
	};
	struct device ssd, hdd;
	struct pair_request req = { .ssd = &ssd, .hdd = &hdd };
	int ret;

	args.choices.options = args.options;
	ret = parse(argc, argv, &args);
	if (ret >= 0)
		return ret;
	req.in_place = args.in_place;
	req.no_mark = args.no_mark;
	req.forced = args.forced;
	if (open_pair(&args, &ssd, &hdd))
		return LC_EXIT_FAIL;
	ret = format(&args, &req);
	device_close(&hdd);
	device_close(&ssd);
	return ret;
}

const struct cmd cmd_format = {
	.name = "format",
	.summary = "pair an SSD with a hard disk",
	.usage = "--backing HDD [OPTIONS] SSD",
	.text = "Pairs an SSD with a hard disk.  What the SSD holds is lost.  What the disk\n"
		"holds is lost too, unless --in-place is given.  Prints the table line.",
	.options = long_options,
	.print_more = print_classes,
	.run = run,
};
