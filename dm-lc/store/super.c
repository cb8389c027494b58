// SPDX-License-Identifier: GPL-2.0-only
/*
 * The superblock of the SSD.  See super.h.
 *
 * The two front copies are written one after the other, each with PREFLUSH and FUA:
 * what was written before is durable before the superblock says so.  A write may be
 * torn, so the copy that is known to be whole is written last (super->whole).  So one is
 * whole at any moment, also if an earlier crash has left only one.  The copy with the higher
 * sb_seq wins.  A newer copy whose twin was not written yet may be believed, because
 * nothing that depends on it happens before both are durable.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>

#include "format/replay.h"
#include "store/env.h"
#include "store/fingerprint.h"
#include "store/health.h"
#include "store/io.h"
#include "store/mark.h"
#include "store/super.h"

struct lc_super {
	struct lc_env *env;		/* constant */
	struct mutex lock;		/* superblock and mark; mark.c has a pointer to it */
	struct lc_sb *sb;		/* lock; identity and geometry: constant */
	void *block;			/* 4 KiB for I/O; lock */
	bool told;			/* lc_super_life_told(); READ_ONCE() */
	u8 whole;			/* front copy that was read, or written last; lock */
	void (*flush_failed)(void *arg);	/* constant */
	void *arg;			/* constant */
};

/* Put the copy to believe into @sb, and its number into @which. */
static int read_super(struct block_device *bdev, struct lc_sb *sb, u8 *which, const char **why)
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

struct lc_super *lc_super_create(struct lc_env *env, struct lc_sb *sb,
				 void (*flush_failed)(void *arg), void *arg)
{
	struct lc_super *super = kzalloc(sizeof(*super), GFP_KERNEL);

	if (!super)
		return NULL;
	mutex_init(&super->lock);
	super->env = env;
	super->sb = sb;
	super->flush_failed = flush_failed;
	super->arg = arg;
	super->block = kmalloc(LC_SLOT_BYTES, GFP_KERNEL);
	if (!super->block) {
		kfree(super);
		return NULL;
	}
	return super;
}

void lc_super_destroy(struct lc_super *super)
{
	if (!super)
		return;
	kfree(super->block);
	kfree(super);
}

struct mutex *lc_super_lock(struct lc_super *super)
{
	return &super->lock;
}

int lc_super_load(struct lc_super *super, const char **why)
{
	/* Nobody else has it yet. */
	return read_super(super->env->cache, super->sb, &super->whole, why);
}

/* [super->lock] Both front copies, and the third if asked. */
static int write_super(struct lc_super *super, bool third)
{
	const blk_opf_t opf = REQ_OP_WRITE | REQ_META | LC_IO_COMMIT | REQ_PREFLUSH | REQ_FUA;
	const u8 order[LC_SB_COPIES] = { !super->whole, super->whole, 2 };
	u32 failures = READ_ONCE(super->env->ssd_flush_failures);
	unsigned int i, copy;
	int ret;

	lockdep_assert_held(&super->lock);
	super->sb->sb_seq++;
	for (i = 0; i < (third ? LC_SB_COPIES : 2); i++) {
		copy = order[i];
		lc_sb_encode(super->sb, copy, super->block);
		lc_env_sent(super->env, super->env->cache, opf, LC_SLOT_BYTES);
		ret = lc_io_sync_told(super->env->cache, opf,
				      lc_format_sb_address(&super->sb->geo, copy), super->block,
				      LC_SLOT_BYTES, super->flush_failed, super->arg);
		/* A copy that may be gone is written again, before the other one (F2). */
		if (!ret && !lc_env_fua_kept(super->env, failures))
			ret = -EIO;
		/* The third copy is for people who search, not for recovery. */
		if (ret && copy < 2)
			return ret;
		if (copy < 2)
			super->whole = copy;
	}
	WRITE_ONCE(super->told, super->sb->mark_epoch == super->sb->epoch);
	return 0;
}

/* [super->lock] Is the superblock on the SSD not a later one than ours, or another one? */
static int compare_super(struct lc_super *super, struct lc_sb *sb, const char *since)
{
	const struct lc_sb *ours = super->sb;
	const char *why = "cannot be read";
	u8 which;
	int ret;

	lockdep_assert_held(&super->lock);
	ret = read_super(super->env->cache, sb, &which, &why);
	if (ret) {
		lc_err(super->env, "%pg: %s", super->env->cache, why);
		return ret;
	}
	if (sb->epoch == ours->epoch && sb->sb_seq <= ours->sb_seq &&
	    sb->owner == ours->owner && sb->generation == ours->generation &&
	    !memcmp(sb->cache_uuid, ours->cache_uuid, 16))
		return 0;
	lc_err(super->env, "%pg was used since %s, or reads differently from one time to the next: its superblock is the %lluth, of epoch %llu; memory knows the %lluth, of epoch %llu",
	       super->env->cache, since, sb->sb_seq, sb->epoch, ours->sb_seq, ours->epoch);
	return -ESTALE;
}

/* [super->lock] The same, with memory of its own.  Says why not, except without memory. */
static int check_super(struct lc_super *super, const char *since)
{
	struct lc_sb *sb = kmalloc(sizeof(*sb), GFP_KERNEL);
	int ret = sb ? compare_super(super, sb, since) : -ENOMEM;

	kfree(sb);
	return ret;
}

int lc_super_check_unchanged(struct lc_super *super, struct lc_hdd_mark *mark)
{
	const char *since = "the system was hibernated";
	int ret = 0;

	mutex_lock(&super->lock);
	if (lc_mode(super->env->health) != LC_MODE_DEGRADED)
		ret = check_super(super, since);
	if (!ret)
		ret = lc_mark_check_unchanged(mark, since);
	mutex_unlock(&super->lock);
	return ret;
}

/*
 * [super->lock] After the start: both copies of the mark have this epoch (T1).  A start leaves
 * mark_epoch as it is, so that one copy that rots later does not make the other an old one.
 */
static void set_mark_epoch(struct lc_super *super)
{
	lockdep_assert_held(&super->lock);
	if (super->sb->mark_offset != LC_NO_MARK)
		super->sb->mark_epoch = super->sb->epoch;
}

/* [super->lock] A life begins, in memory.  @mark_owner: of the mark, whose copies are alike. */
static void set_epoch(struct lc_super *super, u32 nr_lanes, u64 first_seq, u64 mark_owner)
{
	struct lc_sb *sb = super->sb;

	lockdep_assert_held(&super->lock);
	if (nr_lanes > 1)
		sb->incompat |= LC_INCOMPAT_LANES;
	else if (sb->tail_seq == first_seq)	/* nothing is left of those there were */
		sb->incompat &= ~LC_INCOMPAT_LANES;
	/* Stretches without a record, see lc_lanes_create(). */
	sb->lane_limit = max(sb->lane_limit, 2 * nr_lanes);
	if (sb->epoch_first_seq < first_seq)
		sb->warm_epoch = sb->epoch;
	lc_replay_next_life(sb, first_seq);
	sb->flags &= ~LC_SB_CLEAN;
	sb->incompat &= ~LC_INCOMPAT_PROMOTED;	/* it is about the checkpoint */
	sb->opened_at = ktime_get_real_ns();
	strscpy(sb->opener_host, init_utsname()->nodename, sizeof(sb->opener_host));
	sb->mark_owner = mark_owner;
	do {
		sb->owner = get_random_u64();
	} while (!sb->owner);
}

/* The mark as it counts, the superblock, the mark of this life (L1, L9, L10, T5). */
static int write_epoch(struct lc_super *super, struct lc_hdd_mark *mark, u32 nr_lanes,
		       u64 first_seq)
{
	const char *since = "this start has read or written it";
	const struct lc_sb *sb = super->sb;
	u64 mark_owner;
	int ret;

	mutex_lock(&super->lock);
	/* The log was replayed since, which may have taken minutes. */
	ret = check_super(super, since);
	if (!ret)
		ret = lc_mark_check_unchanged(mark, since);
	if (!ret)
		ret = lc_mark_settle(mark, &mark_owner);
	if (!ret) {
		set_epoch(super, nr_lanes, first_seq, mark_owner);
		ret = write_super(super, true);
	}
	if (!ret)
		ret = lc_mark_set_epoch(mark, sb->epoch, sb->owner);
	/* The mark was read back.  Two machines may share the SSD, too. */
	if (!ret)
		ret = check_super(super, since);
	mutex_unlock(&super->lock);
	if (ret)
		lc_err(super->env, "the new epoch is not open: error %d with superblock or mark",
		       ret);
	return ret;
}

int lc_super_begin_epoch(struct lc_super *super, struct lc_hdd_mark *mark, u32 nr_lanes,
			 u64 first_seq, u64 first_segment)
{
	u64 epoch = super->sb->epoch;

	if (lc_life_possible(epoch, first_seq, first_segment))
		return write_epoch(super, mark, nr_lanes, first_seq);
	lc_err(super->env, "epoch %llu, record %llu or segment %llu is too high for another life: no cache gets so old, see lc-check",
	       epoch, first_seq, first_segment);
	return -ERANGE;
}

void lc_super_settle_tail(struct lc_super *super, u64 next_seq, u64 next_segment)
{
	mutex_lock(&super->lock);
	if (super->sb->tail_seq == next_seq)
		super->sb->tail_segment = next_segment;
	mutex_unlock(&super->lock);
}

void lc_super_settle_warm(struct lc_super *super, u64 segment, u32 ahead)
{
	mutex_lock(&super->lock);
	super->sb->warm_segment = segment;
	super->sb->warm_ahead = ahead;
	mutex_unlock(&super->lock);
}

int lc_super_set_warm(struct lc_super *super, u64 segment)
{
	u64 old;
	int ret;

	mutex_lock(&super->lock);
	old = super->sb->warm_segment;
	super->sb->warm_segment = segment;
	ret = write_super(super, false);
	if (ret)
		super->sb->warm_segment = old;
	mutex_unlock(&super->lock);
	return ret;
}

void lc_super_note_warm(struct lc_super *super, u64 segment)
{
	mutex_lock(&super->lock);
	super->sb->warm_segment = segment;
	mutex_unlock(&super->lock);
}

int lc_super_set_ahead(struct lc_super *super, u32 ahead)
{
	int ret = 0;
	u32 old;

	mutex_lock(&super->lock);
	old = super->sb->warm_ahead;
	if (ahead > old) {
		super->sb->warm_ahead = ahead;
		ret = write_super(super, false);
	}
	if (ret)
		super->sb->warm_ahead = old;
	mutex_unlock(&super->lock);
	return ret;
}

int lc_super_set_tail(struct lc_super *super, u64 segment, u64 seq)
{
	struct lc_sb *sb = super->sb;
	u64 old_segment, old_seq;
	int ret;

	mutex_lock(&super->lock);
	old_segment = sb->tail_segment;
	old_seq = sb->tail_seq;
	sb->tail_segment = segment;
	sb->tail_seq = seq;
	set_mark_epoch(super);
	ret = write_super(super, false);
	if (ret) {
		sb->tail_segment = old_segment;
		sb->tail_seq = old_seq;
	}
	mutex_unlock(&super->lock);
	return ret;
}

int lc_super_tell_life(struct lc_super *super)
{
	int ret;

	mutex_lock(&super->lock);
	set_mark_epoch(super);
	ret = write_super(super, false);
	mutex_unlock(&super->lock);
	return ret;
}

bool lc_super_life_told(const struct lc_super *super)
{
	return super->sb->mark_offset == LC_NO_MARK || READ_ONCE(super->told);
}

int lc_super_end_clean(struct lc_super *super, u64 next_seq, u64 head_segment, u64 ckpt_entries,
		       const struct lc_fingerprint *print, bool promoted)
{
	struct lc_sb *sb = super->sb;
	int ret;

	mutex_lock(&super->lock);
	sb->next_seq = next_seq;
	sb->head_segment = head_segment;
	sb->ckpt_entries = ckpt_entries;
	sb->fingerprint = print->sum;
	sb->clean_epoch = sb->epoch;
	memcpy(sb->samples, print->samples, sizeof(sb->samples));
	sb->flags |= LC_SB_CLEAN;
	if (promoted)
		sb->incompat |= LC_INCOMPAT_PROMOTED;
	set_mark_epoch(super);
	ret = write_super(super, true);
	if (ret)
		sb->flags &= ~LC_SB_CLEAN;
	mutex_unlock(&super->lock);
	return ret;
}
