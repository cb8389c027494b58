# SPDX-License-Identifier: GPL-2.0-only
"""kmemleak, where the kernel has it."""

import pathlib
import re
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


def jiffies():
    """The kernel's clock, as kmemleak stamps objects with it."""
    with open("/proc/timer_list", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("jiffies:"):
                return int(line.split()[1])
    raise LookupError("no jiffies in /proc/timer_list")


def found():
    """What leaked since begin(): a list of (jiffies of the allocation, report)."""
    if not FILE.exists():
        return []
    tell("scan")
    # Not a test waiting for luck: the age is the condition kmemleak sets.
    select.select([], [], [], AGE)
    tell("scan")
    report = FILE.read_text(encoding="utf-8", errors="replace")
    objects = re.split(r"^(?=unreferenced object)", report, flags=re.M)[1:]
    return [(int(re.search(r"jiffies (\d+)", text).group(1)), text) for text in objects]
