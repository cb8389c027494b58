// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random paths through the lives of a volume, and the command line.
 *
 *	explore [--seed N] [--states N]		explore from this seed on
 *	explore --seed N --state K		only the K-th state of that seed, told in full
 *	explore --replay FILE ...		paths from files
 *
 * A seed is one path.  Of each of its lives several crash states are drawn and judged;
 * from the last of them the path goes on.
 */
#include <getopt.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "action.h"
#include "crash.h"
#include "history.h"
#include "judge.h"
#include "life.h"
#include "minimise.h"
#include "path.h"
#include "settle.h"
#include "store/ring.h"
#include "standin.h"
#include "writeback/writeback.h"

#define BYTES_EVERY	32	/* states: compare bytes, not only tags */

static struct world the_world;
struct world *world = &the_world;

static struct path path;
static struct theme theme;

static struct {
	u64 seed;
	u64 states;		/* at least so many */
	u64 state;		/* of the seed; 0: all */
	u32 lives;
	u32 failing;		/* percent of paths in which commands may fail */
	u32 draws;		/* states of a life; 0: drawn */
	u32 rot;		/* percent of states with rot; 0: drawn */
	bool minimise;
	bool minimise_files;
	char *params;		/* not drawn */
} options = { .seed = 1, .states = 20000, .lives = 7, .failing = 50, .minimise = true };

/* How often the states, or their lives, were of a kind: a run that meets none proves little. */
#define KINDS(KIND) \
	KIND(clean) KIND(warm) KIND(torn) KIND(rot) KIND(refused) KIND(in_start) \
	KIND(rewritten) KIND(skips) KIND(tombstones) KIND(wraps) KIND(old_format) KIND(lanes) \
	KIND(cuts) KIND(old_cuts) KIND(old_hdd) KIND(old_ssd) KIND(forks) KIND(old_taken) \
	KIND(unreadable) KIND(moved_head) KIND(cut_runs) KIND(cut_discards) KIND(direct) KIND(waits) KIND(met) \
	KIND(left_open) KIND(again) KIND(merges) KIND(solid) KIND(through) KIND(parked) \
	KIND(slept) KIND(relogged) KIND(reading) KIND(settled) KIND(around) \
	KIND(entered) KIND(reads) KIND(promoted) KIND(written_through) \
	KIND(kept)

static struct {
	u64 states, seeds;
#define KIND(name) u64 name;
	KINDS(KIND)
#undef KIND
} seen;

/* --- messages ------------------------------------------------------------------- */

void say(const char *format, ...)
{
	va_list args;

	if (!world->verbose)
		return;
	va_start(args, format);
	printf("  ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

/* Something is wrong; the first thing counts. */
void trouble(enum verdict verdict, const char *format, ...)
{
	va_list args;

	if (world->trouble)
		return;
	world->trouble = verdict;
	va_start(args, format);
	vsnprintf(world->why, sizeof(world->why), format, args);
	va_end(args);
}

/* The path once more, telling what happens. */
void path_tell(const struct path *told)
{
	world->verbose = true;
	path_run(told, true);
	world->verbose = false;
	if (world->trouble)
		printf("violation of %s: %s\n", verdict_names[world->trouble], world->why);
	else
		printf("fine\n");
}

/* The sanitizers tell more of a fault. */
#ifdef SHIM_MALLOC
#define SANITIZED	true
#else
#define SANITIZED	false
#endif

/* What is running, for fault(). */
static struct {
	u64 seed;
	const u64 *state;
} running;

/* The module's lists or memory are broken.  The stack may be a task's, and used up. */
static void fault(int number)
{
	char said[128];
	int len = snprintf(said, sizeof(said),
			   "violation of warning: signal %d\nrepeat with: explore --seed %llu"
			   " behind state %llu\n", number, running.seed,
			   running.state ? *running.state : 0);

	if (write(STDOUT_FILENO, said, len) < 0)
		_exit(2);
	_exit(1);
}

static void tell_faults(void)
{
	static u8 stack[64 << 10];
	stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = fault, .sa_flags = SA_ONSTACK };

	sigaltstack(&own, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGFPE, &action, NULL);
}

/* A state that is wrong, or that was asked for: the path to it, and what happens on it. */
static void report(const struct life *life, const struct crash *crash, u64 seed, u64 state)
{
	enum verdict verdict = world->trouble;

	if (verdict)
		printf("violation of %s: %s\nrepeat with: explore --seed %llu --state %llu\n",
		       verdict_names[verdict], world->why, seed, state);
	step_take(&path.steps[path.nr_steps++], life, crash);
	if (path_run(&path, true) != verdict) {
		printf("the path alone does not repeat it: %s\n", world->why);
		world->trouble = verdict;
		return;
	}
	if (verdict && options.minimise)
		minimise(&path, verdict);
	printf("--- path, for --replay\n");
	path_write(&path, stdout);
	printf("--- told\n");
	path_tell(&path);
}

/* --- one path --------------------------------------------------------------------- */

static void params_draw(struct params *p, struct rng *rng)
{
	struct rng lanes = { .state = ~rng->state };
	struct rng head = { .state = rng->state ^ 1ULL << 63 };
	struct rng rescan = { .state = rng->state ^ 1ULL << 61 };
	struct rng fua = { .state = rng->state ^ 1ULL << 59 };
	struct rng cache = { .state = rng->state ^ 1ULL << 60 };
	struct rng around = { .state = rng->state ^ 1ULL << 62 };

	/* Recovery reads 32 segments at a time: what it does behind them wants larger rings. */
	p->segments = chance(rng, 75) ? 16 : 16 + rnd(rng, MAX_SEGMENTS - 15);
	p->blocks = 8 + rnd(rng, MAX_BLOCKS - 7);
	if (chance(rng, 50))
		p->blocks = 8 + rnd(rng, 24);
	p->lane_limit = chance(rng, 30) ? 16 : chance(rng, 60) ? 2 : 3 + rnd(rng, 3);
	p->buffers = 4 + rnd(rng, MAX_BUFFERS - 3);
	p->fua = chance(rng, 60);
	p->fua_slots = 2 + rnd(rng, SEG_SLOTS - 1);
	p->layout = rnd(rng, 3);
	p->csum = chance(rng, 5) ? LC_CSUM_CRC32C : LC_CSUM_XXH64;
	p->batch = 16 + rnd(rng, 100);
	p->depth = 1 + rnd(rng, 4);
	p->zeroing = rnd(rng, 2);
	/* By numbers of its own: what a seed is with one lane does not change. */
	p->lanes = chance(&lanes, 50) ? 0 : 2 + rnd(&lanes, MAX_LANES - 1);
	p->round = p->lanes ? p->lanes + rnd(&lanes, p->segments / 2 - p->lanes) : 0;
	p->mixed = p->lanes && chance(&lanes, 40);
	if (p->lanes)
		p->buffers = max(p->buffers, 2 * p->lanes);
	p->elsewhere = chance(&lanes, 50);
	p->direct = chance(&lanes, 60);
	p->fast = chance(&lanes, 50);
	p->through = chance(&lanes, 8);
	p->reading = chance(&lanes, 20);
	/* Of a slow SSD less waits at a time. */
	p->tick = chance(&lanes, 60) ? 1000 : 20u << rnd(&lanes, 11);
	/* The same; the seam is often within the blocks that are written to most. */
	if (chance(&head, 25))
		p->layout = LAYOUT_MOVED_HEAD;
	p->around = chance(&around, 30);
	p->leave = chance(&around, 20);
	p->rescan = rnd(&rescan, 3);
	p->cache = chance(&cache, 30);
	p->leave |= p->cache && chance(&cache, 30);
	p->reading |= p->cache && chance(&cache, 40);
	p->stacked = chance(&fua, 15);
	p->hdd_flush = chance(&fua, 30);
	p->head = 1 + rnd(&head, chance(&head, 50) ? 4 : p->blocks - 1);
}

static void count(const struct life *life, const struct crash *crash, const struct life *next,
		  int ret)
{
	u32 i;

	seen.states++;
	seen.clean += next->clean;
	seen.warm += crash->warm;
	seen.rot += crash->rot != ROT_NONE;
	seen.refused += ret != 0;
	if (!ret)
		seen.entered += world->vol->c.warm.entered;
	seen.in_start += crash->at < life->started;
	seen.old_hdd += crash->old == OLD_HDD;
	seen.old_ssd += crash->old == OLD_SSD;
	seen.forks += crash->old == OLD_FORK || crash->old == OLD_FORKS;
	seen.old_taken += crash->old && !ret;
	seen.moved_head += world->params.layout == LAYOUT_MOVED_HEAD;
	seen.through += world->params.through;
	seen.reading += world->params.reading;
	for (i = 0; i < crash->nr_fates; i++)
		seen.unreadable += crash->fates[i].kind == FATE_UNREADABLE;
	for (i = 0; i < crash->nr_fates; i++) {
		if (crash->fates[i].kind != FATE_DROPPED) {
			seen.torn++;
			break;
		}
	}
}

/* What the life that is over had in it. */
static void count_life(const struct life *life)
{
	u64 seq;

	for (seq = life->start_seq + 1; seq <= world->last_seq; seq++) {
		seen.rewritten += rec_of_seq(seq)->nr_places > 1;
		seen.tombstones += rec_of_seq(seq)->type == LC_RECORD_RANGE;
	}
	seen.skips += world->vol->c.sb.nr_skips != 0;
	seen.wraps += lc_ring_head(world->vol->c.ring) > world->params.segments;
	seen.lanes += nr_lanes() > 1;
	seen.cuts += world->standin->nr_boundaries;
	seen.old_cuts += world->standin->nr_old_boundaries;
	seen.cut_runs += world->standin->nr_cut_runs;
	seen.cut_discards += world->standin->nr_cut_discards;
	seen.direct += world->standin->nr_direct;
	seen.waits += world->standin->nr_waits;
	seen.met += world->standin->nr_met;
	seen.left_open += world->standin->nr_left_open;
	seen.again += world->standin->nr_again;
	seen.merges += world->standin->nr_merges;
	seen.solid += world->standin->nr_solid;
	seen.parked += world->standin->nr_parked;
	seen.slept += world->standin->nr_slept;
	seen.around += world->standin->nr_around;
	seen.written_through += world->standin->nr_through;
	seen.reads += world->standin->nr_reads;
	seen.promoted += world->standin->nr_promoted;
	seen.kept += world->standin->nr_kept;
	if (world->params.rescan == 2)
		seen.entered += world->vol->c.warm.entered;
	seen.relogged += lc_writeback_relogged(world->vol->wb);
}

/* Judge one state of a life.  Return: whether all is fine. */
static bool try_state(struct life *life, const struct crash *crash, u64 state)
{
	struct life *next = life_other(life);
	int ret;

	crash_apply(life, crash, next);
	ret = life_start(next);
	judge(life, crash, next, ret, state % BYTES_EVERY == 0);
	count(life, crash, next, ret);
	return !world->trouble;
}

/* A life of its own, then lc-format: its records are still there. */
static struct life *old_format(struct life *life)
{
	struct crash end = { .at = AT_END };
	struct life *next = life_other(life);

	plan_draw(&plan, &theme, &world->rng, 1);
	life_go_on(life);
	end.at = life->now;
	step_take(&path.steps[path.nr_steps], life, &end);
	path.steps[path.nr_steps++].reformat = true;
	life_reformat(life, next);
	seen.old_format++;
	if (life_start(next))
		trouble(BAD_REFUSED, "a fresh volume was refused");
	return next;
}

/* Return: whether the path goes on. */
static bool explore_life(struct life *life, u64 seed, u64 *state)
{
	struct crash crash = {};
	u32 i, mark;

	life_remember(life);
	plan_draw(&plan, &theme, &world->rng, life->next_segment);
	life_go_on(life);
	if (!world->trouble)
		judge_clean(life);
	count_life(life);
	mark = dpage_mark();
	crash.at = life->now;
	for (i = 0; i < theme.states && !world->trouble; i++) {
		bool last = i == theme.states - 1;

		dpage_release(mark);
		/* A life that lost what it was told is safe is not lived on. */
		crash_draw(life, &crash, last ? 0 : theme.rot, &world->rng);
		if (!try_state(life, &crash, ++*state) || options.state == *state)
			break;
	}
	if (world->trouble || options.state == *state) {
		report(life, &crash, seed, *state);
		return false;
	}
	step_take(&path.steps[path.nr_steps++], life, &crash);
	history_around(&crash, judge_saw);
	history_cut(life, crash.at, life_other(life), life_other(life)->start_seq);
	return true;
}

/* Return: whether all states were fine. */
static bool explore_seed(u64 seed)
{
	struct life *life = &world->lives[0];
	struct params params;
	u64 state = 0;
	u32 i;

	running.seed = seed;
	running.state = &state;
	world->rng.state = seed;
	params_draw(&params, &world->rng);
	if (options.params && !params_read(&params, strdupa(options.params)))
		return !fprintf(stderr, "explore: --params: not understood\n");
	/* A ring that is given may be shorter than what was drawn for.  See ROUND_SHARE in alloc.c. */
	params.round = min(params.round, params.segments / 2 - 1);
	theme_draw(&theme, &world->rng, options.failing);
	if (options.draws)
		theme.states = options.draws;
	if (options.rot)
		theme.rot = options.rot;
	path.params = params;
	path.nr_steps = 0;
	world_reset(&params);
	world->source = plan_next;
	if (life_start(life))
		trouble(BAD_REFUSED, "a fresh volume was refused");
	if (chance(&world->rng, 15))
		life = old_format(life);
	for (i = 0; i < options.lives && !world->trouble && !dpage_short(); i++) {
		world->source = plan_next;
		if (!explore_life(life, seed, &state))
			return !world->trouble;
		life = life_other(life);
	}
	if (!world->trouble && !dpage_short() && !params.elsewhere) {
		plan_draw(&plan, &theme, &world->rng, life->next_segment);
		seen.settled += settle(life);
	}
	if (world->trouble)
		/* No state of a crash. */
		printf("violation of %s: %s\nrepeat with: explore --seed %llu\n",
		       verdict_names[world->trouble], world->why, seed);
	seen.seeds++;
	return !world->trouble;
}

/* --- command line -------------------------------------------------------------------- */

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static int explore(void)
{
	u64 first = options.seed;
	double begin = seconds(), took;
	bool fine = true;

	do
		fine = explore_seed(options.seed++);
	while (fine && !options.state && seen.states < options.states);
	took = seconds() - begin;
	printf("explore: %llu states, %llu seeds from %llu, %.1f s, %.0f states/s\n", seen.states,
	       seen.seeds, first, took, seen.states / took);
	printf("explore: met");
#define KIND(name) printf(" " #name " %llu", seen.name);
	KINDS(KIND)
#undef KIND
	printf("\n");
	return !fine;
}

static int replay(const char *name)
{
	FILE *file = fopen(name, "r");
	bool ok;

	if (!file) {
		fprintf(stderr, "explore: %s: %s\n", name, strerror(errno));
		return 2;
	}
	ok = path_read(&path, file, name);
	fclose(file);
	if (!ok)
		return 2;
	printf("%s\n", name);
	if (options.minimise_files && path_run(&path, true)) {
		minimise(&path, world->trouble);
		path_write(&path, stdout);
	}
	path_tell(&path);
	return world->trouble ? 1 : 0;
}

static int usage(void)
{
	fprintf(stderr, "Usage: explore [--seed N] [--states N] [--state K] [--lives N]\n"
		"               [--failing PERCENT] [--rot PERCENT] [--draws N]\n"
		"               [--params 'NAME=N ...'] [--no-minimise]\n"
		"       explore [--minimise] --replay FILE ...\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "states", required_argument, NULL, 'n' },
		{ "state", required_argument, NULL, 'k' },
		{ "lives", required_argument, NULL, 'l' },
		{ "draws", required_argument, NULL, 'd' },
		{ "rot", required_argument, NULL, 'o' },
		{ "params", required_argument, NULL, 'p' },
		{ "failing", required_argument, NULL, 'f' },
		{ "no-minimise", no_argument, NULL, 'm' },
		{ "minimise", no_argument, NULL, 'M' },
		{ "replay", no_argument, NULL, 'r' },
		{},
	};
	bool files = false;
	int option, ret = 0;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		switch (option) {
		case 's':
			options.seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			options.states = strtoull(optarg, NULL, 0);
			break;
		case 'k':
			options.state = strtoull(optarg, NULL, 0);
			break;
		case 'l':
			options.lives = min(strtoul(optarg, NULL, 0), MAX_LIVES - 2UL);
			break;
		case 'f':
			options.failing = strtoul(optarg, NULL, 0);
			break;
		case 'd':
			options.draws = strtoul(optarg, NULL, 0);
			break;
		case 'o':
			options.rot = strtoul(optarg, NULL, 0);
			break;
		case 'p':
			options.params = optarg;
			break;
		case 'M':
			options.minimise_files = true;
			break;
		case 'm':
			options.minimise = false;
			break;
		case 'r':
			files = true;
			break;
		default:
			return usage();
		}
	}
	if (!SANITIZED)
		tell_faults();
	life_images_alloc();
	if (!files)
		return optind < argc ? usage() : explore();
	for (; optind < argc && !ret; optind++)
		ret = replay(argv[optind]);
	return ret;
}
