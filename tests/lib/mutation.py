# SPDX-License-Identifier: GPL-2.0-only
"""Mutants: small deliberate faults, as records that name a function instead of line numbers.

A record has a head of fields and one or more edits:

    Breaks: what no longer holds
    Hazard: L13

    @@ dm-lc/writeback/collect.c walk_segment
                         return -EREMOTEIO;
    -            slot++;
    +            break;

The lines of an edit are as in a unified diff.  Those that begin with a blank or a minus must
stand in the function exactly once.  The scope is the name of a function, `struct NAME`,
`enum NAME`, or `-` for the whole file.  If the file no longer holds the scope, the only file
below the same first folder that does is taken, so that a function may move.
"""

import dataclasses
import json
import pathlib
import re

from . import host

SUFFIX = ".mutant"


@dataclasses.dataclass(frozen=True)
class Edit:
    """One replacement of lines in a scope."""

    file: str
    scope: str
    lines: tuple     # with their first character

    def old(self):
        """The lines before."""
        return [line[1:] for line in self.lines if line[0] in " -"]

    def new(self):
        """The lines after."""
        return [line[1:] for line in self.lines if line[0] in " +"]


@dataclasses.dataclass(frozen=True)
class Record:
    """A parsed record."""

    path: pathlib.Path
    head: str
    edits: tuple

    @property
    def name(self):
        """Of the mutant."""
        return self.path.stem

    def field(self, name, default=None):
        """A field of the head; ValueError if it is missing and there is no default."""
        found = re.search(rf"^{name}: (\S.*)$", self.head, re.M)
        if not found and default is None:
            raise ValueError(f"{self.path.name}: no line {name}:")
        return found[1] if found else default


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A record, and what its head says."""

    name: str
    path: pathlib.Path
    breaks: str
    hazards: tuple
    tests: tuple     # names of tests or guest cases; one of them must fail
    kernel: str


def records(folder):
    """The paths of all records there."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def load(path, kernel=None):
    """The mutant of a record; ValueError if its head is not complete.

    With `kernel` the head need not name one.
    """
    record = read(path)
    return Mutant(record.name, path, record.field("Breaks"), tuple(record.field("Hazard").split()),
                  tuple(record.field("Caught-by").split()), record.field("Kernel", kernel))


def read(path):
    """Parse a record; ValueError says what is wrong with it."""
    head, *edits = re.split(r"^@@ ", path.read_text(encoding="ascii"), flags=re.M)
    if not edits:
        raise ValueError(f"{path.name}: no edit")
    return Record(path, head, tuple(parse_edit(path, text) for text in edits))


def parse_edit(path, text):
    """One edit, without its `@@ `."""
    place, *lines = text.rstrip("\n").split("\n")
    words = place.split(" ", 1)
    # An editor may have taken the blank of an empty line.
    lines = tuple(line or " " for line in lines)
    if len(words) != 2 or any(line[0] not in " -+" for line in lines):
        raise ValueError(f"{path.name}: no edit: @@ {place}")
    edit = Edit(*words, lines)
    if not edit.old() or edit.old() == edit.new():
        raise ValueError(f"{path.name}: the edit changes no line: @@ {place}")
    return edit


def span(lines, scope):
    """(first, behind) of a scope's lines; None if it is not defined there."""
    if scope == "-":
        return 0, len(lines)
    kind, _, name = scope.rpartition(" ")
    if kind:
        begin = re.compile(rf"(static |const |typedef )*{kind} {name} \{{")
    else:
        begin = re.compile(rf"[A-Za-z_].*\b{name}\(|{name}\(")
    for first, line in enumerate(lines):
        if begin.match(line) and (kind or is_definition(lines, first)):
            end = next((at for at in range(first, len(lines)) if lines[at].startswith("}")), None)
            return None if end is None else (first, end + 1)
    return None


def is_definition(lines, first):
    """Does a body follow, and not the end of a declaration?"""
    for line in lines[first:]:
        if line.startswith("{"):
            return True
        if line.endswith(";") or not line or line.startswith("}"):
            return False
    return False


def locate(edit, tree):
    """(path, lines, first, behind) of the edit's scope; ValueError if it is not one place."""
    top = edit.file.split("/", 1)[0]
    paths = [tree / edit.file]
    if not paths[0].is_file() or not span(lines_of(paths[0]), edit.scope):
        if edit.scope == "-":
            raise ValueError(f"there is no {edit.file}")
        paths = sorted(path for path in (tree / top).rglob("*.[ch]")
                       if span(lines_of(path), edit.scope))
    if len(paths) != 1:
        found = ", ".join(str(path.relative_to(tree)) for path in paths) or "nowhere"
        raise ValueError(f"{edit.scope} of {edit.file}: found {found}")
    lines = lines_of(paths[0])
    return paths[0], lines, *span(lines, edit.scope)


def lines_of(path):
    """Of a source file."""
    return path.read_text(encoding="utf-8").split("\n")


def apply_edit(edit, tree):
    """Change one file of a tree; ValueError if the old lines do not stand there once."""
    path, lines, first, behind = locate(edit, tree)
    old = edit.old()
    places = [at for at in range(first, behind - len(old) + 1) if lines[at:at + len(old)] == old]
    if len(places) != 1:
        raise ValueError(f"{edit.file} {edit.scope}: the old lines stand there {len(places)} "
                         f"times:\n" + "\n".join(old))
    at = places[0]
    lines[at:at + len(old)] = edit.new()
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def apply(path, tree):
    """Apply a record to a tree; returns the paths that have changed."""
    return [apply_edit(edit, tree) for edit in read(path).edits]


def refresh(tree, wanted):
    """Make a copy equal to the sources; what is equal keeps its time, for make's sake.

    `wanted` are paths below the top; any other source in the copy goes.
    """
    present = {path.relative_to(tree) for path in tree.rglob("*")
               if path.suffix in (".c", ".h") and not path.name.endswith(".mod.c")}
    for stale in present - wanted:
        (tree / stale).unlink()
    for path in wanted:
        data = (host.TOP / path).read_bytes()
        target = tree / path
        if not target.exists() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def report(stem, columns, results):
    """build/STEM.json and build/STEM.md: the mutants of a run; columns are {title: key}."""
    (host.BUILD / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n",
                                             encoding="ascii")
    rows = [columns, ["---"] * len(columns)]
    for got in results:
        row = {**got, "hazards": " ".join(got["hazards"]),
               "caught_by": got["caught_by"] or "NOT CAUGHT"}
        rows.append([str(row[key]) for key in columns.values()])
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    (host.BUILD / f"{stem}.md").write_text(text, encoding="ascii")
