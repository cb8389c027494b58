// SPDX-License-Identifier: GPL-2.0-only
/* Memory for the record headers that a start finds.  See found.h. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "life/found.h"
#include "log/cache.h"

/* Bytes that stay available (FD1). */
static u64 min_available(void)
{
	return (u64)totalram_pages() / 16 << PAGE_SHIFT;
}

static u64 available(void)
{
	long pages = si_mem_available();

	return pages > 0 ? (u64)pages << PAGE_SHIFT : 0;
}

int lc_found_alloc(struct lc_found *found, struct lc_cache *c)
{
	struct lc_replay_log *log = &found->log;

	found->c = c;
	lc_replay_init(log, &c->sb);
	log->chunks = kvcalloc(lc_replay_chunks(log), sizeof(*log->chunks), GFP_KERNEL);
	log->lives = kvcalloc(log->max_lives, sizeof(*log->lives), GFP_KERNEL);
	log->by_epoch = kvcalloc(log->max_lives, sizeof(*log->by_epoch), GFP_KERNEL);
	return log->chunks && log->lives && log->by_epoch ? 0 : -ENOMEM;
}

static void free_chunks(struct lc_found *found)
{
	struct lc_replay_log *log = &found->log;
	u32 i;

	for (i = 0; log->chunks && i < lc_replay_chunks(log); i++) {
		vfree(log->chunks[i]);
		log->chunks[i] = NULL;
		if (!(i & 1023))
			cond_resched();
	}
}

void lc_found_free(struct lc_found *found)
{
	free_chunks(found);
	kvfree(found->log.chunks);
	kvfree(found->log.lives);
	kvfree(found->log.by_epoch);
}

/* FD2: from now on headers are counted. */
static void give_up(struct lc_found *found)
{
	free_chunks(found);
	found->log.nr = 0;
	found->log.nr_sorted = 0;
	found->full = true;
}

static struct lc_replay_record *alloc_chunk(u32 nr)
{
	u64 bytes = (u64)nr * sizeof(struct lc_replay_record);

	if (available() < min_available() + bytes)
		return NULL;
	return __vmalloc(bytes, GFP_NOIO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
}

int lc_found_add(struct lc_found *found, const struct lc_record_info *info, bool hidden)
{
	struct lc_replay_log *log = &found->log;
	struct lc_replay_record *chunk;
	u32 nr;
	int ret;

	found->nr_headers++;
	nr = found->full ? 0 : lc_replay_wants(log);
	if (nr) {
		chunk = alloc_chunk(nr);
		if (chunk)
			log->chunks[log->nr / LC_REPLAY_CHUNK] = chunk;
		else
			give_up(found);
	}
	if (found->full)
		return 0;
	ret = lc_replay_add(log, info, hidden);
	if (ret == -E2BIG)
		lc_err(&found->c->env, "the log has records of more than %u lives, more than a start can tell apart: see lc-check",
		       log->max_lives);
	return ret;
}

int lc_found_check(const struct lc_found *found)
{
	u64 mib = 1 << 20, need = found->nr_headers * sizeof(struct lc_replay_record);

	if (!found->full)
		return 0;
	lc_err(&found->c->env, "the log has %llu record headers or more: a start takes %llu MiB of RAM for them, %llu MiB are to stay available, and %llu MiB are: end other programs or add memory, nothing was changed",
	       found->nr_headers, (need + mib - 1) / mib, min_available() / mib, available() / mib);
	return -ENOMEM;
}
