# SPDX-License-Identifier: GPL-2.0-only
"""Deliberately broken tools: build them, run the tests of the tools against them."""

import functools
import os
import subprocess
import sys
import time
import xml.etree.ElementTree

from . import host, mutation

FOLDER = host.TESTS / "tools/mutants"
# The tools are built of both.
SOURCES = ("userland", "dm-lc")
COLUMNS = {"mutant": "mutant", "hazard": "hazards", "caught by": "caught_by",
           "seconds": "seconds"}


def load(path):
    """The mutant of a record."""
    return mutation.load(path, kernel="")


def refresh(tree):
    """Make the copy of the tools equal to the sources."""
    wanted = {path.relative_to(host.TOP) for folder in SOURCES
              for what in ("*.[ch]", "*.mk", "Makefile")
              for path in (host.TOP / folder).rglob(what)}
    mutation.refresh(tree, wanted)


def build(tree, log):
    """Both builds of a copy, and what the tests need besides; objects of the last time serve."""
    for words in ((), ("SAN=1",)):
        host.run("make", f"-j{host.jobs()}", "-C", tree / "userland", "helpers", *words, log=log)


def pytest(*words, userland=host.TOP / "userland"):
    """pytest on its own, on the tools of a tree."""
    env = {**os.environ, "LC_USERLAND": str(userland), "LC_SUMMARY": os.devnull}
    return subprocess.run([sys.executable, "-m", "pytest", *map(str, words)], cwd=host.TESTS,
                          env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)


@functools.lru_cache
def collected():
    """{name: ids} of all tests of the tools; of a test with parameters, of each and of all."""
    found = {}
    for line in pytest("--collect-only", "-q", "tools").stdout.splitlines():
        name = line.partition("::")[2]
        if name:
            for key in {name, name.partition("[")[0]}:
                found.setdefault(key, []).append(line)
    return found


def find_test(name):
    """The ids of the tests of this name; ValueError if there are none."""
    if name not in collected():
        raise ValueError(f"no test {name} in tests/tools")
    return collected()[name]


def failures(path):
    """{name: why} of the tests that failed, by pytest's report.

    RuntimeError if there are none, but one that was skipped or did not begin: that says nothing
    about the tools.
    """
    failed, odd, ran = {}, [], False
    for test in xml.etree.ElementTree.parse(path).iter("testcase"):
        ran = True
        kinds = {part.tag: part.get("message") or "" for part in test}
        if "failure" in kinds:
            failed[test.get("name")] = kinds["failure"]
        odd += [f"{test.get('name')}: {kind}: {kinds[kind]}" for kind in ("error", "skipped")
                if kind in kinds]
    if not failed and (odd or not ran):
        raise RuntimeError("\n".join(odd) or "no test has run")
    return failed


class Lab:
    """Builds and tests, one mutant after the other, and remembers what came of it."""

    def __init__(self):
        self.tree = host.run_folder() / "tool-mutants"  # of this run alone
        self.logs = host.run_folder() / "logs"
        self.results = []

    def run(self, record, tests):
        """Test the tools with a mutant (None: without any); {name: why} of what failed first."""
        stem = f"mutant-{record.stem if record else 'none'}-tools"
        self.tree.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        log, report = self.logs / f"{stem}.log", self.logs / f"{stem}.xml"
        log.unlink(missing_ok=True)
        report.unlink(missing_ok=True)
        refresh(self.tree)
        if record:
            mutation.apply(record, self.tree)
        build(self.tree, log)
        ids = sorted({one for name in tests for one in find_test(name)})
        done = pytest("-x", "-q", f"--junitxml={report}", *ids, userland=self.tree / "userland")
        with open(log, "a", encoding="utf-8") as text:
            text.write(done.stdout)
        if not report.exists():
            raise RuntimeError(f"pytest ended with {done.returncode}, see {log}")
        return failures(report)

    def hunt(self, mutant):
        """Run its tests until one fails; returns that one's name or None."""
        begin = time.monotonic()
        failed = self.run(mutant.path, mutant.tests)
        result = {"mutant": mutant.name, "breaks": mutant.breaks, "hazards": mutant.hazards,
                  "caught_by": next(iter(failed), None),
                  "verdict": next(iter(failed.values()), "")[:200],
                  "seconds": round(time.monotonic() - begin, 1)}
        self.results.append(result)
        mutation.report("tool-mutants", COLUMNS, self.results)
        return result["caught_by"]
