# SPDX-License-Identifier: GPL-2.0-only
"""A cgroup (version 2) for processes that get little of something."""

import contextlib
import pathlib

from . import sh, wait

ROOT = pathlib.Path("/tmp/cgroup")


def put(path, text):
    """Write to a file of the kernel."""
    path.write_text(text, encoding="ascii")


@contextlib.contextmanager
def group(controller):
    """Yields the folder of a group with this controller; its processes end with the block."""
    folder = ROOT / "slow"
    ROOT.mkdir(exist_ok=True)
    sh.run("mount", "-t", "cgroup2", "none", ROOT)
    try:
        put(ROOT / "cgroup.subtree_control", f"+{controller}")
        folder.mkdir()
        yield folder
        wait.until(lambda: "populated 0" in (folder / "cgroup.events").read_text("ascii"), 60,
                   "the cgroup to be empty")
        folder.rmdir()
    finally:
        sh.run("umount", ROOT)
