// SPDX-License-Identifier: GPL-2.0-only
/*
 * The status line: `key value` pairs, in no promised order, to be parsed by key.
 * Keys are only ever added.  docs/dm-lc.rst explains each.
 */
#include <linux/device-mapper.h>
#include <linux/kernel.h>
#include <linux/sched.h>

#include "bio/intake.h"
#include "format/mask.h"
#include "life/lc.h"
#include "log/log.h"
#include "log/pool.h"
#include "status.h"
#include "store/index.h"
#include "store/ring.h"
#include "store/stats.h"
#include "store/sums.h"
#include "writeback/writeback.h"

static const char *const mode_names[] = {
	[LC_MODE_RW] = "rw",
	[LC_MODE_RO] = "ro",
	[LC_MODE_DEGRADED] = "degraded",
	[LC_MODE_FAIL] = "fail",
};

/* In force: a mode without the log is not, while the log has something that the HDD has not. */
static const char *cache_mode(struct lc_volume *vol)
{
	u32 mode = READ_ONCE(vol->c.env.params.cache_mode);

	/* There is no log any more. */
	if (lc_mode(&vol->c.health) != LC_MODE_RW)
		return lc_cache_mode_name(mode);
	if (mode == LC_WRITEBACK)
		return READ_ONCE(vol->c.closed) ? "changing" : lc_cache_mode_name(mode);
	return lc_writeback_left(vol->wb) ? lc_cache_mode_name(mode) : "changing";
}

void lc_status_info(struct lc_volume *vol, char *result, unsigned int maxlen)
{
	unsigned int sz = 0;
	char former[LC_FORMER_NAMES * DM_NAME_LEN];
	struct lc_counts sum;
	u64 tail;

	lc_name_look(&vol->c.env.name);
	lc_name_former(&vol->c.env.name, former);
	lc_stats_sum(&vol->c.stats, &sum);
	DMEMIT("mode %s", mode_names[lc_mode(&vol->c.health)]);
	DMEMIT(" dirty %llu", lc_index_dirty(vol->c.index));
	DMEMIT(" cached %llu", lc_index_cached(vol->c.index));
	DMEMIT(" capacity %llu", vol->c.sb.geo.nr_slots - vol->c.sb.geo.nr_segments);
	DMEMIT(" segments %llu", vol->c.sb.geo.nr_segments);
	DMEMIT(" segment_bytes %u", vol->c.sb.geo.segment_bytes);
	DMEMIT(" free_segments %llu", lc_ring_free(vol->c.ring));
	DMEMIT(" buffers %u", READ_ONCE(vol->c.pool->nr));
	DMEMIT(" buffers_used %u", lc_pool_used(vol->c.pool));
	DMEMIT(" head_seq %llu", lc_log_last_seq(vol->c.log) + 1);
	tail = lc_ring_tail_seq(vol->c.ring);
	if (!tail) {
		/* No tail is 0: the volume is not started, or just being started. */
		tail = data_race(vol->c.sb.tail_seq);
	}
	DMEMIT(" tail_seq %llu", tail);
	DMEMIT(" durable_seq %llu", lc_log_durable_seq(vol->c.log));
	/* A volume that is just being started may show the epoch before. */
	DMEMIT(" epoch %llu", data_race(vol->c.sb.epoch));
	DMEMIT(" lost %llu", lc_index_lost(vol->c.index));
	DMEMIT(" refused %llu", lc_index_refused(vol->c.index));
	DMEMIT(" relogged %lld", (long long)lc_writeback_relogged(vol->wb));
	DMEMIT(" writeback %s", lc_writeback_state(vol->wb));
	DMEMIT(" index_bytes %llu", lc_index_bytes(vol->c.index) + lc_sums_bytes(&vol->c.sums) +
	       vol->c.ring->nr * sizeof(struct lc_segment));
	DMEMIT(" generation %016llx", vol->c.sb.generation);
	DMEMIT(" lanes %u", vol->c.nr_lanes);
	DMEMIT(" copies_local %llu", sum.local);
	DMEMIT(" copies_remote %llu", sum.remote);
	DMEMIT(" parked %llu", sum.parked);
	DMEMIT(" parked_blocks %llu", lc_intake_blocks(vol->intake));
	DMEMIT(" batches %llu", sum.batches);
	DMEMIT(" promoted %llu", sum.promoted);
	DMEMIT(" bypassed_bytes %llu", sum.around);
	DMEMIT(" cache_mode %s", cache_mode(vol));
	DMEMIT(" warmed %llu", READ_ONCE(vol->c.warm.entered));
	DMEMIT(" warm_left %llu", READ_ONCE(vol->c.warm.left));
	DMEMIT(" ssd_writes %llu", sum.ssd.writes);
	DMEMIT(" ssd_written_bytes %llu", sum.ssd.written);
	DMEMIT(" ssd_read_bytes %llu", sum.ssd.read);
	DMEMIT(" ssd_flushes %llu", sum.ssd.flushes);
	DMEMIT(" hdd_writes %llu", sum.hdd.writes);
	DMEMIT(" hdd_written_bytes %llu", sum.hdd.written);
	DMEMIT(" hdd_flushes %llu", sum.hdd.flushes);
	DMEMIT(" former_names %s", former);
}

void lc_status_ima(struct lc_volume *vol, char *result, unsigned int maxlen)
{
	/* As above: it may be the one before. */
	u64 epoch = data_race(vol->c.sb.epoch);
	unsigned int sz = 0;

	DMEMIT(",mode=%s,cache_uuid=%pUb,volume_uuid=%pUb,generation=%016llx,epoch=%llu;",
	       mode_names[lc_mode(&vol->c.health)], vol->c.sb.cache_uuid, vol->c.sb.volume_uuid,
	       vol->c.sb.generation, epoch);
}

/* The sectors of @mask of a block, as first+count, each run one word. */
static unsigned int print_sectors(u64 block, u8 mask, char *result, unsigned int maxlen)
{
	unsigned int sz = 0;
	u32 i, n;

	for (i = 0; lc_mask_next(mask, &i, &n); i += n)
		DMEMIT("%llu+%u ", (block << LC_BLOCK_SHIFT) + i, n);
	return sz;
}

int lc_status_list(struct lc_volume *vol, unsigned int argc, char **argv, char *result,
		   unsigned int maxlen)
{
	bool lost = !strcmp(argv[0], "lost");
	char words[LC_BLOCK_SECTORS / 2 * 24];
	unsigned int sz = 0, len;
	struct lc_mapping map;
	u64 slot = 0, block;
	u8 mask;

	if ((!lost && strcmp(argv[0], "refused")) || argc > 2 ||
	    (argc == 2 && kstrtou64(argv[1], 10, &slot))) {
		lc_err(&vol->c.env, "expected: list lost|refused [<from>]");
		return -EINVAL;
	}
	result[0] = '\0';
	for (; lc_index_next(vol->c.index, &slot, vol->c.sb.geo.nr_slots, &block, &map); slot++) {
		mask = lost ? map.lost : map.refused ? map.mask : 0;
		len = print_sectors(block, mask, words, sizeof(words));
		if (!len)
			continue;
		if (sz + len + 32 > maxlen) {
			DMEMIT("next %llu", slot);
			break;
		}
		DMEMIT("%s", words);
	}
	return 1;
}
