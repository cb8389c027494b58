/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hibernation: memory comes back as it was at the snapshot, so the disks must, too.
 *
 * The kernel freezes tasks, copies the memory, and runs on while it writes that copy, the image,
 * to a swap device.  Kernel threads and workers run meanwhile.  When the image is restored, the
 * memory knows nothing of what they have done since.  A volume that had drained and moved its tail
 * would use segments again that the restored memory takes for the newest copies.  The same holds
 * for a write that any kernel thread sends: its record, and the segment that it evicts for it.
 *
 *  HB1 From the snapshot on a volume writes nothing to its devices, for anybody, until memory and
 *      devices have been compared.  Its mapped device is suspended internally, as by a
 *      suspend without flush: the log is durable, nothing is under way, and bios that come wait
 *      in device mapper.
 *  HB2 A volume goes on only if superblock and mark are those that the memory knows.  Otherwise
 *      the pair was used since the snapshot, in a later life: nothing is read or written any
 *      more (mode `fail`), and the devices stay as that life left them.
 *  HB3 No image is restored over a kernel in which the life of a volume has begun: the image
 *      knows an earlier life.  The kernel goes on as after a power cut.
 *
 * When.  Volumes are suspended when the power management core prepares devices.  The notifier would
 * be too early: it is called before the kernel syncs file systems and freezes tasks, and writers
 * would hang.  When devices are prepared, all tasks and freezable kernel threads are frozen, so no
 * task that has to freeze waits for a volume.  All devices still work then, so the log can be made
 * durable.  The next step, in which devices freeze, would be too late: disks that were found after
 * this module was loaded freeze before the device of this module.
 * Volumes are resumed when freezable workqueues are thawed.  That moment is the same whether
 * hibernation failed, was aborted, or the image was restored.  The notifier would be too late: the
 * kernel may thaw file systems before it calls the notifier, and file systems write.
 *
 * Which.  Those whose life has begun, newest first: a volume may lie on another one, which is
 * older.  Frozen tasks create and remove none.  Device mapper itself may remove one meanwhile
 * (deferred removal); so each is held, and a removal waits.  Volumes that were suspended already
 * are compared, too.
 *
 * Teardown.  A loaded module misses no part of a hibernation: lc_hibernate_init() waits until none
 * is under way.  The work is queued only while volumes are held, which hold the module.
 * lc_hibernate_exit() unregisters the device first, then the notifier, and destroys the workqueue
 * last, which waits for the end of the work.
 *
 * The image cannot be written to a volume: the bios would wait for ever.  Hibernation is refused
 * while a volume is swap.  Swap that lies above a volume, as a file or a logical volume, is not
 * seen here.
 */
#ifndef LC_HIBERNATE_H
#define LC_HIBERNATE_H

/**
 * lc_hibernate_init() - be told of hibernation from now on
 *
 * When the module is loaded, before the target is registered.  May sleep, and waits for the end of
 * a hibernation or suspend that is under way.  Return: 0 or a negative errno.
 */
int lc_hibernate_init(void);

/**
 * lc_hibernate_exit() - undo lc_hibernate_init()
 *
 * When the module is unloaded, after the target is unregistered: no volume is left.  May sleep.
 */
void lc_hibernate_exit(void);

#endif /* LC_HIBERNATE_H */
