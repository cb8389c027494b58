# SPDX-License-Identifier: GPL-2.0-only
"""Every guest case on every kernel it names."""

import pytest

from lib import host

CASE_FOLDER = host.TESTS / "guest/cases"


def test_guest(guest_case, guest_runs, record_property):
    """The verdict that the guest sent for this case."""
    kernel, case = guest_case
    got = guest_runs.outcome(kernel, case)
    for name, value in got.figures.items():
        record_property(name, value)
    if got.verdict == "skipped":
        pytest.skip(got.reason)
    if got.verdict != "passed":
        pytest.fail(f"{kernel} {case.name}: {case.about}\n{got.reason}\n"
                    f"repeat: tests/run --seed {guest_runs.seed} {kernel}-{case.name}",
                    pytrace=False)
