/* SPDX-License-Identifier: GPL-2.0-only */
/* The signatures that libblkid finds on a device. */
#ifndef LC_SIGNATURE_H
#define LC_SIGNATURE_H

#include "device.h"

#define SIGNATURES_MAX	16

struct signature {
	char type[32];		/* ext4, LVM2_member, gpt ... */
	char label[64];
	bool is_table;		/* a partition table */
	bool is_raid;		/* of a member of something: RAID, LVM */
	u64 at;			/* byte address of its magic; ~0: not known */
};

struct signatures {
	unsigned int nr;	/* above SIGNATURES_MAX if there were more */
	struct signature list[SIGNATURES_MAX];
};

/* Find every signature on a device.  Return: 0, or a negative errno after complaining. */
int signatures_probe(const struct device *dev, struct signatures *found);
/* The same for what begins at byte @offset of the device: a volume after its mark. */
int signatures_probe_at(const struct device *dev, u64 offset, struct signatures *found);
/*
 * Overwrite the magic of every signature of what begins at @offset, at whichever end it is, as
 * wipefs(8) does; copies of a table or superblock too.  @dev is open for writing.  Durable
 * afterwards.  Return: 0, or a negative errno after complaining.
 */
int signatures_wipe(const struct device *dev, u64 offset);
/* Highest byte that something found on the device is known to end at, 0 if nothing is known. */
u64 signatures_known_end(const struct device *dev, const struct signatures *found);
/* 'ext4 "root", gpt partition table' or so, in a static buffer. */
const char *signatures_text(const struct signatures *found);
/*
 * Does everything found end at or before byte @limit?  If not, or if that is not known, @why says
 * what does not; it has @len bytes.
 */
bool signatures_end_below(const struct device *dev, const struct signatures *found, u64 limit,
			  char *why, size_t len);

#endif
