/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options: one table in params.c parses constructor arguments and messages and
 * prints the table line.
 */
#ifndef LC_PARAMS_H
#define LC_PARAMS_H

#include <linux/types.h>

/* What becomes of a write. */
enum lc_cache_mode {
	LC_WRITEBACK,		/* it goes into the log */
	LC_WRITETHROUGH,	/* to the HDD, and what is cached of it is renewed */
	LC_WRITEAROUND,		/* to the HDD; what is cached of it is dropped */
};

struct lc_params {
	u32 buffers;			/* write buffers, each of a segment's size */
	u32 high_watermark;		/* percent of segments in use: writeback starts */
	u32 low_watermark;		/* percent: writeback stops */
	u32 writeback_batch;		/* blocks sorted at a time */
	u32 writeback_depth;		/* runs of neighbours in flight */
	u32 idle_seal_ms;		/* quiet time before buffers go to the SSD, 0: never */
	u32 writeback;			/* 0: off, yields only when the log is full */
	u32 ssd_patience_ms;		/* how long the SSD may fail before it is given up */
	u32 hdd_patience_ms;		/* the HDD, before mode fail; 0: without end */
	u32 verify_reads;		/* 0: off; 1: what the SSD gives is checked */
	u32 lanes;			/* open segments; 0: as many as memory nodes */
	u32 stats;			/* 0: off; 1: counters count */
	u32 read_cache;			/* 1: what is read from the HDD is cached, too */
	u32 bypass_kb;			/* longer sequential writes go around the log; 0: none */
	u32 warm;			/* bring clean copies back after a crash */
	u32 cache_mode;			/* enum lc_cache_mode: what becomes of writes */
	u32 given;			/* bit i: option i was set by hand and is printed */
};

/**
 * lc_params_defaults() - every option as if none was given
 * @params: options
 */
void lc_params_defaults(struct lc_params *params);

/**
 * lc_params_set() - set one option
 * @params: options
 * @key: name of the option
 * @value: its text
 * @running: by message, not at load
 * @error: text on error
 *
 * Return: 0 or -EINVAL: nothing changed.
 */
int lc_params_set(struct lc_params *params, const char *key, const char *value,
		  bool running, const char **error);

/**
 * lc_params_parse() - take the options of a table line
 * @params: defaults, overwritten on success
 * @argc: number of words
 * @argv: "<#args> <key> <value>..." or nothing at all
 * @error: constant text on error
 *
 * Return: 0 or -EINVAL.
 */
int lc_params_parse(struct lc_params *params, unsigned int argc, char **argv,
		    const char **error);

/**
 * lc_params_store() - change options that others read without a lock
 * @to: options, changed by one caller at a time
 * @from: new options
 *
 * Each option changes at once, and no earlier becomes one that was given.
 */
void lc_params_store(struct lc_params *to, const struct lc_params *from);

/* The name of an enum lc_cache_mode. */
const char *lc_cache_mode_name(u32 mode);

/**
 * lc_params_print() - the options that were given, as a table line has them
 * @params: options
 * @result: gets the text
 * @maxlen: bytes there
 *
 * Return: length.
 */
unsigned int lc_params_print(const struct lc_params *params, char *result, unsigned int maxlen);

#endif /* LC_PARAMS_H */
