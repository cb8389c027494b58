/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of a read: from RAM, remapped to the SSD or the HDD, or block by block in a worker.
 *
 * With verify_reads, or after an error, a worker checks what the SSD gave against the checksum of
 * the log (slot.h) before the bio ends.
 */
#ifndef LC_READ_H
#define LC_READ_H

#include <linux/bio.h>
#include <linux/device-mapper.h>

#include "log/cache.h"
#include "log/request.h"
#include "store/ring.h"

struct lc_promote;

/**
 * lc_read_map() - map a read
 * @c: the cache
 * @promote: for what is read from the HDD
 * @bio: device mapper's clone
 * @io: of @bio
 *
 * From map(): does not sleep.  Return: as lc_map_bio().
 */
int lc_read_map(struct lc_cache *c, struct lc_promote *promote, struct bio *bio,
		struct lc_request *io);

/*
 * The part of lc_read_end() for what the SSD gave and is to be checked, or to be read again.
 * Arguments and return as there.
 */
int lc_read_end_slowly(struct lc_cache *c, struct bio *bio, struct lc_request *io,
		       blk_status_t *error);

/* Has the segment been given away since the read was mapped (H1)? */
static inline bool lc_read_reused(struct lc_cache *c, const struct lc_request *io)
{
	/*
	 * If the data is of the new content, the new number is seen.  It was stored before a writer
	 * got slots there, and the record was sent after the full barrier in lc_record_put().
	 */
	smp_rmb();
	return READ_ONCE(lc_ring_segment(c->ring, io->position)->number) != io->segment;
}

/**
 * lc_read_end() - end_io of a read
 * @c: the cache
 * @bio: device mapper's clone
 * @io: of @bio
 * @error: the bio's status
 *
 * Completion context.  Return: as lc_map_end().
 */
static inline int lc_read_end(struct lc_cache *c, struct bio *bio, struct lc_request *io,
			      blk_status_t *error)
{
	if (io->on_hdd)
		lc_stamp(&c->env.last_hdd_read);
	if (!io->on_ssd || (!*error && !io->verify && !lc_read_reused(c, io)))
		return DM_ENDIO_DONE;
	return lc_read_end_slowly(c, bio, io, error);
}

#endif /* LC_READ_H */
