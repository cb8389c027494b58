// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices: open, size, I/O.
 *
 * Block devices are opened O_DIRECT: what was read came from the device, and a
 * write that failed says so.  Buffers from anywhere go through one aligned
 * bounce buffer; the tools move little data.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "plan.h"
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

static int open_fd(struct device *dev, unsigned int flags)
{
	int mode = (flags & DEVICE_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC;
	char holder[256];
	int fd;

	/* O_EXCL without O_CREAT is defined for block devices only. */
	if (!dev->is_file)
		mode |= O_DIRECT | (flags & DEVICE_EXCL ? O_EXCL : 0);
	fd = open(dev->path, mode);
	if (fd >= 0 || flags & DEVICE_QUIET)
		return fd < 0 ? -errno : fd;
	if (errno == EBUSY) {
		device_explain_busy(dev->devno, holder, sizeof(holder));
		complain(dev->path, "in use%s; stop what uses it first (this cannot be forced)",
			 holder);
		return -EBUSY;
	}
	fd = -errno;
	complain(dev->path, "cannot open: %s%s", strerror(-fd),
		 fd == -EACCES || fd == -EPERM ? "; run as root" : "");
	return fd;
}

static int read_limits(struct device *dev)
{
	struct stat st;
	u64 bytes;
	int lbs;

	if (dev->is_file) {
		if (fstat(dev->fd, &st))
			return -errno;
		dev->bytes = st.st_size & ~511ULL;
		dev->lbs = 512;
		return 0;
	}
	if (ioctl(dev->fd, BLKGETSIZE64, &bytes) || ioctl(dev->fd, BLKSSZGET, &lbs))
		return -errno;
	dev->bytes = bytes;
	dev->lbs = lbs;
	return identity_read(&dev->id, dev->devno);
}

/**
 * device_open() - open a device and learn its size, block size and identity
 * @dev: result
 * @path: must stay valid as long as @dev
 * @flags: DEVICE_...
 */
int device_open(struct device *dev, const char *path, unsigned int flags)
{
	struct stat st;
	int ret;

	memset(dev, 0, sizeof(*dev));
	dev->path = path;
	dev->fd = -1;
	if (stat(path, &st)) {
		ret = -errno;
		if (!(flags & DEVICE_QUIET))
			complain(path, "%s; check the name", strerror(-ret));
		return ret;
	}
	dev->is_file = S_ISREG(st.st_mode) && flags & DEVICE_FILE_OK;
	if (!dev->is_file && !S_ISBLK(st.st_mode)) {
		if (!(flags & DEVICE_QUIET))
			complain(path, "not a block device; name one, such as /dev/sdb");
		return -ENOTBLK;
	}
	dev->devno = dev->is_file ? 0 : st.st_rdev;
	ret = open_fd(dev, flags);
	if (ret < 0)
		return ret;
	dev->fd = ret;
	ret = read_limits(dev);
	if (ret) {
		if (!(flags & DEVICE_QUIET))
			complain(path, "cannot read its size: %s", strerror(-ret));
		device_close(dev);
	}
	return ret;
}

void device_close(struct device *dev)
{
	if (dev->fd >= 0)
		close(dev->fd);
	dev->fd = -1;
}

/**
 * device_bad_medium() - is an errno of a read about one place, not about the whole device?
 *
 * The block layer has several for what a disk reports as unreadable.
 */
bool device_bad_medium(int err)
{
	return err == -EIO || err == -ENODATA || err == -EILSEQ || err == -ETIMEDOUT;
}

/**
 * device_again() - pause before something is read again
 * @dev: the device; an image in a file is read again without a pause
 * @tries: how often this was asked before, for this place
 *
 * A cable, a controller that resets or an overloaded bus makes reads fail, or return nonsense,
 * for a moment.  All pauses of a command together are bounded: of a device with many bad places
 * the first ones show whether time helps.
 *
 * Return: false if it was read often enough.
 */
bool device_again(const struct device *dev, unsigned int *tries)
{
	static const unsigned int pauses_ms[] = { 20, 100, 500 };
	static unsigned int left_ms = 30000;
	unsigned int ms;
	struct timespec pause;

	if (*tries == ARRAY_SIZE(pauses_ms))
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

/**
 * device_read() - read all of a range
 */
int device_read(const struct device *dev, u64 offset, void *buf, size_t len)
{
	char *to = buf;

	if (dev->plan)
		return plan_read(dev, offset, buf, len);
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

/**
 * device_write() - write all of a range; durable only after device_sync()
 */
int device_write(const struct device *dev, u64 offset, const void *buf, size_t len)
{
	const char *from = buf;
	int ret = 0;

	if (dev->plan)
		return plan_write(dev, offset, buf, len);
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

/**
 * device_zero() - write zeroes, really: a discard may leave what was there
 */
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

/**
 * device_sync() - what was written is on stable storage afterwards
 */
int device_sync(const struct device *dev)
{
	int err;

	if (dev->plan || !fsync(dev->fd))
		return 0;
	err = errno;
	complain(dev->path, "flush of its write cache failed: %s", strerror(err));
	return -err;
}

/**
 * device_discard() - discard all of a device
 */
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
