// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tools' devices, in memory.  Stands in for userland/device.c, and for what the
 * tools know of block devices, which a run on images never asks for.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memdev.h"
#include "device.h"
#include "find.h"
#include "plan.h"
#include "signature.h"
#include "storage.h"

struct memdev memdev = { .bad_block = NO_BAD_BLOCK };

/* The counters start anew; a bad block stays bad. */
void memdev_use(struct medium *medium)
{
	memdev = (struct memdev){ .medium = medium, .bad_block = memdev.bad_block };
}

int device_open(struct device *dev, const char *path, unsigned int flags)
{
	int disk = !strcmp(path, "ssd") ? MEDIUM_SSD : !strcmp(path, "hdd") ? MEDIUM_HDD : -1;

	(void)flags;
	memset(dev, 0, sizeof(*dev));
	dev->path = path;
	dev->fd = -1;
	if (disk < 0)
		return -ENOENT;
	dev->fd = disk;
	dev->is_file = true;
	dev->bytes = (u64)memdev.medium->nr_blocks[disk] << LC_SLOT_SHIFT;
	dev->lbs = 512;
	return 0;
}

void device_close(struct device *dev)
{
	dev->fd = -1;
}

static int outside(int ret)
{
	memdev.nr_outside += !!ret;
	return ret;
}

static bool touches_bad_block(const struct device *dev, u64 offset, size_t len)
{
	u64 bad = memdev.bad_block << LC_SLOT_SHIFT;

	return memdev.bad_block != NO_BAD_BLOCK && dev->fd == MEDIUM_SSD && len &&
	       offset < bad + LC_SLOT_BYTES && offset + len > bad;
}

static int read_medium(const struct device *dev, u64 offset, void *buf, size_t len)
{
	memdev.bytes_read += len;
	if (touches_bad_block(dev, offset, len))
		return -EIO;
	return outside(medium_read(memdev.medium, dev->fd, offset, buf, len));
}

int device_read(const struct device *dev, u64 offset, void *buf, size_t len)
{
	return dev->plan ? plan_read(dev->plan, read_medium, dev, offset, buf, len) :
			   read_medium(dev, offset, buf, len);
}

int device_write(const struct device *dev, u64 offset, const void *buf, size_t len)
{
	memdev.nr_writes++;
	if (dev->plan) {
		/* It would be written there later. */
		memdev.nr_outside += offset > dev->bytes || len > dev->bytes - offset;
		return plan_write(dev->plan, offset, buf, len);
	}
	if (touches_bad_block(dev, offset, len))
		memdev.bad_block = NO_BAD_BLOCK;
	return outside(medium_write(memdev.medium, dev->fd, offset, buf, len));
}

int device_zero(const struct device *dev, u64 offset, u64 len)
{
	static const u8 zeros[LC_SLOT_BYTES];
	int ret = 0;

	while (len && !ret) {
		u64 n = len < sizeof(zeros) ? len : sizeof(zeros);

		ret = device_write(dev, offset, zeros, n);
		offset += n;
		len -= n;
	}
	return ret;
}

void device_reread_partitions(const struct device *dev)
{
	(void)dev;
}

bool device_bad_medium(int err)
{
	return err == -EIO;
}

/* A medium in memory reads the same again. */
bool device_again(const struct device *dev, unsigned int *tries)
{
	(void)dev;
	(void)tries;
	return false;
}

int device_sync(const struct device *dev)
{
	(void)dev;
	return 0;
}

int signatures_probe(const struct device *dev, struct signatures *found)
{
	(void)dev;
	memset(found, 0, sizeof(*found));
	return 0;
}

const char *signatures_text(const struct signatures *found)
{
	(void)found;
	return "";
}

/* Only for block devices. */
char *backing_find(const struct lc_sb *sb, const struct device *ssd, bool quiet)
{
	(void)sb;
	(void)ssd;
	(void)quiet;
	abort();
}

/* It has one name. */
int storage_check_pair(const struct device *ssd, const struct device *hdd, const char *way_out)
{
	(void)ssd;
	(void)hdd;
	(void)way_out;
	return 0;
}

/* The tools' complaints are formatted, for what they are made of is hostile, and dropped. */
void __wrap_complain(const char *subject, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void __wrap_complain(const char *subject, const char *fmt, ...)
{
	char text[4096];
	va_list args;

	(void)subject;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
}
