// SPDX-License-Identifier: GPL-2.0-only
/*
 * Taking a pair apart: the disk as it was, with the volume's data, and an SSD that is no
 * cache any more.  The order of the writes is in attach.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "detach.h"
#include "memory.h"
#include "pairing.h"
#include "storage.h"
#include "util.h"

#define HEAD_BYTES	LC_MARK_BYTES
#define SECTOR		512u

/* Step 1: what is not a mark is zero, so that what is not zero later is newer (AT3). */
static int clear_first_mib(const struct device *hdd)
{
	u8 *head = xcalloc(1, HEAD_BYTES);
	int ret = device_read(hdd, 0, head, HEAD_BYTES);
	u32 at;

	for (at = LC_SLOT_BYTES; at < HEAD_BYTES && !ret; at += LC_SLOT_BYTES) {
		if (at != LC_MARK_COPY_STRIDE && !attach_is_zero(head + at, LC_SLOT_BYTES))
			ret = device_zero(hdd, at, LC_SLOT_BYTES);
	}
	free(head);
	return ret ? ret : device_sync(hdd);
}

static bool is_detaching(const struct mark_pair *marks, unsigned int copy)
{
	return !marks->err[copy] && !marks->head_only[copy] &&
	       marks->copy[copy].state == LC_MARK_DETACHING;
}

/* Step 2.  Copy 0 last: if that is right, both were, and step 3 may have begun. */
static int mark_detaching(const struct device *hdd, const struct mark_pair *marks)
{
	struct lc_mark_info mark = *marks_best(marks);
	struct lc_mark raw;
	int ret = 0;

	if (is_detaching(marks, 0))
		return 0;
	if (mark.state != LC_MARK_DETACHING)
		mark.mark_seq++;
	mark.state = LC_MARK_DETACHING;
	mark.nr_lost = 0;
	if (!is_detaching(marks, 1)) {
		lc_mark_encode(&mark, LC_CSUM_XXH64, marks->offset, 1, &raw);
		ret = attach_write(hdd, lc_format_mark_address(marks->offset, 1), &raw,
				    sizeof(raw));
	}
	lc_mark_encode(&mark, LC_CSUM_XXH64, marks->offset, 0, &raw);
	return ret ? ret : attach_write(hdd, marks->offset, &raw, sizeof(raw));
}

/* Steps 4 and 5: @data over mark copy 0, what decides last. */
static int uncover(const struct device *hdd, u64 offset, const u8 *data)
{
	int ret = attach_write(hdd, offset + hdd->lbs, data + hdd->lbs,
				LC_SLOT_BYTES - hdd->lbs);

	return ret ? ret : attach_write(hdd, offset, data, hdd->lbs);
}

/* May what is at @now be replaced by @copy? (AT3) */
static bool may_replace(const u8 *now, u32 at)
{
	bool second = at >= LC_MARK_COPY_STRIDE && at < LC_MARK_COPY_STRIDE + LC_SLOT_BYTES;

	return attach_is_zero(now, SECTOR) ||
	       (second && !memcmp(now, LC_MARK_MAGIC, LC_MAGIC_LEN));
}

/*
 * Make @copy what [from, to) of the disk has to be.  Return: sectors that somebody else wrote;
 * they stay.
 */
static u32 merge_newer(u8 *copy, const u8 *now, u32 from, u32 to)
{
	u32 at, nr = 0;

	for (at = from; at < to; at += SECTOR) {
		if (may_replace(now + at, at) || !memcmp(now + at, copy + at, SECTOR))
			continue;
		memcpy(copy + at, now + at, SECTOR);
		nr++;
	}
	return nr;
}

/* Steps 3 to 5.  @begun: step 4 had begun, so step 3 is done. */
static int put_back(const struct device *hdd, u64 head_offset, bool begun)
{
	u8 *now = xcalloc(1, HEAD_BYTES), *copy = xcalloc(1, HEAD_BYTES);
	u32 newer;
	int ret;

	ret = device_read(hdd, 0, now, HEAD_BYTES);
	if (!ret)
		ret = device_read(hdd, head_offset, copy, HEAD_BYTES);
	if (ret)
		goto free;
	newer = merge_newer(copy, now, hdd->lbs, begun ? LC_SLOT_BYTES : HEAD_BYTES);
	if (newer)
		complain(hdd->path, "warning: %u sectors of its first MiB were written since this "
			 "was interrupted; they stay as they are", newer);
	if (!begun)
		ret = attach_write(hdd, LC_SLOT_BYTES, copy + LC_SLOT_BYTES,
				    HEAD_BYTES - LC_SLOT_BYTES);
	if (!ret)
		ret = uncover(hdd, 0, copy);
free:
	free(copy);
	free(now);
	return ret;
}

static int remove_marks(const struct device *hdd, u64 offset)
{
	static const u8 zeros[LC_SLOT_BYTES];
	int ret = attach_write(hdd, lc_format_mark_address(offset, 1), zeros, sizeof(zeros));

	return ret ? ret : uncover(hdd, offset, zeros);
}

int detach_disk(const struct device *hdd, const struct mark_pair *marks)
{
	const struct lc_mark_info *mark = marks_best(marks);
	/* Step 4 leaves copy 0 readable by its first sector only, and copy 1 is gone. */
	bool begun = mark->state == LC_MARK_DETACHING && marks->head_only[0] && marks->err[1];
	int ret = 0;

	if (mark->head_offset && (mark->head_offset > hdd->bytes ||
				  hdd->bytes - mark->head_offset < HEAD_BYTES)) {
		complain(hdd->path, "is smaller than when its cache was formatted: its first MiB "
			 "lies at byte %llu; make it as large as it was", mark->head_offset);
		return -ERANGE;
	}
	if (mark->head_offset && !attach_interrupted(mark))
		ret = clear_first_mib(hdd);
	if (!ret && mark->state != LC_MARK_ATTACHING && !begun)
		ret = mark_detaching(hdd, marks);
	if (ret)
		return ret;
	return mark->head_offset ? put_back(hdd, mark->head_offset, begun) :
				   remove_marks(hdd, marks->offset);
}

int detach_ssd(const struct device *ssd, const struct image *img)
{
	static const u8 zeros[LC_SLOT_BYTES];
	const struct lc_sb *sb = image_sb(img);
	unsigned int copy;
	int ret = 0;

	/* The third one first: without the others nobody knows where it is. */
	for (copy = LC_SB_COPIES; copy-- && !ret; ) {
		u64 at = lc_format_sb_address(&sb->geo, copy);

		/* The magic at once, so that nothing damaged remains. */
		ret = attach_write(ssd, at, zeros, ssd->lbs);
		if (!ret)
			ret = attach_write(ssd, at + ssd->lbs, zeros, sizeof(zeros) - ssd->lbs);
	}
	return ret;
}

static void list_lost(const struct device *hdd, const struct lc_mark_info *mark)
{
	u32 i;

	if (mark->nr_lost == LC_MARK_LOST_TOO_MANY) {
		complain(hdd->path, "lost sectors: more than the mark has room for, or not known");
		return;
	}
	for (i = 0; i < mark->nr_lost; i++)
		complain(hdd->path, "lost sectors of the volume: %llu-%llu", mark->lost[i].sector,
			 mark->lost[i].sector + mark->lost[i].nr_sectors - 1);
}

/* A cache that is there: is all of it on the disk? */
static int refuse_dirty(const struct device *ssd, const struct image *img,
			const struct lc_mark_info *mark)
{
	const struct lc_sb *sb = image_sb(img);
	const char *why;

	if (mark && !mark_belongs(mark, sb)) {
		complain(ssd->path, "is cache %s, the disk belongs to cache %s; name the right "
			 "devices", uuid_text(sb->cache_uuid), uuid_text(mark->cache_uuid));
		return -EXDEV;
	}
	if (mark && mark->state != LC_MARK_PAIRED)
		return 0;	/* not started yet, drained already, or out of date */
	if (mark && mark->epoch > sb->epoch) {
		complain(ssd->path, "is an old copy: the disk has seen life %llu, it only %llu; "
			 "find the right one", mark->epoch, sb->epoch);
		return -ESTALE;
	}
	if (mark && mark->epoch < lc_pairing_seen(sb)) {
		complain(ssd->path, "has been used with the disk in life %llu, the mark is of life "
			 "%llu: the disk is an old copy; find the right one",
			 lc_pairing_seen(sb), mark->epoch);
		return -ESTALE;
	}
	if (mark && lc_pairing_check(sb, mark) == LC_PAIRING_FORKED) {
		complain(ssd->path, "the disk was used with a copy of this cache in life %llu, which "
			 "went on without this one; find that", mark->epoch);
		return -ESTALE;
	}
	if (!image_dirty(img, &why))
		return 0;
	complain(ssd->path, "%s; start it with lc-resume, then lc-remove --detach", why);
	return -EBUSY;
}

/* No cache: only what is known to be on the disk alone, or what was forced. */
static int refuse_alone(const struct device *hdd, const struct lc_mark_info *mark,
			unsigned int forced)
{
	if (mark->state != LC_MARK_PAIRED || forced & DETACH_NO_CACHE)
		return 0;
	complain(hdd->path, "belongs to cache %s, which may hold data that is not on the disk; name "
		 "the SSD, or, if it is gone, give --force=cache-missing",
		 uuid_text(mark->cache_uuid));
	return -EBUSY;
}

static int refuse_lost(const struct device *hdd, const struct lc_mark_info *mark,
		       unsigned int forced)
{
	if (!mark->nr_lost)
		return 0;
	list_lost(hdd, mark);
	if (forced & DETACH_LOST)
		return 0;
	complain(hdd->path, "the list above goes with the mark; keep it, and give "
		 "--force=lost-blocks");
	return -EBUSY;
}

static void say_how(const struct device *hdd, const struct lc_mark_info *mark)
{
	if (mark->data_offset)
		fprintf(stderr, "%s: detached; its data begins at byte %llu: reach it with "
			"'losetup --find --show -o %llu %s'\n", hdd->path, mark->data_offset,
			mark->data_offset, hdd->path);
	else
		fprintf(stderr, "%s: detached; it can be used as it is\n", hdd->path);
}

static int detach_marked(const struct device *hdd, const struct mark_pair *marks,
			 const struct device *ssd, const struct image *img, unsigned int forced)
{
	const struct lc_mark_info *mark = marks_best(marks);
	const struct lc_sb *sb = img ? image_sb(img) : NULL;
	int ret;

	ret = sb ? refuse_dirty(ssd, img, mark) : refuse_alone(hdd, mark, forced);
	if (!ret)
		ret = refuse_lost(hdd, mark, forced);
	if (!ret)
		ret = detach_disk(hdd, marks);
	if (!ret && sb)
		ret = detach_ssd(ssd, img);
	if (ret)
		return ret;
	device_reread_partitions(hdd);
	say_how(hdd, mark);
	return 0;
}

int detach_pair(const struct device *ssd, const struct device *hdd, unsigned int forced)
{
	struct mark_pair marks;
	struct image img;
	int ret;

	ret = storage_check_pair(ssd, hdd, forced & DETACH_PATH ? NULL :
				 ", or give lc-detach --force=other-path to overrule");
	if (ret)
		return ret;
	if (ssd) {
		ret = image_read(&img, ssd);
		if (ret)
			return ret;
		if (!image_sb(&img) && image_any_magic(&img)) {
			complain(ssd->path, "has no good superblock (%s); see lc-check, or leave "
				 "it out", img.why[0]);
			return -EUCLEAN;
		}
	}
	ret = attach_find_marks(hdd, &marks);
	if (ret)
		return ret;
	if (marks_best(&marks))
		return detach_marked(hdd, &marks, ssd, ssd ? &img : NULL, forced);
	if (marks_any_magic(&marks)) {
		complain(hdd->path, "has a damaged mark (%s); see lc-check --repair",
			 marks.why[0]);
		return -EUCLEAN;
	}
	/* Bare: lc-format was interrupted before it took the disk, or all but this is done. */
	ret = ssd && image_sb(&img) ? refuse_dirty(ssd, &img, NULL) : 0;
	if (!ret && ssd && image_sb(&img))
		ret = detach_ssd(ssd, &img);
	if (!ret)
		fprintf(stderr, "%s: bears no mark; it is detached\n", hdd->path);
	return ret;
}
