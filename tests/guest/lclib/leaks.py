# SPDX-License-Identifier: GPL-2.0-only
"""kmemleak, where the kernel has it."""

import pathlib
import select

FILE = pathlib.Path("/sys/kernel/debug/kmemleak")
# The kernel does not report an object younger than this (mm/kmemleak.c, 5 s).
AGE = 5.5


def tell(word):
    """Write a command, if kmemleak is there."""
    if FILE.exists():
        FILE.write_text(word, encoding="ascii")


def begin():
    """No scans of the kernel's own, and nothing that was there before counts."""
    tell("scan=off")
    tell("clear")


def found():
    """What leaked since begin() or the last found(): report text, empty if nothing."""
    if not FILE.exists():
        return ""
    tell("scan")
    # Not a test waiting for luck: the age is the condition kmemleak sets.
    select.select([], [], [], AGE)
    tell("scan")
    report = FILE.read_text(encoding="utf-8", errors="replace")
    tell("clear")
    return report
