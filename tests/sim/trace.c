// SPDX-License-Identifier: GPL-2.0-only
/*
 * Traces, from files and made up.  See sim.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bio/stream.h"
#include "sim.h"

#define SECTORS		8u		/* of a block */

/* Of the trace that is loaded: block number to id, open addressing. */
static u32 *table;
static u64 table_mask;
static struct lc_streams streams;
bool trace_streams = true;

static u64 mix(u64 value)
{
	value ^= value >> 31;
	value *= 0x9e3779b97f4a7c15ULL;
	return value ^ value >> 29;
}

static void grow_table(struct trace *trace)
{
	u64 size = table ? 2 * (table_mask + 1) : 1 << 16, at;
	u32 id;

	free(table);
	table = malloc(size * sizeof(*table));
	if (!table)
		sim_die("no memory");
	memset(table, 0xff, size * sizeof(*table));
	table_mask = size - 1;
	for (id = 0; id < trace->nr_ids; id++) {
		at = mix(trace->blocks[id]) & table_mask;
		while (table[at] != NONE)
			at = (at + 1) & table_mask;
		table[at] = id;
	}
}

static u32 id_of(struct trace *trace, u64 block)
{
	u64 at;

	if (!table || trace->nr_ids > table_mask / 2)
		grow_table(trace);
	at = mix(block) & table_mask;
	while (table[at] != NONE) {
		if (trace->blocks[table[at]] == block)
			return table[at];
		at = (at + 1) & table_mask;
	}
	if (trace->nr_ids == trace->ids_room) {
		trace->ids_room = trace->ids_room ? 2 * trace->ids_room : 1 << 16;
		trace->blocks = realloc(trace->blocks, trace->ids_room * sizeof(u64));
		if (!trace->blocks)
			sim_die("no memory");
	}
	trace->blocks[trace->nr_ids] = block;
	table[at] = trace->nr_ids;
	return trace->nr_ids++;
}

static void add_sectors(struct trace *trace, u64 sector, u32 nr, bool write)
{
	u64 from = sector / SECTORS, block = from, last = (sector + nr - 1) / SECTORS;
	u32 stream = write || !trace_streams ? 0 : lc_stream_note(&streams, sector, nr);

	for (; nr && block <= last; block++) {
		if (trace->nr == trace->room) {
			trace->room = trace->room ? 2 * trace->room : 1 << 16;
			trace->at = realloc(trace->at, trace->room * sizeof(*trace->at));
			if (!trace->at)
				sim_die("no memory");
		}
		trace->at[trace->nr++] = (struct access) {
			.id = id_of(trace, block), .write = write, .first = block == from,
			.stream = stream,
		};
		if (write)
			trace->writes++;
		else
			trace->reads++;
	}
}

void trace_add(struct trace *trace, u64 block, u32 nr, bool write)
{
	add_sectors(trace, block * SECTORS, nr * SECTORS, write);
}

void trace_free(struct trace *trace)
{
	free(trace->at);
	free(trace->blocks);
	free(table);
	table = NULL;
	memset(trace, 0, sizeof(*trace));
	lc_stream_init(&streams);
}

/* --- files --------------------------------------------------------------- */

struct vscsi {
	u32 sn, length, nsg;
	uint16_t cmd, ver;
	u64 lbn, time;
};

static void load_vscsi(struct trace *trace, FILE *file, u64 skip, u64 most)
{
	struct vscsi one;
	u64 n = 0;

	while (fread(&one, sizeof(one), 1, file) == 1 && n < skip + most) {
		bool write = one.cmd == 0x2a || one.cmd == 0x8a;

		if ((!write && one.cmd != 0x28 && one.cmd != 0x88) || n++ < skip)
			continue;
		add_sectors(trace, one.lbn, (one.length + 511) / 512, write);
	}
}

static void load_u32(struct trace *trace, FILE *file, u64 skip, u64 most)
{
	u32 block;
	u64 n = 0;

	while (fread(&block, sizeof(block), 1, file) == 1 && n < skip + most) {
		if (n++ >= skip)
			trace_add(trace, block, 1, false);
	}
}

static void load_lis(struct trace *trace, FILE *file, u64 skip, u64 most, bool units_are_blocks)
{
	unsigned long long first;
	unsigned int count;
	u64 n = 0;

	while (fscanf(file, "%llu %u %*u %*u", &first, &count) == 2 && n < skip + most) {
		if (n++ < skip)
			continue;
		if (units_are_blocks)
			trace_add(trace, first, count, false);
		else
			add_sectors(trace, first, count, false);
	}
}

void trace_load(struct trace *trace, const char *path, u64 skip, u64 most)
{
	char command[4096];
	FILE *file;

	if (strchr(path, '\''))
		sim_die("%s: a name with a quote", path);
	snprintf(command, sizeof(command), "%s '%s'",
		 strstr(path, ".zst") ? "zstd -dc" : strstr(path, ".xz") ? "xz -dc" : "cat", path);
	file = popen(command, "r");
	if (!file)
		sim_die("%s: cannot be read", path);
	lc_stream_init(&streams);
	if (strstr(path, ".vscsi"))
		load_vscsi(trace, file, skip, most);
	else if (strstr(path, ".lis"))
		load_lis(trace, file, skip, most, strstr(path, "OLTP"));
	else
		load_u32(trace, file, skip, most);
	pclose(file);
	if (!trace->nr)
		sim_die("%s: no requests", path);
}

/* --- made up ------------------------------------------------------------- */

static u64 state;

static u64 next_random(void)
{
	state += 0x9e3779b97f4a7c15ULL;
	return mix(mix(state));
}

static double next_uniform(void)
{
	return (next_random() >> 11) * 0x1p-53;
}

/* Which of @nr blocks, the first one the most likely: sum[i] is the weight of those up to i. */
static u32 pick(const double *sum, u32 nr)
{
	double at = next_uniform() * sum[nr - 1];
	u32 low = 0, high = nr - 1;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (sum[middle] > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Zipf 0.9 over @nr blocks, 30 % writes; each @every requests a scan of @cold blocks that come only
 * there.  @sequential: the scan is one stream; if not, its blocks come in any order.
 */
static void make_zipf(struct trace *trace, u32 nr, u64 requests, u64 every, u32 cold,
		      bool sequential)
{
	double *sum = sim_alloc(nr, sizeof(*sum));
	u64 scan_at = 2 * (u64)nr, n;
	u32 i;

	for (i = 0; i < nr; i++)
		sum[i] = (i ? sum[i - 1] : 0) + pow(i + 1, -0.9);
	for (n = 0; n < requests; n++) {
		/* Neighbours are not equally hot; an odd factor permutes a power of two. */
		u64 block = ((u64)pick(sum, nr) * 0x9e3779b1u) & ((1ULL << 32) - 1);

		trace_add(trace, block, 1, next_random() % 10 < 3);
		if (n % every != every - 1)
			continue;
		for (i = 0; i < cold; i++) {
			u64 to = sequential ? i : (i * 7919ULL) % cold;

			trace_add(trace, (1ULL << 32) + scan_at + to, 1, false);
		}
		scan_at += 2 * cold;
	}
	free(sum);
}

bool trace_make(struct trace *trace, const char *name, u64 seed)
{
	state = seed;
	lc_stream_init(&streams);
	if (!strcmp(name, "zs"))
		make_zipf(trace, 400000, 1200000, 60000, 40000, true);
	else if (!strcmp(name, "zr"))
		make_zipf(trace, 400000, 1200000, 60000, 40000, false);
	else if (!strcmp(name, "small"))
		make_zipf(trace, 4000, 60000, 6000, 4000, false);
	else
		return false;
	return true;
}
