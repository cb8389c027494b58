# SPDX-License-Identifier: GPL-2.0-only
"""A block device opened for direct I/O, as cases read and write it."""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import pathlib
import random
import struct

from . import sh

BLKDISCARD = 0x1277
BLKGETSIZE64 = 0x80081272
BLKSSZGET = 0x1268
MIB = 1 << 20
# Up to this length the memory of a read or write is in pieces: it stays one bio.
ODD_BYTES = 64 << 10
# What draws them; a case's own seed, see runner.py.
pieces = random.Random(0)


def by_serial(wanted):
    """The /dev path of the disk with this serial number."""
    for serial in pathlib.Path("/sys/block").glob("vd*/serial"):
        if serial.read_text(encoding="ascii").strip() == wanted:
            return f"/dev/{serial.parent.name}"
    for page in pathlib.Path("/sys/block").glob("sd*/device/vpd_pg80"):
        if page.read_bytes()[4:].decode(errors="replace").strip() == wanted:
            return f"/dev/{page.parent.parent.name}"
    raise LookupError(f"no disk has the serial number {wanted}")


def commands(path):
    """How many commands of each kind the kernel has sent to a disk so far, and sectors."""
    words = pathlib.Path("/sys/block", pathlib.Path(path).name, "stat").read_text(encoding="ascii")
    words = words.split()
    return {"read": int(words[0]), "write": int(words[4]), "flush": int(words[15]),
            "sectors": int(words[6]), "sectors_read": int(words[2])}


class Device:
    """Direct reads and writes at byte offsets; use as a context manager."""

    def __init__(self, path, direct=True):
        self.path = str(path)
        self.handle = os.open(self.path, os.O_RDWR | (os.O_DIRECT if direct else 0))
        self.size = struct.unpack("Q", fcntl.ioctl(self.handle, BLKGETSIZE64, b"\0" * 8))[0]
        self.block = struct.unpack("i", fcntl.ioctl(self.handle, BLKSSZGET, b"\0" * 4))[0]
        self.buffer = mmap.mmap(-1, 4 * MIB)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close; a second time does nothing."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def views(self, length):
        """The memory of one read or write: pieces of blocks that lie apart, half of the time."""
        if length > ODD_BYTES or length % self.block or pieces.randrange(2):
            return [memoryview(self.buffer)[:length]]
        views = []
        at = 0
        while length:
            part = length
            if len(views) < 3:
                part = self.block * pieces.randint(1, length // self.block)
            at += self.block * pieces.randrange(8)
            views.append(memoryview(self.buffer)[at:at + part])
            at += part
            length -= part
        return views

    def read(self, offset, length):
        """Exactly `length` bytes."""
        parts = []
        while length:
            part = min(length, len(self.buffer))
            views = self.views(part)
            got = os.preadv(self.handle, views, offset)
            if got != part:
                raise OSError(errno.EIO, f"{self.path}: {got} of {part} bytes read at {offset}")
            parts += map(bytes, views)
            offset += part
            length -= part
        return b"".join(parts)

    def write(self, offset, data, fua=False):
        """All of `data`; with fua the write asks for durability (RWF_DSYNC)."""
        flags = os.RWF_DSYNC if fua else 0
        for start in range(0, len(data), len(self.buffer)):
            part = data[start:start + len(self.buffer)]
            views = self.views(len(part))
            at = 0
            for view in views:
                view[:] = part[at:at + len(view)]
                at += len(view)
            done = os.pwritev(self.handle, views, offset + start, flags)
            if done != len(part):
                raise OSError(errno.EIO, f"{self.path}: {done} of {len(part)} bytes written")

    def flush(self):
        """FLUSH; all that was acknowledged is durable when this returns."""
        os.fsync(self.handle)

    def discard(self, offset, length):
        """BLKDISCARD."""
        fcntl.ioctl(self.handle, BLKDISCARD, struct.pack("QQ", offset, length))

    def wipe(self, length=MIB):
        """Zero the first and last `length` bytes: no signature survives."""
        length = min(length, self.size)
        self.write(0, bytes(length))
        self.write(self.size - length, bytes(length))
        self.flush()


def image(path):
    """All bytes of a device."""
    with Device(path) as raw:
        return b"".join(raw.read(at, MIB) for at in range(0, raw.size, MIB))


def put(path, data):
    """The bytes of image() on a device."""
    with Device(path) as raw:
        for at in range(0, len(data), MIB):
            raw.write(at, data[at:at + MIB])
        raw.flush()


@contextlib.contextmanager
def loop(path, *options):
    """A loop device on a file or a device."""
    sh.run("modprobe", "loop")
    device = sh.run("losetup", "--find", "--show", *options, path).strip()
    try:
        yield device
    finally:
        sh.run("losetup", "--detach", device)


@contextlib.contextmanager
def swap_on(path):
    """The device is swap inside the block; all of it is read back at its end."""
    sh.run("mkswap", path)
    sh.run("swapon", path)
    try:
        yield
    finally:
        sh.run("swapoff", path)


def drop_caches():
    """Forget the page cache, so that the next read reaches the device."""
    ctypes.CDLL(None).sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
