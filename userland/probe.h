/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lc-probe: is a device half of a pair?  For udev, which asks about every block device: it tells
 * as libblkid does, in lines KEY=VALUE, and nothing if the device is neither half.
 *
 * What is read: 4 KiB at byte 0; of a device that has no data of others there, 4 KiB at byte
 * 512 Ki and a copy of a superblock at its end; 4 KiB at two places in its last MiB.  Of a device
 * that is no half, at most 36 KiB in 9 reads.  No read is repeated, and of a device that fails
 * everywhere there are two.  Only a half is then also looked at with libblkid, as udev does itself.
 *
 * A copy of a superblock or a mark counts if its checksum is right, its own address is where it
 * was found, and the device is as large as the pair needs.  Then these are told apart:
 *
 *  - A partition, a linear device or a volume that holds a copy at another place than it was
 *    written for: not a half.  A device of other sectors that begin with those of a half and end
 *    before it, a member of a RAID0 for instance: not a half either.
 *  - Below a half: a RAID1 keeps its own superblock behind the data of its members, so a member
 *    begins as the half does.  The member is not a half if it is larger than the pair, and
 *    libblkid finds a superblock of a RAID behind what the pair takes.  The same inside is the
 *    volume's contents.  A device that only maps another one from its first sector on shows the
 *    same half; the rules of udev decide between them, as they do for multipath.
 *  - Only the second copy is left, and the place of the first has something of others: old.
 *  - libblkid finds something in the first MiB, which is all ours: the device was used for
 *    something else since, as by mdadm, which leaves the first 4 KiB as they are.  Not a half,
 *    unless the mark says that lc-format or lc-detach was interrupted while it moved that MiB.
 *  - A mark in the last MiB, where older tools had it, belongs to a disk whose first sector is the
 *    volume's.  A file system or table that reaches over it was made on the bare disk since: not a
 *    half.  What ends before it is the contents of the volume.
 *  - Both: a volume cached in place by an older tool holds a pair of its own, or a disk that had a
 *    mark at its end was paired anew.  The pair that takes more of the disk counts.
 *  - A mark of any state: attaching, detaching and abandoned ones are for lc-format, lc-detach and
 *    lc-check to judge.  The disk cannot be used without them either.  Taken apart, a disk has no
 *    mark, and an SSD no superblock.
 *  - Ours by its first bytes, but of a newer version: TYPE, USAGE and VERSION.  But damaged: TYPE
 *    and USAGE, because the device is not empty.
 */
#ifndef LC_PROBE_H
#define LC_PROBE_H

#include "device.h"

enum probe_role {
	PROBE_NEITHER,
	PROBE_CACHE,		/* the SSD */
	PROBE_BACKING,		/* the hard disk */
};

/* @version is 0 if not known; @uuid and @label, of a pair, are valid if @known. */
struct probe {
	enum probe_role role;
	u32 version;
	bool known;
	u8 uuid[16];
	char label[64];
};

/*
 * Judge a device opened with DEVICE_GLANCE.  Return: 0 and *@result, or -EIO: it cannot be read
 * where it would have to be, so that nobody knows.
 */
int probe_device(const struct device *dev, struct probe *result);

/*
 * As main().  Exit: 0, printed or not; LC_EXIT_FAIL if nobody knows, after complaining;
 * LC_EXIT_USAGE.
 */
int probe_main(int argc, char **argv);

#endif
