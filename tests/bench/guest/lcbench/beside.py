# SPDX-License-Identifier: GPL-2.0-only
"""Jobs about who waits for whom: durable writes beside a copy, beside the page cache and beside
discards; and two cgroups side by side.

A volume has two kinds of users here: one that makes a block durable now and then, straight on the
volume, and one that keeps it busy, on a device above it that has a page cache of its own. So an
fsync writes nothing of what the other one has in the page cache.
"""

import contextlib
import ctypes
import fcntl
import mmap
import os
import pathlib
import random
import struct
import threading
import time

from lclib import sh, wait
from lclib.dm import sectors

from . import load
from .common import MIB, latencies, timed
from .systems import ABOVE

BLOCK = 4096
SYNCED = 16 * MIB            # of the volume, at its beginning: where blocks are made durable
SLOW_KNOWN = 4 * MIB         # enough to measure a slow SSD by
FAR = 1024 * MIB             # of the volume: only a full log has writes behind it
VM = pathlib.Path("/proc/sys/vm")
FITRIM = 0xC0185879
PIECE = 16384
FEWEST = 3                   # durable writes beside dirty pages, however soon these are written
MOUNTED = pathlib.Path("/tmp/bench-mounted")
GROUPS = pathlib.Path("/tmp/bench-cgroups")
WRITERS = {"direct": {"ioengine": "libaio", "direct": 1, "iodepth": 16, "bs": "4k"},
           "cached": {"ioengine": "psync", "direct": 0, "bs": "4k"}}


# ------------------------------------------------------------------- who waits

class User(threading.Thread):
    """One of the volume, who does something until the end of a with block."""

    def __init__(self, path, seed):
        super().__init__(daemon=True)
        self.path = path
        self.rng = random.Random(seed)
        self.over = threading.Event()
        self.error = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


class Durable(User):
    """Makes a block durable now and then, and keeps how long each took.

    By an fsync after the write, or, with `dsync`, by the write itself.
    """

    def __init__(self, path, seed, pause, dsync=False):
        super().__init__(path, seed)
        self.pause, self.dsync = pause, dsync
        self.seconds = []

    def run(self):
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_DIRECT)
            with open(handle, "rb", buffering=0):
                self.write_on(handle)
        except OSError as error:
            self.error = error

    def write_on(self, handle):
        """Until told to end."""
        memory = mmap.mmap(-1, BLOCK)
        while True:
            memory[:8] = struct.pack("Q", self.rng.getrandbits(64))
            place = self.rng.randrange(SYNCED // BLOCK) * BLOCK
            begun = time.monotonic()
            os.pwritev(handle, [memory], place, os.RWF_DSYNC if self.dsync else 0)
            if not self.dsync:
                os.fsync(handle)
            self.seconds.append(time.monotonic() - begun)
            if self.over.wait(self.pause):
                break

    def figures(self):
        """Percentiles in microseconds, and of how many."""
        if self.error:
            raise self.error
        return summary(self.seconds)


def summary(seconds):
    """Median, p99 and the longest, in microseconds; by rank, nothing is interpolated."""
    if not seconds:
        raise AssertionError("nothing was made durable meanwhile")
    ranked = sorted(seconds)
    return {"p500": ranked[(len(ranked) - 1) // 2] * 1e6,
            "p990": ranked[-(-99 * len(ranked) // 100) - 1] * 1e6,
            "max": ranked[-1] * 1e6, "count": len(ranked)}


# ------------------------------------------------------------- who keeps it busy

@contextlib.contextmanager
def above(path, part=0, parts=1):
    """The volume after SYNCED, or one of several equal parts, with a page cache of its own."""
    first = SYNCED // 512
    length = (sectors(path) - first) // parts & ~7
    name = ABOVE[part]
    sh.run("dmsetup", "create", name,
           input=f"0 {length} linear {path} {first + part * length}\n")
    try:
        yield f"/dev/mapper/{name}"
    finally:
        wait.until(lambda: sh.result("dmsetup", "remove", name)[0] == 0, 60, "device removed")


@contextlib.contextmanager
def page_cache(**knobs):
    """Other settings of the page cache meanwhile; those of bytes put those of parts aside."""
    kept = ("dirty_ratio", "dirty_background_ratio", "dirty_expire_centisecs",
            "dirty_writeback_centisecs")
    before = {name: (VM / name).read_text(encoding="ascii") for name in kept}
    try:
        for name, value in knobs.items():
            (VM / name).write_text(str(value), encoding="ascii")
        yield
    finally:
        for name, value in before.items():
            (VM / name).write_text(value, encoding="ascii")


def dirty_pages():
    """Pages that are not on a device yet."""
    total = 0
    for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(":")
        if key in ("Dirty", "Writeback"):
            total += int(value.split()[0]) * 1024 // BLOCK
    return total


def fio_words(path, **words):
    """A fio process that writes to a device."""
    return ("fio", "--name=writer", "--output-format=terse", "--thread", f"--filename={path}",
            *(f"--{key}={value}" for key, value in words.items()))


# -------------------------------------------------------- fsync beside a large copy

COPIES = {"direct": {"ioengine": "libaio", "direct": 1, "iodepth": 4},
          "cached": {"ioengine": "psync", "direct": 0, "fallocate": "none"}}


def copied(path, kind, amount):
    """A large sequential write, with 1 MiB for each call; seconds until it was over."""
    begun = time.monotonic()
    sh.run(*fio_words(path, rw="write", bs="1m", size=amount, **COPIES[kind]))
    return time.monotonic() - begun


def copy(bench, name):
    """An fsync after a 4 KiB write, now and then, while a large file is written in sequence.

    With O_DIRECT, and through a page cache that may hold no more than what the SSD takes within a
    second or so, as when a file is much larger than memory.
    """
    figures = {}
    amount = bench.plan["copy_bytes"]
    for kind in COPIES:
        timed(bench)
        with bench.system(name) as system:
            system.warm(SYNCED)
            with above(system.path) as path, \
                    page_cache(dirty_background_bytes=32 * MIB, dirty_bytes=64 * MIB):
                with Durable(system.path, bench.seed, bench.plan["sync_pause"]) as durable:
                    seconds = copied(path, kind, amount)
                figures[kind] = {**durable.figures(), "bytes_s": amount / seconds}
            timed(bench, False)
    return figures


# -------------------------------------------------------- O_DSYNC beside dirty pages

def flooded(bench, system, path):
    """O_DSYNC writes while the kernel writes dirty pages of another device; their latencies."""
    pages = bench.plan["dirty_pages"]
    rng = random.Random(bench.seed)
    places = rng.sample(range(sectors(path) * 512 // BLOCK), pages)
    # Nothing is written before all of it is dirty.
    with page_cache(dirty_background_bytes=2 * pages * BLOCK, dirty_bytes=4 * pages * BLOCK,
                    dirty_writeback_centisecs=0):
        handle = os.open(path, os.O_RDWR)
        try:
            for place in places:
                os.pwrite(handle, place.to_bytes(8, "little") * (BLOCK // 8), place * BLOCK)
            before = dirty_pages()
            with Durable(system.path, bench.seed, bench.plan["dsync_pause"], dsync=True) as durable:
                # The flusher threads' doing, not that of an fsync.
                (VM / "dirty_expire_centisecs").write_text("1", encoding="ascii")
                (VM / "dirty_writeback_centisecs").write_text("1", encoding="ascii")
                deadline = time.monotonic() + bench.plan["flood_ms"] / 1000
                while ((dirty_pages() > before // 20 or len(durable.seconds) < FEWEST)
                       and time.monotonic() < deadline):
                    time.sleep(0.1)
            left = dirty_pages()
        finally:
            timed(bench, False)     # closing it writes the rest
            os.close(handle)
    return {**durable.figures(), "dirty": before, "left": left}


def dirty_flood(bench, name):
    """On an SSD that is slow, with room in the log."""
    with bench.system(name) as system:
        system.warm(SYNCED)
        with above(system.path) as path:
            bench.disks.model(disk="ssd", kind="ssd",
                              **{**bench.plan["ssd_model"], "rate": bench.plan["slow_rate"]})
            # A system may measure what the SSD does, and it is slow for the whole of its life.
            system.warm(SLOW_KNOWN)
            sh.run("sync", system.path)
            return flooded(bench, system, path)


def full_flood(bench, name):
    """With a full log and a hard disk that does 400 commands a second, wherever they are."""
    with bench.part(bench.plan["flood_cache"]) as part, \
            part.system(name, hold=False) as system:
        with above(system.path) as path:
            bench.disks.model(disk="hdd", kind="hdd", seek_ms=0, stroke_ms=0, rotation_ms=2.5)
            if system.caches:
                load.run(path, depth=32, order="once", seed=bench.seed,
                         count=bench.plan["flood_cache"] // BLOCK, ms=bench.plan["flood_fill_ms"])
            return flooded(part, system, path)


# ------------------------------------------------------------ reads that always miss

class Misses(User):
    """Reads one block after the other that is not cached, at random behind FAR."""

    count = 0

    def run(self):
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
            with open(handle, "rb", buffering=0):
                memory = mmap.mmap(-1, BLOCK)
                last = os.lseek(handle, 0, os.SEEK_END) // BLOCK
                while not self.over.is_set():
                    os.preadv(handle, [memory],
                              self.rng.randrange(FAR // BLOCK, last) * BLOCK)
                    self.count += 1
        except OSError as error:
            self.error = error

    def __exit__(self, *about):
        super().__exit__(*about)
        if self.error:
            raise self.error


def synced_writes(bench, system):
    """A FLUSH after each write; the load's words."""
    system.warm(SYNCED)
    return {"flush_every": 1, "span": SYNCED, "ms": bench.plan["latency_ms"]}


def random_writes(bench, system):
    """As fast as the SSD model takes them."""
    system.warm(SYNCED)
    count = bench.plan["bound_bytes"] // BLOCK
    return {"depth": 64, "span": SYNCED, "count": count, "flush_every": count}


def full_log(bench, system):
    """Random writes all over the volume when the log has been full for a while."""
    load.run(system.path, depth=32, order="once", seed=bench.seed,
             count=bench.plan["flood_cache"] // BLOCK, ms=bench.plan["fill_ms"])
    load.run(system.path, depth=32, seed=bench.seed, ms=bench.plan["fill_ms"])
    return {"depth": 32, "ms": bench.plan["full_ms"]}


def beside_reader(bench, system, state, prepare):
    """The figures of one load, beside a task whose reads always miss."""
    system.message("read_cache", state)
    words = prepare(bench, system)
    with load.counted(bench.disks) as seen, Misses(system.path, bench.seed) as misses:
        got = load.run(system.path, seed=bench.seed + 1, **words)
    timed(bench, False)
    return {"iops": got["iops"], "reads_s": misses.count * 1e9 / got["ns"],
            "p990": latencies(got, "write")["p990"],
            "ssd_commands": load.per_write(seen, got["write"])["ssd"]["commands"]}


def beside_misses(bench, name):
    """Writes beside a task whose reads always miss, with option read_cache off and on.

    Means of two, in an order in which a machine that gets slower meanwhile does so for both.
    """
    figures = {}
    for prepare in (synced_writes, random_writes, full_log):
        seen = {"off": [], "on": []}
        for state in ("off", "on", "on", "off"):
            timed(bench)
            full = prepare is full_log
            with (bench.part(bench.plan["flood_cache"]) if full
                  else contextlib.nullcontext(bench)) as part, \
                    part.system(name, hold=not full) as system:
                seen[state].append(beside_reader(bench, system, state, prepare))
        figures[prepare.__name__] = {
            state: {key: sum(one[key] for one in both) / len(both) for key in both[0]}
            for state, both in seen.items()}
    return figures


# ------------------------------------------------------------------ two cgroups

@contextlib.contextmanager
def cgroups(names):
    """Groups of equal weight for I/O, each with its own dirty pages; {name: folder}."""
    GROUPS.mkdir(exist_ok=True)
    sh.run("mount", "-t", "cgroup2", "none", GROUPS)
    try:
        (GROUPS / "cgroup.subtree_control").write_text("+io +memory", encoding="ascii")
        for name in names:
            (GROUPS / name).mkdir()
        yield {name: GROUPS / name for name in names}
    finally:
        for name in names:
            wait.until(lambda group=GROUPS / name: "populated 0" in (
                group / "cgroup.events").read_text(encoding="ascii"), 60, "the cgroup is empty")
            (GROUPS / name).rmdir()
        sh.run("umount", GROUPS)


def written_by(group, path):
    """Bytes that a cgroup has sent to a device so far."""
    number = os.stat(path).st_rdev
    for line in (group / "io.stat").read_text(encoding="ascii").splitlines():
        device, *words = line.split()
        if device == f"{os.major(number)}:{os.minor(number)}":
            return int(dict(word.split("=") for word in words).get("wbytes", 0))
    return 0


def side_by_side(bench, system, paths, kinds):
    """Two endless writers, each in its cgroup; bytes a second of each that got to the volume.

    Each has a device of its own: the pages of one device are those of one cgroup.
    """
    with cgroups(("left", "right")) as groups, \
            page_cache(dirty_background_bytes=8 * MIB, dirty_bytes=16 * MIB):
        groups = list(groups.values())
        writers = []
        for group, path, kind in zip(groups, paths, kinds, strict=True):
            words = fio_words(path, rw="randwrite", norandommap=1, randseed=bench.seed,
                              size=bench.plan["share_span"], time_based=1, runtime=3600,
                              **WRITERS[kind])
            writers.append(sh.start("sh", "-c", f"echo $$ > {group}/cgroup.procs; exec \"$@\"",
                                    "sh", *words))

        def written():
            return [written_by(group, system.path) for group in groups]

        try:
            wait.until(lambda: min(written()) > MIB, 60, "both writers at work")
            begun, before = time.monotonic(), written()
            time.sleep(bench.plan["share_ms"] / 1000)
            seconds, after = time.monotonic() - begun, written()
        finally:
            timed(bench, False)
            for writer in writers:
                writer.terminate()
                writer.communicate()
    return [(now - then) / seconds for now, then in zip(after, before, strict=True)]


def shares(bench, name):
    """Random 4 KiB writers in two cgroups of equal weight: direct, cached, one of each.

    Direct writers have 16 writes in flight, cached ones a page cache of 16 MiB for both. The
    figures are the writes that the volume got on behalf of each cgroup.
    """
    figures = {}
    for kinds in (("direct", "direct"), ("cached", "cached"), ("direct", "cached")):
        timed(bench)
        with bench.system(name) as system:
            system.warm(SYNCED)
            with above(system.path, 0, 2) as left, above(system.path, 1, 2) as right:
                rates = side_by_side(bench, system, (left, right), kinds)
        figures["_".join(kinds)] = {"fairness": min(rates) / max(*rates, 1),
                                    "first_bytes_s": rates[0], "second_bytes_s": rates[1]}
    return figures


# ------------------------------------------------------------------- discards

def punch(handle, offset, length):
    """Give part of a file back."""
    keep_size, punch_hole = 1, 2
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if fallocate(handle, keep_size | punch_hole, offset, length):
        raise OSError(ctypes.get_errno(), "fallocate")


@contextlib.contextmanager
def file_system(path, pieces):
    """One with so many free pieces of PIECE, none next to another, all written before."""
    amount = 2 * pieces * PIECE
    sh.run("mkfs.ext4", "-q", "-F", "-b", BLOCK, "-O", "^has_journal", "-E",
           "nodiscard,lazy_itable_init=0",  # else ext4lazyinit writes beside all that is measured
           path, f"{(amount + amount // 4 + 16 * MIB) // 1024}k")
    MOUNTED.mkdir(exist_ok=True)
    sh.run("mount", path, MOUNTED)
    try:
        with open(MOUNTED / "file", "wb") as out:
            for _ in range(amount // PIECE):
                out.write(b"\xA5" * PIECE)
            os.fsync(out.fileno())
            for piece in range(pieces):
                punch(out.fileno(), 2 * piece * PIECE, PIECE)
            os.fsync(out.fileno())
        os.sync()
        yield
    finally:
        sh.run("umount", MOUNTED)


def fstrim():
    """FITRIM of all of the file system; seconds."""
    handle = os.open(MOUNTED, os.O_RDONLY)
    try:
        begun = time.monotonic()
        fcntl.ioctl(handle, FITRIM, struct.pack("QQQ", 0, 2**64 - 1, 0))
        return time.monotonic() - begun
    finally:
        os.close(handle)


def trimmed(bench, system):
    """fstrim: how long, and what got to both disks, for each piece.

    Work that goes on after the end of a discard's command is counted, too, and its duration.
    """
    pieces = bench.plan["trim_pieces"]
    with load.counted(bench.disks) as seen:
        begun = time.monotonic()
        seconds = fstrim()
        system.settle()
        settled = time.monotonic() - begun
    return {"seconds": seconds, "settled": settled, "per_piece": {
        disk: {key: count[key] / pieces for key in ("trims", "writes", "flushes")}
        for disk, count in seen.items()}}


def trim(bench, name):
    """fstrim of many pieces that are cached, again when they are not, and beside fsyncs.

    dm-linear is over the hard disk, where the discards of a cache end, too.
    """
    pieces = bench.plan["trim_pieces"]
    timed(bench, False)
    with bench.system(name, slow=True) as system:
        system.warm(SYNCED)
        with above(system.path) as path:
            with file_system(path, pieces):
                timed(bench)
                figures = {"cached": trimmed(bench, system)}
                timed(bench, False)
            # Mounted again it has forgotten what it has discarded.
            sh.run("mount", path, MOUNTED)
            timed(bench)
            try:
                figures["dropped"] = trimmed(bench, system)
            finally:
                timed(bench, False)
                sh.run("umount", MOUNTED)
            with file_system(path, pieces):
                timed(bench)
                with Durable(system.path, bench.seed, 0) as durable:
                    time.sleep(bench.plan["quiet_ms"] / 1000)
                figures["fsync_alone"] = durable.figures()
                with Durable(system.path, bench.seed, 0) as durable:
                    figures["beside"] = {"seconds": fstrim()}
                figures["fsync_beside"] = durable.figures()
                timed(bench, False)
    return figures
