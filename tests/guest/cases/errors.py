# SPDX-License-Identifier: GPL-2.0-only
"""Devices that fail: nothing is lost in silence, nothing hangs, remove always ends."""

import contextlib
import errno
import random
import threading

from lclib import case, dm, sh, wait
from lclib.disk import MIB
from lclib.faulty import (
    BLOCK,
    Breakable,
    around,
    check,
    check_hdd,
    content,
    events,
    fill,
    listed,
    listed_offline,
    rot,
    said,
    slot_sector,
    unreadable,
)
from lclib.lc import LcStack
from lclib.registry import Disk

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
# Of an SSD that fails.
TROUBLE = "fails writes or flushes: trying again"


def write_fails(raw, at):
    """Whether a write, or the flush that should make it durable, reports an error."""
    try:
        raw.write(at, b"z" * BLOCK)
        raw.flush()
    except OSError:
        return True
    return False


@case(disks=PAIR, timeout=120, long=("debug",),
      fault=("HDD", "the mark cannot be written when the list of what is lost changes",
             "told; the older list, which names more, remains"))
def list_of_lost_sectors_is_not_written(ctx):
    """A suspend that cannot put what is lost into the mark says so; no list names too little."""
    with Breakable("ssd1", ctx.ssd) as ssd, Breakable("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ssd.path, ssd_patience_ms=0, writeback="off").start()
        with lc.open() as raw:
            fill(raw, 0, 2, "only on the SSD")
            raw.flush()
            fill(raw, 100, 300, "another segment")      # the first one leaves the memory
            raw.flush()
            ssd.fail()
            fill(raw, 1000, 1, "notices")
            raw.flush()
            lc.wait(lambda fields: fields["mode"] == "degraded" and not fields["dirty"],
                    what="degraded, and nothing left to save")
            before = listed(lc, "lost")
            assert before >= set(range(16)), sorted(before)[:16]
            fill(raw, 0, 1, "anew")
            raw.flush()
            assert listed(lc, "lost") == before - set(range(8))
        hdd.swap(dm.error(MIB // 512), dm.linear(ctx.hdd, dm.sectors(ctx.hdd) - MIB // 512,
                                                 MIB // 512))
        told = "cannot be written: it may name more sectors as lost"
        times = said(told)
        lc.remove()
        assert said(told) == times + 1
        hdd.heal()
        ssd.heal()
        assert listed_offline(ssd, hdd) == before


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "gone for good, no mark",
             "mode fail; no FLUSH claims success; remove ends; a resume replays"))
def dead_ssd_without_mark_is_told(ctx):
    """No mark, so no way to give the SSD up: the FLUSH fails, and every later one; mode fail."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        with (LcStack(ctx.hdd, ssd.path, format=("--in-place", "--no-mark"),
                      ssd_patience_ms=500) as lc, lc.open() as raw):
            raw.write(0, b"a" * BLOCK)
            raw.flush()
            before = events(lc)
            ssd.fail()
            assert write_fails(raw, BLOCK)
            assert write_fails(raw, 2 * BLOCK)
            lc.wait(lambda fields: fields["mode"] == "fail", what="mode fail")
            wait.until(lambda: events(lc) > before, 60, "an event")
        ssd.heal()
        # What was flushed is there, after a replay.
        with lc, lc.open() as raw:
            assert raw.read(0, BLOCK) == b"a" * BLOCK


@case(disks=PAIR, timeout=180,
      fault=("SSD", "gone for good",
             "RAM is saved to the HDD; mode degraded; what was only there is EIO and listed; "
             "the SSD is refused later"))
def dead_ssd_is_given_up(ctx):
    """The SSD dies: RAM is saved, what was only there is lost and listed, the rest goes on."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, ssd_patience_ms=500, writeback="off").start()
        with lc.open() as raw:
            fill(raw, 0, 64, "clean")
            lc.drain()
            # More than a segment: the first one leaves the memory once it is durable.
            fill(raw, 100, 64, "only on the SSD")
            fill(raw, 1000, 300, "partly")
            raw.flush()
            fill(raw, 200, 16, "in RAM")
            raw.write(100 * BLOCK, b"p" * 512)
            before = events(lc)
            ssd.fail()
            # Part of a block whose rest cannot be had any more.
            raw.write(102 * BLOCK, b"p" * 512)
            raw.flush()
            fields = lc.wait(lambda fields: fields["mode"] == "degraded" and not fields["dirty"],
                             what="degraded, and nothing left to save")
            wait.until(lambda: events(lc) > before, 60, "an event")
            lost = {block for block in (*range(100, 164), *range(1000, 1300))
                    if unreadable(raw, block)}
            assert fields["lost"] == len(lost), (fields, len(lost))
            assert set(range(101, 164)) <= lost and 100 not in lost and 1299 not in lost, lost
            assert raw.read(102 * BLOCK, 512) == b"p" * 512
            check(raw, range(64), "clean")
            assert listed(lc, "lost") == {
                sector for block in lost for sector in range(block * 8, block * 8 + 8)
                if sector != 102 * 8}
            check(raw, range(200, 216), "in RAM")
            assert raw.read(100 * BLOCK, 512) == b"p" * 512
            assert raw.read(100 * BLOCK + 512, 512) == content(100, "only on the SSD")[512:1024]
            # Overwritten, in part and whole, they come back.
            raw.write(110 * BLOCK, b"q" * 1024)
            assert raw.read(110 * BLOCK, 1024) == b"q" * 1024
            assert unreadable(raw, 110)
            fill(raw, 110, 2, "anew")
            raw.write(300 * BLOCK, b"n" * BLOCK, fua=True)
            raw.flush()
            check(raw, (110, 111), "anew")
        with lc.paused():
            pass
        assert lc.fields()["mode"] == "degraded"
        lc.remove()
        ssd.heal()
        code, text = sh.result("lc-resume", "lc0", ssd.path, ctx.hdd)
        assert code == 1 and "went on without this cache" in text, (code, text)
        check_hdd(ctx, range(200, 216), "in RAM")


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "write and flush errors for a while",
             "flushes wait, then succeed; mode rw; nothing lost"))
def ssd_that_recovers_is_kept(ctx):
    """The SSD fails for a while: flushes wait, then all is as if nothing had been."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        with LcStack(ctx.hdd, ssd.path, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw:
            for turn in range(3):
                fill(raw, 0, 300, turn)
                told = said(TROUBLE)
                ssd.fail()
                flusher = sh.start("dmsetup", "message", lc.name, "0", "flush")
                wait.until(lambda seen=told: said(TROUBLE) > seen, 60, "a failed write")
                fill(raw, 300, 8, turn)
                ssd.heal()
                sh.finish(flusher, 120)
                raw.flush()
                assert lc.fields()["mode"] == "rw"
                fields = lc.fields()
                assert fields["durable_seq"] == fields["head_seq"] - 1, fields
        lc = LcStack(ctx.hdd, ssd.path)
        lc.formatted = True
        with lc, lc.open() as raw:
            check(raw, range(308), 2)


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("HDD", "gone for good",
             "writes go on into the cache, then, with hdd_patience_ms, mode fail; nothing lost"))
def dead_hdd_keeps_the_cache(ctx):
    """The HDD dies: writes go on into the cache until its patience is over; nothing is lost."""
    with Breakable("hdd1", ctx.hdd) as hdd:
        with (LcStack(hdd.path, ctx.ssd, writeback="off", hdd_patience_ms=2000) as lc,
              lc.open() as raw):
            for block in range(200):
                raw.write(block * BLOCK, bytes([block]) * BLOCK)
            raw.flush()
            hdd.fail()
            sh.run("dmsetup", "message", lc.name, 0, "writeback")
            lc.wait(lambda fields: fields["mode"] == "fail", what="mode fail")
            for block in range(200):
                assert raw.read(block * BLOCK, BLOCK) == bytes([block]) * BLOCK
        hdd.heal()
        lc.activate()
        lc.drain()
        with lc.open() as raw:
            for block in range(200):
                assert raw.read(block * BLOCK, BLOCK) == bytes([block]) * BLOCK
        lc.remove()


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "read error, clean block",
             "read from the HDD"))
def clean_block_is_read_from_the_hdd(ctx):
    """A clean block that the SSD cannot deliver comes from the HDD."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, idle_seal_ms=0).start()
        with lc.open() as raw:
            for block in range(16):
                raw.write(block * BLOCK, bytes([block + 1]) * BLOCK)
            lc.drain()
            assert lc.fields()["cached"] == 16, lc.fields()
            ssd.fail()
            for block in range(16):
                assert raw.read(block * BLOCK, BLOCK) == bytes([block + 1]) * BLOCK
        ssd.heal()
        lc.remove()


@case(disks=PAIR, timeout=180,
      fault=("SSD", "bit flip, dirty block",
             "never written to the HDD; lost after ssd_patience_ms, also after restarts, until "
             "overwritten"))
def damaged_dirty_slot_is_lost(ctx):
    """A flipped bit in a dirty slot: never written to the HDD; lost, also after restarts."""
    lc = LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0, ssd_patience_ms=500)
    lc.format()
    with dm.Raw(ctx.hdd) as hdd:
        before = hdd.read(MIB + 3 * BLOCK, BLOCK)
    lc.activate()
    with lc.open() as raw:
        fill(raw, 0, 8, "precious")
        raw.flush()
        rot(ctx.ssd, b"precious 3\n")
        lc.drain()
        fields = lc.fields()
        assert fields["mode"] == "rw" and fields["lost"] == 1, fields
        assert unreadable(raw, 3)
    with dm.Raw(ctx.hdd) as hdd:
        assert hdd.read(MIB + 3 * BLOCK, BLOCK) == before
        assert hdd.read(MIB + 4 * BLOCK, BLOCK) == content(4, "precious")
    # Clean stop, then one with a replay: still lost.
    lc.remove()
    lc.activate()
    with lc.open() as raw:
        assert unreadable(raw, 3) and lc.fields()["lost"] == 1
        raw.write(50 * BLOCK, b"x" * BLOCK)
        raw.flush()
    lc.suspend()
    lc.remove()
    with lc, lc.open() as raw:
        assert unreadable(raw, 3)
        raw.write(3 * BLOCK, content(3, "anew"))
        assert raw.read(3 * BLOCK, BLOCK) == content(3, "anew")
        assert lc.fields()["lost"] == 0
        lc.drain()
    with dm.Raw(ctx.hdd) as hdd:
        assert hdd.read(MIB + 3 * BLOCK, BLOCK) == content(3, "anew")


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "bit flip, header of a dirty record",
             "its blocks are lost after ssd_patience_ms, those behind it drained"))
def rotten_header_loses_only_its_record(ctx):
    """The header of a dirty record rots: its blocks are lost, those behind it are drained."""
    with (LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0, ssd_patience_ms=500) as lc,
          lc.open() as raw):
        for block in range(4):
            fill(raw, block, 1, "flushed")
            raw.flush()
        with dm.Raw(ctx.ssd) as ssd:
            ssd.write(slot_sector(ctx.ssd, b"flushed 1\n") * 512 - BLOCK, b"rot!" * 128)
        lc.drain()
        fields = lc.fields()
        assert fields["mode"] == "rw" and fields["lost"] == 1, fields
        assert unreadable(raw, 1)
    check_hdd(ctx, (0, 2, 3), "flushed")


@case(disks=PAIR, timeout=240, long=("debug",),
      fault=("HDD", "write error, one sector",
             "logged again, listed, pins nothing, drained when it works again"))
def bad_hdd_sector_pins_nothing(ctx):
    """The HDD refuses one sector: its block stays in the cache, all others are drained."""
    with Breakable("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ctx.ssd, writeback="off").start()
        with lc.open() as raw:
            fill(raw, 0, 80, "mine")
            raw.flush()
            hdd.swap(*around(ctx.hdd, 2048 + 40 * 8 + 3, dm.error(1)))
            lc.drain()
            fields = lc.fields()
            assert fields["mode"] == "rw" and fields["refused"] == 1, fields
            assert fields["dirty"] == 1 and fields["relogged"] >= 1, fields
            assert listed(lc, "refused") == set(range(320, 328))
            check(raw, range(80), "mine")
        # It survives a restart, and is drained when the sector works again.
        lc.remove()
        with lc, lc.open() as raw:
            assert raw.read(40 * BLOCK, BLOCK) == content(40, "mine")
            hdd.heal()
            lc.drain()
            fields = lc.fields()
            assert fields["refused"] == 0 and fields["dirty"] == 0, fields
    check_hdd(ctx, range(80), "mine")


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("HDD", "changed while the cache was detached",
             "refused"))
def changed_hdd_is_refused(ctx):
    """A HDD written to while the cache was detached is refused; put back, it starts."""
    stack = LcStack(ctx.hdd, ctx.ssd)
    with stack as lc, lc.open() as raw:
        raw.write(0, b"a" * BLOCK)
    with dm.Raw(ctx.hdd) as hdd:
        old = hdd.read(1 << 20, BLOCK)
        hdd.write(1 << 20, b"mounted behind your back".ljust(BLOCK, b"."))
    code, output = sh.result("lc-resume", "lc0", ctx.ssd, ctx.hdd)
    assert code != 0, output
    with dm.Raw(ctx.hdd) as hdd:
        hdd.write(1 << 20, old)
    with stack as lc, lc.open() as raw:
        assert raw.read(0, BLOCK) == b"a" * BLOCK


class Job(threading.Thread):
    """Writes and reads a region of its own against a model of it, until told to stop."""

    def __init__(self, lc, first, count, seed):
        super().__init__()
        self.lc = lc
        self.first = first
        self.count = count
        self.random = random.Random(seed)
        self.stop = threading.Event()
        self.done = 0
        self.eio = 0
        self.lost = set()
        self.wrong = []
        self.model = {}

    def run(self):
        with self.lc.open() as raw:
            while not self.stop.is_set() and not self.wrong:
                block = self.first + self.random.randrange(self.count)
                try:
                    self.step(raw, block)
                except OSError as error:
                    self.wrong.append((block, str(error)))
                self.done += 1

    def step(self, raw, block):
        """One operation; a read may end with EIO if the block is listed, all else must succeed."""
        model = self.model
        action = self.random.randrange(10)
        if action < 6:
            model[block] = content(block, self.done)
            raw.write(block * BLOCK, model[block])
        elif action < 7:
            raw.flush()
        elif block in model:
            try:
                data = raw.read(block * BLOCK, BLOCK)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                self.eio += 1
                # Nobody else writes to it, so it is still in the list.
                if block * 8 not in self.lost:
                    self.lost = listed(self.lc, "lost")
                if block * 8 not in self.lost:
                    self.wrong.append((block, "EIO, but not listed as lost"))
                return
            if data != model[block]:
                self.wrong.append((block, data[:40], model[block][:40]))


@contextlib.contextmanager
def running(jobs):
    """While they run; all that they saw must have been right."""
    for job in jobs:
        job.start()
    try:
        yield
    finally:
        for job in jobs:
            job.stop.set()
        for job in jobs:
            job.join()
    for job in jobs:
        assert not job.wrong, job.wrong


def go_on(jobs, count):
    """Wait for so many further operations of each."""
    before = [job.done for job in jobs]
    wait.until(lambda: all(job.done > old + count for job, old in zip(jobs, before)), 120,
               "the load going on")


@case(disks=PAIR, timeout=240,
      fault=("SSD", "gone for good, under load",
             "the load goes on; only reads of blocks listed as lost fail"))
def ssd_dies_under_four_jobs(ctx):
    """Four verified jobs go on over the death of the SSD; only blocks listed as lost fail."""
    seed = ctx.seed
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, ssd_patience_ms=1000).start()
        jobs = [Job(lc, 4000 * n, 4000, seed + n) for n in range(4)]
        with running(jobs):
            wait.until(lambda: min(job.done for job in jobs) > 300, 120, "some load")
            ssd.fail()
            lc.wait(lambda fields: fields["mode"] == "degraded", what="mode degraded")
            go_on(jobs, 300)
        ctx.figure("failed_reads", sum(job.eio for job in jobs))
        assert lc.fields()["mode"] == "degraded"
        lc.remove()
        ssd.heal()


class SectorJob(Job):
    """Writes sectors, so that most of a block stays as it was."""

    def step(self, raw, block):
        """One operation; all must succeed."""
        if self.random.randrange(10) < 8:
            at = 512 * self.random.randrange(8)
            data = f"new {self.done}\n".encode().ljust(512, b"=")
            old = self.model[block]
            self.model[block] = old[:at] + data + old[at + 512:]
            raw.write(block * BLOCK + at, data)
        elif raw.read(block * BLOCK, BLOCK) != self.model[block]:
            self.wrong.append((block, "is not what was written"))


@case(disks=PAIR, timeout=240, long=("debug",),
      fault=("SSD", "writes fail for good, much is dirty, under load",
             "the load goes on while the dirty blocks are salvaged; nothing is lost"), sampled=3)
def salvage_under_four_jobs(ctx):
    """Four verified jobs write, over and over, to what is being salvaged from an SSD."""
    # Slow reads of the SSD: time to write to a block that is being salvaged.
    with Breakable("ssd1", ctx.ssd) as bad, Breakable("ssd2", bad.path) as ssd, \
            Breakable("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ssd.path, ssd_patience_ms=500, writeback="off",
                     writeback_depth=1).start()
        jobs = [SectorJob(lc, 100 * n, 100, ctx.seed + n) for n in range(4)]
        with lc.open() as raw:
            for job in jobs:
                fill(raw, job.first, job.count, "old")
                job.model = {block: content(block, "old")
                             for block in range(job.first, job.first + job.count)}
            # More than a segment, so that the others leave the memory.
            fill(raw, 5000, 300, "more")
            raw.flush()
            hdd.swap(dm.delay(ctx.hdd, 0, 4))
            bad.refuse_writes()
            ssd.swap(dm.delay(bad.path, 500, 0))
        with running(jobs):
            left = lc.wait(lambda fields: fields["mode"] == "degraded", what="mode degraded")
            go_on(jobs, 2)
            during = lc.fields()
            assert during["dirty"], "it was over before the load went on"
            lc.wait(lambda fields: not fields["dirty"], what="the end of the salvage")
            go_on(jobs, 20)
        assert lc.fields()["lost"] == 0, lc.fields()
        ctx.figure("salvaged", left["dirty"])
        ctx.figure("left_while_going_on", during["dirty"])
        lc.remove()
        hdd.heal()
    with dm.Raw(ctx.hdd) as raw:
        for job in jobs:
            for block, data in job.model.items():
                assert raw.read(MIB + block * BLOCK, BLOCK) == data, block
        check(raw, range(5000, 5300), "more", MIB)
