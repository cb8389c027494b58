// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices: open, size, I/O.
 *
 * Block devices are opened O_DIRECT: what was read came from the device, and a
 * write that failed says so.  Buffers from anywhere go through one aligned
 * bounce buffer; the tools move little data.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "memory.h"
#include "plan.h"
#include "usable.h"
#include "util.h"

#define BOUNCE_BYTES	(1u << 20)

static void *bounce(void)
{
	static void *buf;

	if (!buf && posix_memalign(&buf, 4096, BOUNCE_BYTES)) {
		complain(NULL, "out of memory");
		exit(LC_EXIT_FAIL);
	}
	return buf;
}

/*
 * Open the node that @dev->node was looked up as.  Through /proc it is that very inode; without
 * /proc the name is looked up again, and must lead to the same one.
 */
static int open_node(const struct device *dev, int mode)
{
	char *path = xasprintf("/proc/self/fd/%d", dev->node);
	struct stat was, is;
	int fd;

	fd = open(path, mode);
	free(path);
	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	fd = open(dev->path, mode);
	if (fd < 0)
		return -errno;
	if (!fstat(dev->node, &was) && !fstat(fd, &is) && was.st_dev == is.st_dev &&
	    was.st_ino == is.st_ino)
		return fd;
	close(fd);
	return -ESTALE;
}

static int open_fd(struct device *dev, unsigned int flags)
{
	int mode = (flags & DEVICE_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC;
	char holder[256];
	int fd;

	/* O_EXCL without O_CREAT is defined for block devices only. */
	if (!dev->is_file)
		mode |= O_DIRECT | (flags & DEVICE_EXCL ? O_EXCL : 0);
	fd = open_node(dev, mode);
	if (fd >= 0 || flags & DEVICE_QUIET)
		return fd;
	if (fd == -EBUSY) {
		identity_explain_busy(dev->devno, holder, sizeof(holder));
		complain(dev->path, "in use%s; stop what uses it first (this cannot be forced)",
			 holder);
		return -EBUSY;
	}
	complain(dev->path, "cannot open: %s%s", strerror(-fd),
		 fd == -EACCES || fd == -EPERM ? "; run as root" : "");
	return fd;
}

/* A partition has one in the table of its disk. */
static void read_partuuid(struct device *dev)
{
	blkid_probe probe = device_probe_begin(dev, 0);
	const char *uuid;

	if (!probe)
		return;
	blkid_probe_enable_superblocks(probe, 0);
	blkid_probe_enable_partitions(probe, 1);
	blkid_probe_set_partitions_flags(probe, BLKID_PARTS_ENTRY_DETAILS);
	if (!blkid_do_safeprobe(probe) &&
	    !blkid_probe_lookup_value(probe, "PART_ENTRY_UUID", &uuid, NULL)) {
		snprintf(dev->id.partuuid, sizeof(dev->id.partuuid), "%s", uuid);
		clean_text(dev->id.partuuid);
	}
	device_probe_end(dev, probe);
}

static int read_limits(struct device *dev)
{
	struct stat st;
	u64 bytes;
	int lbs, ret;

	if (fstat(dev->fd, &st))
		return -errno;
	if (dev->is_file) {
		dev->bytes = st.st_size & ~511ULL;
		dev->lbs = 512;
		return 0;
	}
	if (!S_ISBLK(st.st_mode) || st.st_rdev != dev->devno)
		return -ESTALE;
	if (ioctl(dev->fd, BLKGETSIZE64, &bytes) || ioctl(dev->fd, BLKSSZGET, &lbs))
		return -errno;
	dev->bytes = bytes;
	dev->lbs = lbs;
	if (dev->glance)
		return 0;
	ret = identity_read(&dev->id, dev->devno);
	if (!ret && dev->id.is_partition)
		read_partuuid(dev);
	return ret;
}

/* What the target cannot use, and what nobody may write to. */
static int check_fit(const struct device *dev, unsigned int flags)
{
	struct lc_device_facts facts = { .lbs = dev->lbs, .host_managed = dev->id.host_managed };
	const char *why;
	int read_only = 0;

	if (dev->is_file || !(flags & (DEVICE_WRITE | DEVICE_USE)))
		return 0;
	if (ioctl(dev->fd, BLKROGET, &read_only))
		return -errno;
	facts.read_only = read_only;
	if (!(flags & DEVICE_USE)) {
		facts.host_managed = false;
		facts.lbs = 512;
	}
	why = lc_device_unfit(&facts);
	if (!why)
		return 0;
	if (!(flags & DEVICE_QUIET))
		complain(dev->path, "%s", why);
	return facts.read_only ? -EROFS : -EINVAL;
}

/* A write protected device may refuse to be opened for writing: say why. */
static int open_writable(struct device *dev, unsigned int flags)
{
	int ret;

	ret = open_fd(dev, flags);
	if ((ret == -EACCES || ret == -EPERM || ret == -EROFS) && flags & DEVICE_WRITE) {
		dev->fd = open_node(dev, O_RDONLY | O_CLOEXEC);
		if (dev->fd >= 0) {
			check_fit(dev, flags);
			close(dev->fd);
		}
		dev->fd = -1;
	}
	return ret;
}

int device_find(struct device *dev, const char *path, unsigned int flags)
{
	struct stat st;
	int ret;

	memset(dev, 0, sizeof(*dev));
	dev->path = path;
	dev->glance = flags & DEVICE_GLANCE;
	dev->fd = -1;
	dev->node = open(path, O_PATH | O_CLOEXEC);
	if (dev->node < 0 || fstat(dev->node, &st)) {
		ret = -errno;
		if (!(flags & DEVICE_QUIET))
			complain(path, "%s; check the name", strerror(-ret));
		device_close(dev);
		return ret;
	}
	dev->is_file = S_ISREG(st.st_mode) && flags & DEVICE_FILE_OK;
	if (!dev->is_file && !S_ISBLK(st.st_mode)) {
		if (!(flags & DEVICE_QUIET))
			complain(path, "not a block device; name one, such as /dev/sdb");
		device_close(dev);
		return -ENOTBLK;
	}
	dev->devno = dev->is_file ? 0 : st.st_rdev;
	return 0;
}

int device_open_found(struct device *dev, unsigned int flags)
{
	int ret;

	ret = open_writable(dev, flags);
	if (ret < 0) {
		device_close(dev);
		return ret;
	}
	dev->fd = ret;
	ret = read_limits(dev);
	if (ret && !(flags & DEVICE_QUIET))
		complain(dev->path, "cannot read its size: %s", strerror(-ret));
	if (!ret)
		ret = check_fit(dev, flags);
	if (ret)
		device_close(dev);
	return ret;
}

int device_open(struct device *dev, const char *path, unsigned int flags)
{
	int ret;

	ret = device_find(dev, path, flags);
	return ret ? ret : device_open_found(dev, flags);
}

int device_unclaim(struct device *dev)
{
	int fd = open_node(dev, O_RDONLY | O_CLOEXEC | (dev->is_file ? 0 : O_DIRECT));

	if (fd < 0) {
		complain(dev->path, "cannot open again: %s", strerror(-fd));
		return fd;
	}
	close(dev->fd);
	dev->fd = fd;
	return 0;
}

void device_close(struct device *dev)
{
	if (dev->fd >= 0)
		close(dev->fd);
	if (dev->node >= 0)
		close(dev->node);
	dev->fd = -1;
	dev->node = -1;
}

/* libblkid reads and writes with buffers of its own, which O_DIRECT does not take. */
static void set_direct(const struct device *dev, bool direct)
{
	int mode = fcntl(dev->fd, F_GETFL);

	if (!dev->is_file && mode >= 0)
		fcntl(dev->fd, F_SETFL, direct ? mode | O_DIRECT : mode & ~O_DIRECT);
}

blkid_probe device_probe_begin(const struct device *dev, u64 offset)
{
	blkid_probe probe = blkid_new_probe();

	set_direct(dev, false);
	if (probe && !blkid_probe_set_device(probe, dev->fd, offset, dev->bytes - offset))
		return probe;
	complain(dev->path, "cannot be probed for file systems");
	device_probe_end(dev, probe);
	return NULL;
}

void device_probe_end(const struct device *dev, blkid_probe probe)
{
	blkid_free_probe(probe);
	set_direct(dev, true);
}

bool device_bad_medium(int err)
{
	return err == -EIO || err == -ENODATA || err == -EILSEQ || err == -ETIMEDOUT;
}

bool device_again(const struct device *dev, unsigned int *tries)
{
	static const unsigned int pauses_ms[] = { 20, 100, 500 };
	static unsigned int left_ms = 30000;
	unsigned int ms;
	struct timespec pause;

	if (dev->glance || *tries == ARRAY_SIZE(pauses_ms))
		return false;
	ms = pauses_ms[(*tries)++];
	if (dev->is_file || left_ms < ms)
		ms = 1;
	left_ms -= left_ms < ms ? left_ms : ms;
	pause = (struct timespec){ .tv_nsec = ms * 1000000L };
	nanosleep(&pause, NULL);
	return true;
}

/* One read into the bounce buffer, repeated if it fails. */
static ssize_t read_patiently(const struct device *dev, u64 offset, size_t len)
{
	unsigned int tries = 0;
	ssize_t got;

	do {
		got = pread(dev->fd, bounce(), len, offset);
	} while (got < 0 && (errno == EINTR || (device_bad_medium(-errno) &&
						device_again(dev, &tries))));
	return got;
}

static int read_medium(const struct device *dev, u64 offset, void *buf, size_t len)
{
	char *to = buf;

	while (len) {
		size_t n = len < BOUNCE_BYTES ? len : BOUNCE_BYTES;
		ssize_t got = read_patiently(dev, offset, n);

		if (got <= 0) {
			int err = got ? errno : EIO;

			complain(dev->path, "read of %zu bytes at %llu: %s", n, offset,
				 got ? strerror(err) : "beyond the end of the device");
			return -err;
		}
		memcpy(to, bounce(), got);
		to += got;
		offset += got;
		len -= got;
	}
	return 0;
}

int device_read(const struct device *dev, u64 offset, void *buf, size_t len)
{
	return dev->plan ? plan_read(dev->plan, read_medium, dev, offset, buf, len) :
			   read_medium(dev, offset, buf, len);
}

static int write_bounced(const struct device *dev, u64 offset, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t put = pwrite(dev->fd, (char *)bounce() + done, len - done, offset + done);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0) {
			int err = put ? errno : EIO;

			complain(dev->path, "write of %zu bytes at %llu: %s", len - done,
				 offset + done, strerror(err));
			return -err;
		}
		done += put;
	}
	return 0;
}

static int write_plan(const struct device *dev, u64 offset, const void *buf, size_t len)
{
	if (offset <= dev->bytes && len <= dev->bytes - offset &&
	    !plan_write(dev->plan, offset, buf, len))
		return 0;
	complain(dev->path, "a write of %zu bytes at %llu was to be planned; this is a bug", len,
		 offset);
	return -EINVAL;
}

int device_write(const struct device *dev, u64 offset, const void *buf, size_t len)
{
	const char *from = buf;
	int ret = 0;

	if (dev->plan)
		return write_plan(dev, offset, buf, len);
	while (len && !ret) {
		size_t n = len < BOUNCE_BYTES ? len : BOUNCE_BYTES;

		memcpy(bounce(), from, n);
		ret = write_bounced(dev, offset, n);
		from += n;
		offset += n;
		len -= n;
	}
	return ret;
}

int device_zero(const struct device *dev, u64 offset, u64 len)
{
	int ret = 0;

	while (len && !ret) {
		size_t n = len < BOUNCE_BYTES ? len : BOUNCE_BYTES;

		memset(bounce(), 0, n);
		ret = write_bounced(dev, offset, n);
		offset += n;
		len -= n;
	}
	return ret;
}

int device_sync(const struct device *dev)
{
	int err;

	if (dev->plan || !fsync(dev->fd))
		return 0;
	err = errno;
	complain(dev->path, "flush of its write cache failed: %s", strerror(err));
	return -err;
}

int device_discard(const struct device *dev)
{
	/* Whole 4 KiB blocks: a discard of part of one may be refused. */
	u64 range[2] = { 0, dev->bytes & ~4095ULL };
	int err;

	if (!ioctl(dev->fd, BLKDISCARD, range))
		return 0;
	err = errno;
	complain(dev->path, "discard failed: %s; leave --discard out if the device has none",
		 strerror(err));
	return -err;
}

/* The kernel would go on showing partitions that are gone; no harm if it cannot. */
void device_reread_partitions(const struct device *dev)
{
	if (ioctl(dev->fd, BLKRRPART))
		return;
}

static int change_partition(const struct device *dev, int op, const struct blkpg_partition *part)
{
	struct blkpg_partition copy = *part;
	struct blkpg_ioctl_arg arg = { .op = op, .datalen = sizeof(copy), .data = &copy };

	return ioctl(dev->fd, BLKPG, &arg) ? -errno : 0;
}

int device_forget_partitions(const struct device *dev)
{
	struct blkpg_partition *parts;
	unsigned int nr, i;
	int ret = 0;

	nr = identity_partitions(&dev->id, &parts);
	for (i = 0; i < nr && !ret; i++) {
		ret = change_partition(dev, BLKPG_DEL_PARTITION, &parts[i]);
		if (ret == -ENXIO)	/* gone meanwhile */
			ret = 0;
		if (!ret)
			continue;
		complain(dev->path, "partition %d of it is in use: %s; stop what uses it first "
			 "(this cannot be forced)", parts[i].pno, strerror(-ret));
		while (i--)
			change_partition(dev, BLKPG_ADD_PARTITION, &parts[i]);
		break;
	}
	free(parts);
	return ret;
}
