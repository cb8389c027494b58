# SPDX-License-Identifier: GPL-2.0-only
"""Option cache_mode: writes that do not enter the log, the change to that and back."""

import os
import random
import threading

from lclib import Disk, case, dm, sh, wait
from lclib.disk import MIB, Device, image, put
from lclib.disks import Disks
from lclib.faulty import BLOCK, Breakable, Holding, around, check, check_hdd, content, fill
from lclib.lc import LcStack
from lclib.writes import Write

from . import history
from .data import run_model
from .promote import NR, expect_hits, hits, on_hdd, promote

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
TINY = (Disk("ssd", "8M"), Disk("hdd", "32M"))
RECORDED = (Disk("ssd", size="32M", kind="recorded"), Disk("hdd", size="96M", kind="recorded"))
SMALL = ("--segment-size=64K",)
AROUND = "writearound"
THROUGH = "writethrough"


def stack(ctx, ssd=None, hdd=None, **options):
    """A small volume."""
    return LcStack(hdd or ctx.hdd, ssd or ctx.ssd, format=SMALL,
                   **{"writeback": "off", "idle_seal_ms": 0, **options})


def changed(lc, mode):
    """The mode is in force."""
    return lc.wait(lambda fields: fields["cache_mode"] == mode, what=f"cache_mode {mode}")


def crash(lc):
    """Remove a volume while it is suspended, which is no clean stop: the next start replays."""
    lc.suspend()
    lc.remove()


@case(disks=PAIR, timeout=240)
def log_is_left(ctx):
    """A volume with a log full of dirty blocks changes its mode: they are drained, and writes of
    all kinds go to the hard disk, none to the SSD. Back in mode writeback they are logged again.
    """
    lc = stack(ctx)
    with lc, lc.open() as raw:
        fill(raw, 0, 2000, "logged")
        assert lc.fields()["cache_mode"] == "writeback", lc.fields()
        lc.message("cache_mode", AROUND)
        fields = changed(lc, AROUND)
        assert not fields["dirty"], fields
        check_hdd(ctx, range(2000), "logged")
        blocks = random.Random(ctx.seed).sample(range(4000), 300)
        for block in blocks:
            fill(raw, block, 1, "around")
        raw.write(5000 * BLOCK + 512, b"partly".ljust(1024, b"-"))
        commit = Write(lc.path, 6000, content(6000, "commit"), fua=True)
        commit.finish()
        raw.flush()
        after = lc.fields()
        assert [after[key] for key in ("head_seq", "dirty")] == [fields["head_seq"], 0], after
        assert after["bypassed_bytes"] - fields["bypassed_bytes"] == 301 * BLOCK + 1024, after
        check_hdd(ctx, blocks, "around")
        check_hdd(ctx, [6000], "commit")
        check(raw, blocks, "around")
        check(raw, set(range(2000)) - set(blocks), "logged")
        assert raw.read(5000 * BLOCK + 512, 512).startswith(b"partly"), "the part of a block"
        lc.message("cache_mode", "writeback")
        changed(lc, "writeback")
        fill(raw, 0, 100, "logged again")
        raw.flush()
        assert lc.fields()["dirty"] == 100, lc.fields()
    with lc, lc.open() as raw:
        check(raw, range(100), "logged again")
        check(raw, [block for block in blocks if block >= 100], "around")


@case(disks=PAIR, timeout=180)
def ssd_is_pulled(ctx):
    """The SSD goes in the midst of writes: each that was acknowledged is on the hard disk."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = stack(ctx, ssd.path, cache_mode=AROUND, ssd_patience_ms=500)
        lc.start()
        try:
            changed(lc, AROUND)
            with lc.open() as raw:
                fill(raw, 0, 300, "before")
                ssd.fail()
                fill(raw, 200, 200, "after")
                raw.flush()
                check(raw, range(200), "before")
                check(raw, range(200, 400), "after")
                check_hdd(ctx, range(200), "before")
                check_hdd(ctx, range(200, 400), "after")
                fields = lc.fields()
                assert [fields[key] for key in ("dirty", "lost")] == [0, 0], fields
        finally:
            ssd.heal()
            lc.remove()


@case(kernels=("stock",), disks=RECORDED, timeout=180)
def power_is_cut(ctx):
    """What was flushed is on the bare hard disk after a power cut, and the next start has no
    older copy of it, of which the log once had many.
    """
    with Disks() as disks:
        disks.fault_clear()
        lc = stack(ctx).start()
        with lc.open() as raw:
            fill(raw, 0, 500, "logged")
            raw.flush()
            lc.message("cache_mode", AROUND)
            changed(lc, AROUND)
            fill(raw, 100, 500, "around")
            raw.flush()
            commit = Write(lc.path, 700, content(700, "commit"), fua=True)
            commit.finish()
            fill(raw, 800, 100, "volatile")
        disks.cut(seed=ctx.seed, policy="drop-all")
        sh.result("dmsetup", "remove", lc.name)
        disks.restore()
        for mode in (AROUND, "writeback"):
            lc.options["cache_mode"] = mode
            with lc, lc.open() as raw:
                check_hdd(ctx, range(100), "logged")
                check_hdd(ctx, range(100, 600), "around")
                check_hdd(ctx, [700], "commit")
                check(raw, range(100), "logged")
                check(raw, range(100, 600), "around")
                check(raw, [700], "commit")
                changed(lc, mode)


@case(disks=PAIR, timeout=240)
def starts_with_a_log(ctx):
    """The life before crashed in mode writeback, with dirty blocks: they are there, then drained,
    and writes over them meanwhile win. So it is after a clean stop.
    """
    lc = stack(ctx)
    lc.start()
    with lc.open() as raw:
        fill(raw, 0, 1000, "logged")
        raw.flush()
    crash(lc)
    lc.options["cache_mode"] = AROUND
    with lc, lc.open() as raw:
        fill(raw, 500, 100, "newer")
        check(raw, range(500), "logged")
        changed(lc, AROUND)
        fill(raw, 0, 100, "newest")
        raw.flush()
        check_hdd(ctx, range(100), "newest")
        check_hdd(ctx, range(500, 600), "newer")
    with lc, lc.open() as raw:
        changed(lc, AROUND)
        check(raw, range(100), "newest")
        check(raw, range(100, 500), "logged")
        check(raw, range(500, 600), "newer")


@case(disks=PAIR, timeout=180)
def hdd_fails_a_write(ctx):
    """The writer is told, as on the bare disk, and nothing is logged."""
    with Breakable("hdd1", ctx.hdd) as hdd:
        lc = stack(ctx, hdd=hdd.path, cache_mode=AROUND)
        with lc, lc.open() as raw:
            changed(lc, AROUND)
            fill(raw, 0, 10, "v0")
            hdd.refuse_writes()
            try:
                refused = Write(lc.path, 5, content(5, "v1"))
                assert not refused.over(), "the write that the hard disk failed ended well"
                assert not lc.fields()["dirty"], lc.fields()
            finally:
                hdd.heal()
            fill(raw, 5, 1, "v2")
            raw.flush()
            check(raw, range(5), "v0")
            check(raw, [5], "v2")
        check_hdd(ctx, [5], "v2")


@case(disks=PAIR, timeout=180)
def writes_of_a_block_take_turns(ctx):
    """A write is held by the hard disk. Others to its block wait, also those to other sectors of
    it; those to other blocks, reads and a suspend do not hang.
    """
    with Holding("hdd1", ctx.hdd) as hdd:
        lc = stack(ctx, hdd=hdd.path, cache_mode=AROUND)
        with lc, lc.open() as raw:
            changed(lc, AROUND)
            fill(raw, 0, 200, "v0")
            hdd.hold_writes(MIB + 100 * BLOCK, BLOCK)
            try:
                first = Write(lc.path, 100, content(100, "v1"))
                wait.until(lambda: hdd.held_writes() == 1, 60, "the write is held")
                second = Write(lc.path, 100, b"second".ljust(512, b"-"), within=1024)
                third = Write(lc.path, 100, b"third".ljust(512, b"-"), fua=True, within=2048)
                lc.wait(lambda fields: fields["parked_blocks"] == 2, what="two that wait")
                fill(raw, 101, 50, "v1")
                check(raw, range(100), "v0")
                check(raw, range(101, 151), "v1")
                assert hdd.held_writes() == 1, hdd.status()
            finally:
                hdd.heal()
            for write in (first, second, third):
                write.finish()
            data = bytearray(content(100, "v1"))
            data[1024:1536] = b"second".ljust(512, b"-")
            data[2048:2560] = b"third".ljust(512, b"-")
            assert raw.read(100 * BLOCK, BLOCK) == data, raw.read(100 * BLOCK, BLOCK)
            with dm.Raw(ctx.hdd) as bare:
                assert bare.read(MIB + 100 * BLOCK, BLOCK) == data, "the hard disk differs"


@case(disks=PAIR, timeout=240)
def hot_blocks_wait_for_the_rest(ctx):
    """The log is closed while the hard disk holds the rest of the drain: a write of a block that is
    still in the log waits, and wins; one of a block that is not goes on.
    """
    with Holding("hdd1", ctx.hdd) as hdd:
        lc = stack(ctx, hdd=hdd.path)
        with lc, lc.open() as raw:
            fill(raw, 0, 100, "v0")
            hdd.hold_writes(MIB + 50 * BLOCK, BLOCK)
            try:
                lc.message("cache_mode", AROUND)
                wait.until(hdd.held_writes, 60, "the drain is held")
                assert lc.fields()["cache_mode"] == "changing", lc.fields()
                hot = Write(lc.path, 7, content(7, "v1"))
                lc.wait(lambda fields: fields["parked_blocks"] == 1, what="the write waits")
                fill(raw, 1000, 50, "v1")
                check(raw, range(100), "v0")
            finally:
                hdd.heal()
            hot.finish()
            changed(lc, AROUND)
            check(raw, [7], "v1")
        check_hdd(ctx, [7], "v1")
        check_hdd(ctx, range(1000, 1050), "v1")


@case(disks=PAIR, timeout=240)
def cached_blocks_are_renewed(ctx):
    """In mode writethrough a write of blocks that are cached goes to both disks: they are read from
    the SSD afterwards, also after a clean stop, and never what they held before. Writes of parts
    of blocks drop the copies.
    """
    lc = stack(ctx, cache_mode=THROUGH, read_cache="on", bypass_kb=0)
    with lc, lc.open() as raw:
        changed(lc, THROUGH)
        on_hdd(ctx, 0, NR, "v0")
        hot = promote(ctx, lc, raw, range(NR), "v0")
        before = lc.fields()["promoted"]
        fill(raw, 0, NR, "v1")
        check(raw, range(NR), "v1")
        check_hdd(ctx, range(NR), "v1")
        want = before + len(hot) * 9 // 10
        lc.wait(lambda fields: fields["promoted"] >= want, what="what was written is cached")
        renewed = hits(ctx, raw, hot, "v1")
        assert len(renewed) >= len(hot) * 9 // 10, renewed
        part, rest = renewed[:50], renewed[50:]
        for block in part:
            raw.write(block * BLOCK + 512, b"part".ljust(512, b"-"))
        for block in part:
            data = bytearray(content(block, "v1"))
            data[512:1024] = b"part".ljust(512, b"-")
            assert raw.read(block * BLOCK, BLOCK) == data, block
        assert lc.fields()["dirty"] == 0, lc.fields()
    with lc, lc.open() as raw:
        expect_hits(ctx, raw, rest, "v1")
        check_hdd(ctx, rest, "v1")


@case(disks=PAIR, timeout=180)
def hdd_fails_what_is_cached(ctx):
    """The hard disk fails a write of cached blocks, in mode writethrough: the writer is told, and
    no copy of what it does not hold is left.
    """
    with Breakable("hdd1", ctx.hdd) as hdd:
        lc = stack(ctx, hdd=hdd.path, cache_mode=THROUGH, read_cache="on", bypass_kb=0)
        with lc, lc.open() as raw:
            changed(lc, THROUGH)
            on_hdd(ctx, 0, 2 * NR, "v0")
            hot = promote(ctx, lc, raw, range(NR), "v0")
            hdd.refuse_writes()
            try:
                for block in hot[:20]:
                    assert not Write(lc.path, block, content(block, "v1")).over(), block
            finally:
                hdd.heal()
            lc.message("sync")
            check_hdd(ctx, hot[:20], "v0")
            # Behind these, what the failed writes have left of their groups is on the SSD.
            promote(ctx, lc, raw, range(NR, 2 * NR), "v0")
            check(raw, hot, "v0")
            fill(raw, hot[0], 1, "v2")
            check(raw, hot[:1], "v2")


@case(disks=PAIR, timeout=300)
def ssd_is_pulled_while_it_renews(ctx):
    """Mode writethrough, and the SSD goes while it gets what is written: nothing is lost or old."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = stack(ctx, ssd.path, cache_mode=THROUGH, read_cache="on", bypass_kb=0,
                   ssd_patience_ms=500)
        lc.start()
        try:
            changed(lc, THROUGH)
            with lc.open() as raw:
                on_hdd(ctx, 0, NR, "v0")
                promote(ctx, lc, raw, range(NR), "v0")
                fill(raw, 0, 100, "v1")
                ssd.fail()
                fill(raw, 50, NR, "v2")
                raw.flush()
                check(raw, range(50), "v1")
                check(raw, range(50, 50 + NR), "v2")
                check_hdd(ctx, range(50), "v1")
                check_hdd(ctx, range(50, 50 + NR), "v2")
        finally:
            ssd.heal()
            lc.remove()


@case(disks=PAIR, timeout=400, sampled=3)
def model_of_through(ctx):
    """Random reads, writes, flushes and discards in mode writethrough give what a model says."""
    run_model(ctx, 12000, buffers=8, cache_mode=THROUGH, read_cache="on")


@case(disks=PAIR, timeout=400, sampled=3)
def model_of_around(ctx):
    """The same in mode writearound, with what is read cached."""
    run_model(ctx, 12000, buffers=8, cache_mode=AROUND, read_cache="on")


@case(disks=PAIR, timeout=180)
def buffer_changes_meanwhile(ctx):
    """The sender changes its buffer while the hard disk holds the write through: the hard disk and
    the SSD have the same all the same.
    """
    with Holding("hdd1", ctx.hdd) as hdd:
        lc = stack(ctx, hdd=hdd.path, cache_mode=THROUGH, read_cache="on", bypass_kb=0)
        with lc, lc.open() as raw, Device(lc.path) as own:
            changed(lc, THROUGH)
            on_hdd(ctx, 0, NR, "v0")
            block = promote(ctx, lc, raw, range(NR), "v0")[NR // 2]
            before = lc.fields()["promoted"]
            view = memoryview(own.buffer)[:BLOCK]
            view[:] = content(block, "v1")
            hdd.hold_writes(MIB + block * BLOCK, BLOCK)
            try:
                sender = threading.Thread(
                    target=lambda: os.pwritev(own.handle, [view], block * BLOCK))
                sender.start()
                wait.until(lambda: hdd.held_writes() == 1, 60, "the write is held")
                view[:] = content(block, "v2")
            finally:
                hdd.heal()
            sender.join(wait.limit(60))
            assert not sender.is_alive(), "the write does not end"
            lc.wait(lambda fields: fields["promoted"] > before, what="the block is cached")
            check_hdd(ctx, [block], "v1")
            # What promote() read last may have been counted after the write, and not the write.
            wait.until(lambda: hits(ctx, raw, [block], "v1"), 60, "it is read from the SSD")


@case(disks=TINY, timeout=200)
def old_disk_is_told(ctx):
    """A life in mode writearound has written to the hard disk, and nothing to the log. After a
    crash an old copy of the hard disk is refused, and the right one is taken.
    """
    lc = history.stack(ctx, SMALL)
    history.life_one(lc)
    copy = image(ctx.hdd)
    lc.options["cache_mode"] = AROUND
    lc.activate()
    with lc.open() as raw:
        changed(lc, AROUND)
        fill(raw, 1000, 100, "around")
        raw.flush()
        cut = image(lc.cache)
    lc.remove()
    put(ctx.ssd, cut)
    right = image(ctx.hdd)
    put(ctx.hdd, copy)
    history.refused(lc)
    put(ctx.hdd, right)
    with lc, lc.open() as raw:
        check(raw, range(200), "one")
        check(raw, range(1000, 1100), "around")


@case(disks=PAIR, timeout=300)
def refused_block_opens_the_log(ctx):
    """The hard disk refuses a block while the rest of the log is drained: writes of it are logged,
    and others are not held up. When it takes the block, the mode changes after all.
    """
    with Breakable("hdd1", ctx.hdd) as hdd:
        lc = stack(ctx, hdd=hdd.path)
        with lc, lc.open() as raw:
            fill(raw, 0, 100, "v0")
            hdd.swap(*around(hdd.under, (MIB + 50 * BLOCK) // 512, dm.error(BLOCK // 512)))
            try:
                lc.message("cache_mode", AROUND)
                lc.wait(lambda fields: fields["refused"] == 1, what="a block that is refused")
                fill(raw, 50, 1, "v1")
                fill(raw, 40, 20, "v2")
                raw.flush()
                assert lc.fields()["cache_mode"] == "changing", lc.fields()
                check(raw, range(40, 60), "v2")
                with lc.paused():
                    pass
            finally:
                hdd.heal()
            lc.wait(lambda fields: fields["cache_mode"] == AROUND, 150, "the mode")
            check(raw, range(40), "v0")
            check(raw, range(40, 60), "v2")
        check_hdd(ctx, range(40, 60), "v2")
