// SPDX-License-Identifier: GPL-2.0-only
/*
 * The data of a cache whose volume cannot be started any more, such as one whose hard disk was
 * changed meanwhile.
 *
 * The records that replay would apply are applied here, in the order of their seqs: the rules of
 * replay.c say which exist, and the first one whose data is torn, above all that is known to be
 * durable, ends the log.  After a clean stop the checkpoint says which of the blocks the hard disk
 * does not have; if it is damaged, all of the log from the tail on is taken, which is more.
 * Every slot is verified before its sectors are written.
 *
 * Takes 40 bytes of memory for each block, and as much again for the table that finds it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extract.h"
#include "image.h"
#include "memory.h"
#include "scan.h"
#include "text.h"
#include "util.h"

/* The newest version of a block. */
struct copy {
	u64 block;
	u64 at;			/* byte address of its slot */
	u32 csum;
	u8 mask, lost;		/* no sector in either: the block is not here */
	bool dirty;		/* by the checkpoint */
};

struct extract {
	const struct device *dev;
	struct lc_sb sb;
	struct copy *copy;
	size_t nr, space;
	size_t *table;		/* index + 1 by hash of the block, 0: free; twice @space */
	int image;
	FILE *map;
	/* The range that is not written to the map yet. */
	u64 first, sectors;
	const char *what;
	u64 nr_data, nr_gone;	/* sectors */
};

static size_t *place(struct extract *x, u64 block)
{
	size_t mask = x->space * 2 - 1, i = (block * 0x9e3779b97f4a7c15ULL >> 20) & mask;

	while (x->table[i] && x->copy[x->table[i] - 1].block != block)
		i = (i + 1) & mask;
	return &x->table[i];
}

static void grow(struct extract *x)
{
	size_t i;

	x->space = x->space ? x->space * 2 : 1024;
	x->copy = xrealloc(x->copy, x->space, sizeof(*x->copy));
	free(x->table);
	x->table = xcalloc(x->space * 2, sizeof(*x->table));
	for (i = 0; i < x->nr; i++)
		*place(x, x->copy[i].block) = i + 1;
}

static struct copy *find(struct extract *x, u64 block)
{
	size_t *at = x->space ? place(x, block) : NULL;

	return at && *at ? &x->copy[*at - 1] : NULL;
}

static struct copy *find_or_add(struct extract *x, u64 block)
{
	size_t *at;

	if (x->nr == x->space)
		grow(x);
	at = place(x, block);
	if (!*at) {
		x->copy[x->nr++] = (struct copy){ .block = block };
		*at = x->nr;
	}
	return &x->copy[*at - 1];
}

static void forget(struct copy *copy)
{
	copy->mask = copy->lost = 0;
}

/* A discard: no older copy of these blocks exists. */
static void apply_range(struct extract *x, const struct lc_entry_info *e)
{
	struct copy *copy;
	u64 i;

	if (e->nr_blocks > x->nr) {
		for (i = 0; i < x->nr; i++) {
			if (x->copy[i].block - e->block < e->nr_blocks)
				forget(&x->copy[i]);
		}
		return;
	}
	for (i = 0; i < e->nr_blocks; i++) {
		copy = find(x, e->block + i);
		if (copy)
			forget(copy);
	}
}

static u64 slot_address(const struct extract *x, const struct lc_record_info *info, unsigned int i)
{
	return lc_format_log_address(&x->sb.geo, info->segment,
				     info->first_slot + LC_HEADER_SLOTS + i);
}

static bool is_torn(const struct extract *x, const struct lc_record_info *info,
		    const struct lc_record_header *raw)
{
	u8 data[LC_SLOT_BYTES];
	struct lc_entry_info e;
	unsigned int i;

	for (i = 0; i < info->nr_slots; i++) {
		lc_entry_decode(raw, i, &e);
		if (e.type == LC_ENTRY_DATA && e.mask &&
		    scan_slot(x->dev, &x->sb, slot_address(x, info, i), e.block, e.csum, data))
			return true;
	}
	return false;
}

/* Return: 0, 1 if the log ends before this record, or a negative errno. */
static int apply_record(struct extract *x, const struct lc_record_info *found, u64 durable)
{
	struct lc_record_header raw;
	struct lc_record_info info;
	struct lc_entry_info e;
	struct copy *copy;
	const char *why;
	unsigned int i;
	int ret;

	ret = scan_read_header(x->dev, &x->sb, found->segment, found->first_slot, &raw, &info, &why);
	if (ret) {
		complain(x->dev->path, "record %llu: %s", found->seq, why);
		return ret;
	}
	if (info.seq > durable && is_torn(x, &info, &raw))
		return 1;
	for (i = 0; i < info.nr_entries; i++) {
		lc_entry_decode(&raw, i, &e);
		if (e.type == LC_ENTRY_NONE)
			continue;
		if (e.type == LC_ENTRY_RANGE_TOMBSTONE) {
			apply_range(x, &e);
			continue;
		}
		if (e.type != LC_ENTRY_DATA) {
			complain(x->dev->path, "record %llu has an entry this version never writes: "
				 "type %u; use the tools of the dm-lc that wrote it", info.seq,
				 e.type);
			return -EOPNOTSUPP;
		}
		copy = find_or_add(x, e.block);
		copy->at = slot_address(x, &info, i);
		copy->csum = e.csum;
		copy->mask = e.mask;
		copy->lost = e.lost;
	}
	return 0;
}

static int apply_log(struct extract *x, const struct scan *scan)
{
	size_t *order, nr, i;
	int ret = 0;

	order = scan_by_seq(scan, &nr);
	for (i = 0; i < nr && !ret; i++)
		ret = apply_record(x, &scan->found[order[i]], scan->run.durable_seq);
	free(order);
	return ret < 0 ? ret : 0;
}

/* Fill copy[] from the log.  Return: 0, -EUCLEAN if records are missing, another errno. */
static int read_log(struct extract *x)
{
	const struct scan_bad *unknown;
	struct scan scan;
	int ret, damage = 0;

	scan_log(&scan, x->dev, &x->sb, SCAN_LOG);
	scan_select(&scan, x->dev, &x->sb);
	if (scan.verdict == -EUCLEAN) {
		scan_free(&scan);
		scan_log(&scan, x->dev, &x->sb, SCAN_RING);
		scan_select(&scan, x->dev, &x->sb);
		damage = -EUCLEAN;
		complain(x->dev->path, "record %llu is damaged, so nothing from it on is extracted, up "
			 "to %llu; work with a copy of the SSD and see lc-check --repair for the rest",
			 scan.run.last_seq + 1, scan.run.durable_seq);
	}
	unknown = scan_unknown(&scan);
	if (unknown) {
		complain(x->dev->path, "segment %llu, slot %u: %s; use the tools of the newer dm-lc "
			 "that wrote it", unknown->segment, unknown->slot, unknown->why);
		ret = -EOPNOTSUPP;
	} else if (scan.verdict == -ESTALE) {
		complain(x->dev->path, "its log has records of a later life than its superblock: an old "
			 "superblock cannot tell what is on the hard disk; see lc-check");
		ret = -ESTALE;
	} else if (scan.verdict == -E2BIG) {
		complain(x->dev->path, "its log has records of more than %u lives, more than can be told "
			 "apart", LC_REPLAY_LIVES);
		ret = -E2BIG;
	} else {
		ret = apply_log(x, &scan);
	}
	scan_free(&scan);
	return ret ? ret : damage;
}

/* Mark what the checkpoint of a clean stop calls dirty.  Return: whether all of it is good. */
static bool read_checkpoint(struct extract *x, const struct lc_sb *sb)
{
	u64 index, seen = 0;
	struct lc_ckpt_block raw;
	struct lc_ckpt_item item;
	struct copy *copy;
	const char *why;
	u32 i, nr;

	for (index = 0; seen < sb->ckpt_entries; index++, seen += nr) {
		if (image_ckpt_block(x->dev, sb, index, &raw, &nr, &why))
			return false;
		for (i = 0; i < nr; i++) {
			if (lc_ckpt_item_decode(&raw, sb, i, &item))
				return false;
			if (item.flags & LC_CKPT_ENTRY_BOUNDARY ||
			    !(item.flags & LC_CKPT_ENTRY_DIRTY || item.lost))
				continue;
			copy = find(x, item.block);
			if (!copy ||
			    (item.mask && copy->at != lc_slot_address(&sb->geo, item.slot)))
				return false;
			copy->dirty = true;
		}
	}
	return seen == sb->ckpt_entries;
}

static int compare_blocks(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

static void map_end(struct extract *x)
{
	if (x->map && x->sectors)
		fprintf(x->map, "%llu %llu %s\n", x->first, x->sectors, x->what);
	x->sectors = 0;
}

static void map_add(struct extract *x, u64 sector, const char *what)
{
	if (!x->sectors || sector != x->first + x->sectors || strcmp(what, x->what)) {
		map_end(x);
		x->first = sector;
		x->what = what;
	}
	x->sectors++;
}

static int write_copy(struct extract *x, const struct copy *copy)
{
	bool whole, tried = copy->mask;
	u8 data[LC_SLOT_BYTES];
	unsigned int i;

	whole = tried && !scan_slot(x->dev, &x->sb, copy->at, copy->block, copy->csum, data);
	for (i = 0; i < LC_BLOCK_SECTORS; i++) {
		u64 sector = copy->block * LC_BLOCK_SECTORS + i;

		if (sector >= x->sb.volume_sectors || !((copy->mask | copy->lost) >> i & 1))
			continue;
		if (!(copy->mask >> i & 1) || !whole) {
			x->nr_gone++;
			map_add(x, sector, copy->mask >> i & 1 ? "damaged" : "lost");
			continue;
		}
		if (pwrite(x->image, data + i * 512, 512, sector << 9) != 512)
			return -errno;
		x->nr_data++;
		map_add(x, sector, "data");
	}
	return 0;
}

static int write_all(struct extract *x, bool only_dirty)
{
	size_t i;
	int ret = 0;

	qsort(x->copy, x->nr, sizeof(*x->copy), compare_blocks);
	for (i = 0; i < x->nr && !ret; i++) {
		if (x->copy[i].dirty || !only_dirty)
			ret = write_copy(x, &x->copy[i]);
	}
	map_end(x);
	if (!ret && fsync(x->image))
		ret = -errno;
	return ret;
}

/* A new file, and never over an old one: it may be the only copy of something. */
static int create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		complain(path, "cannot be created: %s%s", strerror(errno),
			 errno == EEXIST ? "; name a new file" : "");
	return fd;
}

static int open_files(struct extract *x, const char *image, const char *map)
{
	int fd;

	x->image = create(image);
	if (x->image < 0)
		return -EEXIST;
	if (ftruncate(x->image, (off_t)(x->sb.volume_sectors << 9))) {
		complain(image, "cannot be made as large as the volume (%s): %s; take a file system "
			 "for larger files", size_text(x->sb.volume_sectors << 9), strerror(errno));
		return -EFBIG;
	}
	if (!map)
		return 0;
	fd = create(map);
	x->map = fd < 0 ? NULL : fdopen(fd, "w");
	return x->map ? 0 : -EEXIST;
}

static int close_files(struct extract *x, const char *image, const char *map, int ret)
{
	bool failed = x->map && ferror(x->map);

	if (x->map && (fclose(x->map) || failed)) {
		complain(map, "could not be written completely");
		ret = -EIO;
	}
	if (x->image >= 0 && close(x->image) && !ret)
		ret = -errno;
	if (ret && ret != -EUCLEAN)
		complain(image, "is not complete: do not use it");
	return ret;
}

int extract(const struct device *dev, const struct lc_sb *sb, const char *image, const char *map)
{
	struct extract x = { .dev = dev, .sb = *sb, .image = -1 };
	bool clean = sb->flags & LC_SB_CLEAN, only_dirty = false;
	int ret, damage;

	if (clean) {
		/* All up to the stop is durable, as in repair_superblocks(). */
		lc_replay_next_life(&x.sb, sb->next_seq);
		x.sb.flags &= ~LC_SB_CLEAN;
	}
	damage = read_log(&x);
	ret = damage == -EUCLEAN ? 0 : damage;
	if (!ret && clean) {
		only_dirty = read_checkpoint(&x, sb);
		if (!only_dirty)
			complain(dev->path, "its checkpoint is damaged: blocks that are on the hard disk "
				 "already may be among what is extracted");
	}
	if (!ret)
		ret = open_files(&x, image, map);
	if (!ret) {
		ret = write_all(&x, only_dirty);
		if (ret)
			complain(image, "%s", strerror(-ret));
		ret = close_files(&x, image, map, ret);
	} else if (x.image >= 0) {
		close(x.image);
	}
	if (!ret) {
		printf("%s: %llu sectors (%s) extracted, %llu damaged or lost\n", shown(image),
		       x.nr_data, size_text(x.nr_data << 9), x.nr_gone);
		ret = x.nr_gone ? -EUCLEAN : damage;
	}
	free(x.copy);
	free(x.table);
	return ret;
}
