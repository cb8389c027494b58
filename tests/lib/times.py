# SPDX-License-Identifier: GPL-2.0-only
"""What took how long in a run: test files of the host, guests and builds per kernel; its budget."""

import collections
import os
import time

SHORT = 10      # seconds that are not worth a line
# Of the hour that a run may take, what has started needs some minutes to end.
RUN_SECONDS = 3300


class Budget:
    """The time that a run has: no guest case starts after `seconds`; None: it has no end.

    It counts from LC_STARTED (seconds since 1970, from tests/run), so that it includes what is
    fetched and built before the first guest.
    """

    def __init__(self, seconds=None):
        self.seconds = seconds
        started = float(os.environ.get("LC_STARTED") or time.time())
        self.end = None if seconds is None else time.monotonic() + started + seconds - time.time()

    def left(self):
        """Seconds, not below 0; None: no end."""
        return None if self.end is None else max(0, self.end - time.monotonic())

    def is_over(self):
        """May nothing start any more?"""
        return self.left() == 0

    def reason(self):
        """Why a case was not started; None without an end."""
        if self.end is None:
            return None
        return f"not started: the {self.seconds / 60:.0f} minutes that the run has are over"


def by_part(reports, guest_items, seconds):
    """[(part, seconds)], the longest first.

    An item of a guest only waits for the guest, whose time is in `seconds`, counted by the thread
    that boots it.
    """
    spent = collections.Counter(seconds)
    for report in reports:
        if report.nodeid not in guest_items:
            spent[report.nodeid.partition("::")[0]] += report.duration
    return spent.most_common()


def tell(reporter):
    """Guests run beside the host's tests and each other, so that the sum is not the whole."""
    config = reporter.config
    runs = getattr(config, "runs", None)
    reports = [report for reports in reporter.stats.values() for report in reports
               if hasattr(report, "duration")]
    parts = [(part, seconds) for part, seconds
             in by_part(reports, getattr(config, "guest_items", ()), runs.seconds if runs else {})
             if seconds >= SHORT]
    if parts:
        reporter.section("seconds of each part")
    for part, seconds in parts:
        reporter.write_line(f"{seconds:7.0f}  {part}")
