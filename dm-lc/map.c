// SPDX-License-Identifier: GPL-2.0-only
/* The way of a bio.  See map.h. */
#include <linux/bio.h>
#include <linux/device-mapper.h>

#include "bio/around.h"
#include "bio/bypass.h"
#include "bio/discard.h"
#include "bio/flush.h"
#include "bio/intake.h"
#include "bio/read.h"
#include "life/lc.h"
#include "log/request.h"
#include "map.h"
#include "store/fit.h"

/* The sectors after the seam come again as a bio of their own (A2). */
static void split_at_seam(struct lc_volume *vol, struct bio *bio)
{
	u64 n = lc_place_run(&vol->c.env.place, bio->bi_iter.bi_sector, bio_sectors(bio));

	/* Device mapper takes no part of a discard: they are split where they are sent. */
	if (n < bio_sectors(bio) && bio_op(bio) != REQ_OP_DISCARD)
		dm_accept_partial_bio(bio, n);
}

/* What lc_map_end() and the rooms look at, for a bio that has not come before. */
static void begin(struct lc_request *io)
{
	io->on_ssd = false;
	io->on_hdd = false;
	io->hdd_becomes_valid = false;
	io->in_flight = 0;
	io->logged = false;
	io->around = LC_AROUND_NOTHING;
}

int lc_map_flush(struct lc_volume *vol, struct bio *bio, bool alone)
{
	if (unlikely(READ_ONCE(vol->outdated)))
		return DM_MAPIO_KILL;
	begin(lc_bio_request(bio));
	/* In mode degraded, too: what went around the log before is still to be promised. */
	if (lc_around_map_flush(vol->around, bio))
		return DM_MAPIO_REMAPPED;
	if (lc_mode(&vol->c.health) == LC_MODE_DEGRADED)
		return lc_bypass_map(vol->bypass, bio);
	return lc_flush_map(vol->flush, bio, alone);
}

int lc_map_bio(struct lc_volume *vol, struct bio *bio)
{
	struct lc_request *io = lc_bio_request(bio);

	if (unlikely(READ_ONCE(vol->outdated)))
		return DM_MAPIO_KILL;
	begin(io);
	split_at_seam(vol, bio);
	if (bio_op(bio) == REQ_OP_READ)
		return lc_read_map(&vol->c, vol->promote, bio, io);
	if (lc_mode(&vol->c.health) == LC_MODE_DEGRADED)
		return lc_bypass_map(vol->bypass, bio);
	if (bio_op(bio) == REQ_OP_WRITE)
		return lc_intake_map(vol->intake, bio);
	if (bio_op(bio) == REQ_OP_DISCARD)
		return lc_discard_map(vol->discards, bio);
	return DM_MAPIO_KILL;
}

int lc_map_end(struct lc_volume *vol, struct bio *bio, blk_status_t *error)
{
	struct lc_request *io = lc_bio_request(bio);
	int ret;

	if (bio_op(bio) == REQ_OP_READ)
		return lc_read_end(&vol->c, bio, io, error);
	/* Most writes and FLUSHes are the log's alone. */
	if (likely(!io->around && !io->in_flight && !io->hdd_becomes_valid && !*error))
		return DM_ENDIO_DONE;
	if (!io->around)
		return lc_bypass_end(vol->bypass, bio, error);
	ret = lc_around_end(vol->around, bio, error);
	/* While an SSD is salvaged, that wants to know of FLUSHes that failed. */
	if (ret == DM_ENDIO_DONE && lc_mode(&vol->c.health) == LC_MODE_DEGRADED)
		ret = lc_bypass_end(vol->bypass, bio, error);
	return ret;
}

void lc_map_resume(struct lc_volume *vol)
{
	lc_fit_decide(&vol->c.fit, vol->c.env.cache, vol->c.env.backing);
}
