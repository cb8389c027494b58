// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rooms of the module that have little or nothing to do in the explorer, and how large others are.
 *
 * The linker puts the functions __wrap_*() between the module's files (--wrap).
 */
#include "life/rescue.h"
#include "store/fit.h"
#include "store/ring.h"
#include "standin.h"
#include "store/stats.h"
#include "log/refill.h"
#include "log/submit.h"
#include "store/claims.h"
#include "writeback/internal.h"

/* --- as many lanes as the path says ------------------------------------------- */

static u32 lanes_now = 1;

/* Of this life. */
u32 nr_lanes(void)
{
	return lanes_now;
}

struct lc_pool *__real_lc_pool_create(struct lc_env *env, struct lc_ring *ring, u32 nr_lane_pools);
struct lc_pool *__wrap_lc_pool_create(struct lc_env *env, struct lc_ring *ring, u32 nr_lane_pools);
struct lc_submit *__real_lc_submit_create(struct lc_env *env, struct lc_ring *ring,
					  struct lc_pool *pool, struct lc_sums *sums, u32 lanes);
struct lc_submit *__wrap_lc_submit_create(struct lc_env *env, struct lc_ring *ring,
					  struct lc_pool *pool, struct lc_sums *sums, u32 lanes);
struct lc_alloc *__real_lc_alloc_create(struct lc_env *env, struct lc_ring *ring,
					struct lc_log *log, u32 lanes);
struct lc_alloc *__wrap_lc_alloc_create(struct lc_env *env, struct lc_ring *ring,
					struct lc_log *log, u32 lanes);

/* The volume would take one lane for so small a ring. */
struct lc_pool *__wrap_lc_pool_create(struct lc_env *env, struct lc_ring *ring, u32 nr_lane_pools)
{
	(void)nr_lane_pools;
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

struct lc_alloc *__wrap_lc_alloc_create(struct lc_env *env, struct lc_ring *ring,
					struct lc_log *log, u32 lanes)
{
	struct lc_alloc *alloc = __real_lc_alloc_create(env, ring, log, lanes_now);

	(void)lanes;
	container_of(env, struct lc_volume, c.env)->c.nr_lanes = lanes_now;
	if (alloc && lanes_now > 1)
		alloc->round_len = world->params.round;
	return alloc;
}

/* --- how fast the SSD is -------------------------------------------------------- */

u32 __real_lc_submit_most(const struct lc_submit *submit);
u32 __wrap_lc_submit_most(const struct lc_submit *submit);

/* What the module would take it for when much was written. */
u32 __wrap_lc_submit_most(const struct lc_submit *submit)
{
	return world->params.fast ? ~0U : __real_lc_submit_most(submit);
}

/* --- how fast the log may be filled ------------------------------------------------ */

void __real_lc_refill_attach(struct lc_refill *refill, const struct lc_refill_ops *ops,
			     void *owner);
void __wrap_lc_refill_attach(struct lc_refill *refill, const struct lc_refill_ops *ops,
			     void *owner);

static unsigned long no_pace(const void *owner)
{
	(void)owner;
	return 0;
}

/* What writeback has the refill wait is a matter of time only. */
void __wrap_lc_refill_attach(struct lc_refill *refill, const struct lc_refill_ops *ops,
			     void *owner)
{
	static struct lc_refill_ops mine;

	mine = (struct lc_refill_ops) { .pace = no_pace, .ran = ops->ran };
	__real_lc_refill_attach(refill, &mine, owner);
}

/* --- work ------------------------------------------------------------------------ */

static enum worker worker_of(const struct work_struct *work)
{
	const struct lc_volume *vol = world->vol;

	if (work == vol->c.env.refill.work)
		return WORKER_REFILL;
	if (work == vol->c.env.unpark.work)
		return WORKER_UNPARK;
	if (work->wq == vol->c.verify_wq)
		return WORKER_SCAN;
	if (work->wq == vol->c.claims->discards.wq || work->wq == vol->wb->wq)
		return WORKER_TASK;
	if (log_worker(work) != WORKER_NOBODY)
		return log_worker(work);
	/* A seal stands for the idle clock. */
	return work->delay < HZ || (world->params.cache && work->delay == HZ) ? WORKER_WRITE :
										WORKER_NOBODY;
}

/* How many are queued? */
u32 workers(enum worker kind)
{
	const struct work_struct *work;
	u32 nr = 0;

	list_for_each_entry(work, &shim_works, entry)
		nr += worker_of(work) == kind && !work->running;
	return nr;
}

/* The n-th that is queued, or NULL. */
struct work_struct *worker_nth(enum worker kind, u32 n)
{
	struct work_struct *work;

	list_for_each_entry(work, &shim_works, entry) {
		if (worker_of(work) == kind && !work->running && !n--)
			return work;
	}
	return NULL;
}

/* --- no SSD is given up, so that there is no rescue -------------------------------------- */

/* Only its address matters. */
struct lc_rescue *lc_rescue_create(struct lc_volume *vol)
{
	(void)vol;
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

bool lc_rescue_pause(struct lc_rescue *rescue)
{
	(void)rescue;
	return false;
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

void lc_rescue_record_lost(struct lc_volume *vol, bool ending)
{
	(void)vol;
	(void)ending;
}

/* --- the SSD takes all reads ------------------------------------------------------------------ */

bool lc_fit_pieces(struct bio *bio, u32 blocks, u32 memory)
{
	(void)bio;
	(void)blocks;
	(void)memory;
	trouble(BAD_WARNING, "the SSD asks for more than the HDD");
	return true;
}

/* --- names, options, counters --------------------------------------------------------------- */

int lc_stats_wanted = 1;

int lc_stats_create(struct lc_stats *stats)
{
	(void)stats;
	return 0;
}

void lc_stats_destroy(struct lc_stats *stats)
{
	(void)stats;
}

void lc_stats_add_copy(struct lc_stats *stats, const void *to)
{
	(void)stats;
	(void)to;
}

void lc_stats_parked(struct lc_stats *stats)
{
	(void)stats;
	world->standin->nr_parked++;
}

void lc_stats_batch(struct lc_stats *stats)
{
	(void)stats;
}

void lc_stats_promoted(struct lc_stats *stats, u32 nr)
{
	(void)stats;
	world->standin->nr_promoted += nr;
}

void lc_stats_around(struct lc_stats *stats, u32 bytes)
{
	(void)stats;
	(void)bytes;
}

void lc_stats_sent(struct lc_stats *stats, bool ssd, blk_opf_t opf, u32 bytes)
{
	(void)stats;
	(void)ssd;
	(void)opf;
	(void)bytes;
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
