// SPDX-License-Identifier: GPL-2.0-only
/* The calls of io.h that follow from lc_io_sync(), see shim.h. */
#include "shim.h"
#include "store/io.h"

int lc_io_sync_told(struct block_device *bdev, blk_opf_t opf, u64 address, void *data, u32 len,
		    void (*failed)(void *arg), void *arg)
{
	int ret = lc_io_sync(bdev, opf, address, data, len);

	if (ret)
		failed(arg);
	return ret;
}

/* The explorer has its own: with tasks the end of the FLUSH and of the wait are not one moment. */
__attribute__((weak))
int lc_io_flush_told(const struct lc_env *env, struct block_device *bdev,
		     void (*failed)(void *arg), void *arg)
{
	int ret = lc_io_flush(env, bdev);

	if (ret)
		failed(arg);
	return ret;
}

void lc_io_renew(struct bio *bio)
{
	(void)bio;
}

void lc_io_end_again(struct bio *bio)
{
	bio_endio(bio);
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
