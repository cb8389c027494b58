// SPDX-License-Identifier: GPL-2.0-only
/*
 * Marks that earlier pairings left on a device.
 *
 * A mark is at the start of a disk, or in its last MiB: of the size the disk had when it was
 * formatted.  If the disk has grown since, the mark lies somewhere inside, and nothing at a known
 * place tells where.  What was cached in place ends at or before the mark, usually directly
 * before it, so the search goes on from there; and from some way before the end, for a disk that
 * has grown by little.  Both searches are bounded, whatever the size of the disk.  What they do
 * not find is refused when the cache of the older mark is started: see lc_foreign_check() in the
 * module.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "oldmark.h"

#define BEHIND_END	(64ULL << 20)	/* searched behind what is on the device */
#define BEFORE_END	(16ULL << 20)	/* and before its end */
#define STEP		(1u << 20)

static void add(struct old_marks *marks, u64 offset)
{
	unsigned int i;

	/* A copy by itself does not tell which of the two it is: its twin may be there already. */
	for (i = 0; i < marks->nr; i++) {
		if (marks->offset[i] == offset || marks->offset[i] + LC_MARK_COPY_STRIDE == offset)
			return;
	}
	if (marks->nr < OLD_MARKS_MAX)
		marks->offset[marks->nr++] = offset;
}

static int look_at(const struct device *dev, u64 offset, struct old_marks *marks)
{
	struct mark_pair pair;
	unsigned int i;
	int ret;

	ret = marks_read(&pair, dev, offset);
	/* One with another address was copied here, or is of something inside the volume. */
	for (i = 0; i < 2 && !ret; i++) {
		if ((pair.has_magic[i] && pair.err[i] != -EXDEV) || pair.err[i] == -EIO)
			add(marks, offset);
	}
	return ret;
}

/*
 * Inside a disk only what decodes counts, so that it was written for that very place: a copy of
 * a mark in a file is not one.
 */
static void look_in_block(const void *block, u64 address, struct old_marks *marks)
{
	struct lc_mark_info info;
	const char *why;

	if (!memcmp(block, LC_MARK_MAGIC, LC_MAGIC_LEN) &&
	    !lc_mark_decode(block, address, 0, &info, &why))
		add(marks, address);
}

static int search(const struct device *dev, u64 from, u64 to, struct old_marks *marks)
{
	char *buf = xcalloc(1, STEP);
	u64 at, end = dev->bytes & ~(u64)(LC_SLOT_BYTES - 1);
	size_t i, n;
	int ret = 0;

	if (to > end)
		to = end;
	for (at = from & ~(u64)(LC_SLOT_BYTES - 1); at < to && !ret; at += n) {
		n = to - at < STEP ? to - at : STEP;
		ret = device_read(dev, at, buf, n);
		if (device_bad_medium(ret)) {
			ret = 0;	/* a bad sector among data is no reason to stop */
			continue;
		}
		for (i = 0; i < n && !ret; i += LC_SLOT_BYTES)
			look_in_block(buf + i, at + i, marks);
	}
	free(buf);
	return ret;
}

int old_marks_find(const struct device *dev, u64 known_end, struct old_marks *marks)
{
	u64 end = mark_offset_in_place(dev->bytes);
	u64 before = dev->bytes > BEFORE_END ? dev->bytes - BEFORE_END : 0;
	int ret;

	memset(marks, 0, sizeof(*marks));
	ret = look_at(dev, 0, marks);
	if (!ret && end)
		ret = look_at(dev, end, marks);
	if (!ret)
		ret = search(dev, before, dev->bytes, marks);
	if (!ret && known_end && known_end < before)
		ret = search(dev, known_end, known_end + BEHIND_END < before ?
			     known_end + BEHIND_END : before, marks);
	return ret;
}

int old_marks_wipe(const struct device *dev, const struct old_marks *marks, u64 keep)
{
	struct mark_pair pair;
	unsigned int i, copy;
	int ret = 0;

	for (i = 0; i < marks->nr && !ret; i++) {
		if (marks->offset[i] == keep)
			continue;
		ret = marks_read(&pair, dev, marks->offset[i]);
		for (copy = 0; copy < 2 && !ret; copy++) {
			if (pair.has_magic[copy] && pair.err[copy] != -EXDEV)
				ret = device_zero(dev, lc_format_mark_address(marks->offset[i],
									      copy),
						  LC_SLOT_BYTES);
		}
	}
	return ret ? ret : device_sync(dev);
}
