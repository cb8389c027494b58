// SPDX-License-Identifier: GPL-2.0-only
/*
 * hog: use more memory than there is, and see that it keeps what was put there.
 *
 *   hog --mib N --touches N --seconds N [--seed N]
 *
 * Fills its memory, then touches pages at random: each must hold what was put there last,
 * every word of it, and gets something new. Ends after that many touches and that many
 * seconds, whichever comes later, with a look at all pages.
 *
 * One line of JSON on stdout. Exit 0: fine; 1: a page was wrong; 2: could not run.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define PAGE_BYTES	4096
#define PAGE_WORDS	(PAGE_BYTES / sizeof(u64))

struct hog {
	u64 *memory;
	u32 *versions;
	u64 pages;
	u64 seed;
	u64 rng;
};

/* A step of splitmix64, which also makes the content of a page. */
static u64 mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static u64 first_word(const struct hog *h, u64 page)
{
	return mix(h->seed ^ page << 32 ^ h->versions[page]);
}

static void put(struct hog *h, u64 page)
{
	u64 *words = h->memory + page * PAGE_WORDS;
	u64 word;
	size_t i;

	h->versions[page]++;
	word = first_word(h, page);
	for (i = 0; i < PAGE_WORDS; i++)
		words[i] = word + i;
}

static void check(const struct hog *h, u64 page)
{
	const u64 *words = h->memory + page * PAGE_WORDS;
	u64 word = first_word(h, page);
	size_t i;

	for (i = 0; i < PAGE_WORDS; i++) {
		if (words[i] == word + i)
			continue;
		printf("{\"page\": %llu, \"word\": %zu, \"found\": \"%llx\", \"wanted\": \"%llx\"}\n",
		       (unsigned long long)page, i, (unsigned long long)words[i],
		       (unsigned long long)(word + i));
		exit(1);
	}
}

static void *reserve(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED) {
		perror("hog: mmap");
		exit(2);
	}
	/* Page by page, in and out. */
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	return memory;
}

static u64 run(struct hog *h, u64 touches, time_t seconds)
{
	time_t end = time(NULL) + seconds;
	u64 page, done;

	for (page = 0; page < h->pages; page++)
		put(h, page);
	for (done = 0; done < touches || time(NULL) < end; done++) {
		h->rng = mix(h->rng);
		page = h->rng % h->pages;
		check(h, page);
		put(h, page);
	}
	for (page = 0; page < h->pages; page++)
		check(h, page);
	return done;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "mib", required_argument, NULL, 0 },
		{ "touches", required_argument, NULL, 1 },
		{ "seconds", required_argument, NULL, 2 },
		{ "seed", required_argument, NULL, 3 },
		{ 0 }
	};
	unsigned long long values[] = { 0, 0, 0, 1 };
	struct hog h = { 0 };
	int which;

	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == '?')
			return 2;
		values[which] = strtoull(optarg, NULL, 0);
	}
	if (!values[0] || optind != argc) {
		fprintf(stderr, "usage: hog --mib N --touches N --seconds N [--seed N]\n");
		return 2;
	}
	h.pages = (values[0] << 20) / PAGE_BYTES;
	h.seed = values[3];
	h.rng = values[3];
	h.memory = reserve(h.pages * PAGE_BYTES);
	h.versions = reserve(h.pages * sizeof(*h.versions));
	values[1] = run(&h, values[1], values[2]);
	printf("{\"pages\": %llu, \"touches\": %llu}\n", (unsigned long long)h.pages, values[1]);
	return 0;
}
