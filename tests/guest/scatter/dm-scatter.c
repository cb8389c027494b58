// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device-mapper target `scatter`: passes reads and writes on from other memory, in
 * pieces that end anywhere, and counts what passes.
 *
 * <start> <len> scatter <dev> <offset> <granule> [<seed> [<block> [<percent>]]]
 *
 * Each bio with data goes to <dev> as a bio of its own, whose memory is in random pieces:
 * from <granule> bytes to several pages, at addresses that are multiples of <granule>.  So
 * all that reads or writes a block device becomes a load such as LIO, iSCSI and NVMe-oF
 * targets send, with its flags unchanged.  With <granule> 0 the memory stays what it is.
 *
 * With <block> it says that its logical blocks are so large.  With <percent> so many of the bios
 * get other memory, and the others keep theirs.
 *
 * The lengths are drawn in one of several ways for each bio: tiny, around a sector, around a
 * page, a large one next to a tiny one, or any.
 *
 * Status: how many reads, writes, empty flushes and writes with FUA have passed; writes_idle
 * and flushes_idle are those of them that have both REQ_SYNC and REQ_IDLE.
 *
 * Message `plugged <sector>`: write a block there with FUA, as a task that has begun a plug, and
 * neither ends it nor sleeps before the write is durable.  ETIME if that is not within 10 s.
 *
 * Message `hold`: a worker of the device below that ends a write sleeps there, until the message
 * `release`.  Status: held is the number of such workers.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/device-mapper.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait.h>

#define DM_MSG_PREFIX "scatter"

#define MAX_SECTORS	512u		/* of a bio */
#define MAX_GRANULE	64u
#define MAX_PIECES	120u		/* fewer than any queue takes in one command */
#define CHUNK_ORDER	3u
#define CHUNK_BYTES	((u32)PAGE_SIZE << CHUNK_ORDER)
#define MAX_CHUNKS	(3 * (MAX_SECTORS << 9) / CHUNK_BYTES)
#define POISON		0xdb		/* what a read that fills nothing leaves */

struct counts {
	atomic64_t reads, writes, flushes, fua, writes_idle, flushes_idle;
};

struct scatter {
	struct dm_dev *dev;
	sector_t offset;
	u32 granule;
	u64 seed;
	u32 block;			/* bytes; 0: those of the device below */
	u32 percent;			/* of the bios are scattered */
	atomic64_t nr;			/* bios so far: each has random numbers of its own */
	struct bio_set bios;
	struct counts counts;
	bool hold;			/* READ_ONCE() */
	atomic_t nr_held;
	wait_queue_head_t held;		/* workers that sleep until hold is false */
};

/* Of one bio: device mapper's clone of it is @whole. */
struct scattered {
	struct bio *whole;
	struct bio *pieces;
	u32 nr_chunks;
	struct page *chunks[MAX_CHUNKS];
};

static u64 draw(u64 *state, u64 below)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) % below;
}

/* The length of the next piece of a bio; @way was drawn for the whole of it. */
static u32 draw_length(u64 *random, u32 way, u32 granule)
{
	switch (way) {
	case 0:
		return granule * (1 + draw(random, 64));
	case 1:
		return 512 + granule * draw(random, 8) - granule * draw(random, 8);
	case 2:
		return PAGE_SIZE - granule * draw(random, 32);
	case 3:
		return 16 + draw(random, 2) * (PAGE_SIZE - 32);
	default:
		return granule * (1 + draw(random, CHUNK_BYTES / granule));
	}
}

static void free_chunks(struct scattered *s)
{
	while (s->nr_chunks)
		__free_pages(s->chunks[--s->nr_chunks], CHUNK_ORDER);
}

static bool add_chunk(struct scattered *s)
{
	struct page *page;

	if (s->nr_chunks == MAX_CHUNKS)
		return false;
	page = alloc_pages(GFP_NOIO | __GFP_COMP | __GFP_NOWARN, CHUNK_ORDER);
	if (!page)
		return false;
	s->chunks[s->nr_chunks++] = page;
	return true;
}

/* Give the bio memory in random pieces.  Return: whether there was enough. */
static bool add_pieces(struct scattered *s, u32 bytes, u32 granule, u64 *random)
{
	u32 at = CHUNK_BYTES, way = draw(random, 5), least, len;
	bool read = bio_op(s->pieces) == REQ_OP_READ;

	while (bytes) {
		/* Not smaller than that, or there will be too many. */
		least = round_up(DIV_ROUND_UP(bytes, MAX_PIECES - s->pieces->bi_vcnt), granule);
		at += granule * draw(random, 8);
		if (at + least > CHUNK_BYTES) {
			if (!add_chunk(s))
				return false;
			at = granule * draw(random, 8);
		}
		len = round_up(max(draw_length(random, way, granule), least), granule);
		len = min3(len, CHUNK_BYTES - at, bytes);
		__bio_add_page(s->pieces, s->chunks[s->nr_chunks - 1] + (at >> PAGE_SHIFT), len,
			       offset_in_page(at));
		if (read)
			memset(page_address(s->chunks[s->nr_chunks - 1]) + at, POISON, len);
		at += len;
		bytes -= len;
	}
	return true;
}

/* Copy all data from the bio that came, or, if it was a read, into it. */
static void copy(const struct scattered *s, bool back)
{
	const struct bio_vec *piece = s->pieces->bi_io_vec;
	struct bvec_iter iter;
	struct bio_vec bv;
	u32 done = 0;

	bio_for_each_segment(bv, s->whole, iter) {
		void *at = bvec_kmap_local(&bv), *there;
		u32 left = bv.bv_len, n;

		for (; left; left -= n) {
			n = min(left, piece->bv_len - done);
			there = page_address(piece->bv_page) + piece->bv_offset + done;
			if (back)
				memcpy(at + bv.bv_len - left, there, n);
			else
				memcpy(there, at + bv.bv_len - left, n);
			done += n;
			if (done == piece->bv_len) {
				piece++;
				done = 0;
			}
		}
		kunmap_local(at);
	}
}

static void pieces_end(struct bio *pieces)
{
	struct scattered *s = pieces->bi_private;
	struct bio *whole = s->whole;

	if (bio_op(pieces) == REQ_OP_READ && !pieces->bi_status)
		copy(s, true);
	whole->bi_status = pieces->bi_status;
	free_chunks(s);
	bio_put(pieces);
	bio_endio(whole);
}

static void count(struct scatter *sc, const struct bio *bio)
{
	bool idle = (bio->bi_opf & (REQ_SYNC | REQ_IDLE)) == (REQ_SYNC | REQ_IDLE);

	if (bio->bi_opf & REQ_FUA)
		atomic64_inc(&sc->counts.fua);
	if (bio_op(bio) == REQ_OP_READ) {
		atomic64_inc(&sc->counts.reads);
	} else if (bio->bi_opf & REQ_PREFLUSH) {
		atomic64_inc(&sc->counts.flushes);
		atomic64_add(idle, &sc->counts.flushes_idle);
	} else if (bio_op(bio) == REQ_OP_WRITE) {
		atomic64_inc(&sc->counts.writes);
		atomic64_add(idle, &sc->counts.writes_idle);
	}
}

static int scatter_map(struct dm_target *ti, struct bio *bio)
{
	struct scattered *s = dm_per_bio_data(bio, sizeof(*s));
	struct scatter *sc = ti->private;
	u64 random;

	bio_set_dev(bio, sc->dev->bdev);
	if (bio_sectors(bio))
		bio->bi_iter.bi_sector = sc->offset +
					 dm_target_offset(ti, bio->bi_iter.bi_sector);
	count(sc, bio);
	if (!sc->granule || !bio_has_data(bio))
		return DM_MAPIO_REMAPPED;
	random = sc->seed ^ (u64)atomic64_inc_return(&sc->nr) << 20;
	if (draw(&random, 100) >= sc->percent)
		return DM_MAPIO_REMAPPED;
	s->whole = bio;
	s->nr_chunks = 0;
	s->pieces = bio_alloc_bioset(sc->dev->bdev, MAX_PIECES, bio->bi_opf & ~REQ_POLLED, GFP_NOIO,
				     &sc->bios);
	s->pieces->bi_iter.bi_sector = bio->bi_iter.bi_sector;
	s->pieces->bi_ioprio = bio->bi_ioprio;
	s->pieces->bi_private = s;
	s->pieces->bi_end_io = pieces_end;
	if (!add_pieces(s, bio->bi_iter.bi_size, sc->granule, &random)) {
		free_chunks(s);
		bio_put(s->pieces);
		return DM_MAPIO_KILL;
	}
	if (bio_op(bio) != REQ_OP_READ)
		copy(s, false);
	submit_bio_noacct(s->pieces);
	return DM_MAPIO_SUBMITTED;
}

static int scatter_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct scatter *sc = ti->private;

	if (READ_ONCE(sc->hold) && bio_op(bio) == REQ_OP_WRITE && preemptible() &&
	    current->flags & PF_WQ_WORKER) {
		atomic_inc(&sc->nr_held);
		wait_event_idle(sc->held, !READ_ONCE(sc->hold));
		atomic_dec(&sc->nr_held);
	}
	return DM_ENDIO_DONE;
}

static int scatter_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct scatter *sc = kzalloc(sizeof(*sc), GFP_KERNEL);
	unsigned long long offset;
	int ret = -EINVAL;

	if (!sc)
		return -ENOMEM;
	ti->error = "Expected <dev> <offset> <granule> [<seed> [<block> [<percent>]]]";
	sc->percent = 100;
	if (argc < 3 || argc > 6 || kstrtoull(argv[1], 10, &offset) ||
	    kstrtou32(argv[2], 10, &sc->granule) ||
	    (argc > 3 && kstrtou64(argv[3], 10, &sc->seed)) ||
	    (argc > 4 && kstrtou32(argv[4], 10, &sc->block)) ||
	    (argc > 5 && kstrtou32(argv[5], 10, &sc->percent)))
		goto free;
	if (sc->block && (sc->block < 512 || !is_power_of_2(sc->block)))
		goto free;
	if (sc->granule > MAX_GRANULE || (sc->granule && !is_power_of_2(sc->granule)))
		goto free;
	sc->offset = offset;
	init_waitqueue_head(&sc->held);
	ret = bioset_init(&sc->bios, 64, 0, BIOSET_NEED_BVECS);
	if (ret)
		goto free;
	ret = dm_get_device(ti, argv[0], dm_table_get_mode(ti->table), &sc->dev);
	if (ret) {
		ti->error = "Cannot open the device";
		goto free_bios;
	}
	if (sc->granule)
		ret = dm_set_target_max_io_len(ti, MAX_SECTORS);
	if (ret)
		goto put;
	ti->num_flush_bios = 1;
	ti->num_discard_bios = 1;
	ti->per_io_data_size = sizeof(struct scattered);
	ti->private = sc;
	ti->error = NULL;
	return 0;

put:
	dm_put_device(ti, sc->dev);
free_bios:
	bioset_exit(&sc->bios);
free:
	kfree(sc);
	return ret;
}

static void scatter_dtr(struct dm_target *ti)
{
	struct scatter *sc = ti->private;

	dm_put_device(ti, sc->dev);
	bioset_exit(&sc->bios);
	kfree(sc);
}

static void scatter_status(struct dm_target *ti, status_type_t type, unsigned int flags,
			   char *result, unsigned int maxlen)
{
	struct scatter *sc = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		DMEMIT("reads %lld writes %lld flushes %lld fua %lld",
		       (long long)atomic64_read(&sc->counts.reads),
		       (long long)atomic64_read(&sc->counts.writes),
		       (long long)atomic64_read(&sc->counts.flushes),
		       (long long)atomic64_read(&sc->counts.fua));
		DMEMIT(" writes_idle %lld flushes_idle %lld",
		       (long long)atomic64_read(&sc->counts.writes_idle),
		       (long long)atomic64_read(&sc->counts.flushes_idle));
		DMEMIT(" held %d", atomic_read(&sc->nr_held));
		break;
	case STATUSTYPE_TABLE:
		DMEMIT("%s %llu %u %llu %u %u", sc->dev->name, (unsigned long long)sc->offset,
		       sc->granule, sc->seed, sc->block, sc->percent);
		break;
	case STATUSTYPE_IMA:
		*result = '\0';
		break;
	}
}

static void plugged_end(struct bio *bio)
{
	complete(bio->bi_private);
}

static int write_plugged(struct scatter *sc, sector_t sector)
{
	struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	unsigned long end = jiffies + 10 * HZ;
	DECLARE_COMPLETION_ONSTACK(done);
	struct blk_plug plug;
	struct bio *bio;
	bool in_time;
	int ret;

	if (!page)
		return -ENOMEM;
	bio = bio_alloc(sc->dev->bdev, 1, REQ_OP_WRITE | REQ_SYNC | REQ_FUA, GFP_KERNEL);
	bio->bi_iter.bi_sector = sector;
	bio->bi_end_io = plugged_end;
	bio->bi_private = &done;
	__bio_add_page(bio, page, PAGE_SIZE, 0);
	blk_start_plug(&plug);
	submit_bio(bio);
	/* Sleeping would send what waits in the plug; giving others the CPU does not. */
	while (!completion_done(&done) && time_before(jiffies, end))
		cond_resched();
	in_time = completion_done(&done);
	blk_finish_plug(&plug);
	wait_for_completion_io(&done);
	ret = blk_status_to_errno(bio->bi_status);
	bio_put(bio);
	__free_page(page);
	return in_time ? ret : -ETIME;
}

static int scatter_message(struct dm_target *ti, unsigned int argc, char **argv, char *result,
			   unsigned int maxlen)
{
	struct scatter *sc = ti->private;
	unsigned long long sector;

	if (argc == 1 && (!strcmp(argv[0], "hold") || !strcmp(argv[0], "release"))) {
		WRITE_ONCE(sc->hold, !strcmp(argv[0], "hold"));
		wake_up_all(&sc->held);
		return 0;
	}
	if (argc != 2 || strcmp(argv[0], "plugged") || kstrtoull(argv[1], 10, &sector))
		return -EINVAL;
	return write_plugged(sc, sector);
}

static int scatter_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn, void *data)
{
	struct scatter *sc = ti->private;

	return fn(ti, sc->dev, sc->offset, ti->len, data);
}

static void scatter_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct scatter *sc = ti->private;

	if (!sc->block)
		return;
	limits->logical_block_size = sc->block;
	limits->physical_block_size = max(limits->physical_block_size, sc->block);
	limits->io_min = max(limits->io_min, sc->block);
}

static struct target_type scatter_target = {
	.name = "scatter",
	.version = { 1, 0, 0 },
	.features = DM_TARGET_NOWAIT,
	.module = THIS_MODULE,
	.ctr = scatter_ctr,
	.dtr = scatter_dtr,
	.map = scatter_map,
	.end_io = scatter_end_io,
	.status = scatter_status,
	.message = scatter_message,
	.iterate_devices = scatter_iterate_devices,
	.io_hints = scatter_io_hints,
};

static int __init scatter_init(void)
{
	return dm_register_target(&scatter_target);
}

static void __exit scatter_exit(void)
{
	dm_unregister_target(&scatter_target);
}

module_init(scatter_init);
module_exit(scatter_exit);

MODULE_DESCRIPTION(DM_NAME " target that scatters the memory of bios, for tests");
MODULE_AUTHOR("The dm-lc developers");
MODULE_LICENSE("GPL");
