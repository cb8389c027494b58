# SPDX-License-Identifier: GPL-2.0-only
"""The tables in docs/ are those of the code, and that of README.md is the report's."""

import re

import pytest

from lib import coverage, host, mutation, tracepoints
from lib.coverage import section, text_of

DOCS = host.TOP / "docs"
MODULE = host.TOP / "dm-lc"
SIZES = {"u8": 1, "char": 1, "le16": 2, "le32": 4, "le64": 8}


def test_options():
    """Names, ranges, defaults and whether a message may set them."""
    code = {}
    source = text_of(MODULE / "format/params.c")
    for name, low, high, preset, at_load in re.findall(
            r"^\tOPTION\((\w+), (\d+), (\d+), (\d+), (\w+)\)", source, re.M):
        code[name] = (f"{low} to {high}", preset, "no" if at_load == "true" else "yes")
    for name, preset in re.findall(r"^\tSWITCH\((\w+), (\d)\)", source, re.M):
        code[name] = ("``on``, ``off``", "``on``" if preset == "1" else "``off``", "yes")
    for name, preset, words in re.findall(
            r"^\tWORDS\((\w+), \w+, \w+, LC_(\w+),\s+\"(.*)\"\)", source, re.M):
        code[name] = ("see `Cache modes`_", preset.lower(), "yes")
        assert all(f"``{word}``" in section(text_of(DOCS / "dm-lc.rst"), "Options")
                   for word in re.split(", | or ", words))
    rows = re.findall(r"^``(\w+)`` +(.+?) +(\S+) +(yes|no) ",
                      section(text_of(DOCS / "dm-lc.rst"), "Options"), re.M)
    assert code and {name: tuple(rest) for name, *rest in rows} == code


def test_tracepoints():
    """Every event is explained, and each field that its row names is one of it."""
    events = tracepoints.events()
    text = section(text_of(DOCS / "dm-lc.rst"), "Tracepoints")
    rows = re.findall(r"^``(lc_\w+)``(.*(?:\n {27}.*)*)", text, re.M)
    assert events and sorted(name for name, _ in rows) == sorted(events)
    modes = {"rw", "ro", "degraded", "fail"}
    for name, row in rows:
        told = set(re.findall(r"``(\w+)``", row)) - modes
        assert told <= events[name], name


def test_status_keys():
    """Every key the kernel prints is explained, in the same order."""
    source = text_of(MODULE / "status.c").partition("void lc_status_info(")[2].partition("\n}\n")[0]
    code = re.findall(r'DMEMIT\(" ?(\w+) %', source)
    rows = re.findall(r"^``(\w+)``  +\S", section(text_of(DOCS / "dm-lc.rst"), "Status"), re.M)
    assert code and rows == code


def structures():
    """{name: [(offset, bytes, type, field)]} of lc_format.h, laid out without padding."""
    source = text_of(MODULE / "format/lc_format.h")
    numbers = dict(re.findall(r"^#define (LC_\w+)\s+(\d+)", source, re.M))
    sizes, found = dict(SIZES), {}
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\} __packed", source, re.M | re.S):
        offset = 0
        found[name] = []
        for kind, field, count in re.findall(
                r"^\s+(?:struct )?(?:__)?(\w+)\s+(\w+)(?:\[(\w+)\])?;", body, re.M):
            length = sizes[kind] * int(numbers.get(count, count) or 1)
            found[name].append((offset, length, kind, field))
            offset += length
        sizes[name] = offset
    return found, sizes


def test_structures():
    """Every field of every structure, its offset and its size."""
    found, sizes = structures()
    tables = {}
    for name, size, body in re.findall(r"^``struct (\w+)``, (\d+) bytes:\n\n((?:.+\n)+)",
                                       text_of(DOCS / "on-disk-format.rst"), re.M):
        assert int(size) == sizes[name], name
        tables[name] = [(int(offset), int(length), kind, field) for offset, length, kind, field
                        in re.findall(r"^(\d+) +(\d+) +(\w+) +``(\w+)``", body, re.M)]
    assert found and tables == found


def hops(text):
    """[(file, function)] of the walk of a write and an fsync."""
    return [(file, function) for file, cell in
            re.findall(r"^   \* - ``([\w/]+\.c)``\n     - (``.*)$", text, re.M)
            for function in re.findall(r"``(\w+)\(\)``", cell)]


def lost_hops(text):
    """Those whose function its file does not define."""
    return [f"{file}: {function}" for file, function in hops(text)
            if not re.search(rf"^\w[\w \*]*\b{function}\(", text_of(MODULE / file), re.M)]


def test_walk():
    """Each hop of the walk is a function of its file."""
    walk = section(text_of(DOCS / "design.rst"), "A write and an fsync, hop by hop")
    assert len(hops(walk)) > 30
    assert not lost_hops(walk)
    assert lost_hops("   * - ``log/log.c``\n     - ``lc_map()``, ``lc_log_append()``\n") == [
        "log/log.c: lc_map"]


def test_names_of_tests():
    """The tests that the tables of hazards and of the peer's bugs name exist."""
    table = section(text_of(DOCS / "design.rst"), "Hazards") + coverage.peer_table()
    gone = []
    for suite, case in re.findall(r"\b(dm_lc_\w+)(?:/(\w+))?", table):
        files = [text for path in (MODULE / "tests").glob("*_kunit.c")
                 if f'.name = "{suite}"' in (text := text_of(path))]
        if not any(not case or f"({case})" in text or f"({case}," in text for text in files):
            gone.append(f"{suite}/{case}")
    guest = "|".join(path.stem for path in (host.TESTS / "guest/cases").glob("*.py"))
    for module, case in re.findall(rf"\b({guest})\.(\w+)", table):
        path = host.TESTS / f"guest/cases/{module}.py"
        if not re.search(rf"^def {case}\(", text_of(path), re.M):
            gone.append(f"{module}.{case}")
    host_tests = "".join(text_of(path) for path in sorted(host.TESTS.rglob("test_*.py")))
    gone += [name for name in re.findall(r"\btest_\w+", table)
             if f"def {name}(" not in host_tests]
    for folder, where in (("mutants", "mutants"), ("tools", "tools/mutants"),
                          ("explore", "explore/mutants")):
        gone += [f"{folder}/{name}"
                 for name in re.findall(rf"(?<!tests/)\b{folder}/([\w-]+)", table)
                 if not (host.TESTS / where / f"{name}{mutation.SUFFIX}").exists()]
    gone += [f"{model} {name}" for model, name in re.findall(r"\bmodel/(\w+) (MUT_\w+)", table)
             if f" {name} " not in text_of(host.TESTS / f"model/{model}.pml")]
    assert not gone, gone


def test_coverage():
    """docs/coverage.rst is what the tests make of it, and no hazard is without a mutant."""
    assert (DOCS / "coverage.rst").read_text(encoding="utf-8") == coverage.page(), "make tables"
    assert not [number for number, names in coverage.hazards().items() if not names]


# What README.md shows of each system: the start of a row, the number in its cells, the figure of
# the report, and what is 1 (or 100, with %): a fixed number or the raw disk's figure.
SHOWN = (
    ("a lone fsync: SSD", r"([\d.]+) commands?", "2b", "sync_1.ssd.commands", 1),
    ("a lone fsync: SSD", r"([\d.]+) KiB", "2b", "sync_1.ssd.kib", 1),
    ("a lone fsync: hard disk", r"([\d.]+) commands?", "2b", "sync_1.hdd.commands", 1),
    ("random 4 KiB writes", r"([\d.]+) commands? each", "4", "random.ssd.commands", 1),
    ("their speed, SSD in sequence", r"([\d.]+) %", "5", "bytes_s", "percent"),
    ("their speed, cache full", r"([\d.]+)", "13", "iops", "raw"),
    ("RAM for each cached", r"([\d.]+) B\b", "11", "per_block.live", 1),
)
# Figures of the report that show nothing but noise; the text says that they are not measured.
NOISE = {("bcache", "per_block.live")}
# What must be seen without scrolling: a file, how many lines of it, and texts.
FIRST_SCREENS = (
    ("README.md", 34, ("](docs/performance/throughput.png)",
                       "| | dm-lc | dm-writecache | bcache | dm-cache |",
                       "\nmake demo ", "\nmake test ")),
    ("docs/dm-lc.rst", 42, ("\n   lc-format --backing ", "\n   lc-resume ", "lc volume",
                            "|   SSD   |", "| hard disk |")),
)


def cells_of(line):
    """The cells of a table's row in Markdown, without bold."""
    return [cell.strip().replace("*", "") for cell in line.strip().strip("|").split("|")]


def figures_of(report):
    """{(row, figure): {system: number}} of the report; of figures named alike the first."""
    found = {}
    for row, body in re.findall(r"^### (\w+)\. .*\n\n((?:\|.*\n)+)", report, re.M):
        head, _, *lines = map(cells_of, body.splitlines())
        for name, *values in lines:
            numbers = {system: float(value.split()[0].replace(",", ""))
                       for system, value in zip(head[1:], values) if value}
            found.setdefault((row, name.partition(" (")[0]), numbers)
    return found


def wrong_figures(readme, report):
    """Cells of README.md's first table that are not the report's figure, rounded."""
    figures = figures_of(report)
    table = re.search(r"^\| \| dm-lc .*\n(?:\|.*\n)+", readme, re.M)[0]
    head, _, *rows = map(cells_of, table.splitlines())
    wrong = []
    for start, pattern, row, name, unit in SHOWN:
        line, = [cells for cells in rows if cells[0].startswith(start)]
        for system, cell in zip(head[1:], line[1:]):
            if (system, name) in NOISE:
                if "not measured" not in cell:
                    wrong.append((system, name))
                continue
            values = figures[row, name]
            raw = values.get("raw", 0)
            right = values[system] / {"percent": raw / 100, "raw": raw}.get(unit, unit)
            shown = re.search(pattern, cell)
            # The report's own figures are rounded, too.
            slack = right * 0.003 + 0.5 / 10 ** len(shown[1].partition(".")[2]) if shown else 0
            if not shown or abs(float(shown[1]) - right) > slack:
                wrong.append((system, name))
    return wrong


def test_readme_figures():
    """The measured cells of README.md's table are those of the report."""
    assert not wrong_figures(text_of(host.TOP / "README.md"),
                             text_of(DOCS / "performance/report.md"))


def test_readme_figures_are_compared():
    """Each measured cell is noticed if it is another number."""
    readme, report = text_of(host.TOP / "README.md"), text_of(DOCS / "performance/report.md")
    for start, pattern, _, name, _ in SHOWN:
        line, = re.findall(rf"^\| {start}.*$", readme, re.M)
        for number, system in enumerate(("dm-lc", "dm-writecache", "bcache", "dm-cache"), 2):
            if (system, name) in NOISE:
                continue
            cells = line.split("|")
            at = re.search(pattern, cells[number])
            cells[number] = (f"{cells[number][:at.start(1)]}{float(at[1]) * 2 + 1}"
                             f"{cells[number][at.end(1):]}")
            assert wrong_figures(readme.replace(line, "|".join(cells)), report) == [(system, name)]
    assert wrong_figures(readme.replace("not measured", "measured"), report) == [
        ("bcache", "per_block.live")]


def below_first_screen(text, lines, wanted):
    """Those of the texts that are not in the first lines."""
    screen = "\n".join(text.splitlines()[:lines])
    return [what for what in wanted if what not in screen]


@pytest.mark.parametrize("name,lines,wanted", FIRST_SCREENS)
def test_first_screen(name, lines, wanted):
    """README.md begins with chart, table and commands, the guide with an example and a picture."""
    text = text_of(host.TOP / name)
    assert not below_first_screen(text, lines, wanted)
    assert below_first_screen("\n" * lines + text, lines, wanted) == list(wanted)


def headings(text, suffix):
    """The titles of its sections, without marks."""
    rule = r"^(\S.*)\n[=~-]{3,}$" if suffix == ".rst" else r"^#+ (.*)$"
    return {title.replace("`", "") for title in re.findall(rule, text, re.M)}


def anchor(title):
    """What follows the # of a link to a section, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def broken_links(path, text):
    """Links to files or sections that do not exist."""
    if path.suffix == ".md":
        links = re.findall(r"\]\(([^)\s]+)\)", text)
        names = []
    else:
        text = re.sub(r"``[^`]+``", "", text)
        links = re.findall(r"(?<!`)`[^`]*<([^>`\s]+)>`_", text)
        names = re.findall(r"(?<!`)`([^`<]+)`_", text)
    known = headings(text_of(path), path.suffix)
    broken = [name for name in names if " ".join(name.split()) not in known]
    for link in links:
        name, _, part = link.partition("#")
        if "://" in name:
            continue
        target = path.parent / name if name else path
        if not target.exists() or part and part not in map(
                anchor, headings(text_of(target), target.suffix)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("path", sorted([*host.TOP.glob("*.md"), *DOCS.rglob("*.md"),
                                         *DOCS.rglob("*.rst")]), ids=lambda path: path.name)
def test_links(path):
    """Links lead to files and sections that exist."""
    assert not broken_links(path, text_of(path))


def test_broken_links_are_found():
    """A file or a section that does not exist."""
    assert broken_links(host.TOP / "README.md", "[a](docs/no.rst) [b](docs/dm-lc.rst#no-such) "
                        "[c](docs/dm-lc.rst#options) [d](https://e.org/f)") == [
        "docs/no.rst", "docs/dm-lc.rst#no-such"]
    assert broken_links(DOCS / "dm-lc.rst", "`No such`_, `Known\n  limits`_, ``x`_``, "
                        "`d <no.md>`_, `e <performance.md>`_") == ["No such", "no.md"]
