# SPDX-License-Identifier: GPL-2.0-only
"""Discards beside writeback, beside each other, beside mode events, and after a power cut.

As in hazards.py, commands are kept waiting at the moment that matters, or counted, and what a case
waits for are states, never times.
"""

import contextlib
import os
import pathlib

from lclib import Disk, case, dm, sh, wait
from lclib.calls import Calls
from lclib.disk import MIB, commands
from lclib.disks import Disks
from lclib.faulty import BLOCK, Breakable, Holding, content, events, fill
from lclib.lc import LcStack

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
RECORDED = (Disk("ssd", "8M", kind="recorded"), Disk("hdd", "32M", kind="recorded"))
SMALL = ("--segment-size=64K",)
LATE = 5_000            # ms: by then a broken module has done what it must not do
FOR_EVER = 600_000      # ms, until it is let go
PIECES = 2_000


def discard(volume, block, count=1):
    """Begin to discard blocks; whoever calls waits for it. The kernel lets one at a time in."""
    return sh.start("blkdiscard", "--force", "-o", block * BLOCK, "-l", count * BLOCK, volume.path)


def in_pieces(lc, length):
    """A discard of the volume comes as bios of so many bytes, all at once."""
    number = os.stat(lc.path).st_rdev
    limit = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}",
                         "queue/discard_max_bytes")
    limit.write_text(str(length), encoding="ascii")
    assert int(limit.read_text(encoding="ascii")) == length


def ends(ctx, process, what):
    """The discard ends. Reads bring along the disk's answer, on which QEMU may sit."""
    with dm.Raw(ctx.hdd) as hdd:
        wait.until(lambda: hdd.read(0, BLOCK) and process.poll() is not None, 60, what)
    sh.finish(process)


def all_commands(path):
    """Commands that a disk has been sent, of all kinds."""
    words = pathlib.Path("/sys/block", pathlib.Path(path).name, "stat").read_text("ascii").split()
    return [int(words[at]) for at in (0, 4, 11, 15)]    # reads, writes, discards, FLUSHes


def on_hdd(ctx, block):
    """What the bare hard disk holds of a block."""
    with dm.Raw(ctx.hdd) as hdd:
        return hdd.read(MIB + block * BLOCK, BLOCK)


@contextlib.contextmanager
def copy_held(lc, ssd, block, tag):
    """Writeback drains everything, and is held where it reads this block from the SSD."""
    with ssd.open() as raw:
        at = next(at for at in range(MIB, raw.size, BLOCK)
                  if raw.read(at, BLOCK) == content(block, tag))
    ssd.hold(at, BLOCK)
    try:
        lc.message("writeback")
        wait.until(ssd.held, 60, f"block {block} on its way")
        yield
    finally:
        ssd.heal()


@contextlib.contextmanager
def trim_held(disks, offset, delay_ms):
    """The hard disk is late with the discard of a block; yields what tells whether it has come."""
    disks.fault_clear()
    rule = disks.fault(disk="hdd", op="trim", offset=offset, length=BLOCK, errno=0,
                       delay_ms=delay_ms, count=1)["id"]
    try:
        yield lambda: next(fault["hits"] for fault in disks.faults()["faults"]
                           if fault["id"] == rule)
    finally:
        disks.fault_clear()


@case(kernels=("stock",), disks=PAIR, timeout=90)
def of_uncached_blocks_waits_for_no_batch(ctx):
    """A batch of writeback is held; a discard of blocks that nobody cached ends (D13)."""
    with (Holding("ssd1", ctx.ssd) as ssd,
          LcStack(ctx.hdd, ssd.path, format=SMALL, writeback="off", writeback_depth=1) as lc,
          lc.open() as raw):
        fill(raw, 7, 1, "batch")
        fill(raw, 107, 1, "batch")
        raw.flush()
        with copy_held(lc, ssd, 7, "batch"):
            ends(ctx, discard(lc, 3000, 100), "a discard of blocks that nobody cached")
            # Between two that are listed.
            ends(ctx, discard(lc, 8, 99), "a discard of blocks that are not in the batch")
        lc.wait(lambda fields: not fields["dirty"], what="the end of the drain")
        for block in (7, 107):
            assert on_hdd(ctx, block) == content(block, "batch"), block


@case(kernels=("stock",), disks=RECORDED, timeout=90)
def waits_for_its_own_copy(ctx):
    """A discard waits for a copy of its blocks, and for no other; no copy lands after it (C5)."""
    with (Holding("ssd1", ctx.ssd) as ssd,
          LcStack(ctx.hdd, ssd.path, format=SMALL, writeback="off", writeback_depth=1) as lc,
          dm.Device("above", dm.linear(lc.path)) as other, lc.open() as raw):
        for block in (7, 107, 207):
            fill(raw, block, 1, "own")
        raw.flush()
        with copy_held(lc, ssd, 7, "own"):
            with Calls("lc_discard_map") as come:
                waiting = discard(lc, 7)
                wait.until(come.count, 60, "the discard of the block that is being copied")
            # Both came later than that one, so it has been looked at.
            ends(ctx, discard(other, 3000), "a discard of a block that nobody cached")
            ends(ctx, discard(other, 207), "a discard of a block that is still to be copied")
            assert waiting.poll() is None, "a discard overtook a copy of its block"
        ends(ctx, waiting, "the discard behind the copy")
        lc.wait(lambda fields: not fields["dirty"], what="the end of the drain")
        assert on_hdd(ctx, 107) == content(107, "own")
        for block in (7, 207):
            assert on_hdd(ctx, block) == bytes(BLOCK), (block, on_hdd(ctx, block)[:10])


@case(kernels=("stock",), disks=RECORDED, timeout=90)
def newer_write_survives(ctx):
    """What is written while a discard is on its way is not drained before it (C5)."""
    with (Disks() as disks,
          LcStack(ctx.hdd, ctx.ssd, format=SMALL, writeback="off") as lc, lc.open() as raw):
        fill(raw, 7, 1, "older")
        raw.flush()
        with trim_held(disks, MIB + 7 * BLOCK, LATE) as hits:
            late = discard(lc, 7)
            wait.until(hits, 60, "the discard on its way")
            fill(raw, 7, 1, "newer")
            raw.flush()
            assert raw.read(7 * BLOCK, BLOCK) == content(7, "newer")
            lc.message("writeback")
            ends(ctx, late, "the discard")
        assert raw.read(7 * BLOCK, BLOCK) == content(7, "newer")
        lc.wait(lambda fields: not fields["dirty"], what="the end of the drain")
        assert on_hdd(ctx, 7) == content(7, "newer"), on_hdd(ctx, 7)[:10]


@case(kernels=("stock",), disks=RECORDED, timeout=90)
def dropped_blocks_stay_dropped(ctx):
    """Many discards in one record, then the power goes: no block is back, newer ones are there."""
    with Disks() as disks:
        disks.fault_clear()
        lc = LcStack(ctx.hdd, ctx.ssd, format=SMALL, writeback="off", idle_seal_ms=0)
        lc.format()
        lc.activate()
        with lc.open() as raw:
            fill(raw, 0, 400, "dropped")
            raw.flush()
            in_pieces(lc, BLOCK)
            raw.discard(0, 300 * BLOCK)
            assert lc.fields()["cached"] == 100, lc.fields()
            fill(raw, 10, 1, "newer")
            raw.flush()
        disks.cut(seed=ctx.seed, policy="drop-all")
        sh.result("dmsetup", "remove", lc.name)
        disks.restore()
        lc.activate()
        with lc.open() as raw:
            back = [block for block in range(300)
                    if raw.read(block * BLOCK, BLOCK) == content(block, "dropped")]
            assert not back, back
            for block, tag in (10, "newer"), *((block, "dropped") for block in range(300, 400)):
                assert raw.read(block * BLOCK, BLOCK) == content(block, tag), block
        lc.remove()


@case(kernels=("stock",), disks=PAIR, timeout=120)
def take_few_flushes(ctx):
    """2,000 discards of cached blocks that come at once: few FLUSHes and few records (D13)."""
    with (dm.Device("slow", dm.delay(ctx.ssd, 0, 20)) as ssd,
          LcStack(ctx.hdd, ssd.path, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw):
        raw.write(0, b"cached".ljust(BLOCK) * PIECES)
        raw.flush()
        assert lc.fields()["cached"] == PIECES, lc.fields()
        in_pieces(lc, BLOCK)
        before = commands(ctx.ssd)
        raw.discard(0, PIECES * BLOCK)
        after = commands(ctx.ssd)
        assert lc.fields()["cached"] == 0, lc.fields()
    spent = {kind: after[kind] - before[kind] for kind in ("write", "flush")}
    ctx.figure("commands for 2,000 discards", spent)
    assert max(spent.values()) <= PIECES // 20, spent


@case(kernels=("stock",), disks=PAIR, timeout=90)
def without_one_below_cost_nothing(ctx):
    """If nothing is cached and the hard disk has no discard, a discard of the volume costs no
    command; it still takes what is cached out of the cache."""
    limit = pathlib.Path("/sys/block", pathlib.Path(ctx.hdd).name, "queue/discard_max_bytes")
    before = limit.read_text(encoding="ascii")
    limit.write_text("0", encoding="ascii")
    try:
        with LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw:
            seen = [all_commands(path) for path in (ctx.ssd, ctx.hdd)]
            raw.discard(0, raw.size)
            assert [all_commands(path) for path in (ctx.ssd, ctx.hdd)] == seen, seen
            fill(raw, 7, 1, "cached")
            raw.flush()
            raw.discard(0, raw.size)
            assert lc.fields()["cached"] == 0, lc.fields()
    finally:
        limit.write_text(before, encoding="ascii")


@case(kernels=("stock",), disks=RECORDED, timeout=90)
def events_do_not_queue_behind(ctx):
    """A discard is held by the hard disk; that the mode changes is told nevertheless (D14)."""
    with Disks() as disks, Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, format=(*SMALL, "--in-place", "--no-mark"),
                     ssd_patience_ms=0, writeback="off")
        lc.format()
        lc.activate()
        with lc.open() as raw, trim_held(disks, 1000 * BLOCK, FOR_EVER) as hits:
            held = discard(lc, 1000)
            wait.until(hits, 60, "the discard on its way")
            before = events(lc)
            ssd.fail()
            with contextlib.suppress(OSError):
                fill(raw, 0, 1, "nowhere")
                raw.flush()
                raise AssertionError("a FLUSH that the SSD failed ended well")
            lc.wait(lambda fields: fields["mode"] == "fail", what="mode fail")
            wait.until(lambda: events(lc) > before, 60, "an event")
            assert held.poll() is None, "nothing was held"
            disks.fault_clear()
            ends(ctx, held, "the discard")
        lc.remove()
        ssd.heal()
