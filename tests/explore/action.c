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
#include "bio/intake.h"
#include "history.h"
#include "life.h"
#include "store/claims.h"
#include "store/ring.h"
#include "standin.h"
#include "writeback/writeback.h"

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
	case OWNER_WRITEBACK_FLUSH:
		shim_wake(cmd);
		break;
	default:
		bio_ended(cmd);
	}
}

static bool may_fail(const struct cmd *cmd)
{
	u64 seq;

	/* A record has so many places and no more. */
	for (seq = lc_log_durable_seq(the_log()) + 1; seq <= last_seq(); seq++) {
		if (rec_of_seq(seq)->nr_places >= MAX_PLACES - 1)
			return false;
	}
	/* A read that is to be promoted: the user's own follows. */
	if (cmd->owner == OWNER_READ)
		return cmd->disk == HDD && world->params.cache && !shim_asleep(cmd->bio) &&
		       !user_owns(cmd->bio);
	return cmd->owner == OWNER_RECORD || cmd->owner == OWNER_LOG_FLUSH ||
	       cmd->owner == OWNER_WRITEBACK || cmd->owner == OWNER_WRITEBACK_FLUSH ||
	       cmd->owner == OWNER_GROUP || cmd->owner == OWNER_THROUGH ||
	       cmd->owner == OWNER_AROUND;
}

static bool do_write(const struct action *a)
{
	/* The page cache, an fsync of it, a file system's journal, and one that polls. */
	static const blk_opf_t senders[] = { 0, REQ_SYNC, REQ_META, REQ_SYNC | REQ_NOWAIT };
	blk_opf_t flags = senders[(a->b >> SENDER_SHIFT) % ARRAY_SIZE(senders)];
	u32 lane = (u8)(a->b >> LANE_SHIFT) % nr_lanes(), nr = a->b & ((1u << LANE_SHIFT) - 1);

	if (a->a >= world->params.blocks || !nr || !a->c || !user_can_start())
		return false;
	nr = min(nr, world->params.blocks - a->a);
	user_write(lane, world->first_block + a->a, nr, a->c,
		   flags | (a->kind != ACTION_WRITE ? REQ_FUA : 0), a->kind == ACTION_MEET);
	return true;
}

/* Device mapper has waited for all bios. */
static bool may_stop(const struct life *life)
{
	const struct standin *s = world->standin;

	return life->phase == PHASE_RUN && !s->nr_bios && !s->nr_marked && !skip_wanted(s) &&
	       !s->skipping;
}

/* What only happens while the volume runs. */
static bool do_user(const struct life *life, const struct action *a)
{
	switch (a->kind) {
	case ACTION_WRITE:
	case ACTION_FUA:
	case ACTION_MEET:
		return do_write(a);
	case ACTION_HOLE:
		return user_hole(a->a % nr_lanes());
	case ACTION_CEDE:
		return user_cede(a->a % nr_lanes());
	case ACTION_FLUSH:
		if (!user_can_start())
			return false;
		user_flush();
		break;
	case ACTION_SEAL:
		lc_log_want_durable(the_log(),
				    lc_lanes_close_used(world->vol->c.lanes, a->a));
		break;
	case ACTION_DISCARD:
		return a->b && a->a + a->b <= world->params.blocks &&
		       user_discard(world->first_block + a->a, a->b);
	case ACTION_WRITEBACK:
		if (!user_can_drain(a->a))
			return false;
		user_drain(a->a);
		break;
	case ACTION_READ:
		if (!world->params.cache || !a->b || a->b > MAX_READ || !user_can_start() ||
		    a->a + a->b > world->params.blocks * PAGE_SECTORS)
			return false;
		user_read(a->a, a->b);
		break;
	case ACTION_IDLE:
		world->life->idle_ns += a->a * NSEC_PER_SEC;
		break;
	case ACTION_MODE:
		user_mode(a->a);
		break;
	case ACTION_STOP:
		if (!may_stop(life))
			return false;
		life_stop_clean();
		break;
	}
	return true;
}

static bool do_work(enum worker kind, u32 n)
{
	struct work_struct *work = worker_nth(kind, n);

	if (!work || ((kind == WORKER_RECORD || kind == WORKER_FLUSH) &&
		      rewrite_holds(kind, work)))
		return false;
	world->standin->nr_merges += work->wq == world->vol->c.patient_wq;
	shim_run(work);
	return true;
}

bool task_can_step(u32 task, bool time)
{
	enum shim_state state = shim_state(task);

	/* A tombstone is sent at once: see rewrite_holds(). */
	if (state && skip_wanted(world->standin) &&
	    shim_arg(task) == world->vol->c.claims->discards.work)
		return false;
	return state == SHIM_AWAKE || (time && state == SHIM_ASLEEP_FOR_A_TIME);
}

/* What the threads of the module and the disks do; also during a clean stop. */
static bool do_inner(struct life *life, const struct action *a)
{
	struct standin *s = world->standin;
	struct work_struct *work;

	switch (a->kind) {
	case ACTION_SUBMIT:
		return do_work(WORKER_RECORD, a->a);
	case ACTION_FLUSHER:
		return do_work(WORKER_FLUSH, 0);
	case ACTION_RETRY:
		return do_work(WORKER_RETRY, 0);
	case ACTION_REFILL:
		return do_work(WORKER_REFILL, 0);
	case ACTION_WRITER:
		return do_work(WORKER_WRITE, a->a);
	case ACTION_UNPARK:
		return do_work(WORKER_UNPARK, 0);
	case ACTION_SCAN:
		return do_work(WORKER_SCAN, a->a);
	case ACTION_REWRITE:
		if (!rewrite_possible())
			return false;
		rewrite_one();
		break;
	case ACTION_SKIP:
		if (!skip_wanted(s) || s->skipping)
			return false;
		s->skipping = true;
		shim_task(rewrite_skip, NULL);
		break;
	case ACTION_TASK:
		work = worker_nth(WORKER_TASK, a->a);
		if (!work)
			return false;
		shim_run_task(work);
		break;
	case ACTION_STEP:
		if (!task_can_step(a->a, true))
			return false;
		shim_step(a->a);
		break;
	default:
		return life->phase == PHASE_RUN && do_user(life, a);
	}
	return true;
}

/* What the status says of the cache mode. */
static void note_left(struct life *life)
{
	bool left = life->phase == PHASE_RUN && lc_writeback_left(world->vol->wb);

	if (!left && life->left != NEVER && life->phase == PHASE_RUN &&
	    lc_writes_around(&world->vol->c))
		trouble(BAD_WARNING, "the log was left, and is not any more");
	if (!left)
		life->left = NEVER;
	else if (life->left == NEVER)
		life->left = life->now;
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
	bool done;

	life_tick(life);
	note_left(life);
	if (action->kind == ACTION_COMPLETE || action->kind == ACTION_FAIL) {
		cmd = find_flying(life, action->a, action->b);
		if (!cmd || (action->kind == ACTION_FAIL && !may_fail(cmd)))
			return false;
		if (action->kind == ACTION_FAIL)
			cmd_fail(life, cmd);
		else
			cmd_complete(life, cmd);
		if (cmd->failed && cmd->owner == OWNER_GROUP)
			group_failed(cmd->bio);
		cmd_ended(cmd);
		return true;
	}
	done = life->phase != PHASE_ENDED && do_inner(life, action);
	if (life->phase == PHASE_RUN)
		check_passed();
	if (shim_atomic)
		shim_warn("a lock is held for ever", __FILE__, __LINE__);
	if (life->phase == PHASE_RUN && lc_mode(&world->vol->c.health) != LC_MODE_RW)
		trouble(BAD_WARNING, "the volume left mode rw");
	return done;
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
		.meets = chance(rng, 40) ? 1 + rnd(rng, 12) : 0,
		.flushes = rnd(rng, 8),
		.discards = chance(rng, 50) ? rnd(rng, 4) : 0,
		.seals = rnd(rng, 4),
		.batches = rnd(rng, 12),
		.max_blocks = 1 + rnd(rng, chance(rng, theme->small) ? 2 : 8),
		.whole = rnd(rng, 101),
		.hot = rnd(rng, 90),
		.close = 20,
		.eager = rnd(rng, 60),
		.bad_hdd = failing && chance(rng, 25) ? 40 + rnd(rng, 61) : 0,
	};
	p->most_parked = rnd(rng, 4 * p->max_blocks);
	/* So much that map() has to sleep. */
	if (chance(rng, 4)) {
		p->max_blocks = world->params.blocks;
		p->most_parked = NONE;
		p->steps += 100;
	}
	/* Of those that meet, FLUSHes come first. */
	if (p->meets)
		p->flushes += 4 + rnd(rng, 8);
	if (nr_lanes() > 1)
		p->lopsided = rnd(rng, 101);
	if (chance(rng, theme->sparse)) {
		p->seals = 20;
		p->close = 90;
		p->max_blocks = 1;
	}
	/* What is written again where it was would never get there. */
	if (failing && world->params.elsewhere && chance(rng, 50)) {
		p->bad_first = head + rnd(rng, 3);
		p->bad_segments = 1 + rnd(rng, 5);
		/* It takes a while until all of it is written elsewhere. */
		p->steps += 100;
		p->flushes += 4;
		p->fails = 0;
	}
	if (chance(rng, 30))
		p->cedes = 1 + rnd(rng, 4);
	if (world->params.cache) {
		p->reads = 4 + rnd(rng, 60);
		/* So long that segments of promoted blocks are reused. */
		if (chance(rng, 30))
			p->steps += 600;
	}
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
	if (plan.fails && may_fail(cmd) && chance(rng, 12)) {
		plan.fails--;
		a->kind = ACTION_FAIL;
	} else if (cmd->owner == OWNER_RECORD ? in_bad_segment(cmd) && may_fail(cmd) :
		   cmd->owner == OWNER_WRITEBACK && chance(rng, plan.bad_hdd)) {
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
	a->b |= rnd(rng, 4) << SENDER_SHIFT;
}

/* Whole blocks, mostly of a few; sometimes a part of them. */
static void draw_read(struct action *a)
{
	struct rng *rng = &world->rng;
	u32 blocks = world->params.blocks, block, end, nr;

	nr = 1 + rnd(rng, min(blocks, MAX_READ / PAGE_SECTORS));
	block = chance(rng, plan.hot) ? rnd(rng, 4) : rnd(rng, blocks);
	end = min(block + nr, blocks) * PAGE_SECTORS;
	*a = (struct action) { .kind = ACTION_READ, .a = block * PAGE_SECTORS };
	if (chance(rng, 20))
		a->a += rnd(rng, PAGE_SECTORS);
	a->b = end - a->a;
	if (chance(rng, 20))
		a->b = 1 + rnd(rng, a->b);
}

static bool draw_user(struct action *a)
{
	struct rng *rng = &world->rng;
	u32 weights[] = {
		plan.writes, plan.fuas, plan.flushes, plan.seals, plan.discards, 1, plan.batches,
		plan.meets, plan.cedes, plan.reads, plan.reads / 2,
	};
	u32 total = 0, i, pick;

	for (i = 0; i < ARRAY_SIZE(weights); i++)
		total += weights[i];
	/* More of them would not do anything else. */
	if (!user_can_start() || lc_intake_blocks(world->vol->intake) > plan.most_parked)
		return false;
	if (world->params.leave && chance(rng, 5)) {
		*a = (struct action) { .kind = ACTION_MODE, .a = chance(rng, 70) };
		if (world->params.cache)
			a->a *= 1 + rnd(rng, 2);
		return true;
	}
	pick = rnd(rng, total);
	for (i = 0; pick >= weights[i]; i++)
		pick -= weights[i];
	switch (i) {
	case 0:
		draw_write(a, ACTION_WRITE);
		break;
	case 1:
		draw_write(a, ACTION_FUA);
		break;
	case 2:
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
	case 6:
		*a = (struct action) { .kind = ACTION_WRITEBACK, .a = chance(rng, 30) };
		break;
	case 7:
		draw_write(a, ACTION_MEET);
		break;
	case 8:
		*a = (struct action) { .kind = ACTION_CEDE, .a = rnd(rng, nr_lanes()) };
		break;
	case 9:
		draw_read(a);
		break;
	default:
		*a = (struct action) { .kind = ACTION_IDLE, .a = chance(rng, 80) ? 2 : 11 };
	}
	return true;
}

/* One of what the module's own threads could do now. */
static bool draw_inner(struct action *a)
{
	const struct standin *s = world->standin;
	struct rng *rng = &world->rng;
	u32 nr = 0, records = workers(WORKER_RECORD), writers = workers(WORKER_WRITE);
	u32 tasks = workers(WORKER_TASK), scans = workers(WORKER_SCAN), i;
	bool time = chance(rng, 12);
	struct action can[13 + SHIM_TASKS];

	if (records)
		can[nr++] = (struct action) {
			.kind = ACTION_SUBMIT, .a = rnd(rng, min(records, 3u)),
		};
	if (writers)
		can[nr++] = (struct action) { .kind = ACTION_WRITER, .a = rnd(rng, writers) };
	if (workers(WORKER_UNPARK))
		can[nr++] = (struct action) { .kind = ACTION_UNPARK };
	if (workers(WORKER_FLUSH))
		can[nr++] = (struct action) { .kind = ACTION_FLUSHER };
	if (workers(WORKER_RETRY))
		can[nr++] = (struct action) { .kind = ACTION_RETRY };
	if (workers(WORKER_REFILL))
		can[nr++] = (struct action) { .kind = ACTION_REFILL };
	if (scans)
		can[nr++] = (struct action) {
			.kind = ACTION_SCAN, .a = scans > 1 ? rnd(rng, scans) : 0,
		};
	if (rewrite_possible())
		can[nr++] = (struct action) { .kind = ACTION_REWRITE };
	if (skip_wanted(s) && !s->skipping)
		can[nr++] = (struct action) { .kind = ACTION_SKIP };
	if (tasks)
		can[nr++] = (struct action) { .kind = ACTION_TASK, .a = rnd(rng, tasks) };
	for (i = 0; i < SHIM_TASKS; i++) {
		if (task_can_step(i, time))
			can[nr++] = (struct action) { .kind = ACTION_STEP, .a = i };
	}
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
		if (!plan.lazy && user_wants_drain() && user_can_drain(false)) {
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
