// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a checksum of a 4 KiB block costs on this CPU, and what it costs beside the copy.
 *
 * The kernel's own functions cannot be called from here.  xxh64 is the same algorithm in C, as the
 * kernel has it.  crc32c in three streams is what the kernels' assembler of x86-64 does: the
 * instruction takes three cycles and can start each cycle, and three registers are joined at the end.
 * The table loops are what a kernel does on a CPU without these instructions.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define BLOCK		4096u
#define STREAM		1360u		/* bytes of each of three streams; 16 are left */
#define COLD_BLOCKS	65536u		/* 256 MiB: more than any cache */
#define ROUNDS		5		/* the best counts: noise only adds */

#define CRC32C_POLY	0x82f63b78u
#define CRC64_NVME_POLY	0x9a6c9329ac4bc9b5ull

static uint32_t crc_table[8][256];
static uint64_t crc64_table[256];
static uint32_t shift_table[2][4][256];	/* a register that passes one, two streams of zeros */

static volatile uint64_t sink;		/* keeps the compiler from leaving out what is measured */

static void fill_tables(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;
		uint64_t crc64 = i;

		for (int bit = 0; bit < 8; bit++) {
			crc = crc >> 1 ^ (crc & 1 ? CRC32C_POLY : 0);
			crc64 = crc64 >> 1 ^ (crc64 & 1 ? CRC64_NVME_POLY : 0);
		}
		crc_table[0][i] = crc;
		crc64_table[i] = crc64;
	}
	for (int t = 1; t < 8; t++) {
		for (uint32_t i = 0; i < 256; i++)
			crc_table[t][i] = crc_table[t - 1][i] >> 8 ^
					  crc_table[0][crc_table[t - 1][i] & 0xff];
	}
}

static uint32_t zeros(uint32_t crc, uint32_t len)
{
	while (len--)
		crc = crc >> 8 ^ crc_table[0][crc & 0xff];
	return crc;
}

/* Linear: what a register becomes is the xor of what its bits become. */
static void fill_shifts(void)
{
	for (int nr = 0; nr < 2; nr++) {
		for (int byte = 0; byte < 4; byte++) {
			for (uint32_t i = 0; i < 256; i++)
				shift_table[nr][byte][i] =
					zeros(i << 8 * byte, (nr + 1) * STREAM);
		}
	}
}

static uint64_t sum_xxh64(const uint8_t *p)
{
	return XXH64(p, BLOCK, 7);
}

static uint64_t sum_xxh3(const uint8_t *p)
{
	return XXH3_64bits_withSeed(p, BLOCK, 7);
}

static uint64_t sum_crc_table(const uint8_t *p)
{
	uint32_t crc = 7;

	for (uint32_t len = BLOCK; len; len -= 8, p += 8) {
		uint32_t low, high;

		memcpy(&low, p, 4);
		memcpy(&high, p + 4, 4);
		low ^= crc;
		crc = crc_table[7][low & 0xff] ^ crc_table[6][low >> 8 & 0xff] ^
		      crc_table[5][low >> 16 & 0xff] ^ crc_table[4][low >> 24] ^
		      crc_table[3][high & 0xff] ^ crc_table[2][high >> 8 & 0xff] ^
		      crc_table[1][high >> 16 & 0xff] ^ crc_table[0][high >> 24];
	}
	return crc;
}

static uint64_t sum_crc64(const uint8_t *p)
{
	uint64_t crc = ~0ull;

	for (uint32_t i = 0; i < BLOCK; i++)
		crc = crc >> 8 ^ crc64_table[(crc ^ p[i]) & 0xff];
	return ~crc;
}

#if defined(__x86_64__)
#define CRC_TARGET	__attribute__((target("sse4.2")))
#define crc_step(crc, word)	((uint32_t)__builtin_ia32_crc32di(crc, word))
static bool has_crc(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__aarch64__)
#include <sys/auxv.h>
#include <asm/hwcap.h>
#define CRC_TARGET	__attribute__((target("+crc")))
#define crc_step(crc, word)	__builtin_aarch64_crc32cx(crc, word)
static bool has_crc(void) { return getauxval(AT_HWCAP) & HWCAP_CRC32; }
#else
#define CRC_TARGET
#define crc_step(crc, word)	((crc) + (uint32_t)(word))
static bool has_crc(void) { return false; }
#endif

static uint64_t word_at(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, 8);
	return word;
}

CRC_TARGET static uint64_t sum_crc_one(const uint8_t *p)
{
	uint32_t crc = 7;

	for (uint32_t i = 0; i < BLOCK; i += 8)
		crc = crc_step(crc, word_at(p + i));
	return crc;
}

static uint32_t shifted(int nr, uint32_t crc)
{
	return shift_table[nr][0][crc & 0xff] ^ shift_table[nr][1][crc >> 8 & 0xff] ^
	       shift_table[nr][2][crc >> 16 & 0xff] ^ shift_table[nr][3][crc >> 24];
}

CRC_TARGET static uint64_t sum_crc_three(const uint8_t *p)
{
	uint32_t a = 7, b = 0, c = 0;

	for (uint32_t i = 0; i < STREAM; i += 8) {
		a = crc_step(a, word_at(p + i));
		b = crc_step(b, word_at(p + STREAM + i));
		c = crc_step(c, word_at(p + 2 * STREAM + i));
	}
	a = shifted(1, a) ^ shifted(0, b) ^ c;
	a = crc_step(a, word_at(p + 3 * STREAM));
	return crc_step(a, word_at(p + 3 * STREAM + 8));
}

struct sum {
	const char *name;
	uint64_t (*of)(const uint8_t *block);
	bool crc;	/* needs the instruction */
};

static const struct sum sums[] = {
	{ "xxh64", sum_xxh64, false },
	{ "crc32c, 3 streams", sum_crc_three, true },
	{ "crc32c, 1 stream", sum_crc_one, true },
	{ "crc32c, tables", sum_crc_table, false },
	{ "XXH3", sum_xxh3, false },
	{ "crc64-nvme, table", sum_crc64, false },
};

#define NR_SUMS	(sizeof(sums) / sizeof(sums[0]))

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* An order that no prefetcher knows: an odd factor visits each block of a power of two once. */
static uint8_t *nth(uint8_t *area, uint32_t i)
{
	return area + (size_t)(i * 40503u % COLD_BLOCKS) * BLOCK;
}

static double hot(const struct sum *sum, uint8_t *from)
{
	double best = 1e18;

	for (int round = 0; round < ROUNDS; round++) {
		double start = now();

		for (uint32_t i = 0; i < COLD_BLOCKS; i++) {
			from[0] = i;
			sink += sum->of(from);
		}
		if (now() - start < best)
			best = now() - start;
	}
	return best / COLD_BLOCKS;
}

enum what { SUM, COPY, COPY_THEN_SUM, COPY_AND_SUM };

/* From memory.  COPY_THEN_SUM: a batch of 256 blocks later, as the worker of a record does. */
static double cold(const struct sum *sum, enum what what, uint8_t *from, uint8_t *to)
{
	double best = 1e18;

	for (int round = 0; round < ROUNDS; round++) {
		double start = now();

		for (uint32_t i = 0; i < COLD_BLOCKS / 4; i++) {
			if (what != SUM)
				memcpy(nth(to, i), nth(from, i), BLOCK);
			if (what == SUM)
				sink += sum->of(nth(from, i));
			if (what == COPY_AND_SUM)
				sink += sum->of(nth(to, i));
			if (what == COPY_THEN_SUM && i >= 256)
				sink += sum->of(nth(to, i - 256));
		}
		if (now() - start < best)
			best = now() - start;
	}
	return best / (COLD_BLOCKS / 4);
}

/* A wrong sum is no measurement. */
static void check(const uint8_t *block)
{
	if (!has_crc())
		return;
	if (sum_crc_one(block) == sum_crc_table(block) &&
	    sum_crc_three(block) == sum_crc_table(block))
		return;
	fprintf(stderr, "sums: the crc32c functions do not agree\n");
	exit(1);
}

int main(void)
{
	size_t size = (size_t)COLD_BLOCKS * BLOCK;
	uint8_t *from = aligned_alloc(BLOCK, size), *to = aligned_alloc(BLOCK, size);

	if (!from || !to) {
		fprintf(stderr, "sums: no memory for two areas of 256 MiB\n");
		return 1;
	}
	for (size_t i = 0; i < size; i++)
		from[i] = i * 2654435761u >> 13;
	memset(to, 1, size);
	fill_tables();
	fill_shifts();
	check(from);
	printf("ns for 4 KiB; a copy from memory alone %.0f\n", cold(NULL, COPY, from, to));
	printf("%-20s %8s %8s %12s %12s\n", "", "hot", "cold", "copy, later", "copy, now");
	for (size_t i = 0; i < NR_SUMS; i++) {
		if (sums[i].crc && !has_crc())
			continue;
		printf("%-20s %8.0f %8.0f %12.0f %12.0f\n", sums[i].name, hot(&sums[i], from),
		       cold(&sums[i], SUM, from, to), cold(&sums[i], COPY_THEN_SUM, from, to),
		       cold(&sums[i], COPY_AND_SUM, from, to));
	}
	return 0;
}
