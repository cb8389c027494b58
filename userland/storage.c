// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which bytes of which disk or file a block device stands for.
 *
 * A device is described by the places found on the way down from it: itself, the disk it is a
 * partition of, the file or device behind a loop device, the devices under a dm or md device.
 * Each place is a range of that device.  It is exact if every byte of the device above lies at
 * a known byte of it (partitions, loop devices, dm-linear, dm-multipath, RAID1), otherwise it is
 * a bound: some bytes of the range, or all, belong to the device.
 *
 * Two disks of one WWN count as two paths to one disk.  There are disks that lie about it, so
 * that this is told apart, and a person may overrule it.
 *
 * O_EXCL alone does not do: a loop device does not claim the device behind it, so that a disk
 * can be claimed while a file system on it is mounted through a loop device, or the other way
 * round.
 *
 * The work is one walk for each block device of the machine.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libdevmapper.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "identity.h"
#include "memory.h"
#include "storage.h"
#include "util.h"

#define DEPTH_MAX	16
#define PLACES_MAX	256	/* a stack with more is not followed any further */

struct place {
	dev_t dev;
	ino_t ino;		/* of a file on @dev; 0: the block device @dev itself */
	u64 start, bytes;
	bool exact;
	bool claimed;		/* by the device above it, so that nothing else can use it */
	bool partition;		/* reached from a partition of it */
	char wwn[64];		/* of a disk that has one */
	char chain[256];	/* how it was reached */
};

struct storage {
	struct place *place;	/* the device itself comes first */
	size_t nr;
};

static char *sysfs_dir(dev_t dev)
{
	char *link = xasprintf("/sys/dev/block/%u:%u", major(dev), minor(dev));
	char *dir = realpath(link, NULL);

	free(link);
	return dir;
}

static bool read_line(const char *dir, const char *name, char *text, size_t len)
{
	char *path = xasprintf("%s/%s", dir, name);
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(text, len, f);

	if (f)
		fclose(f);
	free(path);
	if (ok)
		text[strcspn(text, "\n")] = '\0';
	return ok;
}

static u64 read_number(const char *dir, const char *name)
{
	char text[32];

	return read_line(dir, name, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

static dev_t read_dev(const char *dir, const char *name)
{
	unsigned int ma, mi;
	char text[32];

	if (!read_line(dir, name, text, sizeof(text)) || sscanf(text, "%u:%u", &ma, &mi) != 2)
		return 0;
	return makedev(ma, mi);
}

/* A name for people: that of the mapping, or the kernel's. */
static void name_of(const char *dir, char *name, size_t len)
{
	if (!read_line(dir, "dm/name", name, len))
		snprintf(name, len, "%s", strrchr(dir, '/') + 1);
	clean_text(name);
}

static void walk(struct storage *s, struct place at, const char *above, unsigned int depth);
static void walk_slaves(struct storage *s, const struct place *at, const char *dir, bool mirrors,
			unsigned int depth);

static void walk_partition(struct storage *s, const struct place *at, const char *dir,
			   unsigned int depth)
{
	struct place below = *at;
	char *parent = xasprintf("%s", dir);

	*strrchr(parent, '/') = '\0';
	below.dev = read_dev(parent, "dev");
	below.start += read_number(dir, "start") << 9;
	below.claimed = true;
	below.partition = true;
	free(parent);
	if (below.dev)
		walk(s, below, at->chain, depth + 1);
}

static void walk_loop(struct storage *s, const struct place *at, const char *dir,
		      unsigned int depth)
{
	char *node = xasprintf("/dev/%s", strrchr(dir, '/') + 1);
	struct place below = *at;
	struct loop_info64 info;
	struct stat st;
	int fd = open(node, O_RDONLY | O_CLOEXEC);

	free(node);
	/* The node of that name may be something else. */
	if (fd >= 0 && !fstat(fd, &st) && st.st_rdev == at->dev &&
	    !ioctl(fd, LOOP_GET_STATUS64, &info)) {
		below.start += info.lo_offset;
		below.claimed = false;
		below.partition = false;
		below.dev = info.lo_rdevice ? info.lo_rdevice : info.lo_device;
		below.ino = info.lo_rdevice ? 0 : info.lo_inode;
		walk(s, below, at->chain, depth + 1);
	}
	if (fd >= 0)
		close(fd);
}

/* A target of a dm table that is in the range; false if what it does is not known here. */
static bool walk_linear(struct storage *s, const struct place *at, u64 start, u64 length,
			const char *params, unsigned int depth)
{
	u64 from = start > at->start ? start : at->start;
	u64 end = at->start + at->bytes;
	struct place below = *at;
	unsigned long long offset;
	unsigned int ma, mi;

	if (sscanf(params, "%u:%u %llu", &ma, &mi, &offset) != 3)
		return false;
	if (start + length < end)
		end = start + length;
	if (end <= from)
		return true;
	below.dev = makedev(ma, mi);
	below.start = (offset << 9) + from - start;
	below.bytes = end - from;
	below.claimed = true;
	below.partition = false;
	walk(s, below, at->chain, depth + 1);
	return true;
}

/*
 * Only if all targets are linear, or one is all of it and gives sectors their own numbers; the
 * kernel gives major:minor in their lines.
 */
static bool walk_dm(struct storage *s, const struct place *at, const char *dir,
		    unsigned int depth)
{
	struct dm_task *task = dm_task_create(DM_DEVICE_TABLE);
	char *type = NULL, *params = NULL;
	uint64_t start = 0, length = 0;
	bool known, multipath = false;
	size_t before = s->nr;
	void *next = NULL;

	known = task && dm_task_set_major(task, major(at->dev)) &&
		dm_task_set_minor(task, minor(at->dev)) && dm_task_run(task);
	while (known) {
		next = dm_get_next_target(task, next, &start, &length, &type, &params);
		multipath = type && !strcmp(type, "multipath") && !start && !next;
		known = multipath || (type && !strcmp(type, "linear") &&
			walk_linear(s, at, start << 9, length << 9, params, depth));
		if (!next)
			break;
	}
	if (task)
		dm_task_destroy(task);
	if (!known)
		s->nr = before;
	else if (multipath)
		walk_slaves(s, at, dir, true, depth);
	return known;
}

/* Where the array's data begins on a member of an md array, in bytes; 0 for other devices. */
static u64 member_offset(const char *dir, const char *member)
{
	char *name = xasprintf("md/dev-%s/offset", member);
	u64 sectors = read_number(dir, name);

	free(name);
	return sectors << 9;
}

/* @mirrors: each of them has all bytes of the device, one behind the other. */
static void walk_slaves(struct storage *s, const struct place *at, const char *dir, bool mirrors,
			unsigned int depth)
{
	char *slaves = xasprintf("%s/slaves", dir);
	struct dirent *entry;
	DIR *list = opendir(slaves);

	while (list && (entry = readdir(list))) {
		struct place below = *at;
		char *slave;

		if (entry->d_name[0] == '.')
			continue;
		slave = xasprintf("%s/%s", slaves, entry->d_name);
		below.dev = read_dev(slave, "dev");
		if (mirrors) {
			below.start += member_offset(dir, entry->d_name);
		} else {
			below.start = 0;
			below.bytes = read_number(slave, "size") << 9;
			below.exact = false;
		}
		below.claimed = true;
		below.partition = false;
		if (below.dev)
			walk(s, below, at->chain, depth + 1);
		free(slave);
	}
	if (list)
		closedir(list);
	free(slaves);
}

static void walk(struct storage *s, struct place at, const char *above, unsigned int depth)
{
	char name[64], text[PATH_MAX], *dir;

	if (depth > DEPTH_MAX || s->nr >= PLACES_MAX)
		return;
	dir = at.ino ? NULL : sysfs_dir(at.dev);
	if (dir)
		name_of(dir, name, sizeof(name));
	else if (at.ino)
		snprintf(name, sizeof(name), "file %u:%u/%llu", major(at.dev), minor(at.dev),
			 (unsigned long long)at.ino);
	else
		snprintf(name, sizeof(name), "%u:%u", major(at.dev), minor(at.dev));
	/* A chain that is too long loses its upper end, never the disk. */
	snprintf(at.chain, sizeof(at.chain), "%.180s%s%.63s", above, above[0] ? " on " : "", name);
	if (!dir || (!read_line(dir, "wwid", at.wwn, sizeof(at.wwn)) &&
		     !read_line(dir, "device/wwid", at.wwn, sizeof(at.wwn))))
		at.wwn[0] = '\0';
	clean_text(at.wwn);
	s->place = xrealloc(s->place, s->nr + 1, sizeof(*s->place));
	s->place[s->nr++] = at;
	if (!dir)
		return;
	if (read_line(dir, "partition", text, sizeof(text)))
		walk_partition(s, &at, dir, depth);
	else if (read_line(dir, "loop/backing_file", text, sizeof(text)))
		walk_loop(s, &at, dir, depth);
	else if (!read_line(dir, "dm/name", text, sizeof(text)) || !walk_dm(s, &at, dir, depth))
		walk_slaves(s, &at, dir, read_line(dir, "md/level", text, sizeof(text)) &&
			    !strcmp(text, "raid1"), depth);
	free(dir);
}

static void storage_read(struct storage *s, dev_t dev, u64 bytes)
{
	struct place self = { .dev = dev, .bytes = bytes, .exact = true, .claimed = true };

	memset(s, 0, sizeof(*s));
	walk(s, self, "", 0);
}

static bool same_wwn(const struct place *a, const struct place *b)
{
	return a->dev != b->dev && !a->ino && !b->ino && a->wwn[0] && !strcmp(a->wwn, b->wwn);
}

/*
 * Two places on one device.  A bound overlaps for certain only with an exact range that covers
 * it.
 */
static enum storage_relation relate_places(const struct place *a, const struct place *b)
{
	u64 from = a->start > b->start ? a->start : b->start;
	u64 a_end = a->start + a->bytes, b_end = b->start + b->bytes;
	u64 to = a_end < b_end ? a_end : b_end;

	if (!same_wwn(a, b) && (a->dev != b->dev || a->ino != b->ino))
		return STORAGE_APART;
	if (from >= to || !(a->exact || b->exact))
		return STORAGE_SAME_DISK;
	if (!a->exact && (from != a->start || to != a_end))
		return STORAGE_SAME_DISK;
	if (!b->exact && (from != b->start || to != b_end))
		return STORAGE_SAME_DISK;
	return same_wwn(a, b) ? STORAGE_SAME_WWN : STORAGE_OVERLAP;
}

/* How the two are reached, to be freed. */
static char *chains_text(const struct place *a, const struct place *b)
{
	if (same_wwn(a, b))
		return xasprintf("%s, %s, which have one WWN, %s: two paths to one disk, as it "
				 "seems", a->chain, b->chain, a->wwn);
	return xasprintf("%s, %s", a->chain, b->chain);
}

static enum storage_relation relate(const struct storage *a, const struct storage *b,
				    const struct place **in_a, const struct place **in_b)
{
	enum storage_relation found = STORAGE_APART, r;
	size_t i, k;

	for (i = 0; i < a->nr; i++) {
		for (k = 0; k < b->nr; k++) {
			r = relate_places(&a->place[i], &b->place[k]);
			if (r <= found)
				continue;
			found = r;
			*in_a = &a->place[i];
			*in_b = &b->place[k];
		}
	}
	return found;
}

enum storage_relation storage_relate(const struct device *a, const struct device *b, char **chains)
{
	const struct place *in_a, *in_b;
	enum storage_relation found;
	struct storage of_a, of_b;

	*chains = NULL;
	storage_read(&of_a, a->devno, a->bytes);
	storage_read(&of_b, b->devno, b->bytes);
	found = relate(&of_a, &of_b, &in_a, &in_b);
	if (found != STORAGE_APART)
		*chains = chains_text(in_a, in_b);
	free(of_a.place);
	free(of_b.place);
	return found;
}

static const struct place *place_of(const struct storage *s, dev_t dev)
{
	size_t i;

	for (i = 1; i < s->nr; i++) {
		if (s->place[i].dev == dev && !s->place[i].ino)
			return &s->place[i];
	}
	return NULL;
}

static bool is_claimed(dev_t dev)
{
	char *dir = sysfs_dir(dev), *node = NULL, *slash;
	struct stat st;
	int fd = -1;
	bool busy;

	if (dir) {
		node = xasprintf("/dev/%s", strrchr(dir, '/') + 1);
		while ((slash = strchr(node + 5, '!')))
			*slash = '/';
		if (!stat(node, &st) && S_ISBLK(st.st_mode) && st.st_rdev == dev)
			fd = open(node, O_RDONLY | O_EXCL | O_CLOEXEC);
		else
			errno = ENOENT;
	}
	busy = dir && fd < 0 && errno == EBUSY;
	if (fd >= 0)
		close(fd);
	free(node);
	free(dir);
	return busy;
}

/* Can nobody claim @d, a partition, because the disk is claimed by what is above it in @mine? */
static bool shut_out(const struct storage *mine, const struct storage *its)
{
	const struct place *disk;

	if (its->nr < 2 || !its->place[1].partition)
		return false;
	disk = place_of(mine, its->place[1].dev);
	return disk && disk->claimed && !disk->partition;
}

/* What is compared with each device of the machine. */
struct user_check {
	const struct device *dev;
	struct storage mine, other;	/* of @dev, and of the second device of its pair */
	char *doubt;			/* the first use that only a WWN tells of */
};

static int in_use(struct user_check *c, const struct storage *its, const struct place *in_mine,
		  const struct place *in_its)
{
	char how[256] = "", *chains;

	identity_explain_busy(its->place[0].dev, how, sizeof(how));
	if (same_wwn(in_mine, in_its)) {
		chains = c->doubt ? NULL : chains_text(in_mine, in_its);
		if (chains)
			c->doubt = xasprintf("may be in use through another path: %s, and %s is in "
					     "use%s", chains, its->place[0].chain, how);
		free(chains);
		return 0;
	}
	complain(c->dev->path, "is in use through another name: %s, and %s is in use%s; stop that "
		 "first (this cannot be forced)", in_mine->chain, in_its->chain, how);
	return -EBUSY;
}

/* Does a device use storage of another one?  Complains if so, or leaves it in c->doubt. */
static int check_one(struct user_check *c, dev_t d, u64 bytes)
{
	const struct place *in_mine = NULL, *in_its = NULL, *below, *above;
	struct storage its;
	int ret = 0;

	storage_read(&its, d, bytes);
	if (relate(&c->mine, &its, &in_mine, &in_its) < STORAGE_SAME_WWN)
		goto out;
	above = place_of(&its, c->dev->devno);
	below = place_of(&c->mine, d);
	if (!below)
		below = place_of(&c->other, d);
	if (above) {
		/* Unused partitions are what --force of their table is about. */
		if (above == &its.place[1] && above->partition)
			goto out;
		complain(c->dev->path, "is used by another device: %s; stop that one first (this "
			 "cannot be forced)", above->chain);
		ret = -EBUSY;
	} else if ((!below || !below->claimed) && !shut_out(&c->mine, &its) && is_claimed(d)) {
		ret = in_use(c, &its, in_mine, in_its);
	}
out:
	free(its.place);
	return ret;
}

int storage_check_unused(const struct device *dev, const struct device *other, char **doubt)
{
	struct user_check c = { .dev = dev };
	struct dirent *entry;
	DIR *list;
	int ret = 0;

	*doubt = NULL;
	if (dev->is_file)
		return 0;
	list = opendir("/sys/class/block");
	if (!list)
		return 0;
	storage_read(&c.mine, dev->devno, dev->bytes);
	if (other)
		storage_read(&c.other, other->devno, other->bytes);
	while ((entry = readdir(list))) {
		char *dir = xasprintf("/sys/class/block/%s", entry->d_name);
		dev_t d = entry->d_name[0] == '.' ? 0 : read_dev(dir, "dev");
		u64 bytes = d ? read_number(dir, "size") << 9 : 0;

		if (bytes && d != dev->devno && (!other || d != other->devno))
			ret |= check_one(&c, d, bytes);
		free(dir);
	}
	closedir(list);
	free(c.mine.place);
	free(c.other.place);
	*doubt = c.doubt;
	return ret ? -EBUSY : 0;
}

int storage_check_pair(const struct device *ssd, const struct device *hdd, const char *way_out)
{
	const struct device *pair[2] = { ssd, hdd };
	unsigned int i;
	int ret = 0;

	for (i = 0; i < 2; i++) {
		char *doubt;

		if (!pair[i])
			continue;
		ret |= storage_check_unused(pair[i], pair[!i], &doubt);
		if (doubt && way_out) {
			complain(pair[i]->path, "%s; stop that first%s", doubt, way_out);
			ret = -EBUSY;
		}
		free(doubt);
	}
	return ret ? -EBUSY : 0;
}
