# SPDX-License-Identifier: GPL-2.0-only
"""Little memory: swap and a file system on the volume that memory is reclaimed through."""

import contextlib
import json
import pathlib

from lclib import case, dm, sh
from lclib.disk import swap_on
from lclib.lc import LcStack
from lclib.registry import Disk

# The hard disk is slow enough for the log to fill: then swap waits for writeback.
PAIR = (Disk("ssd", "48M"), Disk("hdd", "1G", iops=500))
SWAP_SECTORS = 512 << 11
HOG = "/opt/dm-lc/bin/hog"
HOG_MIB = 288                   # the guest has less
CHURN = pathlib.Path(__file__).parent.parent / "churn.py"
MOUNT = pathlib.Path("/mnt/pressure")
FIO = ("fio", "--name=pressure", f"--directory={MOUNT}", "--rw=randwrite", "--bsrange=4k-64k",
       "--size=16M", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--fsync=16",
       "--end_fsync=1", "--unlink=1", "--output-format=terse")


@contextlib.contextmanager
def files_on(path):
    """An ext4 on the device inside the block, without a fault at its end."""
    MOUNT.mkdir(parents=True, exist_ok=True)
    sh.run("mkfs.ext4", "-q", "-F", path)
    sh.run("mount", "-t", "ext4", path, MOUNT)
    try:
        yield
    finally:
        sh.run("umount", MOUNT)
    sh.run("e2fsck", "-f", "-n", path)


def swapped():
    """Pages swapped in and out so far."""
    pairs = (line.split() for line in pathlib.Path("/proc/vmstat").read_text("ascii").splitlines())
    counts = {key: int(value) for key, value in pairs}
    return counts["pswpin"], counts["pswpout"]


def hold(ctx, lc, touches, seconds):
    """The hog and the files, until the hog has done its work."""
    before = swapped()
    rounds = 0
    hog = sh.start(HOG, "--mib", HOG_MIB, "--touches", touches, "--seconds", seconds,
                   "--seed", ctx.seed)
    try:
        while hog.poll() is None:
            sh.run(*FIO, f"--randseed={ctx.seed + rounds}")
            sh.run("python3", CHURN, MOUNT, ctx.seed + rounds, 200)
            sh.run("rm", "-r", MOUNT / f"churn-{ctx.seed + rounds}")
            assert lc.fields()["mode"] == "rw", lc.fields()
            rounds += 1
    except BaseException:
        hog.kill()
        raise
    report = json.loads(sh.finish(hog))
    came, went = (now - then for now, then in zip(swapped(), before, strict=True))
    assert report["touches"] >= touches and rounds, (report, rounds)
    # Otherwise nothing was short.
    assert went >= report["pages"] // 4 and came >= touches // 20, (went, came)
    ctx.figure("touches", report["touches"])
    ctx.figure("rounds", rounds)
    ctx.figure("pages_out", went)
    ctx.figure("pages_in", came)


def pressure(ctx, touches, seconds):
    """All of it on the two parts of one volume."""
    stack = LcStack(ctx.hdd, ctx.ssd, format=("--segment-size=256K",), buffers=8)
    with stack as lc:
        rest = dm.sectors(lc.path) - SWAP_SECTORS
        with (dm.Device("swap", dm.linear(lc.path, SWAP_SECTORS)) as swap,
              dm.Device("files", dm.linear(lc.path, rest, SWAP_SECTORS)) as files,
              files_on(files.path), swap_on(swap.path)):
            hold(ctx, lc, touches, seconds)
        lc.drain()
        assert lc.fields()["dirty"] == 0, lc.fields()


@case(kernels=("stock",), disks=PAIR, memory="224M", smp=4, timeout=600, long=True)
def swap_and_files(ctx):
    """A program larger than RAM and busy files, a minute: every page and block is right."""
    pressure(ctx, 5000, 60)


@case(kernels=("stock",), disks=PAIR, memory="224M", smp=4, timeout=2700, long=True)
def swap_and_files_for_long(ctx):
    """The same for half an hour, without a deadlock or a hung task."""
    pressure(ctx, 100000, 1800)
