// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rooms of the module that have nothing to do in the explorer, and those whose size the path sets.
 *
 * The linker puts the functions __wrap_*() between the module's files (--wrap).
 */
#include "bypass.h"
#include "park.h"
#include "read.h"
#include "rescue.h"
#include "segment.h"
#include "standin.h"
#include "stats.h"
#include "submit.h"

/* --- as many lanes as the path says ------------------------------------------- */

static u32 lanes_now = 1;

/* Of this life. */
u32 nr_lanes(void)
{
	return lanes_now;
}

struct lc_pool *__real_lc_pool_create(struct lc_env *env, struct lc_ring *ring, u32 nr_homes);
struct lc_pool *__wrap_lc_pool_create(struct lc_env *env, struct lc_ring *ring, u32 nr_homes);
struct lc_submit *__real_lc_submit_create(struct lc_env *env, struct lc_ring *ring,
					  struct lc_pool *pool, struct lc_sums *sums, u32 lanes);
struct lc_submit *__wrap_lc_submit_create(struct lc_env *env, struct lc_ring *ring,
					  struct lc_pool *pool, struct lc_sums *sums, u32 lanes);
struct lc_allot *__real_lc_allot_create(struct lc_env *env, struct lc_ring *ring,
					struct lc_log *log, u32 lanes);
struct lc_allot *__wrap_lc_allot_create(struct lc_env *env, struct lc_ring *ring,
					struct lc_log *log, u32 lanes);

/* The core would take one lane for so small a ring. */
struct lc_pool *__wrap_lc_pool_create(struct lc_env *env, struct lc_ring *ring, u32 nr_homes)
{
	(void)nr_homes;
	lanes_now = world->params.lanes ?: 1;
	if (world->params.mixed && env->sb->epoch % 2)
		lanes_now = 1;
	return __real_lc_pool_create(env, ring, lanes_now);
}

struct lc_submit *__wrap_lc_submit_create(struct lc_env *env, struct lc_ring *ring,
					  struct lc_pool *pool, struct lc_sums *sums, u32 lanes)
{
	(void)lanes;
	return __real_lc_submit_create(env, ring, pool, sums, lanes_now);
}

struct lc_allot *__wrap_lc_allot_create(struct lc_env *env, struct lc_ring *ring,
					struct lc_log *log, u32 lanes)
{
	struct lc_allot *allot = __real_lc_allot_create(env, ring, log, lanes_now);

	(void)lanes;
	container_of(env, struct lc_core, c.env)->c.nr_lanes = lanes_now;
	if (allot && lanes_now > 1)
		allot->round_len = world->params.round;
	return allot;
}

/* --- how fast the SSD is -------------------------------------------------------- */

u32 __real_lc_submit_most(const struct lc_submit *submit);
u32 __wrap_lc_submit_most(const struct lc_submit *submit);

/* What the module would take it for when much was written. */
u32 __wrap_lc_submit_most(const struct lc_submit *submit)
{
	return world->params.fast ? ~0U : __real_lc_submit_most(submit);
}

/* --- work ------------------------------------------------------------------------ */

static enum worker worker_of(const struct work_struct *work)
{
	const struct lc_core *core = world->core;

	if (work == &core->refill_work)
		return WORKER_REFILL;
	if (work == &core->commit_work || work == &core->commit_late.work ||
	    work->wq == core->c.patient_wq)
		return WORKER_WRITE;
	return log_worker(work);
}

/* How many are queued? */
u32 workers(enum worker kind)
{
	const struct work_struct *work;
	u32 nr = 0;

	list_for_each_entry(work, &shim_works, entry)
		nr += worker_of(work) == kind;
	return nr;
}

/* The n-th that is queued, or NULL. */
struct work_struct *worker_nth(enum worker kind, u32 n)
{
	struct work_struct *work;

	list_for_each_entry(work, &shim_works, entry) {
		if (worker_of(work) == kind && !n--)
			return work;
	}
	return NULL;
}

/* --- writes that find no room ------------------------------------------------------ */

struct lc_park *lc_park_create(struct lc_core *core)
{
	return (struct lc_park *)core;
}

void lc_park_destroy(struct lc_park *park)
{
	(void)park;
}

void lc_park_kick(struct lc_park *park)
{
	(void)park;
}

bool lc_park_must(struct lc_park *park, struct lc_io *io)
{
	(void)park;
	(void)io;
	return false;
}

/* The user gives up the rest of it. */
void lc_park_add(struct lc_park *park, struct lc_io *io, bool may_sleep)
{
	(void)park;
	(void)may_sleep;
	bio_wouldblock_error(lc_io_bio(io));
}

void lc_park_presuspend(struct lc_park *park, struct dm_target *ti)
{
	(void)park;
	(void)ti;
}

void lc_park_resume(struct lc_park *park)
{
	(void)park;
}

void lc_park_rest(struct lc_park *park)
{
	(void)park;
}

void lc_park_stop(struct lc_park *park)
{
	(void)park;
}

/* --- reading a slot back: recovery has verified each one that is mapped --------------- */

int lc_read_slot(struct lc_core *core, u64 block, u32 slot, void *pages)
{
	u32 first = core->c.sb.geo.segments_offset >> LC_SLOT_SHIFT;

	(void)block;
	world->standin->nr_merges++;
	memcpy(pages, image_page(&world->life->view[SSD], first + slot)->bytes, LC_SLOT_BYTES);
	return 0;
}

void lc_read_put_segment(struct lc_core *core, u32 slot)
{
	if (lc_segment_put(core->c.ring, lc_ring_segment(core->c.ring, slot)))
		lc_kick(&core->c.env.refill);
}

/* --- no SSD is given up, so that there is no rescue -------------------------------------- */

/* Only its address matters. */
struct lc_rescue *lc_rescue_create(struct lc_core *core)
{
	(void)core;
	return kzalloc(16, GFP_KERNEL);
}

void lc_rescue_destroy(struct lc_rescue *rescue)
{
	kfree(rescue);
}

void lc_rescue_start(struct lc_rescue *rescue)
{
	(void)rescue;
	trouble(BAD_WARNING, "the SSD was given up");
}

void lc_rescue_run(struct lc_rescue *rescue)
{
	(void)rescue;
}

void lc_rescue_resume(struct lc_rescue *rescue)
{
	(void)rescue;
}

void lc_rescue_finish(struct lc_rescue *rescue, bool removing)
{
	(void)rescue;
	(void)removing;
}

void lc_rescue_record_lost(struct lc_core *core, bool ending)
{
	(void)core;
	(void)ending;
}

struct lc_bypass *lc_bypass_create(struct lc_core *core)
{
	(void)core;
	return kzalloc(16, GFP_KERNEL);
}

void lc_bypass_destroy(struct lc_bypass *bypass)
{
	kfree(bypass);
}

int lc_bypass_flush(struct lc_core *core)
{
	(void)core;
	return -EIO;
}

/* --- names, options, counters --------------------------------------------------------------- */

int lc_stats_wanted;

int lc_stats_create(struct lc_cache *c)
{
	(void)c;
	return 0;
}

void lc_stats_destroy(struct lc_cache *c)
{
	(void)c;
}

void lc_stats_add_copy(struct lc_cache *c, const void *to)
{
	(void)c;
	(void)to;
}

void lc_name_init(struct lc_name *name, struct mapped_device *md, const char *number)
{
	(void)name;
	(void)md;
	(void)number;
}

void lc_name_stop(struct lc_name *name)
{
	(void)name;
}

/* Nobody reads them meanwhile. */
void lc_params_store(struct lc_params *to, const struct lc_params *from)
{
	*to = *from;
}
