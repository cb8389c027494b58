// SPDX-License-Identifier: GPL-2.0-only
/* lc-probe: is a device half of a pair?  The cases are in probe.h. */
#include <blkid/blkid.h>
#include <errno.h>
#include <string.h>

#include "attach.h"
#include "image.h"
#include "pairing.h"
#include "probe.h"
#include "signature.h"
#include "util.h"

#define GPT_ALTERNATE_AT	32	/* in its header: the sector of the copy */

/* What the first 4 KiB of a device say. */
enum front {
	FRONT_OTHERS,		/* data of others */
	FRONT_UNKNOWN,		/* zero or unreadable: the second copy may tell */
	FRONT_CACHE,		/* the magic of a superblock */
	FRONT_BACKING,		/* the magic of a mark */
};

/* A half as its own bytes tell it, before others are asked. */
struct claim {
	struct probe probe;
	u64 extent;		/* bytes of the device that the pair takes; 0: not known */
	bool interrupted;	/* the first MiB may hold some of what was or comes there */
	bool front_bad;		/* the first copy is no copy: others may have written there */
};

static int read_front(const struct device *dev, enum front *front)
{
	u8 block[LC_SLOT_BYTES];
	int ret = device_read(dev, 0, block, sizeof(block));
	bool bad = device_bad_medium(ret);

	/* A place on the medium, or all of the device?  Each read of that may take minutes. */
	if (bad)
		ret = device_read(dev, LC_SB_COPY_STRIDE, block, sizeof(block));
	if (ret)
		return ret;
	if (bad || attach_is_zero(block, sizeof(block)))
		*front = FRONT_UNKNOWN;
	else if (!memcmp(block, LC_SB_MAGIC, LC_MAGIC_LEN))
		*front = FRONT_CACHE;
	else if (!memcmp(block, LC_MARK_MAGIC, LC_MAGIC_LEN))
		*front = FRONT_BACKING;
	else
		*front = FRONT_OTHERS;
	return 0;
}

static void set_names(struct probe *probe, const u8 uuid[16], const char *label)
{
	probe->known = true;
	probe->version = LC_FORMAT_VERSION;
	memcpy(probe->uuid, uuid, 16);
	snprintf(probe->label, sizeof(probe->label), "%s", label);
}

/* The version that the copy at @at says, which is newer or has features that are not known. */
static u32 version_at(const struct device *dev, u64 at, size_t field)
{
	u8 block[LC_SLOT_BYTES];
	__le32 version;

	if (device_read(dev, at, block, sizeof(block)))
		return 0;
	memcpy(&version, block + field, sizeof(version));
	return le32_to_cpu(version);
}

static int claim_cache(const struct device *dev, enum front front, struct claim *claim)
{
	const struct lc_sb *sb;
	struct image img;
	int ret = image_read(&img, dev);

	if (ret)
		return ret;
	sb = image_sb(&img);
	claim->front_bad = img.err[0] && img.err[0] != -EOPNOTSUPP;
	if (front == FRONT_CACHE && image_newer(&img)) {
		unsigned int copy = img.err[0] == -EOPNOTSUPP ? 0 : 1;

		claim->probe.role = PROBE_CACHE;
		claim->probe.version = version_at(dev, copy * LC_SB_COPY_STRIDE,
						  offsetof(struct lc_superblock, version));
	} else if (sb) {
		claim->probe.role = PROBE_CACHE;
		claim->extent = sb->geo.cache_bytes;
		set_names(&claim->probe, sb->cache_uuid, sb->label);
	} else if (front == FRONT_CACHE && img.err[0] == -EBADMSG) {
		claim->probe.role = PROBE_CACHE;
		if (!img.err[2])
			set_names(&claim->probe, img.copy[2].cache_uuid, img.copy[2].label);
	} else if (front == FRONT_UNKNOWN && image_unreadable(&img)) {
		return -EIO;
	}
	return 0;
}

/* Bytes of the disk that the mark's pair takes, 0 if the mark cannot be of this device. */
static u64 extent_of(const struct lc_mark_info *mark, const struct device *dev, u64 offset)
{
	u64 end;

	if (mark->volume_sectors >= LC_MAX_BLOCKS * LC_BLOCK_SECTORS ||
	    mark->data_offset > LC_MARK_BYTES)
		return 0;
	end = mark->data_offset + (mark->volume_sectors << 9);
	if (offset)
		end = end > offset ? 0 : offset + LC_MARK_BYTES;
	else if (mark->head_offset)
		end += LC_MARK_BYTES;
	return end > dev->bytes ? 0 : end;
}

static void claim_by_mark(const struct device *dev, const struct mark_pair *marks,
			  struct claim *claim)
{
	const struct lc_mark_info *mark = marks_best(marks);
	u64 extent = extent_of(mark, dev, marks->offset);

	if (!extent)
		return;
	claim->probe.role = PROBE_BACKING;
	claim->extent = extent;
	claim->interrupted = attach_interrupted(mark);
	set_names(&claim->probe, mark->cache_uuid, mark->label);
}

static int claim_backing(const struct device *dev, enum front front, struct claim *claim)
{
	struct mark_pair marks;
	int ret = marks_read(&marks, dev, 0);

	if (ret)
		return ret;
	claim->front_bad = marks.err[0] && marks.err[0] != -EOPNOTSUPP;
	if (front == FRONT_BACKING &&
	    (marks.err[0] == -EOPNOTSUPP || marks.err[1] == -EOPNOTSUPP)) {
		unsigned int copy = marks.err[0] == -EOPNOTSUPP ? 0 : 1;

		claim->probe.role = PROBE_BACKING;
		claim->probe.version = version_at(dev, lc_format_mark_address(0, copy),
						  offsetof(struct lc_mark, version));
	} else if (marks_best(&marks)) {
		claim_by_mark(dev, &marks, claim);
	} else if (front == FRONT_BACKING && marks.err[0] == -EBADMSG) {
		claim->probe.role = PROBE_BACKING;
	} else if (front == FRONT_UNKNOWN && marks_unreadable(&marks)) {
		return -EIO;
	}
	return 0;
}

static int claim_front(const struct device *dev, struct claim *claim)
{
	int ret, cache = 0, backing = 0;
	enum front front;

	ret = read_front(dev, &front);
	if (ret)
		return ret;
	if (front == FRONT_CACHE || front == FRONT_UNKNOWN)
		cache = claim_cache(dev, front, claim);
	if (!claim->probe.role && (front == FRONT_BACKING || front == FRONT_UNKNOWN))
		backing = claim_backing(dev, front, claim);
	/* What cannot be read may be either. */
	if (claim->probe.role)
		return 0;
	return cache ? cache : backing;
}

/* The mark of older tools. */
static int claim_end(const struct device *dev, struct claim *claim)
{
	u64 offset = mark_offset_in_place(dev->bytes);
	struct mark_pair marks;
	int ret;

	if (!offset)
		return 0;
	ret = marks_read(&marks, dev, offset);
	if (ret)
		return ret;
	/* The data of others can be there: only what is a mark counts. */
	if (marks_best(&marks))
		claim_by_mark(dev, &marks, claim);
	else if (marks_unreadable(&marks))
		return -EIO;
	return 0;
}

/* Where the copy of a GPT ends, as the GPT says; 0: there is none. */
static u64 gpt_end(const struct device *dev)
{
	u8 header[LC_SLOT_BYTES];
	__le64 alternate;

	if (device_read(dev, dev->lbs, header, dev->lbs) || memcmp(header, "EFI PART", 8))
		return 0;
	memcpy(&alternate, header + GPT_ALTERNATE_AT, sizeof(alternate));
	if (le64_to_cpu(alternate) >= dev->bytes / dev->lbs)
		return 0;
	return (le64_to_cpu(alternate) + 1) * dev->lbs;
}

/* Has somebody else a better claim?  If that cannot be told, ours stands. */
static bool is_of_others(const struct device *dev, const struct claim *claim, bool at_end)
{
	struct signatures found;
	unsigned int i;

	if (signatures_probe(dev, &found))
		return false;
	for (i = 0; i < found.nr && i < SIGNATURES_MAX; i++) {
		const struct signature *s = &found.list[i];

		/* Our copies and what others write cannot be in one place, but for boot code. */
		if (!at_end && !claim->interrupted && s->at < LC_MARK_BYTES &&
		    (s->at >= LC_SLOT_BYTES || claim->front_bad))
			return true;
		if (s->is_raid && claim->extent && s->at >= claim->extent)
			return true;
	}
	return at_end && (signatures_known_end(dev, &found) > mark_offset_in_place(dev->bytes) ||
			  gpt_end(dev) > mark_offset_in_place(dev->bytes));
}

int probe_device(const struct device *dev, struct probe *result)
{
	struct claim front = { 0 }, end = { 0 };
	int ret;

	memset(result, 0, sizeof(*result));
	if (dev->bytes < LC_SLOT_BYTES || dev->lbs > LC_SLOT_BYTES)
		return 0;
	ret = claim_front(dev, &front);
	if (!ret)
		ret = claim_end(dev, &end);
	if (ret && !front.probe.role)
		return -EIO;
	if (end.probe.role && end.extent > front.extent && !is_of_others(dev, &end, true))
		*result = end.probe;
	else if (front.probe.role && !is_of_others(dev, &front, false))
		*result = front.probe;
	return 0;
}

/* As udev's own blkid prints them. */
static void print_text(const char *key, const char *value)
{
	char text[256 * 4 + 1] = "";

	if (!value[0])
		return;
	blkid_safe_string(value, text, sizeof(text));
	printf("%s=%s\n", key, text);
	blkid_encode_string(value, text, sizeof(text));
	printf("%s_ENC=%s\n", key, text);
}

static void print(const struct probe *probe)
{
	bool cache = probe->role == PROBE_CACHE;

	if (probe->role == PROBE_NEITHER)
		return;
	printf("ID_FS_TYPE=%s\n", cache ? "lc_cache" : "lc_backing");
	/* No rule of udev makes links for the UUID of a "raid", and both halves have the same. */
	printf("ID_FS_USAGE=%s\n", cache ? "other" : "raid");
	if (probe->version)
		printf("ID_FS_VERSION=%u\n", probe->version);
	if (!probe->known)
		return;
	print_text("ID_FS_UUID", uuid_text(probe->uuid));
	print_text("ID_FS_LABEL", probe->label);
}

/* A drive without a medium, or a device that is gone meanwhile, is no half; ENXIO: it is offline. */
static bool is_absent(int err)
{
	return err == -ENOENT || err == -ENODEV || err == -ENOMEDIUM;
}

int probe_main(int argc, char **argv)
{
	struct probe result;
	struct device dev;
	int ret;

	if (argc != 2 || argv[1][0] == '-')
		return usage_error("give one device; for the rules of udev only");
	ret = device_open(&dev, argv[1], DEVICE_GLANCE | DEVICE_FILE_OK | DEVICE_QUIET);
	if (ret) {
		if (is_absent(ret))
			return LC_EXIT_OK;
		complain(argv[1], "cannot be probed: %s", strerror(-ret));
		return LC_EXIT_FAIL;
	}
	ret = probe_device(&dev, &result);
	device_close(&dev);
	if (ret)
		return LC_EXIT_FAIL;
	print(&result);
	return LC_EXIT_OK;
}
