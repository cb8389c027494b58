# SPDX-License-Identifier: GPL-2.0-only
"""Guest cases planned and run from the host: which boots, which outcomes."""

import collections
import pathlib
import threading
import time
from concurrent import futures

from lclib import CASES, registry

from . import host, kernels, payload, products, vm


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


def group_key(kernel, case):
    """Cases with an equal key share a boot."""
    return kernel, case.disks, case.smp, case.memory, case.append


def group_name(kernel, case):
    """The key as a folder name."""
    disks = "+".join(f"{disk.name}{disk.size}" for disk in case.disks) or "nodisk"
    return f"{kernel}-{disks}-{host.digest(*map(repr, group_key(kernel, case)))[:6]}"


class Runs:
    """Boots each group once, some at a time, in the background."""

    def __init__(self, selected, seed):
        self.seed = seed
        host.run_folder()  # before any thread asks for it
        self.groups = collections.OrderedDict()
        for kernel, case in selected:
            self.groups.setdefault(group_key(kernel, case), []).append(case)
        names = sorted({key[0] for key in self.groups})
        self.locks = {name: threading.Lock() for name in names}
        self.ready = {}
        self.outcomes = {}
        self.boots = {}
        # Kernels are built meanwhile, by threads that boot nothing.
        self.builders = futures.ThreadPoolExecutor(max(1, len(names)))
        self.workers = futures.ThreadPoolExecutor(host.guests_at_once())
        for name in names:
            self.builders.submit(self.prepared, name)
        self.running = {key: self.workers.submit(self.run, key) for key in self.groups}

    def close(self):
        """Start nothing more; what runs ends first."""
        for pool in (self.workers, self.builders):
            pool.shutdown(cancel_futures=True)

    def prepared(self, name):
        """Kernel and payload, built once a session."""
        with self.locks[name]:
            if name not in self.ready:
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
        kernel = kernels.get(name)
        with host.locked("build", host.run_folder().parent):
            made = products.build(kernel)
            files = payload.make(kernel, made, host.run_folder() / "payload" / name)
        host.say(f"{name}: {kernel.release} ready in {time.monotonic() - started:.0f} s")
        return kernel, files

    def run(self, key):
        """Boot one group."""
        name, case = key[0], self.groups[key][0]
        kernel, files = self.prepared(name)
        folder = host.run_folder() / "logs" / group_name(name, case)
        self.outcomes[key], self.boots[group_name(name, case)] = vm.run_all(
            kernel, files, self.groups[key], folder, self.seed)

    def outcome(self, name, case):
        """The outcome of one case, when its group has run."""
        key = group_key(name, case)
        self.running[key].result()
        return self.outcomes[key].get(case.name) or vm.Outcome("failed", "not reported")

    def report(self):
        """All figures, for build/results.json."""
        results = [{"kernel": key[0], "case": name, "verdict": got.verdict, "reason": got.reason,
                    "seconds": got.seconds, "figures": got.figures}
                   for key, outcomes in self.outcomes.items() for name, got in outcomes.items()]
        return {"seed": self.seed, "boot_seconds": self.boots, "results": results}
