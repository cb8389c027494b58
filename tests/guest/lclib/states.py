# SPDX-License-Identifier: GPL-2.0-only
"""Crash states of the real module: a life is recorded once, then cut at many points.

All I/O of both disks goes through the recorder on the host, whose journal remembers it in one
order. The ledger of the load is stamped in the same order (powerload --clock). So for every point
of the journal it is known what had been promised by then.

A state: a point, and for each disk the fates of what was not durable there (tests/disks/crash.py).
The host puts the disks into it; the module starts from it; every sector of the volume is judged
(P1, P2, P3). Then the volume is written to, drained, judged again, stopped cleanly, and what is on
the hard disk is judged without the module. All of that may be recorded too, and cut again: a crash
during replay, during the drain that follows, and so on. In a `warm` state the machine restarted
and the disks kept their caches: the power goes only in the next one.

A state that fails is made smaller (fewer writes that did not arrive) and saved by the host.

Not covered: see tests/disks/recorder.py; disks that fail, rot or lie; crashes during lc-format;
FUA on its way to a disk, because virtio disks have none and the kernel makes FLUSHes of it.
"""

import base64
import collections
import contextlib
import dataclasses
import itertools
import json
import pathlib
import random
import tarfile
import zlib

from . import dm, sh, status, wait
from .disk import MIB
from .disk import Device as Raw
from .disks import Refused
from .dmioctl import Control
from .lc import LcStack, bare_volume
from .powerload import Ledger

FOLDER = pathlib.Path("/tmp/states")
POLICIES = ("random", "random", "random", "any", "any", "drop-all", "ordered-prefix",
            "disk-prefix", "tear-all", "one-lost", "one-kept")
DEEPEST = 3
MINIMISE = 40
DRAIN_SECONDS = 60
FORCE = ("--force=paired", "--force=dirty-cache", "--force=fs-at-end", "--force=roles")


class Violation(AssertionError):
    """A state from which the volume does not come back as promised."""


class BareDisk:
    """A bare disk in the place of a volume: keeps P1, keeps no order."""

    skip = 0
    about = {"kind": "bare"}

    def __init__(self, path):
        self.path = path

    def start(self):
        """Always up."""

    def stop(self):
        """Nothing to stop."""

    def drain(self):
        """Nothing to drain."""


class Volume:
    """The volume under test; `about` is all that is needed to start it again."""

    def __init__(self, ctx, about):
        self.about = about
        self.options = about["options"]
        self.stack = LcStack(ctx.hdd, ctx.ssd, name="states", format=about["format"],
                             **self.options)
        self.path = ""  # known when it runs
        self.control = Control()
        self.in_place = "--in-place" in about["format"]
        self.skip = 0 if self.in_place else MIB // 512
        self.length = dm.sectors(ctx.hdd) - MIB // 512  # all but the mark

    @classmethod
    def drawn(cls, ctx, rng, **fixed):
        """A volume of some layout, with some options, but those that are given."""
        sizes = ("64K", "64K", "128K") if "lanes" not in fixed else ("64K",)
        layout = ["--segment-size=" + rng.choice(sizes),
                  "--checksum=" + rng.choice(("xxh64", "crc32c"))]
        layout += rng.choice(([], ["--in-place"]))
        high = rng.choice((20, 40, 60, 90))
        options = {"buffers": rng.randint(4, 8), "high_watermark": high,
                   "low_watermark": high // rng.choice((2, 4)),
                   "writeback_batch": rng.choice((64, 200, 8192)),
                   "idle_seal_ms": rng.choice((0, 20, 1000)), **fixed}
        return cls(ctx, {"kind": "lc", "format": layout, "options": options})

    def format(self):
        """lc-format, over whatever is there."""
        sh.run("lc-format", *self.stack.format_options, *FORCE, "--backing", self.stack.backing,
               self.stack.cache)

    def table(self, **options):
        """The target, some options changed."""
        options = {**self.options, **options}
        return dm.lc(self.stack.backing, self.stack.cache, self.length, **options)

    def start(self):
        """Create the device; Violation with the kernel's words if that fails."""
        try:
            self.path = self.control.create(self.stack.name, self.table())
        except OSError as error:
            raise Violation(f"does not start: {error}\n{sh.run('dmesg')[-1500:]}") from None

    def stop(self):
        """A clean stop."""
        self.control.remove(self.stack.name)

    def reload(self, **options):
        """Other options while it runs."""
        self.stack.reload(self.table(**options))

    def drain(self):
        """Everything to the hard disk; nothing may be lost, refused or failed by now."""
        self.control.message(self.stack.name, "writeback")
        fields = wait.until(self.drained, DRAIN_SECONDS, "the drain ends")
        if fields["mode"] != "rw" or fields["lost"] or fields["refused"]:
            raise Violation(f"after the drain: {fields}")

    def drained(self):
        """The status, if there is nothing left to drain or no way to."""
        fields = status.parse(self.control.status(self.stack.name))
        return fields if not fields["dirty"] or fields["mode"] != "rw" else None

    def areas(self):
        """[(name, disk, first byte)] of what lies where, each up to the next one."""
        fields = self.stack.fields()
        begin = max(MIB, fields["segment_bytes"])
        checkpoint = begin + fields["segments"] * fields["segment_bytes"]
        with Raw(self.stack.cache) as ssd, Raw(self.stack.backing) as hdd:
            found = [("superblock", "ssd", 0), ("log", "ssd", begin),
                     ("checkpoint", "ssd", checkpoint), ("superblock", "ssd", ssd.size - MIB)]
            found += [("mark", "hdd", 0), ("data", "hdd", MIB)]
            found += [("head", "hdd", hdd.size - MIB)] if self.in_place else []
        return found


@dataclasses.dataclass
class Place:
    """A point of a journal, and what judges a state there."""

    journal: str
    point: int
    ledger: Ledger
    at: int        # the moment of the ledger: the point, unless the ledger ended before
    phase: str = ""
    area: str = ""


class Trace:
    """One recorded life: its phases, its events, its ledger."""

    def __init__(self, name, volume, ledger, disks):
        self.name = name
        self.volume = volume
        self.ledger = ledger
        self.disks = disks
        self.phases = []
        self.areas = []
        self.events = {}  # of each phase: by area, where they begin and end

    @contextlib.contextmanager
    def recording(self):
        """Inside the block everything is remembered."""
        self.disks.journal_start(name=self.name)
        yield self
        self.disks.journal_stop()
        events = self.disks.journal_events(name=self.name)["events"]
        for name, begin, end in self.phases:
            inside = [event for event in events if begin <= event[0] and event[1] <= end]
            self.events[name] = by_area(inside, self.areas)

    @contextlib.contextmanager
    def phase(self, name):
        """What happens inside the block has a name."""
        begin = now(self.disks)
        yield
        self.phases.append((name, begin, now(self.disks)))

    def place(self, rng, phase, area=None):
        """Some point of a phase, and of an area: rare ones are as likely as common ones."""
        name, _, end = phase
        events = self.events[name]
        point, area = draw_point(rng, {area: events[area]} if area else events, end)
        return Place(self.name, point, self.ledger, point, name, area)

    def aims(self, rng):
        """(phase, area) with each area once: the few events of some are not left to chance."""
        phases = collections.defaultdict(list)
        for phase in self.phases:
            for area in self.events[phase[0]]:
                phases[area].append(phase)
        return [(rng.choice(phases[area]), area) for area in sorted(phases)]


def now(disks):
    """This moment in the order of all events."""
    return disks.clock()["clock"]


def by_area(events, areas):
    """{area: [(begun, ended)]} of events; without areas, by disk."""
    found = collections.defaultdict(list)
    for begun, ended, disk, offset, length, _ in events:
        area = f"{disk} flush"
        if length:
            known = [name for name, of, first in areas if of == disk and first <= offset]
            area = known[-1] if known else disk
        found[area].append((begun, ended))
    return dict(found)


def draw_point(rng, events, otherwise):
    """(point, area): before, in or behind an event of some area."""
    if not events:
        return otherwise, ""
    area = rng.choice(sorted(events))
    begun, ended = rng.choice(events[area])
    return rng.choice((begun - 1, begun, ended, ended)), area


class Explorer:
    """Goes to states and judges them."""

    def __init__(self, ctx, disks, *, ordered=True):
        self.ctx = ctx
        self.disks = disks
        self.ordered = ordered
        self.seen = collections.Counter()
        FOLDER.mkdir(exist_ok=True)

    def explore(self, trace, states):
        """So many states of a trace: one of each area, then all its phases in turn."""
        end = self.seen["states"] + states
        aims = trace.aims(random.Random(f"{self.ctx.seed}/{trace.name}"))
        others = ((phase, None) for phase in itertools.cycle(trace.phases))
        for number, aim in enumerate(itertools.chain(aims, others)):
            if self.seen["states"] >= end:
                break
            rng = random.Random(f"{self.ctx.seed}/{trace.name}/{number}")
            self.chain(trace, trace.place(rng, *aim), rng, f"{trace.name}-{number}")

    def chain(self, trace, place, rng, name):
        """One state, and sometimes others that lie behind it."""
        for depth in range(DEEPEST):
            warm = depth + 1 < DEEPEST and rng.random() < 0.1
            deeper = depth + 1 < DEEPEST and (warm or rng.random() < 0.3)
            cut = {"seed": rng.randrange(1 << 32),
                   "policy": "warm" if warm else rng.choice(POLICIES)}
            journal = f"{trace.name}/{depth + 1}" if deeper else None
            self.count(place, depth, warm)
            try:
                place = self.visit(trace.volume, place, cut, journal, rng.randrange(1 << 32))
            except AssertionError as error:
                where = f"{name}-{depth}, {place.phase or 'later'}, at {place.point}, {cut}"
                text = self.blame(trace, place, cut, f"{name}-{depth}", error)
                raise AssertionError(f"{text}\nstate {where}; seed {self.ctx.seed}") from error
            if not place:
                break

    def count(self, place, depth, warm):
        """For the figures: what the states were of."""
        self.seen["states"] += 1
        self.seen["deeper"] += depth > 0
        self.seen["warm"] += warm
        if place.phase:
            self.seen[f"phase {place.phase}"] += 1
        if place.area:
            self.seen[f"area {place.area}"] += 1

    def visit(self, volume, place, cut, journal, seed, harm=None):
        """Go to a state and judge it; with a journal, where to go from there."""
        report = self.disks.crash_state(name=place.journal, point=place.point, **cut)
        for disk in report["disks"].values():
            for what in ("volatile", "dropped", "torn"):
                self.seen[what] += disk[what]
        if harm:
            harm()
        if journal:
            self.disks.journal_start(name=journal)
        work = place.ledger.copy(FOLDER / (f"ledger.{place.journal.count('/')}" if journal
                                           else "ledger.last"))
        try:
            known = self.judge(volume, work, place.at, seed)
        except BaseException:
            take_away(volume)
            raise
        finally:
            if journal:
                self.disks.journal_stop()
        if not journal:
            return None
        events = self.disks.journal_events(name=journal)["events"]
        rng = random.Random(seed)
        point, _ = draw_point(rng, by_area(events, []), known)
        if point < known:
            return Place(journal, point, place.ledger, place.at)
        return Place(journal, point, work, point)

    def judge(self, volume, ledger, at, seed):
        """Start, judge, write, drain, judge, stop, judge the bare disk.

        Returns the moment from which on the ledger holds what was found.
        """
        rng = random.Random(seed)
        volume.start()
        self.verify(volume, ledger, "--at", at, "--rebase")
        known = now(self.disks)
        ledger.run(volume.path, rng, ops=rng.choice((5, 20, 60)), jobs=2, max_sectors=32,
                   sync_every=8, discard_every=15, sync_last=True)
        volume.drain()
        self.verify(volume, ledger)
        volume.stop()
        if volume.path != self.ctx.hdd:
            self.verify(volume, ledger, bare=True)
        return known

    def verify(self, volume, ledger, *options, bare=False):
        """Every sector; Violation if one is not as promised."""
        path = volume.path
        with contextlib.ExitStack() as stack:
            if bare and volume.in_place:
                path = stack.enter_context(bare_volume(self.ctx.hdd, True)).path
            elif bare:
                path = self.ctx.hdd
                options = ("--skip", volume.skip)
            if self.ordered:
                options = (*options, "--ordered")
            content, report = ledger.verify(path, *options)
        self.seen["disordered"] += report["disordered"]
        if not content:
            when = "on the bare disk" if bare else (
                "after the crash" if "--rebase" in options else "after the drain")
            raise Violation(f"{when}: {json.dumps(report)}")

    # ---- a state that fails --------------------------------------------------------

    def blame(self, trace, place, cut, name, error):
        """Make the state smaller, save it, say where it is."""
        where = {key: cut[key] for key in cut if key not in ("seed", "policy")}
        told = self.disks.crash_state(name=place.journal, point=place.point, tell=True, **cut)
        lines = [str(error)]
        about = {**trace.volume.about, "at": place.at, "seed": self.ctx.seed,
                 "state": name, "point": place.point, "policy": told["policy"],
                 "ordered": self.ordered, "violation": str(error)}
        # What is no Violation may be a hang, which takes long every time.
        if "fates" in told and isinstance(error, Violation):
            fates = self.smaller(trace.volume, place, where, told)
            about["not_arrived"] = not_arrived(told["writes"], fates)
            lines.append(f"what did not arrive: {json.dumps(about['not_arrived'])}")
            cut = {"fates": fates, **where}
        self.disks.crash_state(name=place.journal, point=place.point, **cut)
        with contextlib.suppress(Refused):
            path = self.save(f"{name}-{self.ctx.seed}", place.ledger, about)
            case = pathlib.Path(path).name.partition(".")[0].replace("-", "_")
            lines.append(f"saved: {path}; to repeat it, copy it to tests/guest/states/ and run "
                         f"tests/run saved_{case}")
        return "\n".join(lines)

    def save(self, name, ledger, about):
        """What the disks hold now, with what judges it."""
        data = base64.b64encode(zlib.compress(pathlib.Path(ledger.path).read_bytes()))
        return self.disks.save_state(name=name, files={"ledger": data.decode()},
                                     about=about)["path"]

    def smaller(self, volume, place, where, told):
        """Fates with fewer writes that did not arrive, which fail as well."""
        whole = {disk: [[[0, write[1] // 512]] for write in writes]
                 for disk, writes in told["writes"].items()}
        best = told["fates"]
        open_ = [(disk, i) for disk in best for i, fate in enumerate(best[disk])
                 if fate != whole[disk][i]]
        tries = MINIMISE
        size = len(open_)
        while size and tries > 0:
            for start in range(0, len(open_), size):
                part = open_[start:start + size]
                trial = {disk: list(fates) for disk, fates in best.items()}
                for disk, i in part:
                    trial[disk][i] = whole[disk][i]
                tries -= 1
                if self.fails(volume, place, {"fates": trial, **where}):
                    best = trial
                    open_ = [entry for entry in open_ if entry not in part]
                    break
            else:
                size //= 2
            size = min(size, len(open_))
        return best

    def fails(self, volume, place, cut):
        """Whether this state is one too."""
        try:
            self.visit(volume, place, cut, None, 1)
        except Violation:
            return True
        return False


def take_away(volume):
    """Whatever went wrong, the next state finds no device."""
    if isinstance(volume, Volume) and volume.stack.exists():
        sh.result("dmsetup", "remove", "--force", volume.stack.name)


def not_arrived(writes, fates):
    """[disk, offset, length, sectors that arrived] of each write that did not as a whole."""
    return [[disk, write[0], write[1], fate] for disk in writes
            for write, fate in zip(writes[disk], fates[disk], strict=True)
            if fate != [[0, write[1] // 512]]]


def resume_saved(ctx, disks, path):
    """Judge a saved state again."""
    disks.wipe()
    FOLDER.mkdir(exist_ok=True)
    with tarfile.open(path) as tar:
        files = {name: tar.extractfile(name).read() for name in tar.getnames()}
    about = json.loads(files["about.json"])
    for name, device in (("ssd.img", ctx.ssd), ("hdd.img", ctx.hdd)):
        with Raw(device) as raw:
            assert raw.size == len(files[name]), f"{name} is {len(files[name])} bytes"
            for at in range(0, raw.size, MIB):
                part = files[name][at:at + MIB]
                if any(part):
                    raw.write(at, part)
            raw.flush()
    ledger = Ledger(FOLDER / "ledger.saved", ctx.clock)
    pathlib.Path(ledger.path).write_bytes(files["ledger"])
    explorer = Explorer(ctx, disks, ordered=about["ordered"])
    volume = BareDisk(ctx.hdd) if about["kind"] == "bare" else Volume(ctx, about)
    try:
        explorer.judge(volume, ledger, about["at"], 1)
    finally:
        take_away(volume)
