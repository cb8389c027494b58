# SPDX-License-Identifier: GPL-2.0-only
"""The harness itself: each case that must fail does, for the right reason."""

import re

import pytest

from lib import host

CASE_FOLDER = host.TESTS / "meta"

# case: (verdict, words that its reason must hold)
EXPECTED = {
    "failures.passes": ("passed", ""),
    "failures.skips": ("skipped", "because this is a test of skipping"),
    "failures.is_wrong": ("failed", "arithmetic"),
    "failures.ends_early": ("failed", "ended without a verdict"),
    "failures.finds_wrong_data": ("failed", "sector 17: found"),
    "failures.finds_alien_data": ("failed", "sector 5: found"),
    "failures.hangs": ("failed", "timeout: no verdict within"),
    "failures.warns": ("failed", "kernel log:\nWARNING: CPU: 0"),
    "failures.says_bug": ("failed", "kernel log:\nBUG: KASAN"),
    "failures.leaves_a_device": ("failed", "left behind: device forgotten"),
    "failures.panics": ("failed", "panic: Kernel panic - not syncing"),
    "failures.restarts": ("failed", "without a verdict"),
    "failures.leaks": ("failed", " objects:\nunreferenced object"),
    "failures.races": ("failed", "kernel log:\nBUG: KCSAN: data-race in count [dm_lc_race]"),
    "failures.comes_last": ("passed", ""),
}


def test_harness(guest_case, guest_runs):
    """The verdict and the reason are the expected ones."""
    kernel, case = guest_case
    got = guest_runs.outcome(kernel, case)
    if got.reason == guest_runs.budget.reason():
        pytest.skip(got.reason)
    verdict, words = EXPECTED[case.name]
    assert got.verdict == verdict, got.reason
    assert words in got.reason
    if case.name == "failures.passes":
        assert got.figures == {"answer": 42}
    if case.name == "failures.leaks":  # 16, of which a stack may hide one or two
        assert int(re.search(r"memory leak, (\d+) objects", got.reason)[1]) >= 14, got.reason
