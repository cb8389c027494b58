# SPDX-License-Identifier: GPL-2.0-only
"""SCSI disks in RAM, by the kernel's scsi_debug."""

import contextlib
import pathlib

from . import sh, wait


def disks():
    """The paths of those there are."""
    found = []
    for model in sorted(pathlib.Path("/sys/block").glob("sd*/device/model")):
        if model.read_text(encoding="ascii").strip() == "scsi_debug":
            found.append(f"/dev/{model.parent.parent.name}")
    return found


@contextlib.contextmanager
def debug(nr, **options):
    """That many hosts with a disk each; the options are the module's."""
    sh.run("modprobe", "sd_mod")
    sh.run("modprobe", "scsi_debug", f"add_host={nr}",
           *(f"{key}={value}" for key, value in options.items()))
    try:
        # Disks are probed in the background.
        wait.until(lambda: len(disks()) == nr and
                   all(pathlib.Path(path).exists() for path in disks()), 60, f"{nr} SCSI disks")
        yield disks()
    finally:
        sh.run("rmmod", "scsi_debug")
