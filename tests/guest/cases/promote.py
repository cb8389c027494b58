# SPDX-License-Identifier: GPL-2.0-only
"""Option read_cache: what is read from the hard disk is kept on the SSD, and never an old copy."""

import random

from lclib import Disk, case, dm, sh, wait
from lclib.disk import MIB, commands
from lclib.faulty import BLOCK, Breakable, Holding, check, content, fill
from lclib.lc import LcStack

from .data import run_model

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
SMALL = ("--segment-size=64K",)
NR = 200


def on_hdd(ctx, first, count, tag):
    """The bare disk holds these blocks of the volume."""
    with dm.Raw(ctx.hdd) as hdd:
        for block in range(first, first + count):
            hdd.write(MIB + block * BLOCK, content(block, tag))
        hdd.flush()


def reads(ctx):
    """Commands and sectors that the hard disk has read."""
    seen = commands(ctx.hdd)
    return seen["read"], seen["sectors_read"]


def hits(ctx, raw, blocks, tag):
    """Which of these blocks are read without the hard disk."""
    found = []
    for block in blocks:
        before = reads(ctx)
        check(raw, [block], tag)
        if reads(ctx) == before:
            found.append(block)
    return found


def promote(ctx, lc, raw, blocks, tag):
    """Read blocks until nearly all of them are on the SSD: a few may share a fingerprint.

    Returns those that are.
    """
    want = lc.fields()["promoted"] + len(blocks) * 9 // 10

    def promoted():
        check(raw, blocks, tag)
        return lc.fields()["promoted"] >= want

    wait.until(promoted, 120, f"{len(blocks)} blocks are promoted")
    found = hits(ctx, raw, blocks, tag)
    assert len(found) >= len(blocks) * 9 // 10, found
    return found


def expect_hits(ctx, raw, blocks, tag):
    """The hard disk is not read for these blocks."""
    assert hits(ctx, raw, blocks, tag) == list(blocks)


@case(disks=PAIR, timeout=240)
def what_is_read_is_cached(ctx):
    """Blocks that only the hard disk has: read from there, then from the SSD; also after a stop,
    with each read verified, and while the option is off again.
    """
    lc = LcStack(ctx.hdd, ctx.ssd, read_cache="on", writeback="off")
    lc.format()
    on_hdd(ctx, 0, NR, "old")
    with lc, lc.open() as raw:
        before = lc.fields()
        hot = promote(ctx, lc, raw, range(NR), "old")
        after = lc.fields()
        assert after["cached"] >= before["cached"] + len(hot) and not after["dirty"], after
        lc.message("read_cache", "off")
        expect_hits(ctx, raw, hot, "old")
    with lc, lc.open() as raw:
        assert lc.fields()["cached"] >= len(hot), lc.fields()
        expect_hits(ctx, raw, hot, "old")
        lc.reload_with(read_cache="on", verify_reads="on")
        expect_hits(ctx, raw, hot, "old")
        fill(raw, 0, NR // 2, "new")
        expect_hits(ctx, raw, range(NR // 2), "new")
        expect_hits(ctx, raw, [block for block in hot if block >= NR // 2], "old")
    sh.run("lc-check", "--backing", ctx.hdd, ctx.ssd)
    with lc, lc.open() as raw:
        check(raw, range(NR // 2), "new")
        check(raw, range(NR // 2, NR), "old")


@case(kernels=("stock",), disks=(Disk("ssd", "32M"), Disk("hdd", "96M")), timeout=300, sampled=3)
def model_with_promotion(ctx):
    """The byte-exact model, the ring wrapping many times, with promotion and each read verified."""
    run_model(ctx, 12000, buffers=8, read_cache="on", verify_reads="on")


@case(kernels=("stock",), disks=PAIR, timeout=240, sampled=3)
def ring_wraps(ctx):
    """More blocks than the SSD has are read again and again, beside writes: each read is right, and
    no write waits for a segment for ever.
    """
    rng = random.Random(ctx.seed)
    total = 20_000
    lc = LcStack(ctx.hdd, ctx.ssd, format=SMALL, read_cache="on")
    lc.format()
    on_hdd(ctx, 0, total, "old")
    written = set()
    with lc, lc.open() as raw:
        for turn in range(3):
            for _ in range(3000):
                block = rng.randrange(total // 4) if rng.randrange(2) else rng.randrange(total)
                if not rng.randrange(4):
                    fill(raw, block, 1, "new")
                    written.add(block)
                check(raw, [block], "new" if block in written else "old")
            ctx.figure(f"promoted {turn}", lc.fields()["promoted"])
        assert lc.fields()["promoted"] > 1000, lc.fields()
        assert lc.fields()["parked_blocks"] == 0, lc.fields()


@case(kernels=("stock",), disks=(Disk("ssd", "8M"), Disk("hdd", "128M")), timeout=240, sampled=3)
def readers_get_nearly_all_of_the_ring(ctx):
    """While nobody writes, one segment is evicted ahead and one is being filled; when writes come,
    more are evicted, and none waits for long.
    """
    lc = LcStack(ctx.hdd, ctx.ssd, format=SMALL, read_cache="on", buffers=64)
    lc.format()
    on_hdd(ctx, 0, 3000, "old")
    with lc, lc.open() as raw:
        segments = lc.fields()["segments"]
        # In each there are the header of its record and that of the group.  For writes refill keeps
        # an eighth of the ring evicted.
        want = (segments - 6) * 14
        assert want > (segments - segments // 8 - 1) * 14

        def nearly_all():
            check(raw, range(2 * want), "old")
            return lc.fields()["cached"] >= want

        wait.until(nearly_all, 180, f"{want} blocks are cached")
        ctx.figure("cached", f"{lc.fields()['cached']} in {segments} segments")
        fill(raw, 0, 2 * want, "new")
        check(raw, range(2 * want), "new")
        assert lc.fields()["parked_blocks"] == 0, lc.fields()


@case(disks=PAIR, timeout=120)
def write_during_the_read_wins(ctx):
    """The hard disk's answer is held back, and meanwhile the block is written, and another one
    discarded: what was read is not promoted, and what is there afterwards is the newer copy.
    """
    with Holding("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ctx.ssd, format=SMALL, read_cache="on", writeback="off")
        lc.format()
        on_hdd(ctx, 0, 110, "old")
        with lc, lc.open() as raw:
            promote(ctx, lc, raw, range(100, 110), "old")   # a group is open
            count = lc.fields()["promoted"]
            hdd.hold(MIB, MIB)
            read = sh.start("dd", f"if={lc.path}", "of=/dev/null", "bs=24K", "count=1",
                            "iflag=direct,skip_bytes", f"skip={2 * BLOCK}")
            wait.until(lambda: hdd.held() == 1, 60, "the read is held")
            fill(raw, 3, 1, "new")
            raw.discard(5 * BLOCK, BLOCK)
            hdd.heal()
            sh.finish(read)
            lc.wait(lambda fields: fields["promoted"] == count + 4, what="four blocks promoted")
            check(raw, [3], "new")
            check(raw, [2, 4, 6, 7], "old")
        with lc, lc.open() as raw:
            check(raw, [3], "new")
            check(raw, [2, 4, 6, 7], "old")


@case(disks=PAIR, timeout=120)
def bad_sector_beside_the_read(ctx):
    """A read of a part of a block whose other part the hard disk cannot read: the user gets it."""
    size = dm.sectors(ctx.hdd)
    bad = MIB // 512 + 8 * 5 + 4
    with dm.Device("hole", dm.error(1)) as hole, dm.Device("hdd1", dm.linear(ctx.hdd)) as hdd:
        lc = LcStack(hdd.path, ctx.ssd, read_cache="on", writeback="off")
        lc.format()
        on_hdd(ctx, 0, 110, "old")
        with lc, lc.open() as raw:
            promote(ctx, lc, raw, range(100, 110), "old")   # a group is open
            count = lc.fields()["promoted"]
            hdd.load(dm.linear(ctx.hdd, bad), dm.linear(hole.path, 1),
                     dm.linear(ctx.hdd, size - bad - 1, bad + 1))
            hdd.resume()
            for _ in range(4):
                assert raw.read(5 * BLOCK, 512) == content(5, "old")[:512]
            assert lc.fields()["promoted"] == count, lc.fields()
            hdd.load(dm.linear(ctx.hdd))
            hdd.resume()
            promote(ctx, lc, raw, [5], "old")


@case(disks=PAIR, timeout=180)
def ssd_dies_while_promoting(ctx):
    """Reads go on from the hard disk when the SSD takes nothing any more, and get nothing old."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        # What is written stays in RAM, where a dead SSD cannot take it away.
        lc = LcStack(ctx.hdd, ssd.path, format=SMALL, read_cache="on", writeback="off",
                     ssd_patience_ms=500, idle_seal_ms=0)
        lc.format()
        on_hdd(ctx, 0, NR, "old")
        lc.start()
        try:
            with lc.open() as raw:
                promote(ctx, lc, raw, range(NR // 2), "old")
                fill(raw, 0, 10, "new")
                ssd.fail()
                check(raw, range(NR // 2, NR), "old")
                check(raw, range(NR // 2, NR), "old")
                check(raw, range(10), "new")
                raw.flush()
                assert lc.fields()["mode"] == "degraded", lc.fields()
                fill(raw, 10, 10, "new")
                check(raw, range(20), "new")
                check(raw, range(20, NR), "old")
        finally:
            ssd.heal()
            lc.remove()


@case(disks=(Disk("ssd", "8M"), Disk("hdd", "128M")), timeout=180)
def held_read_stops_no_write(ctx):
    """The hard disk does not answer a read that is to be promoted: writes go round the ring
    meanwhile, over the place that its blocks were to get.
    """
    with Holding("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ctx.ssd, format=SMALL, read_cache="on", buffers=8)
        lc.format()
        on_hdd(ctx, 0, 110, "old")
        with lc, lc.open() as raw:
            promote(ctx, lc, raw, range(100, 110), "old")   # a group is open
            hdd.hold(MIB, MIB)
            read = sh.start("dd", f"if={lc.path}", "of=/tmp/held", "bs=24K", "count=1",
                            "iflag=direct,skip_bytes", f"skip={2 * BLOCK}")
            wait.until(lambda: hdd.held() == 1, 60, "the read is held")
            for turn in range(3):
                fill(raw, 1000, 2000, f"turn {turn}")
            check(raw, range(1000, 3000), "turn 2")
            fill(raw, 4, 1, "new")
            hdd.heal()
            sh.finish(read)
            check(raw, range(1000, 3000), "turn 2")
            check(raw, [2, 3, 5, 6, 7], "old")
            check(raw, [4], "new")
        with lc, lc.open() as raw:
            check(raw, range(1000, 3000), "turn 2")
            check(raw, [2, 3, 5, 6, 7], "old")
            check(raw, [4], "new")


@case(disks=(Disk("ssd", "8M"), Disk("hdd", "128M")), timeout=180)
def often_read_blocks_stay(ctx):
    """Blocks that are read all the time are still cached when the ring has gone round: they are
    logged again when their segment is reused.
    """
    lc = LcStack(ctx.hdd, ctx.ssd, format=SMALL, read_cache="on", buffers=8)
    lc.format()
    on_hdd(ctx, 0, 40, "hot")
    with lc, lc.open() as raw:
        hot = promote(ctx, lc, raw, range(40), "hot")
        stayed = []
        for turn in range(40):
            fill(raw, 1000 + 100 * turn, 100, "cold")
            stayed.append(len(hits(ctx, raw, hot, "hot")))
        ctx.figure("stayed", stayed)
        # Twice round a ring of less than 2000 blocks; without another chance all were read anew.
        assert sum(stayed[20:]) > 20 * len(hot) * 3 // 4, stayed
        check(raw, range(1000, 5000), "cold")
        check(raw, range(40), "hot")


@case(disks=PAIR, timeout=120)
def groups_are_durable(ctx):
    """Blocks that were promoted are durable before they are read from the SSD: a disk without FUA
    gets a FLUSH for them although nobody has asked for one.
    """
    lc = LcStack(ctx.hdd, ctx.ssd, read_cache="on", writeback="off", idle_seal_ms=0)
    lc.format()
    on_hdd(ctx, 0, 200, "old")
    with lc, lc.open() as raw:
        promote(ctx, lc, raw, range(100), "old")
        before = commands(ctx.ssd)["flush"]
        promote(ctx, lc, raw, range(100, 200), "old")
        assert commands(ctx.ssd)["flush"] > before, before
