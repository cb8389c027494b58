# SPDX-License-Identifier: GPL-2.0-only
"""Which devices the constructor and a start take."""

import fcntl
import json
import os
import struct

from lclib import case, dm, kmsg, sh
from lclib.disk import Device
from lclib.lc import LcStack
from lclib.registry import Disk

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
BLKROSET = 0x125d
HALF = 32 * 2048
FORCE = [f"--force={name}" for name in ("ssd-signature", "dirty-cache", "hdd-signature", "paired")]


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
        stack = LcStack(ctx.hdd, one.path, format=("--in-place", "--no-mark"), writeback="off")
        stack.format()
        stack.activate()
        with Device(stack.path) as volume:
            volume.write(40 << 20, b"\x11" * 4096)
            volume.flush()
        line = stack.table().strip()
        sh.run("dmsetup", "suspend", "lc0")
        sh.run("lc-remove", "--no-flush", "lc0")
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
