/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of promoted blocks: where they are put on the SSD, and when they are valid there.
 *
 * A group is a header slot and the copies of up to LC_GROUP_BLOCKS blocks, written in one bio.  It
 * is in a region: the rest of a segment that a lane has ceded (lane.h).  The log knows nothing of
 * it.  No group has a seq, no FLUSH waits for one, replay does not see them, and the tail passes
 * them as it passes unused slots.  After a crash a scan may find what is in them again (warm.h).
 *
 *   idle -> open (has its slots) -> closed -> ready -> sent -> idle
 *           next_work               full, or a second old, or the volume is suspended
 *
 * A group is ready when all its reads have ended.  One is sent at a time.
 *
 * Invariants
 *  GR1 A block is registered, as pending (I6), before its read is sent.  It becomes valid after
 *      the group's write has ended, under the bucket lock, and only if its node is still the one
 *      that was registered.  So what was read is what the HDD holds: a write or a discard that came
 *      meanwhile has replaced or removed the node.
 *  GR2 lc_ring_fill() holds for the segment of a region until the region is closed and all its
 *      groups are idle or abandoned.  So nothing is written to the place of a segment that was
 *      given away.
 *  GR3 When the ring needs the place of a region, the region is closed, and its groups that are not
 *      sent yet are abandoned.  So refill waits for the write of one group at most, and for no
 *      read of the HDD.
 *  GR4 A region is taken only while there is plenty of space: a quarter of the segments is free,
 *      and refill has at least half of what it keeps ready (throttle.h), and more than one.  If
 *      nobody has written for a second, one is enough.
 *  GR5 Once a group is abandoned, only the task that abandons it changes a node for it.  Others
 *      look under the bucket lock.  So none touches a slot that has new content.
 *  GR6 A valid block is durable on the SSD: its group was written with FUA, and no FLUSH has failed
 *      meanwhile.  So a FLUSH that fails (F2) takes nothing from the blocks that are read from
 *      there.
 */
#ifndef LC_GROUP_H
#define LC_GROUP_H

#include <linux/types.h>

struct lc_cache;
struct lc_group;
struct lc_groups;

#define LC_GROUP_BLOCKS	64u

/**
 * lc_groups_create() - without memory for blocks yet
 * @c: the cache; sets env.fill
 *
 * May sleep.  Return: the groups or NULL.
 */
struct lc_groups *lc_groups_create(struct lc_cache *c);

/**
 * lc_groups_enable() - allocate memory for blocks, for good
 * @groups: the groups
 *
 * A second call has no effect.  May sleep, and reclaim memory through this volume: not while it
 * is suspended.  Concurrent calls are allowed.  Return: 0 or -ENOMEM.
 */
int lc_groups_enable(struct lc_groups *groups);

/* Groups may be opened.  Process context. */
void lc_groups_resume(struct lc_groups *groups);

/*
 * Open none, wait until all have ended, and give the region back.  No bio of a user is left.  May
 * sleep, for as long as the SSD needs for what is on its way.
 */
void lc_groups_quiesce(struct lc_groups *groups);

/* After lc_groups_quiesce(), and nothing kicks env.fill any more.  @groups or NULL.  May sleep. */
void lc_groups_destroy(struct lc_groups *groups);

/**
 * lc_groups_take() - get slots of the open group
 * @groups: the groups
 * @nr: slots, 1..LC_GROUP_BLOCKS
 * @first: gets the number of the first one in the group
 *
 * Process context, does not sleep.  lc_group_put() must follow.  Return: the group, or NULL: none
 * has so many, and a worker was told to open the next one.
 */
struct lc_group *lc_groups_take(struct lc_groups *groups, u32 nr, u32 *first);

/**
 * lc_group_register() - a block is about to be read from the HDD
 * @group: from lc_groups_take()
 * @i: slot of the group
 * @block: block number, all of whose sectors are in the volume
 * @use: LC_ADMIT_*
 *
 * Process context; takes the bucket lock.  Does nothing if a copy of the block is cached (GR1).
 */
void lc_group_register(struct lc_group *group, u32 i, u64 block, u8 use);

/**
 * lc_group_replace() - a clean copy of a block is about to be read from its slot
 * @group: from lc_groups_take()
 * @i: slot of the group
 * @block: block number
 * @slot: of the copy, numbered over the whole SSD
 * @use: LC_ADMIT_*
 *
 * As lc_group_register(), in place of the copy.  Return: false if that is not the block's whole and
 * clean copy any more: nothing was done.  Else there is a reference on the segment of @slot, to be
 * dropped by lc_slot_put() when it was read.
 */
bool lc_group_replace(struct lc_group *group, u32 i, u64 block, u32 slot, u8 use);

/**
 * lc_group_renew() - a block is about to be written to the HDD from its slot's page
 * @group: from lc_groups_take()
 * @i: slot of the group
 * @block: block number
 * @use: LC_ADMIT_*
 *
 * As lc_group_register(), in place of any clean copy.  Does nothing if there is a dirty one.
 */
void lc_group_renew(struct lc_group *group, u32 i, u64 block, u8 use);

/*
 * The block is written: a clean copy of it that is not the one in slot @i leaves the index.  It may
 * have been read from the HDD meanwhile, if the slot was not registered.  Process context.
 */
void lc_group_renewed(struct lc_group *group, u32 i, u64 block);

/* Forget the blocks of some slots again, if they were registered.  Process context. */
void lc_group_forget(struct lc_group *group, u32 first, u32 nr);

/* A page for slot @i.  Of the caller until lc_group_put(). */
void *lc_group_page(const struct lc_group *group, u32 i);

/* The pages of the slots hold what the HDD holds, or the slots were forgotten.  Process context. */
void lc_group_put(struct lc_group *group);

#endif /* LC_GROUP_H */
