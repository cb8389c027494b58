// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users of the volume: their bios, and when they end.  What intake.c does with a write for which
 * there is room is here, too.
 */
#include "bio/flush.c"

#include "bio/bypass.h"
#include "history.h"
#include "store/io.h"
#include "life.h"
#include "bio/merge.h"
#include "standin.h"
#include "bio/write.h"

/* May the task that waits for a record send it? */
bool lc_io_may_send(const struct bio *bio)
{
	(void)bio;
	/* A segment that is skipped is to be named first: rewrite_holds(). */
	return world->params.direct && !skip_wanted(world->standin);
}

void lc_io_leave_plug(void)
{
}

void lc_io_disown(struct bio *bio)
{
	(void)bio;
}

static void user_end(struct bio *bio)
{
	struct user_bio *user = container_of(bio, struct user_bio, bio);
	u32 mine = 1 + (user - world->standin->bios), n;

	user->used = false;
	world->standin->nr_bios--;
	if (bio->bi_status) {
		trouble(BAD_WARNING, "a bio ended with an error");
		return;
	}
	/* It is in RAM, which is no promise. */
	if (!(bio->bi_opf & (REQ_PREFLUSH | REQ_FUA)))
		return;
	for (n = user->first_op; bio->bi_opf & REQ_FUA && n <= world->nr_ops; n++) {
		if (world->ops[n].fua == mine)
			world->ops[n].acked = world->life->now;
	}
	life_ack(user->seq, user->op);
}

/* The last operation that completed. */
static u32 last_completed(void)
{
	u32 n = world->nr_ops;

	while (n > world->base_op && world->ops[n].fua && world->ops[n].acked == NEVER)
		n--;
	return n;
}

void __real_lc_log_flush_io(struct lc_log *log, struct lc_io *io, u64 seq);
void __wrap_lc_log_flush_io(struct lc_log *log, struct lc_io *io, u64 seq);

/* Between the call and this all lanes were closed, or what a FLUSH has to close of them. */
void __wrap_lc_log_flush_io(struct lc_log *log, struct lc_io *io, u64 seq)
{
	struct user_bio *user = container_of(io, struct user_bio, io);

	user->seq = seq;
	user->op = user->bio.bi_opf & REQ_FUA ? world->nr_ops : last_completed();
	__real_lc_log_flush_io(log, io, seq);
}

bool user_can_start(void)
{
	return world->standin->nr_bios < MAX_BIOS;
}

static struct user_bio *user_new(blk_opf_t opf)
{
	struct standin *s = world->standin;
	struct user_bio *user = s->bios;

	static_assert(offsetof(struct user_bio, bio) == sizeof(struct lc_io), "");
	while (user->used)
		user++;
	s->nr_bios++;
	*user = (struct user_bio) {
		.used = true, .first_op = world->nr_ops + 1,
	};
	bio_init(&user->bio, NULL, NULL, 0, opf);
	user->bio.bi_end_io = user_end;
	return user;
}

/* Of flush.c? */
bool user_commits(const struct work_struct *work)
{
	const struct lc_flush *flush = world->vol->flush;

	return work == &flush->commit_work || work == &flush->commit_late.work;
}

static void merged(struct lc_merge *merge, struct lc_io *io, int ret);
static struct lc_merge user_merge = { .merged = merged };

/* As in intake.c.  @ret: as of lc_write_run(); @batch: the caller commits it. */
void user_go_on(struct lc_io *io, int ret, bool batch)
{
	user_merge.c = &world->vol->c;
	if (ret == -EINPROGRESS)
		lc_merge_start(&user_merge, io);
	else if (ret)
		park_add(io);
	else if (lc_io_bio(io)->bi_opf & REQ_FUA)
		lc_flush_write(world->vol->flush, io, batch);
	else
		lc_io_end(io, BLK_STS_OK);
}

static void merged(struct lc_merge *merge, struct lc_io *io, int ret)
{
	(void)merge;
	user_go_on(io, ret, false);
}

/**
 * user_write() - the user writes blocks
 * @lane: which one
 * @block: the first one
 * @nr: how many
 * @mask: sectors of the last one, in one piece
 * @fua: with FUA
 * @meets: from a worker of device mapper, where other such writes come, too
 */
void user_write(u32 lane, u32 block, u32 nr, u8 mask, bool fua, bool meets)
{
	struct user_bio *user = user_new(REQ_OP_WRITE | (fua ? REQ_FUA : 0));
	u32 first = nr > 1 ? 0 : __ffs(mask);
	u32 sectors = (nr - 1) * PAGE_SECTORS + hweight8(mask);
	struct lc_volume *vol = world->vol;

	/* Of several blocks the last one from its beginning on. */
	user->bio.bi_iter.bi_sector = block * PAGE_SECTORS + first;
	user->bio.bi_iter.bi_size = sectors << SECTOR_SHIFT;
	shim_task.pid = lane;
	shim_task.flags = meets ? PF_WQ_WORKER : 0;
	if (meets) {
		/* As if others had sent FLUSHes before theirs. */
		world->standin->nr_met += !llist_empty(&vol->flush->commits);
		atomic_set(&vol->flush->nr_flushes, 2);
	}
	user->io.iter = user->bio.bi_iter;
	user_go_on(&user->io, park_must() ? -EAGAIN :
		   lc_write_run(&vol->c, &user->io, false, NULL), false);
	shim_task.flags = 0;
}

void user_flush(void)
{
	const struct lc_lanes *lanes = world->vol->c.lanes;
	u32 i;

	lc_flush_map(world->vol->flush, &user_new(REQ_OP_WRITE | REQ_PREFLUSH)->bio, true);
	for (i = 0; i < lanes->nr; i++)
		world->standin->nr_left_open += lanes->lane[i]->open &&
						lc_record_used(lanes->lane[i]->open);
}

/* A writer reserved a slot and cannot give it back, since another one has the next (B4). */
bool user_hole(u32 lane)
{
	struct lc_lanes *lanes = world->vol->c.lanes;
	struct lc_cursor one = {}, other = {};
	bool found;

	lc_hold();
	found = !lc_lanes_reserve(lanes, lanes->lane[lane], 1, &one);
	if (found) {
		lc_lanes_reserve(lanes, lanes->lane[lane], 1, &other);
		lc_cursor_release(&one);
		lc_cursor_release(&other);
	}
	lc_unhold();
	return found;
}
