# SPDX-License-Identifier: GPL-2.0-only
"""Power cuts in the middle of a load with fsyncs, many in one boot.

Both disks belong to the recorder on the host, which models a volatile write cache. A
round: arm a cut some random number of commands ahead, load until the disks die, take
the device away, restore the power, bring the device up again, and judge every sector of
the volume by powerload's ledger. In some rounds the power goes again, several times in
a row, while the log is replayed or drained. The ledger lives in RAM the cut does not
touch. A round draws its choices from the seed and its number, which its failure message
names; the guest's own timing they do not repeat.

Proves P1 (and, with ordered, P2) and that no sector holds bytes nobody wrote to it, for
the crash states drawn. Does not model: see tests/disks/recorder.py; discards; a crash of
the kernel (its RAM survives, but nothing of the device's does: it is removed).
"""

import contextlib
import json
import pathlib
import random
import subprocess

from lclib import Disk, case, dm, sh, wait
from lclib import powerload as program
from lclib.disk import Device as Raw
from lclib.disks import Disks
from lclib.lc import LcStack
from lclib.scatter import partly_odd

LEDGER = "/tmp/power.ledger"
REMOVE_SECONDS = 120
POLICIES = ("random", "random", "any", "drop-all", "ordered-prefix", "disk-prefix", "tear-all")


def recorded(ssd="32M", hdd="96M"):
    """Both disks of the recorder; small, as every sector is read after each cut."""
    return Disk("ssd", size=ssd, kind="recorded"), Disk("hdd", size=hdd, kind="recorded")


def powerload(verb, device, *options):
    """Run powerload; (whether it is content, its report)."""
    return program.powerload(verb, device, LEDGER, *options)


class RawVolume:
    """A bare disk in the place of a volume: no replay, no order."""

    why = ""
    odd = False

    def __init__(self, path):
        self.path = path

    def create(self):
        """Nothing to create."""

    def start(self):
        """Always up."""
        return True

    def stop(self):
        """Nothing to remove."""

    def provoke(self, gone):
        """Nothing to drain."""


class LinearVolume:
    """dm-linear over a bare disk: comes and goes as the volume under test does."""

    why = ""
    odd = False

    def __init__(self, path):
        self.device = dm.Device("power", dm.linear(path))
        self.path = self.device.path

    def create(self):
        """Nothing to format."""

    def start(self):
        """dmsetup create; needs no I/O."""
        self.device.create()
        return True

    def stop(self):
        """dmsetup remove."""
        self.device.remove()

    def provoke(self, gone):
        """Commands that change nothing: flushes, until the power is gone."""
        with self.device.open() as raw, contextlib.suppress(OSError):
            for _ in range(100):
                if gone():
                    return
                raw.flush()


class LcVolume:
    """The volume under test."""

    odd = True      # half of the loads have memory in odd pieces

    def __init__(self, ctx, *, format=(), **options):  # pylint: disable=redefined-builtin
        # Behind the cut both disks are dead, and nobody need wait for them to come back.
        options.setdefault("ssd_patience_ms", 0)
        self.stack = LcStack(ctx.hdd, ctx.ssd, name="power", format=format, **options)
        self.path = self.stack.path
        self.why = ""

    def create(self):
        """Format both disks; not up yet."""
        self.stack.format()

    def start(self):
        """lc-resume; False if it failed, as it may when the power goes meanwhile."""
        try:
            self.stack.activate()
        except sh.Failed as failed:
            self.why = str(failed)
            return False
        return True

    def stop(self):
        """dmsetup remove, which must end, dead disks or not."""
        if not self.stack.exists():
            return
        try:
            sh.run("dmsetup", "remove", self.stack.name, timeout=wait.limit(REMOVE_SECONDS))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"dmsetup remove did not end in {REMOVE_SECONDS} s") from None

    def provoke(self, gone):
        """Have both disks written to without new data: drain until done or gone."""
        if sh.result("dmsetup", "message", self.stack.name, 0, "writeback")[0] == 0:
            wait.until(lambda: gone() or self.at_rest(), 60, "the drain ends, or the power")

    def at_rest(self):
        """Nothing left to drain, or no way to."""
        fields = self.stack.fields()
        return fields["dirty"] == 0 or fields["mode"] != "rw"


class ComingAndGoing(LcVolume):
    """A disk that gets a cache in place, loses it again, and so on; the power may go at any
    command of that.  Without a cache, dm-linear shows as much of the bare disk.
    """

    FORMAT = ("--in-place", "--segment-size=64K")
    odd = False     # its loads are too short for a device of their own

    def __init__(self, ctx):
        super().__init__(ctx, format=self.FORMAT)
        self.ctx = ctx
        self.rng = random.Random(f"{ctx.seed}/remedies")
        length = dm.sectors(ctx.hdd) // 8 * 8 - 2048
        self.bare = dm.Device("power", dm.linear(ctx.hdd, length, 0))
        self.paired = False
        self.seen = {"attached": 0, "detached": 0, "attach_cut": 0, "detach_cut": 0}

    def create(self):
        """Without a cache at first."""

    def marked(self):
        """Does the disk say that its beginning is elsewhere?"""
        with Raw(self.ctx.hdd) as raw:
            return any(raw.read(at, 4096).startswith(b"dmlc-mk\n") for at in (0, 1 << 19))

    def start(self):
        """The pair if there is one; what was interrupted is finished, one way or the other."""
        self.paired = super().start()
        if self.paired:
            return True
        try:
            if self.marked():
                assert f"lc-detach --backing={self.ctx.hdd}" in self.why, self.why
                attaching = "lc-format --in-place was interrupted" in self.why
                self.seen["attach_cut" if attaching else "detach_cut"] += 1
                if attaching and self.rng.randrange(2):
                    sh.result("lc-check", "--repair", "--backing", self.ctx.hdd, self.ctx.ssd)
                    self.paired = super().start()
                    return self.paired
                sh.run("lc-detach", "--backing", self.ctx.hdd, self.ctx.ssd)
            self.bare.create()
        except (OSError, sh.Failed) as failed:
            self.why += str(failed)
            return False
        return True

    def change(self):
        """To the other state.  False if that was interrupted."""
        if self.paired:
            code, self.why = sh.result("lc-remove", "--detach", self.stack.name)
        else:
            self.bare.remove()
            code, self.why = sh.result("lc-format", *self.FORMAT, "--backing", self.ctx.hdd,
                                       self.ctx.ssd)
        if code:
            return False
        self.seen["detached" if self.paired else "attached"] += 1
        return self.start()


class PowerCuts:
    """The rounds of one case."""

    def __init__(self, ctx, volume, *, ordered=False, jobs=4, max_sectors=128):
        self.ctx = ctx
        self.volume = volume
        self.ordered = ordered
        self.jobs = jobs
        self.max_sectors = max_sectors
        self.rng = random.Random(f"{ctx.seed}/start")
        self.disks = Disks()
        self.seen = {
            "rounds": 0,
            "cuts": 0,
            "crashes_in_start": 0,
            "volatile": 0,
            "dropped": 0,
            "torn": 0,
            "writes": 0,
            "fsyncs": 0,
            "disordered": 0,
        }

    def __enter__(self):
        self.disks.fault_clear()
        self.disks.disarm()
        self.disks.wipe()
        self.volume.create()
        assert self.volume.start(), "the new volume does not start"
        powerload("init", self.volume.path, "--seed", self.ctx.seed)
        return self

    def __exit__(self, kind, *_):
        try:
            if not self.disks.power():
                self.disks.restore()
            self.disks.disarm()
            self.volume.stop()
        finally:
            self.disks.close()
            pathlib.Path(LEDGER).unlink(missing_ok=True)
        for name, value in self.seen.items():
            self.ctx.figure(name, value)

    def choose(self):
        """Seed and policy of one cut."""
        return {"seed": self.rng.randrange(1 << 32), "policy": self.rng.choice(POLICIES)}

    def cut(self, cut):
        """Power off, unless the armed cut has been there already; count what was lost."""
        report = self.disks.cut(**cut) if self.disks.power() else self.disks.state()["cut"]
        self.seen["cuts"] += 1
        for disk in report["disks"].values():
            for what in ("volatile", "dropped", "torn"):
                self.seen[what] += disk[what]

    def load(self, ops):
        """Load, until so many operations are done or the power is gone."""
        path = self.volume.path
        with contextlib.ExitStack() as stack:
            if self.volume.odd and self.rng.randrange(2):
                path = stack.enter_context(partly_odd(path, self.rng.randrange(1 << 32)))
            _, report = powerload(
                "run",
                path,
                "--jobs",
                self.jobs,
                "--max-sectors",
                self.max_sectors,
                "--ops",
                ops,
                "--rng",
                self.rng.randrange(1 << 32),
                "--sync-every",
                self.rng.choice((10, 30, 100)),
            )
        assert report["ended"] in ("EIO", "ops"), f"the load ended with {report['ended']}"
        self.seen["writes"] += report["writes"]
        self.seen["fsyncs"] += report["syncs"]

    def load_until_cut(self, commands):
        """Load, lose power, take the device away, get power back."""
        cut = self.choose()
        self.disks.arm(after_commands=self.rng.randint(1, commands), **cut)
        # More operations than the cut needs commands, even where a cache merges them.
        self.load(20 * commands)
        self.cut(cut)
        self.volume.stop()
        self.disks.restore()

    def change_until_cut(self, commands):
        """The same while the disk gets and loses its cache between short loads."""
        cut = self.choose()
        self.disks.arm(after_commands=self.rng.randint(1, commands), **cut)
        while self.disks.power():
            self.load(self.rng.choice((1, 5, 20)))
            assert self.volume.change() or not self.disks.power(), self.volume.why
        self.cut(cut)
        self.volume.stop()
        self.disks.restore()

    def crash_while_starting(self, commands):
        """Lose power again during resume, replay or drain."""
        cut = self.choose()
        self.disks.arm(after_commands=self.rng.randint(1, commands), **cut)
        if self.volume.start() and self.disks.power():
            self.volume.provoke(lambda: not self.disks.power())
        if not self.disks.power():
            self.seen["crashes_in_start"] += 1
        self.cut(cut)
        self.volume.stop()
        self.disks.restore()

    def judge(self):
        """Every sector of the volume; the stamps found are the floor of the next round."""
        options = ["--rebase"] + (["--ordered"] if self.ordered else [])
        content, report = powerload("verify", self.volume.path, *options)
        self.seen["disordered"] += report["disordered"]
        return content, report

    def round(self, commands=400, crashes_in_a_row=0, change=False):
        """One cut, further ones while starting, one judgement."""
        where = f"seed {self.ctx.seed}, round {self.seen['rounds']}"
        self.rng = random.Random(f"{self.ctx.seed}/{self.seen['rounds']}")
        if change:
            self.change_until_cut(commands)
        else:
            self.load_until_cut(commands)
        for _ in range(crashes_in_a_row):
            self.crash_while_starting(self.rng.choice((3, 10, 40, 200)))
        self.disks.disarm()
        assert self.volume.start(), f"{where}: does not start: {self.volume.why}"
        content, report = self.judge()
        assert content, f"{where}: {json.dumps(report)}"
        self.seen["rounds"] += 1


def cut_rounds(ctx, rounds, crashes_in_a_row=0, every=1, **options):
    """Rounds over a cached volume; every so many of them with crashes in a row."""
    with PowerCuts(ctx, LcVolume(ctx), **options) as power:
        for number in range(rounds):
            power.round(crashes_in_a_row=crashes_in_a_row if number % every == 0 else 0)


@case(disks=recorded(), timeout=300, sampled=3)
def five_cuts(ctx):
    """Every fsynced sector is there after each of 5 power cuts, and no alien byte."""
    cut_rounds(ctx, rounds=5)


def cut_while_starting(ctx, rounds):
    """Rounds, every second one with five more cuts in a row while starting."""
    cut_rounds(ctx, rounds=rounds, crashes_in_a_row=5, every=2)
    # Otherwise the cuts missed what they were aimed at, and this proves nothing.
    assert ctx.figures["crashes_in_start"] >= rounds, ctx.figures
    assert ctx.figures["dropped"] and ctx.figures["torn"], ctx.figures


@case(kernels=("stock",), disks=recorded(), timeout=1200)
def fifty_cuts(ctx):
    """50 power cuts, in 25 of them five more in a row during replay: nothing fsynced is lost."""
    cut_while_starting(ctx, 50)


@case(kernels=("stock",), disks=recorded(), timeout=2400, long=True)
def hundred_rounds_of_cuts(ctx):
    """350 power cuts in 100 rounds: nothing fsynced is lost."""
    cut_while_starting(ctx, 100)


@case(kernels=("stock",), disks=recorded(), timeout=900, sampled=3)
def order_is_kept(ctx):
    """What survives a cut is a prefix of what was written (P2), whatever the disks reorder."""
    cut_rounds(ctx, rounds=20, crashes_in_a_row=2, every=4, ordered=True)


def cut_while_changing(ctx, rounds):
    """Rounds in which a disk gets a cache in place, loses it, and the power goes somewhere."""
    volume = ComingAndGoing(ctx)
    with PowerCuts(ctx, volume) as power:
        for number in range(rounds):
            power.round(commands=600, crashes_in_a_row=2 if number % 3 == 0 else 0, change=True)
    for what, number in volume.seen.items():
        ctx.figure(what, number)
    assert volume.seen["attached"] and volume.seen["detached"], volume.seen


@case(kernels=("stock",), disks=recorded("16M", "32M"), timeout=900, sampled=3)
def attach_and_detach(ctx):
    """A power cut anywhere in lc-format --in-place, the life after it, or lc-remove --detach."""
    cut_while_changing(ctx, 8)


@case(kernels=("stock",), disks=recorded("16M", "32M"), timeout=3600, long=True)
def attach_and_detach_often(ctx):
    """The same, until cuts came while the beginning of the disk was moved, both ways."""
    cut_while_changing(ctx, 120)
    assert ctx.figures["attach_cut"] and ctx.figures["detach_cut"], ctx.figures


@case(kernels=("stock",), disks=recorded(), timeout=300, module="")
def bare_disk_keeps_fsynced_but_no_order(ctx):
    """The judge itself: a bare disk keeps P1 through 10 cuts or more, until its missing order is
    seen."""
    with PowerCuts(ctx, RawVolume(ctx.hdd)) as power:
        for number in range(100):
            power.round()
            if number >= 9 and power.seen["disordered"]:
                break
        assert power.seen["dropped"] and power.seen["torn"], "no cut lost anything"
        assert power.seen["disordered"], "a bare disk seemed to keep order"


@case(kernels=("stock",), disks=recorded(), timeout=300, module="")
def linear_keeps_fsynced(ctx):
    """The rounds themselves: dm-linear, taken away and crashed 3 times in a row, keeps P1."""
    with PowerCuts(ctx, LinearVolume(ctx.hdd)) as power:
        for _ in range(4):
            power.round(crashes_in_a_row=3)
        assert power.seen["crashes_in_start"], "no crash came while starting"


@case(kernels=("stock",), disks=recorded(), timeout=300, module="")
def lying_flush_is_seen(ctx):
    """The judge itself: a bare disk that acknowledges flushes and ignores them is found out."""
    with PowerCuts(ctx, RawVolume(ctx.hdd)) as power:
        power.disks.fault(disk="hdd", op="flush", apply="lie")
        for _ in range(10):
            power.load_until_cut(400)
            content, report = power.judge()
            if not content:
                assert report["lost"] and not report["alien"], report
                return
    raise AssertionError("10 cuts of a lying disk, and nothing seemed lost")


@case(kernels=("stock",), disks=recorded(), timeout=120, module="")
def damage_is_seen(ctx):
    """The judge itself: a flipped bit, a vanished and a misplaced fsynced sector are found."""
    with PowerCuts(ctx, RawVolume(ctx.hdd)) as power:
        powerload("run", ctx.hdd, "--ops", 500)
        powerload("run", ctx.hdd, "--ops", 1, "--jobs", 1, "--sync-every", 1)
        with Raw(ctx.hdd) as raw:
            image = raw.read(0, raw.size // 16)
        stamped = [at for at in range(0, len(image), 512) if any(image[at : at + 512])]
        flipped, lost, source, target = power.rng.sample(stamped, 4)
        assert powerload("verify", ctx.hdd)[0]
        power.disks.corrupt(disk="hdd", offset=flipped, len=512, seed=ctx.seed)
        with Raw(ctx.hdd) as raw:
            raw.write(lost, bytes(512))
            raw.write(target, image[source : source + 512])
        content, report = powerload("verify", ctx.hdd)
        assert not content
        assert (report["alien"], report["lost"]) == (2, 1), report
