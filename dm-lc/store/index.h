/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The index: which slot holds the newest copy of a block?
 *
 * One 12-byte node per slot of the SSD, indexed by slot number, so that where a
 * copy lies need not be stored; nodes are chained into hash buckets.  A block has
 * one node at most.  Memory, segments and locks included: at most LC_INDEX_BUDGET
 * bytes for each block that can be cached; 12 of them are the node, and what is
 * left goes to bucket heads of 4 bytes, up to 5/8 of a head a slot.
 *
 * All that happens to a block happens under the lock of its bucket; functions
 * marked [locked] need it.  None of them sleeps or allocates.
 *
 * Invariants
 *  I1 A node is linked in exactly one chain, that of its block, or in none.
 *  I2 No two linked nodes have the same block, except for a moment within lc_index_set().
 *  I3 Chain and node change only under the lock of the node's bucket.
 *  I4 A block that stays cached never leaves its bucket's head empty: a new node is
 *     linked before the old one goes.  lc_index_absent() looks without the lock.
 *  I5 lost counts the linked nodes whose field lost is not 0.  No other room counts them.
 *  I6 A linked node that is clean, with no sector valid and none lost, is pending: its slot is
 *     about to be filled with what the HDD holds (promote.h).  All of the block is on the HDD.  A
 *     write or a discard replaces or removes the node as it does any older copy.  So the task that
 *     fills the slot finds it linked only if the block has not been touched since.
 */
#ifndef LC_INDEX_H
#define LC_INDEX_H

#include <linux/cache.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/percpu_counter.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct lc_node;

#define LC_NO_SLOT	0xffffffffu
#define LC_INDEX_BUDGET	16	/* bytes of RAM for each data slot */

struct lc_mapping {
	u32 slot;
	u8 mask;	/* sectors valid in the slot */
	u8 lost;	/* sectors lost for good */
	bool dirty;	/* the HDD does not hold it, or not durably */
	bool refused;	/* dirty, and the HDD did not take it: tried again later */
	u8 use;		/* LC_ADMIT_*: how it came here, and whether it was read since */
};

struct lc_bucket_lock {
	spinlock_t lock;	/* chains and nodes of its buckets */
} ____cacheline_aligned_in_smp;

/* Known to others only for the inline functions below, which each read and write needs. */
struct lc_index {
	struct lc_node *nodes;
	u32 *heads;
	struct lc_bucket_lock *locks;
	u32 nr_buckets;
	u32 lock_mask;
	u64 nr_slots;
	struct percpu_counter cached;
	struct percpu_counter dirty;
	atomic64_t refused;		/* few ever, so one for all; as lost */
	atomic64_t lost;		/* linked nodes with lost sectors */
};

/**
 * lc_index_create() - allocate an empty index
 * @nr_slots: slots of the SSD, below LC_NO_SLOT
 * @seg_slots: slots of a segment, which divides @nr_slots
 *
 * May sleep, and reclaim memory, but no process is killed for it.  Return: the index or NULL.
 */
struct lc_index *lc_index_create(u64 nr_slots, u32 seg_slots);

/**
 * lc_index_destroy() - free an index that no room uses any more
 * @index: the index, or NULL
 *
 * May sleep.
 */
void lc_index_destroy(struct lc_index *index);

/**
 * lc_index_clear() - empty an index that no other task uses
 * @index: the index
 *
 * May sleep.
 */
void lc_index_clear(struct lc_index *index);

/* Of a block; any context.  Its lock is one of many buckets. */
static inline u32 lc_index_bucket(const struct lc_index *index, u64 block)
{
	return reciprocal_scale(hash_64(block, 32), index->nr_buckets);
}

/**
 * lc_index_absent() - is a block certainly not cached?
 * @index: the index
 * @block: block number
 *
 * Any context, takes no lock.  A block that was set before the call, as seen by the caller, and
 * not removed since, is never called absent (I4).  Return: false also if it is not known,
 * because another block has the same bucket.
 */
static inline bool lc_index_absent(const struct lc_index *index, u64 block)
{
	/* Pairs with unlink_node(): a task that sees the block gone sees that the HDD holds it. */
	return smp_load_acquire(&index->heads[lc_index_bucket(index, block)]) == LC_NO_SLOT;
}

/**
 * lc_index_lock() - lock the bucket of a block
 * @index: the index
 * @block: block number
 *
 * Process context.  Return: the bucket, to be handed to the [locked] functions
 * and to lc_index_unlock().
 */
static inline u32 lc_index_lock(struct lc_index *index, u64 block)
	__acquires(bucket)
{
	u32 bucket = lc_index_bucket(index, block);

	spin_lock(&index->locks[bucket & index->lock_mask].lock);
	return bucket;
}

/* Assert that a bucket is locked.  Nothing without lockdep. */
#ifdef CONFIG_LOCKDEP
void lc_index_assert_locked(const struct lc_index *index, u32 bucket);
#else
#define lc_index_assert_locked(index, bucket)	((void)(index), (void)(bucket))
#endif

/* Unlock what lc_index_lock() or lc_index_lock_slot() has locked. */
static inline void lc_index_unlock(struct lc_index *index, u32 bucket)
	__releases(bucket)
{
	spin_unlock(&index->locks[bucket & index->lock_mask].lock);
}

/*
 * Lock the bucket of a block, and look whether a slot is the block's newest copy.  Process
 * context.  *bucket is for lc_index_unlock(), which must follow in either case.  Return: whether
 * it is; *map is set then.
 */
bool lc_index_lock_slot(struct lc_index *index, u64 block, u32 slot, u32 *bucket,
			struct lc_mapping *map) __acquires(bucket);

/*
 * Mark the dirty sectors of a block as lost, because its slot cannot be read back.  Takes the lock;
 * process context.  Return: false if nothing is lost by that: the slot is not the block's newest
 * copy, or clean, or lost already.
 */
bool lc_index_mark_slot_lost(struct lc_index *index, u64 block, u32 slot);

/**
 * lc_index_lookup() - find the newest copy of a block [locked]
 * @index: the index
 * @bucket: from lc_index_lock() of the block
 * @block: block number
 * @map: what is found or set
 *
 * Return: whether there is one; @map is set then.
 */
bool lc_index_lookup(struct lc_index *index, u32 bucket, u64 block, struct lc_mapping *map);

/**
 * lc_index_set() - make @map the newest copy of a block [locked]
 * @index: the index
 * @bucket: from lc_index_lock() of the block
 * @block: block number
 * @map: its slot's node must not be linked
 * @old: what it replaced, if anything
 *
 * Return: whether something was replaced.
 */
bool lc_index_set(struct lc_index *index, u32 bucket, u64 block, const struct lc_mapping *map,
		  struct lc_mapping *old);

/**
 * lc_index_add_sectors() - more sectors of a slot became valid [locked]
 * @index: the index
 * @bucket: from lc_index_lock() of the block
 * @slot: linked in @bucket
 * @mask: sectors just written; they are no longer lost
 */
void lc_index_add_sectors(struct lc_index *index, u32 bucket, u32 slot, u8 mask);

/**
 * lc_index_hit() - a copy was read [locked]
 * @index: the index
 * @bucket: from lc_index_lock() of the block
 * @slot: linked in @bucket
 * @use: its use from now on, other than it was
 */
void lc_index_hit(struct lc_index *index, u32 bucket, u32 slot, u8 use);

/**
 * lc_index_remove() - forget a block [locked]
 * @index: the index
 * @bucket: from lc_index_lock() of the block
 * @block: block number
 * @old: what was there
 *
 * Return: whether there was one; @old is set then.
 */
bool lc_index_remove(struct lc_index *index, u32 bucket, u64 block, struct lc_mapping *old);

/**
 * lc_index_clean() - the HDD durably holds this copy [locked]
 * @index: the index
 * @bucket: from lc_index_lock() of the block
 * @slot: linked in @bucket
 */
void lc_index_clean(struct lc_index *index, u32 bucket, u32 slot);

/**
 * lc_index_mark_lost() - a slot holds nothing any more [locked]
 * @index: the index
 * @bucket: from lc_index_lock() of the block
 * @slot: linked in @bucket
 * @mask: sectors that are lost with it; the HDD holds the others
 */
void lc_index_mark_lost(struct lc_index *index, u32 bucket, u32 slot, u8 mask);

/**
 * lc_index_hdd_has() - the HDD holds some sectors of a block now [locked]
 * @index: the index
 * @bucket: from lc_index_lock() of the block
 * @block: block number
 * @mask: these sectors; the slot is not needed for them any more
 *
 * A block of which nothing is missing on the HDD is forgotten.
 */
void lc_index_hdd_has(struct lc_index *index, u32 bucket, u64 block, u8 mask);

/**
 * lc_index_peek() - which block does a slot hold, probably?
 * @index: the index
 * @slot: slot number, over the whole SSD
 * @block: block number
 * @map: what is found or set
 *
 * Any context, takes no lock.  What it sets may be outdated, or a mixture of two states.
 * Return: false if the slot holds no newest copy.
 */
bool lc_index_peek(struct lc_index *index, u32 slot, u64 *block, struct lc_mapping *map);

/*
 * The same for the first slot from *slot on, below @end, that probably holds a newest copy.  Lets
 * others run, so process context.  Return: false if there is none.
 */
bool lc_index_next(struct lc_index *index, u64 *slot, u64 end, u64 *block,
		   struct lc_mapping *map);

/* Any context.  Exact while nothing changes, otherwise a moment's sum. */
u64 lc_index_cached(struct lc_index *index);
u64 lc_index_dirty(struct lc_index *index);
u64 lc_index_refused(struct lc_index *index);
u64 lc_index_lost(struct lc_index *index);	/* blocks with lost sectors */

/* The RAM that the index takes, in bytes.  Any context. */
u64 lc_index_bytes(struct lc_index *index);

/**
 * lc_index_need() - RAM that an index will take
 * @nr_slots: slots of the SSD, below LC_NO_SLOT
 * @seg_slots: slots of a segment, which divides @nr_slots
 *
 * Any context.  Return: bytes.
 */
u64 lc_index_need(u64 nr_slots, u32 seg_slots);

#endif /* LC_INDEX_H */
