// SPDX-License-Identifier: GPL-2.0-only
/* lc-resume: start a cached volume. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "dm.h"
#include "find.h"
#include "halves.h"
#include "image.h"
#include "memory.h"
#include "options.h"
#include "signature.h"
#include "storage.h"
#include "tabline.h"
#include "text.h"
#include "util.h"

enum { OPT_IOSTATS = 256, OPT_PRINT_TABLE, OPT_RUNNING_OK, OPT_WAIT };

/* What the command line asks for. */
struct choices {
	const char **pairs;	/* "KEY=VALUE" */
	size_t nr_pairs;
	bool print_only, iostats, running_ok;
	u64 wait_ns;		/* for the hard disk */
};

static const struct cmd_option long_options[] = {
	{ "option", 'o', "KEY=VALUE", "over the option kept on the SSD; 'KEY=' drops it" },
	{ "iostats", OPT_IOSTATS, NULL, "leave the volume's I/O statistics on" },
	{ "print-table", OPT_PRINT_TABLE, NULL, "only print the table line" },
	{ "running-ok", OPT_RUNNING_OK, NULL, "a volume that runs as this pair is no error" },
	{ "wait", OPT_WAIT, "SECONDS", "wait so long, or 'infinity', for the hard disk to appear" },
	{ NULL, 0, NULL, NULL }
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

	if (device_open(ssd, path, DEVICE_EXCL | DEVICE_USE))
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

/* Nobody else writes to them under another name, and they are no two names of one storage. */
static int check_storage(const struct device *ssd, const struct device *hdd, bool print_only)
{
	enum storage_relation relation;
	char *chains;

	relation = storage_relate(ssd, hdd, &chains);
	if (relation == STORAGE_OVERLAP)
		complain(ssd->path, "is on the same storage as the backing device: %s; name two "
			 "devices", chains);
	free(chains);
	if (relation == STORAGE_OVERLAP)
		return -EINVAL;
	return storage_check_pair(ssd, hdd, print_only ? NULL :
				  "; if that is another disk all the same, create the device from "
				  "the line that --print-table prints");
}

static bool is_absent(const char *path)
{
	return path && access(path, F_OK) && errno == ENOENT;
}

/* A name that was given is shown as it was given. */
static bool same_device(const char *a, const char *b)
{
	struct stat st[2];

	return !stat(a, &st[0]) && !stat(b, &st[1]) && st[0].st_rdev == st[1].st_rdev;
}

/* Links of by-lc need a UUID.  One of the halves whose UUID is not known may be the one missed. */
static void explain_nameless(void)
{
	struct halves halves;
	const struct half *half;
	size_t i;

	halves_find(&halves);
	for (i = 0; i < halves.nr; i++) {
		half = &halves.list[i];
		if (half->uuid[0])
			continue;
		complain(half->path, "is the %s of a pair, %s", half->cache ? "SSD" : "hard disk",
			 half->newer ? "formatted by a newer dm-lc; if it is this one, use that "
			 "version's tools and module" : "but damaged; if it is this one, see lc-check");
	}
	halves_free(&halves);
}

/*
 * A half of the pair that a path names is not there.  systemctl status shows this for a volume of
 * /etc/lctab: why it was not started, and all that can be done.
 */
static void explain_absent(char **args)
{
	bool ssd = is_absent(args[1]);

	if (ssd)
		complain(args[1], "the SSD of volume %s is not there; nothing was started",
			 shown(args[0]));
	if (is_absent(args[2]))
		complain(args[2], "the hard disk of volume %s is not there; nothing was started",
			 shown(args[0]));
	complain(NULL, "three ways out: 1. attach the device; a volume of " LCTAB_PATH " without noauto "
		 "starts at once then");
	complain(NULL, "2. if it has another name now, give that name, or correct the line in "
		 LCTAB_PATH ", then systemctl daemon-reload and systemctl start");
	if (ssd)
		complain(NULL, "3. if the SSD is lost, and with it what only it held: lc-detach "
			 "--force=cache-missing --backing %s, see lc-detach(8)",
			 args[2] ? shown(args[2]) : "HDD");
	else
		complain(NULL, "3. if the hard disk is lost: lc-dump --extract saves what only the SSD "
			 "holds, and lc-format makes a new pair");
	explain_nameless();
}

/*
 * A path of the hard disk, to be freed, which need not be the right one if @args names it; NULL
 * after complaining.  A disk that appears late is waited for.
 *
 * A link of by-lc leads to the disk or to a copy of it, which has the same mark.  So the disk is
 * searched for among those that have it, by its identity first.
 */
static char *await_backing(const struct lc_sb *sb, const struct device *ssd, char **args,
			   u64 wait_ns)
{
	const struct timespec pause = { .tv_sec = 1 };
	char uuid[HALVES_UUID + 1], *found = NULL;
	const char *path = args[2];
	u64 begin = now_ns();

	while (now_ns() - begin < wait_ns) {
		if (!path)
			found = backing_find(sb, ssd, true);
		if (found || (path && !access(path, F_OK)))
			break;
		nanosleep(&pause, NULL);
	}
	if (is_absent(path)) {
		explain_absent(args);
		return NULL;
	}
	if (halves_link(path, "backing", uuid) && !strcmp(uuid, uuid_text(sb->cache_uuid))) {
		found = backing_find_half(sb, ssd, false);
		if (!found || !same_device(found, path))
			return found;
		free(found);
	}
	if (path)
		return xasprintf("%s", path);
	/* Says what there is instead. */
	return found ? found : backing_find(sb, ssd, false);
}

/*
 * The verified hard disk, open; its path is to be freed.  Between here and the kernel's own
 * checks only its content can change, not which disk it is.
 */
static int choose_backing(const struct lc_sb *sb, const struct device *ssd, char **args,
			  const struct choices *choices, struct device *hdd)
{
	unsigned int flags = DEVICE_EXCL | DEVICE_USE;
	char *found;
	int ret;

	if (!choices->print_only && !backing_provable(sb)) {
		complain(ssd->path, "was not stopped cleanly, and its hard disk has neither a mark nor "
			 "a serial number: nothing tells whether a disk is the right one; if you "
			 "know it, create the device from the line that --print-table prints");
		return -EXDEV;
	}
	found = await_backing(sb, ssd, args, choices->wait_ns);
	if (!found)
		return -ENODEV;
	ret = device_find(hdd, found, flags);
	/* Asked before opening: O_EXCL would call it "in use", by ourselves. */
	if (!ret && hdd->devno == ssd->devno) {
		complain(found, "SSD and hard disk are the same device; name two");
		device_close(hdd);
		ret = -EINVAL;
	}
	if (!ret)
		ret = device_open_found(hdd, flags);
	if (!ret) {
		ret = backing_verify(sb, hdd, false);
		if (!ret)
			ret = check_storage(ssd, hdd, choices->print_only);
		if (ret)
			device_close(hdd);
	}
	if (ret)
		free(found);
	return ret;
}

static bool is_device(const char *path, unsigned int major, unsigned int minor)
{
	struct stat st;

	return !stat(path, &st) && S_ISBLK(st.st_mode) && st.st_rdev == makedev(major, minor);
}

/* Does @path stand for this half of a volume that runs?  Device mapper has the pair's UUID. */
static bool is_half(const char *path, const char *kind, const char *dm_uuid, unsigned int major,
		    unsigned int minor)
{
	char uuid[HALVES_UUID + 1];

	if (halves_link(path, kind, uuid))
		return !strncmp(dm_uuid, "LC-", 3) && !strcmp(dm_uuid + 3, uuid);
	return is_device(path, major, minor);
}

/*
 * By its UUID and the devices in its table: what is on an SSD that has failed since cannot be asked
 * for.  A volume whose hard disk is gone does not count, because it has to be started anew.
 */
static bool runs_already(char **args)
{
	unsigned int major[2], minor[2];
	struct dm_facts facts;
	bool same;
	char *hdd;

	/* What is wrong is told when the name is checked. */
	if (dm_facts(args[0], &facts) || !facts.exists)
		return false;
	same = facts.target && !strcmp(facts.target, "lc") &&
	       sscanf(facts.params, "%u:%u %u:%u", &major[0], &minor[0], &major[1], &minor[1]) == 4 &&
	       is_half(args[1], "cache", facts.uuid, major[1], minor[1]) &&
	       (!args[2] || is_half(args[2], "backing", facts.uuid, major[0], minor[0]));
	if (same) {
		hdd = xasprintf("/sys/dev/block/%u:%u", major[0], minor[0]);
		same = !access(hdd, F_OK);
		free(hdd);
	}
	dm_facts_free(&facts);
	return same;
}

static int check_name(const char *name)
{
	struct dm_facts facts;
	bool exists;

	if (strlen(name) > 127 || strpbrk(name, "/ \t\n")) {
		complain(name, "is no name for a device; take up to 127 characters without "
			 "blanks and slashes");
		return -EINVAL;
	}
	if (dm_facts(name, &facts))
		return -EIO;
	exists = facts.exists;
	dm_facts_free(&facts);
	if (!exists)
		return 0;
	complain(name, "the name is taken; take another one, or remove that device");
	return -EEXIST;
}

/* The options kept on the SSD, and those of the command line over them. */
static int merge_options(const struct lc_sb *sb, const char *path,
			 const struct choices *choices, char *options, size_t len)
{
	char *why;
	size_t i;

	snprintf(options, len, "%s", sb->options);
	/* A line end in them would be a second line of the table. */
	if (!options_plain(options)) {
		complain(path, "warning: the options kept on it are no pairs of plain words, and "
			 "are left out: %s; give those you need with -o", shown(options));
		options[0] = '\0';
	}
	for (i = 0; i < choices->nr_pairs; i++) {
		if (!options_set_pair(options, len, choices->pairs[i]))
			return usage_error("--option=%s: must be KEY=VALUE, and all fit 511 bytes",
					   choices->pairs[i]);
	}
	why = options_why_bad(options);
	if (!why)
		return 0;
	complain(NULL, "%s; give another value, or drop one that is kept on the SSD with -o KEY=",
		 why);
	free(why);
	return LC_EXIT_FAIL;
}

/* The kernel gets numbers: those of the devices that were checked, whatever names lead to now. */
static int start(const char *name, const struct lc_sb *sb, struct device *hdd, struct device *ssd,
		 const char *options)
{
	char *params, *uuid;
	int ret;

	/* The kernel claims them itself, and checks everything again. */
	if (device_unclaim(ssd) || device_unclaim(hdd))
		return -EIO;
	params = xasprintf("%u:%u %u:%u%s", major(hdd->devno), minor(hdd->devno),
			   major(ssd->devno), minor(ssd->devno), options);
	/* The UUID keeps a second device of the same cache away, whatever its name. */
	uuid = xasprintf("LC-%s", uuid_text(sb->cache_uuid));
	ret = dm_create_lc(name, uuid, sb->volume_sectors, params);
	free(uuid);
	free(params);
	return ret;
}

static int start_or_print(const char *name, const struct lc_sb *sb, struct device *hdd,
			  struct device *ssd, const char *options, bool print_only)
{
	char *words, *hdd_word, *ssd_word;
	int ret = 0;

	words = options[0] ? xasprintf(" %u %s", options_words(options), options) :
			     xasprintf("%s", "");
	if (print_only) {
		hdd_word = table_word(hdd->path);
		ssd_word = table_word(ssd->path);
		printf("0 %llu lc %s %s%s\n", sb->volume_sectors, hdd_word, ssd_word, words);
		free(hdd_word);
		free(ssd_word);
	} else {
		ret = start(name, sb, hdd, ssd, words);
	}
	free(words);
	return ret;
}

/* With the names of both devices as they are, which @args need not be. */
static int resume_pair(char **args, const struct choices *choices)
{
	struct device ssd, hdd;
	const struct lc_sb *sb;
	struct image img;
	char options[512];
	int ret;

	if (read_ssd(&ssd, args[1], &img))
		return LC_EXIT_FAIL;
	sb = image_sb(&img);
	ret = merge_options(sb, args[1], choices, options, sizeof(options));
	if (ret)
		goto close_ssd;
	ret = LC_EXIT_FAIL;
	if (choose_backing(sb, &ssd, args, choices, &hdd))
		goto close_ssd;
	/* udev sees the new device before this function goes on. */
	if (!choices->print_only)
		dm_iostats_choose(args[0], choices->iostats);
	if (!start_or_print(args[0], sb, &hdd, &ssd, options, choices->print_only)) {
		ret = LC_EXIT_OK;
		if (!choices->print_only && !choices->iostats)
			dm_iostats_off(args[0]);
	}
	free((char *)hdd.path);
	device_close(&hdd);
close_ssd:
	device_close(&ssd);
	return ret;
}

static int resume(char **args, const struct choices *choices)
{
	char *found = NULL, *names[3] = { args[0], args[1], args[2] }, uuid[HALVES_UUID + 1];
	int ret;

	if (choices->running_ok && !choices->print_only && runs_already(args)) {
		printf("%s: runs already, as this pair\n", shown(args[0]));
		return LC_EXIT_OK;
	}
	if (!choices->print_only && check_name(args[0]))
		return LC_EXIT_FAIL;
	if (is_absent(args[1])) {
		explain_absent(args);
		return LC_EXIT_FAIL;
	}
	if (halves_link(args[1], "cache", uuid)) {
		found = cache_find(args[1], uuid);
		if (!found)
			return LC_EXIT_FAIL;
		if (!same_device(found, args[1]))
			names[1] = found;
	}
	ret = resume_pair(names, choices);
	free(found);
	return ret;
}

/* Seconds, or "infinity". */
static bool parse_wait(const char *text, u64 *ns)
{
	*ns = ~0ULL;
	if (!strcmp(text, "infinity"))
		return true;
	if (!parse_u64(text, ns) || *ns > 1000000000ULL)
		return false;
	*ns *= 1000000000ULL;
	return true;
}

/* Options, then arguments.  Return: false if the command ends with *@code. */
static bool parse(int argc, char **argv, struct choices *choices, char **args, int *code)
{
	const char *wait = "0";
	int c, i;

	while ((c = cmd_option(&cmd_resume, argc, argv, code)) >= 0) {
		if (c == 'o')
			choices->pairs[choices->nr_pairs++] = optarg;
		else if (c == OPT_PRINT_TABLE)
			choices->print_only = true;
		else if (c == OPT_IOSTATS)
			choices->iostats = true;
		else if (c == OPT_RUNNING_OK)
			choices->running_ok = true;
		else
			wait = optarg;
	}
	if (c == CMD_END)
		return false;
	if (!parse_wait(wait, &choices->wait_ns)) {
		*code = usage_error("--wait=%s: give seconds, or 'infinity'", wait);
		return false;
	}
	if (argc - optind < 1 || argc - optind > 3) {
		*code = usage_error("give NAME, SSD and, if it cannot be found, HDD; or only NAME, of a "
				    "line in " LCTAB_PATH);
		return false;
	}
	for (i = 0; optind + i < argc; i++)
		args[i] = argv[optind + i];
	return true;
}

/* What the command line leaves out.  Return: false after complaining.  @tab: see tabline.h. */
static bool from_tab(struct lctab *tab, char **args, struct choices *choices)
{
	const struct lctab_line *line = tabline_find(tab, args[0]);
	size_t own = choices->nr_pairs;

	if (!line)
		return false;
	args[1] = line->ssd;
	args[2] = line->hdd;
	choices->iostats |= line->iostats;
	/* A later one counts: that of the command line. */
	choices->nr_pairs += line->nr_pairs;
	choices->pairs = xrealloc(choices->pairs, choices->nr_pairs + 1, sizeof(*choices->pairs));
	memmove(choices->pairs + line->nr_pairs, choices->pairs, own * sizeof(*choices->pairs));
	if (line->nr_pairs)
		memcpy(choices->pairs, line->pairs, line->nr_pairs * sizeof(*choices->pairs));
	return true;
}

static int run(int argc, char **argv)
{
	struct choices choices = { .pairs = xcalloc(argc, sizeof(*choices.pairs)) };
	char *args[3] = { NULL };
	struct lctab tab = { 0 };
	int ret = LC_EXIT_OK;

	if (parse(argc, argv, &choices, args, &ret)) {
		dm_setup();
		ret = LC_EXIT_FAIL;
		if (args[1] || from_tab(&tab, args, &choices))
			ret = resume(args, &choices);
	}
	lctab_free(&tab);
	free(choices.pairs);
	return ret;
}

const struct cmd cmd_resume = {
	.name = "resume",
	.summary = "start a cached volume",
	.usage = "[-o KEY=VALUE]... NAME [SSD [HDD]]",
	.text = "Starts the volume of a formatted SSD as /dev/mapper/NAME.  The hard disk is\n"
		"found by its stored identity if it is not named.  With NAME only, SSD, hard\n"
		"disk and options are those of the volume's line in /etc/lctab.",
	.options = long_options,
	.run = run,
};
