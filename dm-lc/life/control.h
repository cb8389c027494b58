/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What messages and tables ask of a volume that runs: sync, drain, options, memory for a reload.
 *
 * Below target.c, which parses what is asked; above suspend.c and the rooms.
 *
 * All may sleep unless they say otherwise.
 */
#ifndef LC_CONTROL_H
#define LC_CONTROL_H

#include <linux/list.h>

struct lc_volume;
struct lc_params;

/**
 * lc_volume_sync() - make every write that has completed durable
 * @vol: the volume, not suspended
 *
 * On the SSD; in mode degraded, or if the SSD is given up meanwhile, on the HDD.
 * Return: 0 or -EIO.
 */
int lc_volume_sync(struct lc_volume *vol);

/**
 * lc_volume_drain() - have everything that is in the log now copied to the HDD
 * @vol: the volume, not suspended
 *
 * Does not wait for that.
 */
void lc_volume_drain(struct lc_volume *vol);

/**
 * lc_volume_set() - set one option of the running volume
 * @vol: the volume, not suspended
 * @params: options of the bound table, which `dmsetup table` shows; change with it
 * @key: name of the option
 * @value: text
 *
 * Takes life_lock.  Return: 0, -EINVAL (the kernel log says why) or -ENOMEM; after an error all
 * options are as before.
 */
int lc_volume_set(struct lc_volume *vol, struct lc_params *params, const char *key,
		  const char *value);

/**
 * lc_volume_alloc_spare() - get the memory that the options of another table need
 * @vol: the volume
 * @params: options of that table
 * @spare: an empty list; gets the buffers that a larger pool needs
 * @error: gets constant text on error
 *
 * In the constructor, because a suspended volume must not wait for memory.  May sleep, and reclaim
 * memory through this volume: not under life_lock, which a rescue needs.  The checksums that
 * `verify_reads` needs belong to the volume at once.  Return: 0 or -ENOMEM.
 */
int lc_volume_alloc_spare(struct lc_volume *vol, const struct lc_params *params,
			  struct list_head *spare, const char **error);

/* Free what lc_volume_resume() has not taken over.  Does not sleep. */
void lc_volume_free_spare(struct list_head *spare);

#endif /* LC_CONTROL_H */
