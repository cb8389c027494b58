# SPDX-License-Identifier: GPL-2.0-only
"""Writers that get no CPU: nobody else's commit waits for them."""

import contextlib
import mmap
import os
import pathlib
import re
import signal
import time

from lclib import case, cgroup, wait
from lclib.calls import TRACING, Calls, tell
from lclib.disk import Device
from lclib.faulty import content, salvage
from lclib.lc import LcStack
from lclib.registry import Disk
from lclib.scatter import Scatter
from lclib.setting import setting

PAIR = (Disk("ssd", "64M"), Disk("hdd", "256M"))
BLOCK = 4096
LARGE = 128 * BLOCK
MIB = 256 * BLOCK
TRIALS = 30
# Flags in shared memory, a byte each.
GO, RUNNING, DONE, LATE = range(4)
WRITES = 8              # a counter of 8 bytes


def put(path, text):
    """Write to a file of the kernel."""
    pathlib.Path(path).write_text(text, encoding="ascii")


@contextlib.contextmanager
def process(body, *args):
    """body(*args) in a process of its own, which is ended with the block; yields its number."""
    child = os.fork()
    if not child:
        try:
            body(*args)
        finally:
            os._exit(1)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def write_large(path, shared):
    """Copy much into the same blocks, as a background task on CPU 1."""
    os.sched_setaffinity(0, {1})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with Device(path) as raw:
        count = 0
        while True:
            raw.write(0, bytes([count & 255]) * LARGE)
            count += 1
            shared[WRITES:WRITES + 8] = count.to_bytes(8, "little")


def keep_busy(shared, go):
    """Whenever told to, take CPU 1 away from everybody else until told that it is done."""
    os.sched_setaffinity(0, {1})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    while os.read(go, 1):
        end = time.monotonic() + 20
        shared[RUNNING] = 1
        while not shared[DONE] and time.monotonic() < end:
            pass
        if not shared[DONE]:
            shared[LATE] = 1
        shared[RUNNING] = 0


def writes(shared):
    """How many large writes there were."""
    return int.from_bytes(shared[WRITES:WRITES + 8], "little")


def more_writes(shared):
    """A condition: there were two more since this call."""
    before = writes(shared)
    return lambda: writes(shared) > before + 1


@case(kernels=("stock",), disks=PAIR, timeout=240)
def nobody_waits_for_a_writer(ctx):
    """A writer that is preempted in the middle of a copy, and not let on, delays no fsync (B7)."""
    shared = mmap.mmap(-1, 4096)
    go, tell = os.pipe()
    os.sched_setaffinity(0, {0})
    with contextlib.ExitStack() as stack:
        stack.enter_context(setting("/sys/kernel/debug/sched/preempt", "full"))
        stack.enter_context(setting("/proc/sys/kernel/sched_rt_runtime_us", "-1"))
        lc = stack.enter_context(LcStack(ctx.hdd, ctx.ssd))
        raw = stack.enter_context(lc.open())
        stack.enter_context(process(write_large, lc.path, shared))
        stack.enter_context(process(keep_busy, shared, go))
        for trial in range(TRIALS):
            wait.until(more_writes(shared), 60, "a large write")
            shared[DONE] = 0
            os.write(tell, b"x")
            wait.until(lambda: shared[RUNNING], 60, "the busy task")
            raw.write(LARGE, bytes([trial]) * BLOCK)
            raw.flush()
            shared[DONE] = 1
            wait.until(lambda: not shared[RUNNING], 60, "the end of the busy task")
            assert not shared[LATE], f"trial {trial}: an fsync waited for a writer without a CPU"


class Throttled:
    """A writer of large bios that gets little of CPU 1, by cpu.max of its cgroup."""

    def __init__(self, number, group):
        self.group = group
        self.folder = pathlib.Path("/proc", str(number))

    def run_time(self):
        """How long it has run so far."""
        return int((self.folder / "schedstat").read_text(encoding="ascii").split()[0])

    def let_run(self):
        """Returns its run time when it has run and is throttled again: it could run, and does not.

        A new limit ends the time of the last one. It uses more than that before a tick comes, and
        is throttled for several periods.
        """
        seen = [self.run_time()]
        cgroup.put(self.group / "cpu.max", "1000 1000000")

        def look():
            seen.append(self.run_time())
            state = (self.folder / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            return state == "R" and seen[-1] > seen[0] and seen[-4:] == [seen[-1]] * 4

        wait.until(look, 60, "a writer that is throttled")
        return seen[-1]


def write_throttled(path, group):
    """Copy much into the same blocks, on CPU 1."""
    os.sched_setaffinity(0, {1})
    with Device(path) as raw:
        view = memoryview(raw.buffer)[:MIB]
        view[:] = b"x" * MIB
        cgroup.put(group / "cgroup.procs", str(os.getpid()))
        while True:
            assert os.pwritev(raw.handle, [view], 0) == MIB


@case(kernels=("stock",), disks=PAIR, timeout=300, sampled=3)
def nobody_waits_for_a_throttled_writer(ctx):
    """A writer whose cgroup has used up its time of the CPU in the middle of a copy delays no fsync
    (B7).

    An fsync that takes long by itself may see it go on, so most must not.
    """
    os.sched_setaffinity(0, {0})
    with contextlib.ExitStack() as stack:
        stack.enter_context(setting("/sys/kernel/debug/sched/preempt", "full"))
        lc = stack.enter_context(LcStack(ctx.hdd, ctx.ssd))
        raw = stack.enter_context(lc.open())
        group = stack.enter_context(cgroup.group("cpu"))
        stack.callback(cgroup.put, group / "cpu.max", "max")
        writer = Throttled(stack.enter_context(process(write_throttled, lc.path, group)), group)
        waited = 0
        for trial in range(TRIALS):
            before = writer.let_run()
            raw.write(MIB, bytes([trial]) * BLOCK)
            raw.flush()
            waited += writer.run_time() != before
            assert waited <= TRIALS // 5, f"{waited} of {trial + 1} fsyncs waited for the writer"
        ctx.figure("fsyncs that ended after the writer had gone on", waited)


@case(kernels=("stock",), disks=PAIR, timeout=60)
def records_are_held_briefly(ctx):
    """A large write lets go of its record again and again, every 64 KiB (B7)."""
    with LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw, \
            Calls("lc_cursor_release") as calls:
        before = calls.count()
        raw.write(0, b"x" * LARGE)
        count = calls.count() - before
        ctx.figure("releases", count)
        assert count >= LARGE // 65536, count


def plugs_keep_all(device):
    """Writes with FUA wait in a plug, too: the block layer sends only those at once that it has
    to make a FLUSH or a FUA command of."""
    numbers = os.stat(device).st_rdev
    queue = f"/sys/dev/block/{os.major(numbers)}:{os.minor(numbers)}/queue"
    return setting(f"{queue}/write_cache", "write through")


@case(kernels=("stock", "debug"), disks=PAIR, timeout=60)
def plug_keeps_no_record(ctx):
    """A commit by a task that neither ends its plug nor sleeps gets to the SSD all the same."""
    with plugs_keep_all(ctx.ssd), \
            LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0) as lc, \
            Scatter(lc.path, pieces=0) as odd:
        for block in range(16):
            odd.message("plugged", block * 8)
        assert lc.fields()["durable_seq"] >= 16, lc.status()


@case(kernels=("stock", "debug"), disks=PAIR, timeout=90)
def plug_keeps_no_write_past_the_cache(ctx):
    """Nor does it keep a write past the cache, for which a salvage may wait (S-g)."""
    with plugs_keep_all(ctx.hdd), salvage(ctx, 100, "kept") as (lc, _, go_on):
        with Scatter(lc.path, pieces=0) as odd:
            for block in range(1000, 1016):
                odd.message("plugged", block * 8)
        go_on()
        lc.wait(lambda fields: not fields["dirty"], 60, "the end of the salvage")


def senders(device, work):
    """Who submits writes to a device while work() runs."""
    number = os.stat(device).st_rdev
    number = f"{os.major(number)},{os.minor(number)}"
    (TRACING / "trace").write_text("", encoding="ascii")
    tell("events/block/block_bio_queue/enable", "1")
    try:
        work()
    finally:
        tell("events/block/block_bio_queue/enable", "0")
    text = (TRACING / "trace").read_text(encoding="utf-8", errors="replace")
    found = re.findall(rf"block_bio_queue: {number} W\w* \d+ \+ \d+ \[([^]/]*)", text)
    assert found, text[-2000:]
    return set(found)


def senders_of(device, write):
    """Of what an ordinary, a nice and an idle task write, who submits it to the device?"""
    usual = senders(device, write)
    os.setpriority(os.PRIO_PROCESS, 0, 5)
    nice = senders(device, write)
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    idle = senders(device, write)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return usual, nice, idle


def myself():
    """As senders() says it."""
    return pathlib.Path("/proc/self/comm").read_text(encoding="ascii").strip()


@case(kernels=("stock",), disks=PAIR, timeout=60)
def background_tasks_send_no_record(ctx):
    """Who may be kept from the CPU for long has a worker send what others wait for, too."""
    with LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw:
        def commit():
            view = memoryview(raw.buffer)[:BLOCK]
            assert os.pwritev(raw.handle, [view], 0, os.RWF_DSYNC) == BLOCK

        usual, nice, idle = senders_of(ctx.ssd, commit)
        assert usual == {myself()}, usual
        assert nice == {"kworker"} and idle == {"kworker"}, (nice, idle)


@case(kernels=("stock",), disks=PAIR, timeout=90)
def background_tasks_send_no_write_past_the_cache(ctx):
    """The same for writes past the cache, while a salvage may wait for them (S-g)."""
    with salvage(ctx, 100, "kept") as (lc, raw, go_on):
        def write(flags=0):
            raw.buffer[:BLOCK] = content(1000, "past")
            view = memoryview(raw.buffer)[:BLOCK]
            assert os.pwritev(raw.handle, [view], 1000 * BLOCK, flags) == BLOCK
            assert raw.read(1000 * BLOCK, BLOCK) == content(1000, "past")

        usual, nice, idle = senders_of(ctx.hdd, write)
        assert usual == {myself()}, usual
        assert nice == {"kworker"} and idle == {"kworker"}, (nice, idle)
        nowait = senders(ctx.hdd, lambda: write(os.RWF_NOWAIT))
        assert nowait == {"kworker"}, nowait
        go_on()
        lc.wait(lambda fields: not fields["dirty"], 60, "the end of the salvage")
        assert senders(ctx.hdd, write) == {myself()}, "a worker sends what nobody waits for"
