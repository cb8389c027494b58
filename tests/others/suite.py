# SPDX-License-Identifier: GPL-2.0-only
"""What the runs of other people's suites have in common: plan, resume, results, report."""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import sys
import threading

from lib import host, kernels, payload, products, uml

from . import packages

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = ("lc", "linear")
BAD = ("failed", "timeout", "hang", "panic")
ALL_MODULES = re.compile(r"\.ko")
BOOT_TESTS = 20  # a boot's share: fresh disks, and a panic costs little


def files(kernel, checkout, folder):
    """The images of a guest: root, this run's payload, the suite."""
    shutil.rmtree(folder, ignore_errors=True)
    tree = folder / "tree"
    tree.mkdir(parents=True)
    payload.add_modules(kernel, tree, (products.build_module(kernel),), ALL_MODULES)
    products.build_tools()
    payload.add_tools(tree, folder)
    for source, name in ((host.TESTS / "guest/lclib", "guest/lclib"), (HERE / "guest", "others")):
        shutil.copytree(source, tree / "opt/dm-lc" / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    images = (packages.image(),
              payload.pack(tree, folder / "payload.squashfs"),
              payload.pack(checkout, folder / "suite.squashfs", "-e", ".git", "results"))
    return uml.Files(payload.make_initramfs(kernel, folder, HERE / "guest/init"), images)


class Results:
    """build/SUITE/results.json, kept up to date after every test."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.rows = {}
        if path.exists():
            for row in json.loads(path.read_text(encoding="utf-8")):
                self.rows[row["flavour"], row["target"], row["test"]] = row

    def add(self, flavour, target, test, **what):
        """One result, on the disk when this returns."""
        row = {"flavour": flavour, "target": target, "test": test, **what}
        with self.lock:
            self.rows[flavour, target, test] = row
            fresh = self.path.with_suffix(".new")
            fresh.write_text(json.dumps(list(self.rows.values()), indent=1) + "\n",
                             encoding="utf-8")
            fresh.rename(self.path)

    def forget(self, pattern):
        """Let the tests that match run again."""
        self.rows = {key: row for key, row in self.rows.items()
                     if not re.search(pattern, "-".join(key))}

    def verdict(self, flavour, target, test):
        """The verdict, or None if it has not run."""
        return self.rows.get((flavour, target, test), {}).get("verdict")


def differences(results, flavours, tests):
    """Keys (flavour, test) of what fails on lc and does not on dm-linear."""
    found = []
    for flavour in flavours:
        for test in tests:
            on_lc, on_linear = (results.verdict(flavour, target, test) for target in TARGETS)
            if on_lc in BAD and on_linear is not None and on_linear not in BAD:
                found.append((flavour, test))
    return found


def report(title, results, flavours, tests):
    """The Markdown report: differences first, then figures, then all the rest."""
    text = [f"# {title}", ""]
    worse = differences(results, flavours, tests)
    text += [f"{len(worse)} of the tests fail on lc and not on dm-linear."
             if worse else "No test fails on lc that does not fail on dm-linear.", ""]
    for flavour, test in worse:
        row = results.rows[flavour, "lc", test]
        text += [f"## {flavour} {test}: {row['verdict']} on lc, "
                 f"{results.verdict(flavour, 'linear', test)} on dm-linear", "",
                 "```", row["reason"][-2000:], "```", ""]
    text += ["## Figures", "", "| | on | tests | passed | failed | not run | missing | seconds |",
             "|---|---|---|---|---|---|---|---|"]
    for flavour in flavours:
        for target in TARGETS:
            rows = [results.rows.get((flavour, target, test)) for test in tests]
            count = collections.Counter(
                "missing" if row is None else "failed" if row["verdict"] in BAD
                else row["verdict"] for row in rows)
            seconds = sum(row["seconds"] or 0 for row in rows if row)
            text.append(f"| {flavour} | {target} | {len(tests)} | {count['passed']} | "
                        f"{count['failed']} | {count['not run']} | {count['missing']} | "
                        f"{seconds:.0f} |")
    for flavour in flavours:
        text += ["", f"## {flavour}", ""]
        for what in ("passed", "failed", "not run"):
            lines = list(listed(results, flavour, tests, what))
            text += [f"{what.capitalize()} on lc: {'none' if not lines else ''}", "", *lines, ""]
    return "\n".join(text) + "\n"


def listed(results, flavour, tests, what):
    """The tests of one verdict on lc; those that passed in one line, the others with reason."""
    rows = [results.rows[flavour, "lc", test] for test in tests
            if (flavour, "lc", test) in results.rows]
    rows = [row for row in rows
            if row["verdict"] == what or (what == "failed" and row["verdict"] in BAD)]
    if what == "passed":
        if rows:
            yield " ".join(row["test"] for row in rows)
        return
    for row in rows:
        other = results.verdict(flavour, "linear", row["test"]) or "missing"
        first = (row["reason"].strip().splitlines() or [""])[0]
        yield f"* {row['test']}: {row['verdict']} (dm-linear: {other}). {first[:160]}"


class Plan:
    """Shares of the tests still to run, handed to as many workers as asked for."""

    def __init__(self, suite, flavours, tests, results, suspects=False):
        self.suite = suite
        self.flavours = flavours
        self.tests = tests
        self.results = results
        self.suspects = suspects
        self.lock = threading.Lock()
        self.shares = collections.deque()
        self.boots = 0
        self.refill()

    def refill(self):
        """Share out what has no result: all of it, then the suspects that this made."""
        keys = {key for key in self.wanted() if self.results.verdict(*key) is None}
        for begin in range(0, len(self.tests), BOOT_TESTS):
            for flavour in self.flavours:
                for target in TARGETS:
                    left = [test for test in self.tests[begin:begin + BOOT_TESTS]
                            if (flavour, target, test) in keys]
                    if left:
                        self.shares.append((flavour, target, left))

    def wanted(self):
        """What has to run: (flavour, target, test); on dm-linear only suspects, if so asked."""
        for flavour in self.flavours:
            for test in self.tests:
                yield flavour, "lc", test
                if not self.suspects or self.results.verdict(flavour, "lc", test) in BAD:
                    yield flavour, "linear", test

    def take(self):
        """(flavour, target, tests, number of the boot), or None."""
        with self.lock:
            if not self.shares:
                return None
            self.boots += 1
            return *self.shares.popleft(), self.boots

    def give_back(self, flavour, target, tests):
        """What a boot did not get to."""
        with self.lock:
            self.shares.appendleft((flavour, target, tests))


class Worker(threading.Thread):
    """Boots one guest after the other."""

    def __init__(self, plan, kernel, made, args):
        super().__init__(daemon=True)
        self.plan = plan
        self.kernel = kernel
        self.made = made
        self.args = args
        self.error = None

    def run(self):
        """Until nothing is left, or no guest comes up."""
        try:
            while (share := self.plan.take()) is not None:
                self.share(*share)
        except Exception as error:  # told by main()
            self.error = error

    def share(self, flavour, target, tests, number):
        """One boot."""
        suite = self.plan.suite
        done = set()

        def take(test, verdict, reason, seconds):
            done.add(test)
            self.plan.results.add(flavour, target, test, verdict=verdict, reason=reason,
                                  seconds=seconds, kernel=self.kernel.release)
            took = "" if seconds is None else f", {seconds:.0f} s"
            host.say(f"{flavour} on {target}: {test} {verdict}{took}")

        job = {"suite": suite.name, "flavour": flavour, "target": target, "tests": tests,
               "timeout": self.args.timeout, "volumes": suite.volumes, "disks": suite.disks}
        name = f"{flavour}-{target}-{number}"
        boot = uml.Boot(self.kernel, self.made, job, suite.folder / "boots" / name, take)
        boot.run(self.args.memory, self.args.cpus)
        left = [test for test in tests if test not in done]
        if len(left) == len(tests):
            raise RuntimeError(f"a boot of {name} ran none of {' '.join(tests)}")
        if left:
            self.plan.give_back(flavour, target, left)


class Suite:
    """A suite's name, defaults and disks."""

    # Hard disk and SSD; so small an SSD that the log wraps and writeback works meanwhile.
    volumes = {"test": ("3G", "256M"), "scratch": ("4G", "512M")}
    disks = {"logwrites": "3G"}

    def __init__(self, name, flavours, list_file):
        self.name = name
        self.flavours = flavours
        self.list_file = list_file
        self.folder = host.BUILD / name

    def default_tests(self):
        """The chosen list, comments left out."""
        lines = (HERE / self.list_file).read_text(encoding="ascii").splitlines()
        return [word for line in lines for word in line.partition("#")[0].split()]

    def arguments(self):
        """The command line."""
        parser = argparse.ArgumentParser(
            prog=f"tests/others/{self.name}",
            description=f"Runs {self.name} on lc and on dm-linear, in user-mode Linux.")
        parser.add_argument("checkout", type=pathlib.Path, help="the suite, built")
        parser.add_argument("tests", nargs="*", help=f"default: {self.list_file}")
        if len(self.flavours) > 1:
            parser.add_argument("--fs", choices=self.flavours, help="only this one")
        parser.add_argument("--jobs", type=int, default=max(1, host.jobs() // 2),
                            help="guests at a time")
        parser.add_argument("--cpus", type=int, default=2, help="processors of a guest")
        parser.add_argument("--timeout", type=int, default=180, help="seconds a test may take")
        parser.add_argument("--memory", default="5G", help="of a guest, its disks included")
        parser.add_argument("--again", metavar="REGEX",
                            help="run again what matches, as in ext4-lc-generic/001")
        parser.add_argument("--suspects", action="store_true",
                            help="on dm-linear, run only what has failed on lc")
        parser.add_argument("--fresh", action="store_true", help="forget all results")
        return parser.parse_args()

    def main(self):
        """The command line; exit 1 if a test fails on lc that does not on dm-linear."""
        args = self.arguments()
        scale = float(os.environ.get("LC_TIMEOUT_SCALE", "1"))
        args.timeout = int(args.timeout * scale)
        flavours = (args.fs,) if getattr(args, "fs", None) else self.flavours
        tests = args.tests or self.default_tests()
        self.folder.mkdir(parents=True, exist_ok=True)
        with host.locked("run", self.folder):
            results = Results(self.folder / "results.json")
            if args.fresh or args.again:
                results.forget(args.again or "")
            plan = Plan(self, flavours, tests, results, args.suspects)
            if plan.shares:
                self.work(plan, args)
            text = report(f"{self.name} on lc and on dm-linear", results, flavours, tests)
        (self.folder / "report.md").write_text(text, encoding="utf-8")
        print(text.partition("\n## Figures")[0])
        print(text.partition("## Figures\n")[2].partition("\n## ")[0].strip())
        host.say(f"report: {self.folder / 'report.md'}")
        missing = [key for key in plan.wanted() if results.verdict(*key) is None]
        return 1 if missing or differences(results, flavours, tests) else 0

    def work(self, plan, args):
        """Run what is left."""
        if not (args.checkout / "check").exists():
            sys.exit(f"{args.checkout} is not a checkout of {self.name}")
        kernel = kernels.get("uml")
        with host.locked("build", host.BUILD):
            made = files(kernel, args.checkout, self.folder / "files")
        shutil.rmtree(self.folder / "boots", ignore_errors=True)
        while plan.shares:
            workers = [Worker(plan, kernel, made, args) for _ in range(args.jobs)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
                if worker.error:
                    raise worker.error
            plan.refill()
