# SPDX-License-Identifier: GPL-2.0-only
"""The module's KUnit suites, one case each, on the kernel that has KUnit.

The suites are linked into the module and run when it is loaded; KUnit's filter leaves
one of them at a time, so that a fault in the kernel log has one suite to blame.  Before 6.6 the
filter does not know modules: all suites run for the first case, and each case judges its own.
"""

import pathlib
import re

from lclib import case, sh

MODULE = pathlib.Path("/opt/dm-lc/kunit/dm-lc.ko")
RESULTS = pathlib.Path("/sys/kernel/debug/kunit")
FILTER = pathlib.Path("/sys/module/kunit/parameters/filter_glob")
UNFILTERED = pathlib.Path("/run/lc-kunit")  # of a kernel without the filter: a file for each suite


def suites():
    """Their names: from the sources on the host, from the payload's list in the guest."""
    listed = MODULE.parent / "suites"
    if listed.exists():
        return listed.read_text(encoding="ascii").split()
    folder = pathlib.Path(__file__).resolve().parents[3] / "dm-lc/tests"
    found = []
    for path in sorted(folder.glob("*_kunit.c")):
        text = path.read_text(encoding="utf-8")
        found += re.findall(r"^static struct kunit_suite \w+ = \{\s*\.name = \"(\w+)\"", text, re.M)
    return found


def verdict(ctx, ktap, suite):
    """Judge the suite by its KTAP: every test of it must be ok, and there must be one."""
    # Before 6.3 with a dash.
    tests = re.findall(r"^ {4}(ok|not ok) \d+ (?:- )?(\S+)(?: # SKIP ?(.*))?$", ktap, re.M)
    ctx.figure("tests", len(tests))
    ctx.figure("not run", [f"{name}: {why or 'no reason'}" for _, name, why in tests
                           if f"{name} # SKIP" in ktap])
    whole = re.findall(rf"^(ok|not ok) \d+ (?:- )?{suite}", ktap, re.M)
    failed = [name for result, name, _ in tests if result != "ok"]
    assert tests, f"suite {suite} ran no test:\n{ktap}"
    assert not failed and whole == ["ok"], f"{suite}: {' '.join(failed)} failed\n{ktap[-4000:]}"


def run(ctx, suite):
    """Load the module with only this suite let through, and read what came of it."""
    if not MODULE.exists():
        ctx.skip("the module was not built with its KUnit suites")
    known = UNFILTERED / suite
    if known.exists():
        verdict(ctx, known.read_text(encoding="utf-8"), suite)
        return
    sh.run("modprobe", "kunit", "enable=1", "autorun=1")
    filtered = FILTER.exists()
    if filtered:
        FILTER.write_text(suite, encoding="ascii")
    for needed in ("dm-mod", *needs()):
        sh.run("modprobe", needed)
    sh.run("insmod", MODULE)
    try:
        ktaps = {name: ktap_of(name) for name in ([suite] if filtered else suites())}
    finally:
        sh.run("rmmod", "dm_lc")
    if not filtered:
        UNFILTERED.mkdir()
        for name, ktap in ktaps.items():
            (UNFILTERED / name).write_text(ktap, encoding="utf-8")
    verdict(ctx, ktaps[suite], suite)


def ktap_of(suite):
    """What it said; nothing if it is not there."""
    path = RESULTS / suite / "results"
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def needs():
    """The modules that the module depends on."""
    listed = sh.run("modinfo", "-F", "depends", MODULE).strip()
    return [name for name in listed.split(",") if name]


def register(suite):
    """One case for one suite."""
    def function(ctx):
        run(ctx, suite)
    function.__name__ = suite
    function.__module__ = __name__
    function.__doc__ = f"KUnit suite {suite}: every test of it is ok."
    case(kernels=("debug",), module="dm-lc-kunit", timeout=300)(function)


for _suite in suites():
    register(_suite)
if not suites():
    @case(kernels=("debug",), module="")
    def no_suites(ctx):
        """Says that there is nothing to run."""
        ctx.skip("dm-lc/tests has no *_kunit.c yet")
