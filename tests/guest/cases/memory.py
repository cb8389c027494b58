# SPDX-License-Identifier: GPL-2.0-only
"""Allocations that fail: each one of every ioctl, those of the threads that are started for it,
and those of the workers under load.

Whatever fails is done, or ends with an error and has changed nothing; the next try works; the
data is whole. Leaks and splats are found by the runner. Device mapper allocates too, so not
every failure is in the target.
"""

import collections
import contextlib
import errno
import fcntl
import itertools
import os
import pathlib
import random
import re
import struct

from lclib import case, kmsg, wait
from lclib.disk import BLKDISCARD
from lclib.dmioctl import (
    INACTIVE,
    LOAD,
    NO_FS,
    REMOVE,
    RESUME,
    SEND,
    STATUS,
    SUSPEND,
    SUSPENDED,
    TABLE,
    message,
)
from lclib.injection import Shot, Workers, prepare, starving
from lclib.pattern import Model
from lclib.registry import Disk
from lclib.small import SECTORS, Volume

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
WORKERS = ("kworker/", "lc-")
FORKER = 2                # kthreadd
# What the kernel says of a device that is not what it should be: not for want of memory.
ADVICE = re.compile(r"lc-format|right backing device|lc-dump")


class Sweep:
    """Each allocation of something fails, one after the other, or some of them."""

    def __init__(self, volume, every, pid="self"):
        self.volume = volume
        self.every = every  # and each failure is followed by an attempt that must succeed
        self.shot = Shot(pid)
        self.log = kmsg.Log()
        self.said = []      # by the kernel, in the last act
        self.rng = random.Random(volume.ctx.seed)

    def over(self, name, act, ready=None, done=None):
        """ready(), act() with a failure, done(error); a figure says what came of it."""
        kinds = collections.Counter()
        n = 1
        while True:
            for step in (ready, getattr(act, "rewind", None)):
                if step:
                    step()
            if n % 100 == 1:
                self.log.mark(f"{name}, allocation {n}")
            self.log.fresh()
            hit, error = self.shot.fire(n, act)
            self.said = self.log.fresh()
            try:
                assert error is None or hit, "no allocation had failed"
                assert not any(map(ADVICE.search, self.said)), self.said
                if done:
                    done(error)
            except (AssertionError, OSError) as wrong:
                raise AssertionError(f"{name}, allocation {n}, which gave {error}: {wrong}; "
                                     f"seed {self.volume.ctx.seed}") from wrong
            if not hit:
                break
            kinds[errno.errorcode[error.errno] if error else "success"] += 1
            n += 1 if self.every else self.rng.randint(1, max(1, n))
        assert kinds or name == "suspend", f"{name}: no allocation failed"
        self.volume.ctx.figure(name, " ".join(f"{kind}:{kinds[kind]}" for kind in sorted(kinds)))


@contextlib.contextmanager
def sweeping(*args, **kwargs):
    """A Sweep that ends."""
    sweep = Sweep(*args, **kwargs)
    try:
        yield sweep
    finally:
        sweep.shot.close()


def loads(volume, sweep, name="load"):
    """The first table: nothing of it stays if it fails."""
    volume.suspend()
    volume.remove()
    volume.create()

    def done(error):
        if error:
            assert not volume.flags() & INACTIVE
        if error and sweep.every:
            volume.load()
        if not error or sweep.every:
            volume.clear()

    sweep.over(name, volume.ask(LOAD, volume.table(verify_reads="on"), targets=1), done=done)
    volume.start()
    volume.check()


def replays(volume, sweep):
    """The first resume of a volume that was not stopped: its log is read."""
    def done(error):
        # A life that could not begin has ended; removed while suspended it stays unclean.
        if not error:
            volume.check()
            volume.suspend()
        volume.remove()
        volume.create()
        if error and sweep.every:
            volume.start()
            done(None)

    volume.suspend()
    volume.remove()
    volume.create()
    sweep.over("resume, replay", volume.ask(RESUME), volume.load, done)
    volume.start()
    volume.check()


def clean_starts(volume, sweep):
    """The first resume of a volume that was stopped: its checkpoint is read."""
    def again():
        volume.remove()
        volume.create()

    def done(error):
        if error:
            again()
            volume.start()
        volume.check()
        again()

    again()
    sweep.over("resume, checkpoint", volume.ask(RESUME), volume.load, done)
    volume.start()
    volume.check()


def removes(volume, sweep):
    """The clean stop: if it fails, the next start replays the log."""
    def done(error):
        if error and volume.exists():
            volume.remove()
        volume.create()
        volume.start()
        volume.check()

    sweep.over("remove", volume.ask(REMOVE), done=done)


def suspends(volume, sweep):
    """Suspend, and the resume from it; what fails can be done again."""
    def suspended(error):
        if error and not volume.flags() & SUSPENDED:
            volume.suspend()
        volume.resume()
        volume.check()

    def resumed(error):
        if error:
            volume.resume()
        volume.check()

    sweep.over("suspend", volume.ask(SUSPEND, flags=SUSPENDED | NO_FS), done=suspended)
    sweep.over("resume", volume.ask(RESUME), volume.suspend, resumed)


def reloads(volume, sweep):
    """Another table for a running volume, with more buffers, and the swap."""
    turns = itertools.count()
    before = None

    def sizes(line):
        words = line.split()
        return [words[words.index(name) + 1] for name in ("writeback_batch", "writeback_depth")]

    def loaded(error):
        assert bool(volume.flags() & INACTIVE) == (error is None)
        volume.clear()
        volume.check()

    def ready():
        nonlocal before
        before = sizes(volume.line())
        turn = next(turns)
        volume.load(buffers=4 + turn % 2, writeback_batch=64 + turn % 8)

    def swapped(error):
        if any("no memory for another writeback" in line for line in sweep.said):
            assert sizes(volume.line()) == before, volume.line()
        if error:
            volume.resume()
        volume.check()

    sweep.over("reload", volume.ask(LOAD, volume.table(buffers=5), targets=1), done=loaded)
    sweep.over("reload, swap", volume.ask(RESUME), ready, swapped)
    volume.load()
    volume.resume()


def messages(volume, sweep):
    """Every message: it has been done, or the table is as it was."""
    before = ""

    def ready():
        nonlocal before
        before = volume.line()

    def done(error):
        if error:
            assert volume.line() == before
        volume.check()

    for text in ("flush", "writeback", "list lost", "list refused 3", "idle_seal_ms 0"):
        sweep.over(f"message {text}", volume.ask(SEND, message(text)), ready, done)
    for option, values in (("writeback_batch", (64, 65)), ("writeback_depth", (1, 2))):
        # Each success changes it, so the next one has to be another value.
        for value in (values * 2)[1:3]:
            other = values[value == values[0]]

            def change_back(option=option, other=other):
                volume.control.message("lc0", f"{option} {other}")
                ready()

            sweep.over(f"message {option} {value}",
                       volume.ask(SEND, message(f"{option} {value}")), change_back, done)
    # Sums are allocated once for a volume: what failed is tried until they are there.
    sweep.over("message verify_reads on", volume.ask(SEND, message("verify_reads on")), ready,
               done)


def queries(volume, sweep):
    """Status and table."""
    for name, flags in (("status", 0), ("table", TABLE)):
        sweep.over(name, volume.ask(STATUS, flags=flags), done=lambda _: volume.line())
    volume.check()


def requests(volume, sweep):
    """Reads, writes, flushes and discards: done, or an error and they can be repeated."""
    with volume.open() as raw:
        model = Model(raw, volume.ctx.seed + 1, SECTORS, 64)
        part = memoryview(raw.buffer)[:64 * 512]
        at = SECTORS * 512

        def fill():
            model.clock += 1
            model.versions[:] = type(model.versions)("L", [model.clock]) * 64
            part[:] = model.data(0, 64)

        def written(error):
            if error:
                raw.write(at, model.data(0, 64))
            model.check()

        def read(error):
            assert error or part == model.data(0, 64)

        def discarded(error):
            if not error:
                model.forget(0, 64)
            raw.flush()

        sweep.over("write", lambda: os.pwritev(raw.handle, [part], at), fill, written)
        sweep.over("write, FUA", lambda: os.pwritev(raw.handle, [part], at, os.RWF_DSYNC), fill,
                   written)
        sweep.over("read", lambda: os.preadv(raw.handle, [part], at), done=read)
        sweep.over("flush", lambda: os.fsync(raw.handle), lambda: model.write(0, 8),
                   lambda _: model.check())
        where = struct.pack("QQ", at, 64 * 512)
        sweep.over("discard", lambda: fcntl.ioctl(raw.handle, BLKDISCARD, where),
                   lambda: model.write(0, 64), discarded)
        part.release()
    volume.check()


def forks(volume, _):
    """The threads of a new table: one of them cannot be started."""
    with sweeping(volume, False, FORKER) as sweep:
        loads(volume, sweep, "load, in kthreadd")


QUICK = (queries, messages, requests, suspends, reloads)
SLOW = (removes, clean_starts, replays, loads)


def sweep_all(ctx, scenarios, every, **shape):
    """Some scenarios, each with a volume of its own; all of their allocations or some."""
    prepare()
    wrong = []
    for scenario in scenarios:
        begun = os.times().elapsed
        try:
            with Volume(ctx, **shape) as volume, sweeping(volume, every) as sweep:
                scenario(volume, sweep)
        except (AssertionError, OSError) as error:
            wrong.append(f"{scenario.__name__}: {error}")
        ctx.figure(f"seconds of {scenario.__name__}", round(os.times().elapsed - begun, 1))
    assert not wrong, "\n".join(wrong)


@case(kernels=("debug",), disks=PAIR, timeout=240, long=True, no_memory=True)
def some_allocations_fail(ctx):
    """Some of the allocations of each ioctl fail: an error or success, and the next try works."""
    sweep_all(ctx, QUICK + (loads, replays), False)


@case(kernels=("debug",), disks=PAIR, timeout=600, long=True, no_memory=True)
def every_allocation_of_a_running_volume_fails(ctx):
    """Each allocation of each message, query, request, suspend and reload fails once."""
    sweep_all(ctx, QUICK, True)


@case(kernels=("debug",), disks=PAIR, timeout=900, long=True, no_memory=True)
def every_allocation_of_a_load_fails(ctx):
    """Each allocation of the first table fails once, and some of the threads it starts."""
    sweep_all(ctx, (loads, forks), True)


@case(kernels=("debug",), disks=PAIR, timeout=900, long=True, no_memory=True)
def every_allocation_of_a_start_fails(ctx):
    """Each allocation of a start from the log or a checkpoint, and of a stop, fails once."""
    sweep_all(ctx, (removes, clean_starts, replays), True)


@case(kernels=("debug",), disks=PAIR, timeout=300, long=True, no_memory=True)
def allocations_fail_with_large_segments(ctx):
    """Segments of 1 MiB, whose arrays and buffers come from elsewhere."""
    sweep_all(ctx, (messages, reloads, loads), False, segment="1M", ssd=24 << 20)


def work(volume, model, turn):
    """Something for every worker: records, a FLUSH, a discard, a read, a whole drain."""
    for _ in range(4):
        model.write(*model.pick(64))
    model.device.write(SECTORS * 512, bytes(8192))
    model.device.discard(SECTORS * 512, 8192)
    model.device.flush()
    model.write(1, 3)
    model.check()
    if turn % 2:
        volume.control.message("lc0", "writeback")
        wait.until(lambda: not volume.fields()["dirty"], 60, "the drain ends")


@case(kernels=("debug",), disks=PAIR, timeout=300, long=True, no_memory=True)
def nth_allocation_of_workers_fails(ctx):
    """The n-th allocation of each kernel worker fails, for n from 1 on: no request notices."""
    prepare()
    workers = Workers(*WORKERS)
    failed = 0
    with Volume(ctx) as volume, volume.open() as raw:
        volume.model.device = raw
        for n in range(1, 41):
            workers.arm(n)
            try:
                work(volume, volume.model, n)
            finally:
                failed += workers.disarm()
            volume.check()
    ctx.figure("failed", failed)
    assert failed


def starve(ctx, percent, turns):
    """A load whose workers get memory only now and then."""
    prepare()
    with Volume(ctx) as volume:
        with volume.open() as raw:
            volume.model.device = raw
            with starving(percent, *WORKERS) as mark:
                for turn in range(turns):
                    work(volume, volume.model, turn)
                    failed = mark()
            volume.check()
        volume.remove()
        volume.check_bare()
        volume.create()
        volume.start()
    ctx.figure("failed", failed)
    assert failed


@case(kernels=("debug",), disks=PAIR, timeout=120, no_memory=True)
def starving_workers(ctx):
    """A third of the workers' allocations fail under load: no request notices."""
    starve(ctx, 33, 12)


# virtio-blk allocates for each discard, and the block layer tries again for ever; sd has
# something set aside for that.
@case(kernels=("debug",), disks=(Disk("ssd", "64M"), Disk("hdd", "128M", bus="scsi")),
      timeout=300, long=True, no_memory=True)
def workers_without_memory(ctx):
    """All of the workers' allocations fail under load: what is set aside is enough."""
    most = pathlib.Path("/sys/class/block", os.path.basename(ctx.hdd), "queue/discard_max_bytes")
    assert int(most.read_text(encoding="ascii")), "the hard disk takes no discards"
    starve(ctx, 100, 60)
