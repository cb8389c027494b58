# SPDX-License-Identifier: GPL-2.0-only
"""Superblocks and marks changed by hand, and pairs as older tools left them.

The images hold a pair that was formatted with --checksum=crc32c.
"""

import struct

from .tools import MIB, Image

GENERATION_AT = 16
SB = {"sb_seq": (128, "<Q"), "version": (136, "<I"), "incompat": (160, "<Q"),
      "end_offset": (208, "<Q"), "mark_offset": (272, "<Q")}
MARK = {"address": (56, "<Q"), "version": (72, "<I"), "state": (76, "<I"),
        "volume_sectors": (88, "<Q"), "head_offset": (112, "<Q"), "label": (128, "64s")}
MOVED_HEAD = 4


def _table():
    for index in range(256):
        crc = index
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
        yield crc


TABLE = tuple(_table())


def crc32c(crc, data):
    """As userland/crc32c.c."""
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xff]
    return crc


def csum64(seed, data):
    """As lc_format_csum64()."""
    crc = crc32c(~((seed & 0xffffffff) + 2 * (seed >> 32)) & 0xffffffff, data)
    return (~crc & 0xffffffff) << 32 | crc


def sealed(block):
    """A metadata block with the checksum that it has to have."""
    seed = struct.unpack_from("<Q", block, GENERATION_AT)[0]
    total = csum64(csum64(csum64(seed, block[:8]), bytes(8)), block[16:])
    return block[:8] + struct.pack("<Q", total) + block[16:]


def changed(block, fields, **values):
    """The block with other values in some fields."""
    block = bytearray(block)
    for name, value in values.items():
        at, form = fields[name]
        struct.pack_into(form, block, at, value)
    return sealed(bytes(block))


def field(block, fields, name):
    """The value of a field."""
    at, form = fields[name]
    return struct.unpack_from(form, block, at)[0]


def change(image, fields, *places, **values):
    """The same change of some copies in an image."""
    for place in places:
        image.write(place, changed(image.read(place), fields, **values))


def make_older(ssd_path, hdd_path):
    """A pair in place, never started, as older tools made it: the volume's first MiB is where it
    was, and the mark is behind the volume. Returns the mark's place.
    """
    ssd, hdd = Image(ssd_path), Image(hdd_path)
    place = field(hdd.read(0), MARK, "head_offset")
    head, mark = hdd.read(place, MIB), hdd.read(0)
    incompat = field(ssd.read(0), SB, "incompat") & ~MOVED_HEAD
    hdd.write(0, head)
    hdd.write(place, bytes(hdd.size - place))
    for copy in (0, 1):
        at = place + copy * MIB // 2
        hdd.write(at, changed(mark, MARK, address=at, head_offset=0))
    change(ssd, SB, 0, MIB // 2, field(ssd.read(0), SB, "end_offset"), incompat=incompat,
           mark_offset=place)
    return place
