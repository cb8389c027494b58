# SPDX-License-Identifier: GPL-2.0-only
"""The demo's part in the guest: what a person would type, typed and checked.

Everything goes to the host as JSON lines over a port of its own; screen.py there says
how it looks. No test run selects this case: it names no kernel.
"""

import contextlib
import json
import os
import pathlib
import re
import shlex
import subprocess

from lclib import Disk, case, sh, status
from lclib.disks import Disks
from lclib.dm import sectors

PORT = "dmlc.demo"
NAME = "lc0"
VOLUME = f"/dev/mapper/{NAME}"
MIB = 1 << 20
LEDGER = "/tmp/ledger"
WORK_SECTORS = (64 * MIB) >> 9       # powerload's part of the volume; fio has the rest
DATA_SECTOR = MIB >> 9               # of the volume on the HDD (lc-format's default)
FIO_BYTES = {"hdd": 8 * MIB, "ssd": 64 * MIB, "lc": 96 * MIB, "ssd-seq": 128 * MIB}
CUT_AFTER = 120                      # writes to the SSD
STATUS_SHOWN = r"^ +(size|mode|dirty|cached|segments|free_segments|writeback) "
JOB = """\
[job]
rw=${RW}
bs=${BS}
filename=${DISK}
io_size=${AMOUNT}
ioengine=libaio
direct=1
iodepth=64
numjobs=1
randrepeat=1
norandommap
gtod_reduce=1
offset=64M
end_fsync=1
"""


class Stage:
    """What the person at the screen sees."""

    def __init__(self, port):
        self.handle = port

    def send(self, kind, **fields):
        """One event."""
        self.handle.write(json.dumps({"kind": kind, **fields}).encode() + b"\n")

    def step(self, title, *notes):
        """A new chapter."""
        self.send("step", title=title, notes=notes)

    def note(self, text):
        """A sentence of the demo's own."""
        self.send("note", text=text)

    def check(self, good, text):
        """A verification; a bad one fails the demo, which goes on."""
        self.send("check", good=bool(good), text=text)

    def figure(self, name, value):
        """A number for the table."""
        self.send("figure", name=name, value=value)

    def command(self, *argv, shown=None, env=None, keep=None, may_fail=False):
        """Type a command, show those output lines that `keep` matches; returns all of them."""
        argv = [str(arg) for arg in argv]
        words = [f"{key}={value}" for key, value in (env or {}).items()]
        self.send("command", text=shown or " ".join(words + [shlex.join(argv)]))
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace",
                                   env={**os.environ, **(env or {})})
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip())
            if keep is None or re.search(keep, line):
                self.send("output", text=line.rstrip())
        if process.wait() and not may_fail:
            raise sh.Failed(argv, process.returncode, "\n".join(lines))
        return lines


def fio(stage, name, disk, pattern="randwrite", block="4k"):
    """Run the job on a disk; its rate becomes a figure."""
    amount = FIO_BYTES[name]
    lines = stage.command("fio", "job.fio", keep=r"^  write:", env={
        "RW": pattern, "BS": block, "DISK": disk, "AMOUNT": f"{amount // MIB}M"})
    line = next(line for line in lines if line.startswith("  write:"))
    done = re.search(r"\(([\d.]+)(KiB|MiB)/(\d+)msec\)", line)
    if float(done[1]) * {"KiB": 1024, "MiB": MIB}[done[2]] != amount:
        raise AssertionError(f"fio did not write {amount} bytes: {line}")
    stage.figure(name, amount / int(done[3]) * 1000)


def powerload(stage, verb, device, *options):
    """Run powerload; returns its report."""
    lines = stage.command("powerload", verb, "--dev", device, "--ledger", LEDGER, *options,
                          keep="^$", may_fail=True)
    return json.loads(lines[-1])


def judge(stage, report, where):
    """Turn a report of powerload into a verdict."""
    bad = {key: report[key] for key in ("lost", "alien", "stale", "unreadable", "disordered")}
    wrong = ", ".join(f"{count} {kind}" for kind, count in bad.items() if count)
    stage.check(not wrong, f"{where}: {report['sectors']:,} sectors, "
                + (wrong or "none lost, none out of order, no alien byte"))
    if wrong:
        stage.note(json.dumps(report["examples"]))


def fields():
    """The volume's status."""
    return status.parse(sh.run("dmsetup", "status", NAME))


def measure(stage, ctx):
    """The disks for themselves."""
    stage.step("The two disks, each alone",
               "The job of the 2013 report, scaled down: 4 KiB random writes, 64 in flight.")
    pathlib.Path("job.fio").write_text(JOB, encoding="ascii")
    stage.command("cat", "job.fio")
    fio(stage, "hdd", ctx.hdd)
    fio(stage, "ssd", ctx.ssd)
    fio(stage, "ssd-seq", ctx.ssd, "write", "1M")
    for disk in (ctx.hdd, ctx.ssd):
        stage.command("blkdiscard", "--zeroout", disk)


def pair(stage, ctx):
    """lc-format, lc-resume."""
    stage.step("Pair them, and start the volume")
    stage.command("lc-format", "--yes", "--backing", ctx.hdd, ctx.ssd)
    stage.command("lc-resume", NAME, ctx.ssd)


def measure_volume(stage):
    """The same job on the volume."""
    stage.step("The same job on the volume")
    fio(stage, "lc", VOLUME)
    stage.command("lc-status", NAME, keep=STATUS_SHOWN)


def open_work(stage, device, start):
    """The first part of the volume, for the load that is verified."""
    stage.command("dmsetup", "create", "work", "--table",
                  f"0 {WORK_SECTORS} linear {device} {start}")
    return "/dev/mapper/work"


def lose_power(stage, disks, seed):
    """A load with fsyncs, and the power goes."""
    stage.step("The power fails in the middle of a write load",
               "powerload stamps every sector, and keeps a ledger of what was written when and",
               "of what an fsync has made durable. Both disks have volatile write caches.")
    work = open_work(stage, VOLUME, 0)
    powerload(stage, "init", work, "--seed", seed)
    disks.arm(after_commands=CUT_AFTER, seed=seed, policy="random", disk="ssd", ops=["write"])
    stage.note(f"The power will fail during the {CUT_AFTER}th write to the SSD from now.")
    report = powerload(stage, "run", work, "--jobs", 4, "--sync-every", 400, "--rng", seed)
    stage.check(report["ended"] == "EIO" and not disks.power(),
                f"the power is off, after {report['writes']:,} writes and "
                f"{report['syncs']:,} fsyncs")
    for name, disk in disks.state()["cut"]["disks"].items():
        stage.note(f"writes in the {name.upper()}'s cache: {disk['volatile']}, of which "
                   f"{disk['kept']} reached the medium, {disk['torn']} in part, "
                   f"{disk['dropped']} not")
    stage.command("dmsetup", "remove", "work")
    stage.command("dmsetup", "remove", NAME)


def come_back(stage, ctx, disks):
    """Power on, resume, verify."""
    stage.step("The power is back")
    disks.restore()
    stage.command("lc-resume", "-o", "writeback=off", NAME, ctx.ssd)
    stage.note("writeback=off: an idle volume would drain by itself; here lc-flush shall do it.")
    stage.command("sh", "-c", "dmesg | grep -o 'device-mapper: lc: .*' | tail -4",
                  shown="dmesg | grep -o 'device-mapper: lc: .*' | tail -4")
    work = open_work(stage, VOLUME, 0)
    report = powerload(stage, "verify", work, "--ordered", "--rebase")
    judge(stage, report, "after the power cut")
    stage.command("dmsetup", "remove", "work")
    return stage.command("sha256sum", VOLUME)[-1].split()[0]


def drain(stage):
    """lc-flush, lc-remove."""
    stage.step("Everything to the hard disk")
    stage.command("lc-flush", NAME)
    now = fields()
    stage.check(now["dirty"] == 0 and now["lost"] == 0,
                f"{now['dirty']} blocks dirty, {now['lost']} lost")
    stage.command("lc-remove", NAME)


def compare(stage, ctx, digest, length):
    """The HDD without dm-lc."""
    stage.step("The hard disk alone",
               "Without dm-lc, from the start of the volume, 1 MiB in.")
    work = open_work(stage, ctx.hdd, DATA_SECTOR)
    judge(stage, powerload(stage, "verify", work, "--ordered"), "on the hard disk")
    stage.command("dmsetup", "remove", "work")
    stage.command("dmsetup", "create", "bare", "--table",
                  f"0 {length} linear {ctx.hdd} {DATA_SECTOR}")
    bare = stage.command("sha256sum", "/dev/mapper/bare")[-1].split()[0]
    stage.command("dmsetup", "remove", "bare")
    same = bare == digest
    stage.check(same, f"{length:,} sectors, {'all' if same else 'not'} as the volume had them")


@case(kernels=(), disks=(Disk("ssd", "512M", kind="recorded", model="ssd"),
                         Disk("hdd", "1G", kind="recorded", model="hdd")), timeout=600)
def end_to_end(ctx):
    """From two disks to one volume, through a power cut, and back to the hard disk alone."""
    os.environ["PATH"] += ":/opt/dm-lc/bin"
    os.chdir("/tmp")
    stage = Stage(ctx.port(PORT))
    disks = Disks()
    with contextlib.closing(disks):
        stage.send("begin", release=os.uname().release, hdd=ctx.hdd, ssd=ctx.ssd)
        measure(stage, ctx)
        pair(stage, ctx)
        length = sectors(VOLUME)
        measure_volume(stage)
        lose_power(stage, disks, ctx.seed)
        digest = come_back(stage, ctx, disks)
        drain(stage)
        compare(stage, ctx, digest, length)
