# SPDX-License-Identifier: GPL-2.0-only
"""Blocks that say where they belong and how new they are: written here, checked anywhere.

    promises.py write FILE BLOCKS FIRST
    promises.py check FILE BLOCKS < PROMISES

write never ends: it writes groups of random blocks of FILE, numbered from FIRST on, and tells the
console "durable NUMBER: AT AT ... ." once fdatasync has returned; the first block of the group has
that number, each other one the next. check reads lines "AT NUMBER" and prints how many blocks it
has compared: each must be whole, and none older than promised.
"""

import os
import random
import struct
import sys
import zlib

BLOCK = 4096
GROUP = 8
HEAD = struct.Struct("<QQ")     # where it belongs, its number
SUM = struct.Struct("<I")


def block(place, number, rng):
    """The bytes of a block."""
    body = HEAD.pack(place, number) + rng.randbytes(BLOCK - HEAD.size - SUM.size)
    return body + SUM.pack(zlib.crc32(body))


def number_of(data, place):
    """Which block lies there, 0 if none was written; fails if it is none of ours or not whole."""
    if not any(data):
        return 0
    found, number = HEAD.unpack_from(data)
    if found != place or SUM.unpack_from(data, BLOCK - SUM.size)[0] != zlib.crc32(data[:-4]):
        sys.exit(f"block {place} is not whole, or of another place ({found})")
    return number


def write(path, blocks, number):
    """For ever."""
    rng = random.Random(number)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.ftruncate(file, blocks * BLOCK)
    with open("/dev/console", "w", encoding="ascii") as console:
        while True:
            places = rng.sample(range(blocks), GROUP)
            for later, place in enumerate(places):
                os.pwrite(file, block(place, number + later, rng), place * BLOCK)
            os.fdatasync(file)
            print(f"durable {number}:", *places, ".", file=console, flush=True)
            number += GROUP


def check(path, blocks):
    """Compare all blocks with what was promised of them."""
    promised = dict(tuple(map(int, line.split())) for line in sys.stdin)
    with open(path, "rb") as file:
        for place in range(blocks):
            number = number_of(file.read(BLOCK), place)
            if number < promised.get(place, 0):
                sys.exit(f"block {place}: number {promised[place]} was durable, {number} is there")
    print(len(promised))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    check(sys.argv[2], int(sys.argv[3]))
