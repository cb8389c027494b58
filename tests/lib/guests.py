# SPDX-License-Identifier: GPL-2.0-only
"""Guest cases planned and run from the host: which boots, which outcomes."""

import collections
import contextlib
import pathlib
import threading
import time
from concurrent import futures

from lclib import CASES, registry

from . import host, kernels, payload, products, server, serverroot, times, vm

FEW = 10        # cases that are not worth two boots
MANY = 40       # cases that are worth another boot: what waits for the guest gets its turn


def cases(folder):
    """The registered cases of one folder."""
    folder = pathlib.Path(folder)
    registry.load(folder)
    prefix = folder.name + "."
    return [case for case in CASES.values() if case.function.__module__.startswith(prefix)]


def kernels_of(case, wanted, long):
    """The kernels to run a case on: those it names, or of them the wanted one.

    What runs on the debug kernel also runs on kcsan if that is the wanted one.
    """
    kernels = case.kernels
    if wanted == "kcsan" and "debug" in kernels and case.module == "dm-lc":
        kernels = (*kernels, "kcsan")
    return [kernel for kernel in dict.fromkeys(kernels) if wanted in (None, kernel)
            and (long or kernel not in case.long)]


def comes_last(case):
    """Does a case run after the others, and is skipped before them if time is short?"""
    return case.sampled > 1


def group_key(kernel, case):
    """Cases with an equal key can share a boot.

    Whatever disks they want, unless these are recorded. Those of the harness's own tests are
    there to spoil their boot, so they share it with few others. A server case has a machine of
    its own.
    """
    folder = case.function.__module__.partition(".")[0]
    apart = folder != "cases" or any(disk.kind == "recorded" for disk in case.disks)
    return (kernel, folder, case.disks if apart else None, case.smp, case.memory, case.append,
            case.cores, case.nodes, case.icount, case.hibernates, comes_last(case),
            case.name if kernel == "server" else None)


def group_name(kernel, case):
    """The key as a folder name."""
    key = group_key(kernel, case)
    disks = "+".join(f"{disk.name}{disk.size}" for disk in key[2] or ()) or key[1]
    return f"{kernel}-{disks}-{host.digest(*map(repr, key))[:6]}"


def shared_out(cases, nr):
    """The cases in at most `nr` lists that may take as long, each in the order given."""
    lists = [[] for _ in range(min(len(cases), nr))]
    for case in sorted(cases, key=lambda case: -case.timeout):
        min(lists, key=lambda some: sum(other.timeout for other in some)).append(case)
    return [sorted(some, key=cases.index) for some in lists]


def boots_of(selected):
    """{name: (kernel, cases)} for (kernel, case) pairs: what to boot."""
    groups = collections.OrderedDict()
    for kernel, case in selected:
        groups.setdefault(group_key(kernel, case), []).append(case)
    boots = collections.OrderedDict()
    for key, cases in groups.items():
        few = 1 if comes_last(cases[0]) else FEW
        nr = 1
        if len(cases) > few and key[1] == "cases":
            nr = max(host.guests_at_once(), -(-len(cases) // MANY))
        for number, share in enumerate(shared_out(cases, nr)):
            boots[f"{group_name(key[0], cases[0])}-{number}"] = key[0], share
    return boots


class Runs:
    """Boots each group once, some at a time, in the background."""

    def __init__(self, selected, seed, budget=None):
        self.seed = seed
        self.budget = budget or times.Budget()
        host.run_folder()  # before any thread asks for it
        self.groups = boots_of(selected)
        self.group_of = {(kernel, case.name): group
                         for group, (kernel, cases) in self.groups.items() for case in cases}
        names = sorted({kernel for kernel, _ in self.groups.values()})
        self.locks = {name: threading.Lock() for name in names}
        self.ready = {}
        self.outcomes = {}
        self.boots = {}
        self.adding = threading.Lock()
        self.seconds = collections.Counter()  # {part of the run: how long}
        # Kernels are built meanwhile, by threads that boot nothing.
        self.builders = futures.ThreadPoolExecutor(max(1, len(names)))
        self.workers = futures.ThreadPoolExecutor(host.guests_at_once())
        for name in names:
            self.builders.submit(self.prepared, name)
        self.waiting = list(self.groups)    # adding
        self.running = {group: futures.Future() for group in self.groups}
        for _ in self.groups:
            self.workers.submit(self.run_next)

    def close(self):
        """Start nothing more; what runs ends first."""
        for pool in (self.workers, self.builders):
            pool.shutdown(cancel_futures=True)

    @contextlib.contextmanager
    def timed(self, part):
        """What runs inside belongs to this part of the run."""
        started = time.monotonic()
        yield
        with self.adding:
            self.seconds[part] += time.monotonic() - started

    def prepared(self, name):
        """Kernel and payload, built once a session."""
        with self.locks[name]:
            if name not in self.ready:
                with self.timed(f"builds for {name} guests"):
                    try:
                        self.ready[name] = self.prepare(name)
                    except Exception as error:  # the next item must not build it again
                        self.ready[name] = error
        if isinstance(self.ready[name], Exception):
            raise RuntimeError(f"no guest with the {name} kernel: {self.ready[name]}")
        return self.ready[name]

    @staticmethod
    def prepare(name):
        """Build kernel and payload."""
        started = time.monotonic()
        folder = host.run_folder() / "payload" / name
        kernel = serverroot.image() if name == "server" else kernels.get(name)
        with host.locked("build", host.run_folder().parent):
            if name == "server":
                files = server.make_payload(kernel, folder)
            else:
                files = payload.make(kernel, products.build(kernel), folder)
        host.say(f"{name}: {kernel.release} ready in {time.monotonic() - started:.0f} s")
        return kernel, files

    def take(self):
        """The first group that waits and whose kernel is built; if there is none, the first one."""
        with self.adding:
            group = next((group for group in self.waiting if self.groups[group][0] in self.ready),
                         self.waiting[0])
            self.waiting.remove(group)
        return group

    def run_next(self):
        """Boot a group that waits."""
        group = self.take()
        try:
            self.run(group)
        except Exception as error:  # pylint: disable=broad-except
            self.running[group].set_exception(error)
        else:
            self.running[group].set_result(None)

    def run(self, group):
        """Boot one group."""
        name, cases = self.groups[group]
        kernel, files = self.prepared(name)
        folder = host.run_folder() / "logs" / group
        run_all = server.run_all if name == "server" else vm.run_all
        with self.timed(f"{name} guests"):
            self.outcomes[group], self.boots[group] = run_all(kernel, files, cases, folder,
                                                              self.seed, self.budget)

    def outcome(self, name, case):
        """The outcome of one case, when its group has run."""
        group = self.group_of[name, case.name]
        self.running[group].result()
        return self.outcomes[group].get(case.name) or vm.Outcome("failed", "not reported")

    def left_too_much(self):
        """Of what the run was to start, was more than half not started in time? Says so, or ""."""
        reason = self.budget.reason()
        left = sum(got.reason == reason for outcomes in self.outcomes.values()
                   for got in outcomes.values())
        if 2 * left <= len(self.group_of):
            return ""
        return f"{left} of {len(self.group_of)} guest cases were not started in time"

    def report(self):
        """All figures, for build/results.json."""
        results = [{"kernel": self.groups[group][0], "case": name, "verdict": got.verdict,
                    "reason": got.reason, "seconds": got.seconds, "figures": got.figures}
                   for group, outcomes in self.outcomes.items() for name, got in outcomes.items()]
        return {"seed": self.seed, "boot_seconds": self.boots, "results": results}
