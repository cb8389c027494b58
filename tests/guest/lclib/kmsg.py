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
        """Put a line of our own into the log, so that a person finds the place."""
        os.write(self.handle, f"<6>{OURS} {text}\n".encode())


def faults(lines):
    """Those lines that no case may cause, with a little of what follows."""
    found = []
    for number, line in enumerate(lines):
        if OURS not in line and FAULTS.search(line):
            found.append(number)
    if not found:
        return []
    first = found[0]
    return [line for line in lines[first:first + 40] if OURS not in line]
