# SPDX-License-Identifier: GPL-2.0-only
"""A disk in RAM with a volatile cache and FUA, which emulated virtio disks do not have."""

import contextlib
import pathlib

from lclib import sh

from .systems import write_sysfs

CONFIG = pathlib.Path("/sys/kernel/config")


@contextlib.contextmanager
def disk(mib):
    """Its path; gone again after the block."""
    sh.run("modprobe", "null_blk", "nr_devices=0")
    if not (CONFIG / "nullb").exists():
        sh.run("mount", "-t", "configfs", "none", CONFIG)
    home = CONFIG / "nullb/nullbench"  # the disk's name, too
    home.mkdir()
    try:
        for name, value in (("size", mib), ("memory_backed", 1), ("cache_size", 4),
                            ("power", 1)):
            write_sysfs(home / name, value)
        yield f"/dev/{home.name}"
    finally:
        home.rmdir()
