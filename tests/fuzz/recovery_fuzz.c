// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's own start and stop (start.c, and what it uses but for the log) on an image in
 * memory, then a crash or a clean stop, and another start.
 *
 * Input: an image (see images.h), of which every block can be read; bit 0 of the options:
 * stop cleanly, bit 1: let lc-check --repair have it first.
 *
 * Besides no warning and nothing out of bounds:
 *  - a start that refuses has not written, one that succeeds only superblock and mark
 *  - the index is sound: each copy in one chain, inside the volume, as the counters say
 *  - what was replayed once is replayed again, block for block, to the same next record;
 *    after a clean stop the checkpoint says the same, too
 *  - where lc-check finds no damage, or has repaired it, there is none; and the log ends
 *    where lc-check says it does
 */
#include "shim.h"
#include "expect.h"
#include "images.h"
#include "life/checkpoint.h"
#include "life/lc.h"
#include "life/start.h"
#include "life/warmup.h"
#include "log/alloc.h"
#include "log/lanes.h"
#include "log/log.h"
#include "log/pool.h"
#include "medium.h"
#include "store/fingerprint.h"
#include "store/index.h"
#include "store/io.h"
#include "store/mark.h"
#include "store/ring.h"
#include "store/super.h"
#include "toolcheck.h"

#define MOST_SLOTS	MEDIUM_BLOCKS

/* A volume that was started, and what was found. */
struct volume {
	struct lc_volume vol;
	bool started;
	bool was_clean;		/* and its checkpoint was good */
	int error;		/* or what it refused with */
	u64 next_seq, next_segment;
	struct copy {
		bool used;
		u64 block;
		struct lc_mapping map;
	} copies[MOST_SLOTS];
};

/* That which is started or stopped. */
static struct volume *under_test;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return freopen("/dev/null", "w", stdout) ? 0 : -1;
}

/* --- the disks, and other things the start stands on ----------------------- */

static struct {
	struct medium *medium;
	struct block_device bdev[MEDIUM_DISKS];
	u64 nr_writes;
	u64 nr_outside;		/* reads and writes beyond the end */
	char said[256];		/* the last error */
} kernel;

/* The disks come up; nothing was read or written yet. */
static void kernel_boot(struct medium *medium)
{
	unsigned int disk;

	memset(&kernel, 0, sizeof(kernel));
	kernel.medium = medium;
	for (disk = 0; disk < MEDIUM_DISKS; disk++) {
		kernel.bdev[disk].bd_dev = 1 + disk;
		kernel.bdev[disk].bytes = (u64)medium->nr_blocks[disk] << LC_SLOT_SHIFT;
	}
}

void shim_log(int level, const char *format, va_list args)
{
	char text[sizeof(kernel.said)];

	vsnprintf(text, sizeof(text), format, args);
	if (level <= LOGLEVEL_ERR)
		memcpy(kernel.said, text, sizeof(text));
}

void shim_warn(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: WARN_ON(%s)\n", file, line, what);
	EXPECT(!"the kernel would have warned");
}

int lc_io_sync(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len)
{
	unsigned int disk = bdev - kernel.bdev;
	int ret;

	if (opf & REQ_OP_WRITE) {
		kernel.nr_writes++;
		ret = medium_write(kernel.medium, disk, address, data, len);
	} else {
		ret = medium_read(kernel.medium, disk, address, data, len);
	}
	kernel.nr_outside += !!ret;
	return ret;
}

int lc_io_flush(const struct lc_env *env, struct block_device *bdev)
{
	(void)env;
	(void)bdev;
	return 0;
}

static void flush_failed(void *arg)
{
	(void)arg;
	EXPECT(!"a superblock could not be written");
}

/* Nothing is written behind what the start found. */
u64 lc_lanes_used(struct lc_lanes *lanes)
{
	return lc_ring_head(lanes->ring);
}

/* --- the start and the stop ------------------------------------------------ */

static int open_devices(struct lc_volume *vol)
{
	static struct lc_lanes lanes;
	static struct lc_pool pool;
	const char *why;
	int ret;

	vol->c.env.sb = &vol->c.sb;
	vol->c.env.cache = &kernel.bdev[MEDIUM_SSD];
	vol->c.env.backing = &kernel.bdev[MEDIUM_HDD];
	/* Room for two superblocks is less than any format leaves. */
	if (vol->c.env.cache->bytes < LC_MARK_BYTES)
		return -EINVAL;
	vol->c.super = lc_super_create(&vol->c.env, &vol->c.sb, flush_failed, NULL);
	EXPECT(vol->c.super);
	ret = lc_super_load(vol->c.super, &why);
	if (ret)
		return ret;
	if (vol->c.env.cache->bytes < vol->c.sb.geo.cache_bytes ||
	    vol->c.env.backing->bytes < vol->c.sb.backing_bytes)
		return -EINVAL;
	vol->c.env.nr_blocks = (vol->c.sb.volume_sectors + LC_BLOCK_SECTORS - 1) / LC_BLOCK_SECTORS;
	lc_place_init(&vol->c.env.place, &vol->c.sb);
	vol->c.mark = lc_mark_create(&vol->c.env, lc_super_lock(vol->c.super), &vol->c.doubt);
	vol->c.index = lc_index_create(vol->c.sb.geo.nr_slots, vol->c.sb.geo.seg_slots);
	vol->c.ring = lc_ring_create(&vol->c.sb.geo);
	EXPECT(vol->c.mark && vol->c.index && vol->c.ring);
	lanes.ring = vol->c.ring;
	vol->c.lanes = &lanes;
	vol->c.pool = &pool;
	lc_warm_init(&vol->c.warm);
	vol->c.env.params.warm = 1;
	/* Most media have nothing that is believed. */
	if (vol->c.sb.generation & 4 && !vol->c.sb.warm_segment)
		vol->c.sb.warm_segment = 1;
	vol->c.nr_lanes = 1 + vol->c.sb.generation % 3;
	return 0;
}

/* Refused for what the tools cannot see: told from all else. */
int __real_lc_fingerprint_check(struct lc_env *env);
int __wrap_lc_fingerprint_check(struct lc_env *env);
int __wrap_lc_fingerprint_check(struct lc_env *env)
{
	return __real_lc_fingerprint_check(env) ? -EXDEV : 0;
}

int __real_lc_foreign_check(struct lc_env *env);
int __wrap_lc_foreign_check(struct lc_env *env);
int __wrap_lc_foreign_check(struct lc_env *env)
{
	return __real_lc_foreign_check(env) ? -EXDEV : 0;
}

int __real_lc_checkpoint_load(struct lc_cache *c);
int __wrap_lc_checkpoint_load(struct lc_cache *c);
int __wrap_lc_checkpoint_load(struct lc_cache *c)
{
	int ret = __real_lc_checkpoint_load(c);

	under_test->was_clean = !ret;
	return ret;
}

/* All is read, and the epoch not yet opened. */
void lc_alloc_start(struct lc_alloc *alloc, u64 segment, u64 next_seq)
{
	(void)alloc;
	EXPECT(!kernel.nr_writes && !kernel.nr_outside);
	under_test->next_segment = segment;
	under_test->next_seq = next_seq;
}

void lc_log_start(struct lc_log *log, u64 next_seq)
{
	(void)log;
	EXPECT(next_seq == under_test->next_seq);
}

u64 lc_log_last_seq(struct lc_log *log)
{
	(void)log;
	return under_test->next_seq - 1;
}

void lc_stats_sent(struct lc_stats *stats, bool ssd, blk_opf_t opf, u32 bytes)
{
	(void)stats;
	(void)ssd;
	(void)opf;
	(void)bytes;
}

void lc_health_end(struct lc_health *health)
{
	(void)health;
}

static int start(struct volume *v, struct medium *medium)
{
	int ret;

	memset(v, 0, sizeof(*v));
	under_test = v;
	kernel_boot(medium);
	ret = open_devices(&v->vol);
	if (!ret)
		ret = lc_start(&v->vol.c);
	if (ret)
		EXPECT(!kernel.nr_writes && !kernel.nr_outside);
	return ret;
}

static void nothing_work(struct work_struct *work)
{
	(void)work;
}

/* The scan after a crash, to its end: whatever the medium holds, only clean copies are added. */
static void warm_up(struct volume *v)
{
	struct workqueue_struct *wq = alloc_workqueue("scan", 0, 0);
	static struct work_struct nothing;
	struct lc_cache *c = &v->vol.c;
	u64 dirty = lc_index_dirty(c->index), cached = lc_index_cached(c->index), i;
	struct lc_warmup *warmup = lc_warmup_create(c);
	struct work_struct *work;

	under_test = v;
	EXPECT(wq && warmup);
	INIT_WORK(&nothing, nothing_work);
	c->verify_wq = wq;
	c->env.refill = (struct lc_kick){ wq, &nothing };
	/* As if the tail had passed all of it: then the scan takes what replay has left out. */
	c->warm.tail_seq = ~0ULL;
	lc_warmup_resume(warmup);
	while ((work = list_first_entry_or_null(&shim_works, struct work_struct, entry)))
		shim_run(work);
	EXPECT(!c->warm.scanning && !c->warm.left && !kernel.nr_outside);
	EXPECT(lc_index_dirty(c->index) == dirty);
	EXPECT(lc_index_cached(c->index) >= cached + c->warm.entered);
	for (i = 0; i < c->ring->nr; i++)
		EXPECT(!c->ring->segments[i].filling);
	lc_warmup_quiesce(warmup);
	lc_warmup_destroy(warmup);
	destroy_workqueue(wq);
}

static void stop(struct volume *v)
{
	under_test = v;
	lc_stop_clean(&v->vol.c);
	EXPECT(v->vol.c.sb.flags & LC_SB_CLEAN);
	EXPECT(!kernel.nr_outside);
}

static void forget(struct volume *v)
{
	lc_mark_destroy(v->vol.c.mark);
	lc_super_destroy(v->vol.c.super);
	lc_index_destroy(v->vol.c.index);
	lc_ring_destroy(v->vol.c.ring);
	lc_warm_end(&v->vol.c.warm);
	EXPECT(!shim_heap_used());
}

/* --- what was found -------------------------------------------------------- */

static u8 volume_mask(const struct lc_volume *vol, u64 block)
{
	u64 left = vol->c.sb.volume_sectors - block * LC_BLOCK_SECTORS;

	return left < LC_BLOCK_SECTORS ? (1u << left) - 1 : 0xff;
}

static void look_at_copy(struct lc_volume *vol, u32 slot, const struct copy *copy)
{
	struct lc_mapping map;
	u32 bucket;

	EXPECT(copy->block < vol->c.env.nr_blocks);
	EXPECT(!(copy->map.mask & copy->map.lost));
	EXPECT(!((copy->map.mask | copy->map.lost) & ~volume_mask(vol, copy->block)));
	bucket = lc_index_lock(vol->c.index, copy->block);
	EXPECT(lc_index_lookup(vol->c.index, bucket, copy->block, &map));
	EXPECT(map.slot == slot && map.mask == copy->map.mask && map.lost == copy->map.lost);
	lc_index_unlock(vol->c.index, bucket);
}

static void look_at_index(struct volume *v)
{
	u64 cached = 0, dirty = 0, lost = 0;
	struct lc_volume *vol = &v->vol;
	u32 slot;

	EXPECT(vol->c.sb.geo.nr_slots <= MOST_SLOTS);
	for (slot = 0; slot < vol->c.sb.geo.nr_slots; slot++) {
		struct copy *copy = &v->copies[slot];

		copy->used = lc_index_peek(vol->c.index, slot, &copy->block, &copy->map);
		if (!copy->used)
			continue;
		look_at_copy(vol, slot, copy);
		cached++;
		dirty += copy->map.dirty;
		lost += !!copy->map.lost;
	}
	EXPECT(cached == lc_index_cached(vol->c.index));
	EXPECT(dirty == lc_index_dirty(vol->c.index));
	EXPECT(lost == lc_index_lost(vol->c.index));
}

static void look_at_ends(const struct volume *v)
{
	const struct lc_sb *sb = &v->vol.c.sb;
	u64 half = 1ULL << 61;	/* of what can be read back */

	EXPECT(v->next_seq >= sb->tail_seq && sb->epoch_first_seq == v->next_seq);
	EXPECT(sb->epoch <= half && v->next_seq < half && v->next_segment < half);
	EXPECT(v->next_segment >= sb->tail_segment);
	EXPECT(v->next_segment - sb->tail_segment <= sb->geo.nr_segments);
	EXPECT(kernel.nr_writes == LC_SB_COPIES + (sb->mark_offset == LC_NO_MARK ? 0 : 4));
	EXPECT(sb->owner);
	EXPECT(!kernel.nr_outside);
}

static void begin(struct volume *v, struct medium *medium)
{
	v->error = start(v, medium);
	v->started = !v->error;
	if (!v->started) {
		EXPECT(!kernel.nr_writes && !kernel.nr_outside);
		return;
	}
	look_at_index(v);
	look_at_ends(v);
}

static void expect_same(const struct volume *a, const struct volume *b, bool dirty_too)
{
	u32 slot;

	EXPECT(a->next_seq == b->next_seq);
	for (slot = 0; slot < MOST_SLOTS; slot++) {
		const struct copy *x = &a->copies[slot], *y = &b->copies[slot];

		EXPECT(x->used == y->used);
		if (!x->used)
			continue;
		EXPECT(x->block == y->block && x->map.mask == y->map.mask &&
		       x->map.lost == y->map.lost);
		EXPECT(!dirty_too || x->map.dirty == y->map.dirty);
	}
}

/* Does the module agree with lc-check, if it was told the truth? */
static void expect_agreement(const struct volume *v, const struct verdict *verdict)
{
	if (verdict->nested || verdict->contradicts || verdict->beyond || verdict->lost)
		return;
	/* lc-check has not got the hard disk's content. */
	if (verdict->code == 0 && v->error != -EXDEV) {
		if (!v->started)
			fprintf(stderr, "error %d: %s\n", v->error, kernel.said);
		EXPECT(v->started);
	}
	if (v->started && !v->was_clean && verdict->has_log)
		EXPECT(v->next_seq == verdict->last_seq + 1);
}

/* Copies without a sector, which no writer makes, cannot be checkpointed. */
static bool has_empty_copy(const struct volume *v)
{
	u32 slot;

	for (slot = 0; slot < MOST_SLOTS; slot++) {
		if (v->copies[slot].used && !(v->copies[slot].map.mask | v->copies[slot].map.lost))
			return true;
	}
	return false;
}

/* What a life began with is the last that was possible: the next start may refuse. */
static bool numbers_end(const struct volume *v)
{
	return !lc_life_possible(v->vol.c.sb.epoch, v->next_seq, v->next_segment);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct volume first, second;
	static struct medium medium;
	struct input in = { data, size };
	u8 options = input_u8(&in);
	struct verdict verdict;

	input_u8(&in);
	medium_unpack(&medium, in.data, in.size);
	if (options & 2)
		toolcheck_repair(&medium);
	toolcheck(&medium, &verdict);
	begin(&first, &medium);
	expect_agreement(&first, &verdict);
	if (first.started && options & 1)
		stop(&first);
	forget(&first);
	if (!first.started || numbers_end(&first))
		return 0;
	begin(&second, &medium);
	/*
	 * No crash leaves records of a life that no superblock has begun.  A start refuses them
	 * if it comes to them.  The second one may come further: the first one may raise the limit
	 * of lanes, and with it how many stale segments are read at the end of the log.
	 */
	if (second.error == -ESTALE && verdict.later) {
		forget(&second);
		return 0;
	}
	if (options & 1 && !has_empty_copy(&first)) {
		EXPECT(second.started);
		expect_same(&first, &second, true);
	} else if (!first.was_clean && !verdict.contradicts) {
		EXPECT(second.started);
		expect_same(&first, &second, false);
	}
	if (second.started)
		warm_up(&second);
	forget(&second);
	return 0;
}
