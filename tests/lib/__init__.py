# SPDX-License-Identifier: GPL-2.0-only
"""The host side of the test harness."""

import pathlib
import sys

# The cases and their library are the guest's, but the host reads what they need.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "guest"))
