# SPDX-License-Identifier: GPL-2.0-only
"""The tables in docs/ are those of the code."""

import re

from lib import guests, host, mutation

DOCS = host.TOP / "docs"
MODULE = host.TOP / "dm-lc"
# The numbered bugs of dm-writeboost 2.2.19, and what fails if they are built into dm-lc.
PEER_BUGS = (
    ("Wrapped log, torn write, header sector not landed: replay stops at its first step and all "
     "dirty data is gone",
     "explore/stop-rule-early, explore/r3-tail-ignored, states.three_hundred"),
    ("Ids are not checked for rising order: behind a lost segment the last lap's are replayed over "
     "flushed data", "explore/r4-gap, explore/r7-off, dm_lc_replay/gap, mutant R4-gap-L1"),
    ("One rotten segment, even one already written back, hides all newer ones",
     "mutants/bad_header_ends_its_segment, explore/look-behind-off, explore/r5-off, "
     "test_check_lost_segment"),
    ("Write-around mode never flushes the hard disk",
     "mutants/degraded_flush_is_dropped, hazards.degraded_flush_reaches_the_hdd"),
    ("The error of the hard disk's FLUSH after writeback is ignored",
     "mutants/failed_hdd_flush_is_ignored, hazards.failed_hdd_flush_is_not_believed, "
     "explore/writer-hdd-failure-ignored"),
    ("32-bit segment offsets: caches over 2 TiB overwrite sector 0",
     "dm_lc_geometry/far_end"),
    ("Formats any device that lacks its magic", "test_format_refuses, test_resume_refuses"),
    ("A read of data in the RAM buffer always reads the hard disk first and stalls everybody",
     "faults.hung_hdd_is_waited_for"),
    ("Lost wake-up of up to 1 s on the flush path",
     "model/ring MUT_NO_WAKE, model/ring MUT_NO_RELIEF (no timer runs there), dm_lc_log/sleepers, "
     "dm_lc_segment/no_lost_wakeup"),
    ("Its own writeback counts as load, so it throttles itself",
     "mutants/writeback_counts_as_load, hazards.idle_drain_does_not_stop_itself"),
    ("Cache full: batches of one segment with a FLUSH of the hard disk each",
     "mutants/batches_of_one_segment, hazards.full_cache_drains_in_large_batches"),
    ("A clean block that the SSD cannot deliver is an I/O error although the hard disk has it",
     "errors.clean_block_is_read_from_the_hdd"),
    ("Buffers leak on remove", "life.table_round_trips (kmemleak), life.ten_rounds_debug"),
)
SIZES = {"u8": 1, "char": 1, "le16": 2, "le32": 4, "le64": 8}


def text_of(path):
    """A source file."""
    return path.read_text(encoding="utf-8")


def section(text, title):
    """What stands below a heading, up to the next one."""
    body = re.split(rf"^{re.escape(title)}\n[=-]+$", text, maxsplit=1, flags=re.M)[1]
    return re.split(r"^[^\n=-].*\n(?:={3,}|-{3,})$", body, maxsplit=1, flags=re.M)[0]


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


def test_invariants():
    """Each numbered invariant of the code is in the design, and the other way round."""
    rule = r"[BGNVWIR]\d"
    code = set()
    for path in MODULE.glob("*.[ch]"):
        code.update(re.findall(rf"^ \*  ({rule}) [A-Za-z`]", text_of(path), re.M))
    design = text_of(DOCS / "design.rst")
    assert code and set(re.findall(rf"^\* \*\*({rule})\*\*", design, re.M)) == code


def test_names_of_tests():
    """The tests that the tables of hazards and of the peer's bugs name exist."""
    table = section(text_of(DOCS / "design.rst"), "Hazards") + peer_table()
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
    host_tests = "".join(text_of(path) for path in sorted(host.TESTS.glob("test_*.py")))
    gone += [name for name in re.findall(r"\btest_\w+", table)
             if name != "test_tools" and f"def {name}(" not in host_tests]
    gone += [name for name in re.findall(r"mutant (\w[\w-]+)", table)
             if f'"{name}":' not in host_tests]
    for folder, where in (("mutants", "mutants"), ("explore", "explore/mutants")):
        gone += [f"{folder}/{name}" for name in re.findall(rf"\b{folder}/([\w-]+)", table)
                 if not (host.TESTS / where / f"{name}{mutation.SUFFIX}").exists()]
    gone += [f"{model} {name}" for model, name in re.findall(r"\bmodel/(\w+) (MUT_\w+)", table)
             if f" {name} " not in text_of(host.TESTS / f"model/{model}.pml")]
    assert not gone, gone


def fault_table():
    """The table of faults, made from the cases."""
    rows = sorted((case.fault, case.name) for case in guests.cases(host.TESTS / "guest/cases")
                  if case.fault)
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 6 24 44 26", "",
             "   * - where", "     - what", "     - required", "     - test"]
    for (where, what, required), name in rows:
        lines += [f"   * - {where}", f"     - {what}", f"     - {required}", f"     - {name}"]
    return "\n".join(lines) + "\n"


def test_fault_table():
    """The table in docs/testing.rst is that of the cases; if not, the right one is printed."""
    table = fault_table()
    assert table in text_of(DOCS / "testing.rst"), table


def hazards():
    """{number: what fails without the rule}: mutants of the module and of the models."""
    design = section(text_of(DOCS / "design.rst"), "Hazards")
    found = {number: [] for number in re.findall(r"^   \* - ([A-Z]\d+)$", design, re.M)}
    for folder in ("mutants", "explore/mutants"):
        for path in mutation.records(host.TESTS / folder):
            for number in re.findall(r"\b[A-Z]\d+\b", mutation.read(path).field("Hazard")):
                found.get(number, []).append(f"{folder.removesuffix('/mutants')}/{path.stem}")
    for path in sorted((host.TESTS / "model").glob("*.pml")):
        for number, name in re.findall(r"^ \*  Hazard: (\w\d+) +(MUT_\w+)", text_of(path), re.M):
            found.get(number, []).append(f"model/{path.stem} {name}")
    return found


def hazard_table():
    """The table of hazards and what shows that their rules are needed."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 8 92", "",
             "   * - hazard", "     - fails without its rule"]
    for number, names in hazards().items():
        lines += [f"   * - {number}", f"     - {', '.join(names) or 'not shown'}"]
    return "\n".join(lines) + "\n"


def test_hazard_table():
    """The table in docs/testing.rst is that of the mutants; if not, the right one is printed."""
    table = hazard_table()
    assert table in text_of(DOCS / "testing.rst"), table
    assert not [number for number, names in hazards().items() if not names]


def peer_table():
    """The table of the peer's bugs and what shows that they are not here."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 5 50 45", "",
             "   * - no.", "     - bug", "     - fails if it were here"]
    for number, (bug, names) in enumerate(PEER_BUGS, 1):
        lines += [f"   * - {number}", f"     - {bug}", f"     - {names}"]
    return "\n".join(lines) + "\n"


def test_peer_table():
    """The table in docs/testing.rst is that above; if not, the right one is printed."""
    table = peer_table()
    assert table in text_of(DOCS / "testing.rst"), table
