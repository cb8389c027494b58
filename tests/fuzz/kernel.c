// SPDX-License-Identifier: GPL-2.0-only
/* What the module's start stands on, see kernel.h. */
#include "kernel.h"
#include "expect.h"
#include "io.h"
#include "lanes.h"
#include "log.h"
#include "segment.h"

struct kernel kernel;
long explore_available = 1L << 19;

void kernel_boot(struct medium *medium)
{
	unsigned int disk;

	memset(&kernel, 0, sizeof(kernel));
	kernel.medium = medium;
	for (disk = 0; disk < MEDIUM_DISKS; disk++) {
		kernel.bdev[disk].bd_dev = 1 + disk;
		kernel.bdev[disk].bytes = (u64)medium->nr_blocks[disk] << LC_SLOT_SHIFT;
	}
}

void *explore_alloc(size_t bytes, gfp_t flags)
{
	void *memory = malloc(bytes);

	EXPECT(memory);
	/* Not zero by chance: what is used before it is set shall be noticed. */
	memset(memory, flags & __GFP_ZERO ? 0 : 0xa5, bytes);
	return memory;
}

void explore_free(const void *memory)
{
	free((void *)memory);
}

void explore_log(int level, const char *format, va_list args)
{
	char text[sizeof(kernel.said)];

	vsnprintf(text, sizeof(text), format, args);
	if (level <= LOGLEVEL_ERR)
		memcpy(kernel.said, text, sizeof(text));
}

void explore_warn(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: WARN_ON(%s)\n", file, line, what);
	EXPECT(!"the kernel would have warned");
}

int lc_io_sync(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len)
{
	unsigned int disk = bdev - kernel.bdev;
	int ret;

	if (opf & REQ_OP_WRITE) {
		kernel.nr_writes++;
		ret = medium_write(kernel.medium, disk, address, data, len);
	} else {
		kernel.bytes_read += len;
		ret = medium_read(kernel.medium, disk, address, data, len);
	}
	kernel.nr_outside += !!ret;
	return ret;
}

int lc_io_sync_told(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len,
		    void (*failed)(void *arg), void *arg)
{
	int ret = lc_io_sync(bdev, opf, address, data, len);

	if (ret)
		failed(arg);
	return ret;
}

int lc_io_flush(struct block_device *bdev)
{
	(void)bdev;
	return 0;
}

void lc_io_batch_init(struct lc_io_batch *batch)
{
	(void)batch;
}

void lc_io_batch_read(struct lc_io_batch *batch, struct lc_io_read *read,
		      struct block_device *bdev, u64 address, u32 len)
{
	(void)batch;
	read->status = lc_io_sync(bdev, REQ_OP_READ, address, read->data, len);
}

void lc_io_batch_wait(struct lc_io_batch *batch)
{
	(void)batch;
}

/* For a superblock that cannot be written: here they all can. */
void lc_log_fail(struct lc_log *log)
{
	(void)log;
	EXPECT(!"a superblock could not be written");
}

/* Nothing is written behind what the start found. */
u64 lc_lanes_used(struct lc_lanes *lanes)
{
	return lc_ring_head(lanes->ring);
}

void lc_log_void(struct lc_log *log);
void lc_log_void(struct lc_log *log)
{
	lc_log_fail(log);
}
