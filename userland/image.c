// SPDX-License-Identifier: GPL-2.0-only
/* Superblocks and marks as found on the media. */
#include <errno.h>
#include <string.h>

#include "image.h"
#include "pairing.h"

u64 image_third_address(const struct device *dev)
{
	u64 whole = dev->bytes & ~(u64)(LC_SLOT_BYTES - 1);

	return whole > LC_MARK_BYTES ? whole - LC_MARK_BYTES : 0;
}

static int read_copy(struct image *img, unsigned int copy, u64 address)
{
	struct lc_superblock raw;
	unsigned int tries = 0;
	int ret;

	img->err[copy] = -ENODATA;
	img->why[copy] = "beyond the end of the device";
	if (address > img->dev->bytes || img->dev->bytes - address < sizeof(raw))
		return 0;
	do {
		ret = device_read(img->dev, address, &raw, sizeof(raw));
		if (ret) {
			img->err[copy] = device_bad_medium(ret) ? -EIO : ret;
			img->why[copy] = "unreadable";
			/* An unreadable copy is damage to report, not a reason to stop. */
			return device_bad_medium(ret) ? 0 : ret;
		}
		img->has_magic[copy] = !memcmp(raw.magic, LC_SB_MAGIC, LC_MAGIC_LEN);
		img->err[copy] = lc_sb_decode(&raw, copy, &img->copy[copy], &img->why[copy]);
	} while (img->err[copy] == -EBADMSG && device_again(img->dev, &tries));
	if (!img->err[copy] && img->copy[copy].geo.cache_bytes > img->dev->bytes) {
		img->err[copy] = -ERANGE;
		img->why[copy] = "the device is smaller than when it was formatted";
	}
	return 0;
}

int image_read(struct image *img, const struct device *dev)
{
	unsigned int i;
	u64 third;
	int ret = 0;

	memset(img, 0, sizeof(*img));
	img->dev = dev;
	img->best = -1;
	for (i = 0; i < 2 && !ret; i++) {
		ret = read_copy(img, i, i * LC_SB_COPY_STRIDE);
		if (!img->err[i] &&
		    (img->best < 0 || img->copy[i].sb_seq > img->copy[img->best].sb_seq))
			img->best = i;
	}
	if (ret)
		return ret;
	third = img->best < 0 ? image_third_address(dev) : img->copy[img->best].geo.end_offset;
	return read_copy(img, 2, third);
}

const struct lc_sb *image_sb(const struct image *img)
{
	return img->best < 0 ? NULL : &img->copy[img->best];
}

bool image_any_magic(const struct image *img)
{
	return img->has_magic[0] || img->has_magic[1] || img->has_magic[2];
}

bool image_unreadable(const struct image *img)
{
	return img->err[0] == -EIO || img->err[1] == -EIO;
}

bool image_newer(const struct image *img)
{
	return img->err[0] == -EOPNOTSUPP || img->err[1] == -EOPNOTSUPP ||
	       img->err[2] == -EOPNOTSUPP;
}

int image_write_sb(const struct device *dev, const struct lc_sb *sb, unsigned int copy)
{
	struct lc_superblock raw;
	int ret;

	lc_sb_encode(sb, copy, &raw);
	ret = device_write(dev, lc_format_sb_address(&sb->geo, copy), &raw, sizeof(raw));
	return ret ? ret : device_sync(dev);
}

int image_ckpt_block(const struct device *dev, const struct lc_sb *sb, u64 index,
		     struct lc_ckpt_block *raw, u32 *nr, const char **why)
{
	unsigned int tries = 0;
	int ret;

	*nr = 0;
	if ((index + 1) * LC_SLOT_BYTES > sb->geo.ckpt_bytes) {
		*why = "it has fewer entries than the superblock says";
		return -ERANGE;
	}
	do {
		if (device_read(dev, sb->geo.ckpt_offset + index * LC_SLOT_BYTES, raw,
				sizeof(*raw))) {
			*why = "unreadable";
			return -EIO;
		}
		ret = lc_ckpt_decode(raw, sb, index, nr, why);
	} while (ret == -EBADMSG && device_again(dev, &tries));
	if (!ret && !*nr) {
		*why = "an empty block";
		ret = -ENODATA;
	}
	if (ret)
		*nr = 0;
	return ret;
}

u64 image_segment_at(const struct lc_sb *sb, u64 position)
{
	u64 last = sb->head_segment - 1, nr = sb->geo.nr_segments;
	u64 back = (lc_format_position(&sb->geo, last) + nr - position) % nr;

	return back > last ? 0 : last - back;
}

/* Does any block of the checkpoint hold a block the hard disk does not have? */
static int checkpoint_dirty(const struct image *img, const struct lc_sb *sb, const char **why)
{
	struct lc_ckpt_block raw;
	struct lc_ckpt_item item;
	u64 index, seen = 0;
	const char *damage;
	u32 i, nr;

	for (index = 0; seen < sb->ckpt_entries; index++, seen += nr) {
		*why = "its checkpoint is damaged";
		if (image_ckpt_block(img->dev, sb, index, &raw, &nr, &damage))
			return 1;
		for (i = 0; i < nr; i++) {
			if (lc_ckpt_item_decode(&raw, sb, i, &item))
				return 1;
			if (item.flags & LC_CKPT_ENTRY_BOUNDARY ||
			    !(item.flags & LC_CKPT_ENTRY_DIRTY || item.lost))
				continue;
			*why = "it holds data that is not on its hard disk yet";
			return 1;
		}
	}
	return 0;
}

int image_dirty(const struct image *img, const char **why)
{
	const struct lc_sb *sb = image_sb(img);

	*why = "it holds a damaged or newer dm-lc superblock, so its data cannot be judged";
	if (image_newer(img))
		return 1;
	if (!sb) {
		if (image_any_magic(img))
			return 1;
		*why = "the place of a superblock cannot be read, so nobody knows if it is a cache";
		return image_unreadable(img);
	}
	if (!sb->epoch)
		return 0;	/* formatted, never started */
	*why = "it was not stopped cleanly and may hold data that is not on its hard disk";
	if (!(sb->flags & LC_SB_CLEAN))
		return 1;
	return checkpoint_dirty(img, sb, why);
}

u64 mark_offset_in_place(u64 backing_bytes)
{
	u64 whole = backing_bytes & ~(u64)(LC_SLOT_BYTES - 1);

	return whole > LC_MARK_BYTES ? whole - LC_MARK_BYTES : 0;
}

/*
 * A mark in one of the two states of attach.c is told by its first sector: it is zero behind
 * it, whatever is there by now.
 */
static bool decode_head(const struct lc_mark *raw, u64 offset, unsigned int copy,
			struct lc_mark_info *mark)
{
	struct lc_mark head;

	memset(&head, 0, sizeof(head));
	memcpy(&head, raw, 512);
	return !lc_mark_decode(&head, offset, copy, mark, NULL) && !mark->nr_lost &&
	       (mark->state == LC_MARK_ATTACHING || mark->state == LC_MARK_DETACHING);
}

static int read_mark(struct mark_pair *marks, const struct device *dev, unsigned int i)
{
	u64 address = lc_format_mark_address(marks->offset, i);
	unsigned int tries = 0;
	struct lc_mark raw;
	int ret;

	marks->err[i] = -ENODATA;
	marks->why[i] = "beyond the end of the device";
	if (address > dev->bytes || dev->bytes - address < sizeof(raw))
		return 0;
	do {
		ret = device_read(dev, address, &raw, sizeof(raw));
		if (ret) {
			/* As the kernel does, go by the other copy. */
			marks->err[i] = device_bad_medium(ret) ? -EIO : ret;
			marks->why[i] = "unreadable";
			return device_bad_medium(ret) ? 0 : ret;
		}
		marks->has_magic[i] = !memcmp(raw.magic, LC_MARK_MAGIC, LC_MAGIC_LEN);
		marks->err[i] = lc_mark_decode(&raw, marks->offset, i, &marks->copy[i],
					       &marks->why[i]);
		if (marks->err[i] == -EBADMSG &&
		    decode_head(&raw, marks->offset, i, &marks->copy[i])) {
			marks->err[i] = 0;
			marks->head_only[i] = true;
		}
	} while (marks->err[i] == -EBADMSG && device_again(dev, &tries));
	return 0;
}

int marks_read(struct mark_pair *marks, const struct device *dev, u64 offset)
{
	unsigned int i;
	int ret;

	memset(marks, 0, sizeof(*marks));
	marks->offset = offset;
	marks->best = -1;
	for (i = 0; i < 2; i++) {
		ret = read_mark(marks, dev, i);
		if (ret)
			return ret;
	}
	for (i = 0; i < 2; i++) {
		if (marks->err[i])
			continue;
		if (marks->best < 0 || lc_mark_counts(&marks->copy[i], marks_best(marks)))
			marks->best = i;
	}
	return 0;
}

const struct lc_mark_info *marks_best(const struct mark_pair *marks)
{
	return marks->best < 0 ? NULL : &marks->copy[marks->best];
}

bool marks_any_magic(const struct mark_pair *marks)
{
	return marks->has_magic[0] || marks->has_magic[1];
}

/* Is there a copy that cannot be read, so that nobody knows if a mark is there? */
bool marks_unreadable(const struct mark_pair *marks)
{
	return marks->err[0] == -EIO || marks->err[1] == -EIO;
}

bool mark_belongs(const struct lc_mark_info *mark, const struct lc_sb *sb)
{
	return mark->generation == sb->generation &&
	       !memcmp(mark->cache_uuid, sb->cache_uuid, 16) &&
	       !memcmp(mark->volume_uuid, sb->volume_uuid, 16);
}
