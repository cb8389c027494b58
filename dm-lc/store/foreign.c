// SPDX-License-Identifier: GPL-2.0-only
/*
 * Marks of other pairs on the HDD.  See foreign.h.
 *
 * A volume may itself be the HDD of another pair, whose mark then lies within ours and
 * may be where one of the whole disk would be.  A pair takes a MiB for the mark besides its
 * volume, so one that is inside the volume is smaller than one of the disk.  Without a mark the
 * volume is as large as the disk and the two cannot be told apart: it is refused then.
 */
#include <linux/blkdev.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "store/env.h"
#include "store/foreign.h"
#include "store/io.h"

static bool is_foreign(const struct lc_env *env, const struct lc_mark_info *mark)
{
	const struct lc_sb *sb = env->sb;
	u64 needs = mark->volume_sectors + (LC_MARK_BYTES >> 9);

	if (mark->generation == sb->generation && !memcmp(mark->cache_uuid, sb->cache_uuid, 16))
		return false;
	return sb->mark_offset == LC_NO_MARK ? needs >= sb->volume_sectors :
					       needs > sb->volume_sectors;
}

static int check_at(struct lc_env *env, u64 offset, void *block, struct lc_mark_info *mark)
{
	unsigned int copy;
	const char *why;

	for (copy = 0; copy < 2; copy++) {
		/* What cannot be read there is data of the volume, or no reason to stop. */
		if (lc_io_sync(env->backing, REQ_OP_READ | REQ_META,
			       lc_format_mark_address(offset, copy), block, LC_SLOT_BYTES) ||
		    lc_mark_decode(block, offset, copy, mark, &why) || !is_foreign(env, mark))
			continue;
		lc_err(env, "%pg bears the mark of another cache, %pUb, at byte %llu: it was paired anew since; start that cache, or format anew",
		       env->backing, mark->cache_uuid, offset);
		return -EINVAL;
	}
	return 0;
}

int lc_foreign_check(struct lc_env *env)
{
	u64 whole = (u64)bdev_nr_bytes(env->backing) & ~(u64)(LC_SLOT_BYTES - 1);
	u64 places[] = { 0, whole - LC_MARK_BYTES };
	struct lc_mark_info *mark = kmalloc(sizeof(*mark), GFP_NOIO);
	void *block = kmalloc(LC_SLOT_BYTES, GFP_NOIO);
	unsigned int i;
	int ret = 0;

	if (!mark || !block) {
		lc_err(env, "no memory to look for other marks on %pg: try again",
		       env->backing);
		ret = -ENOMEM;
	}
	for (i = 0; i < ARRAY_SIZE(places) && !ret && whole > LC_MARK_BYTES; i++) {
		if (places[i] != env->sb->mark_offset)
			ret = check_at(env, places[i], block, mark);
	}
	kfree(block);
	kfree(mark);
	return ret;
}
