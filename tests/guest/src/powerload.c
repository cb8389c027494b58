// SPDX-License-Identifier: GPL-2.0-only
/*
 * powerload: write stamped sectors until the power goes, then judge what is left.
 *
 *   powerload init   --dev DEV --ledger FILE [--seed N] [--max-writes N] [--max-syncs N]
 *   powerload run    --dev DEV --ledger FILE [--jobs N] [--ops N] [--max-sectors N]
 *                    [--sync-every N] [--fua-every N] [--rng N]
 *   powerload verify --dev DEV --ledger FILE [--ordered] [--rebase]
 *
 * Every sector written carries its own address, the number of the write (its version)
 * and a checksum. The ledger is a shared mapping of a file that outlives the load (put
 * it on tmpfs). One clock stamps each write and fsync when it is issued and again when
 * it has completed without error; two commands overlapped unless one was completed
 * before the other was issued.
 *
 * verify allows in a sector the version of any write that was issued to it and that was
 * not certainly older (completed before the issue of) another write to this sector that
 * had to survive. Which writes had to:
 *   durable (P1)  completed before the issue of an fsync that completed, or FUA and completed
 *   ordered (P2)  completed before the issue of any write that is still seen; --ordered
 * Anything else is
 *   alien     never written to this sector: no stamp, bad checksum, wrong place, mixed
 *   stale     of an earlier round, but not what that round's verify found here
 *   lost      older than P1 allows
 *   disordered older than P2 allows, but not lost
 *   unreadable
 * --rebase flushes the device first and makes what is found the floor of the next round.
 *
 * One line of JSON on stdout. Exit 0: fine; 1: violations; 2: could not judge.
 *
 * Not covered: discards, buffered writes, and whether a read during the load was right.
 */
#define _GNU_SOURCE
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
#include <unistd.h>

#define SECTOR		512
#define STAMP_MAGIC	0x706d6174732d636cULL
#define LEDGER_MAGIC	0x7265676465632d6cULL
#define READ_SECTORS	2048
#define EXAMPLES	8
#define WRITE_FUA	1u

typedef uint64_t u64;
typedef uint32_t u32;

struct stamp {
	u64 magic;
	u64 checksum;	/* of all that follows */
	u64 seed;
	u64 sector;
	u64 version;
	u64 fill[59];
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
	u64 jobs, ops, max_sectors, sync_every, fua_every, rng;
	bool ordered, rebase;
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

	stamp->magic = STAMP_MAGIC;
	stamp->seed = seed;
	stamp->sector = sector;
	stamp->version = version;
	for (size_t i = 0; i < sizeof(stamp->fill) / sizeof(*stamp->fill); i++)
		stamp->fill[i] = next_random(&state);
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
	if (sectors != v->l->sectors)
		die("%s: %llu sectors, the ledger is for %llu", o->dev,
		    (unsigned long long)sectors, (unsigned long long)v->l->sectors);
	return fd;
}

static u64 tick(struct ledger *l)
{
	return atomic_fetch_add(&l->clock, 1) + 1;
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

/* ---- the load ------------------------------------------------------------------ */

struct load {
	const struct options *o;
	struct view v;
	int fd;
	_Atomic u64 ops;
	_Atomic int error;	/* the first one; ends the load */
	_Atomic bool full;
};

struct job {
	struct load *load;
	pthread_t thread;
	u64 rng;
};

static void choose_range(struct job *job, u64 *sector, u64 *count)
{
	const struct load *load = job->load;
	u64 unit = load->v.l->unit;
	u64 total = load->v.l->sectors / unit;
	u64 most = at_most(load->o->max_sectors / unit, total);
	u64 page = unit < 8 ? 8 / unit : 1;
	u64 align = 1;
	u64 n;

	switch (below(&job->rng, 4)) {
	case 0:
		n = page;
		align = page;
		break;
	case 1:
		n = 1 + below(&job->rng, page);
		break;
	case 2:
		n = page * (1 + below(&job->rng, (most + page - 1) / page));
		align = page;
		break;
	default:
		n = 1 + below(&job->rng, most);
	}
	n = at_most(n, most);
	/* Half of the writes fall on a sixteenth of the device: overwrites are frequent. */
	if (below(&job->rng, 2) && total / 16 > n)
		total /= 16;
	*sector = below(&job->rng, total - n + 1) / align * align * unit;
	*count = n * unit;
}

static int one_write(struct job *job, struct stamp *buf)
{
	struct load *load = job->load;
	struct view *v = &load->v;
	u64 index = atomic_fetch_add(&v->l->writes, 1);
	struct write_record *w = &v->writes[index];
	u64 sector, count;
	struct iovec iov = { .iov_base = buf };
	bool fua = load->o->fua_every && !below(&job->rng, load->o->fua_every);

	if (index >= v->l->max_writes) {
		load->full = true;
		return 0;
	}
	choose_range(job, &sector, &count);
	for (u64 i = 0; i < count; i++)
		stamp_make(&buf[i], v->l->seed, sector + i, v->l->first_version + index);
	iov.iov_len = count * SECTOR;
	w->sector = sector;
	w->count = count;
	w->flags = fua ? WRITE_FUA : 0;
	w->issued = tick(v->l);
	ssize_t done = pwritev2(load->fd, &iov, 1, sector * SECTOR, fua ? RWF_DSYNC : 0);

	if (done < 0)
		return errno;
	if ((u64)done != count * SECTOR)
		return EIO;
	w->completed = tick(v->l);
	return 0;
}

static int one_sync(struct job *job)
{
	struct load *load = job->load;
	struct view *v = &load->v;
	u64 index = atomic_fetch_add(&v->l->syncs, 1);
	struct sync_record *s = &v->syncs[index];

	if (index >= v->l->max_syncs) {
		load->full = true;
		return 0;
	}
	s->issued = tick(v->l);
	if (fsync(load->fd))
		return errno;
	s->completed = tick(v->l);
	return 0;
}

static void *job_main(void *arg)
{
	struct job *job = arg;
	struct load *load = job->load;
	const struct options *o = load->o;
	struct stamp *buf;

	if (posix_memalign((void **)&buf, 4096, o->max_sectors * SECTOR))
		die("out of memory");
	while (!load->error && !load->full && atomic_fetch_add(&load->ops, 1) < o->ops) {
		bool sync = o->sync_every && !below(&job->rng, o->sync_every);
		int error = sync ? one_sync(job) : one_write(job, buf);
		int none = 0;

		if (error)
			atomic_compare_exchange_strong(&load->error, &none, error);
	}
	free(buf);
	return NULL;
}

static int do_run(const struct options *o)
{
	struct load load = { .o = o };
	struct job *jobs = calloc(o->jobs, sizeof(*jobs));
	const char *ended;

	if (!jobs)
		die("out of memory");
	load.fd = open_both(o, &load.v);
	for (u64 i = 0; i < o->jobs; i++) {
		jobs[i].load = &load;
		jobs[i].rng = o->rng * 1000003 + i;
		if (pthread_create(&jobs[i].thread, NULL, job_main, &jobs[i]))
			die("cannot start a thread");
	}
	for (u64 i = 0; i < o->jobs; i++)
		pthread_join(jobs[i].thread, NULL);
	free(jobs);
	close(load.fd);
	ended = load.error ? strerrorname_np(load.error) : load.full ? "full" : "ops";
	printf("{\"ended\": \"%s\", \"writes\": %llu, \"syncs\": %llu}\n", ended,
	       (unsigned long long)at_most(load.v.l->writes, load.v.l->max_writes),
	       (unsigned long long)at_most(load.v.l->syncs, load.v.l->max_syncs));
	return 0;
}

/* ---- the verdict ----------------------------------------------------------------- */

enum finding { FINE, ALIEN, STALE, LOST, DISORDERED, UNREADABLE, FINDINGS };

static const char *const finding_names[] = {
	"fine", "alien", "stale", "lost", "disordered", "unreadable"
};

/* What must have survived in a sector: the write to it that was issued last. */
struct floor {
	u64 issued;
	u64 version;
};

#define ZEROS		0ULL
#define NO_VERSION	(~0ULL)
#define NOT_READ	(~0ULL - 1)

struct verdict {
	struct view v;
	u64 writes;
	u64 *found;
	struct floor *durable;
	struct floor *ordered;
	u64 counts[FINDINGS];
	struct {
		u64 sector;
		enum finding finding;
	} examples[EXAMPLES];
	unsigned int shown;
};

/* Completion of a write that may have been seen; 0 for never. */
static u64 completion(const struct verdict *j, u64 version)
{
	return j->v.writes[version - j->v.l->first_version].completed;
}

static void raise_floor(struct floor *floors, const struct verdict *j, u64 index)
{
	const struct write_record *w = &j->v.writes[index];

	for (u64 s = w->sector; s < w->sector + w->count; s++) {
		if (floors[s].issued >= w->issued)
			continue;
		floors[s].issued = w->issued;
		floors[s].version = j->v.l->first_version + index;
	}
}

static void durable_floors(struct verdict *j)
{
	u64 syncs = at_most(j->v.l->syncs, j->v.l->max_syncs);
	u64 line = 0;

	for (u64 i = 0; i < syncs; i++)
		if (j->v.syncs[i].completed && j->v.syncs[i].issued > line)
			line = j->v.syncs[i].issued;
	for (u64 i = 0; i < j->writes; i++) {
		const struct write_record *w = &j->v.writes[i];

		if (w->completed && (w->completed < line || w->flags & WRITE_FUA))
			raise_floor(j->durable, j, i);
	}
}

static void ordered_floors(struct verdict *j)
{
	u64 line = 0;

	for (u64 s = 0; s < j->v.l->sectors; s++) {
		u64 version = j->found[s];

		if (version >= j->v.l->first_version && version < NOT_READ) {
			u64 issued = j->v.writes[version - j->v.l->first_version].issued;

			line = issued > line ? issued : line;
		}
	}
	for (u64 i = 0; i < j->writes; i++)
		if (j->v.writes[i].completed && j->v.writes[i].completed < line)
			raise_floor(j->ordered, j, i);
}

/* The version a sector's bytes stand for; NO_VERSION if it was never written there. */
static u64 identify(const struct verdict *j, const struct stamp *stamp, u64 sector)
{
	const struct write_record *w;
	u64 index;

	if (all_zero(stamp))
		return ZEROS;
	if (stamp->magic != STAMP_MAGIC || stamp->checksum != stamp_checksum(stamp) ||
	    stamp->seed != j->v.l->seed || stamp->sector != sector)
		return NO_VERSION;
	if (stamp->version < j->v.l->first_version)
		return stamp->version;
	index = stamp->version - j->v.l->first_version;
	if (index >= j->writes)
		return NO_VERSION;
	w = &j->v.writes[index];
	if (!w->issued || sector < w->sector || sector >= w->sector + w->count)
		return NO_VERSION;
	return stamp->version;
}

static void read_all(struct verdict *j, int fd)
{
	u64 unit = j->v.l->unit;
	struct stamp *buf;

	if (posix_memalign((void **)&buf, 4096, READ_SECTORS * SECTOR))
		die("out of memory");
	for (u64 at = 0; at < j->v.l->sectors;) {
		u64 count = at_most(READ_SECTORS, j->v.l->sectors - at);

		if (pread(fd, buf, count * SECTOR, at * SECTOR) != (ssize_t)(count * SECTOR)) {
			count = unit;
			if (pread(fd, buf, count * SECTOR, at * SECTOR) !=
			    (ssize_t)(count * SECTOR)) {
				for (u64 i = 0; i < count; i++)
					j->found[at + i] = NOT_READ;
				at += count;
				continue;
			}
		}
		for (u64 i = 0; i < count; i++)
			j->found[at + i] = identify(j, &buf[i], at + i);
		at += count;
	}
	free(buf);
}

static enum finding judge(const struct verdict *j, u64 sector)
{
	u64 version = j->found[sector];
	u64 completed = 0;
	bool old = version < j->v.l->first_version;

	if (version == NOT_READ)
		return UNREADABLE;
	if (version == NO_VERSION)
		return ALIEN;
	/* What was there before is older than any write of this round. */
	if (old && j->durable[sector].issued)
		return LOST;
	if (old && version != j->v.base[sector])
		return STALE;
	if (old)
		return j->ordered[sector].issued ? DISORDERED : FINE;
	completed = completion(j, version);
	if (!completed)
		return FINE;
	if (completed < j->durable[sector].issued)
		return LOST;
	return completed < j->ordered[sector].issued ? DISORDERED : FINE;
}

static void judge_all(struct verdict *j, bool ordered)
{
	for (u64 s = 0; s < j->v.l->sectors; s++) {
		enum finding finding = judge(j, s);

		j->counts[finding]++;
		if (finding == FINE || (finding == DISORDERED && !ordered))
			continue;
		if (j->shown == EXAMPLES)
			continue;
		j->examples[j->shown].sector = s;
		j->examples[j->shown++].finding = finding;
	}
}

static void print_write(const struct verdict *j, const char *name, u64 version)
{
	if (version < j->v.l->first_version || version >= NOT_READ) {
		printf(", \"%s\": {\"version\": %lld}", name, (long long)version);
		return;
	}
	const struct write_record *w = &j->v.writes[version - j->v.l->first_version];

	printf(", \"%s\": {\"version\": %llu, \"sector\": %llu, \"count\": %u, \"issued\": %llu, \"completed\": %llu}",
	       name, (unsigned long long)version, (unsigned long long)w->sector, w->count,
	       (unsigned long long)w->issued, (unsigned long long)w->completed);
}

static void report(const struct verdict *j)
{
	printf("{\"sectors\": %llu, \"writes\": %llu", (unsigned long long)j->v.l->sectors,
	       (unsigned long long)j->writes);
	for (int f = ALIEN; f < FINDINGS; f++)
		printf(", \"%s\": %llu", finding_names[f], (unsigned long long)j->counts[f]);
	printf(", \"examples\": [");
	for (unsigned int i = 0; i < j->shown; i++) {
		u64 sector = j->examples[i].sector;
		enum finding finding = j->examples[i].finding;
		const struct floor *f = finding == DISORDERED ? j->ordered : j->durable;

		printf("%s{\"sector\": %llu, \"finding\": \"%s\"", i ? ", " : "",
		       (unsigned long long)sector, finding_names[finding]);
		print_write(j, "found", j->found[sector]);
		if (f[sector].issued)
			print_write(j, "floor", f[sector].version);
		printf(", \"base\": %llu}", (unsigned long long)j->v.base[sector]);
	}
	printf("]}\n");
}

static void rebase(struct verdict *j)
{
	struct ledger *l = j->v.l;

	for (u64 s = 0; s < l->sectors; s++)
		if (j->found[s] < NOT_READ)
			j->v.base[s] = j->found[s];
	memset(j->v.writes, 0, j->writes * sizeof(*j->v.writes));
	memset(j->v.syncs, 0, at_most(l->syncs, l->max_syncs) * sizeof(*j->v.syncs));
	l->first_version += j->writes;
	l->writes = 0;
	l->syncs = 0;
}

static int do_verify(const struct options *o)
{
	struct verdict j = { 0 };
	int fd = open_both(o, &j.v);
	u64 bad = 0;

	j.writes = at_most(j.v.l->writes, j.v.l->max_writes);
	j.found = calloc(j.v.l->sectors, sizeof(*j.found));
	j.durable = calloc(j.v.l->sectors, sizeof(*j.durable));
	j.ordered = calloc(j.v.l->sectors, sizeof(*j.ordered));
	if (!j.found || !j.durable || !j.ordered)
		die("out of memory");
	if (o->rebase && fsync(fd))
		die("%s: fsync: %s", o->dev, strerror(errno));
	read_all(&j, fd);
	durable_floors(&j);
	ordered_floors(&j);
	judge_all(&j, o->ordered);
	report(&j);
	for (int f = ALIEN; f < FINDINGS; f++)
		if (f != DISORDERED || o->ordered)
			bad += j.counts[f];
	if (o->rebase)
		rebase(&j);
	free(j.found);
	free(j.durable);
	free(j.ordered);
	close(fd);
	return bad ? 1 : 0;
}

/* ---- command line ------------------------------------------------------------------ */

enum { DEV, LEDGER, SEED, MAX_WRITES, MAX_SYNCS, JOBS, OPS, MAX_SECTORS, SYNC_EVERY, FUA_EVERY,
       RNG, ORDERED, REBASE };

static const struct option long_options[] = {
	{ "dev", required_argument, NULL, DEV },
	{ "ledger", required_argument, NULL, LEDGER },
	{ "seed", required_argument, NULL, SEED },
	{ "max-writes", required_argument, NULL, MAX_WRITES },
	{ "max-syncs", required_argument, NULL, MAX_SYNCS },
	{ "jobs", required_argument, NULL, JOBS },
	{ "ops", required_argument, NULL, OPS },
	{ "max-sectors", required_argument, NULL, MAX_SECTORS },
	{ "sync-every", required_argument, NULL, SYNC_EVERY },
	{ "fua-every", required_argument, NULL, FUA_EVERY },
	{ "rng", required_argument, NULL, RNG },
	{ "ordered", no_argument, NULL, ORDERED },
	{ "rebase", no_argument, NULL, REBASE },
	{ 0 }
};

static u64 number(const char *text)
{
	char *end;
	u64 n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || *end || end == text)
		die("not a number: %s", text);
	return n;
}

static void parse(struct options *o, int argc, char **argv)
{
	u64 *numbers[] = {
		[SEED] = &o->seed, [MAX_WRITES] = &o->max_writes, [MAX_SYNCS] = &o->max_syncs,
		[JOBS] = &o->jobs, [OPS] = &o->ops, [MAX_SECTORS] = &o->max_sectors,
		[SYNC_EVERY] = &o->sync_every, [FUA_EVERY] = &o->fua_every, [RNG] = &o->rng,
	};
	int which;

	while ((which = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (which) {
		case DEV:
			o->dev = optarg;
			break;
		case LEDGER:
			o->ledger = optarg;
			break;
		case ORDERED:
			o->ordered = true;
			break;
		case REBASE:
			o->rebase = true;
			break;
		case '?':
			exit(2);
		default:
			*numbers[which] = number(optarg);
		}
	}
	if (!o->dev || !o->ledger || optind != argc - 1)
		die("usage: powerload init|run|verify --dev DEV --ledger FILE [options]");
	if (!o->jobs || o->max_sectors < 8)
		die("--jobs must be 1 or more, --max-sectors 8 or more");
}

int main(int argc, char **argv)
{
	struct options o = {
		.seed = 1, .max_writes = 1 << 18, .max_syncs = 1 << 16, .jobs = 4, .ops = ~0ULL,
		.max_sectors = 128, .sync_every = 30, .fua_every = 50, .rng = 1,
	};
	const char *verb;

	parse(&o, argc, argv);
	verb = argv[optind];
	if (!strcmp(verb, "init"))
		return do_init(&o);
	if (!strcmp(verb, "run"))
		return do_run(&o);
	if (!strcmp(verb, "verify"))
		return do_verify(&o);
	die("unknown command %s", verb);
}
