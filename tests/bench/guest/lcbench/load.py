# SPDX-License-Identifier: GPL-2.0-only
"""The in-kernel load generator (tests/bench/module), and what the disks count meanwhile."""

import collections
import contextlib
import pathlib
import re

from lclib import lcload, sh

MODULE = "/opt/dm-lc/bench/lcload.ko"
SAMPLES = pathlib.Path("/sys/kernel/debug/lcprof/samples")
PROFILER = "/opt/dm-lc/bench/lcprof.ko"
FUNCTIONS = 40               # of a profile, those with the most samples
# Places of /sys/block/*/stat (Documentation/block/stat.rst).
STAT = {"reads": 0, "read_sectors": 2, "writes": 4, "write_sectors": 6,
        "busy_ms": 9, "trims": 11, "flushes": 15}
PROFILES = []


class LoadError(AssertionError):
    """I/O failed under load: no figure of that run means anything."""


def load_module(profile):
    """Once a boot."""
    if not lcload.RUN.exists():
        sh.run("insmod", MODULE)
    if profile and not SAMPLES.exists():
        sh.run("insmod", PROFILER)


def unload_module():
    """Leaves nothing behind."""
    for name, file in (("lcprof", SAMPLES), ("lcload", lcload.RUN)):
        if file.exists():
            sh.run("rmmod", name)


@contextlib.contextmanager
def profiled(words):
    """Where the processors are inside the block, if the profiler is loaded: to PROFILES."""
    if not SAMPLES.exists():
        yield
        return
    SAMPLES.write_text("1", encoding="ascii")
    try:
        yield
    finally:
        SAMPLES.write_text("0", encoding="ascii")
    hits = collections.Counter()
    for line in SAMPLES.read_text(encoding="ascii").splitlines():
        task, _, function = line.partition("\t")
        hits[re.split(r"[/:-]", task)[0], function] += 1
    tasks = collections.Counter()
    for (task, _), count in hits.items():
        tasks[task] += count
    PROFILES.append({"load": words, "tasks": tasks.most_common(),
                     "functions": [(*key, count) for key, count in hits.most_common(FUNCTIONS)
                                   if not key[0].startswith("swapper")]})


def take_profiles():
    """Those of the loads since the last call."""
    taken = PROFILES[:]
    PROFILES.clear()
    return taken


def run(dev, **job):
    """One job; returns the figures as numbers, with `iops` and `bytes_s`."""
    words = " ".join(f"{key}={value}" for key, value in {"dev": dev, **job}.items())
    with profiled(words):
        got = lcload.run(words)
    if got["errors"]:
        raise LoadError(f"{got['errors']} errors: {words}")
    done = got["read"] + got["write"]
    got["iops"] = done * 1e9 / got["ns"]
    got["bytes_s"] = got["iops"] * job.get("bs", 4096)
    return got


def stat(dev):
    """What a disk has counted so far."""
    words = pathlib.Path(f"/sys/class/block/{pathlib.Path(dev).name}/stat")
    words = words.read_text("ascii").split()
    return {name: int(words[place]) for name, place in STAT.items()}


@contextlib.contextmanager
def counted(disks):
    """Fills the dict it yields: per emulated disk, what was sent to it inside the block.

    The disks' own counts: those in /sys/block have an empty FLUSH both as write and as flush.
    """
    def now():
        return {name: {"reads": got["reads"], "read_sectors": got["read_bytes"] >> 9,
                       "writes": got["writes"], "write_sectors": got["write_bytes"] >> 9,
                       "flushes": got["flushes"], "trims": got["trims"]}
                for name, got in disks.stats().items()}
    before = now()
    seen = {}
    yield seen
    for name, count in now().items():
        seen[name] = {key: count[key] - before[name][key] for key in count}


def per_write(seen, writes):
    """Commands (flushes among them), flushes and KiB per user write of each disk."""
    table = {}
    for name, count in seen.items():
        table[name] = {
            "commands": (count["writes"] + count["reads"] + count["flushes"]) / writes,
            "flushes": count["flushes"] / writes,
            "kib": count["write_sectors"] / 2 / writes,
        }
    return table


def context_switches():
    """Of the whole guest."""
    for line in pathlib.Path("/proc/stat").read_text("ascii").splitlines():
        if line.startswith("ctxt "):
            return int(line.split()[1])
    raise LookupError("no ctxt in /proc/stat")
