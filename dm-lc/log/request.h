/* SPDX-License-Identifier: GPL-2.0-only */
/* What the volume keeps of each bio that device mapper hands to it. */
#ifndef LC_REQUEST_H
#define LC_REQUEST_H

#include <linux/bio.h>
#include <linux/device-mapper.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "store/claims.h"
#include "store/env.h"

enum lc_class {
	LC_CLASS_COMMIT,	/* journals, metadata, and all that is to be durable at once */
	LC_CLASS_SYNC,		/* others that a task waits for, and swap */
	LC_CLASS_BACKGROUND,
	LC_NR_CLASSES,
};

/*
 * A write that is parked (queue.h).  The queue owns list, node and subtree_last.  The other fields
 * are constant while the write waits.
 */
struct lc_waiting {
	struct list_head list;		/* queue->waiting[class] */
	struct rb_node node;		/* queue->blocks */
	u64 first, last;		/* its blocks */
	u64 subtree_last;		/* the highest `last` in the subtree of node */
	u64 number;			/* in the order in which they came */
	enum lc_class class;
};

/* What around.c has sent to the HDD.  The block layer may take the flags of a FLUSH away. */
enum lc_around_kind {
	LC_AROUND_NOTHING,
	LC_AROUND_WRITE,
	LC_AROUND_THROUGH,	/* the same, by promote.c, which has seen to the copies */
	LC_AROUND_REST,		/* FUA write, whose other part is in the log */
	LC_AROUND_FLUSH,
};

/* Of a FLUSH that goes to the HDD before it goes to the log; see around.c. */
struct lc_hdd_flush {
	s64 ended;			/* writes around the log, when it came */
	u32 known, seen;		/* failures then: that users know of, and all */
};

/* Per-bio state; bio is the clone device mapper gave to map(). */
struct lc_request {
	union {
		struct list_head list;
		struct llist_node commit;	/* flush->commits */
	};
	void *owner;			/* of queued work: the worker finds its state there */
	struct bvec_iter iter;		/* write: what is left; read of the SSD: as submitted */
	union {
		struct work_struct work;
		struct lc_waiting waiting;	/* while parked; owned by the intake */
	};
	union {
		struct lc_claim claim;	/* of a write around the log; it may be parked, too */
		struct lc_hdd_flush hdd;
	};
	union {
		u64 target;		/* flush: seq that must be durable */
		u64 segment;		/* read of the SSD: number of the segment */
		u32 failures;		/* write around the log: lc_doubt_failures() before */
	};
	u32 position;			/* read of the SSD: a slot of it */
	bool on_ssd;			/* read: mapped there */
	bool verify;			/* read: to be checked if it was on the SSD */
	bool on_hdd;			/* read: mapped there */
	bool hdd_becomes_valid;		/* bypassed write: covers what the HDD does not hold */
	bool logged;			/* write around the log: a part of it is in there */
	u8 around;			/* enum lc_around_kind: what its end is of */
	u8 in_flight;			/* bypassed write: 1 + generation, or 0: not counted */
};

static inline struct bio *lc_request_bio(struct lc_request *io)
{
	return dm_bio_from_per_bio_data(io, sizeof(struct lc_request));
}

static inline struct lc_request *lc_bio_request(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct lc_request));
}

/* The bio has ended.  Any context; @io may be gone afterwards. */
static inline void lc_request_end(struct lc_request *io, blk_status_t status)
{
	struct bio *bio = lc_request_bio(io);

	bio->bi_status = status;
	bio_endio(bio);
}

/* A read goes to the hard disk as it is.  @io is of @bio.  Any context; the caller submits it. */
static inline void lc_request_aim_at_hdd(struct lc_env *env, struct bio *bio,
					 struct lc_request *io)
{
	io->on_hdd = true;
	lc_stamp(&env->last_hdd_read);
	bio->bi_iter.bi_sector = lc_place_sector(&env->place, bio->bi_iter.bi_sector);
	bio_set_dev(bio, env->backing);
}

#endif /* LC_REQUEST_H */
