/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Force-included in the suites, behind ../compat.h and for the same reason: what KUnit and the
 * block layer's disks lack in older kernels.
 */
#ifndef LC_TESTS_COMPAT_H
#define LC_TESTS_COMPAT_H

#include <kunit/resource.h>
#include <kunit/test.h>
#include <linux/blkdev.h>
#include <linux/slab.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define KUNIT_EXPECT_MEMEQ(test, left, right, size) \
	KUNIT_EXPECT_EQ(test, memcmp(left, right, size), 0)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define KUNIT_CASE_SLOW(function) KUNIT_CASE(function)

struct lc_test_action {
	void (*action)(void *data);
	void *data;
};

static inline void lc_test_act(struct kunit_resource *res)
{
	struct lc_test_action *act = res->data;

	act->action(act->data);
	kfree(act);
}

static inline int kunit_add_action_or_reset(struct kunit *test, void (*action)(void *data),
					    void *data)
{
	struct lc_test_action *act = kmalloc(sizeof(*act), GFP_KERNEL);
	struct kunit_resource *res = kzalloc(sizeof(*res), GFP_KERNEL);

	if (!act || !res) {
		kfree(act);
		kfree(res);
		action(data);
		return -ENOMEM;
	}
	act->action = action;
	act->data = data;
	/* Frees @res with its last reference. */
	res->should_kfree = true;
	return kunit_add_resource(test, NULL, lc_test_act, res, act);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define KUNIT_ARRAY_PARAM_DESC(name, array, desc_member) \
	static const void *name##_gen_params(const void *prev, char *desc) \
	{ \
		__typeof__(&(array)[0]) next = prev; \
		\
		next = next ? next + 1 : (array); \
		if (next - (array) >= ARRAY_SIZE((array))) \
			return NULL; \
		strscpy(desc, next->desc_member, KUNIT_PARAM_DESC_SIZE); \
		return next; \
	}
#endif

/* 6.11 has what a cache is among the limits, which 6.9 has disks allocated with. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
static inline void lc_test_write_cache(struct gendisk *disk)
{
	blk_queue_write_cache(disk->queue, true, false);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define lc_test_alloc_disk() blk_alloc_disk(NUMA_NO_NODE)
#else
#define lc_test_alloc_disk() blk_alloc_disk(NULL, NUMA_NO_NODE)
#endif

static inline struct gendisk *lc_test_disk(u32 max_segments, u32 max_hw_sectors, bool cache,
					   bool fua)
{
	struct gendisk *disk = lc_test_alloc_disk();

	if (IS_ERR_OR_NULL(disk))
		return disk ?: ERR_PTR(-ENOMEM);
	if (max_segments)
		blk_queue_max_segments(disk->queue, max_segments);
	if (max_hw_sectors)
		blk_queue_max_hw_sectors(disk->queue, max_hw_sectors);
	blk_queue_write_cache(disk->queue, cache, fua);
	return disk;
}
#else
/* The disk gets a volatile cache while it is used. */
static inline void lc_test_write_cache(struct gendisk *disk)
{
	struct queue_limits limits = queue_limits_start_update(disk->queue);

	limits.features |= BLK_FEAT_WRITE_CACHE;
	WARN_ON(queue_limits_commit_update(disk->queue, &limits));
}

/* A disk of bios.  0: the usual.  @cache: a volatile one.  Return: the disk or an ERR_PTR(). */
static inline struct gendisk *lc_test_disk(u32 max_segments, u32 max_hw_sectors, bool cache,
					   bool fua)
{
	struct queue_limits limits = {
		.features = (cache ? BLK_FEAT_WRITE_CACHE : 0) | (fua ? BLK_FEAT_FUA : 0),
		.max_segments = max_segments,
		.max_hw_sectors = max_hw_sectors,
	};

	return blk_alloc_disk(&limits, NUMA_NO_NODE);
}
#endif

#endif /* LC_TESTS_COMPAT_H */
