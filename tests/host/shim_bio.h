/* SPDX-License-Identifier: GPL-2.0-only */
/* Block devices and bios.  See shim.h. */
#ifndef HOST_SHIM_BIO_H
#define HOST_SHIM_BIO_H

#define REQ_OP_READ	0u
#define REQ_OP_WRITE	1u
#define REQ_PREFLUSH	2u
#define REQ_FUA		4u
#define REQ_NOWAIT	8u
#define REQ_POLLED	16u
#define REQ_OP_DISCARD	32u
#define REQ_META	64u
#define REQ_PRIO	128u
#define REQ_SYNC	256u
#define REQ_SWAP	512u
#define REQ_RAHEAD	1024u
#define REQ_IDLE	0u
#define SECTOR_SHIFT	9

#define BLK_STS_OK	((blk_status_t)0)
#define BLK_STS_AGAIN	((blk_status_t)2)
#define BLK_STS_IOERR	((blk_status_t)10)
#define BLK_STS_DM_REQUEUE	((blk_status_t)11)
#define errno_to_blk_status(ret) ((ret) ? BLK_STS_IOERR : BLK_STS_OK)
#define blk_status_to_errno(status) ((status) ? -EIO : 0)

struct disk;

struct block_device {
	struct disk *disk;
	dev_t bd_dev;
	u64 bytes;
	bool fua;
	bool write_through;
	unsigned int max_segments;
};

#define bdev_nr_bytes(bdev)		((bdev)->bytes)
#define bdev_logical_block_size(bdev)	512u
#define bdev_write_cache(bdev)		(!(bdev)->write_through)
#define bdev_fua(bdev)			((bdev)->fua)
#define bdev_max_segments(bdev)		((bdev)->max_segments)
#define bdev_get_queue(bdev)		(bdev)
#define queue_max_sectors(queue)	((void)(queue), 1u << 16)

#define bdev_io_opt(bdev)		((void)(bdev), 0u)
#define bdev_max_discard_sectors(bdev)	((void)(bdev), ~0u)
#define get_start_sect(bdev)		((void)(bdev), 0ull)

struct blk_plug { int unused; };

#define blk_start_plug(plug)		((void)(plug))
#define blk_finish_plug(plug)		((void)(plug))

struct bio;
struct completion { int unused; };

struct bvec_iter {
	sector_t bi_sector;
	unsigned int bi_size;
};

typedef void bio_end_io_t(struct bio *bio);

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	blk_opf_t bi_opf;
	blk_status_t bi_status;
	unsigned short bi_vcnt, bi_max_vecs;
	unsigned short bi_ioprio;
	struct bvec_iter bi_iter;
	bio_end_io_t *bi_end_io;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};

struct bio_list {
	struct bio *head, *tail;
};

struct bio_set {
	int unused;
};

#define BIO_EMPTY_LIST		{ NULL, NULL }
#define BIOSET_NEED_BVECS	0
#define bioset_init(set, nr, front, flags) ((void)(set), 0)
#define bioset_exit(set)	((void)(set))
#define bio_end_sector(bio)	((bio)->bi_iter.bi_sector + \
				 ((bio)->bi_iter.bi_size >> SECTOR_SHIFT))
#define bio_sectors(bio)	((bio)->bi_iter.bi_size >> SECTOR_SHIFT)
#define bio_op(bio)		((bio)->bi_opf & (REQ_OP_WRITE | REQ_OP_DISCARD))
#define bio_set_dev(bio, bdev)	((bio)->bi_bdev = (bdev))
#define bio_put(bio)		shim_free(bio)
#define bio_uninit(bio)		((void)(bio))
#define bio_clone_blkg_association(to, from) ((void)(to), (void)(from))
#define bio_wouldblock_error(bio) shim_bio_end(bio, BLK_STS_AGAIN)
#define bio_io_error(bio)	shim_bio_end(bio, BLK_STS_IOERR)

static inline void bio_init(struct bio *bio, struct block_device *bdev, struct bio_vec *vecs,
			    unsigned short nr, blk_opf_t opf)
{
	*bio = (struct bio) {
		.bi_bdev = bdev, .bi_opf = opf, .bi_max_vecs = nr, .bi_io_vec = vecs,
	};
}

static inline struct bio *bio_alloc_bioset(struct block_device *bdev, unsigned short nr,
					   blk_opf_t opf, gfp_t gfp, struct bio_set *set)
{
	struct bio *bio = shim_alloc(sizeof(*bio) + nr * sizeof(struct bio_vec), gfp);

	(void)set;
	bio_init(bio, bdev, (struct bio_vec *)(bio + 1), nr, opf);
	return bio;
}

static inline unsigned int bio_add_page(struct bio *bio, struct page *page, unsigned int len,
					unsigned int offset)
{
	if (bio->bi_vcnt == bio->bi_max_vecs)
		return 0;
	bio->bi_io_vec[bio->bi_vcnt++] = (struct bio_vec) {
		.bv_page = page, .bv_len = len, .bv_offset = offset,
	};
	bio->bi_iter.bi_size += len;
	return len;
}

#define __bio_add_page(bio, page, len, offset) ((void)bio_add_page(bio, page, len, offset))

static inline void bio_endio(struct bio *bio)
{
	bio->bi_end_io(bio);
}

static inline void shim_bio_end(struct bio *bio, blk_status_t status)
{
	bio->bi_status = status;
	bio_endio(bio);
}

static inline void bio_list_add(struct bio_list *list, struct bio *bio)
{
	bio->bi_next = NULL;
	if (list->tail)
		list->tail->bi_next = bio;
	else
		list->head = bio;
	list->tail = bio;
}

static inline struct bio *bio_list_pop(struct bio_list *list)
{
	struct bio *bio = list->head;

	if (bio)
		list->head = bio->bi_next;
	if (!list->head)
		list->tail = NULL;
	return bio;
}

/* Of the user of the shim: bio_endio() ends it later. */
void submit_bio(struct bio *bio);
#define submit_bio_noacct(bio)	submit_bio(bio)

#endif /* HOST_SHIM_BIO_H */
