# SPDX-License-Identifier: GPL-2.0-only
"""Crash states of the real module, hundreds a boot (lclib/states.py says how).

A life is recorded on small disks, so that the log wraps often: phases aimed at wrap, seal, FUA,
superblock and tail, suspend, reload, discard, writeback, checkpoint, replay, and a format over an
old one. Its states are drawn from all phases alike, and within a phase from all areas of the
disks alike.

Proves P1, P2 and P3 for the states drawn, and that the volume lives on from each. The seed repeats
the life's commands and the draws, not the guest's timing; a state that fails is saved, and saved
states in ../states/ are cases of their own.
"""

import contextlib
import pathlib
import random
import shutil

from lclib import Disk, case, sh
from lclib.disks import Disks
from lclib.powerload import Ledger
from lclib.scatter import partly_odd
from lclib.states import (
    FOLDER,
    BareDisk,
    Explorer,
    Trace,
    Violation,
    Volume,
    now,
    resume_saved,
    take_away,
)

SAVED = pathlib.Path(__file__).resolve().parent.parent / "states"
DISKS = (Disk("ssd", size="5M", kind="recorded"), Disk("hdd", size="5M", kind="recorded"),
         Disk("clock", size="4K", kind="recorded"))
# Each lane needs 32 segments.
LARGER = (Disk("ssd", size="20M", kind="recorded"), *DISKS[1:])
# So long a command is in service: others overtake it, and the power can go meanwhile.
DELAYS = (("ssd", "write", 1), ("ssd", "flush", 2), ("hdd", "write", 1), ("hdd", "flush", 3))


class Life:
    """One life, phase by phase."""

    def __init__(self, ctx, disks, number, **options):
        self.ctx = ctx
        self.disks = disks
        self.rng = random.Random(f"{ctx.seed}/life/{number}")
        self.volume = Volume.drawn(ctx, self.rng, **options)
        self.ledger = Ledger(FOLDER / f"ledger.life{number}", ctx.clock)
        self.trace = Trace(f"life{number}", self.volume, self.ledger, disks)
        self.max_sectors = 256 if "bypass_kb" in options else 64
        self.bypassed = 0   # bytes that went around the log in the last start
        self.promised = []  # moments at which all that was written was synced, too

    @contextlib.contextmanager
    def load(self, ops, jobs=4, sync_every=10, **more):
        """A load of the usual kind, half of it from memory in odd pieces."""
        with partly_odd(self.volume.path, self.rng.randrange(1 << 32)) as path, \
                self.ledger.running(path, self.rng, ops=ops, jobs=jobs,
                                    max_sectors=self.max_sectors, sync_every=sync_every,
                                    **more):
            yield

    def old(self):
        """An earlier format of the same devices leaves its records and its data."""
        self.disks.fault_clear()
        self.disks.wipe()
        self.volume.format()
        self.volume.start()
        self.ledger.begin(self.volume.path, self.ctx.seed)
        with self.load(200):
            pass
        self.volume.drain()
        with self.load(100):
            pass
        self.volume.stop()

    def start(self):
        """The new format, and its first start; what is read then is what was there before."""
        self.volume.format()
        with self.trace.phase("start"):
            self.volume.start()
            self.trace.areas = self.volume.areas()
            self.ledger.verify(self.volume.path, "--rebase")
            with self.load(40):
                pass

    def record(self, *phases):
        """The life from format to stop; returns what was recorded."""
        self.old()
        for disk, op, milliseconds in DELAYS:
            self.disks.fault(disk=disk, op=op, errno=0, delay_ms=milliseconds)
        with self.trace.recording():
            self.start()
            for phase in phases or PHASES:
                with self.trace.phase(phase):
                    getattr(self, phase)()
        self.disks.fault_clear()
        take_away(self.volume)
        return self.trace

    def wrap(self):
        """Several laps of the ring."""
        with self.load(500):
            pass

    def seal(self):
        """Each write is waited for."""
        with self.load(60, jobs=1, sync_every=2):
            pass

    def promise(self):
        """A sync after every second write; when it has ended, it is known to have."""
        for _ in range(25):
            self.ledger.run(self.volume.path, self.rng, ops=2, jobs=1, max_sectors=64,
                            sync_every=1000, sync_last=True)
            self.promised.append(now(self.disks))

    def fua(self):
        """Many writes with FUA among others."""
        with self.load(120, jobs=2, sync_every=20, fua_every=3):
            pass

    def through(self):
        """The SSD says that it has no volatile cache, and beside the load, that it has one.

        No FLUSH is sent to a disk without a cache, and no driver tells the disk and the block
        layer at one moment. So nothing is in the cache or on its way when that changes. (A
        drive would empty it by itself; writes on their way are in submit_kunit.c.)
        """
        kind = pathlib.Path("/sys/block", pathlib.Path(self.ctx.ssd).name, "cache_type")
        with self.volume.stack.paused():
            kind.write_text("write through", encoding="ascii")
        with self.load(100, jobs=3, sync_every=4):
            pass
        with self.load(160, sync_every=4, fua_every=5):
            with self.volume.stack.paused():
                kind.write_text("write back", encoding="ascii")

    def drain(self):
        """Writeback beside the load, and to the end."""
        with self.load(150):
            self.volume.stack.message("writeback")
        self.volume.drain()

    def suspend(self):
        """Suspends beside the load."""
        with self.load(200):
            for options in ((), ("--noflush", "--nolockfs"), ()):
                with self.volume.stack.paused(*options):
                    pass

    def reload(self):
        """Other tables beside the load."""
        with self.load(200):
            lanes = self.volume.options.get("lanes", 1)
            for buffers in (4 * lanes, 12 * lanes):
                self.volume.reload(buffers=buffers)

    def discard(self):
        """Discards among the writes."""
        with self.load(200, discard_every=4):
            pass

    def stop(self):
        """A clean stop: checkpoint, fingerprint."""
        with self.load(60):
            pass
        self.volume.stop()

    def again(self):
        """A start from the checkpoint."""
        self.volume.start()
        with self.load(60):
            pass

    def replay(self):
        """A start from the log: removed while suspended is no clean stop."""
        sh.run("dmsetup", "suspend", self.volume.stack.name)
        self.volume.stop()
        self.volume.start()
        with self.load(100):
            pass

    def end(self):
        """All is brought to the hard disk, and stopped."""
        self.volume.drain()
        self.bypassed = self.volume.stack.fields()["bypassed_bytes"]
        self.volume.stop()


PHASES = ("wrap", "seal", "fua", "through", "drain", "suspend", "reload", "discard", "stop",
          "again", "replay", "end")


@contextlib.contextmanager
def explorer(ctx, **options):
    """An explorer; what it has seen goes into the figures."""
    with Disks() as disks:
        disks.fault_clear()
        disks.wipe()
        found = Explorer(ctx, disks, **options)
        try:
            yield found
        finally:
            disks.journal_drop()
            disks.fault_clear()
            shutil.rmtree(FOLDER)
            for name, value in sorted(found.seen.items()):
                ctx.figure(name, value)


def explore(ctx, lives, states, **options):
    """So many states of each of so many lives."""
    lanes = options.get("lanes", 1)
    around = "bypass_kb" in options
    # With several lanes the order is kept across a FLUSH only (L11), and around the log, too.
    with explorer(ctx, ordered=lanes == 1 and not around) as found:
        for number in range(lives):
            found.disks.journal_drop()
            life = Life(ctx, found.disks, number, **options)
            found.explore(life.record(), states)
            assert life.bypassed or not around, "no write has gone around the log"
        missed = [phase for phase in PHASES if not found.seen[f"phase {phase}"]]
        assert not missed, f"no state of {missed}"
        wanted = ["deeper", "warm", "dropped", "torn", "area log"]
        wanted += ["area superblock", "area checkpoint", "area mark", "area data"] \
            if lives > 1 else []
        # Only records of several lanes can be in another order than their writes.
        wanted += ["disordered"] if lanes > 1 else []
        missed = [what for what in wanted if not found.seen[what]]
        assert not missed, f"no state: {missed}"


@case(kernels=("stock",), disks=DISKS, timeout=900)
def three_hundred(ctx):
    """300 crash states of two lives: each comes back as promised, and lives on."""
    explore(ctx, lives=2, states=150)


@case(kernels=("stock",), disks=DISKS, timeout=600)
def around_the_log(ctx):
    """Crash states of a life in which every second write goes around the log, if it may."""
    explore(ctx, lives=1, states=100, bypass_kb=16)


@case(kernels=("stock",), disks=DISKS, timeout=14400, long=True)
def around_the_log_often(ctx):
    """5,000 crash states of such lives."""
    explore(ctx, lives=20, states=250, bypass_kb=16)


@case(kernels=("stock",), disks=DISKS, timeout=14400, long=True)
def five_thousand(ctx):
    """5,000 crash states of 20 lives."""
    explore(ctx, lives=20, states=250)


@case(kernels=("stock",), disks=LARGER, timeout=600, sampled=3)
def two_lanes(ctx):
    """Crash states of a life with two lanes."""
    explore(ctx, lives=1, states=100, lanes=2, buffers=12)


@case(kernels=("stock",), disks=LARGER, timeout=1200, long=True)
def eight_lanes(ctx):
    """Crash states of lives with eight lanes."""
    explore(ctx, lives=4, states=150, lanes=8, buffers=48)


@case(kernels=("stock",), disks=DISKS, timeout=300, module="")
def bare_disk(ctx):
    """The judge itself: all states of a bare disk keep P1; most do not keep order, and it sees."""
    with explorer(ctx, ordered=False) as found:
        ledger = Ledger(FOLDER / "ledger.bare", ctx.clock)
        ledger.begin(ctx.hdd, ctx.seed)
        trace = Trace("bare", BareDisk(ctx.hdd), ledger, found.disks)
        found.disks.fault(disk="hdd", op="write", errno=0, delay_ms=1)
        found.disks.fault(disk="hdd", op="flush", errno=0, delay_ms=2)
        with trace.recording(), trace.phase("load"):
            ledger.run(ctx.hdd, random.Random(ctx.seed), ops=400, discard_every=20)
        found.disks.fault_clear()
        found.explore(trace, 60)
        assert found.seen["disordered"] and found.seen["deeper"], found.seen


def promised_records(disks, life):
    """Records with the moments at which they were promised and nothing was sent behind them.

    A FLUSH behind a record is not enough to know that: it may be for want of buffers.
    """
    trace = life.trace
    commands = [event for event in disks.journal_events(name=trace.name)["events"]
                if event[2] == "ssd"]
    log = [first for name, _, first in trace.areas if name in ("log", "checkpoint")]
    found = []
    for point in life.promised:
        write, flush = [event for event in commands if event[0] <= point][-2:]
        if (write[4] and log[0] <= write[3] < log[1] and not flush[4]
                and write[1] < flush[0] < flush[1] <= point):
            found.append((write, point))
    return found


@case(kernels=("stock",), disks=DISKS, timeout=300)
def broken_promises_are_seen(ctx):
    """The judge itself: a record that was durable and vanishes, or rots, is always missed."""
    with explorer(ctx) as found:
        # Nothing is sealed but by the load, and nothing goes to the hard disk.
        life = Life(ctx, found.disks, 0, idle_seal_ms=0, writeback="off")
        trace = life.record("promise")
        points = promised_records(found.disks, life)
        assert len(points) >= 5, f"only {len(points)} records were promised alone"
        for event, point in random.Random(ctx.seed).sample(points, 5):
            place = trace_place(trace, point)
            drop = {"seed": point, "policy": "drop-all"}
            found.visit(trace.volume, place, drop, None, point)
            # The last slot of what was written: nothing behind it has newer data.
            rot = {"disk": "ssd", "offset": event[3] + event[4] - 4096, "len": 4096,
                   "seed": ctx.seed}
            for cut, harm in (({**drop, "lose": {"ssd": 1}}, None),
                              (drop, lambda rot=rot: found.disks.corrupt(**rot))):
                try:
                    found.visit(trace.volume, place, cut, None, point, harm)
                except Violation as violation:
                    seen = violation
                    continue
                raise AssertionError(f"not seen at {point} of {now(found.disks)}: {cut}, {event}")
        text = found.blame(trace, place, {**drop, "lose": {"ssd": 1}}, "self-test", seen)
        assert "saved: " in text and "not arrive: []" in text, text


def trace_place(trace, point):
    """A point of the recorded life itself."""
    place = trace.place(random.Random(0), trace.phases[-1])
    place.point = place.at = point
    return place


def saved_case(path):
    """A case that judges one saved state."""
    def judge_saved(ctx):
        with Disks() as disks:
            resume_saved(ctx, disks, path)
    name = path.name.partition(".")[0]
    judge_saved.__name__ = "saved_" + name.replace("-", "_")
    judge_saved.__doc__ = f"The saved state {name} comes back as promised."
    return case(kernels=("stock",), disks=DISKS, timeout=120)(judge_saved)


for saved in sorted(SAVED.glob("*.tar.xz")):
    saved_case(saved)
