/* SPDX-License-Identifier: GPL-2.0-only */
/* The hard disk that belongs to a cache, and the SSD that a link names. */
#ifndef LC_FIND_H
#define LC_FIND_H

#include "image.h"

/* Does the superblock say anything that tells disks apart? */
bool backing_identity_known(const struct lc_sb *sb);
/*
 * Does anything tell whether a disk is the one of this cache?  A mark, an identity, or the
 * fingerprint of a clean stop, which the kernel compares.  Before the first life nothing could be
 * written to a wrong disk.
 */
bool backing_provable(const struct lc_sb *sb);
/* Is @id the recorded one?  False if none is recorded. */
bool backing_identity_matches(const struct lc_sb *sb, const struct identity *id);

/*
 * May this disk be used with this cache?  Return: 0, or a negative errno after complaining,
 * unless @quiet.
 */
int backing_verify(const struct lc_sb *sb, const struct device *hdd, bool quiet);

/*
 * Find it among all block devices.  Return: a path, to be freed, or NULL after complaining, unless
 * @quiet.
 */
char *backing_find(const struct lc_sb *sb, const struct device *ssd, bool quiet);

/* The same, but only a device that udev knows for the hard disk of this pair. */
char *backing_find_half(const struct lc_sb *sb, const struct device *ssd, bool quiet);

/*
 * The SSD of the pair of @uuid, which @link names.  A copy of the SSD has the same link: the device
 * counts whose hard disk is attached, and of those the one whose cache has come farthest.  Return:
 * its path, to be freed, or NULL after complaining, if there are two.
 */
char *cache_find(const char *link, const char *uuid);

#endif
