// SPDX-License-Identifier: GPL-2.0-only
/*
 * The steps a life is made of.
 *
 * action_do() does one, or nothing if it is not possible now: a list of actions from
 * which some were taken out still means something, which is what the minimiser needs.
 * Commands are named by the time and order of their submission, not by their place among
 * those in flight, for the same reason.
 *
 * plan_next() draws the next one at random from what is possible.
 */
#include "action.h"
#include "history.h"
#include "life.h"
#include "segment.h"
#include "writer.h"

const char *const action_names[NR_ACTIONS] = {
#define ACTION(id, name, args) #name,
	ACTIONS(ACTION)
#undef ACTION
};

const u32 action_args[NR_ACTIONS] = {
#define ACTION(id, name, args) args,
	ACTIONS(ACTION)
#undef ACTION
};

struct plan plan;

/* --- doing ------------------------------------------------------------------ */

/* @time: of its submission, since the end of the start. */
static struct cmd *find_flying(struct life *life, u32 time, u32 ordinal)
{
	u32 submitted = life->started + time, i;

	for (i = 0; i < life->nr_flying; i++) {
		struct cmd *cmd = &life->cmds[life->flying[i]];

		if (cmd->submitted == submitted && cmd->ordinal == ordinal)
			return cmd;
	}
	return NULL;
}

static void cmd_ended(struct cmd *cmd)
{
	switch (cmd->owner) {
	case OWNER_SYNC:
		break;		/* whoever waits looks for himself */
	case OWNER_RECORD:
		log_record_ended(cmd);
		break;
	case OWNER_LOG_FLUSH:
		log_flush_ended(cmd);
		break;
	case OWNER_WRITEBACK:
	case OWNER_WRITEBACK_FLUSH:
		drain_ended(cmd);
		break;
	case OWNER_DISCARD:
		discard_ended();
		break;
	}
}

static bool may_fail(const struct cmd *cmd)
{
	const struct writer *w = world->writer;
	u64 seq;

	/* A record has so many places and no more. */
	for (seq = w->durable_seq + 1; seq <= w->last_seq; seq++) {
		if (rec_of_seq(seq)->nr_places >= MAX_PLACES - 1)
			return false;
	}
	return cmd->owner == OWNER_RECORD || cmd->owner == OWNER_LOG_FLUSH ||
	       cmd->owner == OWNER_WRITEBACK_FLUSH;
}

static void do_write(const struct action *a, bool fua)
{
	u32 lane = (a->b >> LANE_SHIFT) % nr_lanes(), nr = a->b & ((1u << LANE_SHIFT) - 1), i;

	for (i = 0; i < nr; i++) {
		u8 mask = i + 1 < nr ? 0xff : a->c;

		if (a->a + i >= world->params.blocks ||
		    !lane_put(lane, world->first_block + a->a + i, mask))
			return;
	}
	if (fua)
		log_wait(lane_seal(false), world->nr_ops);
}

/* Device mapper has waited for all bios. */
static bool may_stop(const struct life *life)
{
	const struct writer *w = world->writer;

	return life->phase == PHASE_RUN && !w->nr_waiters && !w->meta_busy &&
	       w->discard.state == DISCARD_REST && !w->nr_rewrites && !skip_wanted(w);
}

/* What only happens while the volume runs. */
static bool do_user(const struct life *life, const struct action *a)
{
	struct writer *w = world->writer;

	switch (a->kind) {
	case ACTION_WRITE:
	case ACTION_FUA:
		do_write(a, a->kind == ACTION_FUA);
		break;
	case ACTION_HOLE:
		return lane_hole(a->a % nr_lanes());
	case ACTION_FLUSH:
		log_wait(lane_seal(false), world->nr_ops);
		break;
	case ACTION_SEAL:
		log_want(lane_seal(a->a));
		break;
	case ACTION_DISCARD:
		if (w->discard.state != DISCARD_REST || a->a + a->b > world->params.blocks)
			return false;
		discard_begin(world->first_block + a->a, a->b);
		break;
	case ACTION_WRITEBACK:
		if (w->drain.state != DRAIN_REST || drain_limit() == lc_ring_tail(world->core->c.ring))
			return false;
		drain_begin(a->a);
		break;
	case ACTION_STOP:
		if (!may_stop(life))
			return false;
		life_stop_clean();
		break;
	}
	return true;
}

/* What the threads of the module and the disks do; also during a clean stop. */
static bool do_inner(struct life *life, const struct action *a)
{
	struct lc_core *core = world->core;
	struct writer *w = world->writer;

	switch (a->kind) {
	case ACTION_SUBMIT:
		return a->a < w->nr_closed && log_submit(a->a);
	case ACTION_FLUSHER:
		if (!w->flush_queued)
			return false;
		log_flush_submit();
		break;
	case ACTION_REFILL:
		if (!core->c.env.refill.work->queued)
			return false;
		core->c.env.refill.work->queued = false;
		log_count_unflushed();
		core->c.env.refill.work->func(core->c.env.refill.work);
		break;
	case ACTION_REWRITE:
		if (!rewrite_possible())
			return false;
		rewrite_one();
		break;
	case ACTION_SKIP:
		if (!skip_wanted(w) || w->meta_busy)
			return false;
		rewrite_skip();
		break;
	case ACTION_DRAIN:
		if (!drain_can_step())
			return false;
		drain_step();
		break;
	case ACTION_DISCARDER:
		if (!discard_can_step())
			return false;
		discard_step();
		break;
	default:
		return life->phase == PHASE_RUN && do_user(life, a);
	}
	return true;
}

/**
 * action_do() - do one action
 * @life: the life
 * @action: what to do
 *
 * Return: false if it was not possible; nothing happened, but time passed.
 */
bool action_do(struct life *life, const struct action *action)
{
	struct cmd *cmd;

	life->now++;
	if (action->kind == ACTION_COMPLETE || action->kind == ACTION_FAIL) {
		cmd = find_flying(life, action->a, action->b);
		if (!cmd || (action->kind == ACTION_FAIL && !may_fail(cmd)))
			return false;
		if (action->kind == ACTION_FAIL)
			cmd_fail(life, cmd);
		else
			cmd_complete(life, cmd);
		cmd_ended(cmd);
		return true;
	}
	return life->phase != PHASE_ENDED && do_inner(life, action);
}

/* --- drawing ---------------------------------------------------------------- */

/**
 * theme_draw() - draw what the lives of a path have in common
 * @theme: gets it
 * @rng: random numbers
 * @failing: percent of paths in which commands may fail
 */
void theme_draw(struct theme *theme, struct rng *rng, u32 failing)
{
	*theme = (struct theme) {
		.failing = chance(rng, failing) ? 20 + rnd(rng, 81) : 0,
		.lazy = rnd(rng, 80),
		.small = rnd(rng, 101),
		.sparse = chance(rng, 30) ? 50 : 0,
		.states = 4u << rnd(rng, 4),
		.rot = 10,
	};
}

/**
 * plan_draw() - draw how a life is to be
 * @p: the plan
 * @theme: of the path
 * @rng: random numbers
 * @head: first segment the life will use
 */
void plan_draw(struct plan *p, const struct theme *theme, struct rng *rng, u64 head)
{
	bool failing = chance(rng, theme->failing);

	*p = (struct plan) {
		.steps = 10 + rnd(rng, chance(rng, 50) ? 80 : 300),
		.lazy = chance(rng, theme->lazy),
		.slow = chance(rng, 50) ? rnd(rng, OWNER_DISCARD + 1) : NOBODY_SLOW,
		.stop = chance(rng, 20),
		.fails = failing ? 1 + rnd(rng, 8) : 0,
		.writes = 10 + rnd(rng, 30),
		.fuas = rnd(rng, 5),
		.flushes = rnd(rng, 8),
		.discards = chance(rng, 50) ? rnd(rng, 4) : 0,
		.seals = rnd(rng, 4),
		.batches = rnd(rng, 12),
		.max_blocks = 1 + rnd(rng, chance(rng, theme->small) ? 2 : 8),
		.whole = rnd(rng, 101),
		.hot = rnd(rng, 90),
		.close = 20,
		.eager = rnd(rng, 60),
	};
	if (nr_lanes() > 1)
		p->lopsided = rnd(rng, 101);
	if (chance(rng, theme->sparse)) {
		p->seals = 20;
		p->close = 90;
		p->max_blocks = 1;
	}
	if (failing && chance(rng, 50)) {
		p->bad_first = head + rnd(rng, 3);
		p->bad_segments = 1 + rnd(rng, 5);
		/* It takes a while until all of it is written elsewhere. */
		p->steps += 100;
		p->flushes += 4;
		p->fails = 0;
	}
}

/*
 * Not drawn: a FLUSH of the log that fails while a superblock is written to a disk without
 * FUA, for that copy would be void, too.
 */
static bool may_draw_failure(const struct cmd *cmd)
{
	if (cmd->owner == OWNER_LOG_FLUSH && world->writer->meta_busy)
		return false;
	return may_fail(cmd);
}

static bool in_bad_segment(const struct cmd *cmd)
{
	u64 number = world->recs[cmd->rec].places[cmd->place].segment;

	return number >= plan.bad_first && number < plan.bad_first + plan.bad_segments;
}

static bool draw_complete(struct life *life, struct action *a)
{
	struct rng *rng = &world->rng;
	const struct cmd *cmd;

	if (!life->nr_flying)
		return false;
	cmd = &life->cmds[life->flying[rnd(rng, life->nr_flying)]];
	if (cmd->owner == plan.slow && chance(rng, 80))
		return false;
	*a = (struct action) {
		.kind = ACTION_COMPLETE, .a = cmd->submitted - life->started, .b = cmd->ordinal,
	};
	if (plan.fails && may_draw_failure(cmd) && chance(rng, 12)) {
		plan.fails--;
		a->kind = ACTION_FAIL;
	} else if (cmd->owner == OWNER_RECORD && in_bad_segment(cmd) && may_fail(cmd)) {
		a->kind = ACTION_FAIL;
	}
	return true;
}

static void draw_write(struct action *a, u8 kind)
{
	struct rng *rng = &world->rng;
	u32 blocks = world->params.blocks, first, nr;

	*a = (struct action) { .kind = kind, .b = 1 + rnd(rng, plan.max_blocks), .c = 0xff };
	a->a = chance(rng, plan.hot) ? rnd(rng, 4) : rnd(rng, blocks);
	if (a->a + a->b > blocks)
		a->b = blocks - a->a;
	if (!chance(rng, plan.whole)) {
		first = rnd(rng, PAGE_SECTORS);
		nr = 1 + rnd(rng, PAGE_SECTORS - first);
		a->c = ((1u << nr) - 1) << first;
	}
	if (nr_lanes() > 1 && !chance(rng, plan.lopsided))
		a->b |= rnd(rng, nr_lanes()) << LANE_SHIFT;
}

static bool draw_user(struct action *a)
{
	struct rng *rng = &world->rng;
	u32 weights[] = {
		plan.writes, plan.fuas, plan.flushes, plan.seals, plan.discards, 1, plan.batches,
	};
	u32 total = 0, i, pick;

	for (i = 0; i < 7; i++)
		total += weights[i];
	pick = rnd(rng, total);
	for (i = 0; pick >= weights[i]; i++)
		pick -= weights[i];
	switch (i) {
	case 0:
		draw_write(a, ACTION_WRITE);
		break;
	case 1:
		if (world->writer->nr_waiters == MAX_WAITERS)
			return false;
		draw_write(a, ACTION_FUA);
		break;
	case 2:
		if (world->writer->nr_waiters == MAX_WAITERS)
			return false;
		*a = (struct action) { .kind = ACTION_FLUSH };
		break;
	case 3:
		*a = (struct action) { .kind = ACTION_SEAL, .a = chance(rng, plan.close) };
		break;
	case 4:
		*a = (struct action) { .kind = ACTION_DISCARD };
		a->a = rnd(rng, world->params.blocks);
		a->b = 1 + rnd(rng, min(8u, world->params.blocks - a->a));
		break;
	case 5:
		*a = (struct action) { .kind = ACTION_HOLE };
		if (nr_lanes() > 1)
			a->a = rnd(rng, nr_lanes());
		break;
	default:
		*a = (struct action) { .kind = ACTION_WRITEBACK, .a = chance(rng, 30) };
	}
	return true;
}

/* One of what the module's own threads could do now. */
static bool draw_inner(struct action *a)
{
	const struct writer *w = world->writer;
	struct rng *rng = &world->rng;
	struct action can[10];
	u32 nr = 0;

	if (w->nr_closed)
		can[nr++] = (struct action) {
			.kind = ACTION_SUBMIT, .a = rnd(rng, min(w->nr_closed, 3u)),
		};
	if (w->flush_queued)
		can[nr++] = (struct action) { .kind = ACTION_FLUSHER };
	if (world->core->c.env.refill.work->queued)
		can[nr++] = (struct action) { .kind = ACTION_REFILL };
	if (rewrite_possible())
		can[nr++] = (struct action) { .kind = ACTION_REWRITE };
	if (skip_wanted(w) && !w->meta_busy)
		can[nr++] = (struct action) { .kind = ACTION_SKIP };
	if (drain_can_step())
		can[nr++] = (struct action) { .kind = ACTION_DRAIN };
	if (discard_can_step())
		can[nr++] = (struct action) { .kind = ACTION_DISCARDER };
	if (!nr)
		return false;
	*a = can[rnd(rng, nr)];
	return true;
}

/**
 * plan_next() - draw the next action of a life
 * @life: the life
 * @a: gets it
 *
 * Return: false: the life ends here.
 */
bool plan_next(struct life *life, struct action *a)
{
	bool closing = life->nr_actions >= plan.steps;
	u8 slow;

	if (life->phase == PHASE_ENDED || (closing && !plan.stop) ||
	    life->nr_actions == MAX_ACTIONS || life->nr_cmds > MAX_CMDS - 160 ||
	    life->nr_pieces > MAX_PIECES - 2048)
		return false;
	if (rewrite_possible() && chance(&world->rng, plan.eager)) {
		*a = (struct action) { .kind = ACTION_REWRITE };
		return true;
	}
	if (closing && may_stop(life)) {
		*a = (struct action) { .kind = ACTION_STOP };
		return true;
	}
	if (life->phase == PHASE_RUN && !closing) {
		if (drain_needed(plan.lazy) && world->writer->drain.state == DRAIN_REST &&
		    drain_limit() > lc_ring_tail(world->core->c.ring)) {
			*a = (struct action) { .kind = ACTION_WRITEBACK };
			return true;
		}
		if (chance(&world->rng, 35) && draw_user(a))
			return true;
	}
	if (chance(&world->rng, 50) ? draw_complete(life, a) || draw_inner(a) :
				      draw_inner(a) || draw_complete(life, a))
		return true;
	/* Nobody is at work, or what is takes long. */
	if (life->phase == PHASE_RUN && !closing && draw_user(a))
		return true;
	slow = plan.slow;
	plan.slow = NOBODY_SLOW;
	closing = draw_complete(life, a);
	plan.slow = slow;
	return closing;
}
