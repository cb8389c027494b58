// SPDX-License-Identifier: GPL-2.0-only
/*
 * Superblock and mark.  See superblock.h.
 *
 * The two front copies are written one after the other, each with PREFLUSH and FUA:
 * whatever was written before is durable before the superblock says so.  A write may be
 * torn, so the copy that is known to be whole is written last (lc_meta->whole_sb): one is
 * whole at any moment, also if the crash before left only one.  The copy with the higher
 * sb_seq wins; a newer one whose twin was not written yet is believed harmlessly, because
 * nothing that depends on it happens before both are durable.  All that holds for the two
 * copies of the mark, too.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>

#include "cache.h"
#include "fingerprint.h"
#include "io.h"
#include "log.h"
#include "pairing.h"
#include "replay.h"
#include "superblock.h"

struct lc_meta {
	struct mutex lock;		/* superblock, mark and block */
	void *block;			/* 4 KiB for I/O; lock */
	struct lc_mark_info mark;	/* lock */
	/* Front copies known to be whole: read at the start, or written last; lock. */
	u8 whole_sb, whole_mark;
};

/**
 * lc_meta_read_sb() - read the superblock of an SSD
 * @bdev: the device
 * @sb: the copy to believe
 * @which: its number, 0 or 1
 * @why: reason, on error
 *
 * Only reads.  Return: 0, or what the better copy failed with.
 */
int lc_meta_read_sb(struct block_device *bdev, struct lc_sb *sb, u8 *which, const char **why)
{
	struct lc_superblock *raw = kmalloc(LC_SLOT_BYTES, GFP_KERNEL);
	struct lc_sb *other = kmalloc(sizeof(*other), GFP_KERNEL);
	unsigned int copy;
	int ret = -ENODATA, err;

	if (!raw || !other) {
		ret = -ENOMEM;
		*why = "no memory";
		goto free;
	}
	for (copy = 0; copy < 2; copy++) {
		const char *text = "cannot be read";

		err = lc_io_sync(bdev, REQ_OP_READ | REQ_META, copy * LC_SB_COPY_STRIDE, raw,
				 LC_SLOT_BYTES);
		if (!err)
			err = lc_sb_decode(raw, copy, copy && !ret ? other : sb, &text);
		if (copy && !ret) {
			if (!err && other->sb_seq > sb->sb_seq) {
				*sb = *other;
				*which = copy;
			}
			continue;
		}
		/* Of two failures the one that says more: damage rather than absence. */
		if (!err || !copy || ret == -ENODATA) {
			ret = err;
			*which = copy;
			*why = text;
		}
	}
free:
	kfree(other);
	kfree(raw);
	return ret;
}

/**
 * lc_meta_create() - the room of a core's superblock and mark
 * @c: the volume
 */
struct lc_meta *lc_meta_create(struct lc_cache *c)
{
	struct lc_meta *meta = kzalloc(sizeof(*meta), GFP_KERNEL);

	if (!meta)
		return NULL;
	mutex_init(&meta->lock);
	meta->whole_sb = c->sb_copy;
	meta->block = kmalloc(LC_SLOT_BYTES, GFP_KERNEL);
	if (!meta->block) {
		kfree(meta);
		return NULL;
	}
	return meta;
}

void lc_meta_destroy(struct lc_meta *meta)
{
	if (!meta)
		return;
	kfree(meta->block);
	kfree(meta);
}

/*
 * The PREFLUSH in it may be what failed: records are void (F2).  In completion context: were it
 * told by the task that waits, a FLUSH of the log could end in between and be believed (F2).
 */
static void sb_failed(void *arg)
{
	struct lc_cache *c = arg;

	lc_log_void(c->log);
}

/* [meta->lock] Both front copies, and the third if asked. */
static int write_sb(struct lc_cache *c, bool third)
{
	struct lc_meta *meta = c->meta;
	const u8 order[LC_SB_COPIES] = { !meta->whole_sb, meta->whole_sb, 2 };
	unsigned int i, copy;
	int ret;

	lockdep_assert_held(&meta->lock);
	c->sb.sb_seq++;
	for (i = 0; i < (third ? LC_SB_COPIES : 2); i++) {
		copy = order[i];
		lc_sb_encode(&c->sb, copy, meta->block);
		ret = lc_io_sync_told(c->env.cache, REQ_OP_WRITE | REQ_META | LC_IO_COMMIT |
				      REQ_PREFLUSH | REQ_FUA,
				      lc_format_sb_address(&c->sb.geo, copy), meta->block,
				      LC_SLOT_BYTES, sb_failed, c);
		/* The third copy is for people who search, not for recovery. */
		if (ret && copy < 2)
			return ret;
		if (copy < 2)
			meta->whole_sb = copy;
	}
	return 0;
}

/* [meta->lock] */
static int write_mark(struct lc_cache *c)
{
	struct lc_meta *meta = c->meta;
	const u8 order[] = { !meta->whole_mark, meta->whole_mark };
	unsigned int i, copy;
	int ret;

	if (c->sb.mark_offset == LC_NO_MARK)
		return 0;
	meta->mark.mark_seq++;
	for (i = 0; i < 2; i++) {
		copy = order[i];
		lc_mark_encode(&meta->mark, c->sb.csum_type, c->sb.mark_offset, copy,
			       meta->block);
		ret = lc_io_sync(c->env.backing,
				 REQ_OP_WRITE | REQ_META | LC_IO_COMMIT | REQ_PREFLUSH | REQ_FUA,
				 lc_format_mark_address(c->sb.mark_offset, copy), meta->block,
				 LC_SLOT_BYTES);
		if (ret)
			return ret;
		meta->whole_mark = copy;
	}
	return 0;
}

/**
 * lc_meta_mark_epoch() - the life that the mark is of
 * @c: the volume; lc_meta_check_pair() has read the mark
 *
 * Return: the epoch, or all ones without a mark.
 */
u64 lc_meta_mark_epoch(struct lc_cache *c)
{
	u64 epoch = ~0ULL;

	mutex_lock(&c->meta->lock);
	if (c->sb.mark_offset != LC_NO_MARK)
		epoch = c->meta->mark.epoch;
	mutex_unlock(&c->meta->lock);
	return epoch;
}

/**
 * lc_meta_say_old_disk() - the backing device is a copy of before a life that it was used in (S7)
 * @c: the volume
 * @seen: the life
 */
void lc_meta_say_old_disk(struct lc_cache *c, u64 seen)
{
	lc_err(&c->env, "%pg is an old copy: its mark is of epoch %llu, and the disk of this cache was used in epoch %llu: attach that disk, or give up what the cache holds and format it anew",
	       c->env.backing, c->meta->mark.epoch, seen);
}

/* [meta->lock] "Abandoned" in either copy wins (S1), otherwise the higher mark_seq. */
static int read_mark(struct lc_cache *c, struct lc_mark_info *mark, u8 *which, const char **why)
{
	struct lc_mark_info *other = kmalloc(sizeof(*other), GFP_NOIO);
	unsigned int copy;
	int ret = -ENODATA, err;

	if (!other)
		return -ENOMEM;
	for (copy = 0; copy < 2; copy++) {
		const char *text = "mark cannot be read";

		err = lc_io_sync(c->env.backing, REQ_OP_READ | REQ_META,
				 lc_format_mark_address(c->sb.mark_offset, copy),
				 c->meta->block, LC_SLOT_BYTES);
		if (!err)
			err = lc_mark_decode(c->meta->block, c->sb.mark_offset, copy, other,
					     &text);
		if (err) {
			if (!copy || ret == -ENODATA) {
				ret = err;
				*why = text;
			}
			continue;
		}
		if (ret || lc_mark_counts(other, mark)) {
			*mark = *other;
			*which = copy;
		}
		ret = 0;
	}
	kfree(other);
	return ret;
}

static int check_mark(struct lc_cache *c, const struct lc_mark_info *mark)
{
	const struct lc_sb *sb = &c->sb;

	if (mark->state == LC_MARK_PAIRED && mark->head_offset != c->env.place.head << 9) {
		lc_err(&c->env, "superblock and mark on %pg disagree about where its first MiB is: see lc-check",
		       c->env.backing);
		return -EUCLEAN;
	}
	switch (lc_pairing_judge(sb, mark)) {
	case LC_PAIRING_FITS:
		return 0;
	case LC_PAIRING_FOREIGN:
		lc_err(&c->env, "%pg is paired with another cache: give the right devices",
		       c->env.backing);
		return -EINVAL;
	case LC_PAIRING_INTERRUPTED:
		lc_err(&c->env, "%s %pg was interrupted: see lc-check --repair",
		       mark->state == LC_MARK_ATTACHING ? "lc-format of" : "lc-detach of",
		       c->env.backing);
		return -EINPROGRESS;
	case LC_PAIRING_ABANDONED:
		lc_err(&c->env, "this cache was abandoned in epoch %llu and must not be replayed: format it anew",
		       mark->epoch);
		return -ESTALE;
	case LC_PAIRING_OLD_CACHE:
		lc_err(&c->env, "the superblock is of epoch %llu, the mark of %llu: an old or damaged superblock, see lc-check",
		       sb->epoch, mark->epoch);
		return -ESTALE;
	case LC_PAIRING_OLD_DISK:
		lc_meta_say_old_disk(c, lc_pairing_seen(sb));
		return -ESTALE;
	case LC_PAIRING_LOST:
		lc_err(&c->env, "%pg has blocks recorded as lost: accept them first",
		       c->env.backing);
		return -EUCLEAN;
	}
	return -EINVAL;
}

/**
 * lc_meta_check_pair() - do SSD and HDD belong together?
 * @c: the volume
 *
 * Only reads, and says why not.  Return: 0 or a negative errno.
 */
int lc_meta_check_pair(struct lc_cache *c)
{
	struct lc_meta *meta = c->meta;
	const char *why = "mark cannot be read";
	int ret;

	if (c->sb.mark_offset == LC_NO_MARK)
		return 0;
	mutex_lock(&meta->lock);
	ret = read_mark(c, &meta->mark, &meta->whole_mark, &why);
	if (ret == -ENOMEM)
		lc_err(&c->env, "no memory to read the mark on %pg: try again",
		       c->env.backing);
	else if (ret)
		lc_err(&c->env, "%pg: %s: is it the right backing device?",
		       c->env.backing, why);
	else
		ret = check_mark(c, &meta->mark);
	mutex_unlock(&meta->lock);
	return ret;
}

/* [meta->lock] Is the superblock on the SSD not a later one than ours, or another one? */
static int compare_sb(struct lc_cache *c, struct lc_sb *sb)
{
	const char *why = "cannot be read";
	u8 which;
	int ret;

	ret = lc_meta_read_sb(c->env.cache, sb, &which, &why);
	if (ret) {
		lc_err(&c->env, "%pg: %s", c->env.cache, why);
		return ret;
	}
	if (sb->epoch == c->sb.epoch && sb->sb_seq <= c->sb.sb_seq &&
	    sb->generation == c->sb.generation &&
	    !memcmp(sb->cache_uuid, c->sb.cache_uuid, 16))
		return 0;
	lc_err(&c->env, "%pg was used since the system was hibernated: its superblock is the %lluth, of epoch %llu; memory knows the %lluth, of epoch %llu",
	       c->env.cache, sb->sb_seq, sb->epoch, c->sb.sb_seq, c->sb.epoch);
	return -ESTALE;
}

/* [meta->lock] The same for the mark on the HDD. */
static int compare_mark(struct lc_cache *c, struct lc_mark_info *mark)
{
	const struct lc_mark_info *ours = &c->meta->mark;
	const char *why = "mark cannot be read";
	u8 which;
	int ret;

	if (c->sb.mark_offset == LC_NO_MARK)
		return 0;
	ret = read_mark(c, mark, &which, &why);
	if (ret) {
		lc_err(&c->env, "%pg: %s", c->env.backing, why);
		return ret;
	}
	if (mark->epoch == ours->epoch && mark->mark_seq <= ours->mark_seq &&
	    mark->state == ours->state && mark->generation == ours->generation &&
	    !memcmp(mark->cache_uuid, ours->cache_uuid, 16))
		return 0;
	lc_err(&c->env, "%pg was used since the system was hibernated: its mark is the %lluth, of epoch %llu; memory knows the %lluth, of epoch %llu",
	       c->env.backing, mark->mark_seq, mark->epoch, ours->mark_seq, ours->epoch);
	return -ESTALE;
}

/**
 * lc_meta_check_unchanged() - are superblock and mark those that memory knows?
 * @c: the volume, started and suspended
 *
 * Only reads, and says why not.  The SSD of a volume that has given it up counts for nothing.
 * Return: 0; -ESTALE: they are of somebody else, or later; another errno: one cannot be read.
 */
int lc_meta_check_unchanged(struct lc_cache *c)
{
	struct lc_mark_info *mark = kmalloc(sizeof(*mark), GFP_KERNEL);
	struct lc_sb *sb = kmalloc(sizeof(*sb), GFP_KERNEL);
	int ret = mark && sb ? 0 : -ENOMEM;

	mutex_lock(&c->meta->lock);
	if (!ret && lc_mode(&c->health) != LC_MODE_DEGRADED)
		ret = compare_sb(c, sb);
	if (!ret)
		ret = compare_mark(c, mark);
	mutex_unlock(&c->meta->lock);
	kfree(sb);
	kfree(mark);
	return ret;
}

/*
 * [meta->lock] Behind the start: both copies of the mark have this epoch (T1).  A start leaves
 * mark_epoch as it is, so that one copy that rots later does not make the other an old one.
 */
static void set_mark_epoch(struct lc_cache *c)
{
	if (c->sb.mark_offset != LC_NO_MARK)
		c->sb.mark_epoch = c->sb.epoch;
}

/* Superblock first, then the mark (L1, L9, L10). */
static int write_epoch(struct lc_cache *c, u64 first_seq)
{
	struct lc_meta *meta = c->meta;
	int ret;

	mutex_lock(&meta->lock);
	if (c->nr_lanes > 1)
		c->sb.incompat |= LC_INCOMPAT_LANES;
	else if (c->sb.tail_seq == first_seq)	/* nothing is left of those there were */
		c->sb.incompat &= ~LC_INCOMPAT_LANES;
	/* Stretches without a record, see lc_lanes_create(). */
	c->sb.lane_limit = max(c->sb.lane_limit, 2 * c->nr_lanes);
	lc_replay_next_life(&c->sb, first_seq);
	c->sb.flags &= ~LC_SB_CLEAN;
	c->sb.opened_at = ktime_get_real_ns();
	strscpy(c->sb.opener_host, init_utsname()->nodename, sizeof(c->sb.opener_host));
	ret = write_sb(c, true);
	if (!ret) {
		meta->mark.epoch = c->sb.epoch;
		ret = write_mark(c);
	}
	mutex_unlock(&meta->lock);
	if (ret)
		lc_err(&c->env, "superblock or mark cannot be written: error %d", ret);
	return ret;
}

/**
 * lc_meta_begin_epoch() - open a life
 * @c: the volume
 * @first_seq: of its first record; tail fields of c->sb are set already
 * @first_segment: number of its first segment
 *
 * Nothing else may have been written in this life.  Return: 0 or a negative errno;
 * with -ERANGE nothing was written at all.
 */
int lc_meta_begin_epoch(struct lc_cache *c, u64 first_seq, u64 first_segment)
{
	if (lc_life_possible(c->sb.epoch, first_seq, first_segment))
		return write_epoch(c, first_seq);
	lc_err(&c->env, "epoch %llu, record %llu or segment %llu is too high for another life: no cache gets so old, see lc-check",
	       c->sb.epoch, first_seq, first_segment);
	return -ERANGE;
}

/**
 * lc_meta_set_tail() - replay needs nothing below @seq any more
 * @c: the volume
 * @segment: lowest segment holding a record at or above @seq (L6)
 * @seq: sequence number
 *
 * Return: 0, or a negative errno: the tail did not move.
 */
int lc_meta_set_tail(struct lc_cache *c, u64 segment, u64 seq)
{
	struct lc_meta *meta = c->meta;
	u64 old_segment, old_seq;
	int ret;

	mutex_lock(&meta->lock);
	old_segment = c->sb.tail_segment;
	old_seq = c->sb.tail_seq;
	c->sb.tail_segment = segment;
	c->sb.tail_seq = seq;
	set_mark_epoch(c);
	ret = write_sb(c, false);
	if (ret) {
		c->sb.tail_segment = old_segment;
		c->sb.tail_seq = old_seq;
	}
	mutex_unlock(&meta->lock);
	return ret;
}

/**
 * lc_meta_end_clean() - close a life: the checkpoint is durable and complete
 * @c: the volume
 * @next_seq: first seq of this life
 * @head_segment: first segment without a record
 * @ckpt_entries: blocks in the checkpoint
 * @print: fingerprint of the HDD
 *
 * Return: 0 or a negative errno; the life is not clean then.
 */
int lc_meta_end_clean(struct lc_cache *c, u64 next_seq, u64 head_segment, u64 ckpt_entries,
		      const struct lc_fingerprint *print)
{
	struct lc_meta *meta = c->meta;
	int ret;

	mutex_lock(&meta->lock);
	c->sb.next_seq = next_seq;
	c->sb.head_segment = head_segment;
	c->sb.ckpt_entries = ckpt_entries;
	c->sb.fingerprint = print->sum;
	c->sb.clean_epoch = c->sb.epoch;
	memcpy(c->sb.samples, print->samples, sizeof(c->sb.samples));
	c->sb.flags |= LC_SB_CLEAN;
	set_mark_epoch(c);
	ret = write_sb(c, true);
	if (ret)
		c->sb.flags &= ~LC_SB_CLEAN;
	mutex_unlock(&meta->lock);
	return ret;
}

/**
 * lc_meta_abandon() - this cache must never be replayed again (S1)
 * @c: the volume
 * @lost: sectors that were only there
 * @nr: how many, or LC_MARK_LOST_TOO_MANY: not known, or more than fit
 *
 * Return: 0 or a negative errno.
 */
int lc_meta_abandon(struct lc_cache *c, const struct lc_lost *lost, u32 nr)
{
	struct lc_meta *meta = c->meta;
	int ret;

	mutex_lock(&meta->lock);
	meta->mark.state = LC_MARK_ABANDONED;
	meta->mark.epoch = c->sb.epoch;
	meta->mark.nr_lost = nr;
	if (lost)
		memcpy(meta->mark.lost, lost, nr * sizeof(*lost));
	ret = write_mark(c);
	mutex_unlock(&meta->lock);
	return ret;
}
