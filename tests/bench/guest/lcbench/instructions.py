# SPDX-License-Identifier: GPL-2.0-only
"""Instructions for each write or read, of all of them: programs, workers, the kernel.

The guest has one processor, and its clock is the number of instructions that ran (QEMU's
-icount: one a nanosecond), so what lcload takes for time are instructions; only while the
processor is idle does the clock go on without any. No noise of the machine gets in.
"""

import pathlib

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
TICK_NS = 10_000_000         # of /proc/stat


def idle():
    """Nanoseconds so far in which the processor had nothing to do."""
    words = pathlib.Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()
    return (int(words[4]) + int(words[5])) * TICK_NS


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
            before = idle()
            got = load.run(system.path, seed=bench.seed, ms=600_000,
                           count=number // words.get("threads", 1), **words)
            figures[kind] = ((got["ns"] - (idle() - before))
                             / (got["read"] + got["write"]))
    return figures
