# SPDX-License-Identifier: GPL-2.0-only
"""Bios whose memory is in pieces that are no whole sectors (C10).

LIO, iSCSI and NVMe-oF targets send such, and plain direct I/O on some kernels.  The target
`scatter` (tests/guest/scatter) makes them of any load, above the volume.  Each case has
seeded random writes and reads there, against a model of every byte.
"""

import contextlib
import mmap
import os
import pathlib
import random
import threading

from lclib import Disk, case, dm, sh, wait
from lclib.disk import MIB
from lclib.faulty import Breakable
from lclib.lc import LcStack
from lclib.lcload import Background, Kernel
from lclib.scatter import Exact, Scatter, queue

PAIR = (Disk("ssd", "34M"), Disk("hdd", "96M"))
# These take memory at any multiple of four bytes, also on kernels that look.
SCSI_PAIR = (Disk("ssd", "34M", bus="scsi"), Disk("hdd", "96M", bus="scsi"))
SMALL = ("--segment-size=64K",)
TARGET = pathlib.Path("/sys/kernel/config/target")


@contextlib.contextmanager
def scattered(ctx, lc):
    """The volume below odd memory, and its model."""
    with Scatter(lc.path, ctx.seed) as odd, \
            Exact(odd.path, random.Random(ctx.seed), ctx.seed) as exact:
        yield exact


def lives(ctx, **options):
    """All kinds of operations in two lives; what is read below is what was written above."""
    stack = LcStack(ctx.hdd, ctx.ssd, format=SMALL, buffers=4, **options)
    with stack as lc, scattered(ctx, lc) as exact:
        for _ in range(4):
            exact.some(60)
            exact.check_all(lc.path)
            if exact.rng.randrange(2):
                lc.drain()
        exact.check_all()
    with stack as lc, Scatter(lc.path, ctx.seed + 1) as odd:
        with dm.Raw(odd.path) as raw:
            exact.compare(0, raw.read(0, len(exact.data)))
        lc.drain()
    exact.check_all(ctx.hdd, MIB)


@case(kernels=("stock",), disks=PAIR, timeout=150)
def every_byte(ctx):
    """Plain, FUA and NOWAIT writes, merges of old sectors, reads from RAM, SSD and HDD."""
    lives(ctx)


@case(kernels=("debug",), disks=SCSI_PAIR, timeout=150)
def every_byte_debug(ctx):
    """The same on the debug kernel, in pieces of four bytes and more."""
    lives(ctx)


@case(kernels=("stock",), disks=PAIR, timeout=150)
def every_byte_verified(ctx):
    """The same with verify_reads."""
    lives(ctx, verify_reads="on")


@case(kernels=("stock",), disks=(Disk("ssd", "34M", logical=4096, physical=4096),
                                 Disk("hdd", "96M")), timeout=150)
def every_byte_4kn_cache(ctx):
    """The same with an SSD of 4 KiB blocks: small reads go through a page."""
    lives(ctx)


class Writing(threading.Thread):
    """A large write in the background."""

    FIRST, SECTORS = 8 * 64 + 3, 512    # not in step with blocks: their sectors must not move

    @classmethod
    def prepare(cls, exact, lc):
        """No block that it writes to has a slot: it waits for room, and for no read.

        Its first and last block it writes in part, and the kernel may split it anywhere. A slot
        that was in RAM a moment ago may be on the SSD only by now.
        """
        first, end = cls.FIRST // 8 * 8, (cls.FIRST + cls.SECTORS) // 8 * 8 + 8
        with dm.Raw(lc.path) as raw:
            raw.discard(first * 512, (end - first) * 512)
            lc.settle()
            exact.data[first * 512:end * 512] = raw.read(first * 512, (end - first) * 512)

    def __init__(self, exact):
        super().__init__(daemon=True)
        self.exact = exact
        self.data = exact.rng.randbytes(self.SECTORS * 512)
        self.error = None
        self.start()

    def run(self):
        try:
            self.exact.write_again(self.FIRST, self.data)
        except OSError as error:
            self.error = error

    def finish(self):
        """It ends well."""
        self.join(wait.limit(120))
        assert not self.is_alive() and self.error is None, self.error


@contextlib.contextmanager
def parked_write(lc, ssd, exact):
    """A large write that is parked in its middle; behind the block the SSD goes on."""
    Writing.prepare(exact, lc)
    before = lc.fields()["parked"]
    with ssd.paused("--noflush"):
        writing = Writing(exact)
        wait.until(lambda: lc.fields()["parked"] > before, 60, "a parked write")
        yield writing


@case(kernels=("stock",), disks=PAIR, timeout=150)
def parked(ctx):
    """Writes that are larger than all buffers wait in their middle, and go on there."""
    with dm.Device("slow", dm.delay(ctx.ssd, 0, 20)) as slow, \
            LcStack(ctx.hdd, slow.path, format=SMALL, buffers=4, stats="on") as lc, \
            scattered(ctx, lc) as exact:
        for turn in range(12):
            exact.write(512, os.RWF_DSYNC if turn % 3 == 2 else 0)
            exact.check(512)
        # How many of those had to wait is up to the machine; this one has to.
        with parked_write(lc, slow, exact) as writing:
            pass
        writing.finish()
        exact.check_all(lc.path)
        exact.check_all()
        ctx.figure("parked", lc.fields()["parked"])


@case(kernels=("stock",), disks=PAIR, timeout=150)
def requeued(ctx):
    """A suspend takes a write back that was parked in its middle; it is done again."""
    with Breakable("ssd1", ctx.ssd) as ssd, \
            LcStack(ctx.hdd, ssd.path, format=SMALL, buffers=4, stats="on") as lc, \
            scattered(ctx, lc) as exact:
        for _ in range(3):
            exact.some(10)
            with parked_write(lc, ssd, exact) as writing:
                # It ends when the SSD goes on; by then the write was given back.
                suspend = sh.start("dmsetup", "suspend", "--noflush", "--nolockfs", lc.name)
                lc.wait(lambda fields: not fields["parked_blocks"], what="the write given back")
            sh.finish(suspend, 60)
            lc.resume()
            writing.finish()
            exact.check_all(lc.path)
            exact.check_all()
        lc.drain()
    exact.check_all(ctx.hdd, MIB)


@case(kernels=("stock",), disks=PAIR, timeout=150)
def degraded(ctx):
    """The SSD dies below a write that was parked in its middle: the rest goes to the HDD."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, format=SMALL, buffers=4, stats="on",
                     ssd_patience_ms=500).start()
        with scattered(ctx, lc) as exact:
            exact.some(40)
            lc.drain()
            with parked_write(lc, ssd, exact) as writing:
                ssd.load(dm.error(dm.sectors(ctx.ssd)))
            writing.finish()
            lc.wait(lambda fields: fields["mode"] == "degraded" and not fields["dirty"],
                    what="degraded, and nothing left to save")
            exact.check_all()
            exact.some(60)
            exact.check_all(lc.path)
        lc.remove()
    exact.check_all(ctx.hdd, MIB)


# --- by kernel threads, many at once ------------------------------------------------------------


def in_kernel(ctx, turns, **options):
    """Bios of several sizes, with all flags, side by side in the same blocks; two lives."""
    stack = LcStack(ctx.hdd, ctx.ssd, format=SMALL, buffers=4, **options)
    with stack as lc:
        load = Kernel(lc.path, random.Random(ctx.seed), ctx.seed)
        for flags in load.FLAGS:
            load.write_all(**flags)
            load.mix(**flags)
        for _ in range(turns):
            load.write_all()
            load.look()
            if load.rng.randrange(2):
                lc.drain()
            load.mix()
            load.look()
    with stack as lc:
        load.look()
        lc.drain()
        load.look()
    load.look(ctx.hdd, MIB // 512)
    assert load.seen["pieces"] > 2 * load.seen["bios"], load.seen
    for name, count in load.seen.items():
        ctx.figure(name, count)


@case(kernels=("stock",), disks=PAIR, timeout=150)
def kernel_threads(ctx):
    """Plain, FUA, PREFLUSH and NOWAIT bios of kernel threads; every sector tells which it is."""
    in_kernel(ctx, 4)


@case(kernels=("debug",), disks=SCSI_PAIR, timeout=150)
def kernel_threads_debug(ctx):
    """The same on the debug kernel, in pieces of four bytes and more, reads verified."""
    in_kernel(ctx, 2, verify_reads="on")


@contextlib.contextmanager
def parked_bios(lc, ssd, load):
    """Large bios, more than there is room for; behind the block the SSD goes on."""
    with lc.open() as raw:
        load.discard(raw)
    before = lc.fields()["parked"]
    with ssd.paused("--noflush"):
        writing = Background(load)
        wait.until(lambda: lc.fields()["parked"] > before, 60, "parked writes")
        yield writing


@case(kernels=("stock",), disks=PAIR, timeout=150)
def kernel_threads_interrupted(ctx):
    """Such bios are parked, given back by a suspend, and left to the HDD by a dead SSD."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, format=SMALL, buffers=4, stats="on",
                     ssd_patience_ms=500).start()
        load = Kernel(lc.path, random.Random(ctx.seed), ctx.seed)
        with parked_bios(lc, ssd, load) as writing:
            pass
        writing.finish()
        load.look()
        with parked_bios(lc, ssd, load) as writing:
            suspend = sh.start("dmsetup", "suspend", "--noflush", "--nolockfs", lc.name)
            lc.wait(lambda fields: not fields["parked_blocks"], what="the writes given back")
        sh.finish(suspend, 60)
        lc.resume()
        writing.finish()
        load.look()
        lc.drain()
        with parked_bios(lc, ssd, load) as writing:
            ssd.load(dm.error(dm.sectors(ctx.ssd)))
        writing.finish()
        lc.wait(lambda fields: fields["mode"] == "degraded" and not fields["dirty"],
                what="degraded, and nothing left to save")
        load.look()
        for flags in load.FLAGS:
            load.write_all(**flags)
            load.mix(**flags)
            load.look()
        lc.remove()
        load.look(ctx.hdd, MIB // 512)


# --- an SSD that is stricter than the hard disk (C11) -------------------------------------------


@contextlib.contextmanager
def null_blk(**options):
    """A disk in RAM whose logical block is 4 KiB; what is not whole blocks it copies wrongly."""
    words = [f"{key}={value}" for key, value in options.items()]
    sh.run("modprobe", "null_blk", "nr_devices=1", "gb=1", "bs=4096", "memory_backed=1",
           "queue_mode=2", *words)
    try:
        yield "/dev/nullb0"
    finally:
        sh.run("rmmod", "null_blk")


def cut(rng, length):
    """Lengths of pieces, sectors each."""
    lengths = []
    while sum(lengths) < length:
        most = rng.choice((1, 3, 8, 20))
        lengths.append(min(rng.randint(1, most), length - sum(lengths)))
    return [512 * count for count in lengths]


def read_in_pieces(rng, handle, offset, sectors):
    """One preadv; the pieces lie apart, at any sector of a page."""
    lengths = cut(rng, sectors)
    area = mmap.mmap(-1, sum(lengths) + 8192 * len(lengths))
    views = []
    at = 0
    for length in lengths:
        at += 512 * rng.randint(1, 15)
        views.append(memoryview(area)[at:at + length])
        at += length
    done = os.preadv(handle, views, offset)
    return b"".join(map(bytes, views))[:done]


def pieces(ctx, ssd):
    """Reads in pieces of sectors, from all places."""
    rng = random.Random(ctx.seed)
    stack = LcStack(ctx.hdd, ssd, format=(*SMALL, "--force=roles"), writeback="off", buffers=4,
                    idle_seal_ms=0)
    with stack as lc, Exact(lc.path, rng, ctx.seed) as exact:
        for _ in range(120):
            exact.write()
        exact.raw.flush()
        for turn in range(200):
            # Whole blocks, most of them: those may be remapped.
            first, count = exact.extent(64)
            if turn % 4:
                first, count = first // 8 * 8, (count + 7) // 8 * 8
                count = min(count, exact.sectors - first)
            exact.compare(first, read_in_pieces(rng, exact.raw.handle, first * 512, count))
        # What the SSD itself gives for the same kind of read, where it takes it.
        with dm.Raw(ssd) as raw:
            want = raw.read(0, 4 * MIB)
            wrong = 0
            for at in range(0, 4 * MIB, 1 << 16):
                with contextlib.suppress(OSError):
                    got = odd_read(raw.handle, at)
                    wrong += got != want[at:at + len(got)]
        ctx.figure("wrong by null_blk alone", wrong)


def odd_read(handle, offset):
    """8 KiB to an address in the middle of a page: blocks lie across pages."""
    area = mmap.mmap(-1, 4 * 4096)
    done = os.preadv(handle, [memoryview(area)[512:512 + 8192]], offset)
    return area[512:512 + done]


@case(kernels=("stock",), disks=(Disk("hdd", "128M"),), timeout=100, smp=1)
def pieces_for_a_strict_ssd(ctx):
    """Legal reads in pieces of 512 bytes, from an SSD of 4 KiB blocks with a virtual boundary."""
    with null_blk(virt_boundary=1) as ssd:
        pieces(ctx, ssd)


@case(kernels=("stock",), disks=(Disk("hdd", "128M"),), timeout=100)
def pieces_for_a_4kn_ssd(ctx):
    """The same without the boundary: the blocks are never cut, whatever the driver does then."""
    with null_blk() as ssd:
        pieces(ctx, ssd)


@case(kernels=("stock",), disks=(Disk("hdd", "400M"),), timeout=200)
def xfs_on_a_4kn_ssd(ctx):
    """xfs with 512-byte sectors, two lives: files and xfs_repair, which reads itself, agree."""
    rng = random.Random(ctx.seed)
    files = {f"file{i}": rng.randbytes(rng.randint(1, 60_000)) for i in range(200)}
    mount = pathlib.Path("/tmp/xfs")
    mount.mkdir(exist_ok=True)
    with null_blk() as ssd:
        stack = LcStack(ctx.hdd, ssd, format=("--force=roles",), writeback="off")
        with stack as lc:
            sh.run("mkfs.xfs", "-q", "-f", "-s", "size=512", lc.path)
            sh.run("mount", lc.path, mount)
            for name, data in files.items():
                (mount / name).write_bytes(data)
            sh.run("umount", mount)
        with stack as lc:
            sh.run("mount", lc.path, mount)
            wrong = [name for name, data in files.items() if (mount / name).read_bytes() != data]
            sh.run("umount", mount)
            assert not wrong, wrong
            sh.run("xfs_repair", "-n", lc.path)


# --- by the kernel's own target -----------------------------------------------------------------


def disks_now():
    """SCSI disks."""
    return {name for name in os.listdir("/sys/block") if name.startswith("sd")}


@contextlib.contextmanager
def served(path):
    """A SCSI disk on top of a block device, by LIO and its loopback fabric."""
    for name in ("sd_mod", "target_core_mod"):
        sh.run("modprobe", name)
    if not TARGET.exists():
        sh.run("mount", "-t", "configfs", "none", "/sys/kernel/config")
    for name in ("target_core_iblock", "tcm_loop"):
        sh.run("modprobe", name)
    before = disks_now()
    core = TARGET / "core/iblock_0/odd"
    core.mkdir(parents=True)
    (core / "control").write_text(f"udev_path={path}", encoding="ascii")
    (core / "enable").write_text("1", encoding="ascii")
    fabric = TARGET / "loopback"
    fabric.mkdir(exist_ok=True)
    port = fabric / "naa.5000000000000001"
    group = port / "tpgt_1"
    port.mkdir()
    group.mkdir()
    (group / "nexus").write_text("naa.5000000000000002", encoding="ascii")
    (group / "lun/lun_0").mkdir()
    link = group / "lun/lun_0/odd"
    link.symlink_to(core)
    try:
        name = wait.until(lambda: next(iter(disks_now() - before), None), 60, "a SCSI disk")
        node = pathlib.Path("/dev", name)
        wait.until(node.exists, 60, "its node")
        yield str(node)
    finally:
        link.unlink()
        for folder in (group / "lun/lun_0", group, port, fabric, core, core.parent):
            folder.rmdir()


@case(kernels=("stock",), disks=(Disk("ssd", "34M"), Disk("hdd", "96M")), timeout=100)
def lio_loopback(ctx):
    """Writes and reads by a LIO target on the volume, from memory at odd addresses."""
    rng = random.Random(ctx.seed)
    area = mmap.mmap(-1, 64 * 4096)
    with LcStack(ctx.hdd, ctx.ssd) as lc, served(lc.path) as path, lc.open() as raw:
        step = queue(path, "dma_alignment") + 1
        disk = os.open(path, os.O_RDWR | os.O_DIRECT)
        for turn in range(40):
            count = rng.randint(1, 64)
            at = step * rng.randrange(4096 // step)
            first = rng.randrange(4096)
            data = rng.randbytes(count * 512)
            view = memoryview(area)[at:at + len(data)]
            view[:] = data
            assert os.pwritev(disk, [view], first * 512) == len(data)
            got = raw.read(first * 512, len(data))
            bad = [i for i in range(count)
                   if got[i * 512:(i + 1) * 512] != data[i * 512:(i + 1) * 512]]
            assert not bad, f"turn {turn}: sectors {bad[:8]} of {count} moved; seed {ctx.seed}"
            view[:] = bytes(len(data))
            assert os.preadv(disk, [view], first * 512) == len(data)
            assert view == data, f"turn {turn}: read back wrong; seed {ctx.seed}"
        view.release()
        os.close(disk)
