# SPDX-License-Identifier: GPL-2.0-only
"""PID 1 of the guest's real root: runs the cases the host names, one by one.

It talks to the host over a virtio-serial port of its own, in JSON lines: the host
sends one line {"cases": [...], "seed": n, ...}; back go {"start": case}, then
{"case", "verdict", "reason", "seconds", "figures"} for each, and {"end": ...}.
The console is for people; no verdict is read from it.
"""

import ctypes
import json
import os
import pathlib
import select
import signal
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from lclib import CASES, Skip, disk, dm, kmsg, leaks, registry, sh, wait  # noqa: E402

PORT = "dmlc.verdict"
MOUNTS = (("tmpfs", "/tmp"), ("tmpfs", "/run"), ("debugfs", "/sys/kernel/debug"),
          ("tracefs", "/sys/kernel/tracing"), ("configfs", "/sys/kernel/config"))
# QEMU takes a restart for the end (-no-reboot); power off needs ACPI, which may be off.
RB_AUTOBOOT = 0x01234567
SECTION = pathlib.Path("/sys/module/dm_lc/sections/.text")
KCSAN = "/sys/kernel/debug/kcsan"
KUNIT_MODULE = "/opt/dm-lc/kunit/dm-lc.ko"
LOCKDEP = pathlib.Path("/proc/lockdep_stats")


def port_path(name):
    """The device of a virtio-serial port."""
    for entry in pathlib.Path("/sys/class/virtio-ports").glob("*/name"):
        if entry.read_text(encoding="ascii").strip() == name:
            return f"/dev/{entry.parent.name}"
    raise LookupError(f"no port named {name}")


class Context:
    """What a case is given."""

    def __init__(self, case, kernel, seed):
        self.case = case
        self.kernel = kernel
        self.seed = seed
        self.figures = {}
        disk.pieces.seed(seed)
        self.disks = {wanted.name: disk.by_serial(wanted.serial) for wanted in case.disks}

    def __getattr__(self, name):
        """ctx.hdd is the path of the disk named hdd."""
        try:
            return self.__dict__["disks"][name]
        except KeyError:
            raise AttributeError(name) from None

    def figure(self, name, value):
        """A number for the report."""
        self.figures[name] = value

    def port(self, name):
        """Open a port to a host service; unbuffered binary file."""
        return open(port_path(name), "r+b", buffering=0)

    @staticmethod
    def skip(reason):
        """End the case: it cannot run here, for this reason."""
        raise Skip(reason)


class Runner:
    """The whole run of one boot."""

    def __init__(self):
        self.port = None
        self.job = None
        self.log = None
        self.end = None  # no case starts after it
        self.spoilt = ""
        self.begun = []  # (jiffies, case) on kernels that have kmemleak

    def prepare(self):
        """Mounts, log, channel, job."""
        for kind, where in MOUNTS:
            if not where.startswith("/sys"):
                os.makedirs(where, exist_ok=True)
            sh.result("mount", "-t", kind, kind, where)  # the stock kernel lacks some of /sys
        self.log = kmsg.Log()
        self.port = open(port_path(PORT), "r+b", buffering=0)
        line = b""
        while not line.endswith(b"\n"):
            line += self.port.read(65536) or b""
        self.job = json.loads(line)
        if self.job.get("left") is not None:
            self.end = time.monotonic() + self.job["left"]
        self.note_boot()
        if os.cpu_count() != self.job["smp"]:
            raise RuntimeError(f"{os.cpu_count()} CPUs here, {self.job['smp']} were asked for")
        leaks.begin()
        if os.path.exists(KCSAN):  # not while booting, which it would make longer
            pathlib.Path(KCSAN).write_text("on", encoding="ascii")
        registry.load(HERE / "cases")
        registry.load(HERE.parent / "meta")
        registry.load(HERE.parent / "demo")
        registry.load(HERE.parent / "bench")

    def note_boot(self):
        """A fault before the first case is not a case's, but is not silent either."""
        before = kmsg.faults(self.log.fresh())
        stats = LOCKDEP.read_text(encoding="ascii") if LOCKDEP.exists() else None
        self.send({"boot": True, "release": os.uname().release, "uptime": time.monotonic(),
                   "faults": before, "unfit": kmsg.unfit(self.job["kernel"], stats)})

    def send(self, message):
        """One JSON line to the host, whole."""
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[self.port.write(data):]

    def run(self):
        """Every case, until done or until this boot is no longer trustworthy."""
        for name in self.job["cases"]:
            if self.end is not None and time.monotonic() >= self.end:
                self.send({"case": name, "verdict": "skipped", "reason": self.job["over"],
                           "seconds": 0, "figures": {}})
                continue
            self.send({"start": name})
            if leaks.FILE.exists():
                self.begun.append((leaks.jiffies(), name))
            self.log.mark(f"case {name} starts")
            started = time.monotonic()
            verdict, reason, figures = self.one(name)
            self.send({"case": name, "verdict": verdict, "reason": reason,
                       "seconds": round(time.monotonic() - started, 1), "figures": figures})
            if self.spoilt:
                break
        if "killed" not in self.spoilt:
            self.blame_leaks()
        self.send({"end": True, "spoilt": self.spoilt})

    def blame_leaks(self):
        """Once a boot, because a scan is slow: each leak belongs to the case of its time."""
        guilty = {}
        for when, text in leaks.found():
            name = next((name for begin, name in reversed(self.begun) if begin <= when),
                        self.begun[0][1])
            guilty.setdefault(name, []).append(text)
        for name, texts in guilty.items():
            self.send({"leak": name, "reason": f"memory leak, {len(texts)} objects:\n"
                       + "".join(texts)[:6000]})

    def one(self, name):
        """(verdict, reason, figures) of one case, the clean-up and all scans included."""
        case = CASES.get(name)
        if case is None:
            return "failed", "the guest does not know this case", {}
        unready = self.load_module(case)
        if unready:
            return *unready, {}
        self.log.fresh()
        verdict, reason, figures = self.in_child(case)
        problems = []
        if not self.spoilt:
            problems += self.clean_up(verdict == "passed")
        if not self.spoilt and case.module:
            problems += self.unload_module()
        dirty = kmsg.faults(self.log.fresh(), case.no_memory)
        if self.log.lost:
            problems.append("the kernel log overflowed: part of it was not scanned")
            self.log.lost = False
        if dirty:
            # Lockdep and WARN_ONCE speak only once: the next case needs a new boot.
            self.spoilt = self.spoilt or "kernel log"
            problems.append("kernel log:\n" + "\n".join(dirty))
        if problems:
            if verdict != "failed":
                verdict = "failed"
            reason = "\n".join(part for part in (reason, *problems) if part)
        return verdict, reason, figures

    def load_module(self, case):
        """Load what the case wants; a (verdict, reason) if that cannot be done."""
        if not case.module:
            return None
        if case.module == "dm-lc-kunit":
            if not os.path.exists(KUNIT_MODULE):
                return "skipped", "the module was not built with its KUnit suites"
            return None
        found = list(pathlib.Path(f"/usr/lib/modules/{os.uname().release}/extra").glob("dm-lc.ko*"))
        if not found:
            return "skipped", "dm-lc.ko is not built yet"
        code, output = sh.result("modprobe", "dm-lc")
        if code:
            return "failed", f"modprobe dm-lc: {output}"
        self.log.mark(f"dm-lc is at {SECTION.read_text(encoding='ascii').strip()}")
        return None

    def unload_module(self):
        """rmmod must work once nothing uses the module."""
        if not os.path.exists("/sys/module/dm_lc"):
            return []
        code, output = sh.result("rmmod", "dm_lc")
        if code:
            self.spoilt = "module"
            return [f"rmmod dm-lc: {output}"]
        return []

    def in_child(self, case):
        """Run the case in a process of its own, so that it can be given up."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            os.setsid()
            child(case, self.job, writer)
        os.close(writer)
        limit = case.timeout * self.job.get("scale", 1)
        end = time.monotonic() + limit
        data = b""
        timed_out = False
        while True:
            ready, _, _ = select.select([reader], [], [], max(0, end - time.monotonic()))
            if not ready:
                timed_out = True
                break
            part = os.read(reader, 65536)
            if not part:
                break
            data += part
        os.close(reader)
        if timed_out:
            return "failed", self.give_up(pid, limit), {}
        _, status = os.waitpid(pid, 0)
        kill_group(pid)
        try:
            return tuple(json.loads(data))
        except ValueError:
            return "failed", f"the case ended without a verdict (wait status {status:#x})", {}

    def give_up(self, pid, limit):
        """A case that hangs: report where, kill it, and see whether it dies."""
        where = stacks()
        kill_group(pid)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if os.waitpid(pid, os.WNOHANG)[0]:
                # Its devices may wait for ever, for a disk that it told to wait.
                self.spoilt = "a case that was killed"
                break
            select.select([], [], [], 0.1)
        else:
            self.spoilt = "a case that cannot be killed"
        return f"timeout: no verdict within {limit:.0f} s\n{where}"

    def clean_up(self, passed):
        """Take away what the case left; a passed case must have left nothing."""
        left = []
        for line in reversed(pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines()):
            where = line.split()[1]
            if where.startswith("/mnt"):
                left.append(f"mount {where}")
                sh.result("umount", "-l", where)
        for _ in range(3):  # stacked devices need more than one round
            for name in dm.names():
                left.append(f"device {name}")
                sh.result("dmsetup", "remove", "--force", name)
        if dm.names():
            self.spoilt = "device left"
        sh.result("losetup", "-D")
        if passed and left:
            return ["left behind: " + ", ".join(dict.fromkeys(left))]
        return []


def child(case, job, writer):
    """The case's own process: run it, send the verdict up the pipe, end."""
    context = None
    wait.scale = job.get("scale", 1)
    try:
        context = Context(case, job["kernel"], job["seed"])
        case.function(context)
        verdict = "passed", ""
    except Skip as skip:
        verdict = "skipped", str(skip) or "no reason given"
    except BaseException as error:  # pylint: disable=broad-except
        text = f"{type(error).__name__}: {error}\n"
        text += "".join(traceback.format_tb(error.__traceback__)[-4:])
        verdict = "failed", text + f"seed {job['seed']}"
    figures = context.figures if context else {}
    os.write(writer, json.dumps([*verdict, figures]).encode())
    os._exit(0)


def kill_group(pid):
    """The case and all it started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def stacks():
    """Where every process that is not ours to ignore sleeps."""
    parts = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            name = (path / "comm").read_text(encoding="ascii", errors="replace").strip()
            stack = (path / "stack").read_text(encoding="ascii", errors="replace")
            state = (path / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state == "D" or (path / "exe").exists():
            parts.append(f"{path.name} {name} {state}\n{stack}")
    return "\n".join(parts)[-6000:]


def main():
    """Whatever happens, end the guest: the host takes silence for failure."""
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    os.environ["DM_DISABLE_UDEV"] = "1"
    os.environ["LC_ALL"] = "C.UTF-8"
    runner = Runner()
    try:
        runner.prepare()
        runner.run()
    except BaseException as error:  # pylint: disable=broad-except
        traceback.print_exc()
        if runner.port:
            runner.send({"broken": f"{type(error).__name__}: {error}"})
    if "killed" not in runner.spoilt:  # a device left behind may never let it end
        ctypes.CDLL(None).sync()
    ctypes.CDLL(None).reboot(RB_AUTOBOOT)


if __name__ == "__main__":
    main()
