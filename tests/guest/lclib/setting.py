# SPDX-License-Identifier: GPL-2.0-only
"""Knobs of the kernel that a case turns."""

import contextlib
import pathlib


@contextlib.contextmanager
def setting(path, value):
    """The file holds this value inside the block."""
    path = pathlib.Path(path)
    before = path.read_text(encoding="ascii").strip()
    if "(" in before:
        before = before.partition("(")[2].partition(")")[0]
    path.write_text(f"{value}\n", encoding="ascii")
    try:
        yield
    finally:
        path.write_text(before + "\n", encoding="ascii")
