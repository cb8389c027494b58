# SPDX-License-Identifier: GPL-2.0-only
"""Data that says where it belongs: each sector carries seed, position and version."""

import array
import random
import struct

SECTOR = 512
STAMP = struct.Struct("<8sQQQ")
MAGIC = b"dmlcdata"
REPEAT = SECTOR // STAMP.size


def sector(seed, position, version):
    """The 512 bytes of version `version` of that sector; version 0 is zeroes."""
    if version == 0:
        return bytes(SECTOR)
    return STAMP.pack(MAGIC, seed, position, version) * REPEAT


def describe(data):
    """What a sector holds, for a failure message."""
    if not any(data):
        return "zeroes"
    magic, seed, position, version = STAMP.unpack_from(data)
    if magic != MAGIC:
        return f"foreign bytes {data[:16].hex()}..."
    torn = "" if data == data[:STAMP.size] * REPEAT else ", torn inside the sector"
    return f"seed {seed} sector {position} version {version}{torn}"


class Model:
    """A device and what must be on it, sector by sector."""

    def __init__(self, device, seed, first=0, count=None):
        self.device = device
        self.seed = seed
        self.random = random.Random(seed)
        self.first = first
        self.count = count or device.size // SECTOR - first
        self.versions = array.array("L", bytes(8 * self.count))
        self.clock = 0

    def data(self, at, count):
        """The bytes that must be at those sectors (relative to the model)."""
        return b"".join(sector(self.seed, self.first + at + i, self.versions[at + i])
                        for i in range(count))

    def write(self, at, count, fua=False):
        """Write a new version of those sectors."""
        self.clock += 1
        self.versions[at:at + count] = array.array("L", [self.clock]) * count
        self.device.write((self.first + at) * SECTOR, self.data(at, count), fua)

    def forget(self, at, count):
        """Those sectors were set to zero by other means."""
        self.versions[at:at + count] = array.array("L", [0]) * count

    def check(self, at=0, count=None, device=None, shift=0):
        """Those sectors hold what was written last; `shift`: the data's sector on `device`."""
        count = self.count - at if count is None else count
        device = device or self.device
        for start in range(at, at + count, 2048):
            part = min(2048, at + count - start)
            found = device.read((self.first + start + shift) * SECTOR, part * SECTOR)
            wanted = self.data(start, part)
            if found != wanted:
                self.blame(start, found, wanted)

    def blame(self, start, found, wanted):
        """Name the first sector that is wrong."""
        for i in range(0, len(wanted), SECTOR):
            if found[i:i + SECTOR] != wanted[i:i + SECTOR]:
                raise AssertionError(
                    f"sector {self.first + start + i // SECTOR}: "
                    f"found {describe(found[i:i + SECTOR])}, "
                    f"wanted {describe(wanted[i:i + SECTOR])}; seed {self.seed}")

    def pick(self, most=256):
        """A random piece (at, count) of the model."""
        count = self.random.randint(1, min(most, self.count))
        return self.random.randrange(self.count - count + 1), count
