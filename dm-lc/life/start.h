/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The beginning and the end of a life: loading the index and opening the epoch before the first
 * bio, and the checkpoint of a clean stop.
 *
 * Below suspend.c, which says when a life begins and ends; above superblock, checkpoint, recovery,
 * fingerprint and the log.  It knows neither bios nor device mapper.
 *
 * All may sleep and do I/O.  No bio is mapped and no worker of the volume runs meanwhile.
 */
#ifndef LC_START_H
#define LC_START_H

struct lc_cache;

/**
 * lc_start() - load the index and open the epoch
 * @c: the cache; its rooms are as they were created
 *
 * Checks that the two devices belong together, loads the checkpoint or replays the log, and
 * writes the new epoch to superblock and mark (T1).  Before that it writes nothing.
 * Return: 0, or a negative errno; the kernel log has the reason.  After an error the rooms are
 * good for nothing but to be destroyed.
 */
int lc_start(struct lc_cache *c);

/**
 * lc_start_more_buffers() - may the cache have more buffers?
 * @c: the cache, started and suspended
 * @buffers: how many
 *
 * Says so if not.  Return: 0, or the error of writing the superblock (WS5).
 */
int lc_start_more_buffers(struct lc_cache *c, u32 buffers);

/**
 * lc_stop_clean() - leave a clean volume
 * @c: the cache; its log is durable
 *
 * Ends the mode rw, so that a late write is not acknowledged any more.  Then writes the
 * checkpoint and marks the superblock clean.  If that fails the kernel log says so, the devices
 * stay as after a crash, and the next start replays the log.
 */
void lc_stop_clean(struct lc_cache *c);

#endif /* LC_START_H */
