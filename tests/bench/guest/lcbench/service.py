# SPDX-License-Identifier: GPL-2.0-only
"""Jobs about living with a cache: starting it, its memory, changing its table, its SSD's life."""

import dataclasses
import os
import pathlib
import threading
import time

from lclib import sh, wait
from lclib.disk import loop

from . import fio, load
from .common import MIB, latencies, timed
from .systems import NAME

TRACING = pathlib.Path("/sys/kernel/tracing")
PUNT = "io_uring/io_uring_queue_async_work"
# Memory the kernel gives back when it is wanted (/proc/meminfo).
FREE = ("MemFree", "Buffers", "Cached", "SReclaimable")
BLOCK = 4096
ROUNDS = 16                     # of reads, until a cache has what it wants
YOUNG = 16 * MIB
AGED = 3                        # s: what is not written as soon as it is cached is by then
STEADY = 12                     # looks at RAM that find the same, more than half a second


def fill(bench, system, blocks):
    """So many blocks are written that the cache is full; all of it drained."""
    share = blocks // 8
    for part in range(8):
        load.run(system.path, depth=32, order="once", seed=bench.seed, first=part * share * BLOCK,
                 span=share * BLOCK, count=share, flush_every=share, ms=600_000)
        system.drain()


def reads_of(bench, call):
    """What call() reads from the SSD."""
    with load.counted(bench.disks) as seen:
        call()
    return {"commands": seen["ssd"]["reads"], "kib": seen["ssd"]["read_sectors"] / 2}


def after_a_crash(bench, system, words):
    """What a start reads if the power goes right after the FLUSH of such a load."""
    load.run(system.path, seed=bench.seed + 2, **words)
    bench.disks.cut(policy="drop-all")
    system.stop()
    bench.disks.restore()
    return reads_of(bench, system.restart)


def once(count):
    """So many blocks of the whole volume, each written once, and a FLUSH."""
    return {"depth": 32, "order": "once", "count": count, "flush_every": count}


def restart(bench, name):
    """What a start reads from the SSD: cache full, 1 % of it dirty, after a stop and a crash."""
    figures = {}
    for label, size in zip(("small", "large"), bench.plan["restart_caches"], strict=True):
        with bench.part(size) as part:
            figures[label] = {"blocks": size // BLOCK, **restarts(part, name, size // BLOCK)}
    if name == "dm-lc":
        figures["whole"] = {"crashed": large_crash(bench)}
    return figures


def large_crash(bench):
    """After a crash, with an SSD of a usual size: clean blocks are not read then."""
    size = 16 << 30
    with bench.stretched(size) as large, large.system("dm-lc") as system:
        return after_a_crash(large, system, once(size // BLOCK // 100))


def restarts(bench, name, blocks):
    """The same for one size."""
    words = once(blocks // 100)
    found = {}
    with bench.system(name) as system:
        fill(bench, system, blocks)
        load.run(system.path, seed=bench.seed + 1, **words)
        system.stop()
        found["stopped"] = reads_of(bench, system.restart)
        if name == "dm-lc":
            found["crashed"] = after_a_crash(bench, system, words)
    for state in found.values():
        state["bytes_per_block"] = state["kib"] * 1024 / blocks
    return found


def cached_share(bench, system, words):
    """% of what is read that the HDD is not asked for."""
    with load.counted(bench.disks) as seen:
        load.run(system.path, **words)
    return 100 * (1 - seen["hdd"]["read_sectors"] * 512 / (words["count"] * BLOCK))


def scanned(fields, options):
    """Whether dm-lc's scan after a crash is over, or there is none."""
    return "warm" in options or (fields["warm_left"] == 0 and fields["warmed"] > 0)


def reads_over_a_cut(bench, name, **options):
    """The part of a set of blocks that is cached before the power is cut, and after it."""
    span = bench.plan["warm_set"]
    words = {"op": "read", "order": "once", "depth": 8, "span": span, "count": span // BLOCK,
             "seed": bench.seed, "ms": 600_000}
    figures = {"before": 0.0}
    with bench.part(4 * span) as part, part.system(name, slow=True) as system:
        system.keep_reads()
        # Of a volume that was formatted just now dm-lc believes nothing in the segments that were
        # evicted for writes before the superblock said from where on copies are believed.
        load.run(system.path, order="seq", bs=65536, depth=8, first=2 * span, span=YOUNG,
                 count=YOUNG // 65536, flush_every=YOUNG // 65536)
        time.sleep(AGED)
        for figures["rounds"] in range(1, ROUNDS + 1):
            figures["before"] = cached_share(bench, system, words)
            if figures["before"] >= 99:
                break
        load.run(system.path, count=1, flush_every=1, first=span, span=BLOCK)
        time.sleep(AGED)
        bench.disks.cut(policy="drop-all", seed=bench.seed)
        system.lose_power()
        bench.disks.restore()
        system.restart(**options)
        if name == "dm-lc":
            wait.until(lambda: scanned(system.fields(), options), 600, "the scan is over")
        figures["after"] = cached_share(bench, system, words)
    return figures


def power_cut(bench, name):
    """Reads that are cached before and after a power cut; of dm-lc also without the scan."""
    figures = reads_over_a_cut(bench, name)
    if name == "dm-lc":
        figures["after_replay"] = reads_over_a_cut(bench, name, warm="off")["after"]
    return figures


def in_use():
    """Bytes of RAM that are in use now, but for what the kernel gives back when it is told to."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
    found = {}
    for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(":")
        found[key] = int(value.split()[0]) * 1024
    return found["MemTotal"] - sum(found[key] for key in FREE)


def unavailable():
    """Bytes of RAM that are in use for good: memory that was freed takes a while to return."""
    seen = [in_use()]

    def settled():
        seen.append(in_use())
        return len(seen) > STEADY and max(seen[-STEADY:]) - min(seen[-STEADY:]) < MIB // 2

    wait.until(settled, 30, "the use of RAM is steady")
    return seen[-1]


def memory(bench, name):
    """RAM per block that can be cached, from SSDs of two sizes; and while a table is reloaded.

    The SSDs are sparse files: their content does not count, nor does what a system takes
    whatever the size.
    """
    used = {}
    for size in bench.plan["memory_caches"]:
        path = pathlib.Path("/tmp/bench-ssd")
        with open(path, "wb") as file:
            file.truncate(size)
        with loop(path, "--direct-io=off") as ssd:
            before = unavailable()
            with dataclasses.replace(bench, ssd=ssd).system(name) as system:
                load.run(system.path, depth=8, count=64, flush_every=64)
                used[size] = {"live": unavailable() - before}
                if name == "dm-lc":
                    line = sh.run("dmsetup", "table", NAME)
                    sh.run("dmsetup", "load", NAME, input=line)
                    used[size]["reload"] = unavailable() - before
                    sh.run("dmsetup", "suspend", NAME)
                    used[size]["suspended"] = unavailable() - before
                    sh.run("dmsetup", "resume", NAME)
                    system.keep_reads()
                    load.run(system.path, op="read", depth=8, order="once", count=64)
                    used[size]["read_cache"] = unavailable() - before
        path.unlink()
    small, large = bench.plan["memory_caches"]
    blocks = (large - small) // BLOCK
    return {"per_block": {state: (used[large][state] - used[small][state]) / blocks
                          for state in used[large]},
            "small_mib": used[small]["live"] / MIB, "large_mib": used[large]["live"] / MIB}


def traced():
    """Events in the trace buffers, lost ones included."""
    total = 0
    for path in TRACING.glob("per_cpu/cpu*/stats"):
        for line in path.read_text(encoding="ascii").splitlines():
            key, _, value = line.partition(":")
            if key in ("entries", "overrun"):
                total += int(value)
    return total


def nowait(bench, name):
    """Writes through io_uring that were handed to a worker because they might have had to wait."""
    amount = bench.plan["nowait_bytes"]
    with bench.system(name) as system:
        system.warm(amount)
        (TRACING / "trace").write_text("", encoding="ascii")
        switch = TRACING / "events" / PUNT / "enable"
        before = traced()
        switch.write_text("1", encoding="ascii")
        try:
            got = fio.run(system.path, "write_uring", amount, amount, bench.seed)
        finally:
            switch.write_text("0", encoding="ascii")
        punted = traced() - before
    return {"punted_per_write": punted / (amount // BLOCK), "iops": got["write_iops"]}


def throttled(bench, name):
    """Four jobs of random writes when all buffers are full: the SSD is the limit."""
    with bench.system(name) as system:
        # More than is buffered in RAM.
        load.run(system.path, depth=32, span=bench.plan["counted_set"], seed=bench.seed,
                 count=bench.plan["evict"] // BLOCK)
        got = load.run(system.path, threads=4, depth=16, span=bench.plan["counted_set"],
                       seed=bench.seed + 1, ms=bench.plan["throttled_ms"])
        timed(bench, False)
    return {"iops": got["iops"], "latency": latencies(got, "write"),
            "fairness": got["thread_least"] / got["thread_most"]}


def interrupt(swap):
    """Suspend and resume, with a freshly loaded table if `swap`; seconds between both."""
    if swap:
        sh.run("dmsetup", "load", NAME, input=sh.run("dmsetup", "table", NAME))
    begun = time.monotonic()
    sh.run("dmsetup", "suspend", NAME)
    sh.run("dmsetup", "resume", NAME)
    return time.monotonic() - begun


def swap_table(bench, name):
    """While writes go on, the device is suspended and resumed, and its table exchanged."""
    with bench.system(name) as system:
        pool = system.fields()["buffers"] * system.fields()["segment_bytes"]
        found = {}

        def loaded():
            found.update(load.run(system.path, threads=2, depth=8, seed=bench.seed,
                                  ms=bench.plan["swap_ms"],
                                  span=bench.plan["counted_set"]))

        writer = threading.Thread(target=loaded)
        writer.start()
        wait.until(lambda: system.fields()["buffers_used"] > 4 or not writer.is_alive(), 60,
                   "the load runs")
        frozen = {"suspend": [], "swap": []}
        while writer.is_alive() or not frozen["swap"]:
            for what, times in frozen.items():
                times.append(interrupt(what == "swap"))
        writer.join()
        timed(bench, False)
    return {"frozen": {what: max(times) for what, times in frozen.items()},
            "times": sum(map(len, frozen.values())),
            "pool_write": pool / bench.plan["ssd_model"]["rate"],
            "latency": latencies(found, "write")}


def endurance(bench, name):
    """Skewed random writes with a FLUSH after each 32, far more than the cache holds."""
    with bench.part(bench.plan["endurance_cache"]) as part, \
            part.system(name, hold=False) as system:
        words = {"order": "zipf", "depth": 32, "flush_every": 32,
                 "span": bench.plan["endurance_set"], "ms": 900_000}
        load.run(system.path, seed=bench.seed, count=bench.plan["endurance_writes"] // 4, **words)
        with load.counted(bench.disks) as seen:
            load.run(system.path, seed=bench.seed + 1, count=bench.plan["endurance_writes"],
                     **words)
    got = load.per_write(seen, bench.plan["endurance_writes"])
    return {"per_write": got, "ssd_per_user_byte": got["ssd"]["kib"] / 4}
