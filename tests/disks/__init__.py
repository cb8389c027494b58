# SPDX-License-Identifier: GPL-2.0-only
"""Emulated disks behind QEMU: a volatile cache that is recorded, power that can be cut.

recorder.py says what is modelled and what is not.
"""

from .server import Control, Disks, DisksError

__all__ = ["Control", "Disks", "DisksError"]
