/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of powerload.c share: stamps, the ledger, its clock, the device.
 */
#ifndef POWERLOAD_H
#define POWERLOAD_H

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECTOR		512
#define STAMP_MAGIC	0x706d6174732d636cULL
#define LEDGER_MAGIC	0x7265676465632d6cULL
#define READ_SECTORS	2048
#define EXAMPLES	8
#define MAX_PIECES	12	/* of memory, in one write */
#define MAX_WORDS	64
#define WRITE_FUA	1u
#define WRITE_DISCARD	2u	/* no write */

typedef uint64_t u64;
typedef uint32_t u32;

struct stamp {
	u64 magic;
	u64 checksum;	/* of all that follows */
	u64 seed;
	u64 sector;
	u64 version;
	u64 fill[59];	/* all the same: saved images are small */
};

_Static_assert(sizeof(struct stamp) == SECTOR, "a stamp fills its sector");

struct write_record {
	u64 sector;
	u32 count;
	u32 flags;
	_Atomic u64 issued;
	_Atomic u64 completed;	/* 0: not, or with an error */
};

struct sync_record {
	_Atomic u64 issued;
	_Atomic u64 completed;
};

/* Followed by base[sectors], writes[max_writes], syncs[max_syncs]. */
struct ledger {
	u64 magic;
	u64 seed;
	u64 sectors;
	u64 unit;		/* sectors of a logical block */
	u64 max_writes;
	u64 max_syncs;
	u64 first_version;	/* of this round */
	_Atomic u64 clock;
	_Atomic u64 writes;
	_Atomic u64 syncs;
};

struct view {
	struct ledger *l;
	u64 *base;		/* version found by the last --rebase; 0: zeros */
	struct write_record *writes;
	struct sync_record *syncs;
};

struct options {
	const char *dev;
	const char *ledger;
	u64 seed, max_writes, max_syncs;
	u64 jobs, ops, max_sectors, sync_every, fua_every, discard_every, rng;
	const char *clock;
	u64 at, skip;
	bool ordered, rebase, sync_last, within;
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list args;

	fputs("powerload: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

/* ---- random numbers and stamps --------------------------------------------- */

static u64 next_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static u64 below(u64 *state, u64 n)
{
	return next_random(state) % n;
}

static u64 stamp_checksum(const struct stamp *stamp)
{
	const u64 *word = &stamp->seed;
	const u64 *end = (const u64 *)(stamp + 1);
	u64 sum = 0x243f6a8885a308d3ULL;

	for (; word < end; word++) {
		sum = (sum ^ *word) * 0x9fb21c651e98df25ULL;
		sum ^= sum >> 29;
	}
	return sum;
}

static void stamp_make(struct stamp *stamp, u64 seed, u64 sector, u64 version)
{
	u64 state = seed ^ sector << 20 ^ version;
	u64 fill = next_random(&state);

	stamp->magic = STAMP_MAGIC;
	stamp->seed = seed;
	stamp->sector = sector;
	stamp->version = version;
	for (size_t i = 0; i < sizeof(stamp->fill) / sizeof(*stamp->fill); i++)
		stamp->fill[i] = fill;
	stamp->checksum = stamp_checksum(stamp);
}

static bool all_zero(const void *sector)
{
	const u64 *word = sector;

	for (size_t i = 0; i < SECTOR / sizeof(*word); i++)
		if (word[i])
			return false;
	return true;
}

/* ---- device and ledger ------------------------------------------------------- */

static int open_device(const struct options *o, u64 *sectors, u64 *unit)
{
	struct stat st;
	int fd = open(o->dev, O_RDWR | O_DIRECT | O_CLOEXEC);

	if (fd < 0)
		die("%s: %s", o->dev, strerror(errno));
	if (fstat(fd, &st))
		die("%s: %s", o->dev, strerror(errno));
	*sectors = st.st_size / SECTOR;
	*unit = 1;
	if (S_ISBLK(st.st_mode)) {
		int logical;
		u64 bytes;

		if (ioctl(fd, BLKGETSIZE64, &bytes) || ioctl(fd, BLKSSZGET, &logical))
			die("%s: %s", o->dev, strerror(errno));
		*sectors = bytes / SECTOR;
		*unit = logical / SECTOR;
	}
	return fd;
}

static size_t ledger_bytes(u64 sectors, u64 max_writes, u64 max_syncs)
{
	return sizeof(struct ledger) + sectors * sizeof(u64) +
	       max_writes * sizeof(struct write_record) + max_syncs * sizeof(struct sync_record);
}

static struct view ledger_view(void *map, u64 sectors, u64 max_writes)
{
	struct view v = { .l = map };

	v.base = (u64 *)(v.l + 1);
	v.writes = (struct write_record *)(v.base + sectors);
	v.syncs = (struct sync_record *)(v.writes + max_writes);
	return v;
}

static void *ledger_map(const char *path, int fd, size_t size)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		die("%s: %s", path, strerror(errno));
	close(fd);
	return map;
}

static struct view ledger_open(const struct options *o)
{
	struct stat st;
	struct view v;
	int fd = open(o->ledger, O_RDWR | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		die("%s: %s", o->ledger, strerror(errno));
	if ((size_t)st.st_size < sizeof(struct ledger))
		die("%s: not a ledger", o->ledger);
	v.l = ledger_map(o->ledger, fd, st.st_size);
	if (v.l->magic != LEDGER_MAGIC ||
	    (size_t)st.st_size != ledger_bytes(v.l->sectors, v.l->max_writes, v.l->max_syncs))
		die("%s: not a ledger", o->ledger);
	return ledger_view(v.l, v.l->sectors, v.l->max_writes);
}

static int open_both(const struct options *o, struct view *v)
{
	u64 sectors, unit;
	int fd = open_device(o, &sectors, &unit);

	*v = ledger_open(o);
	if (o->within ? sectors < o->skip + v->l->sectors : sectors != v->l->sectors)
		die("%s: %llu sectors, the ledger is for %llu", o->dev,
		    (unsigned long long)sectors, (unsigned long long)v->l->sectors);
	return fd;
}

static int disks_clock = -1;

static void clock_open(const char *path)
{
	disks_clock = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (disks_clock < 0)
		die("%s: %s", path, strerror(errno));
}

static u64 tick(struct ledger *l)
{
	u64 sector[SECTOR / sizeof(u64)] __attribute__((aligned(SECTOR)));

	if (disks_clock < 0)
		return atomic_fetch_add(&l->clock, 1) + 1;
	if (pread(disks_clock, sector, sizeof(sector), 0) != sizeof(sector))
		die("the clock cannot be read: %s", strerror(errno));
	return sector[0];
}

static u64 at_most(u64 n, u64 limit)
{
	return n < limit ? n : limit;
}

static int do_init(const struct options *o)
{
	u64 sectors, unit;
	size_t size;
	struct view v;
	int fd;

	close(open_device(o, &sectors, &unit));
	size = ledger_bytes(sectors, o->max_writes, o->max_syncs);
	fd = open(o->ledger, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, size))
		die("%s: %s", o->ledger, strerror(errno));
	v = ledger_view(ledger_map(o->ledger, fd, size), sectors, o->max_writes);
	v.l->seed = o->seed;
	v.l->sectors = sectors;
	v.l->unit = unit;
	v.l->max_writes = o->max_writes;
	v.l->max_syncs = o->max_syncs;
	v.l->first_version = 1;
	v.l->magic = LEDGER_MAGIC;
	printf("{\"sectors\": %llu, \"seed\": %llu}\n", (unsigned long long)sectors,
	       (unsigned long long)o->seed);
	return 0;
}

#endif
