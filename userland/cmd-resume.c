// SPDX-License-Identifier: GPL-2.0-only
/* lc-resume: start a cached volume. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "dm.h"
#include "find.h"
#include "image.h"
#include "signature.h"
#include "text.h"
#include "util.h"

static void help(void)
{
	printf("Usage: lc-resume [-o KEY=VALUE]... NAME SSD [HDD]\n\n"
	       "Starts the volume of a formatted SSD as /dev/mapper/NAME.  The hard disk is\n"
	       "found by its stored identity if it is not named.\n\n"
	       "  -o, --option=KEY=VALUE   over the option kept on the SSD; 'KEY=' drops it\n"
	       "      --iostats            leave the volume's I/O statistics on\n"
	       "      --print-table        only print the table line\n"
	       "  -h, --help; -V, --version\n");
}

static const struct option long_options[] = {
	{ "option", required_argument, NULL, 'o' },
	{ "iostats", no_argument, NULL, 's' },
	{ "print-table", no_argument, NULL, 'p' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 }
};

static void explain_unformatted(const struct device *ssd, const struct image *img)
{
	struct signatures found;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (!img->has_magic[i])
			continue;
		complain(ssd->path, "superblock copy %u: %s", i, img->why[i]);
	}
	if (image_any_magic(img)) {
		complain(ssd->path, img->err[0] == -EOPNOTSUPP || img->err[1] == -EOPNOTSUPP ?
			 "was formatted by a newer dm-lc; use that version's tools and module" :
			 "holds an lc cache whose superblock is damaged; see lc-check");
		return;
	}
	if (signatures_probe(ssd, &found))
		return;
	complain(ssd->path, "is not formatted for dm-lc, it holds %s; see lc-format",
		 found.nr ? signatures_text(&found) : "nothing that is recognised");
}

/* What the log adds to these numbers the kernel sees. */
static bool next_life_possible(const struct lc_sb *sb)
{
	if (sb->flags & LC_SB_CLEAN)
		return lc_life_possible(sb->epoch, sb->next_seq, sb->head_segment);
	return lc_life_possible(sb->epoch, sb->epoch_first_seq, sb->tail_segment) &&
	       lc_life_possible(sb->epoch, sb->tail_seq, sb->tail_segment);
}

/* The superblock to start from, checked as far as the SSD alone allows. */
static int read_ssd(struct device *ssd, const char *path, struct image *img)
{
	unsigned int i;

	if (device_open(ssd, path, DEVICE_EXCL))
		return -EIO;
	if (image_read(img, ssd))
		goto fail;
	/* A damaged copy is no reason to stop, one that a newer version wrote is. */
	if (!image_sb(img) || img->err[0] == -EOPNOTSUPP || img->err[1] == -EOPNOTSUPP) {
		explain_unformatted(ssd, img);
		goto fail;
	}
	for (i = 0; i < 2; i++) {
		if (img->err[i])
			complain(path,
				 "warning: superblock copy %u is bad: %s; using the other one", i,
				 img->why[i]);
	}
	if (ssd->lbs > image_sb(img)->cache_lbs) {
		complain(path, "has logical blocks of %u bytes but had %u when it was formatted; "
			 "attach it the way it was then", ssd->lbs, image_sb(img)->cache_lbs);
		goto fail;
	}
	if (!next_life_possible(image_sb(img))) {
		complain(path, "has numbers too high for another life (it is in life %llu); no cache "
			 "gets so old: see lc-check", image_sb(img)->epoch);
		goto fail;
	}
	return 0;
fail:
	device_close(ssd);
	return -EINVAL;
}

/* Path of the verified hard disk, to be freed, or NULL after complaining. */
static char *choose_backing(const struct lc_sb *sb, const struct device *ssd, const char *path,
			    bool print_only)
{
	struct device hdd;
	struct stat st;
	char *found;
	int ret;

	/* Asked before opening: O_EXCL would call it "in use", by ourselves. */
	if (path && !stat(path, &st) && st.st_rdev == ssd->devno) {
		complain(path, "SSD and hard disk are the same device; name two");
		return NULL;
	}
	if (!print_only && !backing_provable(sb)) {
		complain(ssd->path, "was not stopped cleanly, and its hard disk has neither a mark nor "
			 "a serial number: nothing tells whether a disk is the right one; if you "
			 "know it, create the device from the line that --print-table prints");
		return NULL;
	}
	found = path ? xasprintf("%s", path) : backing_find(sb, ssd, false);
	if (!found)
		return NULL;
	ret = device_open(&hdd, found, DEVICE_EXCL);
	if (!ret) {
		ret = backing_verify(sb, &hdd, false);
		device_close(&hdd);
	}
	if (ret) {
		free(found);
		return NULL;
	}
	return found;
}

static int check_name(const char *name)
{
	struct dm_facts facts;

	if (strlen(name) > 127 || strpbrk(name, "/ \t\n")) {
		complain(name, "is no name for a device; take up to 127 characters without "
			 "blanks and slashes");
		return -EINVAL;
	}
	if (dm_facts(name, &facts))
		return -EIO;
	dm_facts_free(&facts);
	if (!facts.exists)
		return 0;
	complain(name, "the name is taken; take another one, or remove that device");
	return -EEXIST;
}

static int start(const char *name, const struct lc_sb *sb, const char *hdd, const char *ssd,
		 const char *options, bool print_only)
{
	char *params, *uuid;
	int ret = 0;

	if (options[0])
		params = xasprintf("%s %s %u %s", hdd, ssd, options_words(options), options);
	else
		params = xasprintf("%s %s", hdd, ssd);
	/* The UUID keeps a second device of the same cache away, whatever its name. */
	uuid = xasprintf("LC-%s", uuid_text(sb->cache_uuid));
	if (print_only)
		printf("0 %llu lc %s\n", sb->volume_sectors, params);
	else
		ret = dm_create_lc(name, uuid, sb->volume_sectors, params);
	free(uuid);
	free(params);
	return ret;
}

static int resume(char **args, const char *const *pairs, size_t nr_pairs, bool print_only)
{
	const struct lc_sb *sb;
	struct device ssd;
	struct image img;
	char options[512], *hdd;
	size_t i;
	int ret;

	if (!print_only && check_name(args[0]))
		return LC_EXIT_FAIL;
	if (read_ssd(&ssd, args[1], &img))
		return LC_EXIT_FAIL;
	sb = image_sb(&img);
	hdd = choose_backing(sb, &ssd, args[2], print_only);
	/* Before the kernel takes it; it checks everything again. */
	device_close(&ssd);
	if (!hdd)
		return LC_EXIT_FAIL;
	memcpy(options, sb->options, sizeof(options));
	/* A line end in them would be a second line of the table. */
	if (!options_plain(options)) {
		complain(args[1], "warning: the options kept on it are no pairs of plain words, and "
			 "are left out: %s; give those you need with -o", shown(options));
		options[0] = '\0';
	}
	for (i = 0; i < nr_pairs; i++) {
		if (!options_set_pair(options, sizeof(options), pairs[i])) {
			free(hdd);
			return usage_error("--option=%s: must be KEY=VALUE, and all fit 511 bytes",
					   pairs[i]);
		}
	}
	ret = start(args[0], sb, hdd, args[1], options, print_only);
	free(hdd);
	return ret ? LC_EXIT_FAIL : LC_EXIT_OK;
}

int cmd_resume(int argc, char **argv)
{
	const char **pairs = xcalloc(argc, sizeof(*pairs));
	char *args[3] = { NULL };
	bool print_only = false, iostats = false;
	size_t nr_pairs = 0;
	int c, i, ret = -1;

	while (ret < 0 && (c = getopt_long(argc, argv, "o:hV", long_options, NULL)) != -1) {
		switch (c) {
		case 'o':
			pairs[nr_pairs++] = optarg;
			break;
		case 'p':
			print_only = true;
			break;
		case 's':
			iostats = true;
			break;
		case 'h':
			help();
			ret = LC_EXIT_OK;
			break;
		case 'V':
			util_print_version();
			ret = LC_EXIT_OK;
			break;
		default:
			ret = usage_error("bad command line");
		}
	}
	if (ret < 0 && (argc - optind < 2 || argc - optind > 3))
		ret = usage_error("give NAME, SSD and, if it cannot be found, HDD");
	if (ret < 0) {
		for (i = 0; optind + i < argc; i++)
			args[i] = argv[optind + i];
		dm_setup();
		ret = resume(args, pairs, nr_pairs, print_only);
		if (ret == LC_EXIT_OK && !print_only && !iostats)
			dm_iostats_off(args[0]);
	}
	free(pairs);
	return ret;
}
