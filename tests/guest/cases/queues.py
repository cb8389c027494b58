# SPDX-License-Identifier: GPL-2.0-only
"""Writes that wait for room: whose turn it is, by counts of what got into the log before what.

The SSD answers nothing for a while: what was written before takes the buffers, and what comes then
is parked. When it goes on, the order in the log is the order in which parked writes were continued.
"""

import contextlib
import ctypes
import itertools
import json
import mmap
import os
import pathlib
import random
import threading

from lclib import Disk, case, dm, sh, wait
from lclib.faulty import BLOCK, Breakable, check, content
from lclib.lc import LcStack
from lclib.scatter import Scatter
from lclib.setting import setting
from lclib.writes import Write

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
SMALL = ("--segment-size=64K",)
FLOOD = 3000            # blocks
BOUND = 1024            # of a class, by those who may be kept waiting
BUFFERS = 8
FULL = 2 * 15           # blocks of the segments that an SSD of unknown speed may owe (D23)
COMMIT = 20_000         # a block far from them


@contextlib.contextmanager
def soon_written():
    """The flusher threads write the page cache at once."""
    with setting("/proc/sys/vm/dirty_expire_centisecs", 1), \
            setting("/proc/sys/vm/dirty_writeback_centisecs", 1):
        yield


class Flood(threading.Thread):
    """More pages than may be parked, sent by this thread itself."""

    def __init__(self, held):
        super().__init__(daemon=True)
        self.held = held
        self.start()

    def run(self):
        self.held.background(0, [content(block, "page") for block in range(FLOOD)])

    def asleep(self):
        """Whether it is kept waiting within the volume's map()."""
        task = pathlib.Path("/proc/self/task", str(self.native_id), "wchan")
        try:
            return task.read_text(encoding="ascii") in ("wait_for_less", "park", "lc_intake_map")
        except FileNotFoundError:
            return False

    def stopped(self):
        """It waits for less to be parked, which is not so much."""
        self.held.lc.wait(
            lambda fields: not self.is_alive() or
            fields["dirty"] == FULL and fields["parked_blocks"] == BOUND and self.asleep(),
            what="a writer that waits")
        assert self.is_alive(), f"nobody was kept waiting: {self.held.lc.fields()}"

    def finish(self):
        """It has sent all of them."""
        self.join(wait.limit(60))
        assert not self.is_alive(), f"kept waiting: {self.held.lc.fields()}"


class Held:
    """A volume whose SSD answers nothing until it is let go, with all of its buffers taken."""

    def __init__(self, ctx, ssd="", layout=SMALL, **options):
        self.ctx = ctx
        self.ssd = Breakable("ssd1", ssd or ctx.ssd)
        self.lc = LcStack(ctx.hdd, self.ssd.path, format=layout, writeback="off", stats="on",
                          **{"buffers": BUFFERS, "idle_seal_ms": 0, "ssd_patience_ms": 0,
                             **options})
        # The same blocks with a page cache of its own.
        self.cached = dm.Device("cached")
        self.parts = contextlib.ExitStack()
        self.parked = 0         # blocks that wait
        self.writes = []

    def __enter__(self):
        self.parts.enter_context(self.ssd)
        self.parts.enter_context(self.lc)
        self.cached.targets = (dm.linear(self.lc.path),)
        self.parts.enter_context(self.cached)
        self.pages = self.parts.enter_context(dm.Raw(self.cached.path, direct=False))
        self.ssd.suspend("--noflush", "--nolockfs")
        return self

    def __exit__(self, *error):
        if error[0]:
            self.ssd.resume()
            self.lc.resume()    # closing the page cache's device writes what it holds
        self.parts.__exit__(*error)

    def expect(self, count):
        """So many more are parked."""
        self.parked += count
        self.lc.wait(lambda fields: fields["parked_blocks"] == self.parked,
                     what=f"{self.parked} parked blocks")

    def background(self, block, datas):
        """Blocks go to the page cache, and from there to the volume; nobody waits for them."""
        self.pages.write(block * BLOCK, b"".join(datas))
        os.posix_fadvise(self.pages.handle, block * BLOCK, len(datas) * BLOCK,
                         os.POSIX_FADV_DONTNEED)

    def flood(self, count=FLOOD):
        """More of them than there are buffers for, by the kernel's own worker.

        Returns when all have come, nobody has to wait, and the log takes no more.
        """
        with soon_written():
            self.pages.write(0, b"".join(content(block, "page") for block in range(count)))
            self.lc.wait(lambda fields: fields["dirty"] == FULL and
                         fields["parked_blocks"] == count - FULL, what="a flood")
        self.parked = count - FULL

    def taken(self):
        """As many pages, in large bios; how many of them have got into the log."""
        before = self.lc.fields()["dirty"]
        with soon_written():
            self.pages.write(0, b"".join(content(block, "page") for block in range(FLOOD)))
            self.lc.wait(lambda fields: fields["dirty"] - before + fields["parked_blocks"] == FLOOD,
                         what="a flood")
        # What may get in by then has got in by the time that nothing changes any more.
        seen = []
        self.lc.wait(lambda fields: seen.append(fields["dirty"]) or
                     seen[-20:] == [seen[-1]] * 20, what="a log that takes no more")
        return seen[-1] - before

    def write(self, block, data, fua=False):
        """A direct write, which is parked."""
        self.writes.append(Write(self.lc.path, block, data, fua))
        self.expect(len(data) // BLOCK)

    def let_go(self):
        """The SSD works, and all that was written arrives."""
        self.ssd.resume()
        for write in self.writes:
            write.finish()
        self.pages.flush()

    def check(self):
        """All of a flood is there."""
        with self.lc.open() as raw:
            check(raw, range(FLOOD), "page")

    def records(self):
        """Blocks of each record in the order of the log, of a volume that has been stopped."""
        dump = json.loads(sh.run("lc-dump", "--json", "--entries", self.ctx.ssd))
        records = sorted(dump["records"], key=lambda record: record["seq"])
        return [[entry["block"] for entry in record["entry_list"] if "block" in entry]
                for record in records]

    def log(self):
        """Those blocks in one list."""
        return [block for record in self.records() for block in record]


@case(disks=PAIR, timeout=100, long=("debug",))
def commits_overtake_the_page_cache(ctx):
    """A write that is to be durable at once waits for none of the page cache (D12)."""
    with Held(ctx) as held:
        held.flood()
        held.write(COMMIT, content(COMMIT, "commit"), fua=True)
        held.let_go()
    log = held.log()
    overtaken = log[FULL:]
    assert len(overtaken) > FLOOD // 2, len(overtaken)
    waited = overtaken.index(COMMIT)
    ctx.figure("blocks that were parked before it", held.parked - 1)
    ctx.figure("blocks it waited for", waited)
    assert waited <= 16, f"a commit waited for {waited} blocks of the page cache"


@case(disks=PAIR, timeout=100, long=("debug",))
def order_per_block_is_kept(ctx):
    """Parked writes of all classes to the same blocks end in the order they came (D12)."""
    rng = random.Random(ctx.seed)
    blocks = 12
    with Held(ctx) as held:
        held.flood(400)
        once = rng.sample(range(blocks), blocks)    # a page is written back once at a time
        last = {}
        for turn in range(30):
            count = rng.randint(1, 3)
            first = COMMIT + rng.randint(0, blocks - count)
            kind = rng.randrange(3)
            cached = kind == 0 and once
            if cached:
                first, count = COMMIT + once.pop(), 1
            data = [content(block, f"turn {turn}") for block in range(first, first + count)]
            if cached:
                held.background(first, data)
                held.expect(1)
            else:
                held.write(first, b"".join(data), fua=kind == 1)
            last.update(zip(range(first, first + count), data))
        held.let_go()
        with held.lc.open() as raw:
            wrong = [block for block, data in sorted(last.items())
                     if raw.read(block * BLOCK, BLOCK) != data]
        assert not wrong, f"an earlier write came later: {wrong}; seed {ctx.seed}"


# --- how much may wait for the SSD (D23) ---------------------------------------------------------


def flood_before_a_slow_ssd(ctx):
    """The SSD is known to be slow, and answers nothing: of a flood little gets into the log."""
    slots = 15              # blocks of a segment
    with (dm.Device("slow", dm.delay(ctx.ssd, 0, 100)) as slow,
          Held(ctx, ssd=slow.path, buffers=128) as held, held.lc.open() as raw):
        held.ssd.resume()
        for _ in range(2):
            raw.write(COMMIT * BLOCK, b"".join(content(COMMIT + block, "slow")
                                               for block in range(40 * slots)))
            raw.flush()
        held.ssd.suspend("--noflush", "--nolockfs")
        taken = held.taken()
        ctx.figure("segments that were let in", taken / slots)
        held.let_go()
        held.check()
    # Of 128 buffers, half may be full.
    assert taken <= 10 * slots, f"{taken} blocks wait for a slow SSD"


@case(kernels=("stock",), disks=PAIR, timeout=100, sampled=3)
def little_is_let_in_before_a_slow_ssd(ctx):
    """Writers do not fill half of the buffers, for which each commit would wait (D23)."""
    flood_before_a_slow_ssd(ctx)


@case(kernels=("stock",), timeout=100,
      disks=(Disk("ssd", "64M", cache="writethrough"), Disk("hdd", "128M")), sampled=3)
def little_is_let_in_without_a_volatile_cache(ctx):
    """Nor all of the buffers, if the SSD needs no FLUSH (D23)."""
    flood_before_a_slow_ssd(ctx)


@case(kernels=("stock",), disks=PAIR, timeout=300, sampled=3)
def slow_ssd_gets_pieces(ctx):
    """A segment is seconds of a slow SSD, and no more than pieces of one are let in (D23)."""
    with (dm.Device("slow", dm.delay(ctx.ssd, 0, 200)) as slow,
          Held(ctx, ssd=slow.path, layout=("--segment-size=1M",), buffers=16) as held,
          held.lc.open() as raw):
        held.ssd.resume()
        for _ in range(2):
            raw.write(COMMIT * BLOCK, b"".join(content(COMMIT + block, "slow")
                                               for block in range(600)))
            raw.flush()
        held.ssd.suspend("--noflush", "--nolockfs")
        taken = held.taken()
        ctx.figure("blocks that were let in", taken)
        held.let_go()
        held.check()
    # Two pieces of 32 to 64 blocks that are closed, and one that is open. A segment has 255, and so
    # has a bio.
    assert taken <= 3 * 64, f"{taken} blocks wait for a slow SSD"
    largest = max(len(entries) for entries in held.records()[-20:])
    assert largest <= 64, f"a record has {largest} blocks"


# --- how much is parked (D15) -------------------------------------------------------------------


@case(disks=PAIR, timeout=100, long=("debug",))
def parked_is_bounded(ctx):
    """Who sends more than may be parked is kept waiting, and goes on when there is room (D15)."""
    with Held(ctx) as held:
        flood = Flood(held)
        flood.stopped()
        # Others are not kept waiting for that.
        held.parked = BOUND
        held.write(COMMIT, content(COMMIT, "commit"), fua=True)
        held.write(COMMIT + 1, content(COMMIT + 1, "sync"))
        with held.lc.open() as raw:
            try:
                os.pwritev(raw.handle, [memoryview(raw.buffer)[:BLOCK]], (COMMIT + 2) * BLOCK,
                           os.RWF_NOWAIT)
                raise AssertionError("a write was taken that nobody has room for")
            except BlockingIOError:
                pass
        held.let_go()
        flood.finish()
        held.pages.flush()
        held.check()


@case(kernels=("stock",), disks=PAIR, timeout=100)      # the debug kernel has no swap
def reclaim_does_not_wait(ctx):
    """Who writes to swap in order to get memory is not kept waiting (D3)."""
    pageout = 21            # MADV_PAGEOUT
    with Held(ctx) as held:
        held.ssd.resume()
        with dm.Device("swap", dm.linear(held.lc.path, 32 * 2048, 64 * 2048)) as swap:
            sh.run("mkswap", swap.path)
            sh.run("swapon", swap.path)
            held.ssd.suspend("--noflush", "--nolockfs")
            area = mmap.mmap(-1, FLOOD * BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            for block in range(FLOOD):
                area[block * BLOCK:(block + 1) * BLOCK] = content(block, "swap")
            where = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(area)))
            pager = threading.Thread(target=ctypes.CDLL(None).madvise, daemon=True,
                                     args=(where, ctypes.c_size_t(len(area)), pageout))
            pager.start()
            try:
                held.lc.wait(lambda fields: fields["parked_blocks"] > 2 * BOUND,
                             what="pages on their way to swap")
            finally:
                held.ssd.resume()
            pager.join(wait.limit(60))
            assert not pager.is_alive(), "still at it"
            for block in range(FLOOD):
                assert area[block * BLOCK:(block + 1) * BLOCK] == content(block, "swap"), block
            sh.run("swapoff", swap.path)


def suspended(ctx, *options):
    """A suspend while a writer is kept waiting in map(): it leaves map(), and all is written."""
    with Held(ctx) as held:
        flood = Flood(held)
        flood.stopped()
        suspend = sh.start("dmsetup", "suspend", "--nolockfs", *options, held.lc.name)
        # While the SSD answers nothing: it is the suspend that wakes the writer.
        flood.finish()
        held.ssd.resume()
        sh.finish(suspend, 60)
        held.lc.resume()
        held.pages.flush()
        held.check()


@case(disks=PAIR, timeout=100, long=("debug",))
def suspend_wakes_submitters(ctx):
    """A suspend waits for nobody who waits in map(), or it could not be interrupted (D15)."""
    suspended(ctx)


@case(disks=PAIR, timeout=100, long=("debug",))
def noflush_requeues_submitters(ctx):
    """The same without flush: what they sent is given back, and done again (D4, D15)."""
    suspended(ctx, "--noflush")


# --- plenty of room (C7) --------------------------------------------------------------------------

CPUS = 8
WRITERS = 2 * CPUS
TURNS = 16              # blocks of each writer
WAITING = 10_000        # blocks of the writes that stay parked
WRITTEN = 30_000        # blocks of the writers
MIB_BLOCKS = 256


class Writer(threading.Thread):
    """Direct writes, one after the other, of which each fourth is to be durable."""

    def __init__(self, path, number, turns):
        super().__init__(daemon=True)
        self.path, self.number, self.turns = path, number, turns
        self.done = 0
        self.start()

    def run(self):
        os.sched_setaffinity(0, {self.number % CPUS})
        with dm.Raw(self.path) as raw:
            for turn in self.turns:
                block = WRITTEN + self.number * TURNS + turn % TURNS
                view = memoryview(raw.buffer)[:BLOCK]
                view[:] = content(block, "writer")
                flags = 0 if turn % 4 else os.RWF_DSYNC
                assert os.pwritev(raw.handle, [view], block * BLOCK, flags) == BLOCK
                self.done += 1


def passes(raw):
    """Whether a write that must not wait is taken."""
    try:
        os.pwritev(raw.handle, [memoryview(raw.buffer)[:BLOCK]], COMMIT * BLOCK, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    return True


def fill_log(lc, stack):
    """Write until nothing of the log is free; returns the thread whose write is parked by then."""
    full = threading.Event()
    stack.callback(full.set)

    def run():
        with lc.open() as raw:
            for block in itertools.cycle(range(0, WAITING - MIB_BLOCKS, MIB_BLOCKS)):
                if full.is_set():
                    return
                raw.write(block * BLOCK, content(block, "log") * MIB_BLOCKS)

    filler = threading.Thread(target=run, daemon=True)
    filler.start()
    # A write is also parked for a moment if buffers run short.
    lc.wait(at_rest(lambda fields: fields["parked_blocks"]), 120, "a log without room")
    full.set()
    return filler


def at_rest(condition=lambda fields: True):
    """For lc.wait(): nothing has moved for ten looks at the status, and the condition holds."""
    seen = []
    keys = ("dirty", "free_segments", "buffers_used", "durable_seq")

    def check(fields):
        seen.append([fields[key] for key in keys])
        return seen[-10:] == [seen[-1]] * 10 and condition(fields)

    return check


def settled(lc, raw):
    """Returns when there is as much room as there will be, and writes pass those that wait."""
    lc.wait(at_rest(), 120, "a volume at rest")
    wait.until(lambda: passes(raw), 60, "a write that passes those that are parked")


# The SSD is not so fast that filling it leaves its rate unknown (backlog.h).
@case(kernels=("stock",), smp=CPUS, timeout=400,
      disks=(Disk("ssd", "64M", bps=256 << 20), Disk("hdd", "256M")))
def writes_pass_the_parked(ctx):
    """With plenty of room, no write of many writers waits for the one worker, although others are
    parked; these end meanwhile (C7).

    The log is full, for the HDD answers nothing, and writes are parked. When it goes on, the worker
    that continues them is kept from going on behind the first one.
    """
    with contextlib.ExitStack() as stack:
        hdd = stack.enter_context(Breakable("hdd1", ctx.hdd))
        lc = stack.enter_context(LcStack(hdd.path, ctx.ssd, format=("--segment-size=512K",),
                                         stats="on"))
        under = stack.enter_context(Scatter(lc.path, pieces=0))
        raw = stack.enter_context(lc.open())
        hold = stack.enter_context(contextlib.ExitStack())
        hdd.suspend("--noflush", "--nolockfs")
        hold.callback(hdd.resume)
        filler = fill_log(lc, hold)
        hold.enter_context(under.holding())
        before = lc.fields()["parked_blocks"]
        waiting = [Write(under.path, WAITING + i, content(WAITING + i, "parked"), False)
                   for i in range(WRITERS)]
        commits = [Write(lc.path, WAITING + i, content(WAITING + i, "commit"), True)
                   for i in range(WRITERS, 2 * WRITERS)]
        lc.wait(lambda fields: fields["parked_blocks"] == before + 2 * WRITERS,
                what="parked writes")
        hdd.resume()
        wait.until(lambda: under.counts()["held"], 60, "the worker to be held")
        # Their turn came first. Another worker makes them durable.
        for write in commits:
            write.finish()
        settled(lc, raw)
        parked = lc.fields()["parked"]
        writers = [Writer(lc.path, number, range(TURNS)) for number in range(WRITERS)]
        for writer in writers:
            writer.join(wait.limit(60))
        fields = lc.fields()
        done = sum(writer.done for writer in writers)
        ctx.figure("writes that passed", done)
        ctx.figure("parked meanwhile", fields["parked"] - parked)
        assert done == WRITERS * TURNS, f"{done} writes passed: {fields}"
        assert fields["parked"] == parked and fields["parked_blocks"], fields
        # The parked ones end although the others go on.
        stop = threading.Event()
        hold.callback(stop.set)
        writers = [Writer(lc.path, number,
                          itertools.takewhile(lambda _: not stop.is_set(), itertools.count()))
                   for number in range(WRITERS)]
        wait.until(lambda: all(writer.done for writer in writers), 60, "all writers at work")
        under.message("release")
        for write in waiting:
            write.finish()
        filler.join(wait.limit(60))
        lc.wait(lambda fields: not fields["parked_blocks"], what="an empty queue")
        before = [writer.done for writer in writers]
        wait.until(lambda: all(writer.done > count for writer, count in zip(writers, before)), 60,
                   "writers that go on")
        hold.close()
        for writer in writers:
            writer.join(wait.limit(60))
            assert not writer.is_alive()
        check(raw, range(WRITTEN, WRITTEN + WRITERS * TURNS), "writer")
        for i in range(2 * WRITERS):
            tag = "parked" if i < WRITERS else "commit"
            assert raw.read((WAITING + i) * BLOCK, BLOCK) == content(WAITING + i, tag), i
