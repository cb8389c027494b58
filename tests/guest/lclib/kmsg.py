# SPDX-License-Identifier: GPL-2.0-only
"""The kernel log: what appeared since the last look, and what of it is a fault."""

import errno
import os
import re

# A line that matches is a failure of the case during which it appeared.
FAULTS = re.compile("|".join((
    r"\bBUG\b", r"\bWARNING:", r"\bOops\b", r"\bKASAN\b", r"\bUBSAN\b", r"\bODEBUG\b",
    r"cut here", r"Call Trace:", r"Kernel panic", r"general protection fault",
    r"unable to handle", r"stack guard page", r"double fault",
    r"INFO: task .* blocked for more than", r"INFO: lockdep", r"INFO: trying to register",
    r"INFO: possible", r"possible .*(deadlock|locking)", r"suspicious RCU usage",
    r"inconsistent lock state", r"held lock freed", r"lock held when returning",
    r"rcu: INFO", r"self-detected stall", r"soft lockup", r"hard LOCKUP", r"workqueue lockup",
    r"list_(add|del).*corruption", r"refcount_t:", r"bad unlock balance",
    r"scheduling while atomic", r"sleeping function called", r"Bad page state",
    r"Slab corruption|Redzone|Object already free", r"kmemleak: [1-9]\d* new suspected",
)))
# The race detector reports races of the whole kernel; ours name dm-lc (or its test module).
RACE = re.compile(r"BUG: KCSAN: ")
OUR_RACE = re.compile(r"BUG: KCSAN: .*\[dm_lc\w*\]")
RULER = "=" * 20
# The page allocator, vmalloc, percpu and slab caches say with a trace that they failed.
NO_MEMORY = re.compile(r"page allocation failure: order|vmalloc error: size|"
                       r"percpu: allocation failed, size|"
                       r"kmem_cache_create\w*\(.*\) failed with error")
# The harness's own marks.
OURS = "dmlc-harness:"


class Log:
    """/dev/kmsg from a point in time on."""

    def __init__(self):
        self.handle = os.open("/dev/kmsg", os.O_RDWR | os.O_NONBLOCK)
        self.lost = False

    def fresh(self):
        """The lines that appeared since the last call, without prefix."""
        lines = []
        while True:
            try:
                record = os.read(self.handle, 8192).decode(errors="replace")
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten before it was read
                    self.lost = True
                    continue
                if error.errno == errno.EAGAIN:
                    return lines
                raise
            lines.append(record.partition(";")[2].splitlines()[0])

    def mark(self, text):
        """Put a line of our own into log and console, so that a person finds the place."""
        os.write(self.handle, f"<4>{OURS} {text}\n".encode())


def without_alien_races(lines):
    """The lines without reports of data races in which dm-lc took no part."""
    kept = []
    alien = False
    for line in lines:
        if RACE.search(line):
            alien = not OUR_RACE.search(line)
        if not alien:
            kept.append(line)
        elif line.startswith(RULER):
            alien = False
    return kept


def forgive(lines):
    """The lines without the heads of the traces that come with failed allocations."""
    kept = []
    failed = 0
    for line in lines:
        failed += bool(NO_MEMORY.search(line))
        if failed and line.strip() == "Call Trace:":
            failed -= 1
        else:
            kept.append(line)
    return kept


def faults(lines, no_memory=False):
    """Those lines that no case may cause, with a little of what follows.

    With no_memory, failed allocations are none.
    """
    lines = without_alien_races(lines)
    if no_memory:
        lines = forgive(lines)
    found = []
    for number, line in enumerate(lines):
        if OURS not in line and FAULTS.search(line):
            found.append(number)
    if not found:
        return []
    first = found[0]
    return [line for line in lines[first:first + 40] if OURS not in line]


def unfit(kernel, lockdep_stats):
    """Why no case can run on this boot, or "".

    The kernel disables lock debugging for good with its first report of a fault, also with one from
    before the first case. All cases would then pass without it. `lockdep_stats` is the text of
    /proc/lockdep_stats, None without that file.
    """
    if lockdep_stats is None:
        return "" if kernel != "debug" else "the debug kernel has no /proc/lockdep_stats"
    enabled = re.search(r"^ *debug_locks: +(\d)$", lockdep_stats, re.M)
    if not enabled:
        return "/proc/lockdep_stats does not tell whether lock debugging is on"
    return "" if enabled[1] == "1" else "lock debugging is off before the first case"
