// SPDX-License-Identifier: GPL-2.0-only
/*
 * powerload: write stamped sectors until the power goes, then judge what is left.
 *
 *   powerload init   --dev DEV --ledger FILE [--seed N] [--max-writes N] [--max-syncs N]
 *   powerload run    --dev DEV --ledger FILE [--jobs N] [--ops N] [--max-sectors N]
 *                    [--sync-every N] [--fua-every N] [--discard-every N] [--sync-last]
 *                    [--rng N] [--clock DEV]
 *   powerload verify --dev DEV --ledger FILE [--ordered] [--rebase] [--at N] [--skip N]
 *   powerload serve
 *
 * Every sector written carries its own address, the number of the write (its version)
 * and a checksum. The ledger is a shared mapping of a file that outlives the load (put
 * it on tmpfs). One clock stamps each write and fsync when it is issued and again when
 * it has completed without error; two commands overlapped unless one was completed
 * before the other was issued. With --clock the clock is that of the emulated disks
 * (tests/disks/plugin.py), which all their commands are in step with.
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
 * --at N judges what was left at that moment of the clock: the ledger forgets what came later.
 * --skip N: the volume begins N sectors into the device, and may end before it.
 *
 * A discarded sector may hold any version, or zeros, until a write to it had to survive that
 * was issued when the discard was completed.
 *
 * One line of JSON on stdout. Exit 0: fine; 1: violations; 2: could not judge.
 *
 * serve takes the above from stdin, one command a line without quotes, because starting a
 * program takes an emulated CPU long. Behind the answer stands a line "=" and the exit code.
 *
 * Not covered: buffered writes, and whether a read during the load was right.
 */
#define _GNU_SOURCE
#include "powerload.h"

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
	struct stamp **stamps;	/* of the write at hand, one for each sector */
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

static struct write_record *next_record(struct load *load, u64 *index)
{
	struct ledger *l = load->v.l;

	*index = atomic_fetch_add(&l->writes, 1);
	if (*index < l->max_writes)
		return &load->v.writes[*index];
	load->full = true;
	return NULL;
}

static int one_discard(struct job *job)
{
	struct load *load = job->load;
	struct view *v = &load->v;
	u64 index, sector, count, range[2];
	struct write_record *w = next_record(load, &index);

	if (!w)
		return 0;
	choose_range(job, &sector, &count);
	/* Parts of a block are ignored, so they are not discarded at all. */
	count = (sector + count) / 8 * 8;
	sector = (sector + 7) / 8 * 8;
	if (count <= sector)
		return 0;
	w->sector = sector;
	w->count = count - sector;
	w->flags = WRITE_DISCARD;
	range[0] = sector * SECTOR;
	range[1] = (count - sector) * SECTOR;
	w->issued = tick(v->l);
	if (ioctl(load->fd, BLKDISCARD, range))
		return errno;
	w->completed = tick(v->l);
	return 0;
}

/*
 * Lay @count sectors out in pieces of logical blocks, which lie apart.
 * Return: the number of pieces; @stamps gets the place of each sector.
 */
static int lay_out(struct job *job, struct stamp *buf, u64 count, struct iovec *piece,
		   struct stamp **stamps)
{
	u64 unit = job->load->v.l->unit, nr = 1 + below(&job->rng, MAX_PIECES), done = 0;
	int i;

	/* Half of the writes are in one piece. */
	if (below(&job->rng, 2))
		nr = 1;
	for (i = 0; done < count; i++) {
		u64 n = count - done;

		if (nr > 1)
			buf += unit * below(&job->rng, 8 / unit + 1);
		if ((u64)i + 1 < nr)
			n = unit * (1 + below(&job->rng, n / unit));
		piece[i].iov_base = buf;
		piece[i].iov_len = n * SECTOR;
		for (u64 k = 0; k < n; k++)
			stamps[done++] = buf++;
	}
	return i;
}

static int one_write(struct job *job, struct stamp *buf)
{
	struct load *load = job->load;
	struct view *v = &load->v;
	u64 index;
	struct write_record *w = next_record(load, &index);
	u64 sector, count;
	struct iovec piece[MAX_PIECES];
	int nr_pieces;
	bool fua = load->o->fua_every && !below(&job->rng, load->o->fua_every);

	if (!w)
		return 0;
	choose_range(job, &sector, &count);
	nr_pieces = lay_out(job, buf, count, piece, job->stamps);
	for (u64 i = 0; i < count; i++)
		stamp_make(job->stamps[i], v->l->seed, sector + i, v->l->first_version + index);
	w->sector = sector;
	w->count = count;
	w->flags = fua ? WRITE_FUA : 0;
	w->issued = tick(v->l);
	ssize_t done = pwritev2(load->fd, piece, nr_pieces, sector * SECTOR,
				fua ? RWF_DSYNC : 0);

	if (done < 0)
		return errno;
	if ((u64)done != count * SECTOR)
		return EIO;
	w->completed = tick(v->l);
	return 0;
}

static int one_sync(struct load *load)
{
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

	job->stamps = calloc(o->max_sectors, sizeof(*job->stamps));
	if (!job->stamps ||
	    posix_memalign((void **)&buf, 4096, (o->max_sectors + 8 * MAX_PIECES) * SECTOR))
		die("out of memory");
	while (!load->error && !load->full && atomic_fetch_add(&load->ops, 1) < o->ops) {
		bool sync = o->sync_every && !below(&job->rng, o->sync_every);
		bool discard = o->discard_every && !below(&job->rng, o->discard_every);
		int none = 0;
		int error;

		if (sync)
			error = one_sync(load);
		else
			error = discard ? one_discard(job) : one_write(job, buf);
		if (error)
			atomic_compare_exchange_strong(&load->error, &none, error);
	}
	free(buf);
	free(job->stamps);
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
	if (o->sync_last && !load.error && !load.full)
		load.error = one_sync(&load);
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
#define ANY_VERSION	(~0ULL - 2)	/* as a base: it was discarded */

struct verdict {
	struct view v;
	u64 writes;
	u64 *found;
	struct floor *durable;
	struct floor *ordered;
	bool *discarded;	/* perhaps after all that had to survive */
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

		if (w->flags & WRITE_DISCARD)
			continue;
		if (w->completed && (w->completed < line || w->flags & WRITE_FUA))
			raise_floor(j->durable, j, i);
	}
}

/* Discards take floors away that are not certainly newer. */
static void discards(struct verdict *j)
{
	for (u64 i = 0; i < j->writes; i++) {
		const struct write_record *w = &j->v.writes[i];

		if (!(w->flags & WRITE_DISCARD) || !w->issued)
			continue;
		for (u64 s = w->sector; s < w->sector + w->count; s++)
			if (!w->completed || w->completed >= j->durable[s].issued)
				j->discarded[s] = true;
	}
	for (u64 s = 0; s < j->v.l->sectors; s++) {
		if (j->v.base[s] == ANY_VERSION && !j->durable[s].issued)
			j->discarded[s] = true;
		if (j->discarded[s])
			j->durable[s].issued = j->ordered[s].issued = 0;
	}
}

static void ordered_floors(struct verdict *j)
{
	u64 line = 0;

	for (u64 s = 0; s < j->v.l->sectors; s++) {
		u64 version = j->found[s];

		if (version >= j->v.l->first_version && version < ANY_VERSION) {
			u64 issued = j->v.writes[version - j->v.l->first_version].issued;

			line = issued > line ? issued : line;
		}
	}
	for (u64 i = 0; i < j->writes; i++)
		if (j->v.writes[i].completed && j->v.writes[i].completed < line &&
		    !(j->v.writes[i].flags & WRITE_DISCARD))
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
	if (!w->issued || w->flags & WRITE_DISCARD || sector < w->sector ||
	    sector >= w->sector + w->count)
		return NO_VERSION;
	return stamp->version;
}

static void read_all(struct verdict *j, int fd, u64 skip)
{
	u64 unit = j->v.l->unit;
	struct stamp *buf;

	if (posix_memalign((void **)&buf, 4096, READ_SECTORS * SECTOR))
		die("out of memory");
	for (u64 at = 0; at < j->v.l->sectors;) {
		u64 count = at_most(READ_SECTORS, j->v.l->sectors - at);
		u64 from = (skip + at) * SECTOR;

		if (pread(fd, buf, count * SECTOR, from) != (ssize_t)(count * SECTOR)) {
			count = unit;
			if (pread(fd, buf, count * SECTOR, from) != (ssize_t)(count * SECTOR)) {
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
	if (j->discarded[sector])
		return FINE;
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
	if (version < j->v.l->first_version || version >= ANY_VERSION) {
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
		printf(", \"base\": %lld}", (long long)j->v.base[sector]);
	}
	printf("]}\n");
}

static void rebase(struct verdict *j)
{
	struct ledger *l = j->v.l;

	for (u64 s = 0; s < l->sectors; s++)
		if (j->found[s] < ANY_VERSION)
			j->v.base[s] = j->discarded[s] ? ANY_VERSION : j->found[s];
	memset(j->v.writes, 0, j->writes * sizeof(*j->v.writes));
	memset(j->v.syncs, 0, at_most(l->syncs, l->max_syncs) * sizeof(*j->v.syncs));
	l->first_version += j->writes;
	l->writes = 0;
	l->syncs = 0;
}

/* As if the ledger had been closed at that moment. */
static void forget_after(struct view *v, u64 at)
{
	for (u64 i = 0; i < at_most(v->l->writes, v->l->max_writes); i++) {
		if (v->writes[i].issued > at)
			v->writes[i].issued = 0;
		if (v->writes[i].completed > at)
			v->writes[i].completed = 0;
	}
	for (u64 i = 0; i < at_most(v->l->syncs, v->l->max_syncs); i++)
		if (v->syncs[i].completed > at)
			v->syncs[i].completed = 0;
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
	j.discarded = calloc(j.v.l->sectors, sizeof(*j.discarded));
	if (!j.found || !j.durable || !j.ordered || !j.discarded)
		die("out of memory");
	if (o->at)
		forget_after(&j.v, o->at);
	if (o->rebase && fsync(fd))
		die("%s: fsync: %s", o->dev, strerror(errno));
	read_all(&j, fd, o->skip);
	durable_floors(&j);
	ordered_floors(&j);
	discards(&j);
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
	free(j.discarded);
	close(fd);
	return bad ? 1 : 0;
}

/* ---- command line ------------------------------------------------------------------ */

enum { DEV, LEDGER, SEED, MAX_WRITES, MAX_SYNCS, JOBS, OPS, MAX_SECTORS, SYNC_EVERY, FUA_EVERY,
       DISCARD_EVERY, RNG, AT, SKIP, CLOCK, ORDERED, REBASE, SYNC_LAST };

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
	{ "discard-every", required_argument, NULL, DISCARD_EVERY },
	{ "rng", required_argument, NULL, RNG },
	{ "at", required_argument, NULL, AT },
	{ "skip", required_argument, NULL, SKIP },
	{ "clock", required_argument, NULL, CLOCK },
	{ "ordered", no_argument, NULL, ORDERED },
	{ "rebase", no_argument, NULL, REBASE },
	{ "sync-last", no_argument, NULL, SYNC_LAST },
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
		[SYNC_EVERY] = &o->sync_every, [FUA_EVERY] = &o->fua_every,
		[DISCARD_EVERY] = &o->discard_every, [RNG] = &o->rng, [AT] = &o->at,
		[SKIP] = &o->skip,
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
		case CLOCK:
			o->clock = optarg;
			break;
		case SYNC_LAST:
			o->sync_last = true;
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
			o->within |= which == SKIP;
		}
	}
	if (!o->dev || !o->ledger || optind != argc - 1)
		die("usage: powerload init|run|verify --dev DEV --ledger FILE [options]");
	if (!o->jobs || o->max_sectors < 8)
		die("--jobs must be 1 or more, --max-sectors 8 or more");
}

static int command(int argc, char **argv)
{
	struct options o = {
		.seed = 1, .max_writes = 1 << 18, .max_syncs = 1 << 16, .jobs = 4, .ops = ~0ULL,
		.max_sectors = 128, .sync_every = 30, .fua_every = 50, .rng = 1,
	};
	const char *verb;

	parse(&o, argc, argv);
	if (o.clock)
		clock_open(o.clock);
	verb = argv[optind];
	if (!strcmp(verb, "init"))
		return do_init(&o);
	if (!strcmp(verb, "run"))
		return do_run(&o);
	if (!strcmp(verb, "verify"))
		return do_verify(&o);
	die("unknown command %s", verb);
}

static int serve_one(char *line)
{
	char *words[MAX_WORDS + 1] = { "powerload" };
	int count = 1;

	for (char *word = strtok(line, " \n"); word && count < MAX_WORDS; word = strtok(NULL, " \n"))
		words[count++] = word;
	return command(count, words);
}

static int serve(void)
{
	char line[4096];
	int status;
	pid_t pid;

	while (fgets(line, sizeof(line), stdin)) {
		pid = fork();
		if (pid < 0)
			die("fork: %s", strerror(errno));
		if (!pid)
			exit(serve_one(line));
		if (waitpid(pid, &status, 0) != pid)
			die("waitpid: %s", strerror(errno));
		printf("=%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 2);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "serve"))
		return serve();
	return command(argc, argv);
}
