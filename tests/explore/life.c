// SPDX-License-Identifier: GPL-2.0-only
/*
 * One life of the volume: the module's own start and stop, and the actions between.
 *
 * lc_volume_setup() and lc_volume_resume() read the superblock, recover and open the epoch;
 * lc_volume_postsuspend() stops cleanly.  They are the module's, unmodified, and so is all
 * they call but what standin.h names.  When they do I/O they end up here, in the functions of
 * io.h.  A write or FLUSH that they wait for is a command like any other: a task that waits, in
 * wait_event() or shim_wait(), goes on doing actions, and if there are no more, the life ends in
 * the middle of it.
 */
#include "action.h"
#include "bio/promote.h"
#include "history.h"
#include "store/io.h"
#include "life.h"
#include "log/log.h"
#include "life/suspend.h"
#include "life/volume.h"
#include "store/ring.h"
#include "standin.h"

#define MIB	(1ULL << 20)
#define MOST_DISK_PAGES \
	((4 * MIB + (MAX_SEGMENTS + 2) * LC_SEGMENT_BYTES_MIN) >> LC_SLOT_SHIFT)

static struct standin the_standin;
static struct dm_target target;

/* --- the call backs that sleep ------------------------------------------------ */

/* One more action: time passes. */
void life_tick(struct life *life)
{
	life->now++;
	shim_now = (u64)life->now * world->params.tick * 1000 + life->idle_ns;
}

/* The next action, or the end of the life.  In a start there is but one thing to wait for. */
static bool next_action(struct life *life)
{
	struct action action;

	if (life->phase == PHASE_START) {
		life_tick(life);
		cmd_complete(life, &life->cmds[life->flying[0]]);
		return true;
	}
	if (life->nr_actions == MAX_ACTIONS || !world->source(life, &action))
		return false;
	life->actions[life->nr_actions++] = action;
	action_do(life, &action);
	return true;
}

/* Code of the module sleeps that is no task: everybody else goes on. */
void shim_wait(void)
{
	if (!next_action(world->life))
		longjmp(world->cut, 1);
}

static int cmd_wait(const struct cmd *cmd)
{
	while (cmd->completed == NEVER)
		shim_sleep(cmd, false);
	return cmd->failed ? -EIO : 0;
}

static int flush_told(enum disk_id disk, void (*told)(void *arg), void *arg)
{
	bool fails = disk == HDD && world->life->phase == PHASE_RUN;
	struct cmd *cmd = cmd_new(world->life, disk, fails ? OWNER_WRITEBACK_FLUSH : OWNER_SYNC);

	cmd->flush = true;
	cmd->told = told;
	cmd->told_arg = arg;
	return cmd_wait(cmd);
}

static int flush_and_wait(enum disk_id disk)
{
	return flush_told(disk, NULL, NULL);
}

/*
 * Marks, superblocks, and marks again are all a start may write; of front copies and marks either
 * first.
 */
static void check_start_write(enum disk_id disk, u64 address)
{
	const struct lc_sb *sb = &world->vol->c.sb;
	u32 n = world->life->nr_meta++;
	u32 marks = sb->mark_offset != LC_NO_MARK ? 2 : 0;
	bool super = n >= marks && n < marks + LC_SB_COPIES;
	u64 a, b;

	if (super) {
		a = lc_format_sb_address(&sb->geo, n - marks);
		b = n - marks < 2 ? lc_format_sb_address(&sb->geo, !(n - marks)) : a;
	} else {
		a = lc_format_mark_address(sb->mark_offset, 0);
		b = lc_format_mark_address(sb->mark_offset, 1);
	}
	if (n >= marks + LC_SB_COPIES + marks || disk != (super ? SSD : HDD) ||
	    (address != a && address != b))
		trouble(BAD_MEDIA, "the start wrote at byte %llu of the %s", address,
			disk == SSD ? "SSD" : "HDD");
}

static void write_and_wait(enum disk_id disk, u64 address, const void *data, u32 len, bool fua)
{
	struct life *life = world->life;
	bool native = fua && (disk == HDD ? !world->params.hdd_flush : world->params.fua);
	struct cmd *cmd = cmd_new(life, disk, OWNER_SYNC);
	u32 i;

	cmd->fua = native;
	for (i = 0; i < len / LC_SLOT_BYTES; i++) {
		struct dpage *page = dpage_new();

		memcpy(page->bytes, data + i * LC_SLOT_BYTES, LC_SLOT_BYTES);
		memset(page->tags, 0xff, sizeof(page->tags));
		cmd_add_piece(life, cmd, (address >> LC_SLOT_SHIFT) + i, 0xff, page);
	}
	cmd_wait(cmd);
	/* The block layer does the same for a disk without FUA. */
	if (fua && !native)
		flush_and_wait(disk);
}

/* Of writeback: its reads, and writes to the HDD, perhaps of a few sectors. */
static int task_io(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len)
{
	struct bio_vec vec;
	struct bio bio;

	bio_init(&bio, bdev, &vec, 1, opf);
	bio.bi_iter.bi_sector = address >> SECTOR_SHIFT;
	bio_add_page(&bio, virt_to_page(data), len, 0);
	bio_wait(&bio);
	return blk_status_to_errno(bio.bi_status);
}

int lc_io_sync(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len)
{
	enum disk_id disk = bdev - world->bdev;
	struct life *life = world->life;
	u32 i, n;

	if (shim_in_task() && (disk == HDD || !(opf & REQ_OP_WRITE)))
		return task_io(bdev, opf, address, data, len);
	if (!(opf & REQ_OP_WRITE)) {
		for (i = 0; i < len; i += n) {
			const struct dpage *page = image_page(&life->view[disk],
							      (address + i) >> LC_SLOT_SHIFT);
			u32 offset = (address + i) & (LC_SLOT_BYTES - 1);

			n = min_t(u32, len - i, LC_SLOT_BYTES - offset);
			if (page->tags[0] == TAG_UNREADABLE)
				return -EIO;
			memcpy(data + i, page->bytes + offset, n);
		}
		return 0;
	}
	if (life->phase == PHASE_START)
		check_start_write(disk, address);
	if (opf & REQ_PREFLUSH)
		flush_and_wait(disk);
	write_and_wait(disk, address, data, len, opf & REQ_FUA);
	return 0;
}

int lc_io_flush(const struct lc_env *env, struct block_device *bdev)
{
	(void)env;
	return flush_and_wait(bdev - world->bdev);
}

int lc_io_flush_told(const struct lc_env *env, struct block_device *bdev,
		     void (*failed)(void *arg), void *arg)
{
	(void)env;
	return flush_told(bdev - world->bdev, failed, arg);
}

void shim_log(int level, const char *format, va_list args)
{
	if (!world->verbose)
		return;
	printf("  kernel %s: ", level <= LOGLEVEL_ERR ? "error" :
	       level <= LOGLEVEL_WARNING ? "warning" : "info");
	vprintf(format, args);
	printf("\n");
}

void shim_warn(const char *what, const char *file, int line)
{
	trouble(BAD_WARNING, "WARN_ON(%s) at %s:%d", what, file, line);
}

/* --- format -------------------------------------------------------------------- */

static void format_sb(struct lc_sb *sb)
{
	const struct params *p = &world->params;

	if (formatted_sb(sb, 2 * MIB + (p->segments + 1ULL) * LC_SEGMENT_BYTES_MIN,
			 LC_SEGMENT_BYTES_MIN)) {
		fprintf(stderr, "explore: impossible geometry\n");
		exit(2);
	}
	world->first_block = p->layout == LAYOUT_MOVED_HEAD ?
			     HEAD_BLOCKS - min(p->head, p->blocks) : 0;
	world->end_block = world->first_block + p->blocks;
	formatted_lay_out(sb, p->layout, (u64)world->end_block * LC_BLOCK_SECTORS);
	/* The UUIDs stay: only the generation tells one format from the next. */
	sb->generation = ++world->generation;
	sb->lane_limit = p->lane_limit;
	sb->csum_type = p->csum;
}

static void *format_page(struct life *life, enum disk_id disk, u64 address)
{
	struct dpage *page = dpage_new();

	memset(page->tags, 0xff, sizeof(page->tags));
	life->base[disk].pages[address >> LC_SLOT_SHIFT] = page;
	return page->bytes;
}

/**
 * format_volume() - what lc-format leaves
 * @life: its disks are formatted; the log of an earlier format may be there and stays
 */
void format_volume(struct life *life)
{
	struct lc_sb *sb = &world->format;
	struct lc_mark_info mark;
	u32 i;

	format_sb(sb);
	world->disk_pages[SSD] = sb->geo.cache_bytes >> LC_SLOT_SHIFT;
	world->disk_pages[HDD] = sb->backing_bytes >> LC_SLOT_SHIFT;
	world->data_page = sb->data_offset >> LC_SLOT_SHIFT;
	memset(life->base[HDD].pages, 0, world->disk_pages[HDD] * sizeof(void *));
	for (i = 0; i < NR_DISKS; i++) {
		world->bdev[i].bd_dev = 1 + i;
		world->bdev[i].bytes = (u64)world->disk_pages[i] << LC_SLOT_SHIFT;
		world->dm_dev[i].bdev = &world->bdev[i];
		/* As it tells those above it. */
		world->bdev[i].fua = i == HDD || world->params.fua || world->params.stacked;
		world->bdev[i].write_through = i == SSD && world->params.through;
		world->bdev[i].max_segments = world->params.fua_slots;
	}
	for (i = 0; i < LC_SB_COPIES; i++)
		lc_sb_encode(sb, i, format_page(life, SSD, lc_format_sb_address(&sb->geo, i)));
	formatted_mark(sb, &mark);
	for (i = 0; i < 2 && sb->mark_offset != LC_NO_MARK; i++)
		lc_mark_encode(&mark, sb->csum_type, sb->mark_offset, i,
			       format_page(life, HDD,
					   lc_format_mark_address(sb->mark_offset, i)));
}

/* Room for the largest disks, once. */
void life_images_alloc(void)
{
	u32 i, d;

	for (i = 0; i < ARRAY_SIZE(world->past); i++) {
		for (d = 0; d < NR_DISKS; d++)
			world->past[i].disks[d].pages = calloc(MOST_DISK_PAGES, sizeof(void *));
	}
	for (i = 0; i < 2; i++) {
		for (d = 0; d < NR_DISKS; d++) {
			world->lives[i].base[d].pages = calloc(MOST_DISK_PAGES, sizeof(void *));
			world->lives[i].view[d].pages = calloc(MOST_DISK_PAGES, sizeof(void *));
		}
	}
}

/**
 * life_remember() - a life is going to be lived on: keep a copy of its disks as they were before
 * @life: the life, started
 *
 * Not with what a warm crash left in a cache: there is no copy of that.
 */
void life_remember(const struct life *life)
{
	struct past *past = &world->past[world->nr_past];
	u32 d;

	if (life->carried || world->nr_past == ARRAY_SIZE(world->past))
		return;
	world->nr_past++;
	past->sb = world->vol->c.sb;
	for (d = 0; d < NR_DISKS; d++)
		memcpy(past->disks[d].pages, life->base[d].pages,
		       world->disk_pages[d] * sizeof(void *));
}

/* Disks full of zeros. */
void life_images_clear(struct life *life)
{
	u32 d;

	for (d = 0; d < NR_DISKS; d++)
		memset(life->base[d].pages, 0, MOST_DISK_PAGES * sizeof(void *));
}

/* --- the life itself -------------------------------------------------------------- */

/**
 * life_prepare() - a life is about to begin on the disks in its base
 * @life: the life; commands a warm crash carried over may be added then
 */
void life_prepare(struct life *life)
{
	u32 d;

	life->now = 0;
	life->phase = PHASE_START;
	life->nr_actions = 0;
	life->nr_cmds = 0;
	life->nr_done = 0;
	life->nr_flying = 0;
	life->nr_pieces = 0;
	life->last_submit = 0;
	life->last_ordinal = 0;
	life->carried = false;
	life->idle_ns = 0;
	life->started = NEVER;
	life->left = NEVER;
	life->nr_acks = 0;
	life->nr_kept = 0;
	life->nr_meta = 0;
	life->clean = true;	/* until recovery looks at records: judge.c */
	for (d = 0; d < NR_DISKS; d++)
		memcpy(life->view[d].pages, life->base[d].pages,
		       world->disk_pages[d] * sizeof(void *));
}

static void standin_reset(void)
{
	struct standin *s = &the_standin;
	u32 i;

	memset(s, 0, offsetof(struct standin, bios));
	memset(s->known, 0xff, sizeof(s->known));
	for (i = 0; i < MAX_BIOS; i++)
		s->bios[i].used = false;
	world->standin = s;
}

/* The volume of the life before is forgotten as in a crash: nobody tells it. */
static void forget_volume(void)
{
	world->vol = NULL;
	shim_heap_reset();
	shim_works_reset();
}

static int start(struct life *life)
{
	static const struct lc_params params = {
		.high_watermark = 100, .low_watermark = 99, .idle_seal_ms = 1000, .writeback = 1,
		/* The path says what fails, and no SSD fails for ever. */
		.ssd_patience_ms = 1000000,
	};
	struct lc_params mine = params;
	const char *error = NULL;
	struct lc_volume *vol;
	int ret;

	mine.buffers = world->params.buffers;
	mine.writeback_batch = world->params.batch;
	mine.writeback_depth = world->params.depth;
	mine.warm = world->params.rescan != 0;
	mine.read_cache = world->params.cache;
	target.len = world->format.volume_sectors;
	vol = lc_volume_alloc(NULL, world->dm_dev[HDD].bdev, world->dm_dev[SSD].bdev);
	ret = vol ? lc_volume_setup(vol, &target, &mine, &error) : -ENOMEM;
	if (ret) {
		say("constructor: %s", error);
		return ret;
	}
	world->vol = vol;
	/* As target.c does. */
	ret = mine.read_cache ? lc_promote_enable(vol->promote) : 0;
	if (ret)
		return ret;
	ret = lc_volume_resume(vol, NULL, &mine, NULL);
	if (ret)
		return ret;
	/* Nobody reads. */
	vol->c.env.last_hdd_read = jiffies - HZ;
	life->started = life->now;
	life->phase = PHASE_RUN;
	life->start_op = world->nr_ops;
	life->start_seq = last_seq();
	life->tail_seq = vol->c.sb.tail_seq;
	life->tail_segment = vol->c.sb.tail_segment;
	life->next_segment = lc_ring_head(vol->c.ring);
	say("%6u started: epoch %llu, records to %llu, tail %llu in segment %llu, next segment %llu",
	    life->now, vol->c.sb.epoch, life->start_seq, life->tail_seq, life->tail_segment,
	    life->next_segment);
	return 0;
}

/**
 * life_start() - recovery, and opening the epoch
 * @life: prepared; becomes world->life
 *
 * Return: what the module said.
 */
int life_start(struct life *life)
{
	forget_volume();
	standin_reset();
	world->life = life;
	/* The clock of each life is its own, or a path is not repeated. */
	shim_now = 0;
	return start(life);
}

/* Actions until there are no more. */
void life_go_on(struct life *life)
{
	shim_kept_written();
	if (setjmp(world->cut))
		return;
	while (next_action(life))
		;
}

/* The device is removed. */
void life_stop_clean(void)
{
	struct life *life = world->life;

	life->phase = PHASE_STOP;
	lc_volume_postsuspend(world->vol, true);
	life->phase = PHASE_ENDED;
}

/* All operations up to @op, in records up to @seq, were said to be durable. */
void life_ack(u64 seq, u32 op)
{
	struct life *life = world->life;

	if (life->nr_acks == MAX_ACKS) {
		fprintf(stderr, "explore: too many FLUSHes\n");
		exit(2);
	}
	say("%6u all up to write %u, record %llu, acknowledged", life->now, op, seq);
	life->acks[life->nr_acks++] = (struct ack) { .time = life->now, .op = op, .seq = seq };
}
