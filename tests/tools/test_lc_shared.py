# SPDX-License-Identifier: GPL-2.0-only
"""The code that the tools share with the module."""

from lib import host
from lib.tools import USERLAND


def test_sums():
    """Known checksums, and those of the module."""
    host.run(USERLAND / "build-san/tests/format_test")


def test_replay_of_far_numbers():
    """Numbers that do not fit into what replay keeps of a header; logs as large as can be."""
    host.run(USERLAND / "build-san/tests/narrow_test")
