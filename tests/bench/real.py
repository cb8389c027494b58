# SPDX-License-Identifier: GPL-2.0-only
"""make bench-real: the benchmark on this machine's own disks. All that they hold is lost.

Whether the disks may be taken lc-format decides, with all its refusals and its question. The
modules are built for the running kernel and loaded; peers that this machine has not are left out,
and the report says so.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
# After this file's folder: the guest has a bench.py, too.
sys.path[1:1] = [str(TESTS), str(TESTS / "bench/guest")]

from lib import host, kernels, payload, products  # noqa: E402, I001
from lclib import sh  # noqa: E402
from lclib.disk import Device  # noqa: E402
from lcbench import common, load, perform, systems  # noqa: E402

import bench  # noqa: E402
import plan  # noqa: E402
import report  # noqa: E402

FOLDER = host.BUILD / "bench-real"
GIB = 1 << 30
LEAST = {"ssd": GIB, "hdd": 8 * GIB}
# Of a crash, of memory, of disks that are slow on purpose and of what wants a guest of its own
# only a guest can tell; a pool's write has no known time here.
JOBS = tuple(job for job in plan.JOBS
             if job not in ("restart", "power_cut", "memory", "swap_table", "dirty_flood",
                            "full_flood", *plan.BOOTS))
# What `dmsetup targets` or sysfs must show for a system to be there.
TARGETS = {"dm-lc": "lc", "dm-writeboost": "writeboost", "dm-writecache": "writecache",
           "dm-cache": "cache", "dm-linear": "linear"}


class Disks:
    """Stands where the guest has control over emulated disks: these are as they are."""

    def __init__(self, ssd, hdd):
        self.paths = {"ssd": ssd, "hdd": hdd}
        self.busy = {}

    def model(self, **_):
        """No time model."""

    def wipe(self, disk):
        """Nothing of an earlier system is to be recognised."""
        with Device(self.paths[disk]) as raw:
            raw.wipe()

    def stats(self):
        """What the kernel counted; it has an empty FLUSH both as write and as flush."""
        found = {}
        for name, path in self.paths.items():
            got = load.stat(path)
            found[name] = {"reads": got["reads"], "read_bytes": got["read_sectors"] << 9,
                           "writes": got["writes"] - got["flushes"],
                           "write_bytes": got["write_sectors"] << 9, "flushes": got["flushes"],
                           "trims": got["trims"]}
        return found

    def model_time(self, reset=False):
        """How long each was busy, and with how many commands, since the last reset."""
        now = {name: (load.stat(path)["busy_ms"] / 1000, sum(
            load.stat(path)[key] for key in ("reads", "writes")))
            for name, path in self.paths.items()}
        if reset:
            self.busy = now
        before = {name: self.busy.get(name, (0, 0)) for name in now}
        return {name: {"seconds": now[name][0] - before[name][0],
                       "commands": now[name][1] - before[name][1]} for name in now}


def describe(path):
    """What a disk calls itself."""
    text = sh.run("lsblk", "--nodeps", "--noheadings", "--output", "MODEL,SIZE,ROTA", path)
    return " ".join(text.split())


def unfit(paths):
    """Why these disks will not do, or an empty text."""
    for name, path in paths.items():
        try:
            with Device(path) as raw:
                size = raw.size
        except OSError as error:
            return f"{path}: {error.strerror}: name a block device with {name.upper()}="
        if size < LEAST[name]:
            return (f"{path}: {size >> 20} MiB: the jobs need {LEAST[name] >> 20} MiB; "
                    f"name a larger one with {name.upper()}=")
    return ""


def may_take(paths, yes):
    """lc-format's answer, which is the user's in the end."""
    words = ["lc-format", *(["--yes"] if yes else []), "--backing", paths["hdd"], paths["ssd"]]
    return subprocess.run(words, check=False).returncode == 0


def running_kernel():
    """The kernel this machine runs, as the harness knows kernels."""
    release = platform.release()
    modules = pathlib.Path("/lib/modules") / release
    if not (modules / "build").exists():
        raise SystemExit(f"bench-real: no {modules / 'build'}: install the headers of this kernel "
                         f"(Debian: apt-get install linux-headers-{release})")
    return kernels.Kernel("running", release, None, modules, modules / "build", None)


def install_tools():
    """The tools, below build/, first in PATH."""
    products.build_tools()
    tree = FOLDER / "tools"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    payload.add_tools(tree, FOLDER)
    os.environ["PATH"] = f"{tree / 'usr/sbin'}:{os.environ['PATH']}"


def load_modules(kernel, profile):
    """dm-lc, the load generator, and whatever peers there are."""
    for name in ("dm-mod", *systems.MODULES, "dm-writeboost"):
        sh.result("modprobe", name)
    if "dm_lc " not in pathlib.Path("/proc/modules").read_text(encoding="ascii"):
        sh.run("insmod", products.build_module(kernel))
    built = {path.stem: path for path in products.build_load(kernel)}
    load.MODULE, load.PROFILER = str(built["lcload"]), str(built["lcprof"])
    load.load_module(profile)


def present():
    """The systems that this machine has."""
    targets = {line.split()[0] for line in sh.run("dmsetup", "targets").splitlines()}
    maker = shutil.which("make-bcache")
    if maker:
        systems.Bcache.maker = maker
    found = {name for name, target in TARGETS.items() if target in targets} | {"raw"}
    if maker and pathlib.Path("/sys/fs/bcache").is_dir():
        found.add("bcache")
    return [name for name in plan.SYSTEMS if name in found]


def planned(args):
    """The plan, as far as this machine can."""
    wanted = {**plan.LENGTHS[args.length], "profile": False}
    wanted["jobs"] = [job for job in JOBS if job in (args.jobs or wanted["jobs"])]
    have = present()
    for name in plan.SYSTEMS:
        if name not in have:
            host.say(f"{name}: not on this machine, left out")
    wanted["systems"] = [name for name in have if name in (args.systems or have)]
    if args.repetitions:
        wanted["repetitions"] = args.repetitions
    return wanted


def measure(args, paths):
    """Everything; returns what report.write() takes."""
    wanted = planned(args)
    notes = bench.Notes(FOLDER, wanted)

    def send(kind, **fields):
        notes.take({"kind": kind, **fields})

    about = bench.about_host()
    disks_are = {name: describe(path) for name, path in paths.items()}
    disks = Disks(**paths)
    pair = (paths["ssd"], paths["hdd"])
    perform.begin(send)
    perform.perform(send, common.Bench("", "", wanted, args.seed, disks),
                    {"ram": pair, "emulated": pair})
    load.unload_module()
    for name in paths:
        disks.wipe(name)
    boot = {"kernel": platform.release(), "name": "this machine", "versions": {},
            "guest": notes.begun, "verdict": "passed", "reason": ""}
    return {"length": args.length, "plan": wanted, "seed": args.seed, "commit": bench.commit(),
            "machine": {**about, "emulated": False, "real": disks_are},
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "seconds": round(time.monotonic() - notes.started), "boots": [boot],
            "results": notes.results, "profiles": []}


def arguments(words=None):
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests/bench/real", description=__doc__)
    parser.add_argument("--ssd", required=True, help="all that it holds is lost")
    parser.add_argument("--hdd", required=True, help="all that it holds is lost")
    parser.add_argument("--yes", action="store_true", help="do not ask; refusals stand")
    parser.add_argument("--length", choices=plan.LENGTHS, default="long")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 31))
    parser.add_argument("--jobs", nargs="+", choices=JOBS, help="only these jobs")
    parser.add_argument("--systems", nargs="+", choices=plan.SYSTEMS, help="only these systems")
    parser.add_argument("--repetitions", type=int)
    return parser.parse_args(words)


def main(words=None):
    """Exit 0 only if everything that was planned has a figure."""
    args = arguments(words)
    # /sys knows disks by the names of their nodes.
    paths = {"ssd": os.path.realpath(args.ssd), "hdd": os.path.realpath(args.hdd)}
    if os.geteuid():
        raise SystemExit("bench-real: only root may load modules and write to disks: use sudo")
    problem = unfit(paths)
    if problem:
        raise SystemExit(f"bench-real: {problem}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    kernel = running_kernel()
    with host.locked("build", host.BUILD):
        install_tools()
        load_modules(kernel, False)
    if not may_take(paths, args.yes):
        raise SystemExit("bench-real: lc-format does not take these disks, see above; "
                         "nothing was written")
    got = measure(args, paths)
    (FOLDER / "results.json").write_text(json.dumps(got, indent=1) + "\n", encoding="utf-8")
    host.say(f"report: {report.write(got, FOLDER)}")
    failed = [result for result in got["results"] if result["error"]]
    for result in failed:
        host.say(f"{result['job']} {result['system']}: {result['error']}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
