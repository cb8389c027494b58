/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Suspend and resume of a volume, as device mapper's callbacks ask for them.
 *
 * Below target.c and control.c, above start.c and the rooms.  volume.c makes and destroys the
 * volumes; the two do not call each other.
 *
 * All may sleep.
 */
#ifndef LC_SUSPEND_H
#define LC_SUSPEND_H

#include <linux/list.h>
#include <linux/types.h>

struct dm_table;
struct dm_target;
struct lc_volume;
struct lc_params;

/**
 * lc_volume_resume() - preresume: start or go on
 * @vol: the volume
 * @table: bound from now on
 * @params: options of that table; gets those in force
 * @spare: buffers that the constructor has allocated for them, taken over; may be NULL
 *
 * Takes life_lock.  The first call starts the life (lc_start()).  If that fails, so does each
 * later call: the device has to be removed and created again.  An option that cannot be had now
 * keeps its value, and the kernel log says so.
 * Return: 0 or a negative errno; the kernel log has the reason.
 */
int lc_volume_resume(struct lc_volume *vol, struct dm_table *table, struct lc_params *params,
		     struct list_head *spare);

/**
 * lc_volume_presuspend() - prepare for a suspend, which may be one without flush
 * @vol: the volume
 * @ti: device mapper asks this target whether parked bios are to be given back
 *
 * Stops nothing: the file system is frozen after this call, and may need space in the log (D4).
 */
void lc_volume_presuspend(struct lc_volume *vol, struct dm_target *ti);

/**
 * lc_volume_presuspend_undo() - give no bios back to device mapper any more
 * @vol: the volume
 *
 * When a suspend is given up after lc_volume_presuspend().  lc_volume_resume() does the same.
 */
void lc_volume_presuspend_undo(struct lc_volume *vol);

/**
 * lc_volume_postsuspend() - make the log durable and end the volume's own I/O
 * @vol: the volume; no bio is in flight
 * @removing: the device is going away, so this is the end of the life
 *
 * Takes life_lock.  At the end of a life in mode rw the stop is clean (lc_stop_clean()).  An
 * error is said in the kernel log: device mapper does not ask for it.
 */
void lc_volume_postsuspend(struct lc_volume *vol, bool removing);

/**
 * lc_volume_flush() - make every write that has completed durable
 * @vol: the volume
 *
 * On the SSD, and on the HDD what went there.  Return: 0 or a negative errno.
 */
int lc_volume_flush(struct lc_volume *vol);

/**
 * lc_volume_resize_writeback() - another batch size and depth for writeback
 * @vol: the volume
 * @params: with these
 *
 * Under life_lock, with memalloc_noio if the volume is suspended or may wait for memory that is
 * reclaimed through it.  Return: 0 or -ENOMEM: nothing has changed.
 */
int lc_volume_resize_writeback(struct lc_volume *vol, const struct lc_params *params);

#endif /* LC_SUSPEND_H */
