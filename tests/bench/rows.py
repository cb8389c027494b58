# SPDX-License-Identifier: GPL-2.0-only
"""What has to be reached, row by row, and whether it is.

A row takes figures of all systems (median over the repetitions), and says how dm-lc stands to
its target. A row without the figures it needs says so; it is never counted as reached.
"""

import dataclasses
import statistics

SEGMENT_BYTES = 1 << 20        # lc-format's default
REACHED, MISSED, UNKNOWN = "reached", "missed", "not measured"
PEERS = ("dm-writeboost", "dm-writecache", "dm-cache", "bcache")
LC = "dm-lc"


class Figures:
    """Medians and spreads of all results, by (job, figure, system)."""

    def __init__(self, results):
        self.values = {}
        for result in results:
            for path, value in flat(result["figures"]):
                key = result["job"], path, result["system"]
                self.values.setdefault(key, []).append(value)

    def get(self, job, path, system):
        """The median; KeyError if there is none."""
        return statistics.median(self.values[job, path, system])

    def spread(self, job, path, system):
        """(largest - smallest) / median, or 0 for a single value."""
        values = self.values[job, path, system]
        middle = statistics.median(values)
        return (max(values) - min(values)) / middle if middle else 0.0

    def systems(self, job, path):
        """Who has this figure, in the order of the results."""
        return [key[2] for key in self.values if key[:2] == (job, path)]

    def best(self, job, path, largest=True):
        """(system, value) of the best peer."""
        found = [(self.get(job, path, name), name) for name in PEERS
                 if (job, path, name) in self.values]
        if not found:
            raise KeyError((job, path, "any peer"))
        value, name = max(found) if largest else min(found)
        return name, value


def flat(tree, prefix=""):
    """A dict of dicts as (dotted path, number) pairs."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        elif isinstance(value, int | float):
            yield f"{prefix}{key}", value


@dataclasses.dataclass(frozen=True)
class Test:
    """One comparison: what, dm-lc's figure or ratio, the bound, whether it holds."""

    what: str
    value: float
    bound: float
    least: bool                 # the bound is the least that will do, else the most

    @property
    def holds(self):
        """Whether the target is reached."""
        return self.value >= self.bound if self.least else self.value <= self.bound


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table of targets."""

    number: str
    what: str
    target: str
    tests: object               # Figures -> [Test]; KeyError: something was not measured
    shown: tuple                # (job, path, unit) whose figures are shown for every system

    def judge(self, figures):
        """(verdict, [Test])."""
        try:
            tests = self.tests(figures)
        except KeyError:
            return UNKNOWN, []
        if not tests:
            return UNKNOWN, []
        return REACHED if all(test.holds for test in tests) else MISSED, tests


def ratio(figures, job, path, other, bound):
    """dm-lc's figure at least so many times that of another system."""
    value = figures.get(job, path, LC) / figures.get(job, path, other)
    return Test(f"{path}: x {other}", value, bound, True)


def over_best(figures, job, path, bound):
    """dm-lc's figure at least so many times the best peer's."""
    name, value = figures.best(job, path)
    return Test(f"{path}: x best peer ({name})", figures.get(job, path, LC) / value, bound, True)


def under_best(figures, job, path, bound):
    """dm-lc's figure at most so many times the least of the peers'."""
    name, value = figures.best(job, path, largest=False)
    return Test(f"{path}: x best peer ({name})", figures.get(job, path, LC) / value, bound, False)


def at_most(figures, job, path, bound):
    """dm-lc's figure itself."""
    return Test(path, figures.get(job, path, LC), bound, False)


def row_1(figures):
    """CPU cost of a write."""
    return [ratio(figures, "random_write", f"iops_{threads}", other, bound)
            for threads in (1, 2)
            for other, bound in (("dm-linear", 1.0), ("dm-writecache", 1.3),
                                 ("dm-writeboost", 4.0))]


def row_1_native(figures):
    """The same on a CPU that is not emulated."""
    return [ratio(figures, "native_write", f"iops_{threads}", "dm-linear", bound)
            for threads, bound in ((1, 1.5), (2, 1.3))]


def row_2_rate(figures):
    """FLUSH and FUA rates."""
    return [over_best(figures, job, f"iops_{threads}", 1.5)
            for job in ("synced_write", "journal_write") for threads in (1, 4, 16)]


def row_2_counts(figures):
    """What a lone FLUSH sends."""
    tests = []
    for kind in ("sync", "journal"):
        one, four, sixteen = (figures.get("commands", f"{kind}_{n}.ssd.commands", LC)
                              for n in (1, 4, 16))
        tests += [at_most(figures, "commands", f"{kind}_1.ssd.commands", 2.05),
                  at_most(figures, "commands", f"{kind}_1.ssd.kib", 8.2),
                  at_most(figures, "commands", f"{kind}_1.hdd.commands", 0),
                  Test(f"{kind}, 4 threads: commands to those of 1", four / one, 0.999, False),
                  Test(f"{kind}, 16 threads: commands to those of 4", sixteen / four, 0.999,
                       False)]
    return [*tests,
            at_most(figures, "fua_disk", "writes", 1.02),
            at_most(figures, "fua_disk", "flushes", 0.02)]


def row_4(figures):
    """What random writes send."""
    return [Test("SSD bytes per user byte",
                 figures.get("commands", "random.ssd.kib", LC) / 4, 1.01, False),
            at_most(figures, "commands", "random.ssd.commands", 1 / 200)]


def row_5(figures):
    """The SSD's own speed."""
    value = (figures.get("ssd_bound", "bytes_s", LC)
             / figures.get("ssd_bound", "bytes_s", "raw"))
    return [Test("x raw SSD in sequence", value, 0.99, True)]


def row_6(figures):
    """Locks waited for."""
    return [Test("contended acquisitions per write",
                 figures.get("locks", "contended.own", LC), 0.001, False)]


def row_8(figures):
    """Large I/O in sequence: against the raw device it lands on."""
    pairs = (("write", "write"), ("read_ssd", "read_ssd"), ("read_hdd", "read_hdd"))
    return [Test(f"{mine}: x raw", figures.get("sequential", mine, LC)
                 / figures.get("sequential", raw, "raw"), 0.95, True) for mine, raw in pairs]


def row_8b(figures):
    """Long writes around the SSD: against the hard disk alone."""
    return [Test("write_hdd: x raw", figures.get("sequential", "write_hdd", LC)
                 / figures.get("sequential", "write_hdd", "raw"), 0.97, True),
            at_most(figures, "sequential", "around_ssd_kib", 32)]


def row_8d(figures):
    """Large I/O in sequence past the SSD, on a striped array of four."""
    return [Test(f"{what}: x raw", figures.get("sequential_array", what, LC)
                 / figures.get("sequential_array", what, "raw"), 0.97, True)
            for what in ("read_hdd", "write_hdd")] + [
                at_most(figures, "sequential_array", "around_ssd_kib", 32)]


def row_8c(figures):
    """Random writes in mode writethrough: against the hard disk alone."""
    return [Test("iops: x raw", figures.get("through", "iops", LC)
                 / figures.get("through", "iops", "raw"), 0.98, True)]


def row_12(figures):
    """Drain time and HDD commands."""
    return [under_best(figures, "drain", path, 0.6)
            for path in ("seconds", "per_block.hdd.commands")]


def row_13(figures):
    """Cache full."""
    return [over_best(figures, "full", "iops", 1.3),
            ratio(figures, "full", "iops", "raw", 1.0)]


def row_14(figures):
    """Reads while draining."""
    value = (figures.get("read_while_draining", "draining.p990", LC)
             / figures.get("read_while_draining", "quiet.p990", LC))
    few = (figures.get("read_while_draining", "few.drained_kib_s", LC)
           / figures.get("drain", "kib_s", LC))
    return [Test("p99 draining / p99 quiet", value, 2.0, False),
            Test("drained with a read a second / without", few, 0.5, True)]


def at_16_gib(figures, system):
    """KiB read by a start after a stop, carried on from two sizes to a cache of 16 GiB."""
    sizes, read = ([figures.get("restart", f"{size}.{path}", system)
                    for size in ("small", "large")] for path in ("blocks", "stopped.kib"))
    slope = (read[1] - read[0]) / (sizes[1] - sizes[0])
    return read[1] + slope * ((16 << 30) / 4096 - sizes[1])


def row_10(figures):
    """What a start reads."""
    boost = at_16_gib(figures, "dm-writeboost")
    return [Test("after a stop: bytes per block",
                 figures.get("restart", "large.stopped.bytes_per_block", LC), 16, False),
            Test("after a crash, at 16 GiB: dm-writeboost's bytes / dm-lc's",
                 boost / figures.get("restart", "whole.crashed.kib", LC), 500, True)]


def row_16(figures):
    """Writers when the SSD is the limit."""
    segment = SEGMENT_BYTES / figures.get("ssd_bound", "bytes_s", "raw") * 1e6
    return [Test("p99.9 / time to write one segment",
                 figures.get("throttled", "latency.p999", LC) / segment, 4, False),
            Test("writes of the slowest job / of the fastest",
                 figures.get("throttled", "fairness", LC), 0.9, True)]


def row_17(figures):
    """Frozen at most as long as one buffer pool takes."""
    whole = figures.get("swap_table", "pool_write", LC)
    return [Test(f"{what}: s frozen / s to write the pool",
                 figures.get("swap_table", f"frozen.{key}", LC) / whole, 1, False)
            for key, what in (("suspend", "suspend, resume"), ("swap", "table exchanged"))]


def under_linear(figures, job, path, bound):
    """dm-lc's figure at most so many times dm-linear's."""
    value = figures.get(job, path, LC) / figures.get(job, path, "dm-linear")
    return Test(f"{path}: x dm-linear", value, bound, False)


def row_21(figures):
    """Discards: how long, and how long others wait beside them."""
    beside, alone = ({key: figures.get("trim", f"{when}.{key}", LC) for key in ("p990", "max")}
                     for when in ("fsync_beside", "fsync_alone"))
    return [*(under_linear(figures, "trim", f"{what}.seconds", 2.0)
              for what in ("cached", "dropped")),
            *(Test(f"fsync beside them, {key}: x alone", beside[key] / alone[key], 2.0, False)
              for key in beside)]


BESIDE_MISSES = ("synced_writes", "random_writes", "full_log")


def row_24(figures):
    """What caching reads costs writes."""
    return [Test(f"{kind}: on / off", figures.get("beside_misses", f"{kind}.on.iops", LC)
                 / figures.get("beside_misses", f"{kind}.off.iops", LC), 0.97, True)
            for kind in BESIDE_MISSES]


def row_25(figures):
    """What a power cut leaves of the reads that were cached."""
    return [Test("cached after the scan / before", figures.get("power_cut", "after", LC)
                 / figures.get("power_cut", "before", LC), 0.95, True)]


def shown(job, *pairs):
    """(job, path, unit) triples."""
    return tuple((job, path, unit) for path, unit in pairs)


def row_23(job):
    """A trace: what is sent, how long reads wait, and whether the hits are those simulated."""
    def tests(figures):
        apart = (figures.get(job, "hit", LC) - figures.get(job, "simulated.hit", LC))
        return [*(under_best(figures, job, path, 1.0)
                  for path in ("hdd.commands", "read.mean", "read.p990", "ssd.kib")),
                Test("hit ratio, points from the simulator's", abs(apart), 2.0, False)]
    return tests


def trace_row(letter, job, what):
    """The row of a trace."""
    return Row(f"23{letter}", what,
               "HDD commands, mean and p99 of reads and SSD KiB at most those of the best peer; "
               "hit ratio within 2 points of the simulator's", row_23(job),
               shown(job, ("hit", "%"), ("simulated.hit", "%"), ("read.mean", "us"),
                     ("read.p990", "us"), ("write.mean", "us"), ("hdd.commands", "commands"),
                     ("hdd.reads", "commands"), ("hdd.writes", "commands"),
                     ("drained.hdd.writes", "commands"), ("ssd.kib", "KiB"), ("seconds", "s")))


ROWS = (
    Row("1a", "4 KiB random write, RAM disks, nothing drains",
        "1.0 x dm-linear, 1.3 x dm-writecache, 4 x dm-writeboost, at 1 and 2 threads", row_1,
        shown("random_write", ("iops_1", "IOPS"), ("iops_2", "IOPS"))
        + shown("instructions", ("write", "instructions"),
                ("write_crc32c", "instructions"), ("write_xxh64", "instructions"),
                ("read_hit", "instructions"),
                ("read_miss", "instructions"), ("read_promoted", "instructions"),
                ("read_hit_promoted", "instructions"))),
    Row("1b", "the same in user-mode Linux, at native speed",
        "1.5 x dm-linear at 1 thread, 1.3 x at 2", row_1_native,
        shown("native_write", ("iops_1", "IOPS"), ("iops_2", "IOPS"))),
    Row("2a", "FLUSH after every 4 KiB write; PREFLUSH+FUA writes: rate on RAM disks",
        "1.5 x the best peer at 1, 4 and 16 threads", row_2_rate,
        shown("synced_write", ("iops_1", "IOPS"), ("iops_4", "IOPS"), ("iops_16", "IOPS"),
              ("latency_1.p990", "us"), ("latency_16.p990", "us"), ("switches_1", "switches"))
        + shown("journal_write", ("iops_1", "IOPS"), ("iops_4", "IOPS"), ("iops_16", "IOPS"))
        + shown("instructions", ("synced_write", "instructions"),
                ("synced_write_4", "instructions"), ("journal_write", "instructions"),
                ("journal_write_4", "instructions"))),
    Row("2b", "FLUSH after every 4 KiB write (sync), PREFLUSH+FUA writes (journal): what is sent",
        "2.05 SSD commands with the flush (1 where the SSD has FUA), 8.2 KiB, nothing on the "
        "HDD; fewer with more threads",
        row_2_counts,
        shown("commands", *((f"{kind}_{n}.{disk}.{what}", unit)
                            for kind in ("sync", "journal") for n in (1, 4, 16)
                            for disk, what, unit in (("ssd", "commands", "commands"),
                                                     ("ssd", "kib", "KiB"),
                                                     ("hdd", "commands", "commands"))))
        + shown("fua_disk", ("writes", "writes"), ("flushes", "flushes"))),
    Row("3", "FLUSH after every 8 writes", "4.6 KiB of SSD per 4 KiB written",
        lambda figures: [at_most(figures, "commands", "sync_every_8.ssd.kib", 4.6)],
        shown("commands", ("sync_every_8.ssd.kib", "KiB"),
              ("sync_every_8.ssd.commands", "commands"))),
    Row("4", "random write without FLUSH: what is sent",
        "1.01 x the user's bytes, one SSD command per 200 blocks", row_4,
        shown("commands", ("random.ssd.kib", "KiB"), ("random.ssd.commands", "commands"),
              ("random.hdd.commands", "commands"))),
    Row("5", "random write where the SSD model is the limit",
        "99 % of the raw SSD's 1 MiB sequential rate", row_5,
        shown("ssd_bound", ("bytes_s", "B/s"))),
    Row("6", "locks that are waited for per random write, four threads on four CPUs",
        "0.001 (the atomic updates of shared cache lines are counted by reading: "
        "docs/design.rst)", row_6,
        shown("locks", ("contended.own", "of the writes"), ("contended.all", "of the writes"))),
    Row("7", "random 4 KiB read: miss, and hit on the SSD", "0.95 x dm-linear",
        lambda figures: [ratio(figures, "read", f"{kind}_{threads}", "dm-linear", 0.95)
                         for kind in ("hit", "miss") for threads in (1, 2)],
        shown("read", ("hit_1", "IOPS"), ("hit_2", "IOPS"), ("miss_1", "IOPS"),
              ("miss_2", "IOPS"), ("hit_verified_1", "IOPS"))),
    Row("8", "1 MiB in sequence, modelled disks", "0.95 x the device it lands on", row_8,
        shown("sequential", ("write", "B/s"), ("read_ssd", "B/s"), ("read_hdd", "B/s"))),
    Row("8b", "1 MiB in sequence, written around the SSD (`bypass_kb 1024`), modelled drive",
        "0.97 x the drive alone; 32 KiB to the SSD for each MiB, the stream's first one among them",
        row_8b, shown("sequential", ("write_hdd", "B/s"), ("around_ssd_kib", "KiB"))),
    Row("8c", "4 KiB at random, `cache_mode writethrough`, `read_cache on`, modelled drive",
        "0.98 x the drive alone", row_8c, shown("through", ("iops", "/s"))),
    Row("8d", "1 MiB in sequence past the SSD (`bypass_kb 1024`), on a striped array of four",
        "0.97 x the array alone; 32 KiB to the SSD for each MiB", row_8d,
        shown("sequential_array", ("read_hdd", "B/s"), ("write_hdd", "B/s"),
              ("around_ssd_kib", "KiB"))),
    Row("9", "format", "constant bytes, any size",
        lambda figures: [Test("KiB written to the larger of two SSDs / to the smaller",
                              figures.get("format_and_start", "large.ssd_kib", LC)
                              / figures.get("format_and_start", "small.ssd_kib", LC),
                              1.0, False)],
        shown("format_and_start", ("small.ssd_kib", "KiB"), ("large.ssd_kib", "KiB"))),
    Row("10", "start of a full cache, 1 % dirty",
        "16 B per block after a stop; after a crash 500 x fewer bytes than dm-writeboost at "
        "16 GiB (whose bytes are carried on from two smaller sizes)", row_10,
        shown("restart", *((f"{size}.{state}.{what}", unit) for size in ("small", "large")
                           for state in ("stopped", "crashed")
                           for what, unit in (("bytes_per_block", "B"), ("kib", "KiB"),
                                              ("commands", "commands"))),
              ("whole.crashed.kib", "KiB"), ("whole.crashed.commands", "commands"))),
    Row("11", "RAM per 4 KiB block that can be cached", "16 B, also while a table is reloaded",
        lambda figures: [at_most(figures, "memory", f"per_block.{state}", 16)
                         for state in ("live", "reload", "suspended", "read_cache")],
        shown("memory", ("per_block.live", "B"), ("per_block.reload", "B"),
              ("per_block.suspended", "B"), ("per_block.read_cache", "B"),
              ("small_mib", "MiB"), ("large_mib", "MiB"))),
    Row("12", "draining random dirty blocks to the modelled HDD",
        "0.6 x the best peer's time and HDD commands", row_12,
        shown("drain", ("seconds", "s"), ("per_block.hdd.commands", "commands"),
              ("per_block.hdd.flushes", "flushes"), ("hdd_busy", "s"))),
    Row("13", "cache full, random writes go on",
        "1.3 x the best peer, never below the raw HDD", row_13,
        shown("full", ("iops", "IOPS"), ("latency.p990", "us"), ("latency.max", "us"),
              ("per_write.hdd.commands", "commands"))),
    Row("14", "reads from the modelled HDD while it is drained to",
        "p99 at most 2 x that without draining; half the speed of the drain if reads are few",
        row_14,
        shown("read_while_draining", ("quiet.p990", "us"), ("draining.p990", "us"),
              ("quiet_iops", "IOPS"), ("draining_iops", "IOPS"), ("drained_kib_s", "KiB/s"),
              ("few.drained_kib_s", "KiB/s"), ("few.reads_s", "reads/s"), ("few.max", "us"))),
    Row("15", "io_uring, buffers free", "no write is handed to a worker",
        lambda figures: [at_most(figures, "nowait", "punted_per_write", 0)],
        shown("nowait", ("punted_per_write", "of the writes"), ("iops", "IOPS"))),
    Row("16", "four writers when all buffers are full",
        "p99.9 at most 4 x the time of one segment; fair between them", row_16,
        shown("throttled", ("iops", "IOPS"), ("latency.p500", "us"), ("latency.p999", "us"),
              ("latency.max", "us"), ("fairness", "slowest / fastest"))),
    Row("17", "suspend, resume and an exchange of tables under load",
        "frozen at most as long as the write of one buffer pool", row_17,
        shown("swap_table", ("frozen.suspend", "s"), ("frozen.swap", "s"), ("pool_write", "s"),
              ("latency.max", "us"), ("times", "interruptions"))),
    Row("18", "zipf random writes, FLUSH after 32, cache full and draining",
        "SSD bytes per user byte: the least of all",
        lambda figures: [under_best(figures, "endurance", "ssd_per_user_byte", 1.0)],
        shown("endurance", ("ssd_per_user_byte", "B"), ("per_write.hdd.commands", "commands"),
              ("per_write.hdd.kib", "KiB"))),
    Row("19", "fsync after a 4 KiB write beside a large sequential write, modelled SSD",
        "the longest at most 2.3 x dm-linear's (0.3 s for 0.13 s), O_DIRECT and page cache",
        lambda figures: [under_linear(figures, "copy", f"{kind}.max", 2.3)
                         for kind in ("direct", "cached")],
        shown("copy", *((f"{kind}.{what}", unit) for kind in ("direct", "cached")
                        for what, unit in (("p500", "us"), ("p990", "us"), ("max", "us"),
                                           ("count", "fsyncs"), ("bytes_s", "B/s"))))),
    Row("20a", "O_DSYNC write beside dirty pages that are written, SSD of 3 MB/s",
        "the longest at most 2 x dm-linear's",
        lambda figures: [under_linear(figures, "dirty_flood", "max", 2.0)],
        shown("dirty_flood", ("p500", "us"), ("p990", "us"), ("max", "us"), ("count", "writes"),
              ("dirty", "pages"), ("left", "pages"))),
    Row("20b", "the same with a full log and a hard disk of 400 commands a second",
        "the longest at most 2 x dm-linear's on the SSD",
        lambda figures: [under_linear(figures, "full_flood", "max", 2.0)],
        shown("full_flood", ("p500", "us"), ("p990", "us"), ("max", "us"), ("count", "writes"),
              ("dirty", "pages"), ("left", "pages"))),
    Row("21", "fstrim of many pieces; fsync beside it",
        "at most 2 x dm-linear's time on the hard disk; p99 and longest fsync at most 2 x those "
        "without", row_21,
        shown("trim", ("cached.seconds", "s"), ("cached.settled", "s"), ("dropped.seconds", "s"),
              ("beside.seconds", "s"),
              *((f"{when}.per_piece.{disk}.{what}", what) for when in ("cached", "dropped")
                for disk in ("ssd", "hdd") for what in ("trims", "writes", "flushes")),
              *((f"fsync_{when}.{what}", "us") for when in ("alone", "beside")
                for what in ("p500", "p990", "max")))),
    Row("22", "random writers in two cgroups of equal weight, modelled SSD",
        "the slower one at least 0.9 x the faster one if both write with O_DIRECT",
        lambda figures: [Test("direct: slower / faster",
                              figures.get("shares", "direct_direct.fairness", LC), 0.9, True)],
        shown("shares", *((f"{kinds}.{what}", unit)
                          for kinds in ("direct_direct", "cached_cached", "direct_cached")
                          for what, unit in (("fairness", "slower / faster"),
                                             ("first_bytes_s", "B/s"),
                                             ("second_bytes_s", "B/s"))))),
    trace_row("a", "trace_cp",
              "the trace cp replayed, reads cached, modelled disks, drained at the end"),
    trace_row("b", "trace_P6", "the same with the trace P6, which has only reads"),
    Row("24", "fsync, random writes, a full log beside reads that always miss, modelled disks",
        "0.97 x the same with `read_cache off`", row_24,
        shown("beside_misses", *((f"{kind}.{state}.{what}", unit)
                                 for kind in BESIDE_MISSES for state in ("off", "on")
                                 for what, unit in (("iops", "/s"), ("reads_s", "/s"),
                                                    ("p990", "us"),
                                                    ("ssd_commands", "commands"))))),
    Row("25", "reads from the SSD after a power cut", "0.95 x those before", row_25,
        shown("power_cut", ("before", "%"), ("after_replay", "%"), ("after", "%"),
              ("rounds", "rounds"))),
)
