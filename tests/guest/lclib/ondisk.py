# SPDX-License-Identifier: GPL-2.0-only
"""Metadata blocks of the on-disk format, for checksums of the type crc32c."""

import struct


def crc32c(data, crc):
    """As the kernel's crc32c()."""
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc


def csum64(seed, data):
    """lc_format_csum64() of the type crc32c."""
    crc = crc32c(data, ~((seed & 0xffffffff) + 2 * (seed >> 32)) & 0xffffffff)
    return (~crc & 0xffffffff) << 32 | crc


def sealed(block):
    """A metadata block with the checksum that its bytes have now."""
    block = bytes(block)
    total = csum64(struct.unpack_from("<Q", block, 16)[0], block[:8])
    total = csum64(total, bytes(8))
    return block[:8] + struct.pack("<Q", csum64(total, block[16:])) + block[16:]


def older_superblock(block, end):
    """Of a pair in place whose head is not moved and whose mark is at byte `end`."""
    block = bytearray(block)
    struct.pack_into("<Q", block, 160, struct.unpack_from("<Q", block, 160)[0] & ~4)
    struct.pack_into("<Q", block, 272, end)
    return sealed(block)


def older_mark(block, address):
    """The mark of such a pair, a copy that is at that byte."""
    block = bytearray(block)
    struct.pack_into("<Q", block, 56, address)
    struct.pack_into("<Q", block, 112, 0)
    return sealed(block)
