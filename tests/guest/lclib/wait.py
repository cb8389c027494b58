# SPDX-License-Identifier: GPL-2.0-only
"""Waiting on conditions, never for a time."""

import select
import time

TICK = 0.05


def until(condition, timeout, what):
    """Poll until condition() is true; returns its value, or fails saying what did not happen."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what}")
        select.select([], [], [], TICK)
