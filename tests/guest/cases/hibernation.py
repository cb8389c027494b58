# SPDX-License-Identifier: GPL-2.0-only
"""Hibernation: what the disks hold when the memory comes back (S22)."""

import contextlib
import errno
import fcntl
import os
import pathlib

from lclib import case, dm, sh
from lclib.disk import MIB, image, put, swap_on
from lclib.faulty import BLOCK, content, fill
from lclib.lc import LcStack
from lclib.registry import Disk

POWER = pathlib.Path("/sys/power")
# The hard disk is slow, so that a drain takes longer than an image.
DISKS = (Disk("ssd", "64M"), Disk("hdd", "128M", iops=30), Disk("swap", "512M"))
IMAGE = b"S1SUSPEND\0"          # of a swap device, where SWAPSPACE2 was
SIGNATURES = 4096 - 20          # bytes: the one that was there, and the one that is
SNAPSHOT_FREE_SWAP_PAGES = 0x3309
BLOCKS = 2000
STRIDE = 7                      # so that no two blocks are neighbours
SEGMENTS = ("--segment-size=64K",)
SLOW = {"high_watermark": 1, "low_watermark": 0, "writeback": "off", "writeback_batch": 256}


def put_power(name, text):
    """Write to a file of /sys/power, once: the error of a write is not tried again."""
    handle = os.open(POWER / name, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def number(path):
    """Of a block device, as /sys/power/resume takes it."""
    device = os.stat(path).st_rdev
    return f"{os.major(device)}:{os.minor(device)}"


def hibernate(mode):
    """Write an image, and so on; back when memory is restored, or that failed."""
    put_power("disk", mode)
    put_power("state", "disk")


def blocks():
    """The places of the blocks that fill_blocks() writes."""
    return range(0, BLOCKS * STRIDE, STRIDE)


def fill_blocks(raw):
    """Blocks apart from one another."""
    for block in blocks():
        fill(raw, block, 1, "one")
    raw.flush()


def present(path, offset, tags=None):
    """How many of these blocks a device has from that byte on; `tags` names other contents."""
    with dm.Raw(path) as raw:
        data = raw.read(offset, BLOCKS * STRIDE * BLOCK)
    return sum(data[block * BLOCK:(block + 1) * BLOCK]
               == content(block, (tags or {}).get(block, "one")) for block in blocks())


def draining(lc, swap):
    """Blocks in the log, their drain under way, and a place for the image."""
    with lc.open() as raw:
        fill_blocks(raw)
    put_power("resume", number(swap))
    lc.message("writeback", "on")
    lc.wait(lambda fields: fields["dirty"] < BLOCKS - 100, 120, "the drain is under way")


def agree(lc):
    """The hard disk holds what memory calls clean, and nothing else; returns how much that is."""
    with lc.paused():
        fields = lc.fields()
        assert fields["mode"] == "rw", fields
        found = present(lc.backing, MIB)
        assert found == BLOCKS - fields["dirty"], (found, fields)
    return found


@case(kernels=("stock",), disks=DISKS, timeout=400, memory="512M", hibernates=True, sampled=3)
def resume_goes_on(ctx):
    """In the middle of a drain the machine is hibernated, off and on: disks and memory agree."""
    with LcStack(ctx.hdd, ctx.ssd, format=SEGMENTS, **SLOW) as lc:
        with swap_on(ctx.swap):
            draining(lc, ctx.swap)
            hibernate("reboot")
            ctx.figure("drained", agree(lc))
        # Later writes go into the log after those that the memory knew; then a crash, and a drain.
        changed = {block: "two" for block in range(0, BLOCKS * STRIDE, 10 * STRIDE)}
        with lc.open() as raw:
            for block, tag in changed.items():
                fill(raw, block, 1, tag)
            raw.flush()
        with lc.paused():
            crash = {path: image(path) for path in (lc.cache, lc.backing)}
        lc.remove()
        for path, data in crash.items():
            put(path, data)
        lc.activate()
        assert present(lc.path, 0, changed) == BLOCKS
        lc.drain()
        assert present(lc.backing, MIB, changed) == BLOCKS


def has_image(swap):
    """Whether the swap device holds an image; after a restore, or a try, it looks like swap."""
    with dm.Raw(swap) as raw:
        return raw.read(0, BLOCK)[SIGNATURES + 10:] == IMAGE


def keep_image(swap):
    """Write an image of memory to the swap device, and go on without it.

    Linux 6.1 opens the swap device exclusively to test an image that it has written, which is
    refused while it is swap.  Other kernels restore the image; both look the same from here.
    What the image takes of the swap device stays taken, and keeps it from being switched off.
    """
    with swap_on(swap):
        put_power("resume", number(swap))
        with contextlib.suppress(OSError):
            hibernate("test_resume")
        with open("/dev/snapshot", "rb", buffering=0) as snapshot:
            fcntl.ioctl(snapshot, SNAPSHOT_FREE_SWAP_PAGES)


def restore(swap):
    """Restore the image; returns only if that is refused, which some kernels call an error."""
    if not has_image(swap):
        with dm.Raw(swap) as raw:
            first = raw.read(0, BLOCK)
            raw.write(0, first[:SIGNATURES] + first[SIGNATURES + 10:] + IMAGE)
    with contextlib.suppress(OSError):
        put_power("resume", number(swap))


TWO = (Disk("ssd", "16M"), Disk("hdd", "64M"), Disk("swap", "512M"), Disk("note", "1M"))
USED = b"a later life was there".ljust(BLOCK)


def noted(path):
    """What a disk says that is not part of memory."""
    with dm.Raw(path) as raw:
        return raw.read(0, BLOCK) == USED


def note(path):
    """Say it."""
    with dm.Raw(path) as raw:
        raw.write(0, USED)


@case(kernels=("stock",), disks=TWO, timeout=300, memory="512M")
def later_life_is_not_overwritten(ctx):
    """The pair was used since the snapshot: the restored volume reads and writes nothing."""
    lc = LcStack(ctx.hdd, ctx.ssd, format=SEGMENTS, writeback="off")
    with lc, lc.open() as raw:
        fill(raw, 0, 100, "one")
        raw.flush()
        with dm.Raw(ctx.note) as other:
            other.wipe()
        raw.close()
        keep_image(ctx.swap)
        if not noted(ctx.note):
            lc.remove()
            lc.activate()
            with lc.open() as later:
                fill(later, 50, 100, "two")
            lc.remove()
            note(ctx.note)
            restore(ctx.swap)
            raise AssertionError("the image is not restored: " + sh.run("dmesg")[-2000:])
        before = image(ctx.ssd), image(ctx.hdd)
        fields = lc.fields()
        assert fields["mode"] == "fail", fields
        said = sh.run("dmesg")
        assert "was used since the system was hibernated" in said, said[-2000:]
        assert "remove the volume, and start it again with lc-resume" in said, said[-2000:]
        with lc.open() as raw:
            for access in (lambda: raw.read(0, BLOCK), lambda: raw.write(0, bytes(BLOCK)),
                           raw.flush):
                try:
                    access()
                    raise AssertionError("a volume of an earlier life is used")
                except OSError as error:
                    assert error.errno == errno.EIO, error
        lc.remove()
        assert (image(ctx.ssd), image(ctx.hdd)) == before, "the restored volume has written"
        # The remedy.
        lc.activate()
        with lc.open() as raw:
            for block in range(150):
                tag = "one" if block < 50 else "two"
                assert raw.read(block * BLOCK, BLOCK) == content(block, tag), block


@case(kernels=("stock",), disks=TWO, timeout=300, memory="512M")
def image_of_an_earlier_life_is_refused(ctx):
    """Where a volume was started no image is restored: kernel and volume go on."""
    with dm.Raw(ctx.note) as other:
        other.wipe()
    lc = LcStack(ctx.hdd, ctx.ssd, format=SEGMENTS, writeback="off")
    with lc:
        with lc.open() as raw:
            fill(raw, 0, 100, "one")
        keep_image(ctx.swap)
        assert not noted(ctx.note), "the image was restored over a volume of a later life"
        lc.remove()
        lc.activate()
        note(ctx.note)
        with lc.open() as raw:
            fill(raw, 50, 100, "two")
        restore(ctx.swap)
        assert "the image of hibernation is not restored" in sh.run("dmesg"), sh.run("dmesg")
        assert lc.fields()["mode"] == "rw", lc.status()
        with lc.open() as raw:
            fill(raw, 150, 10, "three")
            raw.flush()
            for block in range(160):
                tag = "one" if block < 50 else "two" if block < 150 else "three"
                assert raw.read(block * BLOCK, BLOCK) == content(block, tag), block


@case(kernels=("stock",), disks=(Disk("ssd", "8M"), Disk("hdd", "64M")), timeout=300, sampled=3)
def full_log_does_not_hang(ctx):
    """Under writers that wait for room, hibernation begins and is given up: all go on."""
    with LcStack(ctx.hdd, ctx.ssd, format=SEGMENTS) as lc:
        load = sh.start("fio", "--name=load", f"--filename={lc.path}", "--rw=randwrite",
                        "--ioengine=libaio", "--direct=1", "--bs=4k", "--iodepth=32",
                        "--numjobs=2", "--size=24M", "--offset_increment=24M", "--time_based",
                        "--runtime=600", "--fsync=100", "--verify=crc32c", "--verify_fatal=1",
                        "--verify_backlog=256", "--output-format=terse")
        try:
            lc.wait(lambda fields: fields["free_segments"] < 16, 120, "the log is full")
            for level in ("freezer", "devices", "core"):
                before = lc.fields()["head_seq"]
                put_power("pm_test", level)
                hibernate("shutdown")
                lc.wait(lambda fields, seq=before: fields["head_seq"] > seq, 120, "they go on")
                assert lc.fields()["mode"] == "rw", lc.status()
                assert load.poll() is None, load.communicate()[0]
        finally:
            put_power("pm_test", "none")
            load.terminate()
            output, _ = load.communicate()
        assert "bad" not in output.lower(), output


@case(kernels=("stock",), disks=(Disk("ssd", "16M"), Disk("hdd", "64M")), timeout=200,
      memory="512M")
def swap_on_a_volume_is_refused(ctx):
    """Where a volume is swap the image would wait for it: hibernation ends with a reason."""
    with LcStack(ctx.hdd, ctx.ssd, format=SEGMENTS) as lc, swap_on(lc.path):
        put_power("resume", number(lc.path))
        try:
            hibernate("shutdown")
            raise AssertionError("the machine hibernated")
        except OSError as error:
            assert error.errno == errno.EBUSY, error
        said = sh.run("dmesg")
        assert "hibernation is refused while the volume is swap: swapoff it" in said, said[-2000:]
        assert lc.fields()["mode"] == "rw", lc.status()
