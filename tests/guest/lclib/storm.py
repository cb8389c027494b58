# SPDX-License-Identifier: GPL-2.0-only
"""All that can be done to a volume at the same time, from all processors."""

import contextlib
import errno
import os
import random
import threading

from . import dm, dmioctl, sh
from .lc import LcStack
from .powerload import command, ended, powerload
from .scatter import partly_odd

MARK_SECTORS = 2048
LEDGER = "/tmp/storm.ledger"
SIZES = ("--max-writes", 1 << 19, "--max-syncs", 1 << 17)
# Jobs that verify what they wrote a moment ago, and one that only reads, everywhere.
FIO = ("--name=global", "--ioengine=libaio", "--direct=1", "--iodepth=8", "--time_based",
       "--runtime=100000", "--output-format=terse")
VERIFIED = ("--name=verified", "--rw=randwrite", "--bs=4k", "--numjobs=2", "--verify=crc32c",
            "--verify_fatal=1", "--verify_backlog=128", "--fsync=64")
READER = ("--name=reader", "--rw=randread", "--bsrange=512-64k")
# What a message or a look may be answered while tables are swapped.
BUSY = (errno.EBUSY, errno.ENXIO, errno.EAGAIN)


class Overlapping:
    """Writes, flushes, FUA and discards that overlap, with a ledger to judge them by."""

    def __init__(self, path, rng, **load):
        self.path = path
        self.rng = rng
        self.load = {"jobs": 4, "max_sectors": 128, "sync_every": 30, "fua_every": 50,
                     "discard_every": 60, **load}
        self.process = None

    def begin(self):
        """A new ledger."""
        powerload("init", self.path, LEDGER, "--seed", self.rng.randrange(1, 1 << 32), *SIZES)

    def options(self, ops):
        """The load in words."""
        words = ["--rng", self.rng.randrange(1 << 32), "--ops", ops]
        for key, value in self.load.items():
            words += ["--" + key.replace("_", "-"), value]
        return words

    @contextlib.contextmanager
    def running(self):
        """Without an end inside the block; at its end all that was written is flushed."""
        self.process = sh.start(*command("run", self.path, LEDGER, *self.options(1 << 40)))
        try:
            yield self
            self.check()
        finally:
            self.process.kill()
            self.process.communicate()
        _, report = powerload("run", self.path, LEDGER, *self.options(0), "--sync-last")
        ended(report)
        self.writes = report["writes"]

    def check(self):
        """Still at work."""
        assert self.process.poll() is None, self.process.communicate()[0]

    def verify(self, path, *options):
        """Every sector holds what it must."""
        fine, report = powerload("verify", path, LEDGER, *options)
        assert fine, report


class Fio:
    """Verified jobs on [offset, offset + 16 MiB) and a reader everywhere."""

    def __init__(self, path, offset, seed):
        self.argv = ["fio", *FIO, f"--filename={path}", f"--randseed={seed}", *VERIFIED,
                     f"--offset={offset}", "--size=8M", "--offset_increment=8M", *READER]
        self.process = None

    @contextlib.contextmanager
    def running(self):
        """Without an end inside the block."""
        self.process = sh.start(*self.argv)
        try:
            yield self
            self.check()
        finally:
            self.process.terminate()
            output, _ = self.process.communicate()
        assert "bad" not in output and "error" not in output.lower(), output

    def check(self):
        """Still at work."""
        assert self.process.poll() is None, self.process.communicate()[0]


class Asker(threading.Thread):
    """Asks the same of device mapper again and again, from a thread of its own."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask = ask
        self.over = threading.Event()
        self.asked = 0
        self.failure = None

    def run(self):
        try:
            while not self.over.is_set():
                try:
                    self.ask()
                    self.asked += 1
                except OSError as error:
                    if error.errno not in BUSY:
                        raise
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        self.join()
        if self.failure and not kind:
            raise self.failure


def messages(name, seed):
    """Asks of an Asker: the status, and every message there is."""
    control = dmioctl.Control()
    rng = random.Random(seed)
    texts = ("sync", "drain", "flush", "writeback", "list lost", "list refused", "writeback on",
             "writeback off", "high_watermark 80", "high_watermark 50", "low_watermark 10",
             "low_watermark 30", "writeback_batch 512", "writeback_batch 4096",
             "writeback_depth 2", "writeback_depth 8", "idle_seal_ms 10", "idle_seal_ms 1000",
             "verify_reads on", "verify_reads off", "read_cache on", "read_cache off",
             "bypass_kb 0", "bypass_kb 32", "cache_mode writeback", "cache_mode writethrough",
             "cache_mode writearound", "warm off", "warm on")

    def ask():
        control.message(name, rng.choice(texts))

    return ask


def looks(name):
    """Asks of an Asker: status and table."""
    control = dmioctl.Control()

    def ask():
        control.status(name)
        words = sh.run("dmsetup", "table", name).split()
        assert words[2] == "lc", words

    return ask


def step(lc, rng):
    """Something that is done to a table."""
    kind = rng.randrange(4)
    if kind == 0:
        with lc.paused():
            pass
    elif kind == 1:
        with lc.paused("--noflush", "--nolockfs"):
            pass
    else:
        lc.reload_with(**rng.choice(({}, {"buffers": rng.randint(4, 40)},
                                     {"writeback_depth": rng.randint(1, 16)},
                                     {"verify_reads": rng.choice(("on", "off"))},
                                     {"read_cache": rng.choice(("on", "off"))},
                                     {"bypass_kb": rng.choice((0, 16))},
                                     {"cache_mode": rng.choice(("writeback", "writethrough"))},
                                     {"writeback_batch": rng.choice((512, 2048, 8192))})))


class Storm:
    """A volume and the loads on its two halves."""

    def __init__(self, ctx, cache=None, **options):
        self.ctx = ctx
        self.rng = random.Random(ctx.seed)
        self.stack = LcStack(ctx.hdd, cache or ctx.ssd, format=("--segment-size=256K",),
                             **{"buffers": 8, **options})
        self.writes = 0
        # A new ledger takes what was never written for zeroes.
        sh.run("blkdiscard", "--zeroout", ctx.hdd)

    @contextlib.contextmanager
    def life(self, first, fio=True, **load):
        """The volume under load inside the block; then judged."""
        with self.stack as lc:
            half = dm.sectors(lc.path) // 2 // 8 * 8
            with dm.Device("low", dm.linear(lc.path, half)) as low, \
                    partly_odd(low.path, self.ctx.seed) as path:
                overlapping = Overlapping(path, self.rng, **load)
                if first:
                    overlapping.begin()
                running = [overlapping]
                if fio:
                    running.append(Fio(lc.path, half * 512, self.ctx.seed))

                def check():
                    for each in running:
                        each.check()
                    assert lc.fields()["mode"] == "rw", lc.fields()

                with contextlib.ExitStack() as loads:
                    for each in running:
                        loads.enter_context(each.running())
                    yield lc, check
                self.writes = overlapping.writes
                overlapping.verify(path)
                lc.drain()
                assert lc.fields()["dirty"] == 0, lc.fields()
                overlapping.verify(low.path, "--rebase")
        overlapping.verify(self.ctx.hdd, "--skip", MARK_SECTORS)


def races():
    """What the race detector has counted, where the kernel has it."""
    name = "/sys/kernel/debug/kcsan"
    if not os.path.exists(name):
        return {}
    with open(name, encoding="ascii") as lines:
        pairs = (line.split(":") for line in lines if ":" in line)
        return {key: int(value) for key, value in pairs if value.strip().isdigit()}
