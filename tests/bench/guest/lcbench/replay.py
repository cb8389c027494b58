# SPDX-License-Identifier: GPL-2.0-only
"""Traces that are replayed: what is sent to the disks, what of the reads was cached, who waits."""

import contextlib
import functools

from . import fio, load, systems
from .common import EVERY, MIB, Job, timed

LOGS = "/opt/dm-lc/bench"
SYSTEMS = tuple(name for name in EVERY if name not in ("dm-writecache", "dm-linear"))
# Of dm-lc's status, what tells why.
TOLD = ("promoted", "segments", "dirty", "parked", "batches", "relogged", "bypassed_bytes",
        "ssd_written_bytes", "hdd_writes")


def told(seen):
    """Commands and KiB of each disk."""
    return {disk: {"reads": count["reads"], "writes": count["writes"],
                   "commands": count["reads"] + count["writes"], "flushes": count["flushes"],
                   "read_kib": count["read_sectors"] / 2, "kib": count["write_sectors"] / 2}
            for disk, count in seen.items()}


def added(first, second):
    """The sums of two of told()."""
    return {disk: {key: first[disk][key] + second[disk][key] for key in first[disk]}
            for disk in first}


def hit_ratio(hdd_kib, user_kib):
    """% of what is read that the HDD was not asked for: below 0 if more is read than was asked."""
    return 100 * (1 - hdd_kib / user_kib)


def check(figures, about):
    """Of a replay that ended early nothing follows."""
    done = figures["read"]["requests"] + figures["write"]["requests"]
    if done != about["requests"]:
        raise load.LoadError(f"{done} of {about['requests']} requests were replayed")


def as_fast(bench):
    """The time models as the traces want them."""
    models = bench.plan["trace_models"]
    bench.disks.model(disk="ssd", kind="ssd", **models["ssd"])
    bench.disks.model(disk="hdd", kind=bench.plan["hdd_kind"], **models["hdd"])


def replay(bench, name, trace):
    """A trace from an empty cache on; then all that is dirty is drained, which counts, too."""
    about = bench.plan["traces"][trace]
    kind = systems.BY_NAME[name]
    part = (bench.part(kind.room(about["segments"] * MIB)) if kind.caches
            else contextlib.nullcontext(bench))
    with part as part, part.system(name, hold=False, slow=True) as system:
        try:
            system.keep_reads()
            as_fast(bench)
            with load.counted(bench.disks) as seen:
                figures = fio.replay(system.path, f"{LOGS}/{trace}.iolog",
                                     bench.plan["trace_depth"])
            check(figures, about)
            if name == "dm-lc":
                status = system.fields()
                figures["status"] = {key: status[key] for key in TOLD if key in status}
            with load.counted(bench.disks) as drained:
                if system.caches:
                    system.drain()
        finally:
            timed(bench, False)
    figures["replayed"], figures["drained"] = told(seen), told(drained)
    return {**figures, **added(figures["replayed"], figures["drained"]),
            "hit": hit_ratio(figures["replayed"]["hdd"]["read_kib"], about["read_kib"])}


JOBS = {f"trace_{name}": Job(functools.partial(replay, trace=name), "modelled", SYSTEMS)
        for name in ("cp", "P6")}
