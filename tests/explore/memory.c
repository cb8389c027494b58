// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the headers of a long log take of the RAM at a start: found.c and replay.c, unmodified,
 * over memory that is counted (RP1, FD1, FD2).
 *
 *   memory RECORDS
 *
 * Logs of so many two-slot records, as fsync leaves them, in the order a scan finds them in; the
 * whole of each is a run.  Then the same where the memory does not suffice.
 */
#include "log/cache.h"
#include "shim.h"
#include "life/found.h"

#define SLOTS		256u			/* of a segment */
#define IN_SEGMENT	(SLOTS / 2)		/* records */
#define WINDOW		32u			/* segments that are read together */
#define DEAD		40u			/* records that each crash leaves */
#define MIB		(1ULL << 20)
#define RESERVE		((long)totalram_pages() / 16)

struct memory {
	size_t bytes;
	size_t pad;	/* as malloc() aligns */
};

long shim_available;
static size_t used, peak;
static u32 allocs_left = ~0u;
static long lowest;
static char said[512];
static struct lc_cache cache;

static void die(const char *log, const char *what)
{
	fprintf(stderr, "memory: %s: %s\n", log, what);
	exit(1);
}

static long pages(size_t bytes)
{
	return (bytes + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

void *shim_alloc(size_t bytes, gfp_t flags)
{
	struct memory *memory;

	if (!allocs_left)
		return NULL;
	allocs_left--;
	memory = flags & __GFP_ZERO ? calloc(1, sizeof(*memory) + bytes) :
				      malloc(sizeof(*memory) + bytes);
	if (!memory)
		die("malloc", "no memory");
	memory->bytes = bytes;
	used += (size_t)pages(bytes) << PAGE_SHIFT;
	if (used > peak)
		peak = used;
	shim_available -= pages(bytes);
	if (shim_available < lowest)
		lowest = shim_available;
	return memory + 1;
}

void shim_free(const void *pointer)
{
	struct memory *memory;

	if (!pointer)
		return;
	memory = (struct memory *)pointer - 1;
	used -= (size_t)pages(memory->bytes) << PAGE_SHIFT;
	shim_available += pages(memory->bytes);
	free(memory);
}

void shim_log(int level, const char *format, va_list args)
{
	(void)level;
	vsnprintf(said, sizeof(said), format, args);
}

/* --- logs ------------------------------------------------------------------ */

/* Sets what the header of record @k of segment @n tells.  Return: whether it counts. */
typedef bool (*log_fn)(struct lc_record_info *info, u32 n, u32 k, u32 nr_segments);

static bool one_lane(struct lc_record_info *info, u32 n, u32 k, u32 nr_segments)
{
	(void)nr_segments;
	info->seq = 1 + (u64)n * IN_SEGMENT + k;
	return true;
}

/* Eight lanes in rounds of 16 segments each, all at the same pace. */
static bool eight_lanes(struct lc_record_info *info, u32 n, u32 k, u32 nr_segments)
{
	u32 lanes = 8, round = n / 128, in = n % 128;

	if (round == nr_segments / 128)
		return one_lane(info, n, k, nr_segments);
	info->seq = 1 + (u64)round * 128 * IN_SEGMENT +
		    (in / lanes * IN_SEGMENT + k) * lanes + in % lanes;
	return true;
}

/* A crash after each thousand segments: the last records of each life are dead. */
static bool crashes(struct lc_record_info *info, u32 n, u32 k, u32 nr_segments)
{
	u32 life = n / 1000;

	(void)nr_segments;
	info->epoch = 1 + life;
	info->seq = 1 + (u64)n * IN_SEGMENT + k - life * DEAD;
	info->epoch_first_seq = 1 + (u64)life * (1000 * IN_SEGMENT - DEAD);
	return info->seq < 1 + (u64)(life + 1) * (1000 * IN_SEGMENT - DEAD) ||
	       life == (nr_segments - 1) / 1000;
}

/* By nobody's order, as only somebody who means harm can write them. */
static bool shuffled(struct lc_record_info *info, u32 n, u32 k, u32 nr_segments)
{
	u64 nr = (u64)nr_segments * IN_SEGMENT;

	/* The prime divides none of the numbers that this is called with. */
	info->seq = 1 + ((u64)n * IN_SEGMENT + k) * 1000003 % nr;
	return true;
}

static void make_volume(u32 nr_segments)
{
	memset(&cache, 0, sizeof(cache));
	cache.sb.geo.seg_slots = SLOTS;
	cache.sb.geo.nr_segments = (u64)nr_segments * 10 / 6;	/* it is 60 % full */
	cache.sb.geo.nr_slots = cache.sb.geo.nr_segments * SLOTS;
	cache.sb.tail_seq = 1;
	cache.sb.tail_segment = 1;
	cache.sb.epoch = 1;
	cache.sb.epoch_first_seq = 1;
}

/* All headers, as the scan finds them.  Return: how many count. */
static u64 find_all(struct lc_found *found, log_fn fn, u32 nr_segments)
{
	u64 nr_kept = 0;
	u32 n, k, i;

	for (n = 0; n < nr_segments; n += WINDOW) {
		for (k = 0; k < IN_SEGMENT; k++) {
			for (i = 0; i < WINDOW; i++) {
				struct lc_record_info info = {
					.epoch = 1, .epoch_first_seq = 1, .segment = 1 + n + i,
					.first_slot = 2 * k,
				};

				nr_kept += fn(&info, n + i, k, nr_segments);
				cache.sb.epoch = max(cache.sb.epoch, info.epoch);
				cache.sb.epoch_first_seq = max(cache.sb.epoch_first_seq,
							      info.epoch_first_seq);
				if (lc_found_add(found, &info, false))
					die("found", "a header was not taken");
			}
		}
	}
	return nr_kept;
}

static void begin(struct lc_found *found, u32 nr_segments)
{
	make_volume(nr_segments);
	memset(found, 0, sizeof(*found));
	shim_available = totalram_pages() / 2;
	used = 0;
	peak = 0;
	if (lc_found_alloc(found, &cache))
		die("found", "no memory to begin with");
	lowest = shim_available;
}

/* The most that the process ever had in RAM; rusage would count who started it, too. */
static size_t process_bytes(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	size_t kib = 0;
	char line[128];

	while (status && fgets(line, sizeof(line), status) && sscanf(line, "VmHWM: %zu", &kib) != 1)
		;
	if (!kib)
		die("status", "the kernel does not say");
	fclose(status);
	return kib << 10;
}

/* RP1, and that the run is found. */
static void enough(const char *name, log_fn fn, u32 nr_segments)
{
	u64 nr = (u64)nr_segments * IN_SEGMENT, nr_kept, most, n;
	struct lc_replay_result result;
	struct lc_found found;
	u32 i;

	begin(&found, nr_segments);
	nr_kept = find_all(&found, fn, nr_segments);
	if (lc_found_check(&found) || found.nr_headers != nr)
		die(name, "not all headers were kept");
	if (lc_replay_select(&cache.sb, &found.log, &result) || result.nr_kept != nr_kept)
		die(name, "the run was not found");
	lc_replay_find_boundaries(&found.log);
	for (n = 0, i = 0; i < found.log.nr; i++) {
		const struct lc_replay_record *r = lc_replay_at(&found.log, i);

		if (r->keep && r->seq != ++n)
			die(name, "the run is not in order");
	}
	most = nr * 24 + LC_REPLAY_CHUNK * 24 + 8 * lc_replay_chunks(&found.log) +
	       36 * LC_REPLAY_LIVES + 3 * PAGE_SIZE;
	printf("memory: %s: %llu headers, at most %zu bytes, %.2f each; the process had %.0f MiB\n",
	       name, nr, peak, (double)peak / nr, (double)process_bytes() / MIB);
	if (peak > most)
		die(name, "it takes more memory than is said");
	if (nr >= 1000000 && peak > 32 * nr)
		die(name, "it takes more than 32 bytes a header");
#ifndef SHIM_MALLOC
	if (process_bytes() > most + 16 * MIB)
		die(name, "memory was taken elsewhere");
#endif
	lc_found_free(&found);
	if (used)
		die(name, "memory was left behind");
}

/* FD1, FD2: with @available pages, or @allocs chunks and no more. */
static void too_little(const char *name, u32 nr_segments, long available, u32 allocs)
{
	u64 nr = (u64)nr_segments * IN_SEGMENT;
	struct lc_found found;
	char headers[64], mib[64];
	size_t before;

	begin(&found, nr_segments);
	before = used;
	shim_available = available;
	lowest = available;
	allocs_left = allocs;
	find_all(&found, one_lane, nr_segments);
	allocs_left = ~0u;
	if (lowest < RESERVE)
		die(name, "more memory was taken than can be spared");
	if (peak == before || used != before)
		die(name, "what was taken was not given back at once");
	if (lc_found_check(&found) != -ENOMEM)
		die(name, "a start without all headers was not refused");
	snprintf(headers, sizeof(headers), "has %llu record headers or more", nr);
	snprintf(mib, sizeof(mib), "takes %llu MiB of RAM", (nr * 24 + MIB - 1) / MIB);
	printf("memory: %s: %s\n", name, said);
	if (!strstr(said, headers) || !strstr(said, mib))
		die(name, "the refusal does not say what it would take");
	lc_found_free(&found);
	if (used)
		die(name, "memory was left behind");
}

/* More lives than can be told apart: refused, and said. */
static void too_many_lives(void)
{
	u32 nr_segments = LC_REPLAY_LIVES / SLOTS + 1, i;
	struct lc_record_info info = { .seq = 1 };
	struct lc_found found;
	int ret = 0;

	begin(&found, nr_segments * 2);
	for (i = 0; !ret && i <= LC_REPLAY_LIVES; i++) {
		info.epoch = i;
		info.epoch_first_seq = 1;
		info.segment = 1 + i / SLOTS;
		info.first_slot = i % SLOTS;
		ret = lc_found_add(&found, &info, false);
	}
	if (ret != -E2BIG || i != LC_REPLAY_LIVES + 1 || !strstr(said, "65536 lives"))
		die("lives", "one more than can be told apart was not refused");
	lc_found_free(&found);
}

int main(int argc, char **argv)
{
	u32 nr_segments = (argc > 1 ? strtoul(argv[1], NULL, 0) : 1000000) / IN_SEGMENT;

	/* Whole windows. */
	nr_segments = max(nr_segments / WINDOW, 4u) * WINDOW;
	enough("one lane", one_lane, nr_segments);
	enough("eight lanes", eight_lanes, nr_segments);
	enough("crashes", crashes, nr_segments);
	enough("shuffled", shuffled, nr_segments);
	too_little("little RAM", nr_segments, RESERVE + 400, ~0u);
	too_little("a chunk is refused", nr_segments, totalram_pages() / 2, 3);
	too_many_lives();
	return 0;
}
