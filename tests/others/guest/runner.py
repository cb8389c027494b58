# SPDX-License-Identifier: GPL-2.0-only
"""The guest's side: puts up the devices, runs one test after the other, says how each went.

/run/out is a folder of the host: in it `job.json` is what to do, and `events` takes
JSON lines: {"ready"}, {"start": test}, {"test", "verdict", "reason", "seconds"},
{"end": why}. A test that is not over at its time limit ends the boot, because nobody
knows what it left behind.
"""

import ctypes
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "guest")]

import suites  # noqa: E402
from lclib import dm, kmsg, sh, status  # noqa: E402
from lclib.lc import LcStack  # noqa: E402
from lclib.registry import size_bytes  # noqa: E402

OUT = pathlib.Path("/run/out")
RB_POWER_OFF = 0x4321FEDC
DISKS = pathlib.Path("/run/disks")
OFFSET = 2048  # where an lc volume begins on its disk: dm-linear's does too
# Of a log, kmsg.py's patterns without those that XFS's own reports have, too.
EXPECTED = re.compile(r"Call Trace:|cut here|XFS \(|EXT4-fs")


def disk(name, size):
    """A disk of that size: a loop device over a file in RAM, at /dev/disk-NAME.

    Not one of user-mode Linux's own: those take discards in pieces of 32 KiB, which makes
    mkfs a matter of half a minute.
    """
    path = DISKS / name
    with open(path, "wb") as handle:
        handle.truncate(size_bytes(size))
    device = sh.run("losetup", "-f", "--show", path).strip()
    os.symlink(device, f"/dev/disk-{name}")
    return device


class Stack:
    """The volumes under test, by name: over an SSD and a disk each, or the disk alone."""

    def __init__(self, target, volumes):
        self.target = target
        self.volumes = []
        for name, (hdd_size, ssd_size) in volumes.items():
            hdd, ssd = disk(f"{name}-hdd", hdd_size), disk(f"{name}-ssd", ssd_size)
            if target == "lc":
                volume = LcStack(hdd, ssd, name)
            else:
                volume = dm.Device(name, dm.linear(hdd, offset=OFFSET))
            self.volumes.append(volume)

    def up(self):
        """Create them all."""
        if self.target == "lc":
            sh.run("modprobe", "dm-lc")
        for volume in self.volumes:
            volume.__enter__()

    def trouble(self):
        """What an lc volume says of itself that it should not, or an empty string."""
        if self.target != "lc":
            return ""
        bad = []
        for volume in self.volumes:
            fields = status.parse(volume.status())
            for key, good in (("mode", "rw"), ("lost", 0), ("refused", 0)):
                if fields.get(key, good) != good:
                    bad.append(f"lc volume {volume.name}: {key} {fields[key]}")
        return "\n".join(bad)


class Runner:
    """One boot."""

    def __init__(self):
        self.job = json.loads((OUT / "job.json").read_text(encoding="utf-8"))
        self.events = open(OUT / "events", "ab", buffering=0)
        self.log = kmsg.Log()
        self.lines = []
        DISKS.mkdir()
        sh.run("mount", "-t", "tmpfs", "-o", "size=75%", "disks", DISKS)
        self.stack = Stack(self.job["target"], self.job["volumes"])
        for name, size in self.job["disks"].items():
            disk(name, size)
        self.suite = suites.SUITES[self.job["suite"]](self.job)

    def send(self, **message):
        """One line to the host, on its disk before anything else happens."""
        self.events.write(json.dumps(message).encode() + b"\n")
        os.fsync(self.events.fileno())

    def run(self):
        """Every test, until done or until this boot is no longer trustworthy."""
        self.stack.up()
        self.suite.prepare()
        self.send(ready=True, faults=self.faults(None))
        share = self.job["tests"] if self.suite.together else None
        for tests in [share] if share else [[test] for test in self.job["tests"]]:
            bad = self.several(tests)
            if bad:
                self.send(end=f"not to be trusted after {bad}")
                return
        self.send(end="done")

    def several(self, tests):
        """One start of the suite; returns the test after which this boot cannot go on."""
        process = subprocess.Popen(self.suite.command(tests), cwd="/suite",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=self.suite.environment(),
                                   start_new_session=True)
        text = ""
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            self.send(start=test)
            started = time.monotonic()
            over, text = self.wait_for(process, test, following, text)
            if over:
                told, text = self.suite.cut(test, following, text)
                verdict, reason, whole = self.judge(test, following, told)
            else:
                self.say_where()
                reason = f"not over after {self.job['timeout']} s\n{text[-3000:]}"
                verdict, whole = "timeout", False
            self.send(test=test, verdict=verdict, reason=reason,
                      seconds=round(time.monotonic() - started, 1))
            if not whole:
                os.killpg(process.pid, signal.SIGKILL)
                return test
        process.wait()
        return None

    def wait_for(self, process, test, following, text):
        """(whether the test ended in time, what the suite said since the last cut)."""
        end = time.monotonic() + self.job["timeout"]
        pipe = process.stdout.fileno()
        while not self.suite.ended(test, following, text):
            if not select.select([pipe], [], [], max(0, end - time.monotonic()))[0]:
                return False, text
            part = os.read(pipe, 65536)
            if not part:
                break
            text += part.decode(errors="replace")
        return True, text

    def faults(self, following):
        """What the kernel log has got that it should not have, up to where `following` began."""
        self.lines += self.log.fresh()
        begin = next((number for number, line in enumerate(self.lines)
                      if following and f"run fstests {following} at" in line), len(self.lines))
        lines, self.lines = self.lines[:begin], self.lines[begin:]
        return kmsg.faults([line for line in lines if not EXPECTED.search(line)])

    def judge(self, test, following, told):
        """(verdict, reason, whether this boot can go on)."""
        verdict, reason = self.suite.judge(test, told)
        problems = [part for part in (self.stack.trouble(),) if part]
        dirty = self.faults(following)
        if dirty:
            problems.append("kernel log:\n" + "\n".join(dirty))
        if verdict == "failed":
            self.keep(test)
        if problems:
            reason = "\n".join(part for part in (reason, *problems) if part)
            return "failed", reason, False
        return verdict, reason, True

    @staticmethod
    def say_where():
        """Tasks that are blocked, into the kernel log and so onto the console."""
        sh.run("dmesg", "-n", "debug")
        pathlib.Path("/proc/sysrq-trigger").write_text("w", encoding="ascii")

    def keep(self, test):
        """The files of a failed test, into the host's folder."""
        for path in self.suite.leftovers(test):
            try:
                shutil.copy(path, OUT / f"{test.replace('/', '-')}{path.suffix}")
            except OSError as error:
                print(f"{path}: {error}")


def main():
    """Run, then power off; the host looks at the events, not at how this ends."""
    try:
        Runner().run()
    except Exception:
        traceback.print_exc()
        raise
    finally:
        # Whatever happened: a guest that hangs here is killed by the host.
        ctypes.CDLL(None).reboot(RB_POWER_OFF)


if __name__ == "__main__":
    main()
