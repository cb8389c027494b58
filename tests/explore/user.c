// SPDX-License-Identifier: GPL-2.0-only
/* Users of the volume: their bios, and when they end. */
#include "bio/around.h"
#include "bio/discard.h"
#include "bio/flush.h"
#include "bio/intake.h"
#include "history.h"
#include "judge.h"
#include "store/io.h"
#include "life.h"
#include "log/record.h"
#include "store/claims.h"
#include "standin.h"
#include "writeback/internal.h"
#include "writeback/writeback.h"
#include "store/ring.h"

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

/*
 * A FLUSH has ended: what went around the log and had ended before it came is promised, or, with an
 * error, can never be.
 */
static void around_flushed(const struct user_bio *user, bool well)
{
	u32 n;

	for (n = max(world->around_op, 1u); n <= world->nr_ops; n++) {
		struct op *op = &world->ops[n];

		if (!op->around)
			continue;
		/* On a bare disk, too, only its sender hears of a FLUSH that fails. */
		op->voided |= !well && op->landed;
		if (op->ended > (well ? user->came : world->life->now))
			continue;
		if (well && op->acked == NEVER)
			op->acked = world->life->now;
		op->ended = NEVER;
	}
}

/*
 * May a FLUSH fail?  If users write to the HDD, and a FLUSH there has failed since this one came, or
 * had failed before, and no FLUSH had told of it (AR4).
 */
static bool flush_may_fail(const struct user_bio *user)
{
	u32 failures = lc_doubt_failures(&world->vol->c.doubt);
	bool may = (world->params.around || world->params.leave) &&
		   (user->untold || failures > user->seen);

	world->standin->told = max(world->standin->told, user->seen);
	return may;
}

/* What map.c does when device mapper tells it of an end.  Return: whether it is the end. */
static bool around_ended(struct user_bio *user)
{
	struct bio *bio = &user->bio;
	struct op *op;
	int ret;
	u32 n;

	if (!user->io.around)
		return true;
	for (n = 0; n < user->nr_around; n++) {
		op = &world->ops[user->around_op + n];
		if (!op->voided)
			op->ended = world->life->now;
	}
	/* It may find an error by itself. */
	ret = lc_around_end(world->vol->around, bio, &bio->bi_status);
	for (n = 0; bio->bi_status && n < user->nr_around; n++) {
		op = &world->ops[user->around_op + n];
		op->refused = true;
		op->ended = NEVER;
		user->refused = true;
	}
	/* What is sent again, or logged, is newer than what came meanwhile. */
	if (user->refused)
		user->around_op = user->nr_around = 0;
	return ret == DM_ENDIO_DONE;
}

static void user_end(struct bio *bio)
{
	struct user_bio *user = container_of(bio, struct user_bio, bio);
	u32 mine = 1 + (user - world->standin->bios), n;

	if (!around_ended(user))
		return;
	user->used = false;
	world->standin->nr_bios--;
	if (user->reads) {
		user_read_over(user);
		return;
	}
	/* It has left nothing in a record. */
	if (bio->bi_status == BLK_STS_AGAIN && bio->bi_opf & REQ_NOWAIT &&
	    user->first_op > world->nr_ops)
		return;
	if (bio->bi_opf & REQ_PREFLUSH)
		around_flushed(user, !bio->bi_status);
	if (bio->bi_opf & REQ_PREFLUSH && bio->bi_status && flush_may_fail(user))
		return;
	/* Without a log the user hears of it. */
	if (bio->bi_status && user->refused && world->vol->c.closed)
		return;
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

void __real_lc_log_flush_io(struct lc_log *log, struct lc_request *io, u64 seq);
void __wrap_lc_log_flush_io(struct lc_log *log, struct lc_request *io, u64 seq);

/* Between the call and this all lanes were closed, or what a FLUSH has to close of them. */
void __wrap_lc_log_flush_io(struct lc_log *log, struct lc_request *io, u64 seq)
{
	struct user_bio *user = container_of(io, struct user_bio, io);

	if (user->bio.bi_opf & REQ_FUA) {
		world->standin->nr_met += seq == world->standin->met_seq;
		world->standin->met_seq = seq;
	}
	user->seq = seq;
	user->op = user->bio.bi_opf & REQ_FUA ? world->nr_ops : last_completed();
	__real_lc_log_flush_io(log, io, seq);
}

bool user_can_start(void)
{
	return world->standin->nr_bios < MAX_BIOS && world->standin->nr_in_map < MAX_IN_MAP;
}

struct user_bio *user_new(blk_opf_t opf)
{
	struct standin *s = world->standin;
	struct user_bio *user = s->bios;

	static_assert(offsetof(struct user_bio, bio) == sizeof(struct lc_request), "");
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

/*
 * The operations of a write around the log, one for each block; they follow each other.  They are
 * in the order of the calls of map(), although a worker may send the bio later.
 */
u32 user_around_op(const struct bio *bio)
{
	struct user_bio *user = container_of((struct bio *)bio, struct user_bio, bio);
	u32 mine = 1 + (user - world->standin->bios);
	/* Of what is left of it: the rest is in the log. */
	u32 block = user->io.claim.first, left = user->io.iter.bi_size >> SECTOR_SHIFT, nr, op;
	u32 first = user->io.iter.bi_sector % PAGE_SECTORS;

	if (user->around_op)
		return user->around_op;
	user->around_op = world->nr_ops + 1;
	for (; left; left -= nr, first = 0) {
		nr = min(left, PAGE_SECTORS - first);
		op = op_add(block++, 0, ((1u << nr) - 1) << first, NONE);
		user->nr_around++;
		world->ops[op].around = true;
		world->ops[op].stays = true;
		if (bio->bi_opf & REQ_FUA)
			world->ops[op].fua = mine;
	}
	return user->around_op;
}

/* As map.c and intake.c: bios end at the seam there, and only long ones go around. */
static bool map_around(struct bio *bio)
{
	struct lc_request *io = lc_bio_request(bio);

	if (!world->params.around || bio->bi_opf & (REQ_FUA | REQ_META) ||
	    lc_place_run(&world->vol->c.env.place, bio->bi_iter.bi_sector, bio_sectors(bio)) !=
	    bio_sectors(bio))
		return false;
	io->iter = bio->bi_iter;
	if (!lc_around_claim(world->vol->around, io))
		return false;
	lc_around_send(world->vol->around, io, false);
	return true;
}

void __real_lc_around_send(struct lc_around *around, struct lc_request *io, bool worker);
void __wrap_lc_around_send(struct lc_around *around, struct lc_request *io, bool worker);

/* In this order: the bio may end. */
void __wrap_lc_around_send(struct lc_around *around, struct lc_request *io, bool worker)
{
	user_around_op(lc_request_bio(io));
	world->standin->nr_around++;
	__real_lc_around_send(around, io, worker);
}

int __real_lc_super_tell_life(struct lc_super *super);
int __wrap_lc_super_tell_life(struct lc_super *super);

int __wrap_lc_super_tell_life(struct lc_super *super)
{
	int ret;

	world->standin->meta_busy++;
	ret = __real_lc_super_tell_life(super);
	world->standin->meta_busy--;
	return ret;
}

int __real_lc_super_set_warm(struct lc_super *super, u64 segment);
int __wrap_lc_super_set_warm(struct lc_super *super, u64 segment);

int __wrap_lc_super_set_warm(struct lc_super *super, u64 segment)
{
	int ret;

	world->standin->meta_busy++;
	ret = __real_lc_super_set_warm(super, segment);
	world->standin->meta_busy--;
	say("%6u copies are believed from segment %llu on: %d", world->life->now, segment, ret);
	return ret;
}

/* A message: cache_mode. */
void user_mode(u32 mode)
{
	static const u8 modes[] = { LC_WRITEBACK, LC_WRITEAROUND, LC_WRITETHROUGH };

	world->vol->c.env.params.cache_mode = modes[mode % ARRAY_SIZE(modes)];
	lc_writeback_kick(world->vol->wb);
}

/* If too much is parked, it sleeps (D15). */
static int map_write(void *user)
{
	struct bio *bio = &((struct user_bio *)user)->bio;

	world->standin->nr_in_map++;
	if (!map_around(bio))
		lc_intake_map(world->vol->intake, bio);
	world->standin->nr_in_map--;
	return 0;
}

/**
 * user_write() - the user writes blocks
 * @lane: which one
 * @block: the first one
 * @nr: how many
 * @mask: sectors of the last one, in one piece
 * @flags: REQ_*
 * @meets: from a worker of device mapper, where other such writes come, too
 */
void user_write(u32 lane, u32 block, u32 nr, u8 mask, blk_opf_t flags, bool meets)
{
	struct user_bio *user = user_new(REQ_OP_WRITE | flags);
	u32 first = nr > 1 ? 0 : __ffs(mask);
	u32 sectors = (nr - 1) * PAGE_SECTORS + hweight8(mask), task;

	/* As map.c does: what is behind the seam would be a bio of its own. */
	if (world->params.leave)
		sectors = min_t(u64, sectors, lc_place_run(&world->vol->c.env.place,
							   block * PAGE_SECTORS + first, sectors));
	/* Of several blocks the last one from its beginning on. */
	user->bio.bi_iter.bi_sector = block * PAGE_SECTORS + first;
	user->bio.bi_iter.bi_size = sectors << SECTOR_SHIFT;
	user_begins(user);
	shim_current.pid = lane;
	shim_current.flags = meets ? PF_WQ_WORKER : 0;
	task = shim_task(map_write, user);
	shim_step(task);
	world->standin->nr_slept += shim_state(task) != SHIM_NONE;
	shim_current.flags = 0;
}

bool user_owns(const struct bio *bio)
{
	const struct user_bio *bios = world->standin->bios;

	return bio >= &bios[0].bio && bio <= &bios[MAX_BIOS - 1].bio;
}

void user_flush(void)
{
	const struct lc_lanes *lanes = world->vol->c.lanes;
	struct user_bio *user = user_new(REQ_OP_WRITE | REQ_PREFLUSH);
	u32 i;

	user->came = world->life->now;
	user->seen = lc_doubt_failures(&world->vol->c.doubt);
	user->untold = user->seen > world->standin->told;
	if (lc_around_map_flush(world->vol->around, &user->bio))
		submit_bio(&user->bio);
	else
		lc_flush_map(world->vol->flush, &user->bio, true);
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

/*
 * Blocks that are read take the rest of a segment.  What is in it concerns no log, and need not be
 * there.  The ring is not blocked for longer than this.
 */
bool user_cede(u32 lane)
{
	struct lc_cache *c = &world->vol->c;
	struct lc_region region;

	shim_current.pid = lane;
	/* As where blocks are promoted: see plenty_of_space(). */
	if (!lc_ring_spares(c->ring) ||
	    lc_lanes_cede(c->lanes, SEG_SLOTS / 2, &region))
		return false;
	lc_ring_filled(c->ring, region.segment);
	return true;
}

/* --- writeback ------------------------------------------------------------------ */

/* Is no more than a quarter of the log free? */
bool user_wants_drain(void)
{
	const struct lc_cache *c = &world->vol->c;

	return lc_ring_free(c->ring) <= READ_ONCE(c->ring->reserve) + c->sb.geo.nr_segments / 4;
}

/* Is there anything to be drained, and writeback at rest?  @all: also if that must be closed first. */
bool user_can_drain(bool all)
{
	const struct lc_cache *c = &world->vol->c;
	u64 tail = lc_ring_tail(c->ring);

	return shim_state(0) > SHIM_AWAKE && !world->vol->wb->working && tail < c->alloc->next &&
	       (all || !segment_of(tail)->buf);
}

/* @all: by a message, down to what is open; otherwise the watermarks are set for a batch. */
void user_drain(bool all)
{
	struct lc_cache *c = &world->vol->c;
	u64 nr = c->sb.geo.nr_segments, free = lc_ring_free(c->ring);
	u32 used = (nr - min(free, nr)) * 100 / nr;

	if (all) {
		lc_writeback_drain(world->vol->wb);
		return;
	}
	c->env.params.high_watermark = used;
	c->env.params.low_watermark = max(used, 1u) - 1;
	lc_writeback_kick(world->vol->wb);
}

/* --- discards ----------------------------------------------------------------- */

bool user_discard(u32 first, u32 nr)
{
	struct user_bio *user;

	if (!user_can_start() || world->standin->nr_discards == MAX_DISCARDS)
		return false;
	world->standin->nr_discards++;
	user = user_new(REQ_OP_DISCARD);
	user->bio.bi_iter.bi_sector = first * PAGE_SECTORS;
	user->bio.bi_iter.bi_size = nr << LC_SLOT_SHIFT;
	user_begins(user);
	lc_discard_map(world->vol->discards, &user->bio);
	return true;
}

void __real_lc_claims_add(struct lc_claims *claims, struct lc_claim *claim);
void __wrap_lc_claims_add(struct lc_claims *claims, struct lc_claim *claim);
void __real_lc_claims_drop(struct lc_claims *claims, struct lc_claim *claim);
void __wrap_lc_claims_drop(struct lc_claims *claims, struct lc_claim *claim);
int __real_lc_lanes_append_ranges(struct lc_lanes *lanes, const struct lc_entry_info *ranges,
				  u32 nr);
int __wrap_lc_lanes_append_ranges(struct lc_lanes *lanes, const struct lc_entry_info *ranges,
				  u32 nr);

/* NULL: one that is free.  Return: NULL for the claim of a write around the log. */
static struct user_discard *discard_of(const struct lc_claim *claim)
{
	struct user_discard *one = world->standin->discards;
	const struct user_discard *end = one + MAX_DISCARDS;

	while (one < end && one->claim != claim)
		one++;
	return one < end ? one : NULL;
}

static u32 discard_add(const struct lc_claim *claim, u32 rec)
{
	return op_add(claim->first, claim->last - claim->first + 1, 0, rec);
}

static bool any_cached(const struct lc_claim *claim)
{
	struct lc_mapping map;
	u64 block;

	for (block = claim->first; block <= claim->last; block++) {
		if (lookup(block, &map))
			return true;
	}
	return false;
}

/*
 * The module looks next whether there is a copy, or may be one that a scan would find (WS4).  If not,
 * there is no tombstone, and a copy that is added from here on is newer.
 */
void __wrap_lc_claims_add(struct lc_claims *claims, struct lc_claim *claim)
{
	struct user_discard *one;

	__real_lc_claims_add(claims, claim);
	if (claim->kind != LC_CLAIM_DISCARD)
		return;
	one = discard_of(NULL);
	*one = (struct user_discard) { .claim = claim };
	if (!any_cached(claim) && !lc_warm_unsure(&world->vol->c.warm))
		one->op = discard_add(claim, NONE);
}

/* Of a discard this is the end: if it was one, what it discarded is gone. */
void __wrap_lc_claims_drop(struct lc_claims *claims, struct lc_claim *claim)
{
	struct user_discard *one;

	one = claim->kind == LC_CLAIM_DISCARD && claim->added ? discard_of(claim) : NULL;
	if (one) {
		if (!one->flying)
			world->ops[one->op].acked = world->life->now;
		one->claim = NULL;
		world->standin->nr_discards--;
	}
	__real_lc_claims_drop(claims, claim);
}

/* The discard of a tombstone, NULL: not one of a user.  Of equal ones it is the turn of the oldest. */
static struct user_discard *discard_at(const struct lc_entry_info *range)
{
	struct user_discard *one = world->standin->discards, *found = NULL;

	for (; one < world->standin->discards + MAX_DISCARDS; one++) {
		const struct lc_claim *claim = one->claim;

		if (claim && !one->op && range->block == claim->first &&
		    range->nr_blocks == claim->last + 1 - claim->first &&
		    (!found || claim->ticket < found->claim->ticket))
			found = one;
	}
	return found;
}

/* With a copy, its place among the writes is that of its tombstone. */
int __wrap_lc_lanes_append_ranges(struct lc_lanes *lanes, const struct lc_entry_info *ranges,
				  u32 nr)
{
	int ret = __real_lc_lanes_append_ranges(lanes, ranges, nr);
	struct user_discard *one;
	u32 i;

	for (i = 0; !ret && i < nr; i++) {
		one = discard_at(&ranges[i]);
		if (!one)
			continue;
		one->op = discard_add(one->claim, rec_index(rec_of_seq(world->last_seq)));
		one->logged = true;
	}
	return ret;
}

/* To the HDD.  @owner: has the claim in it.  Return: which of the discards it is. */
u32 discard_sent(const void *owner)
{
	struct user_discard *one = world->standin->discards, *next = one + 1;

	/* Its claim is the first one from its own address on. */
	for (; next < world->standin->discards + MAX_DISCARDS; next++) {
		if ((const void *)next->claim >= owner &&
		    ((const void *)one->claim < owner || next->claim < one->claim))
			one = next;
	}
	if (!one->op)
		trouble(BAD_WARNING, "a discard of cached blocks is sent, and is not in the log");
	one->flying++;
	return one - world->standin->discards;
}

/* The tombstone of a discard of the block that is under way.  Return: its seq, 0: none is logged. */
u64 discard_seq(u32 block)
{
	const struct user_discard *one = world->standin->discards;
	u64 seq = 0;

	for (; one < world->standin->discards + MAX_DISCARDS; one++) {
		if (one->claim && one->logged && block >= one->claim->first &&
		    block <= one->claim->last)
			seq = max(seq, world->recs[world->ops[one->op].rec].seq);
	}
	return seq;
}
