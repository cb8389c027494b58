# SPDX-License-Identifier: GPL-2.0-only
"""The jobs: each sets a system up afresh, loads it, and returns figures.

`JOBS` names for each one the disks it runs on, the systems it runs over, and the function.
RAM disks show what the code costs, virtio disks without a time model which commands go to the
disks, modelled disks how long that takes there.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import threading
import time

from . import beside, fio, instructions, load, locks, null_blk, replay, service
from .common import CACHES, EVERY, FLOOR, MIB, Job, latencies, timed
from .systems import wait, write_sysfs

FULL_MIB = 128
FEW_SECONDS = 1  # between reads that are few
SCHEDULERS = ("bfq", "kyber", "mq-deadline", "none")


# ---------------------------------------------------------------- on RAM disks

def random_write(bench, name):
    """4 KiB random writes over a set that is in the cache; nothing drains."""
    figures = {}
    span = bench.plan["ram_set"]
    for threads in (1, 2):
        with bench.system(name) as system:
            system.warm(span)
            got = load.run(system.path, threads=threads, depth=32, span=span, seed=bench.seed,
                           ms=bench.plan["ram_ms"], count=bench.plan["ram_writes"] // threads)
            figures[f"iops_{threads}"] = got["iops"]
            figures[f"latency_{threads}"] = latencies(got, "write")
    return figures


def synced_write(bench, name):
    """A FLUSH after each 4 KiB write."""
    figures = {}
    span = bench.plan["ram_set"]
    with bench.system(name) as system:
        system.warm(span)
        for threads in (1, 4, 16):
            switches = load.context_switches()
            got = load.run(system.path, threads=threads, flush_every=1, span=span,
                           seed=bench.seed, ms=bench.plan["sync_ms"],
                           count=bench.plan["sync_writes"] // threads)
            figures[f"iops_{threads}"] = got["iops"]
            figures[f"latency_{threads}"] = latencies(got, "flush")
            figures[f"switches_{threads}"] = (load.context_switches() - switches) / got["write"]
    return figures


def journal_write(bench, name):
    """PREFLUSH and FUA on each 4 KiB write, as jbd2 and xfs write their log records."""
    figures = {}
    span = bench.plan["ram_set"]
    with bench.system(name) as system:
        system.warm(span)
        for threads in (1, 4, 16):
            got = load.run(system.path, threads=threads, preflush=1, fua=1, span=span,
                           seed=bench.seed, ms=bench.plan["sync_ms"],
                           count=bench.plan["sync_writes"] // threads)
            figures[f"iops_{threads}"] = got["iops"]
            figures[f"latency_{threads}"] = latencies(got, "write")
    return figures


def contended_locks(bench, name):
    """Locks waited for while four threads write at random over a set that is in the cache."""
    span = bench.plan["ram_set"]
    with bench.system(name) as system:
        system.warm(span)
        locks.start()
        got = load.run(system.path, threads=4, depth=32, span=span, seed=bench.seed,
                       count=bench.plan["lock_writes"] // 4, ms=600_000)
        found = locks.stop()
    most = sorted(found.items(), key=lambda item: -item[1][0])[:8]
    return {"contended": locks.per_write(found, name, got["write"]), "iops": got["iops"],
            "most": [f"{count} {lock} {' '.join(sorted(who))}" for lock, (count, who) in most]}


def read(bench, name):
    """Random 4 KiB reads: of blocks on the SSD, and of blocks that were never written."""
    figures = {}
    span = bench.plan["ram_set"]
    ms = bench.plan["ram_ms"]
    with bench.system(name) as system:
        system.warm(span)
        if system.caches:  # the buffers in RAM are to hold other blocks
            other = bench.plan["evict"]
            load.run(system.path, order="seq", bs=65536, depth=8, first=span, span=other,
                     count=other // 65536)
        for threads in (1, 2):
            got = load.run(system.path, op="read", threads=threads, depth=32, span=span, ms=ms,
                           seed=bench.seed, count=bench.plan["ram_writes"])
            figures[f"hit_{threads}"] = got["iops"]
            # Each miss comes once: no system is to learn from it.
            got = load.run(system.path, op="read", threads=threads, depth=32, order="once",
                           first=span + bench.plan["evict"], seed=bench.seed + threads, ms=ms,
                           count=bench.plan["ram_writes"] // 2)
            figures[f"miss_{threads}"] = got["iops"]
        if name == "dm-lc":
            system.message("verify_reads", "on")
            got = load.run(system.path, op="read", threads=1, depth=32, span=span, ms=ms,
                           seed=bench.seed, count=bench.plan["ram_writes"])
            figures["hit_verified_1"] = got["iops"]
    return figures


def programs(bench, name):
    """fio's jobs, on RAM disks."""
    figures = {}
    span = bench.plan["ram_set"]
    for kind in fio.JOBS:
        with bench.system(name) as system:
            system.warm(span)
            figures[kind] = fio.run(system.path, kind, span, bench.plan["fio_bytes"], bench.seed)
    return figures


# ------------------------------------- on virtio disks: which commands, however fast

def commands(bench, name):
    """Commands, flushes and KiB per user write, on both disks."""
    figures = {}
    span = bench.plan["counted_set"] // 4
    writes = bench.plan["counted_writes"]
    kinds = {
        "sync_1": {"threads": 1, "flush_every": 1},
        "sync_4": {"threads": 4, "flush_every": 1},
        "sync_16": {"threads": 16, "flush_every": 1},
        "sync_every_8": {"threads": 1, "flush_every": 8, "depth": 8},
        "journal_1": {"threads": 1, "preflush": 1, "fua": 1},
        "journal_4": {"threads": 4, "preflush": 1, "fua": 1},
        "journal_16": {"threads": 16, "preflush": 1, "fua": 1},
    }
    with bench.system(name) as system:
        system.warm(span)
        load.run(system.path, span=span, count=8, flush_every=1)
        for kind, words in kinds.items():
            with load.counted(bench.disks) as seen:
                load.run(system.path, span=span, seed=bench.seed,
                         count=writes // words["threads"], **words)
            figures[kind] = load.per_write(seen, writes // words["threads"] * words["threads"])
    with bench.system(name) as system:
        span = bench.plan["counted_set"]
        system.warm(span)
        load.run(system.path, span=span, count=8, flush_every=1)
        writes = bench.plan["counted_random"]
        with load.counted(bench.disks) as seen:
            load.run(system.path, span=span, depth=32, seed=bench.seed, count=writes,
                     flush_every=writes)
        figures["random"] = load.per_write(seen, writes)
    return figures


def format_and_start(bench, name):
    """The bytes written to set up over an SSD of 128 MiB, and over one four times as large."""
    figures = {}
    for size, mib in (("small", 128), ("large", 512)):
        with bench.part(mib * MIB) as part:
            system = part.system(name)
            system.wipe()
            with load.counted(bench.disks) as seen:
                system.start()
            system.stop()
        figures[size] = {"ssd_kib": seen["ssd"]["write_sectors"] / 2,
                         "ssd_read_kib": seen["ssd"]["read_sectors"] / 2}
    return figures


def fua_disk(bench, name):
    """A FLUSH after each write, where the SSD has FUA: null_blk with a volatile cache."""
    writes = bench.plan["counted_writes"]
    with null_blk.disk(256) as path:
        bench = dataclasses.replace(bench, ssd=path)
        span = bench.plan["counted_set"] // 4
        with bench.system(name) as system:
            system.warm(span)
            load.run(system.path, span=span, count=8, flush_every=1)
            before = load.stat(path)
            load.run(system.path, span=span, seed=bench.seed, count=writes, flush_every=1)
            after = load.stat(path)
    # The kernel has an empty FLUSH both as write and as flush.
    return {key: (after[key] - before[key]) / writes for key in ("writes", "flushes")}


# --------------------------------------------------------- on modelled disks

@contextlib.contextmanager
def scheduled(disks, scheduler):
    """Both disks have this I/O scheduler meanwhile."""
    paths = [pathlib.Path(f"/sys/class/block/{pathlib.Path(disk).name}/queue/scheduler")
             for disk in disks]
    before = [re.search(r"\[(\S+)\]", path.read_text(encoding="ascii"))[1] for path in paths]
    try:
        for path in paths:
            write_sysfs(path, scheduler)
        yield
    finally:
        for path, was in zip(paths, before, strict=True):
            write_sysfs(path, was)


def mixed(bench, name):
    """Writers beside readers, over the schedulers there are, below and without a cache."""
    figures = {}
    for kind in fio.MIXED:
        timed(bench)
        with bench.system(name, hold=False, slow=kind == "hdd") as system:
            for scheduler in SCHEDULERS:
                with scheduled((bench.ssd, bench.hdd), scheduler):
                    figures[f"{kind}_{scheduler}"] = fio.mixed(
                        system.path, kind, bench.plan["mixed_seconds"], bench.seed)
            timed(bench, False)
    return figures


def ssd_bound(bench, name):
    """Random writes where the SSD model is the limit; for the raw disk, in sequence of 1 MiB."""
    amount = bench.plan["bound_bytes"]
    with bench.system(name) as system:
        if not system.caches:
            got = load.run(system.path, order="seq", bs=MIB, depth=4, count=amount // MIB,
                           span=amount)
            return {"bytes_s": got["bytes_s"]}
        span = bench.plan["counted_set"]
        system.warm(span)
        load.run(system.path, span=span, count=1, flush_every=1)
        got = load.run(system.path, depth=64, span=span, seed=bench.seed, count=amount // 4096,
                       flush_every=amount // 4096)
        return {"bytes_s": got["bytes_s"], "latency": latencies(got, "write")}


def sequential(bench, name):
    """1 MiB in sequence: written, drained, read back from the HDD; and read from the SSD."""
    figures = {}
    amount = bench.plan["sequential_bytes"]
    words = {"order": "seq", "bs": MIB, "depth": 4, "count": amount // MIB, "span": amount}
    with bench.system(name) as system:
        got = load.run(system.path, flush_every=amount // MIB, **words)
        figures["write"] = got["bytes_s"]
        got = load.run(system.path, op="read", **words)
        figures["read_ssd"] = got["bytes_s"]
    return {**figures, **past_the_ssd(bench, name)}


def past_the_ssd(bench, name):
    """1 MiB in sequence: read from the HDD, and written to it."""
    figures = {}
    amount = bench.plan["sequential_bytes"]
    words = {"order": "seq", "bs": MIB, "depth": 4, "count": amount // MIB, "span": amount}
    with bench.system(name, slow=True) as system:
        # Nothing of it is cached.
        got = load.run(system.path, op="read", first=256 * MIB, **words)
        figures["read_hdd"] = got["bytes_s"]
        if not system.caches:
            got = load.run(system.path, flush_every=amount // MIB, **words)
            figures["write_hdd"] = got["bytes_s"]
        if name == "dm-lc":
            system.message("bypass_kb", MIB // 1024)
            # Nothing goes around the log before a record of this life is durable.
            load.run(system.path, order="seq", count=1, span=4096, first=512 * MIB,
                     flush_every=1)
            with load.counted(bench.disks) as seen:
                got = load.run(system.path, flush_every=amount // MIB, **words)
            figures["write_hdd"] = got["bytes_s"]
            figures["around_ssd_kib"] = seen["ssd"]["write_sectors"] / 2 / (amount // MIB)
    return figures


def through(bench, name):
    """4 KiB at random in mode writethrough with read_cache on, and on the bare hard disk."""
    words = {"depth": 16, "order": "once", "count": bench.plan["through_writes"],
             "seed": bench.seed, "ms": 600_000}
    with bench.system(name, slow=True) as system:
        if name == "dm-lc":
            system.message("read_cache", "on")
            system.message("cache_mode", "writethrough")
            wait.until(lambda: system.fields()["cache_mode"] == "writethrough", 60, "the mode")
        got = load.run(system.path, flush_every=words["count"], **words)
    return {"iops": got["iops"], "latency": latencies(got, "write")}


def dirty(bench, system, blocks):
    """So many blocks, each once, at random all over the volume; in the cache if that takes them.

    Returns the part of them that went to the HDD at once.
    """
    timed(bench, False)
    with load.counted(bench.disks) as seen:
        load.run(system.path, depth=32, order="once", count=blocks, seed=bench.seed,
                 flush_every=blocks, ms=600_000)
    timed(bench)
    return seen["hdd"]["write_sectors"] / 8 / blocks


def flush_disk(path):
    """Until a disk's own cache is empty."""
    handle = os.open(path, os.O_RDWR)
    os.fsync(handle)
    os.close(handle)


class Curve(threading.Thread):
    """KiB written to a disk over time, until told to end."""

    def __init__(self, dev):
        super().__init__(daemon=True)
        self.dev = dev
        self.over = threading.Event()
        self.points = []

    def run(self):
        begun = time.monotonic()
        first = load.stat(self.dev)["write_sectors"]
        while not self.over.wait(0.25):
            now = (load.stat(self.dev)["write_sectors"] - first) / 2
            self.points.append((round(time.monotonic() - begun, 2), now))

    def end(self):
        """The points."""
        self.over.set()
        self.join()
        return self.points


def drain(bench, name):
    """From random dirty blocks all over the HDD to nothing dirty, on the medium."""
    blocks = bench.plan["drain_blocks"]
    with bench.system(name) as system:
        passed = dirty(bench, system, blocks)
        if passed > 0.5:
            timed(bench, False)
            return {"bypassed": passed}  # there is nothing to drain
        bench.disks.model_time(reset=True)
        with load.counted(bench.disks) as seen:
            curve = Curve(bench.hdd)
            curve.start()
            begun = time.monotonic()
            system.drain()
            flush_disk(bench.hdd)
            seconds = time.monotonic() - begun
        busy = bench.disks.model_time()
        timed(bench, False)
    return {"seconds": seconds, "bypassed": passed, "per_block": load.per_write(seen, blocks),
            "kib_s": kib_s(seen, seconds),
            "hdd_busy": busy["hdd"]["seconds"], "hdd_moves": busy["hdd"]["commands"],
            "curve": curve.end()}


def full(bench, name):
    """Random writes all over the volume when the cache (128 MiB) has been filled before."""
    size = FULL_MIB * MIB
    with bench.part(size) as part:
        try:
            with part.system(name, hold=False, slow=True) as system:
                if system.caches:
                    # Block by block: what drains large pieces is not yet at its pace.
                    load.run(system.path, depth=32, order="once", seed=bench.seed,
                             count=size // 4096, ms=bench.plan["fill_ms"])
                    load.run(system.path, depth=32, seed=bench.seed, count=size // 4096,
                             ms=bench.plan["fill_ms"])
                with load.counted(bench.disks) as seen:
                    got = load.run(system.path, depth=32, seed=bench.seed + 1,
                                   ms=bench.plan["full_ms"])
                timed(bench, False)
        finally:
            timed(bench, False)
    return {"iops": got["iops"], "latency": latencies(got, "write"),
            "per_write": load.per_write(seen, got["write"])}


def kib_s(seen, seconds):
    """What the HDD was sent."""
    return seen["hdd"]["write_sectors"] / 2 / seconds


def few_reads(bench, system, drainer):
    """A random read now and then: the blocks drained meanwhile, and the longest wait.

    Nothing if the drain ended before that.
    """
    waits = []
    with load.counted(bench.disks) as seen:
        begun = time.monotonic()
        while time.monotonic() - begun < bench.plan["latency_ms"] / 1000:
            got = load.run(system.path, op="read", order="once", count=1,
                           seed=bench.seed + 9 + len(waits))
            waits.append(got["read_max_ns"] / 1000)
            time.sleep(FEW_SECONDS)
        passed = time.monotonic() - begun
    if not drainer.is_alive():
        return {}
    return {"few": {"drained_kib_s": kib_s(seen, passed), "reads_s": len(waits) / passed,
                    "max": max(waits)}}


def read_while_draining(bench, name):
    """Random reads from the HDD, alone and while it is being drained to; then a few of them."""
    figures = {}
    reads = {"op": "read", "order": "once", "ms": bench.plan["latency_ms"]}
    with bench.system(name) as system:
        passed = dirty(bench, system, bench.plan["drain_blocks"])
        flush_disk(bench.hdd)
        got = load.run(system.path, seed=bench.seed + 7, **reads)
        figures["quiet"] = latencies(got, "read")
        figures["quiet_iops"] = got["iops"]
        if passed > 0.5:
            timed(bench, False)
            return {**figures, "bypassed": passed}
        drainer = threading.Thread(target=system.drain)
        before = load.stat(bench.hdd)["writes"]
        drainer.start()
        wait.until(lambda: load.stat(bench.hdd)["writes"] > before or not drainer.is_alive(),
                   60, "the drain begins")
        with load.counted(bench.disks) as seen:
            got = load.run(system.path, seed=bench.seed + 8, **reads)
        figures["ended_early"] = int(not drainer.is_alive())
        figures["draining"] = latencies(got, "read")
        figures["draining_iops"] = got["iops"]
        figures["drained_kib_s"] = kib_s(seen, got["ns"] / 1e9)
        figures |= few_reads(bench, system, drainer)
        timed(bench, False)  # the rest of it is not measured
        drainer.join()
    return figures


JOBS = {
    "random_write": Job(random_write, "ram", EVERY),
    "synced_write": Job(synced_write, "ram", (*EVERY, FLOOR)),
    "journal_write": Job(journal_write, "ram", (*EVERY, FLOOR)),
    "read": Job(read, "ram", (*CACHES, "dm-linear")),
    "programs": Job(programs, "ram", EVERY),
    "commands": Job(commands, "plain", CACHES),
    "format_and_start": Job(format_and_start, "plain", CACHES),
    "ssd_bound": Job(ssd_bound, "modelled", (*CACHES, "raw")),
    "sequential": Job(sequential, "modelled", EVERY),
    "sequential_array": Job(past_the_ssd, "modelled", ("dm-lc", "raw")),
    "through": Job(through, "modelled", ("dm-lc", "raw")),
    "drain": Job(drain, "modelled", CACHES),
    "full": Job(full, "modelled", (*CACHES, "raw")),
    "read_while_draining": Job(read_while_draining, "modelled", CACHES),
    # bcache takes minutes to write a whole cache back, at a pace of its own.
    "restart": Job(service.restart, "plain", tuple(name for name in CACHES if name != "bcache")),
    # dm-writecache caches no reads.  dm-writeboost tries for ever to write to an SSD that fails, so
    # that it can never be taken away.
    "power_cut": Job(service.power_cut, "plain", ("dm-lc", "dm-cache", "bcache")),
    "memory": Job(service.memory, "plain", CACHES),
    "nowait": Job(service.nowait, "plain", (*CACHES, "dm-linear")),
    "throttled": Job(service.throttled, "modelled", CACHES),
    "swap_table": Job(service.swap_table, "modelled", ("dm-lc",)),
    "endurance": Job(service.endurance, "plain", CACHES),
    "fua_disk": Job(fua_disk, "ram", ("dm-lc", "dm-writeboost", "dm-writecache", "dm-cache")),
    "mixed": Job(mixed, "modelled", ("dm-lc", "raw")),
    "copy": Job(beside.copy, "modelled", (*CACHES, "dm-linear")),
    "trim": Job(beside.trim, "modelled", ("dm-lc", "dm-linear")),
    "dirty_flood": Job(beside.dirty_flood, "modelled", (*CACHES, "dm-linear")),
    "full_flood": Job(beside.full_flood, "modelled", (*CACHES, "dm-linear")),
    "beside_misses": Job(beside.beside_misses, "modelled", ("dm-lc",)),
    "shares": Job(beside.shares, "modelled", (*CACHES, "dm-linear")),
    "instructions": Job(instructions.count, "ram", (*EVERY, FLOOR)),
    "native_write": Job(random_write, "ram", ("dm-lc", "dm-linear")),
    # dm-writeboost does not build on the kernel this wants.
    "locks": Job(contended_locks, "ram", tuple(locks.MODULES)),
    **replay.JOBS,
}
