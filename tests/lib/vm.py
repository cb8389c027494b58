# SPDX-License-Identifier: GPL-2.0-only
"""One boot of a guest: the QEMU command, the verdict channel, the deadlines."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import time

from lclib import kmsg
from lclib.registry import size_bytes

from . import frozen, host, times

BOOT_SECONDS = 180
# The guest ends a case itself at its own limit; the host waits that much longer.
GRACE_SECONDS = 120
LOOK_SECONDS = 60       # of silence, then somebody looks whether the emulator still runs
PORT = "dmlc.verdict"
# no_timer_check: on a busy host no tick may come for a while, and the kernel would panic.
# no5lvl: a tick while the kernel identifies its CPU finds no features for a moment. With five
# levels of page tables KASAN then takes good addresses for bad ones, and the report ends lockdep.
# nokaslr: the addresses that frozen.py finds are those of the kernel's table of symbols.
APPEND = ("console=ttyS0 loglevel=5 panic=-1 oops=panic log_buf_len=16M watchdog_thresh=60 "
          "rcupdate.rcu_cpu_stall_timeout=180 kmemleak=on random.trust_cpu=on "
          "no_timer_check no5lvl nokaslr")
# A cache of the slab allocator that is checked keeps no arrays of pointers per CPU. The others do,
# and take an object out without wiping its pointer, by which kmemleak finds it still in use.
CHECKED = "slab_debug=F"
DRIVERS = {"virtio": "virtio-blk-pci", "scsi": "scsi-hd", "nvme": "nvme"}

# QEMU's own clock: one instruction a nanosecond, on one processor.
INSTRUCTIONS = ["-machine", "pc", "-accel", "tcg,thread=single", "-cpu", "max",
                "-icount", "shift=0"], "acpi=off"


# Emulated, the instructions for CRCs take 39 us for 4 KiB. lc-format chooses xxh64 without them.
EMULATED = "max,-sse4.2,-pclmulqdq"


@functools.lru_cache
def is_emulated(kernel):
    """False only where KVM is not ruled out and a probe really boots and ends under it."""
    return os.environ.get("LC_ACCEL") == "tcg" or not kvm_works(kernel)


def accelerators(kernel, cpu=EMULATED, in_turn=False):
    """QEMU's -machine, -accel and -cpu, and kernel parameters that go with them.

    Emulated, the processors are of the kind `cpu`, run side by side unless they are to run in
    turn, and ACPI is off: its byte code takes half of the debug kernel's boot.
    """
    if not is_emulated(kernel):
        return ["-machine", "q35", "-accel", "kvm", "-cpu", "host"], ""
    if os.environ.get("LC_ACCEL") == "kvm":
        raise RuntimeError("LC_ACCEL=kvm, but a probe boot under KVM does not work here")
    threads = "single" if in_turn else "multi"
    return ["-machine", "pc", "-accel", f"tcg,thread={threads}", "-cpu", cpu], "acpi=off"


def wanted_scale():
    """LC_TIMEOUT_SCALE."""
    return float(os.environ.get("LC_TIMEOUT_SCALE", "1"))


def time_scale(kernel):
    """What time limits are multiplied by; another guest beside it may halve a guest's speed."""
    return kernel.slowdown * wanted_scale() * min(2, host.guests_at_once())


def nodes(case):
    """QEMU's words for a machine of several memory nodes, each with its processors."""
    if not case.nodes:
        return []
    megabytes = int(case.memory.removesuffix("G")) * 1024 // case.nodes
    each = case.smp // case.nodes
    words = []
    for node in range(case.nodes):
        first = node * each
        words += ["-object", f"memory-backend-ram,id=node{node},size={megabytes}M",
                  "-numa", f"node,nodeid={node},cpus={first}-{first + each - 1},memdev=node{node}"]
    return words


def kvm_works(kernel):
    """/dev/kvm may open and its guests hang for ever: boot one that ends by itself."""
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text("utf-8"), re.M)
    if not flags or not {"vmx", "svm"} & set(flags.group(1).split()):
        return False
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    # Without a root the kernel panics, and the panic ends QEMU.
    probe = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
             "-accel", "kvm", "-cpu", "host", "-m", "256M", "-no-reboot", "-kernel", kernel.image,
             "-append", "panic=-1"]
    try:
        return subprocess.run(probe, timeout=20, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def disk_arguments(disk, file_name):
    """A -drive and its -device for one registry.Disk kept in a sparse file, made if need be."""
    with open(file_name, "ab") as handle:
        handle.truncate(size_bytes(disk.size))
    drive = [f"if=none,id={disk.serial},file={file_name},format=raw,cache={disk.cache}",
             "discard=unmap"]
    if disk.bps:
        drive.append(f"throttling.bps-total={disk.bps}")
    if disk.iops:
        drive.append(f"throttling.iops-total={disk.iops}")
    device = [DRIVERS[disk.bus], f"id={disk.serial}", f"drive={disk.serial}",
              f"serial={disk.serial}",
              f"logical_block_size={disk.logical}", f"physical_block_size={disk.physical}"]
    if disk.bus == "scsi":
        device += [f"wwn={disk.wwn:#x}", f"rotation_rate={disk.rotation}"]
    return ["-drive", ",".join(drive), "-device", ",".join(device)]


@dataclasses.dataclass
class Outcome:
    """What one case came to."""

    verdict: str
    reason: str = ""
    seconds: float = 0
    figures: dict = dataclasses.field(default_factory=dict)


class Boot:
    """Boot once, run some cases, give their outcomes.

    `cases` have the same recorded disks, if any; of all others the guest has those of each
    case. `payload` is payload.Payload. The folder keeps console, protocol and QEMU's own words.
    """

    def __init__(self, kernel, payload, cases, folder, seed, budget=None):
        self.kernel = kernel
        self.payload = payload
        self.cases = cases
        self.folder = pathlib.Path(folder)
        self.seed = seed
        self.budget = budget or times.Budget()
        self.scale = time_scale(kernel)
        self.outcomes = {}
        self.running = None
        self.boot_seconds = None
        self.unfit = ""         # why no case may run on this boot
        self.still = ""         # evidence that the emulator stood still
        self.ended = False
        self.recorder = None

    # ------------------------------------------------------------ the command

    def command(self, path):
        """The whole QEMU command line."""
        first = self.cases[0]
        machine, parameters = INSTRUCTIONS if first.icount else accelerators(self.kernel)
        if first.cores or first.nodes:
            parameters = ""  # of cores and of memory nodes, only ACPI tells
        checked = CHECKED if self.kernel.checkers else ""
        append = " ".join(part for part in (APPEND, checked, parameters, first.append) if part)
        words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
                 "-name", "guest,debug-threads=on", "-qmp", f"unix:{path}m,server=on,wait=off",
                 *([] if first.hibernates else ["-no-reboot"]), *machine,
                 # Sockets: without ACPI, the MP table names one processor of each.
                 "-smp", f"{first.smp},{'cores' if first.cores else 'sockets'}={first.smp}",
                 "-m", first.memory, *nodes(first),
                 "-kernel", self.kernel.image, "-initrd", self.payload.initramfs,
                 "-append", append,
                 "-serial", f"file:{self.folder / 'console'}",
                 "-device", "virtio-rng-pci",
                 "-device", "virtio-serial-pci,id=harness",
                 "-chardev", f"socket,id=verdict,path={path}",
                 "-device", f"virtserialport,bus=harness.0,chardev=verdict,name={PORT}"]
        for name, image in (("lc-root", self.payload.root), ("lc-payload", self.payload.image)):
            words += ["-drive", f"if=none,id={name},file={image},format=raw,readonly=on",
                      "-device", f"virtio-blk-pci,drive={name},serial={name}"]
        raw = {disk.serial: disk for case in self.cases for disk in case.disks
               if disk.kind == "raw"}.values()
        if any(disk.bus == "scsi" for disk in raw):
            words += ["-device", "virtio-scsi-pci"]
        for disk in raw:
            words += disk_arguments(disk, self.folder / f"{disk.serial}.img")
        if self.recorder:
            words += self.recorder.qemu_args()
        return [str(word) for word in words]

    def start_recorder(self):
        """The disks that remember every write, if the cases want them."""
        recorded = [disk for disk in self.cases[0].disks if disk.kind == "recorded"]
        if not recorded:
            return
        from disks import Disks  # pylint: disable=import-outside-toplevel
        models = {disk.name: disk.model for disk in recorded if disk.model}
        sizes = {disk.name: disk.size for disk in recorded if disk.name != "clock"}
        self.recorder = Disks(models=models or None, clock=len(sizes) < len(recorded),
                              save=host.BUILD / "states", **sizes).start()

    # ---------------------------------------------------------------- the run

    def run(self):
        """Returns {case name: Outcome}; a case that was never started is not in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        path = f"/tmp/dmlc-{os.getpid()}-{id(self):x}"  # socket names must be short
        listener = socket.socket(socket.AF_UNIX)
        process = None
        try:
            listener.bind(path)
            listener.listen(1)
            self.start_recorder()
            with open(self.folder / "qemu.log", "wb") as log:
                command = self.command(path)
                log.write((" ".join(command) + "\n").encode())
                log.flush()
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log)
            self.talk(listener, process, f"{path}m")
        finally:
            if process and process.poll() is None:
                process.kill()
            if process:
                process.wait()
            listener.close()
            for name in (path, f"{path}m"):
                pathlib.Path(name).unlink(missing_ok=True)
            if self.recorder:
                self.recorder.stop()
            for image in self.folder.glob("*.img"):
                image.unlink()
        return self.outcomes

    def talk(self, listener, process, monitor):
        """Send the job, take the lines, watch the deadline and the emulator."""
        started = time.monotonic()
        channel = self.accept(listener, process)
        if channel is None:
            self.blame("QEMU did not start:\n" + host.tail_of(self.folder / "qemu.log"))
            return
        job = {"cases": [case.name for case in self.cases], "seed": self.seed,
               "kernel": self.kernel.name, "scale": self.scale, "smp": self.cases[0].smp,
               "left": self.budget.left(), "over": self.budget.reason()}
        data = b""
        deadline = started + BOOT_SECONDS * self.scale
        spent = frozen.cpu_time(process.pid)
        with channel, open(self.folder / "protocol", "wb") as protocol:
            channel.sendall(json.dumps(job).encode() + b"\n")
            while True:
                left = deadline - time.monotonic()
                ready, _, _ = select.select([channel], [], [], min(max(0, left), LOOK_SECONDS))
                before, spent = spent, frozen.cpu_time(process.pid)
                if not ready and (left < 0 or spent - before < frozen.LEAST_NS):
                    if self.silent(process, monitor, left < 0):
                        return
                if not ready:
                    continue
                try:
                    part = channel.recv(65536)
                except ConnectionResetError:
                    part = b""
                if not part:
                    self.finish(process)
                    return
                protocol.write(part)
                protocol.flush()
                data += part
                *lines, data = data.split(b"\n")
                for line in lines:
                    deadline = self.take(json.loads(line), started)
                    if self.unfit:
                        self.blame(f"no case was run: {self.unfit}")
                        return
                if self.ended and self.cases[0].hibernates:
                    return  # the guest only boots again

    def silent(self, process, monitor, late):
        """The guest says nothing. Returns whether this boot is over."""
        still, text = frozen.evidence(process.pid, monitor)
        text = f"{self.whereabouts()}: {text}"
        (self.folder / "silent").write_text(text, encoding="utf-8")
        if still:
            self.still = text
        elif late:
            self.blame(f"hang: the guest said nothing until the host's deadline ({text})")
        return still or late

    @staticmethod
    def accept(listener, process):
        """QEMU's connection, or None if it ended before."""
        while process.poll() is None:
            if select.select([listener], [], [], 0.5)[0]:
                return listener.accept()[0]
        return None

    def take(self, message, started):
        """Digest one message; returns the next deadline."""
        now = time.monotonic()
        if message.get("boot"):
            self.boot_seconds = now - started
            if message["faults"]:
                host.say(f"{self.kernel.name}: kernel log before the first case: "
                         f"{message['faults'][0]}")
            self.unfit = message["unfit"]
            return now + 60 * self.scale
        if "start" in message:
            self.running = message["start"]
            limit = next(case.timeout for case in self.cases if case.name == self.running)
            return now + (limit + GRACE_SECONDS) * self.scale
        if "leak" in message:
            self.fail(message["leak"], message["reason"])
            return now + 60 * self.scale
        if "case" in message:
            self.outcomes[message["case"]] = Outcome(
                message["verdict"], message["reason"], message["seconds"], message["figures"])
            self.running = None
            return now + 60 * self.scale
        if "broken" in message:
            self.blame("the guest's runner broke: " + message["broken"])
        self.ended = "end" in message
        return now + 60 * self.scale

    def finish(self, process):
        """QEMU hung up: was all said before?"""
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            pass
        if not self.ended:
            text = host.tail_of(self.folder / "console", 1000)
            panic = re.search(r"Kernel panic - not syncing.*", text)
            reason = "the guest ended without a verdict"
            if panic:
                before = kmsg.faults(text[:panic.start()].splitlines())
                reason = "\n".join([f"panic: {panic.group(0)}", *before])
            if self.kernel.checkers and self.outcomes:
                reason += ("\nand so nobody looked for memory leaks of the cases before it: "
                           + " ".join(self.outcomes))
            self.blame(reason)

    def blame(self, reason):
        """The boot failed: charge the case that ran, or the last one, or all if none had begun.

        The last one: a problem found after its verdict (memory that leaked, a panic) may be of any.
        """
        reason += f"\nconsole ({self.folder / 'console'}):\n"
        reason += host.tail_of(self.folder / "console")
        if self.running:
            self.outcomes.setdefault(self.running, Outcome("failed", reason))
        elif self.outcomes:
            last = next(reversed(self.outcomes))
            self.fail(last, f"after the verdict of {last}: {reason}")
        else:
            for case in self.cases:
                self.outcomes[case.name] = Outcome("failed", reason)
        self.running = None

    def whereabouts(self):
        """What the guest was last heard to do."""
        if self.running:
            return f"in {self.running}"
        return "when no case ran" if self.outcomes else "while booting"

    def fail(self, name, reason):
        """A case fails that had a verdict; what it said stays."""
        got = self.outcomes[name]
        got.verdict = "failed"
        got.reason = "\n".join(part for part in (got.reason, reason) if part)


def booted(*args):
    """The Boot of these arguments, over; a guest in which no case could run is booted again.

    Once: on a busy host an emulated timer may fail the kernel's test of it ("APIC timer
    disabled"), and then there is none. No case can have had to do with that.
    """
    boot = Boot(*args)
    boot.run()
    if boot.boot_seconds is None or boot.unfit:
        kept = boot.folder.with_name(boot.folder.name + "-unbooted")
        shutil.rmtree(kept, ignore_errors=True)
        boot.folder.rename(kept)
        host.say(f"{boot.kernel.name}: a guest did not boot as it must, once more; see {kept}")
        boot = Boot(*args)
        boot.run()
    return boot


def run_all(kernel, payload, cases, folder, seed, budget=None):
    """Run cases of one group over as many boots as that takes; returns all outcomes.

    None is started when the run's time is over. If the emulator stands still, its guest is given
    up, and the case that ran is run again: once.
    """
    outcomes = {}
    stood_still = False
    remaining = list(cases)
    number = 0
    boots = []
    budget = budget or times.Budget()
    while remaining:
        if budget.is_over():
            outcomes.update({case.name: Outcome("skipped", budget.reason()) for case in remaining})
            break
        boot = booted(kernel, payload, remaining, pathlib.Path(folder) / str(number), seed, budget)
        boots.append(boot.boot_seconds)
        if boot.still:
            host.say(f"{kernel.name}: the emulator stood still {boot.still}")
            if stood_still:
                boot.blame(f"the emulator stood still twice {boot.still}")
        outcomes.update(boot.outcomes)
        left = [case for case in remaining if case.name not in outcomes]
        if len(left) == len(remaining) and (stood_still or not boot.still):
            for case in left:
                outcomes[case.name] = Outcome(
                    "failed", "not reported by the guest\n"
                    + host.tail_of(boot.folder / "console"))
            break
        stood_still = stood_still or bool(boot.still)
        remaining = left
        number += 1
    return outcomes, boots
