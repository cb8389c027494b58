/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Small helpers around bios.  Addresses and lengths in bytes.
 *
 * Invariant
 *  IO1 The memory of a bio is in pieces of any length, which need not be whole sectors.
 *      bi_sector of an iterator is valid before and after lc_io_copy_from_bio() and
 *      lc_io_copy_to_bio(), which set it from the number of bytes copied, and never in
 *      between.  Nothing else moves an iterator over a part of a bio (C10).
 */
#ifndef LC_IO_H
#define LC_IO_H

#include <linux/blk_types.h>
#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/types.h>

/*
 * Flags of writes that tasks wait for: of the log, of the superblock, a FLUSH.  Writeback
 * throttling (blk-wbt) does not delay a write that has both.
 */
#define LC_IO_COMMIT	(REQ_SYNC | REQ_IDLE)

struct lc_env;

/* Several reads in flight, waited for together. */
struct lc_io_batch {
	atomic_t pending;
	struct completion done;
};

/* One of them; reusable after the wait. */
struct lc_io_read {
	struct bio bio;
	struct bio_vec bvec;
	struct lc_io_batch *batch;
	void *data;		/* physically contiguous, set by the owner */
	int status;		/* 0 or a negative errno, after the wait */
};

/**
 * lc_io_sync() - one read or write, waited for
 * @bdev: the device
 * @opf: operation and flags
 * @address: bytes
 * @data: physically contiguous
 * @len: bytes
 *
 * May sleep; never from map(), where a bio submitted waits for map() to return.
 * Return: 0 or a negative errno.
 */
int lc_io_sync(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len);

/**
 * lc_io_sync_told() - lc_io_sync() that reports a failure in completion context
 * @bdev: the device
 * @opf: operation and flags
 * @address: bytes
 * @data: physically contiguous
 * @len: bytes
 * @failed: called if it fails, in completion context: before a FLUSH that is submitted or
 *	ends later can be believed (F2)
 * @arg: for @failed
 *
 * May sleep.  Return: 0 or a negative errno.
 */
int lc_io_sync_told(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len,
		    void (*failed)(void *arg), void *arg);

/**
 * lc_io_flush() - make the device's volatile cache durable
 * @env: of the volume, where the FLUSH is counted
 * @bdev: its SSD or hard disk
 *
 * May sleep.  Return: 0 or a negative errno.
 */
int lc_io_flush(const struct lc_env *env, struct block_device *bdev);

/*
 * lc_io_flush() that reports a failure as lc_io_sync_told() does: before a FLUSH of another sender
 * that is submitted or ends later can be believed.
 */
int lc_io_flush_told(const struct lc_env *env, struct block_device *bdev,
		     void (*failed)(void *arg), void *arg);

/* Before the first read of a batch, and again after each wait. */
void lc_io_batch_init(struct lc_io_batch *batch);

/**
 * lc_io_batch_read() - start one read
 * @batch: the batch
 * @read: with read->data set; busy until the wait
 * @bdev: the device
 * @address: bytes
 * @len: bytes
 *
 * May sleep as submit_bio() does.  One task starts the reads of a batch and waits for them.
 */
void lc_io_batch_read(struct lc_io_batch *batch, struct lc_io_read *read,
		      struct block_device *bdev, u64 address, u32 len);

/**
 * lc_io_batch_wait() - wait for all reads started
 * @batch: the batch
 *
 * May sleep.  The batch must be initialised again before its next use.
 */
void lc_io_batch_wait(struct lc_io_batch *batch);

/**
 * lc_io_renew() - prepare a bio that has ended for ending again
 * @bio: an end_io function returned DM_ENDIO_INCOMPLETE for it
 *
 * Any context.  What the block layer counted at the first end must not be counted again.
 */
void lc_io_renew(struct bio *bio);

/**
 * lc_io_end_again() - end a bio whose completion was interrupted
 * @bio: an end_io function returned DM_ENDIO_INCOMPLETE for it, or it never started
 *
 * Process context.  It goes through bio_endio() a second time, as lc_io_renew() allows.
 */
void lc_io_end_again(struct bio *bio);

/**
 * lc_io_disown() - no limit of its sender holds a bio back
 * @bio: with its device, not submitted yet
 *
 * For what others wait for: it goes to the root cgroup, in the class that a worker has.
 * Any context.
 */
void lc_io_disown(struct bio *bio);

/**
 * lc_io_may_send() - may this task send what others wait for?
 * @bio: that the task sends, from map()
 *
 * Return: false for a task that may be kept from the CPU, or from the disk, for as long as others
 * want it, and for one that must not sleep: a worker sends the bio instead.
 */
bool lc_io_may_send(const struct bio *bio);

/**
 * lc_io_leave_plug() - end the plug of the task
 *
 * What a task submits waits in its plug until the task ends the plug or sleeps, also while it is
 * preempted.  A bio submitted within map() gets to the queue when map() has returned, so clearing
 * current->plug around submit_bio() would not help.  So the plug ends here, and its requests are
 * sent, as if the task slept.  When the owner of the plug ends it later, nothing is left in it.
 *
 * May sleep: for tasks of which lc_io_may_send() is true.
 */
void lc_io_leave_plug(void);

/**
 * lc_io_copy_from_bio() - copy the next sectors of a bio
 * @bio: device mapper's clone
 * @iter: advanced by @len
 * @to: where to
 * @len: bytes, whole sectors
 */
void lc_io_copy_from_bio(struct bio *bio, struct bvec_iter *iter, void *to, u32 len);

/**
 * lc_io_copy_to_bio() - fill the next sectors of a bio
 * @bio: device mapper's clone
 * @iter: advanced by @len
 * @from: where from
 * @len: bytes, whole sectors
 */
void lc_io_copy_to_bio(struct bio *bio, struct bvec_iter *iter, const void *from, u32 len);

#endif /* LC_IO_H */
