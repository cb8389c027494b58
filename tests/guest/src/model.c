// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random reads and writes of whole sectors against a model that knows every byte.
 *
 *   model run    --dev D --model F --ops N [--seed S] [--discards]
 *   model verify --dev D --model F
 *
 * The model holds a version per sector; version v of sector s has one content, derived
 * from seed, s and v. Version 0 is zeroes (a wiped disk); a discarded sector is unknown
 * until it is written again. The model file carries on from run to run, and can be
 * verified on another device, such as the volume's places on the HDD. One process,
 * one operation at a time: every read has exactly one right answer.
 *
 * Memory is in random pieces, of logical blocks at any address that the device takes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define SECTOR		512u
#define WORDS		(SECTOR / 8)
#define MAX_SECTORS	4096u	/* of a read that verifies */
#define MOST		256u	/* of one that is random, and of a write */
#define UNKNOWN		0xffffffffu
#define MAX_PIECES	24u
#define ARENA		(MAX_SECTORS * SECTOR + MAX_PIECES * 3 * 4096)

struct header {
	char magic[8];
	uint64_t seed;
	uint64_t nr_sectors;
	uint64_t clock;
	uint64_t random;
};

struct model {
	struct header h;
	uint32_t *versions;
};

static struct {
	const char *dev, *file;
	uint64_t ops, seed;
	int discards;
} opt = { .seed = 1 };

static unsigned char *buffer;	/* what is read or written, in one piece */
static unsigned char *arena;	/* where the device reads or writes it */
static uint64_t pieces_random;
static uint32_t lbs, alignment;	/* of lengths, and of addresses */
static int dev;

static void die(const char *what)
{
	fprintf(stderr, "model: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t draw_from(uint64_t *random, uint64_t below)
{
	*random += 0x9e3779b97f4a7c15ull;
	return mix(*random) % below;
}

static uint64_t draw(struct model *m, uint64_t below)
{
	return draw_from(&m->h.random, below);
}

/* Lay the bytes out in the arena.  Return: the number of pieces. */
static int lay_out(struct iovec *piece, size_t bytes)
{
	uint32_t nr = 1 + draw_from(&pieces_random, draw_from(&pieces_random, 2) ? 3 : MAX_PIECES);
	unsigned char *at = arena;
	uint32_t i;

	for (i = 0; bytes; i++) {
		size_t len = bytes;

		at += alignment * draw_from(&pieces_random, 4096 / alignment + 1);
		if (i + 1 < nr && len > lbs)
			len = lbs * (1 + draw_from(&pieces_random, len / lbs));
		piece[i].iov_base = at;
		piece[i].iov_len = len;
		at += len;
		bytes -= len;
	}
	return i;
}

/* Between the buffer and the pieces. */
static void copy_pieces(const struct iovec *piece, int nr, int back)
{
	unsigned char *flat = buffer;
	int i;

	for (i = 0; i < nr; i++) {
		if (back)
			memcpy(flat, piece[i].iov_base, piece[i].iov_len);
		else
			memcpy(piece[i].iov_base, flat, piece[i].iov_len);
		flat += piece[i].iov_len;
	}
}

/* What addresses does the device take?  Older kernels do not tell. */
static uint32_t find_alignment(void)
{
	char path[80];
	struct stat st;
	unsigned int mask = 511;
	FILE *f;

	if (fstat(dev, &st))
		die(opt.dev);
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/dma_alignment",
		 major(st.st_rdev), minor(st.st_rdev));
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%u", &mask) != 1)
			die(path);
		fclose(f);
	}
	return mask < 4096 ? mask + 1 : 4096;
}

static void fill(const struct model *m, uint64_t sector, uint32_t version, void *data)
{
	uint64_t *word = data, x = mix(m->h.seed ^ sector << 32 ^ version);
	uint32_t i;

	if (!version) {
		memset(data, 0, SECTOR);
		return;
	}
	word[0] = sector;
	word[1] = version;
	for (i = 2; i < WORDS; i++)
		word[i] = x += 0x9e3779b97f4a7c15ull;
}

static void check(const struct model *m, uint64_t first, uint32_t nr, uint64_t op)
{
	uint64_t want[WORDS], got[WORDS];
	uint32_t i;

	for (i = 0; i < nr; i++) {
		if (m->versions[first + i] == UNKNOWN)
			continue;
		fill(m, first + i, m->versions[first + i], want);
		memcpy(got, buffer + i * SECTOR, SECTOR);
		if (!memcmp(got, want, SECTOR))
			continue;
		fprintf(stderr,
			"model: sector %llu (%u of a read of %llu+%u, operation %llu): found sector %llu version %llu, wanted version %u; seed %llu\n",
			(unsigned long long)first + i, i, (unsigned long long)first, nr,
			(unsigned long long)op, (unsigned long long)got[0],
			(unsigned long long)got[1], m->versions[first + i],
			(unsigned long long)m->h.seed);
		exit(1);
	}
}

static void read_device(uint64_t first, uint32_t nr)
{
	struct iovec piece[MAX_PIECES];
	int nr_pieces = lay_out(piece, nr * SECTOR);

	if (preadv(dev, piece, nr_pieces, first * SECTOR) !=
	    (ssize_t)(nr * SECTOR))
		die("read");
	copy_pieces(piece, nr_pieces, 1);
}

static void do_write(struct model *m, uint64_t first, uint32_t nr)
{
	struct iovec piece[MAX_PIECES];
	int nr_pieces = lay_out(piece, nr * SECTOR);
	uint32_t i;

	m->h.clock++;
	for (i = 0; i < nr; i++) {
		m->versions[first + i] = m->h.clock;
		fill(m, first + i, m->h.clock, buffer + i * SECTOR);
	}
	copy_pieces(piece, nr_pieces, 0);
	if (pwritev(dev, piece, nr_pieces, first * SECTOR) != (ssize_t)(nr * SECTOR))
		die("write");
}

static void do_discard(struct model *m, uint64_t first, uint32_t nr)
{
	uint64_t range[2] = { first * SECTOR, nr * SECTOR };
	uint32_t i;

	if (ioctl(dev, BLKDISCARD, range)) {
		if (errno == EOPNOTSUPP)
			return;
		die("discard");
	}
	for (i = 0; i < nr; i++)
		m->versions[first + i] = UNKNOWN;
}

static void one_op(struct model *m, uint64_t op)
{
	uint32_t most = draw(m, 4) ? 16 : MOST, nr;
	uint64_t first, what = draw(m, 1000);
	/* Half of all operations fall on a sixteenth of the device: hot blocks. */
	uint64_t span = draw(m, 2) ? m->h.nr_sectors : m->h.nr_sectors / 16;

	nr = (1 + draw(m, most)) * lbs / SECTOR;
	if (nr > MOST)
		nr = MOST;
	nr -= nr % (lbs / SECTOR);
	if (nr > span)
		nr = span;
	first = draw(m, span - nr + 1);
	first -= first % (lbs / SECTOR);
	if (what < 10) {
		if (fdatasync(dev))
			die("fdatasync");
	} else if (what < 20 && opt.discards) {
		do_discard(m, first, nr);
	} else if (what < 600) {
		do_write(m, first, nr);
	} else {
		read_device(first, nr);
		check(m, first, nr, op);
	}
}

static void load(struct model *m)
{
	uint64_t bytes;
	FILE *f = fopen(opt.file, "r");

	memset(m, 0, sizeof(*m));
	if (f) {
		if (fread(&m->h, sizeof(m->h), 1, f) != 1)
			die(opt.file);
	} else {
		if (ioctl(dev, BLKGETSIZE64, &bytes))
			die("size");
		memcpy(m->h.magic, "lcmodel1", 8);
		m->h.seed = opt.seed;
		m->h.random = opt.seed;
		m->h.nr_sectors = bytes / SECTOR;
	}
	m->versions = calloc(m->h.nr_sectors, sizeof(uint32_t));
	if (!m->versions)
		die("memory");
	if (f && fread(m->versions, sizeof(uint32_t), m->h.nr_sectors, f) != m->h.nr_sectors)
		die(opt.file);
	if (f)
		fclose(f);
}

static void save(const struct model *m)
{
	FILE *f = fopen(opt.file, "w");

	if (!f || fwrite(&m->h, sizeof(m->h), 1, f) != 1 ||
	    fwrite(m->versions, sizeof(uint32_t), m->h.nr_sectors, f) != m->h.nr_sectors ||
	    fclose(f))
		die(opt.file);
}

static void verify(const struct model *m)
{
	uint64_t at;

	for (at = 0; at < m->h.nr_sectors; at += MAX_SECTORS) {
		uint64_t left = m->h.nr_sectors - at;
		uint32_t nr = left < MAX_SECTORS ? left : MAX_SECTORS;

		read_device(at, nr);
		check(m, at, nr, 0);
	}
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dev", required_argument, NULL, 'd' }, { "model", required_argument, NULL, 'm' },
		{ "ops", required_argument, NULL, 'o' }, { "seed", required_argument, NULL, 's' },
		{ "discards", no_argument, NULL, 'D' },
		{ }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'd': opt.dev = optarg; break;
		case 'm': opt.file = optarg; break;
		case 'o': opt.ops = strtoull(optarg, NULL, 0); break;
		case 's': opt.seed = strtoull(optarg, NULL, 0); break;
		case 'D': opt.discards = 1; break;
		default: exit(2);
		}
	}
	if (!opt.dev || !opt.file) {
		fprintf(stderr, "usage: model run|verify --dev D --model F ...\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct model m;
	uint64_t i;

	if (argc < 2)
		return 2;
	parse(argc - 1, argv + 1);
	dev = open(opt.dev, O_RDWR | O_DIRECT);
	if (dev < 0)
		die(opt.dev);
	if (posix_memalign((void **)&buffer, 4096, MAX_SECTORS * SECTOR) ||
	    posix_memalign((void **)&arena, 4096, ARENA) ||
	    ioctl(dev, BLKSSZGET, &lbs))
		die("setup");
	load(&m);
	alignment = find_alignment();
	pieces_random = m.h.random;
	if (!strcmp(argv[1], "run")) {
		for (i = 0; i < opt.ops; i++)
			one_op(&m, i);
		save(&m);
	} else {
		verify(&m);
	}
	return 0;
}
