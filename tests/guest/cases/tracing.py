# SPDX-License-Identifier: GPL-2.0-only
"""Tracepoints: the events of a load tell the way of each record, write and batch."""

import collections
import contextlib
import itertools
import os
import pathlib
import re
from random import Random

from lclib import case, dm, sh, wait
from lclib.faulty import BLOCK, Breakable, fill
from lclib.lc import LcStack
from lclib.registry import Disk

TRACEFS = pathlib.Path("/sys/kernel/tracing")
EVENT = re.compile(r"\s([\d.]+): (lc_\w+): (\d+,\d+) (.*)")
NR = 200
WAITS = 8192     # blocks, more than fit the buffers
STEPS = ("lc_record_closed", "lc_record_ready", "lc_record_sent", "lc_record_written")


@contextlib.contextmanager
def traced():
    """All events of the module are on; gives a function that takes those so far."""
    if not (TRACEFS / "events").exists():
        sh.run("mount", "-t", "tracefs", "tracefs", TRACEFS)
    (TRACEFS / "buffer_size_kb").write_text("8192\n", encoding="ascii")
    # The clocks of two processors differ, above all emulated ones.
    (TRACEFS / "trace_clock").write_text("counter\n", encoding="ascii")
    switch = TRACEFS / "events/lc/enable"

    def take():
        text = (TRACEFS / "trace").read_text(encoding="ascii")
        (TRACEFS / "trace").write_text("", encoding="ascii")
        assert "LOST" not in text
        return [match.groups()[1:] for match in EVENT.finditer(text)]

    switch.write_text("1\n", encoding="ascii")
    try:
        take()
        yield take
    finally:
        switch.write_text("0\n", encoding="ascii")


def number(text, word):
    """What follows a word."""
    return int(re.search(rf"\b{word} (-?\d+)", text)[1])


def check_records(events):
    """Each record goes its way in order, is written without an error, and is durable in the end."""
    at, durable, sent = collections.defaultdict(list), 0, 0
    for name, _, text in events:
        if name in STEPS:
            at[number(text, "record")].append(name)
            sent += name == "lc_record_sent"
        if name in ("lc_record_written", "lc_flush_end"):
            assert number(text, "error") == 0, text
        if name == "lc_durable":
            assert number(text, "record") >= durable, text
            durable = number(text, "record")
    assert at and all(tuple(steps) == STEPS for steps in at.values()), dict(at)
    assert durable == max(at)
    return sent


def check_writeback(events):
    """Batches do not overlap, their runs are inside, and what begins ends."""
    open_batches, open_runs, blocks = 0, collections.Counter(), 0
    for name, _, text in events:
        if name == "lc_batch_begin":
            open_batches += 1
        elif name == "lc_batch_end":
            open_batches -= 1
            assert number(text, "error") == 0 and not +open_runs, text
        elif name.startswith("lc_run_"):
            assert open_batches == 1 and number(text, "error") == 0, text
            run = number(text, "block")
            open_runs[run] += {"lc_run_begin": 1, "lc_run_read": 0, "lc_run_written": -1}[name]
            blocks += number(text, "blocks") if name == "lc_run_written" else 0
        assert open_batches in (0, 1)
    assert not open_batches
    return blocks


@case(kernels=("stock",), disks=(Disk("ssd", "64M"), Disk("hdd", "128M")), timeout=180)
def events_tell_the_way_of_the_data(ctx):
    """Writes, commits, reads from each place and a drain; then a load that has to wait."""
    with Breakable("ssd1", ctx.ssd) as ssd, \
            LcStack(ctx.hdd, ssd.path, writeback="off", buffers=4) as lc, lc.open() as raw:
        with traced() as take:
            for n in range(NR):
                fill(raw, 2 * n, 1, "v1")
                if n % 10 == 0:
                    raw.flush()
            raw.flush()
            events = take()
            dev = os.stat(lc.path).st_rdev
            assert {dev for _, dev, _ in events} == {f"{os.major(dev)},{os.minor(dev)}"}
            records = check_records(events)
            names = collections.Counter(name for name, _, _ in events)
            assert records >= NR // 10 and names["lc_record_opened"] >= records
            assert names["lc_flush_begin"] == names["lc_flush_end"]
            raw.read(0, BLOCK)
            raw.read(4000 * BLOCK, BLOCK)
            places = [(text.split()[-1], int(text.split()[0])) for name, _, text in take()
                      if name == "lc_read"]
            assert (places[0][0] in ("ram", "ssd") and places[0][1] == 0
                    and ("hdd", 4000 * BLOCK // 512) in places), places
            lc.drain()
            events = take()
            assert check_writeback(events) == NR
            assert any(name == "lc_tail_moved" for name, _, _ in events)
            before = lc.fields()["parked"]
            with ssd.paused("--noflush"):
                writing = sh.start("dd", "if=/dev/zero", f"of={lc.path}", "bs=16M", "oflag=direct",
                                   f"count={WAITS * BLOCK >> 24}")
                lc.wait(lambda fields: fields["parked"] > before, what="a parked write")
            sh.finish(writing, 100)
            lc.drain()
            names = collections.Counter(name for name, _, _ in take())
            ctx.figure("events", dict(names))
            assert names["lc_write_parked"] == names["lc_write_continued"] > 0, names
            assert names["lc_segment_opened"] >= WAITS // 256


@case(kernels=("stock",), disks=(Disk("ssd", "64M"), Disk("hdd", "128M")), timeout=240)
def promotions_and_modes_are_told(ctx):
    """Each block that is read into the cache is told once, and so is the end of the SSD."""
    with Breakable("ssd1", ctx.ssd) as ssd, \
            LcStack(ctx.hdd, ssd.path, read_cache="on", ssd_patience_ms=500) as lc, \
            lc.open() as raw, traced() as take:
        def promoted():
            for block in range(NR):
                raw.read(block * BLOCK, BLOCK)
            return lc.fields()["promoted"]

        wait.until(lambda: promoted() >= NR * 9 // 10, 120, "promoted blocks")
        told = [number(text, "block") for name, _, text in take() if name == "lc_promoted"]
        assert len(told) == len(set(told)) and set(told) <= set(range(NR)), told
        assert len(told) >= lc.fields()["promoted"], (told, lc.fields())
        ssd.fail()
        fill(raw, 1000, 1, "late")
        raw.flush()
        lc.wait(lambda fields: fields["mode"] == "degraded", what="mode degraded")
        modes = [number(text, "mode") for name, _, text in take() if name == "lc_mode_changed"]
        assert modes == [2], modes


@case(kernels=("stock",), disks=(Disk("ssd", "64M"), Disk("hdd", "128M")), timeout=180)
def drain_goes_over_the_disk_once(ctx):
    """More blocks than a batch holds are drained in one sweep over the HDD (SW1)."""
    batch, random = 64, Random(ctx.seed)
    with (LcStack(ctx.hdd, ctx.ssd, format=("--segment-size=64K",), writeback="off",
                  writeback_batch=batch) as lc, lc.open() as raw, traced() as take):
        for block in random.sample(range(dm.sectors(lc.path) // 8), 10 * batch):
            fill(raw, block, 1, "swept")
        raw.flush()
        take()
        lc.drain()
        events = take()
        fields = lc.fields()
    runs = [number(text, "block") for name, _, text in events if name == "lc_run_begin"]
    batches = sum(name == "lc_batch_begin" for name, _, _ in events)
    back = sum(later < before for before, later in itertools.pairwise(runs))
    ctx.figure("batches", batches)
    ctx.figure("ways back", back)
    assert fields["dirty"] == 0 and fields["relogged"] == 0, fields
    assert batches >= 10 and len(runs) > 9 * batch, (batches, len(runs))
    assert not back, f"{back} ways back in {batches} batches"
