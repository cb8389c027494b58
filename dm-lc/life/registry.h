/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registry of volumes: which volume serves which devices.
 *
 * The lock of the registry is held for look-ups only.  Nothing under it does I/O, allocates
 * memory of the size of a device, or waits for another lock: a device that hangs, or a large
 * index, keeps no other volume from being loaded or removed (D20).
 *
 * Invariants
 *  E1 A volume is in the list from before the first I/O on its devices until its last room is
 *     freed, so two volumes never use one device at the same time (D7).
 *  E2 Only a volume that is LC_STAGE_LIVE gets users.  A volume leaves this stage when its last
 *     user is gone, and never enters it again.
 */
#ifndef LC_REGISTRY_H
#define LC_REGISTRY_H

#include <linux/list.h>

struct dm_dev;
struct dm_table;
struct dm_target;
struct lc_volume;
struct lc_params;

/* A target's share in a volume.  Embedded in the target; its fields belong to the registry. */
struct lc_user {
	struct list_head list;
	struct dm_table *table;
	struct lc_volume *vol;
};

/**
 * lc_registry_get() - get the volume for these devices in this mapped device
 * @ti: the target
 * @backing: the HDD
 * @cache: the SSD
 * @params: options of the table
 * @user: gets the volume
 * @error: gets constant text on error
 *
 * A volume lives as long as any table refers to it, so a reload finds the live one.  May sleep,
 * do I/O, and wait for another table load or removal that concerns one of the devices.
 * Return: 0; -EBUSY if one of the devices serves another volume (D7) or another target of
 * this table; -EINTR if a fatal signal ended the wait; or another errno.
 */
int lc_registry_get(struct dm_target *ti, struct dm_dev *backing, struct dm_dev *cache,
		    const struct lc_params *params, struct lc_user *user, const char **error);

/**
 * lc_registry_put() - let go of a volume
 * @user: the target's share
 *
 * May sleep.  Frees the volume if this was its last user.
 */
void lc_registry_put(struct lc_user *user);

/**
 * lc_registry_hold() - hold all volumes whose life has begun
 * @held: empty; gets these volumes, linked by vol->held, the newest first
 *
 * A volume that is going away is left out.  Each volume in @held lives until dm_put() of
 * its mapped device.  One caller at a time: the power management code ensures that.  May sleep.
 */
void lc_registry_hold(struct list_head *held);

#endif /* LC_REGISTRY_H */
