// SPDX-License-Identifier: GPL-2.0-only
/*
 * Repairs of lc-check --repair that change single blocks: superblock copies,
 * mark copies, the clean flag, and headers whose slots are bad.
 *
 * Each write is one 4 KiB block, made durable before the next.  A crash between two leaves less
 * damage than before, and what the next lc-check --repair plans from there ends in the same
 * state; a block torn by one is found damaged by it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "plan.h"
#include "repair.h"
#include "text.h"
#include "util.h"

void repair_say(struct check *c, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = shown_format(fmt, args);
	va_end(args);
	check_say(c, "REPAIR: %s", text);
	if (!c->steps) {
		free(text);
		return;
	}
	c->steps->line = xrealloc(c->steps->line, c->steps->nr + 1, sizeof(*c->steps->line));
	c->steps->line[c->steps->nr++] = text;
}

static int forget_warm(struct check *c);

int repair_write(struct check *c, const struct device *dev, u64 address, const void *block)
{
	int ret = dev == c->ssd ? forget_warm(c) : 0;

	if (ret)
		return ret;
	c->nr_writes++;
	ret = device_write(dev, address, block, LC_SLOT_BYTES);
	return ret ? ret : device_sync(dev);
}

/* Is it time to do the planned repairs, before more are planned?  Each write leaves less damage. */
static bool plan_full(const struct check *c)
{
	return c->ssd->plan && c->ssd->plan->nr > PLAN_MOST;
}

/* One copy of the superblock. */
static int write_copy(struct check *c, unsigned int copy)
{
	c->nr_writes++;
	return image_write_sb(c->ssd, &c->sb, copy);
}

/*
 * The third copy first: if it says more than a front one, a repair was interrupted, and the next
 * one goes on (check_in_step()).  The copy that is believed last: the update counts when a front
 * copy has it, and a torn write must not take the only good one.
 */
static int write_all_copies(struct check *c)
{
	unsigned int order[LC_SB_COPIES] = { 2, c->img.best ^ 1, c->img.best };
	unsigned int i;
	int ret = 0;

	for (i = 0; i < LC_SB_COPIES && !ret; i++)
		ret = write_copy(c, order[i]);
	return ret;
}

/*
 * What a repair writes to the log may make it whole although something is gone.  So the kernel is
 * told first to bring no clean copies back after a crash (WS3).
 */
static int forget_warm(struct check *c)
{
	if (!c->sb.warm_segment)
		return 0;
	repair_say(c, "clean copies will not be looked for after a crash");
	c->sb.warm_segment = 0;
	c->sb.sb_seq++;
	return write_all_copies(c);
}

/* After a clean stop: the mark is of the life that ends (T5). */
static void begin_life(struct lc_sb *sb)
{
	lc_replay_next_life(sb, sb->next_seq);
	if (!sb->owner)
		return;
	sb->mark_owner = sb->owner;
	if (random_bytes(&sb->owner, sizeof(sb->owner)))
		sb->owner = 0;
}

int repair_superblocks(struct check *c)
{
	unsigned int i;
	int ret = 0;

	/* The third copy is not up to date. */
	if (c->img.best == 2)
		c->sb.warm_segment = 0;

	if (c->forked) {
		/* Nothing is known of owners any more, until the next start. */
		c->sb.owner = 0;
		c->sb.mark_owner = 0;
		c->sb.warm_segment = 0;
		c->sb.sb_seq++;
		repair_say(c, "this copy of the cache is believed, whatever was done with another one");
		return write_all_copies(c);
	}
	if (c->bad_checkpoint) {
		/*
		 * Without the flag the kernel replays the log.  What the checkpoint
		 * alone knew are copies of blocks that are on the hard disk too.  And
		 * that all records are durable: a life that begins behind them says so
		 * from now on, else a damaged one would pass for torn by a crash.
		 */
		begin_life(&c->sb);
		c->sb.flags &= ~LC_SB_CLEAN;
		c->sb.incompat &= ~LC_INCOMPAT_PROMOTED;
		c->sb.warm_segment = 0;
		c->sb.sb_seq++;
		repair_say(c, "the checkpoint is given up, the log will be replayed");
		return write_all_copies(c);
	}
	for (i = 0; i < LC_SB_COPIES && !ret; i++) {
		if (!c->bad_copy[i])
			continue;
		repair_say(c, "superblock copy %u is rewritten from copy %d", i,
			  c->img.best);
		ret = write_copy(c, i);
	}
	return ret;
}

int repair_marks(struct check *c)
{
	const struct lc_mark_info *mark = marks_best(&c->marks);
	struct lc_mark raw;
	unsigned int i;
	int ret = 0;

	if (!c->hdd || !mark || !mark_belongs(mark, &c->sb))
		return 0;
	for (i = 0; i < 2 && !ret; i++) {
		if (!c->bad_mark[i])
			continue;
		repair_say(c, "mark copy %u on %s is rewritten", i, c->hdd->path);
		lc_mark_encode(mark, c->sb.csum_type, c->sb.mark_offset, i, &raw);
		ret = repair_write(c, c->hdd, lc_format_mark_address(c->sb.mark_offset, i), &raw);
	}
	return ret;
}

/* Set one entry of a header: no sector valid, those that were are lost. */
static void lose_entry(struct check *c, struct lc_record_header *raw,
		       const struct lc_record_info *info, const struct bad_slot *bad)
{
	u64 at = lc_format_log_address(&c->sb.geo, info->segment,
				       info->first_slot + LC_HEADER_SLOTS + bad->entry);
	struct lc_entry_info e;
	u8 slot[LC_SLOT_BYTES];

	lc_entry_decode(raw, bad->entry, &e);
	repair_say(c, "sectors of block %llu in record %llu become lost", e.block,
		  info->seq);
	e.lost |= e.mask;
	e.mask = 0;
	/* No sector of it is valid, but a sum over the whole slot must match its content. */
	if (!bad->unreadable && !device_read(c->ssd, at, slot, sizeof(slot)))
		e.csum = lc_format_slot_csum(&c->sb, e.block, slot);
	lc_entry_encode(raw, bad->entry, &e);
}

int repair_unread(struct check *c)
{
	static const u8 empty[LC_SLOT_BYTES];
	int ret = 0;
	size_t i;

	for (i = 0; i < c->nr_unread && !ret && !plan_full(c); i++) {
		const struct unread_slot *u = &c->unread[i];

		repair_say(c, "slot %u of segment %llu is written anew, empty", u->slot,
			  u->segment);
		ret = repair_write(c, c->ssd, lc_format_log_address(&c->sb.geo, u->segment, u->slot),
				   empty);
	}
	return ret;
}

int repair_slots(struct check *c)
{
	size_t i, k;
	int ret = 0;

	for (i = 0; i < c->nr_bad && !ret && !plan_full(c); i = k) {
		const struct lc_record_info *info = &c->scan.found[c->bad[i].record];
		struct lc_record_header raw;
		struct lc_record_info again;
		const char *why;

		ret = scan_read_header(c->ssd, &c->sb, info->segment, info->first_slot, &raw,
				       &again, &why);
		if (ret) {
			complain(c->ssd->path, "record %llu: %s; run lc-check again", info->seq,
				 why);
			return ret;
		}
		for (k = i; k < c->nr_bad && c->bad[k].record == c->bad[i].record; k++)
			lose_entry(c, &raw, info, &c->bad[k]);
		lc_record_seal(&raw, &c->sb, &again);
		ret = repair_write(c, c->ssd, lc_format_log_address(&c->sb.geo, info->segment,
								    info->first_slot), &raw);
	}
	return ret;
}
