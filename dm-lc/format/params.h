/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options: one table in params.c parses constructor arguments and messages and
 * prints the table line.
 */
#ifndef LC_PARAMS_H
#define LC_PARAMS_H

#include <linux/types.h>

struct lc_params {
	u32 buffers;			/* write buffers, each of a segment's size */
	u32 high_watermark;		/* percent of segments in use: writeback starts */
	u32 low_watermark;		/* percent: writeback rests */
	u32 writeback_batch;		/* blocks sorted at a time */
	u32 writeback_depth;		/* runs of neighbours in flight */
	u32 idle_seal_ms;		/* quiet time before buffers go to the SSD, 0: never */
	u32 writeback;			/* 0: off, yields only when the log is full */
	u32 ssd_patience_ms;		/* the SSD may fail so long before it is given up */
	u32 hdd_patience_ms;		/* the HDD, before mode fail; 0: without end */
	u32 verify_reads;		/* 0: off; 1: what the SSD gives is checked */
	u32 lanes;			/* open segments; 0: as many as memory nodes */
	u32 stats;			/* 0: off; 1: counters count */
	u32 given;			/* bit i: option i was set by hand and is printed */
};

void lc_params_defaults(struct lc_params *params);
int lc_params_set(struct lc_params *params, const char *key, const char *value,
		  bool running, const char **error);
int lc_params_parse(struct lc_params *params, unsigned int argc, char **argv,
		    const char **error);
void lc_params_store(struct lc_params *to, const struct lc_params *from);
unsigned int lc_params_print(const struct lc_params *params, char *result, unsigned int maxlen);

#endif /* LC_PARAMS_H */
