# SPDX-License-Identifier: GPL-2.0-only
"""Memory that runs out: the kernel's fault injection, which the debug kernel has.

/proc/PID/fail-nth makes the n-th allocation of one task fail, whatever it is for: so with n
from 1 on, each allocation of a system call fails once, in the target, in device mapper and in
what they call. What others allocate for it (workers, threads) has to be made to fail in them.
"""

import contextlib
import os
import pathlib

from .registry import Skip

DEBUG = pathlib.Path("/sys/kernel/debug")
# No allocation is too patient or too small to fail, and nothing is printed.
KNOBS = {"failslab": {"ignore-gfp-wait": "N", "verbose": "0"},
         "fail_page_alloc": {"ignore-gfp-wait": "N", "ignore-gfp-highmem": "N",
                             "min-order": "0", "verbose": "0"},
         "fail_mempool_alloc": {"verbose": "0"},
         "fail_mempool_alloc_bulk": {"verbose": "0"}}
MANY = 1000000000


def prepare():
    """Set everything but what fails; skip the case where the kernel cannot do it."""
    if not os.path.exists("/proc/self/fail-nth"):
        raise Skip("this kernel has no fault injection")
    for where, knobs in KNOBS.items():
        for name, value in knobs.items():
            path = DEBUG / where / name
            if path.exists() or where in ("failslab", "fail_page_alloc"):
                path.write_text(value, encoding="ascii")


class Nth:
    """The n-th allocation of one task from now on fails."""

    def __init__(self, pid="self"):
        self.handle = os.open(f"/proc/{pid}/fail-nth", os.O_RDWR | os.O_CLOEXEC)

    def close(self):
        """Nothing fails any more."""
        self.arm(0)
        os.close(self.handle)

    def arm(self, n):
        """0: none."""
        os.pwrite(self.handle, b"%d" % n, 0)

    def left(self):
        """How many allocations are still to come; 0: it has failed."""
        return int(os.pread(self.handle, 20, 0))


class Shot:
    """Calls something of which the n-th allocation of a task fails; ours if none is named."""

    def __init__(self, pid="self"):
        self.nth = Nth(pid)

    def fire(self, n, act):
        """(whether there were so many allocations, the OSError or None)."""
        error = None
        # From here on Python itself must do as little as possible.
        self.nth.arm(n)
        try:
            act()
        except OSError as caught:
            error = caught
        left = self.nth.left()
        self.nth.arm(0)
        return not left, error

    def close(self):
        """Nothing fails any more."""
        self.nth.close()


def kernel_threads(*names):
    """The numbers of all kernel threads whose name begins like that."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if not (path / "cmdline").read_bytes() and (path / "comm").read_text(
                    encoding="ascii").startswith(names):
                found.append(int(path.name))
    return found


class Workers:
    """The n-th allocation of each of these kernel threads fails."""

    def __init__(self, *names):
        self.names = names
        self.armed = []

    def arm(self, n):
        """All of them that there are now."""
        self.armed = []
        for pid in kernel_threads(*self.names):
            with contextlib.suppress(OSError):
                nth = Nth(pid)
                nth.arm(n)
                self.armed.append(nth)

    def disarm(self):
        """How many of them had one fail."""
        hit = 0
        for nth in self.armed:
            with contextlib.suppress(OSError):  # a worker may end
                hit += not nth.left()
                nth.close()
        self.armed = []
        return hit


@contextlib.contextmanager
def starving(percent, *names):
    """Inside the block so many of the allocations of these kernel threads fail.

    Yields a function that adds threads that have come since, and tells how many have failed.
    """
    marked = set()

    def mark():
        for pid in set(kernel_threads(*names)) - marked:
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/{pid}/make-it-fail").write_text("1", encoding="ascii")
                marked.add(pid)
        return sum(MANY - int(knob(where, "times")) for where in chosen)

    def knob(where, name, value=None):
        path = DEBUG / where / name
        if value is None:
            return path.read_text(encoding="ascii")
        return path.write_text(str(value), encoding="ascii")

    chosen = [where for where in KNOBS if (DEBUG / where).exists()]
    for where in chosen:
        for name, value in (("task-filter", "Y"), ("interval", 1), ("space", 0),
                            ("times", MANY), ("probability", percent)):
            knob(where, name, value)
    try:
        mark()
        yield mark
    finally:
        for where in chosen:
            knob(where, "probability", 0)
            knob(where, "task-filter", "N")
        for pid in marked:
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/{pid}/make-it-fail").write_text("0", encoding="ascii")
