// SPDX-License-Identifier: GPL-2.0-only
/*
 * A new pair: layout, then bytes.
 *
 * What is written, in this order, each step durable before the next begins:
 *
 *   1 (--discard only) the SSD is discarded
 *   2 what libblkid finds on the SSD is overwritten, and the first and the last MiB become zero
 *   3 (not with --in-place, and not if the disk has a volume in this layout) what libblkid finds
 *     on the hard disk, or at the start of the volume, is overwritten, and so is the first MiB
 *     of the volume, and what is left of a superblock if the disk has been a cache
 *   4 marks of earlier pairings, on either device, become zero
 *   5 the mark goes to the hard disk, with the new generation
 *   6 superblock copies 0, 1, 2 go to the SSD, one by one
 *
 * Which of these there may be to overwrite is up to refuse_pair(): each is a refusal that must
 * have been forced.
 *
 * A crash at any moment leaves no cache or a whole one:
 *  - before 6, no copy of a superblock is on the SSD (2 took away the old ones,
 *    which were all in those two MiB), so nothing can be started.  The old
 *    superblock is gone before the old mark is: never an old cache with a hard
 *    disk that no longer knows it and, worse, might be paired anew.
 *  - within 2, old copies that are left belong to the cache that was there before,
 *    whose log and mark nobody has touched yet.
 *  - after the first copy of 6 the pair is complete: mark and superblock agree
 *    on the generation, epoch 0 says that nothing was ever logged, and no
 *    record header on the SSD carries this generation.  The kernel makes the
 *    other copies good when the volume starts.
 *  - a torn 4 KiB block fails its checksum and counts as not there.
 * A crash between 5 and 6 leaves a mark without a cache; the next lc-format
 * says so (class "paired").  A crash in 2 or in the first write of 6 may leave parts of
 * a superblock, which nothing can start (class "dirty-cache").
 *
 * With --in-place the superblocks come before the mark, and the mark takes the place of the
 * volume's first MiB, in steps of its own: see attach.c.  Old marks are gone before that: one
 * may lie where the first MiB is moved to.  A disk whose first MiB is away already, because it
 * lost its cache, only gets a new mark.
 *
 * The work is the same for every size of device: 2 MiB and three blocks on either one, and a few
 * bytes for each signature.
 */
#include <errno.h>
#include <string.h>

#include "attach.h"
#include "detach.h"
#include "find.h"
#include "pair.h"
#include "signature.h"
#include "util.h"

static int new_identity(struct lc_sb *sb)
{
	do {
		if (random_bytes(&sb->generation, sizeof(sb->generation)))
			return -EIO;
	} while (!sb->generation);
	if (random_bytes(sb->cache_uuid, 16) || random_bytes(sb->volume_uuid, 16))
		return -EIO;
	/* RFC 4122: version 4, variant 1. */
	sb->cache_uuid[6] = (sb->cache_uuid[6] & 0x0f) | 0x40;
	sb->cache_uuid[8] = (sb->cache_uuid[8] & 0x3f) | 0x80;
	sb->volume_uuid[6] = (sb->volume_uuid[6] & 0x0f) | 0x40;
	sb->volume_uuid[8] = (sb->volume_uuid[8] & 0x3f) | 0x80;
	return 0;
}

static int lay_out_backing(const struct pair_request *req, struct lc_sb *sb)
{
	u64 whole = req->hdd->bytes & ~(u64)(LC_SLOT_BYTES - 1);
	u64 volume = whole;

	sb->backing_bytes = req->hdd->bytes;
	sb->backing_lbs = req->hdd->lbs;
	if (!req->no_mark) {
		unsigned int mibs = req->in_place ? 2 : 1;

		if (whole < mibs * LC_MARK_BYTES + LC_SLOT_BYTES) {
			complain(req->hdd->path, "is too small (%s); more than %u MiB is needed",
				 size_text(req->hdd->bytes), mibs);
			return -ENOSPC;
		}
		volume -= LC_MARK_BYTES;
	}
	sb->data_offset = req->in_place ? 0 : LC_MARK_BYTES;
	sb->mark_offset = req->no_mark ? LC_NO_MARK : 0;
	if (req->in_place && !req->no_mark)
		sb->incompat |= LC_INCOMPAT_MOVED_HEAD;
	sb->volume_sectors = volume >> 9;
	sb->flags = req->in_place ? LC_SB_IN_PLACE : 0;
	if (!sb->volume_sectors || sb->volume_sectors >= LC_MAX_BLOCKS * LC_BLOCK_SECTORS) {
		complain(req->hdd->path, "%s cannot be cached; up to 4 PiB can be",
			 size_text(volume));
		return -EFBIG;
	}
	return 0;
}

static void copy_text(char *to, size_t len, const char *from)
{
	snprintf(to, len, "%.*s", (int)len - 1, from);
}

int pair_layout(const struct pair_request *req, const struct pair_choices *choices,
		struct lc_sb *sb)
{
	const struct identity *id = &req->hdd->id;
	int ret;

	memset(sb, 0, sizeof(*sb));
	ret = lay_out_backing(req, sb);
	if (ret)
		return ret;
	ret = lc_geometry_compute(&sb->geo, req->ssd->bytes, choices->segment_bytes);
	if (ret == -ENOSPC)
		complain(req->ssd->path, "is too small (%s) for %d segments of %s; "
			 "take a larger device or a smaller --segment-size",
			 size_text(req->ssd->bytes), LC_MIN_SEGMENTS,
			 size_text(choices->segment_bytes));
	if (ret)
		return ret;
	if (new_identity(sb)) {
		complain(NULL, "no random numbers from the kernel; nothing was written");
		return -EIO;
	}
	copy_text(sb->label, sizeof(sb->label), choices->label);
	copy_text(sb->options, sizeof(sb->options), choices->options);
	copy_text(sb->backing_wwn, sizeof(sb->backing_wwn), id->wwn);
	copy_text(sb->backing_serial, sizeof(sb->backing_serial), id->serial);
	copy_text(sb->backing_partuuid, sizeof(sb->backing_partuuid), id->partuuid);
	copy_text(sb->backing_dm_uuid, sizeof(sb->backing_dm_uuid), id->dm_uuid);
	if (req->no_mark && !backing_identity_known(sb)) {
		complain(req->hdd->path, "has no serial number, WWN, PARTUUID or device mapper UUID: "
			 "without a mark nothing would tell it from another disk; "
			 "leave --no-mark out, or put a partition table on it");
		return -EINVAL;
	}
	sb->incompat |= LC_INCOMPAT_SHORT_SUMS;
	sb->csum_type = choices->csum_type;
	sb->cache_lbs = req->ssd->lbs;
	sb->creator_version = LC_VERSION_MAJOR << 16 | LC_VERSION_MINOR << 8 | LC_VERSION_PATCH;
	sb->lane_limit = 16;
	sb->sb_seq = 1;
	sb->epoch_first_seq = 1;
	sb->tail_seq = 1;
	sb->tail_segment = 1;
	sb->next_seq = 1;
	sb->head_segment = 1;
	return 0;
}

static int wipe_ssd(const struct device *ssd, const struct lc_geometry *geo)
{
	int ret;

	ret = signatures_wipe(ssd, 0);
	if (!ret)
		ret = device_zero(ssd, 0, LC_MARK_BYTES);
	if (!ret)
		ret = device_zero(ssd, geo->end_offset, ssd->bytes - geo->end_offset);
	return ret ? ret : device_sync(ssd);
}

/*
 * The disk has been a cache.  Two copies of that superblock are below the mark; the third one
 * would pass for a damaged cache for ever.
 */
static int wipe_third_superblock(const struct device *hdd)
{
	struct image img;
	u64 at;
	int ret;

	ret = image_read(&img, hdd);
	if (ret || !img.has_magic[2])
		return ret;
	at = image_sb(&img) ? image_sb(&img)->geo.end_offset : image_third_address(hdd);
	return device_zero(hdd, at, LC_SLOT_BYTES);
}

/*
 * Whatever stands there otherwise becomes the contents of the volume, or is found on the bare
 * disk, at its end for instance, and used beside its cache.
 */
static int wipe_hdd(const struct device *hdd, const struct lc_sb *sb)
{
	u64 bytes = sb->volume_sectors << 9;
	int ret;

	ret = signatures_wipe(hdd, 0);
	if (!ret)
		ret = wipe_third_superblock(hdd);
	if (!ret)
		ret = signatures_wipe(hdd, sb->data_offset);
	if (!ret)
		ret = device_zero(hdd, sb->data_offset,
				  bytes < LC_MARK_BYTES ? bytes : LC_MARK_BYTES);
	return ret ? ret : device_sync(hdd);
}

static int write_mark(const struct device *hdd, const struct lc_sb *sb)
{
	struct lc_mark_info mark;
	struct lc_mark raw;
	unsigned int copy;
	int ret = 0;

	if (sb->mark_offset == LC_NO_MARK)
		return 0;
	memset(&mark, 0, sizeof(mark));
	mark.generation = sb->generation;
	memcpy(mark.cache_uuid, sb->cache_uuid, 16);
	memcpy(mark.volume_uuid, sb->volume_uuid, 16);
	copy_text(mark.label, sizeof(mark.label), sb->label);
	mark.mark_seq = 1;
	mark.state = LC_MARK_PAIRED;
	mark.volume_sectors = sb->volume_sectors;
	mark.data_offset = sb->data_offset;
	if (sb->incompat & LC_INCOMPAT_MOVED_HEAD)
		mark.head_offset = sb->volume_sectors << 9;
	/* A file system's signature left here would have the bare disk mounted. */
	if (!(sb->flags & LC_SB_IN_PLACE))
		ret = device_zero(hdd, sb->mark_offset, LC_MARK_BYTES);
	/* One after the other: where the head is must be readable all the time. */
	for (copy = 2; copy-- && !ret; ) {
		lc_mark_encode(&mark, sb->csum_type, sb->mark_offset, copy, &raw);
		ret = device_write(hdd, lc_format_mark_address(sb->mark_offset, copy), &raw,
				   sizeof(raw));
		if (!ret)
			ret = device_sync(hdd);
	}
	return ret;
}

static int write_superblocks(const struct device *ssd, const struct lc_sb *sb)
{
	unsigned int copy;
	int ret = 0;

	for (copy = 0; copy < LC_SB_COPIES && !ret; copy++)
		ret = image_write_sb(ssd, sb, copy);
	return ret;
}

/*
 * Whatever is still recognised lies behind the first MiB, and is no use moving: somebody would
 * use the disk by it.  Undo everything then (A1).
 */
static int undo_recognised(const struct pair_request *req)
{
	struct signatures found;
	struct mark_pair marks;
	struct image img;
	int ret;

	ret = signatures_probe(req->hdd, &found);
	if (ret || !found.nr)
		return ret;
	complain(req->hdd->path, "still shows %s, which is not in its first MiB, so it could be used "
		 "without its cache by mistake; it is put back as it was; see --no-mark in "
		 "lc-format(8)", signatures_text(&found));
	ret = marks_read(&marks, req->hdd, 0);
	if (!ret && marks_best(&marks))
		ret = detach_disk(req->hdd, &marks);
	if (!ret)
		ret = image_read(&img, req->ssd);
	if (!ret && image_sb(&img))
		ret = detach_ssd(req->ssd, &img);
	return ret ? ret : -EEXIST;
}

/* In place: the disk is bare until the mark is on it. */
static int attach(const struct pair_request *req, const struct lc_sb *sb)
{
	int ret = attach_copy_head(req->hdd, sb);

	if (!ret)
		ret = write_superblocks(req->ssd, sb);
	if (!ret)
		ret = attach_begin(req->hdd, sb);
	if (!ret)
		ret = attach_finish(req->hdd, sb);
	return ret ? ret : undo_recognised(req);
}

int pair_write(const struct pair_request *req, const struct pair_choices *choices,
	       const struct lc_sb *sb)
{
	int ret = 0;

	if (choices->discard)
		ret = device_discard(req->ssd);
	if (!ret)
		ret = wipe_ssd(req->ssd, &sb->geo);
	if (!ret && !req->keep_volume)
		ret = wipe_hdd(req->hdd, sb);
	if (!ret)
		ret = old_marks_wipe(req->ssd, &req->ssd_marks, LC_NO_MARK);
	if (!ret)
		ret = old_marks_wipe(req->hdd, &req->hdd_marks, sb->mark_offset);
	if (!ret && sb->incompat & LC_INCOMPAT_MOVED_HEAD && !req->head_is_moved) {
		ret = attach(req, sb);
	} else if (!ret) {
		ret = write_mark(req->hdd, sb);
		if (!ret)
			ret = write_superblocks(req->ssd, sb);
	}
	device_reread_partitions(req->ssd);
	device_reread_partitions(req->hdd);
	return ret;
}
