# SPDX-License-Identifier: GPL-2.0-only
"""Draining and salvaging over devices that fail in part, or for a while: nothing is given up early.

What may cost little is counted, in commands of a disk or calls of a function, never timed.
"""

import contextlib
import threading

from lclib import case, dm, sh, wait
from lclib.calls import Calls
from lclib.disk import MIB, commands
from lclib.faulty import (
    BLOCK,
    Breakable,
    around,
    check,
    check_hdd,
    content,
    fill,
    listed_offline,
    said,
    slot_sector,
)
from lclib.lc import LcStack
from lclib.registry import Disk

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
SMALL = ("--segment-size=64K",)
# A segment of 1 MiB and more: what was written before it has left the memory.
ANOTHER_SEGMENT = 300


# --- an SSD that was given up -------------------------------------------------------------------


def write_past(raw, blocks):
    """Write past the cache, and read that back."""
    for block in blocks:
        raw.write(block * BLOCK, content(block, "past"))
        assert raw.read(block * BLOCK, BLOCK) == content(block, "past"), block


@case(kernels=("stock",), disks=PAIR, timeout=300,
      fault=("HDD", "refuses some blocks while a failing SSD is salvaged",
             "all others are salvaged; these when the disk takes them, or they are listed as lost"))
def salvage_passes_refused_blocks(ctx):
    """Blocks that the HDD refuses hide none of those behind them from the salvage (S10)."""
    refused = 200
    with Breakable("ssd1", ctx.ssd) as ssd, Breakable("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ssd.path, ssd_patience_ms=500, writeback="off").start()
        with lc.open() as raw:
            fill(raw, 0, 600, "kept")
            fill(raw, 5000, ANOTHER_SEGMENT, "more")
            raw.flush()
            hdd.swap(*around(ctx.hdd, 2048, dm.error(refused * 8)))
            ssd.refuse_writes()
            fill(raw, 6000, 1, "new")
            raw.flush()
            lc.wait(lambda fields: fields["mode"] == "degraded", what="mode degraded")
            fields = lc.wait(lambda fields: fields["dirty"] == refused, 120,
                             "all but the refused blocks on the hard disk")
            assert fields["lost"] == 0 and fields["mode"] == "degraded", fields
            check(raw, range(600), "kept")
        # The removal does not wait for them for ever, and says which they are.
        lc.remove()
        hdd.heal()
        ssd.heal()
        assert listed_offline(ssd, hdd) == set(range(refused * 8))
    check_hdd(ctx, range(refused, 600), "kept")
    check_hdd(ctx, range(5000, 5000 + ANOTHER_SEGMENT), "more")


@case(kernels=("stock",), disks=PAIR, timeout=240)
def refused_blocks_are_salvaged_later(ctx):
    """The salvage goes on when the HDD takes again what it refused, also after a suspend (S10)."""
    with (Breakable("ssd1", ctx.ssd) as ssd, Breakable("hdd1", ctx.hdd) as hdd,
          LcStack(hdd.path, ssd.path, ssd_patience_ms=500, writeback="off") as lc,
          lc.open() as raw):
        fill(raw, 0, 200, "kept")
        fill(raw, 5000, ANOTHER_SEGMENT, "more")
        raw.flush()
        hdd.swap(*around(ctx.hdd, 2048, dm.error(100 * 8)))
        ssd.refuse_writes()
        fill(raw, 6000, 1, "new")
        raw.flush()
        lc.wait(lambda fields: fields["mode"] == "degraded" and fields["dirty"] == 100, 120,
                "all but the refused blocks on the hard disk")
        with lc.paused():
            hdd.heal()
        lc.wait(lambda fields: not fields["dirty"], 60, "the end of the salvage")
        assert lc.fields()["lost"] == 0, lc.fields()
        check(raw, range(200), "kept")


@case(kernels=("stock",), disks=(Disk("ssd", "128M"), Disk("hdd", "256M")), timeout=240)
def giving_up_costs_what_is_in_ram(ctx):
    """Writes wait for what is in RAM, not for the whole index; the salvage FLUSHes seldom."""
    clean, dirty = 6000, 6000
    with Breakable("ssd1", ctx.ssd) as ssd, Calls("lc_index_lock_slot") as locks:
        lc = LcStack(ctx.hdd, ssd.path, ssd_patience_ms=500, writeback="off", buffers=4).start()
        with lc.open() as raw:
            for at in range(0, clean * BLOCK, 48 * BLOCK):
                raw.write(at, b"clean".ljust(48 * BLOCK, b"."))
            lc.drain()
            for block in range(20_000, 20_000 + 2 * dirty, 96):
                fill(raw, block, 48, "dirty")
            raw.flush()
            # The salvage does not get on meanwhile.
            with ssd.unread():
                raw.write(0, content(0, "new"))
                flushes = commands(ctx.hdd)["flush"]
                # The flush waits for mode degraded. Nobody else looks slots up before that; behind
                # it the salvage does.
                with locks.until("lc_mode_changed") as counted:
                    raw.flush()
                    taken = counted()
                assert lc.fields()["mode"] == "degraded", lc.fields()
            # Clean copies are outdated from now on, wherever they are, and also behind the salvage.
            write_past(raw, range(8, 4000, 500))
            lc.wait(lambda fields: not fields["dirty"], 120, "the end of the salvage")
            write_past(raw, range(12, 4000, 500))
            flushes = commands(ctx.hdd)["flush"] - flushes
            assert lc.fields()["lost"] == 0, lc.fields()
            assert raw.read(0, BLOCK) == content(0, "new")
            check(raw, range(20_000, 20_000 + 2 * dirty, 96), "dirty")
        lc.remove()
        ssd.heal()
    ctx.figure("slots looked up while writes wait", taken)
    ctx.figure("flushes of the HDD", flushes)
    assert 0 < taken < 4 * 4 * 256, f"{taken} slots were looked up for {4 * 256} in RAM"
    assert flushes <= 12, f"{flushes} FLUSHes for {dirty} blocks"


def on_disk(ctx, blocks, tag):
    """Which of the first blocks are on the bare hard disk."""
    with dm.Raw(ctx.hdd) as hdd:
        return {block for block in range(blocks)
                if hdd.read(MIB + block * BLOCK, BLOCK) == content(block, tag)}


@case(kernels=("stock",), disks=PAIR, timeout=300,
      fault=("SSD", "given up with many dirty blocks, and the volume removed at once",
             "the removal ends a minute later; what is not copied by then is listed as lost"),
      sampled=3)
def removal_cuts_a_long_salvage_off(ctx):
    """A removal ends a salvage that is merely long, and the mark names exactly what is not on the
    hard disk by then (P5)."""
    dirty = 5000
    with Breakable("hdd1", ctx.hdd) as hdd, Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(hdd.path, ssd.path, ssd_patience_ms=500, writeback="off", buffers=4).start()
        with lc.open() as raw:
            for block in range(0, dirty, 50):
                raw.write(block * BLOCK, b"".join(content(at, "cut off")
                                                  for at in range(block, block + 50)))
            fill(raw, 20_000, 1, "new")
            raw.flush()
            with ssd.unread():
                fill(raw, 20_000, 1, "newer")
                raw.flush()
                fields = lc.wait(lambda fields: fields["mode"] == "degraded", what="degraded")
                assert fields["dirty"] > dirty // 2, fields
                # A piece of 128 blocks takes three seconds: two minutes in all.
                hdd.swap(dm.delay(ctx.hdd, 0, 3000))
        lc.remove()
        hdd.heal()
        ssd.heal()
        lost = listed_offline(ssd, hdd)
    saved = on_disk(ctx, dirty, "cut off")
    ctx.figure("blocks saved", len(saved))
    missing = {sector for block in set(range(dirty)) - saved
               for sector in range(block * 8, block * 8 + 8)}
    assert missing, "all was salvaged: the removal waited for the end"
    assert lost == missing, (len(lost), len(missing))


# --- an SSD that fails for a while --------------------------------------------------------------


@contextlib.contextmanager
def misread(ctx, text, offset, count):
    """A volume with dirty blocks of which so many sectors of the SSD read as zeroes."""
    with (Breakable("ssd1", ctx.ssd) as ssd,
          LcStack(ctx.hdd, ssd.path, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw):
        fill(raw, 0, 200, "kept")
        fill(raw, 1000, 2 * ANOTHER_SEGMENT, "more")
        raw.flush()
        ssd.swap(*around(ctx.ssd, slot_sector(ctx.ssd, text) + offset, dm.zero(count)))
        yield lc, raw, ssd


def comes_back(ctx, text, offset, count):
    """Slots on the SSD read as zeroes until writeback has met that; then all is as before."""
    with misread(ctx, text, offset, count) as (lc, _, ssd):
        tries = said("writeback failed with error")
        lc.message("writeback")
        fields = lc.wait(lambda fields: fields["lost"] or
                         said("writeback failed with error") >= tries + 2, 60,
                         "writeback to meet what does not come back")
        assert fields["lost"] == 0 and fields["mode"] == "rw", fields
        ssd.heal()
        lc.drain()
        fields = lc.fields()
        assert not fields["lost"] and not fields["dirty"] and fields["mode"] == "rw", fields
    check_hdd(ctx, range(200), "kept")


@case(kernels=("stock",), disks=PAIR, timeout=180,
      fault=("SSD", "header of a dirty record reads as something else for a while",
             "writeback waits and reads it again; nothing lost"))
def header_comes_back(ctx):
    """A header that does not decode is read again before its blocks are given up (L18)."""
    comes_back(ctx, b"kept 0\n", -8, 8)


@case(kernels=("stock",), disks=PAIR, timeout=180,
      fault=("SSD", "dirty slots read as something else for a while",
             "writeback waits and reads them again; nothing lost"))
def data_comes_back(ctx):
    """Slots whose checksum does not fit are read again before they are given up (L18)."""
    comes_back(ctx, b"kept 100\n", 0, 4 * 8)


@case(kernels=("stock",), disks=PAIR, timeout=180,
      fault=("SSD", "the old slot of a partial write reads as something else for a while",
             "the write waits and reads it again; nothing lost"))
def merged_data_comes_back(ctx):
    """A part of a block is written while its slot does not fit: the rest is not given up (L18)."""
    with misread(ctx, b"kept 100\n", 0, 8) as (lc, raw, ssd), lc.open() as other:
        told = said("is damaged on the cache device")
        writer = threading.Thread(target=other.write, args=(100 * BLOCK + 512, b"x" * 512))
        writer.start()
        wait.until(lambda: said("is damaged on the cache device") > told, 60,
                   "the write to meet what does not come back")
        ssd.heal()
        writer.join()
        assert lc.fields()["lost"] == 0, lc.fields()
        old = content(100, "kept")
        assert raw.read(100 * BLOCK, BLOCK) == old[:512] + b"x" * 512 + old[1024:]


@case(kernels=("stock",), disks=PAIR, timeout=240,
      fault=("SSD", "more dirty slots than a bad region has read as something else",
             "the SSD is given up, and asked again while it is salvaged"))
def many_mismatches_are_the_device(ctx):
    """Many slots that do not fit are an SSD that fails, not blocks that are gone (S11)."""
    with (Breakable("ssd1", ctx.ssd) as ssd,
          LcStack(ctx.hdd, ssd.path, writeback="off", idle_seal_ms=0, ssd_patience_ms=10_000) as lc,
          lc.open() as raw):
        fill(raw, 0, 200, "kept")
        fill(raw, 1000, 2 * ANOTHER_SEGMENT, "more")
        raw.flush()
        ssd.swap(*around(ctx.ssd, slot_sector(ctx.ssd, b"kept 50\n"), dm.zero(100 * 8)))
        ssd.prepare_to_heal()
        lc.message("writeback")
        fields = lc.wait(lambda fields: fields["lost"] or fields["mode"] != "rw", 120,
                         "writeback to have enough of it")
        ssd.heal_at_once()
        assert fields["lost"] == 0 and fields["mode"] == "degraded", fields
        fields = lc.wait(lambda fields: not fields["dirty"], 60, "the end of the salvage")
        assert fields["lost"] == 0, fields
        check(raw, range(200), "kept")


# --- a HDD that fails for a while ---------------------------------------------------------------


@case(kernels=("stock",), disks=PAIR, timeout=240,
      fault=("HDD", "all writes fail for longer than half a minute",
             "writes go on into the cache; drained when the disk works again"), sampled=3)
def hdd_errors_stop_no_write(ctx):
    """A HDD that is away for long ends nothing: the log has room, and it may come back (D21)."""
    with (Breakable("hdd1", ctx.hdd) as hdd, LcStack(hdd.path, ctx.ssd, writeback="off") as lc,
          lc.open() as raw):
        fill(raw, 0, 400, "mine")
        raw.flush()
        tries = said("writeback failed with error")
        hdd.refuse_writes()
        lc.message("writeback")
        lc.wait(lambda fields: fields["mode"] != "rw" or
                said("writeback failed with error") >= tries + 7, 120, "seven failed batches")
        fields = lc.fields()
        assert fields["mode"] == "rw" and fields["writeback"] == "retrying", fields
        # lc-flush waits for a while, but not for ever.
        code, text = sh.result("lc-flush", lc.name)
        assert code == 1 and "writing to the hard disk fails" in text, (code, text)
        fill(raw, 400, 200, "mine")
        raw.flush()
        hdd.heal()
        lc.drain()
        fields = lc.fields()
        assert fields["mode"] == "rw" and not fields["dirty"], fields
    check_hdd(ctx, range(600), "mine")


@case(kernels=("stock",), disks=PAIR, timeout=240)
def many_refused_blocks_stop_no_drain(ctx):
    """More blocks in a row than a bad region has are refused: those behind are drained (D21)."""
    refused = 150
    with (Breakable("hdd1", ctx.hdd) as hdd, LcStack(hdd.path, ctx.ssd, writeback="off") as lc,
          lc.open() as raw):
        fill(raw, 0, 600, "mine")
        raw.flush()
        hdd.swap(*around(ctx.hdd, 2048, dm.error(refused * 8)))
        lc.message("writeback")
        fields = lc.wait(lambda fields: fields["mode"] != "rw" or
                         fields["dirty"] == refused, 120, "all others drained")
        assert fields["mode"] == "rw" and fields["refused"] <= refused, fields
        check(raw, range(0, 600, 7), "mine")
        hdd.heal()
        lc.drain()
        assert not lc.fields()["dirty"], lc.fields()


@case(kernels=("stock",), disks=PAIR, timeout=240)
def suspends_let_writeback_get_on(ctx):
    """Batches that a suspend ends early keep what they have copied (D21)."""
    with (dm.Device("slow", dm.delay(ctx.hdd, 0, 100)) as hdd,
          LcStack(hdd.path, ctx.ssd, format=SMALL, writeback="off", writeback_depth=1) as lc):
        with lc.open() as raw:
            for block in range(0, 1000, 2):     # no neighbours
                fill(raw, block, 1, "dirty")
            raw.flush()
        dirty = [lc.fields()["dirty"]]
        for _ in range(4):
            lc.message("writeback")
            before = commands(ctx.hdd)["write"]
            wait.until(lambda seen=before: commands(ctx.hdd)["write"] > seen + 10, 60,
                       "some writes of a batch")
            with lc.paused():
                dirty.append(lc.fields()["dirty"])
        ctx.figure("dirty at each suspend", dirty)
        hdd.reload(dm.linear(ctx.hdd))
    for one, next_one in zip(dirty, dirty[1:]):
        assert one - next_one >= 8, f"dirty at each suspend: {dirty}"


# --- what each write costs ----------------------------------------------------------------------


@case(kernels=("stock",), disks=PAIR, timeout=120)
def kicks_lock_no_lane(ctx):
    """Writeback is kicked with each segment that is ready, and locks lanes only to work."""
    with LcStack(ctx.hdd, ctx.ssd, format=SMALL, writeback="off", lanes=2) as lc, \
            lc.open() as raw:
        fill(raw, 0, 1, "first")
        with Calls("lc_lanes_used") as used, Calls("refill_ran") as kicks:
            for at in range(0, 16 * MIB, 64 * 1024):
                raw.write(at, b"kick".ljust(64 * 1024, b"."))
            kicked, locked = kicks.count(), used.count()
    ctx.figure("kicks", kicked)
    ctx.figure("looks at all lanes", locked)
    assert kicked > 50, kicked
    assert locked <= kicked // 10, f"{locked} looks at all lanes for {kicked} kicks"
