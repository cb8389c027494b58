// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups of promoted blocks.  See group.h.
 *
 * next_work opens groups, takes and closes regions, and abandons groups whose place is wanted.  It
 * takes a bounded number of steps each time.
 *
 * A group that waits for reads may wait for long: a cgroup's limit holds a read back, or the hard
 * disk fails.  Nothing of the group is on the SSD yet, so it is abandoned when the ring needs its
 * place (GR3): its blocks are forgotten, its region is given back, and it is idle without a write
 * when its reads have ended.  A task that registers a block at the same time, or forgets one, looks
 * at group->abandoned under the bucket lock (GR5).
 *
 * Teardown: lc_groups_quiesce() has waited until each group is idle, so neither a bio nor the work
 * of a group is left, and has closed the region, so the ring is not blocked any more.  Refill may
 * still queue next_work, which finds nothing to do, until it is cancelled.
 */
#include <linux/bio.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "bio/group.h"
#include "bio/throttle.h"
#include "log/cache.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/submit.h"
#include "store/admit.h"
#include "store/index.h"
#include "store/ring.h"

#define NR_GROUPS	4
#define LEAST_SLOTS	(LC_HEADER_SLOTS + 8u)	/* of a region that is worth a group */
#define AGE		HZ	/* of the first block of a group that is not full */
#define PAUSE		(10 * HZ)	/* after a write that failed */
#define NO_BLOCK	(~0ULL)

struct region {
	struct lc_region place;		/* segment 0: unused; lock, constant while it is used */
	u32 users;			/* groups; lock */
	bool closed;			/* lock */
	bool bad;			/* a write failed, so no chain leads on; lock */
};

enum stage {
	STAGE_IDLE,
	STAGE_OPEN,
	STAGE_CLOSED,			/* waits for its users */
	STAGE_READY,			/* to be sent */
	STAGE_SENT,			/* or to end without a write */
};

struct lc_group {
	struct list_head list;		/* groups->idle or groups->ready; lock */
	struct lc_groups *groups;
	struct region *region;		/* NULL once it was abandoned; lock */
	u64 segment;			/* number */
	u32 header;			/* slot of the segment */
	u32 base;			/* first block's slot, numbered over the whole SSD */
	u32 most;			/* blocks that fit */
	u32 nr;				/* slots taken; lock, constant once closed */
	u32 users;			/* of lc_groups_take(); lock */
	enum stage stage;		/* lock */
	bool abandoned;			/* GR5; set under lock, READ_ONCE() */
	u32 flush_failures;		/* of the SSD, before it was sent */
	u64 seq;			/* durable when it was opened: others may still be filled */
	u64 blocks[LC_GROUP_BLOCKS];	/* or NO_BLOCK; of the slot's taker; READ_ONCE() */
	void *pages[LC_HEADER_SLOTS + LC_GROUP_BLOCKS];
	struct work_struct work;	/* sends it, then ends it */
	struct bio bio;
	struct bio_vec vecs[LC_HEADER_SLOTS + LC_GROUP_BLOCKS];
};

struct lc_groups {
	struct lc_cache *c;
	spinlock_t lock;		/* of the groups, too, as they say */
	struct lc_group *all;		/* NR_GROUPS, or NULL; lock */
	struct lc_group *open;		/* lock */
	struct list_head idle;		/* lock */
	struct list_head ready;		/* lock */
	bool sending;			/* one is on its way, or about to be; lock */
	u32 nr_busy;			/* groups that are not idle; lock */
	bool running;			/* lock, READ_ONCE() */
	bool hungry;			/* blocks come that no group has slots for; lock */
	u32 wanted;			/* how many of them at once; lock */
	struct region regions[NR_GROUPS + 1];	/* so one is unused when another is needed */
	struct region *region;		/* groups are opened in it, or NULL; lock */
	u64 number;			/* last one that was given; of the group that is sent */
	unsigned long paused;		/* jiffies until which no group is opened; READ_ONCE() */
	wait_queue_head_t wait;		/* a group is idle */
	struct work_struct next_work;
	struct delayed_work age_work;
};

/* --- the index --------------------------------------------------------------- */

/* The slot, numbered over the whole SSD. */
static u32 slot_of(const struct lc_group *group, u32 i)
{
	return group->base + i;
}

/*
 * Note that the slot gets the block, before the bucket lock is taken: abandon() sees that, or the
 * task under the lock sees that the group was abandoned.
 */
static void note(struct lc_group *group, u32 i, u64 block)
{
	WRITE_ONCE(group->blocks[i], block);
	/* Pairs with abandon(). */
	smp_mb();
}

/* With @renew, in place of a clean copy, which leaves the index in any case. */
static void set_pending(struct lc_group *group, u32 i, u64 block, u8 use, bool renew)
{
	struct lc_mapping old, map = { .slot = slot_of(group, i), .use = use };
	struct lc_index *index = group->groups->c->index;
	bool found, clean;
	u32 bucket;

	note(group, i, block);
	bucket = lc_index_lock(index, block);
	found = lc_index_lookup(index, bucket, block, &old);
	clean = found && renew && !old.dirty && !old.lost;
	if (clean)
		lc_index_remove(index, bucket, block, &old);
	if (!READ_ONCE(group->abandoned) && (!found || clean))
		lc_index_set(index, bucket, block, &map, &old);
	else
		WRITE_ONCE(group->blocks[i], NO_BLOCK);
	lc_index_unlock(index, bucket);
}

void lc_group_register(struct lc_group *group, u32 i, u64 block, u8 use)
{
	set_pending(group, i, block, use, false);
}

bool lc_group_replace(struct lc_group *group, u32 i, u64 block, u32 slot, u8 use)
{
	struct lc_mapping old, map = { .slot = slot_of(group, i), .use = use };
	struct lc_cache *c = group->groups->c;
	bool same;
	u32 bucket;

	note(group, i, block);
	same = lc_index_lock_slot(c->index, block, slot, &bucket, &old) && !old.dirty &&
	       !old.lost && old.mask == 0xff && !READ_ONCE(group->abandoned);
	if (same) {
		lc_segment_get(lc_ring_segment(c->ring, slot));
		lc_index_set(c->index, bucket, block, &map, &old);
	} else {
		WRITE_ONCE(group->blocks[i], NO_BLOCK);
	}
	lc_index_unlock(c->index, bucket);
	return same;
}

void lc_group_renew(struct lc_group *group, u32 i, u64 block, u8 use)
{
	set_pending(group, i, block, use, true);
}

void lc_group_renewed(struct lc_group *group, u32 i, u64 block)
{
	struct lc_index *index = group->groups->c->index;
	struct lc_mapping map;
	u32 bucket;

	bucket = lc_index_lock(index, block);
	if (lc_index_lookup(index, bucket, block, &map) && !map.dirty && !map.lost &&
	    (map.slot != slot_of(group, i) || READ_ONCE(group->abandoned)))
		lc_index_remove(index, bucket, block, &map);
	lc_index_unlock(index, bucket);
}

/* Is the block's node still the one that was registered?  If not, the slot is a hole. */
static bool still_pending(struct lc_group *group, u32 i)
{
	struct lc_index *index = group->groups->c->index;
	struct lc_mapping map;
	bool pending;
	u32 bucket;

	if (group->blocks[i] == NO_BLOCK)
		return false;
	pending = lc_index_lock_slot(index, group->blocks[i], slot_of(group, i), &bucket, &map);
	lc_index_unlock(index, bucket);
	if (!pending)
		WRITE_ONCE(group->blocks[i], NO_BLOCK);
	return pending;
}

/*
 * The slot has its data on the SSD, or never gets it.  @abandoned: by the task that abandons the
 * group; others leave that to it (GR5).  Return: whether it is valid now (GR1).
 */
static bool settle(struct lc_group *group, u32 i, bool written, bool abandoned)
{
	struct lc_index *index = group->groups->c->index;
	u64 block = READ_ONCE(group->blocks[i]);
	struct lc_mapping map;
	bool valid = false;
	u32 bucket;

	if (block == NO_BLOCK)
		return false;
	if (lc_index_lock_slot(index, block, slot_of(group, i), &bucket, &map) &&
	    READ_ONCE(group->abandoned) == abandoned) {
		valid = written;
		if (written)
			lc_index_add_sectors(index, bucket, map.slot, 0xff);
		else
			lc_warm_drop_pending(&group->groups->c->warm, index, bucket, block);
		WRITE_ONCE(group->blocks[i], NO_BLOCK);
	}
	lc_index_unlock(index, bucket);
	return valid;
}

void lc_group_forget(struct lc_group *group, u32 first, u32 nr)
{
	u32 i;

	for (i = first; i < first + nr; i++)
		settle(group, i, false, false);
}

/* --- regions ------------------------------------------------------------------- */

/* [lock] If no group uses it any more, the place may be given away again. */
static void region_release(struct lc_groups *groups, struct region *region)
{
	lockdep_assert_held(&groups->lock);
	if (!region->closed || region->users || !region->place.segment)
		return;
	lc_ring_filled(groups->c->ring, region->place.segment);
	region->place.segment = 0;
	lc_kick(&groups->c->env.refill);
}

/* [lock] */
static void close_region(struct lc_groups *groups)
{
	struct region *region = groups->region;

	lockdep_assert_held(&groups->lock);
	if (!region)
		return;
	groups->region = NULL;
	region->closed = true;
	region_release(groups, region);
}

/*
 * GR4.  While nobody writes refill keeps one ready, and soon has another one.  As long as the speed
 * of the SSD is not known there is never more than one.
 */
static bool plenty_of_space(const struct lc_cache *c)
{
	u64 segments = min_t(u64, lc_alloc_ready(c->alloc),
			     READ_ONCE(lc_lanes_here(c->lanes)->nr_ready));

	if (!lc_ring_spares(c->ring) || lc_submit_enough(c->submit))
		return false;
	if (lc_env_idle(&c->env))
		return segments;
	return segments > 1 && lc_throttle_plenty(segments, READ_ONCE(c->alloc->most_ready));
}

/* @least: slots */
static bool take_region(struct lc_groups *groups, u32 least)
{
	struct lc_cache *c = groups->c;
	struct region *region = groups->regions;
	struct lc_region place;

	if (!plenty_of_space(c) || lc_lanes_cede(c->lanes, least, &place))
		return false;
	spin_lock(&groups->lock);
	/* Each group uses one at most, so one is unused. */
	while (region->place.segment)
		region++;
	*region = (struct region){ .place = place };
	groups->region = region;
	spin_unlock(&groups->lock);
	/* Groups are opened for blocks that the policy has chosen, so it is there. */
	lc_admit_ceded(smp_load_acquire(&c->admit), place.end - place.next);
	return true;
}

/* --- the end of a group --------------------------------------------------------- */

/* [lock] One at a time, so that a FLUSH finds no more than one in the SSD. */
static void send_next(struct lc_groups *groups)
{
	struct lc_group *group;

	lockdep_assert_held(&groups->lock);
	group = list_first_entry_or_null(&groups->ready, struct lc_group, list);
	if (!group || groups->sending)
		return;
	list_del(&group->list);
	group->stage = STAGE_SENT;
	groups->sending = true;
	queue_work(groups->c->verify_wq, &group->work);
}

/* [lock] */
static void ready_if_unused(struct lc_group *group)
{
	lockdep_assert_held(&group->groups->lock);
	if (group->stage != STAGE_CLOSED || group->users)
		return;
	group->stage = STAGE_READY;
	list_add_tail(&group->list, &group->groups->ready);
	send_next(group->groups);
}

/* [lock] */
static void close_group(struct lc_groups *groups)
{
	struct lc_group *group = groups->open;

	lockdep_assert_held(&groups->lock);
	if (!group)
		return;
	groups->open = NULL;
	group->stage = STAGE_CLOSED;
	/* No group was opened behind it. */
	group->region->place.next = group->header + (group->nr ? LC_HEADER_SLOTS + group->nr : 0);
	ready_if_unused(group);
}

static void end_group(struct lc_group *group, bool written)
{
	struct lc_groups *groups = group->groups;
	struct region *region = group->region;

	spin_lock(&groups->lock);
	if (!written) {
		WRITE_ONCE(groups->paused, jiffies + PAUSE);
		region->bad = true;
		if (region == groups->region)
			close_region(groups);
	}
	if (region) {
		region->users--;
		region_release(groups, region);
	}
	group->stage = STAGE_IDLE;
	list_add(&group->list, &groups->idle);
	groups->nr_busy--;
	groups->sending = false;
	send_next(groups);
	if (groups->hungry)
		lc_kick(&groups->c->env.fill);
	wake_up_all(&groups->wait);
	/* From here on the volume may be gone. */
	spin_unlock(&groups->lock);
}

static void end_work(struct work_struct *work)
{
	struct lc_group *group = container_of(work, struct lc_group, work);
	struct lc_cache *c = group->groups->c;
	bool written = !group->bio.bi_status && !lc_ssd_failed(&c->health) &&
		       lc_env_fua_kept(&c->env, group->flush_failures);
	u32 valid = 0, i;

	bio_uninit(&group->bio);
	if (!written)	/* it may be there all the same, and the index forgets it */
		lc_warm_raise(&c->warm, LC_WARM_NEXT, true);
	for (i = 0; i < group->nr; i++)
		valid += settle(group, i, written, false);
	lc_stats_promoted(&c->stats, valid);
	end_group(group, written);
}

static void group_written(struct bio *bio)
{
	struct lc_group *group = bio->bi_private;
	struct lc_cache *c = group->groups->c;

	/* A disk without FUA was flushed, and perhaps that has failed (F2). */
	if (bio->bi_status)
		lc_log_flush_failed(c->log);
	INIT_WORK(&group->work, end_work);
	queue_work(c->verify_wq, &group->work);
}

/* Fill the header in.  Return: how many blocks the group holds. */
static u32 seal(struct lc_group *group)
{
	struct lc_cache *c = group->groups->c;
	struct lc_record_header *header = group->pages[0];
	struct lc_record_info info = {
		.segment = group->segment, .seq = group->seq, .epoch = c->sb.epoch,
		.epoch_first_seq = c->sb.epoch_first_seq, .wall_clock = ktime_get_real_ns(),
		.type = LC_RECORD_DATA, .nr_entries = group->nr, .nr_slots = group->nr,
		.first_slot = group->header,
	};
	u32 nr = 0, i;

	/* Else no scan after a crash believes it (WS9), nor one that was sent after it (WS8). */
	if (!lc_hdd_may_lose(c) && !lc_warm_raising(&c->warm))
		info.number = ++group->groups->number;
	memset(header, 0, LC_SLOT_BYTES);
	for (i = 0; i < group->nr; i++) {
		struct lc_entry_info entry = { .nr_blocks = 1 };
		void *page = lc_group_page(group, i);

		if (still_pending(group, i)) {
			entry.block = group->blocks[i];
			entry.mask = 0xff;
			entry.type = LC_ENTRY_DATA;
			entry.csum = lc_format_slot_csum(&c->sb, entry.block, page);
			lc_sums_put(&c->sums, slot_of(group, i), entry.csum);
			nr++;
		} else {
			memset(page, 0, LC_SLOT_BYTES);	/* C8 */
		}
		lc_entry_encode(header, i, &entry);
	}
	lc_group_seal(header, &c->sb, &info);
	return nr;
}

/* With FUA: the blocks are read from there at once, and nobody would write them again (GR6). */
static void send(struct lc_group *group)
{
	struct lc_cache *c = group->groups->c;
	struct bio *bio = &group->bio;
	/* The header alone, if there is nothing else, so that a chain leads on. */
	u32 nr = LC_HEADER_SLOTS + (seal(group) ? group->nr : 0), i;

	bio_init(bio, c->env.cache, group->vecs, nr, REQ_OP_WRITE | REQ_FUA);
	bio->bi_iter.bi_sector = lc_format_log_address(&c->sb.geo, group->segment,
						       group->header) >> SECTOR_SHIFT;
	for (i = 0; i < nr; i++)
		__bio_add_page(bio, virt_to_page(group->pages[i]), LC_SLOT_BYTES,
			       offset_in_page(group->pages[i]));
	bio->bi_end_io = group_written;
	bio->bi_private = group;
	group->flush_failures = READ_ONCE(c->env.ssd_flush_failures);
	lc_env_sent(&c->env, c->env.cache, bio->bi_opf, bio->bi_iter.bi_size);
	/* A read of what was there before, that sees new data, sees the segment's number (H1). */
	smp_mb();
	submit_bio(bio);
}

/* The reads have ended, and no other task uses the group. */
static void send_work(struct work_struct *work)
{
	struct lc_group *group = container_of(work, struct lc_group, work);
	struct lc_groups *groups = group->groups;
	bool write;

	spin_lock(&groups->lock);
	write = group->nr && !group->abandoned && !group->region->bad;
	spin_unlock(&groups->lock);
	if (write) {
		send(group);
		return;
	}
	lc_group_forget(group, 0, group->nr);
	end_group(group, true);
}

/* --- opening --------------------------------------------------------------------- */

/* [lock] The region has space. */
static void open_group(struct lc_groups *groups)
{
	struct lc_group *group = list_first_entry(&groups->idle, struct lc_group, list);
	struct lc_region *place = &groups->region->place;
	u32 piece = lc_submit_piece(groups->c->submit), i;

	lockdep_assert_held(&groups->lock);
	list_del(&group->list);
	groups->nr_busy++;
	group->region = groups->region;
	group->region->users++;
	group->segment = place->segment;
	group->header = place->next;
	group->base = (lc_ring_position(groups->c->ring, place->segment)
		       << groups->c->ring->slot_shift) + place->next + LC_HEADER_SLOTS;
	group->most = min3(LC_GROUP_BLOCKS, place->end - place->next - LC_HEADER_SLOTS,
			   piece ?: LC_GROUP_BLOCKS);
	group->nr = 0;
	group->users = 0;
	group->stage = STAGE_OPEN;
	WRITE_ONCE(group->abandoned, false);
	group->seq = lc_log_durable_seq(groups->c->log);
	for (i = 0; i < LC_GROUP_BLOCKS; i++)
		WRITE_ONCE(group->blocks[i], NO_BLOCK);
	INIT_WORK(&group->work, send_work);
	place->next += LC_HEADER_SLOTS + group->most;
	groups->open = group;
	groups->hungry = false;
	WRITE_ONCE(groups->c->promoted, true);
}

/* May groups be opened now? */
static bool wanted(const struct lc_groups *groups)
{
	const struct lc_cache *c = groups->c;

	return READ_ONCE(groups->running) && READ_ONCE(c->env.params.read_cache) &&
	       lc_mode(&c->health) == LC_MODE_RW && !lc_ssd_failed(&c->health) &&
	       time_after_eq(jiffies, READ_ONCE(groups->paused));
}

/* [lock] GR3 */
static bool region_outdated(const struct lc_groups *groups)
{
	struct lc_ring *ring = groups->c->ring;
	const struct region *region = groups->region;

	lockdep_assert_held(&groups->lock);
	return region && (region->place.end - region->place.next < LEAST_SLOTS ||
			  lc_ring_head(ring) - region->place.segment > ring->nr / 2);
}

/*
 * A group that waits for reads gives its place up.  Only next_work does that, so one at a time.
 * From here until the end it is a user of the group, which therefore does not get ready.
 */
static void abandon(struct lc_group *group)
{
	struct lc_groups *groups = group->groups;
	struct region *region = group->region;
	u32 i;

	/* Pairs with note(). */
	smp_mb();
	for (i = 0; i < LC_GROUP_BLOCKS; i++)
		settle(group, i, false, true);
	spin_lock(&groups->lock);
	group->region = NULL;
	region->users--;
	region_release(groups, region);
	group->users--;
	ready_if_unused(group);
	spin_unlock(&groups->lock);
}

/* [lock] The next group to be abandoned, or NULL. */
static struct lc_group *take_unsent(struct lc_groups *groups)
{
	struct lc_group *group = groups->all;
	u32 i;

	lockdep_assert_held(&groups->lock);
	for (i = 0; group && i < NR_GROUPS; i++, group++) {
		if (group->abandoned || group->stage < STAGE_CLOSED || group->stage > STAGE_READY)
			continue;
		if (group->stage == STAGE_READY)
			list_del(&group->list);
		group->stage = STAGE_CLOSED;
		group->users++;
		WRITE_ONCE(group->abandoned, true);
		return group;
	}
	return NULL;
}

/* The ring needs a place that is being filled: give back all that is not on its way (GR3). */
static void make_way(struct lc_groups *groups)
{
	struct lc_group *group;

	do {
		spin_lock(&groups->lock);
		close_group(groups);
		close_region(groups);
		group = take_unsent(groups);
		spin_unlock(&groups->lock);
		if (group)
			abandon(group);
	} while (group);
}

static void next_work(struct work_struct *work)
{
	struct lc_groups *groups = container_of(work, struct lc_groups, next_work);
	bool open, region;
	u32 least;

	if (lc_ring_blocked(groups->c->ring))
		make_way(groups);
	spin_lock(&groups->lock);
	if (region_outdated(groups))
		close_region(groups);
	open = groups->hungry && !groups->open && !list_empty(&groups->idle);
	region = groups->region;
	least = max(LEAST_SLOTS, LC_HEADER_SLOTS + groups->wanted);
	spin_unlock(&groups->lock);
	if (!open || !wanted(groups) || (!region && !take_region(groups, least)))
		return;
	spin_lock(&groups->lock);
	if (groups->running && groups->region)
		open_group(groups);
	spin_unlock(&groups->lock);
}

/* What is in the group is of use only when it is written. */
static void age_work(struct work_struct *work)
{
	struct lc_groups *groups = container_of(to_delayed_work(work), struct lc_groups, age_work);

	spin_lock(&groups->lock);
	if (groups->open && groups->open->nr) {
		close_group(groups);
		/* More is likely to come. */
		groups->hungry = true;
		lc_kick(&groups->c->env.fill);
	}
	spin_unlock(&groups->lock);
}

/* --- interface ----------------------------------------------------------------- */

/* [lock] The open group has too little space.  An empty one is as much as the region has left. */
static void want_next(struct lc_groups *groups)
{
	bool empty = groups->open && !groups->open->nr;

	lockdep_assert_held(&groups->lock);
	close_group(groups);
	if (empty)
		close_region(groups);
}

struct lc_group *lc_groups_take(struct lc_groups *groups, u32 nr, u32 *first)
{
	u32 most = min(LC_GROUP_BLOCKS, (1u << groups->c->ring->slot_shift) - 2 * LC_HEADER_SLOTS);
	u32 piece = lc_submit_piece(groups->c->submit);
	struct lc_group *group;

	/* No group ever has so many, even in a region that begins behind one header. */
	if (nr > (piece ? min(most, piece) : most))
		return NULL;
	spin_lock(&groups->lock);
	group = groups->open;
	if (group && group->nr + nr > group->most) {
		want_next(groups);
		group = NULL;
	}
	if (group) {
		if (!group->nr)
			queue_delayed_work(groups->c->env.wq, &groups->age_work, AGE);
		*first = group->nr;
		group->nr += nr;
		group->users++;
		if (group->nr == group->most)
			close_group(groups);
	}
	if (!groups->open && groups->running) {
		groups->hungry = true;
		groups->wanted = nr;
		lc_kick(&groups->c->env.fill);
	}
	spin_unlock(&groups->lock);
	return group;
}

void *lc_group_page(const struct lc_group *group, u32 i)
{
	return group->pages[LC_HEADER_SLOTS + i];
}

void lc_group_put(struct lc_group *group)
{
	struct lc_groups *groups = group->groups;

	spin_lock(&groups->lock);
	group->users--;
	ready_if_unused(group);
	spin_unlock(&groups->lock);
}

void lc_groups_resume(struct lc_groups *groups)
{
	spin_lock(&groups->lock);
	WRITE_ONCE(groups->running, true);
	spin_unlock(&groups->lock);
}

static bool all_idle(struct lc_groups *groups)
{
	bool idle;

	spin_lock(&groups->lock);
	idle = !groups->nr_busy;
	spin_unlock(&groups->lock);
	return idle;
}

void lc_groups_quiesce(struct lc_groups *groups)
{
	spin_lock(&groups->lock);
	WRITE_ONCE(groups->running, false);
	groups->hungry = false;
	close_group(groups);
	close_region(groups);
	spin_unlock(&groups->lock);
	/* One that has seen running may still take a region, but opens no group. */
	flush_work(&groups->next_work);
	cancel_delayed_work_sync(&groups->age_work);
	wait_event_idle(groups->wait, all_idle(groups));
	spin_lock(&groups->lock);
	close_region(groups);
	spin_unlock(&groups->lock);
}

/* --- memory -------------------------------------------------------------------- */

static void free_groups(struct lc_group *all)
{
	u32 i, k;

	for (i = 0; all && i < NR_GROUPS; i++) {
		for (k = 0; k < ARRAY_SIZE(all[i].pages); k++)
			free_page((unsigned long)all[i].pages[k]);
	}
	kvfree(all);
}

static struct lc_group *alloc_groups(struct lc_groups *groups)
{
	struct lc_group *all = kvcalloc(NR_GROUPS, sizeof(*all), GFP_KERNEL);
	u32 i, k;

	for (i = 0; all && i < NR_GROUPS; i++) {
		all[i].groups = groups;
		for (k = 0; k < ARRAY_SIZE(all[i].pages); k++) {
			all[i].pages[k] = (void *)__get_free_page(GFP_KERNEL);
			if (!all[i].pages[k]) {
				free_groups(all);
				return NULL;
			}
		}
	}
	return all;
}

int lc_groups_enable(struct lc_groups *groups)
{
	struct lc_group *all = alloc_groups(groups);
	u32 i;

	if (!all)
		return -ENOMEM;
	spin_lock(&groups->lock);
	if (!groups->all) {
		for (i = 0; i < NR_GROUPS; i++)
			list_add_tail(&all[i].list, &groups->idle);
		groups->all = all;
		all = NULL;
	}
	spin_unlock(&groups->lock);
	/* Another task was first. */
	free_groups(all);
	return 0;
}

struct lc_groups *lc_groups_create(struct lc_cache *c)
{
	struct lc_groups *groups = kzalloc(sizeof(*groups), GFP_KERNEL);

	if (!groups)
		return NULL;
	groups->c = c;
	groups->paused = jiffies;
	spin_lock_init(&groups->lock);
	INIT_LIST_HEAD(&groups->idle);
	INIT_LIST_HEAD(&groups->ready);
	init_waitqueue_head(&groups->wait);
	INIT_WORK(&groups->next_work, next_work);
	INIT_DELAYED_WORK(&groups->age_work, age_work);
	c->env.fill = (struct lc_kick){ c->env.wq, &groups->next_work };
	return groups;
}

void lc_groups_destroy(struct lc_groups *groups)
{
	if (!groups)
		return;
	cancel_work_sync(&groups->next_work);
	cancel_delayed_work_sync(&groups->age_work);
	free_groups(groups->all);
	kfree(groups);
}
