# SPDX-License-Identifier: GPL-2.0-only
"""The runs of other people's suites (tests/others/): what they make of what they see.

The parts that need no guest, and, with --long, a suite made up for it, in guests.
"""

import importlib.util
import json
import subprocess
import sys

import pytest

from lib import host, kernels
from others import suite

SPEC = importlib.util.spec_from_file_location("suites", host.TESTS / "others/guest/suites.py")
suites = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(suites)

HEAD = "FSTYP         -- ext4\n\n"
XFSTESTS = {
    "passed": "generic/001 4s ...  3s\n",
    "not run": "generic/001       [not run] no thin_check\n",
    "failed": "generic/001       - output mismatch (see /r/generic/001.out.bad)\n    -1\n",
}
BLKTESTS = {
    "passed": "block/003 => test (run)                    [passed]\n    runtime  1.2s\nEXIT 0\n",
    "failed": "block/003 => test (run)                    [failed]\n    runtime  1.2s\nEXIT 1\n",
    "not run": "block/003 => test (run)                    [not run]\n    no discard\nEXIT 0\n",
}


@pytest.mark.parametrize("verdict", XFSTESTS)
def test_xfstests_is_understood(verdict):
    """The words of `check`, of a test among others and of the last one."""
    reader = suites.Xfstests({"flavour": "ext4"})
    for following, behind in (("generic/002", "generic/002    "), (None, "Ran: generic/001\n")):
        text = HEAD + XFSTESTS[verdict] + behind
        assert not reader.ended("generic/001", following, text.removesuffix(behind))
        assert reader.ended("generic/001", following, text)
        told, rest = reader.cut("generic/001", following, text)
        got, reason = reader.judge("generic/001", told)
        assert got == verdict and ("no thin_check" in reason or verdict != "not run")
        assert rest == behind


@pytest.mark.parametrize("text", ["", "check: failed to mkfs $SCRATCH_DEV", "generic/001 ",
                                  "generic/001 - no such test?\n", "generic/001 3s _check_dmesg\n"])
def test_xfstests_that_did_not_run_it(text):
    """Nothing about the test, or more than its time, is no success."""
    assert suites.Xfstests.judge("generic/001", HEAD + text)[0] == "failed"


@pytest.mark.parametrize("verdict", BLKTESTS)
def test_blktests_is_understood(verdict):
    """The same for the other suite."""
    assert suites.Blktests.judge("block/003", BLKTESTS[verdict])[0] == verdict


def test_differences_come_first(tmp_path):
    """Only what is bad on lc alone counts; results survive the program."""
    results = suite.Results(tmp_path / "results.json")
    both = {"a": ("passed", "passed"), "b": ("failed", "passed"), "c": ("failed", "timeout"),
            "d": ("passed", "failed"), "e": ("panic", "not run"), "f": ("hang", None)}
    for test, verdicts in both.items():
        for target, verdict in zip(suite.TARGETS, verdicts, strict=True):
            if verdict:
                results.add("xfs", target, test, verdict=verdict, reason="because", seconds=1)
    again = suite.Results(tmp_path / "results.json")
    assert suite.differences(again, ["xfs"], both) == [("xfs", "b"), ("xfs", "e")]
    text = suite.report("title", again, ["xfs"], both)
    assert text.index("xfs b: failed on lc") < text.index("## Figures")
    assert "| xfs | lc | 6 | 2 | 4 | 0 | 0 | 6 |" in text
    assert "| xfs | linear | 6 | 2 | 2 | 1 | 1 | 5 |" in text
    again.forget("xfs-lc-[bc]")
    assert again.verdict("xfs", "lc", "b") is None and again.verdict("xfs", "linear", "b")


def test_plan_leaves_out_what_is_done(tmp_path):
    """A second run goes on where the first one stopped."""
    results = suite.Results(tmp_path / "results.json")
    results.add("ext4", "lc", "a", verdict="passed", reason="", seconds=1)
    plan = suite.Plan(None, ["ext4"], ["a", "b"], results)
    assert plan.take()[:3] == ("ext4", "lc", ["b"])
    assert plan.take()[:3] == ("ext4", "linear", ["a", "b"]) and plan.take() is None


def test_suspects_are_run_on_linear(tmp_path):
    """What has passed on lc need not run on dm-linear; what has not run there yet is none."""
    results = suite.Results(tmp_path / "results.json")
    for test, verdict in (("a", "passed"), ("b", "panic"), ("c", "not run"), ("d", "failed")):
        results.add("xfs", "lc", test, verdict=verdict, reason="", seconds=1)
    results.add("xfs", "linear", "d", verdict="failed", reason="", seconds=1)
    plan = suite.Plan(None, ["xfs"], ["a", "b", "c", "d", "e"], results, suspects=True)
    assert plan.take()[:3] == ("xfs", "lc", ["e"])
    assert plan.take() == ("xfs", "linear", ["b"], 2) and plan.take() is None
    results.add("xfs", "linear", "b", verdict="passed", reason="", seconds=1)
    results.add("xfs", "lc", "e", verdict="timeout", reason="", seconds=1)
    plan.refill()       # boots are counted on: their folders are kept
    assert plan.take() == ("xfs", "linear", ["e"], 3) and plan.take() is None


def test_lists_name_each_test_once():
    """As long as promised."""
    for name, prefix, least in (("generic.list", "generic/", 170), ("block.list", "block/", 5)):
        tests = suite.Suite("x", ("y",), name).default_tests()
        assert len(tests) == len(set(tests)) >= least
        assert all(test.startswith(prefix) for test in tests)


def test_later_fragment_wins():
    """uml.config takes lines of base.config back."""
    lines = kernels.merged("CONFIG_A=y\n# a word\nCONFIG_B=m\n# CONFIG_A is not set\n")
    assert lines == ["# CONFIG_A is not set", "CONFIG_B=m"]


CHECK = """#!/bin/bash
[ "$1" = --exact-order ] && shift || exit
for test; do
	echo "run fstests $test at now" > /dev/kmsg
	printf '%s ' "$test"
	case $test in
	generic/1) mount $TEST_DEV /mnt/test && umount /mnt/test || exit ;;
	generic/2) echo "[not run] never"; continue ;;
	generic/3) printf -- '- output mismatch ' ;;
	generic/4) until grep -q '"test": "generic/3"' /run/out/events; do :; done
		echo c > /proc/sysrq-trigger ;;
	generic/5) sleep 1000 ;;
	generic/6) echo "BUG: made up" > /dev/kmsg ;;
	generic/7) [ "$(dmsetup table scratch | cut -d' ' -f3)" = linear ] || printf 'worse ' ;;
	esac
	echo " 1s"
done
echo "Ran: $*"
"""
EXPECTED = {"1": "passed", "2": "not run", "3": "failed", "4": "panic", "5": "timeout",
            "6": "failed", "7": "failed", "8": "passed"}


@pytest.mark.long
@pytest.mark.parametrize("suspects", [False, True])
def test_made_up_suite(tmp_path, suspects):
    """Each way for a test to end, in guests; what fails on lc alone is told, by the exit code."""
    (tmp_path / "check").write_text(CHECK, encoding="ascii")
    (tmp_path / "check").chmod(0o755)
    tests = [f"generic/{number}" for number in EXPECTED]
    program = tmp_path / "run.py"
    program.write_text(
        f"import pathlib, sys\nsys.path.insert(0, {str(host.TESTS)!r})\n"
        "from others.suite import Suite\n"
        "suite = Suite('xfstests', ('ext4',), 'generic.list')\n"
        f"suite.folder = pathlib.Path({str(tmp_path / 'out')!r})\nsys.exit(suite.main())\n",
        encoding="ascii")
    options = ["--suspects"] if suspects else []
    done = subprocess.run([sys.executable, program, "--timeout", "20", *options, tmp_path, *tests],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    rows = json.loads((tmp_path / "out/results.json").read_text(encoding="utf-8"))
    got = {(row["target"], row["test"].partition("/")[2]): row["verdict"] for row in rows}
    wanted = {("lc", test): verdict for test, verdict in EXPECTED.items()}
    wanted |= {("linear", test): verdict for test, verdict in EXPECTED.items()
               if verdict in suite.BAD or not suspects}
    wanted["linear", "7"] = "passed"
    assert got == wanted, done.stdout
    assert done.returncode == 1 and "1 of the tests fail on lc" in done.stdout
    for target in suite.TARGETS:
        assert list((tmp_path / "out/boots").glob(f"ext4-{target}-*")), f"no boots of {target}"
