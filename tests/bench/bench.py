# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark's part on the host: build, boot one guest, keep what it measures, report."""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from lib import host, kernels, payload, products, sideport, vm  # noqa: E402, I001
from lclib import CASES, registry  # noqa: E402

import native  # noqa: E402
import peers  # noqa: E402
import plan  # noqa: E402
import report  # noqa: E402
import traces  # noqa: E402

FOLDER = host.BUILD / "bench"
PORT = "dmlc.bench"
# Name of a boot: its kernel and case.
BOOTS = {"stock": ("stock", "bench.bench"), "lockstat": ("lockstat", "bench.bench_locks"),
         "counted": ("stock", "bench.bench_counted"), "native": ("uml", None),
         "array": ("stock", "bench.bench_array"), "traces": ("stock", "bench.bench_traces")}


class Notes:
    """Takes the guest's events and keeps them in a file as they come."""

    def __init__(self, folder, wanted):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.file = open(folder / "events", "w", encoding="utf-8")  # noqa: SIM115
        self.begun = {}
        self.results = []
        self.profiles = []
        self.ended = False
        self.wanted = wanted
        self.started = time.monotonic()

    def take(self, event):
        """One event."""
        self.file.write(json.dumps(event) + "\n")
        self.file.flush()
        if event["kind"] == "begin":
            self.begun = event
        elif event["kind"] == "end":
            self.ended = True
        elif event["kind"] == "profile":
            self.profiles.append(event)
        elif event["kind"] == "result":
            self.results.append(event)
            problem = f"  FAILED: {event['error'].splitlines()[0]}" if event["error"] else ""
            host.say(f"{time.monotonic() - self.started:5.0f} s  {event['job']:20}"
                     f"{event['system']:14} {event['seconds']:6.1f} s{problem}")


def commit():
    """The version that is measured."""
    text = host.run("git", "-C", host.TOP, "describe", "--always", "--dirty")
    return text.strip()


def about_host():
    """The machine itself."""
    cpu = next((line.partition(":")[2].strip()
                for line in pathlib.Path("/proc/cpuinfo").read_text("utf-8").splitlines()
                if line.startswith("model name")), "unknown")
    return {"cpu": cpu, "cpus": host.jobs(),
            "load_before": pathlib.Path("/proc/loadavg").read_text("ascii").split()[0]}


def machine(kernel):
    """Where the guests run."""
    qemu = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True,
                          check=True).stdout.splitlines()[0]
    return {**about_host(), "qemu": qemu, "emulated": vm.is_emulated(kernel)}


def boot_guest(kernel, case, wanted, seed, notes, more):  # pylint: disable=too-many-arguments
    """One boot under QEMU; (versions of the peers, verdict, reason)."""
    folder = notes.folder
    with host.locked("build", host.BUILD):
        versions, extra = peers.prepare(kernel)
        files = payload.make(kernel, products.build(kernel), folder / "payload", [*extra, *more])
    side = sideport.Side(PORT, notes.take, first=wanted)
    boot = sideport.Boot(kernel, files, [CASES[case]], folder / "boot", seed, side=side,
                         disks={"preheat": "256M"})
    notes.started = time.monotonic()
    outcome = sideport.perform(boot, side)
    return versions, outcome.verdict, outcome.reason


def boot_native(kernel, wanted, seed, notes):
    """One boot of user-mode Linux; as boot_guest()."""
    trouble = native.measure(kernel, {**wanted, "seed": seed}, notes.folder / "guest",
                             products.build_load(kernel), notes)
    return {}, "failed" if trouble else "passed", trouble


def measure_in(name, wanted, seed, more=()):
    """Build for the kernel of one boot, boot it, run the jobs that want it."""
    kernel_name, case = BOOTS[name]
    kernel = kernels.get(kernel_name)
    notes = Notes(FOLDER / name, wanted)
    if case:
        versions, verdict, reason = boot_guest(kernel, case, wanted, seed, notes, more)
    else:
        versions, verdict, reason = boot_native(kernel, wanted, seed, notes)
    return {
        "kernel": kernel.release, "name": name, "versions": versions, "guest": notes.begun,
        "seconds": round(time.monotonic() - notes.started), "whole": notes.ended,
        "verdict": verdict, "reason": reason,
        "results": notes.results, "profiles": notes.profiles,
    }


def planned(args):
    """(the plan, files for the guest that replays traces, what the simulator says of them)."""
    wanted = dict(plan.LENGTHS[args.length])
    if args.jobs:
        wanted["jobs"] = [name for name in plan.JOBS if name in args.jobs]
    if args.systems:
        wanted["systems"] = [name for name in plan.SYSTEMS if name in args.systems]
    if args.repetitions:
        wanted["repetitions"] = args.repetitions
    wanted["profile"] = args.profile
    replays = [name for name in wanted["jobs"] if plan.BOOTS.get(name) == "traces"]
    more, simulated = [], {}
    if args.traces:
        wanted["traces"], more, simulated = traces.prepare(FOLDER, args.traces, wanted)
        wanted["trace_models"] = traces.models(wanted)
    elif args.jobs and replays:
        raise SystemExit(f"bench: {replays[0]} needs --traces DIR (see docs/testing.rst)")
    else:
        wanted["jobs"] = [name for name in wanted["jobs"] if name not in replays]
    return wanted, more, simulated


def measure(args):
    """Build, boot, run the plan; returns everything as one dict."""
    wanted, more, simulated = planned(args)
    registry.load(TESTS / "bench/guest")
    about = machine(kernels.get("stock"))
    boots = []
    for name in BOOTS:
        share = [job for job in wanted["jobs"] if plan.BOOTS.get(job, "stock") == name]
        if share:
            boots.append(measure_in(name, {**wanted, "jobs": share}, args.seed,
                                    more if name == "traces" else ()))
    results = [result for boot in boots for result in boot.pop("results")]
    traces.add_simulated(results, simulated)
    return {
        "length": args.length, "plan": wanted, "seed": args.seed, "commit": commit(),
        "machine": about, "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "seconds": sum(boot["seconds"] for boot in boots), "boots": boots,
        "results": results,
        "profiles": [profile for boot in boots for profile in boot.pop("profiles")],
    }


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__)
    parser.add_argument("--length", choices=plan.LENGTHS, default="long",
                        help="smoke: shows that the jobs run; quick: under 10 minutes without "
                             "KVM; long: under an hour")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 31))
    parser.add_argument("--jobs", nargs="+", choices=plan.JOBS, help="only these jobs")
    parser.add_argument("--systems", nargs="+", choices=plan.SYSTEMS, help="only these systems")
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--traces", type=pathlib.Path, metavar="DIR",
                        help="where the traces are that some jobs replay; without it these jobs "
                             "are left out")
    parser.add_argument("--profile", action="store_true",
                        help="also write profile.md: where the guest's processors are meanwhile "
                             "(rates are lower with it)")
    return parser.parse_args()


def main():
    """Exit 0 only if everything that was planned has a figure."""
    args = arguments()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with host.locked("bench", FOLDER):
        got = measure(args)
        (FOLDER / "results.json").write_text(json.dumps(got, indent=1) + "\n", encoding="utf-8")
        host.say(f"report: {report.write(got, FOLDER)}")
        if args.profile:
            host.say(f"profile: {report.write_profile(got, FOLDER)}")
    for boot in got["boots"]:
        if boot["verdict"] != "passed":
            host.say(f"the guest ({boot['name']}): {boot['verdict']}: {boot['reason']}")
    failed = [result for result in got["results"] if result["error"]]
    for result in failed:
        host.say(f"{result['job']} {result['system']}: {result['error']}")
    whole = all(boot["whole"] and boot["verdict"] == "passed" for boot in got["boots"])
    return 0 if whole and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
