# SPDX-License-Identifier: GPL-2.0-only
"""Option warm: after a crash clean copies are found on the SSD again, and never an old one."""

import random

from lclib import Disk, case, dm, sh
from lclib.disk import MIB
from lclib.disks import Disks
from lclib.faulty import BLOCK, check, check_hdd, fill
from lclib.lc import LcStack

from .around import begin, bypassed, write_long
from .promote import expect_hits, hits, on_hdd, promote, reads

RECORDED = (Disk("ssd", size="32M", kind="recorded"), Disk("hdd", size="96M", kind="recorded"))
PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
SMALL = ("--segment-size=64K",)


def stack(ctx, **options):
    """A volume of few buffers: their number of segments stays cold."""
    return LcStack(ctx.hdd, ctx.ssd, format=SMALL,
                   **{"writeback": "off", "idle_seal_ms": 0, "buffers": 4, **options})


def crash(lc):
    """Remove a volume while it is suspended, which is no clean stop: the next start replays."""
    lc.suspend()
    lc.remove()


def searched(lc):
    """The search is over; the status then."""
    return lc.wait(lambda fields: not fields["warm_left"] and fields["warmed"], what="a warm cache")


def drained(lc, raw):
    """All is on the hard disk, and the log's end is durable."""
    raw.flush()
    lc.message("drain")
    lc.wait(lambda fields: not fields["dirty"], what="a drained log")


@case(disks=PAIR, timeout=240)
def written_blocks_come_back(ctx):
    """Blocks of the log that were drained before a crash are read from the SSD after it; those
    overwritten since then with their new content, those discarded from the hard disk.
    """
    lc = stack(ctx).start()
    with lc.open() as raw:
        fill(raw, 0, 1500, "first")
        drained(lc, raw)
        fill(raw, 100, 100, "second")
        drained(lc, raw)
        raw.discard(300 * BLOCK, 100 * BLOCK)
        lc.settle()
        fill(raw, 500, 100, "dirty")
        raw.flush()
    crash(lc)
    lc.activate()
    fields = searched(lc)
    ctx.figure("warmed", fields["warmed"])
    with lc.open() as raw:
        expect_hits(ctx, raw, range(100), "first")
        expect_hits(ctx, raw, range(100, 200), "second")
        expect_hits(ctx, raw, range(500, 600), "dirty")
        expect_hits(ctx, raw, range(600, 1500), "first")
        before = reads(ctx)[1]
        with dm.Raw(ctx.hdd) as hdd:
            bare = hdd.read(MIB + 300 * BLOCK, 100 * BLOCK)
        assert raw.read(300 * BLOCK, 100 * BLOCK) == bare
        assert reads(ctx)[1] - before == 2 * 800, "discarded blocks are cached"
    lc.remove()
    sh.run("lc-check", "--backing", ctx.hdd, ctx.ssd)


@case(kernels=("stock",), disks=RECORDED, timeout=300, sampled=3)
def promoted_blocks_come_back(ctx):
    """The power is cut with a cache of promoted blocks: nearly all are read from the SSD again.
    Then once more, after some of them were overwritten.
    """
    with Disks() as disks:
        disks.fault_clear()
        lc = stack(ctx, read_cache="on")
        lc.format()
        on_hdd(ctx, 0, 1000, "old")
        with dm.Raw(ctx.hdd) as hdd:
            hdd.flush()
        lc.start()
        with lc.open() as raw:
            hot = promote(ctx, lc, raw, range(1000), "old")
        disks.cut(seed=ctx.seed, policy="drop-all")
        sh.result("dmsetup", "remove", lc.name)
        disks.restore()
        lc.activate()
        ctx.figure("warmed", searched(lc)["warmed"])
        with lc.open() as raw:
            found = hits(ctx, raw, hot, "old")
            ctx.figure("share", f"{len(found)} of {len(hot)}")
            assert len(found) >= len(hot) * 95 // 100, (len(found), len(hot))
            fill(raw, 0, 100, "new")
            raw.flush()
        disks.cut(seed=ctx.seed + 1, policy="drop-all")
        sh.result("dmsetup", "remove", lc.name)
        disks.restore()
        lc.activate()
        searched(lc)
        with lc.open() as raw:
            expect_hits(ctx, raw, range(100), "new")
            rest = [block for block in hot if block >= 100]
            found = hits(ctx, raw, rest, "old")
            assert len(found) >= len(rest) * 95 // 100, (len(found), len(rest))
        lc.remove()


@case(disks=PAIR, timeout=240)
def search_can_be_off(ctx):
    """With warm off nothing comes back, neither then nor after the next crash.
    """
    lc = stack(ctx).start()
    with lc.open() as raw:
        fill(raw, 0, 500, "first")
        drained(lc, raw)
    crash(lc)
    lc.options["warm"] = "off"
    lc.activate()
    with lc.open() as raw:
        check(raw, range(500), "first")
        assert not hits(ctx, raw, range(500), "first")
        assert lc.fields()["warmed"] == 0, lc.fields()
        fill(raw, 500, 20, "second")
        drained(lc, raw)
        lc.message("warm", "on")
    crash(lc)
    lc.options["warm"] = "on"
    lc.activate()
    with lc.open() as raw:
        fields = searched(lc)
        assert fields["warmed"] <= 20, fields
        check(raw, range(500), "first")
        check(raw, range(500, 520), "second")
    lc.remove()


@case(disks=PAIR, timeout=300, sampled=3)
def writes_around_the_log_are_not_lost(ctx):
    """Long writes around the log over cached blocks, in turn with crashes: the cache never has what
    was there before.
    """
    rng = random.Random(ctx.seed)
    tags = ["first"] * 2000
    around = 0
    lc = stack(ctx, bypass_kb=16)
    lc.format()
    lc.start()
    with lc.open() as raw:
        fill(raw, 0, 2000, "first")
        drained(lc, raw)
    for turn in range(6):
        with lc.open() as raw:
            for number in range(4):
                first = rng.randrange(1800)
                tag = f"turn {turn} {number}"
                write_long(raw, first, 200, tag)
                tags[first:first + 200] = [tag] * 200
                if rng.randrange(2):
                    raw.flush()
                    lc.drain()
            raw.flush()
            lc.drain()
            around += bypassed(lc)
            for block in rng.sample(range(2000), 100):
                check(raw, [block], tags[block])
        crash(lc)
        lc.activate()
        if rng.randrange(2):
            lc.wait(lambda fields: not fields["warm_left"], what="a search")
        with lc.open() as raw:
            for block in range(2000):
                check(raw, [block], tags[block])
    ctx.figure("bypassed", around)
    assert around, "no write has gone around the log"
    lc.remove()


@case(kernels=("stock",), disks=PAIR, timeout=240, sampled=3)
def writes_go_on_during_the_search(ctx):
    """The ring wraps while the search is at work: it ends, and all is right."""
    rng = random.Random(ctx.seed)
    tags = {}
    lc = stack(ctx, read_cache="on", writeback="on", buffers=8).start()
    for turn in range(4):
        with lc.open() as raw:
            for number in range(150):
                first = rng.randrange(20000)
                tag = f"turn {turn} {number}"
                fill(raw, first, 100, tag)
                tags.update((block, tag) for block in range(first, first + 100))
            raw.flush()
            for block in rng.sample(sorted(tags), 300):
                check(raw, [block], tags[block])
        crash(lc)
        lc.activate()
    with lc.open() as raw:
        lc.wait(lambda fields: not fields["warm_left"], what="a search")
        for block in sorted(tags):
            check(raw, [block], tags[block])
    lc.remove()


@case(kernels=("stock",), disks=RECORDED, timeout=240)
def volatile_reads_stay_cold(ctx):
    """Blocks are written around the log, promoted by reads, and the power is cut before a FLUSH:
    the hard disk has forgotten them, and the cache has not what it read.
    """
    with Disks() as disks:
        disks.fault_clear()
        lc = stack(ctx, read_cache="on", bypass_kb=16)
        lc.format()
        on_hdd(ctx, 0, 400, "old")
        lc.start()
        with lc.open() as raw:
            begin(raw)
            write_long(raw, 0, 200, "new")
            assert bypassed(lc) == 200, lc.fields()
            lc.message("bypass_kb", 0)      # or what is read in a row is not promoted
            promote(ctx, lc, raw, range(100, 200), "new")
        disks.cut(seed=ctx.seed, policy="drop-all")
        sh.result("dmsetup", "remove", lc.name)
        disks.restore()
        lc.activate()
        lc.wait(lambda fields: not fields["warm_left"], what="a search")
        with lc.open() as raw:
            check_hdd(ctx, range(100, 200), "old")
            check(raw, range(100, 200), "old")
        lc.remove()
