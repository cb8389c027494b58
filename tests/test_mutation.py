# SPDX-License-Identifier: GPL-2.0-only
"""Mutants as records: each change finds its function, and what is not one place is refused."""

import shutil

import pytest

from lib import host, mutation

SOURCE = """\
static int first(int a);

static int first(int a)
{
	a++;
	return a;
}

struct pair {
	int a;
};

static inline long
second(int a,
       int b)
{
	a++;
	a++;
	return a;
}
"""
HEAD = "Breaks: something\n\n"


@pytest.fixture
def tree(tmp_path):
    """A folder of sources with one file."""
    path = tmp_path / "dm-lc/one.c"
    path.parent.mkdir()
    path.write_text(SOURCE, encoding="ascii")
    return tmp_path


def apply(tree, *edits):
    """Apply edits to the tree; returns what has become of the first changed file."""
    path = tree / "x.mutant"
    path.write_text(HEAD + "\n".join(edits), encoding="ascii")
    return mutation.apply(path, tree)[0].read_text(encoding="ascii")


def test_changes_its_function_only(tree):
    """The same line stands in both functions."""
    text = apply(tree, "@@ dm-lc/one.c first\n-\ta++;\n+\ta--;\n \treturn a;\n")
    assert text == SOURCE.replace("a++", "a--", 1)


def test_scopes(tree):
    """A function whose type is on a line of its own, a structure, the file."""
    text = apply(tree, "@@ dm-lc/one.c second\n-\treturn a;\n+\treturn b;\n",
                 "@@ dm-lc/one.c struct pair\n-\tint a;\n+\tint c;\n",
                 "@@ dm-lc/one.c -\n static int first(int a)\n {\n+\ta = 0;\n")
    assert text.split("\n}\n")[0].endswith("{\n\ta = 0;\n\ta++;\n\treturn a;")
    assert "{\n\tint c;\n};" in text and text.endswith("\ta++;\n\treturn b;\n}\n")


def test_follows_a_function_that_moved(tree):
    """Also to another folder; its file may be gone."""
    (tree / "dm-lc/log").mkdir()
    (tree / "dm-lc/one.c").rename(tree / "dm-lc/log/two.c")
    assert "a--" in apply(tree, "@@ dm-lc/one.c first\n-\ta++;\n+\ta--;\n")


@pytest.mark.parametrize("edit, reason", (
    ("@@ dm-lc/one.c second\n-\ta++;\n", "2 times"),
    ("@@ dm-lc/one.c first\n-\tb++;\n", "0 times"),
    ("@@ dm-lc/one.c third\n-\ta++;\n", "nowhere"),
    ("@@ dm-lc/two.c -\n-\ta++;\n", "no dm-lc/two.c"),
    ("@@ dm-lc/one.c first\n \ta++;\n", "changes no line"),
    ("@@ dm-lc/one.c first\n+\ta++;\n", "changes no line"),
    ("@@ dm-lc/one.c\n-\ta++;\n", "no edit"),
    ("a++;\n", "no edit"),
))
def test_refused(tree, edit, reason):
    """What does not name one place, or changes nothing."""
    with pytest.raises(ValueError, match=reason):
        apply(tree, edit)
    assert (tree / "dm-lc/one.c").read_text(encoding="ascii") == SOURCE


def test_moved_to_two_files_is_refused(tree):
    """Two static functions of one name."""
    for name in ("two.c", "three.c"):
        (tree / "dm-lc" / name).write_text(SOURCE, encoding="ascii")
    (tree / "dm-lc/one.c").unlink()
    with pytest.raises(ValueError, match="three.c, dm-lc/two.c"):
        apply(tree, "@@ dm-lc/one.c first\n-\ta++;\n+\ta--;\n")


def test_head(tree):
    """A field that is missing is named."""
    path = tree / "x.mutant"
    path.write_text(HEAD + "@@ dm-lc/one.c first\n-\ta++;\n", encoding="ascii")
    record = mutation.read(path)
    assert (record.name, record.field("Breaks"), record.field("Options", "")) == \
        ("x", "something", "")
    with pytest.raises(ValueError, match="Hazard"):
        record.field("Hazard")


@pytest.mark.parametrize("path", [
    path for folder in ("explore/mutants", "explore/mutants/memory", "fuzz/mutants", "sim/mutants")
    for path in mutation.records(host.TESTS / folder)], ids=lambda path: path.stem)
def test_records_match_the_sources(path, tmp_path):
    """Of these, a run tries only some: each finds the lines that it changes."""
    for edit in mutation.read(path).edits:
        (tmp_path / edit.file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(host.TOP / edit.file, tmp_path / edit.file)
    mutation.apply(path, tmp_path)
