# SPDX-License-Identifier: GPL-2.0-only
"""What a guest case is written with: `from lclib import Disk, Skip, case`."""

from . import dm, sh
from .registry import CASES, Case, Disk, Skip, case

__all__ = ["dm", "sh", "CASES", "Case", "Disk", "Skip", "case"]
