// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel provides: memory, messages.  See shim.h.
 *
 * Memory is a stack that is emptied before each start, so a life may end anywhere in the
 * module's code.  With EXPLORE_MALLOC it comes from malloc() for the sanitizers' sake.
 */
#include "life.h"
#include "replay.h"

#ifdef EXPLORE_MALLOC
#define MAX_HEAP	4096

static void *heap[MAX_HEAP];
static size_t heap_used;

void *explore_alloc(size_t bytes, gfp_t flags)
{
	void *memory = flags & __GFP_ZERO ? calloc(1, bytes) : malloc(bytes);

	if (!memory || heap_used == MAX_HEAP) {
		fprintf(stderr, "explore: out of memory\n");
		exit(2);
	}
	return heap[heap_used++] = memory;
}

void explore_free(const void *memory)
{
	size_t i;

	for (i = heap_used; memory && i--; ) {
		if (heap[i] == memory) {
			free(heap[i]);
			heap[i] = heap[--heap_used];
			return;
		}
	}
}

void heap_reset(void)
{
	while (heap_used)
		free(heap[--heap_used]);
}
#else
static u8 heap[4 << 20] __attribute__((aligned(4096)));
static size_t heap_used;

void *explore_alloc(size_t bytes, gfp_t flags)
{
	/* Whole pages lie on pages: the module looks at offsets in pages. */
	size_t align = bytes >= PAGE_SIZE ? PAGE_SIZE : 16;
	size_t at = (heap_used + align - 1) & ~(align - 1);

	if (at + bytes > sizeof(heap)) {
		fprintf(stderr, "explore: out of memory\n");
		exit(2);
	}
	heap_used = at + bytes;
	if (flags & __GFP_ZERO)
		memset(heap + at, 0, bytes);
	return heap + at;
}

void explore_free(const void *memory)
{
	(void)memory;
}

void heap_reset(void)
{
	heap_used = 0;
}
#endif

struct task_struct explore_task;
long explore_available = 1L << 19;

void explore_log(int level, const char *format, va_list args)
{
	if (!world->verbose)
		return;
	printf("  kernel %s: ", level <= LOGLEVEL_ERR ? "error" :
	       level <= LOGLEVEL_WARNING ? "warning" : "info");
	vprintf(format, args);
	printf("\n");
}

void explore_warn(const char *what, const char *file, int line)
{
	trouble(BAD_WARNING, "WARN_ON(%s) at %s:%d", what, file, line);
}

/*
 * The linker puts these between recovery.c and replay.c (--wrap), so that the judge sees
 * which records recovery believes in.
 */
int __real_lc_replay_select(const struct lc_sb *sb, struct lc_replay_log *log,
			    struct lc_replay_result *result);
int __wrap_lc_replay_select(const struct lc_sb *sb, struct lc_replay_log *log,
			    struct lc_replay_result *result);
void __real_lc_replay_cut(struct lc_replay_log *log, u64 last_seq,
			  struct lc_replay_result *result);
void __wrap_lc_replay_cut(struct lc_replay_log *log, u64 last_seq,
			  struct lc_replay_result *result);

static void note_kept(const struct lc_replay_log *log)
{
	struct life *life = world->life;
	u32 i;

	life->clean = false;
	life->nr_kept = 0;
	for (i = 0; i < log->nr; i++) {
		const struct lc_replay_record *r = lc_replay_at(log, i);

		if (!r->keep || life->nr_kept == MAX_SEQ)
			continue;
		life->kept[life->nr_kept++] = (struct kept) {
			.seq = r->seq, .segment = lc_replay_segment(log, r),
			.slot = lc_replay_slot(log, r),
		};
	}
}

int __wrap_lc_replay_select(const struct lc_sb *sb, struct lc_replay_log *log,
			    struct lc_replay_result *result)
{
	int ret = __real_lc_replay_select(sb, log, result);

	note_kept(log);
	return ret;
}

void __wrap_lc_replay_cut(struct lc_replay_log *log, u64 last_seq,
			  struct lc_replay_result *result)
{
	__real_lc_replay_cut(log, last_seq, result);
	note_kept(log);
}
