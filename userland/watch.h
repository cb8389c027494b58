/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of running volumes that an administrator must learn of: of the mode, of the number of
 * lost blocks, and the end of the rescue of a degraded volume.
 *
 * The kernel raises a device-mapper event for each of them, which wakes poll() on the control
 * device.  The order is: arm, look at all volumes, poll.  An event between arm and poll ends the
 * poll at once, so none is missed; events that come together are one look.
 *
 * A volume that is seen for the first time counts as one in mode rw without lost blocks: what is
 * wrong with it already is told once.
 */
#ifndef LC_WATCH_H
#define LC_WATCH_H

/*
 * Tell what changes until a signal ends the process.  @hooks: a folder of programs that are run for
 * each change, one after the other (run-parts), with LC_VOLUME, LC_EVENT (mode, lost, saved),
 * LC_MODE, LC_OLD_MODE and LC_LOST in their environment.  Hooks that take more than a minute are
 * killed.  Return: an exit code, after complaining.
 */
int watch(const char *hooks);

#endif
