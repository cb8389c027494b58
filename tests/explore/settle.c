// SPDX-License-Identifier: GPL-2.0-only
/* Does every request end?  See settle.h. */
#include "action.h"
#include "life.h"
#include "settle.h"
#include "standin.h"

/* Times in a row that only time passes, until it is said that nothing goes on any more. */
#define PATIENCE	64
#define MOST_POLLS	8

static struct {
	bool plan;		/* goes on */
	u32 turn;		/* whose turn it is */
	u32 idle;		/* times in a row that only time passed */
	u32 polls;		/* that somebody looked whether it has */
} s;

static const struct {
	enum worker worker;
	u8 action;
} works[] = {
	{ WORKER_RECORD, ACTION_SUBMIT }, { WORKER_FLUSH, ACTION_FLUSHER },
	{ WORKER_RETRY, ACTION_RETRY }, { WORKER_REFILL, ACTION_REFILL },
	{ WORKER_WRITE, ACTION_WRITER }, { WORKER_UNPARK, ACTION_UNPARK },
	{ WORKER_SCAN, ACTION_SCAN }, { WORKER_TASK, ACTION_TASK },
};

/* The tasks, the kinds of work, and the disks. */
#define ACTORS	(SHIM_TASKS + ARRAY_SIZE(works) + 1)

/* What an actor can do now without that time passes. */
static bool act(u32 actor, const struct life *life, struct action *a)
{
	const struct cmd *cmd;

	if (actor < SHIM_TASKS) {
		*a = (struct action) { .kind = ACTION_STEP, .a = actor };
		return task_can_step(actor, false);
	}
	actor -= SHIM_TASKS;
	if (actor < ARRAY_SIZE(works)) {
		*a = (struct action) { .kind = works[actor].action };
		return workers(works[actor].worker);
	}
	if (!life->nr_flying)
		return false;
	cmd = &life->cmds[life->flying[0]];
	*a = (struct action) {
		.kind = ACTION_COMPLETE, .a = cmd->submitted - life->started, .b = cmd->ordinal,
	};
	return true;
}

/* Time passes: for one sleeper after the other, for the idle clock, and for writeback. */
static bool later(struct life *life, struct action *a)
{
	u32 what = s.idle++ % (SHIM_TASKS + 3);

	/* All of these together are more than any patience with a disk: start() in life.c. */
	life->idle_ns += 60 * NSEC_PER_SEC;
	*a = (struct action) { .kind = ACTION_STEP, .a = what };
	if (what < SHIM_TASKS && task_can_step(what, true))
		return true;
	if (what < SHIM_TASKS)
		*a = (struct action) { .kind = ACTION_SEAL };
	else if (what == SHIM_TASKS)
		*a = (struct action) { .kind = ACTION_SEAL, .a = true };
	else
		*a = (struct action) { .kind = ACTION_WRITEBACK, .a = what - SHIM_TASKS - 1 };
	return s.idle < PATIENCE;
}

/* For more actions, or for what they would do. */
static bool no_space(const struct life *life)
{
	return life->nr_actions == MAX_ACTIONS || life->nr_cmds > MAX_CMDS - 160 ||
	       life->nr_pieces > MAX_PIECES - 2048;
}

/* Writes that are parked are looked at again each tick: that is no progress. */
static bool polls(const struct action *a)
{
	return a->kind == ACTION_WRITER || a->kind == ACTION_UNPARK;
}

static bool next(struct life *life, struct action *a)
{
	u32 i;

	if (s.plan && plan_next(life, a))
		return true;
	s.plan = false;
	if (life->phase != PHASE_RUN || !world->standin->nr_bios || world->trouble ||
	    no_space(life))
		return false;
	for (i = 0; i < ACTORS; i++) {
		s.turn = (s.turn + 1) % ACTORS;
		if (!act(s.turn, life, a))
			continue;
		if (!polls(a)) {
			s.idle = 0;
			s.polls = 0;
			return true;
		}
		if (s.polls++ < MOST_POLLS)
			return true;
	}
	s.polls = 0;
	return later(life, a);
}

bool settle(struct life *life)
{
	s.plan = true;
	s.turn = s.idle = s.polls = 0;
	plan.stop = false;
	world->source = next;
	life_go_on(life);
	if (no_space(life))
		return false;
	if (!world->trouble && life->phase == PHASE_RUN && world->standin->nr_bios)
		trouble(BAD_STUCK, "%u bios never end", world->standin->nr_bios);
	return true;
}
