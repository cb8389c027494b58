# SPDX-License-Identifier: GPL-2.0-only
"""Would it be noticed? Broken variants of the tools, each of which some test must catch.

Each record in tests/tools/mutants/ breaks one rule; tests/lib/mutation.py has the format. With
--long each is built beside the tools, and one of the tests it names must fail with it; the same
tests must pass without. Which test caught which mutant is written to build/tool-mutants.md and
build/tool-mutants.json.
"""

import os
import subprocess
import sys

import pytest

from lib import coverage, host, mutation, toolmutants

RECORDS = mutation.records(toolmutants.FOLDER)
HARMLESS = """\
Breaks: Nothing: an option has another number.
Hazard: S21
Caught-by: test_format_refuses_odd_arguments[--bogus]

@@ userland/cmd-format.c -
-enum { OPT_NO_MARK = 256, OPT_DISCARD };
+enum { OPT_NO_MARK = 512, OPT_DISCARD };
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A folder for a copy of the sources."""
    return tmp_path_factory.mktemp("tools")


@pytest.fixture(scope="module")
def lab():
    """Where mutants are built and tested."""
    return toolmutants.Lab()


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_mutant_is_complete(path, copy):
    """It applies to the sources as they are, and names tests and hazards that exist."""
    mutant = toolmutants.load(path)
    toolmutants.refresh(copy)
    assert mutation.apply(mutant.path, copy)
    for test in mutant.tests:
        assert toolmutants.find_test(test)
    known = coverage.hazards()
    assert mutant.hazards and not [one for one in mutant.hazards if one not in known]


def test_names_of_tests():
    """With and without parameters; what does not exist is refused."""
    assert toolmutants.find_test("test_format_discard") == \
        ["tools/test_lc_format.py::test_format_discard"]
    every = toolmutants.find_test("test_format_refuses")
    assert len(every) > 10 and toolmutants.find_test("test_format_refuses[ssd-ext4]")[0] in every
    with pytest.raises(ValueError, match="test_format_refuses.no-such"):
        toolmutants.find_test("test_format_refuses[no-such]")


def test_tests_take_the_tools_of_a_copy(tmp_path):
    """Not those of this tree, if they are told so."""
    program = "from lib import tools; print(tools.USERLAND)"
    for env, where in (({}, host.TOP / "userland"), ({"LC_USERLAND": str(tmp_path)}, tmp_path)):
        done = subprocess.run([sys.executable, "-c", program], cwd=host.TESTS, check=True,
                              env={**os.environ, **env}, stdout=subprocess.PIPE, text=True)
        assert done.stdout == f"{where}\n"


@pytest.mark.parametrize("body, found", [
    ('<testcase name="a"/><testcase name="b"/>', {}),
    ('<testcase name="a"/><testcase name="b"><failure message="why"/></testcase>', {"b": "why"}),
    ('<testcase name="a"><failure message="why"/></testcase>'
     '<testcase name="a"><error message="a disk is left"/></testcase>', {"a": "why"}),
    ('<testcase name="a"/><testcase name="b"><error message="no disk"/></testcase>', "no disk"),
    ('<testcase name="a"><skipped message="no loops"/></testcase>', "no loops"),
    ("", "no test has run"),
], ids=["passed", "failed", "failed-untidily", "not-begun", "skipped", "none"])
def test_only_failures_count(tmp_path, body, found):
    """A test that could not begin or was skipped has not caught anything, nor has it passed."""
    path = tmp_path / "report.xml"
    path.write_text(f"<testsuites><testsuite>{body}</testsuite></testsuites>", encoding="ascii")
    if isinstance(found, dict):
        assert toolmutants.failures(path) == found
    else:
        with pytest.raises(RuntimeError, match=found):
            toolmutants.failures(path)


@pytest.mark.long
def test_passes_without_mutant(lab):
    """The tests that are to fail with a mutant pass without it."""
    tests = {test for path in RECORDS for test in toolmutants.load(path).tests}
    assert lab.run(None, tests) == {}


@pytest.mark.long
def test_harmless_change_is_not_caught(lab, tmp_path):
    """Tests do not fail because they run in another place, or because something has changed."""
    path = tmp_path / "harmless.mutant"
    path.write_text(HARMLESS, encoding="ascii")
    assert lab.run(path, toolmutants.load(path).tests) == {}


@pytest.mark.long
@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_mutant_is_caught(path, lab):
    """One of the tests it names fails."""
    mutant = toolmutants.load(path)
    if not lab.hunt(mutant):
        pytest.fail(f"{mutant.name} ({mutant.breaks}) passed {' '.join(mutant.tests)}",
                    pytrace=False)
