// SPDX-License-Identifier: GPL-2.0-only
/* Fingerprint of the HDD.  See fingerprint.h. */
#include <linux/slab.h>

#include "format/sample.h"
#include "store/env.h"
#include "store/fingerprint.h"
#include "store/io.h"

static u64 sample_address(const struct lc_env *env, u32 i)
{
	u64 block = lc_sample_block(env->nr_blocks, i);

	return lc_place_sector(&env->place, block << LC_BLOCK_SHIFT) << 9;
}

static void add_sample(struct lc_env *env, struct lc_fingerprint *print, u32 i,
		       const struct lc_io_read *read)
{
	u64 block = lc_sample_block(env->nr_blocks, i);

	if (read->status) {
		print->unreadable++;
		lc_warn(env, "%pg: block %llu of the volume, at sector %llu of the device, cannot be read: error %d",
			env->backing, block, sample_address(env, i) >> 9, read->status);
		return;
	}
	print->sum = lc_format_csum64(env->sb->csum_type, print->sum, read->data, LC_SLOT_BYTES);
	/* 0 is kept for what is not known. */
	print->samples[i] = lc_format_slot_csum(env->sb, block, read->data) ?: 1;
}

int lc_fingerprint_take(struct lc_env *env, struct lc_fingerprint *print)
{
	struct lc_io_batch batch;
	struct lc_io_read *reads;
	int ret = 0;
	u32 i;

	*print = (struct lc_fingerprint) {
		.sum = env->sb->generation,
		.nr = lc_samples(env->nr_blocks),
	};
	reads = kcalloc(print->nr, sizeof(*reads), GFP_NOIO);
	if (!reads)
		return -ENOMEM;
	lc_io_batch_init(&batch);
	for (i = 0; i < print->nr; i++) {
		reads[i].data = kmalloc(LC_SLOT_BYTES, GFP_NOIO);
		if (!reads[i].data) {
			ret = -ENOMEM;
			break;
		}
		lc_io_batch_read(&batch, &reads[i], env->backing, sample_address(env, i),
				 LC_SLOT_BYTES);
	}
	lc_io_batch_wait(&batch);
	for (i = 0; i < print->nr && reads[i].data; i++) {
		if (!ret)
			add_sample(env, print, i, &reads[i]);
		kfree(reads[i].data);
	}
	kfree(reads);
	if (ret || print->unreadable * 2 <= print->nr)
		return ret;
	lc_err(env, "%pg: %u of %u sampled blocks cannot be read: see to the disk first",
	       env->backing, print->unreadable, print->nr);
	return -EIO;
}

static int refuse_changed(struct lc_env *env)
{
	lc_err(env, "%pg was changed while the cache was detached: its log must not be replayed over that",
	       env->backing);
	return -ESTALE;
}

/* Each block by itself.  What could not be read, now or at the stop, tells nothing. */
static int compare_samples(struct lc_env *env, const struct lc_fingerprint *print)
{
	const u32 *then = env->sb->samples;
	u32 i, nr = 0;

	for (i = 0; i < print->nr; i++) {
		if (!then[i] || !print->samples[i])
			continue;
		if (then[i] != print->samples[i])
			return refuse_changed(env);
		nr++;
	}
	if (nr * 2 >= print->nr)
		return 0;
	lc_err(env, "%pg: only %u of %u sampled blocks can be compared: see to the disk first",
	       env->backing, nr, print->nr);
	return -EIO;
}

int lc_fingerprint_check(struct lc_env *env)
{
	const struct lc_sb *sb = env->sb;
	struct lc_fingerprint *print = kmalloc(sizeof(*print), GFP_NOIO);
	int ret;

	if (!print)
		return -ENOMEM;
	ret = lc_fingerprint_take(env, print);
	if (ret)
		goto free;
	if (sb->clean_epoch) {
		ret = compare_samples(env, print);
	} else if (!print->unreadable) {
		ret = print->sum == sb->fingerprint ? 0 : refuse_changed(env);
	} else if (sb->mark_offset == LC_NO_MARK) {
		lc_err(env, "%pg has no mark, and its fingerprint cannot be taken: see to the disk first",
		       env->backing);
		ret = -EIO;
	}
free:
	kfree(print);
	return ret;
}
