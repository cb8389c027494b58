// SPDX-License-Identifier: GPL-2.0-only
/*
 * A disk cached in place must not be recognised while it has a cache: a mount of the disk would
 * see an old state, and change it.  So its first MiB, the head, moves beyond the end of the volume,
 * into the last MiB of the disk, and the mark takes its place.
 *
 * Attaching, each step durable before the next begins:
 *
 *   1 the head is copied to the end, which nothing uses, and read back
 *   2 superblocks go to the SSD (pair.c)
 *   3 the first logical block of a mark in state ATTACHING goes to byte 0
 *   4 the rest of the mark's 4 KiB
 *   5 the rest of the first MiB becomes zero
 *   6 mark copy 1, state PAIRED; then copy 0
 *
 * Detaching:
 *
 *   1 the first MiB but for the marks becomes zero, if it is not
 *   2 mark copy 1, state DETACHING; then copy 0
 *   3 the head but for its first 4 KiB is put back, from the end
 *   4 of these all but the first logical block
 *   5 the first logical block
 *   6 the superblocks on the SSD become zero
 *
 * Before attaching step 3 the disk is bare, behind detaching step 5 it is again.  What is
 * between is told by the first logical block alone, which no disk tears: a mark in these two
 * states lists nothing as lost, so that it is zero behind its first 512 bytes, and is read
 * as if it were (marks_read()).  Nothing but the disk is needed to go on, or back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "memory.h"
#include "util.h"

#define HEAD_BYTES	LC_MARK_BYTES
#define SECTOR		512u

static u8 *head_alloc(void)
{
	return xcalloc(1, HEAD_BYTES);
}

bool attach_interrupted(const struct lc_mark_info *mark)
{
	return mark->state == LC_MARK_ATTACHING || mark->state == LC_MARK_DETACHING;
}

const char *attach_text(const struct lc_mark_info *mark, const char *hdd)
{
	static char text[512];

	if (mark->state == LC_MARK_ATTACHING)
		snprintf(text, sizeof(text), "lc-format --in-place was interrupted here: give the "
			 "same command again, or put the bare disk back with "
			 "'lc-detach --backing=%s'", hdd);
	else
		snprintf(text, sizeof(text), "lc-detach was interrupted here: finish it with "
			 "'lc-detach --backing=%s'", hdd);
	return text;
}

int attach_find_marks(const struct device *hdd, struct mark_pair *marks)
{
	int ret = marks_read(marks, hdd, 0);

	if (ret || marks_best(marks) || marks_any_magic(marks))
		return ret;
	return marks_read(marks, hdd, mark_offset_in_place(hdd->bytes));
}

int attach_copy_head(const struct device *hdd, const struct lc_sb *sb)
{
	u64 end = sb->volume_sectors << 9;
	u8 *head = head_alloc(), *copy = head_alloc();
	int ret;

	ret = device_read(hdd, 0, head, HEAD_BYTES);
	if (!ret)
		ret = device_write(hdd, end, head, HEAD_BYTES);
	if (!ret)
		ret = device_sync(hdd);
	if (!ret)
		ret = device_read(hdd, end, copy, HEAD_BYTES);
	if (!ret && memcmp(head, copy, HEAD_BYTES)) {
		complain(hdd->path, "does not give back what was written at byte %llu; replace it",
			 end);
		ret = -EIO;
	}
	free(copy);
	free(head);
	return ret;
}

int attach_write(const struct device *dev, u64 offset, const void *data, size_t len)
{
	int ret = len ? device_write(dev, offset, data, len) : 0;

	return ret ? ret : device_sync(dev);
}

static void new_mark(const struct lc_sb *sb, u32 state, u64 seq, unsigned int copy,
		     struct lc_mark *raw)
{
	struct lc_mark_info mark;

	memset(&mark, 0, sizeof(mark));
	mark.generation = sb->generation;
	memcpy(mark.cache_uuid, sb->cache_uuid, 16);
	memcpy(mark.volume_uuid, sb->volume_uuid, 16);
	memcpy(mark.label, sb->label, sizeof(mark.label));
	mark.mark_seq = seq;
	mark.state = state;
	mark.volume_sectors = sb->volume_sectors;
	mark.head_offset = sb->volume_sectors << 9;
	lc_mark_encode(&mark, sb->csum_type, 0, copy, raw);
}

int attach_begin(const struct device *hdd, const struct lc_sb *sb)
{
	struct lc_mark raw;
	int ret;

	new_mark(sb, LC_MARK_ATTACHING, 1, 0, &raw);
	ret = attach_write(hdd, 0, &raw, hdd->lbs);
	return ret ? ret : attach_write(hdd, hdd->lbs, (u8 *)&raw + hdd->lbs,
					 sizeof(raw) - hdd->lbs);
}

bool attach_is_zero(const u8 *data, size_t len)
{
	return !data[0] && !memcmp(data, data + 1, len - 1);
}

/* Does a sector of the first MiB hold what we left there, or what was copied from it? (AT3) */
static bool is_ours(const u8 *at, const u8 *copy, const u8 *mark)
{
	return attach_is_zero(at, SECTOR) || !memcmp(at, copy, SECTOR) ||
	       (mark && !memcmp(at, mark, SECTOR));
}

/* The first sector behind the mark's first block that somebody else wrote; 0: none. */
static u32 foreign_sector(const u8 *head, const u8 *copy, const struct device *hdd,
			  const struct lc_mark *second)
{
	u32 at;

	for (at = hdd->lbs; at < HEAD_BYTES; at += SECTOR) {
		u32 in = at - LC_MARK_COPY_STRIDE;
		bool marked = at >= LC_MARK_COPY_STRIDE && in < sizeof(*second);

		if (!is_ours(head + at, copy + at, marked ? (const u8 *)second + in : NULL))
			return at >> 9;
	}
	return 0;
}

int attach_finish(const struct device *hdd, const struct lc_sb *sb)
{
	u8 *head = head_alloc(), *copy = head_alloc();
	struct lc_mark first, second;
	u32 foreign;
	int ret;

	new_mark(sb, LC_MARK_PAIRED, 2, 0, &first);
	new_mark(sb, LC_MARK_PAIRED, 2, 1, &second);
	ret = device_read(hdd, 0, head, HEAD_BYTES);
	if (!ret)
		ret = device_read(hdd, sb->volume_sectors << 9, copy, HEAD_BYTES);
	foreign = ret ? 0 : foreign_sector(head, copy, hdd, &second);
	if (foreign) {
		complain(hdd->path, "was changed at sector %u since lc-format was interrupted, so "
			 "the bare disk was used; put it back with 'lc-detach --backing=%s'",
			 foreign, hdd->path);
		ret = -EUCLEAN;
	}
	if (!ret)
		ret = device_zero(hdd, hdd->lbs, HEAD_BYTES - hdd->lbs);
	if (!ret)
		ret = device_sync(hdd);
	if (!ret)
		ret = attach_write(hdd, LC_MARK_COPY_STRIDE, &second, sizeof(second));
	if (!ret)
		ret = attach_write(hdd, 0, &first, sizeof(first));
	free(copy);
	free(head);
	return ret;
}
