// SPDX-License-Identifier: GPL-2.0-only
/*
 * lc-check: verify a cache device, and repair it.
 *
 * A repair is planned in memory (plan.h) until nothing more is found, and shown.  Before the
 * first byte is written everything is looked at once more: what is then no longer found, or
 * found different, was no damage of the medium, and nothing is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "check.h"
#include "cmd.h"
#include "detach.h"
#include "find.h"
#include "plan.h"
#include "repair-run.h"
#include "repair.h"
#include "signature.h"
#include "storage.h"
#include "util.h"

/* Exit codes of fsck(8). */
enum {
	CHECK_CLEAN	= 0,
	CHECK_REPAIRED	= 1,
	CHECK_DAMAGED	= 4,
	CHECK_FAILED	= 8,
	CHECK_USAGE	= 16,
};

static const struct cmd_option long_options[] = {
	{ "backing", 'b', "HDD", "its hard disk, if it shall not be searched for" },
	{ "repair", 'r', NULL, "cut damage out; sectors that are gone then give errors until\n"
	  "they are written again.  Asks first on a terminal" },
	{ "this-copy", 't', NULL, "with --repair: believe this cache, although a copy of it was\n"
	  "used with the hard disk since; what that did to the disk is mixed with what is here" },
	{ "yes", 'y', NULL, "do not ask" },
	{ "quiet", 'q', NULL, "only errors and the exit code" },
	{ NULL, 0, NULL, NULL }
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
	if (ret || c->bad_checkpoint || c->forked)
		return ret;	/* the log is looked at in the next round */
	if (c->nr_unread)
		return repair_unread(c);	/* and again */
	/* Names before holes: filling holes looks at the log anew. */
	ret = repair_slots(c);
	if (!ret && c->bad_run)
		ret = repair_run(c);
	return ret;
}

/* What lc-check works on. */
struct job {
	const struct device *ssd, *hdd;	/* hdd NULL: not looked at */
	bool fix, quiet, yes, this_copy;
};

/* A repair that is planned. */
struct draft {
	struct device ssd, hdd;		/* with plans */
	struct plan ssd_plan, hdd_plan;
	struct steps steps;
	unsigned int damage;		/* found in all rounds */
	unsigned int first_damage;	/* in the first one, which saw the medium as it is */
	u64 first_sum;
};

static void draft_start(struct draft *d, const struct job *job)
{
	memset(d, 0, sizeof(*d));
	d->ssd = *job->ssd;
	d->ssd.plan = &d->ssd_plan;
	if (!job->hdd)
		return;
	d->hdd = *job->hdd;
	d->hdd.plan = &d->hdd_plan;
}

static void draft_free(struct draft *d)
{
	size_t i;

	for (i = 0; i < d->steps.nr; i++)
		free(d->steps.line[i]);
	free(d->steps.line);
	plan_free(&d->ssd_plan);
	plan_free(&d->hdd_plan);
}

/*
 * Look, and plan repairs: these uncover more (behind a filled hole), so look again, but not for
 * ever.  @c: what is left, to be freed.  Return: 0, or a negative errno.
 */
static int plan_repairs(struct draft *d, const struct job *job, struct check *c)
{
	unsigned int rounds;
	int ret;

	for (rounds = 0; ; rounds++) {
		memset(c, 0, sizeof(*c));
		c->ssd = &d->ssd;
		c->hdd = job->hdd ? &d->hdd : NULL;
		c->quiet = job->quiet;
		c->this_copy = job->fix && job->this_copy;
		c->steps = &d->steps;
		ret = check_run(c);
		if (!rounds) {
			d->first_damage = c->nr_damage;
			d->first_sum = c->damage_sum;
		}
		if (ret || !job->fix || !c->nr_damage || c->beyond_repair || rounds == 8 ||
		    d->ssd_plan.nr > PLAN_MOST)
			return ret;
		d->damage += c->nr_damage;
		ret = repair(c);
		if (ret || !c->nr_writes)
			return ret;	/* it would find the same */
		check_free(c);
	}
}

static bool ask(const struct draft *d, const struct job *job, const struct check *left)
{
	char answer[16] = "";
	size_t i;

	fprintf(stderr, "These repairs overwrite %zu blocks of 4 KiB on %s", d->ssd_plan.nr,
		job->ssd->path);
	if (d->hdd_plan.nr)
		fprintf(stderr, " and %zu on %s", d->hdd_plan.nr, job->hdd->path);
	fprintf(stderr, ":\n");
	for (i = 0; i < d->steps.nr; i++)
		fprintf(stderr, "  %s\n", d->steps.line[i]);
	if (left->nr_damage)
		fprintf(stderr, "Damage is left behind them.\n");
	fprintf(stderr, "Copy the SSD first if its data is precious.  Type 'yes' to go on: ");
	if (fgets(answer, sizeof(answer), stdin) && !strcmp(answer, "yes\n"))
		return true;
	complain(NULL, "not confirmed; nothing was written");
	return false;
}

/* Is the damage that repairs were planned for still there, all of it and nothing else? */
static bool found_again(const struct draft *d, const struct job *job)
{
	struct check c = {
		.ssd = job->ssd, .hdd = job->hdd, .quiet = true, .this_copy = job->this_copy,
	};
	unsigned int tries = 2;		/* the longest pause */
	bool same;

	device_again(job->ssd, &tries);
	same = !check_run(&c) && c.nr_damage == d->first_damage && c.damage_sum == d->first_sum;
	check_free(&c);
	if (!same)
		complain(job->ssd->path, "reads differently than a moment ago, so it is not the "
			 "data that is damaged; nothing was written.  Look at the kernel log, check "
			 "cable and SMART data, then try again");
	return same;
}

/* Do write number @i of a plan on @dev, which has none, and make it durable. */
static int apply_write(const struct plan *plan, size_t i, const struct device *dev)
{
	int ret = device_write(dev, plan->write[i].address, plan->write[i].block, LC_SLOT_BYTES);

	return ret ? ret : device_sync(dev);
}

static int apply(const struct draft *d, const struct job *job)
{
	size_t i;
	int ret = 0;

	/* The mark says less than the superblock; the order between the devices is free. */
	for (i = 0; i < d->ssd_plan.nr && !ret; i++)
		ret = apply_write(&d->ssd_plan, i, job->ssd);
	for (i = 0; i < d->hdd_plan.nr && !ret; i++)
		ret = apply_write(&d->hdd_plan, i, job->hdd);
	if (ret)
		complain(job->ssd->path, "the repair stopped; run it again when the error above "
			 "is dealt with");
	return ret;
}

/* The way on from damage that is left. */
static const char *way_on(const struct check *c, const struct job *job)
{
	if (c->beyond_repair && c->img.best >= 0)
		return " beyond repair; nothing was written; see above, and find the newer copy if "
		       "there is one";
	if (c->beyond_repair)
		return " beyond repair; nothing was written; see above";
	return job->fix ? " and could not be repaired completely" :
			  "; lc-check --repair cuts the damage out";
}

static void say_verdict(const struct check *c, const struct draft *d, const struct job *job)
{
	if (c->nr_damage)
		complain(job->ssd->path, "is damaged%s", way_on(c, job));
	else
		check_say(c, "%s: %s, %llu data slots verified", job->ssd->path,
			  d->damage ? "repaired" : "no damage", c->nr_slots_read);
}

/* One plan from the first look to the last write; an exit code.  *@more: another is needed. */
static int check_and_repair(const struct job *job, bool *more)
{
	struct draft d;
	struct check c;
	int ret;

	*more = false;
	draft_start(&d, job);
	ret = plan_repairs(&d, job, &c) ? CHECK_FAILED : CHECK_CLEAN;
	if (!ret && (d.ssd_plan.nr || d.hdd_plan.nr) && !c.beyond_repair) {
		if (!job->yes && isatty(STDIN_FILENO) && !ask(&d, job, &c))
			ret = CHECK_DAMAGED;
		else if (!found_again(&d, job) || apply(&d, job))
			ret = CHECK_FAILED;
		else
			*more = c.nr_damage && d.ssd_plan.nr > PLAN_MOST;
	}
	if (!ret && !*more) {
		print_lost(&c);
		say_verdict(&c, &d, job);
		ret = c.nr_damage ? CHECK_DAMAGED : d.damage ? CHECK_REPAIRED : CHECK_CLEAN;
	}
	check_free(&c);
	draft_free(&d);
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
	if (image_unreadable(&img)) {
		complain(ssd->path, "no superblock of an lc cache was found, but where it would be "
			 "cannot be read; nothing was written");
		return false;
	}
	if (!signatures_probe(ssd, &found))
		complain(ssd->path, "is not formatted for dm-lc, it holds %s; see lc-format",
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

/* Half way between a bare disk and a pair: finished by --repair.  Return: false if it is not. */
static bool check_interrupted(const struct device *ssd, const struct device *hdd, bool fix,
			      int *code)
{
	const struct lc_mark_info *mark;
	struct mark_pair marks;
	struct image img;
	int ret;

	if (image_read(&img, ssd) || !image_sb(&img) || image_sb(&img)->mark_offset == LC_NO_MARK ||
	    marks_read(&marks, hdd, image_sb(&img)->mark_offset))
		return false;
	mark = marks_best(&marks);
	if (!mark || !mark_belongs(mark, image_sb(&img)) || !attach_interrupted(mark))
		return false;
	*code = CHECK_DAMAGED;
	complain(hdd->path, "%s", attach_text(mark, hdd->path));
	if (!fix)
		return true;
	ret = mark->state == LC_MARK_ATTACHING ? attach_finish(hdd, image_sb(&img)) :
						 detach_pair(ssd, hdd, 0);
	*code = ret ? CHECK_FAILED : CHECK_REPAIRED;
	return true;
}

static int check_device(const char *ssd_path, const char *hdd_path, struct job *job)
{
	struct device ssd, hdd;
	bool has_hdd, more;
	char *found;
	int ret;

	if (device_open(&ssd, ssd_path,
			DEVICE_FILE_OK | DEVICE_EXCL | (job->fix ? DEVICE_WRITE : 0)))
		return CHECK_FAILED;
	if (!is_cache(&ssd)) {
		device_close(&ssd);
		return CHECK_FAILED;
	}
	has_hdd = !open_backing(&hdd, &ssd, hdd_path, job->fix, job->quiet, &found);
	if ((!has_hdd && hdd_path) ||
	    (job->fix && storage_check_pair(&ssd, has_hdd ? &hdd : NULL, ""))) {
		if (has_hdd)
			device_close(&hdd);
		ret = CHECK_FAILED;
	} else if (has_hdd && check_interrupted(&ssd, &hdd, job->fix, &ret)) {
		device_close(&hdd);
	} else {
		job->ssd = &ssd;
		job->hdd = has_hdd ? &hdd : NULL;
		do {
			ret = check_and_repair(job, &more);
		} while (more);
		if (has_hdd)
			device_close(&hdd);
	}
	free(found);
	device_close(&ssd);
	return ret;
}

static int run(int argc, char **argv)
{
	struct job job = { .fix = false };
	const char *hdd = NULL, *ssd;
	int c, code;

	while ((c = cmd_option(&cmd_check, argc, argv, &code)) >= 0) {
		if (c == 'b')
			hdd = optarg;
		else if (c == 'r')
			job.fix = true;
		else if (c == 't')
			job.this_copy = true;
		else if (c == 'y')
			job.yes = true;
		else if (c == 'q')
			job.quiet = true;
	}
	if (c == CMD_END)
		return code;
	ssd = cmd_argument(argc, argv, "cache device");
	return ssd ? check_device(ssd, hdd, &job) : CHECK_USAGE;
}

const struct cmd cmd_check = {
	.name = "check",
	.summary = "verify a cache device, and repair it",
	.usage = "[--repair] [--backing HDD] SSD",
	.text = "Verifies everything a cache device holds.  Changes nothing without --repair.\n\n"
		"Exit codes: 0 no damage, 1 damage repaired, 4 damage left, 8 failed, 16 usage.",
	.options = long_options,
	.run = run,
	.exit_fail = CHECK_FAILED,
	.exit_usage = CHECK_USAGE,
};
