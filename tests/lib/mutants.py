# SPDX-License-Identifier: GPL-2.0-only
"""Deliberately broken modules: build them, run the cases against them."""

import dataclasses
import json
import pathlib
import re
import shlex
import subprocess
import time

from lclib import CASES, registry

from . import host, kernels, mutation, payload, products, vm

FOLDER = host.TESTS / "mutants"
WORK = host.BUILD / "mutants"
SUITE = "dm-lc-kunit"
COLUMNS = {"mutant": "mutant", "hazard": "hazards", "kernel": "kernel", "caught by": "caught_by",
           "seconds": "seconds"}
# A case that fails for one of these says nothing about the mutant.
UNRELATED = re.compile(r"modprobe dm-lc:|: insmod \S+ ended with|the guest does not know this case"
                       r"|QEMU did not start|the guest's runner broke|not reported"
                       r"|^the guest ended without a verdict")


def load(name):
    """The mutant of this name."""
    return mutation.load(FOLDER / f"{name}{mutation.SUFFIX}")


def names():
    """Of all records."""
    return [path.stem for path in mutation.records(FOLDER)]


def find_case(name, kernel):
    """The guest case of this name; ValueError if it does not exist or not on this kernel."""
    registry.load(host.TESTS / "guest/cases")
    case = CASES.get(name)
    if case is None or kernel not in case.kernels:
        raise ValueError(f"no case {name} on the {kernel} kernel")
    return case


def refresh(tree):
    """Make the copy of the module equal to the sources."""
    wanted = {path.relative_to(host.TOP) for path in (host.TOP / "dm-lc").rglob("*")
              if path.suffix in (".c", ".h") or path.name == "Kbuild"}
    mutation.refresh(tree, wanted | {pathlib.Path("Kbuild")})


def build(kernel, record, kunit):
    """The module with the mutant (None: without any), built in a copy of the sources."""
    tree = WORK / f"{kernel.release}{'-kunit' if kunit else ''}"
    tree.mkdir(parents=True, exist_ok=True)
    refresh(tree)
    log = WORK / f"{record.stem if record else 'none'}-{kernel.name}.log"
    log.unlink(missing_ok=True)
    if record:
        mutation.apply(record, tree)
    return products.build_tree(kernel, tree, kunit, log)


def started(folder, case):
    """Did the guest come as far as to start this case?"""
    try:
        lines = (folder / "protocol").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return False
    return any(line.startswith("{") and line.endswith("}") and
               json.loads(line).get("start") == case.name for line in lines)


def users(path):
    """The .c files that a change of a file is compiled in; of a header, a few."""
    if path.suffix == ".c":
        return [path]
    include = f'#include "{path.name}"'
    found = [one for one in sorted(path.parent.glob("*.c"))
             if include in one.read_text(encoding="utf-8")]
    return sorted(found, key=lambda one: one.stem != path.stem)[:4]


def compile_error(source, kdir):
    """What the compiler says of a source that was compiled there before, or ""."""
    recorded = (source.parent / f".{source.stem}.o.cmd").read_text(encoding="utf-8")
    command = re.match(r"\S+ :=\s+(.*?)\s+-c -o \S+ \S+", recorded)[1]
    words = [word for word in shlex.split(command) if not word.startswith("-Wp,-MMD,")]
    done = subprocess.run([*words, "-fsyntax-only", source], cwd=kdir, text=True, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return done.stderr if done.returncode else ""


def batches(paths):
    """The records in lists, in each of which no two change the same function of a file."""
    found = []
    for path in paths:
        scopes = {(edit.file, edit.scope) for edit in mutation.read(path).edits}
        for batch, taken in found:
            if not scopes & taken:
                batch.append(path)
                taken |= scopes
                break
        else:
            found.append(([path], scopes))
    return [batch for batch, _ in found]


def said_of(paths, kernel, tree):
    """What the compiler says of the tree with all these records; the tree is as before then."""
    changed = {mutation.locate(edit, tree)[0] for path in paths
               for edit in mutation.read(path).edits}
    before = {one: one.read_bytes() for one in changed}
    try:
        for path in paths:
            mutation.apply(path, tree)
        sources = dict.fromkeys(source for one in before for source in users(one))
        return "".join(compile_error(source, kernel.kdir) for source in sources)
    finally:
        for one, text in before.items():
            one.write_bytes(text)


def errors(paths, kernel, tree):
    """{name: what the compiler says} of records that do not compile; the tree is built first.

    A mutant that does not compile is caught by no test, and its rule is guarded by none. Those of
    different functions are compiled together; if that fails, one by one.
    """
    refresh(tree)
    products.build_tree(kernel, tree, False, tree / "build.log")
    found = {}
    for batch in batches(paths):
        if said_of(batch, kernel, tree):
            found |= {path.stem: said_of([path], kernel, tree) for path in batch}
    return {name: said for name, said in found.items() if said}


class Lab:
    """Builds and boots, one mutant after the other, and remembers what came of it."""

    def __init__(self, seed):
        self.seed = seed
        self.ready = {}     # kernel name: kernel and the unchanged products
        self.results = []

    def guest(self, kernel_name, module_kind, record):
        """Kernel and payload with the module a case of this kind loads, with the mutant."""
        WORK.mkdir(parents=True, exist_ok=True)
        with host.locked("build", host.run_folder().parent):
            if kernel_name not in self.ready:
                kernel = kernels.get(kernel_name)
                self.ready[kernel_name] = kernel, products.build(kernel)
            kernel, made = self.ready[kernel_name]
            kunit = module_kind == SUITE
            module = build(kernel, record, kunit)
            made = dataclasses.replace(made, **{"kunit_module" if kunit else "module": module})
            folder = host.run_folder() / "payload" / f"mutants-{kernel_name}"
            return kernel, payload.make(kernel, made, folder)

    def run(self, kernel_name, case, record):
        """The outcome of one case; RuntimeError if the harness failed, not the case."""
        kernel, files = self.guest(kernel_name, case.module, record)
        name = record.stem if record else "none"
        folder = host.run_folder() / "logs" / f"mutant-{name}-{kernel_name}-{case.name}"
        outcome = vm.booted(kernel, files, [case], folder, self.seed).outcomes.get(case.name)
        if outcome is None or not started(folder, case):
            raise RuntimeError(f"the guest never started {case.name}, see {folder}")
        if outcome.verdict == "skipped":
            raise RuntimeError(f"{case.name} was skipped: {outcome.reason}")
        if outcome.verdict != "passed" and UNRELATED.search(outcome.reason):
            raise RuntimeError(f"{case.name} did not get as far as the mutant: {outcome.reason}")
        return outcome

    def hunt(self, mutant):
        """Run its cases until one fails; returns that one's name or None."""
        begin = time.monotonic()
        result = {"mutant": mutant.name, "breaks": mutant.breaks, "hazards": mutant.hazards,
                  "kernel": mutant.kernel, "caught_by": None, "case_seconds": None,
                  "verdict": "", "seed": self.seed}
        for name in mutant.tests:
            outcome = self.run(mutant.kernel, find_case(name, mutant.kernel), mutant.path)
            if outcome.verdict == "failed":
                result.update(caught_by=name, case_seconds=outcome.seconds,
                              verdict=outcome.reason.strip().splitlines()[0][:200])
                break
        result["seconds"] = round(time.monotonic() - begin, 1)
        self.results.append(result)
        mutation.report("mutants", COLUMNS, self.results)
        return result["caught_by"]
