// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of the module, see shim.h.
 *
 * It is a stack that is never popped, only emptied: fast, and a life may end anywhere in the
 * module's code.  With SHIM_MALLOC it comes from malloc(), where the sanitizers see it.
 */
#include "shim.h"

struct task_struct shim_current;
long shim_available = 1L << 19;

#ifdef SHIM_MALLOC
#define MAX_HEAP	4096

static void *heap[MAX_HEAP];
static size_t heap_used;

void *shim_alloc(size_t bytes, gfp_t flags)
{
	void *memory = malloc(bytes);

	if (!memory || heap_used == MAX_HEAP) {
		fprintf(stderr, "shim: out of memory\n");
		exit(2);
	}
	/* A pattern makes the use of what was never set visible. */
	memset(memory, flags & __GFP_ZERO ? 0 : 0xa5, bytes);
	return heap[heap_used++] = memory;
}

void *shim_alloc_kept(size_t bytes)
{
	return shim_alloc(bytes, __GFP_ZERO);
}

void shim_kept_written(void)
{
}

void shim_free(const void *memory)
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

void shim_heap_reset(void)
{
	while (heap_used)
		free(heap[--heap_used]);
}

size_t shim_heap_used(void)
{
	return heap_used;
}
#else
static u8 heap[8 << 20] __attribute__((aligned(4096)));
static size_t heap_used;
/* Zero from kept_dirty on. */
static u8 kept[2 << 20] __attribute__((aligned(4096)));
static size_t kept_used, kept_dirty;

void *shim_alloc(size_t bytes, gfp_t flags)
{
	/* Whole pages lie on pages: the module looks at offsets in pages. */
	size_t align = bytes >= PAGE_SIZE ? PAGE_SIZE : 16;
	size_t at = (heap_used + align - 1) & ~(align - 1);

	if (at + bytes > sizeof(heap)) {
		fprintf(stderr, "shim: out of memory\n");
		exit(2);
	}
	heap_used = at + bytes;
	if (flags & __GFP_ZERO)
		memset(heap + at, 0, bytes);
	return heap + at;
}

void *shim_alloc_kept(size_t bytes)
{
	size_t at = kept_used;

	if (at + bytes > sizeof(kept)) {
		fprintf(stderr, "shim: out of memory\n");
		exit(2);
	}
	kept_used += bytes;
	return kept + at;
}

void shim_kept_written(void)
{
	kept_dirty = kept_used;
}

void shim_free(const void *memory)
{
	(void)memory;
}

void shim_heap_reset(void)
{
	heap_used = 0;
	memset(kept, 0, kept_dirty);
	kept_used = 0;
	kept_dirty = 0;
}
#endif
