# SPDX-License-Identifier: GPL-2.0-only
"""Which devices the constructor and a start take."""

import contextlib
import fcntl
import json
import os
import pathlib
import struct

from lclib import case, dm, kmsg, scsi, sh
from lclib.disk import Device
from lclib.lc import LcStack
from lclib.registry import Disk
from lclib.scatter import Scatter

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
BLKROSET = 0x125d
HALF = 32 * 2048
FORCE = [f"--force={name}" for name in ("ssd-signature", "dirty-cache", "hdd-signature", "paired")]
ALL = [*FORCE, *(f"--force={name}" for name in ("fs-at-end", "same-disk", "other-path", "roles"))]


def set_read_only(path, wanted):
    """blockdev --setro or --setrw."""
    handle = os.open(path, os.O_RDONLY)
    fcntl.ioctl(handle, BLKROSET, struct.pack("i", wanted))
    os.close(handle)


@case(disks=PAIR, timeout=60)
def read_only_devices_are_refused(ctx):
    """By the constructor, before the superblock is read; nothing is written, no life begins."""
    stack = LcStack(ctx.hdd, ctx.ssd)
    stack.format()
    line = sh.run("lc-resume", "--print-table", "lc0", ctx.ssd, ctx.hdd).strip()
    for path in (ctx.ssd, ctx.hdd):
        set_read_only(path, 1)
        try:
            log = kmsg.Log()
            log.fresh()
            code, text = sh.result("dmsetup", "create", "lc0", "--table", line)
            said = [entry for entry in log.fresh() if "is read-only" in entry]
            assert code and said and os.path.basename(path) in said[0], (code, text, said)
            sh.result("dmsetup", "remove", "lc0")
            code, text = sh.result("lc-resume", "lc0", ctx.ssd, ctx.hdd)
            assert code == 1 and "is read-only" in text, (code, text)
        finally:
            set_read_only(path, 0)
    assert json.loads(sh.run("lc-dump", "--json", ctx.ssd))["superblock"]["epoch"] == 0
    stack.activate()
    stack.remove()


@case(disks=PAIR, timeout=90)
def disk_paired_anew_is_refused(ctx):
    """S13: the mark of a later pair keeps the cache of an earlier one from writing to the disk."""
    with dm.Device("ssd-a", dm.linear(ctx.ssd, HALF)) as one, \
            dm.Device("ssd-b", dm.linear(ctx.ssd, HALF, HALF)) as two:
        stack = LcStack(ctx.hdd, one.path, format=("--in-place", "--no-mark"),
                        writeback="off").start()
        with Device(stack.path) as volume:
            volume.write(40 << 20, b"\x11" * 4096)
            volume.flush()
        line = stack.table().strip()
        sh.run("dmsetup", "suspend", "lc0")
        sh.run("lc-remove", "--no-drain", "lc0")
        sh.run("lc-format", *FORCE, "--backing", ctx.hdd, two.path)
        code, text = sh.result("lc-resume", "lc0", one.path, ctx.hdd)
        assert code == 1 and "bears the mark of cache" in text, (code, text)
        log = kmsg.Log()
        log.fresh()
        code, text = sh.result("dmsetup", "create", "lc0", "--table", line)
        said = [entry for entry in log.fresh() if "bears the mark of another cache" in entry]
        sh.result("dmsetup", "remove", "lc0")
        assert code and said, (code, text, said)
        with Device(ctx.hdd) as raw:
            assert raw.read(40 << 20, 4096) != b"\x11" * 4096
        later = LcStack(ctx.hdd, two.path)
        later.formatted = True
        with later, later.open() as raw:
            raw.write(0, b"x" * 4096)


def sysfs(path):
    """The folder of a block device."""
    number = os.stat(path).st_rdev
    return pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()


def written(paths):
    """Writes, sectors written, discards and flushes of each so far."""
    stats = [(sysfs(path) / "stat").read_text(encoding="ascii").split() for path in paths]
    return [[stat[i] for i in (4, 6, 11, 15)] for stat in stats]


def unfit(ctx, path, reason, remedy, below=()):
    """As SSD and as hard disk the device is refused, by lc-format and by the constructor, with its
    name, reason and remedy, and no disk has seen a write.
    """
    log = kmsg.Log()
    disks = (path, ctx.ssd, ctx.hdd, *below)
    before = written(disks)
    for ssd, hdd in ((path, ctx.hdd), (ctx.ssd, path)):
        code, text = sh.result("lc-format", "--yes", *ALL, "--backing", hdd, ssd)
        said = [line for line in text.splitlines() if f"lc-format: {path}: " in line]
        assert code == 1 and len(said) == 1 and reason in said[0] and remedy in said[0], text
        log.fresh()
        code, text = sh.result("dmsetup", "create", "lc0", "--table",
                               dm.table(dm.lc(hdd, ssd, 32 * 2048)).strip())
        sh.result("dmsetup", "remove", "lc0")
        said = [line for line in log.fresh() if f" {sysfs(path).name} {reason}" in line]
        assert code and said and remedy in said[0], (code, text, said)
    assert written(disks) == before, "something was written"


@contextlib.contextmanager
def null_block(**options):
    """One device of the kernel's null_blk."""
    sh.run("modprobe", "null_blk", "nr_devices=1",
           *(f"{key}={value}" for key, value in options.items()))
    try:
        yield "/dev/nullb0"
    finally:
        sh.run("rmmod", "null_blk")


@case(kernels=("stock",), disks=PAIR, timeout=90)
def zoned_disks_are_refused(ctx):
    """Host-managed zones: by null_blk, by a SCSI disk, and what is mapped onto one."""
    words = ("is a host-managed zoned disk, written in sequence only", "use another")
    with null_block(gb=1, zoned=1, zone_size=64) as path:
        assert (sysfs(path) / "queue/zoned").read_text(encoding="ascii") == "host-managed\n"
        unfit(ctx, path, *words)
        with dm.Device("zones", dm.linear(path, 256 * 2048)) as zones:
            unfit(ctx, zones.path, *words, below=(path,))
    with scsi.debug(1, dev_size_mb=256, zbc="managed", zone_size_mb=16) as (path,):
        unfit(ctx, path, *words)


@case(kernels=("stock",), disks=PAIR, timeout=60)
def large_blocks_are_refused(ctx):
    """Logical blocks of 8 KiB, as a target says it has; those of 4 KiB are taken."""
    with Scatter(ctx.hdd, pieces=0, block=8192) as large:
        unfit(ctx, large.path, "has logical blocks above 4096 bytes", "use a disk with blocks of "
              "up to 4096")
    with Scatter(ctx.hdd, pieces=0, block=4096) as small:
        LcStack(small.path, ctx.ssd).format()


@case(kernels=("stock",), disks=PAIR, timeout=120)
def integrity_profiles_are_no_reason(ctx):
    """SCSI disks that verify protection information with each command, as SSD and hard disk: the
    volume works and has none of it.
    """
    with scsi.debug(2, dev_size_mb=64, per_host_store=1, dif=1, dix=1) as (hdd, ssd):
        for path in (hdd, ssd):
            profile = sysfs(path) / "integrity"
            assert (profile / "format").read_text(encoding="ascii") == "T10-DIF-TYPE1-CRC\n"
            assert (profile / "write_generate").read_text(encoding="ascii") == "1\n"
            assert (profile / "read_verify").read_text(encoding="ascii") == "1\n"
        data = bytes(range(256)) * 4096
        stack = LcStack(hdd, ssd)
        with stack, stack.open() as raw:
            for i in range(8):
                raw.write(i << 21, data)
            raw.write(512, data[:512])
            raw.flush()
        with stack:
            profile = sysfs(stack.path) / "integrity/format"
            assert not profile.exists() or "none" in profile.read_text(encoding="ascii")
            with stack.open() as raw:
                assert all(raw.read(i << 21, len(data)) == data for i in range(8))
            stack.drain()
            fields = stack.fields()
            assert (fields["mode"], fields["dirty"], fields["lost"]) == ("rw", 0, 0), fields
        with Device(hdd) as raw:
            assert all(raw.read((1 << 20) + (i << 21), len(data)) == data for i in range(8))
