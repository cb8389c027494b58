# SPDX-License-Identifier: GPL-2.0-only
"""docs/coverage.rst: what shows that each fault, hazard and bug of the peer is covered.

All of the page is made from the cases, mutants and models; `make tables` writes it.
"""

import re
import sys

from . import guests, host, mutation

PAGE = host.TOP / "docs/coverage.rst"
# The numbered bugs of dm-writeboost 2.2.19, and what fails if they are built into dm-lc.
PEER_BUGS = (
    ("Wrapped log, torn write, header sector not landed: replay stops at its first step and all "
     "dirty data is gone",
     "explore/stop-rule-early, explore/r3-tail-ignored, states.three_hundred"),
    ("Ids are not checked for rising order: behind a lost segment the last lap's are replayed over "
     "flushed data", "explore/r4-gap, explore/r7-off, dm_lc_replay/one_life"),
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
     "model/ring MUT_NO_WAKE, model/ring MUT_NO_WISH (no timer runs there), dm_lc_log/sleepers, "
     "dm_lc_ring/no_lost_wakeup"),
    ("Its own writeback counts as load, so it throttles itself",
     "mutants/writeback_counts_as_load, hazards.idle_drain_does_not_stop_itself"),
    ("Cache full: batches of one segment with a FLUSH of the hard disk each",
     "mutants/batches_of_one_segment, hazards.full_cache_drains_in_large_batches"),
    ("A clean block that the SSD cannot deliver is an I/O error although the hard disk has it",
     "errors.clean_block_is_read_from_the_hdd"),
    ("Buffers leak on remove", "life.table_round_trips (kmemleak), life.ten_rounds_debug"),
)


def text_of(path):
    """A source file."""
    return path.read_text(encoding="utf-8")


def section(text, title):
    """What stands below a heading, up to the next one."""
    body = re.split(rf"^{re.escape(title)}\n[=-]+$", text, maxsplit=1, flags=re.M)[1]
    return re.split(r"^[^\n=-].*\n(?:={3,}|-{3,})$", body, maxsplit=1, flags=re.M)[0]


def fault_table():
    """The table of faults, made from the cases."""
    rows = sorted((case.fault, case.name) for case in guests.cases(host.TESTS / "guest/cases")
                  if case.fault)
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 6 24 44 26", "",
             "   * - where", "     - what", "     - required", "     - test"]
    for (where, what, required), name in rows:
        lines += [f"   * - {where}", f"     - {what}", f"     - {required}", f"     - {name}"]
    return "\n".join(lines) + "\n"


def hazards():
    """{number: what fails without the rule}: mutants of module, tools and models."""
    design = section(text_of(host.TOP / "docs/design.rst"), "Hazards")
    found = {number: [] for number in re.findall(r"^   \* - ([A-Z]\d+)$", design, re.M)}
    for folder in ("mutants", "tools/mutants", "explore/mutants", "explore/mutants/memory"):
        for path in mutation.records(host.TESTS / folder):
            for number in re.findall(r"\b[A-Z]\d+\b", mutation.read(path).field("Hazard")):
                found.get(number, []).append(f"{folder.replace('/mutants', '')}/{path.stem}")
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


def peer_table():
    """The table of the peer's bugs and what shows that they are not here."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 5 50 45", "",
             "   * - no.", "     - bug", "     - fails if it were here"]
    for number, (bug, names) in enumerate(PEER_BUGS, 1):
        lines += [f"   * - {number}", f"     - {bug}", f"     - {names}"]
    return "\n".join(lines) + "\n"


def page():
    """All of docs/coverage.rst."""
    return f"""\
.. SPDX-License-Identifier: GPL-2.0-only

=============
What is shown
=============

This page is made from the tests by ``make tables``; ``tests/test_docs.py`` compares it.

Faults
======

Each fault that a disk can show has a case. In all of them nothing hangs and ``dmsetup remove``
ends. A FLUSH alone that fails and a device that is pulled out have no case.

{fault_table()}
Hazards
=======

For each hazard of docs/design.rst: the mutants of the module (``mutants/``, a guest case must
catch them), of the tools (``tools/``, a host test must), of what the explorer runs (``explore/``)
and of the models, which leave out what closes it.

{hazard_table()}
Bugs of dm-writeboost
=====================

The bugs that reading dm-writeboost 2.2.19 has shown, and what fails if the same is built into this
module. Mutants are named as above, ``suite/case`` is KUnit, ``test_...`` is in ``tests/tools/``,
and the rest are guest cases. Where only tests are named, that they would fail is argued, not seen.

{peer_table()}"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
