# SPDX-License-Identifier: GPL-2.0-only
"""What took how long in a run: test files of the host, guests and builds per kernel."""

import collections

SHORT = 10      # seconds that are not worth a line


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
