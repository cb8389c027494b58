# SPDX-License-Identifier: GPL-2.0-only
"""The in-kernel load generator (tests/bench/module), with memory in random pieces."""

import os
import pathlib
import threading

from . import sh, wait
from .registry import Skip
from .scatter import MOST, SECTOR, granule

RUN = pathlib.Path("/sys/kernel/debug/lcload/run")
PIECES = 60


def run(words):
    """One job, as lcload.c wants it; its figures as numbers."""
    handle = os.open(RUN, os.O_RDWR)
    try:
        os.write(handle, words.encode())
        text = os.pread(handle, 4096, 0).decode()
    finally:
        os.close(handle)
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


class Kernel:
    """Loads on a part of a volume, every sector of which tells its place and its version.

    `first` is a sector that begins no block, so the first and the last block of a bio are
    partial.  The sizes are no powers of two, either.
    """

    FIRST = 8 * 64 + 3
    SECTORS = 1800
    SIZES = (512, 1536, 4096, 12800, 61440)     # of a bio; a whole number of each fills the part
    LARGE = SIZES[-1]
    FLAGS = ({}, {"fua": 1}, {"preflush": 1}, {"nowait": 1}, {"flush_every": 20})

    def __init__(self, path, rng, seed):
        sh.run("modprobe", "lcload")
        self.path = path
        self.rng = rng
        self.seed = seed
        self.granule = granule(path)
        if self.granule > MOST:
            raise Skip(f"this kernel lets only pieces of {self.granule} bytes reach the volume")
        self.version = 0        # of the newest write
        self.least = 0          # every sector holds this one or a newer one
        self.seen = {"bios": 0, "pieces": 0, "again": 0}

    def job(self, path=None, skip=0, size=None, **words):
        """One load; nothing fails, and each sector that is read is the right one."""
        size = size or self.rng.choice(self.SIZES)
        words = {"threads": 2, "depth": 8, "bs": size, "first": (self.FIRST + skip) * SECTOR,
                 "span": self.SECTORS * SECTOR, "pieces": PIECES, "granule": self.granule,
                 "seed": self.rng.randrange(1 << 32), "check": self.version,
                 "least": self.least, "ms": int(wait.limit(120_000)), **words}
        if words.get("order") == "once":
            words["count"] = -(-self.SECTORS * SECTOR // size // words["threads"])
        words = " ".join(f"{key}={value}"
                         for key, value in {"dev": path or self.path, **words}.items())
        got = run(words)
        assert not got["errors"] and not got["wrong"], f"{got}; {words}; seed {self.seed}"
        self.seen["bios"] += got["read"] + got["write"]
        self.seen["pieces"] += got["pieces"]
        self.seen["again"] += got["again"]
        return got

    def write_all(self, **words):
        """A new version of every sector."""
        self.version += 1
        self.job(order="once", **{**self.rng.choice(self.FLAGS), **words})
        self.least = self.version

    def mix(self, count=60, **words):
        """Reads, and writes of a new version, at random places."""
        self.version += 1
        self.job(order="random", read_pct=50, count=count,
                 **{**self.rng.choice(self.FLAGS), **words})

    def read_all(self, path=None, skip=0, **words):
        """Every sector; also on another device, `skip` sectors further on."""
        self.job(path, skip, op="read", order="once", **words)

    def look(self, path=None, skip=0):
        """All of it twice: into whole pages, which shows what was written, and into pieces."""
        self.read_all(path, skip, pieces=0)
        self.read_all(path, skip)

    def discard(self, raw):
        """No block of the part is cached any more.  What it holds then is not known."""
        first, end = self.FIRST // 8 * 8, -(-(self.FIRST + self.SECTORS) // 8) * 8
        raw.discard(first * SECTOR, (end - first) * SECTOR)


class Background(threading.Thread):
    """write_all() of large bios while the block does other things."""

    def __init__(self, load):
        super().__init__(daemon=True)
        self.load = load
        self.error = None
        self.start()

    def run(self):
        try:
            self.load.write_all(size=self.load.LARGE)
        except (AssertionError, OSError) as error:
            self.error = error

    def finish(self):
        """It ends well."""
        self.join(wait.limit(120))
        assert not self.is_alive() and self.error is None, self.error
