// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cache simulator's command line.  See sim.h.
 *
 *   sim [OPTION]... TRACE SHARE...
 *
 *   TRACE             a file, or zs, zr or small, which are made up (trace.c)
 *   SHARE             of the cache in the number of distinct blocks of the trace, as 0.10
 *   --seed N          of what is made up (1)
 *   --skip N          requests at the beginning that are left out
 *   --most N          requests that are used at most
 *   --models A,B      only these
 *   --no-streams      no read continues another one, so that long ones are admitted, too
 *   --name N          what the rows are called
 *   --tell            also what else a model has to tell
 *   --head            only the heads of the columns
 *   --hits            one line for each access, + for a hit: with one model and one share
 *
 * A row: the trace and the share, then for each model the part of the blocks read that the cache
 * had in %, and the blocks written to the SSD for each block that was written (or read, if none
 * was).
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const struct model *const models[] = {
	&sim_today, &sim_lc, &sim_writeboost, &sim_bcache, &sim_smq, &sim_fifo, &sim_lru, &sim_arc,
	&sim_s3fifo, &sim_sieve,
};

#define NR_MODELS	(sizeof(models) / sizeof(models[0]))

static struct {
	const char *models, *name;
	u64 seed, skip, most;
	bool tell, hits, head;
} options = { .seed = 1, .most = ~0ULL >> 1 };

void sim_die(const char *format, ...)
{
	va_list args;

	fputs("sim: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

void *sim_alloc(size_t nr, size_t bytes)
{
	void *memory = calloc(nr ? nr : 1, bytes);

	if (!memory)
		sim_die("no memory");
	return memory;
}

/* --- what the module's files need of the shim ------------------------------ */

void *shim_alloc(size_t bytes, unsigned int flags);
void shim_free(const void *memory);

void *shim_alloc(size_t bytes, unsigned int flags)
{
	(void)flags;
	return sim_alloc(1, bytes);
}

void shim_free(const void *memory)
{
	free((void *)memory);
}

/* ----------------------------------------------------------------------------- */

static bool chosen(const struct model *model)
{
	const char *at = options.models;
	size_t length = strlen(model->name);

	while (at) {
		if (!strncmp(at, model->name, length) && (at[length] == ',' || !at[length]))
			return true;
		at = strchr(at, ',');
		at += at ? 1 : 0;
	}
	return !options.models;
}

static void run(const struct trace *trace, const struct model *model, double share)
{
	void *cache = model->create(trace, (u32)(share * trace->nr_ids));
	u64 per = trace->writes ? trace->writes : trace->reads, hits = 0;
	size_t n;

	for (n = 0; n < trace->nr; n++) {
		bool hit = model->access(cache, &trace->at[n]) && !trace->at[n].write;

		hits += hit;
		if (options.hits && !trace->at[n].write)
			puts(hit ? "+" : "-");
	}
	if (!options.hits)
		printf("  %5.1f / %4.2f |", 100.0 * hits / (trace->reads ? trace->reads : 1),
		       (double)model->written(cache) / (per ? per : 1));
	fflush(stdout);
	if (options.tell && model->tell)
		model->tell(cache);
	model->destroy(cache);
}

static void print_head(void)
{
	size_t m;

	printf("trace, cache |");
	for (m = 0; m < NR_MODELS; m++) {
		if (chosen(models[m]))
			printf(" %12s |", models[m]->name);
	}
	puts("");
}

static void parse(int argc, char **argv)
{
	static const struct option known[] = {
		{ "seed", required_argument, NULL, 's' }, { "skip", required_argument, NULL, 'k' },
		{ "most", required_argument, NULL, 'm' },
		{ "models", required_argument, NULL, 'o' },
		{ "name", required_argument, NULL, 'n' }, { "tell", no_argument, NULL, 't' },
		{ "hits", no_argument, NULL, 'h' },
		{ "head", no_argument, NULL, 'H' }, { "no-streams", no_argument, NULL, 'S' }, {}
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		switch (c) {
		case 's':
			options.seed = strtoull(optarg, NULL, 0);
			break;
		case 'k':
			options.skip = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			options.most = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			options.models = optarg;
			break;
		case 'n':
			options.name = optarg;
			break;
		case 't':
			options.tell = true;
			break;
		case 'h':
			options.hits = true;
			break;
		case 'S':
			trace_streams = false;
			break;
		case 'H':
			options.head = true;
			break;
		default:
			exit(2);
		}
	}
	if (!options.head && argc - optind < 2)
		sim_die("a trace and shares are needed");
}

int main(int argc, char **argv)
{
	struct trace trace = {};
	size_t m;
	int i;

	parse(argc, argv);
	if (options.head) {
		print_head();
		return 0;
	}
	if (!trace_make(&trace, argv[optind], options.seed))
		trace_load(&trace, argv[optind], options.skip, options.most);
	for (i = optind + 1; i < argc; i++) {
		if (!options.hits)
			printf("%-7s %4s |", options.name ? options.name : argv[optind], argv[i]);
		for (m = 0; m < NR_MODELS; m++) {
			if (chosen(models[m]))
				run(&trace, models[m], atof(argv[i]));
		}
		if (!options.hits)
			puts("");
	}
	trace_free(&trace);
	return 0;
}
