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


@pytest.mark.parametrize("name", toolmutants.names())
def test_mutant_is_complete(name, copy):
    """It applies to the sources as they are, and names tests and hazards that exist."""
    mutant = toolmutants.load(name)
    toolmutants.refresh(copy)
    assert mutation.apply(mutant.path, copy)
    for test in mutant.tests:
        assert toolmutants.find_test(test)
    known = coverage.hazards()
    assert mutant.hazards and not [one for one in mutant.hazards if one not in known]


@pytest.mark.parametrize("missing", ("Breaks", "Hazard", "Caught-by"))
def test_incomplete_head_is_refused(missing, tmp_path):
    """The check above can fail: each line of the head is wanted."""
    path = tmp_path / "x.mutant"
    path.write_text(HARMLESS.replace(f"{missing}: ", "X: "), encoding="ascii")
    with pytest.raises(ValueError, match=missing):
        toolmutants.read(path)


def test_names_of_tests():
    """With and without parameters; what does not exist is refused."""
    assert toolmutants.find_test("test_format_discard") == \
        ["tools/test_lc_format.py::test_format_discard"]
    every = toolmutants.find_test("test_format_refuses")
    assert len(every) > 10 and toolmutants.find_test("test_format_refuses[ssd-ext4]")[0] in every
    with pytest.raises(ValueError, match="test_format_refuses.no-such"):
        toolmutants.find_test("test_format_refuses[no-such]")


def test_copy_follows_the_sources(tmp_path):
    """The next mutant is not built on top of the last one."""
    toolmutants.refresh(tmp_path)
    changed = tmp_path / "userland/pair.c"
    changed.write_text("broken", encoding="ascii")
    (tmp_path / "userland/stale.h").write_text("stale", encoding="ascii")
    kept = (tmp_path / "dm-lc/format/format.c").stat().st_mtime_ns
    toolmutants.refresh(tmp_path)
    assert changed.read_bytes() == (host.TOP / "userland/pair.c").read_bytes()
    assert not (tmp_path / "userland/stale.h").exists()
    assert (tmp_path / "dm-lc/format/format.c").stat().st_mtime_ns == kept


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
    tests = {test for name in toolmutants.names() for test in toolmutants.load(name).tests}
    assert lab.run(None, tests) == {}


@pytest.mark.long
def test_harmless_change_is_not_caught(lab, tmp_path):
    """Tests do not fail because they run in another place, or because something has changed."""
    path = tmp_path / "harmless.mutant"
    path.write_text(HARMLESS, encoding="ascii")
    assert lab.run(path, toolmutants.read(path).tests) == {}


@pytest.mark.long
@pytest.mark.parametrize("name", toolmutants.names())
def test_mutant_is_caught(name, lab):
    """One of the tests it names fails."""
    mutant = toolmutants.load(name)
    if not lab.hunt(mutant):
        pytest.fail(f"{name} ({mutant.breaks}) passed {' '.join(mutant.tests)}", pytrace=False)
