/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cache simulator: hit ratios of policies over traces of block I/O.
 *
 * A trace is a sequence of accesses to single blocks.  A model is a cache of a number of blocks
 * that is told each access; it answers whether a read was a hit, and counts the blocks that it
 * writes to the SSD.  lc's own model is the module's admit.c over a model of the ring.  The others
 * are models of what the peers do, written from their documentation and sources, and policies of
 * papers.
 *
 * Not modelled: time.  Everything is drained in time, and a block that is promoted is there at
 * once.  So no model can refuse to promote because the SSD is busy.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

#include "store/admit.h"

#define NONE		0xffffffffu
#define CUTOFF		LC_ADMIT_CUTOFF	/* sectors: longer streams of reads are not admitted */

struct access {
	u32 id;			/* of the block: they are numbered as they come */
	u8 write;
	u8 first;		/* of its request */
	u32 stream;		/* sectors of the stream of its read, the read included */
};

struct trace {
	struct access *at;
	size_t nr, room;
	u64 *blocks;		/* block number by id */
	u32 nr_ids, ids_room;
	u64 reads, writes;
};

struct model {
	const char *name;
	/* @slots: blocks that fit. */
	void *(*create)(const struct trace *trace, u32 slots);
	/* Return: whether it was a hit; of a write nobody asks. */
	bool (*access)(void *cache, const struct access *access);
	/* Blocks written to the SSD so far. */
	u64 (*written)(const void *cache);
	/* What else it has to tell, on stderr; or NULL. */
	void (*tell)(const void *cache);
	void (*destroy)(void *cache);
};

extern const struct model sim_today, sim_lc, sim_writeboost;
extern const struct model sim_fifo, sim_lru, sim_sieve, sim_s3fifo, sim_arc;
extern const struct model sim_bcache, sim_smq;

/* Zeroed memory; ends the program if there is none. */
void *sim_alloc(size_t nr, size_t bytes);
void sim_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Read a trace; its name tells the format: *.vscsi, *.lis and *.u32, each perhaps with .xz or .zst.
 * In OLTP traces a unit is a block.  At most @most requests after the first @skip.
 */
void trace_load(struct trace *trace, const char *path, u64 skip, u64 most);
/* Whether reads are put together to streams; before a trace is made or loaded. */
extern bool trace_streams;

/* A made-up trace, from a seed.  Return: whether the name is known. */
bool trace_make(struct trace *trace, const char *name, u64 seed);
/* A request of @nr blocks. */
void trace_add(struct trace *trace, u64 block, u32 nr, bool write);
void trace_free(struct trace *trace);

#endif /* SIM_H */
