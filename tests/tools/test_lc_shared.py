# SPDX-License-Identifier: GPL-2.0-only
"""The code that the tools share with the module."""

import os
import time

from lib import host
from lib.tools import USERLAND


def helper(name, *args):
    """Run one of userland/tests; it prints its seed."""
    print(host.run(USERLAND / "build-san/tests" / name, *args))


def test_format_codec():
    """Known checksums, round trips, flipped bits, hostile blocks."""
    helper("format_test", 60, os.environ.get("LC_SEED") or int(time.time()))


def test_replay_of_far_numbers():
    """Numbers that do not fit into what replay keeps of a header; logs as large as can be."""
    helper("narrow_test")
