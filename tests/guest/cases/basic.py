# SPDX-License-Identifier: GPL-2.0-only
"""The volume does what a disk does."""

from lclib import case, sh
from lclib.lc import LcStack
from lclib.registry import Disk

PAIR = (Disk("ssd", "32M"), Disk("hdd", "256M"))


def fio(path, *words):
    """One fio job that verifies what it reads; fails on any mismatch."""
    return sh.run("fio", "--name=job", f"--filename={path}", "--direct=1", "--ioengine=libaio",
                  "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0",
                  "--randrepeat=1", "--output-format=terse", *words)


@case(disks=PAIR, timeout=120)
def writes_read_back(ctx):
    """Random writes, more than the cache holds, read back right; so does the HDD afterwards."""
    stack = LcStack(ctx.hdd, ctx.ssd)
    debug = ctx.kernel == "debug"
    load = ("--rw=randwrite", "--bsrange=4k-16k" if debug else "--bs=4k", "--iodepth=32",
            "--size=40M" if debug else "--size=128M")
    with stack as lc:
        fio(lc.path, *load)
        lc.drain()
        assert lc.fields()["dirty"] == 0, lc.fields()
    with stack as lc:
        fio(lc.path, *load, "--verify_only")
