// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes hostile images: of an SSD of a few MiB, sparse, and of the hard disk it
 * belongs to.
 *
 *   mkimages DIR [--count N] [--seed S] [--plain] [--packed]
 *   mkimages DIR --input FILE [--prefix N]
 *
 * Every image is one the module may have left, changed in up to six ways; every
 * eighth is not changed at all.  Image i depends on nothing but the seed and i.
 * DIR/manifest.jsonl says of each, in a line of JSON, which files it is, what it was
 * and what was done to it.
 *
 *   --plain    change nothing at all
 *   --packed   write the short form too, which the targets "image" and "recovery" read
 *   --input    write the images of an input of a fuzzer, behind --prefix (2) bytes
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostile.h"
#include "plausible.h"

struct args {
	const char *dir, *input;
	u64 seed, count, prefix;
	int plain, packed;
};

static struct medium medium;
static u8 packed[MEDIUM_PACKED];

static void die(const char *what)
{
	fprintf(stderr, "mkimages: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void write_disk(const struct args *args, const char *name, unsigned int disk)
{
	char path[4096];
	unsigned int i;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.%s", args->dir, name,
		 disk == MEDIUM_SSD ? "ssd" : "hdd");
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || ftruncate(fd, (off_t)medium.nr_blocks[disk] << LC_SLOT_SHIFT))
		die(path);
	for (i = 0; i < medium.nr_blocks[disk]; i++) {
		if (medium.block[disk][i] &&
		    pwrite(fd, medium.block[disk][i], LC_SLOT_BYTES, (off_t)i << LC_SLOT_SHIFT) !=
		    LC_SLOT_BYTES)
			die(path);
	}
	if (close(fd))
		die(path);
}

static void write_packed(const struct args *args, const char *name)
{
	size_t size = medium_pack(&medium, packed + 2, sizeof(packed) - 2);
	char path[4096];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%s.bin", args->dir, name);
	to = fopen(path, "wb");
	packed[0] = 0xff;	/* all options */
	packed[1] = 0;		/* every block can be read */
	if (!to || (size && fwrite(packed, 1, size + 2, to) != size + 2) || fclose(to))
		die(path);
}

static void make_image(const struct args *args, u64 i, FILE *manifest)
{
	struct rng rng = { args->seed + i * 0x632be59bd9b4e019ULL };
	unsigned int changes, n;
	const char *what;
	char name[32], note[HOSTILE_NOTE];

	snprintf(name, sizeof(name), "%04llu", i);
	medium_free(&medium);
	what = plausible_image(&medium, &rng);
	changes = args->plain || i % 8 == 7 ? 0 : 1 + rng_below(&rng, 6);
	fprintf(manifest, "{\"image\": %llu, \"ssd\": \"%s.ssd\", \"hdd\": \"%s.hdd\", ", i, name,
		name);
	fprintf(manifest, "\"seed\": %llu, \"base\": \"%s\", \"changes\": [", args->seed, what);
	for (n = 0; n < changes; n++) {
		hostile_mutate(&medium, &rng, note);
		fprintf(manifest, "%s\"%s\"", n ? ", " : "", note);
	}
	fprintf(manifest, "], \"ssd_bytes\": %llu, \"hdd_bytes\": %llu}\n",
		(u64)medium.nr_blocks[MEDIUM_SSD] << LC_SLOT_SHIFT,
		(u64)medium.nr_blocks[MEDIUM_HDD] << LC_SLOT_SHIFT);
	write_disk(args, name, MEDIUM_SSD);
	write_disk(args, name, MEDIUM_HDD);
	if (args->packed)
		write_packed(args, name);
}

static void unpack_input(const struct args *args)
{
	FILE *from = fopen(args->input, "rb");
	size_t size;

	if (!from)
		die(args->input);
	size = fread(packed, 1, sizeof(packed), from);
	if (ferror(from) || fclose(from))
		die(args->input);
	if (size > args->prefix)
		medium_unpack(&medium, packed + args->prefix, size - args->prefix);
	write_disk(args, "input", MEDIUM_SSD);
	write_disk(args, "input", MEDIUM_HDD);
}

static void parse(int argc, char **argv, struct args *args)
{
	struct option options[] = {
		{ "count", required_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' },
		{ "input", required_argument, NULL, 'i' },
		{ "prefix", required_argument, NULL, 'p' },
		{ "plain", no_argument, &args->plain, 1 },
		{ "packed", no_argument, &args->packed, 1 },
		{ NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'c')
			args->count = strtoull(optarg, NULL, 0);
		else if (c == 's')
			args->seed = strtoull(optarg, NULL, 0);
		else if (c == 'i')
			args->input = optarg;
		else if (c == 'p')
			args->prefix = strtoull(optarg, NULL, 0);
		else if (c)
			exit(2);
	}
	if (optind != argc - 1) {
		fprintf(stderr, "usage: mkimages DIR [--count N] [--seed S] [--plain] [--packed]\n"
			"       mkimages DIR --input FILE [--prefix N]\n");
		exit(2);
	}
	args->dir = argv[optind];
}

int main(int argc, char **argv)
{
	struct args args = { .seed = 1, .count = 1, .prefix = 2 };
	char path[4096];
	FILE *manifest;
	u64 i;

	parse(argc, argv, &args);
	if (mkdir(args.dir, 0755) && errno != EEXIST)
		die(args.dir);
	if (args.input) {
		unpack_input(&args);
		return 0;
	}
	snprintf(path, sizeof(path), "%s/manifest.jsonl", args.dir);
	manifest = fopen(path, "w");
	if (!manifest)
		die(path);
	printf("mkimages: %llu images from seed %llu\n", args.count, args.seed);
	for (i = 0; i < args.count; i++)
		make_image(&args, i, manifest);
	if (fclose(manifest))
		die(path);
	return 0;
}
