# SPDX-License-Identifier: GPL-2.0-only
"""The tables in docs/ are those of the code."""

import re

from lib import coverage, host, mutation
from lib.coverage import section, text_of

DOCS = host.TOP / "docs"
MODULE = host.TOP / "dm-lc"
SIZES = {"u8": 1, "char": 1, "le16": 2, "le32": 4, "le64": 8}


def test_options():
    """Names, ranges, defaults and whether a message may set them."""
    code = {}
    source = text_of(MODULE / "params.c")
    for name, low, high, preset, at_load in re.findall(
            r"^\tOPTION\((\w+), (\d+), (\d+), (\d+), (\w+)\)", source, re.M):
        code[name] = (f"{low} to {high}", preset, "no" if at_load == "true" else "yes")
    for name, preset in re.findall(r"^\tSWITCH\((\w+), (\d)\)", source, re.M):
        code[name] = ("``on``, ``off``", "``on``" if preset == "1" else "``off``", "yes")
    rows = re.findall(r"^``(\w+)`` +(.+?)  +(\S+) +(yes|no) ",
                      section(text_of(DOCS / "dm-lc.rst"), "Options"), re.M)
    assert code and {name: tuple(rest) for name, *rest in rows} == code


def test_status_keys():
    """Every key the kernel prints is explained, in the same order."""
    source = text_of(MODULE / "status.c").partition("void lc_status_info(")[2].partition("\n}\n")[0]
    code = re.findall(r'DMEMIT\(" ?(\w+) %', source)
    rows = re.findall(r"^``(\w+)``  +\S", section(text_of(DOCS / "dm-lc.rst"), "Status"), re.M)
    assert code and rows == code


def structures():
    """{name: [(offset, bytes, type, field)]} of lc_format.h, laid out without padding."""
    source = text_of(MODULE / "lc_format.h")
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
             if name != "test_lc_shared" and f"def {name}(" not in host_tests]
    gone += [name for name in re.findall(r"mutant (\w[\w-]+)", table)
             if f'"{name}":' not in host_tests]
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
