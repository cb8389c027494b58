/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The inside of writeback, for its own files only.  writeback.c has the thread.  finish.c follows
 * copying: it marks blocks clean, logs again what the HDD did not take, and moves the tail.
 * leave.c closes the log for the cache modes that do without.
 *
 * All functions are called by the thread.  It holds batch_lock, except for lc_wb_move_tail(), which
 * calls lc_wb_first_seq() without the lock, too.
 *
 * The steps of a batch are listed in writeback.c: 1 collect, 2 sort, 3 copy, 4 FLUSH the HDD,
 * 5 mark clean or log again, 6 make the log durable, 7 move the tail.
 */
#ifndef LC_WB_INTERNAL_H
#define LC_WB_INTERNAL_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "log/cache.h"
#include "writeback/collect.h"
#include "writeback/copy.h"
#include "writeback/pace.h"
#include "writeback/patience.h"

#define LC_WB_SWEEP		64u	/* batches, and then as many without */
#define LC_WB_RETRY_REFUSED	(30 * HZ)	/* then twice that, and so on */
#define LC_WB_RETRY_REFUSED_MAX	(3600 * HZ)

/*
 * A sweep: the blocks of more segments than a batch has memory for, batch by batch in the order of
 * the HDD.
 *
 * Invariant
 *  SW1 While blocks of a sweep are left to later batches, the tail stays.  After the last batch it
 *      moves up to the first segment with a dirty slot, whatever became of the batches before.
 */
struct lc_wb_sweep {
	u64 first;		/* segment number: the tail */
	u64 end;		/* segment number; 0: no sweep */
	u64 at;			/* blocks from here on are left to later batches */
};

struct lc_writeback {
	struct lc_cache *c;
	struct task_struct *task;
	wait_queue_head_t wait;
	struct mutex batch_lock;	/* held for steps 1 to 5 of a batch */
	atomic_t wanted;		/* tasks that wait for it: the batch does not back off */

	/*
	 * Owned by the thread, and by the rescue once the mode is not rw any more; replaced under
	 * batch_lock, with the salvage paused.
	 */
	struct lc_wb_list list;
	struct lc_wbcopy *copy;
	struct workqueue_struct *wq;	/* of each copier: kept when that is replaced */

	u32 hdd_failures;	/* before the batch was copied (DB3); owned as above */
	bool paused;		/* the thread must do no I/O; READ_ONCE() */
	bool quiesced;		/* it has seen that, and does none; READ_ONCE() */
	struct lc_wb_sweep sweep;	/* that goes on with the next batch; batch_lock */
	u32 sweep_pause;	/* batches without a sweep; batch_lock */
	bool filling;		/* between the watermarks: drain on; thread only */
	bool working;		/* a batch is under way, or due; READ_ONCE() */
	struct lc_pace pace;
	u32 frees;		/* segments of the batch; READ_ONCE() */
	u64 drain_to;		/* segment number the tail must reach; READ_ONCE() */
	struct lc_patience patience;	/* thread only */
	unsigned long retry_at;		/* jiffies: what the HDD refused is tried again */
	unsigned long retry_pause;	/* 0: nothing is refused; thread only */
	atomic64_t relogged;	/* blocks logged again */
	u32 laps;		/* see leave.c; thread only */
	unsigned long believe_at;	/* jiffies: not before, see leave.c; thread only */
	u64 left_at;		/* end of the log when it was closed; READ_ONCE() */
	u64 relog_rounds;	/* batches while writes are held off; thread only */
	const char *state;	/* for status; READ_ONCE() */
	void *header;		/* memory for two slots; owned as the list is */
};

/*
 * With a cache mode that is not writeback, see to it that the log is closed and drained; else, that
 * it is open.  Whenever the thread looks for work; may sleep.  Return: 0, or an error of the
 * superblock.
 */
int lc_wb_leave(struct lc_writeback *wb);

/* Have all drained that is in the log now.  May sleep. */
void lc_wb_drain(struct lc_writeback *wb);

/* The log takes writes, from now on.  Any context. */
void lc_wb_open(struct lc_cache *c);

/* Before a pause: have the log opened if nothing is going to be drained soon. */
void lc_wb_reopen(struct lc_writeback *wb);

/* Has lc_wb_leave() something to do?  If so, it changes that, or returns an error. */
bool lc_wb_leaves(struct lc_writeback *wb);

/*
 * Have the superblock say what a scan after a crash may believe, if that is to change (WS3).  As
 * lc_wb_leave().
 */
int lc_wb_believe(struct lc_writeback *wb);

/* Has lc_wb_believe() something to do? */
bool lc_wb_believes(struct lc_writeback *wb);

/* What a batch covers. */
struct lc_wb_batch {
	u64 first;		/* segment number */
	u64 end;
	bool partial;		/* blocks are left to the next batch of the sweep: the tail stays */
	bool shortened;		/* end is lower than it was collected */
};

/* A slot is lost only after the SSD has failed for as long as it may (L18). */
static inline enum lc_wb_on_error lc_wb_on_error(const struct lc_writeback *wb)
{
	if (lc_patience_reads_over(&wb->patience, READ_ONCE(wb->c->env.params.ssd_patience_ms)))
		return LC_WB_ISOLATE_BOTH;
	return wb->patience.hdd || wb->patience.reads ? LC_WB_ISOLATE_HDD : LC_WB_FAIL_BATCH;
}

/*
 * The seq replay must start with if the tail moves to segment @number.  Not the
 * last seq before it plus one: the chain there may end in dead records.  Return: 0,
 * -ENOENT: the tail must not move there, or an error.
 */
int lc_wb_first_seq(struct lc_writeback *wb, u64 number, u64 *seq);

/* Step 4, for what is done.  Return: 0 or -EIO: nothing of it is believed (W3). */
int lc_wb_flush(struct lc_writeback *wb);

/*
 * Step 5.  Return: 0, -EAGAIN: no slot to log a block again in, or -EREMOTEIO: the SSD does not
 * give one back.  After an error the next batch does the rest.
 */
int lc_wb_mark_clean(struct lc_writeback *wb, struct lc_wb_batch *b);

/*
 * A batch ends early, but not because of the HDD: flush what it has copied and mark that clean.  So
 * the log is drained in the end, even if each batch is interrupted, or the SSD does not give one
 * slot back.  The tail stays.
 */
void lc_wb_keep_done(struct lc_writeback *wb);

/* Steps 6 and 7.  Return: 0, -ENOENT: no boundary is reached yet, or an error. */
int lc_wb_move_tail(struct lc_writeback *wb, struct lc_wb_batch *b);

#endif /* LC_WB_INTERNAL_H */
