# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark in the guest: runs the plan that the host sends, tells each result at once.

No test run selects this case: it names no kernel.
"""

import contextlib
import json
import os
import pathlib
import sys
import time
import traceback

from lclib import Disk, case, sh
from lclib.disk import Device
from lclib.disks import Disks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

PORT = "dmlc.bench"
MIB = 1 << 20


class Host:
    """The other side: takes events, gave the plan."""

    def __init__(self, port):
        self.port = port
        line = b""
        while not line.endswith(b"\n"):
            line += port.read(65536) or b""
        self.plan = json.loads(line)

    def send(self, kind, **fields):
        """One event."""
        data = json.dumps({"kind": kind, **fields}).encode() + b"\n"
        while data:
            data = data[self.port.write(data):]


def ram_disks(size):
    """brd allocates on first touch: touched here, so that no system pays for it."""
    sh.run("modprobe", "brd", "rd_nr=2", f"rd_size={size // 1024}", "max_part=0")
    for path in ("/dev/ram0", "/dev/ram1"):
        with Device(path) as raw:
            for place in range(0, raw.size, 4 * MIB):
                raw.write(place, bytes(4 * MIB))
    return "/dev/ram0", "/dev/ram1"


def rotated(names, by):
    """Whoever begins is another one in each repetition."""
    by %= len(names)
    return [*names[by:], *names[:by]]


def perform(host, bench, disks, where):
    """The whole plan."""
    from lcbench import jobs, load, systems  # pylint: disable=import-outside-toplevel
    for repetition in range(host.plan["repetitions"]):
        for name in host.plan["jobs"]:
            job = jobs.JOBS[name]
            wanted = [system for system in job.systems if system in host.plan["systems"]]
            bench.ssd, bench.hdd = where["ram" if job.disks == "ram" else "emulated"]
            for system in rotated(wanted, repetition):
                if job.disks != "ram":
                    prepare(disks, host.plan, job.disks)
                begun = time.monotonic()
                try:
                    figures, error = job.function(bench, system), ""
                except Exception as problem:  # pylint: disable=broad-except
                    figures = {}
                    error = f"{type(problem).__name__}: {problem}\n{traceback.format_exc()}"
                    error += "kernel log:\n" + "\n".join(sh.run("dmesg").splitlines()[-12:])
                    systems.clear()
                if profiles := load.take_profiles():
                    host.send("profile", job=name, system=system, repetition=repetition,
                              loads=profiles)
                host.send("result", job=name, system=system, repetition=repetition,
                          figures=figures, error=error,
                          seconds=round(time.monotonic() - begun, 1))


def prepare(disks, plan, kind):
    """Empty disks with the time models that the job wants."""
    for disk in ("ssd", "hdd"):
        disks.model(disk=disk, kind="none")
        disks.wipe(disk=disk)
    if kind == "modelled":
        disks.model(disk="ssd", kind="ssd", **plan["ssd_model"])
        disks.model(disk="hdd", kind=plan["hdd_kind"], **plan["hdd_model"])


# tsc=reliable: the kernel would take the HPET for its clock, the block layer reads the clock for
# every bio, and with an emulated CPU that was up to a fifth of all profiled time.
@case(kernels=(), disks=(Disk("ssd", "512M", kind="recorded"),
                         Disk("hdd", "8G", kind="recorded")), timeout=3600, memory="4G",
      append="module_blacklist=crc32c_intel,crc32c-intel,crc32_pclmul tsc=reliable")
def bench(ctx):
    """Everything side by side."""
    from lcbench import common, load, systems  # pylint: disable=import-outside-toplevel
    os.environ["PATH"] += ":/opt/dm-lc/bin"
    host = Host(ctx.port(PORT))
    for module in (*systems.MODULES, "loop"):
        sh.run("modprobe", module)
    sh.run("insmod", "/opt/dm-lc/bench/dm-writeboost.ko")
    load.load_module(host.plan["profile"])
    loaded = pathlib.Path("/proc/modules").read_text(encoding="ascii")
    if "crc32c_intel" in loaded:
        raise AssertionError("crc32c_intel is loaded: an emulated CPU is slow at it")
    host.send("begin", release=os.uname().release, cpus=os.cpu_count(),
              clock=pathlib.Path("/sys/devices/system/clocksource/clocksource0/"
                                 "current_clocksource").read_text(encoding="ascii").strip(),
              targets=sh.run("dmsetup", "targets"),
              options={name: kind.options for name, kind in systems.BY_NAME.items()})
    where = {"ram": ram_disks(host.plan["ram_disk"]), "emulated": (ctx.ssd, ctx.hdd)}
    disks = Disks()
    with contextlib.closing(disks):
        perform(host, common.Bench("", "", host.plan, ctx.seed, disks), disks, where)
    load.unload_module()
    host.send("end")
