# SPDX-License-Identifier: GPL-2.0-only
"""Single sequences of events, made to happen: hazards of docs/design.rst, bugs of dm-writeboost.

Each case brings one sequence about by keeping commands waiting at the moment that matters, or
counts commands. What a case waits for are states, never times; where a held command goes on by
itself, that it is late matters to a broken module only.
"""

import contextlib
import json
import os
import pathlib
import threading
from random import Random

from lclib import Disk, case, cgroup, dm, sh, status, wait
from lclib.calls import Calls
from lclib.disk import MIB, commands
from lclib.disks import Disks
from lclib.faulty import BLOCK, Breakable, Holding, check, content, fill, salvage, slot_sector
from lclib.lc import LcStack
from lclib.setting import setting

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
RECORDED = (Disk("ssd", "8M", kind="recorded"), Disk("hdd", "32M", kind="recorded"))
SMALL = ("--segment-size=64K",)
LATE = 5_000            # ms


def hold(disks, disk, op, offset, length, delay_ms, count=1):
    """Commands of the range get no answer for so long; returns the rule's number."""
    return disks.fault(disk=disk, op=op, offset=offset, length=length, errno=0,
                       delay_ms=delay_ms, count=count)["id"]


def hits(disks, rule):
    """How many commands it has hit."""
    return next(fault["hits"] for fault in disks.faults()["faults"] if fault["id"] == rule)


def on_hdd(ctx, block):
    """What a bare hard disk holds of a block, once nothing is on its way to it."""
    inflight = pathlib.Path("/sys/block", pathlib.Path(ctx.hdd).name, "inflight")
    wait.until(lambda: not any(map(int, inflight.read_text(encoding="ascii").split())), 60,
               "the hard disk at rest")
    with dm.Raw(ctx.hdd) as hdd:
        return hdd.read(MIB + block * BLOCK, BLOCK)


# --- who writes to the hard disk when -----------------------------------------------------------


@case(disks=RECORDED, timeout=60, long=("debug",))
def newer_version_waits_for_older(ctx):
    """v1 is on its way to the HDD when v2 is to be drained: v2 is there in the end (C4)."""
    with Disks() as disks:
        disks.fault_clear()
        with LcStack(ctx.hdd, ctx.ssd, format=SMALL, writeback="off") as lc, lc.open() as raw:
            fill(raw, 7, 1, "v1")
            raw.flush()
            held = hold(disks, "hdd", "write", MIB + 7 * BLOCK, BLOCK, LATE)
            lc.message("writeback")
            wait.until(lambda: hits(disks, held), 60, "v1 on its way")
            fill(raw, 7, 1, "v2")
            raw.flush()
            lc.message("writeback")
            lc.wait(lambda fields: not fields["dirty"], what="v2 drained")
            disks.fault_clear()
            assert on_hdd(ctx, 7) == content(7, "v2"), on_hdd(ctx, 7)[:8]


@case(disks=RECORDED, timeout=60, long=("debug",))
def bypass_waits_for_writeback(ctx):
    """v1 is on its way to the HDD when the SSD dies: what is written past it stays (S3)."""
    with Disks() as disks, Breakable("ssd1", ctx.ssd) as ssd:
        disks.fault_clear()
        with (LcStack(ctx.hdd, ssd.path, format=SMALL, writeback="off", ssd_patience_ms=500) as lc,
              lc.open() as raw):
            fill(raw, 7, 1, "v1")
            raw.flush()
            held = hold(disks, "hdd", "write", MIB + 7 * BLOCK, BLOCK, LATE)
            lc.message("writeback")
            wait.until(lambda: hits(disks, held), 60, "v1 on its way")
            ssd.fail()
            fill(raw, 7, 1, "v2")
            raw.flush()
            lc.wait(lambda fields: fields["mode"] == "degraded", what="mode degraded")
            fill(raw, 7, 1, "v3")
            raw.flush()
            disks.fault_clear()
        assert on_hdd(ctx, 7) == content(7, "v3"), on_hdd(ctx, 7)[:8]


@case(disks=RECORDED, timeout=60, long=("debug",))
def failed_hdd_flush_is_not_believed(ctx):
    """After a FLUSH that the HDD failed, what was written before it is written again (F3)."""
    with Disks() as disks:
        disks.fault_clear()
        with LcStack(ctx.hdd, ctx.ssd, format=SMALL, writeback="off") as lc, lc.open() as raw:
            fill(raw, 7, 1, "mine")
            raw.flush()
            writes = hold(disks, "hdd", "write", MIB + 7 * BLOCK, BLOCK, 0, -1)
            disks.fault(disk="hdd", op="flush", count=1)
            lc.drain()
            assert hits(disks, writes) == 2, hits(disks, writes)
            disks.fault_clear()


def stopped_cleanly(ctx):
    """Whether the next start takes the checkpoint."""
    return json.loads(sh.run("lc-dump", "--json", ctx.ssd))["superblock"]["clean"]


@case(disks=RECORDED, timeout=60, long=("debug",),
      fault=("HDD", "a FLUSH fails, writes do not",
             "its batch is written again; then all is well, and the next start replays nothing"))
def failed_hdd_flush_costs_no_replay(ctx):
    """A FLUSH that the HDD failed is forgotten when all of its batch is written again (F8)."""
    with Disks() as disks:
        disks.fault_clear()
        with LcStack(ctx.hdd, ctx.ssd, format=SMALL, writeback="off") as lc, lc.open() as raw:
            fill(raw, 0, 20, "mine")
            raw.write(21 * BLOCK + 512, b"p" * 1024)
            raw.flush()
            failed = disks.fault(disk="hdd", op="flush", count=1)["id"]
            lc.drain()
            assert hits(disks, failed) == 1, hits(disks, failed)
            disks.fault_clear()
        assert stopped_cleanly(ctx)


@case(disks=RECORDED, timeout=120, long=("debug",))
def doubt_outlives_other_flushes(ctx):
    """A block of a failed batch that is overwritten in the cache, or discarded, is not written
    again: the HDD may show what it does not hold, and no stop is clean (F8)."""
    with Disks() as disks:
        for change in ("overwritten", "discarded"):
            disks.fault_clear()
            stack = LcStack(ctx.hdd, ctx.ssd, format=SMALL, writeback="off", idle_seal_ms=0)
            with stack as lc, lc.open() as raw:
                fill(raw, 7, 1, "old")
                fill(raw, 100, 1, "other")
                raw.flush()
                failed = disks.fault(disk="hdd", op="flush")["id"]
                lc.message("writeback")
                wait.until(lambda rule=failed: hits(disks, rule), 60, "a FLUSH of the batch")
                if change == "overwritten":
                    fill(raw, 7, 1, "new")
                else:
                    raw.discard(7 * BLOCK, BLOCK)
                    lc.wait(lambda fields: fields["dirty"] == 1, what="a copy that is dropped")
                raw.flush()
                disks.fault_clear()
                left = int(change == "overwritten")
                lc.wait(lambda fields, left=left: fields["dirty"] == left, what="the rest drained")
            assert not stopped_cleanly(ctx), change
            with stack as lc, lc.open() as raw:
                if change == "overwritten":
                    assert raw.read(7 * BLOCK, BLOCK) == content(7, "new")
                assert raw.read(100 * BLOCK, BLOCK) == content(100, "other")
                lc.drain()
            assert stopped_cleanly(ctx), change


# --- coming and going ---------------------------------------------------------------------------


@case(disks=(Disk("ssd", "16M"), Disk("hdd", "128M")), timeout=40, long=("debug",))
def suspend_writes_what_is_dirty(ctx):
    """A suspend has the kernel write back more than the log holds, and ends (D4)."""
    with LcStack(ctx.hdd, ctx.ssd, format=SMALL) as lc:
        # Nobody but the suspend writes it back, though it is much.
        with setting("/proc/sys/vm/dirty_ratio", 90), \
                setting("/proc/sys/vm/dirty_background_ratio", 80), lc.open(direct=False) as raw:
            for at in range(0, 48 * MIB, MIB):
                raw.write(at, at.to_bytes(8, "little") * (MIB // 8))
            with lc.paused():
                pass
        with lc.open() as raw:
            for at in range(0, 48 * MIB, MIB):
                assert raw.read(at, BLOCK) == at.to_bytes(8, "little") * (BLOCK // 8)


@case(disks=PAIR, timeout=60, long=("debug",))
def tables_write_nothing(ctx):
    """A table comes and goes without a write, and after a reload the life goes on (D6)."""
    with LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw:
        fill(raw, 0, 16, "before")
        raw.flush()
        seen = [commands(path) for path in (ctx.ssd, ctx.hdd)]
        sh.run("dmsetup", "load", lc.name, "--table", lc.table().strip())
        sh.run("dmsetup", "clear", lc.name)
        for path, count in zip((ctx.ssd, ctx.hdd), seen):
            now = commands(path)
            assert (now["write"], now["flush"]) == (count["write"], count["flush"]), (now, count)
        # Here the old table goes after the new one has started.
        sh.run("dmsetup", "load", lc.name, "--table", lc.table().strip())
        sh.run("dmsetup", "resume", lc.name)
        assert lc.fields()["mode"] == "rw", lc.fields()
        fill(raw, 16, 16, "after")
        raw.flush()
        assert raw.read(16 * BLOCK, BLOCK) == content(16, "after")


# --- bugs of dm-writeboost ----------------------------------------------------------------------


@case(disks=RECORDED, timeout=60, long=("debug",))
def degraded_flush_reaches_the_hdd(ctx):
    """Without its SSD a volume flushes the HDD, and says so if that fails."""
    with Disks() as disks, Breakable("ssd1", ctx.ssd) as ssd:
        disks.fault_clear()
        with LcStack(ctx.hdd, ssd.path, format=SMALL, ssd_patience_ms=0) as lc, lc.open() as raw:
            ssd.fail()
            fill(raw, 0, 1, "saved")
            raw.flush()
            lc.wait(lambda fields: fields["mode"] == "degraded", what="mode degraded")
            for turn in range(5):
                fill(raw, 0, 8, turn)
                before = commands(ctx.hdd)["flush"]
                raw.flush()
                assert commands(ctx.hdd)["flush"] > before, turn
            # All of them: one of the volume's own must not come instead.
            disks.fault(disk="hdd", op="flush", count=-1)
            try:
                raw.flush()
                raise AssertionError("a FLUSH that the HDD failed ended well")
            except OSError:
                pass
            finally:
                disks.fault_clear()
        ssd.heal()


@case(disks=PAIR, timeout=60, long=("debug",))
def idle_drain_does_not_stop_itself(ctx):
    """What writeback does is no load: once begun, an idle drain of many batches goes on."""
    with LcStack(ctx.hdd, ctx.ssd, format=SMALL, writeback="off",
                 writeback_batch=64) as lc, lc.open() as raw:
        fill(raw, 0, 1000, "mine")
        raw.flush()
        lc.message("writeback", "on")
        fields = lc.wait(lambda fields: fields["dirty"] < 1000, what="an idle drain")
        while fields["dirty"]:
            # Read one after the other: all of it may have ended in between.
            if fields["writeback"] == "idle":
                assert not lc.fields()["dirty"], (fields, lc.fields())
            fields = lc.fields()


@case(disks=(Disk("ssd", "16M"), Disk("hdd", "128M")), timeout=60, long=("debug",))
def full_cache_drains_in_large_batches(ctx):
    """A full cache costs the HDD one FLUSH for many segments, not one for each."""
    with LcStack(ctx.hdd, ctx.ssd, format=SMALL) as lc, lc.open() as raw:
        segments = lc.fields()["segments"]
        before = commands(ctx.hdd)["flush"]
        for at in range(0, 64 * MIB, MIB):
            raw.write(at, bytes([at // MIB + 1]) * MIB)
        flushes = commands(ctx.hdd)["flush"] - before
    drained = 64 * MIB // (15 * BLOCK) - segments
    ctx.figure("segments_drained", drained)
    ctx.figure("hdd_flushes", flushes)
    assert drained > 500 and 0 < flushes <= drained // 16, (drained, flushes)


# --- the segments kept back for what is logged again (D1) ---------------------------------------


DATA_SLOTS = 15         # of a segment of 64 KiB in one record
SUMMED = 128            # bytes before a header's entries; what lies behind them is not summed
FULL_LOG_SECONDS = 400  # more than what it waits for at most: then it says what did not happen


class FullLog:
    """A volume whose log is full, and whose oldest segment holds blocks the HDD refuses.

    Writeback wants that segment, and is held at its first read of it until the log is full.
    """

    def __init__(self, ctx, disks, ssd, **options):
        self.disks = disks
        self.ssd = ssd
        disks.fault_clear()
        self.stack = LcStack(ctx.hdd, ssd.path, format=SMALL,
                             **{"writeback": "off", "idle_seal_ms": 0, "buffers": 8,
                                "ssd_patience_ms": 0, **options})
        self.first = 0      # where the oldest segment lies on the SSD
        self.written = 0

    def begin(self, segments):
        """So many first segments, each of one whole record."""
        self.stack.start()
        with self.stack.open() as raw:
            for _ in range(segments):
                fill(raw, self.written, DATA_SLOTS, "kept")
                raw.flush()
                self.written += DATA_SLOTS
        self.first = slot_sector(self.ssd.path, b"kept 0\n") * 512 - BLOCK

    def slot(self, block):
        """The place of one of the first blocks."""
        return self.first + block // DATA_SLOTS * 16 * BLOCK + (1 + block % DATA_SLOTS) * BLOCK

    def put(self, raw):
        """Write one block, unless it would have to wait; whether it was."""
        raw.buffer[:BLOCK] = content(self.written, "kept")
        try:
            os.pwritev(raw.handle, [memoryview(raw.buffer)[:BLOCK]], self.written * BLOCK,
                       os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        self.written += 1
        return True

    def round(self):
        """Segments that the tail passes at once; 0: one lane."""
        fields = self.stack.fields()
        return min(16 * fields["lanes"], fields["segments"] // 16) if fields["lanes"] > 1 else 0

    def fill_up(self, refused=DATA_SLOTS):
        """Write until nothing more can be taken, and have the HDD refuse the oldest blocks."""
        self.ssd.hold(self.first, 16 * BLOCK)
        keep = max(1, min(4, self.stack.fields()["segments"] // 16))
        if self.round():
            keep += 2 * (self.round() - 1)
        tries = 0

        def full():
            nonlocal tries
            while self.put(raw):
                tries = 0
            tries += 1
            return tries > 20 and self.stack.fields()["free_segments"] <= keep
        with self.stack.open() as raw:
            try:
                wait.until(full, 120, "a full log")
            except AssertionError as error:
                raise AssertionError(f"{error}: {tries}, {self.stack.fields()}") from error
        wait.until(self.ssd.held, 60, "writeback to want the oldest segment")
        self.refuse(refused)

    def refuse(self, blocks=DATA_SLOTS):
        """The HDD refuses the oldest blocks, by default those of one segment."""
        self.disks.fault(disk="hdd", op="write", offset=MIB, length=blocks * BLOCK)

    def stop_after(self, count):
        """Let writeback go on until it has logged so many blocks again."""
        self.ssd.hold(self.slot(count), BLOCK)
        while True:
            wait.until(self.ssd.held, 60, "a read of the slot")
            if self.stack.fields()["relogged"]:
                break
            # An earlier read, of the batch: on to the next.
            self.ssd.hold(self.slot(count), BLOCK)
        assert self.stack.fields()["relogged"] == count, self.stack.fields()
        # A FLUSH closes the record that is begun.
        self.stack.message("flush")

    def goes_on(self, refused, lost=0):
        """All but what the HDD refuses can be drained, and writes go on."""
        self.stack.wait(lambda fields: fields["mode"] != "rw" or
                        fields["free_segments"] > fields["segments"] // 8, 120, "any room")
        self.stack.message("writeback")
        fields = self.stack.wait(lambda fields: fields["mode"] != "rw" or (
            fields["free_segments"] > fields["segments"] // 2 and
            fields["dirty"] == refused + lost), 120, "room in the log")
        assert fields["mode"] == "rw" and fields["lost"] == lost, fields
        assert 0 < fields["refused"] <= refused, fields     # the last ones where they were
        with self.stack.open() as raw:
            fill(raw, self.written, 100, "more")
            raw.flush()
            check(raw, (*range(refused), *range(refused + lost, self.written)), "kept")
        self.disks.fault_clear()
        self.stack.drain()
        assert self.stack.fields()["refused"] == 0, self.stack.fields()
        self.stack.remove()


@case(kernels=("stock",), disks=RECORDED, timeout=FULL_LOG_SECONDS)
def reserve_outlives_a_flush(ctx):
    """A FLUSH while blocks are logged again into a full log costs a slot too many (D1)."""
    with Disks() as disks, Holding("ssd1", ctx.ssd) as ssd:
        log = FullLog(ctx, disks, ssd)
        log.begin(1)
        log.fill_up()
        log.stop_after(7)
        ssd.heal()
        log.goes_on(DATA_SLOTS)


@case(kernels=("stock",), disks=RECORDED, timeout=FULL_LOG_SECONDS)
def reserve_outlives_a_crash(ctx):
    """The power goes while blocks are logged again into a full log: the next life goes on (D1)."""
    with Disks() as disks, Holding("ssd1", ctx.ssd) as ssd:
        log = FullLog(ctx, disks, ssd)
        log.begin(1)
        log.fill_up()
        log.stop_after(7)
        disks.cut(seed=ctx.seed, policy="drop-all")
        disks.fault_clear()
        ssd.heal()
        sh.result("dmsetup", "remove", log.stack.name)
        disks.restore()
        log.refuse()
        log.stack.activate()
        log.goes_on(DATA_SLOTS)


@case(kernels=("stock",), disks=RECORDED, timeout=FULL_LOG_SECONDS)
def reserve_outlives_a_rotten_header(ctx):
    """The tail cannot move to the next segment because its header has rotted (D1)."""
    with Disks() as disks, Holding("ssd1", ctx.ssd) as ssd:
        log = FullLog(ctx, disks, ssd)
        log.begin(2)
        log.stack.remove()
        disks.corrupt(disk="ssd", offset=log.slot(DATA_SLOTS) - BLOCK, len=SUMMED, seed=ctx.seed)
        log.stack.activate()
        log.fill_up()
        ssd.heal()
        log.goes_on(DATA_SLOTS, lost=DATA_SLOTS)


@case(kernels=("stock",), disks=RECORDED, timeout=FULL_LOG_SECONDS)
def reserve_outlives_many_refused(ctx):
    """More must be logged again than the segments kept back hold: they are used twice (D1)."""
    refused = 64            # four segments are kept back; with one more the HDD has failed
    assert refused > 4 * DATA_SLOTS
    with Disks() as disks, Holding("ssd1", ctx.ssd) as ssd:
        log = FullLog(ctx, disks, ssd)
        log.begin(1)
        log.fill_up(refused)
        ssd.heal()
        log.goes_on(refused)


@case(kernels=("stock",), disks=(Disk("ssd", "24M", kind="recorded"), RECORDED[1]),
      timeout=FULL_LOG_SECONDS, sampled=3)
def full_round_is_drained_in_batches(ctx):
    """With several lanes, a refused block of a full log does not make batches small (D8)."""
    batch = 4               # segments
    with Disks() as disks, Holding("ssd1", ctx.ssd) as ssd:
        log = FullLog(ctx, disks, ssd, lanes=4, buffers=16, writeback_batch=batch * 16)
        log.begin(1)
        log.fill_up(1)
        before = commands(ctx.hdd)["flush"]
        # Behind the cut: writeback gets there when the tail has.
        ssd.hold(log.first + log.round() * 16 * BLOCK, 16 * BLOCK)
        wait.until(ssd.held, 120, "the tail at the next cut")
        flushes = commands(ctx.hdd)["flush"] - before
        fields = log.stack.fields()
        ctx.figure("segments of a round", log.round())
        ctx.figure("flushes of the HDD", flushes)
        ssd.heal()
        assert fields["relogged"] == 1 and fields["mode"] == "rw", fields
        assert flushes <= log.round() // batch + 4, f"{flushes} for {log.round()} segments"
        log.goes_on(1)


# --- the log is as good as full -----------------------------------------------------------------


@case(kernels=("stock",), disks=(Disk("ssd", "16M"), Disk("hdd", "64M")), timeout=180, sampled=3)
def full_log_slows_writes(ctx):
    """With the log full no write waits until a whole batch is on a slow HDD (D8)."""
    random = Random(ctx.seed)
    with (dm.Device("slow", dm.delay(ctx.hdd, 0, 4)) as hdd,
          LcStack(hdd.path, ctx.ssd, format=SMALL, writeback_depth=1) as lc):
        segments = lc.fields()["segments"]
        batch = segments * 16 // 8      # an eighth of the log: less than writeback_batch
        blocks = dm.sectors(lc.path) // 8
        waited = []
        with lc.open() as raw:
            for _ in range(segments * 15 + 5 * batch):
                before = commands(ctx.hdd)["write"]
                fill(raw, random.randrange(blocks), 1, "slow")
                waited.append(commands(ctx.hdd)["write"] - before)
        fields = lc.fields()
        assert fields["free_segments"] <= segments // 2 and fields["dirty"] > batch, fields
        steady = waited[-4 * batch:]
        assert sum(steady) > batch, f"the HDD wrote {sum(steady)} blocks: it was not the limit"
        ctx.figure("batch", batch)
        ctx.figure("longest wait, in writes of the HDD", max(waited))
        assert max(waited) < batch // 2, f"a write waited for {max(waited)} of the HDD"


@case(kernels=("stock",), disks=(Disk("ssd", "16M"), Disk("hdd", "64M")), timeout=120, sampled=3)
def full_buffers_slow_writes(ctx):
    """With the SSD as the limit no write waits until all buffers are written (D9)."""
    buffers, segments = 16, 60
    waited = []
    with (dm.Device("slow", dm.delay(ctx.ssd, 0, 400)) as ssd,
          LcStack(ctx.hdd, ssd.path, format=SMALL, buffers=buffers, writeback="off") as lc,
          lc.open() as raw):
        for block in range(segments * 15):
            before = commands(ctx.ssd)["write"]
            fill(raw, block, 1, "slow")
            waited.append(commands(ctx.ssd)["write"] - before)
    assert sum(waited) > segments // 2, f"{sum(waited)} commands: the SSD was not the limit"
    ctx.figure("buffers", buffers)
    ctx.figure("longest wait, in writes of the SSD", max(waited))
    # That long once, when the SSD's rate becomes known (D23).
    assert max(waited) <= buffers // 2, f"a write waited for {max(waited)} of the SSD"


class Reader:
    """Reads blocks at random and counts what the HDD writes meanwhile."""

    def __init__(self, ctx, raw, blocks):
        self.hdd, self.raw, self.blocks = ctx.hdd, raw, blocks
        self.random = Random(ctx.seed)

    def until(self, over):
        """Reads a write, until over(reads, writes)."""
        before, reads, writes = commands(self.hdd)["write"], 0, 0
        while not over(reads, writes):
            self.raw.read(self.random.choice(self.blocks) * BLOCK, BLOCK)
            reads += 1
            writes = commands(self.hdd)["write"] - before
        return reads / max(writes, 1)


@case(kernels=("stock",), disks=(Disk("ssd", "16M"), Disk("hdd", "64M")), timeout=180, sampled=3)
def reads_go_before_writeback(ctx):
    """Writeback makes way for reads of a HDD, but goes on; not if somebody waits for it (D11)."""
    with (dm.Device("slow", dm.delay(ctx.hdd, 0, 40)) as hdd,
          LcStack(hdd.path, ctx.ssd, format=SMALL, writeback="off", writeback_depth=1) as lc,
          lc.open() as raw):
        for block in range(0, 500, 2):      # no neighbours
            fill(raw, block, 1, "measured")
        lc.drain()
        # Now it is faster than it is taken for, so that rests are long.
        hdd.reload(dm.delay(ctx.hdd, 0, 4))
        for block in range(0, 2000, 2):
            fill(raw, block, 1, "dirty")
        others = range(2000, dm.sectors(lc.path) // 8)
        from_hdd = Reader(ctx, raw, others)
        lc.message("writeback", "on")       # nobody writes, so that it drains
        lc.wait(lambda fields: fields["writeback"] == "running", what="writeback at work")
        yielding = from_hdd.until(lambda reads, writes: writes >= 60 or reads > 20_000)
        # Other options are taken over between batches.
        option = sh.start("dmsetup", "message", lc.name, 0, "writeback_depth", 2)
        waited_for = from_hdd.until(lambda *_: option.poll() is not None)
        sh.finish(option)
        lc.message("writeback")
        told = from_hdd.until(lambda reads, writes: writes >= 60 or reads > 20_000)
    ctx.figure("reads of the HDD a write there, with an option waiting, and when told to drain",
               [round(figure, 1) for figure in (yielding, waited_for, told)])
    assert yielding > 3 * waited_for, "writeback does not make way for reads, or an option does"
    assert yielding > 3 * told, "writeback makes way for reads although it was told to drain"
    assert yielding < 50 * waited_for, "writeback has come to a stop"


# --- who may keep a segment -----------------------------------------------------------------------


@contextlib.contextmanager
def slow_process(device, limit, *words):
    """A program in a cgroup that gets 8 bytes a second (rbps or wbps) of the device."""
    number = os.stat(device).st_rdev
    number = f"{os.major(number)}:{os.minor(number)}"
    with cgroup.group("io") as group:
        cgroup.put(group / "io.max", f"{number} {limit}=8")
        process = sh.start("sh", "-c", f"echo $$ > {group}/cgroup.procs && exec \"$@\"", "sh",
                           *words)
        try:
            yield process
        finally:
            cgroup.put(group / "io.max", f"{number} {limit}=max")
            sh.finish(process)


def slow_reader(device, path, block, output):
    """dd that reads a block of a path, slowly of the device."""
    return slow_process(device, "rbps", "dd", f"if={path}", "bs=4k", f"skip={block}", "count=1",
                        "iflag=direct", f"of={output}")


def slow_writer(device, path, block, source):
    """dd that writes a block of a path, slowly to the device."""
    return slow_process(device, "wbps", "dd", f"if={source}", "bs=4k", f"seek={block}", "count=1",
                        "oflag=direct", "conv=notrunc", f"of={path}")


def blocked(process, call="0 0x0 "):
    """Does dd wait in read(0), or in write(1)?  Not for its own program, which is neither file.

    A call is given as its number, and its first argument.
    """
    entry = pathlib.Path("/proc", str(process.pid))
    return "(dd) D" in (entry / "stat").read_text("ascii") and \
        (entry / "syscall").read_text("ascii").startswith(call)


def hold_read_for_a_lap(ctx, **options):
    """A read is held back on the SSD while the log goes round."""
    output = pathlib.Path("/tmp/held")
    with LcStack(ctx.hdd, ctx.ssd, format=SMALL, **options) as lc, lc.open() as raw:
        fill(raw, 0, 100, "first")
        lc.drain()
        place = slot_sector(ctx.ssd, b"first 3\n") * 512
        with slow_reader(ctx.ssd, lc.path, 3, output) as reader:
            wait.until(lambda: blocked(reader), 60, "the read to be held back")
            # A lap of the log is 1,440 blocks.
            lap = b"".join(content(block, "lap") for block in range(100))
            writes = [threading.Thread(target=raw.write, args=((1000 + i * 100) * BLOCK, lap))
                      for i in range(30)]
            for write in writes:
                write.start()
                wait.until(lambda write=write: not write.is_alive(), 60, "a write beside the read")
            assert blocked(reader), "the read went on by itself"
        with dm.Raw(ctx.ssd) as bare:
            assert not bare.read(place, 512).startswith(b"first 3\n"), "the segment was not reused"
        assert output.read_bytes() == content(3, "first"), output.read_bytes()[:20]
        output.unlink()


@case(kernels=("stock",), disks=(Disk("ssd", "8M"), Disk("hdd", "32M")), timeout=120)
def held_read_stops_no_write(ctx):
    """A read of the SSD is held back while the log goes round: no write waits for it, and what it
    returns is not what lies there by then (D16)."""
    hold_read_for_a_lap(ctx)


@case(kernels=("stock",), disks=(Disk("ssd", "8M"), Disk("hdd", "32M")), timeout=120)
def held_read_to_verify_stops_no_write(ctx):
    """The same with verify_reads."""
    hold_read_for_a_lap(ctx, verify_reads="on")


@case(kernels=("stock",), disks=(Disk("ssd", "8M"), Disk("hdd", "32M")), timeout=120)
def held_read_to_verify_is_of_its_segment(ctx):
    """A read is held back with verify_reads. By then its slot holds a part of the same block, with
    the right sum; the rest of the slot is not the block's."""
    output = pathlib.Path("/tmp/held")
    with (LcStack(ctx.hdd, ctx.ssd, format=SMALL, verify_reads="on", idle_seal_ms=0, lanes=1) as lc,
          lc.open() as raw, dm.Raw(ctx.ssd) as bare):
        fill(raw, 0, 100, "first")
        lc.drain()
        place = slot_sector(ctx.ssd, b"first 2\n") * 512
        with slow_reader(ctx.ssd, lc.path, 2, output) as reader:
            wait.until(lambda: blocked(reader), 60, "the read to be held back")
            # Records of a header and a block: one ends two slots before the place.
            for block in range(1000, 2500):
                fill(raw, block, 1, "lap")
                raw.flush()
                if bare.read(place - 2 * BLOCK, BLOCK) == content(block, "lap"):
                    break
            raw.write(2 * BLOCK, b"part".ljust(512))
            raw.flush()
            assert bare.read(place, 512) == b"part".ljust(512), "the part lies elsewhere"
            assert blocked(reader), "the read went on by itself"
        found = output.read_bytes()
        assert found == b"part".ljust(512) + content(2, "first")[512:], (found[:8], found[512:520])
        output.unlink()


@case(kernels=("stock",), disks=(Disk("ssd", "8M"), Disk("hdd", "32M")), timeout=120)
def limit_on_the_volume_holds_its_writer(ctx):
    """io.max on the volume holds a writer back, and nobody else; on the SSD it does not, because
    what is written there is in the root cgroup."""
    source = pathlib.Path("/tmp/source")
    with LcStack(ctx.hdd, ctx.ssd, format=SMALL) as lc, lc.open() as raw:
        fill(raw, 3, 2, "old")
        source.write_bytes(content(3, "new"))
        with slow_writer(lc.path, lc.path, 3, source) as writer:
            wait.until(lambda: blocked(writer, "1 0x1 "), 60, "the write to be held back")
            fill(raw, 1000, 2000, "others'")
            raw.flush()
            assert blocked(writer, "1 0x1 "), "the write went on by itself"
            assert raw.read(3 * BLOCK, BLOCK) == content(3, "old"), "the write was not held back"
        assert raw.read(3 * BLOCK, BLOCK) == content(3, "new")
        source.write_bytes(content(4, "new"))
        with slow_writer(ctx.ssd, lc.path, 4, source) as writer:
            wait.until(lambda: writer.poll() is not None, 60, "a write that no limit holds")
        assert raw.read(4 * BLOCK, BLOCK) == content(4, "new")
        source.unlink()


@case(kernels=("stock",), disks=PAIR, timeout=120,
      fault=("SSD", "fails while a cgroup's limit holds a writer back on the hard disk",
             "the salvage goes on, and so do all writes"))
def salvage_waits_for_no_limit(ctx):
    """io.max of a writer on the hard disk holds back neither the salvage nor others (S-g)."""
    source = pathlib.Path("/tmp/source")
    source.write_bytes(content(5000, "limited"))
    with salvage(ctx, 300, "kept") as (lc, raw, go_on), \
            slow_writer(ctx.hdd, lc.path, 5000, source) as writer:
        wait.until(lambda: writer.poll() is not None or blocked(writer, "1 0x1 "), 60,
                   "the write on its way")
        go_on()
        fields = lc.wait(lambda fields: not fields["dirty"], 60, "the end of the salvage")
        assert fields["lost"] == 0, fields
        wait.until(lambda: writer.poll() is not None, 60, "a write that no limit holds")
        check(raw, range(300), "kept")
        assert raw.read(5000 * BLOCK, BLOCK) == content(5000, "limited")
    source.unlink()


@case(disks=PAIR, timeout=120,
      fault=("SSD", "is salvaged while a message changes the batch or the depth of writeback",
             "the salvage rests meanwhile, and saves all afterwards"))
def resize_pauses_the_salvage(ctx):
    """Writeback's list and copier, which the salvage uses, are not replaced under it (S24)."""
    with salvage(ctx, 300, "kept") as (lc, raw, go_on), Calls("lc_salvage_pause") as pauses:
        before = pauses.count()
        option = sh.start("dmsetup", "message", lc.name, 0, "writeback_depth", 2)
        try:
            wait.until(lambda: pauses.count() > before or option.poll() is not None, 60,
                       "the message")
            paused = pauses.count() - before
        finally:
            go_on()
            wait.until(lambda: option.poll() is not None, 60, "the end of the message")
        assert not option.returncode, "the message was refused"
        assert paused, "the salvage went on"
        fields = lc.wait(lambda fields: not fields["dirty"], 60, "the end of the salvage")
        assert fields["lost"] == 0, fields
        check(raw, range(300), "kept")


# --- who sends a record ---------------------------------------------------------------------------


@case(disks=(*PAIR, Disk("more", "16M")), timeout=60)
def flush_in_other_company(ctx):
    """FLUSH and FUA where the volume is a part of a mapped device, or the task must not wait."""
    with LcStack(ctx.hdd, ctx.ssd, writeback="off") as lc:
        words = lc.table().split()
    volume = dm.lc(words[3], words[4], int(words[1]), writeback="off", idle_seal_ms=0)
    with dm.Device("two", volume, dm.linear(ctx.more)) as two, dm.Raw(two.path) as raw:
        behind = int(words[1]) // 8
        for block in range(200):
            fill(raw, block, 1, "two")
            fill(raw, behind + block, 1, "two")
            raw.flush()
        for block in range(200, 250):
            raw.write(block * BLOCK, content(block, "two"), fua=True)
        for block in range(250, 300):
            raw.buffer[:BLOCK] = content(block, "two")
            assert os.pwritev(raw.handle, [memoryview(raw.buffer)[:BLOCK]], block * BLOCK,
                              os.RWF_NOWAIT | os.RWF_DSYNC) == BLOCK
        sh.run("ionice", "-c3", "dd", "if=/dev/zero", f"of={two.path}", "bs=4k", "count=20",
               f"seek={300}", "oflag=direct,dsync")
        fields = status.parse(two.status().splitlines()[0])
        check(raw, (*range(300), *range(behind, behind + 200)), "two")
        assert fields["durable_seq"] == fields["head_seq"] - 1, fields
