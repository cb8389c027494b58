# SPDX-License-Identifier: GPL-2.0-only
"""Reads and writes whose memory is in odd pieces, by the target `scatter` (guest/scatter)."""

import contextlib
import os
import pathlib

from . import dm, sh
from .disk import Device as Raw
from .registry import Skip

SECTOR = 512
MOST = 64               # MAX_GRANULE of the target


def queue(path, name):
    """A limit of a block device, as the kernel tells it."""
    number = os.stat(path).st_rdev
    queues = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/queue")
    return int((queues / name).read_text(encoding="ascii"))


def disks_under(path):
    """The devices that a device is made of, down to those that are made of none."""
    number = os.stat(path).st_rdev
    slaves = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/slaves")
    found = [f"/dev/{slave.name}" for slave in slaves.glob("*")]
    return [disk for device in found for disk in disks_under(device)] or [path]


def granule(path):
    """The finest pieces that kernel code can send to this device: newer disks look at each.

    A mapped device does not look, though it says 511 for dma_alignment, as most of them do.
    That keeps such memory of programs away from it.
    """
    release = tuple(int(word) for word in os.uname().release.split(".")[:2])
    if release < (6, 18):
        return 1
    return 1 + max(queue(disk, "dma_alignment") for disk in disks_under(path))


class Scatter(dm.Device):
    """A device on top of another one; with pieces=0 it only counts.

    `block` is the size of logical blocks it says it has, if not those of the other one;
    `percent` of the bios get odd memory.
    """

    def __init__(self, path, seed=0, name="odd", pieces=None, block=0, percent=100):
        super().__init__(name)
        self.under = path
        self.seed = seed
        self.pieces = pieces
        self.block = block
        self.percent = percent

    def create(self):
        """Load the target, and make the device."""
        sh.run("modprobe", "dm-scatter")
        pieces = granule(self.under) if self.pieces is None else self.pieces
        if pieces > MOST:
            raise Skip(f"this kernel lets only pieces of {pieces} bytes reach the volume")
        self.targets = (dm.Target("scatter", dm.sectors(self.under), self.under, 0, pieces,
                                  self.seed, self.block, self.percent),)
        super().create()

    def counts(self):
        """What has passed so far."""
        words = self.status().split()[3:]
        return dict(zip(words[::2], map(int, words[1::2])))

    @contextlib.contextmanager
    def holding(self):
        """Inside the block, a worker of the device below that ends a write sleeps in its middle."""
        self.message("hold")
        try:
            yield
        finally:
            self.message("release")


@contextlib.contextmanager
def partly_odd(path, seed):
    """The path of a device on this one, where half of all bios get odd memory.

    It is the same path where the kernel lets none through to this device.
    """
    if granule(path) > MOST:
        yield path
        return
    with Scatter(path, seed, f"odd-{os.path.basename(path)}", percent=50) as odd:
        yield odd.path


class Exact:
    """The first sectors of a device, every byte of which is known.

    What is written is drawn from `rng`; what is wrong is told with the seed.
    """

    def __init__(self, path, rng, seed, sectors=2048):
        self.raw = Raw(path)
        self.rng = rng
        self.seed = seed
        self.sectors = sectors
        self.unit = self.raw.block // SECTOR
        self.data = bytearray(self.raw.read(0, sectors * SECTOR))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.raw.close()

    def extent(self, most):
        """A random place: (first sector, number of sectors)."""
        unit = self.unit
        count = self.rng.randint(1, max(1, (self.rng.choice((8, 24, most))) // unit)) * unit
        return self.rng.randrange(0, self.sectors - count + 1, unit), count

    def write(self, most=128, flags=0):
        """One write; with RWF_NOWAIT it may be refused.  Returns whether it was done."""
        first, count = self.extent(most)
        data = self.rng.randbytes(count * SECTOR)
        self.raw.buffer[:len(data)] = data
        try:
            done = os.pwritev(self.raw.handle, [memoryview(self.raw.buffer)[:len(data)]],
                              first * SECTOR, flags)
        except BlockingIOError:
            done = 0
        # Some of what was refused may have been written.
        if done != len(data):
            assert flags & os.RWF_NOWAIT, f"{done} of {len(data)} bytes; seed {self.seed}"
            self.write_again(first, data)
            return False
        self.data[first * SECTOR:(first + count) * SECTOR] = data
        return True

    def write_again(self, first, data):
        """Write this here, whatever happened to it before."""
        self.raw.write(first * SECTOR, data)
        self.data[first * SECTOR:first * SECTOR + len(data)] = data

    def check(self, most=128):
        """One read."""
        first, count = self.extent(most)
        self.compare(first, self.raw.read(first * SECTOR, count * SECTOR))

    def check_all(self, path=None, offset=0):
        """Everything, also on another device."""
        if path is None:
            self.compare(0, self.raw.read(0, len(self.data)))
            return
        with Raw(path) as raw:
            self.compare(0, raw.read(offset, len(self.data)))

    def compare(self, first, got):
        """Say which sectors are wrong."""
        want = self.data[first * SECTOR:first * SECTOR + len(got)]
        if got == want:
            return
        bad = [first + i for i in range(len(got) // SECTOR)
               if got[i * SECTOR:(i + 1) * SECTOR] != want[i * SECTOR:(i + 1) * SECTOR]]
        raise AssertionError(f"{len(bad)} sectors are wrong of {first}+{len(got) // SECTOR}: "
                             f"{bad[:8]}; seed {self.seed}")

    def some(self, nr, most=128):
        """Operations of every kind."""
        for _ in range(nr):
            what = self.rng.randrange(100)
            if what < 40:
                self.check(most)
            elif what < 44:
                self.raw.flush()
            elif what < 52:
                self.write(most, os.RWF_DSYNC)
            elif what < 60:
                self.write(most, os.RWF_NOWAIT)
            else:
                self.write(most)
