# SPDX-License-Identifier: GPL-2.0-only
"""Option bypass_kb: long writes go around the log, and never under or over an older copy."""

import errno
import pathlib

from lclib import Disk, case, sh, wait
from lclib.disk import MIB, commands
from lclib.disks import Disks
from lclib.faulty import BLOCK, Breakable, Holding, check, check_hdd, content, fill
from lclib.lc import LcStack

from .promote import promote

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
# As the cases of power cuts have them, which share their boot.
RECORDED = (Disk("ssd", size="32M", kind="recorded"), Disk("hdd", size="96M", kind="recorded"))
SMALL = ("--segment-size=64K",)
FIRST = 9000    # a block that nothing else is about


def write_long(raw, first, count, tag):
    """What fill() writes, in one go."""
    raw.write(first * BLOCK, b"".join(content(block, tag)
                                      for block in range(first, first + count)))


def cache_type(path):
    """What the kernel takes a disk's cache for."""
    return pathlib.Path("/sys/block", pathlib.Path(path).name, "queue/write_cache")


def begin(raw):
    """A first record of this life is durable: before, nothing goes around the log (AR6)."""
    fill(raw, FIRST, 1, "first")
    raw.flush()


def flushed(raw):
    """Flush; whether that went well."""
    try:
        raw.flush()
    except OSError as error:
        assert error.errno == errno.EIO, error
        return False
    return True


def bypassed(lc):
    """Blocks that have gone around the log so far."""
    return lc.fields()["bypassed_bytes"] // BLOCK


def write_over_cached(lc, raw, first, count, tag):
    """Write blocks that are cached. The first such write is logged, if a search after a crash would
    find their copies, and the superblock is told (WS3). Those after it go around the log.
    """
    def goes_around():
        lc.drain()
        before = bypassed(lc)
        write_long(raw, first, count, tag)
        assert bypassed(lc) in (before, before + count), lc.fields()
        return bypassed(lc) > before

    wait.until(goes_around, 60, "a write that goes around the log")


def crash(lc):
    """Remove a volume while it is suspended, which is no clean stop: the next start replays."""
    lc.suspend()
    lc.remove()


@case(disks=PAIR, timeout=240)
def long_writes_go_around(ctx):
    """What follows the first 256 KiB of a stream is on the hard disk and not on the SSD; short
    writes are logged; both are there after a crash, and after a clean stop.
    """
    lc = LcStack(ctx.hdd, ctx.ssd, format=SMALL, bypass_kb=256, writeback="off")
    lc.format()
    lc.start()
    try:
        with lc.open() as raw:
            write_long(raw, 6000, 256, "early")
            assert bypassed(lc) == 0, bypassed(lc)
            begin(raw)
            before = lc.fields()["dirty"]
            for first in range(0, 4096, 16):
                write_long(raw, first, 16, "long")
            assert bypassed(lc) == 4096 - 64, bypassed(lc)
            assert lc.fields()["dirty"] == before + 64, lc.fields()
            fill(raw, 100, 10, "short")
            assert lc.fields()["dirty"] == before + 74, lc.fields()
            raw.flush()
            check_hdd(ctx, range(64, 100), "long")
            check_hdd(ctx, range(100, 4096), "long")
            lc.message("bypass_kb", 0)
            write_long(raw, 5000, 256, "logged")
            assert bypassed(lc) == 4096 - 64, bypassed(lc)
        crash(lc)
        lc.start()
        with lc.open() as raw:
            check(raw, range(100), "long")
            check(raw, range(100, 110), "short")
            check(raw, range(110, 4096), "long")
            check(raw, range(5000, 5256), "logged")
            check(raw, range(6000, 6256), "early")
    finally:
        lc.remove()
    with lc, lc.open() as raw:
        check(raw, range(110, 4096), "long")
    sh.run("lc-check", "--backing", ctx.hdd, ctx.ssd)


@case(disks=PAIR, timeout=240)
def the_log_decides(ctx):
    """A long write over blocks of which replay has a copy is logged, also if the copy is clean;
    over copies that replay does not see it goes around the log, and they are read no more.
    """
    lc = LcStack(ctx.hdd, ctx.ssd, format=SMALL, bypass_kb=16, writeback="off", read_cache="on")
    lc.format()
    lc.start()
    try:
        with lc.open() as raw:
            begin(raw)
            fill(raw, 10, 1, "v0")
            write_long(raw, 0, 64, "v1")
            assert bypassed(lc) == 0, lc.fields()
            check(raw, range(64), "v1")
            # The tail is behind them now.
            lc.drain()
            assert lc.fields()["dirty"] == 0, lc.fields()
            before = bypassed(lc)
            write_long(raw, 0, 64, "logged")
            assert bypassed(lc) == before, lc.fields()
            write_over_cached(lc, raw, 0, 64, "v2")
            check(raw, range(64), "v2")
            write_long(raw, 200, 64, "v2")
            lc.message("bypass_kb", 0)      # or what is read in a row is not promoted
            hot = promote(ctx, lc, raw, range(200, 264), "v2")
            lc.message("bypass_kb", 16)
            write_over_cached(lc, raw, 200, 64, "v3")
            check(raw, hot, "v3")
            before = bypassed(lc) - 64
            # Dirty ones stay, so that a crash shows them.
            fill(raw, 20, 1, "v3")
            write_long(raw, 16, 16, "v4")
            assert bypassed(lc) == before + 64, lc.fields()
            raw.flush()
        crash(lc)
        lc.start()
        with lc.open() as raw:
            check(raw, range(16), "v2")
            check(raw, range(16, 32), "v4")
            check(raw, range(32, 64), "v2")
            check(raw, range(200, 264), "v3")
    finally:
        lc.remove()


@case(disks=PAIR, timeout=120)
def clean_above_the_tail(ctx):
    """Blocks have been drained, and the superblock with the new tail is not written yet: replay
    would bring them back, so a long write over them is logged.
    """
    with Holding("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, format=SMALL, bypass_kb=16, writeback="off")
        lc.format()
        with lc, lc.open() as raw:
            fill(raw, 0, 64, "v0")
            raw.flush()
            ssd.hold_writes(0, 12 << 10)    # the superblock
            try:
                lc.message("drain")
                wait.until(ssd.held_writes, 60, "the superblock is held")
                assert lc.fields()["dirty"] == 0, lc.fields()
                write_long(raw, 0, 64, "v1")
                assert bypassed(lc) == 0, lc.fields()
            finally:
                ssd.heal()
            write_over_cached(lc, raw, 0, 64, "v2")
            check(raw, range(64), "v2")


@case(disks=PAIR, timeout=120)
def later_write_stays(ctx):
    """A write around the log is held back by the hard disk, and a later one of a block of it is
    logged and to be drained: its copy does not overtake the first one.
    """
    with Holding("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ctx.ssd, format=SMALL, bypass_kb=16, writeback="off")
        lc.format()
        with lc, lc.open() as raw:
            begin(raw)
            hdd.hold_writes(MIB + 5000 * BLOCK, MIB)
            long = sh.start("dd", "if=/dev/zero", f"of={lc.path}", "bs=64K", "count=1",
                            "oflag=direct,seek_bytes", f"seek={5000 * BLOCK}", "conv=notrunc")
            wait.until(lambda: hdd.held_writes() == 1, 60, "the write is held")
            try:
                fill(raw, 5003, 1, "new")
                fill(raw, 0, 200, "before")
                before = lc.fields()["hdd_written_bytes"]
                lc.message("drain")
                lc.wait(lambda fields: fields["hdd_written_bytes"] >= before + 200 * BLOCK,
                        what="the others are copied")
                assert hdd.held_writes() == 1, hdd.status()
                check(raw, [5003], "new")
            finally:
                hdd.heal()
            sh.finish(long)
            lc.wait(lambda fields: not fields["dirty"], what="all is drained")
            check(raw, [5003], "new")
            assert raw.read(5004 * BLOCK, BLOCK) == bytes(BLOCK)
        check_hdd(ctx, [5003], "new")


@case(disks=PAIR, timeout=120)
def flush_includes_the_disk(ctx):
    """A flush after a long write flushes the hard disk, once; one after a short write does not.
    Each flushes the SSD if something was logged, a hard disk without a volatile cache or not.
    """
    lc = LcStack(ctx.hdd, ctx.ssd, format=SMALL, bypass_kb=16, writeback="off", idle_seal_ms=0)
    lc.format()
    with lc, lc.open() as raw:
        begin(raw)
        for kind, flushes in (("write back", [0, 1, 1, 0]), ("write through", [0, 0, 0, 0])):
            cache_type(ctx.hdd).write_text(kind, encoding="ascii")
            counts = []
            for blocks, long in ((1, 0), (0, 16), (1, 16), (1, 0)):
                fill(raw, 0, blocks, kind)
                if long:
                    write_long(raw, 100, long, kind)
                before = commands(ctx.hdd)["flush"], commands(ctx.ssd)["flush"]
                raw.flush()
                flushed_ssd = commands(ctx.ssd)["flush"] > before[1]
                assert flushed_ssd or not blocks, (kind, counts)
                counts.append(commands(ctx.hdd)["flush"] - before[0])
            assert counts == flushes, (kind, counts)
            check(raw, range(100, 116), kind)
        cache_type(ctx.hdd).write_text("write back", encoding="ascii")
        write_long(raw, 200, 16, "long")
        before = commands(ctx.hdd)["flush"]
        lc.message("sync")
        assert commands(ctx.hdd)["flush"] == before + 1, before


@case(disks=PAIR, timeout=120)
def disk_refuses_a_long_write(ctx):
    """The hard disk fails writes for a while: what would have gone around the log is logged, and
    nobody is told of an error.
    """
    with Breakable("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ctx.ssd, format=SMALL, bypass_kb=16, writeback="off")
        lc.format()
        with lc, lc.open() as raw:
            begin(raw)
            write_long(raw, 0, 64, "v0")
            raw.flush()
            assert bypassed(lc) == 64, lc.fields()
            hdd.refuse_writes()
            try:
                write_long(raw, 0, 64, "v1")
                check(raw, range(64), "v1")
                assert lc.fields()["dirty"] >= 64, lc.fields()
            finally:
                hdd.heal()
            lc.drain()
            check(raw, range(64), "v1")
        check_hdd(ctx, range(64), "v1")


@case(disks=PAIR, timeout=180)
def ssd_dies_beside_long_writes(ctx):
    """Long writes go on when the SSD is given up, and all that was written is there."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, format=SMALL, bypass_kb=16, writeback="off",
                     ssd_patience_ms=500, idle_seal_ms=0)
        lc.start()
        try:
            with lc.open() as raw:
                begin(raw)
                write_long(raw, 0, 64, "around")
                fill(raw, 100, 10, "in RAM")
                ssd.fail()
                raw.flush()
                assert lc.fields()["mode"] == "degraded", lc.fields()
                write_long(raw, 32, 64, "later")
                raw.flush()
                check(raw, range(32), "around")
                check(raw, range(32, 96), "later")
                check(raw, range(100, 110), "in RAM")
        finally:
            ssd.heal()
            lc.remove()


@case(kernels=("stock",), disks=RECORDED, timeout=180)
def failed_flush_of_a_user(ctx):
    """The flush of a user fails on the hard disk while a batch is copied to it: the user is told,
    and the batch is copied again, since the disk may have dropped it.
    """
    with Disks() as disks, Holding("hdd1", ctx.hdd) as hdd:
        disks.fault_clear()
        lc = LcStack(hdd.path, ctx.ssd, format=SMALL, bypass_kb=16, writeback="off")
        lc.format()
        try:
            with lc, lc.open() as raw:
                begin(raw)
                fill(raw, 0, 100, "copied")
                fill(raw, 5000, 1, "held")
                write_long(raw, 1000, 16, "long")
                assert bypassed(lc) == 16, lc.fields()
                hdd.hold_writes(MIB + 5000 * BLOCK, BLOCK)
                try:
                    before = lc.fields()["hdd_written_bytes"]
                    lc.message("drain")
                    wait.until(lambda: hdd.held_writes() == 1, 60, "the batch is held")
                    disks.fault(disk="hdd", op="flush", errno=errno.EIO)
                    assert not flushed(raw), "the user is not told"
                    disks.fault_clear()
                finally:
                    hdd.heal()
                lc.wait(lambda fields: not fields["dirty"], what="all is drained")
                written = lc.fields()["hdd_written_bytes"] - before
                assert written >= 2 * 101 * BLOCK, written
                raw.flush()
                check(raw, range(100), "copied")
                check(raw, range(1000, 1016), "long")
        finally:
            disks.fault_clear()
