// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shortest path that still fails in the same way.
 *
 * In turn, until nothing helps any more: leave out a life; leave out actions, large groups
 * first; write one whole block instead of several or part of one; keep a command whole instead of in part, or lose it whole; cut the power instead
 * of the kernel only.  A change stays if the path still ends with the same verdict.
 */
#include "action.h"
#include "judge.h"
#include "minimise.h"

#define MOST_TRIALS	60000

static struct path trial;
static u32 trials;

static bool still_fails(struct path *path, enum verdict verdict)
{
	if (++trials > MOST_TRIALS || path_run(&trial, true) != verdict)
		return false;
	*path = trial;
	return true;
}

/* A time behind what was left out is that much earlier; within, it is nowhere. */
static bool shift(u32 *time, u32 first, u32 nr)
{
	/* Actions are done at times from 1 on; 0 and below is the start. */
	if ((int)*time <= (int)first)
		return true;
	if (*time <= first + nr)
		return false;
	*time -= nr;
	return true;
}

/* Leave actions out of a step of the trial, and what speaks of their commands. */
static void leave_out(struct step *step, u32 first, u32 nr)
{
	u32 i, n = 0;

	memmove(&step->actions[first], &step->actions[first + nr],
		(step->nr_actions - first - nr) * sizeof(step->actions[0]));
	step->nr_actions -= nr;
	for (i = first; i < step->nr_actions; i++) {
		struct action *a = &step->actions[i];

		if ((a->kind == ACTION_COMPLETE || a->kind == ACTION_FAIL) &&
		    !shift(&a->a, first, nr))
			a->a = NEVER;
	}
	for (i = 0; i < step->crash.nr_fates; i++) {
		if (shift(&step->crash.fates[i].time, first, nr))
			step->crash.fates[n++] = step->crash.fates[i];
	}
	step->crash.nr_fates = n;
}

static bool shorter_lives(struct path *path, enum verdict verdict)
{
	bool better = false;
	u32 i;

	for (i = 0; i < path->nr_steps && path->nr_steps > 1; ) {
		trial = *path;
		memmove(&trial.steps[i], &trial.steps[i + 1],
			(--trial.nr_steps - i) * sizeof(trial.steps[0]));
		if (still_fails(path, verdict))
			better = true;
		else
			i++;
	}
	return better;
}

static bool fewer_actions(struct path *path, enum verdict verdict)
{
	bool better = false;
	u32 s, at, nr;

	for (s = 0; s < path->nr_steps; s++) {
		for (nr = 64; nr; nr /= 2) {
			/* From the end: nothing refers forward. */
			at = path->steps[s].nr_actions;
			while (at) {
				u32 n = min(at, nr);

				at -= n;
				trial = *path;
				leave_out(&trial.steps[s], at, n);
				better |= still_fails(path, verdict);
			}
		}
	}
	return better;
}

static bool simpler_writes(struct path *path, enum verdict verdict)
{
	bool better = false;
	u32 s, i;

	for (s = 0; s < path->nr_steps; s++) {
		for (i = 0; i < path->steps[s].nr_actions; i++) {
			const struct action *a = &path->steps[s].actions[i];

			if ((a->kind != ACTION_WRITE && a->kind != ACTION_FUA) ||
			    (a->b == 1 && a->c == 0xff))
				continue;
			trial = *path;
			trial.steps[s].actions[i].b = 1;
			trial.steps[s].actions[i].c = 0xff;
			better |= still_fails(path, verdict);
		}
	}
	return better;
}

static bool simpler_crashes(struct path *path, enum verdict verdict)
{
	bool better = false;
	u32 s, i;

	for (s = 0; s < path->nr_steps; s++) {
		if (path->steps[s].crash.warm) {
			trial = *path;
			trial.steps[s].crash.warm = false;
			better |= still_fails(path, verdict);
		}
		for (i = path->steps[s].crash.nr_fates; i--; ) {
			struct crash *crash = &trial.steps[s].crash;

			trial = *path;
			crash->fates[i] = crash->fates[--crash->nr_fates];
			if (still_fails(path, verdict)) {
				better = true;
				continue;
			}
			if (path->steps[s].crash.fates[i].kind == FATE_DROPPED)
				continue;
			trial = *path;
			crash->fates[i].kind = FATE_DROPPED;
			better |= still_fails(path, verdict);
		}
	}
	return better;
}

/**
 * minimise() - make a failing path short
 * @path: the path, replaced
 * @verdict: how it fails
 */
void minimise(struct path *path, enum verdict verdict)
{
	bool better = true;

	trials = 0;
	while (better && trials < MOST_TRIALS) {
		better = shorter_lives(path, verdict);
		better |= fewer_actions(path, verdict);
		better |= simpler_writes(path, verdict);
		better |= simpler_crashes(path, verdict);
	}
}
