/* SPDX-License-Identifier: GPL-2.0-only */
/* A log of headers as replay takes it, with memory from the heap: for the tests of replay.c. */
#ifndef LC_TESTS_LOG_OF_FACTS_H
#define LC_TESTS_LOG_OF_FACTS_H

#include <stdlib.h>

#include "replay.h"

/* Of the test: says what is wrong, and ends it. */
void die(const char *what) __attribute__((noreturn));

static struct lc_replay_log found_log;

static inline void *take(size_t nr, size_t size)
{
	void *memory = calloc(nr, size);

	if (!memory)
		die("no memory");
	return memory;
}

/* An empty log by the superblock, instead of the last one. */
static inline void new_log(const struct lc_sb *sb)
{
	u32 i;

	for (i = 0; i < lc_replay_chunks(&found_log); i++)
		free(found_log.chunks[i]);
	free(found_log.chunks);
	free(found_log.lives);
	free(found_log.by_epoch);
	lc_replay_init(&found_log, sb);
	found_log.chunks = take(lc_replay_chunks(&found_log), sizeof(*found_log.chunks));
	found_log.lives = take(found_log.max_lives, sizeof(*found_log.lives));
	found_log.by_epoch = take(found_log.max_lives, sizeof(*found_log.by_epoch));
}

static inline int add(const struct lc_record_info *info, bool hidden)
{
	u32 nr = lc_replay_wants(&found_log);

	if (nr)
		found_log.chunks[found_log.nr / LC_REPLAY_CHUNK] =
			take(nr, sizeof(struct lc_replay_record));
	return lc_replay_add(&found_log, info, hidden);
}

static inline struct lc_replay_record *at(u32 i)
{
	return lc_replay_at(&found_log, i);
}

static inline u64 segment_of(const struct lc_replay_record *r)
{
	return lc_replay_segment(&found_log, r);
}

static inline u64 epoch_of(const struct lc_replay_record *r)
{
	return found_log.lives[r->life].epoch;
}

/* The run of a few headers, which all lie within the log. */
static inline int select_of(const struct lc_sb *sb, const struct lc_record_info *records, u32 nr,
			    struct lc_replay_result *run)
{
	u32 i;

	new_log(sb);
	for (i = 0; i < nr; i++) {
		if (add(&records[i], false))
			die("a header was not taken");
	}
	return lc_replay_select(sb, &found_log, run);
}

#endif
