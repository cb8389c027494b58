// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verification of a cache device: superblocks, mark, then either the checkpoint
 * (after a clean stop) or the log as replay would see it.
 *
 * A record whose data is torn above the highest durable seq is no damage but
 * the end of the log: nobody was promised those writes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "check.h"
#include "checkpoint.h"
#include "memory.h"
#include "pairing.h"
#include "util.h"

static bool same_format(const struct lc_sb *a, const struct lc_sb *b)
{
	return a->generation == b->generation && !memcmp(a->cache_uuid, b->cache_uuid, 16) &&
	       !memcmp(a->volume_uuid, b->volume_uuid, 16) &&
	       !memcmp(&a->geo, &b->geo, sizeof(a->geo)) &&
	       a->volume_sectors == b->volume_sectors && a->data_offset == b->data_offset &&
	       a->mark_offset == b->mark_offset && a->csum_type == b->csum_type;
}

/*
 * Is a copy something else than damaged?  What is whole, or says that it is of a newer version,
 * was written as it is, by software that knows more: nothing here may replace it.
 */
static bool is_beyond_us(int err)
{
	return err == -EOPNOTSUPP || err == -ERANGE;
}

/*
 * Front copies one update apart are what a crash leaves; the next start writes both.  Unless
 * the third one, which is written last by all but a repair, has that update already.
 */
static void check_in_step(struct check *c)
{
	unsigned int old = c->img.best ^ 1;
	const struct lc_sb *copy = c->img.copy;

	if (c->img.err[0] || c->img.err[1] || copy[0].sb_seq == copy[1].sb_seq)
		return;
	check_say(c, "Superblock copies 0 and 1 are one update apart (%llu, %llu): "
		  "a crash between them; the newer one counts.",
		  copy[0].sb_seq, copy[1].sb_seq);
	if (c->img.err[2] || copy[2].sb_seq != copy[old ^ 1].sb_seq)
		return;
	check_damage(c, "superblock copy %u is behind the two others: a repair was interrupted",
		     old);
	c->bad_copy[old] = true;
}

static void check_superblocks(struct check *c)
{
	const struct lc_sb *best = image_sb(&c->img);
	unsigned int i;

	for (i = 0; i < LC_SB_COPIES; i++) {
		if (c->img.err[i])
			check_damage(c, "superblock copy %u: %s", i, c->img.why[i]);
		else if (best && !same_format(&c->img.copy[i], best))
			check_damage(c, "superblock copy %u is of another format run", i);
		else
			continue;
		c->bad_copy[i] = true;
		if (!is_beyond_us(c->img.err[i]))
			continue;
		check_say(c, "Nothing is changed: copy %u may be of a newer dm-lc, whose tools "
			  "are needed.", i);
		c->beyond_repair = true;
	}
	if (!best) {
		c->beyond_repair = true;
		check_say(c, "Neither front copy is good, so this cache can be neither started nor "
			  "repaired.  If lc-format was interrupted, or nothing here is needed, "
			  "format it anew: lc-format says which --force it takes.");
		if (!c->img.err[2])
			check_say(c, "The third copy tells who it is: cache %s, %s, but is too old "
				  "to start from.", uuid_text(c->img.copy[2].cache_uuid),
				  size_text(c->img.copy[2].volume_sectors << 9));
		return;
	}
	c->sb = *best;
	check_in_step(c);
}

static void say_lost(const struct check *c, const struct lc_mark_info *mark)
{
	u32 i;

	if (mark->nr_lost == LC_MARK_LOST_TOO_MANY) {
		check_say(c, "The mark records sectors as lost, but not which: they were too many to "
			  "list, or could not be told.  All of the volume is suspect.");
		return;
	}
	for (i = 0; i < mark->nr_lost; i++)
		check_say(c, "The mark records as lost: sectors %llu-%llu", mark->lost[i].sector,
			  mark->lost[i].sector + mark->lost[i].nr_sectors - 1);
}

/* What was drained since is not on it (S7). */
static void old_disk(struct check *c, const struct lc_mark_info *mark, u64 seen)
{
	check_damage(c, "%s is an old copy: its mark is of life %llu, the disk of this cache was "
		     "used in life %llu; attach that disk", c->hdd->path, mark->epoch, seen);
	c->beyond_repair = true;
}

static void judge_mark(struct check *c, const struct lc_mark_info *mark)
{
	switch (mark ? lc_pairing_check(&c->sb, mark) : LC_PAIRING_FOREIGN) {
	case LC_PAIRING_FOREIGN:
		check_damage(c, "%s does not bear the mark of this cache", c->hdd->path);
		break;
	case LC_PAIRING_INTERRUPTED:
		check_damage(c, "%s: %s", c->hdd->path, attach_text(mark, c->hdd->path));
		break;
	case LC_PAIRING_ABANDONED:
		check_damage(c, "%s went on without this cache since life %llu: what the cache "
			     "holds is out of date", c->hdd->path, mark->epoch);
		break;
	case LC_PAIRING_OLD_CACHE:
		check_damage(c, "%s has seen life %llu of the volume, the cache only life %llu: "
			     "an old copy, or a lost superblock update", c->hdd->path, mark->epoch,
			     c->sb.epoch);
		break;
	case LC_PAIRING_OLD_DISK:
		old_disk(c, mark, lc_pairing_seen(&c->sb));
		return;
	case LC_PAIRING_FORKED:
		check_damage(c, "%s was used with a copy of this cache, which went on without this "
			     "one: its mark is of life %llu and owner %llx, the superblock of life "
			     "%llu and owner %llx, after %llx", c->hdd->path, mark->epoch,
			     mark->owner, c->sb.epoch, c->sb.owner, c->sb.mark_owner);
		c->forked = c->this_copy;
		if (c->forked)
			return;
		break;
	default:
		return;
	}
	c->beyond_repair = true;
}

static int check_mark(struct check *c)
{
	const struct lc_mark_info *mark;
	unsigned int i;
	int ret;

	if (!c->hdd)
		return 0;
	if (c->hdd->bytes < c->sb.backing_bytes) {
		check_damage(c, "%s has %llu bytes but had %llu when it was formatted",
			     c->hdd->path, c->hdd->bytes, c->sb.backing_bytes);
		c->beyond_repair = true;
		return 0;
	}
	if (c->sb.mark_offset == LC_NO_MARK)
		return 0;
	ret = marks_read(&c->marks, c->hdd, c->sb.mark_offset);
	if (ret)
		return ret;
	mark = marks_best(&c->marks);
	for (i = 0; i < 2; i++) {
		if (!c->marks.err[i])
			continue;
		c->bad_mark[i] = true;
		check_damage(c, "mark copy %u on %s: %s", i, c->hdd->path, c->marks.why[i]);
		if (!is_beyond_us(c->marks.err[i]))
			continue;
		check_say(c, "Nothing is changed: the mark may be of a newer dm-lc, whose tools "
			  "are needed.");
		c->beyond_repair = true;
	}
	judge_mark(c, mark);
	if (mark)
		say_lost(c, mark);
	return 0;
}

static void add_bad_slot(struct check *c, size_t record, unsigned int entry, bool unreadable)
{
	c->bad = xrealloc(c->bad, c->nr_bad + 1, sizeof(*c->bad));
	c->bad[c->nr_bad++] = (struct bad_slot){ record, entry, unreadable };
}

/* What the kernel refuses to start from, and who does not know it cannot mend. */
static void check_known(struct check *c)
{
	const struct scan_bad *bad = scan_unknown(&c->scan);

	if (!bad)
		return;
	check_damage(c, "segment %llu, slot %u: %s: a record of a newer dm-lc, whose tools and "
		     "module it needs", bad->segment, bad->slot, bad->why);
	c->beyond_repair = true;
}

static void check_entry_known(struct check *c, const struct lc_record_info *info,
			      const struct lc_entry_info *e)
{
	if (e->type == LC_ENTRY_NONE || e->type == LC_ENTRY_DATA ||
	    e->type == LC_ENTRY_RANGE_TOMBSTONE)
		return;
	check_damage(c, "record %llu (segment %llu, slot %u) has an entry this version never "
		     "writes: type %u", info->seq, info->segment, info->first_slot, e->type);
	c->beyond_repair = true;
}

/* The newest word on these blocks replaces all older ones. */
static void apply_entry(struct check *c, const struct lc_entry_info *e, bool bad)
{
	if (e->type == LC_ENTRY_NONE)
		return;
	lost_remove(&c->lost, e->block * LC_BLOCK_SECTORS, e->nr_blocks * LC_BLOCK_SECTORS);
	if (e->type == LC_ENTRY_RANGE_LOST)
		lost_add(&c->lost, e->block * LC_BLOCK_SECTORS, e->nr_blocks * LC_BLOCK_SECTORS);
	else
		lost_add_mask(&c->lost, e->block, e->lost | (bad ? e->mask : 0));
}

/* Data slots of a record; unreadable[i] is set where a slot cannot be read. */
static u8 *read_slots(struct check *c, const struct lc_record_info *info, bool *unreadable)
{
	u64 at = lc_format_log_address(&c->sb.geo, info->segment,
				       info->first_slot + LC_HEADER_SLOTS);
	u8 *slots = xcalloc(info->nr_slots + 1, LC_SLOT_BYTES);
	unsigned int i;

	c->nr_slots_read += info->nr_slots;
	if (!device_read(c->ssd, at, slots, (size_t)info->nr_slots * LC_SLOT_BYTES))
		return slots;
	for (i = 0; i < info->nr_slots; i++)
		unreadable[i] = device_read(c->ssd, at + (u64)i * LC_SLOT_BYTES,
					    slots + (size_t)i * LC_SLOT_BYTES, LC_SLOT_BYTES);
	return slots;
}

static void add_unread(struct check *c, u64 segment, u32 slot, const char *so)
{
	check_damage(c, "slot %u of segment %llu cannot be read: %s", slot, segment, so);
	c->unread = xrealloc(c->unread, c->nr_unread + 1, sizeof(*c->unread));
	c->unread[c->nr_unread++] = (struct unread_slot){ segment, slot };
}

/* Is what was read of a slot what its entry says, or if not, after reading it again? */
static bool is_whole(struct check *c, const struct lc_record_info *info, unsigned int i,
		     const struct lc_entry_info *e, u8 *data)
{
	u64 at = lc_format_log_address(&c->sb.geo, info->segment,
				       info->first_slot + LC_HEADER_SLOTS + i);

	return lc_format_slot_csum(&c->sb, e->block, data) == e->csum ||
	       !scan_slot(c->ssd, &c->sb, at, e->block, e->csum, data);
}

/* Verify one record of the run; false if it is torn and ends the run. */
static bool check_record(struct check *c, size_t index)
{
	const struct lc_record_info *info = &c->scan.found[index];
	bool may_be_torn = info->seq > c->scan.run.durable_seq;
	bool unreadable[LC_RECORD_ENTRIES] = { false }, bad[LC_RECORD_ENTRIES] = { false };
	struct lc_record_header raw;
	struct lc_record_info again;
	struct lc_entry_info e;
	const char *why;
	bool torn = false;
	unsigned int i;
	u8 *slots;

	if (scan_read_header(c->ssd, &c->sb, info->segment, info->first_slot, &raw, &again, &why))
		return false;	/* changed under us; the rescan after a repair tells */
	slots = read_slots(c, info, unreadable);
	for (i = 0; i < info->nr_slots; i++) {
		lc_entry_decode(&raw, i, &e);
		/* Without valid sectors the slot's contents do not matter. */
		if (e.type != LC_ENTRY_DATA || !e.mask) {
			if (unreadable[i])
				add_unread(c, info->segment,
					   info->first_slot + LC_HEADER_SLOTS + i,
					   "it holds nothing that counts");
			continue;
		}
		bad[i] = unreadable[i] ||
			 !is_whole(c, info, i, &e, slots + (size_t)i * LC_SLOT_BYTES);
		torn |= bad[i] && may_be_torn;
		/* Torn or not, nobody knows; the kernel does not guess. */
		if (unreadable[i] && may_be_torn)
			add_unread(c, info->segment, info->first_slot + LC_HEADER_SLOTS + i,
				   "a start takes it as torn by a crash");
	}
	free(slots);
	for (i = 0; i < info->nr_entries && !torn; i++) {
		lc_entry_decode(&raw, i, &e);
		check_entry_known(c, info, &e);
		apply_entry(c, &e, bad[i]);
		if (!bad[i])
			continue;
		check_damage(c, "slot %u of segment %llu (record %llu, sectors %llu-%llu): %s",
			     info->first_slot + LC_HEADER_SLOTS + i, info->segment, info->seq,
			     e.block * LC_BLOCK_SECTORS,
			     e.block * LC_BLOCK_SECTORS + LC_BLOCK_SECTORS - 1,
			     unreadable[i] ? "unreadable" : "its checksum does not match");
		add_bad_slot(c, index, i, unreadable[i]);
	}
	return !torn;
}

static void check_data(struct check *c)
{
	size_t *order, nr, i;

	order = scan_by_seq(&c->scan, &nr);
	for (i = 0; i < nr; i++) {
		u64 seq = c->scan.found[order[i]].seq;

		if (check_record(c, order[i]))
			continue;
		check_say(c, "Record %llu was not completely written before the crash: "
			  "the log ends before it.", seq);
		scan_truncate(&c->scan, seq - 1);
		break;
	}
	free(order);
}

static void report_run(struct check *c)
{
	const struct lc_replay_result *run = &c->scan.run;
	u64 last = 0;
	size_t i;

	for (i = 0; i < c->scan.nr; i++) {
		if (c->scan.found[i].seq > last)
			last = c->scan.found[i].seq;
	}
	check_say(c,
		  "Log: records %llu-%llu, durable up to %llu, %zu headers seen in %llu segments.",
		  run->first_seq, run->last_seq, run->durable_seq, c->scan.nr,
		  c->scan.nr_segments_read);
	if (!c->bad_run)
		return;
	if (c->scan.verdict == -EUCLEAN)
		check_damage(c,
			     "record %llu is missing, but all up to %llu were durable; the newest "
			     "one that can be read is %llu",
			     run->last_seq + 1, run->durable_seq, last);
	else
		check_damage(c, "a damaged header hides records behind it from replay");
	for (i = 0; i < c->scan.nr_bad; i++)
		check_say(c, "  segment %llu, slot %u: %s", c->scan.bad[i].segment,
			  c->scan.bad[i].slot, c->scan.bad[i].why);
}

/* No record of a life is written before the mark is of that life (T1). */
static void check_disk(struct check *c)
{
	const struct lc_mark_info *mark = marks_best(&c->marks);
	u64 latest = 0;
	size_t i;

	if (!c->hdd || c->sb.mark_offset == LC_NO_MARK || !mark ||
	    lc_pairing_check(&c->sb, mark) != LC_PAIRING_FITS)
		return;
	for (i = 0; i < c->scan.nr; i++) {
		if (c->scan.found[i].epoch > latest)
			latest = c->scan.found[i].epoch;
	}
	if (latest > mark->epoch && latest <= c->sb.epoch)
		old_disk(c, mark, latest);
}

/* Places where a header may be. */
static void add_unread_of(struct check *c, const struct scan *scan)
{
	size_t i;

	for (i = 0; i < scan->nr_bad; i++) {
		if (scan->bad[i].err == -EIO)
			add_unread(c, scan->bad[i].segment, scan->bad[i].slot,
				   "a start takes it as torn by a crash");
	}
	for (i = 0; i < scan->nr_dark; i++)
		add_unread(c, scan->dark[i].segment, scan->dark[i].slot,
			   "a start does not need it, but what it held is not known");
}

static void check_log(struct check *c)
{
	scan_log(&c->scan, c->ssd, &c->sb, SCAN_LOG);
	scan_select(&c->scan, c->ssd, &c->sb);
	if (c->scan.verdict == -EUCLEAN) {
		/* Somebody has to know everything that is left, wherever it is. */
		c->bad_run = true;
		scan_free(&c->scan);
		scan_log(&c->scan, c->ssd, &c->sb, SCAN_RING);
		scan_select(&c->scan, c->ssd, &c->sb);
	}
	report_run(c);
	add_unread_of(c, &c->scan);
	check_known(c);
	if (c->scan.verdict == -E2BIG) {
		check_damage(c, "the log holds records of more than %u lives, more than a start can "
			     "tell apart", LC_REPLAY_LIVES);
		c->beyond_repair = true;
	}
	if (c->scan.verdict == -ESTALE) {
		check_damage(c, "the log holds records of a later life than the superblock's %llu: "
			     "the superblock is an old one", c->sb.epoch);
		c->beyond_repair = true;
	}
	check_disk(c);
	check_data(c);
}

/* A whole later life behind a clean superblock: its newer versions were lost (L9). */
static void check_nothing_newer(struct check *c)
{
	struct lc_sb ahead = c->sb;
	struct scan scan;
	size_t i;

	ahead.tail_segment = c->sb.head_segment;
	scan_log(&scan, c->ssd, &ahead, SCAN_LOG);
	for (i = 0; i < scan.nr; i++) {
		if (scan.found[i].epoch <= c->sb.epoch)
			continue;
		check_damage(c, "segment %llu holds a record of life %llu, later than the "
			     "superblock's %llu: the superblock is an old one",
			     scan.found[i].segment, scan.found[i].epoch, c->sb.epoch);
		c->beyond_repair = true;
		break;
	}
	for (i = 0; i < scan.nr_bad; i++) {
		if (scan.bad[i].err == -EIO)
			add_unread(c, scan.bad[i].segment, scan.bad[i].slot,
				   "nobody knows if a later life began there");
	}
	for (i = 0; i < scan.nr_dark; i++)
		add_unread(c, scan.dark[i].segment, scan.dark[i].slot,
			   "nobody knows if a later life began there");
	scan_free(&scan);
}

/* The kernel does not begin a life whose superblock could not be read back. */
static void check_next_life(struct check *c)
{
	bool clean = c->sb.flags & LC_SB_CLEAN;
	u64 seq = clean ? c->sb.next_seq : c->scan.run.last_seq + 1;
	u64 segment = clean ? c->sb.head_segment : c->scan.run.next_segment;

	if (lc_life_possible(c->sb.epoch, seq, segment))
		return;
	check_damage(c, "life %llu, record %llu or segment %llu is too high for another life: no "
		     "cache gets so old", c->sb.epoch, seq, segment);
	c->beyond_repair = true;
}

int check_run(struct check *c)
{
	int ret;

	ret = image_read(&c->img, c->ssd);
	if (ret)
		return ret;
	check_superblocks(c);
	if (c->img.best < 0)
		return 0;
	ret = check_mark(c);
	if (ret)
		return ret;
	if (!(c->sb.flags & LC_SB_CLEAN)) {
		check_log(c);
		check_next_life(c);
		return 0;
	}
	check_nothing_newer(c);
	check_next_life(c);
	check_checkpoint(c);
	return 0;
}

void check_free(struct check *c)
{
	scan_free(&c->scan);
	lost_free(&c->lost);
	free(c->bad);
	free(c->unread);
	c->bad = NULL;
	c->nr_bad = 0;
	c->unread = NULL;
	c->nr_unread = 0;
}
