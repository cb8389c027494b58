// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is on a device: every file system, RAID or LVM member, swap area and
 * partition table libblkid knows, and how far a file system reaches.
 *
 * libblkid tells a file system's size only from version 2.39 on, Debian 12 has
 * 2.38, so sizes of the common ones are read here.  What is not known to end
 * before a limit counts as reaching beyond it.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <string.h>

#include "signature.h"
#include "text.h"
#include "util.h"

static bool add_signature(struct signatures *found, blkid_probe probe)
{
	struct signature *s, scratch;
	const char *type, *label, *text;

	s = found->nr < SIGNATURES_MAX ? &found->list[found->nr] : &scratch;
	memset(s, 0, sizeof(*s));
	if (blkid_probe_lookup_value(probe, "TYPE", &type, NULL)) {
		if (blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL))
			return false;
		s->is_table = true;
	}
	s->is_raid = !blkid_probe_lookup_value(probe, "USAGE", &text, NULL) &&
		     !strcmp(text, "raid");
	if (blkid_probe_lookup_value(probe, s->is_table ? "PTMAGIC_OFFSET" : "SBMAGIC_OFFSET",
				     &text, NULL) || !parse_u64(text, &s->at))
		s->at = ~0ULL;
	snprintf(s->type, sizeof(s->type), "%s", type);
	if (!blkid_probe_lookup_value(probe, "LABEL", &label, NULL))
		snprintf(s->label, sizeof(s->label), "%s", shown(label));
	found->nr++;
	return true;
}

static void look_for_all(blkid_probe probe)
{
	blkid_probe_enable_superblocks(probe, 1);
	/* A damaged signature may still be somebody's data. */
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL |
					  BLKID_SUBLKS_USAGE | BLKID_SUBLKS_MAGIC |
					  BLKID_SUBLKS_BADCSUM);
	blkid_probe_enable_partitions(probe, 1);
	blkid_probe_set_partitions_flags(probe, BLKID_PARTS_FORCE_GPT | BLKID_PARTS_MAGIC);
}

int signatures_probe_at(const struct device *dev, u64 offset, struct signatures *found)
{
	blkid_probe probe = device_probe_begin(dev, offset);
	unsigned int rounds = 0;
	int ret = 0;

	memset(found, 0, sizeof(*found));
	if (!probe)
		return -EIO;
	look_for_all(probe);
	while (rounds++ < 64 && !(ret = blkid_do_probe(probe)))
		add_signature(found, probe);
	device_probe_end(dev, probe);
	if (ret < 0) {
		complain(dev->path, "could not be read while probing for file systems");
		return -EIO;
	}
	return 0;
}

int signatures_probe(const struct device *dev, struct signatures *found)
{
	return signatures_probe_at(dev, 0, found);
}

int signatures_wipe(const struct device *dev, u64 offset)
{
	blkid_probe probe = device_probe_begin(dev, offset);
	struct signatures left;
	unsigned int rounds = 0;
	int ret = 0;

	if (!probe)
		return -EIO;
	look_for_all(probe);
	while (rounds++ < 64 && !ret && !blkid_do_probe(probe))
		ret = blkid_do_wipe(probe, 0);
	device_probe_end(dev, probe);
	if (ret) {
		complain(dev->path, "what it holds could not be overwritten");
		return -EIO;
	}
	ret = device_sync(dev);
	if (!ret)
		ret = signatures_probe_at(dev, offset, &left);
	if (ret || !left.nr)
		return ret;
	complain(dev->path, "still holds %s after it was overwritten; use wipefs(8) first",
		 signatures_text(&left));
	return -EIO;
}

const char *signatures_text(const struct signatures *found)
{
	static char text[1024];
	unsigned int i;
	size_t n = 0;

	text[0] = '\0';
	for (i = 0; i < found->nr && i < SIGNATURES_MAX && n < sizeof(text); i++) {
		const struct signature *s = &found->list[i];

		n += snprintf(text + n, sizeof(text) - n, "%s%s%s%s%s%s", i ? ", " : "", s->type,
			      s->is_table ? " partition table" : "", s->label[0] ? " \"" : "",
			      s->label, s->label[0] ? "\"" : "");
	}
	return text;
}

static u64 le(const u8 *p, int bytes)
{
	u64 n = 0;

	while (bytes--)
		n = n << 8 | p[bytes];
	return n;
}

static u64 be(const u8 *p, int bytes)
{
	u64 n = 0;

	while (bytes--)
		n = n << 8 | *p++;
	return n;
}

static u64 ext_end(const u8 *sb)
{
	u64 blocks = le(sb + 4, 4);
	u32 shift = le(sb + 24, 4);

	if (le(sb + 96, 4) & 0x80)	/* 64bit */
		blocks |= le(sb + 0x150, 4) << 32;
	return shift > 6 ? 0 : blocks << (10 + shift);
}

static u64 fat_end(const u8 *sb)
{
	u64 sectors = le(sb + 19, 2);

	return (sectors ? sectors : le(sb + 32, 4)) * le(sb + 11, 2);
}

/* Byte behind the last one a file system uses; 0 if it cannot be told. */
static u64 fs_end(const struct device *dev, const char *type)
{
	u8 head[4096], btrfs[4096];

	if (dev->bytes < (64 << 10) + sizeof(btrfs) || device_read(dev, 0, head, sizeof(head)) ||
	    device_read(dev, 64 << 10, btrfs, sizeof(btrfs)))
		return 0;
	if (!strncmp(type, "ext", 3) && type[3] >= '2' && type[3] <= '4' && !type[4])
		return ext_end(head + 1024);
	if (!strcmp(type, "xfs"))
		return be(head + 4, 4) * be(head + 8, 8);
	if (!strcmp(type, "btrfs"))
		return le(btrfs + 0xc9 + 8, 8);		/* this device's share */
	if (!strcmp(type, "vfat"))
		return fat_end(head);
	if (!strcmp(type, "ntfs"))			/* and a boot sector copy behind it */
		return (le(head + 0x28, 8) + 1) * le(head + 11, 2);
	return 0;
}

/* End of the last partition of a DOS table; others keep things at the end of the disk. */
static u64 table_end(const struct device *dev, const char *type)
{
	blkid_partlist list;
	blkid_probe probe;
	u64 end = 0;
	int i, n;

	if (strcmp(type, "dos"))
		return 0;
	probe = device_probe_begin(dev, 0);
	if (!probe)
		return 0;
	list = blkid_probe_get_partitions(probe);
	n = list ? blkid_partlist_numof_partitions(list) : 0;
	for (i = 0; i < n; i++) {
		blkid_partition p = blkid_partlist_get_partition(list, i);
		u64 last = (u64)blkid_partition_get_start(p) + blkid_partition_get_size(p);

		if (last > end)
			end = last;
	}
	device_probe_end(dev, probe);
	return end << 9;
}

u64 signatures_known_end(const struct device *dev, const struct signatures *found)
{
	u64 last = 0;
	unsigned int i;

	for (i = 0; i < found->nr && i < SIGNATURES_MAX; i++) {
		const struct signature *s = &found->list[i];
		u64 end = s->is_table ? table_end(dev, s->type) : fs_end(dev, s->type);

		if (end > last)
			last = end;
	}
	return last;
}

bool signatures_end_below(const struct device *dev, const struct signatures *found, u64 limit,
			  char *why, size_t len)
{
	unsigned int i;

	if (found->nr > SIGNATURES_MAX) {
		snprintf(why, len, "it holds more signatures than this tool can follow");
		return false;
	}
	for (i = 0; i < found->nr; i++) {
		const struct signature *s = &found->list[i];
		u64 end = s->is_table ? table_end(dev, s->type) : fs_end(dev, s->type);

		if (!end) {
			snprintf(why, len, "how far its %s reaches cannot be told", s->type);
			return false;
		}
		if (end > limit) {
			snprintf(why, len, "its %s ends at byte %llu, which is %llu bytes too far",
				 s->type, end, end - limit);
			return false;
		}
	}
	return true;
}
