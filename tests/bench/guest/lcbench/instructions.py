# SPDX-License-Identifier: GPL-2.0-only
"""Instructions for each write or read, of all of them: programs, workers, the kernel.

The guest has one processor, and its clock is the number of instructions that ran (QEMU's
-icount: one a nanosecond), so what lcload takes for time are instructions; only while the
processor is idle does the clock go on without any. No noise of the machine gets in.
"""

import pathlib
import time

from . import load

# A FLUSH at the end of those that have none: the work that they have left counts as theirs.
KINDS = {
    "write": {"depth": 32},
    "synced_write": {"flush_every": 1},
    "synced_write_4": {"threads": 4, "flush_every": 1},
    "journal_write": {"preflush": 1, "fua": 1},
    "journal_write_4": {"threads": 4, "preflush": 1, "fua": 1},
    "read_hit": {"op": "read", "depth": 32},
    "read_miss": {"op": "read", "depth": 32, "order": "once"},
}
# After those, with option read_cache on: of blocks that no other kind has read.  As long as the SSD
# has free segments the first miss promotes them.
CACHED_READS = ("read_promoted", "read_hit_promoted")
CHECKSUMS = ("crc32c", "xxh64")
PAUSE = 2                    # s: the last group is written when it is a second old
TICK_NS = 10_000_000         # of /proc/stat


def idle():
    """Nanoseconds so far in which the processor had nothing to do."""
    words = pathlib.Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()
    return (int(words[4]) + int(words[5])) * TICK_NS


def measure(bench, system, number, words):
    """Instructions for each."""
    before = idle()
    got = load.run(system.path, seed=bench.seed, ms=600_000,
                   count=number // words.get("threads", 1), **words)
    return (got["ns"] - (idle() - before)) / (got["read"] + got["write"])


def cached_reads(bench, system, first):
    """Reads, and writes, with option read_cache on; which part of the blocks was promoted."""
    figures = {}
    number = bench.plan["icount_writes"] // 8
    system.keep_reads()
    figures["write_read_cache"] = measure(bench, system, number, {
        "depth": 32, "span": bench.plan["ram_set"], "flush_every": number})
    for kind in CACHED_READS:
        before = system.fields()["promoted"]
        figures[kind] = measure(bench, system, number, {
            "op": "read", "depth": 32, "order": "once", "first": first, "span": number * 4096})
        time.sleep(PAUSE)
        figures[f"{kind}_part"] = (system.fields()["promoted"] - before) / number
    return figures


def by_checksum(bench, name):
    """Writes with each checksum."""
    figures = {}
    number = bench.plan["icount_writes"]
    for checksum in CHECKSUMS:
        system = bench.system(name)
        system.checksum = checksum
        with system:
            system.warm(bench.plan["ram_set"])
            figures[f"write_{checksum}"] = measure(bench, system, number, {
                **KINDS["write"], "span": bench.plan["ram_set"], "flush_every": number})
    return figures


def count(bench, name):
    """All kinds, one after the other over one system that holds everything."""
    figures = {}
    span = bench.plan["ram_set"]
    with bench.system(name) as system:
        system.warm(span)
        for kind, words in KINDS.items():
            number = bench.plan["icount_writes"]
            if kind == "write":
                words = {**words, "flush_every": number}
            elif "op" not in words:
                number //= 8     # some use two slots of the cache for each
            elif kind == "read_hit" and system.caches:
                other = bench.plan["evict"]  # the buffers in RAM are to hold other blocks
                load.run(system.path, order="seq", bs=65536, depth=8, first=span, span=other,
                         count=other // 65536)
            if kind == "read_miss":
                words = {**words, "first": span + bench.plan["evict"]}
            else:
                words = {"span": span, **words}
            figures[kind] = measure(bench, system, number, words)
        if name == "dm-lc":
            figures |= cached_reads(bench, system, span + bench.plan["evict"])
    if name == "dm-lc":
        figures |= by_checksum(bench, name)
    return figures
