// SPDX-License-Identifier: GPL-2.0-only
/*
 * Paths: doing one again, and their text form, one line each:
 *
 *	params NAME=NUMBER ...		once
 *	life				then its actions, named as in action.h
 *	crash cut|warm [start TIME]	how the life ended; TIME: within its start
 *	drop|first|last|some|unreadable T O [N]
 *					what is left of the command submitted at that time
 *					as the O-th, if not all
 *	rot KIND NUMBER			what is damaged besides
 *	old hdd|ssd N			that disk is replaced by a copy from before the N-th
 *					life, from 0, of those whose copies are kept
 *	format				instead of a crash: lc-format on the same disks
 *
 * Times count from the end of the start, blocks from the first one that the load writes to.
 * Behind the last crash the volume is started once more and judged.  '#' begins a comment.
 */
#include "action.h"
#include "crash.h"
#include "history.h"
#include "judge.h"
#include "life.h"
#include "path.h"
#include "standin.h"

static const char *const fate_names[] = {
	[FATE_KEPT] = "keep", [FATE_DROPPED] = "drop", [FATE_FIRST] = "first",
	[FATE_LAST] = "last", [FATE_SOME] = "some",
	[FATE_UNREADABLE] = "unreadable",
};

static const char *const rot_names[NR_ROTS] = {
	[ROT_NONE] = "none", [ROT_HEADER] = "header", [ROT_SUPERBLOCK] = "superblock",
	[ROT_MARK] = "mark", [ROT_CHECKPOINT] = "checkpoint",
};

static const char *const old_names[NR_OLDS] = {
	[OLD_NONE] = "none", [OLD_HDD] = "hdd", [OLD_SSD] = "ssd",
	[OLD_FORK] = "fork", [OLD_FORKS] = "forks",
};

/* --- doing it -------------------------------------------------------------------- */

struct life *life_other(const struct life *life)
{
	return life == &world->lives[0] ? &world->lives[1] : &world->lives[0];
}

/* A new volume, on disks full of zeros, in lives[0]. */
void world_reset(const struct params *params)
{
	struct life *life = &world->lives[0];

	dpage_release(0);
	world->params = *params;
	world->generation = 1000;
	world->nr_ops = 0;
	world->nr_recs = 0;
	world->nr_past = 0;
	world->trouble = FINE;
	memset(world->began, 0, sizeof(world->began));
	life->now = 0;
	world->life = life;
	history_reset();
	life_images_clear(life);
	format_volume(life);
	life_prepare(life);
}

/**
 * life_reformat() - the life is over, the disks are formatted anew
 * @life: the life
 * @next: gets the disks
 */
void life_reformat(struct life *life, struct life *next)
{
	struct crash crash = { .at = life->now };
	u32 n;

	crash_apply(life, &crash, next);
	for (n = 1; n <= world->nr_ops; n++) {
		world->ops[n].dead = true;
		world->ops[n].time = 0;
	}
	history_reset();
	world->nr_past = 0;
	memset(world->began, 0, sizeof(world->began));
	format_volume(next);
	life_prepare(next);
}

/**
 * step_take() - note how a life went, up to its crash
 * @step: gets it
 * @life: the life
 * @crash: how it ended
 */
void step_take(struct step *step, const struct life *life, const struct crash *crash)
{
	step->reformat = false;
	step->crash = *crash;
	step->nr_actions = 0;
	if (crash->at < life->started)
		return;
	step->nr_actions = crash->at - life->started;
	step->crash.at = AT_END;
	memcpy(step->actions, life->actions, step->nr_actions * sizeof(step->actions[0]));
}

static const struct step *script;
static u32 script_at;

static bool script_next(struct life *life, struct action *action)
{
	(void)life;
	if (script_at == script->nr_actions)
		return false;
	*action = script->actions[script_at++];
	return true;
}

/* One life, from its start; the disks it leaves are in the other one. */
static struct crash live_step(struct life *life, const struct step *step)
{
	struct crash crash = step->crash;

	script = step;
	script_at = 0;
	world->source = script_next;
	life_go_on(life);
	if (!world->trouble)
		judge_clean(life);
	if (crash.at > life->now)
		crash.at = life->now;
	if (step->reformat)
		life_reformat(life, life_other(life));
	else
		crash_apply(life, &crash, life_other(life));
	return crash;
}

/**
 * path_run() - do a path
 * @path: the path
 * @bytes: judge bytes too
 *
 * Return: the first thing that is wrong; world->why says what.
 */
enum verdict path_run(const struct path *path, bool bytes)
{
	struct life *life;
	struct crash crash;
	u32 i;
	int ret;

	world_reset(&path->params);
	life = &world->lives[0];
	ret = life_start(life);
	for (i = 0; i < path->nr_steps && !ret && !world->trouble; i++) {
		if (!path->steps[i].reformat)
			life_remember(life);
		crash = live_step(life, &path->steps[i]);
		if (world->trouble)
			break;
		ret = life_start(life_other(life));
		if (path->steps[i].reformat) {
			life = life_other(life);
			continue;
		}
		if (judge(life, &crash, life_other(life), ret, bytes) || ret)
			break;
		history_around(&crash, judge_saw);
		history_cut(life, crash.at, life_other(life), life_other(life)->start_seq);
		life = life_other(life);
	}
	return world->trouble;
}

/* --- as text ------------------------------------------------------------------------ */

static void write_action(const struct action *action, FILE *file)
{
	const u32 args[] = { action->a, action->b, action->c };
	u32 i;

	fprintf(file, "%s", action_names[action->kind]);
	for (i = 0; i < action_args[action->kind]; i++)
		fprintf(file, " %u", args[i]);
}

static void write_crash(const struct crash *crash, FILE *file)
{
	u32 i;

	fprintf(file, "crash %s", crash->warm ? "warm" : "cut");
	if (crash->at != AT_END)
		fprintf(file, " start %u", crash->at);
	fprintf(file, "\n");
	for (i = 0; i < crash->nr_fates; i++) {
		const struct fate *fate = &crash->fates[i];

		fprintf(file, "%s %d %u", fate_names[fate->kind], (int)fate->time, fate->ordinal);
		if (fate->kind != FATE_DROPPED && fate->kind != FATE_KEPT)
			fprintf(file, " %u", fate->arg);
		fprintf(file, "\n");
	}
	if (crash->rot)
		fprintf(file, "rot %s %u\n", rot_names[crash->rot], crash->rot_arg);
	if (crash->old)
		fprintf(file, "old %s %u\n", old_names[crash->old], crash->old_arg);
}

void path_write(const struct path *path, FILE *file)
{
	u32 i, a;

	fprintf(file, "params");
#define PARAM(name) fprintf(file, " " #name "=%u", path->params.name);
	PARAMS(PARAM)
#undef PARAM
	fprintf(file, "\n");
	for (i = 0; i < path->nr_steps; i++) {
		const struct step *step = &path->steps[i];

		fprintf(file, "life\n");
		for (a = 0; a < step->nr_actions; a++) {
			write_action(&step->actions[a], file);
			fprintf(file, "\n");
		}
		if (step->reformat)
			fprintf(file, "format\n");
		else
			write_crash(&step->crash, file);
	}
}

static u32 find_name(const char *const *names, u32 nr, const char *word)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (!strcmp(names[i], word))
			return i;
	}
	return NONE;
}

/* Sets those that are named. */
bool params_read(struct params *params, char *line)
{
	char *word, *save = NULL;
	char name[32];
	u32 value;

	for (word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		bool known = false;

		if (sscanf(word, "%31[a-z_]=%u", name, &value) != 2)
			return false;
#define PARAM(field) if (!strcmp(name, #field)) { params->field = value; known = true; }
		PARAMS(PARAM)
#undef PARAM
		if (!known)
			return false;
	}
	return true;
}

static bool read_fate(struct crash *crash, const char *word, int nr, const u32 *args)
{
	u32 kind = find_name(fate_names, ARRAY_SIZE(fate_names), word);

	if (kind == NONE || nr < 2 || crash->nr_fates == MAX_FATES)
		return false;
	crash->fates[crash->nr_fates++] = (struct fate) {
		.time = args[0], .ordinal = args[1], .kind = kind, .arg = args[2],
	};
	return true;
}

static bool read_crash(struct crash *crash, const char *line)
{
	char how[8];
	u32 at = AT_END;

	if (sscanf(line, "crash %7s start %u", how, &at) < 1)
		return false;
	*crash = (struct crash) { .at = at, .warm = !strcmp(how, "warm") };
	return crash->warm || !strcmp(how, "cut");
}

static bool read_rot(struct crash *crash, const char *line)
{
	char kind[16];
	u32 i;

	if (sscanf(line, "rot %15s %u", kind, &crash->rot_arg) != 2)
		return false;
	i = find_name(rot_names, NR_ROTS, kind);
	crash->rot = i;
	return i != NONE;
}

static bool read_old(struct crash *crash, const char *line)
{
	char kind[16];
	u32 i;

	if (sscanf(line, "old %15s %u", kind, &crash->old_arg) != 2)
		return false;
	i = find_name(old_names, NR_OLDS, kind);
	crash->old = i;
	return i != NONE;
}

static bool read_line(struct path *path, char *line)
{
	struct step *step = path->nr_steps ? &path->steps[path->nr_steps - 1] : NULL;
	char word[32];
	u32 args[3] = {}, kind;
	int nr = sscanf(line, "%31s %u %u %u", word, &args[0], &args[1], &args[2]) - 1;

	if (!strcmp(word, "params"))
		return params_read(&path->params, line + strlen(word));
	if (!strcmp(word, "life")) {
		if (path->nr_steps == MAX_LIVES)
			return false;
		path->steps[path->nr_steps++] = (struct step) { .crash.at = AT_END };
		return true;
	}
	if (!step)
		return false;
	if (!strcmp(word, "crash"))
		return read_crash(&step->crash, line);
	if (!strcmp(word, "rot"))
		return read_rot(&step->crash, line);
	if (!strcmp(word, "old"))
		return read_old(&step->crash, line);
	if (!strcmp(word, "format"))
		return step->reformat = true;
	kind = find_name(action_names, NR_ACTIONS, word);
	if (kind == NONE)
		return read_fate(&step->crash, word, nr, args);
	if (nr != (int)action_args[kind] || step->nr_actions == MAX_ACTIONS)
		return false;
	step->actions[step->nr_actions++] = (struct action) {
		.kind = kind, .a = args[0], .b = args[1], .c = args[2],
	};
	return true;
}

/**
 * path_read() - read a path
 * @path: gets it
 * @file: from here
 * @name: for messages
 */
bool path_read(struct path *path, FILE *file, const char *name)
{
	char line[512];
	u32 number = 0;

	path->nr_steps = 0;
	memset(&path->params, 0, sizeof(path->params));
	while (fgets(line, sizeof(line), file)) {
		number++;
		line[strcspn(line, "#\n")] = '\0';
		if (line[strspn(line, " \t")] && !read_line(path, line)) {
			fprintf(stderr, "explore: %s:%u: not understood\n", name, number);
			return false;
		}
	}
	return path->params.segments && path->nr_steps;
}
