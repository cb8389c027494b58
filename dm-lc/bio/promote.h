/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Promotion: blocks that a read has to get from the HDD are kept on the SSD, too.
 *
 * The policy (admit.h) says which.  Such a read does not go to the HDD itself, because the pages of
 * its bio belong to a user, who may change them at any time.  A bio of our own reads whole blocks
 * into pages of a group (group.h).  From there the user's bio gets its data and ends, and the group
 * is written to the SSD later.  If our bio fails, the user's bio is sent to the HDD as it is.
 *
 * With option cache_mode writethrough, blocks that are written are kept, too.  They are copied to
 * pages of a group first, and a bio of our own writes them to the HDD from there.  So HDD and SSD
 * get the same, whatever the user does to the pages of the bio.
 *
 * Promotion is a hint.  If no group has space, or no read is unused, nothing is promoted.
 */
#ifndef LC_PROMOTE_H
#define LC_PROMOTE_H

#include <linux/types.h>

struct bio;
struct lc_cache;
struct lc_groups;
struct lc_promote;
struct workqueue_struct;

/**
 * lc_promote_create() - without memory for reads yet
 * @c: the cache
 * @groups: where blocks are put
 *
 * May sleep.  Return: the room or NULL.
 */
struct lc_promote *lc_promote_create(struct lc_cache *c, struct lc_groups *groups);

/* No bio is left.  @promote or NULL.  May sleep. */
void lc_promote_destroy(struct lc_promote *promote);

/**
 * lc_promote_enable() - allocate what option read_cache needs, for good
 * @promote: the room
 *
 * A second call has no effect.  Context as lc_groups_enable().  Return: 0 or -ENOMEM.
 */
int lc_promote_enable(struct lc_promote *promote);

/**
 * lc_promote_map() - read blocks and promote them, if that is to be done
 * @promote: the room
 * @bio: a read of the HDD, of the volume's sectors, cut to what is to be read there
 *
 * From map(), with option read_cache: does not sleep.  Return: whether it takes care of the bio.
 */
bool lc_promote_map(struct lc_promote *promote, struct bio *bio);

/**
 * lc_promote_write() - write blocks to the HDD and keep them on the SSD, too, if that is to be done
 * @promote: the room
 * @bio: a write of the volume's sectors, of whole blocks or not, which are claimed
 * @wq: sends it; NULL: the caller does, which may sleep as submit_bio() does
 *
 * Process context, option cache_mode writethrough.  A copy of the blocks is dirty, or clean and not
 * to be found by replay (AR1).  The bio ends when the HDD has ended the write; clean copies of the
 * blocks are those that were written then, or none.  Return: whether it takes care of the bio.
 */
bool lc_promote_write(struct lc_promote *promote, struct bio *bio, struct workqueue_struct *wq);

#endif /* LC_PROMOTE_H */
