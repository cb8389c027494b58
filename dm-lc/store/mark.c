// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mark on the HDD.  See mark.h.
 *
 * It has two copies, which are written one after the other as those of the superblock are, each
 * with PREFLUSH and FUA, and the copy that is known to be whole last (mark->whole).
 */
#include <linux/blkdev.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "format/pairing.h"
#include "store/doubt.h"
#include "store/env.h"
#include "store/io.h"
#include "store/mark.h"

struct lc_hdd_mark {
	struct lc_env *env;		/* constant */
	struct mutex *lock;		/* constant; the superblock's, see super.h */
	const struct lc_doubt *doubt;	/* constant; counts the FLUSHes of the HDD that fail */
	struct lc_mark_info info;	/* lock */
	void *block;			/* 4 KiB for I/O; lock */
	u8 whole;			/* copy that was read, or written last; lock */
};

struct lc_hdd_mark *lc_mark_create(struct lc_env *env, struct mutex *lock,
				   const struct lc_doubt *doubt)
{
	struct lc_hdd_mark *mark = kzalloc(sizeof(*mark), GFP_KERNEL);

	if (!mark)
		return NULL;
	mark->env = env;
	mark->lock = lock;
	mark->doubt = doubt;
	mark->block = kmalloc(LC_SLOT_BYTES, GFP_KERNEL);
	if (!mark->block) {
		kfree(mark);
		return NULL;
	}
	return mark;
}

void lc_mark_destroy(struct lc_hdd_mark *mark)
{
	if (!mark)
		return;
	kfree(mark->block);
	kfree(mark);
}

/* [mark->lock] Both copies, if there is a mark. */
static int write_mark(struct lc_hdd_mark *mark)
{
	const blk_opf_t opf = REQ_OP_WRITE | REQ_META | LC_IO_COMMIT | REQ_PREFLUSH | REQ_FUA;
	const u8 order[] = { !mark->whole, mark->whole };
	u32 failures = lc_doubt_failures(mark->doubt);
	const struct lc_sb *sb = mark->env->sb;
	unsigned int i, copy;
	int ret;

	lockdep_assert_held(mark->lock);
	if (sb->mark_offset == LC_NO_MARK)
		return 0;
	mark->info.mark_seq++;
	for (i = 0; i < 2; i++) {
		copy = order[i];
		lc_mark_encode(&mark->info, sb->csum_type, sb->mark_offset, copy, mark->block);
		lc_env_sent(mark->env, mark->env->backing, opf, LC_SLOT_BYTES);
		ret = lc_io_sync(mark->env->backing, opf,
				 lc_format_mark_address(sb->mark_offset, copy), mark->block,
				 LC_SLOT_BYTES);
		/* As in write_super(): a FLUSH that failed beside it may have dropped it (DB3). */
		if (!ret && lc_doubt_failures(mark->doubt) != failures)
			ret = -EIO;
		if (ret)
			return ret;
		mark->whole = copy;
	}
	return 0;
}

/* [mark->lock] On error *@why gets constant text. */
static int read_copy(struct lc_hdd_mark *mark, unsigned int copy, struct lc_mark_info *info,
		     const char **why)
{
	u64 offset = mark->env->sb->mark_offset;
	int ret;

	lockdep_assert_held(mark->lock);
	*why = "mark cannot be read";
	ret = lc_io_sync(mark->env->backing, REQ_OP_READ | REQ_META,
			 lc_format_mark_address(offset, copy), mark->block, LC_SLOT_BYTES);
	return ret ? ret : lc_mark_decode(mark->block, offset, copy, info, why);
}

/* [mark->lock] "Abandoned" in either copy wins (S1), otherwise the higher mark_seq. */
static int read_mark(struct lc_hdd_mark *mark, struct lc_mark_info *info, u8 *which,
		     const char **why)
{
	struct lc_mark_info *other = kmalloc(sizeof(*other), GFP_NOIO);
	unsigned int copy;
	int ret = -ENODATA, err;

	lockdep_assert_held(mark->lock);
	if (!other)
		return -ENOMEM;
	for (copy = 0; copy < 2; copy++) {
		const char *text;

		err = read_copy(mark, copy, other, &text);
		if (err) {
			if (!copy || ret == -ENODATA) {
				ret = err;
				*why = text;
			}
			continue;
		}
		if (ret || lc_mark_counts(other, info)) {
			*info = *other;
			*which = copy;
		}
		ret = 0;
	}
	kfree(other);
	return ret;
}

u64 lc_mark_epoch(struct lc_hdd_mark *mark)
{
	u64 epoch = ~0ULL;

	mutex_lock(mark->lock);
	if (mark->env->sb->mark_offset != LC_NO_MARK)
		epoch = mark->info.epoch;
	mutex_unlock(mark->lock);
	return epoch;
}

void lc_mark_say_old_disk(struct lc_hdd_mark *mark, u64 seen)
{
	lc_err(mark->env, "%pg is an old copy: its mark is of epoch %llu, and the disk of this cache was used in epoch %llu: attach that disk, or give up what the cache holds and format it anew",
	       mark->env->backing, mark->info.epoch, seen);
}

/* [mark->lock] Does what was read fit the superblock?  Says why not. */
static int check_mark(struct lc_hdd_mark *mark)
{
	const struct lc_mark_info *info = &mark->info;
	struct lc_env *env = mark->env;

	lockdep_assert_held(mark->lock);
	if (info->state == LC_MARK_PAIRED && info->head_offset != env->place.head << 9) {
		lc_err(env, "superblock and mark on %pg disagree about where its first MiB is: see lc-check",
		       env->backing);
		return -EUCLEAN;
	}
	switch (lc_pairing_check(env->sb, info)) {
	case LC_PAIRING_FITS:
		return 0;
	case LC_PAIRING_FOREIGN:
		lc_err(env, "%pg is paired with another cache: give the right devices",
		       env->backing);
		return -EINVAL;
	case LC_PAIRING_INTERRUPTED:
		lc_err(env, "%s %pg was interrupted: see lc-check --repair",
		       info->state == LC_MARK_ATTACHING ? "lc-format of" : "lc-detach of",
		       env->backing);
		return -EINPROGRESS;
	case LC_PAIRING_ABANDONED:
		lc_err(env, "this cache was abandoned in epoch %llu and must not be replayed: format it anew",
		       info->epoch);
		return -ESTALE;
	case LC_PAIRING_OLD_CACHE:
		lc_err(env, "the superblock is of epoch %llu, the mark of %llu: an old or damaged superblock, see lc-check",
		       env->sb->epoch, info->epoch);
		return -ESTALE;
	case LC_PAIRING_OLD_DISK:
		lc_mark_say_old_disk(mark, lc_pairing_seen(env->sb));
		return -ESTALE;
	case LC_PAIRING_FORKED:
		lc_err(env, "%pg was used with a copy of this cache, which went on without this one: its mark is of epoch %llu and owner %llx, the superblock of epoch %llu and owner %llx, after %llx: give the cache device that was used last, or see lc-check",
		       env->backing, info->epoch, info->owner, env->sb->epoch,
		       env->sb->owner, env->sb->mark_owner);
		return -ESTALE;
	case LC_PAIRING_LOST:
		lc_err(env, "%pg has blocks recorded as lost: accept them first", env->backing);
		return -EUCLEAN;
	}
	return -EINVAL;
}

int lc_mark_check_pair(struct lc_hdd_mark *mark)
{
	const char *why = "mark cannot be read";
	struct lc_env *env = mark->env;
	int ret;

	if (env->sb->mark_offset == LC_NO_MARK)
		return 0;
	mutex_lock(mark->lock);
	ret = read_mark(mark, &mark->info, &mark->whole, &why);
	if (ret == -ENOMEM)
		lc_err(env, "no memory to read the mark on %pg: try again", env->backing);
	else if (ret)
		lc_err(env, "%pg: %s: is it the right backing device?", env->backing, why);
	else
		ret = check_mark(mark);
	mutex_unlock(mark->lock);
	return ret;
}

/* [mark->lock] Is the mark on the HDD, read into @info, not a later one than ours, or another? */
static int compare_mark(struct lc_hdd_mark *mark, struct lc_mark_info *info, const char *since)
{
	const struct lc_mark_info *ours = &mark->info;
	const char *why = "mark cannot be read";
	struct lc_env *env = mark->env;
	u8 which;
	int ret;

	lockdep_assert_held(mark->lock);
	if (env->sb->mark_offset == LC_NO_MARK)
		return 0;
	ret = read_mark(mark, info, &which, &why);
	if (ret) {
		lc_err(env, "%pg: %s", env->backing, ret == -ENOMEM ? "no memory" : why);
		return ret;
	}
	if (info->epoch == ours->epoch && info->mark_seq <= ours->mark_seq &&
	    info->state == ours->state && info->generation == ours->generation &&
	    info->owner == ours->owner && !memcmp(info->cache_uuid, ours->cache_uuid, 16))
		return 0;
	lc_err(env, "%pg was used since %s, or reads differently from one time to the next: its mark is the %lluth, of epoch %llu; memory knows the %lluth, of epoch %llu",
	       env->backing, since, info->mark_seq, info->epoch, ours->mark_seq, ours->epoch);
	return -ESTALE;
}

int lc_mark_check_unchanged(struct lc_hdd_mark *mark, const char *since)
{
	struct lc_mark_info *info = kmalloc(sizeof(*info), GFP_NOIO);
	int ret = info ? compare_mark(mark, info, since) : -ENOMEM;

	kfree(info);
	return ret;
}

int lc_mark_settle(struct lc_hdd_mark *mark, u64 *owner)
{
	lockdep_assert_held(mark->lock);
	*owner = mark->info.owner;
	return write_mark(mark);
}

/*
 * [mark->lock] Do the copies on the HDD say what was just written?  One that cannot be read is left
 * as one that rots later is.
 */
static int compare_written(struct lc_hdd_mark *mark, struct lc_mark_info *info)
{
	const struct lc_mark_info *ours = &mark->info;
	struct lc_env *env = mark->env;
	unsigned int copy, good = 0;
	const char *why;
	int ret = 0, err;

	lockdep_assert_held(mark->lock);
	for (copy = 0; copy < 2; copy++) {
		err = read_copy(mark, copy, info, &why);
		if (err) {
			lc_warn(env, "%pg: copy %u, which was just written: %s", env->backing,
				copy, why);
			ret = err;
			continue;
		}
		if (info->owner != ours->owner || info->mark_seq != ours->mark_seq) {
			lc_err(env, "%pg is being started by another machine: its mark is of owner %llx now, and %llx was written a moment ago: start the volume on one machine only",
			       env->backing, info->owner, ours->owner);
			return -ESTALE;
		}
		good++;
	}
	return good ? 0 : ret;
}

static int read_back(struct lc_hdd_mark *mark)
{
	struct lc_mark_info *info = kmalloc(sizeof(*info), GFP_NOIO);
	int ret = info ? compare_written(mark, info) : -ENOMEM;

	kfree(info);
	return ret;
}

int lc_mark_set_epoch(struct lc_hdd_mark *mark, u64 epoch, u64 owner)
{
	int ret;

	lockdep_assert_held(mark->lock);
	mark->info.epoch = epoch;
	mark->info.owner = owner;
	ret = write_mark(mark);
	if (!ret && mark->env->sb->mark_offset != LC_NO_MARK)
		ret = read_back(mark);
	return ret;
}

int lc_mark_abandon(struct lc_hdd_mark *mark, const struct lc_lost *lost, u32 nr)
{
	int ret;

	mutex_lock(mark->lock);
	mark->info.state = LC_MARK_ABANDONED;
	mark->info.epoch = mark->env->sb->epoch;
	mark->info.nr_lost = nr;
	if (lost)
		memcpy(mark->info.lost, lost, nr * sizeof(*lost));
	ret = write_mark(mark);
	mutex_unlock(mark->lock);
	return ret;
}
