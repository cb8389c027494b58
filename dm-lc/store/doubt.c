// SPDX-License-Identifier: GPL-2.0-only
/* The doubtful sectors of the sampled blocks.  See doubt.h. */
#include <linux/blkdev.h>
#include <linux/string.h>

#include "format/sample.h"
#include "store/doubt.h"
#include "store/env.h"
#include "store/io.h"

void lc_doubt_init(struct lc_doubt *doubt, u64 nr_blocks)
{
	memset(doubt, 0, sizeof(*doubt));
	spin_lock_init(&doubt->lock);
	doubt->nr_blocks = nr_blocks;
	memset(doubt->sent, 0xff, sizeof(doubt->sent));
}

void lc_doubt_marked(struct lc_doubt *doubt)
{
	memset(doubt->sent, 0, sizeof(doubt->sent));
}

/* These sectors of sample @i are in @sectors, which is one of @doubt, from now on. */
static void add(struct lc_doubt *doubt, u8 *sectors, int i, u8 mask)
{
	unsigned long flags;

	spin_lock_irqsave(&doubt->lock, flags);
	sectors[i] |= mask;
	spin_unlock_irqrestore(&doubt->lock, flags);
}

void lc_doubt_sent(struct lc_doubt *doubt, u64 block, u8 mask)
{
	int i = lc_sample_of(doubt->nr_blocks, block);

	if (i >= 0)
		add(doubt, doubt->sent, i, mask);
}

void lc_doubt_changed(struct lc_doubt *doubt, u64 first, u64 last)
{
	u32 i;

	for (i = 0; i < lc_samples(doubt->nr_blocks); i++) {
		u64 block = lc_sample_block(doubt->nr_blocks, i);

		if (block >= first && block <= last)
			add(doubt, doubt->sent, i, 0xff);
	}
}

void lc_doubt_taken(struct lc_doubt *doubt, u64 block, u8 mask, u32 failures)
{
	int i = lc_sample_of(doubt->nr_blocks, block);
	unsigned long flags;

	if (i < 0)
		return;
	spin_lock_irqsave(&doubt->lock, flags);
	if (doubt->failures == failures)
		doubt->taken[i] |= mask;
	spin_unlock_irqrestore(&doubt->lock, flags);
}

void lc_doubt_begin(struct lc_doubt *doubt)
{
	unsigned long flags;

	spin_lock_irqsave(&doubt->lock, flags);
	memcpy(doubt->covered, doubt->sent, sizeof(doubt->covered));
	memset(doubt->sent, 0, sizeof(doubt->sent));
	spin_unlock_irqrestore(&doubt->lock, flags);
}

void lc_doubt_end(struct lc_doubt *doubt, bool well)
{
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&doubt->lock, flags);
	for (i = 0; i < LC_SB_SAMPLES; i++) {
		u8 left = doubt->doubtful[i];

		if (well)
			left &= ~doubt->taken[i];	/* DB2 */
		else
			left |= doubt->covered[i] | doubt->sent[i];	/* sent meanwhile */
		WRITE_ONCE(doubt->doubtful[i], left);
	}
	memset(doubt->covered, 0, sizeof(doubt->covered));
	memset(doubt->taken, 0, sizeof(doubt->taken));
	spin_unlock_irqrestore(&doubt->lock, flags);
}

void lc_doubt_flush_failed(struct lc_doubt *doubt)
{
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&doubt->lock, flags);
	for (i = 0; i < LC_SB_SAMPLES; i++)
		WRITE_ONCE(doubt->doubtful[i],
			   doubt->doubtful[i] | doubt->sent[i] | doubt->covered[i]);
	memset(doubt->taken, 0, sizeof(doubt->taken));
	WRITE_ONCE(doubt->failures, doubt->failures + 1);
	spin_unlock_irqrestore(&doubt->lock, flags);
}

void lc_doubt_fua_failed(struct lc_doubt *doubt, blk_opf_t opf)
{
	if (opf & REQ_FUA)
		lc_doubt_flush_failed(doubt);
}

u32 lc_doubt_failures(const struct lc_doubt *doubt)
{
	return READ_ONCE(doubt->failures);
}

bool lc_doubt_any(struct lc_doubt *doubt)
{
	u32 i;

	for (i = 0; i < lc_samples(doubt->nr_blocks); i++) {
		if (READ_ONCE(doubt->doubtful[i]))
			return true;
	}
	return false;
}

/* Completion context: no FLUSH of a user may be believed before this is counted (DB3). */
static void own_failed(void *arg)
{
	struct lc_doubt *doubt = arg;
	unsigned long flags;

	spin_lock_irqsave(&doubt->lock, flags);
	WRITE_ONCE(doubt->failures, doubt->failures + 1);
	spin_unlock_irqrestore(&doubt->lock, flags);
}

int lc_doubt_flush(struct lc_doubt *doubt, const struct lc_env *env)
{
	int ret;

	lc_doubt_begin(doubt);
	ret = lc_io_flush_told(env, env->backing, own_failed, doubt);
	lc_doubt_end(doubt, !ret);
	return ret;
}
