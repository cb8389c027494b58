# SPDX-License-Identifier: GPL-2.0-only
"""Waiting on conditions, never for a time."""

import select
import time

TICK = 0.05
# What all limits are multiplied by: runner.py sets it where the guest is known to be slow.
scale = 1  # pylint: disable=invalid-name


def limit(seconds):
    """How long that is on this guest."""
    return seconds * scale


def until(condition, timeout, what):
    """Poll until condition() is true; returns its value, or fails saying what did not happen."""
    timeout = limit(timeout)
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        select.select([], [], [], TICK)
