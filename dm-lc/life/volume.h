/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Making and destroying a volume: its rooms, and the small workers that belong to none of them.
 *
 * Below registry.c, which says when; above the rooms.  suspend.c and start.c drive a volume that
 * is made; volume.c does not call them, nor they volume.c.
 *
 * All may sleep unless they say otherwise.
 */
#ifndef LC_VOLUME_H
#define LC_VOLUME_H

struct block_device;
struct dm_table;
struct dm_target;
struct lc_volume;
struct lc_health_ops;
struct lc_params;
struct mapped_device;

/**
 * lc_volume_alloc() - a volume without rooms
 * @md: the mapped device
 * @backing: the HDD
 * @cache: the SSD
 *
 * Return: the volume, or NULL.
 */
struct lc_volume *lc_volume_alloc(struct mapped_device *md, struct block_device *backing,
				  struct block_device *cache);

/**
 * lc_volume_free() - undo lc_volume_alloc()
 * @vol: a volume without rooms
 */
void lc_volume_free(struct lc_volume *vol);

/**
 * lc_volume_setup() - read the superblock and create the rooms
 * @vol: fresh from lc_volume_alloc()
 * @ti: the first target
 * @params: options of its table
 * @error: gets constant text on error
 *
 * Reads from the SSD, and never writes.  May sleep for as long as the SSD does.
 * Return: 0, or a negative errno: then there are no rooms, as before the call.
 */
int lc_volume_setup(struct lc_volume *vol, struct dm_target *ti, const struct lc_params *params,
		    const char **error);

/**
 * lc_volume_check_table() - may another table have a share in this volume?
 * @vol: the volume
 * @ti: the table's target
 * @params: its options
 * @error: gets constant text on error
 *
 * Does not sleep.  Return: 0 or -EINVAL.
 */
int lc_volume_check_table(struct lc_volume *vol, struct dm_target *ti,
			  const struct lc_params *params, const char **error);

/**
 * lc_volume_unbind() - a table goes away
 * @vol: the volume
 * @table: forgotten if it is the bound one, so that it gets no more events
 *
 * Takes life_lock.
 */
void lc_volume_unbind(struct lc_volume *vol, struct dm_table *table);

/**
 * lc_volume_teardown() - undo lc_volume_setup(): end all workers and destroy the rooms
 * @vol: the volume; no table refers to it
 *
 * Does no I/O of its own, but waits for what is on its way.
 */
void lc_volume_teardown(struct lc_volume *vol);

/* What follows when a room of a volume reports a failure. */
extern const struct lc_health_ops lc_volume_health_ops;

#endif /* LC_VOLUME_H */
