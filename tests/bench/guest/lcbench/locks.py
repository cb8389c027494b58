# SPDX-License-Identifier: GPL-2.0-only
"""What lock_stat counts (Documentation/locking/lockstat.rst)."""

import pathlib
import re

STAT = pathlib.Path("/proc/lock_stat")
SWITCH = pathlib.Path("/proc/sys/kernel/lock_stat")
CONTENTIONS = 1              # columns after a class: con-bounces, contentions, ...
# Whose code waits: the module named after a point, as in "lc_lane_reserve+0x2f/0x90 [dm_lc]".
MODULES = {"dm-lc": "dm_lc", "dm-writecache": "dm_writecache", "dm-cache": "dm_cache",
           "bcache": "bcache", "dm-linear": "dm_mod"}


def start():
    """Count from zero."""
    STAT.write_text("0", encoding="ascii")
    SWITCH.write_text("1", encoding="ascii")


def stop():
    """Count no more; returns {class: (contentions, modules that waited)}."""
    SWITCH.write_text("0", encoding="ascii")
    return parse(STAT.read_text(encoding="utf-8"))


def parse(text):
    """The classes of a report that were waited for.

    After a class come two blocks of points, each begun by a line of dashes: who waited, and who
    was waited for.
    """
    found = {}
    name, waiting = None, False
    for line in text.splitlines():
        head = re.match(r"\s*(\S.*?):\s+(\d[\d. ]*)$", line)
        if head:
            name = head[1]
            count = int(head[2].split()[CONTENTIONS])
            waiting = False
            if count:
                found[name] = (count, set())
        elif re.fullmatch(r"\s*-+", line):
            waiting = not waiting
        elif waiting and name in found:
            point = re.search(r"\[<.*>\]\s+\S+(?:\s+\[(\w+)\])?$", line)
            if point and point[1]:
                found[name][1].add(point[1])
    return found


def per_write(found, system, writes):
    """Contentions per write: of classes that the system's own code waited for, and of all."""
    own = sum(count for count, modules in found.values() if MODULES[system] in modules)
    return {"own": own / writes, "all": sum(count for count, _ in found.values()) / writes}
