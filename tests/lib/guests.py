# SPDX-License-Identifier: GPL-2.0-only
"""Guest cases planned and run from the host: which boots, which outcomes."""

import collections
import pathlib
import time

from lclib import CASES, registry

from . import host, kernels, payload, products, vm


def cases(folder):
    """The registered cases of one folder."""
    folder = pathlib.Path(folder)
    registry.load(folder)
    prefix = folder.name + "."
    return [case for case in CASES.values() if case.function.__module__.startswith(prefix)]


def group_key(kernel, case):
    """Cases with an equal key share a boot."""
    return kernel, case.disks, case.smp, case.memory, case.append


def group_name(kernel, case):
    """The key as a folder name."""
    disks = "+".join(f"{disk.name}{disk.size}" for disk in case.disks) or "nodisk"
    return f"{kernel}-{disks}-{host.digest(*map(repr, group_key(kernel, case)))[:6]}"


class Runs:
    """Boots each group the first time one of its cases is asked for."""

    def __init__(self, selected, seed):
        self.seed = seed
        self.groups = collections.OrderedDict()
        for kernel, case in selected:
            self.groups.setdefault(group_key(kernel, case), []).append(case)
        self.ready = {}
        self.outcomes = {}
        self.boots = {}

    def prepared(self, name):
        """Kernel and payload, built once a session."""
        if name not in self.ready:
            try:
                started = time.monotonic()
                kernel = kernels.get(name)
                with host.locked("build", host.run_folder().parent):
                    made = products.build(kernel)
                    files = payload.make(kernel, made, host.run_folder() / "payload" / name)
                self.ready[name] = kernel, files
                host.say(f"{name}: {kernel.release} ready in {time.monotonic() - started:.0f} s")
            except Exception as error:  # the next item must not build it again
                self.ready[name] = error
        if isinstance(self.ready[name], Exception):
            raise RuntimeError(f"no guest with the {name} kernel: {self.ready[name]}")
        return self.ready[name]

    def outcome(self, name, case):
        """The outcome of one case, booting its group if it has not run."""
        key = group_key(name, case)
        if key not in self.outcomes:
            kernel, files = self.prepared(name)
            folder = host.run_folder() / "logs" / group_name(name, case)
            got, boots = vm.run_all(kernel, files, self.groups[key], folder, self.seed)
            self.outcomes[key] = got
            self.boots[group_name(name, case)] = boots
        return self.outcomes[key].get(case.name) or vm.Outcome("failed", "not reported")

    def report(self):
        """All figures, for build/results.json."""
        results = [{"kernel": key[0], "case": name, "verdict": got.verdict, "reason": got.reason,
                    "seconds": got.seconds, "figures": got.figures}
                   for key, outcomes in self.outcomes.items() for name, got in outcomes.items()]
        return {"seed": self.seed, "boot_seconds": self.boots, "results": results}
