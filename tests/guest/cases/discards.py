# SPDX-License-Identifier: GPL-2.0-only
"""Discards beside writeback, beside each other, beside mode events, and after a power cut.

As in hazards.py, commands are kept waiting at the moment that matters, or counted, and what a case
waits for are states, never times.
"""

import contextlib
import os
import pathlib
import random

from lclib import Disk, case, dm, sh, wait
from lclib.calls import Calls
from lclib.disk import MIB, commands
from lclib.disks import Disks
from lclib.faulty import BLOCK, Breakable, Holding, content, events, fill
from lclib.lc import LcStack
from lclib.setting import setting
from lclib.writes import Write

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
RECORDED = (Disk("ssd", "8M", kind="recorded"), Disk("hdd", "32M", kind="recorded"))
SMALL = ("--segment-size=64K",)
LATE = 5_000            # ms: by then a broken module has done what it must not do
FOR_EVER = 600_000      # ms, until it is let go
PIECES = 2_000


def discard(volume, block, count=1):
    """Begin to discard blocks; the caller waits for it. The kernel lets one at a time in."""
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
    """A block written while a discard is on its way is not drained before it (C5)."""
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
            ends(ctx, late, "the command, ahead of the discard")
            lc.wait(lambda fields: not fields["dirty"], what="the end of the drain")
            lc.settle()
        assert raw.read(7 * BLOCK, BLOCK) == content(7, "newer")
        assert on_hdd(ctx, 7) == content(7, "newer"), on_hdd(ctx, 7)[:10]


@case(kernels=("stock",), disks=RECORDED, timeout=90)
def dropped_blocks_stay_dropped(ctx):
    """Many discards in one record, then the power goes: no block is back, newer ones are there."""
    with Disks() as disks:
        disks.fault_clear()
        lc = LcStack(ctx.hdd, ctx.ssd, format=SMALL, writeback="off", idle_seal_ms=0).start()
        with lc.open() as raw:
            fill(raw, 0, 400, "dropped")
            raw.flush()
            in_pieces(lc, BLOCK)
            raw.discard(0, 300 * BLOCK)
            lc.settle()
            assert lc.fields()["cached"] == 100, lc.fields()
            fill(raw, 10, 1, "newer")
            raw.flush()
        disks.cut(seed=ctx.seed, policy="drop-all")
        sh.result("dmsetup", "remove", lc.name)
        disks.restore()
        with lc, lc.open() as raw:
            back = [block for block in range(300)
                    if raw.read(block * BLOCK, BLOCK) == content(block, "dropped")]
            assert not back, back
            for block, tag in (10, "newer"), *((block, "dropped") for block in range(300, 400)):
                assert raw.read(block * BLOCK, BLOCK) == content(block, tag), block


def few_flushes(ctx, discard_all, most):
    """Discards of cached blocks: what they cost an SSD whose writes and FLUSHes take a while."""
    with (dm.Device("slow", dm.delay(ctx.ssd, 0, 20)) as ssd,
          LcStack(ctx.hdd, ssd.path, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw):
        raw.write(0, b"cached".ljust(BLOCK) * PIECES)
        raw.flush()
        assert lc.fields()["cached"] == PIECES, lc.fields()
        in_pieces(lc, BLOCK)
        before = commands(ctx.ssd)
        discard_all(raw)
        lc.settle()
        after = commands(ctx.ssd)
        assert lc.fields()["cached"] == 0, lc.fields()
    spent = {kind: after[kind] - before[kind] for kind in ("write", "flush")}
    ctx.figure("commands for 2,000 discards", spent)
    assert max(spent.values()) <= most, spent


@case(kernels=("stock",), disks=PAIR, timeout=90)
def without_one_below_cost_nothing(ctx):
    """If nothing is cached and the hard disk has no discard, a discard of the volume costs no
    command; it still takes what is cached out of the cache."""
    with (setting(f"/sys/block/{pathlib.Path(ctx.hdd).name}/queue/discard_max_bytes", 0),
          LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw):
        seen = [all_commands(path) for path in (ctx.ssd, ctx.hdd)]
        raw.discard(0, raw.size)
        assert [all_commands(path) for path in (ctx.ssd, ctx.hdd)] == seen, seen
        fill(raw, 7, 1, "cached")
        raw.flush()
        raw.discard(0, raw.size)
        lc.wait(lambda fields: fields["cached"] == 0, what="nothing cached")


@case(kernels=("stock",), disks=PAIR, timeout=120)
def huge_takes_as_long_as_the_cache(ctx):
    """A discard of 4 TiB looks at the slots of the cache, not at each block."""
    half = dm.sectors(ctx.hdd) // 2
    with (dm.Device("sparse", dm.linear(ctx.hdd, half), dm.zero(4 << 31),
                    dm.linear(ctx.hdd, half, half)) as sparse,
          LcStack(sparse.path, ctx.ssd, writeback="off") as lc, lc.open() as raw):
        fill(raw, 0, 100, "cached")
        raw.flush()
        with Calls("visit_block") as looks:
            raw.discard(0, raw.size)
            lc.settle()
            assert 0 < looks.count() < 1000, looks.count()
        assert lc.fields()["cached"] == 0, lc.fields()


@case(kernels=("stock",), disks=PAIR, timeout=120)
def take_few_flushes(ctx):
    """2,000 discards of cached blocks that come at once: few FLUSHes and few records (D13)."""
    few_flushes(ctx, lambda raw: raw.discard(0, PIECES * BLOCK), PIECES // 20)


@case(kernels=("stock",), disks=PAIR, timeout=120)
def one_after_the_other_take_few_flushes(ctx):
    """The same if each is waited for before the next one is sent (D26)."""
    def one_by_one(raw):
        for piece in range(PIECES):
            raw.discard(piece * BLOCK, BLOCK)

    # A sender that gets little CPU time sends few while one record is written.
    few_flushes(ctx, one_by_one, PIECES // 4)


def suspend_begins(lc):
    """A suspend that has come to where device mapper waits for bios."""
    with Calls("lc_volume_presuspend") as calls:
        suspend = sh.start("dmsetup", "suspend", "--nolockfs", lc.name)
        wait.until(calls.count, 60, "a suspend that has begun")
    return suspend


@case(kernels=("stock",), disks=PAIR, timeout=120)
def suspend_waits_for_one_copy_only(ctx):
    """A discard waits for a copy of its block, a suspend for the discard: neither of them waits for
    the rest of the batch (D13)."""
    with (Holding("ssd1", ctx.ssd) as ssd, dm.Device("slow", dm.delay(ctx.hdd, 0, 100)) as hdd,
          LcStack(hdd.path, ssd.path, format=SMALL, writeback="off", writeback_depth=1) as lc,
          lc.open() as raw):
        for block in range(7, 807, 2):      # no neighbours
            fill(raw, block, 1, "batch")
        raw.flush()
        with copy_held(lc, ssd, 7, "batch"):
            with Calls("lc_discard_map") as come:
                waiting = discard(lc, 7)
                wait.until(come.count, 60, "the discard of the block that is being copied")
            suspend = suspend_begins(lc)
            assert waiting.poll() is None, "a discard overtook a copy of its block"
        try:
            sh.finish(suspend, 60)
            dirty = lc.fields()["dirty"]
        finally:
            lc.resume()
        ctx.figure("dirty of 400 at the suspend", dirty)
        hdd.reload(dm.linear(ctx.hdd))
        ends(ctx, waiting, "the discard behind the copy")
    assert dirty > 200, f"{dirty} of 400 blocks left: the suspend waited for the batch"


@case(kernels=("stock",), disks=PAIR, timeout=120)
def suspend_costs_few_flushes(ctx):
    """2,000 discards of cached blocks wait for the SSD, half of them with commands that have ended:
    a suspend waits for few records and FLUSHes, not for each of them (D13, D26)."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        with (LcStack(ctx.hdd, ssd.path, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw):
            raw.write(0, b"cached".ljust(BLOCK) * PIECES)
            raw.flush()
            in_pieces(lc, BLOCK)
            with contextlib.ExitStack() as later:
                ssd.suspend("--noflush", "--nolockfs")
                later.callback(ssd.resume)
                fill(raw, 5000, 1, "other")     # is to be made durable before any record
                with Calls("lc_discard_map") as come:
                    waiting = discard(lc, 0, PIECES)
                    wait.until(lambda: come.count() == PIECES, 60, "all discards to have come")
                suspend = suspend_begins(lc)
                before = commands(ctx.ssd)
            later.callback(lc.resume)
            with later:
                sh.finish(suspend, 60)
                after = commands(ctx.ssd)
                assert lc.fields()["cached"] == 1, lc.fields()
            ends(ctx, waiting, "the discards")
    spent = {kind: after[kind] - before[kind] for kind in ("write", "flush")}
    ctx.figure("commands for 2,000 discards and a suspend", spent)
    assert max(spent.values()) <= PIECES // 20, spent


@case(kernels=("stock",), disks=RECORDED, timeout=90)
def events_do_not_queue_behind(ctx):
    """A discard is held by the hard disk; that the mode changes is told nevertheless (D14)."""
    with Disks() as disks, Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, format=(*SMALL, "--in-place", "--no-mark"),
                     ssd_patience_ms=0, writeback="off").start()
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


# --- discards that go on when their commands have ended (D26) -----------------------------------


class Pending:
    """The SSD answers nothing; blocks 0 to 7 are discarded, which has ended, but is not logged.

    Something is still to be made durable before the log takes a RANGE record.
    """

    def __init__(self, ctx, lc, ssd, raw, tag=""):
        self.ctx, self.lc, self.ssd, self.raw, self.tag = ctx, lc, ssd, raw, tag
        self.writes = []

    def __enter__(self):
        fill(self.raw, 0, 20, "older" + self.tag)
        self.raw.flush()
        self.ssd.suspend("--noflush", "--nolockfs")
        try:
            fill(self.raw, 500, 1, "other" + self.tag)
            ends(self.ctx, discard(self.lc, 0, 8), "the command, ahead of the discard")
        except BaseException:
            self.ssd.resume()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:    # else the cleanup waits for the SSD
            self.ssd.resume()
            self.lc.resume()

    def newer(self, block):
        """Data that is written after the discard."""
        return content(block, "newer" + self.tag)

    def write(self, block, data, **kwargs):
        """A write of blocks that are being discarded: it waits."""
        self.writes.append(Write(self.lc.path, block, data, **kwargs))
        self.lc.wait(lambda fields: fields["parked_blocks"] == len(self.writes),
                     what="a write that waits for a discard")

    def write_all(self):
        """A write of other blocks goes on; those of blocks being discarded wait, of all kinds."""
        fill(self.raw, 8, 1, "newer" + self.tag)
        self.write(3, self.newer(3))
        self.write(4, self.newer(4), fua=True)
        self.write(5, self.newer(5)[:512], within=1024)
        try:
            os.pwritev(self.raw.handle, [memoryview(self.raw.buffer)[:BLOCK]], 6 * BLOCK,
                       os.RWF_NOWAIT)
            raise AssertionError("a write that is not to wait passed a discard")
        except BlockingIOError:
            pass

    def check(self, raw, fua=True, plain=True):
        """What was written is there, if it was promised."""
        def holds(block, data, within=0):
            found = raw.read(block * BLOCK, BLOCK)[within:within + len(data)]
            assert found == data, (self.tag, block, found[:20])

        for block in range(9, 20):
            holds(block, content(block, "older" + self.tag))
        if fua:
            holds(4, self.newer(4))
        if plain:
            holds(3, self.newer(3))
            holds(5, self.newer(5)[:512], 1024)
            holds(8, self.newer(8))
            holds(500, content(500, "other" + self.tag))


@case(disks=RECORDED, timeout=240)
def ended_early_takes_no_newer_write(ctx):
    """A write behind the end of a discard's command is there, in RAM and after a crash (CL3).

    First the power goes behind all of it, then at any command.
    """
    rng = random.Random(ctx.seed)
    with Disks() as disks, Breakable("ssd1", ctx.ssd) as ssd:
        disks.fault_clear()
        lc = LcStack(ctx.hdd, ssd.path, format=SMALL, writeback="off", idle_seal_ms=0,
                     ssd_patience_ms=0).start()
        for turn in range(6):
            with lc.open() as raw, Pending(ctx, lc, ssd, raw, str(turn)) as pending:
                pending.write_all()
                if turn:
                    disks.arm(after_commands=rng.randint(1, 8), seed=rng.randrange(1 << 32))
                ssd.resume()
                plain, fua, part = (write.over() for write in pending.writes)
                flushed = False
                with contextlib.suppress(OSError):
                    raw.flush()
                    flushed = plain and part
                if not turn:
                    pending.check(raw)
            disks.disarm()
            if disks.power():
                disks.cut(seed=rng.randrange(1 << 32), policy="drop-all")
            sh.result("dmsetup", "remove", lc.name)
            disks.restore()
            lc.activate()
            with lc.open() as raw:
                pending.check(raw, fua, flushed)
        lc.remove()


def suspended_while_pending(ctx, lc, ssd, raw, pending):
    """The sequence of the next case."""
    pending.write_all()
    suspend = sh.start("dmsetup", "suspend", "--noflush", "--nolockfs", lc.name)
    # It gives back parked writes, and then waits for the pass.
    lc.wait(lambda fields: not fields["parked_blocks"], what="writes that are given back")
    assert suspend.poll() is None, "a suspend with a discard that is not logged"
    ssd.resume()
    sh.finish(suspend, 60)
    assert lc.fields()["cached"] == 13, lc.fields()     # 8 to 19, 500
    lc.resume()
    for write in pending.writes:
        write.finish()
    pending.check(raw)
    ends(ctx, discard(lc, 0, 20), "the command, ahead of the discard")


@case(disks=PAIR, timeout=120)
def suspend_waits_for_those_that_have_ended(ctx):
    """A suspend ends when the SSD has taken the record; what waited is asked for again (D4)."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        stack = LcStack(ctx.hdd, ssd.path, format=SMALL, writeback="off", idle_seal_ms=0)
        with stack as lc, lc.open() as raw, Pending(ctx, lc, ssd, raw) as pending:
            suspended_while_pending(ctx, lc, ssd, raw, pending)
        # A clean stop says the same.
        with stack as lc:
            assert lc.fields()["cached"] == 1, lc.fields()


def hdd_rests(ctx):
    """No command is at the hard disk any more."""
    inflight = pathlib.Path("/sys/block", pathlib.Path(ctx.hdd).name, "inflight")
    wait.until(lambda: inflight.read_text(encoding="ascii").split() == ["0", "0"], 60,
               "a hard disk that rests")


@case(kernels=("stock",), disks=RECORDED, timeout=90)
def none_is_on_its_way_while_suspended(ctx):
    """The hard disk is late with a discard whose command has ended: a suspend waits for it."""
    with (Disks() as disks, LcStack(ctx.hdd, ctx.ssd, format=SMALL, writeback="off") as lc,
          lc.open() as raw):
        fill(raw, 7, 1, "older")
        with trim_held(disks, MIB + 7 * BLOCK, LATE) as hits:
            ends(ctx, discard(lc, 7), "the command, ahead of the discard")
            wait.until(hits, 60, "the discard on its way")
            lc.suspend()
            with dm.Raw(ctx.hdd) as hdd:
                hdd.write(MIB + 7 * BLOCK, content(7, "the next owner of the disk"))
        hdd_rests(ctx)
        lc.resume()
        assert on_hdd(ctx, 7) == content(7, "the next owner of the disk"), on_hdd(ctx, 7)[:20]


@case(kernels=("stock",), disks=RECORDED, timeout=90)
def none_is_on_its_way_without_the_ssd(ctx):
    """The SSD dies while the hard disk is late with a discard whose command has ended: no write
    goes past the cache before that is over (S3)."""
    with (Disks() as disks, Breakable("ssd1", ctx.ssd) as ssd,
          LcStack(ctx.hdd, ssd.path, format=SMALL, writeback="off", ssd_patience_ms=0) as lc,
          lc.open() as raw):
        fill(raw, 7, 1, "older")
        raw.flush()
        with trim_held(disks, MIB + 7 * BLOCK, LATE) as hits:
            ends(ctx, discard(lc, 7), "the command, ahead of the discard")
            wait.until(hits, 60, "the discard on its way")
            ssd.fail()
            fill(raw, 100, 1, "saved")
            raw.flush()
            fill(raw, 7, 1, "bypassed")
            assert lc.fields()["mode"] == "degraded", lc.fields()
        hdd_rests(ctx)
        assert raw.read(7 * BLOCK, BLOCK) == content(7, "bypassed"), raw.read(7 * BLOCK, 20)


@case(disks=PAIR, timeout=90)
def ssd_dies_before_the_record(ctx):
    """The SSD dies with a discard that is not logged: what waits for it goes past the cache."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, format=SMALL, writeback="off", idle_seal_ms=0,
                     ssd_patience_ms=0).start()
        # All of it is in RAM, or on the hard disk.
        with lc.open() as raw, Pending(ctx, lc, ssd, raw) as pending:
            pending.write_all()
            ssd.load(dm.error(dm.sectors(ssd.under)))
            ssd.resume()
            for write in pending.writes:
                write.finish()
            raw.flush()
            assert lc.fields()["mode"] == "degraded", lc.fields()
            lc.wait(lambda fields: not fields["dirty"], what="the end of the salvage")
            for block in 3, 4, 8:
                assert raw.read(block * BLOCK, BLOCK) == pending.newer(block), block
            assert raw.read(500 * BLOCK, BLOCK) == content(500, "other")
        lc.remove()
