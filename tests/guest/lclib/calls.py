# SPDX-License-Identifier: GPL-2.0-only
"""How often the kernel calls a function, by a probe: for what must cost little, counted."""

import contextlib
import os
import pathlib

from . import sh

TRACING = pathlib.Path("/sys/kernel/tracing")


def tell(path, text):
    """Write to a file of tracefs. Not by open(): that seeks to the end, which these cannot do."""
    knob = os.open(TRACING / path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(knob, text.encode())
    finally:
        os.close(knob)


class Calls:
    """Counts calls of one function that is not inlined; use as a context manager."""

    def __init__(self, function):
        self.function = function
        self.name = f"count_{function}"

    def __enter__(self):
        if not (TRACING / "kprobe_events").exists():
            sh.run("mount", "-t", "tracefs", "none", TRACING)
        tell("kprobe_events", f"p:{self.name} {self.function}")
        tell(f"events/kprobes/{self.name}/enable", "1")
        return self

    def __exit__(self, *_):
        tell(f"events/kprobes/{self.name}/enable", "0")
        tell("kprobe_events", f"-:{self.name}")

    def count(self):
        """Calls so far."""
        profile = (TRACING / "kprobe_profile").read_text(encoding="ascii")
        line = next(line.split() for line in profile.splitlines() if self.name in line)
        return int(line[1]) + int(line[2])

    @contextlib.contextmanager
    def until(self, event):
        """Gives a function that counts the calls since here up to the first such event of the
        module, however many came behind it.
        """
        trace, switch = TRACING / "trace", f"events/lc/{event}/enable"

        def count():
            lines = trace.read_text(encoding="ascii").splitlines()
            assert not any("LOST" in line for line in lines)
            ends = [at for at, line in enumerate(lines) if f" {event}: " in line]
            assert ends, f"no {event}"
            return sum(f" {self.name}: " in line for line in lines[:ends[0]])

        # The clocks of two processors differ, above all emulated ones.
        tell("trace_clock", "counter")
        tell(switch, "1")
        trace.write_text("", encoding="ascii")
        try:
            yield count
        finally:
            tell(switch, "0")
